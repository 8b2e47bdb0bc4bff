//! Noise: delay without a queue. ACKs that come in batches, or a host that wakes up late, add a wait for the next batch or wake-up.
//!
//! ```text
//! each sample:  gap   ← time since the last ACK
//!               jump  ← rtt − rtt of the last ACK, between zero and gap; if it is most of gap, all of gap
//!               noise ← noise + (jump² − noise · gap) / span
//! rtt:          the least sample of the last one to two times the larger of `least` and 1.5 noise
//! after a gap:  for the length of the gap, at most a quarter of avgRTT, samples above the one before the gap count in avgRTT as that one
//! alpha:        alpha · √(1 + (rate · max(noise, least) / alpha)²)
//! ```
//!
//! Why: packets arrive at the holding point one by one, and wait there for the end of the batch. So the RTT jumps by the wait of the first
//! packet of a batch, and this wait is no longer than the gap since the last batch. A queue, in contrast, grows packet by packet. The jump is
//! shorter than the gap by the time between the departures of the two segments. The sum of the squares of these jumps, divided by time, is the longest
//! wait of a packet that arrives at a random moment: `every` on a grid, twice the mean with exponential intervals, and next to nothing for a
//! single event.
//!
//! The last packet of a batch has waited least, so it shows the delay of the path. A remaining delay J of any cause limits FAST to the rate
//! alpha/J: 20 segments of 1000 B and 3 ms are 53 Mbit/s. So alpha is at least the number of segments that pass during the noise. It is the
//! root of a sum of squares and not the larger of the two: if alpha were in proportion to the rate, any division among flows would be an
//! equilibrium. The root grows more slowly than the rate, so equal flows get equal rates.
//!
//! Batches also disturb the flight at a segment's departure: for the first segment that a batch of ACKs releases, the flight is less than the
//! window by a batch; for the last one it is the window. So `old` is the largest flight at the departures of recently acknowledged segments.
//!
//! Noise is a mean, and a host that stalls twice a second hardly adds to it. But after a stall all held packets arrive at once, up to the
//! length of the stall too late, and the samples of half a round trip raise avgRTT by as much. A queue would still be there after the stall. So
//! after a gap that raises a sample, the samples count as the one before the gap.
//!
//! Citation: none.
//!
//! Limits. If the host's own bursts keep step with the grid, all samples are equal and there are no jumps: a pacer has to spread the
//! departures. And if the queue of the path is shorter than a stall, the link idles for the rest of the stall, for any window.

use anabranch_units::Span;

use crate::number::{greater, is_known, lesser};
use crate::recent::{RecentMax, RecentMin};
use crate::settings::{Choice, Fields};

/// The settings of the measurement of noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The least noise, in seconds; more than zero.
    pub least: f64,
}

impl Choice for Option<Rule> {
    const KINDS: &'static [(&'static str, Self)] = &[("off", None), ("on", Some(Rule { least: 0.001 }))];

    fn visit(&mut self, fields: &mut Fields<'_>) {
        if let Some(Rule { least }) = self {
            let help =
                "alpha is at least the segments that pass while ACKs are held back without a queue, or in this time";
            fields.seconds("least", least, Span::from_micros(1)..=Span::from_secs(1), help);
        }
    }
}

/// The time over which noise is measured, in seconds: a hundred batches of 10 ms.
const SPAN: f64 = 1.0;

/// A jump of more than this share of the gap is the end of a batch. A smaller one may be a growing queue while few segments leave.
const MOST: f64 = 0.5;

/// The time for which samples are kept for their minimum, in multiples of noise: long enough to hold a batch even if batches are irregular.
const KEPT: f64 = 1.5;

/// The noise of one path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// The last sample: its time, its value, and the least recent sample at that time, in seconds.
    last: Option<(f64, f64, f64)>,
    /// The time over which `level` was measured, in seconds; at most [`SPAN`].
    measured: f64,
    /// The noise in seconds.
    level: f64,
    /// Samples in seconds.
    rtts: RecentMin,
    /// The last gap that raised a sample: the time until which held packets may arrive, and the least sample before the gap, in seconds.
    stall: Option<(f64, f64)>,
    /// The flights in segments.
    flights: RecentMax,
}

