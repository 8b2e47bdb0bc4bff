//! The hosts of a flow, for each transport.

use anabranch_ns2::random::Mrg32k3a;
use anabranch_ns2::sctp::{DestinationConfig, Endpoint, EndpointConfig};
use anabranch_ns2::{Sender, SenderConfig, Sink, Streams, multihome};
use anabranch_proto::Config;
use anabranch_sim::traffic::{self, OnOff};
use anabranch_sim::{
    BuildError, Builder, Detail, Dialogue, Driven, EngineSink, EngineSource, GaugeListener, Host, HostId, LinkId,
    MultihomedSink, MultihomedSource, NodeId, Ns2Sctp, Ns2Sink, Ns2Source, Requests, Way, Workload,
};
use anabranch_units::SimSpan;

use crate::own::Faults;
use crate::scenario::transport::Transport;
use crate::scenario::{Clock, Flow, NodeIndex, Scenario};

/// A flow whose hosts are built.
pub(super) struct Hosts<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) nodes: &'a [NodeId],
    pub(super) links: &'a [LinkId],
    pub(super) flow: &'a Flow,
    pub(super) faults: &'a Faults,
    /// The sizes of its messages, if its ends know them before the run.
    pub(super) messages: &'a [u64],
    /// The detail in which the source records its variables, if it does.
    pub(super) source_detail: Option<Detail>,
    /// The detail in which the sink records arrivals, if it does.
    pub(super) sink_detail: Option<Detail>,
    /// Receives the variables of the source; of a transport that has any.
    pub(super) listener: Option<GaugeListener>,
}

