//! Numbers that wrap: sequence numbers on the wire (32 bits) and stream sequence numbers (24 bits).
//!
//! Inside the engine nothing wraps: it counts in [`Offset`]s, and a number from the wire becomes the offset nearest to one that
//! is known. So there is one modular comparison for each kind of number, and it is here.

use std::fmt;

/// A place in one direction of a connection, in bytes of sequence space from the SYN (0) on; the first data byte is 1. At
/// 10 Gbit/s it lasts for 467 years.
pub type Offset = u64;

/// The least width of TCP's window below which a 32-bit number names one place: half of its range ([rfc-7323] sec. 2.3).
const HALF: u64 = 1 << 31;

/// A sequence number as it stands in a segment: modulo 2^32 ([rfc-9293] sec. 3.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// The number of the place `offset` bytes after this one.
    #[must_use]
    pub const fn plus(self, offset: Offset) -> Self {
        Self(self.0.wrapping_add(offset as u32))
    }

    /// The place that this number names, counted from `initial`: of all that it could name, the one nearest to `near`. `None`
    /// if that lies before the SYN.
    pub const fn offset_from(self, initial: Self, near: Offset) -> Option<Offset> {
        let distance = self.0.wrapping_sub(initial.plus(near).0) as i32;
        near.checked_add_signed(distance as i64)
    }

    /// Whether this number comes before `other`, less than half of the range away.
    pub const fn is_before(self, other: Self) -> bool {
        let ahead = other.0.wrapping_sub(self.0) as u64;
        ahead != 0 && ahead < HALF
    }
}

impl fmt::Display for SeqNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A stream sequence number: counts the segments of its stream, modulo 2^24 ([mfast-2019] sec. IV.B). Three bytes,
/// so that a header is four and a segment stays small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ssn([u8; 3]);

impl Ssn {
    /// How many there are.
    pub const COUNT: u32 = 1 << 24;

    /// The number of a stream's segment number `count`, counted from 0 and without wrapping.
    pub const fn of(count: u64) -> Self {
        let [low, middle, high, ..] = count.to_le_bytes();
        Self([low, middle, high])
    }

    /// Its 24 bits.
    pub const fn bits(self) -> u32 {
        let [low, middle, high] = self.0;
        u32::from_le_bytes([low, middle, high, 0])
    }

    /// The segment that this number names: of all that it could name, the one nearest to `near`. `None` if that would be
    /// before the first one.
    pub const fn count_near(self, near: u64) -> Option<u64> {
        // The difference of 24 bits, sign and all, in the upper bits of a word.
        let distance = (self.bits().wrapping_sub(near as u32) << 8) as i32 >> 8;
        near.checked_add_signed(distance as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_names_the_nearest_place() {
        let initial = SeqNumber(u32::MAX - 1);
        assert_eq!(initial.plus(3), SeqNumber(1));
        assert_eq!(SeqNumber(1).offset_from(initial, 0), Some(3));
        assert_eq!(SeqNumber(1).offset_from(initial, (5 << 32) + 100), Some((5 << 32) + 3));
        assert_eq!(SeqNumber(u32::MAX - 2).offset_from(initial, 0), None, "one before the SYN");
    }

    #[test]
    fn half_of_the_range_is_before() {
        let five = SeqNumber(5);
        assert!(SeqNumber(4).is_before(five) && !five.is_before(five) && !five.is_before(SeqNumber(4)));
        assert!(SeqNumber(u32::MAX).is_before(five));
        assert!(SeqNumber(0).is_before(SeqNumber((1 << 31) - 1)) && !SeqNumber(0).is_before(SeqNumber(1 << 31)));
    }

    #[test]
    fn stream_numbers_wrap_at_24_bits() {
        assert_eq!(Ssn::of(1 << 24), Ssn::of(0));
        assert_eq!(Ssn::of((1 << 24) + 7).count_near((1 << 24) - 5), Some((1 << 24) + 7));
        assert_eq!(Ssn::of((1 << 24) - 5).count_near((1 << 24) + 7), Some((1 << 24) - 5));
        assert_eq!(Ssn::of((1 << 24) - 1).count_near(3), None, "before the first segment");
    }
}
