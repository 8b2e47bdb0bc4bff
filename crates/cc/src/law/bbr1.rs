//! BBR, version 1: sends at the largest recent delivery rate of the path, and does not respond to losses.
//!
//! ```text
//! bw ← largest delivery rate of 10 rounds,   rtt ← least RTT of 10 s,   bdp = bw · rtt
//! rate = 0.99 gain · bw,   window grows by what is acknowledged to window_gain · bdp + 3 quanta
//!
//! Startup (2.89, 2.89) ─ three rounds without growth ─> Drain (0.35, 2.89) ─ flight ≤ bdp ─> ProbeBW: a step each rtt of the
//! gains 1.25, 0.75, 1, 1, 1, 1, 1, 1 (window 2)         every 10 s without a lower RTT: ProbeRTT, four segments for 200 ms
//! first round of a fast recovery: what is acknowledged may leave again       timeout: window ← 1       after both: as before
//! ```
//!
//! Citation: bbr-draft-00; bbr-2016.
//!
//! Differs from bbr-draft-00 in:
//! * The pace is 1 % less than the bandwidth, as in Linux.
//! * Idle is what the transport reports as idle: nothing in flight for a retransmission timeout.
//! * Without an RTT from the handshake, the first sample sets the pace anew, as in Linux.
//!
//! Differs from Linux in: the draft, and so this law, has no long-term bandwidth for policers and no extra window for aggregated ACKs.

use anabranch_units::{Rate, Span, Time};

use crate::controller::{Ack, Controller, Ect, Gauges, Loss, PathView, Restart, Signal, WINDOW_MIN};
use crate::delivery::{HeldBack, RateSample, WindowedMax};
use crate::random::Random;
use crate::row::{Law, LossContract, LossResponse, Row};
use crate::settings::WindowSettings;

pub(crate) const ROW: Row = Row {
    name: "bbr1",
    summary: "BBR version 1: follows the path's largest delivery rate and least RTT; ignores losses",
    citation: "bbr-draft-00, bbr-2016",
    loss_contract: LossContract {
        shrinks_above: WINDOW_MIN,
        timeout_window_max: WINDOW_MIN,
        loss: LossResponse::MayHold { citation: "bbr-draft-00 sec. 4.2.3.4" },
    },
    law: &Law { defaults: WindowSettings::DEFAULT, make: |settings| Box::new(Bbr1::new(settings)) },
};

/// The state of BBR's state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    /// The step of [`GAINS`], and when it began.
    ProbeBw {
        step: usize,
        since: Time,
    },
    /// When it ends, once the flight is small enough, and whether a round has passed since.
    ProbeRtt {
        done: Option<Time>,
        is_round_done: bool,
    },
}

impl State {
    fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => GAIN_HIGH,
            Self::Drain => 1.0 / GAIN_HIGH,
            Self::ProbeBw { step, .. } => GAINS[step],
            Self::ProbeRtt { .. } => 1.0,
        }
    }

    fn window_gain(self) -> f64 {
        match self {
            Self::Startup | Self::Drain => GAIN_HIGH,
            Self::ProbeBw { .. } => 2.0,
            Self::ProbeRtt { .. } => 1.0,
        }
    }

    fn number(self) -> f64 {
        match self {
            Self::Startup => 0.0,
            Self::Drain => 1.0,
            Self::ProbeBw { .. } => 2.0,
            Self::ProbeRtt { .. } => 3.0,
        }
    }
}

/// The window and rate of BBR version 1 for one path.
#[derive(Clone, Debug)]
pub struct Bbr1 {
    state: State,
    /// Segments; finite, at least [`WINDOW_MIN`].
    window: f64,
    /// The window before a loss or ProbeRTT made it smaller.
    window_prior: f64,
    /// The window before the latest loss, until that loss is undone.
    before_loss: Option<f64>,
    /// Segments per second; `None` before the handshake is over.
    pace: Option<f64>,
    is_paced_by_rtt: bool,
    /// Bits of a full segment.
    segment_bits: f64,
    bw: WindowedMax,
    /// Seconds; infinite before the first sample.
    rtt: f64,
    rtt_seen: Time,
    rounds: u64,
    /// The round ends with the ACK of a segment that left when at least this many segments had been delivered.
    round_end: f64,
    is_round_start: bool,
    /// The bandwidth that later samples are compared with.
    full_bw: f64,
    /// Rounds in which that bandwidth did not grow.
    full_rounds: u32,
    /// Whether the pipe is full.
    is_full: bool,
    held_back: HeldBack,
    is_recovering: bool,
    /// Packet conservation, in the first round of a recovery: only as many segments leave as are acknowledged.
    conserves: bool,
    is_after_idle: bool,
    random: Random,
    window_initial: f64,
}

