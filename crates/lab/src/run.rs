//! Runs one scenario.

mod around;
mod measured;

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anabranch_units::{SimSpan, SimTime};

use crate::experiment::Experiment;
use crate::expression::{Expression, ExpressionError, Found};
use crate::report::{MeasureReport, Report};
use crate::scenario::Scenario;
pub use crate::trace::{OpenTable, Output};
use crate::world::{CHECKED, Outputs, Recording, Simulation};

use self::around::around;
pub(crate) use self::measured::Run;

/// Runs a scenario to its end.
///
/// # Errors
/// If a controller of a flow's own fails: the run ends there.
pub fn run(scenario: &Scenario) -> Result<Report, ControllerFailed> {
    around(scenario, || timed(build(scenario, Recording::Counters)).map(|(report, _)| report))
}

/// The failure of a controller that is not the registry's: which one, when, why, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerFailed(pub String);

impl fmt::Display for ControllerFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ControllerFailed {}

/// The records of a run besides its counters.
#[derive(Default)]
pub struct Records<'a> {
    /// Opens the tables: one of each file in [`Scenario::trace_files`], written while the run goes on, whole, with little memory.
    pub tables: Option<&'a mut OpenTable<'a>>,
    /// Series by their names, for [`Trace::lookup`].
    pub series: Vec<String>,
    /// The destination of a pcap-ng capture of every packet that enters a link. The capture uses no memory.
    pub capture: Option<Output>,
}

/// Runs a scenario to its end with records. `on_step` receives the number of finished parts and of all parts of the run. It is called
/// several times in a part that takes longer than [`SLICE_MAX`], and may stop the run by breaking.
///
/// # Errors
/// If a table or the capture cannot be written; the run still goes on to its end. [`io::ErrorKind::Interrupted`] if `on_step` breaks.
/// [`ControllerFailed`] within the error if a controller of a flow's own fails: the run ends there.
pub fn run_recording<'a>(
    scenario: &'a Scenario,
    records: Records<'_>,
    on_step: impl FnMut(usize, usize) -> ControlFlow<()>,
) -> io::Result<(Report, Trace<'a>)> {
    around(scenario, || recording(scenario, records, on_step))
}

fn recording<'a>(
    scenario: &'a Scenario,
    records: Records<'_>,
    mut on_step: impl FnMut(usize, usize) -> ControlFlow<()>,
) -> io::Result<(Report, Trace<'a>)> {
    let Records { tables, series, capture } = records;
    let tables = match tables {
        Some(open) => scenario.trace_files().iter().map(|name| open(name)).collect::<io::Result<_>>()?,
        None => Vec::new(),
    };
    let outputs = Outputs { tables, capture };
    let mut simulation = Simulation::build_writing(scenario, Recording::Series(&series), outputs)?;
    let begin = Instant::now();
    let part = scenario.duration / STEPS as u64;
    let mut slices = 1;
    for step in 1..=STEPS {
        let begin_of_step = SimTime::ZERO.saturating_add(part * (step as u64 - 1));
        let began = Instant::now();
        for slice in 1..=slices {
            simulation.run_until(begin_of_step.saturating_add(part / slices * slice));
            check(&simulation).map_err(io::Error::other)?;
            if on_step(if slice < slices { step - 1 } else { step }, STEPS).is_break() {
                return Err(io::Error::new(io::ErrorKind::Interrupted, "the run was stopped"));
            }
        }
        // The next part is assumed to take as long as this one.
        let wanted = began.elapsed().as_nanos() / SLICE_MAX.as_nanos() + 1;
        slices = u64::try_from(wanted).unwrap_or(SLICES_MAX).min(SLICES_MAX);
    }
    simulation.run();
    check(&simulation).map_err(io::Error::other)?;
    let wall_seconds = begin.elapsed().as_secs_f64();
    simulation.finish_outputs()?;
    Ok((Report { wall_seconds, ..simulation.report() }, Trace { simulation, scenario }))
}

/// The number of parts: more than a progress bar on a terminal can show.
const STEPS: usize = 200;

/// The limit of slices in a part, for slow machines.
const SLICES_MAX: u64 = 1000;

