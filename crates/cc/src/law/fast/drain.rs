//! Drains: from time to time the window falls, so that the path shows its RTT without the queue.
//!
//! ```text
//! waiting:    the law, for an interval
//! draining:   w ← share · w, for two round trips
//! refilling:  half a segment an ACK to baseRTT/avgRTT · w + alpha, with the baseRTT found and what w and avgRTT were before
//! settling:   one more round trip, until what was in flight an RTT ago is what w allows
//! ```
//!
//! Why: a late comer takes the standing queue for propagation ([`super`]). While it drains, the others hold their windows for
//! a round trip; if what it gives up is more than what is queued, the queue is empty then and the late comer sees the path.
//!
//! Citation: ledbat-plus-plus sec. 4.4, periodic slowdown.
//!
//! Differs from it in:
//! * LEDBAT++ falls to two segments and returns by slow start, so its next slowdown is nine times as long away as the last one
//!   took. A half is found to do, and costs less.
//! * **Joining.** Of several flows one alone gives up less than what all the others have queued. So a flow that sees the queue
//!   fall by itself, to a share of what it was, takes it for the drain of another and drains as well. What it was is the most that avgRTT was
//!   of late: it falls with the queue, within a round trip.
//! * **Need.** Under `is_unseen` a path that has shown itself without a queue is not drained: while a window still grows each of
//!   its bursts begins on an empty queue, and where RTTs spread the least come all the time. It shows by a sample that
//!   leaves less than a segment of the flow's own in the queue.

use anabranch_units::Span;

use crate::number::{greater, is_known, lesser};
use crate::settings::{Choice, Fields};

/// How to drain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Seconds from one drain to the next; more than zero.
    pub interval: f64,
    /// What is left of the window; more than zero, at most one.
    pub share: f64,
    /// Drains also when the queue falls below this share of what it was on average; zero: never.
    pub join: f64,
    /// Drains only a path that has not shown itself without a queue for some round trips.
    pub is_unseen: bool,
    /// How long a least RTT is kept in mind at the least, in seconds, twice as long at the most; zero: for ever. Without drains a queue that
    /// never empties would become a part of the path.
    pub base_window: f64,
}

impl Rule {
    /// As long as BBR waits, and half of the window, which is found to do.
    pub const DEFAULT: Self = Self {
        interval: 10.0,
        share: 0.5,
        join: 0.75,
        is_unseen: true,
        // Six drains: of several flows one may see the path at one of them and not at the next.
        base_window: 60.0,
    };
}

impl Choice for Option<Rule> {
    const KINDS: &'static [(&'static str, Self)] = &[("off", None), ("on", Some(Rule::DEFAULT))];

    fn visit(&mut self, fields: &mut Fields<'_>) {
        let Some(rule) = self else { return };
        let hour = Span::from_secs(3600);
        let help = "from one drain, which shows the path without its queue, to the next";
        fields.seconds("interval", &mut rule.interval, Span::from_millis(1)..=hour, help);
        fields.number("share", &mut rule.share, 0.001..=1.0, "", "what is left of the window");
        let help = "a queue below this share of its average is the drain of another";
        fields.number("join", &mut rule.join, 0.0..=1.0, "", help);
        let help = "only a path that has not shown itself without a queue for eight round trips";
        fields.switch("unseen", &mut rule.is_unseen, help);
        let help = "how long a least RTT is kept in mind at the least, twice as long at the most; 0s is for ever";
        fields.seconds("base_window", &mut rule.base_window, Span::ZERO..=hour, help);
    }
}

/// Round trips that a drain lasts: after one the queue is drained, in the second the samples show it.
const ROUNDS: f64 = 2.0;

/// Segments by which the window returns for each that is acknowledged. The ACKs of half a window come in half of a round trip:
/// with one each, a quarter of the window would queue.
pub const RETURN: f64 = 0.5;

/// A flow does not join before this share of the interval is over: what it joins may be no drain.
const JOIN_AFTER: f64 = 0.5;

/// The same in seconds, where a queue stands that is not the flow's own: each look of another is to be joined. Without such a queue, dips of jitter and pauses of
/// the flow itself look like drains.
const JOIN_LOOKS_AFTER: f64 = 2.0;

/// Seconds between a look that left doubts and the next one: so long that all join.
const LOOKS_APART: f64 = 2.5;

/// A path that showed itself within so many round trips needs no drain: while a window doubles, each of its bursts begins on an
/// empty queue, and it doubles within a few.
const UNSEEN_ROUNDS: f64 = 8.0;

