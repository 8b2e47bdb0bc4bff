//! The section of a paper: its question, its statements, and its experiments.

use maud::{Markup, html};

use crate::experiment::{ClaimKind, Source};
use crate::reproduce::{JudgedClaim, Paper};

use super::words::Anchored;
use super::{coarse, engine, experiment, interval, table, words};

/// The section; `charts` draws the figures of an experiment.
pub(super) fn paper(paper: &Paper, playground: Option<&str>, charts: &mut experiment::Charts) -> Markup {
    html! {
        section.paper id=(words::paper_anchor(paper)) {
            header {
                @if paper.title != paper.key { p.key { (paper.key) } }
                h2 { (paper.title) }
                @if !paper.question.is_empty() { p.question { (paper.question) } }
                p.about { @for total in paper.totals() { (words::capital(total.under.name())) ": " (total.good) " of " (total.claims) ". " } "To run it again:" }
                (command(&paper.command))
            }
            (statements(paper))
            @for one in words::ordered(paper) { (experiment::experiment(paper, one, playground, charts)) }
        }
    }
}

/// A command to type.
fn command(command: &str) -> Markup {
    html! { p.command { code { (command) } button.copy type="button" data-copy=(command) { "Copy" } } }
}

/// The paper's statements in words and the numbers of its text, as a checklist.
fn statements(paper: &Paper) -> Markup {
    let mut statements: Vec<Anchored<'_>> = Vec::new();
    for experiment in words::ordered(paper) {
        for (index, claim) in experiment.claims.iter().enumerate().filter(|(_, claim)| words::is_statement(claim)) {
            statements.push((words::claim_anchor(paper, experiment, index), claim));
        }
    }
    if statements.is_empty() {
        return html! {};
    }
    let has_engine = engine::is_in(statements.iter().map(|(_, claim)| *claim));
    html! {
        section.statements {
            h3 { "Statements" }
            div.scroll tabindex="0" role="region" aria-label="Statements" {
                table.checklist {
                    thead { tr {
                        th scope="col" { span.visually-hidden { "verdict" } }
                        th scope="col" { "the paper says" }
                        th.number scope="col" { "published" }
                        th.number scope="col" { "ours" }
                        @if has_engine { (engine::head()) }
                        th.number scope="col" { "interval" }
                        th.picture scope="col" { }
                    } }
                    tbody { @for (anchor, claim) in &statements { (statement(paper, anchor, claim, has_engine)) } }
                }
            }
        }
    }
}

fn statement(paper: &Paper, anchor: &str, claim: &JudgedClaim, has_engine: bool) -> Markup {
    let look = words::look(claim);
    html! {
        tr id=(anchor) {
            td.check { span class={ "mark " (look.class) } title=(look.word) { (look.sign) span.visually-hidden { " " (look.word) } } }
            td.statement {
                span.what { (words::place(claim)) }
                @if claim.source != Source::Paper { @if let Some(source) = words::source(claim.source) { " " span.badge { (source) } } }
                (coarse::mark(claim))
                span.cite { (words::cite(paper, claim)) }
            }
            td class=(words::number_class(claim)) { (words::number(&claim.published.to_string())) @if claim.published.is_number() { (unit(&claim.unit)) } }
            td.number.strong {
                @if claim.kind == ClaimKind::Order { span.unit { "ahead by " } }
                (words::number(&claim.ours_shown().unwrap_or_else(|| "–".to_owned())))
                @if let Some(sd) = claim.sd_shown() { " " span.sd { "± " (sd) } }
                (unit(&claim.unit))
            }
            @if has_engine { (engine::cell(claim)) }
            td.number.quiet { (table::ends(claim)) }
            td.picture { @if let Some(picture) = interval::interval(claim) { (picture) } }
        }
    }
}

fn unit(unit: &str) -> Markup {
    html! { @if !unit.is_empty() { " " span.unit { (unit) } } }
}
