//! Reassembly of fragments, which carry segments that are too long for their path.
//!
//! If a fragment is lost, the segment is lost, and is retransmitted with another id. So nothing is requested again, and at the
//! limit older segments are dropped.

use std::collections::VecDeque;

use anabranch_units::{Span, Time};
use bytes::Bytes;

use super::plain::Fragment;

/// Incomplete segments, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    parts: VecDeque<Part>,
    /// The memory of all incomplete segments, counted with their complete size.
    bytes: usize,
}

#[derive(Debug)]
struct Part {
    id: u32,
    since: Time,
    buffer: Vec<u8>,
    /// The received bytes, as disjoint ranges in order.
    ranges: Vec<(u16, u16)>,
}

impl Reassembly {
    /// A fragment arrived. Returns the segment if it is complete.
    pub(super) fn insert(&mut self, now: Time, fragment: &Fragment<'_>) -> Option<Bytes> {
        let at = match self.parts.iter().position(|part| part.id == fragment.id) {
            Some(at) => at,
            None => self.begin(now, fragment),
        };
        let part = &mut self.parts[at];
        if !part.insert(fragment) || part.ranges != [(0, fragment.total)] {
            return None;
        }
        let part = self.parts.remove(at)?;
        self.bytes -= part.buffer.len();
        Some(part.buffer.into())
    }

    /// When [`Reassembly::expire`] must be called.
    pub(super) fn deadline(&self) -> Time {
        self.parts.front().map_or(Time::NEVER, |part| part.since.saturating_add(LIFE))
    }

    /// Drops segments that have been incomplete for too long.
    pub(super) fn expire(&mut self, now: Time) {
        while self.deadline() <= now {
            self.drop_oldest();
        }
    }

    fn begin(&mut self, now: Time, fragment: &Fragment<'_>) -> usize {
        let len = usize::from(fragment.total);
        while self.parts.len() >= SEGMENTS_MAX || self.bytes + len > BYTES_MAX {
            self.drop_oldest();
        }
        self.bytes += len;
        self.parts.push_back(Part { id: fragment.id, since: now, buffer: vec![0; len], ranges: vec![] });
        self.parts.len() - 1
    }

    fn drop_oldest(&mut self) {
        if let Some(part) = self.parts.pop_front() {
            self.bytes -= part.buffer.len();
        }
    }
}

impl Part {
    /// Adds a fragment. Returns whether it is consistent and new.
    fn insert(&mut self, fragment: &Fragment<'_>) -> bool {
        let Fragment { offset: from, total, bytes, .. } = *fragment;
        if usize::from(total) != self.buffer.len() {
            return false;
        }
        let to = from + bytes.len() as u16;
        // The first range that ends after the fragment's start.
        let at = self.ranges.partition_point(|range| range.1 <= from);
        if self.ranges.get(at).is_some_and(|range| range.0 < to) {
            return false;
        }
        let touches_next = self.ranges.get(at).is_some_and(|range| range.0 == to);
        let touches_last = at > 0 && self.ranges[at - 1].1 == from;
        match (touches_last, touches_next) {
            (true, true) => self.ranges[at - 1].1 = self.ranges.remove(at).1,
            (true, false) => self.ranges[at - 1].1 = to,
            (false, true) => self.ranges[at].0 = from,
            (false, false) if self.ranges.len() >= RANGES_MAX => return false,
            (false, false) => self.ranges.insert(at, (from, to)),
        }
        self.buffer[usize::from(from)..usize::from(to)].copy_from_slice(bytes);
        true
    }
}

/// The limits of incomplete segments of one connection, in segments and bytes.
const SEGMENTS_MAX: usize = 16;
const BYTES_MAX: usize = 256 * 1024;

/// A segment in so many separate ranges is not worth the search.
const RANGES_MAX: usize = 64;

