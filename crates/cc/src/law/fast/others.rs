//! How FAST asks whose a queue is, and what it does about the answer: the arithmetic is [`super::rival`]'s.

use super::base_rtt::Average;
use super::drain::Drain;
use super::noise::Recent;
use super::rival::{self, Bottom, Competition, Look, Turn, Verdict};
use super::window::{self, Pipe};
use super::{Fast, Repair};
use crate::controller::{Ack, Loss, PathView, Signal};
use crate::number::greater;

impl Fast {
    /// Whether a queue stands that does not seem to be ours: several times what alpha makes at the rate of late. A window that has just fallen has not shown
    /// yet what it leaves of the queue.
    pub(super) fn is_foreign(&self, now: f64, base: f64) -> bool {
        self.window >= greater(rival::SMALL, SETTLED * self.old)
            && self.look.stands() - base > self.own_delay()
            && !self.look.is_muted(now)
    }

    /// How long a queue may be that is ours, in seconds.
    fn own_delay(&self) -> f64 {
        let noise = self.settings.noise.as_ref().map_or(0.0, |rule| greater(rule.least, self.noise()));
        let alpha = self.look.own_delay(self.settings.goal.alpha, self.settings.share.as_ref(), noise);
        greater(alpha, MOVED * self.estimator.base())
    }

    /// What one RTT sample may differ from the next by, in seconds: it may be behind a segment or two, or before it.
    fn grain(&self) -> f64 {
        self.noise() + 2.0 / self.look.rate()
    }

    /// What a drain showed at its bottom.
    pub(super) fn judge(&mut self, now: f64, (window, before, least): (f64, f64, f64)) {
        let Some(drain) = &self.settings.drain else { return };
        let (base, share) = (self.estimator.base(), drain.share);
        let (own, grain) = (self.own_delay(), self.grain());
        match self.look.judge(&Bottom { now, base, before, least, window, share, own, grain }) {
            Verdict::Rival if window < rival::SMALL => {}
            Verdict::Own | Verdict::Unsure => {}
            Verdict::Route => {
                self.take_route(now, least, Average::Restarted);
                // As much fits on it as its length says, until it shows that it is slower, too.
                self.pipe = Pipe::known(now, self.look.rate() * least);
            }
            Verdict::Rival => {
                self.interrupt(now);
                self.trial.on_answered();
                self.competition = Some(Competition::new(window, self.look.rate()));
            }
        }
    }

    /// A loss: whether it is a rival's doing, and what the window then is has been seen to.
    pub(super) fn contest(&mut self, path: &PathView, now: f64, loss: &Loss) -> bool {
        if self.settings.rival.is_none() || !self.estimator.is_known() {
            return false;
        }
        let (base, own) = (self.estimator.base(), self.own_delay());
        if self.competition.is_some() && loss.signal == Signal::DupAcks && self.rtt - base <= own {
            // No queue overflowed: chance, or a policer.
            self.calm(now);
            return false;
        }
        // A delay that has stood for a round trip is a queue, and none that a stall made.
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

    /// Nobody fills the queue any more: the window is the law's again.
    fn calm(&mut self, now: f64) {
        self.competition = None;
        self.pipe = Pipe::known(now, self.look.rate() * self.estimator.base());
        self.clockwork.interrupt();
    }

    /// The window beside a rival, after an ACK.
    pub(super) fn compete(&mut self, path: &PathView, ack: &Ack, now: f64, rtt: f64) -> bool {
        let facts = rival::Facts { now, rtt, base: self.estimator.base(), grain: self.grain() };
        let (Some(competition), Some(rule)) = (&mut self.competition, &self.settings.rival) else { return false };
        let turn = competition.on_ack(path, ack, &facts, rule);
        self.window = competition.window();
        match turn {
            Turn::Stay => {}
            Turn::Calm => self.calm(now),
            Turn::Alone { rate } => {
                // What stands is to be drained, and what is known is of when somebody else was there.
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

/// Losses and what repairs them move a window by some hundredths in a round trip, and the queue by as much of the path: what random losses leave on 600 ms
/// of satellite, 6 ms, is nobody's queue. A buffer of an eighth of the path is four times as long.
const MOVED: f64 = 1.0 / 32.0;
