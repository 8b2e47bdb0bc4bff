//! The keys of a varying link: changes of its rate and delay, reordering, and traces.

use std::fmt;

use anabranch_sim::DelaySpec;
use anabranch_units::{Rate, SimSpan};
use schemars::{JsonSchema, json_schema};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};

use crate::load::part::PartKeys;
use crate::load::values::{Probability, Text, inline_schema};

/// A change of a link's rate.
#[derive(Clone, Copy, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "rate_change")]
pub(crate) struct RateChangeKeys {
    /// The time of the change, later than the change before.
    pub(crate) at: Text<SimSpan>,
    /// The new rate; at `0bit/s` packets wait.
    pub(crate) rate: Text<Rate>,
}

/// A change of a link's delay.
#[derive(Clone, Copy, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "delay_change")]
pub(crate) struct DelayChangeKeys {
    /// The time of the change, later than the change before.
    pub(crate) at: Text<SimSpan>,
    /// The new propagation delay.
    pub(crate) delay: Text<SimSpan>,
}

/// Reordering: random packets that take longer than the others.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "reorder")]
pub(crate) struct ReorderKeys {
    /// The share of these packets.
    pub(crate) share: Probability,
    /// Their additional delay.
    pub(crate) extra: PartKeys<DelaySpec>,
}

/// Delivery opportunities, in milliseconds. They replace the name of a file before keys are read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TraceKeys(pub(crate) Vec<u64>);

impl<'de> Deserialize<'de> for TraceKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TraceVisitor;

        impl<'de> Visitor<'de> for TraceVisitor {
            type Value = TraceKeys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a trace, or a list of milliseconds")
            }

            fn visit_str<E: de::Error>(self, _: &str) -> Result<TraceKeys, E> {
                Err(E::custom("the file of a trace cannot be set from outside the scenario's file"))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<TraceKeys, A::Error> {
                Vec::deserialize(de::value::SeqAccessDeserializer::new(list)).map(TraceKeys)
            }
        }

        deserializer.deserialize_any(TraceVisitor)
    }
}

inline_schema!(TraceKeys, "trace", |_| {
    json_schema!({ "type": ["string", "array"], "items": { "type": "integer", "minimum": 0 } })
});
