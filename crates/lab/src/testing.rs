//! What tests of scenarios share.

use crate::diagnostic::Diagnostic;
use crate::document::Document;
use crate::report::Report;
use crate::run;
use crate::scenario::Scenario;
use crate::world::{Recording, Simulation};

/// The scenario of a text, which messages call `chain.toml`, with these keys set.
pub(crate) fn parse(text: &str, keys: &[&str]) -> Result<Scenario, Diagnostic> {
    let mut document = Document::parse("chain.toml", text)?;
    keys.iter().try_for_each(|key| document.set(key))?;
    Scenario::parse(&document)
}

/// The same for a scenario that is valid.
#[track_caller]
pub(crate) fn parsed(text: &str, keys: &[&str]) -> Scenario {
    parse(text, keys).unwrap_or_else(|error| panic!("{error}"))
}

/// The report of its run.
#[track_caller]
pub(crate) fn run(text: &str, keys: &[&str]) -> Report {
    run::run(&parsed(text, keys)).unwrap()
}

/// A simulation at its end.
#[track_caller]
pub(crate) fn ran<'a>(scenario: &'a Scenario, recording: Recording<'a>) -> Simulation<'a> {
    let mut simulation = Simulation::build(scenario, recording).unwrap();
    simulation.run();
    simulation
}
