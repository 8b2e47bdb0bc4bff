//! The keys of a link.

use anabranch_units::{Bytes, Rate, SimSpan};
use schemars::JsonSchema;

use super::change::{DelayChangeKeys, RateChangeKeys, ReorderKeys, TraceKeys};
use super::error::ErrorKeys;
use super::hold::HoldKeys;
use super::queue::QueueKeys;
use crate::load::outages::OutageKeys;
use crate::load::values::{Name, Probability, Text, WrittenOut};

/// A link joins two nodes; naming a node creates it. It is duplex unless `duplex = false`: the way back has the same rate and
/// delay, a drop-tail queue of 50 packets and no errors, unless `reverse` says otherwise. In reports the way back of the link `a`
/// is `a.reverse`.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "link")]
pub(crate) struct LinkKeys {
    /// Its name: letters, digits, `-` and `_`.
    pub(crate) id: Name,
    /// The number of copies, if more than one: `#` in names becomes 0, 1, and so on.
    #[serde(default)]
    #[expect(dead_code, reason = "elements are written out before they are read")]
    pub(crate) count: Option<WrittenOut>,
    /// The node where it begins.
    pub(crate) from: Name,
    /// The node where it ends.
    pub(crate) to: Name,
    /// The rate in bits per second; needed unless there is a `trace`.
    #[serde(default)]
    pub(crate) rate: Option<Text<Rate>>,
    /// When it has another rate, counted from the start or, with a `rate_period`, from the beginning of each. A rate of
    /// `0bit/s` keeps what waits. The way back keeps its rate.
    #[serde(default)]
    pub(crate) rate_changes: Vec<RateChangeKeys>,
    /// After how long `rate` and its changes begin anew; never if absent.
    #[serde(default)]
    pub(crate) rate_period: Option<Text<SimSpan>>,
    /// Opportunities of delivery in place of `rate`, as Mahimahi has recorded them: the name of a file beside this one, with a
    /// line for each, or their list. Each is a number of milliseconds from the start, and carries 1504 bytes, of which a packet
    /// takes 4 besides its own; what nobody uses is lost. After the last one they begin anew. The way back has their mean rate.
    #[serde(default)]
    pub(crate) trace: Option<TraceKeys>,
    /// The propagation delay.
    pub(crate) delay: Text<SimSpan>,
    /// When it has another delay, both ways, counted from the start or, with a `delay_period`, from the beginning of each. A
    /// packet takes the delay of the time at which it has left its queue, so that a shorter one lets it overtake.
    #[serde(default)]
    pub(crate) delay_changes: Vec<DelayChangeKeys>,
    /// After how long `delay` and its changes begin anew; never if absent.
    #[serde(default)]
    pub(crate) delay_period: Option<Text<SimSpan>>,
    /// Packets that take longer than the others and are overtaken; none if absent.
    #[serde(default)]
    pub(crate) reorder: Option<ReorderKeys>,
    /// The share of packets that come twice; 0 if absent.
    #[serde(default)]
    pub(crate) duplicate: Option<Probability>,
    /// Whether packets can go back.
    #[serde(default = "yes")]
    pub(crate) duplex: bool,
    /// The queue; a `drop_tail` of 50 packets if absent.
    #[serde(default)]
    pub(crate) queue: QueueKeys,
    /// The error model before the queue; none if absent.
    #[serde(default)]
    pub(crate) error: ErrorKeys,
    /// The MTU, headers included, at least `68B`; unlimited if absent. Longer packets are dropped silently.
    #[serde(default)]
    pub(crate) mtu: Option<Text<Bytes>>,
    /// Changes of the MTU, in both directions: a route inside the link has changed.
    #[serde(default)]
    pub(crate) mtu_changes: Vec<MtuChangeKeys>,
    /// The release of packets at the far end; at once if absent. Not with a queue that decides at its head (`codel`,
    /// `fq_codel`, `dualpi2`), `reorder`, `duplicate`, `delay_changes` or `clock = "ns2"`.
    #[serde(default)]
    pub(crate) hold: Option<HoldKeys>,
    /// Outages of the link, in both directions: packets that arrive then are lost.
    #[serde(default)]
    pub(crate) outages: Vec<OutageKeys>,
    /// Differences of the way back.
    #[serde(default)]
    pub(crate) reverse: Option<ReverseKeys>,
}

/// Differences of the way back of a duplex link.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "reverse")]
pub(crate) struct ReverseKeys {
    /// The rate; that of the link if absent.
    #[serde(default)]
    pub(crate) rate: Option<Text<Rate>>,
    /// When it has another rate.
    #[serde(default)]
    pub(crate) rate_changes: Vec<RateChangeKeys>,
    /// After how long its rate and the changes begin anew; never if absent.
    #[serde(default)]
    pub(crate) rate_period: Option<Text<SimSpan>>,
    /// Opportunities of delivery in place of a rate.
    #[serde(default)]
    pub(crate) trace: Option<TraceKeys>,
    /// Packets that take longer than the others; none if absent.
    #[serde(default)]
    pub(crate) reorder: Option<ReorderKeys>,
    /// The share of packets that come twice; 0 if absent.
    #[serde(default)]
    pub(crate) duplicate: Option<Probability>,
    /// The propagation delay; that of the link if absent.
    #[serde(default)]
    pub(crate) delay: Option<Text<SimSpan>>,
    /// The queue; a `drop_tail` of 50 packets if absent.
    #[serde(default)]
    pub(crate) queue: QueueKeys,
    /// The error model before the queue; none if absent.
    #[serde(default)]
    pub(crate) error: ErrorKeys,
    /// The MTU; that of the link if absent.
    #[serde(default)]
    pub(crate) mtu: Option<Text<Bytes>>,
    /// The release of packets; at once if absent.
    #[serde(default)]
    pub(crate) hold: Option<HoldKeys>,
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
