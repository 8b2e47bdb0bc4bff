//! From a scenario to the simulator. What comes out of it is `reports.rs`, with `notes.rs` beside it, and over time `series.rs`.

mod notes;
mod reports;
mod series;

use std::io;

use anabranch_ns2::config::Agent;
use anabranch_ns2::multihome;
use anabranch_ns2::random::Mrg32k3a;
use anabranch_ns2::sctp::{DestinationConfig, Endpoint};
use anabranch_ns2::{Sender, SenderConfig, Sink, Streams, TICK};
use anabranch_proto::Config;
use anabranch_sim::traffic::{self, OnOff};
use anabranch_sim::{
    BuildError, Builder, Capture, Control, Detail, Driven, EngineSink, EngineSource, FlowId, Host, HostId, LinkId,
    MultihomedSink, MultihomedSource, NodeId, Ns2Sctp, Ns2Sink, Ns2Source, ObserverId, Port, Way, Workload, World,
};
use anabranch_units::{SimSpan, SimTime};

use crate::names::SeriesPlace;
use crate::scenario::keys::ClockKeys;
use crate::scenario::{Flow, NodeIndex, Scenario};
use crate::trace::{ArrivalTrace, LinkTrace};
use crate::transport::Transport;

/// What to record beside the counters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Recording<'a> {
    /// Nothing.
    Counters,
    /// Everything.
    #[cfg(test)]
    Trace,
    /// What these series are made of, by their names.
    Series(&'a [String]),
    /// The same, and every flow's and link's variables.
    Tables(&'a [String]),
}

/// Which flows' variables and arrivals and which links' variables are recorded, by position.
struct Wanted {
    flows: Vec<bool>,
    arrivals: Vec<bool>,
    links: Vec<bool>,
}

impl Wanted {
    fn new(scenario: &Scenario, recording: Recording<'_>) -> Self {
        let (names, tables, arrivals) = match recording {
            Recording::Counters => (&[][..], false, false),
            #[cfg(test)]
            Recording::Trace => (&[][..], true, true),
            Recording::Series(names) => (names, false, false),
            Recording::Tables(names) => (names, true, false),
        };
        let (flows, links) = (vec![tables; scenario.flows.len()], vec![tables; scenario.links.len()]);
        let mut wanted = Self { arrivals: vec![arrivals; scenario.flows.len()], flows, links };
        for name in names {
            // A name that is none is refused where it is looked up.
            for (place, index) in scenario.series_places(name).unwrap_or_default() {
                let is_of_arrivals = ARRIVAL_SERIES.iter().any(|series| name.ends_with(series));
                match place {
                    SeriesPlace::Flow | SeriesPlace::Stream(_) if is_of_arrivals => wanted.arrivals[index] = true,
                    SeriesPlace::Flow | SeriesPlace::Stream(_) | SeriesPlace::Path(_) => wanted.flows[index] = true,
                    SeriesPlace::Link => wanted.links[index] = true,
                }
            }
        }
        wanted
    }

    /// How much each history may keep: an equal part of [`HISTORIES_BYTES_MAX`].
    fn detail(&self, scenario: &Scenario) -> Detail {
        let mut histories = self.links.iter().filter(|wanted| **wanted).count();
        for (index, flow) in scenario.flows.iter().enumerate() {
            // Rows of each path and acknowledgements, of SCTP three more; what is offered, delivered and held, what arrives,
            // and what comes back.
            let others = if matches!(flow.transport, Transport::Sctp { .. }) { 4 } else { 1 };
            let of_source = if self.flows[index] { flow.paths.len().max(1) + others } else { 0 };
            histories += of_source + if self.arrivals[index] { 5 } else { 0 };
        }
        Detail { resolution: scenario.resolution, bytes_max: HISTORIES_BYTES_MAX / histories.max(1) }
    }
}

/// Memory for all that is recorded of a run. A vector that grows takes twice as much for a moment.
const HISTORIES_BYTES_MAX: usize = 128 << 20;

/// What is made of the packets that come to a flow's ends, and not of its source's variables.
const ARRIVAL_SERIES: [&str; 5] = [".goodput", ".throughput", ".held", ".ipd", ".delay"];

/// A scenario in the simulator.
pub(crate) struct Simulation<'a> {
    scenario: &'a Scenario,
    pub(crate) world: World,
    links: Vec<LinkId>,
    flows: Vec<Ends>,
    /// By position, of those that are recorded.
    traces: Vec<Option<ObserverId<LinkTrace>>>,
    arrivals: Vec<Option<ObserverId<ArrivalTrace>>>,
    capture: Option<ObserverId<Capture<Output>>>,
}

