//! FAST over several paths: paths that share a bottleneck share alpha, in proportion to their rates.
//!
//! ```text
//! alpha_r = alpha x_r / Σ x_p    over this path and those that share its queue, x = w/RTT
//! the window of each path is FAST's with alpha_r, alpha_r at least 2
//! ```
//!
//! `law/coupled.rs` tells which paths share a queue.
//!
//! In equilibrium the share of a flow of FAST in a queue is its share of all alphas there: q x_r = alpha_r s. So paths whose alpha_r
//! add up to alpha take the rate of one flow together, for any division among them. A path with a queue of its own takes the rate of one flow, too.
//! Two paths through one queue have equal queueing delays, so paths with different delays share no queue.
//!
//! Citation: fast-2006 for the window; the rule is ours, in the manner of wvegas-2012 and rfc-6356 sec. 2 (goal 2).
//!
//! Limits. Two links of the same rate without other traffic have equal queueing delays, too, and count as one link. Then half of alpha is
//! queued on each, and both links are still full. A shared queue is not recognised if the base RTT of a path is wrong, as that of a late comer.

use anabranch_units::Rate;

use crate::controller::{Ack, Controller, Ect, Gauges, Loss, PathSummary, PathView, Reduction, Restart, Round, Sent};
use crate::law::coupled::Coupled;
use crate::law::fast::window::Goal;
use crate::law::fast::{self, Fast, FastSettings};
use crate::row::{Law, Row};
use crate::settings::{Fields, INITIAL_WINDOW, Table};

pub(crate) const ROW: Row = Row {
    name: "mpfast",
    summary: "FAST over several paths: paths that share a bottleneck share alpha",
    citation: "fast-2006, wvegas-2012, rfc-6356",
    loss_contract: fast::LOSS_CONTRACT,
    law: &Law { defaults: MpFastSettings::DEFAULT, make: |settings| Box::new(MpFast::new(settings)) },
};

/// The settings of FAST over several paths, in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MpFastSettings {
    /// The window before the first ACK.
    pub initial_window: f64,
    /// The segments that all paths through one bottleneck keep queued there together.
    pub alpha: f64,
}

impl MpFastSettings {
    /// Alpha and the initial window of FAST, in segments.
    pub const DEFAULT: Self = Self { initial_window: INITIAL_WINDOW, alpha: FastSettings::FAST.goal.alpha };
}

impl Table for MpFastSettings {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.initial_window(&mut self.initial_window);
        let help = "queued segments of all paths through one bottleneck together";
        fields.number("alpha", &mut self.alpha, 2.0..=100_000.0, "segments", help);
    }
}

/// The window of one of several paths.
#[derive(Clone, Debug)]
pub struct MpFast {
    fast: Fast,
    settings: MpFastSettings,
    /// This path's part of alpha.
    alpha: f64,
    coupled: Coupled,
}

impl MpFast {
    pub(crate) fn new(settings: &MpFastSettings) -> Self {
        let &MpFastSettings { initial_window, alpha } = settings;
        let goal = Goal { alpha, ..FastSettings::FAST.goal };
        let fast = Fast::new(FastSettings { initial_window, goal, ..FastSettings::FAST });
        Self { fast, settings: *settings, alpha, coupled: Coupled::default() }
    }
}

impl Controller for MpFast {
    fn on_sent(&mut self, path: &PathView, sent: &Sent) {
        self.fast.on_sent(path, sent);
    }

    fn hears_first(&self) -> bool {
        self.fast.hears_first()
    }

    fn on_ack(&mut self, path: &PathView, ack: &Ack) {
        self.fast.on_ack(path, ack);
    }

    fn on_round(&mut self, path: &PathView, round: &Round) {
        self.fast.on_round(path, round);
    }

    fn on_loss(&mut self, path: &PathView, loss: &Loss) {
        self.fast.on_loss(path, loss);
    }

    fn on_recovered(&mut self, path: &PathView) {
        self.fast.on_recovered(path);
    }

    fn on_undo(&mut self, path: &PathView) {
        self.fast.on_undo(path);
    }

    fn on_restart(&mut self, path: &PathView, restart: Restart) {
        if restart == Restart::PathChanged {
            self.coupled = Coupled::default();
            self.alpha = self.settings.alpha;
            self.fast.set_alpha(self.alpha);
        }
        self.fast.on_restart(path, restart);
    }

    fn on_group(&mut self, path: &PathView, group: &[PathSummary]) {
        self.fast.on_group(path, group);
        if let Some(share) = self.coupled.share(group) {
            self.alpha = (self.settings.alpha * share).max(ALPHA_LEAST);
            self.fast.set_alpha(self.alpha);
        }
    }

    fn window(&self) -> f64 {
        self.fast.window()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.fast.pacing_rate()
    }

    fn reduction(&self) -> Reduction {
        self.fast.reduction()
    }

    fn ect(&self) -> Option<Ect> {
        self.fast.ect()
    }

    fn copy(&self) -> Option<Box<dyn Controller>> {
        Some(Box::new(self.clone()))
    }

    fn gauges(&self, gauges: &mut Gauges) {
        gauges.show("alpha_path", self.alpha);
        self.fast.gauges(gauges);
    }
}

/// As in wVegas: with less, a path would not notice that the others have left.
const ALPHA_LEAST: f64 = 2.0;

#[cfg(test)]
mod tests;
