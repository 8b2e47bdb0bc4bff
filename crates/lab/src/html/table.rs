//! Published numbers beside ours.

use maud::{Markup, html};

use crate::experiment::Source;
use crate::reproduce::{ExperimentOutcome, JudgedClaim, Paper};

use super::words::{self, Anchored};
use super::{bars, coarse, engine, interval};

/// The claims of an experiment that are numbers of a table, by title, in the order of the file.
pub(super) fn groups<'a>(paper: &Paper, experiment: &'a ExperimentOutcome) -> Vec<Vec<Anchored<'a>>> {
    let mut groups: Vec<Vec<Anchored<'_>>> = Vec::new();
    for (index, claim) in experiment.claims.iter().enumerate().filter(|(_, claim)| !words::is_statement(claim)) {
        let anchored = (words::claim_anchor(paper, experiment, index), claim);
        match groups.iter_mut().find(|group| group[0].1.title == claim.title && group[0].1.source == claim.source) {
            Some(group) => group.push(anchored),
            None => groups.push(vec![anchored]),
        }
    }
    groups
}

/// One table.
pub(super) fn table(paper: &Paper, group: &[Anchored<'_>]) -> Markup {
    let claims: Vec<&JudgedClaim> = group.iter().map(|(_, claim)| *claim).collect();
    let first = claims[0];
    let unit = Some(first.unit.as_str()).filter(|unit| claims.iter().all(|claim| claim.unit == *unit));
    let has_columns = claims.iter().any(|claim| !claim.column.is_empty());
    let has_sd = claims.iter().any(|claim| claim.sd_shown().is_some());
    let has_interval = claims.iter().any(|claim| claim.band_shown().is_some());
    let has_engine = engine::is_in(claims.iter().copied());
    html! {
        div class={ "group " @if first.source != Source::Paper { "foreign" } } {
            (heading(paper, first, &claims, unit))
            div.scroll tabindex="0" role="region" aria-label=(first.title) {
                table.claims {
                    thead { tr {
                        th scope="col" { }
                        @if has_columns { th scope="col" { } }
                        th.number scope="col" { (words::theirs(first.source)) }
                        th.number scope="col" { "ours" }
                        @if has_sd { th.sd scope="col" { "± sd" } }
                        @if has_engine { (engine::head()) }
                        th.number scope="col" { "difference" }
                        @if has_interval { th.number scope="col" { "interval" } }
                        th.picture scope="col" { (key(first.source)) }
                        th scope="col" { span.word { "verdict" } }
                    } }
                    @for rows in group.chunk_by(|a, b| has_columns && a.1.row == b.1.row) {
                        tbody { @for (index, (anchor, claim)) in rows.iter().enumerate() {
                            tr id=(anchor) {
                                @if index == 0 { th.row scope="rowgroup" rowspan=(rows.len()) { (claim.row) } }
                                @if has_columns { td.column { (claim.column) } }
                                td class=(words::number_class(claim)) { (words::number(&claim.published.to_string())) (own_unit(claim, unit)) }
                                td.number.strong { (words::number(&claim.ours_shown().unwrap_or_else(|| "–".to_owned()))) }
                                @if has_sd { td.sd { @if let Some(sd) = claim.sd_shown() { "± " (sd) } } }
                                @if has_engine { (engine::cell(claim)) }
                                td.number { (difference(claim)) }
                                @if has_interval { td.number.quiet { (ends(claim)) } }
                                td.picture { @if let Some(picture) = interval::interval(claim) { (picture) } }
                                td.verdict { (words::verdict(&words::look(claim))) (coarse::mark(claim)) }
                            }
                        } }
                    }
                }
            }
            @if let Some(picture) = bars::bars(&claims) { (picture) }
        }
    }
}

/// The key of the interval's picture.
fn key(source: Source) -> Markup {
    let theirs = words::theirs(source);
    html! {
        svg.interval.key viewBox="0 -9 128 18" role="img" aria-label={ "band: interval; tick: " (theirs) "; dot: ours" } {
            line.published x1="6" x2="6" y1="-6" y2="6" {}
            text x="11" y="4" { (theirs) }
            circle.ours.plain cx="80" {}
            text x="88" y="4" { "ours" }
        }
    }
}

fn heading(paper: &Paper, first: &JudgedClaim, claims: &[&JudgedClaim], unit: Option<&str>) -> Markup {
    let cites = words::unique(claims.iter().map(|claim| words::cite(paper, claim)));
    let rules = words::unique(claims.iter().map(|claim| rule(claim)));
    let seeds =
        claims.iter().filter_map(|claim| claim.measured.ours.as_ref()).map(|ours| ours.seeds).max().unwrap_or(1);
    html! {
        h4 {
            (first.title)
            @if let Some(source) = words::source(first.source) { " " span.badge { (source) } }
        }
        p.about {
            @for (index, cite) in cites.iter().enumerate() { @if index > 0 { "; " } @if index == 0 { (words::capital(cite)) } @else { (cite) } } ". "
            @if let Some(unit) = unit.filter(|unit| !unit.is_empty()) { "In " (unit) ". " }
            @for rule in rules { (rule) " " }
            @if seeds > 1 { (seeds) " seeds." }
        }
    }
}

/// The rule by which a claim is reproduced.
fn rule(claim: &JudgedClaim) -> &'static str {
    match claim.band.kind {
        "exact" => "Ours must be equal.",
        "prediction" => "The published number must lie in the 95 % prediction interval of one run of ours.",
        "above" => "Ours must be above zero.",
        _ => "Our mean must lie in the interval.",
    }
}

fn own_unit(claim: &JudgedClaim, unit: Option<&str>) -> Markup {
    html! { @if unit.is_none() { " " span.unit { (claim.unit) } } }
}

/// The difference and, smaller, its share.
fn difference(claim: &JudgedClaim) -> Markup {
    let shown = claim.difference_shown().unwrap_or_default();
    let (value, share) = shown.split_once(' ').unwrap_or((&shown, ""));
    html! { (words::number(value)) @if !share.is_empty() { " " span.share { (words::number(share)) } } }
}

/// The ends of the interval that decides.
pub(super) fn ends(claim: &JudgedClaim) -> String {
    let show = |value: f64| words::number(&claim.number_shown(value));
    match (claim.band.low, claim.band.high) {
        _ if claim.band.kind == "exact" => "exact".to_owned(),
        (Some(low), Some(high)) if low.total_cmp(&high).is_eq() => format!("= {}", show(low)),
        (Some(low), Some(high)) if claim.band.kind == "truncated" => format!("{} … < {}", show(low), show(high)),
        (Some(low), Some(high)) => format!("{} … {}", show(low), show(high)),
        _ if claim.band.kind == "above" => "> 0".to_owned(),
        (Some(low), None) => format!("≥ {}", show(low)),
        (None, Some(high)) => format!("≤ {}", show(high)),
        (None, None) => String::new(),
    }
}
