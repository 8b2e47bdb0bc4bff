//! The keys of a link.

use anabranch_units::{Bytes, Rate, SimSpan};
use schemars::JsonSchema;

use super::change::{DelayChangeKeys, RateChangeKeys, ReorderKeys, TraceKeys};
use super::error::ErrorKeys;
use super::hold::HoldKeys;
use super::queue::QueueKeys;
use crate::load::values::{Name, Probability, Text, WrittenOut};

/// A link joins two nodes; nodes exist by being named. It is duplex unless `duplex = false`: the way back has the same rate and
/// delay, a drop-tail queue of 50 packets and no errors, unless `reverse` says otherwise. In reports the way back of the link
/// `a` is `a.reverse`.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "link")]
pub(crate) struct LinkKeys {
    /// Its name: letters, digits, `-` and `_`.
    pub(crate) id: Name,
    /// How many there are of it, if more than one: `#` in its names becomes 0, 1, and so on.
    #[serde(default)]
    #[expect(dead_code, reason = "elements are written out before they are read")]
    pub(crate) count: Option<WrittenOut>,
    /// The node where it begins.
    pub(crate) from: Name,
    /// The node where it ends.
    pub(crate) to: Name,
    /// Bits per second; needed unless there is a `trace`.
    #[serde(default)]
    pub(crate) rate: Option<Text<Rate>>,
    /// When it has another rate, counted from the start or, with a `rate_period`, from the beginning of each. A rate of `0bit/s` keeps what waits. The way
    /// back keeps its rate.
    #[serde(default)]
    pub(crate) rate_changes: Vec<RateChangeKeys>,
    /// After how long `rate` and its changes begin anew; never if absent.
    #[serde(default)]
    pub(crate) rate_period: Option<Text<SimSpan>>,
    /// Opportunities of delivery in place of `rate`, as Mahimahi has recorded them: the name of a file beside this one, with a line for each, or their list.
    /// Each is a number of milliseconds from the start, and carries 1504 bytes, of which a packet takes 4 besides its own; what nobody uses is lost.
    /// After the last one they begin anew. The way back has their mean rate.
    #[serde(default)]
    pub(crate) trace: Option<TraceKeys>,
    /// Propagation delay.
    pub(crate) delay: Text<SimSpan>,
    /// When it has another delay, both ways, counted from the start or, with a `delay_period`, from the beginning of each. A packet takes the delay of the time
    /// at which it has left its queue, so that a shorter one lets it overtake.
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
    /// Where packets wait; a `drop_tail` of 50 packets if absent.
    #[serde(default)]
    pub(crate) queue: QueueKeys,
    /// Which packets are lost in front of the queue; none if absent.
    #[serde(default)]
    pub(crate) error: ErrorKeys,
    /// The longest packet that it takes, headers included, at least `68B`; any if absent. What is longer is lost without a word.
    #[serde(default)]
    pub(crate) mtu: Option<Text<Bytes>>,
    /// When the longest packet is another one, both ways: a route inside it has changed.
    #[serde(default)]
    pub(crate) mtu_changes: Vec<MtuChangeKeys>,
    /// When packets come out at the far end; each as soon as it is there if absent. Not with `reorder`, `duplicate`, `delay_changes` or `clock = "ns2"`.
    #[serde(default)]
    pub(crate) hold: Option<HoldKeys>,
    /// When the link is cut, both ways: what comes to it then is lost.
    #[serde(default)]
    pub(crate) outages: Vec<OutageKeys>,
    /// What is different on the way back.
    #[serde(default)]
    pub(crate) reverse: Option<ReverseKeys>,
}

/// What is different on the way back of a duplex link.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "reverse")]
pub(crate) struct ReverseKeys {
    /// Bits per second; that of the link if absent.
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
    /// Propagation delay; that of the link if absent.
    #[serde(default)]
    pub(crate) delay: Option<Text<SimSpan>>,
    /// Where packets wait; a `drop_tail` of 50 packets if absent.
    #[serde(default)]
    pub(crate) queue: QueueKeys,
    /// Which packets are lost in front of the queue; none if absent.
    #[serde(default)]
    pub(crate) error: ErrorKeys,
    /// The longest packet; that of the link if absent.
    #[serde(default)]
    pub(crate) mtu: Option<Text<Bytes>>,
    /// When packets come out; each as soon as it is there if absent.
    #[serde(default)]
    pub(crate) hold: Option<HoldKeys>,
}

/// A time during which a link is cut. What is in its queue or under way gets through.
#[derive(Clone, Copy, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "outage")]
pub(crate) struct OutageKeys {
    /// When it begins.
    pub(crate) from: Text<SimSpan>,
    /// When it ends.
    pub(crate) until: Text<SimSpan>,
    /// From its beginning to that of the next one of the same length; there is one if absent.
    #[serde(default)]
    pub(crate) every: Option<Text<SimSpan>>,
}

/// From some time on, a link takes other packets.
#[derive(Clone, Copy, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "mtu_change")]
pub(crate) struct MtuChangeKeys {
    /// From when on.
    pub(crate) at: Text<SimSpan>,
    /// The longest packet that it takes then, at least `68B`.
    pub(crate) mtu: Text<Bytes>,
}

fn yes() -> bool {
    true
}
