//! Flows whose events are drawn from a seed: a window of the Rust law over a bottleneck with a buffer, jitter, losses of each kind, a rival that
//! comes and goes, recoveries, undos, idle times, reroutes, and phases in which the application limits the sender.

use std::collections::VecDeque;

use anabranch_bpf::{Event, Kind, Law, Settings};
use anabranch_cc::controller::{
    Ack, Cause, Controller, Departure, Gauges, Limit, Loss, PathSummary, PathView, Phase, Progress, Restart, Signal,
};
use anabranch_units::{Bytes, Span, Time};

const MSS: u64 = 1000;

/// A flow, and what has happened to it.
pub(crate) struct Flow {
    controller: Box<dyn Controller>,
    random: Random,
    /// Each event with the window of the Rust law after it.
    pub(crate) trace: Vec<(Event, f64)>,
    /// ACKs by the mode of the default law.
    pub(crate) modes: [u64; 4],
    /// Whether the law hears of a share of alpha.
    is_coupled: bool,
    /// The largest product of bandwidth and delay over three segments.
    largest: f64,
    now: f64,
    path: Path,
    /// Segments in flight, delivered, and those of a rival that fills the queue.
    flight: f64,
    delivered: f64,
    rival: Option<f64>,
    /// What was so at departures that are not acknowledged.
    departures: VecDeque<Left>,
    is_limited: bool,
    overflows: bool,
    repair: Repair,
    may_undo: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Path {
    /// The RTT without a queue, in ns.
    base: f64,
    /// The time for a segment at the bottleneck, in ns.
    spacing: f64,
    /// The segments that the queue holds.
    buffer: f64,
    /// The lost share.
    lossy: f64,
}

#[derive(Clone, Copy, Debug)]
struct Left {
    at: f64,
    flight: f64,
    delivered: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Repair {
    None,
    /// Fast recovery; ACKs to come.
    Recovery(u64),
    /// After a timeout; ACKs to come.
    Timeout(u64),
}

impl Flow {
    pub(crate) fn new(law: Law, settings: &Settings, seed: u64) -> Self {
        let settings = settings.decode();
        let mut flow = Self {
            controller: settings.row().build(&settings),
            random: Random(seed),
            trace: vec![],
            modes: [0; 4],
            is_coupled: law == Law::Anabranch,
            // The default law needs minutes to show all its modes.
            largest: if law == Law::Anabranch { 100.0 } else { 1000.0 },
            now: 1e9,
            path: Path::default(),
            flight: 1.0,
            delivered: 0.0,
            rival: None,
            departures: VecDeque::new(),
            is_limited: false,
            overflows: false,
            repair: Repair::None,
            may_undo: false,
        };
        flow.take_path();
        flow
    }

    /// Ends the flow and begins another one.
    pub(crate) fn begin_anew(&mut self) {
        (self.repair, self.is_limited, self.may_undo, self.overflows) = (Repair::None, false, false, false);
        self.take_path();
        self.happen(Event::new(Kind::PathChanged, self.now as u64));
    }

    /// 1 to 300 ms, a bandwidth-delay product from 3 segments on, and a queue of a quarter to four of them.
    fn take_path(&mut self) {
        let base = 1e6 * self.random.log(300.0);
        let fits = 3.0 * self.random.log(self.largest);
        let lossy = [0.0, 0.0, 0.001, 0.01, 0.2][self.random.below(5.0) as usize];
        self.path = Path { base, spacing: base / fits, buffer: 0.25 * self.random.log(16.0) * fits, lossy };
        self.rival = self.random.one_in(3).then_some(1.0);
        self.flight = 1.0;
        self.departures.clear();
    }

