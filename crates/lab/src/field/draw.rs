//! The distributions of the field.

use anabranch_sim::Stream;

/// Draws from one stream. What it returns has three digits, so that a scenario can be read; it is the same on every machine, as `libm` computes in software.
pub(super) struct Draw {
    stream: Stream,
    /// The first numbers, in place of the stream's.
    given: Vec<f64>,
    /// All numbers so far, each from 0 to 1.
    used: Vec<f64>,
}

impl Draw {
    pub(super) fn new(stream: Stream) -> Self {
        Self::like(Vec::new(), stream)
    }

    /// The draw with these [numbers](Self::numbers), and those of the stream if it needs more.
    pub(super) fn like(given: Vec<f64>, stream: Stream) -> Self {
        Self { stream, given, used: Vec::new() }
    }

    /// The numbers that it has used.
    pub(super) fn numbers(self) -> Vec<f64> {
        self.used
    }

    /// The next number, below 1.
    fn number(&mut self) -> f64 {
        let number = self.given.get(self.used.len()).copied().unwrap_or_else(|| self.stream.uniform());
        self.used.push(number);
        number
    }

    /// Uniform in the logarithm, from `low` to `high`.
    pub(super) fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        rounded(low * libm::pow(high / low, self.number()))
    }

    /// Uniform from `low` to `high`.
    pub(super) fn uniform(&mut self, low: f64, high: f64) -> f64 {
        rounded(low + (high - low) * self.number())
    }

    /// One of them, each as likely as the others.
    pub(super) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// A number below `count`.
    pub(super) fn below(&mut self, count: usize) -> usize {
        ((self.number() * count as f64) as usize).min(count - 1)
    }

    /// The seed of a scenario.
    pub(super) fn seed(&mut self) -> u64 {
        (self.number() * f64::from(1 << 30)) as u64
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

    /// The numbers of a draw give the same values again; a change of one changes one.
    #[test]
    fn draw_like_another_has_its_values() {
        let values = |draw: &mut Draw| {
            [draw.uniform(0.0, 9.0), draw.log_uniform(1.0, 9.0), draw.below(9) as f64].map(|value| value.to_string())
        };
        let stream = || Substreams::new(1).stream("test");
        let mut first = Draw::new(stream());
        let expected = values(&mut first);
        let mut numbers = first.numbers();
        assert_eq!(values(&mut Draw::like(numbers.clone(), stream())), expected);
        numbers[1] = 0.0;
        assert_eq!(values(&mut Draw::like(numbers, stream())), [&expected[0], "1", &expected[2]]);
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
