//! FAST: keeps alpha segments in the queues of the path, which it computes from RTTs. One law with parts, one part a paper.
//!
//! ```text
//! window:    every second round trip  w ← (1 − gamma) w + gamma (old · baseRTT/avgRTT + alpha)       window
//! avgRTT:    avgRTT ← avgRTT + (rtt − avgRTT) · min(weight, 3/w)                                     estimator
//! base_rtt:  the least RTT, of all or of recent ones; under `reroute` until the RTT stays high after a decrease of the window   base_rtt
//! refill:    after fast recovery the window law; under `ccafr` by the ACK until ACKs are even        refill
//! loss:      halves the window; under `composite` not if it is random                                loss
//! ```
//!
//! Citation: fast-2006; rrfast-2017 (`base_rtt`), emfast-2019 (`refill`), ctcp-2019 (`loss`). `fast` has none of the three, `rrfast` and
//! `emfast` have one each, and any part can be set in every row. Each part is arithmetic on floats in a module of its own, which the
//! model of ns-2's agent calls too; each module says how it differs from its paper.
//!
//! Differs from the paper in:
//! * Multiplicative increase counts acknowledged segments, not ACKs; so does the step by step growth to a target (rfc-3465).
//! * An increase is not rounded to whole segments, so the window rests where exactly alpha segments are queued. ns-2's module rounds, and
//!   has its own rounds and its own `old`: [`module`], set by `clockwork`.
//! * The RTT of the handshake is no sample: its segments are shorter, and the longer transmission time of data would count as queue.
//!   A segment of less than half the full size does not lower baseRTT either, if a full one was acknowledged before. At 10 Mbit/s a packet takes
//!   1.2 ms, and the multiplicative increase ends at 0.75 ms. ns-2's module takes all samples.
//! * While the application, not the window, limits the sender, the window does not grow. It shrinks only if the sent segments keep more
//!   than alpha segments queued: data that was not sent cannot queue.
//!
//! The choice of alpha. In equilibrium alpha segments of s bits wait for a bottleneck of rate C, so the queueing delay is alpha s/C.
//! While the smoothed delay is below a threshold, the window increases multiplicatively. If alpha s/C is below the threshold there is no equilibrium:
//! the increase doubles the window until a queue builds up, the updates drain that queue, and so on. If alpha s/C is only a little above the
//! threshold, the oscillation after the start still takes the smoothed delay below it. Rule of thumb: alpha s/C is at least 4 thresholds,
//! which is 3 ms by default. At 40 Mbit/s, 50 ms and 1040 B, alpha 10 is 2.1 ms: on average some 60 segments wait instead of 10,
//! in ns-2 as well as here. With 15 or more the window rests. A smaller alpha is for slower links, or for a smaller threshold.
//!
//! Limits. A late comer takes the standing queue for propagation delay and gets more than its share; of two flows the ratio is the golden ratio.
//! Delay without a queue, such as jitter or a coarse clock, counts as queue. A rival that fills the queue takes the rate.

pub mod base_rtt;
mod clockwork;
pub mod estimator;
pub mod loss;
pub mod module;
pub mod refill;
mod settings;
pub mod window;

use anabranch_units::{Bytes, Time};

use self::base_rtt::{Average, Reroute, Route};
pub use self::clockwork::Which as ClockworkKind;
use self::clockwork::{Clockwork, Rtts, Which};
use self::estimator::Estimator;
use self::loss::Policy;
use self::refill::{Ccafr, Mode, Refill};
pub use self::settings::{FastSettings, MultiplicativeIncrease};
use self::window::Goal;
use crate::composite::Composite;
use crate::controller::{Ack, Controller, Gauges, Limit, Loss, PathView, Phase, Restart, Signal};
use crate::number::{greater, seconds};
use crate::row::{Law, LossContract, LossResponse, Row};

pub(crate) const ROW: Row = Row {
    name: "fast",
    summary: "FAST TCP: keeps alpha segments queued, by delay",
    citation: "fast-2006",
    loss_contract: LOSS_CONTRACT,
    law: &Law { defaults: FastSettings::FAST, make },
};

/// The window after a loss that every row of the family guarantees.
pub(crate) const LOSS_CONTRACT: LossContract = LossContract {
    shrinks_above: window::WINDOW_MIN,
    timeout_window_max: loss::WINDOW_AFTER_TIMEOUT,
    // Under `halve` a random loss halves the window, too.
    loss: LossResponse::MayHold { citation: "ctcp-2019 sec. 3" },
};

