//! The window beside a rival, and whether the rival is still there.

use super::super::noise::Recent;
use super::super::window::WINDOW_MIN;
use super::{ALONE, RISEN, Rule};
use crate::controller::{Ack, Controller, Limit, Loss, PathView, Phase, Signal};
use crate::law::cubic::Cubic;
use crate::number::{greater, is_known, lesser};

/// The window beside a rival.
#[derive(Clone, Debug)]
pub struct Competition {
    cubic: Cubic,
    /// What the path was seen to carry, in segments a second.
    carried: f64,
    /// RTTs of the last one to two round trips, below zero.
    most: Recent,
    state: State,
    /// Probes in a row that showed nobody else.
    alone: u32,
    /// Losses that need no pause, as somebody else filled the queue before.
    confirmed: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Slow start, up to half of what the path carries.
    Starting,
    /// The window is CUBIC's.
    Growing {
        /// Since when, in seconds.
        since: f64,
    },
    /// A part of the window is left out.
    Probing {
        /// From when on the RTT shows it, and until when, in seconds.
        from: f64,
        until: f64,
        /// What is left of the window.
        left: f64,
        /// The RTT before it, and the least since `from`, in seconds.
        before: f64,
        least: f64,
    },
    /// After a loss: the window stays.
    Pausing {
        /// From when on the RTT shows what the loss left, in seconds.
        from: f64,
        /// The least RTT of the round trip that ends then, in seconds.
        least: f64,
        ends: f64,
        /// The RTT that has not risen, and since when, in seconds.
        level: f64,
        since: f64,
    },
}

impl State {
    /// The window has fallen to `left` of what it was, at an RTT of `rtt` seconds that was `before` at the most.
    fn probing(now: f64, (rtt, before): (f64, f64), left: f64) -> Self {
        Self::Probing { from: now + rtt, until: now + ROUNDS * rtt, left, before, least: f64::INFINITY }
    }

    /// Something was lost at `now`, at an RTT of `rtt` seconds.
    fn pausing(now: f64, rtt: f64) -> Self {
        let from = now + ROUNDS * rtt;
        Self::Pausing { from, least: f64::INFINITY, ends: from + rtt, level: f64::INFINITY, since: from }
    }
}

/// What an ACK showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Turn {
    /// Somebody else may be there.
    Stay,
    /// Nobody is: the queue is ours, and so many segments a second are carried.
    Alone {
        /// Segments a second.
        rate: f64,
    },
    /// Nobody fills the queue any more.
    Calm,
}

/// What is known at an ACK while competing; times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// The ACK's arrival.
    pub now: f64,
    /// The RTT that it shows, in seconds.
    pub rtt: f64,
    /// The baseRTT of the path, in seconds.
    pub base: f64,
    /// What one sample may differ from the next by.
    pub grain: f64,
}

/// Round trips of a probe: in the first one the queue falls, in the second the samples show it. A loss takes as long to show.
const ROUNDS: f64 = 2.0;

/// Least RTTs between two probes.
const APART: f64 = 8.0;

/// A probe of a smaller part of the window is not seen.
const PROBE_LEAST: f64 = 0.05;

/// More than this share of the link nobody can have: somebody else gave way at the same time.
const SHARE_MOST: f64 = 1.3;

/// Below this share of what it was a round trip ago, an RTT has fallen by itself: eight that share a queue and probe leave 31/32 each.
const FALLEN: f64 = 0.97;

/// Seconds, and round trips, for which an RTT that does not rise shows that nobody fills the queue: CUBIC adds 6 packets in the 4 s around its plateau,
/// whatever its window.
const FLAT: (f64, f64) = (4.0, 8.0);

/// Losses after a pause that ended with one: a pause gives a rival a quarter of a window or so, once in so many.
const CONFIRMED: u32 = 3;

/// A queue of so many seconds flows of our kind do not fill: what overflows there is a rival's.
const DEEP: f64 = 0.06;

/// Of what the path carries so much is a fair share beside one rival.
const FAIR: f64 = 0.5;

impl Competition {
    /// Begins with a window in segments on a path that was seen to carry so many segments a second.
    pub fn new(window: f64, carried: f64) -> Self {
        Self {
            cubic: Cubic::beginning_with(window),
            carried,
            most: Recent::new(),
            state: State::Starting,
            alone: 0,
            confirmed: 0,
        }
    }

