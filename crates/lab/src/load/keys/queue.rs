//! The keys of a queue.

use anabranch_units::{Bytes, SimSpan};
use schemars::JsonSchema;

use crate::load::values::{Count, Probability, Text};

/// The queue before a link.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "queue", tag = "kind")]
pub(crate) enum QueueKeys {
    /// First in, first out; packets that find it full are dropped. One of the two limits.
    DropTail {
        /// The limit in packets, the one in service included: ns-2's `queue-limit`. At least 2.
        #[serde(default)]
        packets: Option<Count>,
        /// The limit in waiting bytes, without the packet in service.
        #[serde(default)]
        bytes: Option<Text<Bytes>>,
    },
    /// First in, first out, without a limit.
    Unlimited,
    /// Random early detection, as ns-2.35's `Queue/RED`, measured in packets.
    Red {
        /// The limit of waiting packets.
        packets: Count,
        /// The average below which nothing is dropped, in packets; 5 if absent.
        #[serde(default)]
        threshold_min: Option<f64>,
        /// The average above which most packets are dropped; 15 if absent.
        #[serde(default)]
        threshold_max: Option<f64>,
        /// The drop probability at `threshold_max`; 0.1 if absent.
        #[serde(default)]
        probability_max: Option<Probability>,
        /// Whether ECN-capable packets are marked instead of dropped at random (RFC 3168); false if absent.
        #[serde(default)]
        ecn: bool,
    },
    /// Controlled delay (RFC 8289): drops packets at the head that have waited too long.
    #[serde(rename = "codel")]
    CoDel {
        /// The limit of waiting packets; 1000 if absent.
        #[serde(default)]
        packets: Option<Count>,
        /// The acceptable standing delay; 5 ms if absent.
        #[serde(default)]
        target: Option<Text<SimSpan>>,
        /// About the longest round trip; 100 ms if absent.
        #[serde(default)]
        interval: Option<Text<SimSpan>>,
        /// Whether ECN-capable packets are marked instead of dropped at the head; false if absent.
        #[serde(default)]
        ecn: bool,
    },
}

/// ns-2's `DropTail` of 50 packets.
impl Default for QueueKeys {
    fn default() -> Self {
        Self::DropTail { packets: Some(Count(50)), bytes: None }
    }
}
