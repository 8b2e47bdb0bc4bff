//! CUBIC: after a loss the window follows a cubic of time, flat where the loss was, steep before and after.
//!
//! ```text
//! W_cubic(t) = C (t − K)³ + W_max,   K = cbrt((W_max − w_epoch)/C)        t in seconds since congestion avoidance began
//! each acknowledged segment:         w ← w + (target − w)/w,  target = W_cubic(t + SRTT) within [w, 1.5 w]
//! but no less than W_est:            W_est ← W_est + alpha/w, what Reno with this beta would have
//! loss by duplicate ACKs:            W_max ← w (or (1+beta)/2 w, if W_max has fallen), w ← beta w
//! timeout:                           the same, but w ← 1, and the next curve begins flat (K = 0)
//! slow start:                        Reno's, or until the first loss HyStart++'s or that of Linux
//! ```
//!
//! Citation: rfc-9438; rfc-9406 for HyStart++; Linux' HyStart in `hystart/linux.rs`.
//!
//! Differs from rfc-9438 in:
//! * It multiplies the window, not FlightSize, by beta: see [`crate::law::reno`].
//! * Slow start is Reno's unless `slow_start = "hystart"`. Sec. 4.10 says that CUBIC should use HyStart++ and may use Reno's. The measurements
//!   with rivals in this project use Reno's, which overshoots more.

use anabranch_units::Time;

use crate::controller::{
    Ack, Controller, Gauges, Limit, Loss, PathView, Phase, Reduction, Restart, Round, Signal, WINDOW_MIN,
};
use crate::hystart::{HyStart, Linux};
use crate::law::reno;
use crate::number::cube_root;
use crate::row::{Law, Row};
use crate::settings::{Choice, Fields, INITIAL_WINDOW, Table};

pub(crate) const ROW: Row = Row {
    name: "cubic",
    summary: "CUBIC: a cubic of the time since the last loss",
    citation: "rfc-9438, rfc-9406",
    loss_contract: reno::LOSS_CONTRACT,
    law: &Law { defaults: CubicSettings::DEFAULT, make: |settings| Box::new(Cubic::new(settings)) },
};

/// The settings of CUBIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicSettings {
    /// The window before the first ACK, in segments.
    pub initial_window: f64,
    /// C: the growth of the window far from the last loss, in segments per cubic second.
    pub c: f64,
    /// The share of the window that remains after a loss.
    pub beta: f64,
    /// Whether the plateau is lowered when a loss comes at a smaller window than the loss before.
    pub fast_convergence: bool,
    /// How the window grows before the first loss.
    pub slow_start: SlowStart,
}

/// How the window grows before the first loss (rfc-9438 sec. 4.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStart {
    /// It doubles each round until a loss.
    Standard,
    /// It doubles each round until the RTT rises (rfc-9406).
    HyStart,
    /// It doubles each round until the RTT rises, or ACKs come in a row for half a round trip (Linux).
    Linux,
}

impl CubicSettings {
    /// rfc-9438: 0.4 in sec. 5.1, 0.7 in sec. 4.6, and sec. 4.7.
    pub const DEFAULT: Self = Self {
        initial_window: INITIAL_WINDOW,
        c: 0.4,
        beta: 0.7,
        fast_convergence: true,
        slow_start: SlowStart::Standard,
    };
}

impl Choice for SlowStart {
    const KINDS: &'static [(&'static str, Self)] =
        &[("standard", Self::Standard), ("hystart", Self::HyStart), ("linux", Self::Linux)];
}

impl Table for CubicSettings {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.initial_window(&mut self.initial_window);
        let help = "C: growth of the window far from the last loss";
        fields.number("c", &mut self.c, 0.001..=100.0, "segments/s^3", help);
        // Below one half alpha would exceed Reno's.
        fields.number("beta", &mut self.beta, 0.5..=0.95, "", "share of the window that is left after a loss");
        let help = "lower plateau if a loss comes at a smaller window than the last one, to make room for others";
        fields.switch("fast_convergence", &mut self.fast_convergence, help);
        let help = "the first slow start: until a loss, until the RTT rises (HyStart++), or as Linux ends it (HyStart)";
        fields.choice("slow_start", &mut self.slow_start, help);
    }
}

/// W_cubic(t) in segments (rfc-9438 eq. 1); `t` and `k` in seconds.
pub fn curve(c: f64, k: f64, window_max: f64, t: f64) -> f64 {
    let from_plateau = t - k;
    c * from_plateau * from_plateau * from_plateau + window_max
}

