//! Points in time and lengths of time at a fixed resolution.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use std::str::FromStr;

use crate::parse::{self, ParseError};

/// A point in time: ticks since an epoch that the driver chooses, `TICKS` of them a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant<const TICKS: u64>(u64);

/// A length of time, never negative, `TICKS` ticks a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration<const TICKS: u64>(u64);

impl<const TICKS: u64> Instant<TICKS> {
    /// The epoch: zero ticks.
    pub const ZERO: Self = Self(0);
    /// Later than any event: the deadline of a timer that is not set.
    pub const NEVER: Self = Self(u64::MAX);

    /// The instant `ticks` after the epoch.
    pub const fn from_ticks(ticks: u64) -> Self {
        Self(ticks)
    }

    /// Ticks since the epoch.
    pub const fn ticks(self) -> u64 {
        self.0
    }

    /// Seconds since the epoch, for printing and for laws that compute in floats.
    pub fn as_secs_f64(self) -> f64 {
        Duration::<TICKS>(self.0).as_secs_f64()
    }

    /// Time since `earlier`; zero if `earlier` is in fact later.
    pub const fn since(self, earlier: Self) -> Duration<TICKS> {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// The instant `span` later, or [`Instant::NEVER`] where that does not fit.
    pub const fn saturating_add(self, span: Duration<TICKS>) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The same instant at another resolution, rounded to the nearest tick.
    pub const fn rescale<const TO: u64>(self) -> Instant<TO> {
        if self.0 == u64::MAX { Instant::NEVER } else { Instant(Duration::<TICKS>(self.0).rescale::<TO>().0) }
    }
}

impl<const TICKS: u64> Duration<TICKS> {
    /// A span of zero length.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `ticks`.
    pub const fn from_ticks(ticks: u64) -> Self {
        Self(ticks)
    }

    /// A span of whole seconds.
    ///
    /// # Panics
    /// If it does not fit: a constant that is too long is a programming error.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.checked_mul(TICKS).expect("seconds fit the resolution"))
    }

    /// A span of whole milliseconds.
    ///
    /// # Panics
    /// If it does not fit.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.checked_mul(TICKS / 1000).expect("milliseconds fit the resolution"))
    }

    /// A span of whole microseconds.
    ///
    /// # Panics
    /// If it does not fit.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.checked_mul(TICKS / 1_000_000).expect("microseconds fit the resolution"))
    }

    /// The span nearest to `secs` seconds. Negative values and NaN give zero, too large ones [`Duration::MAX`], because float casts
    /// saturate.
    pub fn from_secs_f64(secs: f64) -> Self {
        let ticks = secs * TICKS as f64;
        // Rounded as by `f64::round`, which is a call of a library where the processor is not known to have an instruction for it.
        let whole = ticks as u64;
        Self(whole.saturating_add(u64::from(ticks - whole as f64 >= 0.5)))
    }

    /// The length in ticks.
    pub const fn ticks(self) -> u64 {
        self.0
    }

    /// The length in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / TICKS as f64
    }

    /// Whether the span is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The sum, or [`Duration::MAX`].
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, or zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This span times `factor`, or [`Duration::MAX`].
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// The same length at another resolution, rounded to the nearest tick; the longest span where it does not fit.
    pub const fn rescale<const TO: u64>(self) -> Duration<TO> {
        // To a coarser resolution whose tick is an even number of these, as from picoseconds to nanoseconds and at several events of each simulated
        // packet: a division by a constant of 64 bits, which the compiler makes a multiplication. One of 128 bits is a call.
        if TICKS.is_multiple_of(2 * TO) {
            let tick = TICKS / TO;
            return Duration(self.0 / tick + (self.0 % tick >= tick / 2) as u64);
        }
        // To a finer one: there is nothing to round.
        if TO.is_multiple_of(TICKS) {
            return Duration(self.0.saturating_mul(TO / TICKS));
        }
        let scaled = (self.0 as u128 * TO as u128 + TICKS as u128 / 2) / TICKS as u128;
        Duration(if scaled > u64::MAX as u128 { u64::MAX } else { scaled as u64 })
    }
}

impl<const TICKS: u64> Add<Duration<TICKS>> for Instant<TICKS> {
    type Output = Self;
    fn add(self, span: Duration<TICKS>) -> Self {
        Self(self.0.checked_add(span.0).expect("an instant stays within the range of its resolution"))
    }
}

impl<const TICKS: u64> AddAssign<Duration<TICKS>> for Instant<TICKS> {
    fn add_assign(&mut self, span: Duration<TICKS>) {
        *self = *self + span;
    }
}

