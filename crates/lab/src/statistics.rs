//! Statistics of a handful of runs: mean, standard deviation, and two intervals that are often confused.

/// The values of one measure over several seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    values: Vec<f64>,
}

/// From `low` to `high`, both included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Interval {
    /// Whether `value` lies in it.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The part of it that is not below zero, for what cannot be there.
    #[must_use]
    pub fn from_zero(self) -> Self {
        Self { low: self.low.max(0.0), ..self }
    }
}

impl Sample {
    /// A sample of at least one value.
    ///
    /// # Panics
    /// If there is none.
    pub fn new(values: Vec<f64>) -> Self {
        assert!(!values.is_empty(), "a sample holds at least one value");
        Self { values }
    }

    /// The number of values.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// The values, in the order of their seeds.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The mean of the values.
    pub fn mean(&self) -> f64 {
        // The sum of equal values may have a rounding error, but a deterministic measure is compared to the bit.
        if self.values.iter().all(|value| value.to_bits() == self.values[0].to_bits()) {
            return self.values[0];
        }
        self.values.iter().sum::<f64>() / self.count() as f64
    }

    /// Their standard deviation (n - 1); zero of a single value.
    pub fn sd(&self) -> f64 {
        if self.count() < 2 {
            return 0.0;
        }
        let mean = self.mean();
        let squares: f64 = self.values.iter().map(|value| (value - mean) * (value - mean)).sum();
        (squares / (self.count() - 1) as f64).sqrt()
    }

    /// The 95 % confidence interval of the mean of many runs: `mean ± t sd / sqrt(n)`.
    pub fn confidence(&self) -> Interval {
        self.around(1.0 / self.count() as f64)
    }

    /// The 95 % prediction interval of one more run: `mean ± t sd sqrt(1 + 1/n)`. A number that a paper got from one run is
    /// compared with it.
    pub fn prediction(&self) -> Interval {
        self.around(1.0 + 1.0 / self.count() as f64)
    }

    fn around(&self, variance: f64) -> Interval {
        let (mean, sd) = (self.mean(), self.sd());
        if self.count() < 2 {
            return Interval { low: mean, high: mean };
        }
        let half = t_quantile(self.count() - 1) * sd * variance.sqrt();
        Interval { low: mean - half, high: mean + half }
    }
}

/// The 97.5 % quantile of Student's t with `freedom` degrees of freedom, within 0.001.
fn t_quantile(freedom: usize) -> f64 {
    assert!(freedom > 0, "a spread needs two values");
    if let Some(&quantile) = T_QUANTILES.get(freedom - 1) {
        return quantile;
    }
    // Cornish-Fisher expansion about the normal quantile (Abramowitz & Stegun 26.7.5); above 30 the next term is below 2e-5.
    const Z: f64 = 1.959_963_985;
    let (n, z3, z5) = (freedom as f64, Z * Z * Z, Z * Z * Z * Z * Z);
    Z + (z3 + Z) / (4.0 * n) + (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / (96.0 * n * n)
}

/// 1 to 30 degrees of freedom, as every table of Student's t prints them.
const T_QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "expected {expected} ± {tolerance}, got {value}");
    }

    /// 2, 4, 4, 4, 5, 5, 7, 9: mean 5, squares 9+1+1+1+0+0+4+16 = 32, variance 32/7.
    #[test]
    fn mean_and_sd_of_a_hand_worked_sample() {
        let sample = Sample::new(vec![2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_near(sample.mean(), 5.0, 1e-12);
        assert_near(sample.sd(), 2.138_090, 1e-6);
    }

    /// 1, 2, 3: mean 2, sd 1, t(2) = 4.303; confidence 4.303/sqrt(3) = 2.4843, prediction 4.303 * sqrt(4/3) = 4.9687.
    #[test]
    fn intervals_of_a_hand_worked_sample() {
        let sample = Sample::new(vec![1.0, 2.0, 3.0]);
        let confidence = sample.confidence();
        assert_near(confidence.low, 2.0 - 2.4843, 1e-4);
        assert_near(confidence.high, 2.0 + 2.4843, 1e-4);
        let prediction = sample.prediction();
        assert_near(prediction.low, 2.0 - 4.9687, 1e-4);
        assert_near(prediction.high, 2.0 + 4.9687, 1e-4);
    }

    #[test]
    fn one_value_has_no_spread() {
        let sample = Sample::new(vec![0.1]);
        assert_eq!(sample.prediction(), Interval { low: 0.1, high: 0.1 });
        assert_near(sample.sd(), 0.0, 0.0);
    }

    /// Adding 0.1 three times gives 0.30000000000000004: the mean of equal values must be that value.
    #[test]
    fn equal_values_have_their_value_as_mean() {
        assert_eq!(Sample::new(vec![0.1; 3]).mean().to_bits(), 0.1_f64.to_bits());
    }

    /// Printed tables: t(29) 2.045, t(40) 2.021, t(60) 2.000, t(120) 1.980, t(1000) 1.962.
    #[test]
    fn t_quantiles_as_printed() {
        for (freedom, printed) in
            [(1, 12.706), (29, 2.045), (30, 2.042), (40, 2.021), (60, 2.000), (120, 1.980), (1000, 1.962)]
        {
            assert_near(t_quantile(freedom), printed, 0.0006);
        }
    }

    #[test]
    fn ends_belong_to_an_interval() {
        let interval = Interval { low: 1.0, high: 2.0 };
        assert!(interval.contains(1.0) && interval.contains(2.0));
        assert!(!interval.contains(0.999) && !interval.contains(2.001));
    }
}
