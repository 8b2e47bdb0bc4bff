//! Random loss or congestion, by trial: send less for a while, and see whether less is lost.
//!
//! ```text
//! watching:    losses leave the window alone; excess ← max(excess + lost − bearable · acked, 0)
//! excess > 8:  more is lost than is bearable: a share p.     p > 4 `most` of a window: congestion
//!              (12 where some is known to be lost at random; and what is bearable of a window besides)
//! trying:      w ← 3/4 · (1 − p) · w, held; what left before is waited for, then losses are counted
//!              four are lost:                                random; the window returns, and 2 p are bearable from now on, where p
//!                                                            is the share of all that is seen since, up to half as much again
//!              24 should be lost by p, and four are not:     congestion, if a window has arrived; and no more than four of so many is known
//! congestion:  what left before is waited for; then for a `span` each loss halves the window, and is kept in mind ([`super::memory`]);
//!              but if the window is less than 3/4 of the one that lost, or the delay less than half of what it was then, only
//!              b + 2√b losses in a round trip do, where b is what is bearable of a window
//! ```
//!
//! Why: a random link damages the same share of segments however fast they come. A policer, a buffer that is shorter than alpha and
//! a router that drops early take what exceeds their rate, and nothing below it. No RTT tells the two apart, and neither does the
//! number of holes: with 10,000 segments in flight there are several whenever 0.1 % is lost. And as long as alpha segments can
//! be queued, delay alone holds FAST back: a loss then says nothing that its window needs.
//!
//! Losses are found late, and many at once: RACK waits for a quarter of a round trip, and what a host or a router holds back while it stalls comes in one
//! batch. A batch is a part of a window: so large shares are of a window at least, and a window's bearable losses are no excess.
//!
//! Citation: page-1954 for the cumulative sum. ctcp-2019 sec. 3 asks the same question of a single loss.
//!
//! Differs from it in: everything but the question.
//!
//! Limits. What many flows lose together does not fall when one of them sends less, so they take it for random, up to `most`.
//! Nothing is tried before eight or twelve losses more than bearable, so as much is lost each time before a policer is seen. Beside rivals
//! that halve for each loss, in a buffer that is shorter than alpha, it takes more than its share.

use crate::number::{greater, lesser};

/// How to try.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The largest share that is believed to be lost at random.
    pub most: f64,
    /// How long congestion is believed in, in seconds.
    pub span: f64,
    /// Whether losses at once without a queue are a fade, and a trial that shows nothing has an end.
    pub fades: bool,
}

/// The share of segments that may be lost without a trial: what Reno loses that fills 25 segments or more ([mathis-1997]: 1.5/w²). A rival at such
/// a share is no worse off.
const ABOVE: f64 = 0.0025;

/// What a trial leaves of the window. Of ten flows that are tried in turn each takes a fortieth from the whole: more than what is lost when a
/// trial begins.
const LEFT: f64 = 0.75;

/// Losses above what is bearable before a trial. Where twice as much is bearable as is lost, a sum of so many comes about by chance
/// once in 24,000 losses: e^(−8 · 1.26), where 1.26 solves (e^x − 1)/x = 2.
const EXCESS_MOST: f64 = 8.0;

/// The same where a share is known to be lost at random, and a mistake costs more than four segments: as what is known comes from a
/// few losses, it may be that only 1.5 times as much is bearable as is lost. 0.76 solves (e^x − 1)/x = 1.5: once in 9000 losses.
const EXCESS_MOST_KNOWN: f64 = 12.0;

/// What was found from some twenty losses may be so many times as much in truth: two standard deviations.
const KNOWN_RISE_MOST: f64 = 1.5;

/// Losses that end a trial: random. Where 24 are expected, fewer come by chance once in ten million times; once in 440 if the share had been taken
/// for twice of what it is, which it often is: it is that of the losses that led to the trial.
const LOST_STILL: f64 = 4.0;

/// Losses that are expected where fewer than [`LOST_STILL`] mean congestion.
const EXPECTED: f64 = 24.0;

/// So many times a share that was found random is bearable afterwards: what is found from a few losses may be half of it.
const BEARABLE: f64 = 2.0;

/// A share of so many times the largest random one needs no trial: where 5 % is lost, eight of forty are one chance in 1000.
const SURELY: f64 = 4.0;

/// A share of so many times the largest random one in a trial is congestion, too: the window is still too large.
const BEYOND: f64 = 2.0;

/// Losses that show it: where 5 % is lost, twelve of 120 are one chance in 50.
const LOST_BEYOND: f64 = 12.0;

/// A queue that overflows delays as long each time, and what is in flight is an RTT old: half of the delay is less than that.
const AS_LONG: f64 = 0.5;

