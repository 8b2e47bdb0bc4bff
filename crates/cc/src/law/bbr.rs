//! BBR, version 3: a model of the path, and a rate and a window that follow from it.
//!
//! ```text
//! max_bw   ← largest delivery rate of this probing cycle and the last        min_rtt ← least RTT of 10 s
//! bw       = min(max_bw, bw_shortterm),   bdp = bw · min_rtt
//! rate     = 0.99 gain · bw               window grows by what is acknowledged to cwnd_gain · bdp + extra_acked,
//!                                         and is within inflight_longterm and inflight_shortterm
//! loss:      a round with any:            the short-term bounds ← 0.7 of themselves, or what was delivered if more
//!            2 % of a probe's flight:     inflight_longterm ← that flight, or 0.7 bdp if more, and the probe is over
//!
//!   Startup ─> Drain ─> Down ─> Cruise ─> Refill ─> Up ─> Down ...         from anywhere, every 5 s: ─> ProbeRtt ─> Cruise
//! rate  2.77     0.5     0.9      1         1       1.25                                         1
//! window  2       2       2       2         2       2.25                                         0.5
//! ```
//!
//! Citation: bbr-draft.
//!
//! Differs from bbr-draft in:
//! * A loss is evaluated with the ACK that reveals it, as if the lost segments had left together with the acknowledged one; the draft evaluates each
//!   lost packet. The same holds for the volume at which losses went above 2 %.
//! * In Startup, lost ranges are counted by the ACKs that reveal losses, as in Linux.
//! * Idle is what the transport reports as idle: nothing in flight for a retransmission timeout.
//! * There is no segmentation offload: the budget is one quantum, and the pacer of the transport has its own.
//! * Without an RTT from the handshake, the first sample sets the pace anew, as in Linux; the draft keeps the pace of a nominal RTT of 1 ms.

mod congestion;
mod model;
mod probe_bw;
mod probe_rtt;
mod startup;

use anabranch_units::{Rate, Time};

use self::congestion::{Bounds, Congestion};
use self::model::Model;
use self::probe_bw::Cycle;
use self::probe_rtt::ProbeRtt;
use self::startup::{FullPipe, StartupLoss};
use crate::controller::{Ack, Controller, Ect, Gauges, Limit, Loss, PathView, Restart, Signal, WINDOW_MIN};
use crate::delivery::RateSample;
use crate::random::Random;
use crate::row::{Law, LossContract, LossResponse, Row};
use crate::settings::WindowSettings;

pub(crate) const ROW: Row = Row {
    name: "bbr",
    summary: "BBR version 3: a model of the path's rate and RTT, with bounds from losses",
    citation: "bbr-draft",
    loss_contract: LossContract {
        shrinks_above: WINDOW_MIN,
        // The flight, and one more segment for the probe of the timeout.
        timeout_window_max: f64::INFINITY,
        loss: LossResponse::Holds { citation: "bbr-draft sec. 5.5.10" },
    },
    law: &Law { defaults: WindowSettings::DEFAULT, make: |settings| Box::new(Bbr::new(settings)) },
};

/// The state of BBR's state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Doubles its rate each round, until the pipe is full.
    Startup,
    /// Drains the queue of Startup.
    Drain,
    /// Makes room after a probe.
    Down,
    /// Keeps its rate.
    Cruise,
    /// Fills the pipe, so that losses in the next state come from it.
    Refill,
    /// Probes for more.
    Up,
    /// Looks for the RTT of an empty path.
    ProbeRtt,
}

impl State {
    /// The factor of the bandwidth in the pacing rate (bbr-draft sec. 5.6.1, the table).
    fn pacing_gain(self) -> f64 {
        match self {
            // 4 ln 2, with which the rate doubles each round.
            Self::Startup => 2.77,
            Self::Drain => 0.5,
            Self::Down => 0.9,
            Self::Cruise | Self::Refill | Self::ProbeRtt => 1.0,
            Self::Up => 1.25,
        }
    }

    /// The factor of the bandwidth-delay product in the window.
    fn window_gain(self) -> f64 {
        match self {
            Self::Startup | Self::Drain | Self::Down | Self::Cruise | Self::Refill => 2.0,
            Self::Up => 2.25,
            Self::ProbeRtt => 0.5,
        }
    }

    fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// Whether losses are expected because BBR sends more than is known to fit.
    fn is_probing(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// bbr-draft MinPipeCwnd: two segments on the way and two acknowledgements on the way back.
const WINDOW_PIPE: f64 = 4.0;

/// bbr-draft PacingMarginPercent: a little less than the bandwidth of the path, so that a queue drains.
const PACING_SHARE: f64 = 0.99;

/// BBR's window and rate for one path.
#[derive(Clone, Debug)]
pub struct Bbr {
    state: State,
    /// Segments; finite, at least [`WINDOW_MIN`].
    window: f64,
    /// Segments per second; `None` before the handshake is over.
    pace: Option<f64>,
    /// Whether the pace comes from an RTT.
    is_paced_by_rtt: bool,
    /// Bits of a full segment.
    segment_bits: f64,
    model: Model,
    bounds: Bounds,
    congestion: Congestion,
    full_pipe: FullPipe,
    startup_loss: StartupLoss,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    drain_began: u64,
    /// The window before a loss or ProbeRtt reduced it.
    window_prior: f64,
    /// The window before the latest loss, until that loss is undone.
    before_loss: Option<f64>,
    is_recovering: bool,
    is_after_idle: bool,
    /// The state to restore if the latest loss was spurious.
    undo: Undo,
    random: Random,
    window_initial: f64,
}

/// The state before a loss.
#[derive(Clone, Copy, Debug)]
struct Undo {
    /// The state that the loss ended.
    state: Option<State>,
    bounds: Bounds,
}

/// An ACK and the sample that it gives, for the parts of BBR.
struct Event<'a> {
    now: Time,
    path: &'a PathView,
    ack: &'a Ack,
    sample: RateSample,
    /// Whether the sender had enough data for the sample, so that it may lower the estimate of the bandwidth.
    is_full: bool,
}

impl Event<'_> {
    /// RS.delivery_rate of the draft: zero if there is none.
    fn rate(&self) -> f64 {
        self.sample.rate.unwrap_or(0.0)
    }

    fn flight(&self) -> f64 {
        self.path.flight
    }

    fn is_window_full(&self) -> bool {
        self.ack.limit == Limit::Window
    }
}

impl Bbr {
    pub(crate) fn new(settings: &WindowSettings) -> Self {
        Self {
            state: State::Startup,
            window: settings.initial_window,
            pace: None,
            is_paced_by_rtt: false,
            segment_bits: 0.0,
            model: Model::default(),
            bounds: Bounds::NONE,
            congestion: Congestion::default(),
            full_pipe: FullPipe::default(),
            startup_loss: StartupLoss::default(),
            cycle: Cycle::default(),
            probe_rtt: ProbeRtt::default(),
            drain_began: 0,
            window_prior: 0.0,
            before_loss: None,
            is_recovering: false,
            is_after_idle: false,
            undo: Undo { state: None, bounds: Bounds::NONE },
            random: Random::default(),
            window_initial: settings.initial_window,
        }
    }

    /// Starts on a new path. Its RTT may be known from the handshake.
    fn begin(&mut self, path: &PathView) {
        self.is_paced_by_rtt = path.rtt_smoothed.is_some();
        let rtt = path.rtt_smoothed.map_or(RTT_NOMINAL, |rtt| rtt.as_secs_f64().max(RTT_LEAST));
        self.pace = Some(State::Startup.pacing_gain() * self.window / rtt);
        self.segment_bits = path.mss.count() as f64 * 8.0;
        self.model.begin(path);
        self.probe_rtt.begin(path);
    }

    /// bbr-draft sec. 5.2.3: the steps in their order.
    fn update(&mut self, event: &Event<'_>) {
        self.note_deliveries(event);
        self.update_congestion(event);
        self.model.update_aggregation(event, self.window, self.full_pipe.is_reached);
        self.check_full_pipe(event);
        self.check_startup(event);
        self.check_drain(event);
        self.update_cycle(event);
        self.update_rtt_min(event);
        self.check_probe_rtt(event);
        self.congestion.advance(event);
        self.set_pace(event);
        self.set_window(event);
    }

    /// The bandwidth for the rate and the window, in segments per second: zero before the first sample.
    fn bandwidth(&self) -> f64 {
        self.model.max_bw().min(self.bounds.bw_shortterm)
    }

    /// `gain` times the bandwidth-delay product, in segments.
    fn volume(&self, bandwidth: f64, gain: f64) -> f64 {
        if self.model.rtt_min.is_finite() { gain * bandwidth * self.model.rtt_min } else { self.window_initial }
    }

    /// `volume`, raised to the least that keeps the pipe busy.
    fn quantized(&self, volume: f64) -> f64 {
        // One quantum: the data of a millisecond at the pacing rate, at least two segments.
        let quantum = (self.pace.unwrap_or(0.0) * 1e-3).min(QUANTUM_BITS / self.segment_bits.max(1.0)).max(2.0);
        let room = if self.state == State::Up { 2.0 } else { 0.0 };
        volume.max(quantum).max(WINDOW_PIPE) + room
    }

    /// bbr-draft sec. 5.6.2.
    fn set_pace(&mut self, event: &Event<'_>) {
        self.segment_bits = event.path.mss.count() as f64 * 8.0;
        if !self.is_paced_by_rtt
            && let Some(rtt) = event.ack.rtt
        {
            self.is_paced_by_rtt = true;
            self.pace = Some(State::Startup.pacing_gain() * self.window / rtt.as_secs_f64().max(RTT_LEAST));
        }
        self.set_pace_with(self.state.pacing_gain());
    }

