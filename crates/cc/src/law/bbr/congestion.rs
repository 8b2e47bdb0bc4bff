//! The bounds that losses set: short-term ones, and long-term ones that stay until a probe finds more (bbr-draft sec. 5.5.10).

use super::{Bbr, Event, State, Undo, WINDOW_PIPE};

/// Upper bounds; infinite where there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    /// Segments per second, until the next probe.
    pub(super) bw_shortterm: f64,
    /// Segments, until the next probe.
    pub(super) inflight_shortterm: f64,
    /// Segments that are known to fit.
    pub(super) inflight_longterm: f64,
}

impl Bounds {
    pub(super) const NONE: Self =
        Self { bw_shortterm: f64::INFINITY, inflight_shortterm: f64::INFINITY, inflight_longterm: f64::INFINITY };

    /// Forgets the short-term bounds.
    pub(super) fn reset_shortterm(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (f64::INFINITY, f64::INFINITY);
    }

    /// The segments that are known to fit, less the headroom for other flows.
    pub(super) fn with_headroom(&self) -> f64 {
        if self.inflight_longterm.is_infinite() {
            return f64::INFINITY;
        }
        let headroom = (HEADROOM * self.inflight_longterm).max(1.0);
        (self.inflight_longterm - headroom).max(WINDOW_PIPE)
    }

    fn max(&self, other: &Self) -> Self {
        Self {
            bw_shortterm: self.bw_shortterm.max(other.bw_shortterm),
            inflight_shortterm: self.inflight_shortterm.max(other.inflight_shortterm),
            inflight_longterm: self.inflight_longterm.max(other.inflight_longterm),
        }
    }
}

/// The signals of the current round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Congestion {
    has_loss: bool,
    /// The largest rate in this round.
    bw_latest: f64,
    /// The largest volume in this round.
    pub(super) inflight_latest: f64,
    /// The round ends with the ACK of a segment that left when at least this many segments had been delivered.
    round_end: f64,
    pub(super) is_round_start: bool,
}

impl Congestion {
    pub(super) fn reset(&mut self) {
        (self.has_loss, self.bw_latest, self.inflight_latest) = (false, 0.0, 0.0);
    }

    /// Begins the next round, at the end of the ACK that ended this one.
    pub(super) fn advance(&mut self, event: &Event<'_>) {
        if self.is_round_start {
            (self.bw_latest, self.inflight_latest) = (event.rate(), event.sample.delivered);
        }
    }
}

impl Bbr {
    pub(super) fn note_deliveries(&mut self, event: &Event<'_>) {
        let congestion = &mut self.congestion;
        congestion.bw_latest = congestion.bw_latest.max(event.rate());
        congestion.inflight_latest = congestion.inflight_latest.max(event.sample.delivered);
        congestion.is_round_start = event.sample.delivered_before >= congestion.round_end;
        if congestion.is_round_start {
            congestion.round_end = event.path.progress.delivered;
        }
    }

    pub(super) fn update_congestion(&mut self, event: &Event<'_>) {
        if self.model.update_bandwidth(event) {
            self.cycle.on_round();
        }
        if !self.congestion.is_round_start {
            return;
        }
        if self.congestion.has_loss && !self.state.is_probing() {
            self.lower_bounds();
        }
        self.congestion.has_loss = false;
    }

    /// Lowers the short-term bounds once in a round with losses: to what was delivered, but to no less than 0.7 of the old bounds.
    fn lower_bounds(&mut self) {
        let Self { bounds, congestion, .. } = self;
        if bounds.bw_shortterm.is_infinite() {
            bounds.bw_shortterm = self.model.max_bw();
        }
        if bounds.inflight_shortterm.is_infinite() {
            bounds.inflight_shortterm = self.window;
        }
        bounds.bw_shortterm = congestion.bw_latest.max(BETA * bounds.bw_shortterm);
        bounds.inflight_shortterm = congestion.inflight_latest.max(BETA * bounds.inflight_shortterm);
    }

    /// Handles an ACK that reveals losses.
    pub(super) fn handle_losses(&mut self, event: &Event<'_>) {
        self.startup_loss.count();
        if !self.congestion.has_loss {
            self.congestion.round_end = event.path.progress.delivered;
            self.save_window();
            self.save_for_undo();
        }
        self.congestion.has_loss = true;
        if self.cycle.is_probe_sample && is_too_high(event) {
            self.lower_longterm(event);
        }
    }

    /// Handles a probe that went too high. [bbr-draft] sec. 5.5.10.2: the new bound is the volume at which the losses became more than 2 % of it,
    /// if the segments lost now were the last to leave.
    fn lower_longterm(&mut self, event: &Event<'_>) {
        let lost_now = event.ack.newly_lost;
        let (before, lost_before) = (event.sample.flight - lost_now, event.sample.lost - lost_now);
        let share = ((LOSS_MOST * before - lost_before) / (1.0 - LOSS_MOST)).max(0.0);
        let fits = (before + share).max(0.0);
        self.cycle.was_too_high = true;
        self.cycle.is_probe_sample = false;
        if event.is_full {
            let target = self.volume(self.bandwidth(), 1.0).min(self.window);
            self.bounds.inflight_longterm = fits.max(BETA * target);
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(event.now, event.path.progress.delivered);
        }
    }

    pub(super) fn save_for_undo(&mut self) {
        self.undo = Undo { state: None, bounds: self.bounds };
    }

    /// [bbr-draft] sec. 5.5.11.2: the losses were spurious.
    pub(super) fn undo_loss(&mut self, delivered: f64) {
        self.restore_window();
        self.congestion.has_loss = false;
        self.full_pipe.reset();
        self.bounds = self.bounds.max(&self.undo.bounds);
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.is_reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => self.start_refill(delivered),
            _ => {}
        }
    }
}

/// Whether more than 2 % of the flight is lost.
pub(super) fn is_too_high(event: &Event<'_>) -> bool {
    event.sample.lost > event.sample.flight * LOSS_MOST
}

/// bbr-draft LossThresh.
const LOSS_MOST: f64 = 0.02;

/// bbr-draft Beta.
const BETA: f64 = 0.7;

/// bbr-draft Headroom.
const HEADROOM: f64 = 0.15;
