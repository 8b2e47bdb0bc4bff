//! Runs experiments and judges their claims.

mod engine;
mod figures;
mod json;
mod outcome;
mod shown;
mod table;
mod topology;
mod totals;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Instant;

pub use outcome::{
    BesideEngine, EngineCount, ExperimentOutcome, Figure, JudgedBand, JudgedClaim, JudgedNote, Measured, Measurement,
    Outcome, Panel, Paper, PublishedValue, SCHEMA, Series, Style, Topology, TopologyFlow, TopologyLink, VariedAxis,
};
pub use shown::item_rank;
pub use totals::{Total, Under};

use crate::diagnostic::Diagnostic;
use crate::experiment::{Claim, CountsAs, Experiment, Piece, Published, Statistic, Variant};
use crate::expression::{Expression, ExpressionError};
use crate::papers;
use crate::parallel;
use crate::run::{self, Run};
use crate::scenario::Scenario;
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

/// Runs what the claims of some experiments ask for, and judges them. `on_run` is told how many runs are done, of how many.
///
/// # Errors
/// If a variant is no scenario. It is found before anything runs.
pub fn reproduce(
    experiments: &[Experiment],
    options: Options,
    mut on_run: impl FnMut(usize, usize),
) -> Result<Outcome, Diagnostic> {
    let begin = Instant::now();
    let mut plan = Plan::default();
    for (index, experiment) in experiments.iter().enumerate() {
        plan.add(index, experiment, options.seeds)?;
    }
    let mut drawn = Vec::new();
    for (index, experiment) in experiments.iter().enumerate() {
        for variant in figures::variants(experiment) {
            let scenario = experiment.scenario(&variant)?;
            let seed = if scenario.is_random() { first_seed(experiment, &variant, &scenario) } else { scenario.seed };
            drawn.push((index, variant, Scenario { seed, ..scenario }));
        }
    }
    let total = plan.jobs.len() + drawn.len();
    let mut done = 0;
    on_run(done, total);
    let finished = parallel::map(
        total,
        options.jobs,
        |job| {
            if let Some((index, variant, scenario)) = job.checked_sub(plan.jobs.len()).map(|job| &drawn[job]) {
                return Done::Drawn(*index, figures::draw(&experiments[*index], variant, scenario));
            }
            let Job { experiment, scenario, wants_series } = &plan.jobs[job];
            Done::Judged(run::run_measured(scenario, &experiments[*experiment], *wants_series))
        },
        || {
            done += 1;
            on_run(done, total);
        },
    );
    let (mut runs, mut drawings) = (Vec::new(), vec![Vec::new(); experiments.len()]);
    for done in finished {
        match done {
            Done::Judged(run) => runs.push(run),
            Done::Drawn(index, drawing) => drawings[index].push(drawing),
        }
    }
    let hash = run::combined_hash(runs.iter().map(|run| run.report.hash.as_str()));
    let mut papers: Vec<Paper> = Vec::new();
    for (index, experiment) in experiments.iter().enumerate() {
        let results = Results { experiment, index, plan: &plan, runs: &runs, drawings: &drawings[index] };
        if papers.last().is_none_or(|paper| paper.key != experiment.paper) {
            let key = experiment.paper.clone();
            let (title, question) = (papers::title(&key).to_owned(), papers::question(&key).to_owned());
            let command = command(&key, options.seeds);
            papers.push(Paper { key, title, question, command, experiments: Vec::new() });
        }
        papers.last_mut().expect("one was pushed").experiments.push(results.outcome(options.seeds)?);
    }
    Ok(Outcome {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        wall_seconds: begin.elapsed().as_secs_f64(),
        hash,
        runs: runs.len(),
        seeds: options.seeds,
        papers,
    })
}

/// Each variant with chance in it has seeds of its own: a paper's cells are single runs, and nothing says that two of them
/// share their random numbers, so a ratio of two must spread as a ratio of independent draws does. Variant v is run with the
/// seeds from `seed + v · 10000` on, counted over all combinations of the axes, whatever the number of seeds is.
const SEEDS_OF_A_VARIANT: u64 = 10_000;

fn first_seed(experiment: &Experiment, variant: &Variant, scenario: &Scenario) -> u64 {
    let number = experiment.variants().iter().position(|other| other == variant).unwrap_or(0) as u64;
    scenario.seed.wrapping_add(number * SEEDS_OF_A_VARIANT)
}

