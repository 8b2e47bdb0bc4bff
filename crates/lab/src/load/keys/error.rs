//! The keys of what a link loses.

use anabranch_units::{Bytes, Rate, SimSpan};
use schemars::JsonSchema;

use crate::load::values::{Count, Probability, Text};

/// Which packets a link loses.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "error", tag = "kind")]
pub(crate) enum ErrorKeys {
    /// None.
    #[default]
    None,
    /// These, counted from 0 in the order in which they come to the link.
    List {
        /// Their numbers.
        packets: Vec<u64>,
    },
    /// The first packet that comes at a time or later, for each of these times.
    At {
        /// The times.
        times: Vec<Text<SimSpan>>,
    },
    /// Each packet with the same probability, independently of the others.
    Uniform {
        /// The probability, from 0 to 1.
        rate: Probability,
    },
    /// Each byte with the same probability; a packet is lost if one of its bytes is.
    PerByte {
        /// The probability, from 0 to 1.
        rate: Probability,
    },
    /// A channel that is good or bad (Gilbert and Elliott); it starts good.
    GilbertElliott {
        /// Probability, per packet, that a good channel turns bad.
        to_bad: Probability,
        /// Probability, per packet, that a bad channel turns good.
        to_good: Probability,
        /// Loss while it is good; 0 if absent.
        #[serde(default)]
        loss_good: Option<Probability>,
        /// Loss while it is bad; 1 if absent.
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
    /// What exceeds a rate, at once and without a queue: a token bucket.
    Policer {
        /// What passes in the long run.
        rate: Text<Rate>,
        /// What may pass above that at once: the depth of the bucket. Packets that are larger never pass.
        burst: Text<Bytes>,
    },
}
