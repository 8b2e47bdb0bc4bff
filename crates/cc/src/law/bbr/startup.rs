//! Startup and Drain: fills the pipe, detects that it is full, and drains the queue (bbr-draft sec. 5.3.1 and 5.3.2).

use super::congestion::is_too_high;
use super::{Bbr, Event, State};
use crate::controller::Phase;

/// Whether the delivery rate has ceased to grow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// The rate that later samples are compared with, in segments per second.
    pub(super) rate: f64,
    rounds: u32,
    /// Whether the pipe is full in the present probe.
    pub(super) is_now: bool,
    /// Whether the pipe has been full at any time.
    pub(super) is_reached: bool,
}

impl FullPipe {
    /// Starts the detection again.
    pub(super) fn reset(&mut self) {
        (self.rate, self.rounds, self.is_now) = (0.0, 0, false);
    }
}

/// Losses in Startup.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StartupLoss {
    /// ACKs in this round that revealed losses.
    count: u32,
    /// The round in which the recovery began.
    recovery: u64,
}

impl StartupLoss {
    pub(super) fn count(&mut self) {
        self.count += 1;
    }

    pub(super) fn on_recovery(&mut self, round: u64) {
        self.recovery = round;
    }
}

impl Bbr {
    pub(super) fn check_full_pipe(&mut self, event: &Event<'_>) {
        let full = &mut self.full_pipe;
        if full.is_now || !self.model.is_round_start || !event.is_full {
            return;
        }
        if event.rate() >= full.rate * GROWTH {
            full.reset();
            full.rate = event.rate();
            return;
        }
        full.rounds += 1;
        full.is_now = full.rounds >= ROUNDS_FULL;
        full.is_reached |= full.is_now;
    }

    pub(super) fn check_startup(&mut self, event: &Event<'_>) {
        self.check_startup_loss(event);
        if self.state == State::Startup && self.full_pipe.is_reached {
            self.state = State::Drain;
            self.drain_began = self.model.rounds();
        }
    }

    /// [bbr-draft] sec. 5.3.1.3: a round of fast recovery with losses here and there that are more than 2 %.
    fn check_startup_loss(&mut self, event: &Event<'_>) {
        if !self.congestion.is_round_start {
            return;
        }
        let count = std::mem::take(&mut self.startup_loss.count);
        let is_long = event.ack.phase == Phase::Recovery && self.model.rounds() > self.startup_loss.recovery;
        if self.full_pipe.is_reached || count < LOSSES_FULL || !is_long || !is_too_high(event) {
            return;
        }
        self.undo.state = Some(State::Startup);
        self.full_pipe.is_reached = true;
        let bdp = self.volume(self.bandwidth(), 1.0);
        self.bounds.inflight_longterm = bdp.max(self.congestion.inflight_latest);
    }

    pub(super) fn check_drain(&mut self, event: &Event<'_>) {
        if self.state != State::Drain {
            return;
        }
        let is_empty = event.flight() <= self.quantized(self.volume(self.bandwidth(), 1.0));
        if is_empty || self.model.rounds() > self.drain_began + ROUNDS_DRAIN {
            self.start_down(event.now, event.path.progress.delivered);
        }
    }
}

/// bbr-draft sec. 5.3.1.2: less than a quarter a round does not count as growth.
const GROWTH: f64 = 1.25;

/// bbr-draft sec. 5.3.1.2: three rounds without growth.
const ROUNDS_FULL: u32 = 3;

/// bbr-draft StartupFullLossCnt.
const LOSSES_FULL: u32 = 6;

/// bbr-draft sec. 5.3.2: after so many rounds the estimate is wrong, and waiting longer drains no queue.
const ROUNDS_DRAIN: u64 = 3;
