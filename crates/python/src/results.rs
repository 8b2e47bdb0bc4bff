//! The results of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_lab::expression::{Expression, ExpressionError, Found, Series};
use anabranch_lab::report::{
    FLOW_GAUGES, FlowReport, Gauge, LINK_GAUGES, LinkReport, Number, PATH_GAUGES, PathReport, Report,
};
use anabranch_lab::scenario::Scenario;
use arrow_array::{ArrayRef, Float64Array};
use pyo3::prelude::*;

use crate::error::{Error, of_question};
use crate::table::{Column, Table, escaped};

/// The measures and the recorded series of a run.
#[pyclass(frozen, module = "anabranch")]
pub(crate) struct Run {
    pub(crate) report: Report,
    /// For messages; `None` if the run was restored.
    pub(crate) scenario: Option<Scenario>,
    /// The recorded series by name.
    pub(crate) series: BTreeMap<String, Series>,
    /// The question in the first comment of the scenario.
    pub(crate) question: String,
}

/// A column for each gauge.
fn columns<T>(gauges: &[Gauge<T>], rows: &[&T]) -> Vec<(String, Column)> {
    let column = |gauge: &Gauge<T>| {
        let numbers = rows.iter().map(|row| gauge.of(row));
        let column = match gauge.none {
            Number::Count(_) => Column::Count(
                numbers.map(|number| if let Number::Count(count) = number { count } else { None }).collect(),
            ),
            Number::Signed(_) => Column::Signed(
                numbers.map(|number| if let Number::Signed(count) = number { count } else { None }).collect(),
            ),
            Number::Real(_) => Column::Number(numbers.map(Number::real).collect()),
        };
        (gauge.name.to_owned(), column)
    };
    gauges.iter().map(column).collect()
}

/// A column of texts.
fn texts<T>(name: &str, rows: &[&T], text: impl Fn(&T) -> Option<String>) -> (String, Column) {
    (name.to_owned(), Column::Text(rows.iter().map(|row| text(row)).collect()))
}

pub(crate) fn flows(flows: &[FlowReport]) -> PyResult<Table> {
    let rows: Vec<&FlowReport> = flows.iter().collect();
    let first = [
        texts("id", &rows, |flow| Some(flow.id.clone())),
        texts("transport", &rows, |flow| Some(flow.transport.clone())),
        texts("cc", &rows, |flow| flow.cc.clone()),
    ];
    Table::new(first.into_iter().chain(columns(FLOW_GAUGES, &rows)))
}

pub(crate) fn links(links: &[LinkReport]) -> PyResult<Table> {
    let rows: Vec<&LinkReport> = links.iter().collect();
    let first = [texts("id", &rows, |link| Some(link.id.clone()))];
    Table::new(first.into_iter().chain(columns(LINK_GAUGES, &rows)))
}

fn paths(flows: &[FlowReport]) -> PyResult<Table> {
    let pairs = || flows.iter().flat_map(|flow| flow.paths.iter().map(move |path| (flow, path)));
    let rows: Vec<&PathReport> = pairs().map(|(_, path)| path).collect();
    let flow = ("flow".to_owned(), Column::Text(pairs().map(|(flow, _)| Some(flow.id.clone())).collect()));
    let mut columns = columns(PATH_GAUGES, &rows);
    columns.insert(0, flow);
    columns.insert(2, texts("state", &rows, |path| path.state.clone()));
    Table::new(columns)
}

#[pymethods]
impl Run {
    /// The seed of the random numbers.
    #[getter]
    fn seed(&self) -> u64 {
        self.report.seed
    }

    /// The hash of all events, 16 hexadecimal digits. Two runs with the same hash were the same to the bit.
    #[getter]
    fn hash(&self) -> &str {
        &self.report.hash
    }

    /// The wall-clock time of the run.
    #[getter]
    fn wall_seconds(&self) -> f64 {
        self.report.wall_seconds
    }

    /// The simulated time.
    #[getter]
    fn simulated_seconds(&self) -> f64 {
        self.report.simulated_seconds
    }

    /// The number of handled events.
    #[getter]
    fn events(&self) -> u64 {
        self.report.events
    }

    /// Jain's index of the flows' goodputs.
    #[getter]
    fn jain_index(&self) -> Option<f64> {
        self.report.jain_index
    }

    /// The question in the first comment of the scenario.
    #[getter]
    fn question(&self) -> &str {
        &self.question
    }

