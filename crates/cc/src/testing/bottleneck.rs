//! A bottleneck for tests: one FIFO link that several flows share, each under its controller, packet by packet.
//!
//! The link serves `rate` segments a second; behind it each flow has a round-trip propagation time of its own. A flow sends
//! whenever its flight is below its window; if it is `paced`, at the engine's default pace. A segment counts as lost when the third segment
//! of the flow behind it is acknowledged, and is retransmitted at once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use anabranch_units::{Span, Time};

use crate::controller::{
    Ack, Cause, Controller, Departure, Gauges, Loss, PathView, Phase, Progress, Restart, Round, Sent, Signal, Supply,
    Transmission,
};
use crate::registry::{self, Settings};
use crate::testing::MSS;

pub(crate) struct Bottleneck {
    pub(crate) now: Time,
    /// The limit of segments on the link and waiting for it.
    pub(crate) buffer: f64,
    /// The share of segments that is lost at random behind the link.
    pub(crate) damage: f64,
    /// The number of segments on the link and waiting for it from which on segments are marked.
    pub(crate) marks_from: f64,
    /// Whether flows send at 1.25 windows a round trip or at their law's rate, not in bursts.
    pub(crate) paced: bool,
    service: Span,
    /// When the link will have served all its segments.
    idle_from: Time,
    flows: Vec<Flow>,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    scheduled: u64,
    random: u64,
}

/// The time that a flow waits after the loss of its whole flight.
const TIMEOUT: Span = Span::from_secs(1);

struct Flow {
    controller: Box<dyn Controller>,
    propagation: Span,
    /// Segments that are neither acknowledged nor known to be lost, by the number of the transmission.
    outstanding: BTreeMap<u64, Segment>,
    transmissions: u64,
    /// Lost segments that are to be retransmitted.
    lost: u64,
    repair: Option<Repair>,
    /// A loss that is not part of the present episode.
    next_loss: Option<Loss>,
    rtt_min: Option<Span>,
    round_began: Time,
    rounds: u64,
    round_acked: f64,
    progress: Progress,
    delivered: u64,
    losses: u64,
    /// The number of losses reported to the controller.
    losses_told: u64,
    /// The fate of the next transmission, if a test decided it.
    doom: Option<Cause>,
    /// When the next segment may leave, if flows are paced.
    release: Time,
    /// Whether a wake-up is scheduled for `release`.
    waits: bool,
    /// When a mark was last reported to the controller.
    marked_at: Option<Time>,
}

/// A fast recovery.
#[derive(Clone, Copy)]
struct Repair {
    cause: Cause,
    /// The transmissions before it began: their losses belong to it.
    before: u64,
    /// The transmission whose acknowledgement ends it.
    end: u64,
}

#[derive(Clone, Copy)]
struct Segment {
    departure: Departure,
    transmission: Transmission,
    lost: Option<Cause>,
    is_marked: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Start { flow: usize },
    Ack { flow: usize, transmission: u64 },
    Release { flow: usize },
    Timeout { flow: usize },
}

