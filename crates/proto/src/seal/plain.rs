//! The plain texts of data datagrams: a segment, a fragment, a message of rekeying, a reset token, or grease.
//!
//! ```text
//! segment   00000p00 | the segment without its ports, whose place these bytes take; p is the page of its stream
//! request   1 | rekeying
//! answer    2 | rekeying
//! padded    3 | length 2, 0 2, segment | zero bytes to the end
//! fragment  4 | id 4, offset 2, total 2, bytes of a segment to the end
//! token     5 | index 4, token 16 | anything
//! grease    0a?a?a?a | whatever
//! ```

use std::ops::Range;

use super::SealError;
use super::datagram::{DataHeader, word};
use super::session::sealed_len;

/// The first four bytes of each type.
pub(super) const SEGMENT: u32 = 0;
/// The bits of the stream's page in a segment.
pub(super) const PAGE: u32 = 0x0f00;
pub(super) const REQUEST: u32 = 1;
pub(super) const ANSWER: u32 = 2;
pub(super) const PADDED: u32 = 3;
pub(super) const FRAGMENT: u32 = 4;
pub(super) const TOKEN: u32 = 5;

/// The layout of a segment in datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// One datagram with the segment alone.
    Bare,
    /// One datagram of this length, padded with zeros.
    Padded(usize),
    /// Several datagrams of at most this length, each with a fragment.
    Fragments(usize),
}

/// A fragment of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fragment<'a> {
    pub(super) id: u32,
    pub(super) offset: u16,
    /// Bytes of the whole segment.
    pub(super) total: u16,
    pub(super) bytes: &'a [u8],
}

impl Layout {
    /// The layout of a segment of `len` bytes in datagrams of at most `datagram_max`, padded to `pad_to`.
    pub(super) fn of(len: usize, datagram_max: usize, pad_to: usize) -> Result<Self, SealError> {
        if len > usize::from(u16::MAX) {
            return Err(SealError::TooLong);
        }
        let pad_to = pad_to.min(datagram_max);
        if sealed_len(len) > datagram_max {
            return match datagram_max.checked_sub(sealed_len(FRAGMENT_HEADER)) {
                Some(room) if room >= FRAGMENT_MIN => Ok(Self::Fragments(datagram_max)),
                _ => Err(SealError::TooLong),
            };
        }
        // The length field of padding takes a few bytes, so a smaller gap cannot be filled.
        Ok(if sealed_len(PADDED_HEADER + len) <= pad_to { Self::Padded(pad_to) } else { Self::Bare })
    }

    /// The total bytes and the number of its datagrams.
    pub(super) fn size(self, len: usize) -> (usize, usize) {
        match self {
            Self::Bare => (sealed_len(len), 1),
            Self::Padded(whole) => (whole, 1),
            Self::Fragments(max) => {
                let count = len.div_ceil(max - sealed_len(FRAGMENT_HEADER));
                (len + count * sealed_len(FRAGMENT_HEADER), count)
            }
        }
    }

    /// The offset of the encoded segment in its first datagram.
    pub(super) const fn segment_at(self) -> usize {
        match self {
            Self::Bare | Self::Fragments(_) => DataHeader::LEN,
            Self::Padded(_) => DataHeader::LEN + PADDED_HEADER,
        }
    }

    /// Lays out plain texts with room for header and tag. `space` must have the encoded segment at [`Layout::segment_at`], and
    /// nothing after it.
    pub(super) fn fill(self, len: usize, id: u32, space: &mut [u8]) {
        match self {
            Self::Bare => {}
            Self::Padded(_) => {
                let head = &mut space[DataHeader::LEN..][..PADDED_HEADER];
                head[..4].copy_from_slice(&PADDED.to_be_bytes());
                head[4..6].copy_from_slice(&(len as u16).to_be_bytes());
            }
            Self::Fragments(max) => {
                let room = max - sealed_len(FRAGMENT_HEADER);
                // From the last fragment to the first, so that no copy overwrites its source.
                for (number, offset) in (0..len).step_by(room).enumerate().rev() {
                    let from = DataHeader::LEN + offset;
                    let at = number * max + DataHeader::LEN;
                    space.copy_within(from..from + room.min(len - offset), at + FRAGMENT_HEADER);
                    let head = &mut space[at..][..FRAGMENT_HEADER];
                    head[..4].copy_from_slice(&FRAGMENT.to_be_bytes());
                    head[4..8].copy_from_slice(&id.to_be_bytes());
                    head[8..10].copy_from_slice(&(offset as u16).to_be_bytes());
                    head[10..].copy_from_slice(&(len as u16).to_be_bytes());
                }
            }
        }
    }
}

