//! The variants that the claims, the notes and the figures of an experiment need.

use std::collections::BTreeSet;

use crate::experiment::{Claim, CountsAs, Experiment, Piece, Variant};
use crate::expression::Expression;

/// A variant that is needed.
pub(super) struct Asked {
    pub(super) variant: Variant,
    /// Positions of the measures with series that claims and notes use; `None` if only figures show the variant.
    pub(super) judged: Option<BTreeSet<usize>>,
    /// Positions of the measures by which our own transport is compared with ns-2's agents; `None` without a comparison.
    pub(super) compared: Option<BTreeSet<usize>>,
    /// The series that figures show; `None` if no figure shows the variant.
    pub(super) shown: Option<Vec<String>>,
}

impl Asked {
    const fn of(variant: Variant) -> Self {
        Self { variant, judged: None, compared: None, shown: None }
    }
}

/// The variants of an experiment that are needed, each once: in the order of the claims, the notes and the figures.
pub(super) fn asked(experiment: &Experiment) -> Vec<Asked> {
    let noted = experiment.notes.iter().flat_map(|note| &note.pieces).filter_map(|piece| match piece {
        Piece::Value(expression, _) => Some((expression, false)),
        Piece::Text(_) => None,
    });
    let claimed = experiment.claims.iter().flat_map(|claim| {
        let is_compared = claim.counts_as == CountsAs::Result;
        claim.statistic.expressions().iter().map(move |expression| (expression, is_compared))
    });
    let mut asked = needed(experiment, claimed.chain(noted));
    for figure in &experiment.figures {
        let curves = || figure.panels.iter().flat_map(|panel| &panel.curves).map(|curve| curve.of.clone());
        for (variant, _) in &figure.variants {
            of(&mut asked, variant).shown.get_or_insert_default().extend(curves());
        }
    }
    asked
}

/// The variants that these claims of an experiment need, each once.
pub(super) fn asked_by<'a>(experiment: &Experiment, claims: impl Iterator<Item = &'a Claim>) -> Vec<Asked> {
    needed(experiment, claims.flat_map(|claim| claim.statistic.expressions()).map(|expression| (expression, false)))
}

/// The variants that some expressions need, found by evaluating them with a stand-in for every value. The flag of an expression tells whether our
/// own transport is compared by it.
fn needed<'a>(experiment: &Experiment, expressions: impl Iterator<Item = (&'a Expression, bool)>) -> Vec<Asked> {
    let mut needed = Vec::new();
    for (expression, is_compared) in expressions {
        let mut gauge = |variant: &Variant, name: &str| {
            let Asked { judged, compared, .. } = of(&mut needed, variant);
            let measure = experiment.measure_of_series(name);
            judged.get_or_insert_default().extend(measure);
            if is_compared {
                compared.get_or_insert_default().extend(measure);
            }
            Ok(1.0)
        };
        experiment.evaluate(expression, &mut gauge).expect("it was evaluated in the same way when it was read");
    }
    needed
}

/// The entry of a variant, which is added if there is none.
fn of<'a>(asked: &'a mut Vec<Asked>, variant: &Variant) -> &'a mut Asked {
    let position = asked.iter().position(|known| known.variant == *variant).unwrap_or(asked.len());
    if position == asked.len() {
        asked.push(Asked::of(variant.clone()));
    }
    &mut asked[position]
}
