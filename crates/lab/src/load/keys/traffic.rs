//! What flows that only fill links have besides, and what applications send.

use anabranch_units::{Bytes, Rate, SimSpan};
use schemars::JsonSchema;

use crate::load::values::{Count, Text};

/// What a flow at a constant rate has besides.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "cbr", transform = super::schema::part)]
pub(crate) struct CbrKeys {
    /// Bits per second.
    pub(crate) rate: Text<Rate>,
}

/// What a flow of bursts has besides.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "on_off", transform = super::schema::part)]
pub(crate) struct OnOffKeys {
    /// Bits per second of the bursts.
    pub(crate) rate: Text<Rate>,
    /// Mean length of a burst.
    pub(crate) on: Text<SimSpan>,
    /// Mean length of a silence.
    pub(crate) off: Text<SimSpan>,
}

/// What an application wants to have sent, from the start of its flow on. Agents of ns-2 send whole packets: the last one of a
/// message is padded. With streams, message m goes on stream m modulo their number.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "workload", tag = "kind")]
pub(crate) enum WorkloadKeys {
    /// As much as can be sent.
    Bulk,
    /// So many bytes, at once.
    Fixed {
        /// How many.
        bytes: Text<Bytes>,
    },
    /// Messages, one after the other.
    Messages {
        /// Bytes of each.
        bytes: Text<Bytes>,
        /// How many; endless if absent.
        #[serde(default)]
        count: Option<Count>,
        /// The time from one to the next; none if absent: all at once.
        #[serde(default)]
        every: Option<Text<SimSpan>>,
        /// The mean of that time if it is random: a Poisson process.
        #[serde(default)]
        every_mean: Option<Text<SimSpan>>,
    },
}
