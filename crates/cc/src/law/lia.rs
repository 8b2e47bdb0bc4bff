//! LIA, the linked increases of MPTCP: Reno on each path, but all paths together take no more than one TCP on the best of them.
//!
//! ```text
//! alpha = w_total · max_p (w_p/rtt_p²) / (Σ_p w_p/rtt_p)²
//! each acknowledged segment:  w ← w + min(alpha/w_total, 1/w)
//! slow start and losses:      as Reno's, each path by itself
//! ```
//!
//! On one path alpha is one, and the law is Reno.
//!
//! Citation: rfc-6356.
//!
//! Differs from rfc-6356 in:
//! * alpha is computed once a round, when the windows of the other paths are known; sec. 4.1 computes it with each ACK, but allows this.

use crate::controller::{Ack, Controller, Gauges, Loss, PathSummary, PathView, Restart};
use crate::law::reno::{self, Reno};
use crate::row::{Law, Row};
use crate::settings::WindowSettings;

pub(crate) const ROW: Row = Row {
    name: "lia",
    summary: "MPTCP's linked increases: all paths together take no more than one TCP on the best; Reno on one path",
    citation: "rfc-6356",
    loss_contract: reno::LOSS_CONTRACT,
    law: &Law { defaults: WindowSettings::DEFAULT, make: |settings| Box::new(Lia::new(settings)) },
};

/// alpha and the sum of the windows, over pairs of a window in segments and an RTT in seconds. `None` if there is no pair.
pub fn alpha(paths: impl Iterator<Item = (f64, f64)> + Clone) -> Option<(f64, f64)> {
    let total: f64 = paths.clone().map(|(window, _)| window).sum();
    let best = paths.clone().map(|(window, rtt)| window / (rtt * rtt)).fold(0.0, f64::max);
    let rate: f64 = paths.map(|(window, rtt)| window / rtt).sum();
    (rate > 0.0).then(|| (total * best / (rate * rate), total))
}

/// LIA's window for one path.
#[derive(Clone, Debug)]
pub struct Lia {
    reno: Reno,
    /// The largest growth by an acknowledged segment: alpha/w_total; `None` on one path.
    linked: Option<f64>,
}

impl Lia {
    pub(crate) fn new(settings: &WindowSettings) -> Self {
        Self { reno: Reno::new(settings), linked: None }
    }
}

/// Window in segments and RTT in seconds of each path whose RTT is known.
pub(crate) fn known(group: &[PathSummary]) -> impl Iterator<Item = (f64, f64)> + Clone {
    group.iter().filter_map(|path| {
        let rtt = path.rtt_smoothed?.as_secs_f64();
        (rtt > 0.0).then_some((path.window, rtt))
    })
}

impl Controller for Lia {
    fn hears_first(&self) -> bool {
        false
    }

    fn on_ack(&mut self, _path: &PathView, ack: &Ack) {
        let linked = self.linked.unwrap_or(f64::INFINITY);
        self.reno.grow(ack, |window| linked.min(1.0 / window));
    }

    fn on_group(&mut self, _path: &PathView, group: &[PathSummary]) {
        self.linked = alpha(known(group)).map(|(alpha, total)| alpha / total);
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
        gauges.show("increase_linked", self.linked.unwrap_or(f64::INFINITY));
    }
}

#[cfg(test)]
mod tests;
