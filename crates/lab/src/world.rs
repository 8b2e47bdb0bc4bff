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

use anabranch_sim::{BuildError, Capture, FlowId, HostId, LinkId, Observed, World};
use anabranch_units::SimTime;

use self::build::Parts;
pub(crate) use self::recording::Recording;
use crate::own::Faults;
use crate::scenario::Scenario;
use crate::trace::{ArrivalTrace, LinkTrace};

/// A scenario in the simulator.
pub(crate) struct Simulation<'a> {
    scenario: &'a Scenario,
    /// Of its flows' controllers that are modules.
    faults: Faults,
    pub(crate) world: World,
    links: Vec<LinkId>,
    flows: Vec<Ends>,
    /// The traces of recorded links, by position.
    traces: Vec<Option<Observed<LinkTrace>>>,
    arrivals: Vec<Option<Observed<ArrivalTrace>>>,
    capture: Option<Observed<Capture<Output>>>,
}

/// The number of checks for a failed controller in a run that has a module.
const SLICES: u64 = 1000;

/// The destination of a capture.
pub(crate) type Output = Box<dyn io::Write + Send>;

/// The reason why a scenario can be built.
pub(crate) const CHECKED: &str = "what the simulator refuses was refused when the scenario was read";

/// A flow in the world.
#[derive(Clone)]
struct Ends {
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
        Parts::assemble(scenario, recording)?.build()
    }

    /// The same, with a capture of the packets that enter links, written to `out`.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub(crate) fn build_captured(scenario: &'a Scenario, recording: Recording<'_>, out: Output) -> io::Result<Self> {
        let mut parts = Parts::assemble(scenario, recording).expect(CHECKED);
        let names = parts.links.iter().copied().zip(scenario.links.iter().map(|link| link.id.as_str()));
        let capture = Capture::new(out, names)?;
        parts.capture = Some(parts.builder.observe(&parts.links, capture).expect(CHECKED));
        Ok(parts.build().expect(CHECKED))
    }

    /// Flushes the capture, if there is one.
    ///
    /// # Errors
    /// If its output could not be written, now or before.
    pub(crate) fn finish_capture(&mut self) -> io::Result<()> {
        self.capture.as_ref().map_or(Ok(()), |capture| capture.borrow().finish())
    }

    /// Runs to the end of the scenario, or until a controller fails.
    pub(crate) fn run(&mut self) {
        // What a failed controller does after that is of no use, and nobody waits for it.
        if self.scenario.flows.iter().any(|flow| flow.own.is_some()) {
            let slice = self.scenario.duration / SLICES;
            let ends = (1..SLICES).map(|number| SimTime::ZERO.saturating_add(slice * number));
            for end in ends {
                self.world.run_until(end);
                if self.fault().is_some() {
                    return;
                }
            }
        }
        self.world.run_until(self.end());
    }

    /// The failure of a controller, if one has failed: then the run has no meaning.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.faults.first()
    }

    /// Runs until `until`.
    pub(crate) fn run_until(&mut self, until: SimTime) {
        self.world.run_until(until);
    }

    /// Checks that no packet has appeared or vanished; the error names the place.
    pub(crate) fn conservation(&self) -> Result<(), String> {
        self.world.conservation()
    }

    /// Bytes of payload received at the far end of a flow; for our own transport, bytes read by its application.
    pub(crate) fn read(&self, flow: usize) -> u64 {
        self.world.account(self.flows[flow].sink).report().received.payload
    }

    fn end(&self) -> SimTime {
        SimTime::ZERO.saturating_add(self.scenario.duration)
    }
}

#[cfg(test)]
mod engine_tests;
#[cfg(test)]
mod packet_tests;
#[cfg(test)]
mod tests;
