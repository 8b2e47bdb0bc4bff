//! The world of a scenario in the simulator. `build.rs` creates it, with the hosts of each flow from `hosts.rs` and their clocks
//! from `clock.rs`. `recording.rs` selects what is recorded. `reports.rs` and `notes.rs` extract the results, `series.rs` the
//! series.

mod build;
mod classes;
mod clock;
mod hosts;
mod notes;
mod recording;
mod reports;
mod series;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_sim::{
    BuildError, Capture, FlowId, GaugeRow, HostId, LinkId, LinkRow, LinkTrace, Observed, QueueLengths, World,
};
use anabranch_units::SimTime;

use self::build::Parts;
pub(crate) use self::recording::Recording;
use crate::own::Faults;
use crate::scenario::Scenario;
use crate::trace::{ArrivalTrace, Output, PacketTrace, Table, Watch};

/// A scenario in the simulator.
pub(crate) struct Simulation<'a> {
    scenario: &'a Scenario,
    /// Of its flows' controllers that are modules.
    faults: Faults,
    pub(crate) world: World,
    links: Vec<LinkId>,
    flows: Vec<FlowHosts>,
    /// The traces of recorded links, by position.
    traces: Vec<Option<Observed<LinkTrace>>>,
    arrivals: Vec<Option<Observed<ArrivalTrace>>>,
    tables: Tables,
    capture: Option<Observed<Capture<Output>>>,
}

/// The tables that are written. Whoever adds the rows of one has it, too.
#[derive(Default)]
struct Tables {
    flows: Vec<Arc<Mutex<Table<GaugeRow>>>>,
    links: Vec<Arc<Mutex<Table<LinkRow>>>>,
}

/// What is written while a run goes on.
#[derive(Default)]
pub(crate) struct Outputs {
    /// The outputs of the tables, in the order of [`Scenario::trace_files`]; empty, if none is written.
    pub(crate) tables: Vec<Output>,
    /// The output of a capture of the packets that enter links.
    pub(crate) capture: Option<Output>,
}

/// The number of checks for a failed controller in a run that has a module.
const SLICES: u64 = 1000;

/// The reason why a scenario can be built.
pub(crate) const CHECKED: &str = "what the simulator refuses was refused when the scenario was read";

/// A flow in the world.
#[derive(Clone)]
struct FlowHosts {
    source: HostId,
    sink: HostId,
    flow: FlowId,
    start: SimTime,
    /// The sizes of its messages, if it has a class.
    messages: Vec<u64>,
}

impl<'a> Simulation<'a> {
    /// Builds the world.
    ///
    /// # Errors
    /// If the scenario exceeds a limit of the simulator.
    pub(crate) fn build(scenario: &'a Scenario, recording: Recording<'_>) -> Result<Self, BuildError> {
        Parts::assemble(scenario, recording, Vec::new())?.build()
    }

    /// The same, with what is written while it runs.
    ///
    /// # Errors
    /// If an output cannot be written.
    pub(crate) fn build_writing(
        scenario: &'a Scenario,
        recording: Recording<'_>,
        outputs: Outputs,
    ) -> io::Result<Self> {
        let mut parts = Parts::assemble(scenario, recording, outputs.tables).expect(CHECKED);
        if let Some(out) = outputs.capture {
            let names = parts.links.iter().copied().zip(scenario.links.iter().map(|link| link.id.as_str()));
            let capture = Capture::new(out, names)?;
            parts.capture = Some(parts.builder.observe(&parts.links, capture).expect(CHECKED));
        }
        Ok(parts.build().expect(CHECKED))
    }

    /// Builds the world, and observes the packets of a part of the run.
    ///
    /// # Errors
    /// If the scenario exceeds a limit of the simulator.
    pub(crate) fn build_watching(
        scenario: &'a Scenario,
        recording: Recording<'_>,
        watch: Watch,
    ) -> Result<(Self, Observed<PacketTrace>), BuildError> {
        let mut parts = Parts::assemble(scenario, recording, Vec::new())?;
        let flows = parts.flows.iter().map(|ends| ends.flow).collect();
        let trace = parts.builder.observe(&parts.links, PacketTrace::new(watch, &parts.links, flows))?;
        Ok((parts.build()?, trace))
    }

    /// Writes the rest of all outputs.
    ///
    /// # Errors
    /// If one could not be written, now or before.
    pub(crate) fn finish_outputs(&mut self) -> io::Result<()> {
        let end = self.end();
        self.traces.iter().flatten().for_each(|trace| trace.borrow().finish(end));
        let Tables { flows, links } = &self.tables;
        links.iter().try_for_each(|table| table.lock().unwrap_or_else(PoisonError::into_inner).finish())?;
        flows.iter().try_for_each(|table| table.lock().unwrap_or_else(PoisonError::into_inner).finish())?;
        self.capture.as_ref().map_or(Ok(()), |capture| capture.borrow().finish())
    }

    /// Runs to the end of the scenario, or until a controller fails.
    pub(crate) fn run(&mut self) {
        self.run_checked(self.end());
    }

    /// Runs until `until`, or until a controller fails. Returns whether none has.
    pub(crate) fn run_checked(&mut self, until: SimTime) -> bool {
        // What a failed controller does after that is of no use, and nobody waits for it.
        if self.scenario.flows.iter().any(|flow| flow.own.is_some()) {
            let slice = self.scenario.duration / SLICES;
            while self.fault().is_none() && self.world.now().saturating_add(slice) < until {
                self.world.run_until(self.world.now().saturating_add(slice));
            }
        }
        if self.fault().is_none() {
            self.world.run_until(until);
        }
        self.fault().is_none()
    }

    /// The failure of a controller, if one has failed: then the run has no meaning.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.faults.first()
    }

    pub(crate) fn run_until(&mut self, until: SimTime) {
        self.world.run_until(until);
    }

    /// As [`Self::run_until`], with at most `most` events. Returns whether they were enough.
    pub(crate) fn run_within(&mut self, until: SimTime, most: u64) -> bool {
        self.world.run_within(until, most)
    }

    /// Checks that no packet has appeared or vanished; the error names the place.
    pub(crate) fn conservation(&self) -> Result<(), String> {
        self.world.conservation()
    }

    /// The number of flows.
    pub(crate) fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Bytes of payload received at the far end of a flow; for our own transport, bytes read by its application.
    pub(crate) fn read(&self, flow: usize) -> u64 {
        self.world.account(self.flows[flow].sink).report().received.payload
    }

    /// The lengths of a link's queue until now.
    pub(crate) fn queue_lengths(&self, link: usize) -> QueueLengths {
        self.world.queue_lengths(self.links[link])
    }

    /// Packets that a link has lost or dropped until now.
    pub(crate) fn dropped(&self, link: usize) -> u64 {
        let counts = self.world.link(self.links[link]).counts;
        counts.errors + counts.drops
    }

    pub(crate) fn end(&self) -> SimTime {
        SimTime::ZERO.saturating_add(self.scenario.duration)
    }
}

#[cfg(test)]
mod engine_tests;
#[cfg(test)]
mod packet_tests;
#[cfg(test)]
mod tests;
