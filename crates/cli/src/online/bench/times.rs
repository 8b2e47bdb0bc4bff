//! Quantiles of times in a document, and for people.

use anabranch::measure::Quantiles;
use serde::Serialize;

use crate::terminal;

/// Times in milliseconds; `null` if there was none.
#[derive(Serialize)]
pub(super) struct Times {
    ms_mean: Option<f64>,
    ms_min: Option<f64>,
    ms_p50: Option<f64>,
    ms_p95: Option<f64>,
    ms_p99: Option<f64>,
    ms_max: Option<f64>,
}

impl Times {
    pub(super) fn new(times: &Quantiles) -> Self {
        let Quantiles { count, mean, least, p50, p95, p99, largest } = *times;
        let [ms_mean, ms_min, ms_p50, ms_p95, ms_p99, ms_max] =
            [mean, least, p50, p95, p99, largest].map(|span| (count > 0).then_some(span.as_secs_f64() * 1e3));
        Self { ms_mean, ms_min, ms_p50, ms_p95, ms_p99, ms_max }
    }

    /// Names, which begin with that of what took the times, and values.
    pub(super) fn rows(&self, what: &str) -> impl Iterator<Item = (String, String)> {
        let ms = |value: Option<f64>| value.map_or("?".to_owned(), |ms| format!("{} ms", terminal::number(ms)));
        [("min", self.ms_min), ("p50", self.ms_p50), ("p95", self.ms_p95), ("p99", self.ms_p99), ("max", self.ms_max)]
            .map(|(name, value)| (format!("{what} {name}"), ms(value)))
            .into_iter()
    }
}
