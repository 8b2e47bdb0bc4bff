//! Runs the jobs of a plan in parallel.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use super::figures::{self, Drawn};
use super::plan::{Job, Plan};
use crate::diagnostic::{Diagnostic, Fault, Place};
use crate::experiment::Experiment;
use crate::parallel;
use crate::run::{ControllerFailed, Run, run_recorded};

/// Runs the jobs of a plan in parallel, begun in their order. `on_run` receives each finished run with its curves for figures. If it breaks, the
/// present runs are finished without a call, and no other begins.
///
/// # Errors
/// If a controller of a flow's own fails.
pub(super) fn work(
    plan: &Plan<'_>,
    jobs: NonZeroUsize,
    mut on_run: impl FnMut(usize, Run, Option<Drawn>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, Diagnostic> {
    let stopped = AtomicBool::new(false);
    let is_stopped = || stopped.load(Ordering::Relaxed);
    let work = |index: usize| {
        let job = &plan.jobs[index];
        if is_stopped() { None } else { Some(run(job, plan.experiments[job.experiment])) }
    };
    let mut failed = None;
    parallel::as_done(plan.jobs.len(), jobs, work, |index, result| {
        let Some(result) = result.filter(|_| !is_stopped()) else { return };
        let is_over = match result {
            Ok((run, drawn)) => on_run(index, run, drawn).is_break(),
            // What is claimed of a law that fails is not judged at all.
            Err(error) => {
                let job = &plan.jobs[index];
                let fault = Fault::new(format!("with the seed {}: {error}", job.scenario.seed)).at(&Place::Run);
                failed = Some(fault.about(plan.experiments[job.experiment].file()));
                true
            }
        };
        stopped.store(is_over, Ordering::Relaxed);
    });
    match failed {
        Some(diagnostic) => Err(diagnostic),
        None if stopped.into_inner() => Ok(ControlFlow::Break(())),
        None => Ok(ControlFlow::Continue(())),
    }
}

/// Runs a job, and records only the series that are needed.
fn run(job: &Job, experiment: &Experiment) -> Result<(Run, Option<Drawn>), ControllerFailed> {
    let measures = || job.measures.iter().map(|&measure| &experiment.measures()[measure]);
    let measured = measures().flat_map(|(_, expression)| expression.series());
    let series: Vec<String> = measured.chain(job.shown.iter().flat_map(|shown| shown.series.clone())).collect();
    let (run, trace) = run_recorded(&job.scenario, &series, measures())?;
    let drawn = job.shown.as_ref().map(|shown| figures::draw(experiment, &shown.variant, &trace));
    Ok((run, drawn))
}
