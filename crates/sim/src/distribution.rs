//! Distributions of quantities over a run, in constant memory.

use anabranch_units::{SimSpan, SimTime};

/// The time for which a queue had each of its lengths. The packet in transmission counts.
#[derive(Clone, Debug, Default)]
pub struct QueueLengths {
    /// Total time at each length, in ticks; the index is the length.
    times: Vec<u64>,
    since: SimTime,
}

impl QueueLengths {
    /// Records that the queue had `packets` packets until `now`.
    pub(crate) fn advance(&mut self, now: SimTime, packets: usize) {
        let time = now.since(self.since).ticks();
        self.since = now;
        if let Some(total) = self.times.get_mut(packets) {
            *total += time;
        } else if time > 0 {
            self.lengthen(packets, time);
        }
    }

    /// Records the first time at a length.
    // Kept apart, it takes 8.2 % fewer instructions of `highspeed`.
    #[cold]
    fn lengthen(&mut self, packets: usize, time: u64) {
        self.times.resize(packets + 1, 0);
        self.times[packets] = time;
    }

    /// The time up to which lengths are recorded.
    pub(crate) fn since(&self) -> SimTime {
        self.since
    }

    fn total(&self) -> u64 {
        self.times.iter().sum()
    }

    /// Packets times picoseconds of waiting, not counting the packet in transmission.
    pub(crate) fn waiting_area(&self) -> u128 {
        (0..).zip(&self.times).map(|(packets, &time): (u128, _)| packets.saturating_sub(1) * u128::from(time)).sum()
    }

    /// The mean over time; 0 if no time has passed.
    pub fn mean(&self) -> f64 {
        let area: u128 = (0..).zip(&self.times).map(|(packets, &time): (u128, _)| packets * u128::from(time)).sum();
        if area == 0 { 0.0 } else { area as f64 / self.total() as f64 }
    }

    /// The mean over the time since `earlier`, of the same queue; 0 if no time has passed.
    pub fn mean_since(&self, earlier: &Self) -> f64 {
        let before = earlier.times.iter().copied().chain(std::iter::repeat(0));
        let (area, time) =
            (0..).zip(self.times.iter().zip(before)).fold((0, 0), |(area, total), (packets, (now, then))| {
                let time = u128::from(now - then);
                (area + packets * time, total + time)
            });
        if time == 0 { 0.0 } else { area as f64 / time as f64 }
    }

    /// The least length that the queue did not exceed for this share of the time: 0.95 gives the 95th percentile.
    pub fn quantile(&self, share: f64) -> usize {
        let wanted = share * self.total() as f64;
        let mut below = 0;
        let reached = self.times.iter().position(|&time| {
            below += time;
            time > 0 && below as f64 >= wanted
        });
        reached.unwrap_or(self.max())
    }

    /// The largest length with a positive duration.
    pub fn max(&self) -> usize {
        self.times.iter().rposition(|&time| time > 0).unwrap_or(0)
    }

    /// The share of the time in which the queue was not empty, so that the link was sending. 0 if no time has passed.
    pub fn busy_share(&self) -> f64 {
        match (self.total(), self.times.first()) {
            (0, _) | (_, None) => 0.0,
            (total, Some(&idle)) => (total - idle) as f64 / total as f64,
        }
    }
}

/// A histogram of durations, accurate to [`Spans::PRECISION`].
#[derive(Clone, Debug, Default)]
pub struct Spans {
    /// Counts by bucket. Up to [`PARTS`] ticks, each duration has a bucket; above, each doubling is divided into [`PARTS`]
    /// buckets.
    counts: Vec<u32>,
    count: u64,
}

/// Buckets per doubling.
const PARTS: u64 = 1 << PARTS_LOG2;
const PARTS_LOG2: u32 = 7;

impl Spans {
    /// The relative error of a quantile: half a bucket.
    pub const PRECISION: f64 = 0.5 / PARTS as f64;

    /// Adds a duration.
    pub(crate) fn add(&mut self, span: SimSpan) {
        let bucket = bucket(span.ticks());
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
        self.count += 1;
    }

