//! Makes the scenario of a variant: the file with the values that the variant sets.

use super::file::FileKeys;
use super::{Experiment, Variant};
use crate::diagnostic::Diagnostic;
use crate::document::{Document, Node};
use crate::scenario::Scenario;

/// The scenarios of a variant.
pub(crate) struct Varied {
    /// As the file has it.
    pub(crate) own: Scenario,
    /// With our own transport in place of ns-2's agents, if it is asked for and there is such a flow.
    pub(crate) twin: Option<Scenario>,
}

/// The scenarios of a variant. [`Experiment::twin`] says which flows of the twin are others.
///
/// # Errors
/// If the variant is not a valid scenario.
pub(crate) fn vary(experiment: &Experiment, variant: &Variant, with_twin: bool) -> Result<Varied, Diagnostic> {
    let own = build(&experiment.document, chosen(experiment, variant), Runner::File)?
        .expect("a file has the flows that are in it");
    let twin = match with_twin {
        // What holds for the engine overrides axes.
        true => build(&experiment.document, chosen(experiment, variant).chain(&experiment.engine), Runner::Engine)?,
        false => None,
    };
    Ok(Varied { own, twin })
}

/// What the values of a variant set.
fn chosen<'a>(experiment: &'a Experiment, variant: &'a Variant) -> impl Iterator<Item = &'a (String, Node)> {
    experiment.axes.iter().zip(variant).flat_map(|(axis, &value)| &axis.values[value].assignments)
}

/// [`Experiment::content`].
pub(super) fn content(experiment: &Experiment, variant: &Variant) -> Result<String, Diagnostic> {
    Ok(experiment.document.with(chosen(experiment, variant))?.canonical(&NOT_RUN))
}

/// Tables of a file that do not decide about a run, and the seed, which is not part of the content.
const NOT_RUN: [&str; 8] = ["seed", "axis", "experiment", "engine", "claim", "table", "note", "figure"];

/// What runs a scenario.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runner {
    /// What the file names.
    File,
    /// Our own transport where it can replace ns-2's agents.
    Engine,
}

/// The scenario of a file with other values; nothing if our own transport replaces no flow of it.
fn build<'a>(
    document: &Document,
    values: impl Iterator<Item = &'a (String, Node)>,
    runner: Runner,
) -> Result<Option<Scenario>, Diagnostic> {
    let document = document.with(values)?;
    let mut keys: FileKeys = document.decode()?;
    if runner == Runner::Engine && !keys.replace_agents() {
        return Ok(None);
    }
    keys.scenario(&document).map(Some)
}

/// The first seed of a variant and the number of seeds: `count`, but one without chance.
///
/// Each variant that involves chance has seeds of its own: a paper's cells are single runs, and nothing says that two of them share random
/// numbers, so a ratio of two must spread as a ratio of independent draws does. Variant v has the seeds from `seed + v · 10000` on, counted
/// over all combinations of the axes, whatever the number of seeds is.
pub(crate) fn seeds(experiment: &Experiment, variant: &Variant, scenario: &Scenario, count: Option<u32>) -> (u64, u32) {
    if !scenario.is_random() {
        return (scenario.seed, 1);
    }
    let number =
        experiment.axes.iter().zip(variant).fold(0, |number, (axis, &value)| number * axis.values.len() + value);
    (scenario.seed.wrapping_add(number as u64 * SEEDS_OF_A_VARIANT), count.unwrap_or(experiment.seeds))
}

const SEEDS_OF_A_VARIANT: u64 = 10_000;
