//! Proportional integral controller enhanced (RFC 8033).
//!
//! An arriving packet is dropped with a probability p. A controller updates p every `update` from the queueing delay:
//!
//! ```text
//!   p ← p + s(p) (α (delay - target) + β (delay - delay before))      s(p): 1/2048 below 10^-6, 1/512, 1/128, 1/32, 1/8, 1/2 below
//!                                                                      0.00001, 0.0001, 0.001, 0.01, 0.1; else 1, and a step of 0.02 at most
//!   p ← 0.98 p                                                         if the delay is zero, now and at the last update
//!   nothing is dropped     while p < 0.2 and the last delay was below target/2; while two packets or fewer wait;
//!                          in a burst: for `burst` after p was 0 and the delays were below target/2
//!   drops are spread       none until the probabilities since the last drop add up to 0.85; one for certain at 8.5
//! ```
//!
//! `delay` is the waiting time of the packet that left last, or zero if no packet waits (RFC 8033, section 4.3: by time stamps).
//! With `ecn`, an ECN-capable packet is marked instead of dropped while p is below 0.1 (section 5.1).
//!
//! Differs from the RFC in: nothing that the RFC requires. Of its optional parts (section 5), marking, spread drops and capped
//! steps are implemented; PIE is always active. Updates are due at the multiples of `update`. They are computed at the next use
//! of the queue, because nothing changes before.

use std::collections::VecDeque;

use anabranch_proto::EcnCodepoint;
use anabranch_units::settings::{Fields, Flaw};
use anabranch_units::{SimSpan, SimTime};

use super::{Discipline, Managed, Queue, Site, Verdict, acts_again};
use crate::packet::Flight;
use crate::rng::Stream;

/// The parameters of PIE. The defaults are the RFC's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieParameters {
    /// The target delay: 15 ms (QDELAY_REF).
    pub target: SimSpan,
    /// The update interval: 15 ms (T_UPDATE).
    pub update: SimSpan,
    /// The change of p per update, for each second of delay above the target: 1/8 (alpha).
    pub alpha: f64,
    /// The change of p per update, for each second of growth of the delay: 5/4 (beta).
    pub beta: f64,
    /// The burst allowance: 150 ms (MAX_BURST).
    pub burst: SimSpan,
    /// The limit of waiting packets.
    pub packets_max: u32,
    /// Whether ECN-capable packets are marked instead of dropped while p is below 0.1.
    pub ecn: bool,
}

impl Default for PieParameters {
    fn default() -> Self {
        Self {
            target: SimSpan::from_millis(15),
            update: SimSpan::from_millis(15),
            alpha: 0.125,
            beta: 1.25,
            burst: SimSpan::from_millis(150),
            packets_max: 1000,
            ecn: false,
        }
    }
}

impl Discipline for PieParameters {
    const WORD: &'static str = "pie";
    const HELP: &'static str = "Proportional integral controller enhanced (RFC 8033): drops arriving packets with a probability that follows the delay.";
    const DECIDES_AT_HEAD: bool = true;
    const IS_RANDOM: bool = true;

    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.size(1).packets("packets", &mut self.packets_max, "The limit of waiting packets");
        fields.size(0).time("target", &mut self.target, "The target delay");
        fields.time("update", &mut self.update, "The time between updates of the probability");
        let help = "Whether ECN-capable packets are marked while the probability is below 0.1";
        fields.switch("ecn", &mut self.ecn, help);
    }

    fn check(&self) -> Result<(), Flaw> {
        are_gains([self.alpha, self.beta])?;
        acts_again(Self::WORD, "update", self.update)
    }

    fn build(&self, site: &Site<'_>) -> Queue {
        Queue::Managed(Box::new(Pie::new(*self, (site.stream)(Self::WORD))))
    }
}

/// Checks the gains of a controller, which a scenario does not set.
pub(super) fn are_gains(gains: [f64; 2]) -> Result<(), Flaw> {
    match gains.iter().all(|gain| gain.is_finite() && *gain >= 0.0) {
        true => Ok(()),
        false => Err(Flaw::new("", "a gain is below 0", "use 0 or more")),
    }
}

/// At or below this backlog no packet is dropped: two packets of the RFC's mean size.
const BYTES_MIN: u64 = 2 * 1024;
/// From this p on, ECN-capable packets are dropped, too (mark_ecnth).
const MARK_MAX: f64 = 0.1;

