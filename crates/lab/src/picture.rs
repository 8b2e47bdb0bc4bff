//! The pictures of a run: its network, its series over time, and distributions. The report of a run is drawn from them.

use crate::document::Document;
use crate::experiment::Experiment;
use crate::report::Report;
use crate::reproduce::{DescribedNetwork, ExperimentOutcome, Figure, Panel, Series as Curve, Style, VariedAxis};
use crate::run::Trace;
use crate::scenario::Scenario;
use crate::series::{Kind, Series};

/// The limit of flows and links that are drawn: the number of colours.
pub const DRAWN_MAX: usize = 8;
/// The approximate number of bins in a curve of goodput.
const BINS: f64 = 200.0;
/// The points of a distribution: one for every per cent.
const SHARES: u32 = 100;

/// A run with its pictures.
#[derive(Clone, Debug)]
pub struct Pictured {
    /// The name of the file, as it was given.
    pub name: String,
    /// Network, file and figures, without claims.
    pub(crate) shown: ExperimentOutcome,
    /// The measured numbers.
    pub report: Report,
    pub(crate) distributions: Vec<Distribution>,
    /// The numbers of flows and of links that are not drawn.
    pub(crate) left_out: [usize; 2],
}

/// A cumulative distribution over time.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Distribution {
    pub(crate) title: &'static str,
    pub(crate) unit: &'static str,
    /// A name, and the values that the quantity did not exceed for 0, 1, … 100 % of the time.
    pub(crate) curves: Vec<(String, Vec<f64>)>,
}

/// The series that [`picture`] draws of a scenario.
pub fn series(scenario: &Scenario) -> Vec<String> {
    let mut names = Vec::new();
    for flow in scenario.flows.iter().take(DRAWN_MAX) {
        names.extend(["goodput", "window", "rtt"].map(|variable| format!("flow.{}.{variable}", flow.id)));
        names.extend((1..=flow.paths.len()).map(|path| format!("flow.{}.path.{path}.window", flow.id)));
    }
    names.extend(links(scenario).into_iter().map(|id| format!("link.{id}.queue")));
    names
}

/// The slowest links, in the order of the file: they have the queues.
pub(crate) fn links(scenario: &Scenario) -> Vec<&str> {
    let mut links: Vec<_> = scenario.links.iter().enumerate().collect();
    // Among equal links, forward directions come before reverse ones.
    links.sort_by_key(|(index, link)| (link.spec.rate, link.id.ends_with(".reverse"), *index));
    links.truncate(DRAWN_MAX / 2);
    links.sort_by_key(|(index, _)| *index);
    links.into_iter().map(|(_, link)| link.id.as_str()).collect()
}

/// Draws a run that has recorded [`series`]. `name` is the name to show, and `document` the file with its overrides.
pub fn picture(
    name: &str,
    document: &Document,
    experiment: &Experiment,
    scenario: &Scenario,
    report: Report,
    trace: &Trace<'_>,
) -> Pictured {
    let end = scenario.duration.as_secs_f64();
    let find = |name: &str| trace.lookup(name).ok().and_then(|found| found.series);
    let drawn: Vec<_> = scenario.flows.iter().take(DRAWN_MAX).collect();
    let of_flows = |variable: &str| -> Vec<(String, Series)> {
        drawn
            .iter()
            .filter_map(|flow| Some((flow.id.clone(), find(&format!("flow.{}.{variable}", flow.id))?)))
            .collect()
    };
    let bin = bin(end);
    let goodput: Vec<(String, Series)> =
        of_flows("goodput").into_iter().filter_map(|(id, series)| Some((id, series.bins(bin, end).ok()?))).collect();
    let windows = of_flows("window");
    // A round trip of zero was not measured yet.
    let rtts: Vec<(String, Series)> = of_flows("rtt")
        .into_iter()
        .map(|(id, series)| (id, Series::variable(series.points().iter().copied().filter(|(_, rtt)| *rtt > 0.0))))
        .collect();
    let paths = drawn.iter().flat_map(|flow| {
        (1..=flow.paths.len()).filter_map(|path| {
            Some((format!("{} path {path}", flow.id), find(&format!("flow.{}.path.{path}.window", flow.id))?))
        })
    });
    let paths: Vec<(String, Series)> = paths.take(DRAWN_MAX).collect();
    // Where nothing ever waits there is no queue to show, unless that is so everywhere.
    let waits = |id: &str| report.links.iter().any(|link| link.id == id && link.queue_packets_p99 >= 2);
    let anything_waits = links(scenario).into_iter().any(waits);
    let queues: Vec<(String, Series)> = links(scenario)
        .into_iter()
        .filter(|id| !anything_waits || waits(id))
        .filter_map(|id| Some((id.to_owned(), find(&format!("link.{id}.queue"))?)))
        .collect();
    let panel = |title: &str, unit: &str, scale: f64, all: &[(String, Series)]| Panel {
        title: title.to_owned(),
        unit: unit.to_owned(),
        series: all.iter().map(|(name, series)| curve(name, series, scale, end)).collect(),
    };
    let panels = [
        panel("Goodput", "Mbit/s", 1e-6, &goodput),
        panel("Window", "packets", 1.0, &windows),
        panel("Window of each path", "packets", 1.0, &paths),
        panel("RTT", "ms", 1e3, &rtts),
        panel("Queue", "packets", 1.0, &queues),
    ];
    let panels: Vec<Panel> =
        panels.into_iter().filter(|panel| panel.series.iter().any(|series| !series.t.is_empty())).collect();
    let figure = Figure {
        item: String::new(),
        title: "Over time".to_owned(),
        caption: format!("Goodput in bins of {bin} s."),
        from: 0.0,
        to: end,
        panels,
    };
    let distributed = |all: &[(String, Series)], scale: f64| -> Vec<(String, Vec<f64>)> {
        all.iter().filter_map(|(name, series)| Some((name.clone(), shares(series, end, scale)?))).collect()
    };
    let distributions = vec![
        Distribution { title: "RTT", unit: "ms", curves: distributed(&rtts, 1e3) },
        Distribution { title: "Queue", unit: "packets", curves: distributed(&queues, 1.0) },
        Distribution { title: "Goodput", unit: "Mbit/s", curves: distributed(&goodput, 1e-6) },
    ];
    let shown = ExperimentOutcome {
        item: experiment.name().to_owned(),
        question: experiment.question().to_owned(),
        file: document.file().to_owned(),
        seeds: 1,
        is_random: false,
        seed: scenario.seed,
        duration: scenario.duration.to_string(),
        axes: Vec::<VariedAxis>::new(),
        topology: DescribedNetwork::of(scenario),
        claims: Vec::new(),
        notes: Vec::new(),
        figures: vec![figure],
        source: document.text().to_owned(),
        command: String::new(),
    };
    let left_out = [scenario.flows.len().saturating_sub(DRAWN_MAX), scenario.links.len().saturating_sub(queues.len())];
    Pictured { name: name.to_owned(), shown, report, distributions, left_out }
}

