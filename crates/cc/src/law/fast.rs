//! FAST: keeps alpha segments in the queues of the path, which it computes from RTTs. One law with parts, one part a paper.
//!
//! ```text
//! window:    every second round trip  w ← (1 − gamma) w + gamma (old · baseRTT/avgRTT + alpha)       window
//! avgRTT:    avgRTT ← avgRTT + (rtt − avgRTT) · min(weight, 3/w)                                     estimator
//! base_rtt:  the least RTT, of all or of recent ones; under `reroute` until the RTT stays high after a decrease of the window   base_rtt
//! refill:    after fast recovery the window law; under `ccafr` by the ACK until ACKs are even        refill
//! loss:      halves the window; under `composite` not if it is random,                               loss
//!            under `trial` only after a trial has shown that it is congestion                        trial
//! ```
//!
//! Citation: fast-2006; rrfast-2017 (`base_rtt`), emfast-2019 (`refill`), ctcp-2019 (`loss`); `trial` is ours. `fast` has none of the three,
//! `rrfast` and `emfast` have one each, [`super::yielding`] has all, and any part can be set in every row. Each part is arithmetic on
//! floats in a module of its own, which the model of ns-2's agent calls too; each module says how it differs from its paper.
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
//! * Off in all rows but `yielding`: [`trial`], [`noise`], [`drain`], [`memory`], the bounds of multiplicative increase, and `base_rise_most`,
//!   `base_rtt.interval`, `loss.random_most`.
//!
//! The choice of alpha. In equilibrium alpha segments of s bits wait for a bottleneck of rate C, so the queueing delay is alpha s/C.
//! While the smoothed delay is below a threshold, the window increases multiplicatively. If alpha s/C is below the threshold there is no equilibrium:
//! the increase doubles the window until a queue builds up, the updates drain that queue, and so on. If alpha s/C is only a little above the
//! threshold, the oscillation after the start still takes the smoothed delay below it. Rule of thumb: alpha s/C is at least 4 thresholds,
//! which is 3 ms by default. At 40 Mbit/s, 50 ms and 1040 B, alpha 10 is 2.1 ms: on average some 60 segments wait instead of 10,
//! in ns-2 as well as here. With 15 or more the window rests. A smaller alpha is for slower links, or for a smaller threshold.
//!
//! Limits. A late comer takes the standing queue for propagation delay and gets more than its share; of two flows the ratio is the golden ratio.
//! Where [`noise`] is off, delay without a queue, such as jitter or a coarse clock, counts as queue. A rival that fills the queue takes the rate.

mod answer;
pub mod base_rtt;
mod clockwork;
pub mod drain;
pub mod estimator;
mod gauges;
pub mod loss;
pub mod memory;
pub mod module;
pub mod noise;
pub mod refill;
mod settings;
pub mod trial;
pub mod window;

use anabranch_units::{Bytes, Rate, Time};

use self::base_rtt::{Average, Reroute, Route};
pub use self::clockwork::Which as ClockworkKind;
use self::clockwork::{Clockwork, Rtts, Which};
use self::drain::{Action, Drain};
use self::estimator::Estimator;
use self::loss::Policy;
use self::memory::Memory;
use self::noise::{Noise, Sample};
use self::refill::{Ccafr, Mode};
pub use self::settings::{FastSettings, MultiplicativeIncrease};
use self::trial::Trial;
use self::window::{Goal, Pipe};
use crate::composite::Composite;
use crate::controller::{Ack, Controller, Gauges, Limit, Loss, PathView, Phase, Restart, Sent, Transmission};
use crate::number::{greater, is_known, lesser, seconds};
use crate::recent::{RecentMax, RecentMin};
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
    // Under `halve`, and beyond `loss.random_most`, a random loss halves the window, too; under `trial` another loss may not.
    loss: LossResponse::MayHold { citation: "ctcp-2019 sec. 3" },
};

