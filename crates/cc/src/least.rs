//! The minimum of the samples in a window of time, with bounded memory.

use std::collections::VecDeque;

use anabranch_units::{Span, Time};

/// Candidates for the minimum; later ones are larger. Of several that are close in time one is kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowedMin {
    samples: VecDeque<(Time, f64)>,
}

impl WindowedMin {
    /// Adds a sample. Returns the minimum of the last `window`, this sample included; the length of the window is exact to a sixteenth.
    pub(crate) fn update(&mut self, now: Time, window: Span, sample: f64) -> f64 {
        while self.samples.back().is_some_and(|&(_, last)| last >= sample) {
            self.samples.pop_back();
        }
        let step = window / PARTS;
        if self.samples.back().is_none_or(|&(time, _)| now.since(time) > step) {
            self.samples.push_back((now, sample));
        }
        self.forget(now, window);
        // The samples that were not kept may be the only ones in the window.
        if self.samples.is_empty() {
            self.samples.push_back((now, sample));
        }
        self.min()
    }

    /// Forgets the samples older than `window`.
    pub(crate) fn forget(&mut self, now: Time, window: Span) {
        while self.samples.front().is_some_and(|&(time, _)| now.since(time) > window) {
            self.samples.pop_front();
        }
    }

    /// The minimum at the last sample; infinite before the first.
    pub(crate) fn min(&self) -> f64 {
        self.samples.front().map_or(f64::INFINITY, |&(_, sample)| sample)
    }
}

/// The limit of candidates, less one.
const PARTS: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn the_least_is_forgotten_after_the_window() {
        let mut least = WindowedMin::default();
        let window = Span::from_millis(100);
        let seen = [(0, 5), (10, 3), (50, 7), (110, 4), (111, 9), (300, 8)]
            .map(|(ms, sample)| least.update(at(ms), window, f64::from(sample)) as u32);
        assert_eq!(seen, [5, 3, 3, 3, 4, 8]);
    }

    /// RTTs that rise for ever, a sample each microsecond.
    #[test]
    fn few_samples_are_kept() {
        let mut least = WindowedMin::default();
        for us in 0..1_000_000 {
            let now = Time::ZERO + Span::from_micros(us);
            let sample = us as f64;
            let min = least.update(now, Span::from_millis(100), sample);
            assert!(min <= sample && sample - min <= 100_000.0 && least.samples.len() <= 18);
            assert!(us < 100_000 || sample - min >= 93_000.0, "{min} at {us}");
        }
    }
}
