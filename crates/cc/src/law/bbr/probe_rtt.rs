//! ProbeRTT: every five seconds the flight is reduced for a short time, to measure an RTT without a queue (bbr-draft sec. 5.3.4).

use anabranch_units::{Span, Time};

use super::{Bbr, Event, State, WINDOW_PIPE};
use crate::controller::PathView;
use crate::delivery::HeldBack;

/// The time of the next ProbeRTT, and the least RTTs.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeRtt {
    /// The least RTT since the last ProbeRTT in seconds.
    delay_min: f64,
    /// When `delay_min` was measured.
    seen: Time,
    is_expired: bool,
    /// When [`super::model::Model::rtt_min`] was measured.
    rtt_min_seen: Time,
    /// When ProbeRTT ends; set once the flight is small enough.
    done: Option<Time>,
    is_round_done: bool,
    pub(super) held_back: HeldBack,
}

impl Default for ProbeRtt {
    fn default() -> Self {
        Self {
            delay_min: f64::INFINITY,
            seen: Time::ZERO,
            is_expired: false,
            rtt_min_seen: Time::ZERO,
            done: None,
            is_round_done: false,
            held_back: HeldBack::default(),
        }
    }
}

impl ProbeRtt {
    pub(super) fn begin(&mut self, path: &PathView) {
        self.delay_min = path.rtt_smoothed.map_or(f64::INFINITY, |rtt| rtt.as_secs_f64());
        (self.seen, self.rtt_min_seen) = (path.now, path.now);
    }
}

impl Bbr {
    pub(super) fn update_rtt_min(&mut self, event: &Event<'_>) {
        let probe = &mut self.probe_rtt;
        probe.is_expired = event.now > probe.seen.saturating_add(INTERVAL);
        if let Some(rtt) = event.ack.rtt.map(|rtt| rtt.as_secs_f64())
            && (rtt < probe.delay_min || probe.is_expired)
        {
            (probe.delay_min, probe.seen) = (rtt, event.now);
        }
        let is_old = event.now > probe.rtt_min_seen.saturating_add(RTT_MIN_AGE);
        if probe.delay_min < self.model.rtt_min || is_old {
            (self.model.rtt_min, probe.rtt_min_seen) = (probe.delay_min, probe.seen);
        }
    }

    pub(super) fn check_probe_rtt(&mut self, event: &Event<'_>) {
        let delivered = event.path.progress.delivered;
        if self.state != State::ProbeRtt && self.probe_rtt.is_expired && !self.is_after_idle {
            self.state = State::ProbeRtt;
            self.save_window();
            self.probe_rtt.done = None;
            self.probe_rtt.held_back.begin(event.path);
            self.cycle.stop_feedback();
            self.model.start_round(delivered);
        }
        if self.state == State::ProbeRtt {
            self.hold_little(event);
        }
        self.is_after_idle = false;
    }

    fn hold_little(&mut self, event: &Event<'_>) {
        let (delivered, most) = (event.path.progress.delivered, self.window_of_probe_rtt());
        let probe = &mut self.probe_rtt;
        probe.held_back.go_on(event.path);
        match probe.done {
            None if event.flight() <= most => {
                probe.done = Some(event.now.saturating_add(DURATION));
                probe.is_round_done = false;
                self.model.start_round(delivered);
            }
            None => {}
            Some(_) => {
                probe.is_round_done |= self.model.is_round_start;
                if probe.is_round_done {
                    self.check_probe_rtt_done(event.now, delivered);
                }
            }
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, now: Time, delivered: f64) {
        if self.probe_rtt.done.is_none_or(|done| now <= done) {
            return;
        }
        self.probe_rtt.seen = now;
        self.restore_window();
        self.bounds.reset_shortterm();
        if self.full_pipe.is_reached {
            self.start_down(now, delivered);
            self.start_cruise();
        } else {
            self.state = State::Startup;
        }
    }

    /// Half of what the path holds.
    pub(super) fn window_of_probe_rtt(&self) -> f64 {
        self.volume(self.bandwidth(), State::ProbeRtt.window_gain()).max(WINDOW_PIPE)
    }
}

/// bbr-draft ProbeRTTInterval.
const INTERVAL: Span = Span::from_secs(5);

/// bbr-draft MinRTTFilterLen.
const RTT_MIN_AGE: Span = Span::from_secs(10);

/// bbr-draft ProbeRTTDuration.
const DURATION: Span = Span::from_millis(200);
