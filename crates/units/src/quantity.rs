//! Amounts of data, and rates.

use std::fmt;
use std::str::FromStr;

use crate::parse::{self, ParseError};
use crate::time::Duration;

/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

/// A rate of data in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Bytes {
    /// An amount of `count` bytes.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The number of bytes.
    pub const fn count(self) -> u64 {
        self.0
    }
}

impl Rate {
    /// A rate of `bits` per second.
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }

    /// The rate in bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// The average rate of `data` over `span`; zero if no time passed.
    pub fn average<const TICKS: u64>(data: Bytes, span: Duration<TICKS>) -> Self {
        if span.is_zero() {
            return Self(0);
        }
        let bits = u128::from(data.0) * 8 * u128::from(TICKS) / u128::from(span.ticks());
        Self(u64::try_from(bits).unwrap_or(u64::MAX))
    }

    /// The transmission time of `data` at this rate, rounded to the nearest tick; the longest span at rate zero.
    pub fn transmission<const TICKS: u64>(self, data: Bytes) -> Duration<TICKS> {
        if self.0 == 0 {
            return Duration::MAX;
        }
        // For a packet the product fits 64 bits, and a 64-bit division is much faster.
        let rounded = data.0.checked_mul(8 * TICKS).and_then(|ticks| ticks.checked_add(self.0 / 2));
        if let Some(ticks) = rounded {
            return Duration::from_ticks(ticks / self.0);
        }
        let rate = u128::from(self.0);
        let ticks = (u128::from(data.0) * 8 * u128::from(TICKS) + rate / 2) / rate;
        Duration::from_ticks(u64::try_from(ticks).unwrap_or(u64::MAX))
    }
}

/// `1500B`, `2.5MB`: the largest decimal unit in which the amount is at least one.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Up to 9999 B the unit is the byte, as is usual for packets: 1500 B, not 1.5 kB.
        let (name, unit) = scale(self.0, 10_000, &[("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)], "B");
        f.pad(&format!("{}{name}", parse::decimal(self.0, unit)))
    }
}

/// `1.5Mbit/s`: the largest decimal unit in which the rate is at least one.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 3] = [("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1000)];
        let (name, unit) = scale(self.0, 0, &UNITS, "bit/s");
        f.pad(&format!("{}{name}", parse::decimal(self.0, unit)))
    }
}

fn scale(value: u64, plain_below: u64, units: &[(&'static str, u64)], plain: &'static str) -> (&'static str, u64) {
    let fitting = units.iter().find(|&&(_, unit)| value >= unit && value >= plain_below);
    fitting.copied().unwrap_or((plain, 1))
}

impl FromStr for Bytes {
    type Err = ParseError;

    /// Reads a number and one of `B`, `kB`, `MB`, `GB`, `KiB`, `MiB`, `GiB`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const UNITS: &[(&str, u128)] = &[
            ("B", 1),
            ("kB", 1000),
            ("MB", 1_000_000),
            ("GB", 1_000_000_000),
            ("KiB", 1 << 10),
            ("MiB", 1 << 20),
            ("GiB", 1 << 30),
        ];
        parse::quantity(text, "an amount of data, such as \"1500B\"", UNITS, 1, 1).map(Self)
    }
}

impl FromStr for Rate {
    type Err = ParseError;

    /// Reads a number and one of `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s`, `Tbit/s`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        const UNITS: &[(&str, u128)] = &[
            ("bit/s", 1),
            ("kbit/s", 1000),
            ("Mbit/s", 1_000_000),
            ("Gbit/s", 1_000_000_000),
            ("Tbit/s", 1_000_000_000_000),
        ];
        parse::quantity(text, "a rate, such as \"1.5Mbit/s\"", UNITS, 1, 1).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At one byte per microsecond, n bytes take n microseconds. The product in ticks fits 64 bits up to 2^64/8 ticks, above it
    /// does not.
    #[test]
    fn transmission_time_is_continuous_across_64_bits() {
        const PICOSECONDS: u64 = 1_000_000_000_000;
        let rate = Rate::from_bits_per_second(8_000_000);
        for bytes in [1, 1500, 2_305_842, 2_305_843, 2_305_844, 10_000_000_000] {
            let span: Duration<PICOSECONDS> = rate.transmission(Bytes::new(bytes));
            assert_eq!(span.ticks(), bytes * 1_000_000, "{bytes} bytes");
        }
        // Three bytes a second: 333,333,333.3 ns and 666,666,666.7 ns.
        let third = Rate::from_bits_per_second(24);
        let ticks = |bytes| third.transmission::<1_000_000_000>(Bytes::new(bytes)).ticks();
        assert_eq!((ticks(1), ticks(2), ticks(3)), (333_333_333, 666_666_667, 1_000_000_000));
    }
}
