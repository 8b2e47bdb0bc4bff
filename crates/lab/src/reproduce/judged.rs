//! Collects the runs, and judges each experiment when its last run is done.

use std::slice;

use super::command::command;
use super::folder::Which;
use super::judge::Results;
use super::plan::Plan;
use super::{Paper, Watch};
use crate::papers;
use crate::report::combined_hash;
use crate::run::Run;

/// The papers that are judged so far.
pub(super) struct Judged<'a> {
    plan: &'a Plan<'a>,
    seeds: Option<u32>,
    runs: Vec<Option<Run>>,
    /// The number of runs that are done without a gap, from the first on.
    runs_done: usize,
    /// The number of judged experiments.
    experiments: usize,
    pub(super) papers: Vec<Paper>,
}

impl<'a> Judged<'a> {
    /// The state before the first run.
    pub(super) fn new(plan: &'a Plan<'a>, seeds: Option<u32>) -> Self {
        let runs = plan.jobs.iter().map(|_| None).collect();
        Self { plan, seeds, runs, runs_done: 0, experiments: 0, papers: Vec::new() }
    }

    /// Keeps a run that is done. Jobs begin in order, so an early paper is complete long before the last one.
    pub(super) fn add(&mut self, job: usize, run: Run) {
        self.runs[job] = Some(run);
        while self.runs.get(self.runs_done).is_some_and(Option::is_some) {
            self.runs_done += 1;
        }
    }

    /// Judges the experiments whose runs are done, and passes each complete paper to `watch`.
    pub(super) fn judge(&mut self, watch: &mut impl Watch) {
        let Plan { experiments, ends, .. } = self.plan;
        while let Some(experiment) =
            experiments.get(self.experiments).filter(|_| ends[self.experiments] <= self.runs_done)
        {
            let command =
                command(Some(experiment.file()), Which::Named(slice::from_ref(&experiment.paper)), self.seeds);
            if self.papers.last().is_none_or(|paper| paper.key != experiment.paper) {
                let key = experiment.paper.clone();
                let (title, question) = (papers::title(&key).to_owned(), papers::question(&key).to_owned());
                self.papers.push(Paper { key, title, question, command: command.clone(), experiments: Vec::new() });
            }
            let paper = self.papers.last_mut().expect("one was pushed");
            let results = Results { experiment, index: self.experiments, plan: self.plan, runs: &self.runs };
            paper.experiments.push(results.outcome(self.seeds, command));
            self.experiments += 1;
            if experiments.get(self.experiments).is_none_or(|next| next.paper != experiment.paper) {
                watch.paper(paper);
            }
        }
    }

    /// The number of judged runs, and their combined hash. Runs for figures alone are not judged.
    pub(super) fn hash(&self) -> (usize, String) {
        let count = self.plan.ends.last().copied().unwrap_or(0);
        let hashes = self.runs[..count].iter().map(|run| run.as_ref().expect(RUN).report.hash.as_str());
        (count, combined_hash(hashes))
    }
}

/// The invariant of a run's presence.
const RUN: &str = "an experiment is judged when its last run is done";
