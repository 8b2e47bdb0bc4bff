//! The runs of a grid, as a table and as confidence intervals.

use std::collections::HashMap;

use anabranch_lab::statistics::Sample;
use anabranch_lab::sweep::Row;
use pyo3::prelude::*;

use crate::error::Error;
use crate::table::{Column, Table};

/// Every run of a grid.
#[pyclass(frozen, module = "anabranch")]
pub(crate) struct Sweep {
    pub(crate) axes: Vec<Axis>,
    pub(crate) rows: Vec<Row>,
    /// The measures that may be negative.
    pub(crate) signed: Vec<String>,
    /// The metadata of the table, as names and texts: the scenario as TOML and how it was swept.
    pub(crate) facts: [(&'static str, String); 5],
}

/// What is varied.
#[derive(Clone)]
pub(crate) struct Axis {
    /// The short name, such as `rate` or `cc`: the last word of the key that is not generic.
    pub(crate) name: String,
    /// `link.bottleneck.rate`; its name for an axis of the file.
    pub(crate) key: String,
    /// The number of each label, if all labels are numbers.
    pub(crate) numbers: Option<HashMap<String, f64>>,
}

impl Sweep {
    /// The column of an axis with the given labels.
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

    /// All measures and gauges, in the order of the first run that has them.
    fn measured(&self) -> Vec<&str> {
        let mut names = Vec::new();
        let mut known = std::collections::HashSet::new();
        for row in &self.rows {
            let all = row.values().iter().map(|(name, _)| name.as_str());
            names.extend(all.filter(|name| known.insert(*name)));
        }
        names
    }

    /// Resolves a name: a measure, a gauge, or a gauge of flows without its unit, which means the sum of all flows.
    fn meant(&self, name: &str) -> PyResult<String> {
        let measured = self.measured();
        let is_known = |name: &str| measured.iter().any(|known| is_of(known, name));
        let of_flows = UNITS.iter().map(|unit| format!("flow.*.{name}{unit}"));
        let candidates = std::iter::once(name.to_owned()).chain(of_flows);
        candidates.into_iter().find(|name| is_known(name)).ok_or_else(|| {
            let message = format!("no measure or gauge of a run is called `{name}`; there are {}", measured.join(", "));
            Error::new_err(message)
        })
    }
}

/// The unit suffixes of gauges.
const UNITS: [&str; 4] = ["", "_bps", "_packets", "_s"];

/// Whether `name` means this gauge: `flow.*.goodput_bps` means each flow's.
fn is_of(gauge: &str, name: &str) -> bool {
    gauge == name
        || name.split_once(".*.").is_some_and(|(kind, which)| {
            let rest = gauge.strip_prefix(kind).and_then(|rest| rest.strip_prefix('.'));
            rest.and_then(|rest| rest.strip_suffix(which)).is_some_and(|rest| rest.ends_with('.'))
        })
}

/// The value of a name in a run; the sum, if the name means several gauges.
fn value(row: &Row, name: &str) -> Option<f64> {
    let values = row.values().iter().filter(|(gauge, _)| is_of(gauge, name)).filter_map(|(_, value)| *value);
    values.reduce(|sum, value| sum + value)
}

#[pymethods]
impl Sweep {
    /// The names of the axes: the file's, then those of the call.
    #[getter]
    fn axes(&self) -> Vec<String> {
        self.axes.iter().map(|axis| axis.name.clone()).collect()
    }

    /// A row for each run: the axes, seed and hash, the file's measures, and every gauge.
    #[getter]
    fn table(&self) -> PyResult<Table> {
        let mut columns: Vec<(String, Column)> = Vec::new();
        for (index, axis) in self.axes.iter().enumerate() {
            let labels = self.rows.iter().map(|row| row.labels()[index].as_str());
            columns.push((axis.name.clone(), self.labels(index, labels)));
        }
        columns.push(("seed".into(), Column::Count(self.rows.iter().map(|row| Some(row.seed())).collect())));
        columns.push(("hash".into(), Column::Text(self.rows.iter().map(|row| Some(row.hash().to_owned())).collect())));
        for name in self.measured() {
            let values = self.rows.iter().map(|row| value(row, name)).collect();
            columns.push((name.to_owned(), Column::Number(values)));
        }
        let metadata = self.facts.clone().map(|(key, text)| (key.to_owned(), text));
        Table::of_columns(columns, metadata.into())
    }

    /// The mean and the 95 % confidence interval of a measure, for each combination of the axes in `by`, or of all axes without `by`. The
    /// interval does not go below zero where no value can. `measure` is a measure of the file, a gauge such as `flow.f0.goodput_bps`, or `goodput`:
    /// the sum of all flows.
    #[pyo3(signature = (measure, by = None))]
    fn ci(&self, measure: &str, by: Option<Vec<String>>) -> PyResult<Table> {
        let name = self.meant(measure)?;
        let by: Vec<usize> = match by {
            Some(by) => by.iter().map(|axis| self.axis(axis)).collect::<PyResult<_>>()?,
            None => (0..self.axes.len()).collect(),
        };
        let mut groups: Vec<(Vec<&str>, Vec<f64>)> = Vec::new();
        for row in &self.rows {
            let labels: Vec<&str> = by.iter().map(|&axis| row.labels()[axis].as_str()).collect();
            let place = groups.iter().position(|(known, _)| *known == labels).unwrap_or_else(|| {
                groups.push((labels, Vec::new()));
                groups.len() - 1
            });
            groups[place].1.extend(value(row, &name).filter(|value| value.is_finite()));
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
        // One value has no spread.
        let spread = |of: &dyn Fn(&Sample) -> f64| {
            Column::Number(samples.iter().map(|it| it.as_ref().filter(|it| it.count() > 1).map(of)).collect())
        };
        let may_be_negative = self.signed.contains(&name);
        let interval = |sample: &Sample| match may_be_negative {
            true => sample.confidence(),
            false => sample.confidence().from_zero(),
        };
        columns
            .push(("runs".into(), Column::Count(groups.iter().map(|(_, values)| Some(values.len() as u64)).collect())));
        columns.push(("mean".into(), Column::Number(samples.iter().map(|it| it.as_ref().map(Sample::mean)).collect())));
        columns.push(("sd".into(), spread(&Sample::sd)));
        columns.push(("low".into(), spread(&|sample| interval(sample).low)));
        columns.push(("high".into(), spread(&|sample| interval(sample).high)));
        Table::of_columns(columns, [("measure".to_owned(), name)].into())
    }

    fn __len__(&self) -> usize {
        self.rows.len()
    }

    fn __repr__(&self) -> String {
        format!("<anabranch.Sweep of {} runs over {}>", self.rows.len(), self.axes().join(", "))
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        self.table()?._repr_html_(py)
    }
}
