//! The report of a sweep: a small picture for each quantity, all with the same axis, so that they can be compared at a glance.

use maud::{Markup, html};

use crate::experiment::Experiment;
use crate::statistics::Interval;
use crate::sweep::{Line, Sweep};

use super::ticks::ticks;
use super::{experiment, page, words};

/// The limit of lines in a picture: the number of colours.
const LINES_MAX: usize = 8;
/// The limit of pictures of gauges, if the file has no measures.
const GAUGES_MAX: usize = 24;

const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 26.0;
/// The number of values whose names fit below a picture.
const NAMES_MAX: usize = 8;

/// A sweep as an HTML document. The last axis is the horizontal axis of its pictures; the other axes make the lines.
pub fn sweep_page(experiment: &Experiment, sweep: &Sweep) -> String {
    let pictures = pictures(experiment, sweep);
    let body = html! {
        section #grid {
            (axes(experiment))
            (legend(&pictures))
            div.grid { @for picture in &pictures { (drawn(picture)) } }
            @if pictures.is_empty() { p { "Nothing was measured." } }
        }
        section.colophon {
            p { "A point is the mean over the seeds, a whisker its 95 % confidence interval. No whisker goes below zero where no value can. " (certain(sweep)) }
            (experiment_source(experiment))
            p.about { (page::ABOUT) }
        }
    };
    let title = experiment.name();
    page::document(
        title,
        &masthead(experiment, sweep),
        &html! { nav.contents aria-label="Contents" { ol { li { a href="#grid" { "The grid" } } } } },
        &body,
    )
}

fn masthead(experiment: &Experiment, sweep: &Sweep) -> Markup {
    let axes: Vec<&str> = experiment.axes.iter().map(|axis| axis.name.as_str()).collect();
    let lead = html! {
        (experiment.question().split("\n\n").next().unwrap_or_default()) " "
        (words::count(sweep.points, "point")) @if !axes.is_empty() { " over " (axes.join(" and ")) } ", " (words::count(sweep.rows.len(), "run")) "."
    };
    let facts = html! { div { dt { "version" } dd { (env!("CARGO_PKG_VERSION")) } } };
    page::head(experiment.name(), &lead, &facts)
}

/// The description of the axes.
fn axes(experiment: &Experiment) -> Markup {
    let names: Vec<&str> = experiment.axes.iter().map(|axis| axis.name.as_str()).collect();
    html! {
        @if let Some((last, others)) = names.split_last() {
            p.about { "Across: " (last) "." @if !others.is_empty() { " A line for each " (others.join(" and ")) "." } }
        }
    }
}

/// The remark on runs that do not depend on the seed.
fn certain(sweep: &Sweep) -> String {
    match sweep.certain {
        0 => String::new(),
        certain if certain == sweep.points => "No point has anything random: each was run once.".to_owned(),
        certain => format!("{certain} of {} points have nothing random: these were run once.", sweep.points),
    }
}

fn experiment_source(one: &Experiment) -> Markup {
    html! {
        details.source {
            summary { "Scenario " code { (one.file()) } }
            pre { code { @for line in one.source().lines() { (experiment::source_line(line)) "\n" } } }
        }
    }
}

/// A quantity over the grid.
struct Picture<'a> {
    gauge: &'a str,
    /// The values of the last axis.
    across: Vec<&'a str>,
    /// Labels of the other axes, and a point for each value across.
    lines: Vec<(String, Vec<Option<Point>>)>,
}

#[derive(Clone, Copy)]
struct Point {
    mean: f64,
    interval: Option<Interval>,
}

fn pictures<'a>(experiment: &Experiment, sweep: &'a Sweep) -> Vec<Picture<'a>> {
    let all = &sweep.table.lines;
    let gauges = words::unique(all.iter().map(|line| line.gauge.as_str()));
    let has_measures = gauges.iter().any(|gauge| experiment.has_measure(gauge));
    let telling = |gauge: &&str| match has_measures {
        true => experiment.has_measure(gauge),
        // A quantity that is constant over the grid needs no picture.
        false => {
            let means = all
                .iter()
                .filter(|line| line.gauge == **gauge)
                .filter_map(|line| line.sample.as_ref())
                .map(|sample| sample.mean());
            let (low, high) =
                means.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), mean| (low.min(mean), high.max(mean)));
            high > low
        }
    };
    let limit = if has_measures { usize::MAX } else { GAUGES_MAX };
    gauges.into_iter().filter(telling).take(limit).map(|gauge| picture(gauge, all)).collect()
}

