//! Noise: delay that is no queue. Where ACKs come in batches, or a host wakes up late, each waits for the next occasion.
//!
//! ```text
//! each sample:  gap   ← time since the ACK before
//!               jump  ← rtt − rtt of the ACK before, between zero and gap; if that is most of gap, all of gap
//!               noise ← noise + (jump² − noise · gap) / span
//! rtt:          the least sample of late: of one to two times the larger of `least` and 1.5 noise
//! after a gap:  for as long as that was, at most a quarter of avgRTT, avgRTT has no sample above the one before it
//! alpha:        alpha · √(1 + (rate · max(noise, least) / alpha)²)
//! ```
//!
//! Why: what was held back until a batch was full came at its own pace before. So an RTT rises all at once by what the first of a
//! batch has waited, and no more than that can have passed since the batch before. A queue grows packet by packet. What is missing to all of the gap
//! is how far apart the two segments left, and that the law knows. How long something has to wait that comes at a random moment, at the most, is the mean of
//! the squares of these jumps over time: `every` on a grid, twice the mean on exponential times, and next to nothing for something that
//! happens once.
//!
//! The last of a batch has waited least, so it tells of the path. A delay J that remains, whatever it comes from, holds FAST to the rate
//! alpha/J: 20 segments of 1000 B and 3 ms are 53 Mbit/s. So alpha is at least what passes in the time that noise takes. It is the
//! root of a sum of squares and not the larger of two, because with alpha in proportion to the rate any division among flows would be one at
//! rest: this one grows more slowly than the rate, and equal flows have equal parts.
//!
//! What is in flight when a segment leaves is short of the window by a batch, too, if it is the first that a batch of ACKs lets go, and the
//! window if it is the last. So `old` is the most that was in flight when a segment left that was acknowledged of late.
//!
//! Noise is a mean, and a host that stalls twice a second hardly adds to it: then all that came meanwhile comes at once, up to a stall later than it
//! could, and the samples of half a round trip drive avgRTT up by as much. A queue is still there when a stall is over. So what follows a gap that a sample
//! rises by counts as what was before it.
//!
//! Citation: none.
//!
//! Limits. Where bursts that the host itself makes keep step with the grid, all samples are equal, and nothing jumps: a pacer is to spread
//! what leaves. And what a stall takes from a path whose queue is shorter is lost, whatever the window does.

use anabranch_units::Span;

use crate::number::{greater, is_known, lesser};
use crate::settings::{Choice, Fields};

/// How noise is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// So much there always is, in seconds; more than zero.
    pub least: f64,
}

impl Choice for Option<Rule> {
    const KINDS: &'static [(&'static str, Self)] = &[("off", None), ("on", Some(Rule { least: 0.001 }))];

    fn visit(&mut self, fields: &mut Fields<'_>) {
        if let Some(Rule { least }) = self {
            let help =
                "alpha is at least what passes in the time for which ACKs are held back without a queue, or in this";
            fields.seconds("least", least, Span::from_micros(1)..=Span::from_secs(1), help);
        }
    }
}

/// Over how many seconds it is measured: a hundred batches of 10 ms.
const SPAN: f64 = 1.0;

/// A jump of more than this share of the gap is a batch that ends: less may be a queue that grows while little leaves.
const MOST: f64 = 0.5;

/// How many times the noise samples are kept for the least of them: a batch is to be among them though one came earlier than most.
const KEPT: f64 = 1.5;

/// What is known of one path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Noise {
    /// The last sample: when it came, what it was, and the least of late then, in seconds.
    last: Option<(f64, f64, f64)>,
    /// Over how many seconds `level` was measured; at most [`SPAN`].
    measured: f64,
    /// Seconds.
    level: f64,
    /// Samples in seconds.
    rtts: Recent,
    /// The last gap that a sample rose by: until when what it held back may come, and the least sample before it, in seconds.
    stall: Option<(f64, f64)>,
    /// What was in flight, in segments, below zero.
    flights: Recent,
}

/// A sample without its noise, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// The least of late.
    pub rtt: f64,
    /// That without what a stall held back: for avgRTT.
    pub standing: f64,
}

/// The least of late: of one to two spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recent {
    /// When the present span began, in seconds, the least in it and in the one before.
    since: f64,
    least: f64,
    before: f64,
}

/// As `old` counts the most of one to two of these parts of an RTT, and for one of them at the most a stall is believed in.
const PART: f64 = 0.25;

impl Noise {
    /// A filter without samples.
    pub fn new() -> Self {
        Self::default()
    }