fn curve(name: &str, series: &Series, scale: f64, end: f64) -> Curve {
    let style = if series.kind == Kind::Variable { Style::Steps } else { Style::Points };
    let (t, v) = series.drawn(0.0, end).into_iter().map(|(time, value)| (time, value * scale)).unzip();
    Curve { name: name.to_owned(), style, t, v }
}

/// The width of a bin: 1, 2 or 5 times a power of ten, so that a run has about [`BINS`] of them.
pub(crate) fn bin(end: f64) -> f64 {
    let wanted = end / BINS;
    let mut power = 1e-6;
    while power * 10.0 <= wanted {
        power *= 10.0;
    }
    let bin = [1.0, 2.0, 5.0].into_iter().map(|part| part * power).find(|bin| *bin >= wanted).unwrap_or(power * 10.0);
    // In floats 5 · 0.1 may differ from 0.5, but it is printed so.
    format!("{bin:.0e}").parse().unwrap_or(bin)
}

/// The values that a variable did not exceed for 0, 1, … 100 % of the time from its first value on.
fn shares(series: &Series, end: f64, scale: f64) -> Option<Vec<f64>> {
    let points = series.points();
    let mut held: Vec<(f64, f64)> = points
        .iter()
        .enumerate()
        .map(|(index, &(at, value))| (value, points.get(index + 1).map_or(end, |next| next.0) - at))
        .filter(|(_, span)| *span > 0.0)
        .collect();
    held.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = held.iter().map(|(_, span)| span).sum();
    let (mut index, mut passed) = (0, held.first()?.1);
    let value = |share: u32| {
        let wanted = total * f64::from(share) / f64::from(SHARES);
        while passed < wanted && index + 1 < held.len() {
            index += 1;
            passed += held[index].1;
        }
        held[index].0 * scale
    };
    Some((0..=SHARES).map(value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_time_is_not_one_of_the_points() {
        // 1 for 9 s, 5 for a tenth of a second ten times, 3 for the rest.
        let rising = Series::variable([(0.0, 1.0), (9.0, 5.0), (9.5, 3.0)]);
        let shares = shares(&rising, 10.0, 2.0).expect("it has values");
        assert_eq!((shares.len(), shares[0], shares[50], shares[90]), (101, 2.0, 2.0, 2.0));
        assert_eq!((shares[93], shares[95], shares[96], shares[100]), (6.0, 6.0, 10.0, 10.0));
        assert_eq!(super::shares(&Series::variable([]), 10.0, 1.0), None);
    }

    #[test]
    fn a_run_has_about_two_hundred_bins() {
        assert_eq!(
            [1.0, 60.0, 100.0, 3600.0, 0.05].map(|end| bin(end).to_string()),
            ["0.005", "0.5", "0.5", "20", "0.0005"]
        );
    }
}
