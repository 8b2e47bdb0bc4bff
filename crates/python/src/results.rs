//! The results of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_lab::expression::{Expression, ExpressionError, Found, Series};
use anabranch_lab::report::{FlowReport, LinkReport, PathReport, Report};
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

/// The columns of a table: each has a name and an expression for its value in a row.
macro_rules! columns {
    ($rows:expr, $($kind:ident { $($field:ident),* $(,)? })*) => {
        [$($((stringify!($field).to_owned(), Column::$kind($rows.iter().map(|row| row.$field.clone().into()).collect())),)*)*]
    };
}

pub(crate) fn flows(flows: &[FlowReport]) -> PyResult<Table> {
    Table::new(columns!(flows,
        Text { id, transport, cc }
        Number { goodput_bps, throughput_bps }
        Count { sent_packets }
        Signed { max_seq, acked_seq }
        Count {
            delivered_packets, retransmitted_packets, held_packets_max, buffered_bytes_max, dropped_packets, dropped_in_row_max,
            timeouts, timeouts_in_row_max, random_losses, reordered_packets,
        }
        Number { rtt_mean_s, rtt_p50_s, rtt_p95_s, rtt_p99_s, one_way_delay_mean_s, window_final }
        Count { reset_count }
    ))
}

pub(crate) fn links(links: &[LinkReport]) -> PyResult<Table> {
    Table::new(columns!(links,
        Text { id }
        Count { forwarded_packets, dropped_packets, error_packets, too_long_packets, marked_packets }
        Number { utilisation, queue_packets_mean }
        Count { queue_packets_p50, queue_packets_p95, queue_packets_p99, queue_packets_max }
    ))
}

fn paths(flows: &[FlowReport]) -> PyResult<Table> {
    let rows: Vec<(&str, &PathReport)> =
        flows.iter().flat_map(|flow| flow.paths.iter().map(|path| (flow.id.as_str(), path))).collect();
    let paths: Vec<&PathReport> = rows.iter().map(|(_, path)| *path).collect();
    let flow = Column::Text(rows.iter().map(|(flow, _)| Some((*flow).to_owned())).collect());
    let number = Column::Count(paths.iter().map(|path| Some(path.path as u64)).collect());
    let state = Column::Text(paths.iter().map(|path| path.state.clone()).collect());
    let first = [("flow".to_owned(), flow), ("path".to_owned(), number), ("state".to_owned(), state)];
    Table::new(first.into_iter().chain(columns!(paths,
        Count { sent_packets, retransmitted_packets }
        Number { delivered_bps, rtt_mean_s, window_final }
    )))
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