/// The queue and its controller.
#[derive(Debug)]
pub(crate) struct Pie {
    parameters: PieParameters,
    stream: Stream,
    waiting: VecDeque<(SimTime, Flight)>,
    bytes: u64,
    probability: f64,
    /// The waiting time of the packet that left last.
    delay: SimSpan,
    delay_before: SimSpan,
    burst_left: SimSpan,
    /// The sum of the probabilities of the packets since the last drop.
    accumulated: f64,
    update_at: SimTime,
}

impl Pie {
    pub(crate) fn new(parameters: PieParameters, stream: Stream) -> Self {
        Self {
            parameters,
            stream,
            waiting: VecDeque::new(),
            bytes: 0,
            probability: 0.0,
            delay: SimSpan::ZERO,
            delay_before: SimSpan::ZERO,
            burst_left: parameters.burst,
            accumulated: 0.0,
            update_at: SimTime::ZERO.saturating_add(parameters.update),
        }
    }

    /// Performs the updates of p that are due.
    fn advance(&mut self, now: SimTime) {
        while self.update_at <= now {
            self.update();
            self.update_at = self.update_at.saturating_add(self.parameters.update);
            let is_at_rest = self.waiting.is_empty()
                && self.probability <= 0.0
                && self.delay_before.is_zero()
                && self.burst_left == self.parameters.burst;
            if is_at_rest && self.update_at <= now {
                // Further updates would not change p.
                let update = self.parameters.update.ticks();
                self.update_at = SimTime::from_ticks((now.ticks() / update).saturating_add(1).saturating_mul(update));
            }
        }
    }

