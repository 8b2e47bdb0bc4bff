//! Release in batches: frames that a radio sends together, packets that a network card reports together.
//!
//! Waiting packets are released together. The release times do not depend on the packets, except with [`HoldSpec::Gather`]. The
//! order is kept.

use anabranch_units::settings::{Fields, Flaw, Parameter, Part, PartKind, Value};
use anabranch_units::{SimSpan, SimTime};

use crate::rng::Stream;

/// When waiting packets are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldSpec {
    /// At all multiples of a span, counted from time zero.
    Grid(SimSpan),
    /// This long after the first waiting packet arrived.
    Gather(SimSpan),
    /// At random: the intervals between releases are exponential with this mean.
    Exponential(SimSpan),
    /// At random: the intervals between releases are uniform from zero to this.
    Uniform(SimSpan),
    /// At once, except during random stalls.
    Stalls {
        /// The interval between stalls: exponential with this mean.
        every: SimSpan,
        /// The length of a stall: uniform from zero to this.
        most: SimSpan,
    },
}

/// A random or constant delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelaySpec {
    /// A constant delay.
    Constant(SimSpan),
    /// Exponential with this mean.
    Exponential(SimSpan),
    /// Uniform from zero to this.
    Uniform(SimSpan),
}

/// The state of a hold.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    spec: HoldSpec,
    stream: Stream,
    /// The last release with a waiting packet.
    release: SimTime,
    /// The begin and end of the next or current stall.
    stall: [SimTime; 2],
}

impl Part for HoldSpec {
    const NAME: &'static str = "hold";
    const HELP: &'static str = "The release of waiting packets, all together and in order: frames that a radio sends together, packets that a \
        network card reports together.";

    fn kinds() -> Vec<PartKind<Self>> {
        const NEVER: SimSpan = SimSpan::ZERO;
        let kind = |word, synonyms, help, default| PartKind { word, synonyms, help, default };
        let grid = "At all multiples of a time, counted from the start of the scenario.";
        let exponential = "At random, with exponential intervals between releases.";
        let uniform = "At random, with uniform intervals between releases, from zero to the longest.";
        let stalls =
            "At once, except during random stalls: a machine with other work, a radio that scans other channels.";
        vec![
            kind("grid", &["slotted"], grid, Self::Grid(NEVER)),
            kind("gather", &[], "This long after the first waiting packet.", Self::Gather(NEVER)),
            kind("exponential", &["poisson"], exponential, Self::Exponential(NEVER)),
            kind("uniform", &[], uniform, Self::Uniform(NEVER)),
            kind("stalls", &[], stalls, Self::Stalls { every: NEVER, most: NEVER }),
        ]
    }

    fn visit(&mut self, fields: &mut Fields<'_>) {
        match self {
            Self::Grid(every) => fields.required().time("every", every, "The interval between releases"),
            Self::Gather(span) => fields.required().time("span", span, "The waiting time of the first packet"),
            Self::Exponential(mean) => fields.required().time("mean", mean, "The mean of the intervals"),
            Self::Uniform(most) => fields.required().time("most", most, "The upper limit"),
            Self::Stalls { every, most } => {
                let help = "The mean time from the end of a stall to the next; exponential";
                fields.required().time("every", every, help);
                fields.required().time("most", most, "The longest stall; uniform from zero to this");
            }
        }
    }

    /// Without a time between releases or stalls, no packet would ever be released.
    fn check(&self) -> Result<(), Flaw> {
        match self.parameters().into_iter().find(|one| one.value == Value::Time(SimSpan::ZERO)) {
            None => Ok(()),
            Some(Parameter { name, .. }) => {
                let message = "what is held for no time is not held";
                Err(Flaw::new(&name, message, "use a time above 0s, or remove it"))
            }
        }
    }
}

impl Part for DelaySpec {
    const NAME: &'static str = "delay";
    const HELP: &'static str = "A delay, constant or random.";

    fn kinds() -> Vec<PartKind<Self>> {
        let kind = |word, help, default| PartKind { word, synonyms: &[], help, default };
        vec![
            kind("constant", "A constant delay.", Self::Constant(SimSpan::ZERO)),
            kind("exponential", "An exponential delay.", Self::Exponential(SimSpan::ZERO)),
            kind("uniform", "A uniform delay, from zero to the longest.", Self::Uniform(SimSpan::ZERO)),
        ]
    }

    fn visit(&mut self, fields: &mut Fields<'_>) {
        match self {
            Self::Constant(span) => fields.required().time("span", span, "The length of the delay"),
            Self::Exponential(mean) => fields.required().time("mean", mean, "The mean of the delay"),
            Self::Uniform(most) => fields.required().time("most", most, "The upper limit"),
        }
    }
}

