//! wVegas: Vegas on each path, with an alpha in proportion to the path's rate, so that traffic moves to the paths with short
//! queues.
//!
//! ```text
//! once a round:  diff = w (RTT − base)/RTT                                (segments queued)
//!   diff ≥ alpha_r:  alpha_r ← total (w_r/RTT_r)/Σ_p w_p/RTT_p, 2 at least
//!   diff > alpha_r:  w ← w − 1;     diff < alpha_r:  w ← w + 1
//!   RTT − base ≥ 2 q:  w ← w base/(2 RTT),  q ← ∞                        q: least RTT − base since the last time
//! slow start:    doubles until diff > 1, then falls to the size of the path; after a back-off, to at least 3/4 of the window before
//! loss:          w ← w/2                                                  timeout: w ← 1
//! ```
//!
//! On one path alpha is `total`, and the law is Vegas with steps of a segment a round.
//!
//! A back-off shows the other flows of the link its base RTT. It costs little only because slow start follows: a window that
//! grew back by a segment a round would carry three quarters of the capacity.
//!
//! Citation: wvegas-2012; its authors' module for Linux, for the slow start after a back-off; brakmo-1995.
//!
//! Differs from wvegas-2012 in:
//! * The rates of the other paths are those of the last round.
//! * A queue below the noise of a segment, diff < 1, causes no back-off.

use anabranch_units::Span;

use crate::controller::{
    Ack, Controller, Gauges, Limit, Loss, PathSummary, PathView, Phase, Restart, Round, WINDOW_MIN,
};
use crate::law::reno::Reno;
use crate::law::{lia, vegas};
use crate::row::{Law, LossContract, LossResponse, Row};
use crate::settings::{Fields, INITIAL_WINDOW, Table, WindowSettings};

pub(crate) const ROW: Row = Row {
    name: "wvegas",
    summary: "Vegas over several paths: each queues a share of alpha in proportion to its rate",
    citation: "wvegas-2012, brakmo-1995",
    loss_contract: LossContract {
        shrinks_above: vegas::WINDOW_MIN,
        timeout_window_max: WINDOW_MIN,
        loss: LossResponse::Shrinks,
    },
    law: &Law { defaults: WvegasSettings::DEFAULT, make: |settings| Box::new(Wvegas::new(settings)) },
};

/// The settings of wVegas, in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WvegasSettings {
    /// The window before the first ACK.
    pub initial_window: f64,
    /// The segments that all paths together may queue.
    pub total_alpha: f64,
}

impl WvegasSettings {
    /// wvegas-2012 sec. IV: ten segments.
    pub const DEFAULT: Self = Self { initial_window: INITIAL_WINDOW, total_alpha: 10.0 };
}

impl Table for WvegasSettings {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.initial_window(&mut self.initial_window);
        let help = "queued segments of all paths together";
        fields.number("total_alpha", &mut self.total_alpha, 2.0..=10_000.0, "segments", help);
    }
}

/// wVegas' window for one path.
#[derive(Clone, Debug)]
pub struct Wvegas {
    reno: Reno,
    alpha: f64,
    /// This path's share of the rate of all paths; 1 if there is no other.
    share: f64,
    /// Least RTT sample in seconds; infinite before the first.
    base: f64,
    /// The least queueing delay since the last back-off, in seconds.
    queueing_min: f64,
    limit: Limit,
    phase: Phase,
    settings: WvegasSettings,
}

impl Wvegas {
    pub(crate) fn new(settings: &WvegasSettings) -> Self {
        Self {
            reno: Reno::new(&WindowSettings { initial_window: settings.initial_window }),
            alpha: settings.total_alpha,
            share: 1.0,
            base: f64::INFINITY,
            queueing_min: f64::INFINITY,
            limit: Limit::Application,
            phase: Phase::Open,
            settings: *settings,
        }
    }

    fn is_slow_start(&self) -> bool {
        self.reno.window < self.reno.ssthresh
    }

