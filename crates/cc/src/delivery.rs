//! Samples of the rate at which a path delivers, and the largest of some of them.
//!
//! ```text
//! delivered = all that was delivered from when the acknowledged segment left to its ACK
//! interval  = the longer of: the time in which that was acknowledged, and the time in which it left
//! rate      = delivered/interval, if the interval is no shorter than the least RTT
//! ```
//!
//! Citation: bbr-draft sec. 4.1.

use std::collections::VecDeque;

use anabranch_units::Time;

use crate::controller::{Ack, PathView, Supply};

/// What an ACK tells of the rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateSample {
    /// Segments per second; `None` if the interval is too short to say.
    pub(crate) rate: Option<f64>,
    /// Segments delivered since the acknowledged one left.
    pub(crate) delivered: f64,
    /// Segments delivered before it left.
    pub(crate) delivered_before: f64,
    /// Segments lost since it left.
    pub(crate) lost: f64,
    /// Segments in flight when it had left, itself included.
    pub(crate) flight: f64,
    /// Whether the path was given enough when it left.
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

/// What a law itself holds back, to look at an empty path: samples of that say nothing of what the path can.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeldBack {
    /// What left from then on, before more than so many segments were delivered.
    what: Option<(Time, f64)>,
}

impl HeldBack {
    /// From now on.
    pub(crate) fn begin(&mut self, path: &PathView) {
        self.what = Some((path.now, path.progress.delivered));
    }

    /// Still so; what is in flight now belongs to it.
    pub(crate) fn go_on(&mut self, path: &PathView) {
        if let Some((_, until)) = &mut self.what {
            *until = path.progress.delivered + path.flight;
        }
    }

    /// Whether a sample is of a path that was given enough, by the application and by the law.
    pub(crate) fn is_full(&self, sample: &RateSample, ack: &Ack) -> bool {
        let is_held = |(since, until)| ack.departure.time >= since && sample.delivered_before <= until;
        sample.supply == Supply::Enough && !self.what.is_some_and(is_held)
    }
}

/// The largest of the samples of the last few steps of a clock that counts rounds or cycles.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowedMax {
    /// Step and sample: later ones are smaller. At most one for each step of the window.
    samples: VecDeque<(u64, f64)>,
}

impl WindowedMax {
    /// A sample at step `now`. Returns the largest of the last `window` steps, this one included.
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

    /// The largest, as of the last sample; zero before the first.
    pub(crate) fn max(&self) -> f64 {
        self.samples.front().map_or(0.0, |&(_, sample)| sample)
    }
}

#[cfg(test)]
mod tests {
    use anabranch_units::{Bytes, Span, Time};

    use super::*;
    use crate::controller::{Departure, Limit, Phase, Progress};

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// A segment left at 100 ms with 10 delivered, and is acknowledged at 200 ms with 30: of the 20, those acknowledged took 110 ms and those
    /// sent 90, so it is 20/0.11 a second.
    #[test]
    fn the_longer_of_both_intervals_counts() {
        let before = Progress { delivered: 10.0, lost: 1.0, delivered_at: at(90), departed: at(10) };
        let departure =
            Departure { time: at(100), window: 20.0, flight: 15.0, progress: before, supply: Supply::Short };
        let mut ack = Ack {
            newly_acked: 1.0,
            newly_lost: 0.0,
            newly_marked: 0.0,
            rtt: Some(Span::from_millis(100)),
            size: Bytes::new(1000),
            arrival: at(200),
            departure,
            limit: Limit::Window,
            phase: Phase::Open,
        };
        let mut path = PathView {
            now: at(200),
            flight: 15.0,
            mss: Bytes::new(1000),
            rtt_smoothed: None,
            rtt_min: Some(Span::from_millis(100)),
            progress: Progress { delivered: 30.0, lost: 3.0, delivered_at: at(200), departed: at(100) },
        };
        let sample = RateSample::of(&path, &ack);
        assert!((sample.rate.unwrap() - 20.0 / 0.11).abs() < 1e-9);
        let RateSample { delivered, delivered_before, lost, flight, supply, .. } = sample;
        assert_eq!((delivered, delivered_before, lost, flight, supply), (20.0, 10.0, 2.0, 15.0, Supply::Short));
        // They were sent more slowly than they were acknowledged.
        ack.departure.progress.departed = Time::ZERO;
        ack.departure.time = at(200);
        assert!((RateSample::of(&path, &ack).rate.unwrap() - 100.0).abs() < 1e-9);
        // Nothing is acknowledged in less than the least RTT: somebody had acknowledged it before.
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
