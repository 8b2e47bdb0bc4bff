//! The pending timers. There are few, so they are a list. Among equal times, the one set first is due first, as in ns-2's event
//! list.

use anabranch_units::{SimSpan, SimTime};

/// The timers of an endpoint. Each is named by the event that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// The INIT-ACK (`T1-init`).
    Init,
    /// The COOKIE-ACK (`T1-cookie`).
    Cookie,
    /// A second packet to acknowledge (delayed SACK).
    Sack,
    /// The next check for an idle destination.
    Heartbeat,
    /// The SACK of the earliest chunk outstanding at a destination (`T3-rtx`).
    Retransmission(usize),
    /// A send to a destination within one RTO.
    Idle(usize),
    /// The answer of a destination to a heartbeat.
    HeartbeatAck(usize),
}

/// The current time. In a world with ns-2's clock `float` is exact, and `now` is `float` rounded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    pub(crate) now: SimTime,
    pub(crate) float: Option<f64>,
}

impl Clock {
    pub(crate) fn seconds(&self) -> f64 {
        self.float.unwrap_or_else(|| self.now.as_secs_f64())
    }
}

/// The time at which a timer is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub(crate) at: SimTime,
    /// `at` in seconds.
    pub(crate) seconds: f64,
    /// When the timer was set.
    pub(crate) set_at: SimTime,
    pub(crate) timer: Timer,
}

/// The pending timers in the order of setting. Each timer occurs at most once: at most four, and three for each destination.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    pending: Vec<Deadline>,
}

impl Timers {
    /// Sets a timer `delay_s` seconds from now. If it is pending, it moves.
    pub(crate) fn set(&mut self, timer: Timer, clock: &Clock, delay_s: f64) {
        self.cancel(timer);
        let (at, seconds) = match clock.float {
            // ns-2 adds the delay to its float clock; the event is due at the sum.
            Some(now) => (SimTime::ZERO.saturating_add(SimSpan::from_secs_f64(now + delay_s)), now + delay_s),
            None => {
                let at = clock.now.saturating_add(SimSpan::from_secs_f64(delay_s));
                (at, at.as_secs_f64())
            }
        };
        self.pending.push(Deadline { at, seconds, set_at: clock.now, timer });
    }

    pub(crate) fn cancel(&mut self, timer: Timer) {
        if let Some(index) = self.pending.iter().position(|pending| pending.timer == timer) {
            self.pending.remove(index);
        }
    }

    pub(crate) fn cancel_all(&mut self) {
        self.pending.clear();
    }

    /// The timer that is due next.
    pub(crate) fn next(&self) -> Option<&Deadline> {
        // Of equal times, the first.
        self.pending.iter().reduce(|a, b| if b.seconds < a.seconds { b } else { a })
    }

    /// Removes and returns the timer that is due next, if its time has come.
    pub(crate) fn take_due(&mut self, now: SimTime) -> Option<Timer> {
        let Deadline { timer, .. } = *self.next().filter(|next| next.at <= now)?;
        self.cancel(timer);
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Clock {
        Clock { now: SimTime::ZERO + SimSpan::from_secs(seconds), float: None }
    }

    #[test]
    fn of_equal_times_the_one_set_first_is_due_first() {
        let mut timers = Timers::default();
        timers.set(Timer::Sack, &at(0), 3.0);
        timers.set(Timer::Idle(0), &at(1), 2.0);
        // A timer that is set again for the same time moves to the end.
        timers.set(Timer::Sack, &at(2), 1.0);
        assert_eq!(timers.take_due(at(2).now), None);
        assert_eq!(timers.take_due(at(3).now), Some(Timer::Idle(0)));
        assert_eq!(timers.take_due(at(3).now), Some(Timer::Sack));
        assert!(timers.next().is_none());
    }

    /// Case 5019 of `cargo xtask oracle --agent sctp-multihomed`: a heartbeat timer fires while a SACK is delayed. The SACK's
    /// timer is due at the same time as a packet that left after the timer was set. The timer goes first.
    #[test]
    fn a_timer_keeps_its_place_when_another_fires() {
        let mut timers = Timers::default();
        timers.set(Timer::Sack, &at(0), 3.0);
        timers.set(Timer::Heartbeat, &at(1), 1.0);
        assert_eq!(timers.take_due(at(2).now), Some(Timer::Heartbeat));
        assert_eq!(timers.next().map(|next| next.set_at), Some(at(0).now));
    }
}
