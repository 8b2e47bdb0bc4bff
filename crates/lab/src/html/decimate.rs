//! Thins a series out without losing a spike: time is divided into equal slices, and each slice keeps its first, its last, its
//! least and its largest point. Between two pixels the drawing is then the same as with all points.

/// The number of points that a slice keeps at most.
const KEPT_OF_A_SLICE: usize = 4;

/// Positions of the points to keep, in order: all if there are at most `points_max`, which is at least four. Times never
/// decrease.
pub(super) fn decimate(t: &[f64], v: &[f64], points_max: usize) -> Vec<usize> {
    assert_eq!(t.len(), v.len(), "a point has a time and a value");
    if t.len() <= points_max {
        return (0..t.len()).collect();
    }
    let slices = (points_max / KEPT_OF_A_SLICE).max(1);
    let (begin, end) = (t[0], t[t.len() - 1]);
    // A series at one time is one slice: 0 / 0 is NaN, which converts to slice 0.
    let slice = |time: f64| (((time - begin) / (end - begin) * slices as f64) as usize).min(slices - 1);
    let mut kept = Vec::with_capacity(slices * KEPT_OF_A_SLICE);
    let mut first = 0;
    while first < t.len() {
        let number = slice(t[first]);
        let length = t[first..].partition_point(|&time| slice(time) == number);
        let last = first + length - 1;
        // NaN is no extreme.
        let numbers = || (first..=last).filter(|&index| !v[index].is_nan());
        let least = numbers().min_by(|&a, &b| v[a].total_cmp(&v[b])).unwrap_or(first);
        let largest = numbers().max_by(|&a, &b| v[a].total_cmp(&v[b])).unwrap_or(last);
        let mut points = [first, least, largest, last];
        points.sort_unstable();
        let known = kept.len();
        for point in points {
            if kept[known..].last() != Some(&point) {
                kept.push(point);
            }
        }
        first = last + 1;
    }
    kept
}

/// The largest number of points for each series such that all together have at most `total`: long series get what short ones do not
/// need.
pub(super) fn share(lengths: &[usize], total: usize) -> usize {
    let mut lengths = lengths.to_vec();
    lengths.sort_unstable();
    let mut left = total;
    for (index, &length) in lengths.iter().enumerate() {
        let share = left / (lengths.len() - index);
        if length > share {
            return share;
        }
        left -= length;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that are the same in every run (Knuth's MMIX generator).
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % bound
        }
    }

    /// Times with equal, small and large steps; values that jump.
    fn series(numbers: &mut Numbers, length: usize) -> (Vec<f64>, Vec<f64>) {
        let mut time = 0.0;
        let mut point = || {
            time += [0.0, 0.001, 0.02, 1.0][numbers.below(4) as usize];
            let spike = if numbers.below(50) == 0 { 1e6 } else { 1.0 };
            (time, (numbers.below(1000) as f64 - 500.0) * spike)
        };
        (0..length).map(|_| point()).unzip()
    }

    #[test]
    fn every_slice_keeps_its_extremes_and_no_more_than_four_points() {
        let mut numbers = Numbers(7);
        for _ in 0..300 {
            let (length, points_max) = (1 + numbers.below(3000) as usize, 4 + numbers.below(400) as usize);
            let (t, v) = series(&mut numbers, length);
            let kept = decimate(&t, &v, points_max);
            assert!(kept.len() <= points_max, "{} of {length} points, {points_max} allowed", kept.len());
            assert!(kept.is_sorted_by(|a, b| a < b), "in order, each once");
            // Any window of time of at least a slice consists of whole slices except at its ends; so the slices are compared.
            let slices = points_max / 4;
            if length <= points_max {
                assert_eq!(kept.len(), length);
                continue;
            }
            let (begin, end) = (t[0], t[length - 1]);
            for number in 0..slices {
                let edge = |number: usize| begin + (end - begin) * number as f64 / slices as f64;
                // Points on an edge may belong to either side.
                let inside = |index: &usize| t[*index] > edge(number) + 1e-9 && t[*index] < edge(number + 1) - 1e-9;
                let values = |indices: &mut dyn Iterator<Item = usize>| {
                    indices
                        .filter(inside)
                        .map(|index| v[index])
                        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
                };
                let all = values(&mut (0..length));
                let (low, high) = values(&mut kept.iter().copied());
                let on_edge = (0..length).any(|index| {
                    let distance = (t[index] - edge(number)).abs().min((t[index] - edge(number + 1)).abs());
                    distance <= 1e-9 && (v[index] <= all.0 || v[index] >= all.1)
                });
                assert!(on_edge || (low, high) == all, "slice {number} of {slices}: {all:?} became {low}..{high}");
            }
        }
    }

    #[test]
    fn one_high_point_among_a_million_stays() {
        let t: Vec<f64> = (0..1_000_000).map(f64::from).collect();
        for spike in [0, 1, 499_999, 777_777, 999_999] {
            let mut v = vec![1.0; t.len()];
            v[spike] = 2.0;
            let kept = decimate(&t, &v, 1000);
            assert!(kept.len() <= 1000 && kept.contains(&spike) && kept.contains(&0) && kept.contains(&999_999));
        }
    }

    #[test]
    fn a_series_at_one_time_and_one_with_gaps_are_bounded_too() {
        let still = decimate(&[3.0; 100], &(0..100).map(f64::from).collect::<Vec<_>>(), 8);
        assert_eq!(still, [0, 99]);
        let t: Vec<f64> = (0..100).map(f64::from).collect();
        let v: Vec<f64> = (0..100).map(|index| if index % 3 == 0 { f64::NAN } else { 1.0 }).collect();
        assert!(decimate(&t, &v, 8).len() <= 8);
        assert_eq!(decimate(&[], &[], 4), Vec::<usize>::new());
    }

    #[test]
    fn short_series_leave_their_points_to_long_ones() {
        assert_eq!(share(&[10, 10], 100), usize::MAX);
        assert_eq!(share(&[10, 1000, 1000], 110), 50);
        assert_eq!(share(&[1000, 20, 1000, 20], 100), 30);
        assert_eq!(share(&[], 100), usize::MAX);
    }
}
