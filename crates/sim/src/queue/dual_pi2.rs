//! DualPI2, a coupled dual queue (RFC 9332, appendix A; De Schepper et al., CoNEXT 2016).
//!
//! Packets of scalable senders (ECT(1) and CE) have a short queue L of their own; all others use the classic queue C. One
//! controller updates the probability p from the delay, every `update`. C is marked or dropped with probability p², which suits
//! senders whose window is proportional to 1/√p. L is marked with probability k p, which suits senders whose window is
//! proportional to 1/p. So flows of both kinds get about the same rate.
//!
//! ```text
//!   p ← p + α (delay - target) + β (delay - delay before)     delay: of the first packet in C or in L, whichever is longer
//!   C   p_C = p²; a packet that may not be marked is dropped
//!   L   p_L = max(k p, ramp)                                  ramp: 0 below 2/3 `ramp_max` of waiting, 1 above it; 0 if L has no further packet
//!   overload: p_C > p_Cmax = min(1/k², 1)                     C drops with p_C = p²; L drops with it, too, and also marks
//!   next queue: L, unless C has packets and has not had its tenth of the bytes
//! ```
//!
//! Marks and drops are spread evenly: the probabilities of successive packets are summed, and the packet that brings the sum
//! above 1 is marked or dropped (appendix A.1, `recur`).
//!
//! Differs from the RFC in: C is protected by a weighted round robin, not by the time-shifted FIFO of the RFC's example; section
//! 4.2.2 allows both. The delay is the longer one of both queues, so that L alone can cause overload; the RFC's example takes
//! C's. Both are as in Linux. The limit is in packets.

use std::collections::VecDeque;

use anabranch_proto::EcnCodepoint;
use anabranch_units::settings::{Fields, Flaw};
use anabranch_units::{SimSpan, SimTime};

use super::pie::are_gains;
use super::{Discipline, Managed, Queue, Site, Verdict, acts_again};
use crate::packet::Flight;

/// The parameters of DualPI2. The defaults are the RFC's: α = 0.1 · update / (100 ms)² and β = 0.3 / 100 ms, for round trips of up
/// to 100 ms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2Parameters {
    /// The target delay of C: 15 ms.
    pub target: SimSpan,
    /// The update interval: 15 ms.
    pub update: SimSpan,
    /// The change of p per update, for each second of delay above the target: 0.15.
    pub alpha: f64,
    /// The change of p per update, for each second of growth of the delay: 3.
    pub beta: f64,
    /// The coupling factor: 2.
    pub coupling: f64,
    /// Above this delay every packet of L is marked, below two thirds of it none because of its own delay: 1200 us.
    pub ramp_max: SimSpan,
    /// C's share of the bytes while both queues have packets: 0.1.
    pub classic_share: f64,
    /// The limit of waiting packets, of both queues together.
    pub packets_max: u32,
    /// Whether ECN-capable packets of C are marked instead of dropped.
    pub ecn: bool,
}

impl Default for DualPi2Parameters {
    fn default() -> Self {
        Self {
            target: SimSpan::from_millis(15),
            update: SimSpan::from_millis(15),
            alpha: 0.15,
            beta: 3.0,
            coupling: 2.0,
            ramp_max: SimSpan::from_micros(1200),
            classic_share: 0.1,
            packets_max: 10_000,
            ecn: true,
        }
    }
}

impl Discipline for DualPi2Parameters {
    const WORD: &'static str = "dualpi2";
    const HELP: &'static str = "A short queue for packets of scalable senders (ECT(1)) beside a classic queue for all others; the coupling gives \
        flows of both about the same rate (RFC 9332).";
    const DECIDES_AT_HEAD: bool = true;

    fn visit(&mut self, fields: &mut Fields<'_>) {
        let help = "The limit of waiting packets in both queues together";
        fields.size(1).packets("packets", &mut self.packets_max, help);
        fields.size(0).time("target", &mut self.target, "The target delay of the classic queue");
        fields.time("update", &mut self.update, "The time between updates of the probability");
        fields.number("coupling", &mut self.coupling, 0.0..=f64::MAX, "", "The coupling factor, above 0");
        let help =
            "The delay above which every packet of the short queue is marked; marking begins at two thirds of it";
        fields.time("mark_delay", &mut self.ramp_max, help);
        let help = "Whether ECN-capable packets of the classic queue are marked instead of dropped";
        fields.switch("ecn", &mut self.ecn, help);
    }

