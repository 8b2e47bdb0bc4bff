//! BBR's model of the path: bandwidth, RTT, and the aggregation of ACKs (bbr-draft sec. 5.5.1 to 5.5.9).

use anabranch_units::Time;

use super::Event;
use crate::controller::PathView;
use crate::delivery::WindowedMax;

/// Bandwidth, RTT, rounds and ACK aggregation.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// The bandwidth in this cycle of probes and the one before, in segments per second.
    bw: WindowedMax,
    cycles: u64,
    /// The least RTT in seconds; infinite before the first sample.
    pub(super) rtt_min: f64,
    rounds: u64,
    /// The round ends with the ACK of a segment that left when at least this many segments had been delivered.
    round_end: f64,
    pub(super) is_round_start: bool,
    /// The excess of acknowledged segments (`extra_acked`) in the last ten rounds.
    extra: WindowedMax,
    /// When the present excess of acknowledged segments began.
    bulk_since: Time,
    /// The size of that excess.
    bulk_acked: f64,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            bw: WindowedMax::default(),
            cycles: 0,
            rtt_min: f64::INFINITY,
            rounds: 0,
            round_end: 0.0,
            is_round_start: false,
            extra: WindowedMax::default(),
            bulk_since: Time::ZERO,
            bulk_acked: 0.0,
        }
    }
}

impl Model {
    pub(super) fn begin(&mut self, path: &PathView) {
        self.rtt_min = path.rtt_smoothed.map_or(f64::INFINITY, |rtt| rtt.as_secs_f64());
        self.round_end = path.progress.delivered;
        self.bulk_since = path.now;
    }

    /// The bandwidth in segments per second; zero before the first sample.
    pub(super) fn max_bw(&self) -> f64 {
        self.bw.max()
    }

    pub(super) fn extra_acked(&self) -> f64 {
        self.extra.max()
    }

    pub(super) fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Begins a round with the segments that leave from now on.
    pub(super) fn start_round(&mut self, delivered: f64) {
        self.round_end = delivered;
    }

    /// Ends a cycle of probes.
    pub(super) fn advance_cycle(&mut self) {
        self.cycles += 1;
    }

    /// Counts the round, and takes the sample if it is valid for the path. Returns whether a round began.
    pub(super) fn update_bandwidth(&mut self, event: &Event<'_>) -> bool {
        self.is_round_start = event.sample.delivered_before >= self.round_end;
        if self.is_round_start {
            self.start_round(event.path.progress.delivered);
            self.rounds += 1;
        }
        if let Some(rate) = event.sample.rate
            && (rate >= self.max_bw() || event.is_full)
        {
            self.bw.update(self.cycles, CYCLES, rate);
        }
        self.is_round_start
    }

    /// [bbr-draft] sec. 5.5.9: what is acknowledged beyond the bandwidth is aggregation; at most a window counts.
    pub(super) fn update_aggregation(&mut self, event: &Event<'_>, window: f64, is_full_pipe: bool) {
        let mut expected = self.max_bw() * event.now.since(self.bulk_since).as_secs_f64();
        if self.bulk_acked <= expected {
            (self.bulk_acked, self.bulk_since, expected) = (0.0, event.now, 0.0);
        }
        self.bulk_acked += event.ack.newly_acked;
        let extra = (self.bulk_acked - expected).min(window);
        self.extra.update(self.rounds, if is_full_pipe { EXTRA_ROUNDS } else { 1 }, extra);
    }

    /// Handles the restart after idle time.
    pub(super) fn on_idle(&mut self, now: Time) {
        self.bulk_since = now;
    }
}

/// bbr-draft MaxBwFilterLen: the present cycle and the one before it.
const CYCLES: u64 = 2;

/// bbr-draft ExtraAckedFilterLen.
const EXTRA_ROUNDS: u64 = 10;
