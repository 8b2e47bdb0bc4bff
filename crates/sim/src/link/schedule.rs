//! A quantity of a link, its rate or its delay, that changes at times known in advance.

use anabranch_units::{SimSpan, SimTime};

/// A value that changes in steps.
///
/// It starts with the link's own value. With a `period` the steps repeat: for example, a hand-over every 15 s is two or three
/// steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps<T> {
    /// The steps in order: time, counted from the start of the world or of the period, and value. The first time is above zero.
    pub steps: Vec<(SimSpan, T)>,
    /// The period; `None`: the steps do not repeat.
    pub period: Option<SimSpan>,
}

/// The limit on steps in a schedule.
pub const STEPS_MAX: usize = 1 << 20;

/// The shortest time between two steps. It limits how many steps fall into the transmission of one packet.
pub const STEP_MIN: SimSpan = SimSpan::from_micros(1);

impl<T> Steps<T> {
    /// Whether the steps are in order, far enough apart, and within the period.
    pub fn is_valid(&self) -> bool {
        let mut last = SimSpan::ZERO;
        let in_order = self.steps.iter().all(|&(at, _)| {
            let is_later = at.ticks().checked_sub(last.ticks()).is_some_and(|apart| apart >= STEP_MIN.ticks());
            last = at;
            is_later
        });
        let fits = self.period.is_none_or(|period| {
            period.ticks().checked_sub(last.ticks()).is_some_and(|apart| apart >= STEP_MIN.ticks())
        });
        in_order && fits && !self.steps.is_empty() && self.steps.len() <= STEPS_MAX
    }
}

/// The steps in operation, with the value before the first one.
#[derive(Clone, Debug)]
pub(crate) struct Schedule<T> {
    first: T,
    steps: Vec<(SimSpan, T)>,
    period: Option<SimSpan>,
}

impl<T: Copy> Schedule<T> {
    /// The steps must be valid.
    pub(crate) fn new(first: T, Steps { steps, period }: Steps<T>) -> Self {
        Self { first, steps, period }
    }

    /// The value at `time`, and the time until which it is valid.
    pub(crate) fn at(&self, time: SimTime) -> (T, SimTime) {
        let ticks = time.ticks();
        let begin = self.period.map_or(0, |period| ticks - ticks % period.ticks());
        let phase = ticks - begin;
        let passed = self.steps.partition_point(|&(at, _)| at.ticks() <= phase);
        let value = if passed == 0 { self.first } else { self.steps[passed - 1].1 };
        let next = self.steps.get(passed).map(|&(at, _)| at).or(self.period);
        let until = next.map_or(SimTime::NEVER, |at| SimTime::from_ticks(begin.saturating_add(at.ticks())));
        (value, until)
    }

    /// Every value of the schedule.
    pub(crate) fn values(&self) -> impl Iterator<Item = T> {
        std::iter::once(self.first).chain(self.steps.iter().map(|&(_, value)| value))
    }

    /// The final value, if the steps do not repeat.
    pub(crate) fn last(&self) -> Option<T> {
        if self.period.is_some() { None } else { self.values().last() }
    }

    /// The period, and each value with its duration within a period.
    pub(crate) fn cycle(&self) -> Option<(SimSpan, impl Iterator<Item = (T, SimSpan)>)> {
        let period = self.period?;
        let begins = std::iter::once(SimSpan::ZERO).chain(self.steps.iter().map(|&(at, _)| at));
        let ends = self.steps.iter().map(|&(at, _)| at).chain([period]);
        Some((period, self.values().zip(begins.zip(ends)).map(|(value, (begin, end))| (value, end - begin))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn millis(millis: u64) -> SimSpan {
        SimSpan::from_millis(millis)
    }

    const fn at(ms: u64) -> SimTime {
        SimTime::ZERO.saturating_add(millis(ms))
    }

    fn schedule(period: Option<SimSpan>) -> Schedule<u32> {
        let steps = Steps { steps: vec![(millis(10), 2), (millis(30), 3)], period };
        assert!(steps.is_valid());
        Schedule::new(1, steps)
    }

    #[test]
    fn without_a_period_the_last_value_stays() {
        let schedule = schedule(None);
        let found = [0, 9, 10, 29, 30, 1000].map(|ms| schedule.at(at(ms)));
        let never = SimTime::NEVER;
        assert_eq!(found, [(1, at(10)), (1, at(10)), (2, at(30)), (2, at(30)), (3, never), (3, never)]);
        assert_eq!(schedule.last(), Some(3));
    }

    #[test]
    fn with_a_period_it_begins_anew() {
        let schedule = schedule(Some(millis(50)));
        let found = [0, 30, 49, 50, 60, 95, 100].map(|ms| schedule.at(at(ms)));
        let expected = [(1, 10), (3, 50), (3, 50), (1, 60), (2, 80), (3, 100), (1, 110)];
        assert_eq!(found, expected.map(|(value, until)| (value, at(until))));
        let (period, parts) = schedule.cycle().unwrap();
        assert_eq!(
            (period, parts.collect::<Vec<_>>()),
            (millis(50), vec![(1, millis(10)), (2, millis(20)), (3, millis(20))])
        );
    }

    #[test]
    fn steps_that_cannot_be_are_found() {
        let valid = |steps: &[u64], period: Option<u64>| {
            let steps = steps.iter().map(|&ms| (millis(ms), ())).collect();
            Steps { steps, period: period.map(millis) }.is_valid()
        };
        assert!(valid(&[1], None) && valid(&[1, 2], Some(3)));
        assert!(!valid(&[], None) && !valid(&[0], None) && !valid(&[2, 2], None) && !valid(&[3, 2], None));
        assert!(!valid(&[1, 2], Some(2)) && !valid(&[1, 2], Some(1)));
    }
}
