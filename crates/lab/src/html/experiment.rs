//! The section of an experiment: its question, its network, its tables and figures, what is odd about it, and its file.

use maud::{Markup, html};

use crate::reproduce::{ExperimentOutcome, Figure, JudgedClaim, Paper, TopologyFlow, TopologyLink, VariedAxis};
use crate::verdict::Verdict;

use super::{charts, network, table, words};

/// Draws figures, and numbers them through the report.
pub(super) struct Charts {
    drawn: usize,
    points_max: usize,
}

impl Charts {
    /// With so many points of each series.
    pub(super) fn new(points_max: usize) -> Self {
        Self { drawn: 0, points_max }
    }

    fn draw(&mut self, figure: &Figure) -> Markup {
        self.drawn += 1;
        charts::figure(figure, self.drawn, self.points_max)
    }
}

pub(super) fn experiment(paper: &Paper, experiment: &ExperimentOutcome, charts: &mut Charts) -> Markup {
    let mut paragraphs = experiment.question.split("\n\n");
    let question = paragraphs.next().unwrap_or_default();
    html! {
        section.experiment id=(words::experiment_anchor(paper, experiment)) {
            h3 { (words::item(&experiment.item)) }
            p.question { (question) }
            @for paragraph in paragraphs { p { (paragraph) } }
            (setup(experiment))
            @for group in table::groups(paper, experiment) { (table::table(paper, &group)) }
            @for figure in &experiment.figures { (charts.draw(figure)) }
            (anomalies(paper, experiment))
            details.source {
                summary { "Scenario " code { (experiment.file) } }
                pre { code { @for line in experiment.source.lines() { (source_line(line)) "\n" } } }
            }
        }
    }
}

/// The network and what is varied on it.
fn setup(experiment: &ExperimentOutcome) -> Markup {
    let topology = &experiment.topology;
    html! {
        div.setup {
            @if let Some(drawing) = network::network(topology) {
                div.scroll.drawing tabindex="0" role="region" aria-label="Network" { (drawing) }
            }
            dl {
                @for axis in &experiment.axes {
                    div { dt { (axis.name) } dd { (axis.values.join(", ")) } }
                }
                div { dt { "duration" } dd { (experiment.duration) } }
                div { dt { "seeds" } dd {
                    @if experiment.is_random { (experiment.seeds) " a variant, from " (experiment.seed) " on" } @else { "one run a variant, seed " (experiment.seed) }
                } }
                div { dt { "flows" } dd { (flows(experiment)) } }
            }
            (links(experiment))
        }
    }
}

/// The axis that varies a key of the scenario, if one does.
fn axis_of<'a>(experiment: &'a ExperimentOutcome, key: &str) -> Option<&'a str> {
    let varies = |axis: &&VariedAxis| axis.keys.iter().any(|varied| varied.starts_with(key));
    experiment.axes.iter().find(varies).map(|axis| axis.name.as_str())
}

fn flows(experiment: &ExperimentOutcome) -> String {
    let topology = &experiment.topology;
    let flow = |flow: &TopologyFlow| {
        let TopologyFlow { id, from, to, transport } = flow;
        match axis_of(experiment, &format!("flow.{id}.transport")) {
            Some(axis) => format!("{id}: {from} → {to} (by {axis})"),
            None => format!("{id}: {from} → {to} ({transport})"),
        }
    };
    let shown: Vec<String> = topology.flows.iter().take(FLOWS_MAX).map(flow).collect();
    let more = topology.flows.len().saturating_sub(FLOWS_MAX);
    shown.join(", ") + &if more > 0 { format!(" and {more} more") } else { String::new() }
}

/// What follows is in the file.
const FLOWS_MAX: usize = 8;

/// A property of a link, and the axis that varies it.
fn property(experiment: &ExperimentOutcome, link: &TopologyLink, key: &str, value: &str) -> Markup {
    let axis = axis_of(experiment, &format!("link.{}.{key}", link.id));
    html! { @if let Some(axis) = axis { "by " em { (axis) } } @else { (value) } }
}

fn links(experiment: &ExperimentOutcome) -> Markup {
    let topology = &experiment.topology;
    let has_errors = topology.links.iter().any(|link| link.error.is_some());
    html! {
        div.scroll tabindex="0" role="region" aria-label="Links" {
            table.links {
                thead { tr {
                    th scope="col" { "link" } th scope="col" { } th.number scope="col" { "rate" } th.number scope="col" { "delay" }
                    th scope="col" { "queue" }
                    @if has_errors { th scope="col" { "loses" } }
                } }
                tbody { @for link in &topology.links {
                    tr {
                        th.row scope="row" { (link.id) }
                        td { (link.from) @if link.is_duplex { " ↔ " } @else { " → " } (link.to) }
                        td.number { (property(experiment, link, "rate", &link.rate)) }
                        td.number { (property(experiment, link, "delay", &link.delay)) }
                        td { (property(experiment, link, "queue", &link.queue)) }
                        @if has_errors { td { (property(experiment, link, "error", link.error.as_deref().unwrap_or_default())) } }
                    }
                } }
            }
        }
    }
}

/// What does not come out, with its reason, and remarks.
fn anomalies(paper: &Paper, experiment: &ExperimentOutcome) -> Markup {
    let odd: Vec<(String, &JudgedClaim)> = experiment
        .claims
        .iter()
        .enumerate()
        .filter(|(_, claim)| claim.verdict != Verdict::Reproduced)
        .map(|(index, claim)| (words::claim_anchor(paper, experiment, index), claim))
        .collect();
    if odd.is_empty() && experiment.notes.is_empty() {
        return html! {};
    }
    html! {
        section.anomalies {
            @if !odd.is_empty() {
                h4 { "Anomalies" }
                @for group in odd.chunk_by(|a, b| a.1.because == b.1.because && a.1.verdict == b.1.verdict) {
                    @let look = words::look(group[0].1);
                    div class={ "anomaly " (look.class) } {
                        p.which {
                            (table::verdict(&look)) ": "
                            @for (index, (anchor, claim)) in group.iter().enumerate() {
                                @if index > 0 { "; " }
                                a href={ "#" (anchor) } { (words::place(claim)) }
                                " (" (words::number(&claim.published.to_string())) @if let Some(ours) = claim.ours_shown() { ", ours " (words::number(&ours)) } ")"
                            }
                        }
                        p { @if let Some(because) = &group[0].1.because { (because) } @else { "The experiment does not say why." } }
                    }
                }
            }
            @if !experiment.notes.is_empty() {
                h4 { "Remarks" }
                ul { @for note in &experiment.notes { li { span.item { (words::item(&note.item)) } " " (note.text) } } }
            }
        }
    }
}

/// A line of a scenario: comments quiet, heads of tables strong.
fn source_line(line: &str) -> Markup {
    let trimmed = line.trim_start();
    html! {
        @if trimmed.starts_with('#') { span.comment { (line) } }
        @else if trimmed.starts_with('[') { span.head { (line) } }
        @else { (line) }
    }
}
