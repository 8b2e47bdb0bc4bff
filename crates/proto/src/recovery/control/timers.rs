//! The timers of a path: reordering, tail loss probe, retransmission timeout, and the suspicion of a silent path.
//!
//! Citation: rfc-8985 sec. 7 and 8, rfc-6298 sec. 5. [`super`] describes which segments count as lost after a timeout.

use anabranch_cc::{Cause, Signal, Transmission};
use anabranch_units::{Span, Time};

use super::{PathControl, Via};
use crate::recovery::detection::Detection;
use crate::recovery::episode::Episode;
use crate::recovery::rtt::RttEstimator;
use crate::recovery::scoreboard::{Found, Scoreboard};
use crate::seq::Offset;

/// The running timer, one at a time ([rfc-8985] sec. 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    Idle,
    /// The reordering window of an overtaken segment.
    Reordering(Time),
    /// The tail loss probe timeout.
    Probe(Time),
    /// The retransmission timeout.
    Retransmission(Time),
}

/// The tail loss probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    None,
    Due,
    /// A probe is in flight; `end` is the end of what had been sent, `probed` the end of the probe itself.
    Out {
        end: Offset,
        probed: Offset,
        transmission: Transmission,
    },
}

/// The timers of a path.
#[derive(Debug)]
pub(super) struct Timers {
    pub(super) running: Timer,
    pub(super) probe: Probe,
    /// When the retransmission timer was started.
    pub(super) started: Time,
}

impl Timers {
    pub(super) fn new(now: Time) -> Self {
        Self { running: Timer::Idle, probe: Probe::None, started: now }
    }

    /// When the running timer expires.
    fn deadline(&self) -> Time {
        match self.running {
            Timer::Idle => Time::NEVER,
            Timer::Reordering(at) | Timer::Probe(at) | Timer::Retransmission(at) => at,
        }
    }

    /// The running timer if it has expired, else [`Timer::Idle`].
    fn expired(&self, now: Time) -> Timer {
        if self.deadline() <= now { self.running } else { Timer::Idle }
    }

    /// When a tail loss probe is due: its probe timeout PTO from now ([rfc-8985] sec. 7.2), if the RTT is known and there is no
    /// probe yet. The peer may hold the ACK back for `ack_delay`.
    fn probe_at(&self, now: Time, rtt: &RttEstimator, ack_delay: Span) -> Option<Time> {
        let smoothed = rtt.smoothed().filter(|_| self.probe == Probe::None)?;
        let pto = smoothed.saturating_mul(2).saturating_add(ack_delay);
        Some(now.saturating_add(pto))
    }

    /// Sets the timer for what is in flight: to `probe`, if that is not later than a timeout, which it then takes the place of.
    fn start(&mut self, rtt: &RttEstimator, probe: Option<Time>) {
        let retransmission = self.started.saturating_add(rtt.timeout());
        self.running = match probe {
            Some(probe) => Timer::Probe(probe.min(retransmission)),
            None => Timer::Retransmission(retransmission),
        };
    }

    /// Waits for a whole retransmission timeout from now.
    fn start_over(&mut self, now: Time, rtt: &RttEstimator) {
        self.running = Timer::Retransmission(now.saturating_add(rtt.timeout()));
    }

    /// A segment that ends at `probed` was sent, perhaps as the probe; `end` is the end of what has been sent.
    pub(super) fn on_sent(&mut self, now: Time, end: Offset, probed: Offset, transmission: Transmission) {
        let is_probe = self.probe == Probe::Due;
        if is_probe {
            self.probe = Probe::Out { end, probed, transmission };
        }
        // [rfc-8985] sec. 7.3: after the probe, the retransmission timer runs. [rfc-6298] sec. 5.1: starts it if it is not running.
        if is_probe || self.running == Timer::Idle {
            self.started = now;
        }
    }

