//! The nonces of sent segments. With their sums a peer proves receipt.
//!
//! Each entry has the sum of all nonces up to its own, modulo 2^16, so the sum over a block is a difference.

use super::{Block, Index, Scoreboard};
use crate::seq::Offset;

impl<T> Scoreboard<T> {
    /// The nonce of a segment.
    pub(crate) fn nonce(&self, index: Index) -> u16 {
        let original = self.original(index);
        self.entry(index).nonces.wrapping_sub(self.nonces_before(original))
    }

    /// The sum of the nonces of all segments below `place`; `None` if that is below the cumulative acknowledgement.
    pub(crate) fn nonces_below(&self, place: Offset) -> Option<u16> {
        (place >= self.acked).then(|| self.nonces_before(self.end_of(place, self.first)))
    }

    /// The sum of the nonces of all segments in `left..right`; `None` if some of them are no longer stored.
    pub(crate) fn nonces_within(&self, left: Offset, right: Offset) -> Option<u16> {
        if left < self.acked || right > self.next {
            return None;
        }
        let known = self.blocks.iter().find(|block| block.left == left && block.right > left);
        let from = known.map_or_else(|| self.first + self.position(left) as u64, |block| block.from);
        // Delivered entries may extend beyond the block.
        let is_last = |block: &&Block| block.right == right && block.upto > from && self.end(block.upto - 1) == right;
        let upto = known.filter(is_last).map_or_else(|| self.end_of(right, from), |block| block.upto);
        Some(self.nonces_before(upto).wrapping_sub(self.nonces_before(from)))
    }

    /// The first entry at or above `from` that ends above `place`.
    fn end_of(&self, place: Offset, from: Index) -> Index {
        let above = self.first + self.position(place) as u64;
        above - u64::from(above > from && self.end(above - 1) > place)
    }

    fn end(&self, index: Index) -> Offset {
        let entry = self.entry(index);
        entry.offset + u64::from(entry.len)
    }

    /// The sum of the nonces of all segments before an entry.
    fn nonces_before(&self, index: Index) -> u16 {
        if index > self.first { self.entry(index - 1).nonces } else { self.nonces }
    }
}