    /// A sample of `rtt` seconds arrived at `now`; `average` is avgRTT in seconds, infinite if it is not known.
    #[inline]
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
        let least = self.rtts.on_value(now, rtt, kept);
        self.last = Some((now, rtt, least));
        self.stall = self.stall.filter(|(until, _)| now < *until);
        Sample { rtt: least, standing: self.stall.map_or(least, |(_, before)| lesser(least, before)) }
    }

    /// An ACK at `now` of a segment that left with so much in flight; `average` is avgRTT in seconds. Returns the most of late.
    #[inline]
    pub fn on_flight(&mut self, now: f64, flight: f64, average: f64, rule: &Rule) -> f64 {
        let kept = greater(self.kept(rule), PART * average);
        -self.flights.on_value(now, -flight, kept)
    }

    /// For how many seconds what came is kept, at least.
    fn kept(&self, rule: &Rule) -> f64 {
        greater(KEPT * self.level, rule.least)
    }

    /// How long something has to wait for the next batch at the most, in seconds.
    pub fn level(&self) -> f64 {
        self.level
    }

    /// How many times alpha has to be as large for it, at a rate in segments a second.
    pub fn scale(&self, alpha: f64, rate: f64, rule: &Rule) -> f64 {
        let passes = rate * greater(self.level, rule.least) / alpha;
        (1.0 + passes * passes).sqrt()
    }
}

impl Recent {
    /// A minimum without samples.
    pub const fn new() -> Self {
        Self { since: f64::NEG_INFINITY, least: f64::INFINITY, before: f64::INFINITY }
    }

    /// A value at `now` seconds: the least of late.
    pub fn on_value(&mut self, now: f64, value: f64, span: f64) -> f64 {
        let age = now - self.since;
        if age >= span {
            let before = if age < 2.0 * span { self.least } else { f64::INFINITY };
            *self = Self { since: now, least: f64::INFINITY, before };
        }
        self.least = lesser(self.least, value);
        lesser(self.least, self.before)
    }
}

impl Default for Recent {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_near;

    const RULE: Rule = Rule { least: 0.001 };

    /// What left every `apart` seconds for `seconds` and took 20 ms, let out at the times that `release` says.
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

    /// On a grid of 4 ms the first of a batch waits for 4 ms and the last for nothing.
    #[test]
    fn a_grid_is_as_long_as_it_is() {
        let (noise, rtt, _) = batches(1e-5, 3.0, |time| (time / 0.004).ceil() * 0.004);
        assert_near(noise.level(), 0.004, 1e-4);
        // All of a batch and of the one before have the sample of their last one.
        assert_near(rtt, 0.02, 6e-4);
    }

    #[test]
    fn without_batches_there_is_none_and_each_sample_counts() {
        let (noise, rtt, _) = batches(1e-4, 3.0, |time| time);
        assert!(noise.level() < 1e-9, "{}", noise.level());
        assert_near(rtt, 0.02, 1e-9);
        // A queue that grows by a packet of 0.1 ms with each ACK, which the least of 2 ms shows 2 ms late.
        let mut noise = Noise::new();
        for number in 0..1000 {
            let number = f64::from(number);
            let rtt = noise.on_rtt(number * 3e-4, 0.02 + number * 1e-4, 0.02, &RULE).rtt;
            assert!((0.0..0.72e-3).contains(&(0.02 + number * 1e-4 - rtt)), "{rtt} at {number}");
        }
        assert!(noise.level() < 1e-4, "{}", noise.level());
    }

    /// A host that was away for 50 ms once is not noisy: 50²/1000.
    #[test]
    fn what_happens_once_hardly_counts() {
        let (noise, ..) = batches(1e-4, 3.0, |time| if (2.5..2.55).contains(&time) { 2.55 } else { time });
        assert!((0.001..0.0025).contains(&noise.level()), "{}", noise.level());
        let (noise, ..) = batches(1e-4, 10.0, |time| if (2.5..2.55).contains(&time) { 2.55 } else { time });
        assert!(noise.level() < 1e-4, "{}", noise.level());
    }

    /// The first of a batch has waited for 4 ms and counts as the last of the one before, which has waited for next to nothing.
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

    /// Packets 0.1 ms apart, 20 ms of path, and a host away for 50 ms, so that 500 samples come at once, of 70 to 20 ms.
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
        // From 2 s on 3 ms wait: a gap of 3.1 ms that a sample rises by may be a stall, but for so long only, and for what noise keeps.
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
        // Half of it, and in half of a round trip nobody remembers.
        assert_near(noise.on_flight(0.080, 100.0, 0.02, &RULE), 200.0, 0.0);
        assert_near(noise.on_flight(0.087, 100.0, 0.02, &RULE), 100.0, 0.0);
    }

    /// 10,000 segments a second and 4 ms: 40 pass, which with 30 of alpha's own makes 50.
    #[test]
    fn alpha_is_the_root_of_both_squares() {
        let (noise, ..) = batches(1e-5, 3.0, |time| (time / 0.004).ceil() * 0.004);
        assert_near(30.0 * noise.scale(30.0, 10_000.0, &RULE), 50.0, 0.5);
        assert_near(30.0 * Noise::new().scale(30.0, 40_000.0, &RULE), 50.0, 1e-9);
        assert_near(Noise::new().scale(30.0, 0.0, &RULE), 1.0, 0.0);
    }
}
