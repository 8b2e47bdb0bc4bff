//! ProbeBW: the cycle of probes for more bandwidth (bbr-draft sec. 5.3.3).

use anabranch_units::{Span, Time};

use super::congestion::is_too_high;
use super::{Bbr, Event, State};

/// The part of the probe that the present ACKs belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Feedback {
    /// There was no probe.
    #[default]
    None,
    Refilling,
    /// The probe has begun; the acknowledged segments left before it.
    Starting,
    /// The acknowledged segments belong to the probe.
    Arriving,
    /// The probe is over; the acknowledged segments may still belong to it.
    Stopping,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    feedback: Feedback,
    /// When Down began.
    since: Time,
    /// The time from then to the next probe.
    wait: Span,
    rounds_since_probe: u32,
    /// Whether losses belong to a probe that has had no response yet.
    pub(super) is_probe_sample: bool,
    /// Whether the last probe caused losses.
    pub(super) was_too_high: bool,
    /// Whether the last probe stopped early to avoid losses.
    was_cautious: bool,
    /// Segments to be acknowledged for one more of `inflight_longterm`; infinite if it does not grow.
    acked_per_step: f64,
    acked: f64,
    doublings: u32,
}

impl Default for Cycle {
    fn default() -> Self {
        Self {
            feedback: Feedback::None,
            since: Time::ZERO,
            wait: Span::ZERO,
            rounds_since_probe: 0,
            is_probe_sample: false,
            was_too_high: false,
            was_cautious: false,
            acked_per_step: f64::INFINITY,
            acked: 0.0,
            doublings: 0,
        }
    }
}

impl Cycle {
    pub(super) fn on_round(&mut self) {
        self.rounds_since_probe = self.rounds_since_probe.saturating_add(1);
    }

    /// Samples of ProbeRtt belong to no probe.
    pub(super) fn stop_feedback(&mut self) {
        self.feedback = Feedback::Stopping;
    }
}

impl Bbr {
    pub(super) fn start_down(&mut self, now: Time, delivered: f64) {
        self.congestion.reset();
        self.cycle.acked_per_step = f64::INFINITY;
        // [bbr-draft] sec. 5.3.3.8.3: 0 or 1 rounds, and 2 to 3 s.
        self.cycle.rounds_since_probe = self.random.below(now, 2);
        self.cycle.wait = WAIT_LEAST + Span::from_secs_f64(self.random.draw(now));
        self.cycle.since = now;
        self.cycle.feedback = Feedback::Stopping;
        self.model.start_round(delivered);
        self.state = State::Down;
    }

    pub(super) fn start_cruise(&mut self) {
        self.state = State::Cruise;
    }

    pub(super) fn start_refill(&mut self, delivered: f64) {
        self.bounds.reset_shortterm();
        (self.cycle.doublings, self.cycle.acked, self.cycle.was_cautious) = (0, 0.0, false);
        self.cycle.feedback = Feedback::Refilling;
        self.model.start_round(delivered);
        self.state = State::Refill;
    }

    fn start_up(&mut self, event: &Event<'_>) {
        self.cycle.feedback = Feedback::Starting;
        self.model.start_round(event.path.progress.delivered);
        self.full_pipe.reset();
        self.full_pipe.rate = event.rate();
        self.state = State::Up;
        self.raise_slope();
    }

