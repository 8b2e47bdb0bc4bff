//! The evaluation of a congestion law: the criteria of RFC 9743 (BCP 133) with the metrics of RFC 5166, as experiments.
//!
//! `suite` has the experiments, TOML files with marks for the law and its rivals. `criteria` has the criterion of each section of the RFC, `coverage` the
//! lists of other documents. `judge` gives each criterion its verdict from its claims. A bound is in the experiment, at its claim, with its reason, and is
//! the same for every law.

mod contender;
mod coverage;
mod criteria;
mod judge;
mod suite;

use std::num::NonZeroUsize;
use std::sync::Arc;

use anabranch_plugin::Module;
use serde::Serialize;

pub use contender::{Contender, LawError, LawFacts};
pub use coverage::Coverage;
pub use judge::{JudgedCriterion, Ruling};
pub(crate) use suite::given;

use crate::diagnostic::Diagnostic;
use crate::own::Own;
use crate::reproduce::{self, Outcome, Watch};

/// A request for an evaluation.
#[derive(Clone, Debug)]
pub struct Request {
    /// The law under test.
    pub law: Contender,
    /// The rivals, each once.
    pub against: Vec<Contender>,
    /// Whether to run fewer points, with one seed each.
    pub quick: bool,
    /// The number of parallel runs.
    pub jobs: NonZeroUsize,
    /// The number of seeds of each variant, in place of the suite's own.
    pub seeds: Option<u32>,
}

impl Request {
    /// A request for the whole suite. Without `against` the rivals are CUBIC, BBR and Reno, without the law itself.
    ///
    /// # Errors
    /// If one of these texts names no law, or a setting is not one of its law's; see [`Contender::parse_all`].
    pub fn new(law: &str, against: Option<&[String]>, jobs: NonZeroUsize) -> Result<Self, LawError> {
        let against = against.map(|rivals| Contender::parse_all(rivals.iter().map(String::as_str)));
        Ok(Self::of(Contender::parse(law)?, against.transpose()?, jobs))
    }

    /// The command of this request.
    fn command(&self) -> String {
        let mut choices = Vec::new();
        if self.quick {
            choices.push(Choice::flag("quick"));
        }
        if let Some(seeds) = self.seeds {
            choices.push(Choice::value("seeds", seeds.to_string()));
        }
        command(&self.law, &self.against, &choices)
    }

    /// The same with laws that are parsed or made already.
    pub fn of(law: Contender, against: Option<Vec<Contender>>, jobs: NonZeroUsize) -> Self {
        let common = || {
            let common = Contender::parse_all(RIVALS).expect("the registry has them");
            common.into_iter().filter(|rival| *rival != law).collect()
        };
        let against = against.unwrap_or_else(common);
        Self { law, against, quick: false, jobs, seeds: None }
    }
}

/// The default rivals: the laws of the standards track, and the most common other law.
const RIVALS: [&str; 3] = ["cubic", "bbr", "reno"];

/// The name of the document's schema. Its number rises when a field changes its meaning or goes.
pub const SCHEMA: &str = "anabranch-eval/1";

/// The outcome of an evaluation.
#[derive(Clone, Debug, Serialize)]
pub struct Evaluation {
    /// Name of this document's schema.
    pub schema: &'static str,
    /// The law under test.
    pub law: String,
    /// The rivals beside the law, in the order in which they were named.
    pub against: Vec<String>,
    /// The law under test and then the rivals, as the registry describes them.
    pub laws: Vec<LawFacts>,
    /// Whether only a part of the suite was run.
    pub quick: bool,
    /// The command that runs it again.
    pub command: String,
    /// The criteria in the order of the RFC's sections.
    pub criteria: Vec<JudgedCriterion>,
    /// The lists of other documents, with the criteria that cover them.
    pub coverage: Vec<Coverage>,
    /// The experiments with every claim; a claim's `item` is the section of its criterion.
    pub outcome: Outcome,
    /// See [`Evaluation::modules`].
    #[serde(skip)]
    pub(crate) modules: Vec<(String, Arc<Module>)>,
}

impl Evaluation {
    /// The number of criteria with this verdict.
    pub fn count(&self, ruling: Ruling) -> usize {
        self.criteria.iter().filter(|criterion| criterion.ruling == ruling).count()
    }

