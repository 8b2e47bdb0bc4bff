//! The window beside a rival, and the test whether the rival is still there.

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
    /// The largest recent delivery rate before the competition, in segments a second.
    carried: f64,
    /// The RTTs of the last one to two round trips, with the sign reversed: their minimum is the largest RTT.
    most: Recent,
    state: State,
    /// The number of consecutive probes that showed no rival.
    alone: u32,
    /// The number of losses, from the last one on, without a pause, because a pause has shown a rival.
    confirmed: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Slow start, up to half of the rate of the path.
    Starting,
    /// The window is CUBIC's.
    Growing {
        /// The begin of this state, in seconds.
        since: f64,
    },
    /// The window is reduced.
    Probing {
        /// The time from which on the RTT shows the reduction; below, the end of the probe, in seconds.
        from: f64,
        until: f64,
        /// The share of the window that is left.
        left: f64,
        /// The RTT before the probe; below, the least RTT since `from`, in seconds.
        before: f64,
        least: f64,
    },
    /// After a loss: the window stays.
    Pausing {
        /// The time from which on the RTT shows the window after the loss, in seconds.
        from: f64,
        /// The least RTT of the present round trip; below, the end of this round trip, in seconds.
        least: f64,
        ends: f64,
        /// The RTT that has not risen; below, the time since which it has not, in seconds.
        level: f64,
        since: f64,
    },
}

impl State {
    /// The state after the window fell to the share `left` at an RTT of `rtt` seconds, whose recent maximum is `before`.
    fn probing(now: f64, (rtt, before): (f64, f64), left: f64) -> Self {
        Self::Probing { from: now + rtt, until: now + ROUNDS * rtt, left, before, least: f64::INFINITY }
    }

    /// The state after a loss at `now`, at an RTT of `rtt` seconds.
    fn pausing(now: f64, rtt: f64) -> Self {
        let from = now + ROUNDS * rtt;
        Self::Pausing { from, least: f64::INFINITY, ends: from + rtt, level: f64::INFINITY, since: from }
    }
}

/// The result of an ACK.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Turn {
    /// A rival may still be there.
    Stay,
    /// There is no rival: the queue is ours.
    Alone {
        /// The delivery rate in segments a second.
        rate: f64,
    },
    /// No rival fills the queue any more.
    Calm,
}

/// The state of the flow at an ACK while it competes; times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// The ACK's arrival.
    pub now: f64,
    /// The RTT that it shows, in seconds.
    pub rtt: f64,
    /// The baseRTT of the path, in seconds.
    pub base: f64,
    /// The difference that two samples may have without a meaning.
    pub grain: f64,
}

/// The round trips of a probe: in the first one the queue falls, in the second the samples show it. The effect of a loss takes as long.
const ROUNDS: f64 = 2.0;

/// The least number of RTTs between two probes.
const APART: f64 = 8.0;

/// The least part of the window by which a probe reduces it: the effect of a smaller part is not visible.
const PROBE_LEAST: f64 = 0.05;

/// A measured share of the link above this is impossible: another flow has reduced its window at the same time.
const SHARE_MOST: f64 = 1.3;

/// An RTT below this share of its value a round trip ago has fallen by itself. If one of eight flows in a queue probes, it leaves 31/32 of the RTT.
const FALLEN: f64 = 0.97;

/// If the RTT does not rise for these seconds and these round trips, no rival fills the queue. CUBIC adds 6 packets in the 4 s around its plateau, for any
/// window.
const FLAT: (f64, f64) = (4.0, 8.0);

/// The number of losses without a pause, from the one that ended a pause on. A pause gives a rival about a quarter of a window, and it comes only once in
/// so many losses.
const CONFIRMED: u32 = 3;

/// Flows of our kind do not make a queueing delay of this many seconds: such a queue is a rival's.
const DEEP: f64 = 0.06;

/// The fair share of the path beside one rival.
const FAIR: f64 = 0.5;

impl Competition {
    /// Begins with a window in segments, on a path with a rate of `carried` segments a second.
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

    /// Handles an ACK. Returns whether a rival may still be there.
    pub fn on_ack(&mut self, path: &PathView, ack: &Ack, facts: &Facts, rule: &Rule) -> Turn {
        let &Facts { now, rtt, base, .. } = facts;
        let most = -self.most.on_value(now, -rtt, rtt);
        // The time of a probe or a pause does not count for CUBIC's curve.
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
                    // If the whole queue is ours, half of it is left.
                    let left = greater(rule.share, 1.0 - 0.5 * (rtt - base) / rtt);
                    self.state = State::probing(now, (rtt, most), lesser(left, 1.0 - PROBE_LEAST));
                }
                Turn::Stay
            }
            State::Probing { .. } => self.probe(facts),
            State::Pausing { .. } => self.pause(facts),
        }
    }

    /// Handles a sample in a pause.
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

    /// Handles a sample in a probe.
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

    /// Handles a loss at `now`, at an RTT of `rtt` seconds on a path with a baseRTT of `base`.
    pub fn on_loss(&mut self, now: f64, (rtt, base): (f64, f64), path: &PathView, loss: &Loss) {
        self.cubic.on_loss(path, loss);
        self.alone = 0;
        let is_filled = matches!(self.state, State::Pausing { from, .. } if now >= from);
        self.confirmed = if is_filled { CONFIRMED } else { self.confirmed.saturating_sub(1) };
        let pauses = loss.signal != Signal::Timeout && self.confirmed == 0 && rtt - base <= DEEP;
        self.state = if pauses { State::pausing(now, rtt) } else { State::Growing { since: now } };
    }

    /// Handles a spurious loss: the whole window returns.
    pub fn on_undo(&mut self, path: &PathView) {
        self.cubic.on_undo(path);
        self.state = State::Growing { since: path.now.as_secs_f64() };
    }
}