    fn set_pace_with(&mut self, gain: f64) {
        let pace = gain * self.bandwidth() * PACING_SHARE;
        if pace > 0.0 && (self.full_pipe.is_reached || self.pace.is_none_or(|before| pace > before)) {
            self.pace = Some(pace);
        }
    }

    /// bbr-draft sec. 5.6.4.
    fn set_window(&mut self, event: &Event<'_>) {
        let most = self.volume(self.bandwidth(), self.state.window_gain()) + self.model.extra_acked();
        let most = self.quantized(most);
        let grown = self.window + event.ack.newly_acked;
        if self.full_pipe.is_reached {
            self.window = grown.min(most);
        } else if self.window < most || event.path.progress.delivered < self.window_initial {
            self.window = grown;
        }
        self.window = self.window.max(WINDOW_PIPE);
        if self.state == State::ProbeRtt {
            self.window = self.window.min(self.window_of_probe_rtt());
        }
        let longterm = match self.state {
            State::Down | State::Refill | State::Up => self.bounds.inflight_longterm,
            State::ProbeRtt | State::Cruise => self.bounds.with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
        };
        self.window = self.window.min(longterm.min(self.bounds.inflight_shortterm).max(WINDOW_PIPE));
    }

    /// Keeps the window before a temporary reduction.
    fn save_window(&mut self) {
        self.window_prior = if self.is_recovering || self.state == State::ProbeRtt {
            self.window_prior.max(self.window)
        } else {
            self.window
        };
    }

    fn restore_window(&mut self) {
        self.window = self.window.max(self.window_prior);
    }
}

impl Controller for Bbr {
    fn hears_first(&self) -> bool {
        false
    }

    fn on_ack(&mut self, path: &PathView, ack: &Ack) {
        let sample = RateSample::of(path, ack);
        let is_full = self.probe_rtt.held_back.is_full(&sample, ack);
        let event = Event { now: path.now, path, ack, sample, is_full };
        if ack.newly_lost > 0.0 {
            self.handle_losses(&event);
        }
        self.update(&event);
    }

    fn on_loss(&mut self, path: &PathView, loss: &Loss) {
        self.before_loss = Some(self.window);
        match loss.signal {
            // Segments of this law are not ECN-capable.
            Signal::Ecn => {}
            Signal::DupAcks => {
                self.save_window();
                self.save_for_undo();
                self.startup_loss.on_recovery(self.model.rounds());
                self.is_recovering = true;
            }
            Signal::Timeout => {
                self.save_window();
                self.save_for_undo();
                self.is_recovering = true;
                self.window = self.window.min(path.flight + 1.0).max(WINDOW_MIN);
            }
        }
    }

    fn on_recovered(&mut self, _path: &PathView) {
        self.is_recovering = false;
        self.restore_window();
    }

    fn on_undo(&mut self, path: &PathView) {
        self.is_recovering = false;
        self.undo_loss(path.progress.delivered);
        // A ProbeRtt may have come in between.
        self.window = self.window.max(self.before_loss.take().unwrap_or(self.window));
    }

    fn on_restart(&mut self, path: &PathView, restart: Restart) {
        match restart {
            Restart::Established => self.begin(path),
            Restart::AfterTimeout => {
                self.is_recovering = false;
                self.restore_window();
            }
            Restart::Idle => {
                self.is_after_idle = true;
                self.model.on_idle(path.now);
                if self.state.is_probe_bw() {
                    self.set_pace_with(1.0);
                } else if self.state == State::ProbeRtt {
                    self.check_probe_rtt_done(path.now, path.progress.delivered);
                }
            }
            Restart::PathChanged => {
                *self =
                    Self { random: self.random, ..Self::new(&WindowSettings { initial_window: self.window_initial }) };
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

    /// `state` counts the states of `State` from 0.
    fn gauges(&self, gauges: &mut Gauges) {
        gauges.show("window", self.window);
        gauges.show("state", f64::from(self.state as u8));
        gauges.show("bw_segments_per_s", self.bandwidth());
        gauges.show("bw_max_segments_per_s", self.model.max_bw());
        gauges.show("rtt_min_s", self.model.rtt_min);
        gauges.show("inflight_longterm", self.bounds.inflight_longterm);
        gauges.show("inflight_shortterm", self.bounds.inflight_shortterm);
        gauges.show("extra_acked", self.model.extra_acked());
    }
}

/// bbr-draft sec. 5.6.2: the RTT for the first pace, if none is known.
const RTT_NOMINAL: f64 = 1e-3;

/// The least RTT in seconds: with a coarse clock a sample may be zero.
const RTT_LEAST: f64 = 1e-6;

/// bbr-draft sec. 5.6.3: 64 KBytes.
const QUANTUM_BITS: f64 = 8.0 * 65_536.0;

#[cfg(test)]
mod tests;
