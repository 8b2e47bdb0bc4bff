//! The additional keys of `cbr` and `on_off`, and the keys of applications.

use anabranch_units::{Bytes, Rate, SimSpan};
use schemars::JsonSchema;

use crate::load::values::{Count, Name, Text};

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

/// The data of an application, from the start of its flow on. Agents of ns-2 send whole packets: the last packet of a message is
/// padded. With several streams, message m is sent on stream m modulo their number.
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
        count: Option<Count>,
        /// The time between messages; all at once if absent.
        every: Option<Text<SimSpan>>,
        /// The mean of that time if it is random: a Poisson process.
        every_mean: Option<Text<SimSpan>>,
    },
    /// Messages of random sizes, one after the other on one stream, as chunks of a video. With a `count` of 1, the default, it is one
    /// flow of a random size.
    Drawn {
        /// The sizes.
        sizes: SizesKeys,
        /// The number of messages; 1 if absent.
        count: Option<Count>,
        /// The time between messages; all at once if absent.
        every: Option<Text<SimSpan>>,
        /// The mean of that time if it is random.
        every_mean: Option<Text<SimSpan>>,
    },
    /// Requests of the receiver, which the sender answers, one after the other. Only `anabranch`.
    Requests {
        /// The sizes of the answers.
        sizes: SizesKeys,
        /// The number of requests.
        count: Count,
        /// The bytes of a request, up to `10kB`; `200B` if absent.
        request: Option<Text<Bytes>>,
        /// The mean of the random time from an answer to the next request; none if absent.
        think_mean: Option<Text<SimSpan>>,
    },
}

/// The sizes of messages.
#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "sizes", tag = "kind")]
pub(crate) enum SizesKeys {
    /// The same size for all.
    Constant {
        /// The bytes of each.
        bytes: Text<Bytes>,
    },
    /// A Pareto distribution between two bounds: heavy-tailed.
    Pareto {
        /// The shape, the exponent of the tail, such as 1.2: the smaller, the heavier the tail.
        shape: f64,
        /// The least size.
        least: Text<Bytes>,
        /// The largest size.
        most: Text<Bytes>,
    },
}

/// The class of a flow: its flows arrive one after the other, and the gauges of `class.<name>` count their messages together. Only
/// with `anabranch`, for workloads that end, on at most one stream.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "class")]
pub(crate) struct ClassKeys {
    /// Its name.
    pub(crate) name: Name,
    /// The time from one flow of the class to the next, in the order of the file, from `start` on; all at once if absent.
    pub(crate) every: Option<Text<SimSpan>>,
    /// The mean of that time if it is random: Poisson arrivals. The first flow, too, arrives such a time after `start`.
    pub(crate) every_mean: Option<Text<SimSpan>>,
}
