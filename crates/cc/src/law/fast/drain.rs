//! Drains: from time to time the window is reduced, so that the RTT without a queue can be measured.
//!
//! ```text
//! waiting:    the law, for an interval
//! draining:   w ← share · w, for two round trips
//! refilling:  half a segment an ACK to baseRTT/avgRTT · w + alpha, with the new baseRTT, and w and avgRTT from before the drain
//! settling:   one more round trip, until the flight of an RTT ago is again what w allows
//! ```
//!
//! Why: a late comer takes the standing queue for propagation delay ([`super`]). While it drains, the others keep their windows for
//! a round trip. If it takes out more segments than are queued, the queue empties and the late comer measures the path.
//!
//! Citation: ledbat-plus-plus sec. 4.4, periodic slowdown.
//!
//! Differs from it in:
//! * LEDBAT++ falls to two segments and returns by slow start; the time to its next slowdown is nine times the duration of the last one.
//!   Half of the window is enough here, and costs less.
//! * **Joining.** With several flows, one drain alone takes out less than all the others have queued. So a flow that sees the queue
//!   fall by itself, to a share of its earlier length, takes this for the drain of another flow and drains as well. The earlier length is
//!   the largest recent avgRTT, as avgRTT falls with the queue within a round trip.
//! * **Need.** Under `is_unseen` a path is not drained if it was recently seen without a queue: while a window still grows, each of
//!   its bursts begins on an empty queue, and where RTTs vary, low ones are frequent. A path counts as seen if a sample
//!   leaves less than one segment of the flow in the queue.

use anabranch_units::Span;

use crate::settings::{Choice, Fields};

/// How to drain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The seconds from one drain to the next; more than zero.
    pub interval: f64,
    /// The share of the window that is left; more than zero, at most one.
    pub share: f64,
    /// Joins a drain when the queue falls below this share of its earlier length; zero: never.
    pub join: f64,
    /// Drains a path only if it was not seen without a queue for some round trips.
    pub is_unseen: bool,
    /// The time for which a least RTT is remembered, in seconds: at least this, at most twice as long; zero: for ever. Without drains, a queue
    /// that never empties would be taken for a part of the path.
    pub base_window: f64,
}

impl Rule {
    /// The interval of BBR, and half of the window, which proved to be enough.
    pub const DEFAULT: Self = Self {
        interval: 10.0,
        share: 0.5,
        join: 0.75,
        is_unseen: true,
        // Six drains: with several flows, one flow may see the path at one drain and miss it at the next.
        base_window: 60.0,
    };
}

impl Choice for Option<Rule> {
    const KINDS: &'static [(&'static str, Self)] = &[("off", None), ("on", Some(Rule::DEFAULT))];

    fn visit(&mut self, fields: &mut Fields<'_>) {
        let Some(rule) = self else { return };
        let hour = Span::from_secs(3600);
        let help = "time from one drain, which shows the RTT without a queue, to the next";
        fields.seconds("interval", &mut rule.interval, Span::from_millis(1)..=hour, help);
        fields.number("share", &mut rule.share, 0.001..=1.0, "", "share of the window that is left in a drain");
        let help = "a queue below this share of its earlier length counts as the drain of another flow, and is joined";
        fields.number("join", &mut rule.join, 0.0..=1.0, "", help);
        let help = "drain only if the path was not seen without a queue for eight round trips";
        fields.switch("unseen", &mut rule.is_unseen, help);
        let help = "time for which a least RTT is remembered: at least this, at most twice as long; 0s is for ever";
        fields.seconds("base_window", &mut rule.base_window, Span::ZERO..=hour, help);
    }
}

/// Round trips that a drain lasts: after one the queue is drained, in the second the samples show it.
const ROUNDS: f64 = 2.0;

/// The growth of the window for each acknowledged segment in a refill. The ACKs of half a window arrive in half of a round trip:
/// with a growth of one, a quarter of the window would queue.
pub const RETURN: f64 = 0.5;

/// A flow does not join before this share of the interval is over: the fall of the queue may have another cause than a drain.
const JOIN_AFTER: f64 = 0.5;

/// A path that was seen without a queue within this many round trips needs no drain. While a window doubles, each of its bursts begins
/// on an empty queue, and it doubles within a few round trips.
const UNSEEN_ROUNDS: f64 = 8.0;

