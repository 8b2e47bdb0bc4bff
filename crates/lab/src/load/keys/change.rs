//! The keys of a varying link: changes of its rate and delay, reordering, and traces.

use std::borrow::Cow;
use std::fmt;

use anabranch_sim::DelaySpec;
use anabranch_units::{Rate, SimSpan};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};

use crate::load::part::PartKeys;
use crate::load::values::{Probability, Text};

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

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<TraceKeys, A::Error> {
                let mut millis = vec![];
                while let Some(number) = list.next_element()? {
                    millis.push(number);
                }
                Ok(TraceKeys(millis))
            }
        }

        deserializer.deserialize_any(TraceVisitor)
    }
}

impl JsonSchema for TraceKeys {
    fn schema_name() -> Cow<'static, str> {
        "trace".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "array"], "items": { "type": "integer", "minimum": 0 } })
    }
}
