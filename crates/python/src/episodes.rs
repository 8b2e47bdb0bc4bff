//! Many concurrent runs that wait for Python to choose a window: the basis of `anabranch.gym`.

use std::sync::{Mutex, PoisonError};

use anabranch_lab::document::Document;
use anabranch_lab::scenario::Scenario;
use anabranch_lab::stepped::{Observation, Stepped};
use anabranch_units::Span;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Error, ScenarioError, of_scenario};
use crate::run::overridden;
use crate::scenario;

/// The observation of a flow: `now`, `elapsed`, `window`, `flight`, `acked`, `lost`, `rtt_mean`, `rtt_min`.
type Seen = [f64; 8];

/// Episodes of one scenario, each in its own thread.
#[pyclass(module = "anabranch")]
pub(crate) struct Episodes {
    document: Document,
    flow: String,
    interval: Span,
    runs: Mutex<Vec<Option<Stepped>>>,
}

#[pymethods]
impl Episodes {
    /// `count` places for episodes in which the caller sets the window of `flow` every `interval` seconds.
    #[new]
    #[pyo3(signature = (scenario, flow, *, interval, count = 1, set = None))]
    fn new(
        scenario: &Bound<'_, PyAny>,
        flow: String,
        interval: f64,
        count: usize,
        set: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        if !(interval.is_finite() && interval > 0.0) || count == 0 {
            return Err(Error::new_err("an interval is above 0 seconds, and a count at least 1"));
        }
        let mut document = scenario::document_of(scenario)?;
        overridden(&mut document, None, set)?;
        Scenario::parse(&document).map_err(of_scenario)?;
        let runs = Mutex::new((0..count).map(|_| None).collect());
        Ok(Self { document, flow, interval: Span::from_secs_f64(interval), runs })
    }

    /// Starts the episode of a place with a seed; an earlier episode of that place ends. Returns the first observation of the flow, or `None` if the
    /// episode ends before it.
    fn start(&self, py: Python<'_>, place: usize, seed: u64) -> PyResult<Option<Seen>> {
        let Self { document, flow, interval, runs } = self;
        let mut document = document.clone();
        overridden(&mut document, Some(seed), None)?;
        let scenario = Scenario::parse(&document).map_err(of_scenario)?;
        py.detach(|| {
            let mut runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
            let run = runs.get_mut(place).ok_or_else(|| format!("there is no place {place}"))?;
            *run = None;
            let started = Stepped::start(scenario, flow, *interval);
            started.map(|started| run.insert(started).observe().map(seen))
        })
        .map_err(ScenarioError::new_err)
    }

    /// Sets the windows of some places. Returns the next observation of each place, and whether its episode goes on. The episodes run concurrently.
    fn step(&self, py: Python<'_>, windows: Vec<Option<f64>>) -> PyResult<Vec<Option<Seen>>> {
        let runs = &self.runs;
        py.detach(|| {
            let runs = runs.lock().unwrap_or_else(PoisonError::into_inner);
            for (run, window) in runs.iter().zip(&windows) {
                if let (Some(run), Some(window)) = (run, window) {
                    run.act(*window)?;
                }
            }
            let next = |(run, window): (&Option<Stepped>, &Option<f64>)| {
                let run = run.as_ref().filter(|_| window.is_some());
                run.and_then(|run| run.observe().map(seen))
            };
            Ok(runs.iter().zip(&windows).map(next).collect())
        })
        .map_err(|message: String| Error::new_err(message))
    }
}

fn seen(observation: Observation) -> Seen {
    let Observation { now, elapsed, window, flight, acked, lost, rtt_mean, rtt_min } = observation;
    [now, elapsed, window, flight, acked, lost, rtt_mean, rtt_min]
}
