//! The interface between a transport and a congestion law: one trait, its events, and the gauges of a law.
//!
//! Order inside one ACK, which every driver keeps: RTT estimate, [`Controller::on_undo`], loss detection, classification,
//! [`Controller::on_loss`], [`Controller::on_ack`], [`Controller::on_round`].

use std::fmt;

use anabranch_units::{Bytes, Rate, Span, Time};

/// The least window in segments: below one segment nothing would ever be sent again.
pub const WINDOW_MIN: f64 = 1.0;

/// The limit of gauges of a law.
pub const GAUGES_MAX: usize = 16;

/// The window law of one path: it receives events and is asked for a window.
///
/// Windows and flights are in segments, as floats: the papers compute so, and the transport turns them into bytes. A
/// controller is deterministic: equal events give equal bits.
pub trait Controller: Send + fmt::Debug {
    /// A segment left; `path.flight` includes it. Window and rate must not change: a law counts here, and responds to
    /// acknowledgements.
    fn on_sent(&mut self, path: &PathView, sent: &Sent) {
        let _ = (path, sent);
    }

    /// Whether the law needs [`Self::on_sent`] for first transmissions. If not, the driver may omit it for [`Transmission::First`]: most
    /// laws count only retransmissions. Called once, when the path is set up.
    fn hears_first(&self) -> bool {
        true
    }

    /// An ACK arrived that acknowledged something new, cumulatively or selectively. Called once per ACK.
    fn on_ack(&mut self, path: &PathView, ack: &Ack);

    /// A round ended: a segment that left after its start was acknowledged. Follows the [`Self::on_ack`] of that ACK.
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

    /// The latest loss was spurious: the segments were late (RFC 3708, 4015, 5682). Undoes [`Self::on_loss`], so that the window is
    /// at least as large as before it. Called at most once per loss, with no [`Self::on_restart`] between the two except
    /// [`Restart::AfterTimeout`]. A recovery ends with it: neither [`Self::on_recovered`] nor [`Restart::AfterTimeout`] follows.
    fn on_undo(&mut self, path: &PathView) {
        let _ = path;
    }

    /// Sending starts, or starts again.
    fn on_restart(&mut self, path: &PathView, restart: Restart) {
        let _ = (path, restart);
    }

    /// Receives the summaries of all paths of the connection, this one included. Called once a round if there are several paths. It is the
    /// only method for coupled laws.
    fn on_group(&mut self, path: &PathView, group: &[PathSummary]) {
        let _ = (path, group);
    }

    /// The congestion window in segments; finite and at least [`WINDOW_MIN`] at any time.
    fn window(&self) -> f64;

    /// The pacing rate; `None` leaves the spacing to the ACK clock or to the pacer's own rule.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// The reduction of the flight to the window after a loss. Constant.
    fn reduction(&self) -> Reduction {
        Reduction::AtOnce
    }

    /// The ECN codepoint of the law's segments on a path that uses ECN. `None` for a law that does not react to marks: routers then do not mark
    /// its segments. Called once, when the path is set up.
    fn ect(&self) -> Option<Ect> {
        Some(Ect::Zero)
    }

    /// A controller that answers equal events from here on with equal bits; `None` if the law cannot be copied. Every law of the registry can.
    fn copy(&self) -> Option<Box<dyn Controller>> {
        None
    }

    /// Reports internal variables, for traces and reports. Names are unique within one law and keep their meaning.
    fn gauges(&self, gauges: &mut Gauges) {
        let _ = gauges;
    }
}

/// The state of its path that a law may read at any event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathView {
    /// The time of the event. Never runs backwards from one event to the next.
    pub now: Time,
    /// Segments sent and neither acknowledged nor known to be lost, after the event has been accounted for.
    pub flight: f64,
    /// The unit of the window in bytes: the payload of a full segment, or, where the path MTU is searched, of a segment of the first MTU. Later
    /// segments are longer, and a window counts them as more than one.
    pub mss: Bytes,
    /// The smoothed RTT of RFC 6298, for a rough idea of the RTT. Delay-based laws use the raw samples in [`Ack`].
    pub rtt_smoothed: Option<Span>,
    /// The least RTT sample on this path since it was established or changed.
    pub rtt_min: Option<Span>,
    /// The segments delivered and lost so far, this event included.
    pub progress: Progress,
}

