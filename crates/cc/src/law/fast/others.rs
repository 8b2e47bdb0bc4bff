//! The events by which FAST finds out whose a queue is, and its response; the arithmetic is in [`super::rival`].

use super::base_rtt::Average;
use super::drain::Drain;
use super::noise::Recent;
use super::rival::{self, Bottom, Competition, Look, Turn, Verdict};
use super::window::{self, Pipe};
use super::{Fast, Repair};
use crate::controller::{Ack, Loss, PathView, Signal};
use crate::number::greater;

impl Fast {
    /// Whether there is a standing queue that does not seem to be ours: several times the delay of alpha at the recent rate. A window that has just fallen
    /// does not show yet what remains of the queue.
    pub(super) fn is_foreign(&self, now: f64, base: f64) -> bool {
        self.window >= greater(rival::SMALL, SETTLED * self.old)
            && self.look.stands() - base > self.own_delay()
            && !self.look.is_muted(now)
    }

    /// The longest delay of a queue of our own, in seconds, by the present noise.
    fn own_delay(&self) -> f64 {
        self.own_delay_at(self.noise())
    }

    /// The longest delay of a queue of our own, in seconds, for a noise of `noise` seconds.
    fn own_delay_at(&self, noise: f64) -> f64 {
        let noise = self.settings.noise.as_ref().map_or(0.0, |rule| greater(rule.least, noise));
        let alpha = self.look.own_delay(self.settings.goal.alpha, self.settings.share.as_ref(), noise);
        greater(alpha, MOVED * self.estimator.base())
    }

    /// The difference between two RTT samples without a meaning, in seconds: one of them may wait behind a segment or two.
    fn grain(&self) -> f64 {
        self.noise() + 2.0 / self.look.rate()
    }

    /// Evaluates the least RTT of a drain.
    pub(super) fn judge(&mut self, now: f64, (window, before, least): (f64, f64, f64)) {
        let Some(drain) = &self.settings.drain else { return };
        let (base, share) = (self.estimator.base(), drain.share);
        let (own, grain) = (self.own_delay(), self.grain());
        match self.look.judge(&Bottom { now, base, before, least, window, share, own, grain }) {
            Verdict::Rival if window < rival::SMALL => {}
            Verdict::Own | Verdict::Unsure => {}
            Verdict::Route => {
                self.take_route(now, least, Average::Restarted);
                // The pipe of the new route follows from its length, until the route turns out to be slower, too.
                self.pipe = Pipe::known(now, self.look.rate() * least);
            }
            Verdict::Rival => {
                self.interrupt(now);
                self.trial.on_answered();
                self.competition = Some(Competition::new(window, self.look.rate()));
            }
        }
    }

    /// Evaluates a loss. Returns whether a rival caused it; then the window has been set.
    pub(super) fn contest(&mut self, path: &PathView, now: f64, loss: &Loss) -> bool {
        if self.settings.rival.is_none() || !self.estimator.is_known() {
            return false;
        }
        // A queue that alpha has made while hosts stalled outlasts the noise of the stalls. Looks go by the present noise: by the largest, flows of our kind look
        // less often and share less evenly (eight flows, a buffer of one bandwidth-delay product: Jain's index 0.79, not 0.93).
        let (base, own) = (self.estimator.base(), OVERFLOW * self.own_delay_at(self.noise.recent()));
        if self.competition.is_some() && loss.signal == Signal::DupAcks && self.rtt - base <= own {
            // No queue overflowed: the loss is random, or by a policer.
            self.calm(now);
            return false;
        }
        // A delay that lasts for a round trip is a queue, not a stall.
        let overflows = loss.signal != Signal::Ecn && self.window >= rival::SMALL && self.look.stands() - base > own;
        if self.competition.is_none() && overflows {
            self.before_loss = Some((self.window, self.memory));
            self.interrupt(now);
            self.trial.on_answered();
            self.competition = Some(Competition::new(self.window, self.look.rate()));
        }
        let Some(competition) = &mut self.competition else { return false };
        competition.on_loss(now, (self.rtt, base), path, loss);
        self.window = competition.window();
        if loss.signal != Signal::Ecn {
            self.repair = Repair::Answered;
        }
        true
    }

    /// Ends the competition: the window law sets the window again.
    fn calm(&mut self, now: f64) {
        self.competition = None;
        self.pipe = Pipe::known(now, self.look.rate() * self.estimator.base());
        self.clockwork.interrupt();
    }

    /// Sets the window beside a rival, after an ACK.
    pub(super) fn compete(&mut self, path: &PathView, ack: &Ack, now: f64, rtt: f64) -> bool {
        let facts = rival::Facts { now, rtt, base: self.estimator.base(), grain: self.grain() };
        let (Some(competition), Some(rule)) = (&mut self.competition, &self.settings.rival) else { return false };
        let turn = competition.on_ack(path, ack, &facts, rule);
        self.window = competition.window();
        match turn {
            Turn::Stay => {}
            Turn::Calm => self.calm(now),
            Turn::Alone { rate } => {
                // The standing queue is to be drained, and the estimates date from the time of the rival.
                let enough = facts.base + 0.5 * self.own_delay();
                self.competition = None;
                (self.look, self.pipe, self.least) = (Look::new(), Pipe::new(), Recent::new());
                let pipe = rate * facts.base;
                self.drain = Drain::draining(now, rtt, (pipe, facts.base), enough);
                self.window = (0.5 * pipe).max(window::WINDOW_MIN).min(self.window);
            }
        }
        true
    }
}

/// A window of less than this share of what was in flight a round trip ago has just fallen.
const SETTLED: f64 = 0.75;

/// A loss shows that a queue has overflowed, so it needs less of a queue than a drain does, by this factor: 1.75 times the delay of alpha, the queue of three
/// times as many flows as there were, and not of five times.
const OVERFLOW: f64 = 1.75 / 2.25;

/// Losses and their repair move the window by some hundredths in a round trip, and the queue by the same share of the path. On a satellite path of 600 ms
/// with random losses that is 6 ms, and no rival's queue. A buffer of an eighth of the path is four times as long.
const MOVED: f64 = 1.0 / 32.0;
