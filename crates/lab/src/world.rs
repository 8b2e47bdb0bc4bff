//! From a scenario to the simulator, and from the simulator to a report.

use std::io;

use anabranch_ns2::random::Mrg32k3a;
use anabranch_ns2::{Sender, SenderConfig, Sink, TICK};
use anabranch_sim::traffic::{self, Cbr, OnOff};
use anabranch_sim::{
    BuildError, Builder, Capture, Control, Direction, EngineSink, EngineSource, FlowId, GaugeRow, HostId, LinkId,
    LinkSpec, NodeId, Ns2Sink, Ns2Source, ObserverId, Port, QueueArea, Workload, World,
};
use anabranch_units::{SimSpan, SimTime};

use crate::report::{FlowReport, LinkReport, Report};
use crate::scenario::keys::ClockKeys;
use crate::scenario::{Flow, Scenario, SeriesPlace};
use crate::series::Series;
use crate::trace::{DeliveryTrace, LinkRow, LinkTrace};
use crate::transport::Transport;

/// What to record beside the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recording {
    /// Nothing.
    Counters,
    /// A row at each change of a flow's or a link's variables.
    Trace,
}

/// A scenario in the simulator.
pub(crate) struct Simulation<'a> {
    scenario: &'a Scenario,
    pub(crate) world: World,
    links: Vec<LinkId>,
    flows: Vec<Ends>,
    traces: Vec<ObserverId<LinkTrace>>,
    deliveries: Vec<ObserverId<DeliveryTrace>>,
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
    traces: Vec<ObserverId<LinkTrace>>,
    deliveries: Vec<ObserverId<DeliveryTrace>>,
    capture: Option<ObserverId<Capture<Output>>>,
}

impl<'a> Parts<'a> {
    fn build(self) -> Result<Simulation<'a>, BuildError> {
        let Self { scenario, builder, links, flows, traces, deliveries, capture } = self;
        Ok(Simulation { scenario, world: builder.build()?, links, flows, traces, deliveries, capture })
    }
}

/// Why a scenario can be built.
pub(crate) const CHECKED: &str = "a scenario is built once when it is read";

#[derive(Clone, Copy)]
struct Ends {
    source: HostId,
    sink: HostId,
    flow: FlowId,
}

impl<'a> Simulation<'a> {
    /// Puts everything in its place.
    ///
    /// # Errors
    /// If the simulator has a limit that the scenario breaks.
    pub(crate) fn build(scenario: &'a Scenario, recording: Recording) -> Result<Self, BuildError> {
        Self::assemble(scenario, recording)?.build()
    }

