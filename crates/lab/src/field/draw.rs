//! The distributions of the field.

use anabranch_sim::Stream;

/// Draws from one stream. What it returns has three digits, so that a scenario can be read; it is the same on every machine, as `libm` computes in software.
pub(super) struct Draw {
    stream: Stream,
}

impl Draw {
    pub(super) fn new(stream: Stream) -> Self {
        Self { stream }
    }

    /// Uniform in the logarithm, from `low` to `high`.
    pub(super) fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        rounded(low * libm::pow(high / low, self.stream.uniform()))
    }

    /// Uniform from `low` to `high`.
    pub(super) fn uniform(&mut self, low: f64, high: f64) -> f64 {
        rounded(low + (high - low) * self.stream.uniform())
    }

    /// One of them, each as likely as the others.
    pub(super) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// A number below `count`.
    pub(super) fn below(&mut self, count: usize) -> usize {
        ((self.stream.uniform() * count as f64) as usize).min(count - 1)
    }

    /// The seed of a scenario.
    pub(super) fn seed(&mut self) -> u64 {
        (self.stream.uniform() * f64::from(1 << 30)) as u64
    }
}

/// To three digits.
fn rounded(value: f64) -> f64 {
    let digits = 2.0 - libm::floor(libm::log10(value.abs().max(1e-9)));
    let scale = libm::pow(10.0, digits);
    libm::round(value * scale) / scale
}

#[cfg(test)]
mod tests {
    use anabranch_sim::Substreams;

    use super::*;

    #[test]
    fn values_have_three_digits() {
        assert_eq!([123.456, 0.0123456, 99.96].map(rounded).map(|value| value.to_string()), ["123", "0.0123", "100"]);
    }

    #[test]
    fn log_uniform_covers_each_decade_alike() {
        let mut draw = Draw::new(Substreams::new(1).stream("test"));
        let mut counts = [0; 3];
        for _ in 0..3000 {
            let value = draw.log_uniform(1.0, 1000.0);
            assert!((1.0..=1000.0).contains(&value), "{value}");
            counts[(libm::log10(value) as usize).min(2)] += 1;
        }
        // 1000 each, with a standard deviation of 26.
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
    }
}
