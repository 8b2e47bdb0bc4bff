//! What is let out in batches: frames that a radio sends together, packets that a network card reports together.
//!
//! Whatever waits is released together, at times that do not depend on it, but for [`HoldSpec::Gather`]. Nothing overtakes anything.

use anabranch_units::{SimSpan, SimTime};

use crate::rng::Stream;

/// When a batch is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldSpec {
    /// At all multiples of a span, counted from the start of the world.
    Grid(SimSpan),
    /// So long after the first that waits.
    Gather(SimSpan),
    /// At random: the times from one release to the next are exponential with this mean.
    Exponential(SimSpan),
    /// At random: the times from one release to the next are uniform from nothing to this.
    Uniform(SimSpan),
}

/// How much later something happens than it could.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelaySpec {
    /// Always by so much.
    Constant(SimSpan),
    /// Exponential with this mean.
    Exponential(SimSpan),
    /// Uniform from nothing to this.
    Uniform(SimSpan),
}

/// A hold at work.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    spec: HoldSpec,
    stream: Stream,
    /// The last release that anybody waits for.
    release: SimTime,
}

impl HoldSpec {
    /// Whether time passes between two releases.
    pub(crate) fn is_valid(self) -> bool {
        let (Self::Grid(span) | Self::Gather(span) | Self::Exponential(span) | Self::Uniform(span)) = self;
        !span.is_zero()
    }

    /// Whether releases come by chance.
    pub fn is_random(self) -> bool {
        matches!(self, Self::Exponential(_) | Self::Uniform(_))
    }
}

impl DelaySpec {
    /// One of them.
    pub(crate) fn draw(self, stream: &mut Stream) -> SimSpan {
        match self {
            Self::Constant(span) => span,
            Self::Exponential(mean) => stream.exponential_span(mean),
            Self::Uniform(most) => share(most, stream.uniform()),
        }
    }

    /// Whether it is random.
    pub fn is_random(self) -> bool {
        matches!(self, Self::Exponential(_) | Self::Uniform(_))
    }
}

impl Hold {
    pub(crate) fn new(spec: HoldSpec, stream: Stream) -> Self {
        debug_assert!(spec.is_valid(), "the builder refuses {spec:?}");
        Self { spec, stream, release: SimTime::ZERO }
    }

    /// When what comes at `now` is released: not before what came earlier.
    pub(crate) fn release(&mut self, now: SimTime) -> SimTime {
        if now > self.release {
            self.release = match self.spec {
                HoldSpec::Grid(every) => grid(now, every),
                HoldSpec::Gather(span) => now.saturating_add(span),
                HoldSpec::Exponential(_) | HoldSpec::Uniform(_) => self.next(now),
            };
        }
        self.release
    }

    /// The first release of a random series at `now` or later. Those before it that nobody waited for are not drawn one by one: what is left
    /// of the interval in which `now` falls has a distribution of its own.
    fn next(&mut self, now: SimTime) -> SimTime {
        let Self { spec, stream, release } = self;
        let interval = match *spec {
            HoldSpec::Uniform(most) => share(most, stream.uniform()),
            HoldSpec::Exponential(span) | HoldSpec::Grid(span) | HoldSpec::Gather(span) => {
                stream.exponential_span(span)
            }
        };
        let next = release.saturating_add(interval);
        if next >= now {
            return next;
        }
        now.saturating_add(match *spec {
            // The density of what is left falls in a line from its beginning to nothing.
            HoldSpec::Uniform(most) => share(most, 1.0 - stream.uniform().sqrt()),
            HoldSpec::Exponential(span) | HoldSpec::Grid(span) | HoldSpec::Gather(span) => {
                stream.exponential_span(span)
            }
        })
    }
}

/// The first multiple of a span at `time` or later; `time` itself if the span is nothing.
pub(crate) fn grid(time: SimTime, every: SimSpan) -> SimTime {
    match time.ticks().checked_next_multiple_of(every.ticks()) {
        Some(ticks) => SimTime::from_ticks(ticks),
        None if every.is_zero() => time,
        None => SimTime::NEVER,
    }
}

fn share(span: SimSpan, share: f64) -> SimSpan {
    SimSpan::from_secs_f64(span.as_secs_f64() * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Substreams;

    fn hold(spec: HoldSpec) -> Hold {
        Hold::new(spec, Substreams::new(7).stream("test"))
    }

    fn micros(us: u64) -> SimTime {
        SimTime::ZERO.saturating_add(SimSpan::from_micros(us))
    }

    #[test]
    fn a_grid_releases_at_its_multiples() {
        let mut hold = hold(HoldSpec::Grid(SimSpan::from_micros(250)));
        let releases = [1, 249, 250, 251, 900].map(|us| hold.release(micros(us)));
        assert_eq!(releases, [250, 250, 250, 500, 1000].map(micros));
        assert_eq!(grid(micros(7), SimSpan::ZERO), micros(7));
        assert_eq!(grid(SimTime::NEVER, SimSpan::from_secs(1)), SimTime::NEVER);
    }

    /// What comes while the first waits, and just when it is released, goes with it.
    #[test]
    fn what_gathers_leaves_together() {
        let mut hold = hold(HoldSpec::Gather(SimSpan::from_micros(100)));
        let releases = [10, 50, 110, 111, 400].map(|us| hold.release(micros(us)));
        assert_eq!(releases, [110, 110, 110, 211, 500].map(micros));
    }

    /// What comes at random meets an interval in proportion to its length: it waits E(x²)/2E(x) on average. That is the mean of an exponential
    /// interval, and a third of the longest uniform one, whether intervals are much longer than what comes is apart or much shorter.
    #[test]
    fn random_releases_keep_a_packet_as_long_as_renewal_theory_says() {
        let cases = [
            (HoldSpec::Exponential(SimSpan::from_micros(300)), 300.0),
            (HoldSpec::Uniform(SimSpan::from_micros(900)), 300.0),
        ];
        for ((spec, expected), apart) in cases.into_iter().flat_map(|case| [(case, 20.0), (case, 5000.0)]) {
            let (mut hold, mut arrivals) = (hold(spec), Substreams::new(3).stream("arrivals"));
            let (mut now, mut waited, mut last, count) = (SimTime::ZERO, 0.0, SimTime::ZERO, 200_000);
            for _ in 0..count {
                now = now.saturating_add(SimSpan::from_secs_f64(arrivals.exponential(apart * 1e-6)));
                let release = hold.release(now);
                assert!(release >= now.max(last));
                last = release;
                waited += release.since(now).as_secs_f64() * 1e6;
            }
            // With 20 us some 13,000 intervals count, so the standard error is at most 2 %.
            let mean = waited / f64::from(count);
            assert!((mean - expected).abs() < 0.06 * expected, "{spec:?}, {apart} us apart: {mean}, not {expected}");
        }
    }
}
