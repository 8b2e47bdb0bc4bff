//! The keys of a queue.

use anabranch_units::{Bytes, SimSpan};
use schemars::JsonSchema;

use crate::load::values::{Count, Probability, Text};

/// Where packets wait for a link.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "queue", tag = "kind")]
pub(crate) enum QueueKeys {
    /// First in, first out; what finds it full is dropped. One of the two limits.
    DropTail {
        /// How many packets it holds, the one in service included: ns-2's `queue-limit`. At least 2.
        #[serde(default)]
        packets: Option<Count>,
        /// How many bytes may wait; the packet in service does not.
        #[serde(default)]
        bytes: Option<Text<Bytes>>,
    },
    /// First in, first out, without a limit.
    Unlimited,
    /// Random early detection, as ns-2.35's `Queue/RED` measured in packets.
    Red {
        /// How many packets may wait.
        packets: Count,
        /// Average below which nothing is dropped, in packets; 5 if absent.
        #[serde(default)]
        threshold_min: Option<f64>,
        /// Average from which on much is dropped, in packets; 15 if absent.
        #[serde(default)]
        threshold_max: Option<f64>,
        /// Drop probability at `threshold_max`; 0.1 if absent.
        #[serde(default)]
        probability_max: Option<Probability>,
        /// Whether packets whose sender understands marks are marked where others are dropped by chance (RFC 3168); false if absent.
        #[serde(default)]
        ecn: bool,
    },
    /// Controlled delay (RFC 8289): it drops at its head what has waited for too long.
    #[serde(rename = "codel")]
    CoDel {
        /// How many packets may wait; 1000 if absent.
        #[serde(default)]
        packets: Option<Count>,
        /// The standing delay that is acceptable; 5 ms if absent.
        #[serde(default)]
        target: Option<Text<SimSpan>>,
        /// About the longest round trip; 100 ms if absent.
        #[serde(default)]
        interval: Option<Text<SimSpan>>,
        /// Whether packets whose sender understands marks are marked where others are dropped at the head; false if absent.
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
