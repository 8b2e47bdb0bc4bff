//! FAST's estimates of the path: the least RTT and a smoothed RTT.
//!
//! ```text
//! each RTT sample:  baseRTT ← min(baseRTT, rtt)
//!                   avgRTT  ← avgRTT + (rtt − avgRTT) · min(weight, 3/w)      (the first sample: avgRTT ← rtt)
//! ```
//!
//! Citation: fast-2006 sec. III-B; ns-2.35's FAST module for the weight.
//!
//! Differs from the paper in:
//! * The weight is a parameter. The paper has 1/4, the module 1/256. With the module's weight and a window below 768 segments, avgRTT
//!   lags behind by 256 ACKs, not by a round trip as the paper wants.
//! * The caller takes no sample in fast recovery, as the module.

use crate::number::{is_known, lesser};

/// The weight of one RTT sample in avgRTT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights {
    /// The largest weight; more than zero, at most one.
    pub most: f64,
}

impl Weights {
    /// The weight is at most this number divided by the window in segments, so that avgRTT spans a round trip for any large window. The paper and
    /// the module agree on it.
    const PER_WINDOW: f64 = 3.0;

    /// The weight of the ns-2 module, which four of the five papers used: 3/w is smaller above 768 segments.
    pub const NS2: Self = Self { most: 1.0 / 256.0 };

    /// The weight of fast-2006 sec. III-B: 3/w is smaller above 12 segments.
    pub const PAPER: Self = Self { most: 0.25 };

    /// The weight of one sample while the window is `window` segments.
    pub fn at(&self, window: f64) -> f64 {
        lesser(self.most, Self::PER_WINDOW / window)
    }
}

/// baseRTT and avgRTT, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimator {
    /// Infinite before the first sample and after a reset.
    base: f64,
    /// Infinite before the first sample and after a reset.
    average: f64,
}

impl Estimator {
    /// An estimator without samples.
    pub const fn new() -> Self {
        Self { base: f64::INFINITY, average: f64::INFINITY }
    }

    /// Takes a sample of `rtt` seconds, more than zero, at a window of `window` segments.
    pub fn on_rtt(&mut self, rtt: f64, window: f64, weights: &Weights) {
        debug_assert!(rtt > 0.0 && rtt.is_finite(), "a sample of {rtt} s");
        self.base = lesser(self.base, rtt);
        self.average =
            if is_known(self.average) { self.average + (rtt - self.average) * weights.at(window) } else { rtt };
    }

    /// Whether there was a sample since the last reset.
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

    /// The estimated queueing delay in seconds; zero before the first sample. Below zero only after [`Self::forget_base`] alone.
    pub fn queueing(&self) -> f64 {
        if self.is_known() { self.average - self.base } else { 0.0 }
    }

    /// Resets baseRTT and avgRTT: the next sample starts both.
    pub fn forget(&mut self) {
        *self = Self::new();
    }

    /// Resets baseRTT alone. Then avgRTT stays below the new baseRTT for many samples, and the law takes that for an empty
    /// queue: see [`super::base_rtt`].
    pub fn forget_base(&mut self) {
        self.base = f64::INFINITY;
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

    /// After a reset of baseRTT alone the queueing delay is negative: an average of 100 ms over a base of 376 ms.
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
