//! Evaluates a law of the registry against the criteria of RFC 9743.

use anabranch_lab::evaluation::{self, Contender, JudgedCriterion, LawError, Request, Ruling};
use anabranch_lab::html;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::error::{Error, of_scenario};
use crate::own::Laws;
use crate::reproduction::{ProgressWatch, claims, threads, word};
use crate::run::Looks;
use crate::table::{Column, Table};

/// The result of an evaluation.
#[pyclass(frozen, module = "anabranch")]
pub(crate) struct Evaluation(evaluation::Evaluation);

/// Evaluates a law, a name or a class that extends `Controller`, alone and beside its rivals, as `anabranch eval` does. Without `against` the rivals are the common ones. `quick` runs a part of
/// the suite. `seeds` replaces the suite's own numbers of seeds.
#[pyfunction]
#[pyo3(name = "evaluate", signature = (law, *, against = None, quick = false, seeds = None, jobs = None, progress = None))]
pub(crate) fn evaluate_law(
    py: Python<'_>,
    law: &Bound<'_, PyAny>,
    against: Option<Vec<Bound<'_, PyAny>>>,
    quick: bool,
    seeds: Option<u32>,
    jobs: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Evaluation> {
    if seeds == Some(0) {
        return Err(PyValueError::new_err("seeds is 0, and nothing would run; use 1 or more"));
    }
    let jobs = threads(jobs)?;
    let mut laws = Laws::default();
    let law = contender(&mut laws, law, Contender::parse, |law| law)?;
    let rivals = against.map(|against| rivals(&mut laws, &against)).transpose()?;
    let request = Request { quick, seeds, ..Request::of(law, rivals, jobs) };
    let mut looks = Looks::new(progress);
    let told = ProgressWatch(&mut looks);
    let evaluation = py.detach(move || evaluation::evaluate_until(&request, told));
    looks.result()?;
    laws.raised.raise()?;
    let evaluation = evaluation.map_err(of_scenario)?.ok_or_else(|| Error::new_err("it was stopped"))?;
    Ok(Evaluation(evaluation))
}

/// The rivals, each once. A text may name several.
pub(crate) fn rivals(laws: &mut Laws, against: &[Bound<'_, PyAny>]) -> PyResult<Vec<Contender>> {
    let mut rivals = Vec::new();
    for rival in against {
        for rival in contender(laws, rival, |text| Contender::parse_all([text]), |law| vec![law])? {
            if !rivals.contains(&rival) {
                rivals.push(rival);
            }
        }
    }
    Ok(rivals)
}

/// What a text names, or a class.
pub(crate) fn contender<T>(
    laws: &mut Laws,
    law: &Bound<'_, PyAny>,
    parse: impl FnOnce(&str) -> Result<T, LawError>,
    made: impl FnOnce(Contender) -> T,
) -> PyResult<T> {
    if let Ok(text) = law.cast::<PyString>() {
        return parse(&text.to_cow()?).map_err(|error| Error::new_err(error.to_string()));
    }
    if law.is_callable() {
        return Ok(made(Contender::made(laws.made(law)?)));
    }
    Err(PyTypeError::new_err(format!(
        "{} is no law; give a text such as \"cubic\" or \"fast,alpha=5\", or a class that extends anabranch.Controller",
        law.repr()?
    )))
}

#[pymethods]
impl Evaluation {
    /// The name of the law.
    #[getter]
    fn law(&self) -> &str {
        &self.0.law
    }

    /// The names of its rivals.
    #[getter]
    fn against(&self) -> Vec<String> {
        self.0.against.clone()
    }

    /// A row for each criterion: its section, its title, the ruling, and the figure that decides.
    #[getter]
    fn criteria(&self) -> PyResult<Table> {
        let criteria = &self.0.criteria;
        let text = |of: &dyn Fn(&JudgedCriterion) -> Option<String>| Column::Text(criteria.iter().map(of).collect());
        let count = |of: &dyn Fn(&JudgedCriterion) -> usize| {
            Column::Count(criteria.iter().map(|criterion| Some(of(criterion) as u64)).collect())
        };
        Table::new([
            ("section", text(&|criterion| Some(criterion.section.clone()))),
            ("title", text(&|criterion| Some(criterion.title.clone()))),
            ("asks", text(&|criterion| Some(criterion.asks.clone()))),
            ("ruling", text(&|criterion| word(criterion.ruling))),
            ("sentence", text(&|criterion| Some(criterion.sentence.clone()))),
            ("met", count(&|criterion| criterion.met)),
            ("claims", count(&|criterion| criterion.claims)),
        ])
    }

    /// A row for each claim behind the criteria; its `item` is the section.
    #[getter]
    fn claims(&self) -> PyResult<Table> {
        claims(&self.0.outcome)
    }

    /// The texts of the scenarios that were run, by name.
    #[getter]
    fn scenarios(&self) -> std::collections::BTreeMap<String, String> {
        self.0.scenarios().map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
    }

    /// The hash of the hashes of all judged runs. Two evaluations with the same hash were the same to the bit.
    #[getter]
    fn hash(&self) -> &str {
        &self.0.outcome.hash
    }

    /// The number of missed criteria.
    #[getter]
    fn missed(&self) -> usize {
        self.0.count(Ruling::Missed)
    }

    /// The whole document, as `anabranch eval --json` prints it.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = serde_json::to_vec(&self.0).map_err(|error| Error::new_err(error.to_string()))?;
        py.import("json")?.getattr("loads")?.call1((text.as_slice(),))
    }

    /// The report as one HTML page.
    fn report(&self) -> String {
        html::evaluation_page(&self.0)
    }

    fn __repr__(&self) -> String {
        let [met, missed] = [Ruling::Met, Ruling::Missed].map(|ruling| self.0.count(ruling));
        format!(
            "<anabranch.Evaluation of {} beside {}: {met} criteria met, {missed} missed>",
            self.0.law,
            self.0.against.join(", ")
        )
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        self.criteria()?._repr_html_(py)
    }
}
