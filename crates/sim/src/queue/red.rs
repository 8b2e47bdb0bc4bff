//! Random early detection, as in ns-2.35's `Queue/RED` (Floyd and Jacobson, "Random Early Detection Gateways for Congestion
//! Avoidance", IEEE/ACM ToN 1(4), 1993; `gentle` and `wait`: Floyd's notes of 1997 and 2000).
//!
//! ```text
//!   on arrival      avg ← (1 - w)^(m + 1) avg + w q       q: queue length; m: packets that the link could have sent while idle
//!   avg < min       accept
//!   min ≤ avg < max p = max_p (avg - min)/(max - min)
//!   max ≤ avg       p = max_p + (1 - max_p)(avg - max)/max    if gentle, up to 2 max; else drop
//!   n since a drop  p ← 0 if n p < 1, p/(2 - n p) if n p < 2, else 1     with `wait`; p/(1 - n p) without
//!   in bytes        p ← p · size/mean, and n = bytes since a drop/mean
//! ```
//!
//! Differs from the paper, as ns-2 does, in: a packet that finds at most one (packet or byte) waiting is always accepted; the
//! first packet after the average crossed `min` is never dropped. With `ecn`, an ECN-capable packet is marked where it would be
//! dropped at random. If the average or the queue is too large, it is dropped nevertheless (RFC 3168, section 7; ns-2's
//! `setbit_`). Differs from ns-2 in: adaptive and cautious variants are absent, the dropped packet is always the arriving one
//! (`drop_tail_ true`), and above twice `max` everything is dropped (`use_mark_p_ false`).

use anabranch_units::SimSpan;
use anabranch_units::settings::{Fields, Flaw};

use crate::queue::{Admission, Admits, Backlog, Discipline, Queue, Site, Verdict};
use crate::rng::Stream;

/// The parameters of RED. Thresholds are in packets; [`Unit::Bytes`] multiplies them by `mean_size`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedParameters {
    /// The limit of waiting packets (ns-2's `limit_`), in the queue's unit.
    pub limit: u32,
    /// Below this average nothing is dropped (`thresh_`).
    pub threshold_min: f64,
    /// Above this average most or all packets are dropped (`maxthresh_`).
    pub threshold_max: f64,
    /// The probability at `threshold_max` (1 / `linterm_`).
    pub probability_max: f64,
    /// The weight of the average (`q_weight_`).
    pub weight: RedWeight,
    /// Above `threshold_max` the probability rises linearly to one at twice that value, instead of jumping (`gentle_`).
    pub gentle: bool,
    /// Drops keep a minimum distance (`wait_`).
    pub wait: bool,
    /// The unit of the queue's length (`queue_in_bytes_` and `bytes_`).
    pub unit: Unit,
    /// Mean packet size in bytes (`mean_pktsize_`).
    pub mean_size: u32,
    /// ECN-capable packets are marked instead of dropped at random (`setbit_`).
    pub ecn: bool,
}

/// The weight of a new sample in RED's average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RedWeight {
    /// A given weight.
    Given(f64),
    /// ns-2's `q_weight_ -1`: a time constant of ten round trips; a round trip is three times the link's delay, at least 100 ms.
    Automatic,
}

/// The unit of a queue's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// The number of packets.
    Packets,
    /// The number of bytes.
    Bytes,
}

/// The defaults of ns-2.35, with the thresholds that it computes for slow links, and with packets as the unit.
impl Default for RedParameters {
    fn default() -> Self {
        Self {
            limit: 50,
            threshold_min: 5.0,
            threshold_max: 15.0,
            probability_max: 0.1,
            weight: RedWeight::Automatic,
            gentle: true,
            wait: true,
            unit: Unit::Packets,
            mean_size: 500,
            ecn: false,
        }
    }
}

impl Discipline for RedParameters {
    const WORD: &'static str = "red";
    const HELP: &'static str = "Random early detection, as ns-2.35's `Queue/RED`, measured in packets.";
    const IS_RANDOM: bool = true;

    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.required().size(1).packets("packets", &mut self.limit, "The limit of waiting packets");
        let help = "The average below which nothing is dropped, in packets";
        fields.size(0).number("threshold_min", &mut self.threshold_min, 0.0..=f64::MAX, "", help);
        let help = "The average above which most packets are dropped";
        fields.size(0).number("threshold_max", &mut self.threshold_max, 0.0..=f64::MAX, "", help);
        fields.probability("probability_max", &mut self.probability_max, "The drop probability at `threshold_max`");
        let help = "Whether ECN-capable packets are marked instead of dropped at random (RFC 3168)";
        fields.switch("ecn", &mut self.ecn, help);
    }

    fn check(&self) -> Result<(), Flaw> {
        if !(0.0 < self.threshold_min && self.threshold_min < self.threshold_max) {
            let message = "the thresholds of a red queue are in the wrong order";
            return Err(Flaw::new("", message, "use 0 < threshold_min < threshold_max"));
        }
        let is_weight = match self.weight {
            RedWeight::Given(weight) => weight > 0.0 && weight <= 1.0,
            RedWeight::Automatic => true,
        };
        match is_weight && self.probability_max > 0.0 && self.mean_size > 0 {
            true => Ok(()),
            false => {
                Err(Flaw::new("probability_max", "a red queue that drops nothing", "use a number above 0, such as 0.1"))
            }
        }
    }

    fn build(&self, site: &Site<'_>) -> Queue {
        let (rate, delay) = (site.rate.bits_per_second(), site.delay.as_secs_f64());
        Queue::Admission(Admission::Other(Box::new(Red::new(*self, rate, delay, (site.stream)(Self::WORD)))))
    }
}