    /// Notes on the numbers, for their reader.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.report.notes.clone()
    }

    /// A row for each flow.
    #[getter]
    fn flows(&self) -> PyResult<Table> {
        flows(&self.report.flows)
    }

    /// A row for each direction of a link.
    #[getter]
    fn links(&self) -> PyResult<Table> {
        links(&self.report.links)
    }

    /// A row for each path of flows that have several.
    #[getter]
    fn paths(&self) -> PyResult<Table> {
        paths(&self.report.flows)
    }

    /// The measures of the scenario's `[measure]`; `None` where a measure has no value.
    #[getter]
    fn measures(&self) -> BTreeMap<String, Option<f64>> {
        self.report.measures.iter().map(|measure| (measure.name.clone(), measure.value)).collect()
    }

    /// The names of the recorded series.
    #[getter]
    fn series_names(&self) -> Vec<String> {
        self.series.keys().cloned().collect()
    }

    /// A series as a table of `time_s` and the variable: a row at each change, or at each event with its size.
    fn series(&self, name: &str) -> PyResult<Table> {
        let series = self.recorded(name).map_err(of_question)?;
        let column = |of: fn(&(f64, f64)) -> f64| -> ArrayRef {
            Arc::new(Float64Array::from_iter_values(series.points().iter().map(of)))
        };
        let variable = name.rsplit_once('.').map_or(name, |(_, variable)| variable);
        let columns =
            vec![("time_s".to_owned(), column(|point| point.0)), (variable.to_owned(), column(|point| point.1))];
        Table::of_arrays(columns, [("series".to_owned(), name.to_owned())].into())
    }

    /// The value of an expression: `flow.f0.goodput_bps`, a measure, or a function of a series such as `mean(link.bottleneck.queue, 5, 10)`.
    fn __getitem__(&self, expression: &str) -> PyResult<f64> {
        let expression = Expression::parse(expression).map_err(of_question)?;
        let value = &mut |name: &str, _: &[String]| match self.report.measures.iter().find(|it| it.name == name) {
            Some(measure) => {
                let none = || measure.because.clone().unwrap_or_else(|| format!("`{name}` is not a number"));
                measure.value.ok_or_else(|| ExpressionError::new(none()))
            }
            None => self.report.gauge(name).map_err(ExpressionError::new),
        };
        let end = self.report.simulated_seconds;
        let series = &mut |name: &str| self.recorded(name).map(|it| Found { series: Some(it.clone()), end });
        expression.evaluate_run(value, series).map_err(of_question)
    }

    /// Everything that was measured, as `anabranch sim run --json` prints it.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let text = serde_json::to_string(&self.report).map_err(|error| Error::new_err(error.to_string()))?;
        py.import("json")?.getattr("loads")?.call1((text,))
    }

    /// For pickle: everything but what suggests names of series.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Restored)> {
        let report = serde_json::to_string(&self.report).map_err(|error| Error::new_err(error.to_string()))?;
        let series = self.series.iter();
        let series = series.map(|(name, series)| (name.clone(), (series.is_of_events(), series.points().to_vec())));
        let restore = py.import("anabranch._native")?.getattr("_restore_run")?;
        Ok((restore, (report, series.collect(), self.question.clone())))
    }

    fn __repr__(&self) -> String {
        let Report { seed, hash, simulated_seconds, flows, links, .. } = &self.report;
        format!(
            "<anabranch.Run of {simulated_seconds} s, seed {seed}, hash {hash}: {} flows, {} links, {} series>",
            flows.len(),
            links.len(),
            self.series.len()
        )
    }

    /// Tables of flows and links, for notebooks.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let Report { seed, hash, simulated_seconds, .. } = &self.report;
        let mut html = String::new();
        if !self.question.is_empty() {
            html += &format!("<p><strong>{}</strong></p>", escaped(&self.question));
        }
        html += &format!("<p>{simulated_seconds} s simulated, seed {seed}, hash {}</p>", escaped(hash));
        html += &self.flows()?._repr_html_(py)?;
        html += &self.links()?._repr_html_(py)?;
        for note in &self.report.notes {
            html += &format!("<p>note: {}</p>", escaped(note));
        }
        Ok(html)
    }
}

/// The report, each series with its kind and its points, and the question.
type Restored = (String, BTreeMap<String, (bool, Vec<(f64, f64)>)>, String);

/// A run that was pickled.
#[pyfunction]
#[pyo3(name = "_restore_run")]
pub(crate) fn restore_run(
    report: &str,
    series: BTreeMap<String, (bool, Vec<(f64, f64)>)>,
    question: String,
) -> PyResult<Run> {
    let report = serde_json::from_str(report).map_err(|error| Error::new_err(format!("this is no run: {error}")))?;
    let series = series.into_iter().map(|(name, (is_of_events, points))| (name, Series::new(is_of_events, points)));
    Ok(Run { report, scenario: None, series: series.collect(), question })
}

impl Run {
    fn recorded(&self, name: &str) -> Result<&Series, ExpressionError> {
        if let Some(series) = self.series.get(name) {
            return Ok(series);
        }
        if let Some(scenario) = &self.scenario {
            scenario.check_series(name)?;
        }
        Err(ExpressionError::new(match self.series.is_empty() {
            true => format!("`{name}` was not recorded: run with record=True"),
            false => format!("`{name}` was not recorded, or the transport does not know it"),
        }))
    }
}
