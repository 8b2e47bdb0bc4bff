//! Runs experiments and judges their claims.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Instant;

use serde::Serialize;

use crate::diagnostic::Diagnostic;
use crate::experiment::{Claim, ClaimKind, Experiment, Piece, Published, Source, Statistic, Variant};
use crate::expression::{Expression, ExpressionError};
use crate::parallel;
use crate::report::Report;
use crate::run;
use crate::scenario::Scenario;
use crate::statistics::{Interval, Sample};
use crate::verdict::Verdict;

/// What `reproduce --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Judgement {
    /// Name of this document's schema.
    pub schema: &'static str,
    /// Version of the laboratory.
    pub version: &'static str,
    /// Time it took.
    pub wall_seconds: f64,
    /// Of the hashes of all runs, in 16 hexadecimal digits.
    pub hash: String,
    /// How many runs there were.
    pub runs: usize,
    /// In the order of the experiments and their files.
    pub claims: Vec<JudgedClaim>,
    /// Remarks, in the same order.
    pub notes: Vec<JudgedNote>,
}

/// The schema of [`Judgement`]; its number rises when a field changes its meaning or goes.
pub const SCHEMA: &str = "anabranch-reproduce/1";

/// One claim with its verdict.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedClaim {
    /// Key of the paper.
    pub paper: String,
    /// `table2`, `fig5`, `text`.
    pub item: String,
    /// What the table is called.
    pub title: String,
    /// Who says so.
    pub source: Source,
    /// Where they say so.
    pub cite: String,
    /// As printed.
    pub row: String,
    /// As printed.
    pub column: String,
    /// What is claimed.
    pub kind: ClaimKind,
    /// Of the numbers.
    pub unit: String,
    /// A number or a statement.
    pub published: PublishedValue,
    /// Ours.
    pub measured: Measured,
    /// What decides.
    pub band: JudgedBand,
    /// What became of it.
    pub verdict: Verdict,
    /// Why it is not reproduced.
    pub because: Option<String>,
    /// The experiment.
    pub scenario: String,
    /// Whether it deviates and the experiment does not say why.
    #[serde(skip)]
    pub is_missed: bool,
}

/// A number or a statement.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PublishedValue {
    /// A number.
    Number(f64),
    /// A statement.
    Words(String),
}

/// What each implementation gave.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The agents of ns-2.
    pub ns2: Option<Measurement>,
    /// Our transport.
    pub anabranch: Option<Measurement>,
}

/// What one implementation gave.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// Mean over the seeds.
    pub value: f64,
    /// How many there were; 1 where no chance is involved.
    pub seeds: usize,
    /// Standard deviation over them.
    pub sd: f64,
    /// 95 % prediction interval of one run, lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// What decides. In a `prediction`, `low` and `high` are the interval in which the published number must lie; else the one in
/// which our mean must lie. An end that is not bounded is `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedBand {
    /// `exact`, `prediction`, `mean` or `above`.
    pub kind: &'static str,
    /// Lower end.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// A remark with its numbers.
#[derive(Clone, Debug, Serialize)]
pub struct JudgedNote {
    /// Key of the paper.
    pub paper: String,
    /// Under which item.
    pub item: String,
    /// What it says.
    pub text: String,
}

/// How experiments are run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Runs at once.
    pub jobs: NonZeroUsize,
    /// Instead of the experiments' own numbers of seeds.
    pub seeds: Option<u32>,
}

impl Judgement {
    /// How many claims have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.claims.iter().filter(|claim| claim.verdict == verdict).count()
    }

    /// How many claims deviate and their experiment does not say why.
    pub fn missed(&self) -> usize {
        self.claims.iter().filter(|claim| claim.is_missed).count()
    }
}

/// Runs what the claims of some experiments ask for, and judges them. `on_run` is told how many runs are done, of how many.
///
/// # Errors
/// If a variant is no scenario. It is found before anything runs.
pub fn reproduce(
    experiments: &[Experiment],
    options: Options,
    mut on_run: impl FnMut(usize, usize),
) -> Result<Judgement, Diagnostic> {
    let begin = Instant::now();
    let mut plan = Plan::default();
    for (index, experiment) in experiments.iter().enumerate() {
        plan.add(index, experiment, options.seeds)?;
    }
    let total = plan.jobs.len();
    let mut done = 0;
    on_run(done, total);
    let reports = parallel::map(
        total,
        options.jobs,
        |job| run::run(&plan.jobs[job]),
        || {
            done += 1;
            on_run(done, total);
        },
    );
    let hash = run::combined_hash(reports.iter().map(|report| report.hash.as_str()));
    let mut claims = Vec::new();
    let mut notes = Vec::new();
    for (index, experiment) in experiments.iter().enumerate() {
        let results = Results { experiment, index, plan: &plan, reports: &reports };
        claims.extend(experiment.claims.iter().map(|claim| results.judge(claim)));
        notes.extend(experiment.notes.iter().map(|note| JudgedNote {
            paper: experiment.paper.clone(),
            item: note.item.clone(),
            text: results.text(&note.pieces),
        }));
    }
    let wall_seconds = begin.elapsed().as_secs_f64();
    Ok(Judgement { schema: SCHEMA, version: env!("CARGO_PKG_VERSION"), wall_seconds, hash, runs: total, claims, notes })
}

/// Each variant with chance in it has seeds of its own: a paper's cells are single runs, and nothing says that two of them
/// share their random numbers, so a ratio of two must spread as a ratio of independent draws does. Variant v is run with the
/// seeds from `seed + v · 10000` on, counted over all combinations of the axes, whatever the number of seeds is.
const SEEDS_OF_A_VARIANT: u64 = 10_000;

