//! Controlled delay (RFC 8289).
//!
//! The queue is bad when every packet of a whole `interval` has waited longer than `target`. Then packets are dropped at the
//! head, the n-th of a series `interval / sqrt(n)` after the one before it, until a packet has waited less than `target`:
//!
//! ```text
//!   Watching ── above target for an interval: drop ──> Dropping (next drop at t + interval / sqrt(count))
//!      ^                                                  │
//!      └────────── a packet waited less than target ──────┘
//! ```
//!
//! With `ecn` an ECN-capable packet is marked and sent instead of dropped (RFC 8289, section 3); the series continues as after a
//! drop.
//!
//! Differs from the RFC in: nothing. `sqrt` is correctly rounded on every machine, so the drop times are the same everywhere.

use std::collections::VecDeque;

use anabranch_proto::EcnCodepoint;
use anabranch_units::settings::{Fields, Flaw};
use anabranch_units::{SimSpan, SimTime};

use crate::packet::Flight;
use crate::queue::{Discipline, Managed, Queue, Site, Verdict, acts_again};

/// The parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelParameters {
    /// The acceptable standing queueing delay: 5 ms (RFC 8289, section 4.3).
    pub target: SimSpan,
    /// The round trip time of the slowest usual path: 100 ms (section 4.2).
    pub interval: SimSpan,
    /// While at most this many bytes remain, nothing is dropped: one packet of the largest size.
    pub bytes_min: u64,
    /// The limit of waiting packets.
    pub packets_max: u32,
    /// ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
}

impl Default for CoDelParameters {
    fn default() -> Self {
        Self {
            target: SimSpan::from_millis(5),
            interval: SimSpan::from_millis(100),
            bytes_min: 1500,
            packets_max: 1000,
            ecn: false,
        }
    }
}

impl Discipline for CoDelParameters {
    const WORD: &'static str = "codel";
    const HELP: &'static str = "Controlled delay (RFC 8289): drops packets at the head that have waited too long.";
    const DECIDES_AT_HEAD: bool = true;

    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.size(1).packets("packets", &mut self.packets_max, "The limit of waiting packets");
        fields.size(0).time("target", &mut self.target, "The acceptable standing delay");
        fields.time("interval", &mut self.interval, "About the longest round trip");
        let help = "Whether ECN-capable packets are marked instead of dropped at the head";
        fields.switch("ecn", &mut self.ecn, help);
    }

    fn check(&self) -> Result<(), Flaw> {
        acts_again(Self::WORD, "interval", self.interval)
    }

    fn build(&self, _: &Site<'_>) -> Queue {
        Queue::Managed(Box::new(CoDel::new(*self)))
    }
}

/// The queue and its law.
#[derive(Clone, Debug)]
pub(crate) struct CoDel {
    parameters: CoDelParameters,
    waiting: VecDeque<Waiting>,
    bytes: u64,
    /// When the delay will have been above target for an interval; `None` while it is below.
    above_until: Option<SimTime>,
    dropping: bool,
    /// Drops of this series.
    count: u64,
    /// `count` when the series began.
    count_first: u64,
    drop_next: SimTime,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    since: SimTime,
    flight: Flight,
}

impl CoDel {
    pub(crate) fn new(parameters: CoDelParameters) -> Self {
        Self {
            parameters,
            waiting: VecDeque::new(),
            bytes: 0,
            above_until: None,
            dropping: false,
            count: 0,
            count_first: 0,
            drop_next: SimTime::ZERO,
        }
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Drops the packet that has waited longest, without any effect on the control law.
    pub(crate) fn throw_away(&mut self) -> Option<Flight> {
        let Waiting { flight, .. } = self.waiting.pop_front()?;
        self.bytes -= u64::from(flight.size());
        Some(flight)
    }
}

impl Managed for CoDel {
    fn len(&self) -> usize {
        self.waiting.len()
    }

    fn enqueue(&mut self, now: SimTime, flight: Flight) -> Verdict {
        if self.waiting.len() >= self.parameters.packets_max as usize {
            return Verdict::Drop;
        }
        self.bytes += u64::from(flight.size());
        self.waiting.push_back(Waiting { since: now, flight });
        Verdict::Take
    }

