//! The extent of a segment: an option that tells a segment that a middlebox has split or joined.

use super::HEADER_LEN;
use super::options::{END, EXPERIMENT, EXPERIMENT_ID, NO_OPERATION};
use crate::seq::SeqNumber;

/// Which part of the sequence space the content of a segment took when it was sent. Whoever splits a segment copies its options to all parts, and whoever
/// joins segments keeps the options of one; so a segment whose content is not its extent has lost its boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The number of its first byte, counted from the sender's initial number, modulo 2^16. A middlebox may shift all numbers of a connection.
    pub start: u16,
    /// Bytes of its content.
    pub len: u16,
}

impl Extent {
    /// The extent of `len` bytes from this number on, of a sender with this initial number.
    pub const fn of(seq: SeqNumber, initial: SeqNumber, len: u32) -> Self {
        Self { start: seq.0.wrapping_sub(initial.0) as u16, len: len as u16 }
    }

    /// The extent in an encoded segment, whose checksum may be wrong; `None` if it has none.
    pub fn read(segment: &[u8]) -> Option<Self> {
        let mut rest = segment.get(HEADER_LEN..super::header_len(segment)?)?;
        loop {
            rest = match *rest {
                [] | [END, ..] => return None,
                [NO_OPERATION, ref rest @ ..] => rest,
                [EXPERIMENT, len, a, b, TYPE, c, d, e, f, ..] if len == Self::LEN && [a, b] == EXPERIMENT_ID => {
                    return Some(Self { start: u16::from_be_bytes([c, d]), len: u16::from_be_bytes([e, f]) });
                }
                [_, len, ..] if len >= 2 => rest.get(usize::from(len)..)?,
                _ => return None,
            };
        }
    }

    /// Appends the option.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        let Self { start, len } = self;
        out.extend([EXPERIMENT, Self::LEN, EXPERIMENT_ID[0], EXPERIMENT_ID[1], TYPE]);
        out.extend(start.to_be_bytes());
        out.extend(len.to_be_bytes());
    }

    /// Bytes of the option: kind, length, experiment identifier, type, start, length.
    pub(crate) const LEN: u8 = 9;
}

/// The type of the option, after those of the path options.
const TYPE: u8 = 4;