/// A controller of the family.
pub(crate) fn make(settings: &FastSettings) -> Box<dyn Controller> {
    let fast = Box::new(Fast::new(*settings));
    match settings.loss {
        Policy::Halve => fast,
        Policy::Composite => Box::new(Composite::new(fast)),
    }
}

/// The window of FAST for one path.
#[derive(Clone, Debug)]
pub struct Fast {
    settings: FastSettings,
    /// `None`: baseRTT is never forgotten.
    reroute_rule: Option<base_rtt::Rule>,
    /// Segments; finite, at least the lesser of [`window::WINDOW_MIN`] and the initial window.
    window: f64,
    estimator: Estimator,
    clockwork: Clockwork,
    reroute: Reroute,
    /// Reroutes so far, for the gauges.
    reroutes: u64,
    ccafr: Ccafr,
    /// The window before the latest loss, until that loss is undone.
    before_loss: Option<f64>,
    /// The flight when the last acknowledged segment left, for the gauges.
    old: f64,
    /// Whether a full segment was among the samples. ns-2's module does not distinguish.
    is_base_of_full: bool,
}

/// A segment is short if this many times its length is less than a full one. Its transmission takes less time, so its RTT suggests a shorter path.
const SHORT: u64 = 2;

impl Fast {
    /// Sets alpha, in segments: the part of one path where several paths share an alpha ([`super::mpfast`]).
    pub(crate) fn set_alpha(&mut self, alpha: f64) {
        self.settings.goal.alpha = alpha;
    }

    pub(crate) fn new(settings: FastSettings) -> Self {
        Self {
            settings,
            reroute_rule: settings.base_rtt.settings().map(base_rtt::Settings::rule),
            window: settings.initial_window,
            estimator: Estimator::new(),
            clockwork: Clockwork::new(settings.clockwork),
            reroute: Reroute::new(),
            reroutes: 0,
            ccafr: Ccafr::new(),
            before_loss: None,
            old: 0.0,
            is_base_of_full: settings.clockwork == Which::Module,
        }
    }

    /// The value of a sample of `rtt` seconds. The sample of a short segment does not lower the baseRTT of full ones, and the first sample of a full
    /// segment discards those of short ones.
    fn of_full(&mut self, rtt: f64, size: Bytes, mss: Bytes) -> f64 {
        let is_short = SHORT * size.count() < mss.count();
        if is_short || !self.is_base_of_full { self.of_another_size(rtt, is_short) } else { rtt }
    }

    fn of_another_size(&mut self, rtt: f64, is_short: bool) -> f64 {
        if self.settings.clockwork == Which::Module {
            return rtt;
        }
        if is_short {
            let has_base = self.is_base_of_full && self.estimator.is_known();
            return if has_base { greater(rtt, self.estimator.base()) } else { rtt };
        }
        self.is_base_of_full = true;
        self.estimator.forget();
        rtt
    }

    /// Takes an RTT sample at `now`.
    fn measure(&mut self, now: f64, rtt: f64) {
        self.estimator.on_rtt(rtt, self.window, &self.settings.weights);
        if let (Some(settings), Some(rule)) = (self.settings.base_rtt.settings(), &self.reroute_rule)
            && self.reroute.on_rtt(now, rtt, self.estimator.base(), rule) == Route::Longer
        {
            // The route is longer: the estimates begin with this sample.
            self.reroutes += 1;
            match settings.average {
                Average::Restarted => self.estimator.forget(),
                Average::Kept => self.estimator.forget_base(),
            }
            self.estimator.on_rtt(rtt, self.window, &self.settings.weights);
        }
    }

    /// The window after an ACK outside fast recovery, for a sender that fills it.
    fn advance(&mut self, now: f64, rtt: f64, ack: &Ack) -> f64 {
        let (base, average, old) = (self.estimator.base(), self.estimator.average(), self.old);
        let FastSettings { goal, increase, .. } = self.settings;
        let rtts = Rtts { base, average };
        if self.clockwork.counts_first_series() || self.ccafr.mode() != Mode::FirstSeries {
            self.clockwork.on_ack(now, rtt);
        }
        if let Some(rule) = self.settings.refill.rule() {
            let facts = refill::Facts { window: self.window, old, acked: ack.newly_acked, rtt, base, average };
            if let Some(window) = self.ccafr.on_ack(&facts, &goal, rule) {
                self.clockwork.interrupt();
                return window;
            }
        }
        if window::increases_multiplicatively(base, average, increase.threshold) {
            self.clockwork.on_multiplicative_increase(now);
            return self.window + ack.newly_acked;
        }
        let mut window = self.window;
        if let Some(target) = self.clockwork.target(now, (window, old), &rtts, &goal) {
            window = self.clockwork.turn_to(window, target, &rtts);
            if let Some(rule) = &self.reroute_rule {
                self.reroute.on_update(now, self.window, target, rtt, rule);
            }
        }
        self.clockwork.hand_out(window, ack.newly_acked)
    }
}

