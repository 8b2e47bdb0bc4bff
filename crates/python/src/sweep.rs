//! Runs a grid on all cores.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use anabranch_lab::experiment::Experiment;
use anabranch_lab::parallel;
use anabranch_lab::report::Report;
use anabranch_lab::statistics::{Interval, Sample};
use anabranch_lab::sweep::{self, Cell, Options, Shard};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Error, of_scenario};
use crate::run::{Looks, overridden};
use crate::scenario::Scenario;
use crate::table::{Column, Table};

/// Every run of a grid.
#[pyclass(frozen, module = "anabranch")]
pub(crate) struct Sweep {
    axes: Vec<Axis>,
    cells: Vec<Cell>,
    /// What was swept, as TOML.
    scenario: String,
}

/// What is varied.
struct Axis {
    /// `rate`, `cc`: the last word of its key that says something.
    name: String,
    /// `link.bottleneck.rate`; its name for an axis of the file.
    key: String,
    /// Of each label its number, if all are numbers.
    numbers: Option<HashMap<String, f64>>,
}

/// Runs every combination of values with several seeds: `axes` has a key of the scenario, as `set` takes it, and its values in a list, or in
/// a dict that names them. The file's own axes are varied as well.
#[pyfunction]
#[pyo3(name = "sweep", signature = (scenario, axes, *, seeds = 1, jobs = None, set = None, progress = None))]
pub(crate) fn sweep_grid(
    py: Python<'_>,
    scenario: &Bound<'_, PyAny>,
    axes: &Bound<'_, PyDict>,
    seeds: u32,
    jobs: Option<usize>,
    set: Option<&Bound<'_, PyDict>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Sweep> {
    if seeds == 0 {
        return Err(PyValueError::new_err("seeds is 0, and nothing would run; use 1 or more"));
    }
    let jobs = match jobs {
        None => parallel::jobs_default(),
        Some(jobs) => NonZeroUsize::new(jobs).ok_or_else(|| PyValueError::new_err("jobs is 0; use 1 or more"))?,
    };
    let mut scenario = Scenario::copy_of(scenario)?;
    scenario.drop_claims();
    let mut named = names(axes)?;
    for (axis, (_, values)) in named.iter_mut().zip(axes) {
        axis.numbers = scenario.push_axis(&axis.name, &axis.key, &values)?;
    }
    let mut document = scenario.document()?;
    overridden(&mut document, None, set)?;
    let experiment = Experiment::parse(document).map_err(of_scenario)?;
    let of_file = experiment.axes.len() - named.len();
    let of_file = experiment.axes[..of_file].iter();
    let mut axes: Vec<Axis> =
        of_file.map(|axis| Axis { name: axis.name.clone(), key: axis.name.clone(), numbers: None }).collect();
    axes.append(&mut named);
    let options = Options { jobs, seeds, shard: Shard::WHOLE };
    let mut looks = Looks::new(progress);
    let told = &mut looks;
    let cells = py.detach(move || {
        sweep::cells(&experiment, options, |done, total| match told.look(done, total) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        })
    });
    looks.result()?;
    let cells = cells.map_err(of_scenario)?.ok_or_else(|| Error::new_err("the sweep was stopped"))?;
    Ok(Sweep { axes, cells, scenario: scenario.text() })
}

/// A short name for each key, or the whole one where two would have the same.
fn names(axes: &Bound<'_, PyDict>) -> PyResult<Vec<Axis>> {
    let keys: Vec<String> = axes.keys().extract()?;
    let short = |key: &str| {
        let mut words = key.rsplit('.');
        let last = words.next().unwrap_or_default();
        let before = words.next().filter(|_| ["name", "kind"].contains(&last));
        before.unwrap_or(last).to_owned()
    };
    let count = |name: &str| keys.iter().filter(|key| short(key) == name).count();
    let axis = |key: &String| {
        let name = Some(short(key)).filter(|name| count(name) == 1).unwrap_or_else(|| key.clone());
        Axis { name, key: key.clone(), numbers: None }
    };
    Ok(keys.iter().map(axis).collect())
}

impl Sweep {
    /// The column of an axis, of some of its labels.
    fn labels<'a>(&self, axis: usize, labels: impl Iterator<Item = &'a str>) -> Column {
        let plain = |label: &str| label.strip_prefix(&format!("{}=", self.axes[axis].key)).unwrap_or(label).to_owned();
        match &self.axes[axis].numbers {
            Some(numbers) => Column::Number(labels.map(|label| numbers.get(label).copied()).collect()),
            None => Column::Text(labels.map(|label| Some(plain(label))).collect()),
        }
    }

    fn axis(&self, name: &str) -> PyResult<usize> {
        let is_meant = |axis: &Axis| axis.name == name || axis.key == name;
        self.axes.iter().position(is_meant).ok_or_else(|| {
            let known: Vec<&str> = self.axes.iter().map(|axis| axis.name.as_str()).collect();
            Error::new_err(format!("no axis is called `{name}`; there are {}", known.join(", ")))
        })
    }

    /// Everything that some run has, in the order of the first that has it.
    fn measured(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let mut known = std::collections::HashSet::new();
        for cell in &self.cells {
            let measures = cell.report.measures.iter().map(|measure| measure.name.clone());
            let gauges = cell.report.gauges().into_iter().map(|(name, _)| name);
            names.extend(measures.chain(gauges).filter(|name| known.insert(name.clone())));
        }
        names
    }

    /// What a name means: a measure, a gauge, or a gauge of flows without its unit, which is then that of all together.
    fn meant(&self, name: &str) -> PyResult<String> {
        let report = &self.cells[0].report;
        let is_known = |name: &str| report.measures.iter().any(|it| it.name == name) || report.gauge(name).is_ok();
        let of_flows = UNITS.iter().map(|unit| format!("flow.*.{name}{unit}"));
        let candidates = std::iter::once(name.to_owned()).chain(of_flows);
        candidates.into_iter().find(|name| is_known(name)).ok_or_else(|| match report.gauge(name) {
            Err(message) => Error::new_err(message),
            Ok(_) => Error::new_err(format!("`{name}` was not measured")),
        })
    }
}