    fn dequeue(&mut self, now: SimTime, dropped: &mut Vec<Flight>) -> Option<(Flight, bool)> {
        let (mut next, mut late) = self.take(now);
        let mut is_marked = false;
        if self.dropping {
            self.dropping = late;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if self.mark(&mut next) {
                    is_marked = true;
                    self.drop_next = self.control_law(self.drop_next);
                    break;
                }
                dropped.extend(next);
                (next, late) = self.take(now);
                self.dropping = late;
                if late {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if late {
            is_marked = self.mark(&mut next);
            if !is_marked {
                dropped.extend(next);
                (next, _) = self.take(now);
            }
            self.dropping = true;
            // RFC 8289, section 5.3: a series that follows closely resumes the drop rate of the last one.
            let series = self.count - self.count_first;
            let is_close = now.since(self.drop_next) < self.parameters.interval.saturating_mul(16);
            self.count = if series > 1 && is_close { series } else { 1 };
            self.count_first = self.count;
            self.drop_next = self.control_law(now);
        }
        next.map(|flight| (flight, is_marked))
    }
}

impl CoDel {
    /// Marks a packet, if it is ECN-capable.
    fn mark(&self, next: &mut Option<Flight>) -> bool {
        let Some(flight) = next.as_mut().filter(|flight| self.parameters.ecn && flight.ecn().is_some()) else {
            return false;
        };
        *flight = flight.with_ecn(Some(EcnCodepoint::Ce));
        true
    }

    /// Takes the first packet. Also returns whether the delay has been above target for an interval.
    fn take(&mut self, now: SimTime) -> (Option<Flight>, bool) {
        let Some(Waiting { since, flight }) = self.waiting.pop_front() else {
            self.above_until = None;
            return (None, false);
        };
        self.bytes -= u64::from(flight.size());
        if now.since(since) < self.parameters.target || self.bytes <= self.parameters.bytes_min {
            self.above_until = None;
            return (Some(flight), false);
        }
        let until = *self.above_until.get_or_insert(now.saturating_add(self.parameters.interval));
        (Some(flight), now >= until)
    }

    fn control_law(&self, from: SimTime) -> SimTime {
        let wait = (self.parameters.interval.ticks() as f64 / (self.count as f64).sqrt()).round();
        from.saturating_add(SimSpan::from_ticks(wait as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Address;

    const fn millis(millis: u64) -> SimTime {
        SimTime::ZERO.saturating_add(SimSpan::from_millis(millis))
    }

    /// A thousand packets arrive at once and leave one per millisecond.
    fn drop_times(parameters: CoDelParameters) -> Vec<u64> {
        let mut queue = CoDel::new(parameters);
        for number in 0..1000 {
            queue.enqueue(SimTime::ZERO, Flight::new(number, 1000, 0, Address(0)));
        }
        let mut times = Vec::new();
        for now in 1..=430 {
            let mut dropped = Vec::new();
            queue.dequeue(millis(now), &mut dropped);
            times.extend(dropped.iter().map(|_| now));
        }
        times
    }

    #[test]
    fn the_drop_times_of_rfc_8289() {
        // Above target from 5 ms on, so the first drop is at 105 ms. The next are 100 ms, 100/√2 = 70.7, 57.7, 50, 44.7 ms later:
        // at 205, 275.7, 333.4, 383.4 and 428.2 ms, each with the next packet that leaves.
        assert_eq!(drop_times(CoDelParameters::default()), [105, 205, 276, 334, 384, 429]);
    }

    #[test]
    fn the_last_packet_is_never_dropped() {
        let parameters = CoDelParameters { bytes_min: 1_000_000, ..CoDelParameters::default() };
        assert_eq!(drop_times(parameters), []);
    }

    #[test]
    fn a_queue_below_target_is_left_alone() {
        let mut queue = CoDel::new(CoDelParameters::default());
        let mut dropped = Vec::new();
        for now in 0..1000 {
            for number in 0..3 {
                queue.enqueue(millis(now), Flight::new(number, 1000, 0, Address(0)));
            }
            // Three packets arrive and leave per millisecond; less than five milliseconds of packets wait.
            for _ in 0..if now < 4 { 0 } else { 3 } {
                queue.dequeue(millis(now), &mut dropped);
            }
        }
        assert_eq!(dropped.len(), 0);
    }

    /// The interval ends after the last time of a 64-bit clock: such a queue never drops at its head.
    #[test]
    fn an_endless_interval_is_no_mistake() {
        let endless = SimSpan::from_ticks(u64::MAX);
        assert_eq!(drop_times(CoDelParameters { interval: endless, ..CoDelParameters::default() }), []);
    }

    #[test]
    fn a_full_queue_refuses() {
        let mut queue = CoDel::new(CoDelParameters { packets_max: 2, ..CoDelParameters::default() });
        let accepted = (0..3).map(|number| queue.enqueue(SimTime::ZERO, Flight::new(number, 1, 0, Address(0))));
        assert_eq!(accepted.collect::<Vec<_>>(), [Verdict::Take, Verdict::Take, Verdict::Drop]);
    }

    /// As `the_drop_times_of_rfc_8289`: the same times, but nothing is lost. A packet that may not be marked is dropped.
    #[test]
    fn codel_with_ecn_marks_at_times_of_drops() {
        for ecn in [Some(EcnCodepoint::Ect0), None] {
            let mut queue = CoDel::new(CoDelParameters { ecn: true, ..CoDelParameters::default() });
            for number in 0..1000 {
                queue.enqueue(SimTime::ZERO, Flight::new(number, 1000, 0, Address(0)).with_ecn(ecn));
            }
            let (mut marks, mut drops) = (vec![], vec![]);
            for now in 1..=430 {
                let mut dropped = vec![];
                let (flight, is_marked) = queue.dequeue(millis(now), &mut dropped).unwrap();
                assert_eq!(flight.ecn(), if is_marked { Some(EcnCodepoint::Ce) } else { ecn });
                marks.extend(is_marked.then_some(now));
                drops.extend(dropped.iter().map(|_| now));
            }
            let (expected, none) = (vec![105, 205, 276, 334, 384, 429], vec![]);
            assert_eq!((marks, drops), if ecn.is_some() { (expected, none) } else { (none, expected) });
        }
    }
}
