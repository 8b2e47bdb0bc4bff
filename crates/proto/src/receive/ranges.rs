//! A set of offsets, as disjoint ranges that are not adjacent.

use crate::ordered::{Ordered, Pool};
use crate::seq::Offset;

/// Ranges `left..right`, ordered by `left`. Each operation searches once and removes merged ranges; the number of ranges is bounded
/// by the bytes that may arrive.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    /// Right ends by left ends.
    ends: Ordered<End>,
    pool: Pool<End>,
    /// The start of the first range and the end of the last; equal if there is none.
    start: Offset,
    end: Offset,
}

/// A contiguous range, and the sum of the nonces in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) left: Offset,
    pub(crate) right: Offset,
    pub(crate) nonces: u16,
}

#[derive(Clone, Copy, Debug)]
struct End {
    right: Offset,
    nonces: u16,
}

impl Range {
    fn of(&(left, End { right, nonces }): &(Offset, End)) -> Self {
        Self { left, right, nonces }
    }
}

impl Ranges {
    /// Adds a range. Returns the merged range of which it is a part.
    pub(crate) fn insert(&mut self, range: Range) -> Range {
        let Range { left, right, mut nonces } = range;
        if self.is_empty() || left > self.end {
            if self.is_empty() {
                self.start = left;
            }
            self.end = right;
            self.ends.push_last(left, End { right, nonces }, &mut self.pool);
            return range;
        }
        // In-order data extends the last range.
        if left == self.end
            && let Some((start, last)) = self.ends.last_mut()
        {
            (last.right, last.nonces) = (right, last.nonces.wrapping_add(nonces));
            self.end = right;
            return Range { left: *start, right, nonces: last.nonces };
        }
        (self.start, self.end) = (self.start.min(left), self.end.max(right));
        let place = self.ends.above(left);
        let touched = match self.ends.before(place) {
            Some(before) if self.ends.at(before).is_some_and(|range| range.1.right >= left) => before,
            _ if self.ends.at(place).is_some_and(|range| range.0 <= right) => place,
            _ => {
                self.ends.insert_at(place, left, End { right, nonces }, &mut self.pool);
                return range;
            }
        };
        let &(start, end) = self.ends.at(touched).expect("it was just looked at");
        let (left, mut right) = (start.min(left), end.right.max(right));
        nonces = nonces.wrapping_add(end.nonces);
        loop {
            let next = self.ends.after(touched);
            let Some(&(_, end)) = self.ends.at(next).filter(|range| range.0 <= right) else { break };
            self.ends.remove_at(next, &mut self.pool);
            right = right.max(end.right);
            nonces = nonces.wrapping_add(end.nonces);
        }
        *self.ends.at_mut(touched).expect("it is still there") = (left, End { right, nonces });
        Range { left, right, nonces }
    }

    /// The first part of `left..right` that is not in the set.
    pub(crate) fn gap(&self, left: Offset, right: Offset) -> Option<(Offset, Offset)> {
        // In most cases it lies below or above all ranges.
        if right <= self.start || self.end <= left {
            return (left < right).then_some((left, right));
        }
        self.gap_within(left, right)
    }

    fn gap_within(&self, left: Offset, right: Offset) -> Option<(Offset, Offset)> {
        let above = self.ends.above(left);
        let around =
            self.ends.before(above).and_then(|before| self.ends.at(before)).filter(|range| left < range.1.right);
        let start = around.map_or(left, |range| range.1.right);
        let end = self.ends.at(above).map_or(right, |range| range.0.min(right));
        (start < end).then_some((start, end))
    }

    /// Removes the first range if it begins at or below `place`.
    pub(crate) fn take_first(&mut self, place: Offset) -> Option<Range> {
        if self.is_empty() || self.start > place {
            return None;
        }
        self.pop_first()
    }

    fn pop_first(&mut self) -> Option<Range> {
        let first = self.ends.pop_first(&mut self.pool);
        self.start = self.ends.first().map_or(self.end, |range| range.0);
        first.as_ref().map(Range::of)
    }

    /// The memory of the ranges.
    pub(crate) fn bytes(&self) -> u64 {
        self.pool.bytes()
    }

    /// The number of ranges.
    pub(crate) fn count(&self) -> usize {
        self.pool.entries()
    }

