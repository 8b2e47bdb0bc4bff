//! A histogram of durations in constant memory. It has sixteen classes per doubling, so a quantile is at most a sixteenth too
//! large.

use std::time::Duration;

/// A histogram of durations.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    longest: u64,
}

/// Classes per doubling.
const CLASSES: u64 = 16;

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; class(u64::MAX) + 1], total: 0, longest: 0 }
    }
}

impl Histogram {
    /// Adds a duration.
    pub fn add(&mut self, span: Duration) {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        self.counts[class(nanos)] += 1;
        self.total += 1;
        self.longest = self.longest.max(nanos);
    }

    /// The number of durations.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The longest duration.
    pub fn longest(&self) -> Option<Duration> {
        (self.total > 0).then(|| Duration::from_nanos(self.longest))
    }

    /// The duration that this share (0 to 1) of the durations does not exceed. It is at most a sixteenth too large, and never
    /// above the longest.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let rank = (share * self.total as f64).ceil().max(1.0) as u64;
        let mut before = 0;
        let class = self.counts.iter().position(|count| {
            before += count;
            before >= rank
        })?;
        Some(Duration::from_nanos(last(class).min(self.longest)))
    }
}

/// The class of a number. Each number below 16 has its own class. Above, the class consists of the position of the highest bit
/// and the next four bits.
fn class(nanos: u64) -> usize {
    if nanos < CLASSES {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - CLASSES.ilog2();
    (u64::from(shift) * CLASSES + (nanos >> shift)) as usize
}

/// The largest number of a class.
fn last(class: usize) -> u64 {
    let class = class as u64;
    if class < 2 * CLASSES {
        return class;
    }
    let shift = class / CLASSES - 1;
    let first = (class % CLASSES + CLASSES) << shift;
    first + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_at_most_a_sixteenth_too_large() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        (1..=1000).for_each(|micros| histogram.add(Duration::from_micros(micros)));
        for (share, exact) in [(0.5, 500), (0.99, 990), (0.001, 1)] {
            let (exact, found) = (Duration::from_micros(exact), histogram.quantile(share).expect("there are some"));
            assert!(exact <= found && found <= exact + exact / 16, "{share}: {found:?}, not {exact:?}");
        }
        assert_eq!(histogram.quantile(1.0), Some(Duration::from_millis(1)));
        assert_eq!((histogram.count(), histogram.longest()), (1000, Some(Duration::from_millis(1))));
    }

    #[test]
    fn every_number_is_in_the_class_that_ends_with_or_after_it() {
        for nanos in (0..200).chain([1 << 20, (1 << 20) + 1, u64::MAX / 3, u64::MAX]) {
            let class = class(nanos);
            assert!(nanos <= last(class), "{nanos}");
            assert!(class == 0 || last(class - 1) < nanos, "{nanos}");
        }
    }
}