/// Round trips that what left before a trial is waited for: one to be acknowledged, one to be sent again.
const ROUNDS: f64 = 2.0;

/// Round trips after which a trial is over that has shown nothing: a small window carries too little for that.
const LONGEST: f64 = 32.0;

/// Losses that make a fade, at the least: where a radio fades for 5 ms at 10 Mbit/s, there are four.
const FADE_LEAST: f64 = 4.0;

/// They are found within so many round trips; what is lost by sending too much goes on for longer, as nothing was done about it.
const FADE_LONGEST: f64 = 0.75;

/// And none within so many round trips afterwards.
const FADE_APART: f64 = 2.0;

/// With a queueing delay of so many times what it is at rest at the most.
const FADE_QUEUE: f64 = 1.5;

/// Segments by which the window returns for each that is acknowledged, as after a drain.
pub const RETURN: f64 = super::drain::RETURN;

/// What is known of a path's losses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trial {
    /// The share that a trial found to be lost at random; zero if none did.
    tried: f64,
    /// All of that trial, and what was seen while watching since.
    seen: Count,
    /// Losses above what is bearable.
    excess: f64,
    /// Since there was no excess.
    since: Count,
    /// The longest queueing delay of a loss among these, in seconds.
    queueing: f64,
    burst: Burst,
    state: State,
}

/// Losses that came together, while watching.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Burst {
    /// When the first and the last of them were found, in seconds.
    from: f64,
    last: f64,
    lost: f64,
    /// What was seen before it: the excess, and what was since there was none.
    excess: f64,
    since: Count,
}

/// Segments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Count {
    acked: f64,
    lost: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    /// Losses leave the window alone.
    #[default]
    Watching,
    /// The window is low.
    Trying {
        /// When what left before is settled, in seconds.
        from: f64,
        suspected: Count,
        counted: Count,
        /// The window before over that of the trial.
        ratio: f64,
        /// The longest queueing delay of a loss before it, in seconds.
        queueing: f64,
    },
    /// The window returns.
    Returning {
        /// Segments.
        target: f64,
    },
    /// It is back, and the law waits until what was in flight a round trip ago is what it allows.
    Settling {
        /// In seconds.
        until: f64,
    },
    /// Losses are congestion.
    Congestion {
        /// In seconds.
        until: f64,
        /// Until then what is lost left before the window fell, in seconds.
        from: f64,
        /// When losses are next counted from nothing, in seconds.
        round: f64,
        /// Segments lost in this round trip.
        lost: f64,
        /// The window that lost last, and the queueing delay in seconds of what was lost first.
        window: f64,
        queueing: f64,
    },
}

/// What to do with the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// The law's own business.
    None,
    /// To this many segments.
    Fall(f64),
    /// Not above what it is.
    Hold,
    /// To this many segments, by the ACK.
    Return(f64),
    /// Losses are congestion; so many segments was the window before a trial showed it.
    GiveWay(f64),
}

/// What is known at an ACK.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// The ACK's arrival, in seconds.
    pub now: f64,
    /// Segments that it acknowledges.
    pub acked: f64,
    /// Segments that were found to be lost.
    pub lost: f64,
    /// Its RTT in seconds.
    pub rtt: f64,
    /// What of it is thought to be queueing delay, in seconds.
    pub queueing: f64,
    /// The window in segments.
    pub window: f64,
    /// What of queueing delay is the flow's own at rest, in seconds.
    pub rest: f64,
}

impl Trial {
    /// A trial without losses.
    pub fn new() -> Self {
        Self::default()
    }

    /// An ACK while nothing is being repaired that the law has answered.
    #[inline]
    pub fn on_ack(&mut self, facts: &Facts, rule: &Rule) -> Action {
        let &Facts { now, acked, lost, rtt, window, .. } = facts;
        match &mut self.state {
            State::Watching => self.watch(facts, rule),
            State::Trying { from, counted, .. } if now < *from => {
                *counted = Count::default();
                Action::Hold
            }
            State::Trying { from, suspected, counted, ratio, queueing } => {
                counted.add(acked, lost);
                let is_long = rule.fades && now - *from > LONGEST * rtt;
                let queueing = *queueing;
                let (before, expected) = (window * *ratio, suspected.share() * counted.sum());
                let is_beyond = counted.share() > BEYOND * rule.most;
                let known = LOST_STILL / greater(counted.sum(), 1.0);
                if is_beyond && counted.lost >= LOST_BEYOND && counted.sum() >= window {
                    return self.give_way((now, rtt), (before, queueing), f64::INFINITY, rule);
                }
                if !is_beyond && counted.lost >= LOST_STILL {
                    self.seen = suspected.and(counted);
                    self.tried = self.seen.share().min(rule.most);
                    self.state = State::Returning { target: before };
                    self.begin();
                    return Action::Return(before);
                }
                // What is lost of a window is found when all of it has arrived.
                if expected >= EXPECTED && counted.sum() >= window && counted.lost < LOST_STILL {
                    self.give_way((now, rtt), (before, queueing), known, rule)
                } else if is_long {
                    self.state = State::Returning { target: before };
                    self.begin();
                    Action::Return(before)
                } else {
                    Action::Hold
                }
            }
            State::Returning { target } => {
                let target = *target;
                if window >= target {
                    self.state = State::Settling { until: now + rtt };
                }
                Action::Return(target)
            }
            State::Settling { until } if now < *until => Action::Hold,
            State::Congestion { until, .. } if now < *until => self.give_way_again(facts, rule),
            State::Settling { .. } | State::Congestion { .. } => {
                self.begin();
                self.state = State::Watching;
                Action::None
            }
        }
    }