    /// Whether the range touches an existing one.
    pub(crate) fn touches(&self, left: Offset, right: Offset) -> bool {
        let above = self.ends.above(left);
        let before = self.ends.before(above).and_then(|before| self.ends.at(before));
        before.is_some_and(|range| range.1.right >= left) || self.ends.at(above).is_some_and(|range| range.0 <= right)
    }

    /// The end of the last range.
    pub(crate) fn end(&self) -> Option<Offset> {
        (!self.is_empty()).then_some(self.end)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The range that contains an offset.
    pub(crate) fn around(&self, place: Offset) -> Option<Range> {
        let before = self.ends.before(self.ends.above(place))?;
        self.ends.at(before).map(Range::of).filter(|range| place < range.right)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranges(of: &[(Offset, Offset)]) -> Ranges {
        let mut ranges = Ranges::default();
        of.iter().for_each(|&(left, right)| assert!(ranges.insert(Range { left, right, nonces: 1 }).right >= right));
        ranges
    }

    #[test]
    fn neighbours_merge() {
        let ranges = ranges(&[(10, 20), (30, 40), (20, 30)]);
        assert_eq!((ranges.around(15), ranges.end()), (Some(Range { left: 10, right: 40, nonces: 3 }), Some(40)));
    }

    #[test]
    fn a_gap_is_what_is_missing() {
        let ranges = ranges(&[(10, 20), (30, 40)]);
        assert_eq!(ranges.gap(5, 50), Some((5, 10)));
        assert_eq!(ranges.gap(10, 50), Some((20, 30)));
        assert_eq!(ranges.gap(12, 20), None);
        assert_eq!(ranges.gap(30, 60), Some((40, 60)));
    }

    proptest! {
        /// The ranges equal a set of offsets.
        #[test]
        fn ranges_are_a_set(inserted in prop::collection::vec((0..100u64, 1..15u64), 0..40), probe in (0..110u64, 1..15u64)) {
            let (mut ranges, mut places) = (Ranges::default(), [false; 128]);
            for (left, len) in inserted {
                ranges.insert(Range { left, right: left + len, nonces: 0 });
                (left..left + len).for_each(|place| places[place as usize] = true);
            }
            let missing = (probe.0..probe.0 + probe.1).find(|&place| !places[place as usize]);
            let gap = ranges.gap(probe.0, probe.0 + probe.1);
            prop_assert_eq!(gap.map(|(left, _)| left), missing);
            if let Some((left, right)) = gap {
                prop_assert!((left..right).all(|place| !places[place as usize]));
                prop_assert!(right == probe.0 + probe.1 || places[right as usize]);
            }
            for place in 0..110 {
                prop_assert_eq!(ranges.around(place).is_some(), places[place as usize]);
            }
        }

        /// Removing the lowest range leaves the others, and both ends are right.
        #[test]
        fn edges_are_those_of_the_set(operations in prop::collection::vec((any::<bool>(), 1..100u64, 1..15u64), 0..60)) {
            let (mut ranges, mut places) = (Ranges::default(), [false; 128]);
            for (is_taken, left, len) in operations {
                let first = places.iter().position(|&is_in| is_in);
                if is_taken {
                    let first = first.filter(|&first| first as u64 <= left);
                    let taken = first.map(|first| (first, first + places[first..].iter().take_while(|&&is_in| is_in).count()));
                    let range = ranges.take_first(left).map(|range| (range.left, range.right));
                    prop_assert_eq!(range, taken.map(|(left, right)| (left as u64, right as u64)));
                    taken.into_iter().for_each(|(left, right)| places[left..right].fill(false));
                } else {
                    ranges.insert(Range { left, right: left + len, nonces: 0 });
                    places[left as usize..(left + len) as usize].fill(true);
                }
                let end = places.iter().rposition(|&is_in| is_in).map(|last| last as u64 + 1);
                prop_assert_eq!((ranges.end(), ranges.is_empty()), (end, end.is_none()));
                let missing = (left..left + 20).find(|&place| !places.get(place as usize).is_some_and(|&is_in| is_in));
                prop_assert_eq!(ranges.gap(left, left + 20).map(|gap| gap.0), missing);
            }
        }
    }
}