impl Bbr1 {
    pub(crate) fn new(settings: &WindowSettings) -> Self {
        Self {
            state: State::Startup,
            window: settings.initial_window,
            window_prior: 0.0,
            before_loss: None,
            pace: None,
            is_paced_by_rtt: false,
            segment_bits: 0.0,
            bw: WindowedMax::default(),
            rtt: f64::INFINITY,
            rtt_seen: Time::ZERO,
            rounds: 0,
            round_end: 0.0,
            is_round_start: false,
            full_bw: 0.0,
            full_rounds: 0,
            is_full: false,
            held_back: HeldBack::default(),
            is_recovering: false,
            conserves: false,
            is_after_idle: false,
            random: Random::default(),
            window_initial: settings.initial_window,
        }
    }

    fn begin(&mut self, path: &PathView) {
        let rtt = path.rtt_smoothed.map(Span::as_secs_f64);
        self.is_paced_by_rtt = rtt.is_some();
        self.pace = Some(GAIN_HIGH * self.window / rtt.unwrap_or(RTT_NOMINAL).max(RTT_LEAST));
        self.segment_bits = path.mss.count() as f64 * 8.0;
        (self.rtt, self.rtt_seen) = (rtt.unwrap_or(f64::INFINITY), path.now);
        self.round_end = path.progress.delivered;
    }

    /// `gain` bandwidth-delay products and three quanta that keep both ends busy, in segments.
    fn inflight(&self, gain: f64) -> f64 {
        if self.rtt.is_infinite() {
            return self.window_initial;
        }
        gain * self.bw.max() * self.rtt + 3.0 * self.quantum()
    }

    /// [bbr-draft-00] sec. 4.2.2: one segment below 1.2 Mbit/s, two below 24, then a millisecond or 64 KB.
    fn quantum(&self) -> f64 {
        let bits = self.pace.unwrap_or(0.0) * self.segment_bits;
        if bits < 1.2e6 {
            1.0
        } else if bits < 24e6 {
            2.0
        } else {
            (bits * 1e-3).min(8.0 * 65_536.0) / self.segment_bits.max(1.0)
        }
    }

    /// [bbr-draft-00] sec. 4.1.1.
    fn update_bandwidth(&mut self, path: &PathView, sample: &RateSample, is_full: bool) {
        self.is_round_start = sample.delivered_before >= self.round_end;
        if self.is_round_start {
            self.round_end = path.progress.delivered;
            self.rounds += 1;
            self.conserves = false;
        }
        if let Some(rate) = sample.rate
            && (is_full || rate >= self.bw.max())
        {
            self.bw.update(self.rounds, BW_ROUNDS, rate);
        }
    }

    /// [bbr-draft-00] sec. 4.3.4.3: one step each RTT. A probe lasts until it fills the pipe or meets losses; the step after it ends early if the
    /// queue is drained.
    fn update_cycle(&mut self, path: &PathView, ack: &Ack) {
        let State::ProbeBw { step, since } = self.state else { return };
        let has_waited = path.now.since(since).as_secs_f64() > self.rtt;
        let flight = path.flight + ack.newly_acked + ack.newly_lost;
        let gain = GAINS[step];
        let is_over = if gain > 1.0 {
            has_waited && (ack.newly_lost > 0.0 || flight >= self.inflight(gain))
        } else if gain < 1.0 {
            has_waited || flight <= self.inflight(1.0)
        } else {
            has_waited
        };
        if is_over {
            self.state = State::ProbeBw { step: (step + 1) % GAINS.len(), since: path.now };
        }
    }

    /// [bbr-draft-00] sec. 4.3.2.2.
    fn check_full(&mut self, is_full_sample: bool) {
        if self.is_full || !self.is_round_start || !is_full_sample {
            return;
        }
        if self.bw.max() >= 1.25 * self.full_bw {
            (self.full_bw, self.full_rounds) = (self.bw.max(), 0);
            return;
        }
        self.full_rounds += 1;
        self.is_full = self.full_rounds >= 3;
    }

