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

use crate::controller::{
    Ack, Controller, Gauges, Limit, Loss, PathView, Phase, Reduction, Restart, Round, Signal, WINDOW_MIN,
};
use crate::law::reno;
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
    /// Segments; finite, at least [`WINDOW_MIN`].
    window: f64,
    /// Segments; infinite before the first loss.
    ssthresh: f64,
    /// Window and ssthresh before the latest loss, until that loss is undone.
    before_loss: Option<(f64, f64)>,
    /// BWE in segments per second; `None` before the first sample.
    bandwidth: Option<f64>,
    /// RTTmin in seconds; infinite before the first.
    rtt_min: f64,
    /// What limited the sender at the latest ACK.
    limit: Limit,
    window_initial: f64,
}

impl Westwood {
    pub(crate) fn new(settings: &WindowSettings) -> Self {
        let window_initial = settings.initial_window;
        let (ssthresh, rtt_min, limit) = (f64::INFINITY, f64::INFINITY, Limit::Window);
        Self { window: window_initial, ssthresh, before_loss: None, bandwidth: None, rtt_min, limit, window_initial }
    }

    /// The window that fills the path, as far as it is known.
    fn pipe(&self) -> f64 {
        match self.bandwidth {
            Some(bandwidth) if self.rtt_min.is_finite() => (bandwidth * self.rtt_min).max(reno::SSTHRESH_MIN),
            _ => reno::halve(self.window),
        }
    }
}

impl Controller for Westwood {
    fn on_ack(&mut self, _path: &PathView, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.rtt_min = self.rtt_min.min(rtt.as_secs_f64());
        }
        self.limit = ack.limit;
        if ack.phase == Phase::Open && ack.limit == Limit::Window {
            self.window = reno::advance(self.window, self.ssthresh, ack.newly_acked);
        }
    }

    fn on_round(&mut self, _path: &PathView, round: &Round) {
        if self.limit == Limit::Window && !round.elapsed.is_zero() {
            let sample = round.acked / round.elapsed.as_secs_f64();
            self.bandwidth = Some(self.bandwidth.map_or(sample, |estimate| filter(estimate, sample)));
        }
    }

    fn on_loss(&mut self, _path: &PathView, loss: &Loss) {
        self.before_loss = Some((self.window, self.ssthresh));
        self.ssthresh = self.pipe();
        self.window = match loss.signal {
            Signal::Timeout => WINDOW_MIN,
            Signal::DupAcks | Signal::Ecn => self.window.min(self.ssthresh),
        };
    }

    fn on_undo(&mut self, _path: &PathView) {
        if let Some((window, ssthresh)) = self.before_loss.take() {
            (self.window, self.ssthresh) = (self.window.max(window), self.ssthresh.max(ssthresh));
        }
    }

    fn on_restart(&mut self, _path: &PathView, restart: Restart) {
        match restart {
            Restart::Established | Restart::AfterTimeout => {}
            // [rfc-5681] sec. 4.1.
            Restart::Idle => self.window = self.window.min(self.window_initial),
            Restart::PathChanged => {
                (self.window, self.ssthresh) = (self.window_initial, f64::INFINITY);
                (self.bandwidth, self.rtt_min) = (None, f64::INFINITY);
            }
        }
    }

    fn window(&self) -> f64 {
        self.window
    }

    fn reduction(&self) -> Reduction {
        Reduction::Proportional
    }

    fn gauges(&self, gauges: &mut Gauges) {
        gauges.show("window", self.window);
        gauges.show("ssthresh", self.ssthresh);
        gauges.show("bandwidth_segments_per_s", self.bandwidth.unwrap_or(0.0));
        gauges.show("rtt_min_s", self.rtt_min);
    }
}

#[cfg(test)]
mod tests;
