//! Samples of a path's delivery rate, and their windowed maximum.
//!
//! ```text
//! delivered = segments delivered between the departure of the acknowledged segment and its ACK
//! interval  = the longer of: the time in which these were acknowledged, and the time in which they were sent
//! rate      = delivered/interval, unless the interval is shorter than the least RTT
//! ```
//!
//! Citation: bbr-draft sec. 4.1.

use std::collections::VecDeque;

use anabranch_units::Time;

use crate::controller::{Ack, PathView, Supply};

/// A sample of the delivery rate, from one ACK.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateSample {
    /// Segments per second; `None` if the interval is too short for a sample.
    pub(crate) rate: Option<f64>,
    /// Segments delivered since the acknowledged segment left.
    pub(crate) delivered: f64,
    /// Segments delivered before it left.
    pub(crate) delivered_before: f64,
    /// Segments lost since it left.
    pub(crate) lost: f64,
    /// Segments in flight when it left, itself included.
    pub(crate) flight: f64,
    /// Whether the sender had enough data when it left.
    pub(crate) supply: Supply,
}

impl RateSample {
    pub(crate) fn of(path: &PathView, ack: &Ack) -> Self {
        let (now, departure) = (path.progress, &ack.departure);
        let delivered = now.delivered - departure.progress.delivered;
        let acked = now.delivered_at.since(departure.progress.delivered_at);
        let sent = departure.time.since(departure.progress.departed);
        let interval = acked.max(sent);
        let is_short = interval.is_zero() || path.rtt_min.is_some_and(|least| interval < least);
        Self {
            rate: (!is_short).then(|| delivered / interval.as_secs_f64()),
            delivered,
            delivered_before: departure.progress.delivered,
            lost: now.lost - departure.progress.lost,
            flight: departure.flight,
            supply: departure.supply,
        }
    }
}

/// The data that a law sends below its rate on purpose, to see an empty queue. The delivery rate of this data says nothing about the path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeldBack {
    /// The time from which on data is held back, and the number of delivered segments after which none of it is left.
    what: Option<(Time, f64)>,
}

impl HeldBack {
    /// The law begins to hold data back.
    pub(crate) fn begin(&mut self, path: &PathView) {
        self.what = Some((path.now, path.progress.delivered));
    }

    /// The law still holds data back: what is in flight now belongs to it.
    pub(crate) fn go_on(&mut self, path: &PathView) {
        if let Some((_, until)) = &mut self.what {
            *until = path.progress.delivered + path.flight;
        }
    }

    /// Whether neither the application nor the law held data back when the sample's segment left.
    pub(crate) fn is_full(&self, sample: &RateSample, ack: &Ack) -> bool {
        let is_held = |(since, until)| ack.departure.time >= since && sample.delivered_before <= until;
        sample.supply == Supply::Enough && !self.what.is_some_and(is_held)
    }
}

/// The maximum of the samples of the last few steps. A step is a round or a cycle.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowedMax {
    /// Step and sample; later samples are smaller. At most one for each step of the window.
    samples: VecDeque<(u64, f64)>,
}

impl WindowedMax {
    /// Adds a sample at step `now`. Returns the maximum of the last `window` steps, this one included.
    pub(crate) fn update(&mut self, now: u64, window: u64, sample: f64) -> f64 {
        while self.samples.back().is_some_and(|&(_, last)| last <= sample) {
            self.samples.pop_back();
        }
        if self.samples.back().is_none_or(|&(step, _)| step < now) {
            self.samples.push_back((now, sample));
        }
        while self.samples.front().is_some_and(|&(step, _)| step + window <= now) {
            self.samples.pop_front();
        }
        self.max()
    }

    /// The maximum at the last sample; zero before the first.
    pub(crate) fn max(&self) -> f64 {
        self.samples.front().map_or(0.0, |&(_, sample)| sample)
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::{Span, Time};

    use super::*;
    use crate::controller::{Departure, Progress};
    use crate::testing::at;

    /// A segment left at 100 ms, when 10 were delivered, and is acknowledged at 200 ms, when 30 are: the 20 were acknowledged in 110 ms and sent in
    /// 90 ms, so the rate is 20/0.11 a second.
    #[test]
    fn the_longer_of_both_intervals_counts() {
        let before = Progress { delivered: 10.0, lost: 1.0, delivered_at: at(90), departed: at(10) };
        let departure =
            Departure { time: at(100), window: 20.0, flight: 15.0, progress: before, supply: Supply::Short };
        let mut ack =
            Ack { newly_acked: 1.0, rtt: Some(Span::from_millis(100)), arrival: at(200), departure, ..Ack::default() };
        let mut path = PathView {
            now: at(200),
            flight: 15.0,
            rtt_min: Some(Span::from_millis(100)),
            progress: Progress { delivered: 30.0, lost: 3.0, delivered_at: at(200), departed: at(100) },
            ..PathView::default()
        };
        let sample = RateSample::of(&path, &ack);
        assert!((sample.rate.unwrap() - 20.0 / 0.11).abs() < 1e-9);
        let RateSample { delivered, delivered_before, lost, flight, supply, .. } = sample;
        assert_eq!((delivered, delivered_before, lost, flight, supply), (20.0, 10.0, 2.0, 15.0, Supply::Short));
        // They were sent more slowly than they were acknowledged.
        ack.departure.progress.departed = Time::ZERO;
        ack.departure.time = at(200);
        assert!((RateSample::of(&path, &ack).rate.unwrap() - 100.0).abs() < 1e-9);
        // No ACK takes less than the least RTT: this one was for data that was acknowledged before.
        path.rtt_min = Some(Span::from_millis(201));
        assert_eq!(RateSample::of(&path, &ack).rate, None);
    }

    #[test]
    fn the_largest_of_a_window_is_forgotten_with_it() {
        let mut max = WindowedMax::default();
        let samples = [(1, 5.0), (1, 7.0), (2, 6.0), (3, 1.0), (4, 2.0), (5, 1.0)];
        let seen = samples.map(|(step, sample)| max.update(step, 3, sample) as u32);
        assert_eq!(seen, [5, 7, 7, 7, 6, 2]);
        assert!(max.samples.len() <= 3);
    }
}
