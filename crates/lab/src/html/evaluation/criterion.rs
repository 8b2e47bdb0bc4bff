//! The section of a criterion: what it asks, its verdict, and for each experiment its numbers, its curve over the varied parameter, and its figures.

use maud::{Markup, html};

use crate::evaluation::{Evaluation, JudgedCriterion, Ruling};
use crate::reproduce::{Figure, JudgedClaim};

use super::super::experiment::Charts;
use super::super::{interval, table, words};
use super::{Placed, anchor, claims, curve, look};

pub(super) fn criterion(evaluation: &Evaluation, criterion: &JudgedCriterion, charts: &mut Charts) -> Markup {
    if criterion.ruling == Ruling::NotJudged {
        return html! {};
    }
    let look = look(criterion);
    html! {
        section.paper id=(anchor(&criterion.section)) {
            header {
                p.key { "RFC 9743, " (criterion.section) }
                h2 { (criterion.title) }
                p.question { (criterion.asks) }
                p.ruling { (words::verdict(&look)) ": " (criterion.sentence) }
            }
            (parts(evaluation, criterion, charts))
        }
    }
}

/// The parts of a criterion, one for each experiment.
fn parts(evaluation: &Evaluation, criterion: &JudgedCriterion, charts: &mut Charts) -> Markup {
    let claims = claims(evaluation, &criterion.section);
    let mut shown: Vec<&Figure> = Vec::new();
    html! {
        @for part in claims.chunk_by(|a, b| a.1.file == b.1.file) {
            @let (paper, experiment, ..) = &part[0];
            section.experiment {
                h3 { (experiment.question.split("\n\n").next().unwrap_or_default()) }
                p.about { "Scenario: " a href={ "#" (words::experiment_anchor(paper, experiment)) } { (experiment.item) } ", " (experiment.duration) "." }
                @for group in part.chunk_by(|a, b| a.3.title == b.3.title) { (numbers(group)) }
                @for figure in new(&experiment.figures, &criterion.section, &mut shown) { (charts.draw(figure)) }
                @for note in experiment.notes.iter().filter(|note| note.item == criterion.section) { p.about { (note.text) } }
            }
        }
    }
}

/// The figures of a section whose curves are not in `shown`: the experiments of several rivals share the runs of the law alone.
fn new<'a>(figures: &'a [Figure], section: &str, shown: &mut Vec<&'a Figure>) -> Vec<&'a Figure> {
    let mut new = Vec::new();
    for figure in figures.iter().filter(|figure| figure.item == section) {
        if !shown.iter().any(|other| other.panels == figure.panels) {
            shown.push(figure);
            new.push(figure);
        }
    }
    new
}

/// The claims of one title: a table, and a curve if there are enough points.
fn numbers(group: &[Placed<'_>]) -> Markup {
    let claims: Vec<&JudgedClaim> = group.iter().map(|(.., claim)| *claim).collect();
    let has_columns = claims.iter().any(|claim| !claim.column.is_empty());
    html! {
        div.group {
            h4 { (claims[0].title) @if !claims[0].unit.is_empty() { ", " (claims[0].unit) } }
            p.about { (claims[0].cite) "." }
            div.measured {
                div.scroll tabindex="0" role="region" aria-label=(claims[0].title) {
                    table.claims {
                        thead { tr {
                            th scope="col" { @if let Some(axis) = group[0].1.axis_of(&claims[0].column) { (axis.name) } }
                            th.number scope="col" { "measured" }
                            th.number scope="col" { "bound" }
                            th.picture scope="col" { }
                            th scope="col" { span.word { "verdict" } }
                        } }
                        tbody { @for (_, _, anchor, claim) in group {
                            tr id=(anchor) {
                                th.row scope="row" { @if has_columns { (claim.column) } @else { (claim.row) } }
                                td.number.strong {
                                    (words::number(&claim.ours_shown().unwrap_or_else(|| "–".to_owned())))
                                    @if let Some(sd) = claim.sd_shown() { " " span.sd { "± " (sd) } }
                                }
                                td.number.quiet { (table::ends(claim)) }
                                td.picture { @if let Some(picture) = interval::interval(claim) { (picture) } }
                                td.verdict { (words::verdict(&words::look(claim))) }
                            }
                        } }
                    }
                }
                @if let Some(curve) = curve::curve(&claims) { (curve) }
            }
            @for because in words::unique(claims.iter().filter_map(|claim| claim.because.as_deref())) { p.about { (because) } }
        }
    }
}
