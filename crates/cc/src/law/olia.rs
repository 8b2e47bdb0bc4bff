//! OLIA, the opportunistic linked increases: LIA's goals, and traffic moves to the best path without flapping.
//!
//! ```text
//! each acknowledged segment of path r:  w_r ← w_r + (w_r/rtt_r²)/(Σ_p w_p/rtt_p)² + alpha_r/w_r
//! l_p   the larger of: segments delivered on p since its last loss, and between the last two losses
//! best: the paths with the largest l_p/rtt_p²;   widest: those with the largest window;   n paths in all
//! alpha_r =  1/(n · |best that are not widest|)    for those
//!           −1/(n · |widest|)                      for the widest, if there are such
//!            0                                     else
//! slow start and losses: as Reno's, each path by itself
//! ```
//!
//! On one path the law is Reno.
//!
//! Citation: olia-2012.
//!
//! Differs from olia-2012 in:
//! * Windows, RTTs and losses of all paths are those of the last round.
//! * Paths whose measures differ by less than a hundredth are equally good and wide, as windows are no whole numbers here.

use crate::controller::{Ack, Controller, Gauges, Loss, PathSummary, PathView, Restart};
use crate::law::reno::{self, Reno};
use crate::row::{Law, Row};
use crate::settings::WindowSettings;

pub(crate) const ROW: Row = Row {
    name: "olia",
    summary: "OLIA: linked increases that move to the best path; Reno on one path",
    citation: "olia-2012, rfc-6356",
    loss_contract: reno::LOSS_CONTRACT,
    law: &Law { defaults: WindowSettings::DEFAULT, make: |settings| Box::new(Olia::new(settings)) },
};

/// The segments delivered on a path between its losses.
#[derive(Clone, Copy, Debug)]
struct Between {
    path: u32,
    lost: f64,
    /// The delivered segments when the last loss was detected.
    delivered: f64,
    /// The segments delivered between the last two losses.
    last: f64,
}

/// OLIA's window for one path.
#[derive(Clone, Debug)]
pub struct Olia {
    reno: Reno,
    /// One for each path of the connection.
    between: Vec<Between>,
    /// (w/rtt²)/(Σ w/rtt)² without w, and alpha; `None` on one path.
    linked: Option<Linked>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Linked {
    per_window: f64,
    alpha: f64,
}

impl Olia {
    pub(crate) fn new(settings: &WindowSettings) -> Self {
        Self { reno: Reno::new(settings), between: Vec::new(), linked: None }
    }

    /// Updates the counts for the losses of all paths.
    fn note(&mut self, group: &[PathSummary]) {
        self.between.retain(|between| group.iter().any(|path| path.path == between.path));
        for path in group {
            match self.between.iter_mut().find(|between| between.path == path.path) {
                Some(between) if path.lost > between.lost => {
                    between.last = (path.delivered - between.delivered).max(0.0);
                    (between.lost, between.delivered) = (path.lost, path.delivered);
                }
                Some(_) => {}
                None => {
                    let (lost, delivered) = (path.lost, 0.0);
                    self.between.push(Between { path: path.path, lost, delivered, last: 0.0 });
                }
            }
        }
    }

    fn link(&self, group: &[PathSummary]) -> Option<Linked> {
        let rtt = |path: &PathSummary| path.rtt_smoothed.map(|rtt| rtt.as_secs_f64()).filter(|rtt| *rtt > 0.0);
        let own = group.iter().find(|path| path.own)?;
        let own_rtt = rtt(own)?;
        let rate: f64 = group.iter().filter_map(|path| Some(path.window / rtt(path)?)).sum();
        let quality = |path: &PathSummary| {
            let between = self.between.iter().find(|between| between.path == path.path);
            let delivered = between.map_or(0.0, |between| (path.delivered - between.delivered).max(between.last));
            rtt(path).map_or(0.0, |rtt| delivered / (rtt * rtt))
        };
        let best = group.iter().map(quality).fold(0.0, f64::max) * CLOSE;
        let widest = group.iter().map(|path| path.window).fold(0.0, f64::max) * CLOSE;
        let is_widest = |path: &PathSummary| path.window >= widest;
        let is_collected = |path: &PathSummary| quality(path) >= best && !is_widest(path);
        let count = |is: &dyn Fn(&PathSummary) -> bool| group.iter().filter(|path| is(path)).count() as f64;
        let (collected, paths) = (count(&is_collected), group.len() as f64);
        let alpha = if collected == 0.0 {
            0.0
        } else if is_collected(own) {
            1.0 / (paths * collected)
        } else if is_widest(own) {
            -1.0 / (paths * count(&is_widest))
        } else {
            0.0
        };
        Some(Linked { per_window: 1.0 / (own_rtt * own_rtt * rate * rate), alpha })
    }
}

impl Controller for Olia {
    fn hears_first(&self) -> bool {
        false
    }

    fn on_ack(&mut self, _path: &PathView, ack: &Ack) {
        let linked = self.linked;
        self.reno.grow(ack, |window| match linked {
            None => 1.0 / window,
            Some(Linked { per_window, alpha }) => (window * per_window + alpha / window).min(1.0 / window),
        });
    }

    fn on_group(&mut self, _path: &PathView, group: &[PathSummary]) {
        self.note(group);
        self.linked = self.link(group);
    }

    fn on_loss(&mut self, path: &PathView, loss: &Loss) {
        self.reno.on_loss(path, loss);
    }

    fn on_restart(&mut self, path: &PathView, restart: Restart) {
        self.reno.on_restart(path, restart);
    }

    reno::as_reno!();

    fn gauges(&self, gauges: &mut Gauges) {
        self.reno.gauges(gauges);
        gauges.show("alpha", self.linked.map_or(0.0, |linked| linked.alpha));
    }
}

/// A path above this share of the best measure counts as equally good.
const CLOSE: f64 = 0.99;

#[cfg(test)]
mod tests;
