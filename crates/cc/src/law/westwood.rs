//! Westwood+: Reno whose window after a loss is the measured delivery rate times the least RTT.
//!
//! ```text
//! once a round:            sample = acked/elapsed;   BWE ← 7/8 BWE + 1/8 sample     (segments per second)
//! each ACK:                as Reno;   RTTmin ← min(RTTmin, RTT)
//! duplicate ACKs:          ssthresh ← max(BWE · RTTmin, 2),   w ← min(w, ssthresh)
//! timeout:                 ssthresh as above,   w ← 1
//! ```
//!
//! Citation: westwood-2004; westwood-2001 for the idea.
//!
//! Differs from the paper in:
//! * A round ends with an ACK ([`crate::controller::Round`]), not when an RTT has passed; while ACKs arrive the two agree.
//! * A round in which the application did not fill the window gives no sample.
//! * Before the first sample a loss halves the window, as in Reno.

use crate::controller::{Ack, Controller, Gauges, Limit, Loss, PathView, Restart, Round, WINDOW_MIN};
use crate::law::reno::{self, Reno};
use crate::row::{Law, LossContract, LossResponse, Row};
use crate::settings::WindowSettings;

pub(crate) const ROW: Row = Row {
    name: "westwood",
    summary: "Westwood+: after a loss, the window is the delivery rate times the least RTT",
    citation: "westwood-2004, westwood-2001",
    loss_contract: LossContract {
        shrinks_above: reno::SSTHRESH_MIN,
        timeout_window_max: WINDOW_MIN,
        // A window that only fills the path is not the cause of a loss, and stays.
        loss: LossResponse::Holds { citation: "westwood-2004 sec. 2" },
    },
    law: &Law { defaults: WindowSettings::DEFAULT, make: |settings| Box::new(Westwood::new(settings)) },
};

/// The bandwidth estimate after a round that delivered at the rate `sample`, in the same unit.
pub fn filter(estimate: f64, sample: f64) -> f64 {
    (7.0 * estimate + sample) / 8.0
}

/// The window of Westwood+ for one path.
#[derive(Clone, Debug)]
pub struct Westwood {
    reno: Reno,
    /// BWE in segments per second; `None` before the first sample.
    bandwidth: Option<f64>,
    /// RTTmin in seconds; infinite before the first.
    rtt_min: f64,
    /// What limited the sender at the latest ACK.
    limit: Limit,
}

impl Westwood {
    pub(crate) fn new(settings: &WindowSettings) -> Self {
        Self { reno: Reno::new(settings), bandwidth: None, rtt_min: f64::INFINITY, limit: Limit::Window }
    }

    /// The window that fills the path, as far as it is known.
    fn pipe(&self) -> f64 {
        match self.bandwidth {
            Some(bandwidth) if self.rtt_min.is_finite() => (bandwidth * self.rtt_min).max(reno::SSTHRESH_MIN),
            _ => reno::halve(self.reno.window),
        }
    }
}

impl Controller for Westwood {
    fn on_ack(&mut self, path: &PathView, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.rtt_min = self.rtt_min.min(rtt.as_secs_f64());
        }
        self.limit = ack.limit;
        self.reno.on_ack(path, ack);
    }

    fn on_round(&mut self, _path: &PathView, round: &Round) {
        if self.limit == Limit::Window && !round.elapsed.is_zero() {
            let sample = round.acked / round.elapsed.as_secs_f64();
            self.bandwidth = Some(self.bandwidth.map_or(sample, |estimate| filter(estimate, sample)));
        }
    }

    fn on_loss(&mut self, _path: &PathView, loss: &Loss) {
        self.reno.reduce(self.pipe(), loss.signal);
    }

    fn on_restart(&mut self, path: &PathView, restart: Restart) {
        self.reno.on_restart(path, restart);
        if restart == Restart::PathChanged {
            (self.bandwidth, self.rtt_min) = (None, f64::INFINITY);
        }
    }

    reno::as_reno!();

    fn gauges(&self, gauges: &mut Gauges) {
        self.reno.gauges(gauges);
        gauges.show("bandwidth_segments_per_s", self.bandwidth.unwrap_or(0.0));
        gauges.show("rtt_min_s", self.rtt_min);
    }
}

#[cfg(test)]
mod tests;
