//! Every claim as a square, paper by paper and item by item.

use maud::{Markup, html};

use crate::reproduce::{JudgedClaim, Outcome, Paper, Total, Under, item_rank};

use super::engine;
use super::words::{self, DEVIATES, HOLDS, Look, MISSED, NOT_REPRODUCIBLE, REPRODUCED};

/// An item with more claims has the whole width: in half of it, it would need more than three lines of squares.
const SQUARES_MAX: usize = 39;

pub(super) fn overview(outcome: &Outcome) -> Markup {
    let totals = outcome.totals();
    html! {
        section #overview {
            h2.visually-hidden { "Overview" }
            div.tallies {
                @for total in totals.iter().filter(|total| total.under.is_result()) { (tally(total)) }
                (engine::tally(outcome))
            }
            (others(&totals))
            p.legend #legend {
                @for look in [REPRODUCED, HOLDS, DEVIATES, MISSED, NOT_REPRODUCIBLE] {
                    span.entry { span class={ "cell " (look.class) } aria-hidden="true" { (sign(&look)) } (look.word) }
                }
                span.entry { span.cell.reproduced.foreign aria-hidden="true" {} "not the paper's claim" }
                @if outcome.claims().any(|claim| claim.is_coarse) {
                    span.entry { span.cell.reproduced.coarse aria-hidden="true" {} "coarse: nothing that we changed flips it" }
                }
            }
            div.matrix role="group" aria-label="Claims as squares" aria-describedby="legend" { @for paper in &outcome.papers { (row(paper)) } }
        }
    }
}

/// The verdicts of the claims of one category, in words and as a bar.
fn tally(total: &Total) -> Markup {
    let good = if total.under.is_result() { REPRODUCED } else { HOLDS };
    let good_word = good.plural;
    let counts: Vec<(Look, usize)> = [
        (good, total.good),
        (DEVIATES, total.explained),
        (MISSED, total.open + total.missed),
        (NOT_REPRODUCIBLE, total.not_reproducible),
    ]
    .into_iter()
    .filter(|(_, count)| *count > 0)
    .collect();
    html! {
        div.tally title=(total.under.meaning()) {
            p.title { (words::capital(total.under.name())) }
            p.figure { (total.good) span.of { " of " (total.claims) } }
            p.parts { span.quiet { "from " (words::count(total.places, "place")) } }
            div.bar aria-hidden="true" {
                @for (look, count) in &counts { span class=(look.class) style={ "flex-grow:" (count) } {} }
            }
            p.parts {
                @for (look, count) in &counts { span class={ "verdict " (look.class) } { (count) " " @if *count == 1 { (look.word) } @else { (look.plural) } } " " }
                @if total.coarse > 0 { span.quiet { (total.coarse) " of the " (good_word) " coarse" } }
            }
        }
    }
}

/// The claims that are no results, in one line, so that they do not look like results.
fn others(totals: &[Total]) -> Markup {
    let others: Vec<&Total> = totals.iter().filter(|total| !total.under.is_result()).collect();
    html! { @if !others.is_empty() {
        dl.others {
            dt { "Not results" }
            @for total in others {
                dd {
                    b { (total.good) " of " (total.claims) } " " (total.under.name())
                    @if total.claims == 1 { " holds" } @else { " hold" }
                    span.quiet { ": " (total.under.meaning()) }
                }
            }
        }
    } }
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

/// The claims of a paper by item: tables, then figures, then the text.
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
        claims.sort_by_key(|(_, claim)| claim.under() != Under::Paper);
    }
    items.sort_by_key(|(item, _)| item_rank(item));
    items
}

fn cell(anchor: &str, claim: &JudgedClaim) -> Markup {
    let look = words::look(claim);
    let ours = claim.ours_shown().unwrap_or_else(|| "nothing".to_owned());
    let (place, theirs, coarse) =
        (words::place(claim), words::theirs(claim.source), if claim.is_coarse { ", coarse" } else { "" });
    let title = format!("{place}: {theirs} {}, ours {ours} {}; {}{coarse}", claim.published, claim.unit, look.word);
    html! {
        a class={ "cell " (look.class) @if claim.under() != Under::Paper { " foreign" } @if claim.is_coarse { " coarse" } } href={ "#" (anchor) } title=(title)
            aria-label=(title) { (sign(&look)) }
    }
}

/// The sign of a verdict. A reproduced claim has none, so that the others stand out.
fn sign(look: &Look) -> &'static str {
    if [REPRODUCED.class, HOLDS.class].contains(&look.class) { "" } else { look.sign }
}
