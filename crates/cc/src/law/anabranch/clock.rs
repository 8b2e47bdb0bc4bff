//! When to drain: all flows of a queue at the same time.
//!
//! Only if all drain together does the queue become empty, so that each sees the propagation delay, and the division of the queue is of no account. Every
//! flow of a queue sees the same dips of the RTT. So whoever finds that the deepest dip since its last drain was another's moves its next drain there, one
//! interval after that dip. Of two dips that are both empty, the earlier flow moves to the later one if that comes within half an interval. A loss is seen by
//! all flows that compete, too: those whose drain is near then drain at once.

use super::model::Model;

/// The least RTT in some time.
#[derive(Clone, Copy, Debug)]
struct Dip {
    rtt: f64,
    at: f64,
}

impl Dip {
    const NONE: Self = Self { rtt: f64::INFINITY, at: f64::NEG_INFINITY };

    fn hear(&mut self, rtt: f64, at: f64) {
        if rtt < self.rtt {
            *self = Self { rtt, at };
        }
    }

    /// As [`Self::hear`]; of two dips that are equally deep the later counts.
    fn hear_latest(&mut self, model: &Model) {
        let Model { rtt, now, mean, tolerance, .. } = *model;
        if rtt < self.rtt {
            *self = Self { rtt, at: now };
        } else if rtt < self.rtt + 0.5 * tolerance && now > self.at + OTHER_DIP_ROUNDS * mean {
            self.at = now;
        }
    }
}

/// The times of drains; in seconds.
#[derive(Clone, Debug)]
pub(super) struct DrainClock {
    /// The interval of drains while the queue is ours.
    interval: f64,
    /// The next drain; infinity before the first is set.
    next: f64,
    /// The end of the latest drain.
    ended: f64,
    /// Whether the phase is that of a drain that emptied the queue.
    is_in_phase: bool,
    /// Whether the next drain has moved already.
    has_moved: bool,
    /// The deepest dip since the latest drain began, and the dip of that drain.
    deepest: Dip,
    own: Dip,
    /// The deepest dip in the half interval after that drain, once there was a queue again.
    later: Dip,
    has_refilled: bool,
    /// Whether there was a queue since it was last empty.
    had_queue: bool,
}

impl DrainClock {
    pub(super) fn new(interval: f64) -> Self {
        Self {
            interval,
            next: f64::INFINITY,
            ended: f64::NEG_INFINITY,
            is_in_phase: false,
            has_moved: false,
            deepest: Dip::NONE,
            own: Dip::NONE,
            later: Dip::NONE,
            has_refilled: false,
            had_queue: false,
        }
    }

    /// Watches the dips of the RTT. `is_draining`: in a drain of our own.
    pub(super) fn on_ack(&mut self, model: &Model, is_draining: bool) {
        let Model { now, rtt, base, tolerance, mean, .. } = *model;
        let after = now - self.own.at;
        if rtt - base > 2.0 * tolerance {
            self.had_queue = true;
        }
        self.has_refilled |= after > REFILL_ROUNDS * mean && rtt - base > tolerance;
        self.deepest.hear_latest(model);
        if is_draining {
            self.own.hear(rtt, now);
        } else if self.has_refilled && after > (LATER_ROUNDS * mean).max(LATER_S) && after < 0.5 * self.interval {
            self.later.hear(rtt, now);
        }
    }

    /// In cruise, a flow that has not drained with others takes the phase of the first empty queue that it sees.
    pub(super) fn join(&mut self, model: &Model) {
        let is_empty = model.rtt - model.base < model.tolerance;
        if self.had_queue && is_empty {
            self.had_queue = false;
            if !self.is_in_phase && model.now - self.ended > 3.0 * model.mean {
                self.next = model.now + self.interval;
                self.is_in_phase = true;
            }
        }
    }

    pub(super) fn is_due(&self, now: f64) -> bool {
        now >= self.next
    }

    pub(super) fn is_in_phase(&self) -> bool {
        self.is_in_phase
    }

    /// The time since the latest drain ended.
    pub(super) fn since_end(&self, now: f64) -> f64 {
        now - self.ended
    }

    /// The interval while the queue is ours.
    pub(super) fn interval(&self) -> f64 {
        self.interval
    }

    /// The time from a drain that emptied the queue to the next: 26 round trips or more.
    pub(super) fn interval_of_own(&self, mean: f64) -> f64 {
        self.doubled(ROUNDS_OF_OWN * mean)
    }

    /// The interval while a rival may be there: twelve round trips or more.
    pub(super) fn interval_beside_rival(&self, mean: f64) -> f64 {
        self.doubled(ROUNDS_BESIDE_RIVAL * mean)
    }

    /// The usual interval, doubled until it is `least` or more: so drains of flows with unequal RTTs coincide.
    fn doubled(&self, least: f64) -> f64 {
        let mut interval = self.interval;
        while interval < least {
            interval *= 2.0;
        }
        interval
    }

    /// A drain begins.
    pub(super) fn begin(&mut self, now: f64) {
        self.next = self.next.min(now);
        self.deepest = Dip::NONE;
        self.own = Dip::NONE;
        self.later = Dip::NONE;
        self.has_refilled = false;
        self.has_moved = false;
    }

    /// A drain has ended; the next is `interval` after its begin, so that flows that drain together go on to do so.
    pub(super) fn end(&mut self, now: f64, interval: f64, is_in_phase: bool) {
        self.ended = now;
        self.is_in_phase = is_in_phase;
        self.skip(now, interval);
    }

