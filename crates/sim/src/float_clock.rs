//! ns-2's clock, for exact comparisons with it.
//!
//! ns-2 keeps time as a double and sums it along a packet's path. If two times are equal in exact arithmetic (throughout slow
//! start, a packet's arrival and another packet's departure are), the last bit of the sums decides which comes first, and so
//! which packet is dropped. FAST tests whether a round trip is over at the very time when it is. A world with this clock computes
//! the same sums in the same order, in doubles. It also has ns-2's events: one when a transmitter becomes free and packets wait, and an arrival
//! that is inserted when its transmission starts. Hosts and reports see these doubles rounded to picoseconds. Doubles add,
//! subtract, multiply and divide alike on every machine, so such a world is deterministic, too.
//!
//! ```text
//! transmission = 8 · size / bandwidth       arrival = start + (transmission + delay)      free again = start + transmission
//! ```
//!
//! Links with CoDel have no counterpart in ns-2 and keep integer time.

use std::collections::VecDeque;

use anabranch_units::{Rate, SimSpan, SimTime};

use crate::event_queue::{Key, Order};
use crate::moment::Moment;
use crate::packet::Flight;

/// A link's queue, transmitter and pipe with ns-2's clock.
#[derive(Clone, Debug)]
pub(crate) struct FloatLink {
    bandwidth: f64,
    delay: f64,
    /// The size of the last packet, and the seconds of its transmission: most packets of a link have one size, and a division takes long.
    last: (u32, f64),
    /// The key of ns-2's event at the end of the last transmission. It is in the event queue only if packets wait: of an event that starts no
    /// packet nothing is left to do but to tell whether it is over.
    free: Key,
    waiting: VecDeque<Flight>,
    waiting_bytes: u64,
    /// When the packets in the pipe arrive.
    arrivals: VecDeque<f64>,
}

/// A packet whose transmission starts.
pub(crate) struct Launch {
    pub(crate) flight: Flight,
    /// When the transmission ends.
    pub(crate) free: Key,
    pub(crate) arrival: Key,
    /// Whether no packet waits behind it.
    pub(crate) is_last: bool,
}

impl FloatLink {
    pub(crate) fn new(rate: Rate, delay: SimSpan) -> Self {
        Self {
            bandwidth: rate.bits_per_second() as f64,
            // Scripts give milliseconds, which ns-2 multiplies by 0.001.
            delay: delay.ticks() as f64 / 1e9 * 1e-3,
            last: (0, 0.0),
            free: Key::new(SimTime::ZERO, SimTime::ZERO, 0),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            arrivals: VecDeque::new(),
        }
    }

    /// Whether it is in a transmission, at the event with this key.
    pub(crate) fn is_busy(&self, now: Key) -> bool {
        self.free > now
    }

    /// Packets that wait for the transmitter, and their total bytes.
    pub(crate) fn waiting(&self) -> (usize, u64) {
        (self.waiting.len(), self.waiting_bytes)
    }

    /// The event at the end of the last transmission.
    pub(crate) fn free(&self) -> Key {
        self.free
    }

    /// Appends a packet. Returns whether it is the only one that waits.
    pub(crate) fn store(&mut self, flight: Flight) -> bool {
        self.waiting_bytes += u64::from(flight.size());
        self.waiting.push_back(flight);
        self.waiting.len() == 1
    }

    /// The transmitter is free: starts the next packet, which must wait.
    pub(crate) fn launch(&mut self, moment: &Moment, order: &mut Order) -> Launch {
        let flight = self.waiting.pop_front().expect("a packet waits");
        self.waiting_bytes -= u64::from(flight.size());
        if self.last.0 != flight.size() {
            self.last = (flight.size(), 8.0 * f64::from(flight.size()) / self.bandwidth);
        }
        let transmission = self.last.1;
        let at =
            |seconds: f64, order: &mut Order| Key::new(ticks(seconds), moment.now, order.draw()).at_seconds(seconds);
        let arrives_at = moment.seconds + (transmission + self.delay);
        self.arrivals.push_back(arrives_at);
        let arrival = at(arrives_at, order);
        self.free = at(moment.seconds + transmission, order);
        Launch { flight, free: self.free, arrival, is_last: self.waiting.is_empty() }
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
        link.store(packet());
        let launch = link.launch(&at(0.0), &mut Order::default());
        assert_eq!(launch.arrival.seconds, (0.1_f64 + 0.2).to_bits());
        assert_ne!(launch.arrival.seconds, 0.3_f64.to_bits());
    }

    /// A packet takes a second. The second one waits for the end of the first one's transmission, and the third one behind it.
    #[test]
    fn first_of_waiting_packets_starts_when_transmitter_is_free() {
        let (mut link, mut order) =
            (FloatLink::new(Rate::from_bits_per_second(8), SimSpan::from_secs(5)), Order::default());
        assert!(!link.is_busy(at(0.5).key()) && link.store(packet()));
        let launch = link.launch(&at(0.5), &mut order);
        assert!(launch.is_last && link.is_busy(at(1.4).key()) && !link.is_busy(at(1.6).key()));
        assert_eq!((link.store(packet()), link.store(packet())), (true, false));
        assert_eq!(link.free(), launch.free);
        assert_eq!(launch.free.seconds, 1.5_f64.to_bits());
        assert!(!link.launch(&at(1.5), &mut order).is_last && link.launch(&at(2.5), &mut order).is_last);
    }

    fn packet() -> Flight {
        Flight::new(0, 1, 0, Address(0))
    }

    fn at(seconds: f64) -> Moment {
        Moment { now: ticks(seconds), seconds, inserted: SimTime::ZERO, order: u64::MAX }
    }
}