    fn step(&mut self, rtt: f64) {
        let diff = vegas::backlog(self.reno.window, self.base.min(rtt), rtt);
        if self.is_slow_start() {
            if diff > GAMMA {
                let holds = self.reno.window * self.base.min(rtt) / rtt + 1.0;
                self.reno.window = self.reno.window.min(holds.max(vegas::WINDOW_MIN));
                self.reno.ssthresh = self.reno.window;
            }
            return;
        }
        if diff >= self.alpha {
            self.alpha = (self.settings.total_alpha * self.share).max(ALPHA_LEAST);
        }
        if diff > self.alpha {
            self.reno.window = self.reno.window.min((self.reno.window - 1.0).max(vegas::WINDOW_MIN));
        } else if diff < self.alpha && self.limit == Limit::Window {
            self.reno.window += 1.0;
        }
        self.reno.ssthresh = self.reno.ssthresh.clamp(REGAINED * self.reno.window, self.reno.window);
        let queueing = rtt - self.base.min(rtt);
        if diff >= 1.0 {
            self.queueing_min = self.queueing_min.min(queueing);
        }
        if queueing >= 2.0 * self.queueing_min {
            let backed_off = self.reno.window * self.base / (2.0 * rtt);
            self.reno.window = self.reno.window.min(backed_off.max(vegas::WINDOW_MIN));
            self.queueing_min = f64::INFINITY;
        }
    }
}

impl Controller for Wvegas {
    fn hears_first(&self) -> bool {
        false
    }

    fn on_ack(&mut self, _path: &PathView, ack: &Ack) {
        if let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero()) {
            self.base = self.base.min(rtt.as_secs_f64());
        }
        (self.limit, self.phase) = (ack.limit, ack.phase);
        if ack.phase == Phase::Open && ack.limit == Limit::Window {
            self.reno.window += (self.reno.ssthresh - self.reno.window).clamp(0.0, ack.newly_acked);
        }
    }

    fn on_round(&mut self, _path: &PathView, round: &Round) {
        let rtt = round.rtt_mean.filter(|rtt| !rtt.is_zero()).map(Span::as_secs_f64);
        if let Some(rtt) = rtt.filter(|_| self.phase == Phase::Open && self.base.is_finite()) {
            self.step(rtt);
        }
    }

    fn on_group(&mut self, _path: &PathView, group: &[PathSummary]) {
        let rate: f64 = lia::known(group).map(|(window, rtt)| window / rtt).sum();
        let own = group.iter().find(|path| path.own).and_then(|own| lia::known(std::slice::from_ref(own)).next());
        if let Some((window, rtt)) = own {
            self.share = window / rtt / rate;
        }
    }

    fn on_loss(&mut self, path: &PathView, loss: &Loss) {
        self.reno.on_loss(path, loss);
    }

    fn on_undo(&mut self, path: &PathView) {
        self.reno.on_undo(path);
    }

    fn on_restart(&mut self, path: &PathView, restart: Restart) {
        self.reno.on_restart(path, restart);
        if restart == Restart::PathChanged {
            *self = Self::new(&self.settings);
        }
    }

    fn window(&self) -> f64 {
        self.reno.window
    }

    fn copy(&self) -> Option<Box<dyn Controller>> {
        Some(Box::new(self.clone()))
    }

    fn gauges(&self, gauges: &mut Gauges) {
        self.reno.gauges(gauges);
        gauges.show("alpha", self.alpha);
        gauges.show("rtt_base_s", self.base);
    }
}

/// Segments queued that end slow start, as Vegas' gamma.
const GAMMA: f64 = 1.0;

/// The share of the window that slow start regains after a back-off, as Linux sets ssthresh at the end of each round
/// (`tcp_current_ssthresh`).
const REGAINED: f64 = 0.75;

/// The least alpha of a path: with less, it would not notice that the others have left.
const ALPHA_LEAST: f64 = 2.0;

#[cfg(test)]
mod tests;
