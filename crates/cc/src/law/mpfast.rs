//! FAST over several paths: those that share a bottleneck share alpha, by what each carries.
//!
//! ```text
//! alpha_r = alpha x_r / Σ x_p    over this path and those that meet it at one queue, x = w/RTT
//! the window of each path is FAST's with alpha_r, alpha_r at least 2
//! path p meets path r:           their queueing delays, RTT − least RTT, are within an eighth of the larger, or half a millisecond, for 8 rounds
//! they part:                     they are not for 8 rounds
//! ```
//!
//! At rest a flow of FAST has the share of a queue that its alpha is of all there: q x_r = alpha_r s. So paths with alpha_r of one
//! alpha together take what one flow takes, however it is divided among them, and paths that do not meet anybody take as much each.
//! Two paths through one queue wait equally long, so paths that wait differently do not meet.
//!
//! Citation: fast-2006 for the window; the rule is ours, in the manner of wvegas-2012 and rfc-6356 sec. 2 (goal 2).
//!
//! Limits. Two links of one rate with nobody else on them have equal queues, too, and are taken for one: half of alpha is then
//! queued on each, and both are full all the same. A path whose base RTT is wrong (a late comer's) is not recognised.

use anabranch_units::Rate;

use crate::controller::{
    Ack, Controller, Ect, Gauges, Loss, PathSummary, PathView, Reduction, Restart, Round, Sent,
};
use crate::law::fast::window::Goal;
use crate::law::fast::{self, Fast, FastSettings};
use crate::law::lia;
use crate::row::{Law, Row};
use crate::settings::{Fields, INITIAL_WINDOW, Table};

pub(crate) const ROW: Row = Row {
    name: "mpfast",
    summary: "FAST over several paths: those that meet at a bottleneck share alpha",
    citation: "fast-2006; the rule is ours",
    loss_contract: fast::LOSS_CONTRACT,
    law: &Law { defaults: MpFastSettings::DEFAULT, make: |settings| Box::new(MpFast::new(settings)) },
};

/// The settings of FAST over several paths, in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MpFastSettings {
    /// The window before the first ACK.
    pub initial_window: f64,
    /// What paths that share a bottleneck keep queued there together.
    pub alpha: f64,
}

impl MpFastSettings {
    /// Alpha and the initial window of FAST, in segments.
    pub const DEFAULT: Self = Self { initial_window: INITIAL_WINDOW, alpha: FastSettings::FAST.goal.alpha };
}

impl Table for MpFastSettings {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.initial_window(&mut self.initial_window);
        let help = "what paths that share a bottleneck keep queued there together";
        fields.number("alpha", &mut self.alpha, 2.0..=100_000.0, "segments", help);
    }
}

/// The window of one of several paths.
#[derive(Debug)]
pub struct MpFast {
    fast: Fast,
    settings: MpFastSettings,
    /// This path's part of alpha.
    alpha: f64,
    /// Other paths, and for how many rounds of late their queueing delays were like this path's.
    others: Vec<Other>,
}

/// Another path.
#[derive(Clone, Copy, Debug)]
struct Other {
    path: u32,
    /// From 0, never alike, to [`ROUNDS`].
    alike: u32,
    /// Whether it meets this path at a bottleneck.
    meets: bool,
}

impl MpFast {
    pub(crate) fn new(settings: &MpFastSettings) -> Self {
        let &MpFastSettings { initial_window, alpha } = settings;
        let goal = Goal { alpha, ..FastSettings::FAST.goal };
        let fast = Fast::new(FastSettings { initial_window, goal, ..FastSettings::FAST });
        Self { fast, settings: *settings, alpha, others: Vec::new() }
    }

    /// Looks whether other paths wait as long as this one, `own` seconds.
    fn compare(&mut self, own: f64, group: &[PathSummary]) {
        self.others.retain(|other| group.iter().any(|path| path.path == other.path));
        for path in group.iter().filter(|path| !path.own) {
            let Some(queueing) = queueing(path) else { continue };
            let index = self.others.iter().position(|other| other.path == path.path).unwrap_or_else(|| {
                self.others.push(Other { path: path.path, alike: 0, meets: false });
                self.others.len() - 1
            });
            let other = &mut self.others[index];
            let tolerance = (own.max(queueing) / 8.0).max(TOLERANCE_S);
            if (own - queueing).abs() <= tolerance {
                other.alike = (other.alike + 1).min(ROUNDS);
            } else {
                other.alike = other.alike.saturating_sub(1);
            }
            other.meets = if other.meets { other.alike > 0 } else { other.alike == ROUNDS };
        }
    }
}

/// The queueing delay of a path in seconds, if it is known.
fn queueing(path: &PathSummary) -> Option<f64> {
    Some(path.rtt_smoothed?.saturating_sub(path.rtt_min?).as_secs_f64())
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
            self.others.clear();
            self.alpha = self.settings.alpha;
            self.fast.set_alpha(self.alpha);
        }
        self.fast.on_restart(path, restart);
    }

    fn on_group(&mut self, path: &PathView, group: &[PathSummary]) {
        self.fast.on_group(path, group);
        let Some(own) = group.iter().find(|path| path.own) else { return };
        if let Some(queueing) = queueing(own) {
            self.compare(queueing, group);
        }
        let rate = |of: &PathSummary| lia::known(std::slice::from_ref(of)).map(|(window, rtt)| window / rtt).next();
        let meets = |path: &PathSummary| self.others.iter().any(|other| other.path == path.path && other.meets);
        let shared: f64 = group.iter().filter(|path| path.own || meets(path)).filter_map(rate).sum();
        if let Some(own) = rate(own) {
            self.alpha = (self.settings.alpha * own / shared).max(ALPHA_LEAST);
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

    fn gauges(&self, gauges: &mut Gauges) {
        gauges.show("alpha_path", self.alpha);
        self.fast.gauges(gauges);
    }
}

/// Rounds that must agree: the smoothed RTT follows a change within about as many.
const ROUNDS: u32 = 8;

/// What clocks and bursts add to one path and not to the other.
const TOLERANCE_S: f64 = 0.0005;

/// As wVegas: a path that is given less would not see the others go.
const ALPHA_LEAST: f64 = 2.0;

#[cfg(test)]
mod tests;
