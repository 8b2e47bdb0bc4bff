//! When the window of FAST is updated and how it grows, as ns-2.35's FAST module has it.
//!
//! ```text
//! round trip:  over when more than one RTT has passed; every second one is open, as is the first, which begins with the connection
//! increase:    whole segments, one every  (ACKs of the last round trip) · period / avgRTT / (segments of the increase)  ACKs
//! old:         what was in flight at the last ACK before a segment left; in recovery none counts
//! ```
//!
//! Differs from [`super::window`] in all of it: there the first round trip begins with the first ACK of data, an increase is not cut
//! and comes one segment with each, and `old` is what is in flight when the segment leaves.
//!
//! Citation: ns-2.35's FAST module v1.1.3 (`fast_cc`, `fast_pace`, `fast_est`), with which mfast-2019 and emfast-2019 were computed.

use std::collections::VecDeque;

use super::window::{Goal, WINDOW_MIN, WINDOW_SMALL};

/// Below this baseRTT, in seconds, an increase is neither spread over ACKs nor whole.
pub const BASE_TO_SPREAD: f64 = 0.004;

/// The target in the order of the module's operations: the equilibrium is a band whose ends hang on the last bit.
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
    /// The first one, which began at `began` seconds.
    pub const fn new(began: f64) -> Self {
        Self { began, is_open: true, acks: 0, acks_before: 0 }
    }

    /// An ACK with an RTT of `rtt` seconds arrived: begins the next round trip if it is time.
    pub fn on_ack(&mut self, now: f64, rtt: f64) {
        if self.began + rtt < now {
            self.began = now;
            self.acks_before = self.acks;
            self.acks = 0;
            self.is_open = !self.is_open;
        }
        self.acks += 1;
    }

    /// Whether the window may be updated in it.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// How many ACKs come in `period` seconds, by those of the round trip before and avgRTT.
    pub fn acks_in(&self, period: f64, average: f64) -> f64 {
        f64::from(self.acks_before) * period / average
    }
}

/// The way up to a target: whole segments, spread over the ACKs of an update period (`fast_pace`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Steps {
    pending: f64,
    /// ACKs from one step to the next, and since the last one.
    spacing: u16,
    since: u16,
}

impl Steps {
    /// Nothing to hand out.
    pub const fn new() -> Self {
        Self { pending: 0.0, spacing: 0, since: 0 }
    }

    /// Turns to `target` and returns the window: lower at once if the target is lower, otherwise as it is, or at once the target
    /// where baseRTT is short.
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

    /// Hands out what an ACK allows and returns the window.
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

    /// Segments still to be handed out.
    pub fn pending(&self) -> f64 {
        self.pending
    }
}

/// What was in flight at each ACK, as far as segments that left since then are not acknowledged.
#[derive(Clone, Debug)]
pub(crate) struct Flights {
    /// When what was in flight changed, in seconds, and what it was from then on, in segments: in order of time, never empty.
    changes: VecDeque<(f64, f64)>,
}

/// A flight that changes with each ACK, of a window so large, is remembered for a round trip.
const CHANGES_MAX: usize = 1 << 16;

impl Flights {
    /// Before the first ACK: the SYN.
    pub(crate) fn new() -> Self {
        Self { changes: VecDeque::from([(f64::NEG_INFINITY, 1.0)]) }
    }

    /// An ACK at `now` seconds found `flight` segments in flight, one that it acknowledges included.
    #[expect(clippy::float_cmp, reason = "what has the same bits has not changed")]
    pub(crate) fn on_ack(&mut self, now: f64, flight: f64) {
        if self.changes.back().is_none_or(|&(_, last)| last != flight) {
            if self.changes.len() == CHANGES_MAX {
                self.changes.pop_front();
            }
            self.changes.push_back((now, flight));
        }
    }

    /// `old` of a segment that left at `departure` seconds; what was before is forgotten.
    pub(crate) fn take(&mut self, departure: f64) -> f64 {
        while self.changes.get(1).is_some_and(|&(since, _)| since <= departure) {
            self.changes.pop_front();
        }
        self.changes[0].1
    }
}

#[cfg(test)]
mod tests;
