//! LEDBAT: for background traffic. It keeps the queueing delay at a target, and gives way to flows that raise it further.
//!
//! ```text
//! queueing delay = least of the last 4 RTTs − least RTT of the last 10 minutes
//! each ACK:        w ← w + gain (target − delay)/target · acknowledged/w,   at most flight + 1
//! loss:            w ← w/2 (2 at least), once a round trip;                 timeout: w ← 1
//! ```
//!
//! Citation: rfc-6817.
//!
//! Differs from rfc-6817 in:
//! * It uses RTTs in place of one-way delays, so a queue on the return path counts as well; sec. 3.4.1 has timestamps of the remote clock, which the
//!   transport has not.
//! * The flight is the one before the ACK, as in sec. 2.4.2, without the segments that the transport knows to be lost.

use std::collections::VecDeque;

use anabranch_units::{Span, Time};

use crate::controller::{Ack, Controller, Gauges, Loss, PathView, Phase, Reduction, Restart, Signal, WINDOW_MIN};
use crate::row::{Law, LossContract, LossResponse, Row};
use crate::settings::{Fields, Table};

pub(crate) const ROW: Row = Row {
    name: "ledbat",
    summary: "LEDBAT: for background traffic; keeps the queueing delay at a target and gives way to others",
    citation: "rfc-6817",
    loss_contract: LossContract { shrinks_above: LEAST, timeout_window_max: WINDOW_MIN, loss: LossResponse::Shrinks },
    law: &Law { defaults: LedbatSettings::DEFAULT, make: |settings| Box::new(Ledbat::new(settings)) },
};

/// The settings of LEDBAT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LedbatSettings {
    /// The window before the first ACK, in segments.
    pub initial_window: f64,
    /// The queueing delay to keep, in seconds.
    pub target: f64,
    /// The growth of the window on an empty path, in segments a round trip.
    pub gain: f64,
}

impl LedbatSettings {
    /// rfc-6817 sec. 2.5: INIT_CWND 2; "TARGET MUST be 100 milliseconds or less"; "GAIN MUST be set to 1 or less".
    pub const DEFAULT: Self = Self { initial_window: 2.0, target: 0.1, gain: 1.0 };
}

impl Table for LedbatSettings {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.initial_window(&mut self.initial_window);
        let help = "queueing delay to keep";
        fields.seconds("target", &mut self.target, Span::from_millis(1)..=Span::from_millis(100), help);
        let help = "growth a round trip on an empty path";
        fields.number("gain", &mut self.gain, 0.01..=1.0, "segments", help);
    }
}

/// The least RTT of each of the last minutes, and the last few samples.
#[derive(Clone, Debug, Default)]
struct Delays {
    /// The newest last, in seconds.
    minutes: VecDeque<f64>,
    minute_began: Time,
    latest: VecDeque<f64>,
}

impl Delays {
    fn add(&mut self, now: Time, rtt: f64) {
        if self.minutes.is_empty() || now.since(self.minute_began) >= MINUTE {
            self.minute_began = now;
            self.minutes.push_back(rtt);
            if self.minutes.len() > MINUTES {
                self.minutes.pop_front();
            }
        }
        if let Some(least) = self.minutes.back_mut() {
            *least = least.min(rtt);
        }
        self.latest.push_back(rtt);
        if self.latest.len() > LATEST {
            self.latest.pop_front();
        }
    }

    /// Seconds; `None` before the first sample.
    fn queueing(&self) -> Option<f64> {
        let least = |of: &VecDeque<f64>| of.iter().copied().min_by(f64::total_cmp);
        Some(least(&self.latest)? - least(&self.minutes)?)
    }
}

/// LEDBAT's window for one path.
#[derive(Clone, Debug)]
pub struct Ledbat {
    /// Segments; finite, at least [`WINDOW_MIN`].
    window: f64,
    before_loss: Option<f64>,
    delays: Delays,
    window_initial: f64,
    target: f64,
    gain: f64,
}

impl Ledbat {
    pub(crate) fn new(settings: &LedbatSettings) -> Self {
        let LedbatSettings { initial_window, target, gain } = *settings;
        let window_initial = initial_window;
        Self { window: window_initial, before_loss: None, delays: Delays::default(), window_initial, target, gain }
    }
}

impl Controller for Ledbat {
    fn hears_first(&self) -> bool {
        false
    }

    fn on_ack(&mut self, path: &PathView, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.delays.add(path.now, rtt.as_secs_f64());
        }
        let Some(delay) = self.delays.queueing().filter(|_| ack.phase == Phase::Open) else { return };
        // [rfc-6817] sec. 2.4.2: cwnd += GAIN * off_target * bytes_newly_acked * MSS / cwnd.
        let off_target = (self.target - delay) / self.target;
        let grown = self.window + self.gain * off_target * ack.newly_acked / self.window;
        let flight = path.flight + ack.newly_acked + ack.newly_lost;
        // A window that is not used does not grow; but it does not shrink for that reason.
        let most = (flight + ALLOWED_INCREASE).max(self.window.min(grown));
        self.window = grown.min(most).max(LEAST);
    }

    fn on_loss(&mut self, _path: &PathView, loss: &Loss) {
        self.before_loss = Some(self.window);
        self.window = match loss.signal {
            Signal::Timeout => WINDOW_MIN,
            Signal::DupAcks | Signal::Ecn => self.window.min((self.window / 2.0).max(LEAST)),
        };
    }

    fn on_undo(&mut self, _path: &PathView) {
        self.window = self.window.max(self.before_loss.take().unwrap_or(self.window));
    }

    fn on_restart(&mut self, _path: &PathView, restart: Restart) {
        match restart {
            Restart::Established | Restart::AfterTimeout => {}
            // [rfc-5681] sec. 4.1.
            Restart::Idle => self.window = self.window.min(self.window_initial),
            Restart::PathChanged => {
                (self.window, self.delays) = (self.window_initial, Delays::default());
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
        gauges.show("delay_s", self.delays.queueing().unwrap_or(0.0));
    }
}

/// rfc-6817 sec. 2.5: MIN_CWND "SHOULD be 2".
const LEAST: f64 = 2.0;

/// rfc-6817 sec. 2.5: ALLOWED_INCREASE "SHOULD be 1".
const ALLOWED_INCREASE: f64 = 1.0;

/// rfc-6817 sec. 2.5: BASE_HISTORY "SHOULD be 10" minutes.
const MINUTES: usize = 10;

const MINUTE: Span = Span::from_secs(60);

/// rfc-6817 sec. 2.5: CURRENT_FILTER, four samples are usual.
const LATEST: usize = 4;

#[cfg(test)]
mod tests;
