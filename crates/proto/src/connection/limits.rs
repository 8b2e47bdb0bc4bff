//! What limits the sender, and for how long.
//!
//! ```text
//! nothing is sent, because of …  ──an input──>  something is sent  ──>  nothing is sent, because of …
//!   this limit gets the time                    the host gets it               and so on
//! ```
//!
//! The limit is that which kept [`Connection::poll_transmit`] from sending: `output` returns it as [`Stop`].
//! Sending a segment costs only the test of a flag. The limit holds until an input leads to the next poll. The time from there
//! until there is again nothing to send counts for the host, which was busy sending; in simulated time it is zero.

use anabranch_units::{Span, Time};

use super::{Connection, Path};
use crate::path::{PathId, PathSet};
use crate::payload::Payload;

/// What limits a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The application has nothing to send, or less than a segment, which may still grow.
    Application,
    /// The congestion windows of the paths for new data, or the sending limit of a recovery: there is no room for a full segment.
    CongestionWindow,
    /// The peer's window, or the flow-control credit of the streams with data. With several paths also the guard, which reserves
    /// the peer's buffer for faster paths.
    PeerBuffer,
    /// The pacer: the window has room, but the release time has not come yet, by the law's rate or by [`crate::Config::rate_max`].
    Pacing,
    /// This end's own limit on unacknowledged data ([`crate::Config::send_memory`]).
    Memory,
    /// This computer: there is data to send, but the program has not sent it yet.
    Host,
}

impl Limit {
    /// Every limit, in order.
    pub const ALL: [Self; 6] =
        [Self::Application, Self::CongestionWindow, Self::PeerBuffer, Self::Pacing, Self::Memory, Self::Host];

    /// The name of the limit in reports.
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
/// The spans add up to the time since the connection was established. Those of a path add up to the time in which it carried new
/// data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The current limit and its start; `None` before the first one, and while a path is not in use.
    current: Option<(Limit, Time)>,
    spans: [Span; Limit::ALL.len()],
}

impl Limits {
    /// The current limit; `None` before the connection is established, and on a path that carries no new data.
    pub fn current(&self) -> Option<Limit> {
        self.current.map(|(limit, _)| limit)
    }

    /// These limits, with the time up to `now` added to the current one.
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

    /// The share of one limit in the total, from 0 to 1; 0 if the total is zero.
    pub fn share(&self, limit: Limit) -> f64 {
        let total = self.total().as_secs_f64();
        if total > 0.0 { self.span(limit).as_secs_f64() / total } else { 0.0 }
    }

    /// The limits since an earlier snapshot.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut spans = self.spans;
        for (span, before) in spans.iter_mut().zip(before.spans) {
            *span = span.saturating_sub(before);
        }
        Self { spans, ..*self }
    }

    /// Records that since `now` nothing is sent, because of `limit`. If something was sent before, that began at `woken_at`.
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

/// Why nothing leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// There is no data that may be sent, because of this limit. Segments may be in flight.
    NoData(Limit),
    /// There is data, with a limit that all paths have in common, or with each path's own.
    Data(Option<Limit>),
}

/// The limits of a connection, and the current state.
#[derive(Debug, Default)]
pub(super) struct Rests {
    pub(super) limits: Limits,
    /// Whether no poll has happened since nothing was left to send.
    is_resting: bool,
    /// When the next poll happened.
    woken_at: Time,
    /// When nothing was last left to send: the limit common to all paths, if there was one, and those paths.
    of_all: (Option<Limit>, PathSet),
}

impl Rests {
    /// An input arrived, so something may have to be sent.
    pub(super) fn wake(&mut self, now: Time) {
        if self.is_resting {
            (self.is_resting, self.woken_at) = (false, now);
        }
    }

    /// The limits, with the host's time since the last input.
    fn of(&self, mut limits: Limits) -> Limits {
        if !self.is_resting && limits.current.is_some() {
            limits.note(self.woken_at, Some(Limit::Host));
        }
        limits
    }
}

impl<P: Payload> Connection<P> {
    /// The current limit of this end, and the duration of each limit; see [`Limits::until`].
    pub fn limits(&self) -> Limits {
        self.rests.of(self.rests.limits)
    }

    /// The limits of a path.
    pub(super) fn path_limits(&self, path: &Path) -> Limits {
        self.rests.of(path.limits)
    }

    /// Records that there is nothing to send now, and why.
    pub(super) fn rest(&mut self, now: Time, stop: Stop) {
        if !self.state.has_paths() {
            return;
        }
        let (of_all, common) = self.limit_of_all(now, stop);
        let usable = self.paths.usable();
        let is_short = matches!(of_all, Some(Limit::Application | Limit::PeerBuffer | Limit::Memory));
        if is_short || self.rate_limit.release(now) > now {
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

    /// The limit common to all paths, or `None` if each path has its own; and the limit on new data.
    fn limit_of_all(&self, now: Time, stop: Stop) -> (Option<Limit>, Option<Limit>) {
        let has_lost = self.sender.board.has_lost() && !self.sender.board.has_only_owed();
        let common = match stop {
            Stop::NoData(limit) if !has_lost => return (Some(limit), Some(limit)),
            Stop::NoData(limit) => Some(limit),
            Stop::Data(limit) => limit,
        };
        if self.paths.has_several() {
            return (common.filter(|_| !has_lost), common);
        }
        let path = &self.paths[PathId::FIRST];
        if !path.control.has_room(path.mss.into()) {
            return (Some(Limit::CongestionWindow), None);
        }
        (common.filter(|_| !has_lost).or_else(|| Some(path.limit(now))), common)
    }

    /// The limit has changed, or must be determined for each path.
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
            // The lost segments have been retransmitted, or the path gets its turn with the next segment.
            None => common.unwrap_or(Limit::CongestionWindow),
        };
        rests.limits.settle(now, woken_at, Some(limit));
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
