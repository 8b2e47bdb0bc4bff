//! What keeps a sender from sending more, and for how long each of that has.
//!
//! ```text
//! nothing leaves, for want of …  ──an input──>  something leaves  ──>  nothing leaves, for want of …
//!        that has the time                       the host has it              and so on
//! ```
//!
//! It is asked when [`Connection::poll_transmit`] has nothing, in the order in which `output` asks; what leaves costs one look at a flag.
//! The answer holds until the connection is asked again after an input. From there to the next rest the time is the computer's, which was
//! busy with what left. Where time is simulated that is none.

use anabranch_units::{Span, Time};

use super::{Connection, Path};
use crate::path::{PathId, PathSet};
use crate::payload::Payload;

/// What keeps a sender from sending more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// There is nothing to send, or less than a segment that may still grow.
    Application,
    /// The congestion windows of the paths that carry new data, or what a recovery lets leave: no full segment has room in them.
    CongestionWindow,
    /// What the peer takes: its window, or the flow-control credit of the streams that have something. With several paths also what of its
    /// buffer is left to a slow one.
    PeerBuffer,
    /// The pacer: there is room in the window, and its time has not come.
    Pacing,
    /// This end's own limit for what is kept until it is acknowledged ([`crate::Config::send_memory`]).
    Memory,
    /// This computer: there is something to send, and it has not come to it.
    Host,
}

impl Limit {
    /// All there are.
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

/// For how long each has kept a sender, or one of its paths, from sending more.
///
/// The spans add up to the time since the connection was established; those of a path to the time in which it carried new data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// What it has been since when; none before the first rest, and while a path is not in use.
    current: Option<(Limit, Time)>,
    spans: [Span; Limit::ALL.len()],
}

impl Limits {
    /// What it is now; none before the connection is established, and on a path that carries no new data.
    pub fn current(&self) -> Option<Limit> {
        self.current.map(|(limit, _)| limit)
    }

    /// The same with what has passed until `now` added to what it is now.
    #[must_use]
    pub fn until(mut self, now: Time) -> Self {
        self.note(now, self.current());
        self
    }

    /// For how long.
    pub fn span(&self, limit: Limit) -> Span {
        self.spans[limit as usize]
    }

    /// All of it.
    pub fn total(&self) -> Span {
        self.spans.iter().fold(Span::ZERO, |sum, span| sum.saturating_add(*span))
    }

    /// Which part of the time; 0 if none has passed.
    pub fn share(&self, limit: Limit) -> f64 {
        let total = self.total().as_secs_f64();
        if total > 0.0 { self.span(limit).as_secs_f64() / total } else { 0.0 }
    }

    /// What has been added since another account of the same.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut spans = self.spans;
        for (span, before) in spans.iter_mut().zip(before.spans) {
            *span = span.saturating_sub(before);
        }
        Self { spans, ..*self }
    }

    /// Nothing leaves since `now`, because of this; something had left since `woken_at`, if at all.
    fn settle(&mut self, now: Time, woken_at: Option<Time>, limit: Option<Limit>) {
        if let Some(woken_at) = woken_at
            && self.current.is_some()
        {
            self.note(woken_at, Some(Limit::Host));
        }
        // What is as before goes on as before.
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
    /// Whether it has not been asked since nothing was left to send.
    is_resting: bool,
    /// When it was asked again.
    woken_at: Time,
    /// What stopped all paths alike at the last rest, if something did, and which those were.
    of_all: (Option<Limit>, PathSet),
}

impl Rests {
    /// Something is to leave, unless nothing can.
    #[inline]
    pub(super) fn wake(&mut self, now: Time) {
        if self.is_resting {
            (self.is_resting, self.woken_at) = (false, now);
        }
    }

    /// The account, with what the computer has not come to since something was to leave.
    fn of(&self, mut limits: Limits) -> Limits {
        if !self.is_resting && limits.current.is_some() {
            limits.note(self.woken_at, Some(Limit::Host));
        }
        limits
    }
}

impl<P: Payload> Connection<P> {
    /// What keeps this end from sending more, and for how long each has; see [`Limits::until`].
    pub fn limits(&self) -> Limits {
        self.rests.of(self.rests.limits)
    }

    /// The same of a path.
    pub(super) fn path_limits(&self, path: &Path) -> Limits {
        self.rests.of(path.limits)
    }

    /// Nothing leaves now.
    #[inline(always)]
    pub(super) fn rest(&mut self, now: Time) {
        if !self.state.has_paths() {
            return;
        }
        let (of_all, common) = self.limit_of_all(now);
        let usable = self.paths.usable();
        let rests = &mut self.rests;
        if of_all.is_some() && rests.of_all == (of_all, usable) && (rests.is_resting || rests.woken_at == now) {
            // It goes on.
            rests.is_resting = true;
        } else {
            rests.of_all = (of_all, usable);
            self.settle(now, of_all, common);
        }
    }

    /// What stops all paths; none if it is a matter of each. And what stops them from sending something new.
    #[inline]
    fn limit_of_all(&self, now: Time) -> (Option<Limit>, Option<Limit>) {
        let has_lost = self.sender.board.has_lost();
        if !has_lost && self.sender.outbound.is_empty() && !self.owes_fin() {
            // What waits all the same has no credit.
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

    /// Something stops it that was not what did before, or that has to be found for each path.
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
            // What is lost has left again, or its path's turn comes with the next one.
            None => common.unwrap_or(Limit::CongestionWindow),
        };
        rests.limits.settle(now, woken_at, Some(limit));
    }

    /// What stops all paths alike from sending something new; none if it is a matter of each.
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
    /// What stops this one, if there is something to send.
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
