//! Flows whose events are drawn from a seed: a window of the Rust law over a bottleneck with jitter, losses of each kind, recoveries, undos, idle
//! times, reroutes, and phases in which the application limits the sender.

use anabranch_bpf::{Event, Kind, Settings};
use anabranch_cc::controller::{Ack, Cause, Controller, Departure, Limit, Loss, PathView, Phase, Restart, Signal};
use anabranch_units::{Bytes, Span, Time};

const MSS: u64 = 1000;

/// A flow, and what has happened to it.
pub(crate) struct Flow {
    controller: Box<dyn Controller>,
    random: Random,
    /// Each event with the window of the Rust law after it.
    pub(crate) trace: Vec<(Event, f64)>,
    now: f64,
    /// The RTT without a queue, in ns.
    base: f64,
    /// The time for a segment at the bottleneck, in ns.
    spacing: f64,
    is_limited: bool,
    repair: Repair,
    may_undo: bool,
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
    pub(crate) fn new(settings: &Settings, seed: u64) -> Self {
        let settings = settings.decode();
        let mut flow = Self {
            controller: settings.row().build(&settings),
            random: Random(seed),
            trace: vec![],
            now: 1e9,
            base: 0.0,
            spacing: 0.0,
            is_limited: false,
            repair: Repair::None,
            may_undo: false,
        };
        flow.take_path();
        flow
    }

    /// Ends the flow and begins another one.
    pub(crate) fn begin_anew(&mut self) {
        (self.repair, self.is_limited, self.may_undo) = (Repair::None, false, false);
        self.take_path();
        self.happen(Event::new(Kind::PathChanged, self.now as u64));
    }

    /// 1 to 300 ms, and a bandwidth-delay product of 3 to 3000 segments.
    fn take_path(&mut self) {
        self.base = 1e6 * self.random.log(300.0);
        self.spacing = self.base / (3.0 * self.random.log(1000.0));
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
        // In a recovery from a loss that seemed random, another loss may show that it is congestion.
        let may_lose = is_open || matches!(self.repair, Repair::Recovery(_)) && self.random.one_in(4);
        if may_lose && self.random.one_in(300) {
            (self.repair, self.may_undo) = (Repair::Recovery(acks), true);
            let is_random = self.random.one_in(2);
            return self.happen(loss(Kind::DupAcks, is_random, self));
        }
        if self.random.one_in(3000) {
            (self.repair, self.may_undo) = (Repair::Timeout(acks), true);
            return self.happen(loss(Kind::Timeout, false, self));
        }
        if is_open && self.random.one_in(2000) {
            return self.happen(loss(Kind::Ecn, false, self));
        }
        if is_open && self.random.one_in(2000) {
            self.now += 4.0 * self.base;
            // An undo does not follow a restart.
            self.may_undo = false;
            return self.happen(loss(Kind::Idle, false, self));
        }
        if self.random.one_in(1500) {
            self.base *= 0.4 + self.random.below(2.6);
            self.base = self.base.clamp(1e5, 2e9);
        }
        if self.random.one_in(200) {
            self.is_limited = !self.is_limited && self.random.one_in(2);
        }
        self.ack();
    }

    fn ack(&mut self) {
        let acked = [1.0, 1.0, 1.0, 2.0, 2.0, 0.5, 3.0, 12.0][self.random.below(8.0) as usize];
        let gap = if self.random.one_in(150) { self.random.below(self.base) } else { 0.0 };
        self.now += acked * self.spacing * (0.95 + self.random.below(0.1)) + gap;
        let window = self.controller.window();
        let fits = self.base / self.spacing;
        let queue = (window - fits).clamp(0.0, 4.0 * fits) * self.spacing;
        let jitter = self.random.below(0.002) * self.base
            + if self.random.one_in(40) { self.random.below(0.1) * self.base } else { 0.0 };
        let rtt = (!self.random.one_in(50)).then_some((self.base + queue + jitter) as u64);
        let share = if self.is_limited { 0.2 + self.random.below(0.8) } else { 1.0 };
        let is_short = self.random.one_in(60);
        self.happen(Event {
            acked,
            old: (window * share).floor().max(1.0),
            rtt,
            is_short,
            is_limited: self.is_limited,
            in_recovery: matches!(self.repair, Repair::Recovery(_)),
            ..Event::new(Kind::Ack, self.now as u64)
        });
    }

    /// Tells the Rust law of an event, and notes it.
    fn happen(&mut self, event: Event) {
        let now = Time::ZERO + Span::from_ticks(event.now);
        let departure = Departure { time: now, window: event.old, flight: event.old, ..Departure::default() };
        let path = PathView { now, flight: event.old, mss: Bytes::new(MSS), ..PathView::default() };
        let loss = |signal, cause| Loss { signal, cause, lost: 1.0, departure };
        let controller = &mut self.controller;
        match event.kind {
            Kind::Ack => controller.on_ack(
                &path,
                &Ack {
                    newly_acked: event.acked,
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
        }
        self.trace.push((event, self.controller.window()));
    }
}

/// SplitMix64: enough for tests, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From zero to below `most`.
    fn below(&mut self, most: f64) -> f64 {
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
