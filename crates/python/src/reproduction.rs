//! Runs the papers' experiments and judges their claims.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use anabranch_lab::document::Document;
use anabranch_lab::html;
use anabranch_lab::parallel;
use anabranch_lab::reproduce::{self, JudgedClaim, Measurement, Options, Outcome, PublishedValue, Watch, Which};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::{Error, of_scenario};
use crate::run::Looks;
use crate::table::{Column, Table};

/// The judged claims of some papers.
#[pyclass(frozen, module = "anabranch")]
pub(crate) struct Reproduction(Outcome);

/// Runs the experiments of some papers, or of all papers if none is named, as `anabranch reproduce` does. `seeds` replaces the experiments' own
/// numbers of seeds; `experiments` is the folder of the experiments.
#[pyfunction]
#[pyo3(name = "reproduce", signature = (papers, *, seeds = None, jobs = None, experiments = None, progress = None))]
pub(crate) fn reproduce_papers(
    py: Python<'_>,
    papers: Vec<String>,
    seeds: Option<u32>,
    jobs: Option<usize>,
    experiments: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Reproduction> {
    if seeds == Some(0) {
        return Err(PyValueError::new_err("seeds is 0, and nothing would run; use 1 or more"));
    }
    let jobs = threads(jobs)?;
    let folder = experiments.unwrap_or_else(|| PathBuf::from("experiments"));
    let which = if papers.is_empty() { Which::Papers } else { Which::Named(&papers) };
    let experiments = reproduce::load(&folder, which, Document::read).map_err(of_scenario)?;
    let mut looks = Looks::new(progress);
    let told = ProgressWatch(&mut looks);
    let outcome = py.detach(move || reproduce::reproduce_until(&experiments, Options { jobs, seeds }, told));
    looks.result()?;
    let outcome = outcome.map_err(of_scenario)?.ok_or_else(|| Error::new_err("it was stopped"))?;
    Ok(Reproduction(outcome))
}

/// The number of parallel runs.
pub(crate) fn threads(jobs: Option<usize>) -> PyResult<NonZeroUsize> {
    match jobs {
        None => Ok(parallel::jobs_default()),
        Some(jobs) => NonZeroUsize::new(jobs).ok_or_else(|| PyValueError::new_err("jobs is 0; use 1 or more")),
    }
}

/// Reports progress, and stops the work when the caller or Ctrl-C asks for it.
pub(crate) struct ProgressWatch<'a>(pub(crate) &'a mut Looks);

impl Watch for ProgressWatch<'_> {
    fn runs(&mut self, done: usize, total: usize) {
        self.0.look(done, total);
    }

    fn goes_on(&self) -> bool {
        !self.0.is_stopped()
    }
}

/// The string for a value in the documents.
pub(crate) fn word(value: impl serde::Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

/// A row for each claim of an outcome.
pub(crate) fn claims(outcome: &Outcome) -> PyResult<Table> {
    let mut rows: Vec<(&str, &str, &JudgedClaim)> = Vec::new();
    for paper in &outcome.papers {
        for experiment in &paper.experiments {
            rows.extend(experiment.claims.iter().map(|claim| (paper.key.as_str(), experiment.item.as_str(), claim)));
        }
    }
    let text = |of: &dyn Fn(&JudgedClaim) -> Option<String>| Column::Text(rows.iter().map(|row| of(row.2)).collect());
    let number = |of: &dyn Fn(&JudgedClaim) -> Option<f64>| Column::Number(rows.iter().map(|row| of(row.2)).collect());
    fn ours(claim: &JudgedClaim) -> Option<&Measurement> {
        claim.measured.ours.as_ref()
    }
    let published = |claim: &JudgedClaim| match claim.published {
        PublishedValue::Number(number) => Some(number),
        PublishedValue::Words(_) => None,
    };
    let seeds = rows.iter().map(|row| ours(row.2).map(|ours| ours.seeds as u64)).collect();
    Table::new([
        ("paper", Column::Text(rows.iter().map(|row| Some(row.0.to_owned())).collect())),
        ("experiment", Column::Text(rows.iter().map(|row| Some(row.1.to_owned())).collect())),
        ("item", text(&|claim| Some(claim.item.clone()))),
        ("title", text(&|claim| Some(claim.title.clone()))),
        ("source", text(&|claim| word(claim.source))),
        ("counts_as", text(&|claim| word(claim.counts_as))),
        ("row", text(&|claim| Some(claim.row.clone()))),
        ("column", text(&|claim| Some(claim.column.clone()))),
        ("kind", text(&|claim| word(claim.kind))),
        ("unit", text(&|claim| Some(claim.unit.clone()))),
        ("published", text(&|claim| Some(claim.published.to_string()))),
        ("published_value", number(&published)),
        ("value", number(&|claim| ours(claim).map(|ours| ours.value))),
        ("seeds", Column::Count(seeds)),
        ("sd", number(&|claim| ours(claim).map(|ours| ours.sd))),
        ("band_low", number(&|claim| claim.band.low)),
        ("band_high", number(&|claim| claim.band.high)),
        ("verdict", text(&|claim| Some(claim.verdict.to_string()))),
        ("because", text(&|claim| claim.because.clone())),
        ("engine_value", number(&|claim| claim.measured.engine.as_ref().map(|engine| engine.value))),
    ])
}

#[pymethods]
impl Reproduction {
    /// A row for each claim: the published figure, ours, and the verdict.
    #[getter]
    fn claims(&self) -> PyResult<Table> {
        claims(&self.0)
    }

    /// The hash of the hashes of all judged runs. Two reproductions with the same hash were the same to the bit.
    #[getter]
    fn hash(&self) -> &str {
        &self.0.hash
    }

    /// The number of claims that deviate without an explanation in their experiment.
    #[getter]
    fn missed(&self) -> usize {
        self.0.missed()
    }

    /// The whole document, as `anabranch reproduce --format json` prints it.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut text = Vec::new();
        self.0.write_json(&mut text).map_err(|error| Error::new_err(error.to_string()))?;
        py.import("json")?.getattr("loads")?.call1((text.as_slice(),))
    }

    /// The report as one HTML page.
    fn report(&self) -> String {
        html::page(&self.0)
    }

    fn __repr__(&self) -> String {
        let papers: Vec<&str> = self.0.papers.iter().map(|paper| paper.key.as_str()).collect();
        format!(
            "<anabranch.Reproduction of {}: {} claims, {} missed>",
            papers.join(", "),
            self.0.claims().count(),
            self.missed()
        )
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        self.claims()?._repr_html_(py)
    }
}