/// Round trips between two drains at the least: each costs one and a half, and so no more than a fiftieth of the rate.
pub const APART_ROUNDS: f64 = 80.0;

/// A least RTT is kept in mind for so many drains.
pub const KEPT: f64 = 6.0;

/// Round trips between a drain and the next one, where a queue stands that is not the flow's own.
const FOREIGN_ROUNDS: f64 = 4.0;

/// Round trips after a drain in which a decrease of the window says nothing of the route: those whose share is too large give way to those
/// whose share is too small, so the RTT stays. Where half of it is queue an update leaves three quarters of what a share is off, and eight leave
/// a tenth.
pub const SHARES_MOVE: f64 = 16.0;

/// Where a flow stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Drain {
    /// No ACK yet.
    #[default]
    New,
    /// The law is at work.
    Waiting {
        /// Since when, in seconds.
        since: f64,
        /// When a sample showed the path without a queue, in seconds, or since when.
        seen: f64,
    },
    /// The window is low.
    Draining {
        /// Until when, in seconds.
        until: f64,
        /// The window before, in segments.
        window: f64,
        /// avgRTT before, in seconds.
        average: f64,
        /// From when on samples show it, in seconds.
        from: f64,
        /// The least of them, in seconds.
        least: f64,
        /// At this RTT it is over, in seconds.
        enough: f64,
    },
    /// The window returns.
    Refilling,
    /// The window is back.
    Settling {
        /// Until when, in seconds.
        until: f64,
    },
}

/// What is known at an ACK; times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// The ACK's arrival.
    pub now: f64,
    /// The RTT sample.
    pub rtt: f64,
    /// baseRTT, this sample included.
    pub base: f64,
    /// avgRTT before the queue fell, if it does: the most that it was in the last round trip or two, this sample included.
    pub average: f64,
    /// The window in segments.
    pub window: f64,
    /// Segments of an increase that are still to be handed out.
    pub pending: f64,
    /// How much of that may be no queue.
    pub noise: f64,
    /// Whether a drain may begin: the window is full and nothing else is about to move it.
    pub may_begin: bool,
    /// Whose the queue seems to be; `None` where drains do not tell.
    pub looks: Option<Looks>,
    /// The least time between two drains, in seconds.
    pub apart: f64,
}

/// Whose the queue seems to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looks {
    /// The queue is ours.
    Clear,
    /// The queue is not ours.
    Foreign,
    /// Not ours, and the last drain did not tell whose.
    Doubtful,
}

/// What to do with the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// The law's own business.
    None,
    /// The same, and another flow drains.
    Aside,
    /// To this many segments, at once.
    Fall(f64),
    /// Hold it, or hand out what is pending.
    Hold,
    /// To `window · share + alpha` segments, by the ACK.
    Return {
        /// The window before the drain.
        window: f64,
        /// baseRTT over what avgRTT was before the drain.
        share: f64,
        /// avgRTT before the drain, in seconds.
        before: f64,
        /// The least sample at its bottom, in seconds.
        least: f64,
    },
}

