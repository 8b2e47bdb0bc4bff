//! The result of `anabranch bench --ping-pong`.

use std::time::Duration;

use anabranch::measure::Quantiles;
use serde::Serialize;

use crate::terminal;

/// Round trips on all streams together.
#[derive(Serialize)]
pub(super) struct RoundTrips {
    /// Of a request, and of its answer.
    size_bytes: u32,
    count: u64,
    per_second: f64,
    /// From the write of a request until its whole answer is read. The times are `null` if there was no answer.
    ms_mean: Option<f64>,
    ms_min: Option<f64>,
    ms_p50: Option<f64>,
    ms_p95: Option<f64>,
    ms_p99: Option<f64>,
    ms_max: Option<f64>,
}

impl RoundTrips {
    pub(super) fn new(times: &Quantiles, size_bytes: u32, time: Duration) -> Self {
        let Quantiles { count, mean, least, p50, p95, p99, largest } = *times;
        let [ms_mean, ms_min, ms_p50, ms_p95, ms_p99, ms_max] =
            [mean, least, p50, p95, p99, largest].map(|span| (count > 0).then_some(span.as_secs_f64() * 1e3));
        let per_second = count as f64 / time.as_secs_f64();
        Self { size_bytes, count, per_second, ms_mean, ms_min, ms_p50, ms_p95, ms_p99, ms_max }
    }

    /// Names and values for people.
    pub(super) fn rows(&self) -> [(String, String); 7] {
        let ms = |value: Option<f64>| value.map_or("?".to_owned(), |ms| format!("{} ms", terminal::number(ms)));
        [
            ("round trips", self.count.to_string()),
            ("per second", terminal::number(self.per_second)),
            ("round trip min", ms(self.ms_min)),
            ("round trip p50", ms(self.ms_p50)),
            ("round trip p95", ms(self.ms_p95)),
            ("round trip p99", ms(self.ms_p99)),
            ("round trip max", ms(self.ms_max)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
    }
}

/// A short request.
pub(super) const SIZE: u32 = 64;