    /// Adds the growth of a sum of durations since it was `before`, unless it is zero.
    pub(crate) fn add_growth(&mut self, before: SimSpan, sum: SimSpan) {
        if sum > before {
            self.add(sum - before);
        }
    }

    /// The duration that this share of the durations does not exceed: 0.95 gives the 95th percentile. `None` if there are none.
    pub fn quantile(&self, share: f64) -> Option<SimSpan> {
        let wanted = ((share * self.count as f64).ceil() as u64).max(1);
        let mut below = 0;
        let reached = self.counts.iter().position(|&count| {
            below += u64::from(count);
            below >= wanted
        });
        reached.map(|bucket| SimSpan::from_ticks(middle(bucket)))
    }
}

fn bucket(ticks: u64) -> usize {
    if ticks < PARTS {
        return ticks as usize;
    }
    // The highest bits, PARTS_LOG2 of them behind the first one.
    let shift = ticks.ilog2() - PARTS_LOG2;
    (u64::from(shift + 1) * PARTS + ((ticks >> shift) - PARTS)) as usize
}

/// The middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let (doubling, part) = (bucket as u64 / PARTS, bucket as u64 % PARTS);
    match doubling {
        0 => part,
        _ => {
            let width = 1 << (doubling - 1);
            (PARTS + part) * width + width / 2
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ticks: u64) -> SimTime {
        SimTime::from_ticks(ticks)
    }

    /// Empty for 2 ticks, one packet for 3 ticks, two for 5, empty for 10.
    #[test]
    fn lengths_count_by_how_long_they_lasted() {
        let mut lengths = QueueLengths::default();
        for (now, packets) in [(2, 0), (5, 1), (5, 3), (10, 2), (20, 0)] {
            lengths.advance(at(now), packets);
        }
        assert!((lengths.mean() - 13.0 / 20.0).abs() < 1e-12 && (lengths.busy_share() - 0.4).abs() < 1e-12);
        assert_eq!([0.0, 0.6, 0.61, 0.75, 0.76, 1.0].map(|share| lengths.quantile(share)), [0, 0, 1, 1, 2, 2]);
        assert_eq!((lengths.max(), lengths.waiting_area()), (2, 5));
    }

    /// One packet for 3 ticks, then two for 5 and none for 10: 10/15 since the third tick.
    #[test]
    fn mean_since_earlier_counts_later_lengths() {
        let mut lengths = QueueLengths::default();
        lengths.advance(at(3), 1);
        let earlier = lengths.clone();
        lengths.advance(at(8), 2);
        lengths.advance(at(18), 0);
        assert!((lengths.mean_since(&earlier) - 10.0 / 15.0).abs() < 1e-12);
        assert!(lengths.mean_since(&lengths).abs() < 1e-12);
    }

    #[test]
    fn empty_distribution_has_no_length() {
        let lengths = QueueLengths::default();
        assert_eq!((lengths.quantile(0.5), lengths.max()), (0, 0));
        assert!(lengths.mean() + lengths.busy_share() < 1e-12 && Spans::default().quantile(0.5).is_none());
    }

    /// 1 ms to 1000 ms, each once: the p-th percentile is p · 10 ms.
    #[test]
    fn quantiles_of_spans_are_precise_in_proportion() {
        let mut spans = Spans::default();
        (1..=1000).for_each(|millis| spans.add(SimSpan::from_millis(millis)));
        for percent in [1, 5, 50, 95, 99, 100] {
            let expected = f64::from(percent) * 0.01;
            let got = spans.quantile(f64::from(percent) / 100.0).unwrap().as_secs_f64();
            assert!((got / expected - 1.0).abs() <= Spans::PRECISION + 1e-9, "{percent} %: {got} s, not {expected} s");
        }
    }

    #[test]
    fn every_span_is_in_the_bucket_around_its_middle() {
        for ticks in (0..64).flat_map(|bits| [1_u64 << bits, (1 << bits) + 1, (1 << bits) - 1]).chain([u64::MAX]) {
            let error = middle(bucket(ticks)).abs_diff(ticks) as f64;
            assert!(error <= Spans::PRECISION * ticks as f64 + 1e-9, "{ticks}");
        }
    }
}
