//! Claims and their verdicts.
//!
//! A number that a paper got from one random run is **one draw**. It is judged against the 95 % prediction interval of further runs
//! of ours, not against the confidence interval of our mean, which shrinks with every seed until no draw lies in it.
//!
//! | band | the claim is reproduced if |
//! | --- | --- |
//! | `exact` | every run gives the published number, to the bit |
//! | `truncated to 0.01` | every run gives the published number after cutting off further digits, without rounding |
//! | `prediction` | the published number lies in the 95 % prediction interval of our runs |
//! | `±5`, `±1%`, `2..3`, `>= 2`, `<= 3` | the mean of our runs lies in it |
//! | (of an `order`) | each mean is above the next with 95 % confidence |

use std::fmt;

use serde::Serialize;

use crate::statistics::{Interval, Sample};

/// The tolerance between a published value and ours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Band {
    /// Equal in every run.
    Exact,
    /// Equal in every run after cutting off further digits; the place of the last digit, such as `0.01`.
    Truncated(f64),
    /// The published value is one draw from the distribution of ours.
    Prediction,
    /// Our mean lies in this interval.
    Mean(Interval),
    /// Our mean of a difference is above zero with 95 % confidence.
    Above,
}

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// Our value is within the band.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// Our value is within the band of a regression, a derivation or an input, which is no result.
    #[serde(rename = "holds")]
    Holds,
    /// Our value is outside the band.
    #[serde(rename = "deviates")]
    Deviates,
    /// The value cannot be computed from the paper; the experiment gives the reason.
    #[serde(rename = "not reproducible")]
    NotReproducible,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Reproduced => "reproduced",
            Self::Holds => "holds",
            Self::Deviates => "deviates",
            Self::NotReproducible => "not reproducible",
        })
    }
}

impl Band {
    /// Parses a band of an experiment; `published` is the centre of `±`.
    ///
    /// # Errors
    /// A description of valid bands.
    pub fn parse(text: &str, published: Option<f64>) -> Result<Self, String> {
        let text = text.trim();
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
        let around = |half: f64| published.map(|middle| Interval { low: middle - half, high: middle + half });
        let interval = if let Some(half) = text.strip_prefix('±') {
            match half.strip_suffix('%') {
                Some(percent) => {
                    number(percent).zip(published).and_then(|(percent, middle)| around(percent / 100.0 * middle.abs()))
                }
                None => number(half).and_then(around),
            }
        } else if let Some(low) = text.strip_prefix(">=") {
            number(low).map(|low| Interval { low, high: f64::INFINITY })
        } else if let Some(high) = text.strip_prefix("<=") {
            number(high).map(|high| Interval { low: f64::NEG_INFINITY, high })
        } else if let Some((low, high)) = text.split_once("..") {
            number(low).zip(number(high)).map(|(low, high)| Interval { low, high })
        } else if published.is_some() && text == "exact" {
            return Ok(Self::Exact);
        } else if published.is_some() && text == "prediction" {
            return Ok(Self::Prediction);
        } else if let Some((published, place)) = published.zip(text.strip_prefix("truncated to")) {
            // A published value has no further digits; otherwise no value of ours could equal it.
            let place = number(place).filter(|place| *place > 0.0 && is_whole(published / place));
            return place.map(Self::Truncated).ok_or_else(|| {
                format!("write the place of the last printed digit of {published}, such as \"truncated to 0.01\"")
            });
        } else {
            None
        };
        match interval {
            Some(interval) if interval.low <= interval.high => Ok(Self::Mean(interval)),
            _ if published.is_none() => Err("use \"2..3\", \">= 2\" or \"<= 3\"".to_owned()),
            _ => Err(
                "use \"exact\", \"truncated to 0.01\", \"prediction\", \"±5\", \"±1%\", \"2..3\", \">= 2\" or \"<= 3\""
                    .to_owned(),
            ),
        }
    }

    /// Whether `sample` agrees with the published value.
    pub fn admits(&self, published: Option<f64>, sample: &Sample) -> bool {
        match (self, published) {
            (Self::Exact, Some(published)) => sample.values().iter().all(|value| value.total_cmp(&published).is_eq()),
            (Self::Truncated(place), Some(published)) => sample
                .values()
                .iter()
                .all(|value| truncated(value / place).total_cmp(&(published / place).round()).is_eq()),
            (Self::Prediction, Some(published)) => sample.prediction().contains(published),
            (Self::Exact | Self::Truncated(_) | Self::Prediction, None) => {
                unreachable!("these bands are parsed for a published number only")
            }
            (Self::Mean(interval), _) => interval.contains(sample.mean()),
            (Self::Above, _) => sample.confidence().low > 0.0,
        }
    }