/// Where a capture is written.
pub(crate) type Output = Box<dyn io::Write + Send>;

/// What a [`Simulation`] is made of.
struct Parts<'a> {
    scenario: &'a Scenario,
    builder: Builder,
    links: Vec<LinkId>,
    flows: Vec<Ends>,
    /// By position, of those that are recorded.
    traces: Vec<Option<ObserverId<LinkTrace>>>,
    arrivals: Vec<Option<ObserverId<ArrivalTrace>>>,
    capture: Option<ObserverId<Capture<Output>>>,
}

impl<'a> Parts<'a> {
    fn build(self) -> Result<Simulation<'a>, BuildError> {
        let Self { scenario, builder, links, flows, traces, arrivals, capture } = self;
        Ok(Simulation { scenario, world: builder.build()?, links, flows, traces, arrivals, capture })
    }
}

/// Why a scenario can be built.
pub(crate) const CHECKED: &str = "what the simulator refuses was refused when the scenario was read";

#[derive(Clone, Copy)]
struct Ends {
    source: HostId,
    sink: HostId,
    flow: FlowId,
    start: SimTime,
}

impl<'a> Simulation<'a> {
    /// Puts everything in its place.
    ///
    /// # Errors
    /// If the simulator has a limit that the scenario breaks.
    pub(crate) fn build(scenario: &'a Scenario, recording: Recording<'_>) -> Result<Self, BuildError> {
        Self::assemble(scenario, recording)?.build()
    }

