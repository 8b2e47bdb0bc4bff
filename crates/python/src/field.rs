//! Runs a law on random networks.

use anabranch_lab::evaluation::{Contender, Request as Suite};
use anabranch_lab::field::{self, DRAWS, DRAWS_MAX, Family, FamilyOutcome, LawOutcome, Request};
use anabranch_lab::html;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::{Error, of_scenario};
use crate::evaluation::{contender, rivals};
use crate::own::Laws;
use crate::reproduction::{ProgressWatch, threads};
use crate::run::Looks;
use crate::table::{Column, Table};

/// The figures of laws on random networks.
#[pyclass(frozen, module = "anabranch")]
pub(crate) struct Field(field::Field);

/// Runs a law and its rivals on random networks, as `anabranch eval --field` does. `family` names families; all if absent.
#[pyfunction]
#[pyo3(name = "field", signature = (law, *, against = None, draws = None, seed = None, family = None, jobs = None, progress = None))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn field_of_law(
    py: Python<'_>,
    law: &Bound<'_, PyAny>,
    against: Option<Vec<Bound<'_, PyAny>>>,
    draws: Option<u32>,
    seed: Option<u64>,
    family: Option<Vec<String>>,
    jobs: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Field> {
    let draws = draws.unwrap_or(DRAWS);
    if !(1..=DRAWS_MAX).contains(&draws) {
        return Err(PyValueError::new_err(format!("draws is {draws}; use 1 to {DRAWS_MAX}")));
    }
    let families: Vec<Family> = match family {
        None => Family::ALL.to_vec(),
        Some(names) => {
            let families = names.iter().map(|name| Family::find(name));
            families.collect::<Result<_, _>>().map_err(PyValueError::new_err)?
        }
    };
    let jobs = threads(jobs)?;
    let mut laws = Laws::default();
    let law = contender(&mut laws, law, Contender::parse, |law| law)?;
    let against = against.map(|against| rivals(&mut laws, &against)).transpose()?;
    let Suite { law, against, .. } = Suite::of(law, against, jobs);
    let request = Request { law, against, families, draws, seed: seed.unwrap_or(1), jobs };
    let mut looks = Looks::new(progress);
    let told = ProgressWatch(&mut looks);
    let field = py.detach(move || field::run_until(&request, told));
    looks.result()?;
    laws.raised.raise()?;
    let field = field.map_err(of_scenario)?.ok_or_else(|| Error::new_err("it was stopped"))?;
    Ok(Field(field))
}

impl Field {
    /// Each family with each law.
    fn pairs(&self) -> impl Iterator<Item = (&FamilyOutcome, &LawOutcome)> {
        self.0.families.iter().flat_map(|family| family.laws.iter().map(move |law| (family, law)))
    }
}

fn text<'a>(values: impl Iterator<Item = &'a str>) -> Column {
    Column::Text(values.map(|value| Some(value.to_owned())).collect())
}

fn count(values: impl Iterator<Item = usize>) -> Column {
    Column::Count(values.map(|value| Some(value as u64)).collect())
}

fn number(values: impl Iterator<Item = f64>) -> Column {
    Column::Number(values.map(Some).collect())
}

#[pymethods]
impl Field {
    /// The name of the law.
    #[getter]
    fn law(&self) -> &str {
        &self.0.laws[0]
    }

    /// The names of its rivals, which ran on the same networks.
    #[getter]
    fn against(&self) -> Vec<String> {
        self.0.laws[1..].to_vec()
    }

