//! Whose queue is it? What a drain shows, and what to do beside a rival that fills the queue.
//!
//! ```text
//! a look:     a drain, also when for a round trip the queue is two and a half times what alpha makes at the rate of late
//! it shows:   at its bottom the delay is half of what it was, or less       own: the queue was ours, or of flows of our kind, which drain with us
//!             else, if no RTT of late differs from another                  route: it is longer; baseRTT ← the RTT
//!             else, twice in a row                                          rival: compete
//! compete:    the window of CUBIC; it begins with slow start, until the RTT rises by an eighth (4 to 16 ms)
//! a probe:    every `interval`, and four RTTs, or when the RTT falls by itself: `share` of the window for two round trips
//! it shows:   the RTT falls in proportion to the window (two thirds of that), or to the delay of a queue of our own: alone
//!             twice in a row: back to delay, by a drain
//! ```
//!
//! Why: beside one that fills the queue, a law that goes by delay starves: at rest its rate is alpha over the delay. A queue that is ours alone is w/C long,
//! so the RTT is in proportion to the window; of a queue that others fill, too, only our share of it is. And on a longer route without a queue the window
//! has nothing to do with the RTT.
//!
//! Citation: rfc-9438 for what is done. copa-2018 sec. 2.2 switches by whether the queue is ever empty, nimbus-2022 by how others respond to pulses.
//!
//! Limits. Many flows of our kind that compete see each other's part of the queue as a rival's until they probe together; a fall of the RTT that the
//! others can see makes them do so, but one in fifty makes none.

use anabranch_units::Span;

use super::noise::Recent;
use super::share;
use crate::controller::{Ack, Controller, Limit, Loss, PathView, Phase, Signal};
use crate::law::cubic::Cubic;
use crate::number::{greater, lesser};
use crate::settings::{Choice, Fields};

/// How to compete.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Seconds from one probe to the next; more than zero.
    pub interval: f64,
    /// What is left of the window in a probe; more than zero, less than one.
    pub share: f64,
}

impl Rule {
    /// Two probes and a drain fit into five seconds. A quarter of the window is seen where eight share the queue, and costs a quarter of the rate in
    /// two of some twenty round trips.
    pub const DEFAULT: Self = Self { interval: 2.0, share: 0.75 };
}

impl Choice for Option<Rule> {
    const KINDS: &'static [(&'static str, Self)] = &[("yield", None), ("cubic", Some(Rule::DEFAULT))];

    fn visit(&mut self, fields: &mut Fields<'_>) {
        let Some(Rule { interval, share }) = self else { return };
        let help = "while it competes, from one probe whether the rival is still there to the next";
        fields.seconds("interval", interval, Span::from_millis(1)..=Span::from_secs(3600), help);
        fields.number("share", share, 0.1..=0.95, "", "what is left of the window in a probe");
    }
}

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
    /// Rates of the last twenty to forty seconds, in segments a second, below zero.
    rates: Recent,
    rate: f64,
    /// The same of windows, in segments.
    windows: Recent,
    window: f64,
    /// Looks in a row that showed no queue of our own.
    doubts: u32,
    /// When the first of them was, in seconds.
    doubted: f64,
    /// The longest delay that a look showed to be ours, in seconds.
    owned: f64,
    /// Until when a queue that is not ours is let be, in seconds.
    muted_until: f64,
    /// When something was last lost by a queue that was not ours, in seconds.
    overflowed: Option<f64>,
}

/// Round trips in which RTTs are compared.
const STANDING: f64 = 4.0;

/// A queue of so many times what alpha makes at the rate of late is not ours: six times as many flows as there were would make it.
pub const FOREIGN: f64 = 2.25;

/// At the bottom of a drain of our own so much of the delay is left at the most: half of the window is more than all that we queue, unless the queue is
/// longer than the path.
const LEFT: f64 = 0.5;

/// RTTs are equal if they differ by no more than this share of the delay: a rival's queue moves with our window, if not by itself.
const STEADY: f64 = 0.02;

/// A window of fewer segments tells nothing of a queue by what a part of it leaves there, nor do many such fill one for long: they answer losses.
pub const SMALL: f64 = 16.0;

/// Seconds of queue that many flows of our kind do not make, however many they are, unless they are so many that each has but a segment or two.
const LONG: f64 = 0.03;

/// A shorter queue that is not ours is a rival's if it overflowed within so many seconds: flows of our kind do not fill one that holds alpha of each.
const OVERFLOWED: f64 = 20.0;

/// Seconds without a loss, after which nobody fills the queue but flows of our kind that take each other for rivals.
const QUIET: f64 = 60.0;

/// Where a queue overflowed so many times what alpha makes is not ours.
const OVERFLOWED_OWN: f64 = 1.25;

/// A window that has fallen below this share of what it was of late has no say in whether the route is longer: that a rival's queue rests for a moment would
/// look the same.
const FULL: f64 = 0.25;