    fn check_drain(&mut self, path: &PathView) {
        if self.state == State::Startup && self.is_full {
            self.state = State::Drain;
        }
        if self.state == State::Drain && path.flight <= self.inflight(1.0) {
            self.enter_probe_bw(path.now);
        }
    }

    /// Begins the cycle at any step but the one that drains.
    fn enter_probe_bw(&mut self, now: Time) {
        let step = GAINS.len() - 1 - self.random.below(now, 7) as usize;
        self.state = State::ProbeBw { step: (step + 1) % GAINS.len(), since: now };
    }

    /// [bbr-draft-00] sec. 4.3.5.
    fn check_probe_rtt(&mut self, path: &PathView, ack: &Ack) {
        let is_expired = path.now > self.rtt_seen.saturating_add(RTT_AGE);
        if let Some(rtt) = ack.rtt.map(Span::as_secs_f64)
            && (rtt <= self.rtt || is_expired)
        {
            (self.rtt, self.rtt_seen) = (rtt, path.now);
        }
        if is_expired && !self.is_after_idle && !matches!(self.state, State::ProbeRtt { .. }) {
            self.save_window();
            self.state = State::ProbeRtt { done: None, is_round_done: false };
            self.held_back.begin(path);
        }
        self.is_after_idle = false;
        if let State::ProbeRtt { done, is_round_done } = &mut self.state {
            self.held_back.go_on(path);
            match done {
                None if path.flight <= WINDOW_PIPE => {
                    *done = Some(path.now.saturating_add(PROBE_RTT));
                    self.round_end = path.progress.delivered;
                }
                None => {}
                Some(_) => *is_round_done |= self.is_round_start,
            }
            self.check_probe_rtt_done(path.now);
        }
    }

    fn check_probe_rtt_done(&mut self, now: Time) {
        if let State::ProbeRtt { done: Some(done), is_round_done: true } = self.state
            && now > done
        {
            self.rtt_seen = now;
            self.restore_window();
            if self.is_full { self.enter_probe_bw(now) } else { self.state = State::Startup }
        }
    }

    fn set_pace_with(&mut self, gain: f64) {
        let pace = gain * self.bw.max() * PACING_SHARE;
        if pace > 0.0 && (self.is_full || self.pace.is_none_or(|before| pace > before)) {
            self.pace = Some(pace);
        }
    }

    /// [bbr-draft-00] sec. 4.2.3.
    fn set_window(&mut self, path: &PathView, ack: &Ack) {
        if ack.newly_lost > 0.0 {
            self.window = (self.window - ack.newly_lost).max(WINDOW_MIN);
        }
        if self.conserves {
            self.window = self.window.max(path.flight + ack.newly_acked);
        } else {
            let target = self.inflight(self.state.window_gain());
            let grown = self.window + ack.newly_acked;
            if self.is_full {
                self.window = grown.min(target);
            } else if self.window < target || path.progress.delivered < self.window_initial {
                self.window = grown;
            }
            self.window = self.window.max(WINDOW_PIPE);
        }
        if matches!(self.state, State::ProbeRtt { .. }) {
            self.window = self.window.min(WINDOW_PIPE);
        }
    }

    fn save_window(&mut self) {
        let is_cut = self.is_recovering || matches!(self.state, State::ProbeRtt { .. });
        self.window_prior = if is_cut { self.window_prior.max(self.window) } else { self.window };
    }

    fn restore_window(&mut self) {
        self.window = self.window.max(self.window_prior);
    }

    fn end_recovery(&mut self) {
        (self.is_recovering, self.conserves) = (false, false);
        self.restore_window();
    }
}

impl Controller for Bbr1 {
    fn hears_first(&self) -> bool {
        false
    }

    fn on_ack(&mut self, path: &PathView, ack: &Ack) {
        let sample = RateSample::of(path, ack);
        let is_full = self.held_back.is_full(&sample, ack);
        self.update_bandwidth(path, &sample, is_full);
        self.update_cycle(path, ack);
        self.check_full(is_full);
        self.check_drain(path);
        self.check_probe_rtt(path, ack);
        self.segment_bits = path.mss.count() as f64 * 8.0;
        if !self.is_paced_by_rtt
            && let Some(rtt) = ack.rtt
        {
            self.is_paced_by_rtt = true;
            self.pace = Some(GAIN_HIGH * self.window / rtt.as_secs_f64().max(RTT_LEAST));
        }
        self.set_pace_with(self.state.pacing_gain());
        self.set_window(path, ack);
    }