impl Controller for Fast {
    fn hears_first(&self) -> bool {
        false
    }

    fn on_ack(&mut self, path: &PathView, ack: &Ack) {
        let now = seconds(ack.arrival.since(Time::ZERO));
        if let Some(rule) = self.settings.refill.rule() {
            self.ccafr.on_arrival(now, rule);
        }
        // In fast recovery neither the window nor the estimates change.
        if ack.phase == Phase::Recovery {
            self.clockwork.on_recovery(now);
            return;
        }
        let mut sample = self.clockwork.sample(now, ack, self.estimator.average());
        if let Some(rtt) = &mut sample {
            *rtt = self.of_full(*rtt, ack.size, path.mss);
            self.measure(now, *rtt);
        }
        if !self.estimator.is_known() {
            return;
        }
        self.old = self.clockwork.old(now, ack, path.flight);
        let (base, average) = (self.estimator.base(), self.estimator.average());
        let is_limited = ack.limit == Limit::Application;
        if is_limited && Goal::backlog(self.old, base, average) <= self.settings.goal.alpha {
            self.clockwork.interrupt();
            return;
        }
        let window = self.advance(now, sample.unwrap_or(average), ack);
        self.window = if is_limited { window.min(self.window) } else { window };
    }

    fn on_loss(&mut self, _path: &PathView, loss: &Loss) {
        self.before_loss = Some(self.window);
        self.clockwork.interrupt();
        self.ccafr.end();
        self.window = match loss.signal {
            Signal::Timeout => loss::time_out(self.window),
            Signal::DupAcks | Signal::Ecn => loss::halve(self.window),
        };
    }

    fn on_recovered(&mut self, _path: &PathView) {
        if self.settings.refill != Refill::PerRtt {
            self.clockwork.begin_refill(&mut self.ccafr);
        }
    }

    fn on_undo(&mut self, _path: &PathView) {
        if let Some(window) = self.before_loss.take() {
            self.window = self.window.max(window);
            // Nothing was drained, so there is nothing to refill.
            self.ccafr.end();
        }
    }

    fn on_restart(&mut self, path: &PathView, restart: Restart) {
        match restart {
            Restart::Established => {
                // So far the handshake has given the only RTT.
                if let Some(rtt) = path.rtt_smoothed.filter(|rtt| !rtt.is_zero()) {
                    let rtt = rtt.as_secs_f64();
                    self.clockwork.on_established(path.now.as_secs_f64(), rtt);
                    if self.settings.clockwork == Which::Module {
                        self.estimator.on_rtt(rtt, self.window, &self.settings.weights);
                    }
                }
            }
            Restart::AfterTimeout => {}
            // [rfc-5681] sec. 4.1.
            Restart::Idle => {
                self.clockwork.interrupt();
                self.window = self.window.min(self.settings.initial_window);
            }
            Restart::PathChanged => *self = Self { reroutes: self.reroutes, ..Self::new(self.settings) },
        }
    }

    fn window(&self) -> f64 {
        self.window
    }

    fn copy(&self) -> Option<Box<dyn Controller>> {
        Some(Box::new(self.clone()))
    }

    fn gauges(&self, gauges: &mut Gauges) {
        let (base, average) = (self.estimator.base(), self.estimator.average());
        let is_known = self.estimator.is_known();
        gauges.show("window", self.window);
        gauges.show("backlog", if is_known { Goal::backlog(self.old, base, average) } else { 0.0 });
        gauges.show("rtt_base_s", base);
        gauges.show("rtt_average_s", average);
        gauges.show("increase_pending", self.clockwork.pending());
        if self.reroute_rule.is_some() {
            gauges.show("reroutes", self.reroutes as f64);
        }
        if self.settings.refill != Refill::PerRtt {
            gauges.show("ipd_s", self.ccafr.ipd());
            gauges.show("ipd_average_s", self.ccafr.ipd_average());
            // 0 off, 1 the first series, 2 filling.
            gauges.show("refill_mode", f64::from(self.ccafr.mode() as u8));
        }
    }
}

#[cfg(test)]
mod tests;