    /// The peer reported a segment that ends at `right` as a duplicate. [rfc-8985] sec. 7.4.2: if it is the probe, that was
    /// unnecessary. Returns whether it is.
    pub(super) fn on_duplicate(&mut self, right: Offset) -> bool {
        let is_probe = matches!(
            self.probe,
            Probe::Out { probed, transmission: Transmission::Again, .. } if probed == right
        );
        if is_probe {
            self.probe = Probe::None;
        }
        is_probe
    }

    /// Everything below `path_una` has arrived; `highest` is the end of the highest segment that has. Returns whether the probe
    /// repaired a loss. [rfc-8985] sec. 7.4.2: that is what an ACK beyond a probe with old data means, if there is no DSACK.
    fn conclude_probe(&mut self, path_una: Offset, highest: Offset) -> bool {
        let Probe::Out { end, transmission, .. } = self.probe else { return false };
        let has_new = transmission == Transmission::First && path_una >= end;
        // With several paths, a path counts as acknowledged beyond the end as soon as nothing is in flight on it.
        let is_beyond = path_una > end && highest > end;
        if has_new || is_beyond {
            self.probe = Probe::None;
        }
        is_beyond && !has_new
    }
}

impl PathControl {
    /// Handles the timeout of the running timer.
    pub(crate) fn handle_timeout<T>(&mut self, now: Time, board: &mut Scoreboard<T>) {
        match self.timers.expired(now) {
            Timer::Idle => {}
            Timer::Reordering(_) => self.look(now, board),
            // ACKs on other paths cover everything in flight, so no retransmission is needed.
            Timer::Probe(_) | Timer::Retransmission(_) if board.oldest(self.id).is_none() => {
                board.release_held(self.id, u64::MAX);
                // What was also sent elsewhere has arrived there, but here it must be answered, too. If it is not, time and again, it
                // stays in flight, and the path is suspected.
                let is_unanswered = self.silence.has_others
                    && board.has_doubled_copies(self.id)
                    && self.silence.on_unanswered(self.tally.rtt_samples) >= UNANSWERED_MAX;
                if !is_unanswered {
                    board.release_copies(self.id, u64::MAX);
                }
                self.on_ack(now, board, Via::Other);
                if is_unanswered {
                    // There is nothing to probe with, so the probe timer would expire again at once.
                    self.timers.start_over(now, &self.rtt);
                }
            }
            Timer::Probe(_) => {
                self.timers.probe = Probe::Due;
                self.ecn.on_probe_timeout(now);
                self.timers.start_over(now, &self.rtt);
            }
            Timer::Retransmission(_) => self.time_out(now, board),
        }
    }

    pub(crate) fn deadline(&self) -> Time {
        self.timers.deadline()
    }

    /// When a silent path is suspected: an ACK timeout ([`RttEstimator::ack_timeout`]) after the time when it is probed. [`Time::NEVER`]
    /// if nothing is in flight, or if no other path would take over.
    pub(crate) fn suspect_at(&self) -> Time {
        if self.flight == 0 || !self.silence.has_others {
            return Time::NEVER;
        }
        self.ask_at().saturating_add(self.rtt.ack_timeout())
    }

    fn ask_at(&self) -> Time {
        self.silence.ask_at(self.rtt.ack_timeout(), self.ack_delay())
    }

    /// How long the peer may hold back the next ACK: longer if a segment is alone, with no second one to answer with it.
    fn ack_delay(&self) -> Span {
        if self.flight <= self.mss { DELAYED_ACK_MAX } else { self.ack_delay }
    }

    /// Whether nothing was acknowledged since a retransmission timeout.
    pub(crate) fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// Whether nothing was acknowledged since the timeout before the last one.
    pub(crate) fn is_backed_off(&self) -> bool {
        self.is_silent && self.rtt.is_backed_off()
    }

