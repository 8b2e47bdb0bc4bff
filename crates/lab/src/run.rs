//! Runs one scenario.

use std::io::{self, Write};
use std::time::Instant;

use anabranch_units::SimTime;

use crate::report::Report;
use crate::scenario::Scenario;
use crate::trace;
use crate::world::{CHECKED, Recording, Simulation};

/// Runs a scenario to its end.
pub fn run(scenario: &Scenario) -> Report {
    timed(build(scenario, Recording::Counters)).0
}

/// Runs a scenario to its end and records what happens on the way.
pub fn run_traced(scenario: &Scenario) -> (Report, Trace<'_>) {
    let (report, simulation) = timed(build(scenario, Recording::Trace));
    (report, Trace { simulation, scenario })
}

/// [`run_traced`], and writes every packet that enters a link to `out` as pcap-ng.
///
/// # Errors
/// If `out` cannot be written. The run goes on to its end all the same.
pub fn run_captured(scenario: &Scenario, out: Box<dyn Write + Send>) -> io::Result<(Report, Trace<'_>)> {
    let (report, mut simulation) = timed(Simulation::build_captured(scenario, Recording::Trace, out)?);
    simulation.finish_capture()?;
    Ok((report, Trace { simulation, scenario }))
}

fn build(scenario: &Scenario, recording: Recording) -> Simulation<'_> {
    Simulation::build(scenario, recording).expect(CHECKED)
}

fn timed(mut simulation: Simulation<'_>) -> (Report, Simulation<'_>) {
    let begin = Instant::now();
    simulation.run();
    let wall_seconds = begin.elapsed().as_secs_f64();
    (Report { wall_seconds, ..simulation.report() }, simulation)
}

/// What happened in a run.
pub struct Trace<'a> {
    simulation: Simulation<'a>,
    scenario: &'a Scenario,
}

impl Trace<'_> {
    fn end(&self) -> SimTime {
        SimTime::ZERO.saturating_add(self.scenario.duration)
    }

    /// Names of the files that [`Trace::write`] writes.
    pub fn files(&self) -> Vec<String> {
        let flows = self.simulation.flow_rows().map(|(id, _)| format!("flow.{id}.csv"));
        flows.chain(self.simulation.link_traces().map(|(id, _)| format!("link.{id}.csv"))).collect()
    }

    /// Writes one of these files.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(&self, file: &str, out: &mut dyn Write) -> io::Result<()> {
        let is = |kind: &str, id: &str| file.strip_prefix(kind).and_then(|rest| rest.strip_suffix(".csv")) == Some(id);
        if let Some((_, rows)) = self.simulation.flow_rows().find(|(id, _)| is("flow.", id)) {
            return trace::write_flow_csv(rows, out);
        }
        match self.simulation.link_traces().find(|(id, _)| is("link.", id)) {
            Some((_, link)) => link.write_csv(self.end(), out),
            None => Err(io::Error::new(io::ErrorKind::NotFound, format!("no trace is called {file}"))),
        }
    }
}

/// One hash of many, in their order: FNV-1a over their digits.
pub(crate) fn combined_hash<'a>(hashes: impl Iterator<Item = &'a str>) -> String {
    let digits = hashes.flat_map(str::bytes);
    let hash =
        digits.fold(0xcbf2_9ce4_8422_2325_u64, |hash, digit| (hash ^ u64::from(digit)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}