    /// The window in segments.
    pub fn window(&self) -> f64 {
        let window = self.cubic.window();
        match self.state {
            State::Probing { left, .. } => greater(left * window, lesser(window, WINDOW_MIN)),
            State::Starting | State::Growing { .. } | State::Pausing { .. } => window,
        }
    }

    /// Takes an ACK: whether somebody else is still there.
    pub fn on_ack(&mut self, path: &PathView, ack: &Ack, facts: &Facts, rule: &Rule) -> Turn {
        let &Facts { now, rtt, base, .. } = facts;
        let most = -self.most.on_value(now, -rtt, rtt);
        // The time of a probe or a pause does not count for the curve.
        let is_held = matches!(self.state, State::Probing { .. } | State::Pausing { .. });
        let limit = if is_held { Limit::Application } else { ack.limit };
        self.cubic.on_ack(path, &Ack { limit, ..*ack });
        match self.state {
            State::Starting => {
                if self.cubic.window() >= FAIR * self.carried * rtt {
                    self.cubic.end_slow_start();
                    self.state = State::Growing { since: now };
                }
                Turn::Stay
            }
            State::Growing { since } => {
                let waited = now - since;
                let interval = if self.alone > 0 { ROUNDS * rtt } else { greater(rule.interval, APART * rtt) };
                let is_due = waited >= interval || rtt < FALLEN * most && waited >= ROUNDS * rtt;
                if is_due && ack.limit == Limit::Window && ack.phase == Phase::Open {
                    // If all of the queue is ours, half of it is left.
                    let left = greater(rule.share, 1.0 - 0.5 * (rtt - base) / rtt);
                    self.state = State::probing(now, (rtt, most), lesser(left, 1.0 - PROBE_LEAST));
                }
                Turn::Stay
            }
            State::Probing { .. } => self.probe(facts),
            State::Pausing { .. } => self.pause(facts),
        }
    }

    /// A sample after a loss, while the window stays.
    fn pause(&mut self, &Facts { now, rtt, base, grain }: &Facts) -> Turn {
        let State::Pausing { from, least, ends, level, since } = &mut self.state else { return Turn::Stay };
        if now < *from {
            return Turn::Stay;
        }
        *least = lesser(*least, rtt);
        if now < *ends {
            return Turn::Stay;
        }
        let shown = std::mem::replace(least, f64::INFINITY);
        *ends = now + rtt;
        if !is_known(*level) || shown < *level {
            *level = shown;
        } else if shown > *level + RISEN * grain {
            (*level, *since) = (shown, now);
        }
        let (seconds, rounds) = FLAT;
        let is_empty = shown - base <= RISEN * grain;
        if is_empty || now - *since >= greater(seconds, rounds * rtt) { Turn::Calm } else { Turn::Stay }
    }

    /// A sample while a part of the window is left out.
    fn probe(&mut self, &Facts { now, rtt, .. }: &Facts) -> Turn {
        let State::Probing { from, until, left, before, least } = &mut self.state else { return Turn::Stay };
        if now >= *from {
            *least = lesser(*least, rtt);
        }
        if now < *until {
            return Turn::Stay;
        }
        let share = (1.0 - *least / *before) / (1.0 - *left);
        let rate = self.cubic.window() * *left / *least;
        self.state = State::Growing { since: now };
        self.alone = if (ALONE..SHARE_MOST).contains(&share) { self.alone + 1 } else { 0 };
        if self.alone >= 2 { Turn::Alone { rate } } else { Turn::Stay }
    }

    /// A loss at `now`, at an RTT of `rtt` seconds on a path of `base`.
    pub fn on_loss(&mut self, now: f64, (rtt, base): (f64, f64), path: &PathView, loss: &Loss) {
        self.cubic.on_loss(path, loss);
        self.alone = 0;
        let is_filled = matches!(self.state, State::Pausing { from, .. } if now >= from);
        self.confirmed = if is_filled { CONFIRMED } else { self.confirmed.saturating_sub(1) };
        let pauses = loss.signal != Signal::Timeout && self.confirmed == 0 && rtt - base <= DEEP;
        self.state = if pauses { State::pausing(now, rtt) } else { State::Growing { since: now } };
    }

    /// The latest loss was none: all of the window is back.
    pub fn on_undo(&mut self, path: &PathView) {
        self.cubic.on_undo(path);
        self.state = State::Growing { since: path.now.as_secs_f64() };
    }
}
