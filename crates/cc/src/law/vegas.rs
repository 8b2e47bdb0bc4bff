//! Vegas: keeps a few segments in the queue, and estimates their number from the RTT.
//!
//! ```text
//! once a round:      diff = (w/baseRTT − w/RTT) · baseRTT      (segments queued)
//! diff < alpha:      w ← w + 1/w each ACK of the next round;   diff > beta:  w ← w − 1;   else w stays
//! slow start:        doubles every second round, until diff > gamma: w ← 7w/8, and on as above
//! duplicate ACKs:    w ← 3w/4, and on as above
//! timeout:           ssthresh ← w/2, w ← 2
//! ```
//!
//! Citation: brakmo-1995 sec. 3; ns-2.35's agent where the paper is silent (the 7/8, the 3/4, the window after a timeout).
//!
//! Differs from the paper in:
//! * RTT is the mean of a round's samples, as in ns-2; the paper times one distinguished segment.
//! * w is the flight when the round's last acknowledged segment left, if that is less than the window: data that was not sent cannot
//!   queue.
//! * No retransmission by fine-grained timeout, which belongs to the transport. The paper's rule that a loss from before the last
//!   reduction does not reduce again holds, because the interface reports an episode once.

use crate::controller::{Ack, Controller, Gauges, Limit, Loss, PathView, Phase, Restart, Round, Signal};
use crate::law::reno;
use crate::row::{Law, LossContract, LossResponse, Row};
use crate::settings::{Fields, INITIAL_WINDOW, Table};

pub(crate) const ROW: Row = Row {
    name: "vegas",
    summary: "delay-based: keeps alpha to beta segments queued",
    citation: "brakmo-1995",
    loss_contract: LossContract {
        shrinks_above: WINDOW_MIN,
        timeout_window_max: WINDOW_MIN,
        loss: LossResponse::Shrinks,
    },
    law: &Law { defaults: VegasSettings::DEFAULT, make: |settings| Box::new(Vegas::new(settings)) },
};

/// The settings of Vegas, in segments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VegasSettings {
    /// The window before the first ACK.
    pub initial_window: f64,
    /// The window grows below this many queued segments.
    pub alpha: f64,
    /// The window shrinks above this many queued segments; at least `alpha`.
    pub beta: f64,
    /// Slow start ends above this many queued segments.
    pub gamma: f64,
}

impl VegasSettings {
    /// The agent in ns-2.35 uses 1, 3, 1, and so does brakmo-1995 for Vegas-1,3.
    pub const DEFAULT: Self = Self { initial_window: INITIAL_WINDOW, alpha: 1.0, beta: 3.0, gamma: 1.0 };
}

impl Table for VegasSettings {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        const QUEUED: std::ops::RangeInclusive<f64> = 0.0..=10_000.0;
        fields.initial_window(&mut self.initial_window);
        fields.number("alpha", &mut self.alpha, QUEUED, "segments", "the window grows below this many queued segments");
        let help = "the window shrinks above this many queued segments; at least alpha";
        fields.number("beta", &mut self.beta, QUEUED, "segments", help);
        fields.number("gamma", &mut self.gamma, QUEUED, "segments", "slow start ends above this many queued segments");
    }
}

/// The least window in segments, also after a timeout (ns-2.35).
pub const WINDOW_MIN: f64 = 2.0;

/// The paper's diff, in segments, from rates in segments per second and baseRTT in seconds.
pub fn diff(expected: f64, actual: f64, base: f64) -> f64 {
    (expected - actual) * base
}

/// The queued segments of a window, if a round trip takes `rtt` and an empty one `base`, both in seconds.
pub fn backlog(window: f64, base: f64, rtt: f64) -> f64 {
    diff(window / base, window / rtt, base)
}

/// The direction of the window in the next round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The window grows.
    Up,
    /// The window stays: the backlog is between alpha and beta, both included.
    Hold,
    /// The window shrinks.
    Down,
}

/// The step in congestion avoidance for `backlog` segments queued.
pub fn step(backlog: f64, alpha: f64, beta: f64) -> Step {
    if backlog > beta {
        Step::Down
    } else if backlog < alpha {
        Step::Up
    } else {
        Step::Hold
    }
}

/// The window one step down.
pub fn step_down(window: f64) -> f64 {
    (window - 1.0).max(WINDOW_MIN)
}

/// The window after slow start has found more than gamma segments queued.
pub fn leave_slow_start(window: f64) -> f64 {
    (window - window / 8.0).max(WINDOW_MIN)
}

/// The window after a loss detected by duplicate ACKs.
pub fn reduce(window: f64) -> f64 {
    (window - window / 4.0).max(WINDOW_MIN)
}

