//! Runs experiments and judges their claims.

mod command;
mod engine;
mod figures;
mod folder;
mod json;
mod judge;
mod outcome;
mod plan;
mod sensitivity;
mod shown;
mod table;
mod topology;
mod totals;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

pub use command::command;
use figures::Drawings;
pub use folder::load;
pub use outcome::{
    BesideEngine, EngineCount, ExperimentOutcome, Figure, JudgedBand, JudgedClaim, JudgedNote, Measured, Measurement,
    Outcome, Panel, Paper, PublishedValue, SCHEMA, Series, Style, Topology, TopologyFlow, TopologyLink, VariedAxis,
};
pub use sensitivity::{Shaken, shake};
pub use shown::{item_name, item_rank};
pub use totals::{Total, Under};

use self::judge::Results;
use self::plan::Plan;
use crate::diagnostic::Diagnostic;
use crate::experiment::Experiment;
use crate::papers;
use crate::parallel;
use crate::run::{self, Run};

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

    /// Whether it is to go on; asked after each run. If not, what runs goes on to its end, and nothing more begins.
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
/// If `watch` does not let it go on; [`reproduce_until`] is for that.
pub fn reproduce(experiments: &[Experiment], options: Options, watch: impl Watch) -> Result<Outcome, Diagnostic> {
    reproduce_until(experiments, options, watch).map(|outcome| outcome.expect("the watcher lets it go on"))
}

/// The same; nothing if `watch` does not let it go on.
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
    let mut plan = Plan::default();
    let mut bases = Vec::new();
    for (index, experiment) in experiments.iter().enumerate() {
        plan.add_judged(index, experiment, options.seeds)?;
        bases.push(experiment.scenario(&vec![0; experiment.axes.len()])?);
    }
    let count = plan.jobs.len();
    for (index, experiment) in experiments.iter().enumerate() {
        plan.add_drawn(index, experiment)?;
    }
    let total = plan.jobs.len();
    let (mut runs, mut drawings): (Vec<Option<Run>>, Vec<Option<Drawings>>) =
        plan.jobs.iter().map(|_| (None, None)).unzip();
    let mut papers: Vec<Paper> = Vec::new();
    // Jobs begin in order, so an early paper is complete long before the last one.
    let (mut done, mut runs_done, mut judged) = (0, 0, 0);
    let mut judge = |runs: &[Option<Run>], watch: &mut dyn Watch| {
        while runs.get(runs_done).is_some_and(Option::is_some) {
            runs_done += 1;
        }
        while let Some(experiment) = experiments.get(judged).filter(|_| plan.ends[judged] <= runs_done) {
            let results = Results { experiment, index: judged, plan: &plan, runs };
            let is_same = papers.last().is_some_and(|paper| paper.key == experiment.paper);
            if !is_same {
                papers.push(paper(experiment, options.seeds));
            }
            let paper = papers.last_mut().expect("one was pushed");
            paper.experiments.push(results.outcome(&bases[judged], options.seeds));
            judged += 1;
            if experiments.get(judged).is_none_or(|next| next.paper != experiment.paper) {
                watch.paper(paper);
            }
        }
    };
    watch.runs(done, total);
    judge(&runs, &mut watch);
    let stopped = AtomicBool::new(!watch.goes_on());
    parallel::each(
        total,
        options.jobs,
        |job| {
            let goes_on = !stopped.load(Ordering::Relaxed);
            goes_on.then(|| plan.jobs[job].run(experiments[plan.jobs[job].experiment]))
        },
        |job, result| {
            let Some((run, drawing)) = result.filter(|_| !stopped.load(Ordering::Relaxed)) else { return };
            done += 1;
            watch.runs(done, total);
            (runs[job], drawings[job]) = (Some(run), drawing);
            judge(&runs, &mut watch);
            stopped.store(!watch.goes_on(), Ordering::Relaxed);
        },
    );
    if stopped.into_inner() {
        return Ok(None);
    }
    let outcomes = papers.iter_mut().flat_map(|paper| &mut paper.experiments);
    for ((outcome, experiment), drawn) in outcomes.zip(&experiments).zip(&plan.drawn) {
        let drawn = drawn.iter().map(|&job| drawings[job].as_ref().expect("each job that is to be drawn has been"));
        outcome.figures = figures::figures(experiment, &drawn.collect::<Vec<_>>());
    }
    // Runs for figures alone are not judged.
    runs.truncate(count);
    let hashes = runs.iter().map(|run| run.as_ref().expect(RUN).report.hash.as_str());
    Ok(Some(Outcome {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        wall_seconds: begin.elapsed().as_secs_f64(),
        hash: run::combined_hash(hashes),
        runs: runs.len(),
        seeds: options.seeds,
        command: command(experiments.first().map(|experiment| experiment.file()), "", options.seeds),
        papers,
    }))
}

/// The invariant of a run's presence.
const RUN: &str = "an experiment is judged when its last run is done";

/// A paper without judged claims.
fn paper(experiment: &Experiment, seeds: Option<u32>) -> Paper {
    let key = experiment.paper.clone();
    let (title, question) = (papers::title(&key).to_owned(), papers::question(&key).to_owned());
    let command = command(Some(experiment.file()), &key, seeds);
    Paper { key, title, question, command, experiments: Vec::new() }
}

#[cfg(test)]
mod tests;
