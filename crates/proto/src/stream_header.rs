//! The stream header of a segment ([mfast-2019] sec. IV.B).

use std::cmp::Ordering;
use std::fmt;

use crate::seq::Ssn;

/// The four bytes before the content of a segment with streams ([mfast-2019] sec. IV.B). For TCP they are payload and take
/// sequence numbers, so a middlebox sees a consistent TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHeader {
    /// The stream of the segment.
    pub sid: Sid,
    /// The number of the segment in its stream.
    pub ssn: Ssn,
}

/// The identifier of a stream in one direction of a connection (SID). It has 8 bits in the stream header, as in [mfast-2019].
/// With [`crate::Features::MANY_STREAMS`] it has four more significant bits, the *page*. It is stored in two bytes, so that a
/// header stays small in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sid([u8; 2]);

impl StreamHeader {
    /// Bytes on the wire, without the page.
    pub const LEN: u32 = 4;

    /// The bytes for which a void stands, without its header; 0 for any other header.
    pub(crate) fn void(self) -> u32 {
        if self.sid == Sid::VOID { self.ssn.bits() } else { 0 }
    }
}

impl Sid {
    /// The control stream.
    pub const CONTROL: Self = Self::new(0);
    /// The only stream of plain TCP.
    pub const PLAIN: Self = Self::new(1);
    /// The largest number of streams in one direction, without the control stream: 16 times 255.
    pub const STREAMS_MAX: u16 = 16 * 255;
    /// The datagrams of the sealed form: each segment is one, and the SSN is reserved. No stream has this SID.
    pub const DATAGRAM: Self = Self::new(4095);
    /// What stands for a lost datagram: the SSN is the number of its bytes, and there is no content.
    pub const VOID: Self = Self::new(4094);
    /// The last SID on page 0 ([mfast-2019] sec. IV.B).
    pub const FIRST_PAGE_MAX: u16 = 255;

    /// The SID with this number: at most [`Sid::STREAMS_MAX`].
    pub const fn new(number: u16) -> Self {
        Self(number.to_le_bytes())
    }

    /// Its number, page included.
    pub const fn number(self) -> u16 {
        u16::from_le_bytes(self.0)
    }

    /// The eight bits of the stream header, and the page.
    pub(crate) const fn parts(self) -> (u8, u8) {
        let [low, page] = self.0;
        (low, page)
    }

    /// The same eight bits on this page.
    pub(crate) const fn on_page(self, page: u8) -> Self {
        let [low, _] = self.0;
        Self([low, page & Self::PAGE_MAX])
    }

    /// The page has four bits.
    pub(crate) const PAGE_MAX: u8 = 0x0f;

    pub(crate) const fn index(self) -> usize {
        self.number() as usize
    }
}

impl PartialOrd for Sid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Sid {
    fn cmp(&self, other: &Self) -> Ordering {
        self.number().cmp(&other.number())
    }
}

impl fmt::Debug for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sid({})", self.number())
    }
}

impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.number().fmt(f)
    }
}
