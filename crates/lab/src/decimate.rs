//! Thins a series out without losing a spike: time is divided into equal slices, and each slice keeps its first, its last, its
//! least and its largest point. Between two pixels the drawing is then the same as with all points.

/// The number of points that a slice keeps at most.
const KEPT_OF_A_SLICE: usize = 4;

/// Positions of the points to keep, in order: all if there are at most `points_max`, which is at least four. `point` gives the time and the value of each
/// of `length` points; times never decrease, and lie in `span`, which is divided.
pub(crate) fn decimate(
    length: usize,
    point: impl Fn(usize) -> (f64, f64),
    span: (f64, f64),
    points_max: usize,
) -> Vec<usize> {
    if length <= points_max {
        return (0..length).collect();
    }
    let slices = (points_max / KEPT_OF_A_SLICE).max(1);
    let (begin, end) = span;
    // A series at one time is one slice: 0 / 0 is NaN, which converts to slice 0.
    let slice = |time: f64| (((time - begin) / (end - begin) * slices as f64) as usize).min(slices - 1);
    let mut kept = Vec::with_capacity(slices * KEPT_OF_A_SLICE);
    let mut keep = |first: usize, least: usize, largest: usize, last: usize| {
        let mut points = [first, least, largest, last];
        points.sort_unstable();
        let known = kept.len();
        for point in points {
            if kept[known..].last() != Some(&point) {
                kept.push(point);
            }
        }
    };
    // The first point of a slice, and its extremes. NaN is no extreme.
    let (mut first, mut number) = (0, usize::MAX);
    let (mut least, mut largest) = ((0, f64::NAN), (0, f64::NAN));
    for index in 0..length {
        let (time, value) = point(index);
        let now = slice(time);
        if now != number {
            if index > 0 {
                keep(first, least.0, largest.0, index - 1);
            }
            (first, number, least, largest) = (index, now, (index, value), (index, value));
        }
        if value < least.1 || least.1.is_nan() {
            least = (index, value);
        }
        if value > largest.1 || largest.1.is_nan() {
            largest = (index, value);
        }
    }
    keep(first, least.0, largest.0, length - 1);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimated(t: &[f64], v: &[f64], points_max: usize) -> Vec<usize> {
        let span = t.first().zip(t.last()).map_or((0.0, 0.0), |(begin, end)| (*begin, *end));
        decimate(t.len(), |index| (t[index], v[index]), span, points_max)
    }

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
            let kept = decimated(&t, &v, points_max);
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
            let kept = decimated(&t, &v, 1000);
            assert!(kept.len() <= 1000 && kept.contains(&spike) && kept.contains(&0) && kept.contains(&999_999));
        }
    }

    #[test]
    fn a_series_at_one_time_and_one_with_gaps_are_bounded_too() {
        let still = decimated(&[3.0; 100], &(0..100).map(f64::from).collect::<Vec<_>>(), 8);
        assert_eq!(still, [0, 99]);
        let t: Vec<f64> = (0..100).map(f64::from).collect();
        let v: Vec<f64> = (0..100).map(|index| if index % 3 == 0 { f64::NAN } else { 1.0 }).collect();
        assert!(decimated(&t, &v, 8).len() <= 8);
        assert_eq!(decimated(&[], &[], 4), Vec::<usize>::new());
    }
}
