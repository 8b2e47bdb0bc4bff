//! A trial finds out whether losses are random or congestion: it sends less for a while, and looks whether less is lost.
//!
//! ```text
//! watching:    losses do not change the window; excess ← max(excess + lost − bearable · acked, 0)
//! excess > 8:  more than the bearable share is lost: a share p.     p > 4 `most` of a window: congestion
//!              (> 12 if a random share is known already; in both cases plus the bearable losses of a window)
//! trying:      w ← 3/4 · (1 − p) · w, kept; after the segments that left before are settled, losses are counted
//!              four losses:                                  random; the window returns, and a share of 2 p is bearable from now on; p
//!                                                            follows later losses, up to half as much again
//!              24 losses expected by p, fewer than four:     congestion, if a window has arrived; the known random share falls to four of these
//! congestion:  after the segments that left before are settled, each loss halves the window for a `span`, and is remembered ([`super::memory`]);
//!              but if the window is less than 3/4 of the one at the last congestion, or the delay less than half of that then, only
//!              b + 2√b losses in a round trip halve it, where b is the number of bearable losses of a window
//! ```
//!
//! Why: a link with random losses damages the same share of segments at any rate. A policer, a buffer that is shorter than alpha and
//! a router that drops early drop what exceeds their rate, and nothing below it. The RTT does not tell the two apart, and neither does the
//! number of holes: with 10,000 segments in flight and a loss of 0.1 % there are always several. And as long as alpha segments can
//! be queued, delay alone limits FAST: then its window needs no information from a loss.
//!
//! Losses are detected late, and many at once: RACK waits for a quarter of a round trip, and the packets held by a stalled host or router come in one
//! batch. A batch is a part of a window. So a large share is computed over at least a window, and the bearable losses of a window are no excess.
//!
//! Citation: page-1954 for the cumulative sum. ctcp-2019 sec. 3 asks the same question of a single loss.
//!
//! Differs from it in: everything but the question.
//!
//! Limits. The losses of many flows together do not fall when one of them sends less, so each takes them for random, up to `most`.
//! A trial begins only after eight or twelve losses above the bearable share, so this many are lost before a policer is detected. Beside rivals
//! that halve for each loss, in a buffer that is shorter than alpha, this part takes more than its share.

use crate::number::{greater, lesser};

/// The settings of trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The largest share of lost segments that counts as random.
    pub most: f64,
    /// The time for which losses count as congestion after a trial, in seconds.
    pub span: f64,
}

/// The share of segments that may be lost without a trial: the loss rate of Reno at a window of 25 segments ([mathis-1997]: 1.5/w²). A rival is no
/// worse off at this share.
const ABOVE: f64 = 0.0025;

/// The share of the window that a trial leaves. If ten flows share a link and one is in a trial, the load falls by a fortieth: more than the
/// share that is lost when a trial begins.
const LEFT: f64 = 0.75;

/// The excess of losses that begins a trial. If twice the present loss rate is bearable, chance exceeds this sum once in
/// 24,000 losses: e^(−8 · 1.26), where 1.26 solves (e^x − 1)/x = 2.
const EXCESS_MOST: f64 = 8.0;

/// The same if a random share is known, where a mistake costs more than four segments. The known share comes from few losses, so perhaps
/// only 1.5 times the present loss rate is bearable. 0.76 solves (e^x − 1)/x = 1.5: once in 9000 losses.
const EXCESS_MOST_KNOWN: f64 = 12.0;

/// The true share may be this many times a share that was measured from about twenty losses: two standard deviations.
const KNOWN_RISE_MOST: f64 = 1.5;

/// The losses that end a trial as random. If 24 are expected, chance gives fewer once in ten million times; once in 440 if the expected share is
/// twice the true one, which is frequent because it is computed from the losses that led to the trial.
const LOST_STILL: f64 = 4.0;

/// Losses that are expected where fewer than [`LOST_STILL`] mean congestion.
const EXPECTED: f64 = 24.0;

/// The bearable share in multiples of a share that was found to be random: the measurement from few losses may be half of the true share.
const BEARABLE: f64 = 2.0;

/// A share above this many times the largest random one is congestion without a trial: at a loss of 5 %, eight of forty have a chance of 1 in 1000.
const SURELY: f64 = 4.0;

/// A share above this many times the largest random one within a trial is congestion, too: the window is still too large.
const BEYOND: f64 = 2.0;

/// The losses needed for that conclusion: at a loss of 5 %, twelve of 120 have a chance of 1 in 50.
const LOST_BEYOND: f64 = 12.0;

/// The share of the delay at the last congestion below which a loss may be random. A queue has about the same delay each time it overflows. The RTT
/// sample is a round trip older than the loss, so it may be lower, but not by half.
const AS_LONG: f64 = 0.5;

/// The round trips until the segments that left before a trial are settled: one for the ACK, one for a retransmission.
const ROUNDS: f64 = 2.0;

/// The growth of the returning window for each acknowledged segment, as after a drain.
pub const RETURN: f64 = super::drain::RETURN;

/// The knowledge about a path's losses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trial {
    /// The share that a trial found to be lost at random; zero if none did.
    tried: f64,
    /// The segments of that trial, and those watched since.
    seen: Count,
    /// The excess of losses above the bearable share.
    excess: f64,
    /// The segments since there was no excess.
    since: Count,
    /// The longest queueing delay of a loss among these, in seconds.
    queueing: f64,
    state: State,
}

