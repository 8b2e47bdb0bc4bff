//! The timestamps option, if both ends negotiated it ([rfc-7323]).
//!
//! * PAWS (sec. 5): an old duplicate whose sequence number is valid again has an older timestamp, and is dropped.
//! * The echo distinguishes an original from its retransmission ([rfc-3522]), and gives an RTT sample where Karn's rule forbids
//!   one.
//!
//! Differs from rfc-7323 in: ACKs of segments that were sent once give an RTT in nanoseconds, and their echo, in milliseconds, is
//! not used. A sample from an echo never counts as the minimum RTT and never reaches a controller. With several paths, a segment
//! that arrives later may have been sent earlier, so no segment is dropped or compared.

use anabranch_units::{Span, Time};

use super::Connection;
use crate::options::Timestamps;
use crate::payload::Payload;
use crate::recovery::rtt::TICK;
use crate::segment::{Flags, Segment};
use crate::seq::{Offset, SeqNumber};

/// Our clock, and the peer's timestamps.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// Whether timestamps were negotiated.
    is_on: bool,
    /// Our clock's value at [`Time::ZERO`]. Nobody can guess it, so that the uptime stays hidden (sec. 5.4 and 7.1).
    offset: u32,
    /// The current time.
    now: Time,
    /// TS.Recent: the peer's timestamp to echo, and when it arrived.
    recent: u32,
    recent_at: Time,
    /// Last.ACK.sent.
    acked: Offset,
}

impl Clock {
    /// A clock that has the value `offset` at [`Time::ZERO`].
    pub(super) fn new(offset: u32) -> Self {
        Self { is_on: false, offset, now: Time::ZERO, recent: 0, recent_at: Time::ZERO, acked: 0 }
    }

    /// The time has advanced.
    pub(super) fn on_time(&mut self, now: Time) {
        self.now = now;
    }

    /// The peer's SYN arrived.
    pub(super) fn on_syn(&mut self, now: Time, timestamps: Timestamps) {
        (self.recent, self.recent_at) = (timestamps.value, now);
    }

    /// Sets the result of the negotiation.
    pub(super) fn set(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// The timestamps of a segment, if it has any.
    pub(super) fn timestamps(&self) -> Timestamps {
        Timestamps { value: self.offset.wrapping_add(tick(self.now) as u32), echo: self.recent }
    }

    /// A segment is sent that acknowledges everything below `expected`.
    pub(super) fn on_ack_sent(&mut self, expected: Offset) {
        self.acked = expected;
    }

    /// Sec. 5.3 step R1: whether a segment is older than the latest one. After 24 days of silence the peer's clock may have
    /// wrapped (sec. 5.5).
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

    /// The end of the tick in which the echoed timestamp was sent; `None` if we cannot have sent it.
    fn left_before(&self, now: Time, echo: u32) -> Option<Time> {
        let now = tick(now);
        let age = (self.offset.wrapping_add(now as u32)).wrapping_sub(echo);
        let left = now.checked_sub(u64::from(age))?;
        Some(Time::ZERO + Span::from_millis(left + 1))
    }
}

impl<P: Payload> Connection<P> {
    /// TS.Recent, the latest timestamp of the peer; `None` if the connection has no timestamps.
    pub fn recent_timestamp(&self) -> Option<u32> {
        self.clock.is_on.then_some(self.clock.recent)
    }

    /// Whether a segment passes PAWS. A segment that fails is acknowledged unless it is a reset, since the peer may be mistaken.
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

    /// A segment within the window arrived.
    pub(super) fn take_timestamps(&mut self, now: Time, offset: Offset, segment: &Segment<P>) {
        if self.clock.is_on
            && let Some(timestamps) = segment.timestamps()
        {
            self.clock.on_value(now, offset, timestamps.value);
        }
    }

    /// The latest time at which the segment may have been sent that an acknowledgement answers.
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
    use crate::testing::at;

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

    /// [rfc-7323] sec. 5.3 and 4.3: older segments are dropped, and only the segment at the edge is echoed.
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