    fn on_loss(&mut self, path: &PathView, loss: &Loss) {
        self.before_loss = Some(self.window);
        match loss.signal {
            // Segments of this law are not ECN-capable.
            Signal::Ecn => {}
            Signal::DupAcks => {
                self.save_window();
                self.window = self.window.min(path.flight + 1.0).max(WINDOW_MIN);
                (self.is_recovering, self.conserves) = (true, true);
                self.round_end = path.progress.delivered;
            }
            Signal::Timeout => {
                self.save_window();
                self.window = WINDOW_MIN;
                (self.is_recovering, self.conserves) = (true, false);
            }
        }
    }

    fn on_recovered(&mut self, _path: &PathView) {
        self.end_recovery();
    }

    fn on_undo(&mut self, _path: &PathView) {
        self.end_recovery();
        // A ProbeRtt may have come in between.
        self.window = self.window.max(self.before_loss.take().unwrap_or(self.window));
        // The spurious loss may have ended Startup.
        (self.full_bw, self.full_rounds) = (0.0, 0);
    }

    fn on_restart(&mut self, path: &PathView, restart: Restart) {
        match restart {
            Restart::Established => self.begin(path),
            Restart::AfterTimeout => self.end_recovery(),
            Restart::Idle => {
                self.is_after_idle = true;
                if matches!(self.state, State::ProbeBw { .. }) {
                    self.set_pace_with(1.0);
                } else {
                    self.check_probe_rtt_done(path.now);
                }
            }
            Restart::PathChanged => {
                let settings = WindowSettings { initial_window: self.window_initial };
                *self = Self { random: self.random, ..Self::new(&settings) };
                self.begin(path);
            }
        }
    }

    fn window(&self) -> f64 {
        self.window
    }

    fn pacing_rate(&self) -> Option<Rate> {
        // A rate of zero would stop the sender for ever.
        self.pace.map(|pace| Rate::from_bits_per_second((pace * self.segment_bits).max(1.0) as u64))
    }

    /// The draft does not react to marks.
    fn ect(&self) -> Option<Ect> {
        None
    }

    fn copy(&self) -> Option<Box<dyn Controller>> {
        Some(Box::new(self.clone()))
    }

    /// `state` is 0 for Startup, 1 for Drain, 2 for ProbeBW, 3 for ProbeRTT.
    fn gauges(&self, gauges: &mut Gauges) {
        gauges.show("window", self.window);
        gauges.show("state", self.state.number());
        gauges.show("pacing_gain", self.state.pacing_gain());
        gauges.show("bw_segments_per_s", self.bw.max());
        gauges.show("rtt_min_s", self.rtt);
    }
}

/// 2/ln 2: with it the rate doubles each round ([bbr-draft-00] sec. 4.2.1).
const GAIN_HIGH: f64 = 2.885_390_081_777_927;

/// [bbr-draft-00] sec. 4.3.4.2: probes for more, drains the queue of the probe, and keeps the rate for six steps.
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// [bbr-draft-00] BtlBwFilterLen: a cycle, and two rounds more.
const BW_ROUNDS: u64 = 10;

/// [bbr-draft-00] RTpropFilterLen.
const RTT_AGE: Span = Span::from_secs(10);

/// [bbr-draft-00] ProbeRTTDuration.
const PROBE_RTT: Span = Span::from_millis(200);

/// [bbr-draft-00] BBRMinPipeCwnd.
const WINDOW_PIPE: f64 = 4.0;

/// A little less than the bandwidth of the path, so that a queue drains (Linux).
const PACING_SHARE: f64 = 0.99;

/// [bbr-draft-00] sec. 4.2.1: the RTT for the first pace, if none is known.
const RTT_NOMINAL: f64 = 1e-3;

/// The least RTT in seconds: with a coarse clock a sample may be zero.
const RTT_LEAST: f64 = 1e-6;

#[cfg(test)]
mod tests;
