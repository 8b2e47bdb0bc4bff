//! A sender's variables over time, of one path or summed over several.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_ns2::Gauges;
use anabranch_units::{SimSpan, SimTime};

use crate::history::{Detail, Entry, History};

/// The variables of a sender from some time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaugeRow {
    /// When they changed.
    pub time: SimTime,
    /// The variables from then on.
    pub gauges: Gauges,
}

impl GaugeRow {
    /// Appends the row, if it differs from the last one.
    pub(crate) fn remember(self, rows: &mut History<Self>) {
        if rows.last().is_none_or(|last| last.gauges != self.gauges) {
            rows.push(self);
        }
    }
}

impl Entry for GaugeRow {
    fn time(&self) -> SimTime {
        self.time
    }
}

/// The recorded variables of a source.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// The variables of each path.
    pub(crate) rows: Vec<History<GaugeRow>>,
    /// The cumulative acknowledgements.
    pub(crate) acked: History<(SimTime, i64)>,
}

impl Record {
    pub(crate) fn new(detail: Detail, paths: usize) -> Self {
        Self { rows: vec![History::new(detail); paths], acked: History::new(detail) }
    }

    pub(crate) fn rows(&self, path: usize) -> Option<&[GaugeRow]> {
        self.rows.get(path).map(History::entries)
    }

    /// The coarsest resolution of its histories.
    pub(crate) fn resolution(&self) -> Option<SimSpan> {
        self.rows.iter().map(History::resolution).chain([self.acked.resolution()]).max()
    }
}

/// Receives a sender's variables at each change, while the run goes on; of several paths, summed as by [`sum_of_paths`]. Nothing is kept, so
/// a run of any length can be told completely.
#[derive(Clone)]
pub struct GaugeListener {
    tell: Arc<Mutex<dyn FnMut(GaugeRow) + Send>>,
    last: Option<Gauges>,
    /// The variables of each path that has had any.
    paths: Vec<Option<Gauges>>,
}

impl GaugeListener {
    /// A listener that calls `tell` for each row.
    pub fn new(tell: impl FnMut(GaugeRow) + Send + 'static) -> Self {
        Self { tell: Arc::new(Mutex::new(tell)), last: None, paths: Vec::new() }
    }

    /// The variables of the sender are now these.
    pub(crate) fn hear(&mut self, time: SimTime, gauges: Gauges) {
        if self.last != Some(gauges) {
            self.last = Some(gauges);
            let mut tell = self.tell.lock().unwrap_or_else(PoisonError::into_inner);
            tell(GaugeRow { time, gauges });
        }
    }

    /// The variables of these paths, by their index, are now these.
    pub(crate) fn hear_paths(&mut self, time: SimTime, paths: impl Iterator<Item = (usize, Gauges)>) {
        for (path, gauges) in paths {
            if self.paths.len() <= path {
                self.paths.resize(path + 1, None);
            }
            self.paths[path] = Some(gauges);
        }
        if let Some(sum) = sum_of_paths(self.paths.iter().flatten().copied()) {
            self.hear(time, sum);
        }
    }
}

impl fmt::Debug for GaugeListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GaugeListener").field("last", &self.last).finish_non_exhaustive()
    }
}

/// The variables of a connection over several paths: windows and packets in flight are sums, the RTTs are those of the first
/// path.
pub fn sum_of_paths(gauges: impl Iterator<Item = Gauges>) -> Option<Gauges> {
    gauges.reduce(|sum, one| Gauges {
        window: sum.window + one.window,
        ssthresh: sum.ssthresh + one.ssthresh,
        in_flight: sum.in_flight + one.in_flight,
        reroutes: sum.reroutes + one.reroutes,
        ..sum
    })
}

/// The summed records of several paths.
pub(crate) fn rows_of_paths<'a>(paths: impl Iterator<Item = &'a [GaugeRow]>) -> Vec<GaugeRow> {
    let rows = paths.map(|rows| rows.iter().map(|row| (row.time, row.gauges))).collect();
    joined(rows, |present| sum_of_paths(present.iter().flatten().copied()).expect("one is present"))
}

/// Merges several records. The result has a row for each time at which a part changed, computed from the values of all parts.
pub(crate) fn joined<T: Copy>(
    parts: Vec<impl Iterator<Item = (SimTime, T)>>,
    make: impl Fn(&[Option<T>]) -> Gauges,
) -> Vec<GaugeRow> {
    let mut present: Vec<Option<T>> = vec![None; parts.len()];
    let mut rows: Vec<GaugeRow> = Vec::with_capacity(parts.iter().map(|part| part.size_hint().0).sum());
    let mut change = |time, part: usize, gauges| {
        present[part] = Some(gauges);
        if rows.last().is_some_and(|last| last.time == time) {
            rows.pop();
        }
        rows.push(GaugeRow { time, gauges: make(&present) });
    };
    match <[_; 1]>::try_from(parts) {
        // Most connections have one path, whose rows are in order.
        Ok([part]) => part.for_each(|(time, gauges)| change(time, 0, gauges)),
        Err(parts) => {
            let changes = (0..).zip(parts);
            let changes = changes.flat_map(|(part, rows)| rows.map(move |(time, gauges)| (time, part, gauges)));
            let mut changes: Vec<(SimTime, usize, T)> = changes.collect();
            // Sorted by time. Every part has a row at the start of the flow.
            changes.sort_by_key(|&(time, part, _)| (time, part));
            changes.into_iter().for_each(|(time, part, gauges)| change(time, part, gauges));
        }
    }
    rows
}
