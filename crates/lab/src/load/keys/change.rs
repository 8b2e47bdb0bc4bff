//! The keys of a link that changes: its rate, its delay, the order of what it carries.

use std::borrow::Cow;
use std::fmt;

use anabranch_units::{Rate, SimSpan};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};

use super::hold::DelayKeys;
use crate::load::values::{Probability, Text};

/// From some time on, a link has another rate.
#[derive(Clone, Copy, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "rate_change")]
pub(crate) struct RateChangeKeys {
    /// From when on: later than the one before it.
    pub(crate) at: Text<SimSpan>,
    /// Its rate then; `0bit/s` keeps what waits.
    pub(crate) rate: Text<Rate>,
}

/// From some time on, a link has another delay.
#[derive(Clone, Copy, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "delay_change")]
pub(crate) struct DelayChangeKeys {
    /// From when on: later than the one before it.
    pub(crate) at: Text<SimSpan>,
    /// Its propagation delay then.
    pub(crate) delay: Text<SimSpan>,
}

/// Packets that take longer than the others, by chance.
#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "reorder")]
pub(crate) struct ReorderKeys {
    /// Which share of all.
    pub(crate) share: Probability,
    /// How much longer.
    pub(crate) extra: DelayKeys,
}

/// Opportunities of delivery, in milliseconds. The name of a file is replaced by them before keys are read.
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
