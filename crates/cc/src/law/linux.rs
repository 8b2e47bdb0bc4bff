//! Linux as in ns-2: the law of `Agent/TCP/Linux` without a congestion module.
//!
//! ```text
//! below ssthresh, each ACK:       v ← v + 1
//! from ssthresh,  each ACK:       v ← v + 1/v             w = ⌊v⌋ is the limit of the flight
//! loss by duplicate ACKs:         ssthresh ← max(⌊w/2⌋, 2), v ← max(w/2, 1)
//! end of fast recovery:           v ← max(v, min(ssthresh, flight + 3))
//! timeout:                        ssthresh ← max(⌊w/2⌋, 2), v ← 1
//! ```
//!
//! Citation: ns-2.35 (`tcp/tcp-linux.cc` without `select_ca`: the arithmetic of ns-2's base agent, with the integer part of its
//! window). It is the "Linux TCP" of ctcp-2019, which cites linux-tcp-2002.
//!
//! Differs from ns-2.35 in:
//! * The first ssthresh is the parameter `initial_ssthresh`; in ns-2 it is `window_` (50 in ctcp-2019), and nothing else limits
//!   the agent: hence the 146302 packets of ctcp-2019 Table 2.
//! * Rate halving, by which the agent reduces its flight to the new window, belongs to the transport.
//! * A spurious loss is undone; ns-2's agent never detects one.
//! * An ACK with SACK blocks below an undetected loss counts as an ACK.

use crate::controller::{Ack, Controller, Gauges, Limit, Loss, PathView, Phase, Restart, Signal, WINDOW_MIN};
use crate::law::reno;
use crate::row::{Law, Row};
use crate::settings::{Fields, INITIAL_WINDOW, Table};

pub(crate) const ROW: Row = Row {
    name: "linux",
    summary: "the law of ns-2's Linux agent without a module: Reno that counts ACKs, in whole segments",
    citation: "ns-2.35, ctcp-2019, linux-tcp-2002",
    loss_contract: reno::LOSS_CONTRACT,
    law: &Law { defaults: LinuxSettings::DEFAULT, make: |settings| Box::new(Linux::new(settings)) },
};

/// The settings of the law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinuxSettings {
    /// The window before the first ACK, in segments.
    pub initial_window: f64,
    /// Slow-start threshold before the first loss, in segments.
    pub initial_ssthresh: f64,
}

impl LinuxSettings {
    /// The threshold is practically infinite: more than fits an advertised window of one gigabyte.
    pub const DEFAULT: Self = Self { initial_window: INITIAL_WINDOW, initial_ssthresh: 1e6 };
}

impl Table for LinuxSettings {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.initial_window(&mut self.initial_window);
        let help = "slow-start threshold before the first loss";
        fields.number("initial_ssthresh", &mut self.initial_ssthresh, 2.0..=1e6, "segments", help);
    }
}

/// The burst in segments that the end of a recovery may release.
pub const BURST_MAX: f64 = 3.0;

/// The slow-start threshold after a loss at `window`, of which the integer part counts.
pub fn ssthresh(window: f64) -> f64 {
    (window.floor() / 2.0).floor().max(reno::SSTHRESH_MIN)
}

/// The window after a loss by duplicate ACKs: half of the integer part, which may end in one half.
pub fn halve(window: f64) -> f64 {
    (window.floor() / 2.0).max(WINDOW_MIN)
}

/// The window when fast recovery is over with `flight` segments in flight.
pub fn moderate(window: f64, ssthresh: f64, flight: f64) -> f64 {
    window.max(ssthresh.min(flight + BURST_MAX))
}

/// The window of ns-2's Linux agent for one path.
#[derive(Clone, Debug)]
pub struct Linux {
    /// Segments; finite, at least [`WINDOW_MIN`]. Its integer part is the window.
    value: f64,
    /// Whole segments, at least two.
    ssthresh: f64,
    /// Window and threshold before the latest loss, until that loss is undone.
    before_loss: Option<(f64, f64)>,
    window_initial: f64,
    ssthresh_initial: f64,
}

impl Linux {
    pub(crate) fn new(settings: &LinuxSettings) -> Self {
        let window_initial = settings.initial_window;
        let ssthresh_initial = settings.initial_ssthresh.floor();
        Self { value: window_initial, ssthresh: ssthresh_initial, before_loss: None, window_initial, ssthresh_initial }
    }
}

impl Controller for Linux {
    fn on_ack(&mut self, _path: &PathView, ack: &Ack) {
        if ack.phase == Phase::Open && ack.limit == Limit::Window {
            self.value = if self.value < self.ssthresh {
                reno::slow_start(self.value)
            } else {
                reno::congestion_avoidance(self.value)
            };
        }
    }

    fn on_loss(&mut self, _path: &PathView, loss: &Loss) {
        self.before_loss = Some((self.value, self.ssthresh));
        self.ssthresh = ssthresh(self.value);
        self.value = match loss.signal {
            Signal::Timeout => WINDOW_MIN,
            Signal::DupAcks | Signal::Ecn => halve(self.value),
        };
    }

    fn on_recovered(&mut self, path: &PathView) {
        self.value = moderate(self.value, self.ssthresh, path.flight);
    }

    fn on_undo(&mut self, _path: &PathView) {
        if let Some((value, ssthresh)) = self.before_loss.take() {
            (self.value, self.ssthresh) = (self.value.max(value), self.ssthresh.max(ssthresh));
        }
    }

    fn on_restart(&mut self, _path: &PathView, restart: Restart) {
        match restart {
            Restart::Established | Restart::AfterTimeout => {}
            // [rfc-5681] sec. 4.1.
            Restart::Idle => self.value = self.value.min(self.window_initial),
            Restart::PathChanged => (self.value, self.ssthresh) = (self.window_initial, self.ssthresh_initial),
        }
    }

    fn window(&self) -> f64 {
        self.value.floor()
    }

    fn copy(&self) -> Option<Box<dyn Controller>> {
        Some(Box::new(self.clone()))
    }

    fn gauges(&self, gauges: &mut Gauges) {
        gauges.show("window", self.window());
        gauges.show("ssthresh", self.ssthresh);
    }
}

#[cfg(test)]
mod tests;
