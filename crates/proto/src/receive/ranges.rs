//! A set of places as disjoint ranges that do not touch.

use std::collections::BTreeMap;

use crate::seq::Offset;

/// Ranges `left..right` in their order. Each operation is O(log n) in their number, amortised where ranges merge; their number
/// is bounded by what may arrive, in bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(BTreeMap<Offset, Offset>);

impl Ranges {
    /// Adds a range and what of it was there already.
    pub(crate) fn insert(&mut self, mut left: Offset, mut right: Offset) {
        if let Some((start, end)) = self.at_or_before(left)
            && end >= left
        {
            (left, right) = (start, right.max(end));
        }
        while let Some((&start, &end)) = self.0.range(left..=right).next() {
            self.0.remove(&start);
            right = right.max(end);
        }
        self.0.insert(left, right);
    }

    /// The range in which a place lies.
    pub(crate) fn around(&self, place: Offset) -> Option<(Offset, Offset)> {
        self.at_or_before(place).filter(|&(_, end)| place < end)
    }

    /// The first part of `left..right` that is not in the set.
    pub(crate) fn gap(&self, left: Offset, right: Offset) -> Option<(Offset, Offset)> {
        let start = self.around(left).map_or(left, |(_, end)| end);
        let end = self.0.range(start..).next().map_or(right, |(&next, _)| next.min(right));
        (start < end).then_some((start, end))
    }

    /// Takes the first range away if it begins at `place` or before it.
    pub(crate) fn take_first(&mut self, place: Offset) -> Option<(Offset, Offset)> {
        let entry = self.0.first_entry()?;
        (*entry.key() <= place).then(|| entry.remove_entry())
    }

    /// The end of the last range.
    pub(crate) fn end(&self) -> Option<Offset> {
        self.0.last_key_value().map(|(_, &end)| end)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn at_or_before(&self, place: Offset) -> Option<(Offset, Offset)> {
        self.0.range(..=place).next_back().map(|(&start, &end)| (start, end))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranges(of: &[(Offset, Offset)]) -> Ranges {
        let mut ranges = Ranges::default();
        of.iter().for_each(|&(left, right)| ranges.insert(left, right));
        ranges
    }

    #[test]
    fn neighbours_merge() {
        let ranges = ranges(&[(10, 20), (30, 40), (20, 30)]);
        assert_eq!((ranges.around(15), ranges.end()), (Some((10, 40)), Some(40)));
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
        /// A set of places, by another way.
        #[test]
        fn ranges_are_a_set(inserted in prop::collection::vec((0..100u64, 1..15u64), 0..40), probe in (0..110u64, 1..15u64)) {
            let (mut ranges, mut places) = (Ranges::default(), [false; 128]);
            for (left, len) in inserted {
                ranges.insert(left, left + len);
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
    }
}
