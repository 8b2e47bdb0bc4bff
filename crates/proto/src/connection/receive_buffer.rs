//! Adapts the receive buffer to the paths: it grows to four times the bytes that the application reads in a round trip, plus the
//! credit of idle SIDs, up to a ceiling.
//!
//! If the buffer limits the sender, one buffer is sent per round trip, and the application reads as much. Then the buffer grows
//! to four times its size, until the network is the limit. The factor is four because slow start doubles the data of the next
//! round trip, and because a single stream has about half of the buffer ([`StreamBuffer::Shared`](crate::StreamBuffer)). Growth
//! only enlarges the window and takes no memory, as data that is read at once is not stored. If an application never reads, the
//! buffer keeps its initial size. If it stops reading, the buffer keeps the announced size, because a window never shrinks.
//!
//! The round trip is that of the slowest path, measured by acknowledgements of our own segments and records. Linux measures the
//! read rate in the same way: see `tcp_rcv_space_adjust`.

use anabranch_units::{Span, Time};

/// The bytes read in the current round trip.
#[derive(Clone, Debug)]
pub(super) struct ReceiveBuffer {
    /// The ceiling in bytes.
    max: u64,
    /// When the round trip ends, and the bytes that were read before it began.
    ends_at: Time,
    read: u64,
}

impl ReceiveBuffer {
    pub(super) fn new(max: u64) -> Self {
        Self { max, ends_at: Time::ZERO, read: 0 }
    }

    /// Called on each arrival. `read` bytes have been read so far, from a buffer of `capacity`; idle SIDs hold `shortage` bytes
    /// of credit. Returns a larger capacity, if one is needed.
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

/// The buffer holds the data of this many round trips.
const ROUNDS: u64 = 4;

/// A busy machine may run an application only every few milliseconds, however short the round trip is.
const ROUND_LEAST: Span = Span::from_millis(4);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// Round trips of 100 ms. Bytes read before the first round trip do not count.
    #[test]
    fn four_times_what_is_read_in_a_round_trip() {
        let mut buffer = ReceiveBuffer::new(1_000_000);
        let rtt = || Some(Span::from_millis(100));
        assert_eq!(buffer.on_arrival(at(10), 50_000, 64_000, rtt, || 0), None);
        assert_eq!(buffer.on_arrival(at(109), 110_000, 64_000, rtt, || 0), None);
        assert_eq!(buffer.on_arrival(at(110), 114_000, 64_000, rtt, || 0), Some(256_000));
        // A quarter of the capacity, then one byte more.
        assert_eq!(buffer.on_arrival(at(210), 178_000, 256_000, rtt, || 0), None);
        assert_eq!(buffer.on_arrival(at(310), 242_001, 256_000, rtt, || 0), Some(256_004));
        assert_eq!(buffer.on_arrival(at(410), 900_000, 256_004, rtt, || 0), Some(1_000_000));
        assert_eq!(buffer.on_arrival(at(510), 9_000_000, 1_000_000, rtt, || 0), None);
    }

    /// The shortage is determined once per round trip. The larger one of the two results counts.
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

    /// Without an RTT sample there is no round. A round lasts at least 4 ms.
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