/// A retransmission is another segment, and comes long before this.
const LIFE: Span = Span::from_secs(10);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::secs;

    fn piece(id: u32, offset: u16, total: u16, bytes: &[u8]) -> Fragment<'_> {
        Fragment { id, offset, total, bytes }
    }

    #[test]
    fn two_segments_come_mixed() {
        let mut waiting = Reassembly::default();
        assert_eq!(waiting.insert(secs(0), &piece(1, 2, 4, b"cd")), None);
        assert_eq!(waiting.insert(secs(0), &piece(2, 0, 3, b"x")), None);
        assert_eq!(waiting.insert(secs(0), &piece(1, 0, 4, b"ab")), Some(Bytes::from_static(b"abcd")));
        assert_eq!(waiting.insert(secs(0), &piece(2, 1, 3, b"yz")), Some(Bytes::from_static(b"xyz")));
        assert_eq!((waiting.parts.len(), waiting.bytes), (0, 0));
    }

    #[test]
    fn overlapping_fragment_is_dropped() {
        let mut waiting = Reassembly::default();
        waiting.insert(secs(0), &piece(1, 2, 6, b"cd"));
        for bad in [piece(1, 2, 6, b"xx"), piece(1, 0, 6, b"xxx"), piece(1, 3, 6, b"x"), piece(1, 4, 7, b"xxx")] {
            assert_eq!(waiting.insert(secs(0), &bad), None);
        }
        waiting.insert(secs(0), &piece(1, 4, 6, b"ef"));
        assert_eq!(waiting.insert(secs(0), &piece(1, 0, 6, b"ab")), Some(Bytes::from_static(b"abcdef")));
    }

    #[test]
    fn the_oldest_gives_way() {
        let mut waiting = Reassembly::default();
        for id in 0..1000 {
            waiting.insert(secs(0), &piece(id, 0, 100, b"x"));
        }
        let ids: Vec<_> = waiting.parts.iter().map(|part| part.id).collect();
        assert_eq!(ids, (984..1000).collect::<Vec<_>>());
        for id in 1000..2000 {
            waiting.insert(secs(0), &piece(id, 0, 65_535, b"x"));
        }
        assert_eq!((waiting.parts.len(), waiting.bytes), (4, 4 * 65_535), "256 kB");
    }

    #[test]
    fn a_segment_in_too_many_pieces_is_given_up() {
        let mut waiting = Reassembly::default();
        for at in 0..10_000 {
            waiting.insert(secs(0), &piece(1, 2 * at, 60_000, b"x"));
        }
        assert_eq!(waiting.parts[0].ranges.len(), 64);
    }

    #[test]
    fn incomplete_fragments_expire() {
        let mut waiting = Reassembly::default();
        waiting.insert(secs(1), &piece(1, 0, 100, b"x"));
        waiting.insert(secs(2), &piece(2, 0, 100, b"x"));
        assert_eq!(waiting.deadline(), secs(11));
        waiting.expire(secs(11));
        assert_eq!((waiting.deadline(), waiting.bytes), (secs(12), 100));
        waiting.expire(secs(12));
        assert_eq!((waiting.deadline(), waiting.bytes), (Time::NEVER, 0));
    }

    proptest! {
        /// A segment that is split in any way, with fragments in any order, is reassembled.
        #[test]
        fn a_segment_is_whole_when_all_of_it_came(
            text in prop::collection::vec(any::<u8>(), 1..3000),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
            order in any::<u64>(),
        ) {
            let mut edges: Vec<_> = cuts.iter().map(|cut| cut.index(text.len())).chain([0, text.len()]).collect();
            edges.sort_unstable();
            edges.dedup();
            let mut pieces: Vec<_> = edges.windows(2).map(|edge| (edge[0], &text[edge[0]..edge[1]])).collect();
            let mut lot = order;
            for at in (1..pieces.len()).rev() {
                lot = lot.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                pieces.swap(at, (lot >> 33) as usize % (at + 1));
            }
            let mut waiting = Reassembly::default();
            let (last, others) = pieces.split_last().unwrap();
            for (offset, bytes) in others {
                prop_assert_eq!(waiting.insert(secs(0), &piece(1, *offset as u16, text.len() as u16, bytes)), None);
            }
            let whole = waiting.insert(secs(0), &piece(1, last.0 as u16, text.len() as u16, last.1));
            prop_assert_eq!(whole.as_deref(), Some(&text[..]));
        }
    }
}