/// The state of RED.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    parameters: RedParameters,
    stream: Stream,
    /// Packets of the mean size that the link sends in a second.
    packets_per_second: f64,
    weight: f64,
    /// Thresholds and limit in the queue's unit.
    min: f64,
    max: f64,
    limit: u64,
    average: f64,
    /// Packets and bytes since the last drop.
    count: u64,
    count_bytes: u64,
    /// Whether the average was above `min` at the last arrival.
    above: bool,
}

impl Red {
    /// The state for a link of this rate and delay.
    pub(crate) fn new(parameters: RedParameters, bits_per_second: u64, delay_secs: f64, stream: Stream) -> Self {
        let packets_per_second = bits_per_second as f64 / (8.0 * f64::from(parameters.mean_size));
        let weight = match parameters.weight {
            RedWeight::Given(weight) => weight,
            RedWeight::Automatic => {
                let round_trip = (3.0 * (delay_secs + 1.0 / packets_per_second)).max(0.1);
                1.0 - libm::exp(-1.0 / (10.0 * round_trip * packets_per_second))
            }
        };
        let scale = match parameters.unit {
            Unit::Packets => 1,
            Unit::Bytes => parameters.mean_size,
        };
        Self {
            parameters,
            stream,
            packets_per_second,
            weight,
            min: parameters.threshold_min * f64::from(scale),
            max: parameters.threshold_max * f64::from(scale),
            limit: u64::from(parameters.limit) * u64::from(scale),
            average: 0.0,
            count: 0,
            count_bytes: 0,
            above: false,
        }
    }

    /// Restarts the count after a drop.
    fn dropped(&mut self) -> Verdict {
        self.count = 0;
        self.count_bytes = 0;
        Verdict::Drop
    }

    /// The probability of dropping a packet now, spread by the packets since the last drop.
    fn probability(&self, size: u32) -> f64 {
        let RedParameters { probability_max, gentle, wait, unit, mean_size, .. } = self.parameters;
        let first = if self.average < self.max {
            probability_max * (self.average - self.min) / (self.max - self.min)
        } else if gentle {
            probability_max + (1.0 - probability_max) * (self.average - self.max) / self.max
        } else {
            1.0
        };
        let first = first.min(1.0);
        let since = match unit {
            Unit::Packets => self.count,
            Unit::Bytes => self.count_bytes / u64::from(mean_size),
        };
        let spread = since as f64 * first;
        let second = match wait {
            true if spread < 1.0 => 0.0,
            true if spread < 2.0 => first / (2.0 - spread),
            false if spread < 1.0 => first / (1.0 - spread),
            _ => 1.0,
        };
        match unit {
            Unit::Bytes if second < 1.0 => (second * f64::from(size) / f64::from(mean_size)).min(1.0),
            _ => second.min(1.0),
        }
    }
}

impl Admits for Red {
    fn admits(&mut self, size: u32, backlog: Backlog, idle: Option<SimSpan>, is_capable: bool) -> Verdict {
        let waiting = match self.parameters.unit {
            Unit::Packets => backlog.packets,
            Unit::Bytes => backlog.bytes,
        };
        let idle = idle.map_or(0.0, |idle| idle.as_secs_f64());
        self.average = decayed(self.average, self.weight, (self.packets_per_second * idle) as u64 + 1);
        self.average += self.weight * waiting as f64;
        self.count += 1;
        self.count_bytes += u64::from(size);

        let full = waiting >= self.limit;
        if self.average < self.min || waiting <= 1 {
            self.above = false;
        } else if self.average >= if self.parameters.gentle { 2.0 * self.max } else { self.max } {
            return self.dropped();
        } else if !self.above {
            self.above = true;
            self.count = 1;
            self.count_bytes = u64::from(size);
        } else {
            let probability = self.probability(size);
            // ns-2 draws for every packet between the thresholds, and drops at `<=`.
            if self.stream.uniform() <= probability {
                let is_marked = self.parameters.ecn && is_capable && !full;
                self.dropped();
                return if is_marked { Verdict::Mark } else { Verdict::Drop };
            }
        }
        if full { self.dropped() } else { Verdict::Take }
    }
}

