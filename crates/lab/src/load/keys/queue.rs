//! The keys of a queue.

use anabranch_units::{Bytes, SimSpan};
use schemars::JsonSchema;

use crate::load::values::{Count, Probability, Text};

/// The queue before a link.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "queue", tag = "kind")]
pub(crate) enum QueueKeys {
    /// First in, first out; packets that find it full are dropped. One of the two limits. The names `fifo`, `pfifo` and
    /// `tail_drop` mean the same.
    DropTail {
        /// The limit in packets, the one in service included: ns-2's `queue-limit`. At least 2.
        #[serde(default)]
        packets: Option<Count>,
        /// The limit in waiting bytes, without the packet in service.
        #[serde(default)]
        bytes: Option<Text<Bytes>>,
    },
    /// First in, first out, without a limit. The name `infinite` means the same.
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
    /// First in, first out with a marking threshold, as DCTCP needs it (RFC 8257): a packet that arrives at a longer queue is marked, or
    /// dropped if it is not ECN-capable. A SYN is not ECN-capable, so it may not get through while there is a standing queue (section
    /// 3.5). One of the three thresholds.
    Step {
        /// The limit in packets, as with `drop_tail`.
        packets: Count,
        /// The threshold in waiting packets.
        #[serde(default)]
        mark_packets: Option<Count>,
        /// The threshold in waiting bytes.
        #[serde(default)]
        mark_bytes: Option<Text<Bytes>>,
        /// The threshold as the transmission time of the waiting bytes at the rate of the link.
        #[serde(default)]
        mark_delay: Option<Text<SimSpan>>,
    },
    /// A queue for each flow, served in turn, and controlled delay in each (RFC 8290).
    #[serde(rename = "fq_codel")]
    FqCoDel {
        /// The limit of waiting packets in all queues together; 10240 if absent.
        #[serde(default)]
        packets: Option<Count>,
        /// The acceptable standing delay; 5 ms if absent.
        #[serde(default)]
        target: Option<Text<SimSpan>>,
        /// About the longest round trip; 100 ms if absent.
        #[serde(default)]
        interval: Option<Text<SimSpan>>,
        /// The bytes that a flow sends in its turn; `1514B` if absent.
        #[serde(default)]
        quantum: Option<Text<Bytes>>,
        /// The number of queues that flows are hashed into, up to 65536; 1024 if absent.
        #[serde(default)]
        queues: Option<Count>,
        /// Whether ECN-capable packets are marked instead of dropped; true if absent.
        #[serde(default)]
        ecn: Option<bool>,
    },
    /// Proportional integral controller enhanced (RFC 8033): drops arriving packets with a probability that follows the delay.
    Pie {
        /// The limit of waiting packets; 1000 if absent.
        #[serde(default)]
        packets: Option<Count>,
        /// The target delay; 15 ms if absent.
        #[serde(default)]
        target: Option<Text<SimSpan>>,
        /// The time between updates of the probability; 15 ms if absent.
        #[serde(default)]
        update: Option<Text<SimSpan>>,
        /// Whether ECN-capable packets are marked while the probability is below 0.1; false if absent.
        #[serde(default)]
        ecn: bool,
    },
    /// A short queue for packets of scalable senders (ECT(1)) beside a classic queue for all others; the coupling gives flows of both about
    /// the same rate (RFC 9332).
    #[serde(rename = "dualpi2")]
    DualPi2 {
        /// The limit of waiting packets in both queues together; 10000 if absent.
        #[serde(default)]
        packets: Option<Count>,
        /// The target delay of the classic queue; 15 ms if absent.
        #[serde(default)]
        target: Option<Text<SimSpan>>,
        /// The time between updates of the probability; 15 ms if absent.
        #[serde(default)]
        update: Option<Text<SimSpan>>,
        /// The coupling factor; 2 if absent.
        #[serde(default)]
        coupling: Option<f64>,
        /// The delay above which every packet of the short queue is marked; marking begins at two thirds of it. 1.2 ms if absent.
        #[serde(default)]
        mark_delay: Option<Text<SimSpan>>,
        /// Whether ECN-capable packets of the classic queue are marked instead of dropped; true if absent.
        #[serde(default)]
        ecn: Option<bool>,
    },
}

/// ns-2's `DropTail` of 50 packets.
impl Default for QueueKeys {
    fn default() -> Self {
        Self::DropTail { packets: Some(Count(50)), bytes: None }
    }
}
