//! The scoreboard of ns-2's SACK sender: which packets above the cumulative ACK the receiver has, as disjoint intervals.

use crate::packet::SackBlocks;
use crate::ranges::Ranges;

#[derive(Clone, Debug, Default)]
pub(crate) struct Sacked {
    blocks: Ranges,
    /// First packet above the cumulative ACK at the last update of the scoreboard.
    base: i32,
    /// First packet that has not been resent in this episode.
    resend_from: i32,
}

impl Sacked {
    pub(crate) fn new() -> Self {
        Self { blocks: Ranges::default(), base: -1, resend_from: -1 }
    }

    /// Forgets all blocks.
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
        self.resend_from = -1;
    }

    /// Processes the blocks of an ACK; `acked` is the highest cumulative ACK. Returns whether the blocks reported anything new:
    /// only then the ACK counts as a duplicate.
    pub(crate) fn update(&mut self, acked: i32, sack: &SackBlocks) -> bool {
        let before = self.packets();
        let mut changed = false;
        if self.base <= acked {
            self.base = acked + 1;
            changed = !self.blocks.as_slice().is_empty();
            self.blocks.remove_below(acked + 1);
        }
        for &(left, right) in sack.as_slice() {
            self.blocks.insert(left, right);
        }
        changed || self.packets() != before
    }

    /// The next hole to resend: the first packet that is neither sacked nor resent and lies below a sacked one.
    pub(crate) fn next_hole(&mut self) -> Option<i32> {
        self.resend_from = self.resend_from.max(self.base);
        let blocks = self.blocks.as_slice();
        for (index, &(left, right)) in blocks.iter().enumerate() {
            if left > self.resend_from {
                return Some(self.resend_from);
            }
            if right >= self.resend_from {
                // Packets after the last block are not in a hole.
                if index + 1 == blocks.len() {
                    return None;
                }
                self.resend_from = right;
                return Some(right);
            }
        }
        None
    }

    /// Records that `seq` was resent.
    pub(crate) fn mark_resent(&mut self, seq: i32) {
        self.resend_from = self.resend_from.max(seq + 1);
    }

    /// `from` if no packet up to it is sacked, else the first packet from there on that is not sacked. `None` if nothing is
    /// sacked at all (`GetNextUnacked`).
    pub(crate) fn first_missing_from(&self, from: i32) -> Option<i32> {
        let &(left, right) = self.blocks.as_slice().iter().find(|block| block.1 >= from)?;
        Some(if left > from { from } else { right })
    }

    /// The number of missing packets between the cumulative ACK and the highest sacked packet.
    pub(crate) fn missing(&self) -> usize {
        let mut edge = self.base;
        let mut missing = 0;
        for &(left, right) in self.blocks.as_slice() {
            missing += (left - edge).max(0);
            edge = right;
        }
        missing.unsigned_abs() as usize
    }

    fn packets(&self) -> i32 {
        self.blocks.as_slice().iter().map(|(left, right)| right - left).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sack(blocks: &[(i32, i32)]) -> SackBlocks {
        let mut sack = SackBlocks::default();
        blocks.iter().for_each(|&(left, right)| sack.push(left, right));
        sack
    }

    #[test]
    fn holes_come_in_order_and_once() {
        let mut sacked = Sacked::new();
        assert!(sacked.update(9, &sack(&[(16, 18), (12, 14)])));
        assert_eq!(sacked.missing(), 4);
        let mut resent = vec![];
        while let Some(hole) = sacked.next_hole() {
            resent.push(hole);
            sacked.mark_resent(hole);
        }
        assert_eq!(resent, [10, 11, 14, 15]);
    }

    #[test]
    fn an_ack_that_repeats_its_blocks_is_no_news() {
        let mut sacked = Sacked::new();
        assert!(sacked.update(9, &sack(&[(12, 14)])));
        assert!(!sacked.update(9, &sack(&[(12, 14)])));
        assert!(sacked.update(9, &sack(&[(12, 15)])));
        assert!(!sacked.update(9, &sack(&[])));
    }

    #[test]
    fn blocks_that_touch_become_one() {
        let mut sacked = Sacked::new();
        sacked.update(9, &sack(&[(12, 14), (16, 18)]));
        sacked.update(9, &sack(&[(14, 16)]));
        assert_eq!(sacked.missing(), 2, "10 and 11");
        sacked.update(13, &sack(&[]));
        assert_eq!(sacked.missing(), 0, "the cumulative ACK has filled the only hole");
    }
}
