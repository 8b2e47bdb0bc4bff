//! Sets of packets as intervals.

/// Disjoint intervals that are not adjacent, in order; each is `left..right`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges(Vec<(i32, i32)>);

impl Ranges {
    /// The intervals, lowest first.
    pub(crate) fn as_slice(&self) -> &[(i32, i32)] {
        &self.0
    }

    pub(crate) fn contains(&self, seq: i32) -> bool {
        let index = self.0.partition_point(|range| range.1 <= seq);
        self.0.get(index).is_some_and(|range| range.0 <= seq)
    }

    pub(crate) fn insert(&mut self, left: i32, right: i32) {
        let first = self.0.partition_point(|range| range.1 < left);
        let end = first + self.0[first..].partition_point(|range| range.0 <= right);
        let merged = match self.0.get(first..end) {
            Some([only]) => (left.min(only.0), right.max(only.1)),
            Some([low, .., high]) => (left.min(low.0), right.max(high.1)),
            _ => (left, right),
        };
        self.0.splice(first..end, [merged]);
    }

    /// Removes everything below `from`.
    pub(crate) fn remove_below(&mut self, from: i32) {
        let gone = self.0.partition_point(|range| range.1 <= from);
        self.0.drain(..gone);
        if let Some((left, _)) = self.0.first_mut() {
            *left = (*left).max(from);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_where_they_touch() {
        let mut ranges = Ranges::default();
        [(12, 14), (20, 21), (16, 18), (14, 16)].into_iter().for_each(|(left, right)| ranges.insert(left, right));
        assert_eq!(ranges.as_slice(), [(12, 18), (20, 21)]);
        let inside: Vec<i32> = (10..22).filter(|&seq| ranges.contains(seq)).collect();
        assert_eq!(inside, [12, 13, 14, 15, 16, 17, 20]);
    }

    #[test]
    fn ranges_below_edge_go_and_crossing_one_is_cut() {
        let mut ranges = Ranges::default();
        [(2, 4), (6, 9), (11, 12)].into_iter().for_each(|(left, right)| ranges.insert(left, right));
        ranges.remove_below(7);
        assert_eq!(ranges.as_slice(), [(7, 9), (11, 12)]);
        ranges.remove_below(9);
        assert_eq!(ranges.as_slice(), [(11, 12)]);
    }
}
