//! Flows of the papers' experiments and of random networks, whose every event is recorded: the engine drives the Rust law over the simulated network.

use std::mem;
use std::path::Path;
use std::sync::{Arc, Mutex};

use anabranch_bpf::{Event, Kind, Settings};
use anabranch_cc::controller::{
    Ack, Cause, Controller, Gauges, Limit, Loss, PathView, Phase, Reduction, Restart, Round, Sent, Signal,
};
use anabranch_cc::{Settings as Built, own};
use anabranch_lab::document::Document;
use anabranch_lab::evaluation::Contender;
use anabranch_lab::experiment::Experiment;
use anabranch_lab::field::{self, Family, Request};
use anabranch_lab::own::{Faults, Maker};
use anabranch_lab::parallel;
use anabranch_lab::run;
use anabranch_units::{Rate, SimSpan, Span};

use crate::drawn::Random;

/// The events of the paths of several runs, each with the window of the Rust law after it. A path begins with [`Kind::PathChanged`].
pub(crate) type Traces = Vec<Trace>;

type Trace = Vec<(Event, f64)>;

/// The most events of one path.
const EVENTS_MOST: usize = 50_000;

/// An experiment of each paper.
const PAPERS: [&str; 5] = [
    "ctcp-2019/table3.toml",
    "emfast-2019/fig4.toml",
    "mfast-2019/fig6.toml",
    "multihoming-2010/random-loss.toml",
    "rrfast-2017/rerouting.toml",
];

/// The most of a run: long enough for the losses and reroutes of the papers.
const DURATION_MOST: SimSpan = SimSpan::from_secs(50);

/// The law on the networks of the papers, in the place of the agents of ns-2: in the first two times `networks` variants of each experiment in which a flow can be ours.
pub(crate) fn papers(settings: &Settings, networks: u32) -> Traces {
    let recorder = Arc::new(Recorder::new(settings));
    let maker: Arc<dyn Maker> = recorder.clone();
    for file in PAPERS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments").join(file);
        let experiment = Document::read(&path).and_then(Experiment::parse).expect("the experiment is valid");
        let all = experiment.variants();
        let twins = all.iter().filter_map(|variant| experiment.twin(variant).expect("it is valid"));
        for mut scenario in twins.take(2 * networks as usize) {
            scenario.duration = scenario.duration.min(DURATION_MOST);
            let flows: Vec<String> = scenario.flow_names().map(str::to_owned).collect();
            let replaced = flows.iter().filter(|flow| scenario.set_own(flow, &maker).is_ok()).count();
            assert!(replaced > 0, "{file} has a flow of ours");
            run::run(&scenario).expect("the law does not fail");
        }
    }
    recorder.take()
}

/// The law on `draws` networks of each family.
pub(crate) fn field(settings: &Settings, draws: u32, seed: u64) -> Traces {
    let recorder = Arc::new(Recorder::new(settings));
    let request = Request {
        law: Contender::made(recorder.clone()),
        against: Contender::parse_all(["cubic"]).expect("the registry has it"),
        families: Family::ALL.to_vec(),
        draws,
        seed,
        jobs: parallel::jobs_default(),
    };
    field::run(&request, |_, _| {}).expect("the law does not fail");
    recorder.take()
}

/// The same events as a host reads them: each time up to a microsecond late, the kernel's own unit. On a simulated link a segment that leaves with an ACK is
/// acknowledged after exactly one RTT, so where FAST asks whether more than an RTT has passed, the last bit of a difference of floats answers in Rust. Times
/// here are even and RTTs are odd, so no two are equal.
///
/// Segments are rounded to C's unit, so that sums are exact in Rust, too. On a simulated link all segments of a flow may have one size, which is no power of two
/// of full ones: three of 25 are 0.12 of them in C, and in Rust what the sums' last bits say. The kernel counts whole ones.
pub(crate) fn read_late(trace: &[(Event, f64)], seed: u64) -> Trace {
    let mut random = Random(seed);
    let mut latest = 0;
    let late = |&(event, window): &(Event, f64)| {
        let mut later = |ns: u64| (ns + random.below(1000.0) as u64) / 2 * 2;
        latest = if event.kind == Kind::PathChanged { event.now } else { latest.max(later(event.now)) };
        let rtt = event.rtt.map(|rtt| later(rtt) + 1);
        let [acked, lost, old, delivered] =
            [event.acked, event.lost, event.old, event.delivered].map(|it| (it * UNITS).round() / UNITS);
        (Event { now: latest, rtt, acked, lost, old, delivered, ..event }, window)
    };
    trace.iter().map(late).collect()
}

