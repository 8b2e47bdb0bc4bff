//! Looks: recent RTTs and drains show whose a queue is.

use super::super::noise::Recent;
use super::super::share;
use super::{ALONE, RISEN};
use crate::number::{greater, lesser};

/// The result of a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The queue was ours.
    Own,
    /// The route is longer.
    Route,
    /// The queue is not ours, and the flow does not know yet whose it is.
    Unsure,
    /// A rival fills it.
    Rival,
}

/// The bottom of a drain; times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bottom {
    /// The time at which it was reached.
    pub now: f64,
    /// The baseRTT of the path, in seconds.
    pub base: f64,
    /// The RTT before the drain.
    pub before: f64,
    /// The least RTT at its bottom.
    pub least: f64,
    /// The window before the drain, in segments.
    pub window: f64,
    /// The share of the window that the drain left.
    pub share: f64,
    /// The longest queueing delay that may be our own.
    pub own: f64,
    /// The difference that two samples may have without a meaning.
    pub grain: f64,
}

/// The knowledge about the recent delay. Times in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Look {
    /// The RTTs of the last four to eight round trips; in `most` with the sign reversed.
    least: Recent,
    most: Recent,
    /// The least of them, and the largest.
    low: f64,
    high: f64,
    /// The least RTT of the last one to two round trips.
    standing: Recent,
    stands: f64,
    /// The delivery rates of the last twenty to forty seconds in segments a second, with the sign reversed; below, the largest.
    rates: Recent,
    rate: f64,
    /// The delivery rates of the last one to two round trips; below, the least.
    rates_of_late: Recent,
    delivers: f64,
    /// The flights of the last twenty to forty seconds in segments, with the sign reversed; below, the largest.
    windows: Recent,
    window: f64,
    /// The number of consecutive looks that showed a queue that is not ours.
    doubts: u32,
    /// The time of the first of them, and the RTT before it, in seconds.
    doubted: (f64, f64),
    /// The last queueing delay above the limit that a look showed to be ours, in seconds.
    owned: f64,
    /// The time until which a queue that is not ours causes no looks, in seconds.
    muted_until: f64,
}

/// The round trips over which RTTs are compared.
const STANDING: f64 = 4.0;

/// A queueing delay above this many times that of alpha at the recent rate is not ours: five times as many flows as before would make it.
const FOREIGN: f64 = 2.25;

/// A queue is empty if at most this share of the delay is left.
const LEFT: f64 = 0.2;

/// RTTs are equal if they differ by no more than this share of the delay. A rival's queue changes at least with our window.
const STEADY: f64 = 0.02;

/// The queueing delay in seconds that no number of flows of our kind makes, unless each of them has only a segment or two.
const LONG: f64 = 0.03;

/// The seconds without looks after a queue that was not ours and did not grow: it is of flows of our kind that do not drain together.
const MUTED: f64 = 20.0;

/// The least time between a look that showed our own queue and the next one, in seconds and in round trips: the look itself disturbs the queue. An update,
/// in every second round trip, halves the disturbance.
const OWNED: (f64, f64) = (1.0, 24.0);

/// A window below this share of its recent maximum does not show whether the route is longer: a rival's queue that stays equal for a moment would look the
/// same.
const FULL: f64 = 0.25;

/// The number of consecutive looks that show a rival. After the first one, flows of our kind see each other's drains and begin to drain together.
const DOUBTS: u32 = 2;

/// The least time from the first of them to the last, in seconds: by then flows of our kind have drained together, and a rival's queue has grown.
const PATIENCE: f64 = 3.0;

/// The seconds for which a rate is remembered.
const RATE_SPAN: f64 = 20.0;

impl Look {
    /// A look without samples.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a sample of `rtt` seconds of a segment that left with `flight` segments in flight; `rate` is the delivery rate in segments a second, zero if it
    /// is not known.
    #[inline]
    pub fn on_rtt(&mut self, now: f64, rtt: f64, average: f64, (rate, flight): (f64, f64)) {
        let span = STANDING * average;
        self.low = self.least.on_value(now, rtt, span);
        self.high = -self.most.on_value(now, -rtt, span);
        self.stands = self.standing.on_value(now, rtt, average);
        if rate > 0.0 {
            self.delivers = self.rates_of_late.on_value(now, rate, average);
        }
        self.rate = greater(-self.rates.on_value(now, -rate, RATE_SPAN), 1.0);
        self.window = -self.windows.on_value(now, -flight, RATE_SPAN);
    }

    /// The least RTT of the last round trip.
    pub fn stands(&self) -> f64 {
        self.stands
    }

    /// Whether the last look showed a queue that is not ours, and another look is needed. Meanwhile the window is held.
    pub fn doubts(&self) -> bool {
        self.doubts > 0
    }

    /// The largest recent delivery rate in segments a second; at least one.
    pub fn rate(&self) -> f64 {
        greater(self.rate, 1.0)
    }

    /// The least delivery rate of the last one to two round trips in segments a second; zero if it is not known.
    pub fn delivers(&self) -> f64 {
        self.delivers
    }

    /// Whether a queue that is not ours causes no looks.
    pub fn is_muted(&self, now: f64) -> bool {
        now < self.muted_until
    }

    /// The longest delay of a queue that may be ours, in seconds; `alpha` is the setting.
    pub fn own_delay(&self, alpha: f64, share: Option<&share::Rule>, noise: f64) -> f64 {
        let alone = alpha * share.map_or(1.0, |rule| rule.scale(self.rate())) / self.rate();
        let alone = (alone * alone + noise * noise).sqrt();
        lesser(FOREIGN * alone, greater(LONG, FOREIGN * self.owned))
    }

    /// Judges the bottom of a drain: whose queue it was.
    pub fn judge(&mut self, bottom: &Bottom) -> Verdict {
        let &Bottom { now, base, before, least, window, share, own, grain } = bottom;
        let (delay, left) = (before - base, least - base);
        let part = (1.0 - least / before) / (1.0 - share);
        if delay <= own || left <= LEFT * delay || part >= ALONE {
            self.doubts = 0;
            if delay > own {
                let (seconds, rounds) = OWNED;
                (self.owned, self.muted_until) = (delay, now + greater(seconds, rounds * base));
            }
            return Verdict::Own;
        }
        if self.high - self.low <= greater(STEADY * left, grain) && window >= FULL * self.window {
            self.doubts = 0;
            return Verdict::Route;
        }
        self.doubts += 1;
        if self.doubts == 1 {
            self.doubted = (now, before);
        }
        let (since, first) = self.doubted;
        if self.doubts < DOUBTS || now - since < PATIENCE {
            return Verdict::Unsure;
        }
        if left > LONG || before - first > RISEN * grain {
            return Verdict::Rival;
        }
        // The queue seems to be of many flows of our kind that do not drain together: the law goes on.
        (self.doubts, self.muted_until) = (0, now + MUTED);
        Verdict::Own
    }
}