impl HoldSpec {
    /// Whether releases are random.
    pub fn is_random(self) -> bool {
        matches!(self, Self::Exponential(_) | Self::Uniform(_) | Self::Stalls { .. })
    }
}

impl DelaySpec {
    /// Draws a delay.
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
        debug_assert!(spec.flaw().is_none(), "the builder refuses {spec:?}");
        Self { spec, stream, release: SimTime::ZERO, stall: [SimTime::ZERO; 2] }
    }

    /// The release time of a packet that arrives at `now`. It is not before the release of an earlier packet.
    pub(crate) fn release(&mut self, now: SimTime) -> SimTime {
        if now > self.release {
            self.release = match self.spec {
                HoldSpec::Grid(every) => grid(now, every),
                HoldSpec::Gather(span) => now.saturating_add(span),
                HoldSpec::Exponential(mean) => {
                    self.next(now, |stream| stream.exponential_span(mean), |stream| stream.exponential_span(mean))
                }
                // The density of the remaining time falls linearly to zero.
                HoldSpec::Uniform(most) => self.next(
                    now,
                    |stream| share(most, stream.uniform()),
                    |stream| share(most, 1.0 - stream.uniform().sqrt()),
                ),
                HoldSpec::Stalls { every, most } => self.after_stall(now, every, most),
            };
        }
        self.release
    }

    /// The first release of a random series at or after `now`. Earlier releases that no packet waited for are not drawn: the rest
    /// of the interval around `now` has its own distribution.
    fn next(
        &mut self,
        now: SimTime,
        interval: impl FnOnce(&mut Stream) -> SimSpan,
        left: impl FnOnce(&mut Stream) -> SimSpan,
    ) -> SimTime {
        let next = self.release.saturating_add(interval(&mut self.stream));
        if next >= now { next } else { now.saturating_add(left(&mut self.stream)) }
    }

    /// `now`, or the end of the stall around it.
    fn after_stall(&mut self, now: SimTime, every: SimSpan, most: SimSpan) -> SimTime {
        while self.stall[1] <= now {
            let begin = self.stall[1].saturating_add(self.stream.exponential_span(every));
            self.stall = [begin, begin.saturating_add(share(most, self.stream.uniform()))];
        }
        let [begin, end] = self.stall;
        if now < begin { now } else { end }
    }
}

/// The first multiple of a span at or after `time`; `time` itself if the span is zero.
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

    /// Packets that arrive while the first waits, or exactly at its release, are released with it.
    #[test]
    fn gathered_packets_leave_together() {
        let mut hold = hold(HoldSpec::Gather(SimSpan::from_micros(100)));
        let releases = [10, 50, 110, 111, 400].map(|us| hold.release(micros(us)));
        assert_eq!(releases, [110, 110, 110, 211, 500].map(micros));
    }

    /// Stalls of 20 ms on average cover a share of 20/(180 + 20) of the time. A packet that arrives in a stall waits for its
    /// rest: E(x²)/2E(x), which for uniform stalls is a third of the longest.
    #[test]
    fn stalls_come_at_random_and_keep_all_that_comes() {
        let (every, most) = (SimSpan::from_millis(180), SimSpan::from_millis(40));
        let mut hold = hold(HoldSpec::Stalls { every, most });
        let (mut held, mut waited, mut last, count) = (0, 0.0, SimTime::ZERO, 4_000_000);
        for number in 1..=count {
            let now = micros(500 * number);
            let release = hold.release(now);
            assert!(release >= now.max(last), "nothing overtakes anything");
            last = release;
            held += u64::from(release > now);
            waited += release.since(now).as_secs_f64();
        }
        // In 2,000 s there are about 10,000 stalls.
        let (share, wait) = (held as f64 / count as f64, waited / held as f64);
        assert!((share - 0.1).abs() < 0.005, "{share}");
        assert!((wait - 0.04 / 3.0).abs() < 0.0005, "{wait}");
    }

    /// A packet that arrives at random falls into an interval with a probability proportional to the interval's length, and waits
    /// E(x²)/2E(x) on average. That is the mean of exponential intervals, and a third of the longest of uniform ones. It holds
    /// whether intervals are much longer or much shorter than the time between packets.
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
            // With 20 us about 13,000 intervals count, so the standard error is at most 2 %.
            let mean = waited / f64::from(count);
            assert!((mean - expected).abs() < 0.06 * expected, "{spec:?}, {apart} us apart: {mean}, not {expected}");
        }
    }
}