/// A controller of the family.
pub(crate) fn make(settings: &FastSettings) -> Box<dyn Controller> {
    let fast = Box::new(Fast::new(*settings));
    match settings.loss {
        Policy::Halve | Policy::Trial { .. } => fast,
        Policy::Composite { random_most } => Box::new(Composite::believing(fast, random_most)),
    }
}

/// The window of FAST for one path.
#[derive(Clone, Debug)]
pub struct Fast {
    settings: FastSettings,
    /// `None`: baseRTT is never forgotten.
    reroute_rule: Option<base_rtt::Rule>,
    /// `None`: there are no trials.
    trial_rule: Option<trial::Rule>,
    /// Segments; finite, at least the lesser of [`window::WINDOW_MIN`] and the initial window.
    window: f64,
    estimator: Estimator,
    clockwork: Clockwork,
    reroute: Reroute,
    /// When a reroute was last detected, in seconds; minus infinity if never.
    rerouted: f64,
    /// Reroutes so far, for the gauges.
    reroutes: u64,
    ccafr: Ccafr,
    /// The window and the memory before the latest loss, until that loss is undone.
    before_loss: Option<(f64, Memory)>,
    drain: Drain,
    /// avgRTT in seconds.
    averages: RecentMax,
    /// Until when a decrease says nothing about the route, in seconds: after a drain, other flows regain their shares.
    shares_move_until: f64,
    memory: Memory,
    noise: Noise,
    least: RecentMin,
    /// The factor of alpha for the noise.
    alpha_scale: f64,
    trial: Trial,
    /// Trials so far, for the gauges.
    trials: u64,
    repair: Repair,
    /// The segments queued at the latest loss outside of a trial; in a trial fewer are queued.
    queued: f64,
    /// The flight when the last acknowledged segment left, for the gauges.
    old: f64,
    /// The last RTT sample in seconds; infinite before the first.
    rtt: f64,
    /// The pacing rate during multiplicative increase; `None` otherwise.
    rate: Option<Rate>,
    /// The segments that are known to fit on the path.
    pipe: Pipe,
    /// RTTs in seconds. The least of a round trip shows the delay of the standing queue.
    standing: RecentMin,
    /// Unacknowledged segments that leave in one burst after idle time: they queue behind each other.
    burst: f64,
    /// Whether a full segment was among the samples. ns-2's module does not distinguish.
    is_base_of_full: bool,
}

/// A segment is short if this many times its length is less than a full one. Its transmission takes less time, so its RTT suggests a shorter path.
const SHORT: u64 = 2;

/// Multiplicative increase ends when the delay is this share of the delay that noise alone may cause. In equilibrium the share is one.
const NOISE_MOST: f64 = 0.75;

/// The loss that is being repaired, and the response of this law to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    /// No loss.
    None,
    /// A loss that left the window alone: no fast recovery.
    Spared,
    /// A loss that has reduced the window. Further losses of the same flight belong to it.
    Answered,
}

impl Fast {
    /// Sets alpha, in segments: the part of one path where several paths share an alpha ([`super::mpfast`]). Not for laws whose losses change alpha.
    pub(crate) fn set_alpha(&mut self, alpha: f64) {
        debug_assert!(self.settings.memory.is_none(), "losses do not change alpha");
        self.settings.goal.alpha = alpha;
        self.memory = Memory::new(alpha);
    }

