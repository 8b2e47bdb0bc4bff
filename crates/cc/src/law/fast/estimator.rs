//! What FAST knows of its path: the least RTT and a smoothed one.
//!
//! ```text
//! each RTT sample:  baseRTT ← min(baseRTT, rtt)
//!                   avgRTT  ← avgRTT + (rtt − avgRTT) · min(weight, 3/w)      (the first sample: avgRTT ← rtt)
//! ```
//!
//! Citation: fast-2006 sec. III-B; ns-2.35's FAST module for the weight.
//!
//! Differs from the paper in:
//! * The weight is a parameter. The paper has 1/4, the module 1/256: with the module's, avgRTT follows 256 ACKs behind where
//!   the window is less than 768 segments, and not a round trip behind as the paper wants.
//! * No sample is taken in fast recovery; the caller sees to it, as the module does.

use crate::number::{greater, is_known, lesser};

/// How much one RTT sample counts in avgRTT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// At most this much; more than zero, at most one.
    pub most: f64,
}

impl Weights {
    /// At most this over the window in segments, so that avgRTT spans a round trip however large the window is: the paper and the module
    /// agree on it.
    const PER_WINDOW: f64 = 3.0;

    /// Of the ns-2 module with which four of the five papers worked: 3/w is the smaller one above 768 segments.
    pub const NS2: Self = Self { most: 1.0 / 256.0 };

    /// Of fast-2006 sec. III-B: 3/w is the smaller one above 12 segments.
    pub const PAPER: Self = Self { most: 0.25 };

    /// The weight of one sample while the window is `window` segments.
    pub fn at(&self, window: f64) -> f64 {
        lesser(self.most, Self::PER_WINDOW / window)
    }
}

/// baseRTT and avgRTT, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimator {
    /// Infinite before the first sample and after it was forgotten.
    base: f64,
    /// Infinite before the first sample and after it was forgotten.
    average: f64,
}

impl Estimator {
    /// An estimator without samples.
    pub const fn new() -> Self {
        Self { base: f64::INFINITY, average: f64::INFINITY }
    }

    /// A sample of `rtt` seconds, more than zero, arrived while the window was `window` segments.
    pub fn on_rtt(&mut self, rtt: f64, window: f64, weights: &Weights) {
        debug_assert!(rtt > 0.0 && rtt.is_finite(), "a sample of {rtt} s");
        self.base = lesser(self.base, rtt);
        self.average =
            if is_known(self.average) { self.average + (rtt - self.average) * weights.at(window) } else { rtt };
    }

    /// Whether there has been a sample since everything was forgotten.
    pub fn is_known(&self) -> bool {
        is_known(self.base) && is_known(self.average)
    }

    /// baseRTT in seconds; infinite if not known.
    pub fn base(&self) -> f64 {
        self.base
    }

    /// avgRTT in seconds; infinite if not known.
    pub fn average(&self) -> f64 {
        self.average
    }

    /// What is thought to be queueing delay, in seconds; zero if nothing is known. Below zero only after
    /// [`Self::forget_base`] alone.
    pub fn queueing(&self) -> f64 {
        if self.is_known() { self.average - self.base } else { 0.0 }
    }

    /// Nothing was under way for a while, so nothing of it is queued: avgRTT is baseRTT.
    pub fn rest(&mut self) {
        self.average = self.base;
    }

    /// Forgets baseRTT and avgRTT: the next sample starts both.
    pub fn forget(&mut self) {
        *self = Self::new();
    }

    /// Forgets baseRTT alone. avgRTT then stays below the new baseRTT for many samples, and the law takes that for an empty
    /// queue: see [`super::base_rtt`].
    pub fn forget_base(&mut self) {
        self.base = f64::INFINITY;
    }

    /// Holds baseRTT to at least `least` seconds; what is not known is infinite, and remains so.
    pub fn raise_base(&mut self, least: f64) {
        self.base = greater(self.base, least);
    }

    /// Holds baseRTT to at most `most` seconds, if it is known.
    pub fn bound_base(&mut self, most: f64) {
        if is_known(self.base) {
            self.base = lesser(self.base, most);
        }
    }
}

impl Default for Estimator {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_near;

    /// The module's weight is 1/256 up to 768 segments, where 3/w meets it; the paper's 1/4 up to 12.
    #[test]
    fn the_window_takes_over_where_both_weights_meet() {
        for (weights, meet) in [(Weights::NS2, 768.0), (Weights::PAPER, 12.0)] {
            assert_near(weights.at(1.0), weights.most, 0.0);
            assert_near(weights.at(meet), weights.most, 0.0);
            assert_near(weights.at(2.0 * meet), weights.most / 2.0, 0.0);
        }
    }

    /// 100 ms, then 228 ms: 100 + 128/256 = 100.5 ms.
    #[test]
    fn the_first_sample_starts_both() {
        let mut estimator = Estimator::new();
        assert!(!estimator.is_known());
        estimator.on_rtt(0.1, 10.0, &Weights::NS2);
        assert_near(estimator.average(), 0.1, 0.0);
        estimator.on_rtt(0.228, 10.0, &Weights::NS2);
        assert_near(estimator.average(), 0.1005, 1e-12);
        assert_near(estimator.base(), 0.1, 0.0);
        assert_near(estimator.queueing(), 0.0005, 1e-9);
    }

    /// Without avgRTT the queue seems empty, or less than that: 100 ms on average over a base of 376 ms.
    #[test]
    fn a_base_forgotten_alone_looks_like_less_than_no_queue() {
        let mut estimator = Estimator::new();
        estimator.on_rtt(0.1, 10.0, &Weights::NS2);
        let mut alone = estimator;
        alone.forget_base();
        alone.on_rtt(0.356, 10.0, &Weights::NS2);
        assert_near(alone.queueing(), 0.101 - 0.356, 1e-12);
        estimator.forget();
        estimator.on_rtt(0.356, 10.0, &Weights::NS2);
        assert_near(estimator.average(), 0.356, 0.0);
    }
}
