//! Every claim as a square, paper by paper and item by item.

use maud::{Markup, html};

use crate::experiment::Source;
use crate::reproduce::{JudgedClaim, Outcome, Paper, item_rank};

use super::engine;
use super::words::{self, DEVIATES, Look, MISSED, NOT_REPRODUCIBLE, REPRODUCED};

/// An item of more claims has the whole width: three lines of squares would be four and more.
const SQUARES_MAX: usize = 39;

pub(super) fn overview(outcome: &Outcome) -> Markup {
    let of =
        |wanted: &dyn Fn(Source) -> bool| outcome.claims().filter(|claim| wanted(claim.source)).collect::<Vec<_>>();
    let published = of(&|source| source == Source::Paper);
    let others = of(&|source| source != Source::Paper);
    html! {
        section #overview {
            h2.visually-hidden { "Overview" }
            div.tallies {
                (tally("Claims of the papers", &published))
                @if !others.is_empty() { (tally("Checks by derivation and by other implementations", &others)) }
                (engine::tally(outcome))
            }
            div.matrix { @for paper in &outcome.papers { (row(paper)) } }
            p.legend {
                @for look in [REPRODUCED, DEVIATES, MISSED, NOT_REPRODUCIBLE] {
                    span.entry { span class={ "cell " (look.class) } aria-hidden="true" { (sign(&look)) } (look.word) }
                }
                span.entry { span.cell.reproduced.foreign aria-hidden="true" {} "not the paper's claim" }
            }
        }
    }
}

/// How many claims there are of each verdict, in words and as a bar.
fn tally(title: &str, claims: &[&JudgedClaim]) -> Markup {
    let counts: Vec<(Look, usize)> = [REPRODUCED, DEVIATES, MISSED, NOT_REPRODUCIBLE]
        .into_iter()
        .map(|look| {
            let count = claims.iter().filter(|claim| words::look(claim).class == look.class).count();
            (look, count)
        })
        .filter(|(_, count)| *count > 0)
        .collect();
    html! {
        div.tally {
            p.title { (title) }
            p.figure { @if let Some((_, count)) = counts.iter().find(|(look, _)| look.class == REPRODUCED.class) { (count) } @else { "0" } span.of { " of " (claims.len()) } }
            div.bar aria-hidden="true" {
                @for (look, count) in &counts { span class=(look.class) style={ "flex-grow:" (count) } {} }
            }
            p.parts { @for (look, count) in &counts { span class={ "verdict " (look.class) } { (count) " " @if *count == 1 { (look.word) } @else { (look.plural) } } " " } }
        }
    }
}

fn row(paper: &Paper) -> Markup {
    html! {
        div.paper {
            div.name {
                a href={ "#" (words::paper_anchor(paper)) } { (paper.key) }
                @if paper.title != paper.key { p { (paper.title) } }
            }
            div.items { @for (item, claims) in items(paper) {
                div class={ "item" @if claims.len() > SQUARES_MAX { " large" } } {
                    span.label { (words::item(item)) }
                    div.cells { @for (anchor, claim) in claims { (cell(&anchor, claim)) } }
                }
            } }
        }
    }
}

/// The claims of a paper by item: tables, then figures, then what the text says.
fn items(paper: &Paper) -> Vec<(&str, Vec<(String, &JudgedClaim)>)> {
    let mut items: Vec<(&str, Vec<(String, &JudgedClaim)>)> = Vec::new();
    for experiment in &paper.experiments {
        for (index, claim) in experiment.claims.iter().enumerate() {
            let anchored = (words::claim_anchor(paper, experiment, index), claim);
            match items.iter_mut().find(|(item, _)| *item == claim.item) {
                Some((_, claims)) => claims.push(anchored),
                None => items.push((&claim.item, vec![anchored])),
            }
        }
    }
    for (_, claims) in &mut items {
        claims.sort_by_key(|(_, claim)| claim.source != Source::Paper);
    }
    items.sort_by_key(|(item, _)| item_rank(item));
    items
}

fn cell(anchor: &str, claim: &JudgedClaim) -> Markup {
    let look = words::look(claim);
    let ours = claim.ours_shown().unwrap_or_else(|| "nothing".to_owned());
    let title =
        format!("{}: published {}, ours {ours} {}; {}", words::place(claim), claim.published, claim.unit, look.word);
    html! {
        a class={ "cell " (look.class) @if claim.source != Source::Paper { " foreign" } } href={ "#" (anchor) } title=(title)
            aria-label=(title) { (sign(&look)) }
    }
}

/// What is reproduced needs no sign: the eye shall find the others.
fn sign(look: &Look) -> &'static str {
    if look.class == REPRODUCED.class { "" } else { look.sign }
}