    // RFC 8033, section 4.2.
    fn update(&mut self) {
        let PieParameters { target, alpha, beta, update, burst, .. } = self.parameters;
        let delay = if self.waiting.is_empty() { SimSpan::ZERO } else { self.delay };
        let [now, before, aim] = [delay, self.delay_before, target].map(SimSpan::as_secs_f64);
        let step = scale(self.probability) * (alpha * (now - aim) + beta * (now - before));
        let step = if self.probability >= 0.1 { step.min(0.02) } else { step };
        self.probability += step;
        if delay.is_zero() && self.delay_before.is_zero() {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.burst_left = self.burst_left.saturating_sub(update);
        let half = SimSpan::from_ticks(target.ticks() / 2);
        if self.probability <= 0.0 && delay < half && self.delay_before < half {
            self.burst_left = burst;
        }
        self.delay_before = delay;
    }

    /// Whether to drop the arriving packet.
    fn strikes(&mut self) -> bool {
        let half = SimSpan::from_ticks(self.parameters.target.ticks() / 2);
        let is_calm = self.delay_before < half && self.probability < 0.2;
        if !self.burst_left.is_zero() || is_calm || self.bytes <= BYTES_MIN {
            return false;
        }
        // Section 5.4.
        self.accumulated = if self.probability > 0.0 { self.accumulated + self.probability } else { 0.0 };
        let strikes = self.accumulated >= 0.85 && (self.accumulated >= 8.5 || self.stream.happens(self.probability));
        if strikes {
            self.accumulated = 0.0;
        }
        strikes
    }
}

/// The scale of a step at this probability.
fn scale(probability: f64) -> f64 {
    const SCALES: [(f64, f64); 6] =
        [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
    let found = SCALES.iter().find(|(below, _)| probability < *below);
    found.map_or(1.0, |(_, part)| 1.0 / part)
}

impl Managed for Pie {
    fn len(&self) -> usize {
        self.waiting.len()
    }

    fn enqueue(&mut self, now: SimTime, mut flight: Flight) -> Verdict {
        self.advance(now);
        if self.waiting.len() >= self.parameters.packets_max as usize {
            self.accumulated = 0.0;
            return Verdict::Drop;
        }
        let mut verdict = Verdict::Take;
        if self.strikes() {
            if !self.parameters.ecn || flight.ecn().is_none() || self.probability >= MARK_MAX {
                return Verdict::Drop;
            }
            flight = flight.with_ecn(Some(EcnCodepoint::Ce));
            verdict = Verdict::Mark;
        }
        self.bytes += u64::from(flight.size());
        self.waiting.push_back((now, flight));
        verdict
    }

    fn dequeue(&mut self, now: SimTime, _dropped: &mut Vec<Flight>) -> Option<(Flight, bool)> {
        self.advance(now);
        let (since, flight) = self.waiting.pop_front()?;
        self.bytes -= u64::from(flight.size());
        self.delay = now.since(since);
        Some((flight, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Address;
    use crate::rng::Substreams;

    fn millis(millis: u64) -> SimTime {
        SimTime::ZERO + SimSpan::from_millis(millis)
    }

    fn pie(parameters: PieParameters) -> Pie {
        Pie::new(parameters, Substreams::new(1).stream("test"))
    }

    fn flight() -> Flight {
        Flight::new(0, 1000, 0, Address(0))
    }

    /// A packet waited 35 ms, and others wait: α · 20 ms + β · 35 ms = 0.0025 + 0.04375 = 0.04625, of which 1/2048 is added
    /// first. Then the delay stays: each update adds 0.0025, scaled by 1/128 at 2.3e-5, 4.2e-5, 6.2e-5 and 8.1e-5, and by 1/32
    /// from 1e-4 on.
    #[test]
    fn the_probability_by_hand() {
        let mut pie = pie(PieParameters::default());
        for _ in 0..10 {
            pie.enqueue(SimTime::ZERO, flight());
        }
        pie.delay = SimSpan::from_millis(35);
        let mut expected = 0.04625 / 2048.0;
        for part in [128.0, 128.0, 128.0, 128.0, 32.0, 32.0] {
            pie.update();
            assert!((pie.probability - expected).abs() < 1e-12, "{}, not {expected}", pie.probability);
            expected += 0.0025 / part;
        }
    }

    #[test]
    fn steps_are_capped_where_much_is_dropped_already() {
        let mut pie = pie(PieParameters::default());
        pie.enqueue(SimTime::ZERO, flight());
        (pie.probability, pie.delay) = (0.3, SimSpan::from_millis(500));
        pie.update();
        assert!((pie.probability - 0.32).abs() < 1e-12, "{}", pie.probability);
    }

    /// If nothing waits, each update subtracts α · 15 ms = 0.001875, then 2 %: p falls from 0.15 below 0.1 in 11 updates (0.15 ·
    /// 0.98^11 = 0.120, minus about 0.02), and to zero in a little less than half a minute. A packet after such a long idle time
    /// has the burst allowance again.
    #[test]
    fn silence_forgives() {
        let mut pie = pie(PieParameters::default());
        (pie.probability, pie.burst_left) = (0.15, SimSpan::ZERO);
        pie.advance(millis(11 * 15));
        let by_hand = (0..11).fold(0.15, |p, _| (p - 0.001_875) * 0.98);
        assert!((pie.probability - by_hand).abs() < 1e-12 && by_hand < 0.102);
        pie.advance(millis(3_600_000));
        assert_eq!((pie.probability, pie.burst_left), (0.0, SimSpan::from_millis(150)));
        assert_eq!(pie.update_at, millis(3_600_015));
    }

    /// For 150 ms nothing is dropped, whatever p is.
    #[test]
    fn a_burst_passes() {
        let mut pie = pie(PieParameters::default());
        (pie.probability, pie.delay_before, pie.bytes) = (1.0, SimSpan::from_millis(100), 100_000);
        assert!((0..100).all(|_| !pie.strikes()));
        pie.burst_left = SimSpan::ZERO;
        assert!((0..100).all(|_| pie.strikes()));
    }

    /// With p = 1/8, none of the first six packets after a drop is dropped, as their sum is below 0.85. From then on each is
    /// dropped with 1/8, so drops are 6 + 8 packets apart on average. The 68th is dropped for certain, as the sum is 8.5.
    #[test]
    fn drops_are_spread() {
        let mut pie = pie(PieParameters::default());
        (pie.probability, pie.delay_before, pie.bytes, pie.burst_left) =
            (0.125, SimSpan::from_millis(100), 100_000, SimSpan::ZERO);
        let drops: Vec<_> = (0..200_000).filter(|_| pie.strikes()).collect();
        let distances: Vec<_> = drops.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = f64::from(distances.iter().sum::<i32>()) / distances.len() as f64;
        // About 14,000 distances with a standard deviation of 7.5, so that of the mean is 0.063.
        assert!((mean - 14.0).abs() < 0.32, "{mean}");
        assert!(distances.iter().all(|distance| (7..=68).contains(distance)));
    }

    #[test]
    fn pie_marks_capable_packets_below_threshold() {
        let verdict = |ecn, probability, codepoint| {
            let mut pie = pie(PieParameters { ecn, ..PieParameters::default() });
            (pie.probability, pie.delay_before, pie.bytes, pie.burst_left) =
                (probability, SimSpan::from_millis(100), 100_000, SimSpan::ZERO);
            pie.accumulated = 8.5;
            pie.enqueue(SimTime::ZERO, flight().with_ecn(codepoint))
        };
        let capable = Some(EcnCodepoint::Ect0);
        assert_eq!(verdict(true, 0.05, capable), Verdict::Mark);
        assert_eq!(
            [verdict(true, 0.1, capable), verdict(true, 0.05, None), verdict(false, 0.05, capable)],
            [Verdict::Drop; 3]
        );
    }
}
