//! The limits of the sender, and the duration of each.
//!
//! ```text
//! nothing leaves, because of …  ──an input──>  something leaves  ──>  nothing leaves, because of …
//!   this limit gets the time                    the host gets it               and so on
//! ```
//!
//! The limit is determined when [`Connection::poll_transmit`] has nothing to send, in the order in which `output` decides; a
//! departure costs one test of a flag. It holds until an input leads to the next poll. From there to the next rest the time counts
//! for the host, which was busy sending; in simulated time that is zero.

use anabranch_units::{Span, Time};

use super::{Connection, Path};
use crate::path::{PathId, PathSet};
use crate::payload::Payload;

/// A limit of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The application has nothing to send, or less than a segment that may still grow.
    Application,
    /// The congestion windows of the paths that carry new data, or the sending limit of a recovery: no window has room for a full
    /// segment.
    CongestionWindow,
    /// The peer's window, or the flow-control credit of the streams with data. With several paths also the guard, which reserves
    /// the peer's buffer for faster paths.
    PeerBuffer,
    /// The pacer: the window has room, and the release time is still to come.
    Pacing,
    /// This end's own limit on unacknowledged data ([`crate::Config::send_memory`]).
    Memory,
    /// This computer: there is data to send, and the program has not yet sent it.
    Host,
}

impl Limit {
    /// Every limit, in order.
    pub const ALL: [Self; 6] =
        [Self::Application, Self::CongestionWindow, Self::PeerBuffer, Self::Pacing, Self::Memory, Self::Host];

    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::CongestionWindow => "congestion_window",
            Self::PeerBuffer => "peer_buffer",
            Self::Pacing => "pacing",
            Self::Memory => "memory",
            Self::Host => "host",
        }
    }
}

/// The duration of each limit of a sender, or of one of its paths.
///
/// The spans add up to the time since the connection was established; those of a path, to the time in which it carried new data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The present limit and its start; `None` before the first rest, and while a path is not in use.
    current: Option<(Limit, Time)>,
    spans: [Span; Limit::ALL.len()],
}

impl Limits {
    /// The present limit; `None` before the connection is established, and on a path that carries no new data.
    pub fn current(&self) -> Option<Limit> {
        self.current.map(|(limit, _)| limit)
    }

    /// These limits, with the time until `now` added to the present one.
    #[must_use]
    pub fn until(mut self, now: Time) -> Self {
        self.note(now, self.current());
        self
    }

    /// The total span of one limit.
    pub fn span(&self, limit: Limit) -> Span {
        self.spans[limit as usize]
    }

    /// The sum over all limits.
    pub fn total(&self) -> Span {
        self.spans.iter().fold(Span::ZERO, |sum, span| sum.saturating_add(*span))
    }

    /// The share of one limit in the total; 0 if the total is zero.
    pub fn share(&self, limit: Limit) -> f64 {
        let total = self.total().as_secs_f64();
        if total > 0.0 { self.span(limit).as_secs_f64() / total } else { 0.0 }
    }

    /// The difference to an earlier snapshot.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut spans = self.spans;
        for (span, before) in spans.iter_mut().zip(before.spans) {
            *span = span.saturating_sub(before);
        }
        Self { spans, ..*self }
    }

    /// Records that nothing leaves since `now` because of `limit`; something had left since `woken_at`, if at all.
    fn settle(&mut self, now: Time, woken_at: Option<Time>, limit: Option<Limit>) {
        if let Some(woken_at) = woken_at
            && self.current.is_some()
        {
            self.note(woken_at, Some(Limit::Host));
        }
        // An unchanged limit continues.
        if self.current() != limit {
            self.note(now, limit);
        }
    }

    fn note(&mut self, now: Time, limit: Option<Limit>) {
        if let Some((limit, since)) = self.current {
            let span = &mut self.spans[limit as usize];
            *span = span.saturating_add(now.since(since));
        }
        self.current = limit.map(|limit| (limit, now));
    }
}

/// The account of a connection.
#[derive(Debug, Default)]
pub(super) struct Rests {
    pub(super) limits: Limits,
    /// Whether there was no poll since nothing was left to send.
    is_resting: bool,
    /// When it was polled again.
    woken_at: Time,
    /// The limit common to all paths at the last rest, if there was one, and those paths.
    of_all: (Option<Limit>, PathSet),
}

impl Rests {
    /// Something may have to leave.
    #[inline]
    pub(super) fn wake(&mut self, now: Time) {
        if self.is_resting {
            (self.is_resting, self.woken_at) = (false, now);
        }
    }

    /// The account, with the host's time since something was to leave.
    fn of(&self, mut limits: Limits) -> Limits {
        if !self.is_resting && limits.current.is_some() {
            limits.note(self.woken_at, Some(Limit::Host));
        }
        limits
    }
}

