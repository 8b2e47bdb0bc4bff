//! Judges criteria by their claims: a verdict, and a sentence with the figure that decides.

use serde::Serialize;

use super::criteria::Criterion;
use crate::reproduce::{ExperimentOutcome, JudgedClaim, Outcome};
use crate::verdict::Verdict;

/// The verdict of a criterion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// All claims of the criterion are within their bounds.
    Met,
    /// At least one claim is not within its bound.
    Missed,
    /// No simulation can judge it, or none of its claims was run.
    NotJudged,
}

/// A criterion with its verdict.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedCriterion {
    /// The section of RFC 9743: `5.1.4`.
    pub section: String,
    /// The title of the criterion.
    pub title: String,
    /// What it asks, in our words.
    pub asks: String,
    /// Whether the law meets the criterion.
    pub ruling: Ruling,
    /// The verdict in words, with the figure that decides.
    pub sentence: String,
    /// The number of its claims within their bounds.
    pub met: usize,
    /// The number of its claims.
    pub claims: usize,
}

pub(super) fn judge(criteria: Vec<Criterion>, outcome: &Outcome) -> Vec<JudgedCriterion> {
    criteria.into_iter().map(|criterion| judged(criterion, outcome)).collect()
}

fn judged(criterion: Criterion, outcome: &Outcome) -> JudgedCriterion {
    let Criterion { section, title, asks, met, not_judged } = criterion;
    let experiments = outcome.papers.iter().flat_map(|paper| &paper.experiments);
    let claims: Vec<Placed<'_>> = experiments
        .flat_map(|experiment| experiment.claims.iter().map(move |claim| (experiment, claim)))
        .filter(|(_, claim)| claim.item == section)
        .collect();
    let missed = claims.iter().filter(|(_, claim)| claim.verdict != Verdict::Reproduced).count();
    // The claim that is furthest beyond its bound, or else nearest to it.
    let decisive = claims.iter().max_by(|(_, a), (_, b)| strain(a).total_cmp(&strain(b)));
    let (ruling, sentence) = match (not_judged, decisive) {
        (Some(because), _) => (Ruling::NotJudged, because),
        (None, None) => (Ruling::NotJudged, "Nothing of it was run.".to_owned()),
        (None, Some(worst)) if missed > 0 => {
            let worst_of = if missed > 1 { "; worst" } else { "" };
            (Ruling::Missed, format!("{missed} of {} bounds missed{worst_of}: {}.", claims.len(), described(worst)))
        }
        (None, Some(nearest)) => {
            (Ruling::Met, format!("{} Nearest to its bound: {}.", met.unwrap_or_default(), described(nearest)))
        }
    };
    JudgedCriterion { section, title, asks, ruling, sentence, met: claims.len() - missed, claims: claims.len() }
}

/// A claim in its experiment.
type Placed<'a> = (&'a ExperimentOutcome, &'a JudgedClaim);

/// The measured value in relation to the nearest end of the band: above 1 it is beyond; infinite if nothing was measured.
fn strain(claim: &JudgedClaim) -> f64 {
    let Some(ours) = claim.measured.ours.as_ref().map(|ours| ours.value).filter(|value| value.is_finite()) else {
        return f64::INFINITY;
    };
    let above = claim.band.high.map_or(0.0, |high| share(ours, high));
    let below = claim.band.low.map_or(0.0, |low| share(low, ours));
    above.max(below)
}

/// `part / whole` of numbers that are not negative.
fn share(part: f64, whole: f64) -> f64 {
    match (part > 0.0, whole > 0.0) {
        (false, _) => 0.0,
        (true, true) => part / whole,
        (true, false) => f64::INFINITY,
    }
}

/// A claim as a part of a sentence: title, place, value and bound.
fn described((experiment, claim): &Placed<'_>) -> String {
    let JudgedClaim { title, row, column, unit, .. } = claim;
    let place = match experiment.axis_of(column) {
        Some(axis) => format!("{} {column}", axis.name),
        None if column.is_empty() => row.clone(),
        None => column.clone(),
    };
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    let bound = match (claim.band.low, claim.band.high) {
        (Some(low), Some(high)) => {
            format!("bound {} to {}{unit}", claim.number_shown(low), claim.number_shown(high))
        }
        (Some(low), None) => format!("at least {}{unit} is asked", claim.number_shown(low)),
        (None, Some(high)) => format!("at most {}{unit} is asked", claim.number_shown(high)),
        (None, None) => "without a bound".to_owned(),
    };
    match claim.ours_shown() {
        Some(ours) => format!("{title} ({place}): {ours}{unit}, {bound}"),
        None => format!("{title} ({place}): {}", claim.because.as_deref().unwrap_or("not measured")),
    }
}