    pub(super) fn update_cycle(&mut self, event: &Event<'_>) {
        if !self.full_pipe.is_reached || self.adapt_longterm(event) {
            return;
        }
        let delivered = event.path.progress.delivered;
        match self.state {
            State::Down => {
                if !self.check_time_to_probe(event) && self.is_time_to_cruise(event) {
                    self.start_cruise();
                }
            }
            State::Cruise => {
                self.check_time_to_probe(event);
            }
            State::Refill if self.model.is_round_start => {
                self.cycle.is_probe_sample = true;
                self.start_up(event);
            }
            State::Up => {
                if self.is_time_to_go_down(event) {
                    self.cycle.was_too_high = false;
                    self.start_down(event.now, delivered);
                }
            }
            State::Refill | State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    fn check_time_to_probe(&mut self, event: &Event<'_>) -> bool {
        let has_waited = event.now > self.cycle.since.saturating_add(self.cycle.wait);
        // [bbr-draft] sec. 5.3.3.8.1: the rounds that Reno needs to regain its window after a loss.
        let reno = self.volume(self.bandwidth(), 1.0).min(self.window).min(ROUNDS_MOST);
        let is_time = has_waited || f64::from(self.cycle.rounds_since_probe) >= reno;
        if is_time {
            self.start_refill(event.path.progress.delivered);
        }
        is_time
    }

    fn is_time_to_cruise(&self, event: &Event<'_>) -> bool {
        let bdp = self.quantized(self.volume(self.model.max_bw(), 1.0));
        event.flight() <= self.bounds.with_headroom() && event.flight() <= bdp
    }

    fn is_time_to_go_down(&mut self, event: &Event<'_>) -> bool {
        let longterm = self.bounds.inflight_longterm;
        if self.cycle.was_too_high && event.flight() >= longterm {
            self.cycle.was_cautious = true;
            return true;
        }
        if event.is_window_full() && self.window >= longterm {
            // The bound is what limits the rate.
            self.full_pipe.reset();
            self.full_pipe.rate = event.rate();
            return false;
        }
        self.full_pipe.is_now
    }

    /// In each round of a probe without losses the bound grows twice as fast as in the round before.
    fn raise_slope(&mut self) {
        let growth = f64::from(1_u32 << self.cycle.doublings);
        self.cycle.doublings = (self.cycle.doublings + 1).min(DOUBLINGS_MOST);
        self.cycle.acked_per_step = (self.window / growth).max(1.0);
    }

    fn raise_longterm(&mut self, event: &Event<'_>) {
        if !event.is_window_full() || self.window < self.bounds.inflight_longterm {
            return;
        }
        self.cycle.acked += event.ack.newly_acked;
        if self.cycle.acked >= self.cycle.acked_per_step {
            let steps = (self.cycle.acked / self.cycle.acked_per_step).floor();
            self.cycle.acked -= steps * self.cycle.acked_per_step;
            self.bounds.inflight_longterm += steps;
        }
        if self.model.is_round_start {
            self.raise_slope();
        }
    }

    /// Adapts the long-term bound to the feedback of probes. Returns whether it chose the next state.
    fn adapt_longterm(&mut self, event: &Event<'_>) -> bool {
        if self.cycle.feedback == Feedback::Starting && self.model.is_round_start {
            self.cycle.feedback = Feedback::Arriving;
        }
        if self.cycle.feedback == Feedback::Stopping && self.model.is_round_start {
            self.cycle.is_probe_sample = false;
            self.cycle.feedback = Feedback::None;
            if self.state.is_probe_bw() {
                if event.is_full {
                    self.model.advance_cycle();
                }
                if self.cycle.was_cautious && !self.cycle.was_too_high {
                    self.start_refill(event.path.progress.delivered);
                    return true;
                }
            }
        }
        if !is_too_high(event) && self.bounds.inflight_longterm.is_finite() {
            self.bounds.inflight_longterm = self.bounds.inflight_longterm.max(event.sample.flight);
            if self.state == State::Up {
                self.raise_longterm(event);
            }
        }
        false
    }
}

/// bbr-draft sec. 5.3.3.8.3.
const WAIT_LEAST: Span = Span::from_secs(2);

/// bbr-draft sec. 5.3.3.8.2: so that a probe is not too far off on fast paths.
const ROUNDS_MOST: f64 = 63.0;

/// bbr-draft sec. 5.3.3.9: 2^30 segments fit in any path.
const DOUBLINGS_MOST: u32 = 30;