/// How the names of gauges end.
const UNITS: [&str; 4] = ["", "_bps", "_packets", "_s"];

fn value(report: &Report, name: &str) -> Option<f64> {
    match report.measures.iter().find(|measure| measure.name == name) {
        Some(measure) => measure.value,
        None => report.gauge(name).ok(),
    }
}

#[pymethods]
impl Sweep {
    /// Names of what is varied: the file's axes, then those of the call.
    #[getter]
    fn axes(&self) -> Vec<String> {
        self.axes.iter().map(|axis| axis.name.clone()).collect()
    }

    /// A row for each run: the axes, seed and hash, the file's measures, and every gauge.
    #[getter]
    fn table(&self) -> PyResult<Table> {
        let mut columns: Vec<(String, Column)> = Vec::new();
        for (index, axis) in self.axes.iter().enumerate() {
            let labels = self.cells.iter().map(|cell| cell.labels[index].as_str());
            columns.push((axis.name.clone(), self.labels(index, labels)));
        }
        columns.push(("seed".into(), Column::Count(self.cells.iter().map(|cell| Some(cell.report.seed)).collect())));
        columns.push((
            "hash".into(),
            Column::Text(self.cells.iter().map(|cell| Some(cell.report.hash.clone())).collect()),
        ));
        for name in self.measured() {
            let values = self.cells.iter().map(|cell| value(&cell.report, &name)).collect();
            columns.push((name, Column::Number(values)));
        }
        let metadata = [("scenario", self.scenario.as_str()), ("version", env!("CARGO_PKG_VERSION"))];
        let metadata = metadata.map(|(key, text)| (key.to_owned(), text.to_owned())).into();
        Table::of_columns(columns, metadata)
    }

    /// Mean and 95 % confidence interval of a measure over the runs that agree in the axes of `by`; in all of them, if none are named.
    /// `measure` is one of the file's, a gauge such as `flow.f0.goodput_bps`, or `goodput`: that of all flows together.
    #[pyo3(signature = (measure, by = None))]
    fn ci(&self, measure: &str, by: Option<Vec<String>>) -> PyResult<Table> {
        let name = self.meant(measure)?;
        let by: Vec<usize> = match by {
            Some(by) => by.iter().map(|axis| self.axis(axis)).collect::<PyResult<_>>()?,
            None => (0..self.axes.len()).collect(),
        };
        let mut groups: Vec<(Vec<&str>, Vec<f64>)> = Vec::new();
        for cell in &self.cells {
            let labels: Vec<&str> = by.iter().map(|&axis| cell.labels[axis].as_str()).collect();
            let place = groups.iter().position(|(known, _)| *known == labels).unwrap_or_else(|| {
                groups.push((labels, Vec::new()));
                groups.len() - 1
            });
            groups[place].1.extend(value(&cell.report, &name).filter(|value| value.is_finite()));
        }
        let mut columns: Vec<(String, Column)> = Vec::new();
        for (index, &axis) in by.iter().enumerate() {
            columns.push((
                self.axes[axis].name.clone(),
                self.labels(axis, groups.iter().map(|(labels, _)| labels[index])),
            ));
        }
        let samples: Vec<Option<Sample>> =
            groups.iter().map(|(_, values)| (!values.is_empty()).then(|| Sample::new(values.clone()))).collect();
        // One value tells nothing about others.
        let spread = |of: fn(&Sample) -> f64| {
            Column::Number(samples.iter().map(|it| it.as_ref().filter(|it| it.count() > 1).map(of)).collect())
        };
        let low = |sample: &Sample| {
            let Interval { low, .. } = sample.confidence();
            low
        };
        let high = |sample: &Sample| {
            let Interval { high, .. } = sample.confidence();
            high
        };
        columns
            .push(("runs".into(), Column::Count(groups.iter().map(|(_, values)| Some(values.len() as u64)).collect())));
        columns.push(("mean".into(), Column::Number(samples.iter().map(|it| it.as_ref().map(Sample::mean)).collect())));
        columns.extend([("sd".into(), spread(Sample::sd)), ("low".into(), spread(low)), ("high".into(), spread(high))]);
        Table::of_columns(columns, [("measure".to_owned(), name)].into())
    }

    fn __len__(&self) -> usize {
        self.cells.len()
    }

    fn __repr__(&self) -> String {
        format!("<anabranch.Sweep of {} runs over {}>", self.cells.len(), self.axes().join(", "))
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        self.table()?._repr_html_(py)
    }
}