/// Looks in a row that show a rival: flows of our kind that do not drain together see each other, and begin to.
const DOUBTS: u32 = 2;

/// For so many seconds at least: by then flows of our kind have looked at the same time.
const PATIENCE: f64 = 8.0;

/// For how many seconds a rate is kept in mind.
const RATE_SPAN: f64 = 20.0;

impl Look {
    /// A look without samples.
    pub fn new() -> Self {
        Self::default()
    }

    /// A sample of `rtt` seconds without its noise, or of `raw` with it, of a segment that left with so many in flight.
    #[inline]
    pub fn on_rtt(&mut self, now: f64, (rtt, raw): (f64, f64), average: f64, flight: f64) {
        let span = STANDING * average;
        self.low = self.least.on_value(now, rtt, span);
        self.high = -self.most.on_value(now, -rtt, span);
        self.stands = self.standing.on_value(now, rtt, average);
        self.rate = -self.rates.on_value(now, -flight / raw, RATE_SPAN);
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

    /// The most that was carried of late, in segments a second.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Whether a queue that is not ours is let be.
    pub fn is_muted(&self, now: f64) -> bool {
        now < self.muted_until && !self.has_overflowed(now)
    }

    /// Something was lost at `now`, and the queue was not ours.
    pub fn on_overflow(&mut self, now: f64) {
        self.overflowed = Some(now);
    }

    /// How long a queue may be that is ours, in seconds, with alpha as it is set.
    pub fn own_delay(&self, now: f64, alpha: f64, share: Option<&share::Rule>, noise: f64) -> f64 {
        let alone = alpha * share.map_or(1.0, |rule| rule.scale(self.rate)) / self.rate;
        let alone = (alone * alone + noise * noise).sqrt();
        if self.has_overflowed(now) {
            return OVERFLOWED_OWN * alone;
        }
        lesser(FOREIGN * alone, greater(LONG, FOREIGN * self.owned))
    }

    fn has_overflowed(&self, now: f64) -> bool {
        self.overflowed.is_some_and(|lost| now - lost < OVERFLOWED)
    }

    /// A drain is at its bottom: the delay was `before` and is `left`, in seconds, and the window was `window`; `own` is what ours may be, and `grain` what
    /// one sample may differ from the next by.
    pub fn judge(&mut self, now: f64, (before, left): (f64, f64), window: f64, own: f64, grain: f64) -> Verdict {
        if before <= own || left <= LEFT * before {
            self.doubts = 0;
            self.owned = if left <= LEFT * before { before } else { self.owned };
            return Verdict::Own;
        }
        if self.high - self.low <= greater(STEADY * left, grain) && window >= FULL * self.window {
            self.doubts = 0;
            return Verdict::Route;
        }
        self.doubts += 1;
        if self.doubts == 1 {
            self.doubted = now;
        }
        if self.doubts < DOUBTS || now - self.doubted < PATIENCE {
            return Verdict::Unsure;
        }
        if left > LONG || self.has_overflowed(now) {
            return Verdict::Rival;
        }
        // Many of our kind that do not drain together, it seems: the law goes on.
        self.doubts = 0;
        self.muted_until = now + OVERFLOWED;
        Verdict::Own
    }
}

/// The window beside a rival.
#[derive(Clone, Debug)]
pub struct Competition {
    cubic: Cubic,
    /// The least RTT since it began, in seconds.
    floor: f64,
    is_starting: bool,
    /// RTTs of the last one to two round trips, below zero.
    most: Recent,
    probe: Probe,
    /// Probes in a row that showed nobody else.
    alone: u32,
    /// When something was last lost, or it began, in seconds.
    lost: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Probe {
    Waiting {
        /// Since when, in seconds.
        since: f64,
    },
    Probing {
        /// From when on the RTT shows it, and until when, in seconds.
        from: f64,
        until: f64,
        /// What is left of the window, and whether that is a loss's doing.
        left: f64,
        is_loss: bool,
        /// The RTT before it, and the least since `from`, in seconds.
        before: f64,
        least: f64,
    },
}

impl Probe {
    /// The window has fallen to `left` of what it was, at an RTT of `rtt` seconds that was `before` at the most.
    fn begin(now: f64, (rtt, before): (f64, f64), left: f64, is_loss: bool) -> Self {
        let (from, until) = (now + rtt, now + ROUNDS * rtt);
        Self::Probing { from, until, left, is_loss, before, least: f64::INFINITY }
    }
}

/// What a probe showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Turn {
    /// Somebody else may be there.
    Stay,
    /// Nobody is: so many segments a second are carried.
    Leave {
        /// Segments a second.
        rate: f64,
    },
}

/// What is known at an ACK while competing; times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// The ACK's arrival.
    pub now: f64,
    /// The RTT sample.
    pub rtt: f64,
    /// An RTT with a queue of our own at the most.
    pub near: f64,
    /// The baseRTT, in seconds.
    pub base: f64,
}