/// K in seconds (rfc-9438 eq. 2): the time that the curve takes from `window_epoch` to `window_max` segments.
pub fn time_to_plateau(c: f64, window_epoch: f64, window_max: f64) -> f64 {
    cube_root((window_max - window_epoch) / c)
}

/// The segments a round by which Reno must grow to have the same rate with `beta` as with one half (rfc-9438 eq. 4).
pub fn alpha_friendly(beta: f64) -> f64 {
    3.0 * (1.0 - beta) / (1.0 + beta)
}

/// CUBIC's window for one path.
#[derive(Clone, Debug)]
pub struct Cubic {
    /// Segments; finite, at least [`WINDOW_MIN`].
    window: f64,
    /// Segments; infinite before the first loss.
    ssthresh: f64,
    /// W_max: where the plateau of the curve lies, in segments; zero before the first loss.
    window_max: f64,
    /// Segments; the window just before the last reduction, zero before the first.
    window_prior: f64,
    start: Start,
    curve: Option<Curve>,
    /// What ends the first slow start; `None` with Reno's slow start and later.
    end: Option<End>,
    before_loss: Option<BeforeLoss>,
    /// When the last ACK arrived.
    heard: Time,
    window_initial: f64,
    c: f64,
    beta: f64,
    fast_convergence: bool,
    slow_start: SlowStart,
}

/// The shape of the next curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// Below the plateau at `window_max`, after fast recovery.
    BelowPlateau,
    /// On a plateau of its own, after slow start (rfc-9438 sec. 4.8 and 4.10).
    OnPlateau,
}

/// What watches the first slow start for its end.
#[derive(Clone, Copy, Debug)]
enum End {
    HyStart(HyStart),
    Linux(Linux),
}

/// The curve of one stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Curve {
    /// When the stage began, shifted by the time in which the application did not fill the window.
    epoch: Time,
    plateau: f64,
    /// K in seconds.
    k: f64,
    /// W_est: the window that Reno would have.
    friendly: f64,
}

/// The state before the latest loss, until it is undone (rfc-9438 sec. 4.9).
#[derive(Clone, Copy, Debug)]
struct BeforeLoss {
    window: f64,
    ssthresh: f64,
    window_max: f64,
    window_prior: f64,
    start: Start,
    curve: Option<Curve>,
    end: Option<End>,
}

impl SlowStart {
    fn begin(self) -> Option<End> {
        match self {
            Self::Standard => None,
            Self::HyStart => Some(End::HyStart(HyStart::new())),
            Self::Linux => Some(End::Linux(Linux::default())),
        }
    }
}

impl Cubic {
    pub(crate) fn new(settings: &CubicSettings) -> Self {
        let window_initial = settings.initial_window;
        Self {
            window: window_initial,
            ssthresh: f64::INFINITY,
            window_max: 0.0,
            window_prior: 0.0,
            start: Start::OnPlateau,
            curve: None,
            end: settings.slow_start.begin(),
            before_loss: None,
            heard: Time::ZERO,
            window_initial,
            c: settings.c,
            beta: settings.beta,
            fast_convergence: settings.fast_convergence,
            slow_start: settings.slow_start,
        }
    }

    /// Congestion avoidance begins, on a plateau of its own.
    fn leave_slow_start(&mut self) {
        (self.ssthresh, self.end) = (self.window, None);
    }

    fn begin(&self, now: Time) -> Curve {
        let plateau = match self.start {
            Start::BelowPlateau => self.window_max.max(self.window),
            Start::OnPlateau => self.window,
        };
        Curve { epoch: now, plateau, k: time_to_plateau(self.c, self.window, plateau), friendly: self.window }
    }

    fn avoid_congestion(&mut self, path: &PathView, acked: f64) {
        let mut curve = self.curve.unwrap_or_else(|| self.begin(path.now));
        // [rfc-9438] sec. 4.3: once W_est has regained the window before the loss, alpha is 1 as in Reno.
        let alpha = if curve.friendly < self.window_prior { alpha_friendly(self.beta) } else { 1.0 };
        curve.friendly += alpha * acked / self.window;
        let t = path.now.since(curve.epoch).as_secs_f64();
        let at = |t| self::curve(self.c, curve.k, curve.plateau, t);
        if at(t) < curve.friendly {
            self.window = self.window.max(curve.friendly);
        } else {
            let ahead = path.rtt_smoothed.map_or(0.0, |rtt| rtt.as_secs_f64());
            // [rfc-9438] sec. 4.2: target within [cwnd, 1.5 cwnd].
            let target = at(t + ahead).clamp(self.window, 1.5 * self.window);
            self.window += acked * (target - self.window) / self.window;
        }
        self.curve = Some(curve);
    }
}

