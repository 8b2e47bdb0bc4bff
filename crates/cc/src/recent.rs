//! The least and the largest value of a recent time, in three numbers. The time is exact to a factor of two; [`crate::least`] is exact to a sixteenth.

use crate::number::lesser;

/// The least value of the last one to two spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RecentMin {
    /// When the present span began, in seconds.
    since: f64,
    /// The least value in it.
    least: f64,
    /// The least value in the span before.
    before: f64,
}

impl RecentMin {
    /// No value yet.
    pub(crate) const NONE: Self = Self { since: f64::NEG_INFINITY, least: f64::INFINITY, before: f64::INFINITY };

    /// Adds a value at `now` and returns the least one; `now` and `span` are in seconds.
    pub(crate) fn add(&mut self, now: f64, value: f64, span: f64) -> f64 {
        let age = now - self.since;
        if age >= span {
            let before = if age < 2.0 * span { self.least } else { f64::INFINITY };
            *self = Self { since: now, least: f64::INFINITY, before };
        }
        self.least = lesser(self.least, value);
        self.value()
    }

    /// The least value; infinity if there is none.
    pub(crate) fn value(&self) -> f64 {
        lesser(self.least, self.before)
    }
}

impl Default for RecentMin {
    fn default() -> Self {
        Self::NONE
    }
}

/// The largest value of the last one to two spans.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RecentMax(RecentMin);

impl RecentMax {
    /// No value yet.
    pub(crate) const NONE: Self = Self(RecentMin::NONE);

    /// Adds a value at `now` and returns the largest one; `now` and `span` are in seconds.
    pub(crate) fn add(&mut self, now: f64, value: f64, span: f64) -> f64 {
        -self.0.add(now, -value, span)
    }

    /// The largest value; minus infinity if there is none.
    pub(crate) fn value(&self) -> f64 {
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
    fn largest_value_lasts_one_span_and_is_gone_after_two() {
        let mut recent = RecentMax::NONE;
        for (now, value, largest) in
            [(0.0, 7.0, 7.0), (0.9, 5.0, 7.0), (1.9, 5.0, 7.0), (2.9, 5.0, 5.0), (9.0, 3.0, 3.0)]
        {
            assert_near(recent.add(now, value, 1.0), largest, 1e-12);
        }
    }
}