/// A sample without its noise, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The least recent sample.
    pub rtt: f64,
    /// The same without the delay of a stall: for avgRTT.
    pub standing: f64,
}

/// `old` is the maximum over one to two of these parts of an RTT, and a stall counts for at most one of them.
const PART: f64 = 0.25;

impl Noise {
    /// A filter without samples.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a sample of `rtt` seconds at `now`; `average` is avgRTT in seconds, infinite if it is not known.
    pub fn on_rtt(&mut self, now: f64, rtt: f64, average: f64, rule: &Rule) -> Sample {
        let kept = self.kept(rule);
        if let Some((before, rtt_before, least_before)) = self.last {
            let passed = greater(now - before, 0.0);
            let jump = (rtt - rtt_before).clamp(0.0, passed);
            let is_batch = jump > MOST * passed;
            let jump = if is_batch { passed } else { jump };
            self.measured = lesser(self.measured + passed, SPAN);
            if self.measured > 0.0 {
                let kept = greater(1.0 - passed / self.measured, 0.0);
                self.level = self.level * kept + jump * jump / self.measured;
            }
            if is_batch && passed > kept && is_known(average) {
                self.stall = Some((now + lesser(passed, PART * average), least_before));
            }
        }
        let kept = self.kept(rule);
        let least = self.rtts.add(now, rtt, kept);
        self.last = Some((now, rtt, least));
        self.stall = self.stall.filter(|(until, _)| now < *until);
        Sample { rtt: least, standing: self.stall.map_or(least, |(_, before)| lesser(least, before)) }
    }

    /// Handles an ACK at `now` for a segment that left with `flight` segments in flight; `average` is avgRTT in seconds. Returns the largest recent
    /// flight.
    pub fn on_flight(&mut self, now: f64, flight: f64, average: f64, rule: &Rule) -> f64 {
        let kept = greater(self.kept(rule), PART * average);
        self.flights.add(now, flight, kept)
    }

    /// The least time for which a sample is kept, in seconds.
    fn kept(&self, rule: &Rule) -> f64 {
        greater(KEPT * self.level, rule.least)
    }

    /// The longest wait for the next batch, in seconds.
    pub fn level(&self) -> f64 {
        self.level
    }