impl Controller for Cubic {
    fn on_ack(&mut self, path: &PathView, ack: &Ack) {
        let silence = path.now.since(self.heard);
        self.heard = path.now;
        match (ack.phase, ack.limit) {
            (Phase::Recovery, _) => {}
            (Phase::Open, Limit::Application) => {
                // [rfc-9438] sec. 5.8: t excludes the time in which the window was not used.
                if let Some(curve) = &mut self.curve {
                    curve.epoch = curve.epoch.saturating_add(silence);
                }
            }
            (Phase::Open, Limit::Window) => {
                if let Some(End::HyStart(hystart)) = &mut self.end {
                    self.window += hystart.on_ack(ack.newly_acked, ack.rtt);
                    return;
                }
                if let Some(End::Linux(linux)) = &mut self.end
                    && linux.on_ack(path, ack, self.window)
                {
                    self.leave_slow_start();
                }
                let below = (self.ssthresh - self.window).clamp(0.0, ack.newly_acked);
                self.window += below;
                if ack.newly_acked > below {
                    self.avoid_congestion(path, ack.newly_acked - below);
                }
            }
        }
    }

    fn on_round(&mut self, _path: &PathView, _round: &Round) {
        let is_over = match &mut self.end {
            // [rfc-9406] sec. 4.2: congestion avoidance begins.
            Some(End::HyStart(hystart)) => hystart.on_round(),
            Some(End::Linux(linux)) => {
                linux.on_round();
                false
            }
            None => false,
        };
        if is_over {
            self.leave_slow_start();
        }
    }

    fn on_loss(&mut self, _path: &PathView, loss: &Loss) {
        let Self { window, ssthresh, window_max, window_prior, start, curve, end, .. } = *self;
        self.before_loss = Some(BeforeLoss { window, ssthresh, window_max, window_prior, start, curve, end });
        // [rfc-9406] sec. 4.3: for the first slow start only.
        self.end = None;
        self.window_prior = self.window;
        // [rfc-9438] sec. 4.7.
        let has_fallen = self.fast_convergence && self.window < self.window_max;
        self.window_max = if has_fallen { self.window * (1.0 + self.beta) / 2.0 } else { self.window };
        self.ssthresh = (self.window * self.beta).max(reno::SSTHRESH_MIN);
        self.curve = None;
        (self.start, self.window) = match loss.signal {
            Signal::Timeout => (Start::OnPlateau, WINDOW_MIN),
            Signal::DupAcks | Signal::Ecn => (Start::BelowPlateau, self.window.min(self.ssthresh)),
        };
    }

    fn on_undo(&mut self, _path: &PathView) {
        // [rfc-9438] sec. 4.9.2: a window that has grown beyond the one before the loss stays, with its curve.
        if let Some(before) = self.before_loss.take().filter(|before| self.window < before.window) {
            let BeforeLoss { window, ssthresh, window_max, window_prior, start, curve, end } = before;
            *self = Self { window, ssthresh, window_max, window_prior, start, curve, end, ..*self };
        }
    }

    fn on_restart(&mut self, path: &PathView, restart: Restart) {
        match restart {
            Restart::Established | Restart::AfterTimeout => {}
            Restart::Idle => {
                // [rfc-5681] sec. 4.1. The idle time does not count for the curve.
                self.window = self.window.min(self.window_initial);
                (self.curve, self.start, self.heard) = (None, Start::OnPlateau, path.now);
            }
            Restart::PathChanged => {
                (self.window, self.ssthresh) = (self.window_initial, f64::INFINITY);
                (self.window_max, self.window_prior) = (0.0, 0.0);
                (self.curve, self.start, self.heard) = (None, Start::OnPlateau, path.now);
                self.end = self.slow_start.begin();
            }
        }
    }

    fn window(&self) -> f64 {
        self.window
    }

    fn reduction(&self) -> Reduction {
        Reduction::Proportional
    }

    fn copy(&self) -> Option<Box<dyn Controller>> {
        Some(Box::new(self.clone()))
    }

    fn gauges(&self, gauges: &mut Gauges) {
        gauges.show("window", self.window);
        gauges.show("ssthresh", self.ssthresh);
        gauges.show("window_max", self.window_max);
        gauges.show("k_s", self.curve.map_or(0.0, |curve| curve.k));
        gauges.show("window_friendly", self.curve.map_or(0.0, |curve| curve.friendly));
    }
}

#[cfg(test)]
mod tests;