    /// Takes an ACK that tells of no loss while there is no excess: it adds to what was seen, and there is nothing to do. Whether it was such a one;
    /// any other is for [`Self::on_ack`].
    #[inline]
    pub fn passes(&mut self, acked: f64, lost: f64) -> bool {
        let is_clean = lost <= 0.0 && self.excess <= 0.0 && matches!(self.state, State::Watching);
        if is_clean {
            self.seen.acked += acked;
        }
        is_clean
    }

    fn watch(&mut self, facts: &Facts, rule: &Rule) -> Action {
        let &Facts { now, acked, lost, rtt, queueing, window, .. } = facts;
        let bearable = self.bearable(rule);
        self.excess += lost - bearable * acked;
        self.since.add(acked, lost);
        self.seen.add(acked, lost);
        if self.excess <= 0.0 {
            self.begin();
        }
        if rule.fades && self.is_fading(facts) {
            return Action::None;
        }
        if lost > 0.0 {
            self.queueing = greater(self.queueing, queueing);
        }
        // Losses are found late, and many at once where ACKs come so: they may be those of a window, whatever was acknowledged meanwhile.
        let most = if self.tried > 0.0 { EXCESS_MOST_KNOWN } else { EXCESS_MOST } + bearable * window;
        if self.excess <= most {
            return Action::None;
        }
        if self.since.share() > SURELY * rule.most {
            return match self.since.sum() >= window {
                true => self.give_way((now, rtt), (window, self.queueing), f64::INFINITY, rule),
                false => Action::None,
            };
        }
        let suspected = self.since.of(window);
        let (ratio, queueing) = (1.0 / (LEFT * (1.0 - suspected.share())), self.queueing);
        self.state = State::Trying { from: now + ROUNDS * rtt, suspected, counted: Count::default(), ratio, queueing };
        Action::Fall(window / ratio)
    }

    /// Whether what is lost may yet be a fade: many at once, with no queue before, and none before or after. When it has been one, it is forgotten.
    fn is_fading(&mut self, facts: &Facts) -> bool {
        let &Facts { now, lost, rtt, queueing, rest, .. } = facts;
        let Burst { from, last, .. } = self.burst;
        let is_open = self.burst.lost > 0.0;
        if is_open && now - last > FADE_APART * rtt {
            if self.burst.lost >= FADE_LEAST && last - from <= FADE_LONGEST * rtt {
                (self.excess, self.since) = (self.burst.excess, self.burst.since);
                self.seen.lost = greater(self.seen.lost - self.burst.lost, 0.0);
            }
            self.burst = Burst::default();
        }
        if lost > 0.0 {
            if self.burst.lost <= 0.0 {
                // What led to the excess has been added to it.
                let excess = greater(self.excess - lost, 0.0);
                let since = Count { lost: greater(self.since.lost - lost, 0.0), ..self.since };
                self.burst = Burst { from: now, last: now, lost: 0.0, excess, since };
            }
            // A queue that overflows is longer than it is at rest.
            if queueing > FADE_QUEUE * rest {
                self.burst.from = f64::NEG_INFINITY;
            }
            (self.burst.last, self.burst.lost) = (now, self.burst.lost + lost);
        }
        let Burst { from, last, lost, .. } = self.burst;
        lost >= FADE_LEAST && last - from <= FADE_LONGEST * rtt
    }

    /// The share of segments that may be lost.
    fn bearable(&self, rule: &Rule) -> f64 {
        greater(lesser(BEARABLE * self.known(), rule.most), ABOVE)
    }