    /// The factor of alpha because of the noise, at a rate in segments a second.
    pub fn scale(&self, alpha: f64, rate: f64, rule: &Rule) -> f64 {
        let passes = rate * greater(self.level, rule.least) / alpha;
        (1.0 + passes * passes).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_near;

    const RULE: Rule = Rule { least: 0.001 };

    /// Segments that left every `apart` seconds for `seconds` and took 20 ms, and then waited until the time that `release` gives.
    fn batches(apart: f64, seconds: f64, mut release: impl FnMut(f64) -> f64) -> (Noise, f64, f64) {
        let (mut noise, mut rtt, mut least) = (Noise::new(), 0.0_f64, f64::INFINITY);
        for number in 0..(seconds / apart) as u32 {
            let left = f64::from(number) * apart;
            let came = release(left + 0.02);
            rtt = noise.on_rtt(came, came - left, 0.02, &RULE).rtt;
            least = least.min(rtt);
        }
        (noise, rtt, least)
    }

    /// On a grid of 4 ms the first packet of a batch waits for 4 ms and the last one does not wait.
    #[test]
    fn a_grid_is_as_long_as_it_is() {
        let (noise, rtt, _) = batches(1e-5, 3.0, |time| (time / 0.004).ceil() * 0.004);
        assert_near(noise.level(), 0.004, 1e-4);
        // The minimum over a batch and the one before is the sample of their last packet.
        assert_near(rtt, 0.02, 6e-4);
    }

    #[test]
    fn without_batches_there_is_none_and_each_sample_counts() {
        let (noise, rtt, _) = batches(1e-4, 3.0, |time| time);
        assert!(noise.level() < 1e-9, "{}", noise.level());
        assert_near(rtt, 0.02, 1e-9);
        // A queue that grows by a packet of 0.1 ms with each ACK. The minimum of 2 ms shows it 2 ms late.
        let mut noise = Noise::new();
        for number in 0..1000 {
            let number = f64::from(number);
            let rtt = noise.on_rtt(number * 3e-4, 0.02 + number * 1e-4, 0.02, &RULE).rtt;
            assert!((0.0..0.72e-3).contains(&(0.02 + number * 1e-4 - rtt)), "{rtt} at {number}");
        }
        assert!(noise.level() < 1e-4, "{}", noise.level());
    }

    /// A single stall of 50 ms is little noise: 50²/1000.
    #[test]
    fn what_happens_once_hardly_counts() {
        let (noise, ..) = batches(1e-4, 3.0, |time| if (2.5..2.55).contains(&time) { 2.55 } else { time });
        assert!((0.001..0.0025).contains(&noise.level()), "{}", noise.level());
        let (noise, ..) = batches(1e-4, 10.0, |time| if (2.5..2.55).contains(&time) { 2.55 } else { time });
        assert!(noise.level() < 1e-4, "{}", noise.level());
    }

    /// The first packet of a batch has waited for 4 ms and counts as the last one of the batch before, which has waited for next to nothing.
    #[test]
    fn no_sample_is_worse_than_the_best_of_a_batch() {
        let (mut noise, mut most) = (Noise::new(), 0.0_f64);
        for number in 0..300_000 {
            let left = f64::from(number) * 1e-5;
            let came = ((left + 0.02) / 0.004).ceil() * 0.004;
            let rtt = noise.on_rtt(came, came - left, 0.02, &RULE).rtt;
            most = if left > 1.0 { most.max(rtt) } else { 0.0 };
        }
        assert_near(most, 0.02, 6e-4);
    }

    /// Packets 0.1 ms apart, a path of 20 ms, and a stall of 50 ms, so that 500 samples come at once, of 70 to 20 ms.
    #[test]
    fn no_stall_stands_and_a_queue_does() {
        let (mut noise, mut most) = (Noise::new(), Sample { rtt: 0.0, standing: 0.0 });
        for number in 0..20_000 {
            let left = f64::from(number) * 1e-4;
            let could = left + 0.02;
            let came = if (1.0..1.05).contains(&could) { 1.05 } else { could };
            let Sample { rtt, standing } = noise.on_rtt(came, came - left, 0.02, &RULE);
            most = Sample { rtt: most.rtt.max(rtt), standing: most.standing.max(standing) };
        }
        assert_near(most.rtt, 0.07, 2e-4);
        assert_near(most.standing, 0.02, 1e-9);
        // From 2 s on there are 3 ms of queue. A gap of 3.1 ms that raises a sample may be a stall, but only for its length and the time of the minimum.
        let first_seen = (0..400).find(|number| {
            let came = 2.023 + f64::from(*number) * 1e-4;
            noise.on_rtt(came, 0.023, 0.02, &RULE).standing > 0.0229
        });
        assert!((25..=62).contains(&first_seen.unwrap()), "{first_seen:?} packets late");
    }

    /// A batch of forty every 4 ms, with a window of 200: the first left with 161 in flight, the last with 200.
    #[test]
    fn the_window_is_what_was_in_flight_at_the_end_of_a_batch() {
        let mut noise = Noise::new();
        for batch in 0..20 {
            for segment in 1..=40 {
                let now = 0.004 * f64::from(batch);
                let old = noise.on_flight(now, f64::from(160 + segment), 0.02, &RULE);
                assert_near(old, if batch == 0 { f64::from(160 + segment) } else { 200.0 }, 0.0);
            }
        }
        // Then half of it: after half of a round trip the larger flight is forgotten.
        assert_near(noise.on_flight(0.080, 100.0, 0.02, &RULE), 200.0, 0.0);
        assert_near(noise.on_flight(0.087, 100.0, 0.02, &RULE), 100.0, 0.0);
    }

    /// 10,000 segments a second and 4 ms: 40 segments pass, which makes 50 with an alpha of 30.
    #[test]
    fn alpha_is_the_root_of_both_squares() {
        let (noise, ..) = batches(1e-5, 3.0, |time| (time / 0.004).ceil() * 0.004);
        assert_near(30.0 * noise.scale(30.0, 10_000.0, &RULE), 50.0, 0.5);
        assert_near(30.0 * Noise::new().scale(30.0, 40_000.0, &RULE), 50.0, 1e-9);
        assert_near(Noise::new().scale(30.0, 0.0, &RULE), 1.0, 0.0);
    }
}
