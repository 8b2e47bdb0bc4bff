//! Encodes and reads the extent of a segment.

use super::HEADER_LEN;
use super::options::{END, EXPERIMENT, EXPERIMENT_ID, NO_OPERATION};
use crate::options::Extent;

impl Extent {
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
}

/// The type of the option, after those of the path options.
const TYPE: u8 = 4;