    /// The modules that the scenarios name, by their names there.
    pub fn modules(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.modules.iter().map(|(name, module)| (name.as_str(), module.bytes()))
    }

    /// The names and texts of the scenarios, as they were run.
    pub fn scenarios(&self) -> impl Iterator<Item = (&str, &str)> {
        let experiments = self.outcome.papers.iter().flat_map(|paper| &paper.experiments);
        experiments.map(|experiment| (experiment.item.as_str(), experiment.source.as_str()))
    }
}

/// Runs the suite and judges the criteria.
///
/// # Errors
/// If a scenario of the suite is not valid with these laws. This is found before anything runs.
///
/// # Panics
/// If `watch` stops the evaluation; [`evaluate_until`] is for that.
pub fn evaluate(request: &Request, watch: impl Watch) -> Result<Evaluation, Diagnostic> {
    evaluate_until(request, watch).map(|evaluation| evaluation.expect("the watcher lets it go on"))
}

/// The same; `None` if `watch` stops the evaluation.
///
/// # Errors
/// As [`evaluate`].
pub fn evaluate_until(request: &Request, watch: impl Watch) -> Result<Option<Evaluation>, Diagnostic> {
    let (criteria, coverage) = (criteria::criteria()?, coverage::coverage()?);
    let experiments = suite::experiments(request)?;
    let seeds = request.seeds.or(request.quick.then_some(1));
    let options = reproduce::Options { jobs: request.jobs, seeds };
    let Some(mut outcome) = reproduce::reproduce_until(&experiments, options, watch)? else { return Ok(None) };
    let command = request.command();
    outcome.command.clone_from(&command);
    for paper in &mut outcome.papers {
        paper.command.clone_from(&command);
        paper.experiments.iter_mut().for_each(|experiment| experiment.command.clone_from(&command));
    }
    Ok(Some(Evaluation {
        schema: SCHEMA,
        law: request.law.label(),
        against: request.against.iter().map(Contender::label).collect(),
        laws: [&request.law].into_iter().chain(&request.against).map(Contender::facts).collect(),
        quick: request.quick,
        command,
        criteria: judge::judge(criteria, &outcome),
        coverage,
        outcome,
        modules: modules([&request.law].into_iter().chain(&request.against)),
    }))
}

/// The modules among the laws, each once, by their names in scenarios.
pub(crate) fn modules<'a>(laws: impl IntoIterator<Item = &'a Contender>) -> Vec<(String, Arc<Module>)> {
    let mut modules: Vec<(String, Arc<Module>)> = Vec::new();
    for (name, own) in laws.into_iter().filter_map(Contender::own) {
        if let Own::Module(module) = own
            && !modules.iter().any(|(other, _)| *other == name)
        {
            modules.push((name, module));
        }
    }
    modules
}

/// An option of a command: its name, its value on the command line, and its value in Python.
pub(crate) struct Choice(&'static str, String, String);

impl Choice {
    pub(crate) fn flag(name: &'static str) -> Self {
        Self(name, String::new(), "True".to_owned())
    }

    pub(crate) fn value(name: &'static str, value: String) -> Self {
        Self(name, format!(" {value}"), value)
    }

    pub(crate) fn list<'a>(name: &'static str, values: impl Iterator<Item = &'a str>) -> Self {
        let values: Vec<&str> = values.collect();
        Self(name, format!(" {}", values.join(",")), format!("{values:?}"))
    }
}

/// The command that evaluates these laws; the call in Python if a law is no file.
pub(crate) fn command(law: &Contender, against: &[Contender], choices: &[Choice]) -> String {
    let arguments: Option<Vec<String>> = [law].into_iter().chain(against).map(Contender::argument).collect();
    if let Some(arguments) = arguments {
        let command = format!("anabranch eval --cc {} --against {}", arguments[0], arguments[1..].join(","));
        return choices.iter().fold(command, |command, Choice(name, value, _)| command + &format!(" --{name}{value}"));
    }
    let name = |law: &Contender| law.argument().map_or_else(|| law.label(), |text| format!("{text:?}"));
    let rivals: Vec<String> = against.iter().map(name).collect();
    let call = format!("anabranch.evaluate({}, against=[{}]", name(law), rivals.join(", "));
    choices.iter().fold(call, |call, Choice(name, _, value)| call + &format!(", {name}={value}")) + ")"
}

#[cfg(test)]
mod tests;