impl Hosts<'_> {
    /// Puts the source and the sink at their nodes. An agent with ns-2's clock takes a phase of it.
    pub(super) fn build(
        &self,
        builder: &mut Builder,
        phases: &mut impl Iterator<Item = SimSpan>,
    ) -> Result<(HostId, HostId), BuildError> {
        const PHASES: &str = "there is a phase for each agent";
        let (from, to) = (self.nodes[self.flow.from], self.nodes[self.flow.to]);
        match &self.flow.transport {
            Transport::Ns2 { sender, sink, streams, workload } => {
                let clock_phase = phases.next().expect(PHASES);
                let source = Ns2Source::new(Sender::new(SenderConfig { clock_phase, ..**sender }));
                let source = if streams.is_some() { source.with_stream_headers() } else { source };
                let source = if *workload == Workload::Bulk { source } else { source.fed() };
                let source = self.source_detail.into_iter().fold(source, Ns2Source::traced_in);
                let source = self.listener.iter().cloned().fold(source, Ns2Source::heard_by);
                let sink = Ns2Sink::new(Sink::new(*sink)).carrying(self.flow.transport.payload());
                let sink = match *streams {
                    None => sink,
                    // The advertised window is the free room of the receive buffer, in whole packets.
                    Some(streams) => sink.with_streams(Streams::new(streams, sender.window as u32)),
                };
                let sink = self.sink_detail.into_iter().fold(sink, Ns2Sink::traced_in);
                Ok((builder.host(from, source)?, builder.host(to, sink)?))
            }
            Transport::Multihomed { config, workload } => {
                let clock_phase = phases.next().expect(PHASES);
                let (source, sink) = self.multihomed(config, clock_phase, builder)?;
                let source = if *workload == Workload::Bulk { source } else { source.fed() };
                let source = self.source_detail.into_iter().fold(source, MultihomedSource::traced_in);
                let source = self.listener.iter().cloned().fold(source, MultihomedSource::heard_by);
                let sink = self.sink_detail.into_iter().fold(sink, MultihomedSink::traced_in);
                Ok((builder.host(from, source)?, builder.host(to, sink)?))
            }
            Transport::Sctp { config, primary, workload } => {
                let [source, sink] = self.association(config, *primary, builder)?;
                let source = if *workload == Workload::Bulk { source } else { source.fed() };
                let source = self.source_detail.into_iter().fold(source, Ns2Sctp::traced_in);
                let source = self.listener.iter().cloned().fold(source, Ns2Sctp::heard_by);
                let sink = self.sink_detail.into_iter().fold(sink, Ns2Sctp::traced_in);
                Ok((builder.host(from, source)?, builder.host(to, sink)?))
            }
            Transport::Engine { config, workload } => {
                let (source, sink) = self.engine(config, builder)?;
                let source = match *workload {
                    Workload::Bulk => source,
                    Workload::Dialogue(dialogue) => source.answering(dialogue.request, self.messages.to_vec()),
                    _ => source.fed(),
                };
                let sink = match *workload {
                    Workload::Dialogue(Dialogue { request: bytes, think, .. }) => {
                        let stream = builder.stream(&format!("flow.{}.think", self.flow.id));
                        sink.expecting(self.messages).asking(Requests { bytes, think, stream })
                    }
                    _ if self.messages.is_empty() => sink,
                    _ => sink.expecting(self.messages),
                };
                let source = self.station(self.flow.from, source, builder)?;
                Ok((source, self.station(self.flow.to, sink, builder)?))
            }
            Transport::Cbr(cbr) => Ok((builder.host(from, cbr.clone())?, builder.host(to, traffic::Sink::default())?)),
            Transport::OnOff(parameters) => {
                let source = match self.scenario.clock {
                    Clock::Exact => OnOff::new(*parameters, builder.stream(&format!("flow.{}", self.flow.id))),
                    // The world replaces this stream by ns-2's shared one.
                    Clock::Ns2 => OnOff::ns2(*parameters, Mrg32k3a::new(Mrg32k3a::DEFAULT_SEED)),
                };
                Ok((builder.host(from, source)?, builder.host(to, traffic::Sink::default())?))
            }
        }
    }

    /// Both ends of a connection of our own transport.
    fn engine(&self, config: &Config, builder: &mut Builder) -> Result<(EngineSource, EngineSink), BuildError> {
        const CHECKED: &str = "the configuration was checked when the scenario was read";
        let own = self.flow.own.as_ref();
        let law = own.map(|law| law.settings(&format!("flow `{}`: ", self.flow.id), self.faults));
        let config = |node: NodeIndex| {
            let timer = self.scenario.drivers.get(&node).map_or(SimSpan::ZERO, |driver| driver.timer);
            let law = law.clone().unwrap_or_else(|| config.law.clone());
            Config { timer: timer.rescale(), law, ..config.clone() }
        };
        let source = EngineSource::new(config(self.flow.from)).expect(CHECKED);
        let sink = EngineSink::new(config(self.flow.to)).expect(CHECKED);
        let (there, back) = self.ways(builder)?.into_iter().unzip();
        let weights = self.flow.paths.iter().map(|path| path.weight).collect();
        let (source, sink) = (source.multihomed(there).weighted(weights), sink.multihomed(back));
        let source = self.source_detail.into_iter().fold(source, EngineSource::traced_in);
        let source = self.listener.iter().cloned().fold(source, EngineSource::heard_by);
        // Each message of a class is remembered.
        let source = match self.messages {
            [] => source,
            messages => source.remembering_offers(size_of_val(messages) * 8),
        };
        let Some(detail) = self.sink_detail else { return Ok((source, sink)) };
        Ok((source.remembering_offers(detail.bytes_max), sink.traced_in(detail)))
    }

    /// Adds an end of a flow at its node, with a driver around it if the scenario has one there.
    fn station(&self, index: NodeIndex, host: impl Host, builder: &mut Builder) -> Result<HostId, BuildError> {
        let node = self.nodes[index];
        let Some(&driver) = self.scenario.drivers.get(&index) else { return builder.host(node, host) };
        let name = &self.scenario.nodes[index];
        let streams = ["card", "scheduler"].map(|what| builder.stream(&format!("host.{name}.{}.{what}", self.flow.id)));
        builder.host(node, Driven::new(host, driver, streams))
    }

    /// Both ends of an association, on one path or several.
    fn association(
        &self,
        config: &EndpointConfig,
        primary: usize,
        builder: &mut Builder,
    ) -> Result<[Ns2Sctp; 2], BuildError> {
        let destination = |(interface, loss_rate)| DestinationConfig { interface, loss_rate };
        let paths = self.flow.paths.iter();
        let mut destinations: Vec<_> = (0..).zip(paths.map(|path| path.loss_rate)).map(destination).collect();
        if destinations.is_empty() {
            destinations.push(DestinationConfig::default());
        }
        // With ns-2's clock, the world replaces these by ns-2's shared stream.
        let mut seeds = builder.stream(&format!("flow.{}.sctp", self.flow.id));
        let mut endpoint = || {
            let seed = (seeds.uniform() * f64::from(i32::MAX)) as u32;
            Endpoint::new(*config, &destinations, Mrg32k3a::new(seed))
        };
        let (mut source, mut sink) = (endpoint(), endpoint());
        source.set_primary(primary);
        // ns-2's default primary destination is the last one; scripts change it only at the source.
        sink.set_primary(destinations.len() - 1);
        let (source, sink) = (Ns2Sctp::new(source), Ns2Sctp::new(sink));
        if self.flow.paths.is_empty() {
            return Ok([source, sink]);
        }
        let (there, back) = self.ways(builder)?.into_iter().unzip();
        Ok([source.multihomed(there), sink.multihomed(back)])
    }

    /// Both ends of FAST multihoming.
    fn multihomed(
        &self,
        config: &multihome::Config,
        clock_phase: SimSpan,
        builder: &mut Builder,
    ) -> Result<(MultihomedSource, MultihomedSink), BuildError> {
        let agent = SenderConfig { clock_phase, ..config.agent };
        let source = MultihomedSource::new(multihome::Sender::new(multihome::Config { agent, ..*config }));
        let sink = MultihomedSink::new(config.paths).carrying(config.agent.payload);
        if self.flow.paths.is_empty() {
            return Ok((source, sink));
        }
        let (there, back) = self.ways(builder)?.into_iter().unzip();
        Ok((source.multihomed(there), sink.multihomed(back)))
    }

    /// The paths of a flow for its source and its sink; empty if packets take the shortest route.
    fn ways(&self, builder: &mut Builder) -> Result<Vec<(Way, Way)>, BuildError> {
        let mut ways = vec![];
        for path in &self.flow.paths {
            let sink = builder.address_through(self.links[path.last])?;
            let source = builder.address_through(self.links[path.back_last])?;
            let there = Way { via: self.links[path.first], to: sink, here: source };
            ways.push((there, Way { via: self.links[path.back_first], to: source, here: sink }));
        }
        Ok(ways)
    }
}