impl Drain {
    /// An ACK outside fast recovery.
    #[inline(always)]
    pub fn on_ack(&mut self, facts: &Facts, rule: &Rule) -> Action {
        let &Facts { now, rtt, base, average, window, .. } = facts;
        match *self {
            Self::New => {
                *self = Self::Waiting { since: now, seen: now };
                Action::None
            }
            Self::Waiting { since, seen } => {
                let waited = now - since;
                // Less than a segment of the flow's own is queued.
                if (rtt - base) * window < rtt {
                    *self = Self::Waiting { since, seen: now };
                }
                let is_falling = (rtt + facts.noise) - base < rule.join * (average - base);
                let (join_after, look_after) = match facts.looks {
                    None | Some(Looks::Clear) => (JOIN_AFTER * rule.interval, f64::INFINITY),
                    Some(Looks::Foreign) => (JOIN_LOOKS_AFTER, FOREIGN_ROUNDS * rtt),
                    Some(Looks::Doubtful) => (JOIN_LOOKS_AFTER, greater(FOREIGN_ROUNDS * rtt, LOOKS_APART)),
                };
                let is_due = waited >= greater(rule.interval, facts.apart)
                    || is_falling && waited >= join_after
                    || waited >= look_after;
                let is_seen = rule.is_unseen && !is_known(look_after) && now - seen < UNSEEN_ROUNDS * rtt;
                if !is_due || !facts.may_begin || is_seen {
                    return if is_falling { Action::Aside } else { Action::None };
                }
                *self = Self::draining(now, rtt, (window, average), 0.0);
                Action::Fall(rule.share * window)
            }
            Self::Draining { until, window, average, from, mut least, enough } => {
                if now >= from || rtt <= enough {
                    least = lesser(least, rtt);
                }
                if now < until && rtt > enough {
                    *self = Self::Draining { until, window, average, from, least, enough };
                    return Action::Hold;
                }
                *self = Self::Refilling;
                Action::Return { window, share: (base / average).min(1.0), before: average, least }
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

    /// The window has fallen, at an RTT of `rtt` seconds, from so many segments at so much avgRTT; it is to return at an RTT of `enough` at the latest.
    pub fn draining(now: f64, rtt: f64, (window, average): (f64, f64), enough: f64) -> Self {
        let (from, until) = (now + rtt, now + ROUNDS * rtt);
        Self::Draining { until, window, average, from, least: f64::INFINITY, enough }
    }

    /// A loss or a timeout ends a drain: what is low already is halved, as everybody halves what he has.
    pub fn on_loss(&mut self, now: f64) {
        if !matches!(self, Self::New | Self::Waiting { .. }) {
            *self = Self::Waiting { since: now, seen: now };
        }
    }

    /// Nothing was under way for a while: what comes now shows whether a queue stands, before anything is drained.
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
        looks: None,
        apart: 0.0,
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
            Action::Return { window: 120.0, share: 0.09 / 0.12, before: 0.12, least: 0.09 }
        );
        assert_eq!(drain.on_ack(&Facts { now: 10.4, pending: 9.0, ..low }, &RULE), Action::Hold);
        assert_eq!(drain.on_ack(&Facts { now: 10.5, ..low }, &RULE), Action::Hold);
        assert_eq!(drain.on_ack(&Facts { now: 10.58, ..low }, &RULE), Action::Hold);
        assert_eq!(drain.on_ack(&Facts { now: 10.6, ..low }, &RULE), Action::None);
        assert_eq!(drain, Drain::Waiting { since: 10.6, seen: 10.6 });
    }

    /// A queue that is not the flow's own is looked at as soon as four round trips have passed, here 0.48 s; again after 2.5 s.
    #[test]
    fn a_foreign_queue_is_looked_at() {
        let rule = Rule { is_unseen: true, ..RULE };
        let foreign = Facts { looks: Some(Looks::Foreign), ..REST };
        let mut drain = waiting();
        assert_eq!(drain.on_ack(&Facts { now: 0.47, ..foreign }, &rule), Action::None);
        assert_eq!(drain.on_ack(&Facts { now: 0.49, ..foreign }, &rule), Action::Fall(60.0));
        let doubtful = Facts { looks: Some(Looks::Doubtful), ..REST };
        let mut drain = waiting();
        assert_eq!(drain.on_ack(&Facts { now: 2.4, ..doubtful }, &rule), Action::None);
        assert_eq!(drain.on_ack(&Facts { now: 2.6, ..doubtful }, &rule), Action::Fall(60.0));
    }

    /// A drain that may end when the queue is short ends then.
    #[test]
    fn enough_is_enough() {
        let mut drain = Drain::draining(1.0, 0.4, (100.0, 0.1), 0.11);
        assert_eq!(drain.on_ack(&Facts { now: 1.2, rtt: 0.2, ..REST }, &RULE), Action::Hold);
        let shown = Facts { now: 1.3, rtt: 0.105, ..REST };
        assert_eq!(
            drain.on_ack(&shown, &RULE),
            Action::Return { window: 100.0, share: 1.0, before: 0.1, least: 0.105 }
        );
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

    /// A sample that is less by no more than what batches make of it says nothing.
    #[test]
    fn noise_is_not_the_drain_of_another() {
        let fallen = Facts { now: 5.0, rtt: 0.11, ..REST };
        assert_eq!(waiting().on_ack(&Facts { noise: 0.006, ..fallen }, &RULE), Action::None);
        assert_eq!(waiting().on_ack(&Facts { noise: 0.004, ..fallen }, &RULE), Action::Fall(60.0));
    }

    /// Neither when it is due nor when the queue falls; eight round trips after it showed itself, here 0.96 s, it is.
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

    /// A loss at rest changes nothing here.
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