    pub(crate) fn new(settings: FastSettings) -> Self {
        let span = settings.memory.map_or(0.0, |rule| rule.span);
        Self {
            settings,
            reroute_rule: settings.base_rtt.map(|reroute| reroute.rule()),
            trial_rule: match settings.loss {
                Policy::Trial { random_most: most } => Some(trial::Rule { most, span }),
                Policy::Halve | Policy::Composite { .. } => None,
            },
            window: settings.initial_window,
            estimator: Estimator::new(),
            clockwork: Clockwork::new(settings.clockwork),
            reroute: Reroute::new(),
            rerouted: f64::NEG_INFINITY,
            reroutes: 0,
            ccafr: Ccafr::new(),
            before_loss: None,
            drain: Drain::default(),
            averages: RecentMax::NONE,
            shares_move_until: f64::NEG_INFINITY,
            memory: Memory::new(settings.goal.alpha),
            noise: Noise::new(),
            least: RecentMin::NONE,
            alpha_scale: 1.0,
            trial: Trial::new(),
            trials: 0,
            repair: Repair::None,
            queued: 0.0,
            old: 0.0,
            rtt: f64::INFINITY,
            rate: None,
            pipe: Pipe::new(),
            standing: RecentMin::NONE,
            burst: settings.initial_window,
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
        (self.least, self.noise) = (RecentMin::NONE, Noise::new());
        rtt
    }

    /// Takes an RTT sample at `now`.
    fn measure(&mut self, path: &PathView, now: f64, Sample { rtt, standing }: Sample, acked: f64) {
        self.rtt = rtt;
        // An ACK of many segments counts as one sample for each of them.
        let window = if self.settings.noise.is_some() { self.window / greater(acked, 1.0) } else { self.window };
        let before = self.estimator.base();
        self.estimator.on_rtt(standing, window, &self.settings.weights);
        if let Some(drain) = &self.settings.drain
            && drain.base_window > 0.0
        {
            self.estimator.raise_base(self.least.add(now, rtt, drain.base_window));
        }
        if let (Some(settings), Some(rule)) = (&self.settings.base_rtt, &self.reroute_rule)
            && self.reroute.on_rtt(now, rtt, self.estimator.base(), rule) == Route::Longer
            && now - self.rerouted >= settings.interval
        {
            self.take_route(now, rtt, settings.average);
        }
        // However many reroutes are detected, baseRTT stays below a multiple of the least RTT that the path ever had. Only a rise can exceed it.
        if (!is_known(before) || self.estimator.base() > before)
            && let Some(rtt_min) = path.rtt_min.filter(|rtt| !rtt.is_zero())
        {
            self.estimator.bound_base(seconds(rtt_min) * self.settings.base_rise_most);
        }
    }

    /// Starts anew on a longer route: the estimates begin with a sample of `rtt` seconds.
    fn take_route(&mut self, now: f64, rtt: f64, average: Average) {
        (self.rerouted, self.reroutes) = (now, self.reroutes + 1);
        self.memory = Memory::new(self.settings.goal.alpha);
        self.least = RecentMin::NONE;
        self.pipe = Pipe::new();
        match average {
            Average::Restarted => self.estimator.forget(),
            Average::Kept => self.estimator.forget_base(),
        }
        self.estimator.on_rtt(rtt, self.window, &self.settings.weights);
    }

    /// Removes from a sample the wait behind segments of the same burst: only the first segment of a burst shows the delay of the path.
    fn without_burst(&mut self, sample: Sample, acked: f64) -> Sample {
        if self.burst <= 0.0 {
            return sample;
        }
        self.burst -= acked;
        Sample { standing: lesser(sample.standing, self.estimator.base()), ..sample }
    }

    /// Segments to keep queued: alpha after the reduction by losses, times the factor for noise.
    fn alpha(&self) -> f64 {
        self.memory.alpha() * self.alpha_scale
    }

    /// The longest delay of an ACK without a queue, in seconds; zero where noise is not measured.
    fn noise(&self) -> f64 {
        self.noise.level()
    }

    /// The pacing rate while the window increases multiplicatively.
    fn rate_of(&self, window: f64, rtt: f64, mss: Bytes) -> Option<Rate> {
        let pace = self.settings.increase.pace;
        let bits = pace * window / rtt * 8.0 * mss.count() as f64;
        (pace > 0.0 && bits >= 1.0).then(|| Rate::from_bits_per_second(bits as u64))
    }

    /// The window after an ACK outside fast recovery, for a sender that fills it.
    fn advance(&mut self, now: f64, rtt: f64, mss: Bytes, ack: &Ack) -> f64 {
        let (base, average, old) = (self.estimator.base(), self.estimator.average(), self.old);
        let FastSettings { goal, increase, .. } = self.settings;
        let rtts = Rtts { base, average };
        if let Some(rule) = &self.settings.memory {
            self.memory.on_ack(now, goal.alpha, rule.span);
        }
        let goal = Goal { alpha: self.alpha(), ..goal };
        if self.clockwork.counts_first_series() || self.ccafr.mode() != Mode::FirstSeries {
            self.clockwork.on_ack(now, rtt);
        }
        if let Some(rule) = &self.settings.drain {
            // If losses have reduced alpha, the buffer is small, and a window that returns in bursts would be lost.
            let is_cut = self.memory.alpha() < self.settings.goal.alpha;
            let is_at_rest = self.ccafr.mode() == Mode::Off && self.trial.is_at_rest() && !is_cut;
            let may_begin = ack.limit == Limit::Window && is_at_rest;
            let (window, pending) = (self.window, self.clockwork.pending());
            let average_most = self.averages.add(now, average, average);
            let noise = self.noise();
            let facts = drain::Facts { now, rtt, base, average: average_most, window, pending, noise, may_begin };
            let action = self.drain.on_ack(&facts, rule);
            if action != Action::None {
                self.shares_move_until = now + drain::SHARES_MOVE * average;
            }
            match action {
                Action::None | Action::Aside => {}
                Action::Hold => return self.clockwork.hand_out(self.window, drain::RETURN * ack.newly_acked),
                Action::Fall(window) => {
                    self.clockwork.interrupt();
                    self.reroute.clear();
                    return window.max(window::WINDOW_MIN).min(self.window);
                }
                Action::Return { window, share } => {
                    return self.clockwork.turn_to(self.window, window * share + goal.alpha, &rtts);
                }
            }
        }
        // Noise raises alpha because of delay without a queue, and this delay may exist before the pipe is full.
        let most = greater(increase.queued_most, NOISE_MOST * (1.0 - 1.0 / self.alpha_scale));
        let has_room = Goal::backlog(old, base, rtt) < most * goal.alpha;
        let mut pipe = f64::INFINITY;
        if increase.is_known {
            // The segments of a burst queue behind each other. A standing queue, by contrast, does not drain within a round trip, and is longer than noise.
            let standing = self.standing.add(now, rtt, average);
            let is_full = Goal::backlog(old, base + self.noise(), standing) >= most * goal.alpha;
            let sample = ack.rtt.map_or(rtt, seconds);
            pipe = self.pipe.on_ack(now, ack.departure.flight, base, sample, is_full);
        }
        let threshold = greater(increase.threshold, NOISE_MOST * self.noise());
        let is_increasing = window::increases_multiplicatively(base, average, threshold)
            && self.memory.has_room(self.window)
            && has_room;
        if let Some(refill) = &self.settings.refill
            && !(is_increasing && refill.multiplicative_increase)
        {
            let facts = refill::Facts { window: self.window, old, acked: ack.newly_acked, rtt, base, average };
            if let Some(window) = self.ccafr.on_ack(&facts, &goal, &refill.rule) {
                self.clockwork.interrupt();
                let (window, may_go_on) = self.memory.bound(self.window, window);
                if !may_go_on {
                    self.ccafr.end();
                }
                return window;
            }
        }
        if is_increasing {
            self.clockwork.on_multiplicative_increase(now);
            let window = self.window + window::multiplicative_increase(self.window, ack.newly_acked, pipe, goal.alpha);
            self.rate = self.rate_of(window, rtt.min(average), mss);
            return window;
        }
        let mut window = self.window;
        if let Some(target) = self.clockwork.target(now, (window, old), &rtts, &goal) {
            window = self.clockwork.turn_to(window, target, &rtts);
            if let Some(rule) = self.reroute_rule.as_ref().filter(|_| now >= self.shares_move_until) {
                self.reroute.on_update(now, self.window, target, rtt, rule);
            }
        }
        self.clockwork.hand_out(window, ack.newly_acked)
    }
}

impl Controller for Fast {
    fn on_sent(&mut self, _path: &PathView, sent: &Sent) {
        if sent.transmission == Transmission::Again {
            self.memory.count(0.0, sent.segments);
        }
    }