    /// A row for each statistic of a figure, of each family and law.
    #[getter]
    fn statistics(&self) -> PyResult<Table> {
        let rows: Vec<_> = self
            .pairs()
            .flat_map(|(family, law)| {
                let values = family.columns.iter().zip(&law.values);
                values.map(move |(column, &value)| {
                    (family, law, family.figures[column.figure], column.statistic.name(), value)
                })
            })
            .collect();
        Table::new([
            ("family", text(rows.iter().map(|row| row.0.name.as_str()))),
            ("law", text(rows.iter().map(|row| row.1.law.as_str()))),
            ("figure", text(rows.iter().map(|row| row.2.name))),
            ("unit", text(rows.iter().map(|row| row.2.unit))),
            ("statistic", text(rows.iter().map(|row| row.3.as_str()))),
            ("value", number(rows.iter().map(|row| row.4))),
        ])
    }

    /// A row for each figure of each draw and law.
    #[getter]
    fn figures(&self) -> PyResult<Table> {
        let rows: Vec<_> = self
            .pairs()
            .flat_map(|(family, law)| {
                let all = family.figures.iter().zip(&law.figures);
                all.flat_map(move |(kind, values)| {
                    values.iter().enumerate().map(move |(draw, &value)| (family, law, kind, draw, value))
                })
            })
            .collect();
        Table::new([
            ("family", text(rows.iter().map(|row| row.0.name.as_str()))),
            ("law", text(rows.iter().map(|row| row.1.law.as_str()))),
            ("draw", count(rows.iter().map(|row| row.3))),
            ("figure", text(rows.iter().map(|row| row.2.name))),
            ("value", number(rows.iter().map(|row| row.4))),
        ])
    }

    /// A row for each drawn quantity of each network.
    #[getter]
    fn draws(&self) -> PyResult<Table> {
        let rows: Vec<_> = self
            .0
            .families
            .iter()
            .flat_map(|family| {
                let draws = family.draws.iter().enumerate();
                draws.flat_map(move |(draw, facts)| facts.iter().map(move |fact| (family, draw, fact)))
            })
            .collect();
        Table::new([
            ("family", text(rows.iter().map(|row| row.0.name.as_str()))),
            ("draw", count(rows.iter().map(|row| row.1))),
            ("name", text(rows.iter().map(|row| row.2.name))),
            ("value", number(rows.iter().map(|row| row.2.value))),
        ])
    }

    /// A row for each of the worst draws of each family and law, worst first; `scenario` names it in `scenarios`.
    #[getter]
    fn worst(&self) -> PyResult<Table> {
        let rows: Vec<_> =
            self.pairs().flat_map(|(family, law)| law.worst.iter().map(move |worst| (family, law, worst))).collect();
        Table::new([
            ("family", text(rows.iter().map(|row| row.0.name.as_str()))),
            ("law", text(rows.iter().map(|row| row.1.law.as_str()))),
            ("draw", count(rows.iter().map(|row| row.2.draw))),
            ("figure", text(rows.iter().map(|row| row.0.figures[0].name))),
            ("value", number(rows.iter().map(|row| row.2.value))),
            ("scenario", text(rows.iter().map(|row| row.2.file.as_str()))),
        ])
    }

    /// The texts of the worst scenarios, by name.
    #[getter]
    fn scenarios(&self) -> std::collections::BTreeMap<String, String> {
        self.0.scenarios().map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
    }

    /// The hash of the hashes of all runs. Two fields with the same hash were the same to the bit.
    #[getter]
    fn hash(&self) -> &str {
        &self.0.hash
    }

    /// The whole document, as `anabranch eval --field --json` prints it.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = serde_json::to_vec(&self.0).map_err(|error| Error::new_err(error.to_string()))?;
        py.import("json")?.getattr("loads")?.call1((text.as_slice(),))
    }

    /// The report as one HTML page.
    fn report(&self) -> String {
        html::field_page(&self.0)
    }

    fn __repr__(&self) -> String {
        let field::Field { laws, draws, seed, families, .. } = &self.0;
        let families: Vec<&str> = families.iter().map(|family| family.name.as_str()).collect();
        format!("<anabranch.Field of {}: {draws} draws each of {}, seed {seed}>", laws.join(", "), families.join(", "))
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        self.statistics()?._repr_html_(py)
    }
}
