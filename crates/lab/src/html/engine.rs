//! The second column: our own transport in place of ns-2's agents.

use maud::{Markup, html};

use crate::reproduce::{ExperimentOutcome, JudgedClaim, Outcome, Paper};

use super::words::{self, Anchored, Look};

const AGREES: Look = Look { class: "reproduced", sign: "✓", word: "agrees", plural: "agree" };
const DIFFERS: Look = Look { class: "deviates", sign: "≠", word: "differs", plural: "differ" };
const MISSED: Look = Look { class: "missed", sign: "≠", word: "differs, unexplained", plural: "differ, unexplained" };

/// The look of a claim's second column.
fn look(claim: &JudgedClaim) -> Option<&'static Look> {
    claim.engine.as_ref().map(|engine| match (engine.agrees, engine.is_missed) {
        (true, _) => &AGREES,
        (false, false) => &DIFFERS,
        (false, true) => &MISSED,
    })
}

/// Whether one of several claims has a second column.
pub(super) fn is_in<'a>(mut claims: impl Iterator<Item = &'a JudgedClaim>) -> bool {
    claims.any(|claim| claim.engine.is_some())
}

/// The cell with our transport's value and its relation to the value of ns-2's agents.
pub(super) fn cell(claim: &JudgedClaim) -> Markup {
    html! {
        td.number.engine {
            @if let (Some(shown), Some(look)) = (claim.engine_shown(), look(claim)) {
                (words::number(&shown)) " "
                span class={ "verdict " (look.class) } { (words::number(&claim.engine_stand_shown().unwrap_or_default())) }
            }
        }
    }
}

/// The head of that column.
pub(super) fn head() -> Markup {
    html! { th.number scope="col" title="our own transport in the place of ns-2's agents, and how far it is from them" { "engine" } }
}

/// The differences of our transport, by their reasons.
pub(super) fn differences(paper: &Paper, experiment: &ExperimentOutcome) -> Markup {
    let mut groups: Vec<Vec<Anchored<'_>>> = Vec::new();
    for (index, claim) in experiment.claims.iter().enumerate() {
        let Some(engine) = claim.engine.as_ref().filter(|engine| !engine.agrees) else { continue };
        let anchored = (words::claim_anchor(paper, experiment, index), claim);
        let is_same = |group: &&mut Vec<Anchored<'_>>| group[0].1.engine.as_ref() == Some(engine);
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(anchored),
            None => groups.push(vec![anchored]),
        }
    }
    html! { @if !groups.is_empty() {
        section.anomalies {
            h4 { "Where our transport differs from ns-2's agents" }
            @for group in &groups { (difference(group)) }
        }
    } }
}

fn difference(group: &[Anchored<'_>]) -> Markup {
    let Some((look, engine)) = look(group[0].1).zip(group[0].1.engine.as_ref()) else { return html! {} };
    html! {
        div class={ "anomaly " (look.class) } {
            p { @if let Some(because) = &engine.because { (because) } @else { "The experiment does not say why." } }
            details.which {
                summary { (words::verdict(look)) ": " (words::count(group.len(), "claim")) }
                ul { @for (anchor, claim) in group {
                    li { a href={ "#" (anchor) } { (words::place(claim)) } " (" (stands(claim)) ")" }
                } }
            }
        }
    }
}

fn stands(claim: &JudgedClaim) -> String {
    let shown = |text: Option<String>| words::number(&text.unwrap_or_default());
    format!("{}, {}", shown(claim.engine_shown()), shown(claim.engine_stand_shown()))
}

/// The number of claims that our transport keeps, for the overview.
pub(super) fn tally(outcome: &Outcome) -> Markup {
    let [numbers, others] = outcome.engine_counts();
    html! { @if numbers.claims + others.claims > 0 {
        div.tally {
            p.title { "Our transport in the place of ns-2's agents" }
            p.figure { (numbers.agree + others.agree) span.of { " of " (numbers.claims + others.claims) } }
            div.bar aria-hidden="true" {
                span.reproduced style={ "flex-grow:" (numbers.agree + others.agree) } {}
                span.deviates style={ "flex-grow:" (numbers.claims + others.claims - numbers.agree - others.agree) } {}
            }
            p.parts {
                (numbers.agree) " of " (numbers.claims) " numbers are within 5 %, "
                (others.agree) " of " (others.claims) " orders, times and shapes hold"
                @if others.kept_by_none > 0 { ", " (others.kept_by_none) " do not with ns-2's agents either" }
            }
        }
    } }
}
