//! Which runs claims, notes and figures ask for, each once.

use std::collections::{BTreeMap, BTreeSet};

use super::figures::{self, Drawings};
use crate::diagnostic::Diagnostic;
use crate::experiment::{CountsAs, Experiment, Piece, Variant};
use crate::expression::Expression;
use crate::run::{self, Run};
use crate::scenario::Scenario;
use crate::scenario::change::Change;

/// The runs that are needed, each once.
#[derive(Default)]
pub(super) struct Plan {
    /// Those that are judged, then those that are only shown.
    pub(super) jobs: Vec<Job>,
    /// For each experiment, the number of jobs up to its last one.
    pub(super) ends: Vec<usize>,
    /// The position of the first run of a variant in a column, and the number of runs: one a seed.
    pub(super) variants: BTreeMap<(usize, Variant, Column), (usize, usize)>,
    /// By experiment: the positions of the runs in its figures.
    pub(super) drawn: Vec<Vec<usize>>,
}

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
pub(super) struct Job {
    /// Position of its experiment.
    pub(super) experiment: usize,
    pub(super) scenario: Scenario,
    /// Positions of the measures that ask for its series.
    pub(super) measures: BTreeSet<usize>,
    /// The variant that it is, if figures show it.
    pub(super) drawn: Option<Variant>,
}

impl Job {
    /// Nothing is recorded that nobody asks for.
    pub(super) fn run(&self, experiment: &Experiment) -> (Run, Option<Drawings>) {
        let asked = self.measures.iter().flat_map(|&measure| experiment.measures()[measure].1.series());
        let shown = self.drawn.iter().flat_map(|variant| figures::series(experiment, variant));
        let series: Vec<String> = asked.chain(shown).collect();
        if series.is_empty() {
            return (Run::unrecorded(&self.scenario), None);
        }
        let (report, trace) = run::run_recorded(&self.scenario, &series);
        let measures = self.measures.iter().map(|&measure| &experiment.measures()[measure]);
        let drawings = self.drawn.as_ref().map(|variant| figures::draw(experiment, variant, &trace));
        (Run::measured(report, &trace, measures), drawings)
    }
}

impl Plan {
    /// What claims and notes ask for.
    pub(super) fn add_judged(
        &mut self,
        index: usize,
        experiment: &Experiment,
        seeds: Option<u32>,
    ) -> Result<(), Diagnostic> {
        let compared = needed_variants(experiment, &compared(experiment));
        for (variant, measures) in needed_variants(experiment, &asked(experiment)) {
            let scenario = experiment.scenario(&variant)?;
            let seeds = seeds_of(experiment, &variant, &scenario, seeds);
            self.add_column((index, variant.clone(), Column::Own), &scenario, seeds, &measures);
            if let Some((_, measures)) = compared.iter().find(|(known, _)| *known == variant)
                && let Some(twin) = experiment.twin(&variant)?
            {
                self.add_column((index, variant, Column::Engine), &twin, seeds, measures);
            }
        }
        self.ends.push(self.jobs.len());
        Ok(())
    }

    /// Adds the runs of a variant in a column, from the first seed on.
    pub(super) fn add_column(
        &mut self,
        place: (usize, Variant, Column),
        scenario: &Scenario,
        (first, count): (u64, u32),
        measures: &BTreeSet<usize>,
    ) {
        let seeded = |offset| {
            let scenario = Scenario { seed: first.wrapping_add(offset), ..scenario.clone() };
            Job { experiment: place.0, scenario, measures: measures.clone(), drawn: None }
        };
        let begin = self.jobs.len();
        self.jobs.extend((0..u64::from(count)).map(seeded));
        self.variants.insert(place, (begin, count as usize));
    }

    /// Adds the runs for figures: for a variant that involves chance, the first seed. A judged run is reused.
    pub(super) fn add_drawn(&mut self, index: usize, experiment: &Experiment) -> Result<(), Diagnostic> {
        let mut drawn = Vec::new();
        for variant in figures::variants(experiment) {
            let job = match self.variants.get(&(index, variant.clone(), Column::Own)) {
                Some(&(first, _)) => first,
                None => {
                    let scenario = experiment.scenario(&variant)?;
                    let (seed, _) = seeds_of(experiment, &variant, &scenario, None);
                    let scenario = Scenario { seed, ..scenario };
                    self.jobs.push(Job { experiment: index, scenario, measures: BTreeSet::new(), drawn: None });
                    self.jobs.len() - 1
                }
            };
            self.jobs[job].drawn = Some(variant);
            drawn.push(job);
        }
        self.drawn.push(drawn);
        Ok(())
    }
}

/// The expressions of claims and notes.
fn asked(experiment: &Experiment) -> Vec<&Expression> {
    let noted = experiment.notes.iter().flat_map(|note| &note.pieces).filter_map(|piece| match piece {
        Piece::Value(expression, _) => Some(expression),
        Piece::Text(_) => None,
    });
    experiment.claims.iter().flat_map(|claim| claim.statistic.expressions()).chain(noted).collect()
}

/// The expressions by which our own transport is compared with ns-2's agents.
fn compared(experiment: &Experiment) -> Vec<&Expression> {
    let results = experiment.claims.iter().filter(|claim| claim.counts_as == CountsAs::Result);
    results.flat_map(|claim| claim.statistic.expressions()).collect()
}

/// The variants that some expressions need, and the positions of the measures of their series, found by evaluating them with a
/// stand-in for every value.
pub(super) fn needed_variants(experiment: &Experiment, asked: &[&Expression]) -> Vec<(Variant, BTreeSet<usize>)> {
    let mut needed: Vec<(Variant, BTreeSet<usize>)> = Vec::new();
    for expression in asked {
        let mut gauge = |variant: &Variant, name: &str| {
            let position = needed.iter().position(|(known, _)| known == variant).unwrap_or(needed.len());
            if position == needed.len() {
                needed.push((variant.clone(), BTreeSet::new()));
            }
            needed[position].1.extend(experiment.measure_of_series(name));
            Ok(1.0)
        };
        experiment.evaluate(expression, &mut gauge).expect("it was evaluated in the same way when it was read");
    }
    needed
}

/// The first seed of a variant and the number of seeds: one without chance.
pub(super) fn seeds_of(
    experiment: &Experiment,
    variant: &Variant,
    scenario: &Scenario,
    seeds: Option<u32>,
) -> (u64, u32) {
    if !scenario.is_random() {
        return (scenario.seed, 1);
    }
    let number = experiment.variants().iter().position(|other| other == variant).unwrap_or(0) as u64;
    (scenario.seed.wrapping_add(number * SEEDS_OF_A_VARIANT), seeds.unwrap_or(experiment.seeds))
}

/// Each variant that involves chance has seeds of its own: a paper's cells are single runs, and nothing says that two of them share
/// random numbers, so a ratio of two must spread as a ratio of independent draws does. Variant v has the seeds from `seed + v ·
/// 10000` on, counted over all combinations of the axes, whatever the number of seeds is.
const SEEDS_OF_A_VARIANT: u64 = 10_000;