/// Which runs are needed, each once.
#[derive(Default)]
struct Plan {
    jobs: Vec<Scenario>,
    /// Position of the first run of a variant of an experiment, and how many there are: one a seed.
    variants: BTreeMap<(usize, Variant), (usize, usize)>,
}

impl Plan {
    fn add(&mut self, index: usize, experiment: &Experiment, seeds: Option<u32>) -> Result<(), Diagnostic> {
        let numbers: BTreeMap<Variant, u64> = experiment.variants().into_iter().zip(0..).collect();
        for variant in needed_variants(experiment) {
            let scenario = experiment.scenario(&variant)?;
            let (first, count) = match scenario.is_random() {
                true => (
                    scenario.seed.wrapping_add(numbers[&variant] * SEEDS_OF_A_VARIANT),
                    seeds.unwrap_or(experiment.seeds),
                ),
                false => (scenario.seed, 1),
            };
            self.variants.insert((index, variant), (self.jobs.len(), count as usize));
            let seeded = |offset| Scenario { seed: first.wrapping_add(offset), ..scenario.clone() };
            self.jobs.extend((0..u64::from(count)).map(seeded));
        }
        Ok(())
    }
}

/// The variants that claims and notes ask for, found by evaluating them with a stand-in for every gauge.
fn needed_variants(experiment: &Experiment) -> Vec<Variant> {
    let mut needed = Vec::new();
    for expression in experiment.claims.iter().flat_map(|claim| claim.statistic.expressions()).chain(
        experiment.notes.iter().flat_map(|note| &note.pieces).filter_map(|piece| match piece {
            Piece::Value(expression, _) => Some(expression),
            Piece::Text(_) => None,
        }),
    ) {
        let mut gauge = |variant: &Variant, _: &str| {
            if !needed.contains(variant) {
                needed.push(variant.clone());
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
    reports: &'a [Report],
}

impl Results<'_> {
    fn judge(&self, claim: &Claim) -> JudgedClaim {
        let sample = match &claim.statistic {
            Statistic::Value(expression) => self.sample(expression),
            Statistic::Order(expressions) => self.lead(expressions),
        };
        let published = claim.published.number();
        // A gauge that was not measured leaves nothing to agree with.
        let admitted = sample.as_ref().is_ok_and(|sample| claim.band.admits(published, sample));
        let verdict = match (claim.not_reproducible, admitted) {
            (true, _) => Verdict::NotReproducible,
            (false, true) => Verdict::Reproduced,
            (false, false) => Verdict::Deviates,
        };
        let because = match (&sample, verdict) {
            (_, Verdict::Reproduced) => None,
            (Err(error), _) => Some(error.to_string()),
            (Ok(_), _) => claim.because.clone(),
        };
        let band = sample
            .as_ref()
            .map_or(Interval { low: f64::NAN, high: f64::NAN }, |sample| claim.band.interval(published, sample));
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        JudgedClaim {
            paper: self.experiment.paper.clone(),
            item: claim.item.clone(),
            title: claim.title.clone(),
            source: claim.source,
            cite: claim.cite.clone(),
            row: claim.row.clone(),
            column: claim.column.clone(),
            kind: claim.kind,
            unit: claim.unit.clone(),
            published: match &claim.published {
                Published::Number(number) => PublishedValue::Number(*number),
                Published::Words(words) => PublishedValue::Words(words.clone()),
            },
            measured: Measured { ns2: sample.as_ref().ok().map(measurement), anabranch: None },
            band: JudgedBand { kind: claim.band.kind(), low: finite(band.low), high: finite(band.high) },
            verdict,
            because,
            scenario: self.experiment.file().to_owned(),
            is_missed: verdict == Verdict::Deviates && (claim.because.is_none() || sample.is_err()),
        }
    }

    /// An expression seed by seed. Where one variant was run once for all seeds, its value stands for each of them.
    fn sample(&self, expression: &Expression) -> Result<Sample, ExpressionError> {
        let mut seeds = 1;
        let count = &mut |variant: &Variant, _: &str| {
            seeds = seeds.max(self.runs(variant).len());
            Ok(1.0)
        };
        self.experiment.evaluate(expression, count)?;
        let mut value = |seed: usize| {
            let gauge = &mut |variant: &Variant, name: &str| {
                let runs = self.runs(variant);
                runs[seed % runs.len()].gauge(name).map_err(ExpressionError)
            };
            self.experiment.evaluate(expression, gauge)
        };
        (0..seeds).map(&mut value).collect::<Result<_, _>>().map(Sample::new)
    }

    /// By how much each of several means is above the next: the sample of the smallest lead.
    fn lead(&self, expressions: &[Expression]) -> Result<Sample, ExpressionError> {
        let mut least: Option<Sample> = None;
        for pair in expressions.windows(2) {
            let lead = self.sample(&pair[0].minus(&pair[1]))?;
            if least.as_ref().is_none_or(|least| lead.mean() < least.mean()) {
                least = Some(lead);
            }
        }
        Ok(least.expect("an order is of two things at least"))
    }

    fn runs(&self, variant: &Variant) -> &[Report] {
        let (first, count) = self.plan.variants[&(self.index, variant.clone())];
        &self.reports[first..first + count]
    }

    fn text(&self, pieces: &[Piece]) -> String {
        let show = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Value(expression, decimals) => match self.sample(expression) {
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

impl Statistic {
    fn expressions(&self) -> &[Expression] {
        match self {
            Self::Value(expression) => std::slice::from_ref(expression),
            Self::Order(expressions) => expressions,
        }
    }
}