/// The window of Vegas for one path.
#[derive(Clone, Debug)]
pub struct Vegas {
    /// Segments; finite, at least the lesser of [`WINDOW_MIN`] and the initial window.
    window: f64,
    /// Segments; slow start goes on below it.
    ssthresh: f64,
    /// The direction in the present round: [`Step::Up`] grows by ACKs, in slow start by one each.
    step: Step,
    /// Window, ssthresh and step before the latest loss, until that loss is undone.
    before_loss: Option<(f64, f64, Step)>,
    /// Least RTT sample in seconds; infinite before the first.
    base: f64,
    /// The latest diff, in segments.
    backlog: f64,
    /// Segments in flight when the latest acknowledged segment left.
    flight: f64,
    phase: Phase,
    window_initial: f64,
    alpha: f64,
    /// At least `alpha`.
    beta: f64,
    gamma: f64,
}

impl Vegas {
    pub(crate) fn new(settings: &VegasSettings) -> Self {
        let window_initial = settings.initial_window;
        let alpha = settings.alpha;
        Self {
            window: window_initial,
            ssthresh: f64::INFINITY,
            step: Step::Up,
            before_loss: None,
            base: f64::INFINITY,
            backlog: 0.0,
            flight: window_initial,
            phase: Phase::Open,
            window_initial,
            alpha,
            beta: settings.beta.max(alpha),
            gamma: settings.gamma,
        }
    }

    fn is_slow_start(&self) -> bool {
        self.window < self.ssthresh
    }

    fn leave_slow_start(&mut self) {
        self.ssthresh = WINDOW_MIN;
        self.step = Step::Hold;
    }
}

impl Controller for Vegas {
    fn on_ack(&mut self, _path: &PathView, ack: &Ack) {
        if let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero()) {
            self.base = self.base.min(rtt.as_secs_f64());
        }
        (self.flight, self.phase) = (ack.departure.flight, ack.phase);
        if ack.phase == Phase::Open && ack.limit == Limit::Window && self.step == Step::Up {
            self.window = reno::advance(self.window, self.ssthresh, ack.newly_acked);
        }
    }

    fn on_round(&mut self, _path: &PathView, round: &Round) {
        let Some(rtt) = round.rtt_mean.filter(|rtt| !rtt.is_zero()) else { return };
        if self.phase == Phase::Recovery {
            return;
        }
        // No sample is below the least one, but a driver's mean may be rounded.
        let rtt = rtt.as_secs_f64().max(self.base);
        // [brakmo-1995] sec. 3.2: diff = expected − actual, in segments as alpha and beta are.
        self.backlog = backlog(self.window.min(self.flight), self.base.min(rtt), rtt);
        if !self.is_slow_start() {
            self.step = step(self.backlog, self.alpha, self.beta);
            if self.step == Step::Down {
                self.window = self.window.min(step_down(self.window));
            }
        } else if self.step == Step::Up {
            // [brakmo-1995] sec. 3.3: "exponential growth only every other RTT", so that a valid comparison is possible in the other round.
            self.step = Step::Hold;
        } else if self.backlog > self.gamma {
            self.window = self.window.min(leave_slow_start(self.window));
            self.leave_slow_start();
        } else {
            self.step = Step::Up;
        }
    }

    fn on_loss(&mut self, _path: &PathView, loss: &Loss) {
        self.before_loss = Some((self.window, self.ssthresh, self.step));
        match loss.signal {
            Signal::Timeout => {
                self.ssthresh = reno::halve(self.window);
                self.step = Step::Up;
                self.window = self.window.min(WINDOW_MIN);
            }
            Signal::DupAcks | Signal::Ecn => {
                self.window = self.window.min(reduce(self.window));
                self.leave_slow_start();
            }
        }
    }

    fn on_undo(&mut self, _path: &PathView) {
        if let Some((window, ssthresh, step)) = self.before_loss.take() {
            (self.window, self.ssthresh) = (self.window.max(window), self.ssthresh.max(ssthresh));
            self.step = step;
        }
    }

    fn on_restart(&mut self, _path: &PathView, restart: Restart) {
        match restart {
            Restart::Established | Restart::AfterTimeout => {}
            // [rfc-5681] sec. 4.1.
            Restart::Idle => self.window = self.window.min(self.window_initial),
            Restart::PathChanged => {
                (self.window, self.ssthresh) = (self.window_initial, f64::INFINITY);
                (self.step, self.base, self.backlog) = (Step::Up, f64::INFINITY, 0.0);
            }
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
        gauges.show("ssthresh", self.ssthresh);
        gauges.show("backlog", self.backlog);
        gauges.show("rtt_base_s", self.base);
    }
}

#[cfg(test)]
mod tests;
