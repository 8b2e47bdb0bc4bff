//! A fingerprint of a run: bit-identical runs have the same one.

use std::fmt;

/// 64 bits folded over every delivery to a host and every loss, in order: time, flow and packet.
///
/// It is cheap enough to be always on, and distinguishes runs that differ anywhere. It is not a cryptographic hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunHash(u64);

impl RunHash {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed ^ MULTIPLIER)
    }

    /// The rotation moves high bits down, where the next multiplication spreads them again.
    pub(crate) const fn fold(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(25) ^ word).wrapping_mul(MULTIPLIER);
    }

    /// The 64 bits of the hash.
    pub const fn bits(self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// Sixteen hexadecimal digits.
impl fmt::Display for RunHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.bits())
    }
}

/// The odd number nearest to 2^64 divided by the golden ratio: its bits have no pattern.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
