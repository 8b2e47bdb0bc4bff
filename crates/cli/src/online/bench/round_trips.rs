//! The result of `anabranch bench --ping-pong`.

use std::time::Duration;

use anabranch::measure::Quantiles;
use serde::Serialize;

use super::times::Times;
use crate::terminal;

/// Round trips on all streams together.
#[derive(Serialize)]
pub(super) struct RoundTrips {
    /// Of a request, and of its answer.
    size_bytes: u32,
    count: u64,
    per_second: f64,
    /// From the write of a request until its whole answer is read.
    #[serde(flatten)]
    times: Times,
}

impl RoundTrips {
    pub(super) fn new(times: &Quantiles, size_bytes: u32, time: Duration) -> Self {
        let per_second = times.count as f64 / time.as_secs_f64();
        Self { size_bytes, count: times.count, per_second, times: Times::new(times) }
    }

    /// Names and values for people.
    pub(super) fn rows(&self) -> impl Iterator<Item = (String, String)> {
        let counts = [("round trips", self.count.to_string()), ("per second", terminal::number(self.per_second))];
        counts.map(|(name, value)| (name.to_owned(), value)).into_iter().chain(self.times.rows("round trip"))
    }
}

/// A short request.
pub(super) const SIZE: u32 = 64;
