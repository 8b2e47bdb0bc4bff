//! The claims that deviate, with their reasons, and the remarks.

use maud::{Markup, html};

use crate::reproduce::{ExperimentOutcome, Paper};
use crate::verdict::Verdict;

use super::words::{self, Anchored};

/// More claims than this with one reason are shown as a number, and listed on a click.
const LISTED_MAX: usize = 6;

pub(super) fn anomalies(paper: &Paper, experiment: &ExperimentOutcome) -> Markup {
    let groups = by_reason(paper, experiment);
    if groups.is_empty() && experiment.notes.is_empty() {
        return html! {};
    }
    html! {
        section.anomalies {
            @if !groups.is_empty() {
                h4 { "Anomalies" }
                @for group in &groups { (anomaly(group)) }
            }
            @if !experiment.notes.is_empty() {
                h4 { "Remarks" }
                ul { @for note in &experiment.notes { li { span.item { (words::item(&note.item)) } " " (note.text) } } }
            }
        }
    }
}

/// The claims that deviate, grouped by verdict and reason.
fn by_reason<'a>(paper: &Paper, experiment: &'a ExperimentOutcome) -> Vec<Vec<Anchored<'a>>> {
    let mut groups: Vec<Vec<Anchored<'_>>> = Vec::new();
    let odd = experiment
        .claims
        .iter()
        .enumerate()
        .filter(|(_, claim)| matches!(claim.verdict, Verdict::Deviates | Verdict::NotReproducible));
    for (index, claim) in odd {
        let anchored = (words::claim_anchor(paper, experiment, index), claim);
        let is_same = |group: &&mut Vec<Anchored<'_>>| {
            group[0].1.because == claim.because && words::look(group[0].1).class == words::look(claim).class
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(anchored),
            None => groups.push(vec![anchored]),
        }
    }
    groups
}

fn anomaly(group: &[Anchored<'_>]) -> Markup {
    let look = words::look(group[0].1);
    let because = html! { p { @if let Some(because) = &group[0].1.because { (because) } @else { "The experiment does not say why." } } };
    html! {
        div class={ "anomaly " (look.class) } {
            @if group.len() > LISTED_MAX {
                (because)
                details.which {
                    summary { (words::verdict(&look)) ": " (words::count(group.len(), "claim")) }
                    // A title once, above the claims that have it in the report.
                    @for claims in group.chunk_by(|a, b| a.1.title == b.1.title) {
                        p.title { (claims[0].1.title) }
                        ul { @for claim in claims { li { (which(claim)) } } }
                    }
                }
            } @else {
                p.which {
                    (words::verdict(&look)) ": "
                    @for (index, claim) in group.iter().enumerate() { @if index > 0 { "; " } (which(claim)) }
                }
                (because)
            }
        }
    }
}

/// A claim with its statement and our value.
fn which((anchor, claim): &Anchored<'_>) -> Markup {
    html! {
        a href={ "#" (anchor) } { (words::place(claim)) }
        " (" (words::number(&claim.published.to_string())) @if let Some(ours) = claim.ours_shown() { ", ours " (words::number(&ours)) } ")"
    }
}