    /// Its name in reports.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Truncated(_) => "truncated",
            Self::Prediction => "prediction",
            Self::Mean(_) => "mean",
            Self::Above => "above",
        }
    }

    /// The interval that decides: for a prediction, that of `published`; otherwise that of our mean.
    pub fn interval(&self, published: Option<f64>, sample: &Sample) -> Interval {
        match self {
            Self::Exact => published
                .map_or(Interval { low: f64::NAN, high: f64::NAN }, |value| Interval { low: value, high: value }),
            Self::Truncated(place) => published.map_or(Interval { low: f64::NAN, high: f64::NAN }, |value| Interval {
                low: value,
                high: value + place,
            }),
            Self::Prediction => sample.prediction(),
            Self::Mean(interval) => *interval,
            Self::Above => Interval { low: 0.0, high: f64::INFINITY },
        }
    }
}

/// The whole part of a number, with a tolerance for the rounding of doubles.
fn truncated(value: f64) -> f64 {
    if is_whole(value) { value.round() } else { value.trunc() }
}

/// Whether a quotient of printed numbers is whole, to twelve digits.
fn is_whole(value: f64) -> bool {
    (value - value.round()).abs() <= 1e-12 * value.abs().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn admits(band: &str, published: f64, values: &[f64]) -> bool {
        Band::parse(band, Some(published)).unwrap().admits(Some(published), &Sample::new(values.to_vec()))
    }

    #[test]
    fn exact_is_to_the_integer_and_in_every_run() {
        assert!(admits("exact", 24762.0, &[24762.0]));
        assert!(!admits("exact", 24762.0, &[24761.0]));
        assert!(!admits("exact", 24762.0, &[24761.0, 24763.0]));
    }

    /// Truncation gives 0.135 for 0.13541 and 0.1359; rounding would give 0.136. In doubles 8.46 / 0.01 is no whole number.
    #[test]
    fn truncation_cuts_and_does_not_round() {
        assert!(admits("truncated to 0.001", 0.135, &[0.13541]) && admits("truncated to 0.001", 0.135, &[0.1359]));
        assert!(!admits("truncated to 0.001", 0.136, &[0.1359]) && !admits("truncated to 0.001", 0.135, &[0.136]));
        assert!(admits("truncated to 0.01", 8.46, &[8.46]) && !admits("truncated to 0.01", 8.46, &[8.4599]));
        assert!(admits("truncated to 1", 1423.0, &[1423.68]) && !admits("truncated to 1", 1423.0, &[1422.99]));
        assert!(!admits("truncated to 1", 1423.0, &[1423.2, 1424.2]));
        // 0.25 has more digits than tenths.
        assert!(Band::parse("truncated to 0.1", Some(0.25)).is_err());
    }

    /// 1, 2, 3 predict 2 ± 4.9687 for one more run, while their mean is known to ± 2.4843.
    #[test]
    fn one_draw_is_judged_by_the_prediction_interval() {
        assert!(admits("prediction", 6.9, &[1.0, 2.0, 3.0]));
        assert!(!admits("prediction", 7.0, &[1.0, 2.0, 3.0]));
        assert!(admits("prediction", -2.9, &[1.0, 2.0, 3.0]));
        assert!(!admits("prediction", -3.0, &[1.0, 2.0, 3.0]));
    }

    #[test]
    fn bands_about_the_published_number() {
        assert!(admits("±1274", 17974.0, &[16700.0]));
        assert!(!admits("±1274", 17974.0, &[16699.0]));
        assert!(admits("±1%", 200.0, &[202.0]) && !admits("±1%", 200.0, &[202.1]));
        assert!(admits("±1%", -200.0, &[-202.0]) && !admits("±1%", -200.0, &[-202.1]));
    }

    #[test]
    fn one_sided_and_given_bands() {
        assert!(admits("2..3", 2.4, &[2.0]) && admits("2..3", 2.4, &[3.0]) && !admits("2..3", 2.4, &[3.1]));
        assert!(admits(">= 2", 5.0, &[2.0]) && !admits(">= 2", 5.0, &[1.9]));
        assert!(admits("<= 2", 1.0, &[2.0]) && !admits("<= 2", 1.0, &[2.1]));
    }

    #[test]
    fn an_order_needs_a_lead() {
        let lead = |value| Band::Above.admits(None, &Sample::new(vec![value]));
        assert!(lead(0.1) && !lead(0.0) && !lead(-0.1) && !lead(f64::NAN));
    }

    #[test]
    fn malformed_band_is_refused() {
        for text in ["", "exactly", "±", "±x", "3..2", "1..", ">=", "±-5", "±inf", "truncated to 0"] {
            assert!(Band::parse(text, Some(1.0)).is_err(), "{text}");
        }
        for text in ["exact", "prediction", "±5", "truncated to 1"] {
            assert_eq!(Band::parse(text, None).unwrap_err(), "use \"2..3\", \">= 2\" or \"<= 3\"", "{text}");
        }
    }
}
