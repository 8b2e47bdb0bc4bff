//! How the receive buffer follows the paths: it holds at least four times what the application reads in a round trip, and what idle names of streams
//! have been promised if others lack it, up to a ceiling.
//!
//! A sender that a buffer holds back sends one buffer a round trip, and the application reads as much. Then the buffer becomes four times as
//! large, until the network is the limit and not the buffer. Four times, as a slow start sends twice as much in its next round trip, and a single
//! stream has about half of the buffer ([`StreamBuffer::Shared`](crate::StreamBuffer)). What grows is what the peer may send, and no memory is taken for
//! that: what is read at once takes none. An application that does not read has the buffer of the beginning, and one that stops has what was promised
//! till then, as a promise is not taken back.
//!
//! A round trip is that of the slowest path, as the acknowledgements of our own segments and records say. Linux measures by the same
//! reading: see `tcp_rcv_space_adjust`.

use anabranch_units::{Span, Time};

/// What was read in the round trip that is measured.
#[derive(Clone, Debug)]
pub(super) struct ReceiveBuffer {
    /// The most that it may hold.
    max: u64,
    /// When the round trip ends, and what had been read when it began.
    ends_at: Time,
    read: u64,
}

impl ReceiveBuffer {
    pub(super) fn new(max: u64) -> Self {
        Self { max, ends_at: Time::ZERO, read: 0 }
    }

    /// Everything read so far is `read`, in a buffer of `capacity`, to which `shortage` has to be added for idle names. Returns what it should have instead, if that is more.
    #[inline]
    pub(super) fn on_arrival(
        &mut self,
        now: Time,
        read: u64,
        capacity: u64,
        rtt: impl FnOnce() -> Option<Span>,
        shortage: impl FnOnce() -> u64,
    ) -> Option<u64> {
        if now < self.ends_at || capacity >= self.max {
            return None;
        }
        let in_round = read - self.read;
        let is_first = self.ends_at == Time::ZERO;
        self.read = read;
        self.ends_at = now.saturating_add(rtt()?.max(ROUND_LEAST));
        let wanted = in_round.saturating_mul(ROUNDS).max(capacity.saturating_add(shortage())).min(self.max);
        (!is_first && wanted > capacity).then_some(wanted)
    }
}

/// The buffer holds what is read in so many round trips.
const ROUNDS: u64 = 4;

/// An application on a machine that is not idle reads once in a millisecond or two, whatever the round trip.
const ROUND_LEAST: Span = Span::from_millis(4);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// Round trips of 100 ms. What was read before the first one began does not count.
    #[test]
    fn four_times_what_is_read_in_a_round_trip() {
        let mut buffer = ReceiveBuffer::new(1_000_000);
        let rtt = || Some(Span::from_millis(100));
        assert_eq!(buffer.on_arrival(at(10), 50_000, 64_000, rtt, || 0), None);
        assert_eq!(buffer.on_arrival(at(109), 110_000, 64_000, rtt, || 0), None);
        assert_eq!(buffer.on_arrival(at(110), 114_000, 64_000, rtt, || 0), Some(256_000));
        // A quarter of it, and then a byte more.
        assert_eq!(buffer.on_arrival(at(210), 178_000, 256_000, rtt, || 0), None);
        assert_eq!(buffer.on_arrival(at(310), 242_001, 256_000, rtt, || 0), Some(256_004));
        assert_eq!(buffer.on_arrival(at(410), 900_000, 256_004, rtt, || 0), Some(1_000_000));
        assert_eq!(buffer.on_arrival(at(510), 9_000_000, 1_000_000, rtt, || 0), None);
    }

    /// It is asked for once a round trip, and the larger of both counts.
    #[test]
    fn what_idle_names_have_is_added() {
        let mut buffer = ReceiveBuffer::new(1_000_000);
        let rtt = || Some(Span::from_millis(100));
        assert_eq!(buffer.on_arrival(at(10), 0, 64_000, rtt, || 0), None);
        assert_eq!(buffer.on_arrival(at(50), 0, 64_000, rtt, || unreachable!("not yet")), None);
        assert_eq!(buffer.on_arrival(at(110), 16_000, 64_000, rtt, || 5000), Some(69_000));
        assert_eq!(buffer.on_arrival(at(210), 66_000, 69_000, rtt, || 5000), Some(200_000));
        assert_eq!(buffer.on_arrival(at(310), 66_000, 200_000, rtt, || u64::MAX), Some(1_000_000));
    }

    /// Without a sample of the round trip there is no round, and below 4 ms none is measured.
    #[test]
    fn a_round_takes_some_time() {
        let mut buffer = ReceiveBuffer::new(1_000_000);
        assert_eq!(buffer.on_arrival(at(10), 50_000, 1000, || None, || 0), None);
        let short = || Some(Span::from_micros(50));
        assert_eq!(buffer.on_arrival(at(20), 60_000, 1000, short, || 0), None);
        assert_eq!(buffer.on_arrival(at(23), 80_000, 1000, short, || 0), None);
        assert_eq!(buffer.on_arrival(at(24), 80_000, 1000, short, || 0), Some(80_000));
    }
}
