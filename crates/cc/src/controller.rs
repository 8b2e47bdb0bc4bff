//! The seam between a transport and a congestion law: one trait, the events it hears, and the gauges it shows.
//!
//! Order inside one ACK, which every driver keeps: RTT estimate, [`Controller::on_undo`], loss detection, classification,
//! [`Controller::on_loss`], [`Controller::on_ack`], [`Controller::on_round`].

use std::fmt;

use anabranch_units::{Bytes, Rate, Span, Time};

/// No window is smaller, in segments: with less than one segment nothing would ever be sent again.
pub const WINDOW_MIN: f64 = 1.0;

/// How many gauges a law may show.
pub const GAUGES_MAX: usize = 16;

/// How the window of one path moves: told facts, asked for a window.
///
/// Windows and flights are in segments, as floats: the papers compute so, and the transport turns them into bytes. A
/// controller is deterministic: equal events give equal bits.
pub trait Controller: Send + fmt::Debug {
    /// A segment left. `path.flight` already counts it. That moves neither the window nor the rate: a law counts, and answers to what comes
    /// back.
    fn on_sent(&mut self, path: &PathView, sent: &Sent) {
        let _ = (path, sent);
    }

    /// Whether it wants to hear of what leaves for the first time. If not, [`Self::on_sent`] may be left out for [`Transmission::First`]: most laws
    /// count only what leaves again. Asked once, when the path is set up.
    fn hears_first(&self) -> bool {
        true
    }

    /// An ACK arrived that acknowledged something new, cumulatively or selectively. Called once per ACK.
    fn on_ack(&mut self, path: &PathView, ack: &Ack);

    /// A round ended: something was acknowledged that left after the round began. Follows the [`Self::on_ack`] of that ACK.
    fn on_round(&mut self, path: &PathView, round: &Round) {
        let _ = (path, round);
    }

    /// Data was lost. Called once per episode: again only if the cause of a loss that seemed random turns out to be
    /// congestion, if a timeout follows, or after [`Self::on_recovered`].
    fn on_loss(&mut self, path: &PathView, loss: &Loss);

    /// Fast recovery is over: everything outstanding at the loss has been acknowledged.
    fn on_recovered(&mut self, path: &PathView) {
        let _ = path;
    }

    /// The latest loss was none: what seemed lost was late (RFC 3708, 4015, 5682). Takes back what [`Self::on_loss`] did, so that
    /// the window is no less than before it. Called at most once per loss, with no [`Self::on_restart`] between the two but
    /// [`Restart::AfterTimeout`]. If the loss is still being repaired, that ends here: neither [`Self::on_recovered`] nor
    /// [`Restart::AfterTimeout`] follows.
    fn on_undo(&mut self, path: &PathView) {
        let _ = path;
    }

    /// Sending starts, or starts again.
    fn on_restart(&mut self, path: &PathView, restart: Restart) {
        let _ = (path, restart);
    }

    /// Once a round when the connection has several paths: all of them, this one included. The one hook for coupled laws.
    fn on_group(&mut self, path: &PathView, group: &[PathSummary]) {
        let _ = (path, group);
    }

    /// How much may be in flight, in segments; finite and at least [`WINDOW_MIN`] at any time.
    fn window(&self) -> f64;

    /// The rate at which segments should leave; `None` leaves the spacing to the ACK clock or to the pacer's own rule.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// How what is in flight comes down to the window that a loss leaves. The same at all times.
    fn reduction(&self) -> Reduction {
        Reduction::AtOnce
    }

    /// Shows what is inside, for traces and reports. Names are unique within one law and keep their meaning.
    fn gauges(&self, gauges: &mut Gauges) {
        let _ = gauges;
    }
}

/// What a law may read of its path at any event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// The time of the event. Never runs backwards from one event to the next.
    pub now: Time,
    /// Segments sent and neither acknowledged nor known to be lost, after the event has been accounted for.
    pub flight: f64,
    /// Payload bytes of a full segment.
    pub mss: Bytes,
    /// SRTT of RFC 6298, for what needs a rough idea of the RTT. Delay-based laws use the raw samples in [`Ack`].
    pub rtt_smoothed: Option<Span>,
    /// The least RTT sample on this path since it was established or changed.
    pub rtt_min: Option<Span>,
}

/// A segment left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent {
    /// How much of a full segment it was.
    pub segments: f64,
    /// Whether the network sees the data for the first time.
    pub transmission: Transmission,
}

/// Whether data is sent for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmission {
    /// New data.
    First,
    /// A retransmission or a probe with old data.
    Again,
}

/// An ACK that acknowledged something new.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ack {
    /// Segments acknowledged for the first time, cumulatively or selectively; more than zero.
    pub newly_acked: f64,
    /// Segments found to be lost since the ACK before it, by whatever showed it; zero or more. [`Controller::on_loss`] tells of
    /// episodes, this counts.
    pub newly_lost: f64,
    /// The raw RTT sample of the newest segment it acknowledges; `None` where Karn's rule forbids one.
    pub rtt: Option<Span>,
    /// The payload of that segment.
    pub size: Bytes,
    /// When the ACK arrived. Earlier than `now` where the driver hands over ACKs in batches.
    pub arrival: Time,
    /// How things stood when the newest acknowledged segment last left.
    pub departure: Departure,
    /// What has been holding the sender back.
    pub limit: Limit,
    /// Whether the sender is in fast recovery, this ACK included.
    pub phase: Phase,
}