/// The approximate time until a run stops after an interrupt.
pub const SLICE_MAX: Duration = Duration::from_millis(100);

/// Runs a scenario, records the data for these series, and evaluates the measures that use them.
pub(crate) fn run_recorded<'a, 'b>(
    scenario: &'a Scenario,
    series: &[String],
    measures: impl Iterator<Item = &'b (String, Expression)>,
) -> Result<(Run, Trace<'a>), ControllerFailed> {
    let (report, simulation) = around(scenario, || timed(build(scenario, Recording::Series(series))))?;
    let trace = Trace { simulation, scenario };
    Ok((Run::measured(report, &trace, measures), trace))
}

/// Builds the world of a scenario, records nothing, and passes it to `watch`, which runs it as far as it needs.
pub(crate) fn run_watched<T>(
    scenario: &Scenario,
    watch: impl FnOnce(&mut Simulation<'_>) -> T,
) -> Result<T, ControllerFailed> {
    around(scenario, || {
        let mut simulation = build(scenario, Recording::Counters);
        let watched = watch(&mut simulation);
        check(&simulation).map(|()| watched)
    })
}

/// Runs a scenario and evaluates all measures of `experiment`.
pub(crate) fn run_measured(scenario: &Scenario, experiment: &Experiment) -> Result<Run, ControllerFailed> {
    let asking = || experiment.measures().iter().filter(|(_, expression)| expression.asks_series());
    let series: Vec<String> = asking().flat_map(|(_, expression)| expression.series()).collect();
    run_recorded(scenario, &series, asking()).map(|(run, _)| run)
}

fn build<'a>(scenario: &'a Scenario, recording: Recording<'_>) -> Simulation<'a> {
    Simulation::build(scenario, recording).expect(CHECKED)
}

fn timed(mut simulation: Simulation<'_>) -> Result<(Report, Simulation<'_>), ControllerFailed> {
    let begin = Instant::now();
    simulation.run();
    check(&simulation)?;
    let wall_seconds = begin.elapsed().as_secs_f64();
    Ok((Report { wall_seconds, ..simulation.report() }, simulation))
}

/// Whether all controllers are well.
fn check(simulation: &Simulation<'_>) -> Result<(), ControllerFailed> {
    simulation.fault().map_or(Ok(()), |fault| Err(ControllerFailed(fault.to_owned())))
}

/// The records of a run.
pub struct Trace<'a> {
    simulation: Simulation<'a>,
    scenario: &'a Scenario,
}

impl Trace<'_> {
    /// The series of this name and the end of the run, for expressions.
    ///
    /// # Errors
    /// If there is no series of this name.
    pub fn lookup(&self, name: &str) -> Result<Found, ExpressionError> {
        let series = self.simulation.series(name).map_err(ExpressionError)?;
        Ok(Found { series: Some(series), end: self.scenario.duration.as_secs_f64() })
    }

    /// The resolution of the records, if it is coarser than the scenario's. A run with many changes needs it to fit into memory: the changes
    /// within this time are one point.
    pub fn coarsened(&self) -> Option<SimSpan> {
        self.simulation.coarsened()
    }

    /// The values of the measures of `experiment` in this run, in the order of the file.
    pub fn measures(&self, experiment: &Experiment, report: &Report) -> Vec<MeasureReport> {
        measures(experiment, report, |name| self.lookup(name))
    }
}

/// The values of the measures of `experiment` in a run, in the order of the file.
pub(crate) fn measures(
    experiment: &Experiment,
    report: &Report,
    lookup: impl Fn(&str) -> Result<Found, ExpressionError>,
) -> Vec<MeasureReport> {
    let answer = |(name, expression): &(String, Expression)| {
        let value = &mut |name: &str, _: &[String]| report.gauge(name).map_err(ExpressionError);
        let answer = expression.evaluate_run(value, &mut |name| lookup(name));
        let because = answer.as_ref().err().map(|error| error.0.clone());
        MeasureReport { name: name.clone(), value: answer.ok().filter(|value| value.is_finite()), because }
    };
    experiment.measures().iter().map(answer).collect()
}
