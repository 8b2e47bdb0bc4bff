//! Wrapping numbers: sequence numbers on the wire (32 bits) and stream sequence numbers (24 bits).
//!
//! Inside the engine nothing wraps. It counts in [`Offset`]s, and a number from the wire is converted to the nearest offset. So
//! each kind of number has one modular comparison, in this module.

use std::fmt;

/// A position in one direction of a connection, in bytes of sequence space: the SYN is 0, the first data byte 1. At 10 Gbit/s it
/// wraps after 467 years.
pub type Offset = u64;

/// Half of the range of a 32-bit number. Within this distance a number identifies one offset ([rfc-7323] sec. 2.3).
const HALF: u64 = 1 << 31;

/// A sequence number of a segment, modulo 2^32 ([rfc-9293] sec. 3.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeqNumber(pub u32);

impl SeqNumber {
    /// The number `offset` bytes after this one.
    #[must_use]
    pub const fn plus(self, offset: Offset) -> Self {
        Self(self.0.wrapping_add(offset as u32))
    }

    /// The offset of this number, counted from `initial`: the candidate nearest to `near`. `None` if it would be before the SYN.
    pub const fn offset_from(self, initial: Self, near: Offset) -> Option<Offset> {
        let distance = self.0.wrapping_sub(initial.plus(near).0) as i32;
        near.checked_add_signed(distance as i64)
    }

    /// Whether this number precedes `other` by less than half of the range.
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

/// A stream sequence number: counts the segments of a stream, modulo 2^24 ([mfast-2019] sec. IV.B). It is stored in three bytes,
/// so that a stream header takes four bytes and a segment stays small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ssn([u8; 3]);

impl Ssn {
    /// The size of the range.
    pub const COUNT: u32 = 1 << 24;

    /// The SSN of segment number `count` of a stream, counted from 0 without wrapping.
    pub const fn of(count: u64) -> Self {
        let [low, middle, high, ..] = count.to_le_bytes();
        Self([low, middle, high])
    }

    /// The 24 bits of the number.
    pub const fn bits(self) -> u32 {
        let [low, middle, high] = self.0;
        u32::from_le_bytes([low, middle, high, 0])
    }

    /// The number of the segment with this SSN, without wrapping: the candidate nearest to `near`. `None` if it would be before
    /// the first segment.
    pub const fn count_near(self, near: u64) -> Option<u64> {
        // The signed difference of 24 bits, in the upper bits of a word.
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
