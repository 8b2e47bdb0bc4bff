//! Coarse claims: they are reproduced, and would be with other inputs as well.

use maud::{Markup, html};

use crate::reproduce::{ExperimentOutcome, JudgedClaim, Paper};

use super::words;

/// A mark beside a verdict.
pub(super) fn mark(claim: &JudgedClaim) -> Markup {
    html! { @if claim.is_coarse { span.coarse title="no change of alpha, queues, windows or error rates by a fifth flips it" { "coarse" } } }
}

/// The list of coarse claims of an experiment.
pub(super) fn list(paper: &Paper, experiment: &ExperimentOutcome) -> Markup {
    let coarse: Vec<(usize, &JudgedClaim)> =
        experiment.claims.iter().enumerate().filter(|(_, claim)| claim.is_coarse).collect();
    html! { @if !coarse.is_empty() {
        section.anomalies {
            h4 { "Coarse" }
            div.anomaly.holds {
                p { "No change of alpha, queues, windows or error rates by a fifth flips these: that they come out says little." }
                details.which {
                    summary { (words::count(coarse.len(), "claim")) }
                    ul { @for (index, claim) in coarse {
                        li { a href={ "#" (words::claim_anchor(paper, experiment, index)) } { (words::place(claim)) } " (" (claim.title) ")" }
                    } }
                }
            }
        }
    } }
}