    /// The same, writing what enters links to `out`.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub(crate) fn build_captured(scenario: &'a Scenario, recording: Recording<'_>, out: Output) -> io::Result<Self> {
        let mut parts = Self::assemble(scenario, recording).expect(CHECKED);
        let names = parts.links.iter().copied().zip(scenario.links.iter().map(|link| link.id.as_str()));
        let capture = Capture::new(out, names)?;
        parts.capture = Some(parts.builder.observe(&parts.links, capture).expect(CHECKED));
        Ok(parts.build().expect(CHECKED))
    }

    fn assemble(scenario: &'a Scenario, recording: Recording<'_>) -> Result<Parts<'a>, BuildError> {
        let mut builder = Builder::new(scenario.seed);
        if scenario.clock == ClockKeys::Ns2 {
            builder.ns2_clock();
        }
        let nodes: Vec<NodeId> = scenario.nodes.iter().map(|name| builder.node(name)).collect();
        let mut links = Vec::with_capacity(scenario.links.len());
        for link in &scenario.links {
            links.push(builder.link(nodes[link.from], nodes[link.to], link.spec())?);
        }
        let wanted = Wanted::new(scenario, recording);
        let detail = wanted.detail(scenario);
        let (phases, random) = clock_phases(scenario, &builder);
        let mut phases = phases.into_iter();
        if let Some(random) = random {
            builder.ns2_random(random);
        }
        let mut flows = Vec::with_capacity(scenario.flows.len());
        for flow in &scenario.flows {
            let (from, to) = (nodes[flow.from], nodes[flow.to]);
            let (source, sink) = match &flow.transport {
                Transport::Ns2 { sender, sink, streams, workload } => {
                    let clock_phase = phases.next().expect("there is a phase for each agent");
                    let source = Ns2Source::new(Sender::new(SenderConfig { clock_phase, ..**sender }));
                    let source = if streams.is_some() { source.with_stream_headers() } else { source };
                    let source = if *workload == Workload::Bulk { source } else { source.fed() };
                    let (is_source_wanted, is_sink_wanted) = (wanted.flows[flows.len()], wanted.arrivals[flows.len()]);
                    let source = if is_source_wanted { source.traced_in(detail) } else { source };
                    let sink = Ns2Sink::new(Sink::new(*sink)).carrying(flow.transport.payload());
                    let sink = match *streams {
                        None => sink,
                        // The window that a receiver advertises is the room in its buffer. It is a whole number of packets.
                        Some(streams) => sink.with_streams(Streams::new(streams, sender.window as u32)),
                    };
                    let sink = if is_sink_wanted { sink.traced_in(detail) } else { sink };
                    (builder.host(from, source)?, builder.host(to, sink)?)
                }
                Transport::Multihomed { workload, .. } => {
                    let clock_phase = phases.next().expect("there is a phase for each agent");
                    let (source, sink) = multihomed(flow, clock_phase, &mut builder, &links)?;
                    let source = if *workload == Workload::Bulk { source } else { source.fed() };
                    let (is_source_wanted, is_sink_wanted) = (wanted.flows[flows.len()], wanted.arrivals[flows.len()]);
                    let source = if is_source_wanted { source.traced_in(detail) } else { source };
                    let sink = if is_sink_wanted { sink.traced_in(detail) } else { sink };
                    (builder.host(from, source)?, builder.host(to, sink)?)
                }
                Transport::Sctp { workload, .. } => {
                    let [source, sink] = associate(flow, &mut builder, &links)?;
                    let source = if *workload == Workload::Bulk { source } else { source.fed() };
                    let (is_source_wanted, is_sink_wanted) = (wanted.flows[flows.len()], wanted.arrivals[flows.len()]);
                    let source = if is_source_wanted { source.traced_in(detail) } else { source };
                    let sink = if is_sink_wanted { sink.traced_in(detail) } else { sink };
                    (builder.host(from, source)?, builder.host(to, sink)?)
                }
                Transport::Engine { config, workload } => {
                    const CHECKED: &str = "the configuration was checked when the scenario was read";
                    let config = |node: NodeIndex| {
                        let timer = scenario.drivers.get(&node).map_or(SimSpan::ZERO, |driver| driver.timer);
                        Config { timer: timer.rescale(), ..(**config).clone() }
                    };
                    let source = EngineSource::new(config(flow.from)).expect(CHECKED);
                    let source = if *workload == Workload::Bulk { source } else { source.fed() };
                    let sink = EngineSink::new(config(flow.to)).expect(CHECKED);
                    let (there, back) = ways(flow, &mut builder, &links)?.into_iter().unzip();
                    let weights = flow.paths.iter().map(|path| path.weight).collect();
                    let (source, sink) = (source.multihomed(there).weighted(weights), sink.multihomed(back));
                    let (is_source_wanted, is_sink_wanted) = (wanted.flows[flows.len()], wanted.arrivals[flows.len()]);
                    let source = if is_source_wanted { source.traced_in(detail) } else { source };
                    let sink = if is_sink_wanted { sink.traced_in(detail) } else { sink };
                    let source = if is_sink_wanted { source.remembering_offers(detail.bytes_max) } else { source };
                    let source = station(scenario, &mut builder, (from, flow.from), flow, source)?;
                    (source, station(scenario, &mut builder, (to, flow.to), flow, sink)?)
                }
                Transport::Cbr(cbr) => (builder.host(from, cbr.clone())?, builder.host(to, traffic::Sink::default())?),
                Transport::OnOff(parameters) => {
                    let source = match scenario.clock {
                        ClockKeys::Exact => OnOff::new(*parameters, builder.stream(&format!("flow.{}", flow.id))),
                        // The world lends it ns-2's stream.
                        ClockKeys::Ns2 => OnOff::ns2(*parameters, Mrg32k3a::new(Mrg32k3a::DEFAULT_SEED)),
                    };
                    (builder.host(from, source)?, builder.host(to, traffic::Sink::default())?)
                }
            };
            let start = start(flow, &builder);
            flows.push(Ends { source, sink, flow: builder.flow(source, sink)?, start });
        }
        // Before the flows: of what happens at one time the route comes first, so that it holds for what is sent just then.
        for route in &scenario.routes {
            let to = builder.address(nodes[route.to])?;
            builder.at(route.at, Control::Route { node: nodes[route.node], to, via: Some(links[route.via]) })?;
        }
        for (link, &id) in scenario.links.iter().zip(&links) {
            for &(at, mtu) in &link.mtu_changes {
                builder.at(at, Control::Mtu { link: id, mtu })?;
            }
        }
        for (flow, ends) in scenario.flows.iter().zip(&flows) {
            match flow.transport {
                Transport::Ns2 { workload: Workload::Bulk, .. }
                | Transport::Multihomed { workload: Workload::Bulk, .. }
                | Transport::Sctp { workload: Workload::Bulk, .. }
                | Transport::Engine { workload: Workload::Bulk, .. }
                | Transport::Cbr(_)
                | Transport::OnOff(_) => {
                    builder.start(ends.start, ends.source)?;
                }
                Transport::Ns2 { workload, .. }
                | Transport::Multihomed { workload, .. }
                | Transport::Sctp { workload, .. }
                | Transport::Engine { workload, .. } => {
                    builder.workload(&flow.id, ends.start, (ends.source, Port::FIRST), workload)?;
                }
            }
            if let Some(stop) = flow.stop {
                builder.stop(stop, ends.source)?;
            }
        }
        let mut traces = Vec::with_capacity(links.len());
        for ((link, &id), is_wanted) in scenario.links.iter().zip(&links).zip(wanted.links) {
            let trace = is_wanted.then(|| LinkTrace::new(link, detail));
            traces.push(trace.map(|trace| builder.observe(&[id], trace)).transpose()?);
        }
        let mut arrivals = Vec::with_capacity(flows.len());
        for ((flow, ends), is_wanted) in scenario.flows.iter().zip(&flows).zip(wanted.arrivals) {
            let last = scenario.links.iter().zip(&links).filter(|(link, _)| [flow.from, flow.to].contains(&link.to));
            let last: Vec<LinkId> = last.map(|(_, &id)| id).collect();
            let trace = is_wanted.then(|| ArrivalTrace::new(ends.flow, detail));
            arrivals.push(trace.map(|trace| builder.observe(&last, trace)).transpose()?);
        }
        Ok(Parts { scenario, builder, links, flows, traces, arrivals, capture: None })
    }

    /// Writes out what is left of a capture.
    ///
    /// # Errors
    /// If its output could not be written, now or before.
    pub(crate) fn finish_capture(&mut self) -> io::Result<()> {
        match self.capture {
            Some(capture) => self.world.observer_mut(capture).finish(),
            None => Ok(()),
        }
    }

    /// Runs to the end of the scenario.
    pub(crate) fn run(&mut self) {
        self.world.run_until(self.end());
    }

    /// Runs up to some time.
    pub(crate) fn run_until(&mut self, until: SimTime) {
        self.world.run_until(until);
    }

    /// Where packets have appeared or vanished, if they have.
    pub(crate) fn conservation(&self) -> Result<(), String> {
        self.world.conservation()
    }

    /// Bytes of payload that have come to the far end of a flow; of our own transport, that its application has read.
    pub(crate) fn read(&self, flow: usize) -> u64 {
        self.world.account(self.flows[flow].sink).report().received.payload
    }

    fn end(&self) -> SimTime {
        SimTime::ZERO.saturating_add(self.scenario.duration)
    }
}

