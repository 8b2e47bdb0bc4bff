//! Makes the scenario of a variant: the file with the values of the variant.

use super::file::FileKeys;
use super::{Experiment, Variant};
use crate::diagnostic::Diagnostic;
use crate::document::{Document, Node};
use crate::scenario::Scenario;

/// The scenarios of a variant.
pub(crate) struct Varied {
    /// The scenario with the transports of the file.
    pub(crate) own: Scenario,
    /// The scenario with our own transport in place of ns-2's agents, if requested and if there is such a flow.
    pub(crate) twin: Option<Scenario>,
}

/// The scenarios of a variant. [`Experiment::twin`] says which flows of the twin are replaced.
///
/// # Errors
/// If the variant is not a valid scenario.
pub(crate) fn vary(experiment: &Experiment, variant: &Variant, with_twin: bool) -> Result<Varied, Diagnostic> {
    let own = build(&experiment.document, chosen(experiment, variant), Runner::File)?
        .expect("a file has the flows that are in it");
    let twin = match with_twin {
        // The keys of `[engine]` override axes.
        true => build(&experiment.document, chosen(experiment, variant).chain(&experiment.engine), Runner::Engine)?,
        false => None,
    };
    Ok(Varied { own, twin })
}

/// The keys and values that a variant sets.
fn chosen<'a>(experiment: &'a Experiment, variant: &'a Variant) -> impl Iterator<Item = &'a (String, Node)> {
    experiment.axes.iter().zip(variant).flat_map(|(axis, &value)| &axis.values[value].assignments)
}

/// [`Experiment::content`].
pub(super) fn content(experiment: &Experiment, variant: &Variant) -> Result<String, Diagnostic> {
    Ok(experiment.document.with(chosen(experiment, variant))?.canonical(&NOT_RUN))
}

/// [`Experiment::written`].
pub(super) fn written(experiment: &Experiment, variant: &Variant, seed: u64) -> Result<String, Diagnostic> {
    let question: String =
        experiment.question().lines().map(|line| format!("# {line}").trim_end().to_owned() + "\n").collect();
    let document = experiment.document.with(chosen(experiment, variant))?;
    let text = |without: &[&str]| format!("{question}seed = {seed}\n{}", document.written(without));
    // A measure may be beyond the end of a shorter variant.
    let whole = text(&NOT_RUN);
    match Document::parse(experiment.file(), &whole).and_then(Experiment::parse) {
        Ok(_) => Ok(whole),
        Err(_) => Ok(text(&[&NOT_RUN[..], &["measure"]].concat())),
    }
}

/// Tables of a file that do not change a run, and the seed, which is not part of the content.
const NOT_RUN: [&str; 8] = ["seed", "axis", "experiment", "engine", "claim", "table", "note", "figure"];

/// The transports of a scenario.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runner {
    /// Those of the file.
    File,
    /// Our own transport where it can replace ns-2's agents.
    Engine,
}

/// The scenario of a file with other values; `None` if our own transport is requested and replaces no flow of it.
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
/// Each variant that involves chance has seeds of its own. A paper's numbers are single runs, and the papers do not say that two of them share
/// random numbers; so a ratio of two must vary like a ratio of independent draws. Variant v has the seeds from `seed + v · 10000` on, counted
/// over all combinations of the axes, for any number of seeds.
pub(crate) fn seeds(experiment: &Experiment, variant: &Variant, scenario: &Scenario, count: Option<u32>) -> (u64, u32) {
    if !scenario.is_random() {
        return (scenario.seed, 1);
    }
    let number =
        experiment.axes.iter().zip(variant).fold(0, |number, (axis, &value)| number * axis.values.len() + value);
    (scenario.seed.wrapping_add(number as u64 * SEEDS_OF_A_VARIANT), count.unwrap_or(experiment.seeds))
}

const SEEDS_OF_A_VARIANT: u64 = 10_000;
