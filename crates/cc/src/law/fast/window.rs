//! The window law of FAST: a target from the RTTs, the times to compute it, and the steps to it.
//!
//! ```text
//! target:   w' = (1 − gamma) w + gamma (old · baseRTT/avgRTT + alpha)       at least 2
//! when:     in every second round trip, at most once a period, and only if  old (1 − baseRTT/avgRTT) < alpha or ≥ beta
//! how:      an increase segment by segment with the ACKs; a decrease at once
//! MI:       while avgRTT − baseRTT is below a threshold: w ← w + 1 for each acknowledged segment instead
//! equilibrium:  w (1 − baseRTT/RTT) = alpha
//! ```
//!
//! Citation: fast-2006 eq. 8 and sec. III-C; ns-2.35's FAST module for the threshold and the period.
//!
//! Differs from the paper in:
//! * `old`, the flight when the acknowledged segment left, replaces the window of a round trip ago, as in the module: then the
//!   two RTTs and `old` are from the same moment.
//! * There is no cap at 2w: with one segment for each acknowledged segment, the window at most doubles in a round trip. The
//!   steps of the module are in [`super::module`].

use crate::number::lesser;

/// The least target, in segments.
pub const WINDOW_MIN: f64 = 2.0;

/// At and below this window an increase is not spread over ACKs (ns-2's module): there are too few of them.
pub const WINDOW_SMALL: f64 = 4.0;

/// The goal of the window law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Segments to keep queued, and the lower end of the dead band.
    pub alpha: f64,
    /// The upper end of the dead band in segments; there is none if it does not exceed alpha.
    pub beta: f64,
    /// The share of the way to the target in one update; more than zero, at most one.
    pub gamma: f64,
}

impl Goal {
    /// The estimated number of queued segments of a flow with `old` segments in flight, from baseRTT and the RTT in the same unit.
    pub fn backlog(old: f64, base: f64, rtt: f64) -> f64 {
        old * (rtt - base) / rtt
    }

    /// Whether the window has to change, because too few or too many segments are queued.
    pub fn is_missed(&self, old: f64, base: f64, average: f64) -> bool {
        // Without a division, as in the module: at the ends of the band the last bit counts.
        let queued = old * (average - base);
        queued < self.alpha * average || queued >= self.beta * average
    }

    /// The target, from a window in segments and two RTTs in the same unit.
    pub fn target(&self, window: f64, old: f64, base: f64, rtt: f64) -> f64 {
        // [fast-2006] eq. 8.
        ((1.0 - self.gamma) * window + self.gamma * (old * base / rtt + self.alpha)).max(WINDOW_MIN)
    }
}

/// Whether the queue is so short that the window may increase multiplicatively, as in slow start. Times in seconds.
pub fn increases_multiplicatively(base: f64, average: f64, threshold: f64) -> bool {
    average - base < threshold
}

/// The least time between two updates in seconds, as in ns-2's module (`cwnd_update_period_`).
pub const PERIOD: f64 = 0.01;

/// Every second round trip, by the clock: in the other one the path shows the effect of the update. A
/// round trip is over when more than one RTT has passed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// When the current round trip began, in seconds.
    began: f64,
    /// When the target was last computed, in seconds; minus infinity if never.
    updated: f64,
    /// Whether the target may be computed in the current round trip.
    is_open: bool,
}

impl Schedule {
    /// A schedule that starts at `now` seconds with a round trip in which the target may be computed.
    pub const fn new(now: f64) -> Self {
        Self { began: now, updated: f64::NEG_INFINITY, is_open: true }
    }

    /// Handles an ACK with an RTT of `rtt` seconds: begins the next round trip if the present one is over.
    pub fn on_ack(&mut self, now: f64, rtt: f64) {
        if now - self.began > rtt {
            self.began = now;
            self.is_open = !self.is_open;
        }
    }

    /// Whether the target may be computed at `now`.
    pub fn is_due(&self, now: f64) -> bool {
        self.is_open && now - self.updated >= PERIOD
    }

    /// Notes that the target was computed.
    pub fn on_update(&mut self, now: f64) {
        self.updated = now;
    }

    /// Whether the current round trip is one of those in which the target is computed.
    pub fn is_open(&self) -> bool {
        self.is_open
    }
}

/// The steps to a target above the window: the increase is spread over the ACKs that follow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Steps {
    /// The part of the increase that is still to come, in segments; at least zero.
    pending: f64,
}

impl Steps {
    /// No increase is pending.
    pub const fn new() -> Self {
        Self { pending: 0.0 }
    }

    /// Takes a new `target` and returns the window: the target if it is lower, else the present window.
    pub fn turn_to(&mut self, window: f64, target: f64) -> f64 {
        self.pending = (target - window).max(0.0);
        window.min(target)
    }

    /// Grows the window by the part of the increase that an ACK for `acked` segments allows, and returns it: one segment for each, or up to a
    /// doubling if the window is small.
    pub fn on_ack(&mut self, window: f64, acked: f64) -> f64 {
        let step = lesser(self.pending, if window > WINDOW_SMALL { acked } else { window });
        self.pending -= step;
        window + step
    }

    /// The part of the increase that is still to come, in segments.
    pub fn pending(&self) -> f64 {
        self.pending
    }

    /// Drops the rest of the increase, as after a loss.
    pub fn clear(&mut self) {
        self.pending = 0.0;
    }
}

#[cfg(test)]
mod tests;
