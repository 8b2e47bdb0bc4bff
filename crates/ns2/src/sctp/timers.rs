//! The timers that are pending: a handful, so a list. Of equal times the one set first is due first, as in ns-2's event list.

use anabranch_units::{SimSpan, SimTime};

/// The timers of an endpoint, named by the awaited event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// The INIT-ACK (`T1-init`).
    Init,
    /// The COOKIE-ACK (`T1-cookie`).
    Cookie,
    /// A second packet to acknowledge.
    Sack,
    /// The next look for an idle destination.
    Heartbeat,
    /// The SACK of the earliest chunk outstanding at a destination (`T3-rtx`).
    Retransmission(usize),
    /// One RTO without sending.
    Idle(usize),
    /// The answer of a destination.
    HeartbeatAck(usize),
}

/// The present. In a world with ns-2's clock the float says it, and `now` is it, rounded.
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

/// When a timer is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    pub(crate) at: SimTime,
    /// The same in seconds.
    pub(crate) seconds: f64,
    /// When it was set.
    pub(crate) set_at: SimTime,
    pub(crate) timer: Timer,
}

/// In the order of setting; each timer at most once, so at most four and three for each destination.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    pending: Vec<Deadline>,
}

impl Timers {
    /// Sets a timer `delay_s` seconds from now, wherever it was.
    pub(crate) fn set(&mut self, timer: Timer, clock: &Clock, delay_s: f64) {
        self.cancel(timer);
        let (at, seconds) = match clock.float {
            // ns-2 adds the delay to its clock, and the event is due at the sum.
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

    /// The one due next.
    pub(crate) fn next(&self) -> Option<&Deadline> {
        // The first of equal ones.
        self.pending.iter().reduce(|a, b| if b.seconds < a.seconds { b } else { a })
    }

    /// Takes out the one due next, if its time has come.
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
        // Set anew for the same time it goes to the end.
        timers.set(Timer::Sack, &at(2), 1.0);
        assert_eq!(timers.take_due(at(2).now), None);
        assert_eq!(timers.take_due(at(3).now), Some(Timer::Idle(0)));
        assert_eq!(timers.take_due(at(3).now), Some(Timer::Sack));
        assert!(timers.next().is_none());
    }

    /// Case 5019 of `cargo xtask oracle --agent sctp-multihomed`: a heartbeat fires while a SACK is delayed, and the SACK's timer
    /// is due together with a packet that left after it was set. The timer is first.
    #[test]
    fn a_timer_keeps_its_place_when_another_fires() {
        let mut timers = Timers::default();
        timers.set(Timer::Sack, &at(0), 3.0);
        timers.set(Timer::Heartbeat, &at(1), 1.0);
        assert_eq!(timers.take_due(at(2).now), Some(Timer::Heartbeat));
        assert_eq!(timers.next().map(|next| next.set_at), Some(at(0).now));
    }
}
