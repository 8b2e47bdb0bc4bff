//! The gauges and series of a run by name, known before the run.

use crate::diagnostic::suggestion;
use crate::expression::{ExpressionError, Found};
use crate::report;
use crate::scenario::Scenario;
use crate::scenario::class;
use crate::series::{self, Kind};

/// The owner of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeriesPlace {
    Flow,
    /// A stream of a flow, by its number.
    Stream(u8),
    /// A path of a flow, by its number.
    Path(u8),
    Link,
}

impl Scenario {
    /// Checks that runs have a gauge of this name; no gauge has labels.
    ///
    /// # Errors
    /// If there is none; the error suggests the nearest name.
    pub fn check_gauge(&self, name: &str, labels: &[String]) -> Result<(), ExpressionError> {
        match labels {
            [] => {
                let flows: Vec<&str> = self.flows.iter().map(|flow| flow.id.as_str()).collect();
                let links: Vec<&str> = self.links.iter().map(|link| link.id.as_str()).collect();
                let classes = class::ids(&self.flows);
                let classes: Vec<&str> = classes.iter().map(String::as_str).collect();
                report::check_gauge(&flows, &links, &classes, name).map_err(ExpressionError::new)
            }
            _ => Err(ExpressionError::new(format!("`{name}` has labels, but there is one run: leave them out"))),
        }
    }

    /// The ids of its flows, or of its links without the reverse directions, for [`Expression::written_out`].
    ///
    /// [`Expression::written_out`]: crate::expression::Expression::written_out
    pub fn ids(&self, place: &str) -> Vec<String> {
        match place {
            "flow" => self.flows.iter().map(|flow| flow.id.clone()).collect(),
            "link" => self.links.iter().map(|link| link.id.clone()).filter(|id| !id.contains('.')).collect(),
            "class" => class::names(&self.flows).into_iter().map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    }

    /// Checks that runs have a series of this name.
    ///
    /// # Errors
    /// If there is none; the error suggests the nearest name.
    pub fn check_series(&self, name: &str) -> Result<(), ExpressionError> {
        if series::kind(name).is_none() {
            return Err(ExpressionError::new(series::unknown(name)));
        }
        self.series_places(name).map(|_| ()).map_err(ExpressionError::new)
    }

    /// The series of this name before the run, when only its end is known.
    ///
    /// # Errors
    /// If there is none; the error suggests the nearest name.
    pub fn series_to_come(&self, name: &str) -> Result<Found, ExpressionError> {
        self.check_series(name).map(|()| Found { series: None, end: self.duration.as_secs_f64() })
    }

    /// The owners of the series, by position. `*` means all owners, whose events are added up.
    pub(crate) fn series_places(&self, name: &str) -> Result<Vec<(SeriesPlace, usize)>, String> {
        let Some((place, variable)) = name.split_once(".*.") else {
            return self.series_place(name).map(|one| vec![one]);
        };
        if series::kind(name) != Some(Kind::Events) {
            return Err(format!("`{name}` would add up variables: `*` is for events, such as {place}.*.throughput"));
        }
        match place {
            "flow" => Ok((0..self.flows.len()).map(|index| (SeriesPlace::Flow, index)).collect()),
            "link" => Ok((0..self.links.len()).map(|index| (SeriesPlace::Link, index)).collect()),
            _ => Err(format!("`{name}` is no series; write flow.*.{variable} or link.*.{variable}")),
        }
    }

    /// The owner of the series, by position. The series exists, because the name was parsed as one.
    fn series_place(&self, name: &str) -> Result<(SeriesPlace, usize), String> {
        let find = |what: &str, id: &str, known: Vec<&str>| {
            let missing = || format!("no {what} is called `{id}`; {}", suggestion(id, known.iter().copied()));
            known.iter().position(|other| *other == id).ok_or_else(missing)
        };
        let flows = || self.flows.iter().map(|flow| flow.id.as_str()).collect();
        let links = || self.links.iter().map(|link| link.id.as_str()).collect();
        match name.split_once('.').and_then(|(kind, rest)| Some((kind, rest.rsplit_once('.')?.0))) {
            Some(("flow", place)) if let Some((id, number)) = series::stream(place) => {
                find("flow", id, flows()).map(|index| (SeriesPlace::Stream(number), index))
            }
            Some(("flow", place)) if let Some((id, number)) = series::path(place) => {
                find("flow", id, flows()).map(|index| (SeriesPlace::Path(number), index))
            }
            Some(("flow", id)) => find("flow", id, flows()).map(|index| (SeriesPlace::Flow, index)),
            Some(("link", id)) => find("link", id, links()).map(|index| (SeriesPlace::Link, index)),
            _ => Err(format!("`{name}` is no series; write flow.<id>.<series> or link.<id>.<series>")),
        }
    }
}