/// An end of a flow at its node, with a driver around it if the scenario has one there.
fn station(
    scenario: &Scenario,
    builder: &mut Builder,
    (node, index): (NodeId, NodeIndex),
    flow: &Flow,
    host: impl Host,
) -> Result<HostId, BuildError> {
    let Some(&driver) = scenario.drivers.get(&index) else { return builder.host(node, host) };
    let name = &scenario.nodes[index];
    let streams = ["card", "scheduler"].map(|what| builder.stream(&format!("host.{name}.{}.{what}", flow.id)));
    builder.host(node, Driven::new(host, driver, streams))
}

/// When a flow starts. One that has no choice draws nothing.
fn start(flow: &Flow, builder: &Builder) -> SimTime {
    match flow.start_jitter.is_zero() {
        true => flow.start,
        false => {
            let share = builder.stream(&format!("flow.{}.start", flow.id)).uniform();
            flow.start.saturating_add(SimSpan::from_secs_f64(share * flow.start_jitter.as_secs_f64()))
        }
    }
}

/// Both ends of an association, on one path or several.
fn associate(flow: &Flow, builder: &mut Builder, links: &[LinkId]) -> Result<[Ns2Sctp; 2], BuildError> {
    let Transport::Sctp { config, primary, .. } = &flow.transport else { unreachable!("the caller has matched it") };
    let destination = |(interface, loss_rate)| DestinationConfig { interface, loss_rate };
    let mut destinations: Vec<_> = (0..).zip(flow.paths.iter().map(|path| path.loss_rate)).map(destination).collect();
    if destinations.is_empty() {
        destinations.push(DestinationConfig::default());
    }
    // Where the world lends ns-2's stream to its hosts, it takes the place of these.
    let mut seeds = builder.stream(&format!("flow.{}.sctp", flow.id));
    let mut endpoint = || {
        let seed = (seeds.uniform() * f64::from(i32::MAX)) as u32;
        Endpoint::new(**config, &destinations, Mrg32k3a::new(seed))
    };
    let (mut source, mut sink) = (endpoint(), endpoint());
    source.set_primary(*primary);
    // ns-2 takes the last destination unless it is told another, and scripts tell the source.
    sink.set_primary(destinations.len() - 1);
    let (source, sink) = (Ns2Sctp::new(source), Ns2Sctp::new(sink));
    if flow.paths.is_empty() {
        return Ok([source, sink]);
    }
    let (there, back): (Vec<_>, Vec<_>) = ways(flow, builder, links)?.into_iter().unzip();
    let outward = |ways: &[Way]| ways.iter().map(|way| (way.via, way.to)).collect();
    Ok([source.multihomed(outward(&there)), sink.multihomed(outward(&back))])
}