    /// One event.
    pub(crate) fn step(&mut self) {
        let loss = |kind, is_random, flow: &Self| Event { is_random, ..Event::new(kind, flow.now as u64) };
        match self.repair {
            Repair::Recovery(0) => {
                self.repair = Repair::None;
                let is_undone = self.may_undo && self.random.one_in(5);
                let kind = if is_undone { Kind::Undo } else { Kind::Recovered };
                self.may_undo &= !is_undone;
                return self.happen(loss(kind, false, self));
            }
            Repair::Timeout(0) => {
                self.repair = Repair::None;
                let is_undone = self.may_undo && self.random.one_in(5);
                let kind = if is_undone { Kind::Undo } else { Kind::AfterTimeout };
                self.may_undo &= !is_undone;
                return self.happen(loss(kind, false, self));
            }
            Repair::Recovery(left) => self.repair = Repair::Recovery(left - 1),
            Repair::Timeout(left) => self.repair = Repair::Timeout(left - 1),
            Repair::None => {}
        }
        let is_open = self.repair == Repair::None;
        let acks = 1 + self.random.below(2.0 * self.controller.window()) as u64;
        if is_open && self.overflows {
            (self.repair, self.may_undo, self.overflows) = (Repair::Recovery(acks), true, false);
            return self.happen(loss(Kind::DupAcks, false, self));
        }
        // In a recovery from a loss that seemed random, another loss may show that it is congestion.
        let may_lose = is_open || matches!(self.repair, Repair::Recovery(_)) && self.random.one_in(4);
        if may_lose && self.random.one_in(if self.path.lossy > 0.0 { 150 } else { 1500 }) {
            (self.repair, self.may_undo) = (Repair::Recovery(acks), true);
            let is_random = self.random.one_in(2);
            return self.happen(loss(Kind::DupAcks, is_random, self));
        }
        if self.random.one_in(5000) {
            (self.repair, self.may_undo) = (Repair::Timeout(acks), true);
            return self.happen(loss(Kind::Timeout, false, self));
        }
        if is_open && self.random.one_in(4000) {
            return self.happen(loss(Kind::Ecn, false, self));
        }
        if is_open && self.random.one_in(4000) {
            self.now += 4.0 * self.path.base;
            // An undo does not follow a restart.
            self.may_undo = false;
            return self.happen(loss(Kind::Idle, false, self));
        }
        if self.is_coupled && self.random.one_in(2000) {
            // A loss that follows at once sees it, too.
            self.overflows |= self.random.one_in(2);
            let share = [1.0, (1.0 + self.random.below(65_535.0).floor()) / 65_536.0][self.random.below(2.0) as usize];
            return self.happen(Event { acked: share, ..Event::new(Kind::Share, self.now as u64) });
        }
        if self.random.one_in(3000) {
            let base = self.path.base * (0.4 + self.random.below(2.6));
            self.path.base = base.clamp(1e5, 2e9);
        }
        if self.random.one_in(4000) {
            self.rival = if self.rival.is_some() { None } else { Some(1.0) };
        }
        if self.random.one_in(200) {
            self.is_limited = !self.is_limited && self.random.one_in(4);
        }
        self.ack();
    }

    fn ack(&mut self) {
        let Path { base, spacing, buffer, lossy } = self.path;
        let acked = [1.0, 1.0, 1.0, 2.0, 2.0, 0.5, 3.0, 12.0][self.random.below(8.0) as usize];
        let fits = base / spacing;
        let all = self.flight + self.rival.unwrap_or(0.0);
        let stall = if self.random.one_in(150) { self.random.below(base) } else { 0.0 };
        let passed = acked / self.flight * all.max(fits) * spacing * (0.95 + self.random.below(0.1)) + stall;
        self.now += passed;
        self.delivered += acked;
        let queue = (all - fits).clamp(0.0, buffer) * spacing;
        let jitter =
            self.random.below(0.002) * base + if self.random.one_in(40) { self.random.below(0.1) * base } else { 0.0 };
        let rtt = base + queue + jitter;
        while self.departures.get(1).is_some_and(|next| next.at <= self.now - rtt) {
            self.departures.pop_front();
        }
        let Left { flight: old, delivered, .. } = self.departures.front().copied().unwrap_or(Left {
            at: 0.0,
            flight: acked,
            delivered: self.delivered - acked,
        });
        // A rival fills the buffer in a few seconds, and halves.
        if let Some(rival) = &mut self.rival {
            *rival = (*rival + (fits + buffer) * passed / 4e9).min(fits + buffer);
        }
        if all > fits + buffer {
            self.rival = self.rival.map(|rival| 0.6 * rival);
            self.overflows = true;
        }
        let share = if self.is_limited { 0.2 + self.random.below(0.8) } else { 1.0 };
        let goal = (self.controller.window() * share).floor().max(1.0);
        self.flight =
            if goal < self.flight { (self.flight - acked).max(goal) } else { (self.flight + 2.0 * acked).min(goal) };
        self.departures.push_back(Left { at: self.now, flight: self.flight, delivered: self.delivered });
        let is_lossy = self.random.below(1.0) < lossy;
        let lost = if is_lossy { 1.0 + self.random.below(3.0).floor() } else { 0.0 };
        let (is_short, has_rtt) = (self.random.one_in(60), !self.random.one_in(50));
        self.happen(Event {
            acked,
            lost,
            old: old.max(1.0),
            delivered: self.delivered - delivered,
            rtt: has_rtt.then_some(rtt as u64),
            is_short,
            is_limited: self.is_limited,
            in_recovery: matches!(self.repair, Repair::Recovery(_)),
            ..Event::new(Kind::Ack, self.now as u64)
        });
    }

