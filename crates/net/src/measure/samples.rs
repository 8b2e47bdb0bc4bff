//! Quantiles of values without a limit of their number, in bounded memory.

use std::time::Duration;

/// Quantiles of times. With more than 8,192 values they are those of a part, evenly spread over the measurement; the others are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// The number of values. Without any, the times are zero.
    pub count: u64,
    /// The mean of all values, those that are not kept included.
    pub mean: Duration,
    /// The least value.
    pub least: Duration,
    /// The median: the value that half of them do not exceed.
    pub p50: Duration,
    /// The value that 95 % do not exceed.
    pub p95: Duration,
    /// The value that 99 % do not exceed.
    pub p99: Duration,
    /// The largest value.
    pub largest: Duration,
}

/// Values in nanoseconds, of which each `step`th is kept. A full list drops every second one, and doubles the step.
#[derive(Debug)]
pub(super) struct Samples {
    kept: Vec<i64>,
    step: u64,
    count: u64,
    sum: i128,
    least: i64,
    largest: i64,
}

impl Samples {
    pub(super) fn new() -> Self {
        Self { kept: vec![], step: 1, count: 0, sum: 0, least: i64::MAX, largest: i64::MIN }
    }

    pub(super) fn add(&mut self, value: i64) {
        if self.count.is_multiple_of(self.step) {
            if self.kept.len() == KEPT {
                let mut place = 0;
                self.kept.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
                self.step *= 2;
            }
            // The list was full at a multiple of twice the step, as KEPT is even.
            self.kept.push(value);
        }
        self.count += 1;
        self.sum += i128::from(value);
        (self.least, self.largest) = (self.least.min(value), self.largest.max(value));
    }

    /// The least value.
    pub(super) fn least(&self) -> Option<i64> {
        (self.count > 0).then_some(self.least)
    }

    /// The quantiles of the values themselves. Negative ones count as zero.
    pub(super) fn quantiles(&self) -> Quantiles {
        self.above(0)
    }

    /// The quantiles of what the values have above the least one.
    pub(super) fn variation(&self) -> Quantiles {
        self.above(if self.count > 0 { self.least } else { 0 })
    }

    fn above(&self, base: i64) -> Quantiles {
        if self.count == 0 {
            return Quantiles::default();
        }
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        let span = |value: i64| Duration::from_nanos(i128::from(value).saturating_sub(base.into()).max(0) as u64);
        let quantile = |part: f64| span(sorted[((sorted.len() - 1) as f64 * part).round() as usize]);
        let mean = self.sum / i128::from(self.count) - i128::from(base);
        Quantiles {
            count: self.count,
            mean: Duration::from_nanos(mean.max(0) as u64),
            least: span(self.least),
            p50: quantile(0.5),
            p95: quantile(0.95),
            p99: quantile(0.99),
            largest: span(self.largest),
        }
    }
}

/// The values that are kept at most, 64 kB: a hundred of them are above the 99th percentile of a long measurement.
const KEPT: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    /// A million values from 1 to 1,000,000 µs: the memory stays, and each quantile is its own part of a second, within two of the steps by which they are kept.
    #[test]
    fn quantiles_of_a_million_values_are_within_two_steps() {
        let mut samples = Samples::new();
        (1..=1_000_000).for_each(|value| samples.add(value * 1000));
        assert!(samples.kept.len() <= KEPT && samples.kept.capacity() <= KEPT, "{}", samples.kept.len());
        let quantiles = samples.quantiles();
        assert_eq!((quantiles.count, quantiles.least), (1_000_000, Duration::from_micros(1)));
        assert_eq!((quantiles.largest, quantiles.mean), (Duration::from_secs(1), Duration::from_nanos(500_000_500)));
        for (found, expected) in [(quantiles.p50, 500), (quantiles.p95, 950), (quantiles.p99, 990)] {
            let off = found.abs_diff(Duration::from_millis(expected));
            assert!(off <= Duration::from_micros(2 * 256), "{found:?}, {expected} ms");
        }
    }

    #[test]
    fn few_values_are_exact() {
        let mut samples = Samples::new();
        [5, 1, 4, 2, 3].into_iter().for_each(|value| samples.add(value));
        let of = |nanos| Duration::from_nanos(nanos);
        let quantiles = samples.quantiles();
        assert_eq!((quantiles.least, quantiles.p50, quantiles.p99, quantiles.largest), (of(1), of(3), of(5), of(5)));
        let variation = samples.variation();
        assert_eq!((variation.least, variation.p50, variation.mean, variation.largest), (of(0), of(2), of(2), of(4)));
        assert_eq!(Samples::new().variation(), Quantiles::default());
    }

    /// Times of a hostile clock.
    #[test]
    fn largest_and_least_numbers_overflow_nothing() {
        let mut samples = Samples::new();
        [i64::MAX, i64::MIN, 0].into_iter().for_each(|value| samples.add(value));
        assert_eq!(samples.variation().largest, Duration::from_nanos(u64::MAX));
        assert_eq!(samples.quantiles().least, Duration::ZERO);
    }
}
