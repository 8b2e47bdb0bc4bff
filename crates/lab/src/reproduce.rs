//! Runs experiments and judges their claims.

mod asked;
mod command;
mod described;
mod engine;
mod figures;
mod folder;
mod json;
mod judge;
mod judged;
mod outcome;
mod plan;
mod sensitivity;
mod shown;
mod table;
mod totals;
mod work;

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::time::Instant;

pub use command::command;
use figures::Drawings;
pub use folder::{Which, load};
pub use outcome::{
    BesideEngine, DescribedFlow, DescribedLink, DescribedNetwork, EngineCount, ExperimentOutcome, Figure, JudgedBand,
    JudgedClaim, JudgedNote, Measured, Measurement, Outcome, Panel, Paper, PublishedValue, SCHEMA, Series, Style,
    VariedAxis,
};
pub use sensitivity::{Shaken, shake};
pub use shown::{item_name, item_rank};
pub use totals::{Total, Under};

use self::judged::Judged;
use self::plan::Plan;
use self::work::work;
use crate::diagnostic::Diagnostic;
use crate::experiment::Experiment;
use crate::papers;

/// The options of `reproduce`.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of parallel runs.
    pub jobs: NonZeroUsize,
    /// The number of seeds, in place of the experiments' own.
    pub seeds: Option<u32>,
}

/// Observes the progress. A closure observes runs alone.
pub trait Watch {
    /// `done` of `total` runs are done.
    fn runs(&mut self, done: usize, total: usize);

    /// All runs of a paper are done and its claims are judged. Its figures are not drawn yet.
    fn paper(&mut self, _paper: &Paper) {}

    /// Whether to go on; called after each run. If not, the present runs are finished and no other begins.
    fn goes_on(&self) -> bool {
        true
    }
}

impl<F: FnMut(usize, usize)> Watch for F {
    fn runs(&mut self, done: usize, total: usize) {
        self(done, total);
    }
}

/// Runs the experiments and judges their claims: the papers first, in order, then derivations and our own questions.
///
/// # Errors
/// If a variant is not a valid scenario. It is found before anything runs.
///
/// # Panics
/// If `watch` stops it. [`reproduce_until`] returns `None` then.
pub fn reproduce(experiments: &[Experiment], options: Options, watch: impl Watch) -> Result<Outcome, Diagnostic> {
    reproduce_until(experiments, options, watch).map(|outcome| outcome.expect("the watcher lets it go on"))
}

/// Runs the experiments and judges their claims, as [`reproduce`] does. `None` if `watch` stops it.
///
/// # Errors
/// As [`reproduce`].
pub fn reproduce_until(
    experiments: &[Experiment],
    options: Options,
    mut watch: impl Watch,
) -> Result<Option<Outcome>, Diagnostic> {
    let begin = Instant::now();
    let mut experiments: Vec<&Experiment> = experiments.iter().collect();
    experiments.sort_by_key(|experiment| (papers::rank(&experiment.paper), experiment.paper.as_str()));
    let plan = Plan::of_claims(experiments, options.seeds)?;
    let mut judged = Judged::new(&plan, options.seeds);
    let mut drawings = Drawings::new();
    let (mut done, total) = (0, plan.jobs.len());
    watch.runs(done, total);
    judged.judge(&mut watch);
    if !watch.goes_on() {
        return Ok(None);
    }
    let worked = work(&plan, options.jobs, |job, run, drawn| {
        done += 1;
        watch.runs(done, total);
        drawings.extend(drawn.map(|drawn| (job, drawn)));
        judged.add(job, run);
        judged.judge(&mut watch);
        if watch.goes_on() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    if worked.is_break() {
        return Ok(None);
    }
    let (runs, hash) = judged.hash();
    let mut papers = judged.papers;
    let outcomes = papers.iter_mut().flat_map(|paper| &mut paper.experiments);
    for (index, outcome) in outcomes.enumerate() {
        outcome.figures = figures::figures(&plan, index, &drawings);
    }
    let of_papers = plan.experiments.iter().filter(|experiment| papers::is_paper(&experiment.paper)).count();
    // Where there are only papers, or none, all is the default.
    let which = if (1..plan.experiments.len()).contains(&of_papers) { Which::All } else { Which::Papers };
    Ok(Some(Outcome {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        wall_seconds: begin.elapsed().as_secs_f64(),
        hash,
        runs,
        seeds: options.seeds,
        command: command(plan.experiments.first().map(|experiment| experiment.file()), which, options.seeds),
        papers,
    }))
}

#[cfg(test)]
mod tests;