/// How things stood when a segment left: one RTT old when its ACK arrives, and that is the point (fast-2006, eq. 8).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Departure {
    /// When it left.
    pub time: Time,
    /// The controller's window then, in segments.
    pub window: f64,
    /// Segments in flight then, itself included.
    pub flight: f64,
}

/// What holds the sender back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The congestion window: a larger one would be used.
    Window,
    /// The application, the peer's window or a rate of the law's own: the congestion window has not been full in the last round, so an ACK
    /// says nothing about a larger one (RFC 9438 sec. 5.8, RFC 7661).
    Application,
}

/// How what is in flight comes down to the window that a loss leaves, while what was lost is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Nothing leaves but one segment until less is in flight; then as much as the window lets (RFC 6675).
    AtOnce,
    /// Evenly over a round trip, and after heavy losses by the ACK (RFC 9937): for laws whose window stands still in
    /// [`Phase::Recovery`].
    Proportional,
}

/// Whether the sender is repairing a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No loss is being repaired, or one that a timeout found: then the window grows while it is repaired.
    Open,
    /// Fast recovery: from the [`Controller::on_loss`] by duplicate ACKs to [`Controller::on_recovered`].
    Recovery,
}

/// A round: about one RTT, counted by what is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// Rounds that ended before this one.
    pub count: u64,
    /// How long it took.
    pub elapsed: Span,
    /// Segments acknowledged for the first time within it.
    pub acked: f64,
    /// The least RTT sample within it; `None` if Karn's rule forbade all.
    pub rtt_min: Option<Span>,
    /// The mean of the RTT samples within it.
    pub rtt_mean: Option<Span>,
}

/// Data was lost, or the network says that it is about to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// How it showed.
    pub signal: Signal,
    /// What it is thought to come from.
    pub cause: Cause,
    /// Segments known to be lost so far; zero for [`Signal::Ecn`].
    pub lost: f64,
    /// How things stood when the first lost or marked segment left.
    pub departure: Departure,
}

/// How a loss showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Duplicate ACKs, SACK or time (RFC 5681, 6675, 8985): later data arrived.
    DupAcks,
    /// The retransmission timer expired.
    Timeout,
    /// A router marked instead of dropping (RFC 3168). Nothing is lost.
    Ecn,
}

/// What a loss is thought to come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A full queue.
    Congestion,
    /// Damage on a link: no reason to send less.
    Random,
    /// The evidence does not say. To be treated as congestion.
    Unknown,
}

/// Why sending starts or starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// The path has just been established or validated.
    Established,
    /// Nothing was sent for longer than a retransmission timeout (RFC 5681 sec. 4.1).
    Idle,
    /// Everything outstanding at a timeout has been acknowledged.
    AfterTimeout,
    /// The path's address or route changed: what was learnt of it no longer holds.
    PathChanged,
}

/// One path of a connection, as the controllers of all its paths see it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathSummary {
    /// Which path; stable while it exists.
    pub path: u32,
    /// Whether it is the path of the controller that is told.
    pub own: bool,
    /// Its controller's window in segments.
    pub window: f64,
    /// Segments in flight on it.
    pub flight: f64,
    /// Its SRTT.
    pub rtt_smoothed: Option<Span>,
    /// Its least RTT.
    pub rtt_min: Option<Span>,
    /// Segments delivered on it so far.
    pub delivered: f64,
    /// Segments lost on it so far.
    pub lost: f64,
}

/// Where a law puts the numbers it wants to be seen: at most [`GAUGES_MAX`], without allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gauges {
    /// The first `len` are set, with different names.
    entries: [(&'static str, f64); GAUGES_MAX],
    len: usize,
}

impl Gauges {
    /// Shows `value` as `name`. The unit ends the name unless it is segments or a pure number. Infinity says that there is no
    /// such thing yet; no value is NaN.
    ///
    /// # Panics
    /// If the law shows more than [`GAUGES_MAX`] gauges, or one twice: which gauges a law has is fixed when it is written.
    pub fn show(&mut self, name: &'static str, value: f64) {
        assert!(self.value(name).is_none(), "the gauge `{name}` is shown once");
        assert!(self.len < GAUGES_MAX, "a law shows at most {GAUGES_MAX} gauges");
        self.entries[self.len] = (name, value);
        self.len += 1;
    }

    /// The value shown as `name`.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.iter().find(|&(shown, _)| shown == name).map(|(_, value)| value)
    }

    /// Names and values in the order in which the law showed them.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        self.entries[..self.len].iter().copied()
    }

    /// Forgets everything, so that the sink can be used again.
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauges_keep_their_order_and_can_be_used_again() {
        let mut gauges = Gauges::default();
        gauges.show("window", 10.0);
        gauges.show("ssthresh", 5.0);
        assert_eq!(gauges.iter().collect::<Vec<_>>(), [("window", 10.0), ("ssthresh", 5.0)]);
        assert_eq!(gauges.value("ssthresh"), Some(5.0));
        gauges.clear();
        assert_eq!(gauges.value("window"), None);
    }

    #[test]
    #[should_panic(expected = "the gauge `window` is shown once")]
    fn a_gauge_is_shown_once() {
        let mut gauges = Gauges::default();
        gauges.show("window", 10.0);
        gauges.show("window", 11.0);
    }
}