    /// The next drain is an interval later.
    pub(super) fn skip(&mut self, now: f64, interval: f64) {
        self.next = if self.next.is_finite() { self.next + interval } else { now + interval };
        if self.next < now + 0.5 * interval {
            self.next = now + interval;
        }
    }

    /// A drain has been due for a quarter of the interval: it is left out.
    pub(super) fn skip_if_late(&mut self, now: f64, interval: f64) {
        if now - self.next > 0.25 * interval {
            self.next += interval;
        }
    }

    /// A drain is due, and the queue is empty without one: others drain.
    pub(super) fn pass(&mut self, now: f64, mean: f64) {
        self.next = now + self.interval - DIP_ROUNDS * mean;
        self.is_in_phase = true;
    }

    /// The flow has just found the path's size: its first drain is an interval later.
    pub(super) fn restart(&mut self, now: f64) {
        self.ended = now;
        self.next = now + self.interval;
        self.is_in_phase = false;
    }

    /// Whether the next drain is due within half of `interval`.
    pub(super) fn is_near(&self, now: f64, interval: f64) -> bool {
        self.next - now < 0.5 * interval
    }

    /// The next drain is at that time.
    pub(super) fn set(&mut self, at: f64) {
        self.next = at;
    }

    /// Moves the drain that is due to one interval after another flow's dip; false if ours is as good.
    pub(super) fn moves(&mut self, model: &Model, interval: f64) -> bool {
        let Model { now, mean, base, tolerance, .. } = *model;
        if self.has_moved {
            return false;
        }
        let Self { deepest, own, later, .. } = *self;
        let is_deeper = deepest.rtt < own.rtt - tolerance && (deepest.at - own.at).abs() > mean;
        let is_equal = later.rtt < own.rtt + 0.5 * tolerance && own.rtt < base + tolerance;
        let dip = match (is_deeper, is_equal) {
            (true, _) => deepest,
            (false, true) => later,
            (false, false) => return false,
        };
        let next = dip.at + interval - DIP_ROUNDS * mean;
        let next = if next <= now { next + ((now - next) / interval).ceil() * interval } else { next };
        if next > now + interval {
            return false;
        }
        self.next = next;
        self.has_moved = true;
        self.is_in_phase = true;
        true
    }
}

/// The round trips between two drains of our own queue: each costs about half of one. On 50 Mbit/s and 200 ms drains each 5 s cost a thirtieth of the link.
const ROUNDS_OF_OWN: f64 = 26.0;

/// The round trips between two drains beside a rival: a drain takes two to five.
const ROUNDS_BESIDE_RIVAL: f64 = 12.0;

/// A dip is deepest half a round trip after the flight is at its least, which is a round trip after the drain began.
const DIP_ROUNDS: f64 = 1.5;

/// A queue that is there so long after a dip has come back after it, and a dip so long after it is another's.
const REFILL_ROUNDS: f64 = 2.0;
const LATER_ROUNDS: f64 = 3.0;
const LATER_S: f64 = 0.3;

/// A dip so many round trips after another is not the same: a drain takes two to five.
const OTHER_DIP_ROUNDS: f64 = 8.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::anabranch::AnabranchSettings;

    /// A clock of 5 s after a drain at 10 s whose dip was `own` seconds, and a dip of `other` at `at`.
    fn clock(own: f64, other: f64, at: f64) -> (DrainClock, Model) {
        let mut model = Model::new(&AnabranchSettings::DEFAULT);
        (model.base, model.mean, model.tolerance) = (0.05, 0.06, 0.001);
        let mut clock = DrainClock::new(5.0);
        clock.begin(10.0);
        for (now, rtt, is_draining) in [(10.1, own, true), (10.5, 0.06, false), (at, other, false)] {
            (model.now, model.rtt) = (now, rtt);
            clock.on_ack(&model, is_draining);
        }
        clock.end(10.2, 5.0, true);
        model.now = 15.2;
        (clock, model)
    }

    /// The interval is doubled until 26 round trips fit, or 12 beside a rival.
    #[test]
    fn interval_holds_enough_round_trips() {
        let clock = DrainClock::new(5.0);
        for (mean, own, beside) in [(0.19, 5.0, 5.0), (0.2, 10.0, 5.0), (0.4, 20.0, 5.0), (0.6, 20.0, 10.0)] {
            assert_eq!((clock.interval_of_own(mean), clock.interval_beside_rival(mean)), (own, beside), "{mean}");
        }
    }

    #[test]
    fn deeper_dip_of_another_draws_the_drain_to_it() {
        let (mut clock, model) = clock(0.055, 0.05, 14.0);
        assert!(clock.moves(&model, 5.0));
        // An interval after it, and it takes 1.5 round trips of 60 ms to get there.
        assert!(!clock.is_due(18.9) && clock.is_due(18.92));
        assert!(!clock.moves(&model, 5.0), "once");
    }

    #[test]
    fn earlier_of_two_empty_dips_moves_to_the_later() {
        let (mut earlier, model) = clock(0.05, 0.05, 12.0);
        assert!(earlier.moves(&model, 5.0));
        assert!(!earlier.is_due(16.9) && earlier.is_due(16.92));
        let (mut later, model) = clock(0.05, 0.05, 13.0);
        assert!(!later.moves(&model, 5.0), "it is the other's turn");
    }
}
