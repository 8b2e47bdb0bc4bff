//! The additional keys of flows that only fill links, and the keys of applications.

use anabranch_units::{Bytes, Rate, SimSpan};
use schemars::JsonSchema;

use crate::load::values::{Count, Text};

/// The additional keys of a flow at a constant rate.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "cbr", transform = super::schema::part)]
pub(crate) struct CbrKeys {
    /// The rate in bits per second.
    pub(crate) rate: Text<Rate>,
}

/// The additional keys of a flow of bursts.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "on_off", transform = super::schema::part)]
pub(crate) struct OnOffKeys {
    /// The rate of the bursts in bits per second.
    pub(crate) rate: Text<Rate>,
    /// The mean length of a burst.
    pub(crate) on: Text<SimSpan>,
    /// The mean length of a silence.
    pub(crate) off: Text<SimSpan>,
}

/// The data of an application, from the start of its flow on. Agents of ns-2 send whole packets: the last one of a message is
/// padded. With streams, message m goes on stream m modulo their number.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "workload", tag = "kind")]
pub(crate) enum WorkloadKeys {
    /// Endless data.
    Bulk,
    /// A number of bytes, offered at once.
    Fixed {
        /// The number of bytes.
        bytes: Text<Bytes>,
    },
    /// Messages, one after the other.
    Messages {
        /// The bytes of each message.
        bytes: Text<Bytes>,
        /// The number of messages; endless if absent.
        #[serde(default)]
        count: Option<Count>,
        /// The time between messages; all at once if absent.
        #[serde(default)]
        every: Option<Text<SimSpan>>,
        /// The mean of that time if it is random: a Poisson process.
        #[serde(default)]
        every_mean: Option<Text<SimSpan>>,
    },
}
