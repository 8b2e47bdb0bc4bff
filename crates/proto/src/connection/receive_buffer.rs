//! Adapts the receive buffer to the paths: it grows to four times the bytes that the application reads in a round trip, and
//! doubles if a stream lacks credit, up to a ceiling.
//!
//! If the buffer limits the sender, one buffer is sent per round trip, and the application reads as much. Then the buffer grows
//! to four times its size, until the network is the limit. The factor is four because slow start doubles the data of the next
//! round trip, and because a single stream has less than half of the buffer ([`StreamBuffer::Shared`](crate::StreamBuffer)). If
//! others hold the buffer, what is read of a stream tells more than what is read of all: so the credit of streams counts, too.
//! Growth only enlarges the window and takes no memory, as data that is read at once is not stored. If an application never reads,
//! the buffer keeps its initial size. If it stops reading, the buffer keeps the announced size, because a window never shrinks.
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
    read: Option<u64>,
}

impl ReceiveBuffer {
    pub(super) fn new(max: u64) -> Self {
        Self { max, ends_at: Time::ZERO, read: None }
    }

    /// Called on each arrival. Returns whether a round trip has passed.
    pub(super) fn on_arrival(&mut self, now: Time, rtt: impl FnOnce() -> Option<Span>) -> bool {
        if now < self.ends_at {
            return false;
        }
        let Some(rtt) = rtt() else { return false };
        self.ends_at = now.saturating_add(rtt.max(ROUND_LEAST));
        true
    }

    /// A round trip has passed. `read` bytes have been read so far, from a buffer of `capacity`. Returns a larger capacity, if one
    /// is needed, as it is if a stream lacks credit.
    pub(super) fn grown(&mut self, read: u64, capacity: u64, is_short: bool) -> Option<u64> {
        let in_round = self.read.replace(read).map_or(0, |before| read - before);
        let least = if is_short { capacity.saturating_mul(2) } else { capacity };
        let wanted = in_round.saturating_mul(ROUNDS).max(least).min(self.max);
        (wanted > capacity).then_some(wanted)
    }
}

/// The buffer holds the data of this many round trips.
const ROUNDS: u64 = 4;

/// A busy machine may run an application only every few milliseconds, however short the round trip is.
const ROUND_LEAST: Span = Span::from_millis(4);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    /// Bytes read before the first round trip do not count.
    #[test]
    fn four_times_what_is_read_in_a_round_trip() {
        let mut buffer = ReceiveBuffer::new(1_000_000);
        assert_eq!(buffer.grown(50_000, 64_000, false), None);
        assert_eq!(buffer.grown(114_000, 64_000, false), Some(256_000));
        // A quarter of the capacity, then one byte more.
        assert_eq!(buffer.grown(178_000, 256_000, false), None);
        assert_eq!(buffer.grown(242_001, 256_000, false), Some(256_004));
        assert_eq!(buffer.grown(900_000, 256_004, false), Some(1_000_000));
        assert_eq!(buffer.grown(9_000_000, 1_000_000, true), None);
    }

    /// The larger one of the two results counts.
    #[test]
    fn a_stream_without_enough_credit_doubles_the_buffer() {
        let mut buffer = ReceiveBuffer::new(1_000_000);
        assert_eq!(buffer.grown(0, 64_000, true), Some(128_000));
        assert_eq!(buffer.grown(16_000, 128_000, true), Some(256_000));
        assert_eq!(buffer.grown(166_000, 256_000, true), Some(600_000));
        assert_eq!(buffer.grown(166_000, 600_000, true), Some(1_000_000));
    }

    /// Without an RTT sample there is no round. A round lasts at least 4 ms.
    #[test]
    fn a_round_takes_some_time() {
        let mut buffer = ReceiveBuffer::new(1_000_000);
        assert!(!buffer.on_arrival(at(10), || None));
        let rounds = |buffer: &mut ReceiveBuffer, rtt: Span| {
            let mut over = vec![];
            (10..40).for_each(|ms| over.extend(buffer.on_arrival(at(ms), || Some(rtt)).then_some(ms)));
            over
        };
        assert_eq!(rounds(&mut buffer, Span::from_millis(10)), [10, 20, 30]);
        assert_eq!(rounds(&mut ReceiveBuffer::new(1), Span::from_micros(50)), [10, 14, 18, 22, 26, 30, 34, 38]);
    }
}
