//! Runs the jobs of a plan in parallel.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use super::figures::{self, Drawn};
use super::plan::{Job, Plan};
use crate::experiment::Experiment;
use crate::parallel;
use crate::run::{Run, run_recorded};

/// Runs the jobs of a plan in parallel, begun in their order. `on_run` is given each as it is done, with what figures show of it. If it breaks,
/// what runs goes on to its end, unheard, and nothing more begins.
pub(super) fn work(
    plan: &Plan<'_>,
    jobs: NonZeroUsize,
    mut on_run: impl FnMut(usize, Run, Option<Drawn>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let stopped = AtomicBool::new(false);
    let is_stopped = || stopped.load(Ordering::Relaxed);
    let work = |index: usize| {
        let job = &plan.jobs[index];
        if is_stopped() { None } else { Some(run(job, plan.experiments[job.experiment])) }
    };
    parallel::as_done(plan.jobs.len(), jobs, work, |index, result| {
        if let Some((run, drawn)) = result.filter(|_| !is_stopped()) {
            stopped.store(on_run(index, run, drawn).is_break(), Ordering::Relaxed);
        }
    });
    if stopped.into_inner() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Nothing is recorded that nobody asks for.
fn run(job: &Job, experiment: &Experiment) -> (Run, Option<Drawn>) {
    let measures = || job.measures.iter().map(|&measure| &experiment.measures()[measure]);
    let measured = measures().flat_map(|(_, expression)| expression.series());
    let series: Vec<String> = measured.chain(job.shown.iter().flat_map(|shown| shown.series.clone())).collect();
    let (run, trace) = run_recorded(&job.scenario, &series, measures());
    let drawn = job.shown.as_ref().map(|shown| figures::draw(experiment, &shown.variant, &trace));
    (run, drawn)
}
