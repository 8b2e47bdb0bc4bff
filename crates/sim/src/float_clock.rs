//! ns-2's clock, for exact comparisons with it.
//!
//! ns-2 keeps time as a double and sums it along a packet's path. If two times are equal in exact arithmetic (throughout slow
//! start, a packet's arrival and another packet's departure are), the last bit of the sums decides which comes first, and so
//! which packet is dropped. FAST tests whether a round trip is over at the very time when it is. A world with this clock computes
//! the same sums in the same order, in doubles. It also has ns-2's events: one when a transmitter becomes free, and an arrival
//! that is inserted when its transmission starts. Hosts and reports see these doubles rounded to picoseconds. Doubles add,
//! subtract, multiply and divide alike on every machine, so such a world is deterministic, too. It runs at half the speed.
//!
//! ```text
//! transmission = 8 · size / bandwidth       arrival = start + (transmission + delay)      free again = start + transmission
//! ```
//!
//! Links with CoDel have no counterpart in ns-2 and keep integer time.

use std::collections::VecDeque;

use anabranch_units::{Rate, SimSpan, SimTime};

use crate::packet::Flight;

/// A link's queue, transmitter and pipe with ns-2's clock.
#[derive(Clone, Debug)]
pub(crate) struct FloatLink {
    bandwidth: f64,
    delay: f64,
    is_busy: bool,
    waiting: VecDeque<Flight>,
    waiting_bytes: u64,
    /// When the packets in the pipe arrive.
    arrivals: VecDeque<f64>,
}

/// A packet whose transmission starts.
pub(crate) struct Launch {
    pub(crate) flight: Flight,
    pub(crate) free_at: f64,
    pub(crate) arrives_at: f64,
}

impl FloatLink {
    pub(crate) fn new(rate: Rate, delay: SimSpan) -> Self {
        Self {
            bandwidth: rate.bits_per_second() as f64,
            // Scripts give milliseconds, which ns-2 multiplies by 0.001.
            delay: delay.ticks() as f64 / 1e9 * 1e-3,
            is_busy: false,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            arrivals: VecDeque::new(),
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Packets that wait for the transmitter, and their total bytes.
    pub(crate) fn waiting(&self) -> (usize, u64) {
        (self.waiting.len(), self.waiting_bytes)
    }

    pub(crate) fn store(&mut self, flight: Flight) {
        self.waiting_bytes += u64::from(flight.size());
        self.waiting.push_back(flight);
    }

    /// The transmitter is free at `now`: starts the next packet, if any.
    pub(crate) fn launch(&mut self, now: f64) -> Option<Launch> {
        let flight = self.waiting.pop_front();
        self.is_busy = flight.is_some();
        let flight = flight?;
        self.waiting_bytes -= u64::from(flight.size());
        let transmission = 8.0 * f64::from(flight.size()) / self.bandwidth;
        let arrives_at = now + (transmission + self.delay);
        self.arrivals.push_back(arrives_at);
        Some(Launch { flight, free_at: now + transmission, arrives_at })
    }

    /// The first packet has arrived. Returns when the next one arrives.
    pub(crate) fn arrive(&mut self) -> Option<f64> {
        self.arrivals.pop_front();
        self.arrivals.front().copied()
    }
}

/// The picosecond nearest to a time in seconds.
pub(crate) fn ticks(seconds: f64) -> SimTime {
    SimTime::ZERO.saturating_add(SimSpan::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Address;

    /// In doubles 0.1 + 0.2 is not 0.3, and it must not be here.
    #[test]
    fn sums_round_as_doubles_do() {
        let mut link = FloatLink::new(Rate::from_bits_per_second(80), SimSpan::from_millis(200));
        link.store(Flight::new(0, 1, 0, Address(0)));
        let launch = link.launch(0.0).expect("a packet waits");
        assert_eq!(launch.arrives_at.to_bits(), (0.1_f64 + 0.2).to_bits());
        assert_ne!(launch.arrives_at.to_bits(), 0.3_f64.to_bits());
    }

    #[test]
    fn a_transmitter_without_packets_is_idle() {
        let mut link = FloatLink::new(Rate::from_bits_per_second(8), SimSpan::from_secs(5));
        link.store(Flight::new(0, 1, 0, Address(0)));
        assert!(link.launch(0.5).is_some() && link.is_busy());
        assert!(link.launch(1.5).is_none() && !link.is_busy());
    }
}
