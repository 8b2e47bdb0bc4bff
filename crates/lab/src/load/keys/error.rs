//! The keys of a link's losses.

use anabranch_units::{Bytes, Rate, SimSpan};
use schemars::JsonSchema;

use crate::load::values::{Count, Probability, Text};

/// The packets that a link loses.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "error", tag = "kind")]
pub(crate) enum ErrorKeys {
    /// No packets.
    #[default]
    None,
    /// The packets with these numbers, counted from 0 in the order of arrival.
    List {
        /// The numbers of the packets.
        packets: Vec<u64>,
    },
    /// The first packet at or after each of these times.
    At {
        /// The times of the losses.
        times: Vec<Text<SimSpan>>,
    },
    /// Each packet with the same probability, independently. The names `bernoulli` and `iid` mean the same.
    Uniform {
        /// The probability, from 0 to 1.
        rate: Probability,
    },
    /// Each byte with the same probability; a packet is lost if one of its bytes is.
    PerByte {
        /// The probability, from 0 to 1.
        rate: Probability,
    },
    /// A channel that is good or bad (Gilbert and Elliott); it starts good. The names `gilbert` and `gemodel` mean the
    /// same.
    GilbertElliott {
        /// Probability, per packet, that a good channel turns bad.
        to_bad: Probability,
        /// Probability, per packet, that a bad channel turns good.
        to_good: Probability,
        /// The loss probability while it is good; 0 if absent.
        #[serde(default)]
        loss_good: Option<Probability>,
        /// The loss probability while it is bad; 1 if absent.
        #[serde(default)]
        loss_bad: Option<Probability>,
    },
    /// The first `burst` of every `period` packets.
    Periodic {
        /// Packets from one loss to the next.
        period: Count,
        /// The first packet lost, counted from 0; 0 if absent.
        #[serde(default)]
        offset: u64,
        /// Packets lost in a row; 1 if absent.
        #[serde(default)]
        burst: Option<Count>,
    },
    /// Packets that exceed a rate, without a queue: a token bucket. The name `token_bucket` means the same.
    Policer {
        /// The sustained rate.
        rate: Text<Rate>,
        /// The depth of the bucket: the burst that passes at once. Larger packets never pass.
        burst: Text<Bytes>,
    },
}
