//! The plan of the runs that claims, notes and figures need, each once.

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
    /// The experiments that need them.
    pub(super) experiments: Vec<&'a Experiment>,
    /// The judged runs, then the runs for figures alone.
    pub(super) jobs: Vec<Job>,
    /// For each experiment, the number of jobs up to its last judged one.
    pub(super) ends: Vec<usize>,
    /// The positions of the runs of a variant in a column, one for each seed.
    pub(super) variants: BTreeMap<VariantPlace, Range<usize>>,
}

/// The position of an experiment, its variant, and the implementation.
pub(super) type VariantPlace = (usize, Variant, Column);

/// The implementation that runs an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Column {
    /// The transports of its file.
    Own,
    /// Our own transport in place of ns-2's agents.
    Engine,
    /// The transports of its file, with a changed input.
    Changed(Change),
}

/// One run.
#[derive(Clone)]
pub(super) struct Job {
    /// The position of its experiment.
    pub(super) experiment: usize,
    pub(super) scenario: Scenario,
    /// The positions of the measures that use its series.
    pub(super) measures: BTreeSet<usize>,
    /// The series for figures; `None` if no figure shows the run.
    pub(super) shown: Option<Shown>,
}

/// The series of a run for figures.
#[derive(Clone)]
pub(super) struct Shown {
    pub(super) variant: Variant,
    /// The names of the series.
    pub(super) series: Vec<String>,
}

impl<'a> Plan<'a> {
    /// The plan of the runs that claims, notes and figures of the experiments need.
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

    /// Adds the judged runs of an experiment. A figure shows such a run if there is one. Otherwise a run for the figure is added to `drawn`, with
    /// the first seed if the variant involves chance.
    fn add_experiment(
        &mut self,
        index: usize,
        experiment: &Experiment,
        seeds: Option<u32>,
        drawn: &mut Vec<(VariantPlace, Job, u64)>,
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

    /// Adds the runs of a variant in a column, from the first seed on. Figures show the first run.
    pub(super) fn add(&mut self, place: VariantPlace, job: Job, (first, count): (u64, u32)) {
        let begin = self.jobs.len();
        for offset in 0..u64::from(count) {
            let scenario = Scenario { seed: first.wrapping_add(offset), ..job.scenario.clone() };
            self.jobs.push(Job { scenario, shown: job.shown.clone().filter(|_| offset == 0), ..job.clone() });
        }
        self.variants.insert(place, begin..self.jobs.len());
    }
}