    /// [rfc-6298] sec. 5.4 to 5.6; [rfc-8985] sec. 6.3 for which segments count as lost.
    fn time_out<T>(&mut self, now: Time, board: &mut Scoreboard<T>) {
        board.distrust();
        let mut found = Found::default();
        board.lose_oldest(self.id, &mut found);
        let rtt = self.rtt.smoothed().unwrap_or(Span::ZERO);
        if now.since(Time::ZERO) >= rtt {
            let (more, _) = board.lose_until(self.id, u64::MAX, now - rtt);
            found.count += more.count;
            found.bytes += more.bytes;
            found.departure = found.departure.or(more.departure);
        }
        self.on_lost(board, &found);
        self.tally.lost_by_timeout += found.count as u64;
        self.tally.timeouts += 1;
        self.timers.probe = Probe::None;
        self.ecn.on_timeout(now);
        if let Some(departure) = found.departure.filter(|_| !self.is_silent) {
            self.report_loss(now, board, Signal::Timeout, Cause::Congestion, departure);
            // It is unknown whether an earlier loss is related to this one.
            match self.episode {
                Episode::Open => self.suspect(board, Signal::Timeout, &found),
                Episode::Recovery { .. } | Episode::AfterTimeout { .. } => self.suspicion = None,
            }
        }
        self.is_doubtful |= found.count >= FLIGHT || self.is_silent && found.count > 0;
        self.is_silent = true;
        self.is_urgent = false;
        self.episode = Episode::AfterTimeout { until: board.next() };
        self.rtt.back_off();
        self.timers.started = now;
        self.arm(now, board);
    }

    /// The peer's window opens again. Meanwhile the peer has dropped retransmissions, so missing ACKs mean nothing, and the timer
    /// restarts.
    pub(crate) fn on_reopened<T>(&mut self, now: Time, board: &mut Scoreboard<T>) {
        if !self.is_silent {
            return;
        }
        self.rtt.on_progress();
        let (found, _) = board.lose_until(self.id, u64::MAX, now);
        self.on_lost(board, &found);
        self.tally.lost_by_timeout += found.count as u64;
        self.timers.started = now;
        self.arm(now, board);
    }

    /// A loss that the probe repaired begins an episode, which ends at once.
    // Inlined with what else handles an ACK, it takes 1.3 % fewer instructions of the engine with an ACK for 32.
    #[inline]
    pub(super) fn conclude_probe<T>(&mut self, now: Time, board: &Scoreboard<T>, path_una: Offset) {
        if self.timers.conclude_probe(path_una, board.highest(self.id)) && self.episode.is_open() {
            let departure = self.departure(now)(self.flight);
            self.begin_episode(now, board, departure, path_una);
            // What the probe repaired left before it.
            self.blame(Time::ZERO);
            self.is_urgent = false;
            self.end_episode(now);
        }
    }

    /// Sets the timer according to what is in flight.
    // Inlined with what else a segment and its ACK need, it takes 2.6 % fewer instructions of the engine with an ACK for 32.
    #[inline]
    pub(super) fn arm<T>(&mut self, now: Time, board: &Scoreboard<T>) {
        if self.silence.is_measured {
            self.look_back(board);
        }
        if self.flight == 0 {
            self.timers.running = Timer::Idle;
            return;
        }
        // [rfc-8985] sec. 7.2: no probe during a recovery.
        let may_probe = self.detection == Detection::Rack && self.episode.is_open();
        let probe = if may_probe { self.timers.probe_at(now, &self.rtt, self.ack_delay()) } else { None };
        // The ACK of a probe must arrive before the path is suspected.
        let probe = probe.map(|at| if self.silence.has_others { at.min(self.ask_at().max(now)) } else { at });
        self.timers.start(&self.rtt, probe);
    }
}

/// [rfc-8985] sec. 7.2: a peer may delay ACKs for 200 ms.
const DELAYED_ACK_MAX: Span = Span::from_millis(200);

/// Three timeouts in a row: one or two are a loss at the end of a message, whose copy on this path nothing repeats.
const UNANSWERED_MAX: u32 = 3;

/// A smaller path MTU loses a whole flight. Fewer segments are also lost where a rival keeps a short queue full, and there a single datagram has a
/// better chance than fragments and probes.
const FLIGHT: usize = 4;