    /// Of what was known to be lost at random so much remains known as may have been lost while less was sent.
    fn give_way(
        &mut self,
        (now, rtt): (f64, f64),
        (window, queueing): (f64, f64),
        lost_still: f64,
        rule: &Rule,
    ) -> Action {
        self.tried = lesser(self.known(), lost_still);
        self.seen = Count::default();
        self.begin();
        let from = now + ROUNDS * rtt;
        self.state = State::Congestion { until: now + rule.span, from, round: from, lost: 0.0, window, queueing };
        Action::GiveWay(window)
    }

    fn give_way_again(&mut self, facts: &Facts, rule: &Rule) -> Action {
        let &Facts { now, lost: newly_lost, rtt, queueing, window, .. } = facts;
        let most = self.lost_most(window, queueing, rule);
        let State::Congestion { from, round, lost, .. } = &mut self.state else { return Action::None };
        if now < *from {
            return Action::None;
        }
        if now >= *round {
            (*round, *lost) = (now + rtt, 0.0);
        }
        *lost += newly_lost;
        if newly_lost <= 0.0 || *lost <= most {
            return Action::None;
        }
        self.lose_again((now, rtt), window);
        Action::GiveWay(window)
    }

    /// The window falls again, in congestion.
    fn lose_again(&mut self, (now, rtt): (f64, f64), window: f64) {
        let State::Congestion { from, round, lost, window: lost_at, .. } = &mut self.state else { return };
        // What left before is lost yet.
        (*from, *round, *lost, *lost_at) = (now + ROUNDS * rtt, now + ROUNDS * rtt, 0.0, window);
    }

    /// So many of a window may be lost where there is congestion: none if it is about the window that lost before, with about that delay. Else it
    /// may be chance, up to what is bearable and two standard deviations.
    fn lost_most(&self, window: f64, queueing: f64, rule: &Rule) -> f64 {
        let bearable = self.bearable(rule) * window;
        let chance = bearable + 2.0 * bearable.sqrt();
        let State::Congestion { window: lost_at, queueing: delay, .. } = self.state else { return chance };
        if window > LEFT * lost_at && queueing >= AS_LONG * delay { 0.0 } else { chance }
    }

    /// A loss of `lost` segments of a window at `now` seconds, after a queueing delay in seconds. Whether it is congestion: then the law halves the
    /// window, and it is the window that lost last.
    pub fn on_loss(&mut self, (now, rtt): (f64, f64), lost: f64, (window, queueing): (f64, f64), rule: &Rule) -> bool {
        let most = self.lost_most(window, queueing, rule);
        match &mut self.state {
            State::Congestion { until, from, .. } if (*from..*until).contains(&now) && lost > most => {
                self.lose_again((now, rtt), window);
                true
            }
            _ => false,
        }
    }

    /// Whether congestion is believed in at `now` seconds.
    pub fn is_congestion(&self, now: f64) -> bool {
        matches!(self.state, State::Congestion { until, .. } if now < until)
    }

    /// Whether the window is the law's.
    pub fn is_at_rest(&self) -> bool {
        matches!(self.state, State::Watching | State::Congestion { .. })
    }

    /// A timeout, or a loss that the law answered for other reasons: it ends a trial.
    pub fn on_answered(&mut self) {
        self.begin();
        if !matches!(self.state, State::Congestion { .. }) {
            self.state = State::Watching;
        }
    }

    /// What seemed lost was not.
    pub fn forgive(&mut self) {
        self.seen.lost = (self.seen.lost - self.since.lost).max(0.0);
        self.begin();
    }

    /// There is no excess.
    fn begin(&mut self) {
        (self.excess, self.since, self.queueing) = (0.0, Count::default(), 0.0);
        if self.burst.lost > 0.0 {
            (self.burst.excess, self.burst.since) = (0.0, Count::default());
        }
    }

    /// The share that is known to be lost at random; zero if none is.
    pub fn known(&self) -> f64 {
        if self.tried > 0.0 { self.seen.share().clamp(self.tried, KNOWN_RISE_MOST * self.tried) } else { 0.0 }
    }
}

impl Count {
    fn add(&mut self, acked: f64, lost: f64) {
        self.acked += acked;
        self.lost += lost;
    }

    fn sum(&self) -> f64 {
        self.acked + self.lost
    }

    fn share(&self) -> f64 {
        self.lost / greater(self.sum(), 1.0)
    }

    /// The same losses, of so many segments at least.
    fn of(&self, least: f64) -> Self {
        Self { acked: greater(self.acked, least - self.lost), ..*self }
    }

    fn and(&self, other: &Self) -> Self {
        Self { acked: self.acked + other.acked, lost: self.lost + other.lost }
    }
}

#[cfg(test)]
mod tests;
