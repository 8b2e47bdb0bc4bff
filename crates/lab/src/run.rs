//! Runs one scenario.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Instant;

use anabranch_units::SimTime;

use crate::experiment::Experiment;
use crate::expression::{Expression, ExpressionError, Found};
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

/// The same for what these series are made of.
pub(crate) fn run_recorded<'a>(scenario: &'a Scenario, series: &[String]) -> (Report, Trace<'a>) {
    let (report, simulation) = timed(build(scenario, Recording::Series(series)));
    (report, Trace { simulation, scenario })
}

/// Runs a scenario and writes every packet that enters a link to `out` as pcap-ng. With `is_traced` it records what happens,
/// as [`run_traced`] does; a capture alone keeps nothing in memory.
///
/// # Errors
/// If `out` cannot be written. The run goes on to its end all the same.
pub fn run_captured(
    scenario: &Scenario,
    is_traced: bool,
    out: Box<dyn Write + Send>,
) -> io::Result<(Report, Trace<'_>)> {
    let recording = if is_traced { Recording::Trace } else { Recording::Counters };
    let (report, mut simulation) = timed(Simulation::build_captured(scenario, recording, out)?);
    simulation.finish_capture()?;
    Ok((report, Trace { simulation, scenario }))
}

/// A run, and what some measures of it are.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) report: Report,
    /// Those that ask for series; the others follow from the report.
    measures: BTreeMap<String, Result<f64, ExpressionError>>,
}

/// Runs a scenario and answers what all measures of `experiment` ask of its series.
pub(crate) fn run_measured(scenario: &Scenario, experiment: &Experiment) -> Run {
    let asking = || experiment.measures().iter().filter(|(_, expression)| expression.asks_series());
    let series: Vec<String> = asking().flat_map(|(_, expression)| expression.series()).collect();
    if series.is_empty() {
        return Run::unrecorded(scenario);
    }
    let (report, trace) = run_recorded(scenario, &series);
    Run::measured(report, &trace, asking())
}

impl Run {
    /// Of a scenario whose series nobody asks for.
    pub(crate) fn unrecorded(scenario: &Scenario) -> Self {
        Self { report: run(scenario), measures: BTreeMap::new() }
    }

    /// Of a run that has recorded what `measures` ask for.
    pub(crate) fn measured<'a>(
        report: Report,
        trace: &Trace<'_>,
        measures: impl Iterator<Item = &'a (String, Expression)>,
    ) -> Self {
        // Measures often ask the same series, which takes longer to put together than to copy.
        let mut known: BTreeMap<String, Found> = BTreeMap::new();
        let mut lookup = |name: &str| match known.get(name) {
            Some(found) => Ok(found.clone()),
            None => {
                let found = trace.lookup(name)?;
                known.insert(name.to_owned(), found.clone());
                Ok(found)
            }
        };
        let value = |name: &str, _: &[String]| report.gauge(name).map_err(ExpressionError);
        let answer = |(name, expression): &(String, Expression)| {
            (name.clone(), expression.evaluate_run(&mut { value }, &mut lookup))
        };
        Self { measures: measures.map(answer).collect(), report }
    }

    /// The value of a measure or a gauge.
    pub(crate) fn value(&self, experiment: &Experiment, name: &str) -> Result<f64, ExpressionError> {
        if let Some(answer) = self.measures.get(name) {
            return answer.clone();
        }
        let gauge = |name: &str| self.report.gauge(name).map_err(ExpressionError);
        match experiment.measures().iter().find(|(known, _)| known == name) {
            // A measure is made of gauges alone: it has no labels, and cannot name itself.
            Some((_, expression)) => expression.evaluate(&mut |name, _| gauge(name)),
            None => gauge(name),
        }
    }
}

fn build<'a>(scenario: &'a Scenario, recording: Recording<'_>) -> Simulation<'a> {
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

    /// A series by its name, and when the run ended, as expressions look them up.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn lookup(&self, name: &str) -> Result<Found, ExpressionError> {
        let series = self.simulation.series(name).map_err(ExpressionError)?;
        Ok(Found { series: Some(series), end: self.scenario.duration.as_secs_f64() })
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
            return trace::write_flow_csv(&rows, out);
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
