//! The second column: the claims with our own transport in place of ns-2's agents.

use super::BesideEngine;
use crate::experiment::{Claim, ClaimKind};
use crate::expression::ExpressionError;
use crate::statistics::Sample;
use crate::verdict::Verdict;

/// A relative difference of our transport from ns-2's agents above this needs a reason.
const NEAR: f64 = 0.05;

/// Compares our transport with ns-2's agents: with their number, or with the order, time or shape that they keep.
pub(super) fn beside(
    claim: &Claim,
    verdict: Verdict,
    ours: &Result<Sample, ExpressionError>,
    engine: &Result<Sample, ExpressionError>,
) -> BesideEngine {
    let agrees = match (ours, engine) {
        (Ok(ours), Ok(engine)) if claim.kind == ClaimKind::Number => is_near(ours.mean(), engine.mean()),
        (_, Ok(engine)) => claim.band.admits(claim.published.number(), engine),
        (_, Err(_)) => false,
    };
    let because = match engine {
        _ if agrees => None,
        Err(error) => Some(error.to_string()),
        Ok(_) => claim.engine_because.clone(),
    };
    // Our transport need not fulfil a claim that ns-2's agents do not fulfil.
    let is_held_to = claim.kind == ClaimKind::Number || verdict == Verdict::Reproduced;
    let is_missed = !agrees && is_held_to && (claim.engine_because.is_none() || engine.is_err());
    BesideEngine { agrees, because, is_missed }
}

fn is_near(ours: f64, engine: f64) -> bool {
    (engine - ours).abs() <= NEAR * ours.abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_percent_is_near_and_nothing_is_near_to_nothing_only() {
        assert!(is_near(100.0, 105.0) && is_near(-100.0, -95.0) && is_near(0.0, 0.0));
        assert!(!is_near(100.0, 105.1) && !is_near(100.0, 94.9) && !is_near(0.0, 0.001) && !is_near(1.0, f64::NAN));
    }
}
