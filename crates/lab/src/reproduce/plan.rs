//! Which runs claims, notes and figures ask for, each once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::asked::{Asked, asked};
use crate::diagnostic::Diagnostic;
use crate::experiment::vary::{Varied, seeds as seeds_of, vary};
use crate::experiment::{Experiment, Variant};
use crate::scenario::Scenario;
use crate::scenario::change::Change;

/// The runs that are needed, each once.
#[derive(Default)]
pub(super) struct Plan<'a> {
    /// The experiments that ask for them.
    pub(super) experiments: Vec<&'a Experiment>,
    /// Those that are judged, then those that are only shown.
    pub(super) jobs: Vec<Job>,
    /// For each experiment, the number of jobs up to its last one that is judged.
    pub(super) ends: Vec<usize>,
    /// The positions of the runs of a variant in a column: one a seed.
    pub(super) variants: BTreeMap<Place, Range<usize>>,
}

/// The position of an experiment, a variant of it, and what runs it.
pub(super) type Place = (usize, Variant, Column);

/// The implementation that runs an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Column {
    /// The one in its file.
    Own,
    /// Our own transport in place of ns-2's agents.
    Engine,
    /// The one in its file, with a changed input.
    Changed(Change),
}

/// One run.
#[derive(Clone)]
pub(super) struct Job {
    /// Position of its experiment.
    pub(super) experiment: usize,
    pub(super) scenario: Scenario,
    /// Positions of the measures that ask for its series.
    pub(super) measures: BTreeSet<usize>,
    /// What figures show of it, if they do.
    pub(super) shown: Option<Shown>,
}

/// What figures show of a run.
#[derive(Clone)]
pub(super) struct Shown {
    pub(super) variant: Variant,
    /// The names of the series.
    pub(super) series: Vec<String>,
}

impl<'a> Plan<'a> {
    /// What claims, notes and figures of the experiments ask for.
    pub(super) fn of_claims(experiments: Vec<&'a Experiment>, seeds: Option<u32>) -> Result<Self, Diagnostic> {
        let mut plan = Self::default();
        let mut drawn = Vec::new();
        for (index, experiment) in experiments.iter().enumerate() {
            plan.add_experiment(index, experiment, seeds, &mut drawn)?;
        }
        for (place, job, first) in drawn {
            plan.add(place, job, (first, 1));
        }
        Ok(Self { experiments, ..plan })
    }

    /// Adds the runs of an experiment that are judged. A figure shows such a run if there is one; else, of a variant that involves chance, the
    /// first seed, which is added to `drawn`.
    fn add_experiment(
        &mut self,
        index: usize,
        experiment: &Experiment,
        seeds: Option<u32>,
        drawn: &mut Vec<(Place, Job, u64)>,
    ) -> Result<(), Diagnostic> {
        for Asked { variant, judged, compared, shown } in asked(experiment) {
            let Varied { own, twin } = vary(experiment, &variant, compared.is_some())?;
            let seeds = seeds_of(experiment, &variant, &own, seeds);
            let shown = shown.map(|series| Shown { variant: variant.clone(), series });
            let place = (index, variant.clone(), Column::Own);
            let job = |scenario, measures, shown| Job { experiment: index, scenario, measures, shown };
            match judged {
                Some(measures) => self.add(place, job(own, measures, shown), seeds),
                None => drawn.push((place, job(own, BTreeSet::new(), shown), seeds.0)),
            }
            if let Some((twin, measures)) = twin.zip(compared) {
                self.add((index, variant, Column::Engine), job(twin, measures, None), seeds);
            }
        }
        self.ends.push(self.jobs.len());
        Ok(())
    }

    /// Adds the runs of a variant in a column, from the first seed on. Figures show the first one.
    pub(super) fn add(&mut self, place: Place, job: Job, (first, count): (u64, u32)) {
        let begin = self.jobs.len();
        for offset in 0..u64::from(count) {
            let scenario = Scenario { seed: first.wrapping_add(offset), ..job.scenario.clone() };
            self.jobs.push(Job { scenario, shown: job.shown.clone().filter(|_| offset == 0), ..job.clone() });
        }
        self.variants.insert(place, begin..self.jobs.len());
    }
}