    fn check(&self) -> Result<(), Flaw> {
        are_gains([self.alpha, self.beta])?;
        acts_again(Self::WORD, "update", self.update)?;
        if !(self.coupling.is_finite() && self.coupling > 0.0) {
            return Err(Flaw::new("coupling", "a coupling factor is a number above 0", "use 2"));
        }
        match self.classic_share > 0.0 && self.classic_share < 1.0 {
            true => Ok(()),
            false => Err(Flaw::new("", "no share of the classic queue", "use a number between 0 and 1")),
        }
    }

    fn build(&self, _: &Site<'_>) -> Queue {
        Queue::Managed(Box::new(DualPi2::new(*self)))
    }
}

/// The two queues and the controller.
#[derive(Debug)]
pub(crate) struct DualPi2 {
    parameters: DualPi2Parameters,
    low: Half,
    classic: Half,
    /// The probability p of the controller.
    base: f64,
    delay_before: SimSpan,
    update_at: SimTime,
    /// The bytes that C may send before L. Below zero it is L's turn.
    credit: f64,
}

/// One of the two queues.
#[derive(Debug, Default)]
struct Half {
    waiting: VecDeque<(SimTime, Flight)>,
    /// The sums of the marking and dropping probabilities since the last mark and drop.
    marks: f64,
    drops: f64,
}

impl Half {
    /// The waiting time of the first packet.
    fn delay(&self, now: SimTime) -> SimSpan {
        self.waiting.front().map_or(SimSpan::ZERO, |&(since, _)| now.since(since))
    }
}

/// Adds `likelihood` to the sum; true if the sum has passed 1.
fn recurs(sum: &mut f64, likelihood: f64) -> bool {
    *sum += likelihood;
    let strikes = *sum > 1.0;
    if strikes {
        *sum -= 1.0;
    }
    strikes
}

impl DualPi2 {
    pub(crate) fn new(parameters: DualPi2Parameters) -> Self {
        Self {
            parameters,
            low: Half::default(),
            classic: Half::default(),
            base: 0.0,
            delay_before: SimSpan::ZERO,
            update_at: SimTime::ZERO.saturating_add(parameters.update),
            credit: 0.0,
        }
    }

    /// Performs the updates of p that are due.
    fn advance(&mut self, now: SimTime) {
        while self.update_at <= now {
            self.update(self.update_at);
            self.update_at = self.update_at.saturating_add(self.parameters.update);
            if self.len() == 0 && self.base <= 0.0 && self.delay_before.is_zero() && self.update_at <= now {
                // Further updates would not change p.
                let update = self.parameters.update.ticks();
                self.update_at = SimTime::from_ticks((now.ticks() / update).saturating_add(1).saturating_mul(update));
            }
        }
    }

    // RFC 9332, appendix A.1, figure 6.
    fn update(&mut self, now: SimTime) {
        let DualPi2Parameters { target, alpha, beta, .. } = self.parameters;
        let delay = self.classic.delay(now).max(self.low.delay(now));
        let [present, before, aim] = [delay, self.delay_before, target].map(SimSpan::as_secs_f64);
        self.base = (self.base + alpha * (present - aim) + beta * (present - before)).clamp(0.0, 1.0);
        self.delay_before = delay;
    }

    /// The probability that L is marked because of its own delay.
    fn ramp(&self, delay: SimSpan) -> f64 {
        let ramp_max = self.parameters.ramp_max;
        let ramp_min = ramp_max * 2 / 3;
        // A single packet is no queue: the RFC has a threshold of one packet.
        if delay <= ramp_min || self.low.waiting.is_empty() {
            0.0
        } else if delay >= ramp_max {
            1.0
        } else {
            (delay - ramp_min).as_secs_f64() / (ramp_max - ramp_min).as_secs_f64()
        }
    }