/// The round trips after a drain in which a decrease of the window says nothing about the route. Flows with too large a share shrink in favour
/// of flows with too small a share, so the RTT stays. Where half of the RTT is queue, an update leaves three quarters of a share's error, and
/// eight updates leave a tenth.
pub const SHARES_MOVE: f64 = 16.0;

/// The state of a flow's drains.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Drain {
    /// There was no ACK yet.
    #[default]
    New,
    /// The window law sets the window.
    Waiting {
        /// The begin of this state, in seconds.
        since: f64,
        /// When a sample last showed the path without a queue, in seconds; or when this state began.
        seen: f64,
    },
    /// The window is reduced.
    Draining {
        /// The end of this state, in seconds.
        until: f64,
        /// The window before, in segments.
        window: f64,
        /// avgRTT before, in seconds.
        average: f64,
    },
    /// The window returns to its size.
    Refilling,
    /// The window is back.
    Settling {
        /// Until when, in seconds.
        until: f64,
    },
}

/// The state of the flow at an ACK; times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// The ACK's arrival.
    pub now: f64,
    /// The RTT sample.
    pub rtt: f64,
    /// baseRTT, this sample included.
    pub base: f64,
    /// avgRTT before a fall of the queue: its largest value in the last one or two round trips, this sample included.
    pub average: f64,
    /// The window in segments.
    pub window: f64,
    /// The part of the increase that is still to come, in segments.
    pub pending: f64,
    /// The delay that may be noise and no queue.
    pub noise: f64,
    /// Whether a drain may begin: the window is full, and no other part is changing it.
    pub may_begin: bool,
}

/// The action on the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// The window law decides.
    None,
    /// The window law decides, and another flow drains.
    Aside,
    /// Reduce it to this many segments, at once.
    Fall(f64),
    /// Keep it, or add what is pending of an increase.
    Hold,
    /// Let it grow to `window · share + alpha` segments, by the ACK.
    Return {
        /// The window before the drain.
        window: f64,
        /// baseRTT over what avgRTT was before the drain.
        share: f64,
    },
}

impl Drain {
    /// Handles an ACK outside fast recovery.
    pub fn on_ack(&mut self, facts: &Facts, rule: &Rule) -> Action {
        let &Facts { now, rtt, base, average, window, .. } = facts;
        match *self {
            Self::New => {
                *self = Self::Waiting { since: now, seen: now };
                Action::None
            }
            Self::Waiting { since, seen } => {
                let waited = now - since;
                // Less than one segment of this flow is queued.
                if (rtt - base) * window < rtt {
                    *self = Self::Waiting { since, seen: now };
                }
                let is_falling = (rtt + facts.noise) - base < rule.join * (average - base);
                let is_due = waited >= rule.interval || is_falling && waited >= JOIN_AFTER * rule.interval;
                let is_seen = rule.is_unseen && now - seen < UNSEEN_ROUNDS * rtt;
                if !is_due || !facts.may_begin || is_seen {
                    return if is_falling { Action::Aside } else { Action::None };
                }
                *self = Self::Draining { until: now + ROUNDS * rtt, window, average };
                Action::Fall(rule.share * window)
            }
            Self::Draining { until, window, average } => {
                if now < until {
                    return Action::Hold;
                }
                *self = Self::Refilling;
                Action::Return { window, share: (base / average).min(1.0) }
            }
            Self::Refilling => {
                if facts.pending <= 0.0 {
                    *self = Self::Settling { until: now + rtt };
                }
                Action::Hold
            }
            Self::Settling { until } => {
                if now < until {
                    return Action::Hold;
                }
                *self = Self::Waiting { since: now, seen: now };
                Action::None
            }
        }
    }

    /// Handles a loss or a timeout, which ends a drain: the reduced window is halved, as every window is.
    pub fn on_loss(&mut self, now: f64) {
        if !matches!(self, Self::New | Self::Waiting { .. }) {
            *self = Self::Waiting { since: now, seen: now };
        }
    }

