//! Runs experiments and judges their claims.

mod engine;
mod figures;
mod json;
mod outcome;
mod sensitivity;
mod shown;
mod table;
mod topology;
mod totals;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Instant;

use figures::Drawings;
pub use outcome::{
    BesideEngine, EngineCount, ExperimentOutcome, Figure, JudgedBand, JudgedClaim, JudgedNote, Measured, Measurement,
    Outcome, Panel, Paper, PublishedValue, SCHEMA, Series, Style, Topology, TopologyFlow, TopologyLink, VariedAxis,
};
pub use sensitivity::{Shaken, shake};
pub use shown::{item_name, item_rank};
pub use totals::{Total, Under};

use crate::diagnostic::Diagnostic;
use crate::experiment::{Claim, CountsAs, Experiment, Piece, Published, Statistic, Variant};
use crate::expression::{Expression, ExpressionError};
use crate::papers;
use crate::parallel;
use crate::run::{self, Run};
use crate::scenario::Scenario;
use crate::scenario::change::Change;
use crate::statistics::{Interval, Sample};
use crate::verdict::Verdict;

/// How experiments are run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Runs at once.
    pub jobs: NonZeroUsize,
    /// Instead of the experiments' own numbers of seeds.
    pub seeds: Option<u32>,
}

/// Who is told how it goes on. A closure hears of runs alone.
pub trait Watch {
    /// So many runs are done, of so many.
    fn runs(&mut self, done: usize, total: usize);

    /// All runs of a paper are done, and its claims are judged. Its figures are not drawn yet.
    fn paper(&mut self, _paper: &Paper) {}
}

impl<F: FnMut(usize, usize)> Watch for F {
    fn runs(&mut self, done: usize, total: usize) {
        self(done, total);
    }
}

/// Runs what the claims of some experiments ask for, and judges them: the papers first, paper by paper, then what follows from laws
/// and our own questions.
///
/// # Errors
/// If a variant is no scenario. It is found before anything runs.
pub fn reproduce(experiments: &[Experiment], options: Options, mut watch: impl Watch) -> Result<Outcome, Diagnostic> {
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
    // Jobs begin in their order, so that a paper is done long before the last one is. What comes later waits.
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
    parallel::each(
        total,
        options.jobs,
        |job| plan.jobs[job].run(experiments[plan.jobs[job].experiment]),
        |job, (run, drawing)| {
            done += 1;
            watch.runs(done, total);
            (runs[job], drawings[job]) = (Some(run), drawing);
            judge(&runs, &mut watch);
        },
    );
    let outcomes = papers.iter_mut().flat_map(|paper| &mut paper.experiments);
    for ((outcome, experiment), drawn) in outcomes.zip(&experiments).zip(&plan.drawn) {
        let drawn = drawn.iter().map(|&job| drawings[job].as_ref().expect("each job that is to be drawn has been"));
        outcome.figures = figures::figures(experiment, &drawn.collect::<Vec<_>>());
    }
    // What is only shown is not judged.
    runs.truncate(count);
    let hashes = runs.iter().map(|run| run.as_ref().expect(RUN).report.hash.as_str());
    Ok(Outcome {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        wall_seconds: begin.elapsed().as_secs_f64(),
        hash: run::combined_hash(hashes),
        runs: runs.len(),
        seeds: options.seeds,
        command: command(experiments.first().map(|experiment| experiment.file()), "", options.seeds),
        papers,
    })
}

/// Why a run that is asked for is there.
const RUN: &str = "an experiment is judged when its last run is done";

/// A paper of which nothing is judged yet.
fn paper(experiment: &Experiment, seeds: Option<u32>) -> Paper {
    let key = experiment.paper.clone();
    let (title, question) = (papers::title(&key).to_owned(), papers::question(&key).to_owned());
    let command = command(Some(experiment.file()), &key, seeds);
    Paper { key, title, question, command, experiments: Vec::new() }
}

/// Each variant with chance in it has seeds of its own: a paper's cells are single runs, and nothing says that two of them
/// share their random numbers, so a ratio of two must spread as a ratio of independent draws does. Variant v is run with the
/// seeds from `seed + v · 10000` on, counted over all combinations of the axes, whatever the number of seeds is.
const SEEDS_OF_A_VARIANT: u64 = 10_000;

/// The first seed of a variant, and how many it has: without chance in it, one.
fn seeds_of(experiment: &Experiment, variant: &Variant, scenario: &Scenario, seeds: Option<u32>) -> (u64, u32) {
    if !scenario.is_random() {
        return (scenario.seed, 1);
    }
    let number = experiment.variants().iter().position(|other| other == variant).unwrap_or(0) as u64;
    (scenario.seed.wrapping_add(number * SEEDS_OF_A_VARIANT), seeds.unwrap_or(experiment.seeds))
}

