//! Timestamps: an option, if both ends said one in the handshake ([rfc-7323]).
//!
//! * A duplicate of long ago whose number fits again is older than what came last, and dropped (PAWS, sec. 5).
//! * What a peer echoes tells originals from retransmissions ([rfc-3522]), and gives an RTT where Karn's rule forbids one.
//!
//! Differs from rfc-7323 in: ACKs of segments that were sent once have an RTT to the nanosecond, and the echo, in
//! milliseconds, is not asked; the one that is no better than the clock never counts as the least RTT and never reaches a
//! controller. With several paths what comes later may have left earlier: nothing is dropped then, and nothing concluded.

use anabranch_units::{Span, Time};

use super::Connection;
use crate::options::Timestamps;
use crate::payload::Payload;
use crate::recovery::rtt::TICK;
use crate::segment::{Flags, Segment};
use crate::seq::{Offset, SeqNumber};

/// Our clock, and what is known of the peer's.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// Whether both ends have agreed on timestamps.
    is_on: bool,
    /// What ours read at [`Time::ZERO`], by chance: nobody is to learn how long we have been running (sec. 5.4 and 7.1).
    offset: u32,
    /// When it is read.
    now: Time,
    /// TS.Recent: what the peer's read when what is echoed left, and when that came.
    recent: u32,
    recent_at: Time,
    /// Last.ACK.sent.
    acked: Offset,
}

impl Clock {
    /// A clock that says `offset` at [`Time::ZERO`].
    pub(super) fn new(offset: u32) -> Self {
        Self { is_on: false, offset, now: Time::ZERO, recent: 0, recent_at: Time::ZERO, acked: 0 }
    }

    /// Time passed.
    pub(super) fn on_time(&mut self, now: Time) {
        self.now = now;
    }

    /// The peer's SYN came.
    pub(super) fn on_syn(&mut self, now: Time, timestamps: Timestamps) {
        (self.recent, self.recent_at) = (timestamps.value, now);
    }

    /// Both have agreed, or not.
    pub(super) fn set(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// What a segment says, if it says anything.
    pub(super) fn timestamps(&self) -> Timestamps {
        Timestamps { value: self.offset.wrapping_add(tick(self.now) as u32), echo: self.recent }
    }

    /// A segment leaves that acknowledges everything below `expected`.
    pub(super) fn on_ack_sent(&mut self, expected: Offset) {
        self.acked = expected;
    }

    /// Sec. 5.3 step R1: whether a segment is older than what came last. A clock that has not been heard for 24 days may have
    /// come round (sec. 5.5).
    fn is_old(&self, now: Time, value: u32) -> bool {
        let is_before = SeqNumber(value).is_before(SeqNumber(self.recent));
        is_before && now.since(self.recent_at) < OUTDATED
    }

    /// Sec. 5.3 step R3, for a segment that begins at `offset`.
    fn on_value(&mut self, now: Time, offset: Offset, value: u32) {
        if offset <= self.acked && !SeqNumber(value).is_before(SeqNumber(self.recent)) {
            (self.recent, self.recent_at) = (value, now);
        }
    }

    /// The end of the tick in which left what a peer echoes; `None` if we cannot have said that.
    fn left_before(&self, now: Time, echo: u32) -> Option<Time> {
        let now = tick(now);
        let age = (self.offset.wrapping_add(now as u32)).wrapping_sub(echo);
        let left = now.checked_sub(u64::from(age))?;
        Some(Time::ZERO + Span::from_millis(left + 1))
    }
}

impl<P: Payload> Connection<P> {
    /// Whether a segment passes. One that does not is answered, as it may be the peer that is mistaken, unless it is a reset.
    pub(super) fn check_timestamps(&mut self, now: Time, offset: Offset, segment: &Segment<P>) -> bool {
        if !self.clock.is_on || segment.has(Flags::RST) || self.paths.has_several() {
            return true;
        }
        // Sec. 3.2: "If a non-<RST> segment is received without a TSopt, a TCP SHOULD silently drop the segment".
        let Some(timestamps) = segment.timestamps() else { return false };
        if self.clock.is_old(now, timestamps.value) {
            self.answer_unacceptable(now, offset, segment);
            return false;
        }
        true
    }

    /// A segment lies in the window.
    #[inline]
    pub(super) fn take_timestamps(&mut self, now: Time, offset: Offset, segment: &Segment<P>) {
        if self.clock.is_on
            && let Some(timestamps) = segment.timestamps()
        {
            self.clock.on_value(now, offset, timestamps.value);
        }
    }

    /// Before when that left which an acknowledgement answers.
    #[inline]
    pub(super) fn echo(&self, now: Time, segment: &Segment<P>) -> Option<Time> {
        if !self.clock.is_on || self.paths.has_several() {
            return None;
        }
        let timestamps = segment.timestamps()?;
        self.clock.left_before(now, timestamps.echo)
    }
}

/// Sec. 5.5.
const OUTDATED: Span = Span::from_secs(24 * 24 * 3600);

fn tick(now: Time) -> u64 {
    now.since(Time::ZERO).ticks() / TICK.ticks()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn clock() -> Clock {
        let mut clock = Clock::new(u32::MAX - 10);
        clock.on_syn(at(0), Timestamps { value: u32::MAX, echo: 0 });
        clock
    }

    #[test]
    fn an_echo_names_a_tick_even_after_the_clock_has_come_round() {
        let mut clock = clock();
        clock.on_time(at(17));
        assert_eq!(clock.timestamps(), Timestamps { value: 6, echo: u32::MAX });
        assert_eq!(clock.left_before(at(100), 6), Some(at(18)));
        assert_eq!(clock.left_before(at(100), 90), None, "we have not said that yet");
    }

    /// [rfc-7323] sec. 5.3 and 4.3: older is dropped, and only what touches the edge is echoed.
    #[test]
    fn the_peers_clock_only_goes_forward() {
        let mut clock = clock();
        clock.on_ack_sent(100);
        clock.on_value(at(1), 101, 5);
        assert_eq!(clock.timestamps().echo, u32::MAX, "above the edge");
        clock.on_value(at(1), 100, 5);
        assert_eq!(clock.timestamps().echo, 5);
        assert!(clock.is_old(at(1), 4) && clock.is_old(at(1), u32::MAX) && !clock.is_old(at(1), 5));
        assert!(!clock.is_old(at(1) + OUTDATED, 4), "sec. 5.5");
    }
}
