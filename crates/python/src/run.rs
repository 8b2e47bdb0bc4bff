//! Runs one scenario.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anabranch_lab::document::Document;
use anabranch_lab::experiment::Experiment;
use anabranch_lab::expression::Series;
use anabranch_lab::report::Report;
use anabranch_lab::run::{self, ControllerFailed, Records};
use anabranch_lab::scenario::Scenario;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::error::{ControllerError, Error, ScenarioError, of_scenario};
use crate::own::{Laws, no_law};
use crate::results::Run;
use crate::{scenario, values};

/// Runs a scenario, a file or an `anabranch.Scenario`, to its end. `set` overrides keys as `--set` does. `cc` sets the law of a flow, or of all flows
/// with `"*"`: the name of a law, a dict with its name and settings, or a class that extends `anabranch.Controller`. `record` selects the recorded
/// series: all, none, or the given names. `progress` is called with the number of finished parts and the number of all parts.
#[pyfunction]
#[pyo3(name = "run", signature = (scenario, *, seed = None, set = None, cc = None, record = None, progress = None))]
pub(crate) fn run_scenario(
    py: Python<'_>,
    scenario: &Bound<'_, PyAny>,
    seed: Option<u64>,
    set: Option<&Bound<'_, PyDict>>,
    cc: Option<&Bound<'_, PyDict>>,
    record: Option<&Bound<'_, PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Run> {
    let mut document = scenario::document_of(scenario)?;
    overridden(&mut document, seed, set)?;
    let own = laws(&mut document, cc)?;
    let experiment = Experiment::parse(document.clone()).map_err(of_scenario)?;
    let mut scenario = Scenario::parse(&document).map_err(of_scenario)?;
    let laws = Laws::default();
    for (flow, make) in own {
        let law = laws.for_run(make.bind(py))?;
        let flows: Vec<String> = match flow.as_str() {
            "*" => scenario.flow_names().map(str::to_owned).collect(),
            _ => vec![flow],
        };
        for flow in flows {
            let fail = |message| ScenarioError::new_err(format!("{}: {message}", document.file()));
            scenario.set_own(&flow, &law).map_err(fail)?;
        }
    }
    let recorded = recorded(&scenario, record)?;
    let mut looks = Looks::new(progress);
    let work = {
        let (scenario, experiment, looks) = (&scenario, &experiment, &mut looks);
        let on_step = move |done, total| match looks.look(done, total) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        };
        move || simulate(scenario, experiment, recorded, on_step)
    };
    let outcome = py.detach(work);
    looks.result()?;
    laws.raised.raise()?;
    let (report, series) =
        outcome.map_err(|error| match error.get_ref().is_some_and(|inner| inner.is::<ControllerFailed>()) {
            true => ControllerError::new_err(error.to_string()),
            false => Error::new_err(format!("the run failed: {error}")),
        })?;
    let question = document.comment().to_owned();
    Ok(Run { report, scenario: Some(scenario), series, question })
}

/// Runs the scenario and takes the recorded series out of the simulator.
fn simulate(
    scenario: &Scenario,
    experiment: &Experiment,
    names: Vec<String>,
    on_step: impl FnMut(usize, usize) -> ControlFlow<()>,
) -> io::Result<(Report, BTreeMap<String, Series>)> {
    let asked: Vec<String> = names.iter().cloned().chain(experiment.series()).collect();
    let records = Records { series: asked, ..Records::default() };
    let (mut report, trace) = run::run_recording(scenario, records, on_step)?;
    report.measures = trace.measures(experiment, &report);
    if let Some(resolution) = trace.coarsened() {
        report.notes.push(format!(
            "what was recorded did not fit into memory, so that of all that happens within {resolution} the last is kept: set \
             `resolution` to choose, or record less"
        ));
    }
    // A series that the transport does not know is left out.
    let known = names.into_iter().filter_map(|name| Some((trace.lookup(&name).ok()?.series?, name)));
    let series = known.filter(|(series, _)| !series.points().is_empty()).map(|(series, name)| (name, series)).collect();
    Ok((report, series))
}

/// Checks for Ctrl-C during a run, and reports its progress.
pub(crate) struct Looks {
    progress: Option<Py<PyAny>>,
    looked_at: Instant,
    /// The exception that stops the run, if there is one.
    stopped: PyResult<()>,
}

/// The interval of the checks. Shorter ones would slow other Python threads down; longer ones would delay Ctrl-C.
const LOOK_EACH: Duration = Duration::from_millis(50);

impl Looks {
    pub(crate) fn new(progress: Option<Py<PyAny>>) -> Self {
        Self { progress, looked_at: Instant::now(), stopped: Ok(()) }
    }

    /// Reports progress, and returns whether to go on.
    pub(crate) fn look(&mut self, done: usize, total: usize) -> bool {
        if self.looked_at.elapsed() < LOOK_EACH && done < total {
            return true;
        }
        self.looked_at = Instant::now();
        self.stopped = Python::attach(|py| {
            py.check_signals()?;
            self.progress.as_ref().map_or(Ok(()), |progress| progress.bind(py).call1((done, total)).map(|_| ()))
        });
        self.stopped.is_ok()
    }

    /// Whether the run must stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.is_err()
    }

    /// Fails with the exception that stopped the run.
    pub(crate) fn result(self) -> PyResult<()> {
        self.stopped
    }
}

/// Sets the seed and the overrides of `set`.
pub(crate) fn overridden(document: &mut Document, seed: Option<u64>, set: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    let seed = seed.map(|seed| format!("seed={seed}"));
    let all = assignments(set)?.into_iter().chain(seed);
    all.into_iter().try_for_each(|assignment| document.set(&assignment).map_err(of_scenario))
}

/// The overrides of `set`, in the form of `--set`.
pub(crate) fn assignments(set: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<String>> {
    let mut assignments = Vec::new();
    for (key, value) in set.into_iter().flatten() {
        let key: String = key.extract()?;
        // As on the command line, a string that is no TOML value is a text.
        let value = match value.cast::<PyString>() {
            Ok(text) if !text.is_empty()? => text.to_cow()?.into_owned(),
            _ => values::to_toml(&value)?.to_string(),
        };
        assignments.push(format!("{key}={value}"));
    }
    Ok(assignments)
}

/// Sets the laws that have names, and returns the callables for the other flows.
fn laws(document: &mut Document, cc: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<(String, Py<PyAny>)>> {
    let mut own = Vec::new();
    for (flow, law) in cc.into_iter().flatten() {
        let flow: String = flow.extract()?;
        if law.is_callable() {
            own.push((flow, law.unbind()));
            continue;
        }
        let law = match law.cast::<PyString>() {
            Ok(name) => {
                let table = PyDict::new(law.py());
                table.set_item("name", name)?;
                table.into_any()
            }
            Err(_) if law.is_instance_of::<PyDict>() => law,
            Err(_) => return Err(no_law(&law)),
        };
        document.set(&format!("flow.{flow}.cc={}", values::to_toml(&law)?)).map_err(of_scenario)?;
    }
    Ok(own)
}

/// The names of the series to record.
fn recorded(scenario: &Scenario, record: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
    let Some(record) = record else { return Ok(scenario.series_names()) };
    match record.extract::<bool>() {
        Ok(true) => Ok(scenario.series_names()),
        Ok(false) => Ok(Vec::new()),
        Err(_) => {
            let names: Vec<String> = record.extract()?;
            for name in &names {
                scenario.check_series(name).map_err(crate::error::of_question)?;
            }
            Ok(names)
        }
    }
}