/// Both ends of FAST multihoming.
fn multihomed(
    flow: &Flow,
    clock_phase: SimSpan,
    builder: &mut Builder,
    links: &[LinkId],
) -> Result<(MultihomedSource, MultihomedSink), BuildError> {
    let Transport::Multihomed { config, .. } = &flow.transport else { unreachable!("the caller has matched it") };
    let agent = SenderConfig { clock_phase, ..config.agent };
    let source = MultihomedSource::new(multihome::Sender::new(multihome::Config { agent, ..**config }));
    let sink = MultihomedSink::new(config.paths).carrying(config.agent.payload);
    if flow.paths.is_empty() {
        return Ok((source, sink));
    }
    let (there, back): (Vec<_>, Vec<_>) = ways(flow, builder, links)?.into_iter().unzip();
    let of = |ways: Vec<Way>| ways.into_iter().map(|way| (way.via, way.to, way.here)).collect();
    Ok((source.multihomed(of(there)), sink.multihomed(of(back))))
}

/// The paths of a flow as its source and its sink see them; none where packets go the shortest way.
fn ways(flow: &Flow, builder: &mut Builder, links: &[LinkId]) -> Result<Vec<(Way, Way)>, BuildError> {
    let mut ways = vec![];
    for path in &flow.paths {
        let sink = builder.address_through(links[path.last])?;
        let source = builder.address_through(links[path.back_last])?;
        let there = Way { via: links[path.first], to: sink, here: source };
        ways.push((there, Way { via: links[path.back_first], to: source, here: sink }));
    }
    Ok(ways)
}

/// The phases of the agents' clocks, and the stream that their hosts share. With ns-2's clock both are ns-2's: each agent resets
/// its clock when it is made, and all do once more when the simulation starts, in the order in which they were made, all from
/// one stream; what is left of it SCTP draws from. Otherwise each flow has streams of its own, so that a new flow changes none.
fn clock_phases(scenario: &Scenario, builder: &Builder) -> (Vec<SimSpan>, Option<Mrg32k3a>) {
    let agents: Vec<(&Flow, Agent)> = scenario
        .flows
        .iter()
        .filter_map(|flow| match &flow.transport {
            Transport::Ns2 { sender, .. } => Some((flow, sender.agent)),
            Transport::Multihomed { config, .. } => Some((flow, config.agent.agent)),
            Transport::Sctp { .. } | Transport::Engine { .. } | Transport::Cbr(_) | Transport::OnOff(_) => None,
        })
        .collect();
    let phase = |uniform: f64| SimSpan::from_secs_f64(uniform * TICK.as_secs_f64());
    match scenario.clock {
        ClockKeys::Exact => {
            let own = |flow: &Flow| builder.stream(&format!("flow.{}.clock", flow.id)).uniform();
            (agents.iter().map(|(flow, _)| phase(own(flow))).collect(), None)
        }
        ClockKeys::Ns2 => {
            // ns-2's seeds have 31 bits; further bits of ours would be lost, so they are folded in.
            let seed = (scenario.seed ^ scenario.seed >> 31) & 0x7fff_ffff;
            let mut stream = Mrg32k3a::new(seed as u32);
            for _ in 0..agents.iter().map(|(_, agent)| agent.draws_at_creation()).sum() {
                stream.uniform();
            }
            let phases = agents.iter().map(|_| phase(stream.uniform())).collect();
            (phases, Some(stream))
        }
    }
}

#[cfg(test)]
mod engine_tests;
#[cfg(test)]
mod packet_tests;
#[cfg(test)]
mod tests;
