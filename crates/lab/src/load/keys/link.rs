//! The keys of a link.

use anabranch_sim::{ErrorSpec, HoldSpec, QueueSpec};
use anabranch_units::{Bytes, Rate, SimSpan};
use schemars::JsonSchema;

use super::change::{DelayChangeKeys, RateChangeKeys, ReorderKeys, TraceKeys};
use crate::load::outages::OutageKeys;
use crate::load::part::PartKeys;
use crate::load::values::{Name, Probability, Text, WrittenOut};

/// A link between two nodes; a node exists if a link names it. The link is duplex unless `duplex = false`: the reverse direction has the
/// same rate and delay, a drop-tail queue of 50 packets and no errors, unless `reverse` has other keys. In reports the reverse direction
/// of the link `a` is `a.reverse`.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "link")]
pub(crate) struct LinkKeys {
    /// Its name: letters, digits, `-` and `_`.
    pub(crate) id: Name,
    /// The number of copies, if more than one: `#` in names becomes 0, 1, and so on.
    #[expect(dead_code, reason = "elements are written out before they are read")]
    pub(crate) count: Option<WrittenOut>,
    /// The node where it begins.
    pub(crate) from: Name,
    /// The node where it ends.
    pub(crate) to: Name,
    /// The rate in bits per second; needed unless there is a `trace`.
    pub(crate) rate: Option<Text<Rate>>,
    /// Changes of the rate. Times count from the start or, with a `rate_period`, from the beginning of each period. At a rate of `0bit/s`
    /// packets wait. The reverse direction keeps its rate.
    #[serde(default)]
    pub(crate) rate_changes: Vec<RateChangeKeys>,
    /// The period after which `rate` and its changes repeat; never if absent.
    pub(crate) rate_period: Option<Text<SimSpan>>,
    /// Delivery opportunities in place of `rate`, in Mahimahi's format: the name of a file relative to this one, with a line for each, or
    /// their list. Each is a number of milliseconds from the start, and carries 1504 bytes; a packet needs 4 bytes more than its size. Unused
    /// bytes are lost. After the last opportunity they repeat. The reverse direction has their mean rate.
    pub(crate) trace: Option<TraceKeys>,
    /// The propagation delay.
    pub(crate) delay: Text<SimSpan>,
    /// Changes of the delay in both directions. Times count from the start or, with a `delay_period`, from the beginning of each period. A
    /// packet has the delay of the time when it leaves its queue, so after a change to a shorter delay it may overtake others.
    #[serde(default)]
    pub(crate) delay_changes: Vec<DelayChangeKeys>,
    /// The period after which `delay` and its changes repeat; never if absent.
    pub(crate) delay_period: Option<Text<SimSpan>>,
    /// Random packets that take longer than the others and are overtaken; none if absent.
    pub(crate) reorder: Option<ReorderKeys>,
    /// The share of packets that are duplicated; 0 if absent.
    pub(crate) duplicate: Option<Probability>,
    /// Whether there is a reverse direction.
    #[serde(default = "yes")]
    pub(crate) duplex: bool,
    /// The queue; a `drop_tail` of 50 packets if absent.
    #[serde(default)]
    pub(crate) queue: PartKeys<QueueSpec>,
    /// The error model before the queue; none if absent.
    #[serde(default)]
    pub(crate) error: PartKeys<ErrorSpec>,
    /// The MTU, headers included, at least `68B`; unlimited if absent. Longer packets are dropped silently.
    pub(crate) mtu: Option<Text<Bytes>>,
    /// Changes of the MTU, in both directions: a route inside the link has changed.
    #[serde(default)]
    pub(crate) mtu_changes: Vec<MtuChangeKeys>,
    /// Whether packets lose their ECN codepoint before the queue, as in a tunnel or a router that does not keep it; false if absent.
    #[serde(default)]
    pub(crate) clear_ecn: bool,
    /// The release of packets in batches at the far end; at once if absent. Not with a queue that decides at its head, as
    /// `codel` does, `reorder`, `duplicate`, `delay_changes` or `clock = "ns2"`.
    pub(crate) hold: Option<PartKeys<HoldSpec>>,
    /// Outages of the link, in both directions: packets that arrive during an outage are lost.
    #[serde(default)]
    pub(crate) outages: Vec<OutageKeys>,
    /// The differences of the reverse direction.
    pub(crate) reverse: Option<ReverseKeys>,
}

/// The differences of the reverse direction of a duplex link.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "reverse")]
pub(crate) struct ReverseKeys {
    /// The rate; that of the link if absent.
    pub(crate) rate: Option<Text<Rate>>,
    /// Changes of the rate.
    #[serde(default)]
    pub(crate) rate_changes: Vec<RateChangeKeys>,
    /// The period after which the rate and its changes repeat; never if absent.
    pub(crate) rate_period: Option<Text<SimSpan>>,
    /// Delivery opportunities in place of a rate.
    pub(crate) trace: Option<TraceKeys>,
    /// Random packets that take longer than the others; none if absent.
    pub(crate) reorder: Option<ReorderKeys>,
    /// The share of packets that are duplicated; 0 if absent.
    pub(crate) duplicate: Option<Probability>,
    /// The propagation delay; that of the link if absent.
    pub(crate) delay: Option<Text<SimSpan>>,
    /// The queue; a `drop_tail` of 50 packets if absent.
    #[serde(default)]
    pub(crate) queue: PartKeys<QueueSpec>,
    /// The error model before the queue; none if absent.
    #[serde(default)]
    pub(crate) error: PartKeys<ErrorSpec>,
    /// The MTU; that of the link if absent.
    pub(crate) mtu: Option<Text<Bytes>>,
    /// Whether packets lose their ECN codepoint; false if absent.
    #[serde(default)]
    pub(crate) clear_ecn: bool,
    /// The release of packets; at once if absent.
    pub(crate) hold: Option<PartKeys<HoldSpec>>,
}

/// A change of a link's MTU.
#[derive(Clone, Copy, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "mtu_change")]
pub(crate) struct MtuChangeKeys {
    /// The time of the change.
    pub(crate) at: Text<SimSpan>,
    /// The new MTU, at least `68B`.
    pub(crate) mtu: Text<Bytes>,
}

fn yes() -> bool {
    true
}