    fn hears_first(&self) -> bool {
        false
    }

    fn on_ack(&mut self, path: &PathView, ack: &Ack) {
        self.rate = None;
        self.memory.count(ack.newly_acked, 0.0);
        let now = seconds(ack.arrival.since(Time::ZERO));
        if let Some(refill) = &self.settings.refill {
            self.ccafr.on_arrival(now, &refill.rule);
        }
        // In fast recovery neither the window nor the estimates change.
        if ack.phase == Phase::Recovery && self.repair != Repair::Spared {
            self.clockwork.on_recovery(now);
            return;
        }
        let mut sample = self.clockwork.sample(now, ack, self.estimator.average());
        if let Some(rtt) = &mut sample {
            *rtt = self.of_full(*rtt, ack.size, path.mss);
            let sample = match &self.settings.noise {
                Some(rule) => {
                    let sample = self.noise.on_rtt(now, *rtt, self.estimator.average(), rule);
                    self.without_burst(sample, ack.newly_acked)
                }
                None => Sample { rtt: *rtt, standing: *rtt },
            };
            *rtt = sample.rtt;
            self.measure(path, now, sample, ack.newly_acked);
        }
        if !self.estimator.is_known() {
            return;
        }
        self.old = self.clockwork.old(now, ack, path.flight);
        if let Some(rule) = &self.settings.noise {
            self.old = self.noise.on_flight(now, self.old, self.estimator.average(), rule);
            let rate = self.old / self.estimator.average();
            self.alpha_scale = self.noise.scale(self.settings.goal.alpha, rate, rule);
        }
        if let Some(rule) = self.trial_rule
            && self.repair != Repair::Answered
            && self.attempt(now, sample, ack, &rule)
        {
            return;
        }
        let (base, average) = (self.estimator.base(), self.estimator.average());
        let is_limited = ack.limit == Limit::Application;
        if is_limited && Goal::backlog(self.old, base, average) <= self.alpha() {
            self.clockwork.interrupt();
            return;
        }
        let window = self.advance(now, sample.unwrap_or(average), path.mss, ack);
        self.window = if is_limited { window.min(self.window) } else { window };
    }

