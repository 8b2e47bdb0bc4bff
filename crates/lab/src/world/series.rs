//! The series and tables of a finished run.

use anabranch_sim::{Account, HostSeries, LinkRow, Observed, Points, Portion};
use anabranch_units::{SimSpan, SimTime};

use super::Simulation;
use crate::names::SeriesPlace;
use crate::series::{Kind, Series};
use crate::trace;

impl Simulation<'_> {
    /// The resolution of the recorded series, if it is coarser than the scenario's: a run with many changes does not fit into
    /// memory.
    pub(crate) fn coarsened(&self) -> Option<SimSpan> {
        let world = &self.world;
        let ends = self.flows.iter().flat_map(|ends| [ends.source, ends.sink]);
        let hosts = ends.filter_map(|host| world.account(host).resolution());
        let links = self.traces.iter().flatten().filter_map(|trace| trace.borrow().resolution());
        let arrivals = self.arrivals.iter().flatten().map(|trace| trace.borrow().resolution());
        hosts.chain(links).chain(arrivals).max().filter(|&coarsest| coarsest > self.scenario.resolution)
    }

    /// The series `flow.<id>.<series>` or `link.<id>.<series>` of a traced run.
    ///
    /// # Errors
    /// If the flow's transport does not record it.
    pub(crate) fn series(&self, name: &str) -> Result<Series, String> {
        let variable = name.rsplit_once('.').map_or(name, |(_, variable)| variable);
        match self.scenario.series_places(name)?[..] {
            [(place, index)] => self.series_of(name, place, index, variable),
            // A flow that does not record it has none of these events.
            ref all => Ok(Series::merged(
                all.iter().filter_map(|&(place, index)| self.series_of(name, place, index, variable).ok()),
            )),
        }
    }

    fn series_of(&self, name: &str, place: SeriesPlace, index: usize, variable: &str) -> Result<Series, String> {
        let unknown = || format!("`{name}` was not measured: the transport does not know it");
        match place {
            SeriesPlace::Flow => {
                let series = self.flow_series(index, variable);
                series.filter(|series| series.kind == Kind::Events || !series.points.is_empty()).ok_or_else(unknown)
            }
            SeriesPlace::Stream(stream) => {
                let has_stream = self.scenario.flows[index].transport.has_stream(stream);
                let delivered = self.sink(index).delivered().filter(|_| has_stream);
                let delivered =
                    delivered.ok_or_else(|| format!("`{name}` was not measured: there is no such stream"))?;
                Ok(bits(delivered.filter(move |portion| portion.stream + 1 == usize::from(stream))))
            }
            SeriesPlace::Path(path) => {
                let path = usize::from(path) - 1;
                let asked = match variable {
                    "window" => HostSeries::PathWindow(path),
                    "ssthresh" => HostSeries::PathSsthresh(path),
                    _ => HostSeries::PathInFlight(path),
                };
                let points = self.source(index).series(asked);
                let points = points.ok_or_else(|| format!("`{name}` was not measured: there is no such path"))?;
                Ok(Series::variable(in_seconds(points)))
            }
            SeriesPlace::Link => {
                let trace = self.traces[index].as_ref().map(Observed::borrow);
                let rows = trace.as_ref().and_then(|trace| trace.rows(self.end())).ok_or_else(unknown)?;
                if variable == "queue" {
                    let points = rows.map(|row| (row.time.as_secs_f64(), row.queue as f64));
                    return Ok(Series::variable(from_nothing(points)));
                }
                let count = |row: &LinkRow| if variable == "drops" { row.dropped } else { row.forwarded };
                Ok(Series::events(increments(rows.map(|row| (row.time, count(&row))))))
            }
        }
    }

    /// A series of a flow; `None` if its transport does not record it.
    fn flow_series(&self, index: usize, variable: &str) -> Option<Series> {
        let (source, sink) = (self.source(index), self.sink(index));
        let arrivals = || self.arrivals[index].as_ref().map(Observed::borrow);
        match variable {
            "goodput" => match sink.delivered() {
                Some(delivered) => Some(bits(delivered)),
                // `cbr` and `on_off` have no order.
                None => Some(Series::events(arrivals()?.bits())),
            },
            "throughput" => Some(Series::events(arrivals()?.bits())),
            "ipd" => Some(Series::variable(arrivals()?.answer_delays())),
            "delay" => Some(Series::events(trace::message_delays(source.offered()?, sink.delivered()?))),
            "held" => Some(Series::variable(from_nothing(in_seconds(sink.series(HostSeries::Held)?)))),
            "acked_seq" => Some(Series::variable(in_seconds(source.series(HostSeries::AckedSeq)?))),
            "peer_window" => Some(Series::variable(in_seconds(source.series(HostSeries::PeerWindow)?))),
            "resets" => {
                let rows = source.gauges()?;
                Some(Series::events(increments(rows.iter().map(|row| (row.time, row.gauges.reroutes)))))
            }
            _ => {
                let rows = source.gauges()?;
                let points = rows.iter().filter_map(|row| {
                    let gauges = &row.gauges;
                    let value = match variable {
                        "window" => gauges.window,
                        "ssthresh" => gauges.ssthresh,
                        "rtt" => gauges.rtt.as_secs_f64(),
                        "base_rtt" => gauges.rtt_base?.as_secs_f64(),
                        "avg_rtt" => gauges.rtt_smoothed.as_secs_f64(),
                        _ => f64::from(gauges.in_flight),
                    };
                    Some((row.time.as_secs_f64(), value))
                });
                Some(Series::variable(points))
            }
        }
    }

    fn source(&self, flow: usize) -> &dyn Account {
        self.world.account(self.flows[flow].source)
    }

    fn sink(&self, flow: usize) -> &dyn Account {
        self.world.account(self.flows[flow].sink)
    }
}

fn in_seconds(points: Points<'_>) -> impl Iterator<Item = (f64, f64)> {
    points.map(|(time, value)| (time.as_secs_f64(), value))
}

/// The portions as events.
fn bits(portions: impl Iterator<Item = Portion>) -> Series {
    Series::events(portions.map(|portion| (portion.time.as_secs_f64(), portion.bits as f64)))
}

/// The points, preceded by 0 from the start.
fn from_nothing(points: impl Iterator<Item = (f64, f64)>) -> impl Iterator<Item = (f64, f64)> {
    [(0.0, 0.0)].into_iter().chain(points)
}

/// An event of size 1 for each increment of a count that starts at 0.
fn increments(counts: impl Iterator<Item = (SimTime, u64)>) -> impl Iterator<Item = (f64, f64)> {
    let mut before = 0;
    counts.flat_map(move |(time, count)| {
        let steps = before..count;
        before = count;
        steps.map(move |_| (time.as_secs_f64(), 1.0))
    })
}