impl Bottleneck {
    /// A link of `rate` segments a second with an unlimited buffer.
    pub(crate) fn new(rate: f64) -> Self {
        Self {
            now: Time::from_ticks(1_000_000_000),
            buffer: f64::INFINITY,
            damage: 0.0,
            marks_from: f64::INFINITY,
            paced: false,
            service: Span::from_secs_f64(1.0 / rate),
            idle_from: Time::ZERO,
            flows: Vec::new(),
            events: BinaryHeap::new(),
            scheduled: 0,
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// A flow under the law `name`, set by `pairs`, that starts now.
    #[track_caller]
    pub(crate) fn flow(&mut self, name: &str, pairs: &[(&str, &str)], propagation_millis: u64) -> usize {
        let row = registry::find(name).unwrap();
        let controller = row.build(&Settings::parse(row, pairs.iter().copied()).unwrap());
        self.flows.push(Flow {
            controller,
            propagation: Span::from_millis(propagation_millis),
            outstanding: BTreeMap::new(),
            transmissions: 0,
            lost: 0,
            repair: None,
            next_loss: None,
            rtt_min: None,
            round_began: self.now,
            rounds: 0,
            round_acked: 0.0,
            progress: Progress::default(),
            delivered: 0,
            losses: 0,
            losses_told: 0,
            doom: None,
            release: Time::ZERO,
            waits: false,
            marked_at: None,
        });
        let flow = self.flows.len() - 1;
        self.schedule(self.now, Event::Start { flow });
        flow
    }

    /// Lets `seconds` pass.
    pub(crate) fn run(&mut self, seconds: f64) {
        let end = self.now + Span::from_secs_f64(seconds);
        while let Some(&Reverse((time, _, event))) = self.events.peek().filter(|Reverse((time, ..))| *time <= end) {
            self.events.pop();
            self.now = time;
            match event {
                Event::Start { flow } => {
                    let view = self.flows[flow].view(self.now);
                    self.flows[flow].controller.on_restart(&view, Restart::Established);
                    self.fill(flow);
                }
                Event::Ack { flow, transmission } => {
                    self.flows[flow].acknowledge(transmission, self.now);
                    self.fill(flow);
                }
                Event::Release { flow } => {
                    self.flows[flow].waits = false;
                    self.fill(flow);
                }
                Event::Timeout { flow } => {
                    self.flows[flow].time_out(self.now);
                    self.fill(flow);
                }
            }
        }
        self.now = end;
    }

    /// The link serves nothing for so long; what waits and what comes is kept.
    pub(crate) fn stall(&mut self, seconds: f64) {
        self.idle_from = self.idle_from.max(self.now) + Span::from_secs_f64(seconds);
    }

    /// Changes the route of `flow` for later segments.
    pub(crate) fn reroute(&mut self, flow: usize, propagation_millis: u64) {
        self.flows[flow].propagation = Span::from_millis(propagation_millis);
    }

    /// The next segment of `flow` is lost.
    pub(crate) fn doom(&mut self, flow: usize, cause: Cause) {
        self.flows[flow].doom = Some(cause);
    }

    pub(crate) fn window(&self, flow: usize) -> f64 {
        self.flows[flow].controller.window()
    }

    #[track_caller]
    pub(crate) fn gauge(&self, flow: usize, name: &str) -> f64 {
        let mut gauges = Gauges::default();
        self.flows[flow].controller.gauges(&mut gauges);
        gauges.value(name).unwrap_or_else(|| panic!("there is a gauge `{name}`"))
    }

    /// Segments of `flow` that arrived for the first time.
    pub(crate) fn delivered(&self, flow: usize) -> f64 {
        self.flows[flow].delivered as f64
    }

    /// Segments of `flow` known to be lost.
    pub(crate) fn losses(&self, flow: usize) -> u64 {
        self.flows[flow].losses
    }

    /// Segments on the link and waiting for it.
    pub(crate) fn queue(&self) -> f64 {
        let busy = self.idle_from.ticks().saturating_sub(self.now.ticks());
        busy as f64 / self.service.ticks() as f64
    }

    /// Means over `seconds` from now: segments queued, then each flow's rate in segments a second.
    pub(crate) fn means(&mut self, seconds: f64) -> (f64, Vec<f64>) {
        let began: Vec<_> = self.flows.iter().map(|flow| flow.delivered).collect();
        let samples = 2000;
        let mut queued = 0.0;
        for _ in 0..samples {
            self.run(seconds / f64::from(samples));
            queued += self.queue();
        }
        let rates = self.flows.iter().zip(began).map(|(flow, began)| (flow.delivered - began) as f64 / seconds);
        (queued / f64::from(samples), rates.collect())
    }

    fn schedule(&mut self, time: Time, event: Event) {
        self.events.push(Reverse((time, self.scheduled, event)));
        self.scheduled += 1;
    }

    /// Sends as many segments as the window of `flow` allows.
    fn fill(&mut self, flow: usize) {
        while (self.flows[flow].outstanding.len() + 1) as f64 <= self.flows[flow].controller.window() {
            if self.paced && self.is_early(flow) {
                break;
            }
            let lost = if self.queue() + 1.0 > self.buffer {
                Some(Cause::Congestion)
            } else {
                let is_damaged = self.draw() < self.damage;
                self.flows[flow].doom.take().or(is_damaged.then_some(Cause::Random))
            };
            let is_marked = self.queue() + 1.0 > self.marks_from;
            let transmission = self.flows[flow].send(self.now, lost, is_marked);
            if lost != Some(Cause::Congestion) {
                self.idle_from = self.idle_from.max(self.now) + self.service;
            }
            if lost.is_none() {
                let arrival = self.idle_from + self.flows[flow].propagation;
                self.schedule(arrival, Event::Ack { flow, transmission });
            }
        }
        if self.flows[flow].outstanding.values().all(|segment| segment.lost.is_some()) {
            self.schedule(self.now + TIMEOUT, Event::Timeout { flow });
        }
    }

    /// Whether `flow` has to wait before it may send: then it will be woken.
    fn is_early(&mut self, flow: usize) -> bool {
        let it = &mut self.flows[flow];
        if self.now < it.release {
            if !std::mem::replace(&mut it.waits, true) {
                let release = it.release;
                self.schedule(release, Event::Release { flow });
            }
            return true;
        }
        if let Some(rtt) = it.rtt_min {
            // Segments of 1000 bytes, as in `view`.
            let of_law = it.controller.pacing_rate().map(|rate| rate.bits_per_second() as f64 / 8000.0);
            let rate = of_law.unwrap_or(1.25 * it.controller.window() / rtt.as_secs_f64());
            it.release = self.now + Span::from_secs_f64(1.0 / rate);
        }
        false
    }

    /// A number from 0 to 1, by xorshift.
    fn draw(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl Flow {
    fn view(&self, now: Time) -> PathView {
        let flight = self.outstanding.len() as f64;
        let progress = Progress { lost: self.losses as f64, ..self.progress };
        let view = PathView { now, flight, mss: MSS, progress, ..PathView::default() };
        PathView { rtt_smoothed: self.rtt_min, rtt_min: self.rtt_min, ..view }
    }

    fn send(&mut self, now: Time, lost: Option<Cause>, is_marked: bool) -> u64 {
        let transmission = if self.lost > 0 { Transmission::Again } else { Transmission::First };
        self.lost = self.lost.saturating_sub(1);
        let flight = (self.outstanding.len() + 1) as f64;
        if self.outstanding.is_empty() {
            (self.progress.delivered_at, self.progress.departed) = (now, now);
        }
        let progress = self.view(now).progress;
        let departure =
            Departure { time: now, window: self.controller.window(), flight, progress, supply: Supply::Enough };
        self.transmissions += 1;
        self.outstanding.insert(self.transmissions, Segment { departure, transmission, lost, is_marked });
        self.controller.on_sent(&self.view(now), &Sent { segments: 1.0, transmission });
        self.transmissions
    }

    fn acknowledge(&mut self, transmission: u64, now: Time) {
        let segment = self.outstanding.remove(&transmission).expect("what is acknowledged is outstanding");
        let rtt = (segment.transmission == Transmission::First).then(|| now.since(segment.departure.time));
        self.rtt_min = self.rtt_min.into_iter().chain(rtt).min();
        self.progress.delivered += 1.0;
        self.progress.delivered_at = now;
        self.progress.departed = self.progress.departed.max(segment.departure.time);
        self.detect(transmission, now);
        let is_new = self.marked_at.is_none_or(|at| segment.departure.time > at);
        if segment.is_marked && is_new && self.repair.is_none() {
            self.marked_at = Some(now);
            let departure = segment.departure;
            let loss = Loss { signal: Signal::Ecn, cause: Cause::Congestion, lost: 0.0, departure };
            self.controller.on_loss(&self.view(now), &loss);
        }
        let phase = if self.repair.is_some() { Phase::Recovery } else { Phase::Open };
        let ack = Ack {
            newly_acked: 1.0,
            newly_lost: (self.losses - std::mem::replace(&mut self.losses_told, self.losses)) as f64,
            newly_marked: f64::from(u8::from(segment.is_marked)),
            rtt,
            size: MSS,
            arrival: now,
            departure: segment.departure,
            phase,
            ..Ack::default()
        };
        self.delivered += 1;
        self.round_acked += 1.0;
        self.controller.on_ack(&self.view(now), &ack);
        if self.repair.is_some_and(|repair| transmission >= repair.end) {
            self.repair = None;
            self.controller.on_recovered(&self.view(now));
            if let Some(loss) = self.next_loss.take() {
                self.begin_repair(&loss, now);
            }
        }
        if segment.departure.time >= self.round_began {
            let elapsed = now.since(self.round_began);
            let round = Round { count: self.rounds, elapsed, acked: self.round_acked, rtt_min: rtt, rtt_mean: rtt };
            (self.rounds, self.round_began, self.round_acked) = (self.rounds + 1, now, 0.0);
            self.controller.on_round(&self.view(now), &round);
        }
    }

    /// Handles the loss of the whole flight.
    fn time_out(&mut self, now: Time) {
        let departure = self.outstanding.first_key_value().expect("a window holds a segment").1.departure;
        let lost = self.outstanding.len() as u64;
        self.outstanding.clear();
        (self.lost, self.losses) = (self.lost + lost, self.losses + lost);
        (self.repair, self.next_loss) = (None, None);
        let loss = Loss { signal: Signal::Timeout, cause: Cause::Unknown, lost: lost as f64, departure };
        self.controller.on_loss(&self.view(now), &loss);
    }

    /// Detects the losses that the acknowledgement of `transmission` shows.
    fn detect(&mut self, transmission: u64, now: Time) {
        while let Some((&first, &segment)) = self.outstanding.first_key_value() {
            if first + 3 > transmission {
                break;
            }
            self.outstanding.remove(&first);
            self.lost += 1;
            self.losses += 1;
            let cause = segment.lost.expect("the link keeps the order");
            let loss = Loss { signal: Signal::DupAcks, cause, lost: 1.0, departure: segment.departure };
            match &mut self.repair {
                None => self.begin_repair(&loss, now),
                Some(repair) if first > repair.before && segment.transmission == Transmission::First => {
                    self.next_loss.get_or_insert(loss);
                }
                Some(repair) => {
                    // Retransmissions start at the next transmission.
                    repair.end = self.transmissions + 1;
                    if repair.cause == Cause::Random && cause != Cause::Random {
                        repair.cause = cause;
                        self.controller.on_loss(&self.view(now), &loss);
                    }
                }
            }
        }
    }

    fn begin_repair(&mut self, loss: &Loss, now: Time) {
        self.repair = Some(Repair { cause: loss.cause, before: self.transmissions, end: self.transmissions + 1 });
        self.controller.on_loss(&self.view(now), loss);
    }
}
