//! Builds and runs a case in our simulator.

use anabranch_ns2::config::{Agent, NewRenoOptions, SenderConfig, SinkConfig, VegasOptions};
use anabranch_ns2::random::Mrg32k3a;
use anabranch_ns2::{Kind as PacketKind, Sender, Sink, TICK};
use anabranch_sim::traffic::{self, Cbr, OnOff, OnOffParameters};
use anabranch_sim::{
    Body, BuildError, Builder, DropReason, ErrorSpec, Happening, LinkSpec, Ns2Sink, Ns2Source, Observer, PacketEvent,
    QueueSpec,
};
use anabranch_units::{SimSpan, SimTime};

use super::case::{Case, Clock, TrafficKind};
use super::trace::{Event, Kind, Trace};

/// ns-2's default queue limit.
pub(crate) const LIMIT_DEFAULT: u32 = 50;

/// Runs the case and records what happens to packets at links.
pub(crate) fn run(case: &Case, sabotage: bool) -> Result<Trace, BuildError> {
    let mut builder = Builder::new(1);
    if case.clock == Clock::Floats {
        builder.ns2_clock();
    }
    let span = |steps: u64| case.clock.step() * steps;
    let names = case.nodes();
    let nodes: Vec<_> = names.iter().map(|name| builder.node(name)).collect();
    let number = |name: &str| names.iter().position(|node| node == name).expect("a case names its nodes");
    let mut ends = vec![];
    let mut links = vec![];
    for (from, to, link) in case.links() {
        let is_bottleneck = (from.as_str(), to.as_str()) == ("r", "q");
        let (from, to) = (number(&from), number(&to));
        let limit = link.limit + u32::from(sabotage && is_bottleneck);
        for (from, to, limit) in [(from, to, limit), (to, from, LIMIT_DEFAULT)] {
            let spec = LinkSpec::new(link.rate, span(link.delay_steps)).queue(QueueSpec::packets(limit));
            let spec = if is_bottleneck && ends.len() % 2 == 0 {
                spec.error(ErrorSpec::List(case.losses.clone()))
            } else {
                spec
            };
            links.push(builder.link(nodes[from], nodes[to], spec)?);
            ends.push((from as u32, to as u32));
        }
    }
    let agent = agent(case.agent);
    let mut stream = Mrg32k3a::new(Mrg32k3a::DEFAULT_SEED);
    (0..case.flows.len() * agent.draws_at_creation()).for_each(|_| _ = stream.uniform());
    for (index, flow) in case.flows.iter().enumerate() {
        let mut config = SenderConfig::new(agent);
        config.window = flow.window.into();
        config.payload = flow.payload;
        config.clock_phase = SimSpan::from_secs_f64(stream.uniform() * TICK.as_secs_f64());
        let mut sink = SinkConfig::for_agent(&agent);
        sink.delay = flow.delayed.then_some(SinkConfig::DELAY);
        let source = builder.host(nodes[index], Ns2Source::new(Sender::new(config)))?;
        let sink = builder.host(nodes[number(&case.sink_node(index))], Ns2Sink::new(Sink::new(sink)))?;
        builder.flow(source, sink)?;
        builder.start(SimTime::ZERO + span(flow.start_steps), source)?;
    }
    if case.clock == Clock::Floats {
        builder.ns2_random(stream);
    }
    for traffic in &case.traffic {
        let (from, to) = case.ends(traffic);
        let (from, to) = (nodes[number(&from)], nodes[number(&to)]);
        let source = match traffic.kind {
            TrafficKind::Cbr => builder.host(from, Cbr::new(traffic.rate, traffic.size))?,
            TrafficKind::OnOff { on, off } => {
                let parameters = OnOffParameters { on, off, rate: traffic.rate, size: traffic.size };
                // The world replaces this stream by ns-2's shared one.
                builder.host(from, OnOff::ns2(parameters, Mrg32k3a::new(Mrg32k3a::DEFAULT_SEED)))?
            }
        };
        let sink = builder.host(to, traffic::Sink::default())?;
        builder.flow(source, sink)?;
        for &(start, stop) in &traffic.times {
            builder.start(SimTime::ZERO + span(start), source)?;
            builder.stop(SimTime::ZERO + span(stop), source)?;
        }
    }
    let recorder = builder.observe(&links, Recorder { ends, step: case.clock.step(), trace: Trace::new() })?;
    let mut world = builder.build()?;
    // ns-2's script schedules its end before anything else, so it ends before other events at that time.
    world.run_until(SimTime::ZERO + span(case.steps) - SimSpan::from_ticks(1));
    world.assert_conserved();
    Ok(recorder.borrow().trace.clone())
}

fn agent(name: &str) -> Agent {
    match name {
        "reno" => Agent::Reno,
        "newreno" => Agent::NewReno(NewRenoOptions::default()),
        "sack" => Agent::Sack,
        "fack" => Agent::Fack,
        "vegas" => Agent::Vegas(VegasOptions::default()),
        "fs" => Agent::FastStart,
        "linux" => Agent::Linux,
        other => unreachable!("{other} is not in the table of agents"),
    }
}

struct Recorder {
    /// The numbers of the nodes of each link.
    ends: Vec<(u32, u32)>,
    step: SimSpan,
    trace: Trace,
}

impl Observer for Recorder {
    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        let (is_ack, seq) = match event.body {
            Body::Ns2(packet) => (packet.kind == PacketKind::Ack, packet.seq.into()),
            Body::Raw(raw) => (false, raw.seq as i64),
            _ => return,
        };
        let (from, to) = self.ends[event.link.index()];
        let record = Event {
            // Rounded to the nearest, as in ns-2.
            at_steps: (event.time.ticks() + self.step.ticks() / 2) / self.step.ticks(),
            ack: is_ack,
            flow: event.flow.index() as u32,
            seq,
            size: event.size,
            chunk: None,
        };
        for &kind in kinds(event.happening) {
            self.trace.entry((from, to, kind)).or_default().push(record);
        }
    }
}

/// The events that ns-2 traces: a drop of a full queue is first enqueued, a loss of an error model only dropped.
pub(crate) fn kinds(happening: Happening) -> &'static [Kind] {
    match happening {
        Happening::Enqueued => &[Kind::Enqueued],
        Happening::Received => &[Kind::Received],
        Happening::Dropped(DropReason::Queue) | Happening::Discarded => &[Kind::Enqueued, Kind::Dropped],
        Happening::Dropped(_) => &[Kind::Dropped],
    }
}
