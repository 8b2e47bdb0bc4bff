//! The section of an experiment: its question, its setup, its tables and figures, its deviations, and its file.

use maud::{Markup, html};

use crate::reproduce::{ExperimentOutcome, Figure, Paper};

use super::{anomalies, charts, coarse, engine, setup, table, words};

/// Draws figures, and numbers them throughout the report.
pub(super) struct Charts {
    drawn: usize,
    points_max: usize,
}

impl Charts {
    /// Charts with at most `points_max` points in each series.
    pub(super) fn new(points_max: usize) -> Self {
        Self { drawn: 0, points_max }
    }

    pub(super) fn draw(&mut self, figure: &Figure) -> Markup {
        self.drawn += 1;
        charts::figure(figure, self.drawn, self.points_max)
    }
}

pub(super) fn experiment(
    paper: &Paper,
    experiment: &ExperimentOutcome,
    playground: Option<&str>,
    charts: &mut Charts,
) -> Markup {
    html! {
        section.experiment id=(words::experiment_anchor(paper, experiment)) {
            h3 { (words::item(&experiment.item)) }
            (question(experiment))
            (setup::setup(experiment))
            @for group in table::groups(paper, experiment) { (table::table(paper, &group)) }
            @for figure in &experiment.figures { (charts.draw(figure)) }
            (anomalies::anomalies(paper, experiment))
            (coarse::list(paper, experiment))
            (engine::differences(paper, experiment))
            (source(experiment, playground))
        }
    }
}

/// The question, and the paragraphs that follow it.
pub(super) fn question(experiment: &ExperimentOutcome) -> Markup {
    let mut paragraphs = experiment.question.split("\n\n");
    let question = paragraphs.next().unwrap_or_default();
    html! {
        p.question { (question) }
        @for paragraph in paragraphs { p { (paragraph) } }
    }
}

/// The text of its file, and a link that opens it in the playground.
pub(super) fn source(experiment: &ExperimentOutcome, playground: Option<&str>) -> Markup {
    html! {
        @if let Some(page) = playground {
            p.play { a href={ (page) "#file=" (words::encoded(&experiment.file)) } { "Open in the playground" } " to run it in this browser and to change it." }
        }
        details.source {
            summary { "Scenario " code { (experiment.file) } }
            pre { code { @for line in experiment.source.lines() { (source_line(line)) "\n" } } }
        }
    }
}

/// A line of a scenario: comments are grey, heads of tables bold.
pub(super) fn source_line(line: &str) -> Markup {
    let trimmed = line.trim_start();
    html! {
        @if trimmed.starts_with('#') { span.comment { (line) } }
        @else if trimmed.starts_with('[') { span.head { (line) } }
        @else { (line) }
    }
}