    /// Handles a restart after idle time: the next samples show whether there is a standing queue, before a drain begins.
    pub fn on_rest(&mut self, now: f64) {
        self.on_loss(now);
        if let Self::Waiting { seen, .. } = self {
            *seen = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { interval: 10.0, share: 0.5, join: 0.75, is_unseen: false, base_window: 0.0 };

    /// 100 ms of path and 20 ms of queue.
    const REST: Facts = Facts {
        now: 0.0,
        rtt: 0.12,
        base: 0.1,
        average: 0.12,
        window: 120.0,
        pending: 0.0,
        noise: 0.0,
        may_begin: true,
    };

    /// The first ACK at 0 s, and the drain.
    fn waiting() -> Drain {
        let mut drain = Drain::default();
        assert_eq!(drain.on_ack(&REST, &RULE), Action::None);
        drain
    }

    #[test]
    fn a_drain_falls_holds_returns_and_settles() {
        let mut drain = waiting();
        assert_eq!(drain.on_ack(&Facts { now: 9.99, ..REST }, &RULE), Action::None);
        assert_eq!(drain.on_ack(&Facts { now: 10.0, ..REST }, &RULE), Action::Fall(60.0));
        let low = Facts { now: 10.2, rtt: 0.09, base: 0.09, average: 0.1, window: 60.0, ..REST };
        assert_eq!(drain.on_ack(&low, &RULE), Action::Hold);
        // The path is 90 ms long: the window returns to less than it was.
        assert_eq!(
            drain.on_ack(&Facts { now: 10.25, ..low }, &RULE),
            Action::Return { window: 120.0, share: 0.09 / 0.12 }
        );
        assert_eq!(drain.on_ack(&Facts { now: 10.4, pending: 9.0, ..low }, &RULE), Action::Hold);
        assert_eq!(drain.on_ack(&Facts { now: 10.5, ..low }, &RULE), Action::Hold);
        assert_eq!(drain.on_ack(&Facts { now: 10.58, ..low }, &RULE), Action::Hold);
        assert_eq!(drain.on_ack(&Facts { now: 10.6, ..low }, &RULE), Action::None);
        assert_eq!(drain, Drain::Waiting { since: 10.6, seen: 10.6 });
    }

    /// A quarter of the queue is gone: not before 5 s, and not while something else moves the window.
    #[test]
    fn a_queue_that_falls_by_itself_is_joined() {
        let fallen = Facts { rtt: 0.1149, ..REST };
        let mut drain = waiting();
        assert_eq!(drain.on_ack(&Facts { now: 4.9, ..fallen }, &RULE), Action::Aside);
        assert_eq!(drain.on_ack(&Facts { now: 5.0, may_begin: false, ..fallen }, &RULE), Action::Aside);
        assert_eq!(drain.on_ack(&Facts { now: 5.0, rtt: 0.1151, ..fallen }, &RULE), Action::None);
        assert_eq!(drain.on_ack(&Facts { now: 5.0, ..fallen }, &Rule { join: 0.0, ..RULE }), Action::None);
        assert_eq!(drain.on_ack(&Facts { now: 5.0, ..fallen }, &RULE), Action::Fall(60.0));
    }

    /// A sample that is lower by no more than the noise of batches does not count as a drain.
    #[test]
    fn noise_is_not_the_drain_of_another() {
        let fallen = Facts { now: 5.0, rtt: 0.11, ..REST };
        assert_eq!(waiting().on_ack(&Facts { noise: 0.006, ..fallen }, &RULE), Action::None);
        assert_eq!(waiting().on_ack(&Facts { noise: 0.004, ..fallen }, &RULE), Action::Fall(60.0));
    }

    /// Neither the interval nor a falling queue causes a drain until eight round trips after the path was seen, here 0.96 s.
    #[test]
    fn a_path_that_shows_itself_needs_no_drain() {
        let rule = Rule { is_unseen: true, ..RULE };
        let mut drain = waiting();
        for tenth in 40..102 {
            let shown = Facts { now: f64::from(tenth) / 10.0, rtt: 0.1, ..REST };
            assert_eq!(drain.on_ack(&shown, &rule), Action::Aside);
        }
        assert_eq!(drain.on_ack(&Facts { now: 11.05, ..REST }, &rule), Action::None);
        assert_eq!(drain.on_ack(&Facts { now: 11.07, ..REST }, &rule), Action::Fall(60.0));
    }

    /// A loss outside a drain changes nothing here.
    #[test]
    fn a_loss_ends_a_drain() {
        let mut drain = waiting();
        drain.on_loss(3.0);
        assert_eq!(drain, Drain::Waiting { since: 0.0, seen: 0.0 });
        drain.on_ack(&Facts { now: 10.0, ..REST }, &RULE);
        drain.on_loss(10.1);
        assert_eq!(drain, Drain::Waiting { since: 10.1, seen: 10.1 });
    }
}