    /// The same, writing what enters links to `out`.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub(crate) fn build_captured(scenario: &'a Scenario, recording: Recording, out: Output) -> io::Result<Self> {
        let mut parts = Self::assemble(scenario, recording).expect(CHECKED);
        let names = parts.links.iter().copied().zip(scenario.links.iter().map(|link| link.id.as_str()));
        let capture = Capture::new(out, names)?;
        parts.capture = Some(parts.builder.observe(&parts.links, capture).expect(CHECKED));
        Ok(parts.build().expect(CHECKED))
    }

    fn assemble(scenario: &'a Scenario, recording: Recording) -> Result<Parts<'a>, BuildError> {
        let mut builder = Builder::new(scenario.seed);
        if scenario.clock == ClockKeys::Ns2 {
            builder.ns2_clock();
        }
        let nodes: Vec<NodeId> = scenario.nodes.iter().map(|name| builder.node(name)).collect();
        let mut links = Vec::with_capacity(scenario.links.len());
        for link in &scenario.links {
            let spec = LinkSpec::new(link.rate, link.delay).named(&link.id).queue(link.queue.clone());
            let spec = link.error.iter().cloned().fold(spec, LinkSpec::error);
            links.push(builder.link(nodes[link.from], nodes[link.to], spec)?);
        }
        let mut phases = clock_phases(scenario);
        let mut flows = Vec::with_capacity(scenario.flows.len());
        for flow in &scenario.flows {
            let (from, to) = (nodes[flow.from], nodes[flow.to]);
            let (source, sink) = match &flow.transport {
                Transport::Ns2 { sender, sink, workload } => {
                    let clock_phase = phases.next().expect("there is a phase for each agent");
                    let source = Ns2Source::new(Sender::new(SenderConfig { clock_phase, ..**sender }));
                    let source = if *workload == Workload::Bulk { source } else { source.fed() };
                    let source = if recording == Recording::Trace { source.traced() } else { source };
                    (builder.host(from, source)?, builder.host(to, Ns2Sink::new(Sink::new(*sink)))?)
                }
                Transport::Engine { config, workload } => {
                    const CHECKED: &str = "the configuration was checked when the scenario was read";
                    let source = EngineSource::new((**config).clone()).expect(CHECKED);
                    let source = if *workload == Workload::Bulk { source } else { source.fed() };
                    let sink = EngineSink::new((**config).clone()).expect(CHECKED);
                    let (source, sink) = match recording {
                        Recording::Counters => (source, sink),
                        Recording::Trace => (source.traced(), sink.traced()),
                    };
                    (builder.host(from, source)?, builder.host(to, sink)?)
                }
                Transport::Cbr(cbr) => (builder.host(from, cbr.clone())?, builder.host(to, traffic::Sink::default())?),
                Transport::OnOff(parameters) => {
                    let stream = builder.stream(&format!("flow.{}", flow.id));
                    let source = OnOff::new(*parameters, stream);
                    (builder.host(from, source)?, builder.host(to, traffic::Sink::default())?)
                }
            };
            flows.push(Ends { source, sink, flow: builder.flow(source, sink)? });
        }
        for (flow, ends) in scenario.flows.iter().zip(&flows) {
            match flow.transport {
                Transport::Ns2 { workload: Workload::Bulk, .. }
                | Transport::Engine { workload: Workload::Bulk, .. }
                | Transport::Cbr(_)
                | Transport::OnOff(_) => {
                    builder.start(flow.start, ends.source)?;
                }
                Transport::Ns2 { workload, .. } | Transport::Engine { workload, .. } => {
                    builder.workload(&flow.id, flow.start, (ends.source, Port::FIRST), workload)?;
                }
            }
            if let Some(stop) = flow.stop {
                builder.stop(stop, ends.source)?;
            }
        }
        let mut traces = Vec::new();
        if recording == Recording::Trace {
            for (link, &id) in scenario.links.iter().zip(&links) {
                traces.push(builder.observe(&[id], LinkTrace::new(link.rate, link.delay))?);
            }
        }
        let mut deliveries = Vec::new();
        if recording == Recording::Trace {
            for (flow, ends) in scenario.flows.iter().zip(&flows) {
                let last = scenario.links.iter().zip(&links).filter(|(link, _)| link.to == flow.to);
                let last: Vec<LinkId> = last.map(|(_, &id)| id).collect();
                deliveries.push(builder.observe(&last, DeliveryTrace::new(ends.flow, flow.transport.payload()))?);
            }
        }
        for route in &scenario.routes {
            let to = builder.address(nodes[route.to])?;
            builder.at(route.at, Control::Route { node: nodes[route.node], to, via: Some(links[route.via]) })?;
        }
        Ok(Parts { scenario, builder, links, flows, traces, deliveries, capture: None })
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

    fn end(&self) -> SimTime {
        SimTime::ZERO.saturating_add(self.scenario.duration)
    }

    /// What was measured; `wall_seconds` is not known here.
    pub(crate) fn report(&self) -> Report {
        Report {
            seed: self.scenario.seed,
            hash: self.world.hash().to_string(),
            wall_seconds: 0.0,
            simulated_seconds: self.scenario.duration.as_secs_f64(),
            events: self.world.events(),
            flows: self.scenario.flows.iter().zip(&self.flows).map(|(flow, ends)| self.flow(flow, ends)).collect(),
            links: self.scenario.links.iter().zip(&self.links).map(|(link, &id)| self.link(&link.id, id)).collect(),
        }
    }

    /// The rows of each flow that has any, by position.
    pub(crate) fn flow_rows(&self) -> impl Iterator<Item = (&str, &[GaugeRow])> {
        self.scenario
            .flows
            .iter()
            .zip(&self.flows)
            .filter_map(|(flow, ends)| Some((flow.id.as_str(), self.rows(ends.source)?)))
    }

    /// The rows of a source, if it has any.
    fn rows(&self, source: HostId) -> Option<&[GaugeRow]> {
        let ns2 = self.world.host::<Ns2Source>(source).and_then(Ns2Source::rows);
        ns2.or_else(|| self.world.host::<EngineSource>(source)?.rows())
    }

    /// The trace of each link.
    pub(crate) fn link_traces(&self) -> impl Iterator<Item = (&str, &LinkTrace)> {
        let traces = self.traces.iter().map(|&id| self.world.observer(id));
        self.scenario.links.iter().map(|link| link.id.as_str()).zip(traces)
    }

    /// The series called `flow.<id>.<series>` or `link.<id>.<series>` of a traced run.
    ///
    /// # Errors
    /// If the flow's transport does not know it.
    pub(crate) fn series(&self, name: &str) -> Result<Series, String> {
        let (place, index) = self.scenario.series_place(name)?;
        let variable = name.rsplit_once('.').map_or(name, |(_, variable)| variable);
        let bits = |points: &[(SimTime, u64)]| {
            Series::events(points.iter().map(|&(time, bits)| (time.as_secs_f64(), bits as f64)))
        };
        match (place, variable) {
            (SeriesPlace::Flow, "goodput")
                if let Some(sink) = self.world.host::<EngineSink>(self.flows[index].sink) =>
            {
                Ok(bits(sink.deliveries().unwrap_or_default()))
            }
            (SeriesPlace::Flow, "goodput") => Ok(bits(&self.world.observer(self.deliveries[index]).in_order)),
            (SeriesPlace::Flow, "throughput") => Ok(bits(&self.world.observer(self.deliveries[index]).wire)),
            (SeriesPlace::Flow, _) => {
                let unknown = || format!("`{name}` was not measured: the transport does not know it");
                let rows = self.rows(self.flows[index].source).ok_or_else(unknown)?;
                let points = rows.iter().filter_map(|row| {
                    let gauges = &row.gauges;
                    let value = match variable {
                        "window" => gauges.window,
                        "ssthresh" => gauges.ssthresh,
                        "rtt" => gauges.rtt.as_secs_f64(),
                        "base_rtt" => gauges.rtt_base?.as_secs_f64(),
                        "avg_rtt" => gauges.rtt_smoothed.as_secs_f64(),
                        _ => f64::from(gauges.in_flight),
                    };
                    Some((row.time.as_secs_f64(), value))
                });
                let series = Series::variable(points);
                if series.points.is_empty() { Err(unknown()) } else { Ok(series) }
            }
            (SeriesPlace::Link, _) => {
                let rows = self.world.observer(self.traces[index]).rows(self.end());
                if variable == "queue" {
                    let points = rows.iter().map(|row| (row.time.as_secs_f64(), row.queue as f64));
                    return Ok(Series::variable([(0.0, 0.0)].into_iter().chain(points)));
                }
                let count = |row: &LinkRow| if variable == "drops" { row.dropped } else { row.forwarded };
                let before = [0].into_iter().chain(rows.iter().map(count));
                let events = rows
                    .iter()
                    .zip(before)
                    .flat_map(|(row, before)| (before..count(row)).map(|_| (row.time.as_secs_f64(), 1.0)));
                Ok(Series::events(events))
            }
        }
    }

    fn flow(&self, flow: &Flow, ends: &Ends) -> FlowReport {
        let until = flow.stop.unwrap_or(SimTime::NEVER).min(self.end());
        let active = until.since(flow.start);
        let dropped = |&link: &LinkId| {
            let counts = self.world.link_leg(link, ends.flow, Direction::Forward);
            counts.errors + counts.drops
        };
        let mut report = FlowReport {
            id: flow.id.clone(),
            transport: flow.transport_name.clone(),
            cc: flow.law_name.clone(),
            goodput_bps: 0.0,
            throughput_bps: 0.0,
            sent_packets: 0,
            max_seq: None,
            acked_seq: None,
            delivered_packets: 0,
            retransmitted_packets: 0,
            dropped_packets: self.links.iter().map(dropped).sum(),
            rtt_mean_s: None,
            one_way_delay_mean_s: None,
            window_final: None,
        };
        if let (Some(source), Some(sink)) =
            (self.world.host::<Ns2Source>(ends.source), self.world.host::<Ns2Sink>(ends.sink))
        {
            let (sender, received) = (source.sender(), sink.sink().received());
            let counters = sender.counters();
            // The SYN is packet 0 and has no payload.
            let payload = u64::from(flow.transport.payload());
            report.goodput_bps = bits_per_second(received.unique_packets.saturating_sub(1) * payload, active);
            report.throughput_bps = bits_per_second(received.bytes, active);
            report.sent_packets = counters.sent_packets;
            report.max_seq = Some(sender.max_seq().into());
            report.acked_seq = Some(sender.acked_seq().into());
            report.delivered_packets = received.unique_packets;
            report.retransmitted_packets = counters.retransmitted_packets;
            report.rtt_mean_s = mean(counters.rtt_sum, counters.rtt_samples);
            report.one_way_delay_mean_s = mean(received.delay_sum, received.unique_packets);
            report.window_final = Some(sender.gauges().window);
        }
        if let (Some(source), Some(sink)) =
            (self.world.host::<EngineSource>(ends.source), self.world.host::<EngineSink>(ends.sink))
        {
            report.goodput_bps = bits_per_second(sink.read(), active);
            report.throughput_bps = bits_per_second(sink.wire(), active);
            report.delivered_packets = sink.connection().arrived();
            if let Some(path) = source.path() {
                report.sent_packets = path.tally.sent;
                report.retransmitted_packets = path.tally.sent_again;
                report.rtt_mean_s = mean(path.tally.rtt_sum.rescale(), path.tally.rtt_samples);
                report.window_final = Some(path.window);
            }
        }
        if let Some(sink) = self.world.host::<traffic::Sink>(ends.sink) {
            let cbr = self.world.host::<Cbr>(ends.source).map(Cbr::sent);
            let on_off = self.world.host::<OnOff>(ends.source).map(OnOff::sent);
            report.goodput_bps = bits_per_second(sink.bytes, active);
            report.throughput_bps = report.goodput_bps;
            report.sent_packets = cbr.or(on_off).unwrap_or(0);
            report.delivered_packets = sink.packets;
            report.one_way_delay_mean_s = mean(sink.delay, sink.packets);
        }
        report
    }

    fn link(&self, id: &str, link: LinkId) -> LinkReport {
        let report = self.world.link(link);
        LinkReport {
            id: id.to_owned(),
            forwarded_packets: report.delivered,
            dropped_packets: report.counts.errors + report.counts.drops,
            queue_packets_mean: self.world.queue_area(link).mean_since(QueueArea::START),
        }
    }
}

/// The phases of the agents' clocks, as ns-2 draws them from its default stream: each agent resets its clock when it is
/// made, and all do once more when the simulation starts, in the order in which they were made.
fn clock_phases(scenario: &Scenario) -> impl Iterator<Item = SimSpan> + use<> {
    let agents: Vec<_> = scenario
        .flows
        .iter()
        .filter_map(|flow| match &flow.transport {
            Transport::Ns2 { sender, .. } => Some(sender.agent),
            Transport::Engine { .. } | Transport::Cbr(_) | Transport::OnOff(_) => None,
        })
        .collect();
    // ns-2's seeds have 31 bits; further bits of ours would be lost, so they are folded in.
    let seed = (scenario.seed ^ scenario.seed >> 31) & 0x7fff_ffff;
    let mut stream = Mrg32k3a::new(seed as u32);
    for draw in agents.iter().map(|agent| agent.draws_at_creation()) {
        for _ in 0..draw {
            stream.uniform();
        }
    }
    let phases: Vec<SimSpan> =
        agents.iter().map(|_| SimSpan::from_secs_f64(stream.uniform() * TICK.as_secs_f64())).collect();
    phases.into_iter()
}

fn bits_per_second(bytes: u64, span: SimSpan) -> f64 {
    match span.is_zero() {
        true => 0.0,
        false => bytes as f64 * 8.0 / span.as_secs_f64(),
    }
}

fn mean(sum: SimSpan, count: u64) -> Option<f64> {
    (count > 0).then(|| sum.as_secs_f64() / count as f64)
}

#[cfg(test)]
mod engine_tests;
#[cfg(test)]
mod tests;
