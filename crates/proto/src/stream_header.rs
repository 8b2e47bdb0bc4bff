//! What a segment says of its stream ([mfast-2019] sec. IV.B).

use std::fmt;

use crate::seq::Ssn;

/// The four bytes in front of everything that a multistream segment carries ([mfast-2019] sec. IV.B). They are payload for
/// TCP's purposes: they have sequence numbers of their own, so that a middlebox sees a consistent TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHeader {
    /// Which stream.
    pub sid: Sid,
    /// Which segment of it.
    pub ssn: Ssn,
}

/// The name of a stream in one direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sid(u8);

impl StreamHeader {
    /// Bytes on the wire.
    pub const LEN: u32 = 4;
}

impl Sid {
    /// The control stream.
    pub const CONTROL: Self = Self(0);
    /// The only stream of plain TCP.
    pub const PLAIN: Self = Self(1);
    /// The most streams in one direction of a connection, the control stream not counted.
    pub const STREAMS_MAX: u8 = 255;

    /// The stream with this number.
    pub const fn new(number: u8) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self.0
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
