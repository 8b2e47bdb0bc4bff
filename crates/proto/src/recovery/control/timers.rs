//! What happens on a path when time passes: the look for what is late, the probe of a tail, the retransmission timeout; and the
//! question to a path that is silent.
//!
//! Citation: rfc-8985 sec. 7 and 8, rfc-6298 sec. 5. What is late after a timeout is as [`super`] says.

use anabranch_cc::{Cause, Signal, Transmission};
use anabranch_units::{Span, Time};

use super::dup_acks::Detection;
use super::{PathControl, Via};
use crate::recovery::episode::Episode;
use crate::recovery::scoreboard::{Found, Scoreboard};
use crate::seq::Offset;

/// What waits for time to pass: one thing at a time ([rfc-8985] sec. 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    Idle,
    /// A segment may still come that a later one has overtaken.
    Reordering(Time),
    /// The tail of what was sent may be lost.
    Probe(Time),
    /// Everything may be lost.
    Retransmission(Time),
}

/// The tail loss probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    None,
    Due,
    /// One is out; `end` is the end of what had been sent, `probed` that of the probe itself.
    Out {
        end: Offset,
        probed: Offset,
        transmission: Transmission,
    },
}

impl PathControl {
    /// What is due by time.
    pub(crate) fn handle_timeout<T>(&mut self, now: Time, board: &mut Scoreboard<T>) {
        match self.timer {
            Timer::Reordering(at) if at <= now => self.look(now, board),
            // All that is in flight has arrived, by the word of other paths: this one owes ACKs, but nothing is to be repaired.
            Timer::Probe(at) | Timer::Retransmission(at) if at <= now && board.oldest(self.id).is_none() => {
                board.release_held(self.id, u64::MAX);
                board.release_copies(self.id, u64::MAX);
                self.on_ack(now, board, Via::Other);
            }
            Timer::Probe(at) if at <= now => {
                self.probe = Probe::Due;
                self.timer = Timer::Retransmission(now.saturating_add(self.rtt.timeout()));
            }
            Timer::Retransmission(at) if at <= now => self.time_out(now, board),
            Timer::Idle | Timer::Reordering(_) | Timer::Probe(_) | Timer::Retransmission(_) => {}
        }
    }

    pub(crate) fn deadline(&self) -> Time {
        match self.timer {
            Timer::Idle => Time::NEVER,
            Timer::Reordering(at) | Timer::Probe(at) | Timer::Retransmission(at) => at,
        }
    }

    /// From when on a path that has answered nothing for so long cannot be relied on: a probe timeout ([rfc-9002] sec. 6.2.1) after
    /// it was to be asked. [`Time::NEVER`] if nothing is to be answered, or no other path would take over.
    pub(crate) fn suspect_at(&self) -> Time {
        if self.flight == 0 || !self.has_others {
            return Time::NEVER;
        }
        self.ask_at().saturating_add(self.rtt.probe_timeout())
    }

    /// When the silence of a path is worth a question, if another one would take over: when the answer to what has been in flight for longest
    /// is overdue, as [rfc-7765] counts, by a probe timeout after it left. On a path that is full answers come all the time, and that is
    /// a moment after the last one: half of a probe timeout is the least.
    fn ask_at(&self) -> Time {
        let timeout = self.rtt.probe_timeout();
        let delay = if self.flight <= self.mss { DELAYED_ACK_MAX } else { self.ack_delay };
        let overdue = self.oldest.saturating_add(timeout);
        self.heard.saturating_add(timeout / 2).max(overdue).saturating_add(delay)
    }

    /// [rfc-6298] sec. 5.4 to 5.6, with [rfc-8985] sec. 6.3 for what counts as lost.
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
        self.probe = Probe::None;
        if let Some(departure) = found.departure.filter(|_| !self.is_silent) {
            self.report_loss(now, board, Signal::Timeout, Cause::Congestion, departure);
            // What an earlier loss has to do with this one nobody can tell.
            match self.episode {
                Episode::Open => self.suspect(board, Signal::Timeout, &found),
                Episode::Recovery { .. } | Episode::AfterTimeout { .. } => self.suspicion = None,
            }
        }
        self.is_silent = true;
        self.is_doubtful |= found.count > 0;
        self.is_urgent = false;
        self.episode = Episode::AfterTimeout { until: board.next() };
        self.rtt.back_off();
        self.started = now;
        self.arm(now, board);
    }

    /// The peer takes data again after it took none. What was sent again in the meantime it has thrown away, and that it did not answer says nothing of
    /// the path: there is no time to wait for.
    pub(crate) fn on_reopened<T>(&mut self, now: Time, board: &mut Scoreboard<T>) {
        if !self.is_silent {
            return;
        }
        self.rtt.on_progress();
        let (found, _) = board.lose_until(self.id, u64::MAX, now);
        self.on_lost(board, &found);
        self.tally.lost_by_timeout += found.count as u64;
        self.started = now;
        self.arm(now, board);
    }

    /// [rfc-8985] sec. 7.4.2: an ACK beyond the probe without a report that it came twice means that it repaired a loss.
    #[inline]
    pub(super) fn conclude_probe<T>(&mut self, now: Time, board: &Scoreboard<T>, path_una: Offset) {
        let Probe::Out { end, transmission, .. } = self.probe else { return };
        // Of several paths, one is acknowledged beyond the end as soon as nothing is in flight on it.
        let is_beyond = path_una > end && board.highest(self.id) > end;
        if transmission == Transmission::First && path_una >= end {
            self.probe = Probe::None;
        } else if is_beyond {
            self.probe = Probe::None;
            if self.episode.is_open() {
                let departure = self.departure(now)(self.flight);
                self.begin_episode(now, board, departure, path_una);
                self.is_urgent = false;
                self.end_episode(now);
            }
        }
    }

    /// Sets the timer for what is in flight.
    #[inline]
    pub(super) fn arm<T>(&mut self, now: Time, board: &Scoreboard<T>) {
        if self.is_watched {
            self.look_back(board);
        }
        if self.flight == 0 {
            self.timer = Timer::Idle;
            return;
        }
        let retransmission = self.started.saturating_add(self.rtt.timeout());
        // [rfc-8985] sec. 7.2: no probe while a loss is repaired, nor a second one.
        if self.detection != Detection::Rack || !self.episode.is_open() || self.probe != Probe::None {
            self.timer = Timer::Retransmission(retransmission);
            return;
        }
        let Some(smoothed) = self.rtt.smoothed() else {
            self.timer = Timer::Retransmission(retransmission);
            return;
        };
        let is_alone = self.flight <= self.mss;
        let delay = if is_alone { DELAYED_ACK_MAX } else { self.ack_delay };
        let probe = now.saturating_add(smoothed.saturating_mul(2)).saturating_add(delay);
        // The answer to a probe is to come before the path is suspected.
        let probe = if self.has_others { probe.min(self.ask_at().max(now)) } else { probe };
        self.timer = if probe < retransmission { Timer::Probe(probe) } else { Timer::Retransmission(retransmission) };
    }
}

/// [rfc-8985] sec. 7.2: a peer that delays ACKs may do so for 200 ms.
const DELAYED_ACK_MAX: Span = Span::from_millis(200);