/// The range of the segment in a padded plain text.
pub(super) fn padded(plain: &[u8]) -> Option<Range<usize>> {
    let len = usize::from(u16::from_be_bytes(*plain.get(4..6)?.first_chunk()?));
    let end = PADDED_HEADER + len;
    (end <= plain.len()).then_some(PADDED_HEADER..end)
}

/// Parses a fragment.
pub(super) fn fragment(plain: &[u8]) -> Option<Fragment<'_>> {
    let (_, rest) = word(plain)?;
    let (id, rest) = word(rest)?;
    let (sizes, bytes) = rest.split_first_chunk::<4>()?;
    let [a, b, c, d] = *sizes;
    let (offset, total) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    let is_within = usize::from(offset) + bytes.len() <= usize::from(total);
    (is_within && !bytes.is_empty()).then_some(Fragment { id, offset, total, bytes })
}

/// Bytes before the segment or the fragment's bytes.
pub(super) const PADDED_HEADER: usize = 8;
const FRAGMENT_HEADER: usize = 12;

/// A fragment has at least this many bytes, so a segment has at most 1024 fragments.
const FRAGMENT_MIN: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_padded_cut_or_left_alone() {
        let cases = [
            // Segment, largest and least datagram; then the layout, total bytes, and number of datagrams.
            (100, 1200, 0, Layout::Bare, 132, 1),
            (100, 1200, 132, Layout::Bare, 132, 1),
            (100, 1200, 139, Layout::Bare, 132, 1),
            (100, 1200, 140, Layout::Padded(140), 140, 1),
            (100, 1200, 5000, Layout::Padded(1200), 1200, 1),
            (1168, 1200, 1200, Layout::Bare, 1200, 1),
            // 1156 bytes in each datagram except the last.
            (1169, 1200, 1200, Layout::Fragments(1200), 1169 + 2 * 44, 2),
            (2312, 1200, 0, Layout::Fragments(1200), 2400, 2),
            (2313, 1200, 0, Layout::Fragments(1200), 2313 + 3 * 44, 3),
        ];
        for (len, max, pad_to, layout, bytes, count) in cases {
            assert_eq!(Layout::of(len, max, pad_to), Ok(layout), "{len} in {max}");
            assert_eq!(layout.size(len), (bytes, count), "{len} in {max}");
        }
        assert_eq!(Layout::of(65_536, 65_536, 0), Err(SealError::TooLong));
        assert_eq!(Layout::of(1000, 107, 0), Err(SealError::TooLong), "63 bytes in each are too few");
        assert_eq!(Layout::of(1000, 108, 0), Ok(Layout::Fragments(108)));
    }

    #[test]
    fn fragments_are_laid_out_in_place() {
        let text: Vec<u8> = (0..200).collect();
        let layout = Layout::of(text.len(), 132, 0).unwrap();
        let mut space = vec![0; layout.size(text.len()).0];
        space[layout.segment_at()..][..text.len()].copy_from_slice(&text);
        layout.fill(text.len(), 7, &mut space);
        let mut whole: Vec<u8> = vec![];
        for datagram in space.chunks(132) {
            let plain = &datagram[16..datagram.len() - 16];
            let part = fragment(plain).unwrap();
            assert_eq!((part.id, usize::from(part.offset), part.total), (7, whole.len(), 200));
            whole.extend(part.bytes);
        }
        assert_eq!(whole, text);
    }

    #[test]
    fn invalid_fragment_is_refused() {
        let good = [0, 0, 0, 4, 0, 0, 0, 9, 0, 2, 0, 4, 5, 6];
        assert_eq!(fragment(&good), Some(Fragment { id: 9, offset: 2, total: 4, bytes: &[5, 6] }));
        assert_eq!(fragment(&good[..12]), None, "it has nothing");
        assert_eq!(fragment(&[&good[..], &[7]].concat()), None, "it goes past the end");
        assert_eq!(padded(&[0, 0, 0, 3, 0, 2, 0, 0, 1, 2, 0]), Some(8..10));
        assert_eq!(padded(&[0, 0, 0, 3, 0, 4, 0, 0, 1, 2, 0]), None);
    }
}