/// What to type to get a paper again, or with no key everything: from the folder in which the file was.
pub fn command(file: Option<&str>, paper: &str, seeds: Option<u32>) -> String {
    let mut command = "anabranch reproduce".to_owned();
    if !paper.is_empty() {
        command += &format!(" {}", quoted(paper));
    }
    if let Some(seeds) = seeds {
        command += &format!(" --seeds {seeds}");
    }
    let folder = file.and_then(|file| Path::new(file).parent()?.parent()).and_then(Path::to_str);
    if let Some(folder) = folder.filter(|folder| !["", "experiments"].contains(folder)) {
        command += &format!(" --experiments {}", quoted(folder));
    }
    command
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "/._-+,@%".contains(sign);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// Which runs are needed, each once.
#[derive(Default)]
struct Plan {
    /// Those that are judged, then those that are only shown.
    jobs: Vec<Job>,
    /// Of each experiment, how many jobs there are up to its last one.
    ends: Vec<usize>,
    /// Position of the first run of a variant of an experiment in a column, and how many there are: one a seed.
    variants: BTreeMap<(usize, Variant, Column), (usize, usize)>,
    /// By experiment: the positions of the runs that its figures show.
    drawn: Vec<Vec<usize>>,
}

/// Who runs an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    /// Whoever its file says.
    Own,
    /// Our own transport in the place of ns-2's agents.
    Engine,
    /// Whoever its file says, with another input.
    Changed(Change),
}

/// One run.
struct Job {
    /// Position of its experiment.
    experiment: usize,
    scenario: Scenario,
    /// Positions of the measures that ask for its series.
    measures: BTreeSet<usize>,
    /// The variant that it is, if figures show it.
    drawn: Option<Variant>,
}

