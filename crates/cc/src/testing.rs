//! A flow for tests: a controller, a clock, and the bookkeeping of a transport.

pub(crate) mod bottleneck;

use anabranch_units::{Bytes, Span, Time};

use crate::controller::{
    Ack, Cause, Controller, Departure, Gauges, Limit, Loss, PathSummary, PathView, Phase, Progress, Restart, Round,
    Signal, Supply,
};
use crate::registry::{self, Settings};

/// The payload of a full segment.
pub(crate) const MSS: Bytes = Bytes::new(1000);

/// `ms` after the beginning of time.
pub(crate) fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// A full path whose RTT is always the same; 0 is the own one.
pub(crate) fn summary(path: u32, window: f64, rtt_ms: u64) -> PathSummary {
    let rtt = Some(Span::from_millis(rtt_ms));
    PathSummary { path, own: path == 0, window, flight: window, rtt_smoothed: rtt, rtt_min: rtt, ..Default::default() }
}

/// A path on which each window is sent at once and acknowledged segment by segment, one RTT later.
pub(crate) struct Flow {
    pub(crate) controller: Box<dyn Controller>,
    pub(crate) now: Time,
    pub(crate) rtt: Span,
    pub(crate) phase: Phase,
    pub(crate) limit: Limit,
    /// The limit of the flight, for an application that does not fill the window.
    pub(crate) flight_cap: f64,
    /// The size of the acknowledged segments.
    pub(crate) size: Bytes,
    /// Lost segments that the next ACK reports.
    pub(crate) newly_lost: f64,
    /// Marked segments that the next ACK reports.
    pub(crate) newly_marked: f64,
    /// Whether the sender had enough data when the acknowledged segment left.
    pub(crate) supply: Supply,
    progress: Progress,
    rtt_min: Span,
    rounds: u64,
}

impl Flow {
    /// A flow under the law `name`, set by `pairs`, on a path of 100 ms.
    #[track_caller]
    pub(crate) fn new(name: &str, pairs: &[(&str, &str)]) -> Self {
        let row = registry::find(name).unwrap();
        let controller = row.build(&Settings::parse(row, pairs.iter().copied()).unwrap());
        let rtt = Span::from_millis(100);
        let (phase, limit) = (Phase::Open, Limit::Window);
        Self {
            controller,
            now: Time::from_ticks(1_000_000_000),
            rtt,
            phase,
            limit,
            flight_cap: f64::INFINITY,
            size: MSS,
            newly_lost: 0.0,
            newly_marked: 0.0,
            supply: Supply::Enough,
            progress: Progress::default(),
            rtt_min: rtt,
            rounds: 0,
        }
    }

    pub(crate) fn window(&self) -> f64 {
        self.controller.window()
    }

    #[track_caller]
    pub(crate) fn gauge(&self, name: &str) -> f64 {
        let mut gauges = Gauges::default();
        self.controller.gauges(&mut gauges);
        gauges.value(name).unwrap_or_else(|| panic!("there is a gauge `{name}`"))
    }

    /// One ACK for `newly_acked` segments, now.
    pub(crate) fn ack(&mut self, newly_acked: f64) {
        let ack = self.next_ack(newly_acked);
        self.controller.on_ack(&self.view(), &ack);
    }

    /// The ACK that [`Self::ack`] gives to the controller.
    pub(crate) fn next_ack(&mut self, newly_acked: f64) -> Ack {
        self.rtt_min = self.rtt_min.min(self.rtt);
        let departure = self.departure();
        let newly_lost = std::mem::take(&mut self.newly_lost);
        self.progress.delivered += newly_acked;
        self.progress.lost += newly_lost;
        (self.progress.delivered_at, self.progress.departed) = (self.now, departure.time);
        let newly_marked = std::mem::take(&mut self.newly_marked);
        let (rtt, size, arrival) = (Some(self.rtt), self.size, self.now);
        let ack = Ack { newly_acked, rtt, size, arrival, departure, ..Ack::default() };
        Ack { newly_lost, newly_marked, limit: self.limit, phase: self.phase, ..ack }
    }

    /// One round: an RTT passes, within it each segment of the window is acknowledged by itself, then the round ends.
    pub(crate) fn round(&mut self) {
        let acks = self.window() as u64;
        let begin = self.now;
        for ack in 1..=acks {
            self.now = begin + Span::from_ticks(self.rtt.ticks() * ack / acks);
            self.ack(1.0);
        }
        let round = Round {
            count: self.rounds,
            elapsed: self.rtt,
            acked: acks as f64,
            rtt_min: Some(self.rtt),
            rtt_mean: Some(self.rtt),
        };
        self.rounds += 1;
        self.controller.on_round(&self.view(), &round);
    }

    pub(crate) fn rounds(&mut self, count: u32) {
        (0..count).for_each(|_| self.round());
    }

    /// A loss by duplicate ACKs and the recovery from it, without time passing.
    pub(crate) fn lose(&mut self, cause: Cause) {
        self.loss(Signal::DupAcks, cause);
        self.controller.on_recovered(&self.view());
    }

    pub(crate) fn timeout(&mut self) {
        self.loss(Signal::Timeout, Cause::Unknown);
    }

    pub(crate) fn loss(&mut self, signal: Signal, cause: Cause) {
        let loss = Loss { signal, cause, lost: 1.0, departure: self.departure() };
        self.controller.on_loss(&self.view(), &loss);
    }

    /// Undoes the latest loss as spurious.
    pub(crate) fn undo(&mut self) {
        self.controller.on_undo(&self.view());
    }

    pub(crate) fn restart(&mut self, restart: Restart) {
        self.controller.on_restart(&self.view(), restart);
    }

    pub(crate) fn view(&self) -> PathView {
        let flight = self.window().min(self.flight_cap);
        let view = PathView { now: self.now, flight, mss: MSS, progress: self.progress, ..PathView::default() };
        PathView { rtt_smoothed: Some(self.rtt), rtt_min: Some(self.rtt_min), ..view }
    }

    fn departure(&self) -> Departure {
        let flight = self.window().min(self.flight_cap);
        let ago = |span: Span| Time::ZERO + self.now.since(Time::ZERO).saturating_sub(span);
        let progress = Progress {
            delivered: (self.progress.delivered - flight).max(0.0),
            lost: self.progress.lost,
            delivered_at: ago(self.rtt),
            departed: ago(self.rtt.saturating_mul(2)),
        };
        Departure { time: self.now - self.rtt, window: self.window(), flight, progress, supply: self.supply }
    }
}

/// Asserts that `got` is near `expected`, with a relative tolerance.
#[track_caller]
pub(crate) fn assert_near(got: f64, expected: f64, tolerance: f64) {
    assert!(tolerance < 1.0, "the tolerance is relative: {tolerance} lets zero pass");
    let error = (got - expected).abs() / expected.abs();
    assert!(error <= tolerance, "expected {expected} within {tolerance}, got {got}: off by {error:.3e}");
}
