//! Sizes of messages: constant, or random with a heavy tail.

use anabranch_units::settings::{Fields, Flaw, Part, PartKind};

use crate::rng::Stream;

/// The sizes of messages in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizes {
    /// All have this size.
    Constant(u64),
    /// A Pareto distribution between two bounds: P(X > x) falls as x^-`shape`. Web traffic has a shape of 1.0 to 1.3 (Crovella
    /// and Bestavros, IEEE/ACM Transactions on Networking 5(6), 1997).
    Pareto {
        /// The shape: the smaller, the heavier the tail.
        shape: f64,
        /// The least size; at least 1.
        least: u64,
        /// The largest size; more than `least`.
        most: u64,
    },
}

impl Part for Sizes {
    const NAME: &'static str = "sizes";
    const HELP: &'static str = "The sizes of messages.";

    fn kinds() -> Vec<PartKind<Self>> {
        let kind = |word, help, default| PartKind { word, synonyms: &[], help, default };
        let pareto = Self::Pareto { shape: 0.0, least: 0, most: 0 };
        vec![
            kind("constant", "The same size for all.", Self::Constant(0)),
            kind("pareto", "A Pareto distribution between two bounds: heavy-tailed.", pareto),
        ]
    }

    fn visit(&mut self, fields: &mut Fields<'_>) {
        match self {
            Self::Constant(bytes) => fields.required().bytes("bytes", bytes, "The bytes of each"),
            Self::Pareto { shape, least, most } => {
                let help = "The shape, the exponent of the tail, such as 1.2: the smaller, the heavier the tail";
                fields.required().number("shape", shape, 0.0..=f64::MAX, "", help);
                fields.required().bytes("least", least, "The least size");
                fields.required().bytes("most", most, "The largest size");
            }
        }
    }

    fn check(&self) -> Result<(), Flaw> {
        let is_valid = match *self {
            Self::Constant(bytes) => bytes > 0,
            Self::Pareto { shape, least, most } => shape.is_finite() && shape > 0.0 && 0 < least && least < most,
        };
        let remedy = "use 1B or more; of a Pareto distribution `most` above `least`, `shape` above 0";
        if is_valid { Ok(()) } else { Err(Flaw::new("sizes", "there are no such sizes", remedy)) }
    }
}

impl Sizes {
    /// Whether sizes are random.
    pub fn is_random(self) -> bool {
        matches!(self, Self::Pareto { .. })
    }

    /// The next size.
    pub fn draw(self, stream: &mut Stream) -> u64 {
        match self {
            Self::Constant(bytes) => bytes,
            Self::Pareto { shape, least, most } => {
                let (low, high) = (least as f64, most as f64);
                // The inverse of P(X <= x) = (1 - (low/x)^shape) / (1 - (low/high)^shape).
                let left = 1.0 - stream.uniform() * (1.0 - libm::pow(low / high, shape));
                ((low * libm::pow(left, -1.0 / shape)) as u64).clamp(least, most)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Substreams;

    /// Half of all sizes between 1 kB and 1 MB with shape 1 are below x with (1 - 1/x)/(1 - 1/1000) = 1/2: 1.998 kB. One in a
    /// hundred is above 1/(1 - 0.99 · 0.999) = 91.0 kB. The mean is ln(1000)/(1 - 1/1000) = 6.915 kB.
    #[test]
    fn the_tail_is_that_of_pareto() {
        let sizes = Sizes::Pareto { shape: 1.0, least: 1000, most: 1_000_000 };
        let mut stream = Substreams::new(7).stream("test");
        let drawn: Vec<u64> = (0..200_000).map(|_| sizes.draw(&mut stream)).collect();
        let share_above = |bytes: u64| drawn.iter().filter(|size| **size > bytes).count() as f64 / drawn.len() as f64;
        // Five standard deviations of a share: 5 · sqrt(p (1 - p)/200 000).
        assert!((share_above(1998) - 0.5).abs() < 0.0056, "{}", share_above(1998));
        assert!((share_above(90_992) - 0.01).abs() < 0.0012, "{}", share_above(90_992));
        let mean = drawn.iter().sum::<u64>() as f64 / drawn.len() as f64;
        // The variance is about low · high: a deviation of 31.6 kB, and 0.07 kB for the mean of this many.
        assert!((mean - 6915.0).abs() < 350.0, "{mean}");
        assert!(drawn.iter().all(|size| (1000..=1_000_000).contains(size)));
    }

    /// P(X > x) with shape 2 between 1 and a million kB: one in a hundred is above 10 kB.
    #[test]
    fn the_shape_is_the_power() {
        let sizes = Sizes::Pareto { shape: 2.0, least: 1000, most: 1_000_000_000 };
        let mut stream = Substreams::new(8).stream("test");
        let above = (0..100_000).filter(|_| sizes.draw(&mut stream) > 10_000).count();
        assert!(above.abs_diff(1000) < 160, "{above}");
    }

    #[test]
    fn distributions_without_sizes_are_none() {
        assert!(Sizes::Constant(0).check().is_err());
        for (shape, least, most) in [(0.0, 1, 2), (f64::NAN, 1, 2), (1.0, 0, 2), (1.0, 2, 2)] {
            assert!(Sizes::Pareto { shape, least, most }.check().is_err(), "{shape} {least} {most}");
        }
    }
}
