//! How FAST asks whose a queue is, and what it does about the answer: the arithmetic is [`super::rival`]'s.

use super::Fast;
use super::base_rtt::Average;
use super::drain::Drain;
use super::noise::Recent;
use super::rival::{self, Competition, Look, Turn, Verdict};
use super::window::{self, Pipe};
use crate::controller::{Ack, PathView};
use crate::number::greater;

impl Fast {
    /// Whether a queue stands that does not seem to be ours: several times what alpha makes at the rate of late.
    pub(super) fn is_foreign(&self, now: f64, base: f64) -> bool {
        self.window >= rival::SMALL && self.look.stands() - base > self.own_delay(now) && !self.look.is_muted(now)
    }

    /// How long a queue may be that is ours, in seconds.
    pub(super) fn own_delay(&self, now: f64) -> f64 {
        let noise = self.settings.noise.as_ref().map_or(0.0, |rule| greater(rule.least, self.noise()));
        self.look.own_delay(now, self.settings.goal.alpha, self.settings.share.as_ref(), noise)
    }

    /// What a drain showed at its bottom.
    pub(super) fn judge(&mut self, now: f64, (window, before, least): (f64, f64, f64)) {
        let base = self.estimator.base();
        // A sample may be behind a segment or two, or before it.
        let grain = self.noise() + 2.0 / self.look.rate();
        let own = self.own_delay(now);
        match self.look.judge(now, (before - base, least - base), window, own, grain) {
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
                self.competition = Some(Competition::new(now, window));
            }
        }
    }

    /// The window beside a rival, after an ACK outside fast recovery.
    pub(super) fn compete(&mut self, path: &PathView, ack: &Ack, now: f64, rtt: f64) -> bool {
        let (Some(competition), Some(rule)) = (&mut self.competition, &self.settings.rival) else { return false };
        let base = self.estimator.base();
        let near = base + self.settings.goal.alpha * self.alpha_scale * self.estimator.average() / self.old;
        let facts = rival::Facts { now, rtt, near, base };
        let turn = competition.on_ack(path, ack, &facts, rule);
        self.window = competition.window(rule);
        if let Turn::Leave { rate } = turn {
            self.competition = None;
            (self.look, self.pipe, self.least) = (Look::new(), Pipe::new(), Recent::new());
            let pipe = rate * base;
            self.drain = Drain::draining(now, rtt, (pipe, base), base + 0.5 * (near - base));
            self.window = (0.5 * pipe).max(window::WINDOW_MIN).min(self.window);
        }
        true
    }
}
