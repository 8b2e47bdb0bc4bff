//! Gentle: one segment more a round, a tenth less on loss.
//!
//! ```text
//! each acknowledged segment:  w ← w + 1/w
//! loss by duplicate ACKs:     w ← 0.9 w
//! timeout:                    w ← 1
//! ```
//!
//! Citation: none-2026.
//!
//! Differs from the paper in: nothing.

use crate::controller::{Ack, Controller, Gauges, Limit, Loss, PathView, Phase, Restart, Signal, WINDOW_MIN};
use crate::row::{Law, LossContract, LossResponse, Row};
use crate::settings::WindowSettings;

pub(crate) const ROW: Row = Row {
    name: "gentle",
    summary: "one segment more a round, a tenth less on loss",
    citation: "none-2026",
    loss_contract: LossContract {
        shrinks_above: WINDOW_MIN,
        timeout_window_max: WINDOW_MIN,
        loss: LossResponse::Shrinks,
    },
    law: &Law { defaults: WindowSettings::DEFAULT, make: |settings| Box::new(Gentle::new(settings)) },
};

/// The gentle window of one path.
#[derive(Clone, Debug)]
pub struct Gentle {
    /// Segments; finite, at least [`WINDOW_MIN`].
    window: f64,
    /// The window before the latest loss, until that loss is undone.
    before_loss: Option<f64>,
    window_initial: f64,
}

impl Gentle {
    pub(crate) fn new(settings: &WindowSettings) -> Self {
        let window_initial = settings.initial_window;
        Self { window: window_initial, before_loss: None, window_initial }
    }
}

impl Controller for Gentle {
    fn on_ack(&mut self, _path: &PathView, ack: &Ack) {
        if ack.phase == Phase::Open && ack.limit == Limit::Window {
            self.window += ack.newly_acked / self.window;
        }
    }

    fn on_loss(&mut self, _path: &PathView, loss: &Loss) {
        self.before_loss = Some(self.window);
        self.window = match loss.signal {
            Signal::Timeout => WINDOW_MIN,
            Signal::DupAcks | Signal::Ecn => (self.window * 0.9).max(WINDOW_MIN),
        };
    }

    fn on_undo(&mut self, _path: &PathView) {
        self.window = self.window.max(self.before_loss.take().unwrap_or(self.window));
    }

    fn on_restart(&mut self, _path: &PathView, restart: Restart) {
        match restart {
            Restart::Established | Restart::AfterTimeout => {}
            Restart::Idle => self.window = self.window.min(self.window_initial),
            Restart::PathChanged => self.window = self.window_initial,
        }
    }

    fn window(&self) -> f64 {
        self.window
    }

    fn copy(&self) -> Option<Box<dyn Controller>> {
        Some(Box::new(self.clone()))
    }

    fn gauges(&self, gauges: &mut Gauges) {
        gauges.show("window", self.window);
    }
}

#[cfg(test)]
mod tests;
