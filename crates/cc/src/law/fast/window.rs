//! The window law of FAST: a target from the RTTs, when to compute it, and how to get there.
//!
//! ```text
//! target:   w' = (1 − gamma) w + gamma (old · baseRTT/avgRTT + alpha)       at least 2
//! when:     in every second round trip, at most once a period, and only if  old (1 − baseRTT/avgRTT) < alpha or ≥ beta
//! how:      an increase segment by segment with the ACKs, a decrease at once
//! MI:       while avgRTT − baseRTT is below a threshold: w ← w + 1 for each acknowledged segment instead
//! at rest:  w (1 − baseRTT/RTT) = alpha
//! ```
//!
//! Citation: fast-2006 eq. 8 and sec. III-C; ns-2.35's FAST module for the threshold and the period.
//!
//! Differs from the paper in:
//! * `old`, what was in flight when the acknowledged segment left, stands for the window of a round trip ago, as in the
//!   module: the two RTTs and `old` then tell of the same moment.
//! * The cap at 2w is the way to the target: a step of one segment for each that is acknowledged cannot do more than double
//!   in a round trip. What the module does instead is [`super::module`].

use super::noise::Recent;
use crate::number::lesser;

/// The least target, in segments.
pub const WINDOW_MIN: f64 = 2.0;

/// At and below this window an increase is not spread over ACKs (ns-2's module): there are too few of them.
pub const WINDOW_SMALL: f64 = 4.0;

/// Where the window is to go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// Segments to keep queued, and the lower end of the dead band.
    pub alpha: f64,
    /// The upper end of the dead band in segments; there is none if it does not exceed alpha.
    pub beta: f64,
    /// How far to go at once; more than zero, at most one.
    pub gamma: f64,
}

impl Goal {
    /// What one flow that had `old` segments in flight seems to keep queued, from baseRTT and the RTT in the same unit.
    pub fn backlog(old: f64, base: f64, rtt: f64) -> f64 {
        old * (rtt - base) / rtt
    }

    /// Whether the window has to move: too little is queued, or too much.
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

/// How many segments are known to fit on a path without a queue: the most that it carried of late, once it was full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pipe {
    is_known: bool,
    /// Segments, below zero.
    carried: Recent,
}

impl Pipe {
    /// What was carried counts for so many seconds, up to twice as long: from one drain to the next, and a host that stalls for a moment does
    /// not make the path small.
    const SPAN: f64 = 5.0;

    /// A path of unknown capacity.
    pub const fn new() -> Self {
        Self { is_known: false, carried: Recent::new() }
    }

    /// Whether the path was full once.
    pub fn was_full(&self) -> bool {
        self.is_known
    }

    /// So many segments are thought to fit, from `now` seconds on.
    pub fn known(now: f64, segments: f64) -> Self {
        let mut carried = Recent::new();
        carried.on_value(now, -segments, Self::SPAN);
        Self { is_known: true, carried }
    }

    /// At `now` seconds a segment is acknowledged that left with `flight` segments in flight, after `rtt` seconds, of which a path without a queue
    /// takes `base`; `is_full` is whether a queue stands. Returns how many fit, infinite before the path was first full.
    pub fn on_ack(&mut self, now: f64, flight: f64, base: f64, rtt: f64, is_full: bool) -> f64 {
        self.is_known |= is_full;
        let carried = -self.carried.on_value(now, -flight * base / rtt, Self::SPAN);
        if self.is_known { carried } else { f64::INFINITY }
    }
}

impl Default for Pipe {
    fn default() -> Self {
        Self::new()
    }
}

/// By how many segments a window that increases multiplicatively grows for `acked` segments. Up to `pipe` it doubles in a round trip. Beyond that what
/// is beyond doubles, from `alpha` segments on: so it overshoots by no more than what it has found.
pub fn multiplicative_increase(window: f64, acked: f64, pipe: f64, alpha: f64) -> f64 {
    if window < pipe {
        lesser(acked, pipe - window + alpha)
    } else {
        acked * lesser(UNSEEN * (window - pipe + alpha) / window, 1.0)
    }
}

/// What of a window that grows exponentially is not acknowledged yet, times this, doubles it in a round trip: ln 2 / (1 − 1/2).
const UNSEEN: f64 = 2.0 * std::f64::consts::LN_2;

/// Least time between two updates in seconds: that of ns-2's module (`cwnd_update_period_`).
pub const PERIOD: f64 = 0.01;

/// Every second round trip, by the clock: in the other one the path shows what came of the update. A
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
    /// Starts at `now` seconds with a round trip in which the target may be computed.
    pub const fn new(now: f64) -> Self {
        Self { began: now, updated: f64::NEG_INFINITY, is_open: true }
    }

    /// An ACK with an RTT of `rtt` seconds arrived: begins the next round trip if it is time.
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

    /// The target was computed.
    pub fn on_update(&mut self, now: f64) {
        self.updated = now;
    }

    /// Whether the current round trip is one of those in which the target is computed.
    pub fn is_open(&self) -> bool {
        self.is_open
    }
}

/// The way to a target above the window: an increase is handed out with the ACKs that follow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Steps {
    /// Segments still to be handed out; at least zero.
    pending: f64,
}

impl Steps {
    /// Nothing to hand out.
    pub const fn new() -> Self {
        Self { pending: 0.0 }
    }

    /// Turns to `target` and returns the window: lower at once if the target is lower, otherwise as it is.
    pub fn turn_to(&mut self, window: f64, target: f64) -> f64 {
        self.pending = (target - window).max(0.0);
        window.min(target)
    }

    /// Hands out what an ACK for `acked` segments allows and returns the window: one segment for each, or up to a doubling
    /// where the window is small.
    pub fn on_ack(&mut self, window: f64, acked: f64) -> f64 {
        let step = lesser(self.pending, if window > WINDOW_SMALL { acked } else { window });
        self.pending -= step;
        window + step
    }

    /// Segments still to be handed out.
    pub fn pending(&self) -> f64 {
        self.pending
    }

    /// Drops what is still to be handed out, as after a loss.
    pub fn clear(&mut self) {
        self.pending = 0.0;
    }
}

#[cfg(test)]
mod tests;