    fn on_loss(&mut self, path: &PathView, loss: &Loss) {
        self.answer(path, loss);
    }

    fn on_recovered(&mut self, _path: &PathView) {
        if std::mem::replace(&mut self.repair, Repair::None) == Repair::Spared {
            return;
        }
        if self.settings.refill.is_some() {
            self.clockwork.begin_refill(&mut self.ccafr);
        }
    }

    fn on_undo(&mut self, _path: &PathView) {
        self.rate = None;
        self.trial.forgive();
        self.repair = Repair::None;
        if let Some((window, memory)) = self.before_loss.take() {
            (self.window, self.memory) = (self.window.max(window), memory);
            // Nothing was drained, so there is nothing to refill.
            self.ccafr.end();
        }
    }

    fn on_restart(&mut self, path: &PathView, restart: Restart) {
        self.rate = None;
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
            Restart::AfterTimeout => self.repair = Repair::None,
            // [rfc-5681] sec. 4.1.
            Restart::Idle => {
                self.clockwork.interrupt();
                // The senders of the papers are never idle.
                if self.settings.drain.is_some() {
                    self.estimator.rest();
                    self.drain.on_rest(path.now.as_secs_f64());
                }
                self.window = self.window.min(self.settings.initial_window);
                self.burst = self.window;
            }
            Restart::PathChanged => {
                *self = Self { reroutes: self.reroutes, trials: self.trials, ..Self::new(self.settings) };
            }
        }
    }

    fn window(&self) -> f64 {
        self.window
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.rate
    }

    fn copy(&self) -> Option<Box<dyn Controller>> {
        Some(Box::new(self.clone()))
    }

    fn gauges(&self, gauges: &mut Gauges) {
        self.show(gauges);
    }
}

#[cfg(test)]
mod tests;
