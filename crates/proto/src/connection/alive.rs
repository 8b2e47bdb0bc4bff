//! Whether the peer is still there, and how much is said to somebody who may not be the peer.
//!
//! * The user timeout: what is sent gets nowhere for too long ([rfc-5482], [rfc-9293] sec. 3.8.3).
//! * The idle timeout: the peer says nothing at all for too long.
//! * Keep-alive: nothing is sent, and the peer is asked now and then ([rfc-9293] sec. 3.8.4).
//! * Challenges: a segment that the peer would not have sent is answered, but not too often ([rfc-5961] sec. 7).

use anabranch_units::{Span, Time};

use super::{Connection, Persist, State};
use crate::config::KeepAlive;
use crate::path::PathId;
use crate::payload::Payload;

/// The questions that a silent peer is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeepAliveProbes {
    /// When the next one is to leave, or the peer is given up.
    next: Time,
    /// Those that have had no answer.
    unanswered: u32,
    is_due: bool,
}

/// Answers to segments that a peer would not have sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChallengeAckLimiter {
    since: Time,
    count: u32,
}

impl KeepAliveProbes {
    pub(super) fn new() -> Self {
        Self { next: Time::NEVER, unanswered: 0, is_due: false }
    }

    /// The peer has said something.
    pub(super) fn on_heard(&mut self, now: Time, keep_alive: Option<KeepAlive>) {
        let next = keep_alive.map_or(Time::NEVER, |keep_alive| now.saturating_add(keep_alive.idle));
        *self = Self { next, ..Self::new() };
    }
}

impl ChallengeAckLimiter {
    pub(super) fn new(now: Time) -> Self {
        Self { since: now, count: 0 }
    }

    /// Whether one more may be answered.
    fn admit(&mut self, now: Time) -> bool {
        if now.since(self.since) >= PERIOD {
            *self = Self::new(now);
        }
        self.count += 1;
        self.count <= CHALLENGES_MAX
    }
}

impl<P: Payload> Connection<P> {
    /// A segment came that the peer would hardly have sent: what it would have had to say is said in an acknowledgement.
    pub(super) fn challenge(&mut self, now: Time) {
        if self.challenge_acks.admit(now) {
            self.acks.demand_pure();
        }
    }

    /// When something has been sent and got nowhere for too long. While the peer's window is shut, its answers are enough
    /// ([rfc-9293] sec. 3.8.6.1), else it has to acknowledge something.
    pub(super) fn give_up_at(&self) -> Time {
        let is_waiting = !self.board.is_empty()
            || self.persist != Persist::Open
            || matches!(self.state, State::SynSent | State::SynReceived);
        match self.config.user_timeout {
            Some(timeout) if is_waiting => self.heard.saturating_add(timeout),
            Some(_) | None => Time::NEVER,
        }
    }

    /// When the peer has said nothing for too long.
    pub(super) fn idle_at(&self) -> Time {
        let timeout = match self.state {
            State::FinWait2 => Some(self.config.idle_timeout.unwrap_or(FIN_WAIT_2_MAX)),
            State::Established | State::CloseWait | State::FinWait1 | State::Closing | State::LastAck => {
                self.config.idle_timeout
            }
            State::Closed | State::Listen | State::SynSent | State::SynReceived | State::TimeWait => None,
        };
        timeout.map_or(Time::NEVER, |timeout| self.heard_anything.saturating_add(timeout))
    }

    /// An acceptable acknowledgement came; `has_advanced` says whether of something that had not been acknowledged.
    pub(super) fn on_heard(&mut self, now: Time, has_advanced: bool) {
        let is_shut = self.board.is_empty() || self.peer.edge <= self.board.acked();
        if has_advanced || is_shut {
            self.heard = now;
        }
        self.heard_anything = now;
        self.keep_alive_probes.on_heard(now, self.config.keep_alive);
    }

    /// [rfc-9293] sec. 3.8.4: only "when no sent data is outstanding".
    pub(super) fn keep_alive_at(&self) -> Time {
        let is_idle = self.board.is_empty() && self.persist == Persist::Open;
        match self.state {
            State::Established | State::CloseWait | State::FinWait2 if is_idle && !self.keep_alive_probes.is_due => {
                self.keep_alive_probes.next
            }
            _ => Time::NEVER,
        }
    }

    /// Whether the peer has left too many questions unanswered.
    pub(super) fn is_deserted(&self, now: Time) -> bool {
        let most = self.config.keep_alive.map_or(u32::MAX, |keep_alive| keep_alive.probes_max);
        self.keep_alive_at() <= now && self.keep_alive_probes.unanswered >= most
    }

    pub(super) fn handle_keep_alive_timeout(&mut self, now: Time) {
        self.keep_alive_probes.is_due |= self.keep_alive_at() <= now;
    }

    /// The path on which the peer is asked a question now.
    pub(super) fn poll_keep_alive(&mut self, now: Time) -> Option<PathId> {
        if !std::mem::take(&mut self.keep_alive_probes.is_due) {
            return None;
        }
        self.keep_alive_probes.unanswered += 1;
        self.keep_alive_probes.next =
            self.config.keep_alive.map_or(Time::NEVER, |keep_alive| now.saturating_add(keep_alive.interval));
        Some(self.paths.main())
    }
}

/// A peer that has acknowledged our FIN may go on sending, but not be silent for ever. Common systems take a minute where the application
/// has gone; ours may still be reading.
const FIN_WAIT_2_MAX: Span = Span::from_secs(600);

/// [rfc-5961] sec. 7: "For example: an implementation may allow 10 challenge ACKs in any 5 second window".
const CHALLENGES_MAX: u32 = 10;
const PERIOD: Span = Span::from_secs(5);