    /// Tells the Rust law of an event, and notes it.
    fn happen(&mut self, event: Event) {
        tell(&mut *self.controller, &event);
        let mut gauges = Gauges::default();
        self.controller.gauges(&mut gauges);
        if let Some(count) = gauges.value("mode").and_then(|mode| self.modes.get_mut(mode as usize)) {
            *count += 1;
        }
        self.trace.push((event, self.controller.window()));
    }
}

/// Tells the Rust law of an event.
pub(crate) fn tell(controller: &mut dyn Controller, event: &Event) {
    let now = Time::ZERO + Span::from_ticks(event.now);
    let progress = |delivered| Progress { delivered, ..Progress::default() };
    let departure = Departure { time: now, window: event.old, flight: event.old, ..Departure::default() };
    let path = PathView { now, flight: event.old, mss: Bytes::new(MSS), ..PathView::default() };
    let path = PathView { progress: progress(event.delivered), ..path };
    let loss = |signal, cause| Loss { signal, cause, lost: 1.0, departure };
    match event.kind {
        Kind::Ack => controller.on_ack(
            &path,
            &Ack {
                newly_acked: event.acked,
                newly_lost: event.lost,
                rtt: event.rtt.map(Span::from_ticks),
                size: Bytes::new(if event.is_short { MSS / 4 } else { MSS }),
                arrival: now,
                departure,
                limit: if event.is_limited { Limit::Application } else { Limit::Window },
                phase: if event.in_recovery { Phase::Recovery } else { Phase::Open },
                ..Ack::default()
            },
        ),
        Kind::DupAcks => {
            let cause = if event.is_random { Cause::Random } else { Cause::Congestion };
            controller.on_loss(&path, &loss(Signal::DupAcks, cause));
        }
        Kind::Timeout => controller.on_loss(&path, &loss(Signal::Timeout, Cause::Unknown)),
        Kind::Ecn => controller.on_loss(&path, &loss(Signal::Ecn, Cause::Congestion)),
        Kind::Recovered => controller.on_recovered(&path),
        Kind::Undo => controller.on_undo(&path),
        Kind::Idle => controller.on_restart(&path, Restart::Idle),
        Kind::AfterTimeout => controller.on_restart(&path, Restart::AfterTimeout),
        Kind::PathChanged => controller.on_restart(&path, Restart::PathChanged),
        Kind::Share => share(controller, &path, event.acked),
    }
}

/// Another path waits as long as this one, and carries what leaves this one `share` of both; it counts after eight rounds.
fn share(controller: &mut dyn Controller, path: &PathView, share: f64) {
    let summary = |number, window| PathSummary {
        path: number,
        own: number == 0,
        window,
        flight: window,
        rtt_smoothed: Some(Span::from_millis(60)),
        rtt_min: Some(Span::from_millis(50)),
        ..PathSummary::default()
    };
    let both = [summary(0, 100.0), summary(1, 100.0 / share - 100.0)];
    let group = if share < 1.0 { &both[..] } else { &both[..1] };
    (0..8).for_each(|_| controller.on_group(path, group));
}

/// SplitMix64: enough for tests, and the same everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From zero to below `most`.
    pub(crate) fn below(&mut self, most: f64) -> f64 {
        most * (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.next().is_multiple_of(count)
    }

    /// From 1 to `most`, even on a logarithmic scale.
    fn log(&mut self, most: f64) -> f64 {
        most.powf(self.below(1.0))
    }
}
