//! What RTTs and drains tell of a queue.

use super::super::noise::Recent;
use super::super::share;
use super::{ALONE, RISEN};
use crate::number::{greater, lesser};

/// What a drain showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The queue was ours.
    Own,
    /// The route is longer.
    Route,
    /// Not ours, and who knows whose.
    Unsure,
    /// A rival fills it.
    Rival,
}

/// The bottom of a drain; times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bottom {
    /// When it was reached.
    pub now: f64,
    /// The baseRTT of the path, in seconds.
    pub base: f64,
    /// The RTT before the drain.
    pub before: f64,
    /// The least RTT at its bottom.
    pub least: f64,
    /// The window before the drain, in segments.
    pub window: f64,
    /// What the drain left of it.
    pub share: f64,
    /// A queueing delay that may be our own.
    pub own: f64,
    /// What one sample may differ from the next by.
    pub grain: f64,
}

/// What is known of the delay of late. Times in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Look {
    /// RTTs of the last four to eight round trips; the most is below zero.
    least: Recent,
    most: Recent,
    /// The least of them and the most.
    low: f64,
    high: f64,
    /// The least RTT of the last one to two round trips.
    standing: Recent,
    stands: f64,
    /// Delivery rates of the last twenty to forty seconds, in segments a second, below zero.
    rates: Recent,
    rate: f64,
    /// Those of the last one to two round trips, and the least of them.
    rates_of_late: Recent,
    delivers: f64,
    /// What was in flight in the last twenty to forty seconds, in segments, below zero.
    windows: Recent,
    window: f64,
    /// Looks in a row that showed no queue of our own.
    doubts: u32,
    /// When the first of them was, and the RTT before it, in seconds.
    doubted: (f64, f64),
    /// The longest delay that a look showed to be ours, in seconds.
    owned: f64,
    /// Until when a queue that is not ours is let be, in seconds.
    muted_until: f64,
}

/// Round trips in which RTTs are compared.
const STANDING: f64 = 4.0;

/// A queue of so many times what alpha makes at the rate of late is not ours: five times as many flows as there were would make it.
const FOREIGN: f64 = 2.25;

/// A queue is empty if so much of the delay is left.
const LEFT: f64 = 0.2;

/// RTTs are equal if they differ by no more than this share of the delay: a rival's queue moves with our window, if not by itself.
const STEADY: f64 = 0.02;

/// Seconds of queue that many flows of our kind do not make, however many they are, unless they are so many that each has but a segment or two.
const LONG: f64 = 0.03;

/// Seconds for which a queue is let be that was not ours, but did not grow: flows of our kind that do not drain together.
const MUTED: f64 = 20.0;

/// Seconds, and round trips, after a look that showed a queue of our own before the next one: what the look itself moves is to come to rest. An update, each
/// second round trip, halves it.
const OWNED: (f64, f64) = (1.0, 24.0);

/// A window that has fallen below this share of what it was of late has no say in whether the route is longer: that a rival's queue rests for a moment would
/// look the same.
const FULL: f64 = 0.25;

/// Looks in a row that show a rival: flows of our kind that do not drain together see each other, and begin to.
const DOUBTS: u32 = 2;

/// From the first of them to the last, in seconds: by then flows of our kind have looked at the same time, and a queue that somebody fills has grown.
const PATIENCE: f64 = 3.0;

/// For how many seconds a rate is kept in mind.
const RATE_SPAN: f64 = 20.0;

impl Look {
    /// A look without samples.
    pub fn new() -> Self {
        Self::default()
    }

    /// A sample of `rtt` seconds of a segment that left with so many in flight; `rate` is that of delivery in segments a second, zero if there is none.
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

    /// Whether a look showed no queue of our own, and the next one is to tell more. Meanwhile the window is held.
    pub fn doubts(&self) -> bool {
        self.doubts > 0
    }

    /// The most that was delivered of late, in segments a second; at least one.
    pub fn rate(&self) -> f64 {
        greater(self.rate, 1.0)
    }

    /// The least that was delivered in the last round trip or two, in segments a second; zero if that is not known.
    pub fn delivers(&self) -> f64 {
        self.delivers
    }

    /// Whether a queue that is not ours is let be.
    pub fn is_muted(&self, now: f64) -> bool {
        now < self.muted_until
    }

    /// How long a queue may be that is ours, in seconds, with alpha as it is set.
    pub fn own_delay(&self, alpha: f64, share: Option<&share::Rule>, noise: f64) -> f64 {
        let alone = alpha * share.map_or(1.0, |rule| rule.scale(self.rate())) / self.rate();
        let alone = (alone * alone + noise * noise).sqrt();
        lesser(FOREIGN * alone, greater(LONG, FOREIGN * self.owned))
    }

    /// A drain is at its bottom: whose queue it was.
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
        // Many of our kind that do not drain together, it seems: the law goes on.
        (self.doubts, self.muted_until) = (0, now + MUTED);
        Verdict::Own
    }
}