impl<const TICKS: u64> Sub<Duration<TICKS>> for Instant<TICKS> {
    type Output = Self;
    fn sub(self, span: Duration<TICKS>) -> Self {
        Self(self.0.checked_sub(span.0).expect("no instant lies before the epoch"))
    }
}

impl<const TICKS: u64> Sub for Instant<TICKS> {
    type Output = Duration<TICKS>;
    fn sub(self, earlier: Self) -> Duration<TICKS> {
        Duration(self.0.checked_sub(earlier.0).expect("the earlier instant stands on the right"))
    }
}

impl<const TICKS: u64> Add for Duration<TICKS> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.checked_add(other.0).expect("the sum of two spans fits the resolution"))
    }
}

impl<const TICKS: u64> AddAssign for Duration<TICKS> {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl<const TICKS: u64> Sub for Duration<TICKS> {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.checked_sub(other.0).expect("a span is not negative"))
    }
}

impl<const TICKS: u64> SubAssign for Duration<TICKS> {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl<const TICKS: u64> Mul<u64> for Duration<TICKS> {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.checked_mul(factor).expect("a multiple of a span fits the resolution"))
    }
}

impl<const TICKS: u64> Div<u64> for Duration<TICKS> {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

/// In the largest unit in which the span is at least one, with as many decimals as needed: `100ms`, `1.5s`, `250ns`.
impl<const TICKS: u64> fmt::Display for Duration<TICKS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("s", TICKS), ("ms", TICKS / 1000), ("us", TICKS / 1_000_000), ("ns", TICKS / 1_000_000_000)];
        let &(name, unit) = units.iter().find(|&&(_, unit)| unit > 0 && self.0 >= unit).unwrap_or(if self.0 == 0 {
            &("s", 1)
        } else if TICKS > 1_000_000_000 {
            &("ps", 1)
        } else {
            &("ns", 1)
        });
        f.pad(&format!("{}{name}", parse::decimal(self.0, unit)))
    }
}

/// Seconds since the epoch, as [`Duration`] prints them.
impl<const TICKS: u64> fmt::Display for Instant<TICKS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NEVER { f.pad("never") } else { Duration::<TICKS>(self.0).fmt(f) }
    }
}

impl<const TICKS: u64> FromStr for Duration<TICKS> {
    type Err = ParseError;

    /// Reads a number and one of `s`, `ms`, `us`, `ns`, `ps`, `min`, `h`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const UNITS: &[(&str, u128)] = &[
            ("s", 1_000_000_000_000),
            ("ms", 1_000_000_000),
            ("us", 1_000_000),
            ("µs", 1_000_000),
            ("ns", 1000),
            ("ps", 1),
            ("min", 60_000_000_000_000),
            ("h", 3_600_000_000_000_000),
        ];
        parse::quantity(text, "a length of time, such as \"100ms\"", UNITS, TICKS as u128, 1_000_000_000_000).map(Self)
    }
}

impl<const TICKS: u64> FromStr for Instant<TICKS> {
    type Err = ParseError;

    /// Reads the time since the epoch as [`Duration`] does.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        text.parse::<Duration<TICKS>>().map(|span| Self(span.0))
    }
}

#[cfg(test)]
mod tests {
    use super::Duration;

    const PICO: u64 = 1_000_000_000_000;
    const NANO: u64 = 1_000_000_000;

    #[test]
    fn a_span_is_rescaled_to_the_nearest_tick() {
        let to_nanoseconds = |ticks| Duration::<PICO>::from_ticks(ticks).rescale::<NANO>().ticks();
        for (picoseconds, nanoseconds) in [(0, 0), (499, 0), (500, 1), (1499, 1), (1500, 2), (123_456_789, 123_457)] {
            assert_eq!(to_nanoseconds(picoseconds), nanoseconds, "{picoseconds} ps");
        }
        assert_eq!(to_nanoseconds(u64::MAX), 18_446_744_073_709_552);
        let to_picoseconds = |ticks| Duration::<NANO>::from_ticks(ticks).rescale::<PICO>().ticks();
        assert_eq!(to_picoseconds(7), 7000);
        assert_eq!(to_picoseconds(u64::MAX / 1000), 18_446_744_073_709_551_000);
        assert_eq!(to_picoseconds(u64::MAX / 1000 + 1), u64::MAX);
        // Neither resolution is a multiple of the other: 5 of 7 to a second are 2.14 of 3.
        assert_eq!(Duration::<7>::from_ticks(5).rescale::<3>().ticks(), 2);
        // An odd number of ticks: 2 of 3 to a second are 0.67 of 1.
        assert_eq!(Duration::<3>::from_ticks(2).rescale::<1>().ticks(), 1);
    }
}