impl<P: Payload> Connection<P> {
    /// The present limit of this end, and the duration of each limit; see [`Limits::until`].
    pub fn limits(&self) -> Limits {
        self.rests.of(self.rests.limits)
    }

    /// The account of a path.
    pub(super) fn path_limits(&self, path: &Path) -> Limits {
        self.rests.of(path.limits)
    }

    /// Records that nothing leaves now.
    #[inline(always)]
    pub(super) fn rest(&mut self, now: Time) {
        if !self.state.has_paths() {
            return;
        }
        let (of_all, common) = self.limit_of_all(now);
        let usable = self.paths.usable();
        if matches!(of_all, Some(Limit::Application | Limit::PeerBuffer | Limit::Memory)) {
            self.paths.on_short();
        }
        let rests = &mut self.rests;
        if of_all.is_some() && rests.of_all == (of_all, usable) && (rests.is_resting || rests.woken_at == now) {
            // The same limit continues.
            rests.is_resting = true;
        } else {
            rests.of_all = (of_all, usable);
            self.settle(now, of_all, common);
        }
    }

    /// The limit common to all paths, `None` if each has its own; and the limit on new data.
    #[inline]
    fn limit_of_all(&self, now: Time) -> (Option<Limit>, Option<Limit>) {
        let has_lost = self.sender.board.has_lost();
        if !has_lost && self.sender.outbound.is_empty() && !self.owes_fin() {
            // Data that still waits has no flow-control credit.
            let limit = if self.sender.outbound.is_drained() { Limit::Application } else { Limit::PeerBuffer };
            return (Some(limit), Some(limit));
        }
        if self.paths.has_several() {
            let common = self.limit_of_new();
            return (common.filter(|_| !has_lost), common);
        }
        let path = &self.paths[PathId::FIRST];
        if !path.control.has_room(path.mss.into()) {
            return (Some(Limit::CongestionWindow), None);
        }
        let common = self.limit_of_new();
        (common.filter(|_| !has_lost).or_else(|| Some(path.limit(now))), common)
    }

    /// The limit has changed, or has to be determined for each path.
    fn settle(&mut self, now: Time, of_all: Option<Limit>, common: Option<Limit>) {
        let (usable, has_lost) = (self.paths.usable(), self.sender.board.has_lost());
        let Self { paths, sender, rests, .. } = self;
        let board = &sender.board;
        let woken_at = (!std::mem::replace(&mut rests.is_resting, true)).then_some(rests.woken_at);
        let has_orphans = has_lost && board.has_orphans();
        let (mut is_paced, mut is_full, mut is_free) = (false, false, false);
        for (id, path) in paths.iter_mut() {
            let has_repairs = has_lost && (board.damaged(id) > 0 || has_orphans);
            let limit = match (of_all, common) {
                (Some(limit), _) => limit,
                (None, Some(limit)) if !has_repairs => limit,
                (None, _) => path.limit(now),
            };
            is_paced |= limit == Limit::Pacing;
            is_full |= limit == Limit::CongestionWindow;
            is_free |= limit == Limit::PeerBuffer;
            path.limits.settle(now, woken_at, usable.contains(id).then_some(limit));
        }
        let limit = match of_all {
            Some(limit) => limit,
            None if is_paced => Limit::Pacing,
            None if is_free => Limit::PeerBuffer,
            None if is_full => Limit::CongestionWindow,
            // Lost segments have been retransmitted, or the path's turn comes with the next segment.
            None => common.unwrap_or(Limit::CongestionWindow),
        };
        rests.limits.settle(now, woken_at, Some(limit));
    }

    /// The limit on new data common to all paths; `None` if each has its own.
    fn limit_of_new(&self) -> Option<Limit> {
        let mss = self.paths.mss_max();
        let space = match self.sender.outbound.peek(mss) {
            Some(space) => space,
            None if self.owes_fin() => 1,
            None if !self.sender.outbound.is_drained() => return Some(Limit::PeerBuffer),
            None => return Some(Limit::Application),
        };
        if self.sender.keeps_all_it_may() {
            Some(Limit::Memory)
        } else if self.config.nagle && self.sender.waits_for_more(space, mss) {
            Some(Limit::Application)
        } else {
            (u64::from(space) > self.sender.peer_window.room(self.sender.board.next())).then_some(Limit::PeerBuffer)
        }
    }
}

impl Path {
    /// The limit of this path, if there is data to send.
    fn limit(&self, now: Time) -> Limit {
        if !self.control.has_room(self.mss.into()) {
            Limit::CongestionWindow
        } else if self.paced_until > now && self.paced_until != Time::NEVER {
            Limit::Pacing
        } else {
            Limit::PeerBuffer
        }
    }
}