    /// Whether the next packet is taken from L.
    fn is_lows_turn(&mut self) -> bool {
        match (self.low.waiting.is_empty(), self.classic.waiting.is_empty()) {
            (true, _) => false,
            (false, true) => {
                self.credit = 0.0;
                true
            }
            (false, false) => self.credit <= 0.0,
        }
    }

    fn is_overloaded(&self) -> bool {
        self.base * self.base > (1.0 / (self.parameters.coupling * self.parameters.coupling)).min(1.0)
    }

    /// Takes a packet of L at `now`, and whether it is marked. `None` instead of the mark: it is dropped.
    fn take_low(&mut self, now: SimTime) -> Option<(Flight, Option<bool>)> {
        let (since, flight) = self.low.waiting.pop_front()?;
        if self.is_overloaded() && recurs(&mut self.low.drops, self.base * self.base) {
            return Some((flight, None));
        }
        let likelihood = (self.parameters.coupling * self.base).min(1.0).max(self.ramp(now.since(since)));
        // A marked packet is not marked again.
        let is_marked = recurs(&mut self.low.marks, likelihood) && flight.ecn() != Some(EcnCodepoint::Ce);
        Some((flight, Some(is_marked)))
    }

    /// Takes a packet of C, as [`Self::take_low`] does of L.
    fn take_classic(&mut self) -> Option<(Flight, Option<bool>)> {
        let (_, flight) = self.classic.waiting.pop_front()?;
        if !recurs(&mut self.classic.marks, self.base * self.base) {
            return Some((flight, Some(false)));
        }
        let may_be_marked = self.parameters.ecn && flight.ecn().is_some() && !self.is_overloaded();
        Some((flight, may_be_marked.then_some(true)))
    }
}

impl Managed for DualPi2 {
    fn len(&self) -> usize {
        self.low.waiting.len() + self.classic.waiting.len()
    }

    fn enqueue(&mut self, now: SimTime, flight: Flight) -> Verdict {
        self.advance(now);
        if self.len() >= self.parameters.packets_max as usize {
            return Verdict::Drop;
        }
        let is_low = matches!(flight.ecn(), Some(EcnCodepoint::Ect1 | EcnCodepoint::Ce));
        let half = if is_low { &mut self.low } else { &mut self.classic };
        half.waiting.push_back((now, flight));
        Verdict::Take
    }

