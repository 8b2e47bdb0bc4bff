//! FAST's response to losses: a loss leaves the window alone, starts a trial, or halves the window; and some are remembered.

use super::loss::{self, Policy};
use super::window::{self, Goal};
use super::{Fast, Repair, memory, trial};
use crate::controller::{Ack, Loss, PathView, Signal};

impl Fast {
    /// Sets the window after a loss.
    pub(super) fn answer(&mut self, path: &PathView, loss: &Loss) {
        let now = path.now.as_secs_f64();
        self.rate = None;
        if self.trial.is_at_rest() {
            self.queued = Goal::backlog(self.old, self.estimator.base(), self.rtt);
        }
        if self.spares(now, loss) {
            (self.repair, self.before_loss) = (Repair::Spared, None);
            return;
        }
        if loss.signal != Signal::Ecn {
            self.repair = Repair::Answered;
        }
        self.before_loss = Some((self.window, self.memory));
        self.interrupt(now);
        let halved = loss::halve(self.window);
        self.window = match loss.signal {
            Signal::Timeout => loss::time_out(self.window),
            Signal::DupAcks | Signal::Ecn => halved,
        };
        match self.settings.loss {
            Policy::Halve | Policy::Composite { .. } => self.remember(now, halved, memory::ABOVE),
            Policy::Trial { .. } if self.trial.is_congestion(now) => self.remember(now, halved, 0.0),
            Policy::Trial { .. } => self.trial.on_answered(),
        }
    }

    /// Runs the trial whether losses are random. Returns whether a trial sets the window.
    pub(super) fn attempt(&mut self, now: f64, sample: Option<f64>, ack: &Ack, rule: &trial::Rule) -> bool {
        if self.trial.passes(ack.newly_acked, ack.newly_lost) {
            return false;
        }
        let rtt = sample.unwrap_or(self.estimator.average());
        let (acked, lost) = (ack.newly_acked, ack.newly_lost);
        let queueing = rtt - self.estimator.base();
        let facts = trial::Facts { now, acked, lost, rtt, queueing, window: self.window };
        match self.trial.on_ack(&facts, rule) {
            trial::Action::None => return false,
            trial::Action::Hold => {}
            trial::Action::Fall(window) => {
                self.trials += 1;
                self.interrupt(now);
                self.window = window.max(window::WINDOW_MIN).min(self.window);
            }
            trial::Action::Return(target) => {
                let step = (trial::RETURN * ack.newly_acked).min(target - self.window);
                self.window += step.max(0.0);
            }
            trial::Action::GiveWay(before) => {
                self.interrupt(now);
                let halved = loss::halve(before);
                self.window = self.window.min(halved);
                self.remember(now, halved, 0.0);
            }
        }
        true
    }

    /// Handles a change of the window by something other than the window law.
    pub(super) fn interrupt(&mut self, now: f64) {
        self.clockwork.interrupt();
        self.ccafr.end();
        self.drain.on_loss(now);
    }

    /// Remembers a loss that left `halved` segments, if more than the share `above` of all segments is lost.
    fn remember(&mut self, now: f64, halved: f64, above: f64) {
        if self.settings.memory.is_some() {
            self.memory.on_loss(now, halved, self.queued / self.alpha_scale, above);
        }
    }

    /// Whether a loss leaves the window alone.
    fn spares(&mut self, now: f64, loss: &Loss) -> bool {
        let Some(rule) = &self.trial_rule else { return false };
        let delay = self.rtt - self.estimator.base();
        loss.signal == Signal::DupAcks && !self.trial.on_loss((now, self.rtt), loss.lost, (self.window, delay), rule)
    }
}
