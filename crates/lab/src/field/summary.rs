//! Statistics of the figures of many draws.

use serde::Serialize;

/// A column of a family's table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Column {
    /// The position of the figure.
    pub figure: usize,
    /// The statistic of its values.
    pub statistic: Statistic,
}

/// A statistic of the values of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// The arithmetic mean.
    Mean,
    /// The value that this share of the draws does not exceed.
    Quantile(f64),
    /// The share of draws with a value from the first to the second number.
    Within(f64, f64),
}

impl Statistic {
    /// Computes it; NaN of no values.
    pub fn of(self, values: &[f64]) -> f64 {
        match self {
            Self::Mean => values.iter().sum::<f64>() / values.len() as f64,
            Self::Quantile(share) => quantile(values, share),
            Self::Within(low, high) => {
                values.iter().filter(|value| (low..=high).contains(*value)).count() as f64 / values.len() as f64
            }
        }
    }

    /// Its name in a table: `p10`, `mean`, `in 0.3..0.7`.
    pub fn name(self) -> String {
        match self {
            Self::Mean => "mean".to_owned(),
            Self::Quantile(share) => format!("p{:.0}", 100.0 * share),
            Self::Within(low, high) => format!("in {low}..{high}"),
        }
    }
}

/// The quantile by linear interpolation between the order statistics, the k-th of n at k/(n + 1), as the exclusive method of Python's `statistics.quantiles`.
fn quantile(values: &[f64], share: f64) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (share * (sorted.len() + 1) as f64 - 1.0).clamp(0.0, (sorted.len() - 1) as f64);
    let below = place as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `statistics.quantiles(range(1, 20), n=10)` of Python is 2, 4, ..., 18.
    #[test]
    fn quantiles_are_those_of_python() {
        let values: Vec<f64> = (1..20).rev().map(f64::from).collect();
        let quantiles = [0.1, 0.5, 0.9].map(|share| quantile(&values, share));
        assert!(
            quantiles.iter().zip([2.0, 10.0, 18.0]).all(|(ours, theirs)| (ours - theirs).abs() < 1e-12),
            "{quantiles:?}"
        );
        assert_eq!(quantile(&[3.0], 0.05).to_bits(), 3.0_f64.to_bits());
    }

    #[test]
    fn a_share_counts_both_ends() {
        let within = Statistic::Within(0.3, 0.7).of(&[0.3, 0.5, 0.7, 0.71]);
        assert!((within - 0.75).abs() < 1e-12);
    }
}