/// Round trips of a probe: in the first one the queue falls, in the second the samples show it.
const ROUNDS: f64 = 2.0;

/// Least RTTs between two probes.
const APART: f64 = 4.0;

/// Alone the RTT falls as much as the window, in relation; so much of that will do.
const ELASTIC: f64 = 0.65;

/// Below this share of what it was a round trip ago, an RTT has fallen: four that share a queue and probe make 15/16 each.
const FALLEN: f64 = 0.95;

/// An eighth of the RTT, but 4 to 16 ms, is a queue that grows ([rfc-9406] sec. 4.3).
const RISE: (f64, f64, f64) = (0.125, 0.004, 0.016);

impl Competition {
    /// Begins at `now` seconds with a window in segments.
    pub fn new(now: f64, window: f64) -> Self {
        Self {
            cubic: Cubic::beginning_with(window),
            floor: f64::INFINITY,
            is_starting: true,
            most: Recent::new(),
            probe: Probe::Waiting { since: now },
            alone: 0,
            lost: now,
        }
    }

    /// The window in segments.
    pub fn window(&self, rule: &Rule) -> f64 {
        let window = self.cubic.window();
        match self.probe {
            Probe::Probing { is_loss: false, .. } => {
                greater(rule.share * window, lesser(window, super::window::WINDOW_MIN))
            }
            Probe::Waiting { .. } | Probe::Probing { .. } => window,
        }
    }

    /// Called for each ACK.
    pub fn on_ack(&mut self, path: &PathView, ack: &Ack, facts: &Facts, rule: &Rule) -> Turn {
        let &Facts { now, rtt, .. } = facts;
        let most = -self.most.on_value(now, -rtt, rtt);
        // The time of a probe does not count for the curve.
        let is_held = matches!(self.probe, Probe::Probing { is_loss: false, .. });
        let limit = if is_held { Limit::Application } else { ack.limit };
        self.cubic.on_ack(path, &Ack { limit, ..*ack });
        if self.is_starting {
            self.start(rtt);
            return Turn::Stay;
        }
        match self.probe {
            Probe::Waiting { since } => {
                let waited = now - since;
                let interval = if self.alone > 0 { ROUNDS * rtt } else { greater(rule.interval, APART * rtt) };
                let is_due = waited >= interval || rtt < FALLEN * most && waited >= ROUNDS * rtt;
                if is_due && ack.limit == Limit::Window && ack.phase == Phase::Open {
                    self.probe = Probe::begin(now, (rtt, most), rule.share, false);
                }
                Turn::Stay
            }
            Probe::Probing { .. } => self.listen(facts),
        }
    }

    /// Slow start, until the queue grows.
    fn start(&mut self, rtt: f64) {
        self.floor = lesser(self.floor, rtt);
        let (part, least, most) = RISE;
        if rtt > self.floor + (part * self.floor).clamp(least, most) {
            self.cubic.end_slow_start();
            self.is_starting = false;
        }
    }

    /// A sample while the window is low.
    fn listen(&mut self, &Facts { now, rtt, near, base }: &Facts) -> Turn {
        let Probe::Probing { from, until, left, before, least, is_loss } = &mut self.probe else { return Turn::Stay };
        if now >= *from {
            *least = lesser(*least, rtt);
        }
        if now < *until {
            return Turn::Stay;
        }
        let fallen = (1.0 - *least / *before) / (1.0 - *left);
        let is_alone = fallen >= ELASTIC || *least <= near;
        let carried = self.cubic.window() * if *is_loss { 1.0 } else { *left };
        let rate = carried / *least;
        self.probe = Probe::Waiting { since: now };
        self.alone = if is_alone { self.alone + 1 } else { 0 };
        let quiet = now - self.lost;
        let is_quiet = quiet >= QUIET || quiet >= OVERFLOWED && rtt <= base + 2.0 * LONG;
        let is_small = carried < SMALL;
        if self.alone >= 2 || is_quiet || is_small { Turn::Leave { rate } } else { Turn::Stay }
    }

    /// A loss at `now`, at an RTT of `rtt` seconds: what it takes from the window shows as much as a probe.
    pub fn on_loss(&mut self, (now, rtt): (f64, f64), path: &PathView, loss: &Loss) {
        let before = self.cubic.window();
        self.cubic.on_loss(path, loss);
        self.lost = now;
        self.is_starting = false;
        let most = -self.most.on_value(now, -rtt, rtt);
        self.probe = match loss.signal {
            Signal::Timeout => Probe::Waiting { since: now },
            Signal::DupAcks | Signal::Ecn => Probe::begin(now, (rtt, most), self.cubic.window() / before, true),
        };
    }

    /// The latest loss was none.
    pub fn on_undo(&mut self, path: &PathView) {
        self.cubic.on_undo(path);
    }
}

#[cfg(test)]
mod tests;
