//! The clockwork of ns-2.35's FAST module: the times of window updates, and the growth.
//!
//! ```text
//! round trip:  over when more than one RTT has passed; every second one is open, as is the first, which begins with the connection
//! increase:    whole segments, one every  (ACKs of the last round trip) · period / avgRTT / (segments of the increase)  ACKs
//! old:         the flight at the last ACK before a segment left; ACKs in recovery do not count
//! ```
//!
//! Differs from [`super::window`] in all three: there the first round trip begins with the first ACK of data, an increase is not rounded
//! and grows by one segment an ACK, and `old` is the flight when the segment leaves.
//!
//! Citation: ns-2.35's FAST module v1.1.3 (`fast_cc`, `fast_pace`, `fast_est`), with which mfast-2019 and emfast-2019 were computed.

use std::collections::VecDeque;

use super::window::{Goal, WINDOW_MIN, WINDOW_SMALL};

/// Below this baseRTT, in seconds, an increase is neither spread over ACKs nor whole.
pub const BASE_TO_SPREAD: f64 = 0.004;

/// The target, with the operations in the module's order: the equilibrium is a band whose ends depend on the last bit.
pub fn target(window: f64, old: f64, base: f64, average: f64, goal: &Goal) -> f64 {
    let full = old * (base / average) + goal.alpha;
    ((1.0 - goal.gamma) * window + full * goal.gamma).max(WINDOW_MIN)
}

/// Every second round trip, by the clock. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    began: f64,
    is_open: bool,
    acks: u32,
    acks_before: u32,
}

impl Round {
    /// The first round trip, which began at `began` seconds.
    pub const fn new(began: f64) -> Self {
        Self { began, is_open: true, acks: 0, acks_before: 0 }
    }

    /// Handles an ACK with an RTT of `rtt` seconds: begins the next round trip if the present one is over.
    pub fn on_ack(&mut self, now: f64, rtt: f64) {
        if self.began + rtt < now {
            self.began = now;
            self.acks_before = self.acks;
            self.acks = 0;
            self.is_open = !self.is_open;
        }
        self.acks += 1;
    }

    /// Whether the window may be updated in this round trip.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// The number of ACKs in `period` seconds, by the ACKs of the last round trip and avgRTT.
    pub fn acks_in(&self, period: f64, average: f64) -> f64 {
        f64::from(self.acks_before) * period / average
    }
}

/// The steps up to a target: whole segments, spread over the ACKs of an update period (`fast_pace`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Steps {
    pending: f64,
    /// ACKs from one step to the next.
    spacing: u16,
    /// ACKs since the last step.
    since: u16,
}

impl Steps {
    /// No increase is pending.
    pub const fn new() -> Self {
        Self { pending: 0.0, spacing: 0, since: 0 }
    }

    /// Takes a new `target` and returns the window: the target if it is lower or baseRTT is short, else the present window.
    pub fn turn_to(&mut self, window: f64, target: f64, base: f64, acks_per_period: f64) -> f64 {
        if base < BASE_TO_SPREAD {
            self.pending = 0.0;
            return target;
        }
        self.pending = f64::from(((target - window) as i32).max(0));
        if self.pending > 0.0 {
            // The module counts in unsigned 16-bit numbers.
            self.spacing = (acks_per_period / self.pending) as u32 as u16;
            self.since = 0;
        }
        window.min(target)
    }

    /// Grows the window by the step that an ACK allows, and returns it.
    pub fn on_ack(&mut self, window: f64) -> f64 {
        self.since = self.since.wrapping_add(1);
        if self.pending <= 0.0 {
            return window;
        }
        if window <= WINDOW_SMALL {
            // At most a doubling.
            let step = if window < self.pending { window } else { self.pending };
            self.pending -= if window < self.pending { window.trunc() } else { self.pending };
            if self.pending <= 0.0 {
                self.spacing = 0;
            }
            self.since = 0;
            return window + step;
        }
        if self.since >= self.spacing {
            self.pending -= 1.0;
            self.since = 0;
            return window + 1.0;
        }
        window
    }

    /// The part of the increase that is still to come, in segments.
    pub fn pending(&self) -> f64 {
        self.pending
    }
}

/// The flight at each ACK, kept while segments that left after it are unacknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Flights {
    /// The times in seconds at which the flight changed, and the new flight in segments: in order of time, never empty.
    changes: VecDeque<(f64, f64)>,
}

/// The limit of changes: a flight of this size that changes with each ACK is remembered for a round trip.
const CHANGES_MAX: usize = 1 << 16;

impl Flights {
    /// The record before the first ACK: the SYN alone.
    pub(crate) fn new() -> Self {
        Self { changes: VecDeque::from([(f64::NEG_INFINITY, 1.0)]) }
    }

    /// Handles an ACK at `now` seconds with `flight` segments in flight, one of the acknowledged ones included.
    #[expect(clippy::float_cmp, reason = "what has the same bits has not changed")]
    pub(crate) fn on_ack(&mut self, now: f64, flight: f64) {
        if self.changes.back().is_none_or(|&(_, last)| last != flight) {
            if self.changes.len() == CHANGES_MAX {
                self.changes.pop_front();
            }
            self.changes.push_back((now, flight));
        }
    }

    /// Returns `old` for a segment that left at `departure` seconds, and forgets what was before.
    pub(crate) fn take(&mut self, departure: f64) -> f64 {
        while self.changes.get(1).is_some_and(|&(since, _)| since <= departure) {
            self.changes.pop_front();
        }
        self.changes[0].1
    }
}

#[cfg(test)]
mod tests;