/// What to type to get a paper again.
fn command(paper: &str, seeds: Option<u32>) -> String {
    let asked = seeds.map_or(String::new(), |seeds| format!(" --seeds {seeds}"));
    format!("anabranch reproduce {paper}{asked}")
}

/// What a job gave.
enum Done {
    Judged(Run),
    /// Of which experiment.
    Drawn(usize, figures::Drawings),
}

/// Which runs are needed, each once.
#[derive(Default)]
struct Plan {
    jobs: Vec<Job>,
    /// Position of the first run of a variant of an experiment in a column, and how many there are: one a seed.
    variants: BTreeMap<(usize, Variant, Column), (usize, usize)>,
}

/// Who runs an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    /// Whoever its file says.
    Own,
    /// Our own transport in the place of ns-2's agents.
    Engine,
}

/// One run.
struct Job {
    /// Position of its experiment.
    experiment: usize,
    scenario: Scenario,
    /// Whether a measure asks for its series.
    wants_series: bool,
}

impl Plan {
    fn add(&mut self, index: usize, experiment: &Experiment, seeds: Option<u32>) -> Result<(), Diagnostic> {
        for (variant, wants_series) in needed_variants(experiment) {
            let scenario = experiment.scenario(&variant)?;
            let (first, count) = match scenario.is_random() {
                true => (first_seed(experiment, &variant, &scenario), seeds.unwrap_or(experiment.seeds)),
                false => (scenario.seed, 1),
            };
            let twin = experiment.twin(&variant)?.map(|twin| (Column::Engine, twin));
            for (column, scenario) in [(Column::Own, scenario)].into_iter().chain(twin) {
                self.variants.insert((index, variant.clone(), column), (self.jobs.len(), count as usize));
                let seeded = |offset| {
                    let scenario = Scenario { seed: first.wrapping_add(offset), ..scenario.clone() };
                    Job { experiment: index, scenario, wants_series }
                };
                self.jobs.extend((0..u64::from(count)).map(seeded));
            }
        }
        Ok(())
    }
}

/// The variants that claims and notes ask for, and whether of their series, found by evaluating them with a stand-in for every
/// value.
fn needed_variants(experiment: &Experiment) -> Vec<(Variant, bool)> {
    let mut needed: Vec<(Variant, bool)> = Vec::new();
    for expression in experiment.claims.iter().flat_map(|claim| claim.statistic.expressions()).chain(
        experiment.notes.iter().flat_map(|note| &note.pieces).filter_map(|piece| match piece {
            Piece::Value(expression, _) => Some(expression),
            Piece::Text(_) => None,
        }),
    ) {
        let mut gauge = |variant: &Variant, name: &str| {
            let asks_series = experiment.asks_series(name);
            match needed.iter_mut().find(|(known, _)| known == variant) {
                Some((_, wants_series)) => *wants_series |= asks_series,
                None => needed.push((variant.clone(), asks_series)),
            }
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
    runs: &'a [Run],
    drawings: &'a [figures::Drawings],
}

impl Results<'_> {
    fn outcome(&self, seeds: Option<u32>) -> Result<ExperimentOutcome, Diagnostic> {
        let experiment = self.experiment;
        let base = experiment.scenario(&vec![0; experiment.axes.len()])?;
        Ok(ExperimentOutcome {
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
            topology: Topology::of(&base),
            claims: experiment.claims.iter().map(|claim| self.judge(claim)).collect(),
            notes: experiment
                .notes
                .iter()
                .map(|note| JudgedNote { item: note.item.clone(), text: self.text(&note.pieces) })
                .collect(),
            figures: figures::figures(experiment, self.drawings),
            source: experiment.source().to_owned(),
            command: command(&experiment.paper, seeds),
        })
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
        if claim.counts_as != CountsAs::Result {
            return false;
        }
        let mut has_engine = false;
        for expression in claim.statistic.expressions() {
            let ask = &mut |variant: &Variant, _: &str| {
                has_engine |= self.plan.variants.contains_key(&(self.index, variant.clone(), Column::Engine));
                Ok(1.0)
            };
            self.experiment.evaluate(expression, ask).expect("it was evaluated in the same way when it was read");
        }
        has_engine
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
                runs[seed % runs.len()].value(self.experiment, name)
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

    /// The runs of a variant in a column. What our own transport has no part in is the same in both.
    fn runs(&self, variant: &Variant, column: Column) -> &[Run] {
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
