//! The packets of a sequence that have arrived: all before the first hole, and blocks above it.

/// The arrived packets of a sequence that starts at 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    /// First packet that has not arrived (`next`).
    next: i32,
    /// Packets above `next` that have arrived, as `left..right`: disjoint, not adjacent, in order.
    above: Vec<(i32, i32)>,
    /// The number of packets in `above`.
    held: u32,
}

/// The effect of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It is a duplicate.
    Again,
    /// It lies above a hole, a missing packet.
    Above,
    /// It was the first missing packet: this many packets are newly in order.
    InOrder(u32),
}

impl Arrivals {
    pub(crate) fn take(&mut self, seq: i32) -> Arrival {
        // The common case: there is no hole, and this is the next packet.
        if seq == self.next && self.above.is_empty() {
            self.next += 1;
            return Arrival::InOrder(1);
        }
        self.take_beside_hole(seq)
    }

    fn take_beside_hole(&mut self, seq: i32) -> Arrival {
        let index = self.above.partition_point(|block| block.1 <= seq);
        if self.has_at(index, seq) {
            return Arrival::Again;
        }
        if seq == self.next {
            let before = self.next;
            self.next = match self.above.first() {
                Some(&(left, right)) if left == seq + 1 => {
                    self.above.remove(0);
                    self.held -= left.abs_diff(right);
                    right
                }
                _ => seq + 1,
            };
            return Arrival::InOrder(before.abs_diff(self.next));
        }
        self.insert(index, seq);
        Arrival::Above
    }

    /// Whether the packet has arrived.
    pub(crate) fn has(&self, seq: i32) -> bool {
        self.has_at(self.above.partition_point(|block| block.1 <= seq), seq)
    }

    /// First packet that has not arrived.
    pub(crate) fn next(&self) -> i32 {
        self.next
    }

    /// The blocks above [`Self::next`], lowest first.
    pub(crate) fn above(&self) -> &[(i32, i32)] {
        &self.above
    }

    /// The number of packets in the blocks.
    pub(crate) fn held(&self) -> u32 {
        self.held
    }

    /// Whether `seq` has arrived. `index` is that of the first block that ends after `seq`.
    fn has_at(&self, index: usize, seq: i32) -> bool {
        seq < self.next || self.above.get(index).is_some_and(|block| block.0 <= seq)
    }

    /// Adds `seq`, which lies in no block. `index` is that of the first block that ends after `seq`.
    fn insert(&mut self, index: usize, seq: i32) {
        self.held += 1;
        let joins_left = index > 0 && self.above[index - 1].1 == seq;
        let joins_right = self.above.get(index).is_some_and(|block| block.0 == seq + 1);
        match (joins_left, joins_right) {
            (true, true) => {
                self.above[index - 1].1 = self.above[index].1;
                self.above.remove(index);
            }
            (true, false) => self.above[index - 1].1 = seq + 1,
            (false, true) => self.above[index].0 = seq,
            (false, false) => self.above.insert(index, (seq, seq + 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0, then 2 and 3, 5, and 4 between them, 3 again; 1 fills the hole.
    #[test]
    fn blocks_grow_join_and_are_taken() {
        let mut arrivals = Arrivals::default();
        let taken = [0, 2, 3, 5, 4, 3, 1, 0].map(|seq| arrivals.take(seq));
        let above = Arrival::Above;
        let expected =
            [Arrival::InOrder(1), above, above, above, above, Arrival::Again, Arrival::InOrder(5), Arrival::Again];
        assert_eq!(taken, expected);
        assert_eq!((arrivals.next(), arrivals.held(), arrivals.above().len()), (6, 0, 0));
    }

    #[test]
    fn held_packets_lie_in_blocks() {
        let mut arrivals = Arrivals::default();
        [9, 7, 3, 8, 1].into_iter().for_each(|seq| _ = arrivals.take(seq));
        assert_eq!((arrivals.above(), arrivals.held()), (&[(1, 2), (3, 4), (7, 10)][..], 5));
        assert_eq!(arrivals.take(0), Arrival::InOrder(2));
        assert_eq!((arrivals.next(), arrivals.held()), (2, 4));
    }
}
