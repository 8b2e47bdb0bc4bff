//! Puts the nodes, links, hosts and observers of a scenario into the simulator's builder.

use std::sync::{Arc, Mutex, PoisonError};

use anabranch_sim::{
    BuildError, Builder, Capture, GaugeListener, LinkId, LinkRow, LinkTrace, Observed, Port, Workload,
};

use super::clock::{Clocks, clocks};
use super::hosts::Hosts;
use super::recording::{Recording, Rows, Wanted};
use super::{FlowHosts, Simulation, Tables};
use crate::own::Faults;
use crate::scenario::{Clock, Flow, Scenario};
use crate::trace::{ArrivalTrace, Output, Table};

/// The parts of a [`Simulation`].
pub(super) struct Parts<'a> {
    scenario: &'a Scenario,
    faults: Faults,
    pub(super) builder: Builder,
    pub(super) links: Vec<LinkId>,
    pub(super) flows: Vec<FlowHosts>,
    /// The traces of recorded links, by position.
    traces: Vec<Option<Observed<LinkTrace>>>,
    arrivals: Vec<Option<Observed<ArrivalTrace>>>,
    tables: Tables,
    pub(super) capture: Option<Observed<Capture<Output>>>,
}

impl<'a> Parts<'a> {
    /// Builds the world.
    pub(super) fn build(self) -> Result<Simulation<'a>, BuildError> {
        let Self { scenario, faults, builder, links, flows, traces, arrivals, tables, capture } = self;
        Ok(Simulation { scenario, faults, world: builder.build()?, links, flows, traces, arrivals, tables, capture })
    }

    /// Assembles the parts of a scenario. `tables` are the outputs of its tables, in the order of [`Scenario::trace_files`]; empty, if none
    /// is written.
    pub(super) fn assemble(
        scenario: &'a Scenario,
        recording: Recording<'_>,
        tables: Vec<Output>,
    ) -> Result<Self, BuildError> {
        let mut outputs = tables.into_iter();
        let mut tables = Tables::default();
        let mut builder = Builder::new(scenario.seed);
        if scenario.clock == Clock::Ns2 {
            builder.ns2_clock();
        }
        if scenario.is_multipath {
            builder.multipath();
        }
        let (nodes, links) = builder.network(&scenario.nodes, &scenario.links)?;
        let wanted = Wanted::new(scenario, recording);
        let detail = wanted.detail(scenario);
        let Clocks { starts, phases, random } = clocks(scenario, &builder);
        let mut phases = phases.into_iter();
        if let Some(random) = random {
            builder.ns2_random(random);
        }
        let mut flows = Vec::with_capacity(scenario.flows.len());
        let faults = Faults::default();
        for (flow, start) in scenario.flows.iter().zip(starts) {
            let messages = messages(flow, &builder);
            let output = if flow.transport.has_variables() { outputs.next() } else { None };
            let table = output.map(|out| Arc::new(Mutex::new(Table::new(out, scenario.resolution))));
            tables.flows.extend(table.clone());
            let listener = table.map(|table| {
                GaugeListener::new(move |row| table.lock().unwrap_or_else(PoisonError::into_inner).push(row))
            });
            let hosts = Hosts {
                scenario,
                nodes: &nodes,
                links: &links,
                flow,
                faults: &faults,
                messages: &messages,
                source_detail: wanted.sources[flows.len()].then_some(detail),
                sink_detail: wanted.sinks[flows.len()].then_some(detail),
                listener,
            };
            let (source, sink) = hosts.build(&mut builder, &mut phases)?;
            let messages = if flow.class.is_some() { messages } else { Vec::new() };
            flows.push(FlowHosts { source, sink, flow: builder.flow(source, sink)?, start, messages });
        }
        builder.changes((&nodes, &links), &scenario.routes, &scenario.links)?;
        for (flow, ends) in scenario.flows.iter().zip(&flows) {
            match flow.transport.workload() {
                Workload::Bulk | Workload::Dialogue(_) => builder.start(ends.start, ends.source)?,
                workload => builder.workload(&flow.id, ends.start, (ends.source, Port::FIRST), workload)?,
            }
            if let Some(stop) = flow.stop {
                builder.stop(stop, ends.source)?;
            }
        }
        let mut traces = Vec::with_capacity(links.len());
        for (&id, rows) in links.iter().zip(wanted.links) {
            let table = outputs.next().map(|out| Arc::new(Mutex::new(Table::new(out, scenario.resolution))));
            tables.links.extend(table.clone());
            let is_written = table.is_some();
            let tell = table.map(|table| -> Box<dyn FnMut(LinkRow) + Send> {
                Box::new(move |row| table.lock().unwrap_or_else(PoisonError::into_inner).push(row))
            });
            let detail = (rows != Rows::Nothing).then_some(detail);
            let trace = (detail.is_some() || is_written).then(|| match rows {
                Rows::Queue if !is_written => LinkTrace::new(detail, tell).of_queue(),
                _ => LinkTrace::new(detail, tell),
            });
            traces.push(trace.map(|trace| builder.observe(&[id], trace)).transpose()?);
        }
        let mut arrivals = Vec::with_capacity(flows.len());
        for ((flow, ends), is_wanted) in scenario.flows.iter().zip(&flows).zip(wanted.arrivals) {
            let last = scenario.links.iter().zip(&links).filter(|(link, _)| [flow.from, flow.to].contains(&link.to));
            let last: Vec<LinkId> = last.map(|(_, &id)| id).collect();
            let trace = is_wanted.then(|| ArrivalTrace::new(ends.flow, detail));
            arrivals.push(trace.map(|trace| builder.observe(&last, trace)).transpose()?);
        }
        Ok(Self { scenario, faults, builder, links, flows, traces, arrivals, tables, capture: None })
    }
}

/// The sizes of the messages of a flow, if both ends must know them before the run; else empty.
fn messages(flow: &Flow, builder: &Builder) -> Vec<u64> {
    let workload = flow.transport.workload();
    match flow.class.is_some() || matches!(workload, Workload::Dialogue(_)) {
        true => builder.amounts(&flow.id, workload).unwrap_or_default(),
        false => Vec::new(),
    }
}
