//! What is asked of a congestion law before others have to live with it: the criteria of RFC 9743 (BCP 133) with the measures of RFC 5166, as
//! experiments.
//!
//! `suite` is the experiments, TOML files like all others, with the law and its rivals put in; `criteria` says what each section of the RFC asks; `judge`
//! gives each its verdict from the claims that belong to it. A bound stands beside its claim, with its reason, and is the same for every law.

mod criteria;
mod judge;
mod suite;

use std::num::NonZeroUsize;

use anabranch_cc::registry::{self, Row};
use serde::Serialize;

pub use judge::{JudgedCriterion, Ruling};

use crate::diagnostic::Diagnostic;
use crate::reproduce::{self, Outcome, Watch};

/// What is evaluated, and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// The law under test.
    pub law: &'static Row,
    /// What it is put beside.
    pub against: Vec<&'static Row>,
    /// Whether fewer points and one seed of each are enough.
    pub quick: bool,
    /// Runs at once.
    pub jobs: NonZeroUsize,
    /// Seeds of each variant with chance in it, instead of the suite's own number.
    pub seeds: Option<u32>,
}

/// The name of the document's schema; its number rises when a field changes its meaning or goes.
pub const SCHEMA: &str = "anabranch-eval/1";

/// What came out.
#[derive(Clone, Debug, Serialize)]
pub struct Evaluation {
    /// Name of this document's schema.
    pub schema: &'static str,
    /// The law under test.
    pub law: String,
    /// What it was put beside.
    pub against: Vec<String>,
    /// Whether only a part of the suite was run.
    pub quick: bool,
    /// What to type to get it again.
    pub command: String,
    /// In the order of the RFC's sections.
    pub criteria: Vec<JudgedCriterion>,
    /// The experiments with every claim; a claim's `item` is the section of its criterion.
    pub outcome: Outcome,
}

impl Evaluation {
    /// How many criteria have this verdict.
    pub fn count(&self, ruling: Ruling) -> usize {
        self.criteria.iter().filter(|criterion| criterion.ruling == ruling).count()
    }
}

/// The laws that one is put beside if nobody says: those of the standards track and BBR, as far as the registry has them, without the law itself.
pub fn rivals_default(law: &Row) -> Vec<&'static Row> {
    let rivals = ["cubic", "bbr", "reno"].into_iter().filter(|name| *name != law.name);
    rivals.filter_map(|name| registry::find(name).ok()).collect()
}

/// Runs the suite and judges the criteria.
///
/// # Errors
/// If a scenario of the suite is none with these laws. It is found before anything runs.
pub fn eval(request: &Request, watch: impl Watch) -> Result<Evaluation, Diagnostic> {
    let criteria = criteria::criteria()?;
    let experiments = suite::experiments(request)?;
    let seeds = request.seeds.or(request.quick.then_some(1));
    let mut outcome = reproduce::reproduce(&experiments, reproduce::Options { jobs: request.jobs, seeds }, watch)?;
    let command = command(request);
    outcome.command.clone_from(&command);
    for paper in &mut outcome.papers {
        paper.command.clone_from(&command);
        paper.experiments.iter_mut().for_each(|experiment| experiment.command.clone_from(&command));
    }
    Ok(Evaluation {
        schema: SCHEMA,
        law: request.law.name.to_owned(),
        against: request.against.iter().map(|row| row.name.to_owned()).collect(),
        quick: request.quick,
        command,
        criteria: judge::judge(criteria, &outcome),
        outcome,
    })
}

fn command(request: &Request) -> String {
    let names: Vec<&str> = request.against.iter().map(|row| row.name).collect();
    let mut command = format!("anabranch eval --cc {} --against {}", request.law.name, names.join(","));
    if request.quick {
        command += " --quick";
    }
    if let Some(seeds) = request.seeds {
        command += &format!(" --seeds {seeds}");
    }
    command
}

#[cfg(test)]
mod tests;