    fn dequeue(&mut self, now: SimTime, dropped: &mut Vec<Flight>) -> Option<(Flight, bool)> {
        self.advance(now);
        loop {
            let is_low = self.is_lows_turn();
            let (flight, fate) = if is_low { self.take_low(now) } else { self.take_classic() }?;
            let Some(is_marked) = fate else {
                dropped.push(flight);
                continue;
            };
            let (size, share) = (f64::from(flight.size()), self.parameters.classic_share);
            self.credit += if is_low { share * size } else { -(1.0 - share) * size };
            // C's share is not charged while L is empty.
            if self.low.waiting.is_empty() {
                self.credit = 0.0;
            }
            let flight = if is_marked { flight.with_ecn(Some(EcnCodepoint::Ce)) } else { flight };
            return Some((flight, is_marked));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Address;

    fn millis(millis: u64) -> SimTime {
        SimTime::ZERO + SimSpan::from_millis(millis)
    }

    fn flight(ecn: Option<EcnCodepoint>) -> Flight {
        Flight::new(0, 1000, 0, Address(0)).with_ecn(ecn)
    }

    const L: Option<EcnCodepoint> = Some(EcnCodepoint::Ect1);

    fn close(got: f64, expected: f64) {
        assert!((got - expected).abs() < 1e-12, "{got}, not {expected}");
    }

    /// One packet of C arrives at 0 and waits. After 15, 30 and 45 ms the changes are 3 · 0.015; then 0.15 · 0.015 + 3 · 0.015,
    /// and 0.15 · 0.030 + 3 · 0.015.
    #[test]
    fn the_probability_by_hand() {
        let mut queue = DualPi2::new(DualPi2Parameters::default());
        queue.enqueue(SimTime::ZERO, flight(None));
        for (ms, expected) in [(14, 0.0), (15, 0.045), (30, 0.09225), (45, 0.14175)] {
            queue.advance(millis(ms));
            close(queue.base, expected);
        }
    }

    /// With p = 1/4, C is dropped with probability 1/16 and L marked with 1/2.
    #[test]
    fn marks_and_drops_are_spread_evenly() {
        let mut queue = DualPi2::new(DualPi2Parameters { packets_max: 1000, ..DualPi2Parameters::default() });
        queue.base = 0.25;
        let (mut marks, mut drops) = (vec![], vec![]);
        for number in 1..=100 {
            queue.enqueue(SimTime::ZERO, flight(L));
            marks.extend(queue.dequeue(SimTime::ZERO, &mut vec![]).filter(|(_, is_marked)| *is_marked).map(|_| number));
            queue.enqueue(SimTime::ZERO, flight(None));
            let mut dropped = vec![];
            queue.dequeue(SimTime::ZERO, &mut dropped);
            drops.extend(dropped.iter().map(|_| number));
        }
        assert_eq!(drops, [17, 33, 49, 65, 81, 97]);
        assert_eq!((marks[..4].to_vec(), marks.len()), (vec![3, 5, 7, 9], 49));
    }

    /// At 1 ms half of L is marked; none of it if no other packet is behind.
    #[test]
    fn the_ramp_is_between_its_ends() {
        let mut queue = DualPi2::new(DualPi2Parameters::default());
        let ramp = |queue: &DualPi2, us| queue.ramp(SimSpan::from_micros(us));
        close(ramp(&queue, 5000), 0.0);
        queue.enqueue(SimTime::ZERO, flight(L));
        for (us, expected) in [(800, 0.0), (900, 0.25), (1000, 0.5), (1200, 1.0), (9000, 1.0)] {
            close(ramp(&queue, us), expected);
        }
    }

    /// While both queues have packets of one size, C sends every tenth packet. Packets of L alone do not wait for C.
    #[test]
    fn low_goes_first_and_classic_is_not_starved() {
        let mut queue = DualPi2::new(DualPi2Parameters::default());
        for _ in 0..40 {
            queue.enqueue(SimTime::ZERO, flight(L));
            queue.enqueue(SimTime::ZERO, flight(None));
        }
        let is_low = |queue: &mut DualPi2| {
            queue.dequeue(SimTime::ZERO, &mut vec![]).is_some_and(|(flight, _)| flight.ecn().is_some())
        };
        let turns: Vec<_> = (0..30).map(|_| is_low(&mut queue)).collect();
        let classic: Vec<_> = (0..30).filter(|&turn| !turns[turn]).collect();
        assert_eq!(classic, [1, 11, 21]);
        while is_low(&mut queue) || !queue.low.waiting.is_empty() {}
        queue.enqueue(SimTime::ZERO, flight(L));
        assert!(is_low(&mut queue));
    }

    /// Above a p_C of 1/4, C is dropped even if it may be marked, and L is dropped, too.
    #[test]
    fn overload_drops_of_both() {
        let struck = |base, ecn| {
            let mut queue = DualPi2::new(DualPi2Parameters::default());
            queue.base = base;
            let (mut marks, mut dropped) = (0, vec![]);
            for _ in 0..1000 {
                queue.enqueue(SimTime::ZERO, flight(ecn));
                marks += u32::from(queue.dequeue(SimTime::ZERO, &mut dropped).is_some_and(|(_, is_marked)| is_marked));
            }
            (marks, dropped.len())
        };
        let classic = Some(EcnCodepoint::Ect0);
        assert_eq!(struck(0.5, classic), (249, 0));
        assert_eq!(struck(0.75, classic), (0, 562));
        // All the others are marked, except the first, with which the sum is not yet above 1.
        assert_eq!(struck(0.75, L), (437, 562));
    }

    #[test]
    fn a_long_silence_is_made_up_for() {
        let mut queue = DualPi2::new(DualPi2Parameters::default());
        queue.base = 0.5;
        queue.advance(millis(3_600_000));
        close(queue.base, 0.0);
        assert_eq!(queue.update_at, millis(3_600_015));
    }
}