/// What a path has delivered and lost until some time. Two records, one from the departure of a segment and one from its ACK, make a sample of
/// the delivery rate (draft-ietf-ccwg-bbr sec. 4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Segments delivered so far: acknowledged, cumulatively or selectively.
    pub delivered: f64,
    /// Segments detected as lost so far. A segment that is lost twice counts twice.
    pub lost: f64,
    /// When the latest ACK of new data arrived, or when the present flight began, whichever is later.
    pub delivered_at: Time,
    /// The latest departure time of all delivered segments, or the time when the present flight began, whichever is later.
    pub departed: Time,
}

/// A departure of a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent {
    /// Its size as a fraction of a full segment.
    pub segments: f64,
    /// Whether the data is sent for the first time.
    pub transmission: Transmission,
}

/// First transmission or retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmission {
    /// A first transmission of new data.
    First,
    /// A retransmission or a probe with old data.
    Again,
}

/// An ACK that acknowledged something new.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ack {
    /// Segments acknowledged for the first time, cumulatively or selectively; more than zero.
    pub newly_acked: f64,
    /// Segments detected as lost since the last ACK; zero or more. [`Controller::on_loss`] reports episodes, this counts segments.
    pub newly_lost: f64,
    /// Segments that the peer has received with a mark since the last ACK; zero or more. [`Controller::on_loss`] reports marks once a round
    /// trip, this counts segments.
    pub newly_marked: f64,
    /// The raw RTT sample of the newest segment it acknowledges; `None` where Karn's rule forbids one.
    pub rtt: Option<Span>,
    /// The payload of that segment.
    pub size: Bytes,
    /// When the ACK arrived. Earlier than `now` if the driver handles ACKs in batches.
    pub arrival: Time,
    /// The record of the last departure of the newest acknowledged segment.
    pub departure: Departure,
    /// What limits the sender.
    pub limit: Limit,
    /// Whether the sender is in fast recovery, this ACK included.
    pub phase: Phase,
}

/// The record of a departure. It is one RTT old when the ACK arrives, as eq. 8 of fast-2006 requires.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Departure {
    /// When the segment left.
    pub time: Time,
    /// The controller's window at that time, in segments.
    pub window: f64,
    /// Segments in flight at that time, the segment itself included.
    pub flight: f64,
    /// What the path had delivered and lost by that time.
    pub progress: Progress,
    /// Whether the sender had enough data for the path at that time.
    pub supply: Supply,
}

/// Whether the sender has enough data for a path. If not, the delivery rate is below the rate that the path could carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Supply {
    /// There was data whenever the congestion window and the pacer allowed a departure.
    #[default]
    Enough,
    /// The congestion window had room, but the application had no data, or the peer's window or this host's memory was full; and some of the data
    /// in flight at that time is not delivered yet (draft-ietf-ccwg-bbr sec. 4.1.2.4).
    Short,
}

/// The codepoint of an ECN-capable sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ect {
    /// ECT(0): a mark counts as a loss (RFC 3168), or the law responds to the share of marks (RFC 8257).
    #[default]
    Zero,
    /// ECT(1): marks are early and frequent, and the law responds in proportion (RFC 9331).
    One,
}

/// What limits the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// The congestion window: a larger one would be used.
    #[default]
    Window,
    /// The application, the peer's window or the law's own rate: the congestion window was not full in the last round, so an ACK is
    /// no evidence for a larger one (RFC 9438 sec. 5.8, RFC 7661).
    Application,
}