impl Job {
    /// Nothing is recorded that nobody asks for.
    fn run(&self, experiment: &Experiment) -> (Run, Option<Drawings>) {
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
    fn add_judged(&mut self, index: usize, experiment: &Experiment, seeds: Option<u32>) -> Result<(), Diagnostic> {
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

    /// The runs of a variant in a column, from the first seed on.
    fn add_column(
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

    /// What figures show: of a variant with chance in it, the first seed. If it is judged, that run is drawn.
    fn add_drawn(&mut self, index: usize, experiment: &Experiment) -> Result<(), Diagnostic> {
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

/// What claims and notes ask.
fn asked(experiment: &Experiment) -> Vec<&Expression> {
    let noted = experiment.notes.iter().flat_map(|note| &note.pieces).filter_map(|piece| match piece {
        Piece::Value(expression, _) => Some(expression),
        Piece::Text(_) => None,
    });
    experiment.claims.iter().flat_map(|claim| claim.statistic.expressions()).chain(noted).collect()
}

/// What our own transport is compared with ns-2's agents in.
fn compared(experiment: &Experiment) -> Vec<&Expression> {
    let results = experiment.claims.iter().filter(|claim| claim.counts_as == CountsAs::Result);
    results.flat_map(|claim| claim.statistic.expressions()).collect()
}

/// The variants that some expressions ask for, and the positions of the measures that they ask of their series, found by
/// evaluating them with a stand-in for every value.
fn needed_variants(experiment: &Experiment, asked: &[&Expression]) -> Vec<(Variant, BTreeSet<usize>)> {
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

struct Results<'a> {
    experiment: &'a Experiment,
    index: usize,
    plan: &'a Plan,
    runs: &'a [Option<Run>],
}

impl Results<'_> {
    /// Everything but its figures.
    fn outcome(&self, base: &Scenario, seeds: Option<u32>) -> ExperimentOutcome {
        let experiment = self.experiment;
        ExperimentOutcome {
            item: experiment.name().to_owned(),
            question: experiment.question().to_owned(),
            file: experiment.file().to_owned(),
            seeds: seeds.unwrap_or(experiment.seeds),
            is_random: self.plan.variants.iter().any(|((index, ..), (_, count))| *index == self.index && *count > 1),
            seed: base.seed,
            duration: base.duration.to_string(),
            axes: experiment
                .axes
                .iter()
                .map(|axis| VariedAxis {
                    name: axis.name.clone(),
                    values: axis.values.iter().map(|value| value.label.clone()).collect(),
                    keys: axis.keys(),
                })
                .collect(),
            topology: Topology::of(base),
            claims: experiment.claims.iter().map(|claim| self.judge(claim)).collect(),
            notes: experiment
                .notes
                .iter()
                .map(|note| JudgedNote { item: note.item.clone(), text: self.text(&note.pieces) })
                .collect(),
            figures: Vec::new(),
            source: experiment.source().to_owned(),
            command: command(Some(experiment.file()), &experiment.paper, seeds),
        }
    }

    fn judge(&self, claim: &Claim) -> JudgedClaim {
        let sample = self.statistic(claim, Column::Own);
        let published = claim.published.number();
        // A gauge that was not measured leaves nothing to agree with.
        let admitted = sample.as_ref().is_ok_and(|sample| claim.band.admits(published, sample));
        let under = Under::of(claim.source, claim.counts_as);
        let verdict = match (claim.not_reproducible, admitted) {
            (true, _) => Verdict::NotReproducible,
            (false, true) if under.is_result() => Verdict::Reproduced,
            (false, true) => Verdict::Holds,
            (false, false) => Verdict::Deviates,
        };
        let because = match (&sample, verdict) {
            (_, Verdict::Reproduced | Verdict::Holds) => None,
            (Err(error), _) => Some(error.to_string()),
            (Ok(_), _) => claim.because.clone(),
        };
        let band = sample
            .as_ref()
            .map_or(Interval { low: f64::NAN, high: f64::NAN }, |sample| claim.band.interval(published, sample));
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        let engine = self.has_engine(claim).then(|| self.statistic(claim, Column::Engine));
        JudgedClaim {
            item: claim.item.clone(),
            title: claim.title.clone(),
            source: claim.source,
            counts_as: claim.counts_as,
            cite: claim.cite.clone(),
            row: claim.row.clone(),
            column: claim.column.clone(),
            kind: claim.kind,
            unit: claim.unit.clone(),
            published: match &claim.published {
                Published::Number(number) => PublishedValue::Number(*number),
                Published::Words(words) => PublishedValue::Words(words.clone()),
            },
            measured: Measured {
                ours: sample.as_ref().ok().map(measurement),
                engine: engine.as_ref().and_then(|sample| sample.as_ref().ok()).map(measurement),
            },
            engine: engine.map(|engine| engine::beside(claim, verdict, &sample, &engine)),
            band: JudgedBand { kind: claim.band.kind(), low: finite(band.low), high: finite(band.high) },
            verdict,
            because,
            is_missed: verdict == Verdict::Deviates && (claim.because.is_none() || sample.is_err()),
            is_open: verdict == Verdict::Deviates && claim.is_open,
            is_coarse: verdict == Verdict::Reproduced && claim.is_coarse,
        }
    }

    /// What a claim is about, seed by seed.
    fn statistic(&self, claim: &Claim, column: Column) -> Result<Sample, ExpressionError> {
        match &claim.statistic {
            Statistic::Value(expression) => self.sample(expression, column),
            Statistic::Order(expressions) => self.lead(expressions, column),
        }
    }

    /// Whether our own transport has run something of what a claim is about, and could have given something else.
    fn has_engine(&self, claim: &Claim) -> bool {
        claim.counts_as == CountsAs::Result && self.has_column(claim, Column::Engine)
    }

    /// Whether something of what a claim is about was run in a column.
    fn has_column(&self, claim: &Claim, column: Column) -> bool {
        let mut has_column = false;
        for expression in claim.statistic.expressions() {
            let ask = &mut |variant: &Variant, _: &str| {
                has_column |= self.plan.variants.contains_key(&(self.index, variant.clone(), column));
                Ok(1.0)
            };
            self.experiment.evaluate(expression, ask).expect("it was evaluated in the same way when it was read");
        }
        has_column
    }

    /// An expression seed by seed. Where one variant was run once for all seeds, its value stands for each of them.
    fn sample(&self, expression: &Expression, column: Column) -> Result<Sample, ExpressionError> {
        let mut seeds = 1;
        let count = &mut |variant: &Variant, _: &str| {
            seeds = seeds.max(self.runs(variant, column).len());
            Ok(1.0)
        };
        self.experiment.evaluate(expression, count)?;
        let mut value = |seed: usize| {
            let gauge = &mut |variant: &Variant, name: &str| {
                let runs = self.runs(variant, column);
                runs[seed % runs.len()].as_ref().expect(RUN).value(self.experiment, name)
            };
            self.experiment.evaluate(expression, gauge)
        };
        (0..seeds).map(&mut value).collect::<Result<_, _>>().map(Sample::new)
    }

    /// By how much each of several means is above the next: the sample of the smallest lead.
    fn lead(&self, expressions: &[Expression], column: Column) -> Result<Sample, ExpressionError> {
        let mut least: Option<Sample> = None;
        for pair in expressions.windows(2) {
            let lead = self.sample(&pair[0].minus(&pair[1]), column)?;
            if least.as_ref().is_none_or(|least| lead.mean() < least.mean()) {
                least = Some(lead);
            }
        }
        Ok(least.expect("an order is of two things at least"))
    }

    /// The runs of a variant in a column. What our own transport has no part in, or a change changes nothing of, is the same in all.
    fn runs(&self, variant: &Variant, column: Column) -> &[Option<Run>] {
        let of = |column| self.plan.variants.get(&(self.index, variant.clone(), column));
        let &(first, count) = of(column).or_else(|| of(Column::Own)).expect("every variant that is asked for was run");
        &self.runs[first..first + count]
    }

    fn text(&self, pieces: &[Piece]) -> String {
        let show = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Value(expression, decimals) => match self.sample(expression, Column::Own) {
                Ok(sample) => format!("{:.decimals$}", sample.mean()),
                Err(error) => format!("({error})"),
            },
        };
        pieces.iter().map(show).collect()
    }
}

fn measurement(sample: &Sample) -> Measurement {
    let Interval { low, high } = sample.prediction();
    Measurement { value: sample.mean(), seeds: sample.count(), sd: sample.sd(), low, high }
}

#[cfg(test)]
mod tests;