/// Units of C in a segment.
const UNITS: f64 = (1_u64 << 24) as f64;

/// Makes laws that record their events.
#[derive(Debug)]
struct Recorder {
    law: Built,
    paths: Arc<Mutex<Vec<Arc<Mutex<Trace>>>>>,
}

impl Recorder {
    fn new(settings: &Settings) -> Self {
        Self { law: settings.decode(), paths: Arc::default() }
    }

    /// What was recorded, path by path.
    fn take(&self) -> Traces {
        let paths = mem::take(&mut *self.paths.lock().expect("no panic"));
        let mut traces: Traces = paths.iter().map(|path| mem::take(&mut *path.lock().expect("no panic"))).collect();
        // The receiving end of a flow has a law, too, which hears of no ACK.
        traces.retain(|trace| trace.len() > 1);
        traces
    }
}

impl Maker for Recorder {
    fn name(&self) -> &str {
        "recorded"
    }

    fn summary(&self) -> &str {
        ""
    }

    fn digest(&self) -> &str {
        "recorded"
    }

    fn settings(&self, _flow: &str, _faults: &Faults) -> Built {
        let (law, paths) = (self.law.clone(), Arc::clone(&self.paths));
        own::settings(move || {
            let law = law.row().build(&law);
            let begin = (Event::new(Kind::PathChanged, 0), law.window());
            let trace = Arc::new(Mutex::new(vec![begin]));
            paths.lock().expect("no panic").push(Arc::clone(&trace));
            Box::new(Recorded { law, trace })
        })
    }
}

/// A law whose events are recorded.
#[derive(Debug)]
struct Recorded {
    law: Box<dyn Controller>,
    trace: Arc<Mutex<Trace>>,
}

impl Recorded {
    fn note(&self, event: Event) {
        let mut trace = self.trace.lock().expect("no panic");
        if trace.len() < EVENTS_MOST {
            trace.push((event, self.law.window()));
        }
    }
}

impl Controller for Recorded {
    fn on_sent(&mut self, path: &PathView, sent: &Sent) {
        self.law.on_sent(path, sent);
    }

    fn hears_first(&self) -> bool {
        self.law.hears_first()
    }

    fn on_ack(&mut self, path: &PathView, ack: &Ack) {
        self.law.on_ack(path, ack);
        self.note(Event {
            acked: ack.newly_acked,
            lost: ack.newly_lost,
            old: ack.departure.flight,
            delivered: path.progress.delivered - ack.departure.progress.delivered,
            rtt: ack.rtt.map(Span::ticks),
            is_short: ack.size.count() * 2 < path.mss.count(),
            is_limited: ack.limit == Limit::Application,
            in_recovery: ack.phase == Phase::Recovery,
            ..Event::new(Kind::Ack, ack.arrival.ticks())
        });
    }

    fn on_round(&mut self, path: &PathView, round: &Round) {
        self.law.on_round(path, round);
    }

    fn on_loss(&mut self, path: &PathView, loss: &Loss) {
        self.law.on_loss(path, loss);
        let kind = match loss.signal {
            Signal::DupAcks => Kind::DupAcks,
            Signal::Timeout => Kind::Timeout,
            Signal::Ecn => Kind::Ecn,
        };
        self.note(Event { is_random: loss.cause == Cause::Random, ..Event::new(kind, path.now.ticks()) });
    }

    fn on_recovered(&mut self, path: &PathView) {
        self.law.on_recovered(path);
        self.note(Event::new(Kind::Recovered, path.now.ticks()));
    }

    fn on_undo(&mut self, path: &PathView) {
        self.law.on_undo(path);
        self.note(Event::new(Kind::Undo, path.now.ticks()));
    }

    fn on_restart(&mut self, path: &PathView, restart: Restart) {
        self.law.on_restart(path, restart);
        let kind = match restart {
            // Nothing of the laws that exist in C happens then.
            Restart::Established => return,
            Restart::Idle => Kind::Idle,
            Restart::AfterTimeout => Kind::AfterTimeout,
            Restart::PathChanged => Kind::PathChanged,
        };
        self.note(Event::new(kind, path.now.ticks()));
    }

    fn window(&self) -> f64 {
        self.law.window()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.law.pacing_rate()
    }

    fn reduction(&self) -> Reduction {
        self.law.reduction()
    }

    fn gauges(&self, gauges: &mut Gauges) {
        self.law.gauges(gauges);
    }
}
