//! ns-2's clock, for comparisons with it.
//!
//! ns-2 keeps time as a double and adds it up as packets go. Where two times are equal on paper, as a packet's arrival and the
//! departure of another one are all through slow start, the last bit of the sums decides who is first, and with it who is
//! dropped; FAST asks whether a round trip is over at the very moment at which it is. A world with this clock does the same
//! sums in the same order, in doubles, and everything else follows from them: the picoseconds that hosts and reports see
//! are these doubles rounded. Doubles add, subtract, multiply and divide alike on every machine, so such a world is as
//! deterministic as any other.
//!
//! ```text
//! transmission = 8 · size / bandwidth       arrival = start + (transmission + delay)      free again = start + transmission
//! ```
//!
//! Links with a managed queue have no ns-2 to agree with and keep integer time.

use std::collections::VecDeque;

use anabranch_units::{Rate, SimSpan, SimTime};

/// A link's transmitter and pipe in doubles, beside their integer twins.
#[derive(Clone, Debug)]
pub(crate) struct FloatLink {
    bandwidth: f64,
    delay: f64,
    free_at: f64,
    /// The packets in the pipe.
    passages: VecDeque<FloatPassage>,
    /// How many of them, from the front, have departed.
    departed: usize,
}

/// When a packet's transmission starts and ends and when it arrives, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FloatPassage {
    pub(crate) starts_at: f64,
    departs_at: f64,
    pub(crate) arrives_at: f64,
}

impl FloatLink {
    pub(crate) fn new(rate: Rate, delay: SimSpan) -> Self {
        // Scripts say milliseconds, which ns-2 multiplies by a thousandth.
        let delay = delay.ticks() as f64 / 1e9 * 1e-3;
        Self {
            bandwidth: rate.bits_per_second() as f64,
            delay,
            free_at: 0.0,
            passages: VecDeque::new(),
            departed: 0,
        }
    }

    /// How many packets have departed at `now`, in an event that was inserted at `inserted`. A departure at the same time comes
    /// first if its event is older: it was inserted when the transmission started.
    pub(crate) fn departed(&mut self, now: f64, inserted: f64) -> usize {
        while let Some(passage) = self.passages.get(self.departed) {
            let is_due = passage.departs_at < now || (passage.departs_at <= now && passage.starts_at < inserted);
            if !is_due {
                break;
            }
            self.departed += 1;
        }
        self.departed
    }

    /// Sends `size` bytes at `now`, or when the packets before it have left.
    pub(crate) fn send(&mut self, now: f64, size: u32) -> FloatPassage {
        let starts_at = if self.departed == self.passages.len() { now } else { self.free_at };
        let transmission = 8.0 * f64::from(size) / self.bandwidth;
        self.free_at = starts_at + transmission;
        let passage = FloatPassage {
            starts_at,
            departs_at: self.free_at,
            arrives_at: starts_at + (transmission + self.delay),
        };
        self.passages.push_back(passage);
        passage
    }

    /// The first packet has arrived; returns the next one.
    pub(crate) fn arrive(&mut self) -> Option<FloatPassage> {
        self.passages.pop_front();
        self.departed = self.departed.saturating_sub(1);
        self.passages.front().copied()
    }
}

/// The picosecond next to a time in seconds.
pub(crate) fn ticks(seconds: f64) -> SimTime {
    SimTime::ZERO.saturating_add(SimSpan::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0.1 + 0.2 is not 0.3, and here it must not be.
    #[test]
    fn sums_round_as_doubles_do() {
        let mut link = FloatLink::new(Rate::from_bits_per_second(80), SimSpan::from_millis(200));
        let passage = link.send(0.0, 1);
        assert_eq!(passage.arrives_at.to_bits(), (0.1_f64 + 0.2).to_bits());
        assert_ne!(passage.arrives_at.to_bits(), 0.3_f64.to_bits());
    }

    #[test]
    fn a_busy_transmitter_makes_packets_wait() {
        let mut link = FloatLink::new(Rate::from_bits_per_second(8), SimSpan::from_secs(5));
        link.send(0.0, 1);
        assert_eq!(link.departed(0.5, 0.0), 0);
        assert!((link.send(0.5, 1).starts_at - 1.0).abs() < 1e-12);
        // At 1 s the first departs; whoever was inserted before its transmission started still sees it.
        assert_eq!(link.departed(1.0, 0.0), 0);
        assert_eq!(link.departed(1.0, 0.25), 1);
    }
}