/// Segments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Count {
    acked: f64,
    lost: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    /// Losses do not change the window.
    #[default]
    Watching,
    /// The window is reduced for a trial.
    Trying {
        /// When the segments that left before are settled, in seconds.
        from: f64,
        suspected: Count,
        counted: Count,
        /// The window before the trial, divided by the one in it.
        ratio: f64,
        /// The longest queueing delay of a loss before the trial, in seconds.
        queueing: f64,
    },
    /// The window returns.
    Returning {
        /// Segments.
        target: f64,
    },
    /// The window is back, and the law waits until the flight of a round trip ago is the one that it allows.
    Settling {
        /// In seconds.
        until: f64,
    },
    /// Losses are congestion.
    Congestion {
        /// In seconds.
        until: f64,
        /// Until then lost segments left before the window fell, in seconds.
        from: f64,
        /// When the count of losses is next reset, in seconds.
        round: f64,
        /// Segments lost in this round trip.
        lost: f64,
        /// The window at the last congestion.
        window: f64,
        /// The queueing delay of the first loss, in seconds.
        queueing: f64,
    },
}

/// The action on the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// The window law decides.
    None,
    /// Reduce it to this many segments.
    Fall(f64),
    /// Do not let it grow.
    Hold,
    /// Let it return to this many segments, by the ACK.
    Return(f64),
    /// Losses are congestion. The number is the window in segments before the trial that showed it.
    GiveWay(f64),
}

/// The state of the flow at an ACK.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// The ACK's arrival, in seconds.
    pub now: f64,
    /// Segments that the ACK acknowledges.
    pub acked: f64,
    /// Segments that were detected as lost.
    pub lost: f64,
    /// Its RTT in seconds.
    pub rtt: f64,
    /// The estimated queueing delay in it, in seconds.
    pub queueing: f64,
    /// The window in segments.
    pub window: f64,
}

impl Trial {
    /// A trial without losses.
    pub fn new() -> Self {
        Self::default()
    }

    /// Handles an ACK, unless a loss is being repaired that has reduced the window.
    pub fn on_ack(&mut self, facts: &Facts, rule: &Rule) -> Action {
        let &Facts { now, acked, lost, rtt, window, .. } = facts;
        match &mut self.state {
            State::Watching => self.watch(facts, rule),
            State::Trying { from, counted, .. } if now < *from => {
                *counted = Count::default();
                Action::Hold
            }
            State::Trying { suspected, counted, ratio, queueing, .. } => {
                counted.add(acked, lost);
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
                // All losses of a window are detected when the whole window has arrived.
                if expected >= EXPECTED && counted.sum() >= window && counted.lost < LOST_STILL {
                    self.give_way((now, rtt), (before, queueing), known, rule)
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

    /// Takes an ACK without losses while there is no excess: it only counts. Returns whether the ACK was of this kind; any other ACK is for
    /// [`Self::on_ack`].
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
        if lost > 0.0 {
            self.queueing = greater(self.queueing, queueing);
        }
        // Losses are detected late, and many at once if ACKs come in batches: they may be those of a whole window.
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

    /// The share of segments that may be lost.
    fn bearable(&self, rule: &Rule) -> f64 {
        greater(lesser(BEARABLE * self.known(), rule.most), ABOVE)
    }

    /// Begins congestion. The known random share falls to the largest one that fits the losses of the trial.
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

    /// Handles another reduction of the window in congestion.
    fn lose_again(&mut self, (now, rtt): (f64, f64), window: f64) {
        let State::Congestion { from, round, lost, window: lost_at, .. } = &mut self.state else { return };
        // Segments that left before may still be lost.
        (*from, *round, *lost, *lost_at) = (now + ROUNDS * rtt, now + ROUNDS * rtt, 0.0, window);
    }

    /// The losses of a window that may be random during congestion: none if window and delay are about those of the last congestion. Else the
    /// bearable losses and two standard deviations.
    fn lost_most(&self, window: f64, queueing: f64, rule: &Rule) -> f64 {
        let bearable = self.bearable(rule) * window;
        let chance = bearable + 2.0 * bearable.sqrt();
        let State::Congestion { window: lost_at, queueing: delay, .. } = self.state else { return chance };
        if window > LEFT * lost_at && queueing >= AS_LONG * delay { 0.0 } else { chance }
    }

    /// Handles a loss of `lost` segments of a window at `now` seconds, after a queueing delay in seconds. Returns whether it is congestion: then the
    /// law halves the window, and the window counts as that of the last congestion.
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

    /// Whether losses count as congestion at `now` seconds.
    pub fn is_congestion(&self, now: f64) -> bool {
        matches!(self.state, State::Congestion { until, .. } if now < until)
    }

    /// Whether the window law sets the window.
    pub fn is_at_rest(&self) -> bool {
        matches!(self.state, State::Watching | State::Congestion { .. })
    }

    /// Handles a timeout, or a loss that reduced the window for another reason: it ends a trial.
    pub fn on_answered(&mut self) {
        self.begin();
        if !matches!(self.state, State::Congestion { .. }) {
            self.state = State::Watching;
        }
    }

    /// Handles a spurious loss.
    pub fn forgive(&mut self) {
        self.seen.lost = (self.seen.lost - self.since.lost).max(0.0);
        self.begin();
    }

    /// Resets the excess.
    fn begin(&mut self) {
        (self.excess, self.since, self.queueing) = (0.0, Count::default(), 0.0);
    }

    /// The known random share of losses; zero if none is known.
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

    /// The same losses, of at least `least` segments.
    fn of(&self, least: f64) -> Self {
        Self { acked: greater(self.acked, least - self.lost), ..*self }
    }

    fn and(&self, other: &Self) -> Self {
        Self { acked: self.acked + other.acked, lost: self.lost + other.lost }
    }
}

#[cfg(test)]
mod tests;