/// The reduction of the flight to the window after a loss, during recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Only one segment leaves until the flight is below the window; then as much as the window admits (RFC 6675).
    AtOnce,
    /// Evenly over a round trip, and after heavy losses by arrivals (RFC 9937): for laws whose window is constant in
    /// [`Phase::Recovery`].
    Proportional,
}

/// Whether the sender is in fast recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// No recovery, or one after a timeout, in which the window grows.
    #[default]
    Open,
    /// Fast recovery: from the [`Controller::on_loss`] by duplicate ACKs to [`Controller::on_recovered`].
    Recovery,
}

/// A round: about one RTT, counted by acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// Rounds that ended before this one.
    pub count: u64,
    /// The duration of the round.
    pub elapsed: Span,
    /// Segments acknowledged for the first time within it.
    pub acked: f64,
    /// The least RTT sample in the round; `None` if Karn's rule excluded all.
    pub rtt_min: Option<Span>,
    /// The mean of the RTT samples within it.
    pub rtt_mean: Option<Span>,
}

/// A loss, or an ECN mark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// The signal that detected it.
    pub signal: Signal,
    /// Its classified cause.
    pub cause: Cause,
    /// Segments known to be lost so far; zero for [`Signal::Ecn`].
    pub lost: f64,
    /// The record of the departure of the first lost or marked segment.
    pub departure: Departure,
}

/// The signal that detected a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// By duplicate ACKs, SACK or time (RFC 5681, 6675, 8985): later data arrived.
    DupAcks,
    /// By the retransmission timer.
    Timeout,
    /// By a router's mark instead of a drop (RFC 3168). Nothing is lost.
    Ecn,
}

/// The classified cause of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A full queue.
    Congestion,
    /// Corruption on a link, which is no reason to send less.
    Random,
    /// Unknown; to be treated as congestion.
    Unknown,
}

/// Why sending starts or restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// The path has just been established or validated.
    Established,
    /// Nothing was sent for longer than a retransmission timeout (RFC 5681 sec. 4.1).
    Idle,
    /// Everything outstanding at a timeout has been acknowledged.
    AfterTimeout,
    /// The path's address or route changed: estimates of it no longer hold.
    PathChanged,
}

/// One path of a connection, as the controllers of all its paths see it. The default is a path that has carried nothing yet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathSummary {
    /// The identifier of the path; stable while it exists.
    pub path: u32,
    /// Whether it is the own path of the controller that receives the summaries.
    pub own: bool,
    /// Its controller's window in segments.
    pub window: f64,
    /// Segments in flight on it.
    pub flight: f64,
    /// The smoothed RTT of the path (SRTT).
    pub rtt_smoothed: Option<Span>,
    /// The least RTT of the path.
    pub rtt_min: Option<Span>,
    /// Segments delivered on it so far.
    pub delivered: f64,
    /// Segments lost on it so far.
    pub lost: f64,
}

/// The sink for a law's gauges: at most [`GAUGES_MAX`], without allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gauges {
    /// The first `len` are set, with different names.
    entries: [(&'static str, f64); GAUGES_MAX],
    len: usize,
}

impl Gauges {
    /// Reports `value` as `name`. The unit ends the name unless it is segments or a pure number. Infinity means that there is no
    /// value yet; NaN is not allowed.
    ///
    /// # Panics
    /// If the law shows more than [`GAUGES_MAX`] gauges, or one twice. Both are mistakes in the law's code.
    pub fn show(&mut self, name: &'static str, value: f64) {
        assert!(self.value(name).is_none(), "the gauge `{name}` is shown once");
        assert!(self.len < GAUGES_MAX, "a law shows at most {GAUGES_MAX} gauges");
        self.entries[self.len] = (name, value);
        self.len += 1;
    }

    /// The value of the gauge `name`.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.iter().find(|&(shown, _)| shown == name).map(|(_, value)| value)
    }

    /// Names and values in the order of the law's reports.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        self.entries[..self.len].iter().copied()
    }

    /// Clears all gauges, so that the sink can be reused.
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