fn picture<'a>(gauge: &'a str, all: &'a [Line]) -> Picture<'a> {
    let of_gauge: Vec<&Line> = all.iter().filter(|line| line.gauge == gauge).collect();
    let last = |line: &'a Line| line.labels.last().map_or("", String::as_str);
    let others = |line: &Line| line.labels.split_last().map_or_else(String::new, |(_, others)| others.join(", "));
    let across = words::unique(of_gauge.iter().map(|line| last(line)));
    let mut lines: Vec<(String, Vec<Option<Point>>)> = Vec::new();
    for line in of_gauge {
        let name = others(line);
        let position = lines.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            lines.push((name, vec![None; across.len()]));
            lines.len() - 1
        });
        let place = across.iter().position(|value| *value == last(line));
        let mean = line.sample.as_ref().map(|sample| sample.mean());
        if let (Some(place), Some(mean)) = (place, mean) {
            lines[position].1[place] = Some(Point { mean, interval: line.interval() });
        }
    }
    Picture { gauge, across, lines }
}

fn legend(pictures: &[Picture<'_>]) -> Markup {
    let names: Vec<&str> = pictures
        .first()
        .map(|picture| picture.lines.iter().map(|(name, _)| name.as_str()).collect())
        .unwrap_or_default();
    html! { @if names.len() > 1 {
        p.legend {
            @for (index, name) in names.iter().take(LINES_MAX).enumerate() { span.entry { span class={ "swatch s" (index) } {} (name) } }
            @if names.len() > LINES_MAX { span.entry { "and " (names.len() - LINES_MAX) " that are not drawn" } }
        }
    } }
}

fn drawn(picture: &Picture<'_>) -> Markup {
    let drawn = || picture.lines.iter().take(LINES_MAX);
    let marks = drawn().flat_map(|(_, points)| points).flatten().flat_map(|point| {
        let ends = point.interval.map_or([point.mean; 2], |interval| [interval.low, interval.high]);
        [point.mean, ends[0], ends[1]]
    });
    let (low, high) = marks
        .filter(|mark| mark.is_finite())
        .fold((0.0_f64, 0.0_f64), |(low, high), mark| (low.min(mark), high.max(mark)));
    let high = if high > low { high } else { low + 1.0 };
    let x = |place: usize| LEFT + (WIDTH - LEFT - RIGHT) * (place as f64 + 0.5) / picture.across.len() as f64;
    let y = |value: f64| HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM);
    let path = |points: &[Option<Point>]| {
        let mut path = String::new();
        let mut is_joined = false;
        for (place, point) in points.iter().enumerate() {
            if let Some(point) = point {
                path += &format!("{}{:.1} {:.1}", if is_joined { 'L' } else { 'M' }, x(place), y(point.mean));
            }
            is_joined = point.is_some();
        }
        path
    };
    let named = picture.across.len().div_ceil(NAMES_MAX);
    html! {
        figure.small {
            h4 { (picture.gauge) }
            svg.curve viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(picture.gauge) {
                @for (value, text) in axis(low, high) {
                    line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(format!("{:.1}", y(value))) y2=(format!("{:.1}", y(value))) {}
                    text.tick x=(LEFT - 6.0) y=(format!("{:.1}", y(value) + 4.0)) { (text) }
                }
                @for (index, (_, points)) in drawn().enumerate() {
                    path class={ "line l" (index) } d=(path(points)) {}
                    @for (place, point) in points.iter().enumerate() { @if let Some(point) = point {
                        @if let Some(interval) = point.interval {
                            line class={ "line l" (index) } x1=(format!("{:.1}", x(place))) x2=(format!("{:.1}", x(place)))
                                y1=(format!("{:.1}", y(interval.low))) y2=(format!("{:.1}", y(interval.high))) {}
                        }
                        circle class={ "s" (index) } cx=(format!("{:.1}", x(place))) cy=(format!("{:.1}", y(point.mean))) r="3" {
                            title { (picture.across[place]) ": " (point.mean) }
                        }
                    } }
                }
                @for (place, name) in picture.across.iter().enumerate().step_by(named) {
                    text.name x=(format!("{:.1}", x(place))) y=(HEIGHT - 8.0) { (name) }
                }
            }
        }
    }
}

/// Ticks of an axis; from a million on in millions, from ten thousand on in thousands.
fn axis(low: f64, high: f64) -> Vec<(f64, String)> {
    let (unit, sign) = match high.max(-low) {
        largest if largest >= 1e6 => (1e6, "M"),
        largest if largest >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    ticks(low / unit, high / unit).into_iter().map(|(value, text)| (value * unit, text + sign)).collect()
}
