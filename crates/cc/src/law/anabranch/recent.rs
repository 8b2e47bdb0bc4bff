//! The least and the largest value of a recent time.

/// The least value of the last one to two spans.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecentMin {
    /// Begin of the present span in seconds.
    since: f64,
    least: f64,
    /// The least of the span before.
    before: f64,
}

impl RecentMin {
    pub(super) const NONE: Self = Self { since: f64::NEG_INFINITY, least: f64::INFINITY, before: f64::INFINITY };

    /// Adds `value` at `now` and returns the least value; spans last `span` seconds.
    pub(super) fn add(&mut self, now: f64, value: f64, span: f64) -> f64 {
        let age = now - self.since;
        if age >= span {
            let before = if age < 2.0 * span { self.least } else { f64::INFINITY };
            *self = Self { since: now, least: f64::INFINITY, before };
        }
        self.least = self.least.min(value);
        self.value()
    }

    /// Infinity if there is none.
    pub(super) fn value(&self) -> f64 {
        self.least.min(self.before)
    }
}

/// The largest value of the last one to two spans.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecentMax(RecentMin);

impl RecentMax {
    pub(super) const NONE: Self = Self(RecentMin::NONE);

    /// Adds `value` at `now` and returns the largest value; spans last `span` seconds.
    pub(super) fn add(&mut self, now: f64, value: f64, span: f64) -> f64 {
        -self.0.add(now, -value, span)
    }

    /// Minus infinity if there is none.
    pub(super) fn value(&self) -> f64 {
        -self.0.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_near;

    #[test]
    fn least_value_lasts_one_span_and_is_gone_after_two() {
        let mut recent = RecentMin::NONE;
        for (now, value, least) in [(0.0, 3.0, 3.0), (0.9, 5.0, 3.0), (1.9, 5.0, 3.0), (2.9, 5.0, 5.0), (9.0, 7.0, 7.0)]
        {
            assert_near(recent.add(now, value, 1.0), least, 1e-12);
        }
    }

    #[test]
    fn largest_value_of_a_span_is_kept() {
        let mut recent = RecentMax::NONE;
        for (now, value) in [(0.0, 3.0), (0.5, 1.0)] {
            assert_near(recent.add(now, value, 1.0), 3.0, 1e-12);
        }
        assert_near(recent.value(), 3.0, 1e-12);
    }
}