/// `average (1 - weight)^times` by repeated squaring: the same bits on every machine, and few steps even after a long idle time.
fn decayed(average: f64, weight: f64, times: u64) -> f64 {
    let (mut result, mut factor, mut left) = (average, 1.0 - weight, times);
    while left > 0 {
        if left % 2 == 1 {
            result *= factor;
        }
        factor *= factor;
        left /= 2;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Substreams;

    /// The average is the queue length in packets; the link sends one packet of 1000 B per millisecond.
    fn red(parameters: RedParameters) -> Red {
        let parameters = RedParameters { unit: Unit::Packets, mean_size: 1000, ..parameters };
        Red::new(parameters, 8_000_000, 0.001, Substreams::new(1).stream("test"))
    }

    fn immediate(wait: bool) -> Red {
        red(RedParameters { weight: RedWeight::Given(1.0), wait, limit: 1000, ..RedParameters::default() })
    }

    fn waiting(packets: u64) -> Backlog {
        Backlog { packets, bytes: packets * 1000 }
    }

    fn takes(law: &mut Red, backlog: Backlog) -> bool {
        law.admits(1000, backlog, None, false) == Verdict::Take
    }

    #[track_caller]
    fn assert_probability(wait: bool, average: f64, count: u64, expected: f64) {
        let law = Red { average, count, ..immediate(wait) };
        let got = law.probability(1000);
        assert!((got - expected).abs() < 1e-12, "average {average}, count {count}: {got}, expected {expected}");
    }

    #[test]
    fn the_probability_rises_to_the_maximum_and_then_gently_to_one() {
        assert_probability(false, 5.0, 0, 0.0);
        assert_probability(false, 10.0, 0, 0.05);
        assert_probability(false, 15.0, 0, 0.1);
        assert_probability(false, 22.5, 0, 0.55);
        assert_probability(false, 30.0, 0, 1.0);
    }

    #[test]
    fn drops_are_spread_by_the_packets_since_the_last() {
        // p = 0.05: 0.05/(1 - 0.5) after 10 packets, certain after 20.
        assert_probability(false, 10.0, 10, 0.1);
        assert_probability(false, 10.0, 20, 1.0);
        // With `wait` nothing for 20 packets, 0.05/(2 - 1.5) after 30, certain after 40.
        assert_probability(true, 10.0, 19, 0.0);
        assert_probability(true, 10.0, 30, 0.1);
        assert_probability(true, 10.0, 40, 1.0);
    }

    #[test]
    fn with_wait_the_distance_between_drops_is_even() {
        let mut law = immediate(true);
        let drops: Vec<_> = (0..100_000).filter(|_| !takes(&mut law, waiting(10))).collect();
        // Uniform on 20..=40: mean 30, whose standard deviation is 6/sqrt(3333) = 0.1.
        let distances: Vec<_> = drops.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = f64::from(distances.iter().sum::<i32>()) / distances.len() as f64;
        assert!((mean - 30.0).abs() < 0.6, "mean distance {mean}");
        assert!(distances.iter().all(|distance| (20..=40).contains(distance)));
    }

    #[test]
    fn below_the_threshold_nothing_is_dropped_and_beyond_everything() {
        let mut law = immediate(true);
        assert!((0..1000).all(|_| takes(&mut law, waiting(4))));
        assert!((0..1000).all(|_| !takes(&mut law, waiting(30))));
    }

    #[test]
    fn an_idle_link_ages_the_average() {
        // Idle for two packet times, then one arrival: 8 · (1/2)^3 = 1.
        let mut law =
            Red { average: 8.0, ..red(RedParameters { weight: RedWeight::Given(0.5), ..RedParameters::default() }) };
        law.admits(1000, waiting(0), Some(SimSpan::from_millis(2)), false);
        assert!((law.average - 1.0).abs() < 1e-12, "{}", law.average);
    }

    #[test]
    fn the_limit_holds_whatever_the_average() {
        let mut law = red(RedParameters { weight: RedWeight::Given(1e-9), limit: 10, ..RedParameters::default() });
        assert!(takes(&mut law, waiting(9)));
        assert!(!takes(&mut law, waiting(10)));
    }

    /// Dropping and marking use the same draws. A packet is dropped if the queue or the average is too large, or if it is not
    /// ECN-capable.
    #[test]
    fn red_with_ecn_marks_random_drops() {
        let verdicts = |ecn, is_capable, packets| {
            let plain = immediate(true);
            let mut law = Red { parameters: RedParameters { ecn, ..plain.parameters }, ..plain };
            (0..10_000).map(|_| law.admits(1000, waiting(packets), None, is_capable)).collect::<Vec<_>>()
        };
        let drops = verdicts(false, true, 10);
        assert_eq!(verdicts(true, false, 10), drops);
        let as_drops = |verdict: &Verdict| if *verdict == Verdict::Mark { Verdict::Drop } else { *verdict };
        let marks = verdicts(true, true, 10);
        assert_eq!(marks.iter().map(as_drops).collect::<Vec<_>>(), drops);
        // One in 30 on average, as above.
        let count = marks.iter().filter(|verdict| **verdict == Verdict::Mark).count();
        assert!((310..=356).contains(&count) && !marks.contains(&Verdict::Drop), "{count}");
        assert!(verdicts(true, true, 30).iter().skip(1).all(|verdict| *verdict == Verdict::Drop));
    }
}
