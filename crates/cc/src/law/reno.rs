//! Reno: the window arithmetic of standard TCP.
//!
//! ```text
//! below ssthresh, each acknowledged segment:  w ← w + 1        (slow start)
//! from ssthresh,  each acknowledged segment:  w ← w + 1/w      (congestion avoidance)
//! loss by duplicate ACKs:                     ssthresh ← max(w/2, 2), w ← ssthresh
//! timeout:                                    ssthresh ← max(w/2, 2), w ← 1
//! ```
//!
//! Citation: rfc-5681; rfc-3465 for counting segments instead of ACKs, rfc-6928 for the initial window.
//!
//! Differs from rfc-5681 in:
//! * It halves the window, not FlightSize. The two agree while the window is full, and a window that is not full does not
//!   grow ([`Limit::Application`]).
//! * Slow start counts all segments that an ACK covers (rfc-3465 with no limit L), so merged ACKs do not slow it down. The driver
//!   paces the result.
//! * No inflation by three segments and by duplicate ACKs: the transport counts the flight (rfc-6675), which has the same effect.

use crate::controller::{
    Ack, Controller, Gauges, Limit, Loss, PathView, Phase, Reduction, Restart, Signal, WINDOW_MIN,
};
use crate::row::{Law, LossContract, LossResponse, Row};
use crate::settings::WindowSettings;

pub(crate) const ROW: Row = Row {
    name: "reno",
    summary: "standard TCP: one segment more per round, half on loss",
    citation: "rfc-5681, rfc-3465, rfc-6928",
    loss_contract: LOSS_CONTRACT,
    law: &Law { defaults: WindowSettings::DEFAULT, make: |settings| Box::new(Reno::new(settings)) },
};

/// What the law does after a loss, as all laws that are built on it do.
pub(crate) const LOSS_CONTRACT: LossContract =
    LossContract { shrinks_above: SSTHRESH_MIN, timeout_window_max: WINDOW_MIN, loss: LossResponse::Shrinks };

/// The least slow-start threshold in segments (rfc-5681 eq. 4).
pub const SSTHRESH_MIN: f64 = 2.0;

/// The window one acknowledged segment later, in slow start.
pub fn slow_start(window: f64) -> f64 {
    window + 1.0
}

/// The window one acknowledged segment later, in congestion avoidance (rfc-5681 eq. 3, in segments).
pub fn congestion_avoidance(window: f64) -> f64 {
    window + 1.0 / window
}

/// The slow-start threshold after a loss (rfc-5681 eq. 4 with the window for FlightSize).
pub fn halve(window: f64) -> f64 {
    (window / 2.0).max(SSTHRESH_MIN)
}

/// The window after an ACK for `acked` segments: slow start up to `ssthresh`, congestion avoidance with what remains.
pub fn advance(window: f64, ssthresh: f64, acked: f64) -> f64 {
    let below = (ssthresh - window).clamp(0.0, acked);
    let window = window + below;
    window + (acked - below) / window
}

/// Standard TCP's window for one path.
#[derive(Clone, Debug)]
pub struct Reno {
    /// Segments; finite, at least [`WINDOW_MIN`].
    pub(crate) window: f64,
    /// Segments; infinite before the first loss.
    pub(crate) ssthresh: f64,
    /// Window and ssthresh before the latest loss, until that loss is undone.
    before_loss: Option<(f64, f64)>,
    window_initial: f64,
}

impl Reno {
    pub(crate) fn new(settings: &WindowSettings) -> Self {
        let window_initial = settings.initial_window;
        Self { window: window_initial, ssthresh: f64::INFINITY, before_loss: None, window_initial }
    }
}

/// What laws share that differ from Reno in how much they grow or shrink.
impl Reno {
    /// Shrinks the window to `ssthresh`, or to one segment after a timeout.
    pub(crate) fn reduce(&mut self, ssthresh: f64, signal: Signal) {
        self.before_loss = Some((self.window, self.ssthresh));
        self.ssthresh = ssthresh;
        self.window = match signal {
            Signal::Timeout => WINDOW_MIN,
            // A window that is already below the threshold stays there.
            Signal::DupAcks | Signal::Ecn => self.window.min(self.ssthresh),
        };
    }

    /// Grows the window by `increase(window)` for each acknowledged segment, where Reno grows it by 1/window. If the increase is negative, slow start does not
    /// regain it.
    pub(crate) fn grow(&mut self, ack: &Ack, increase: impl FnOnce(f64) -> f64) {
        if ack.phase == Phase::Open && ack.limit == Limit::Window {
            let below = (self.ssthresh - self.window).clamp(0.0, ack.newly_acked);
            self.window += below;
            if ack.newly_acked > below {
                let change = (ack.newly_acked - below) * increase(self.window);
                self.window = (self.window + change).max(WINDOW_MIN);
                self.ssthresh = self.ssthresh.min(self.window).max(SSTHRESH_MIN);
            }
        }
    }
}

/// What a law whose window is a Reno's leaves to it.
macro_rules! as_reno {
    () => {
        fn on_undo(&mut self, path: &$crate::controller::PathView) {
            self.reno.on_undo(path);
        }

        fn window(&self) -> f64 {
            self.reno.window()
        }

        fn reduction(&self) -> $crate::controller::Reduction {
            self.reno.reduction()
        }

        fn copy(&self) -> Option<Box<dyn $crate::controller::Controller>> {
            Some(Box::new(self.clone()))
        }
    };
}

pub(super) use as_reno;

impl Controller for Reno {
    fn on_ack(&mut self, _path: &PathView, ack: &Ack) {
        if ack.phase == Phase::Open && ack.limit == Limit::Window {
            self.window = advance(self.window, self.ssthresh, ack.newly_acked);
        }
    }

    fn on_loss(&mut self, _path: &PathView, loss: &Loss) {
        self.reduce(halve(self.window), loss.signal);
    }

    fn on_undo(&mut self, _path: &PathView) {
        if let Some((window, ssthresh)) = self.before_loss.take() {
            (self.window, self.ssthresh) = (self.window.max(window), self.ssthresh.max(ssthresh));
        }
    }

    fn on_restart(&mut self, _path: &PathView, restart: Restart) {
        match restart {
            Restart::Established | Restart::AfterTimeout => {}
            // [rfc-5681] sec. 4.1: "TCP SHOULD set cwnd to no more than RW = min(IW, cwnd)".
            Restart::Idle => self.window = self.window.min(self.window_initial),
            Restart::PathChanged => {
                (self.window, self.ssthresh) = (self.window_initial, f64::INFINITY);
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
    }
}

#[cfg(test)]
mod tests;
