//! The field: how well a law does on random networks, by itself and beside rivals.
//!
//! A point that a law was tuned to shows nothing about its neighbours. So each [`Family`] draws networks from a seed, and every law of a comparison runs on the
//! same draws. The outcome has quantiles of each figure, and the worst draws with their scenarios.
//!
//! `draw` has the distributions, `scenario` writes scenarios, `family` has a file for each family, `summary` computes quantiles.

pub mod attack;
mod draw;
mod family;
mod measure;
mod scenario;
mod summary;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_plugin::Module;
use anabranch_sim::Substreams;
use serde::Serialize;

pub use self::family::{Better, Family, FigureKind};
pub use self::summary::{Column, Statistic};

use self::draw::Draw;
use self::family::{Case, MEASURE};
use crate::diagnostic::{Diagnostic, Fault};
use crate::document::Document;
use crate::evaluation::{self, Choice, Contender, given, modules};
use crate::own::Given;
use crate::parallel;
use crate::report::combined_hash;
use crate::reproduce::Watch;
use crate::run;
use crate::scenario::Scenario;

/// A request for a field.
#[derive(Clone, Debug)]
pub struct Request {
    /// The law under test.
    pub law: Contender,
    /// The rivals, each once: every law runs beside each of them, and they run on all draws for comparison.
    pub against: Vec<Contender>,
    /// The families, in their order.
    pub families: Vec<Family>,
    /// The number of draws of each family.
    pub draws: u32,
    /// The seed of the draws.
    pub seed: u64,
    /// The number of parallel runs.
    pub jobs: NonZeroUsize,
}

/// The default number of draws of a family.
pub const DRAWS: u32 = 20;

/// The limit of draws of a family.
pub const DRAWS_MAX: u32 = 10_000;

/// The name of the document's schema. Its number rises when a field changes its meaning or goes.
pub const SCHEMA: &str = "anabranch-field/2";

/// The worst draws that an outcome names, of each family and law.
const WORST: usize = 10;

/// The folder of the worst scenarios, beside the report.
pub const WORST_FOLDER: &str = "worst";

/// The figures of all laws on the drawn networks.
#[derive(Clone, Debug, Serialize)]
pub struct Field {
    /// Name of this document's schema.
    pub schema: &'static str,
    /// The seed of the draws.
    pub seed: u64,
    /// The number of draws of each family.
    pub draws: u32,
    /// The law under test, and then the rivals.
    pub laws: Vec<String>,
    /// The families in their order. One that needs a rival stands here once for each.
    pub families: Vec<FamilyOutcome>,
    /// The number of runs.
    pub runs: usize,
    /// A hash of all runs.
    pub hash: String,
    /// The command that runs it again.
    pub command: String,
    /// See [`Field::modules`].
    #[serde(skip)]
    pub(crate) modules: Vec<(String, Arc<Module>)>,
}

impl Field {
    /// The modules that the worst scenarios name, by their names there.
    pub fn modules(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.modules.iter().map(|(name, module)| (name.as_str(), module.bytes()))
    }

    /// The names and texts of the worst scenarios, as they were run.
    pub fn scenarios(&self) -> impl Iterator<Item = (&str, &str)> {
        let laws = self.families.iter().flat_map(|family| &family.laws);
        laws.flat_map(|law| &law.worst).map(|worst| (worst.file.as_str(), worst.scenario.as_str()))
    }
}

/// A family's draws, and the figures of each law on them.
#[derive(Clone, Debug, Serialize)]
pub struct FamilyOutcome {
    /// The name of the family: `alone`, `beside cubic`.
    pub name: String,
    /// What the family asks.
    pub question: &'static str,
    /// The distributions that its networks are drawn from.
    pub drawn: &'static str,
    /// The figures of a run, in the order of [`LawOutcome::figures`].
    pub figures: Vec<FigureKind>,
    /// The columns of its table: statistics of figures.
    pub columns: Vec<Column>,
    /// The laws in the order of [`Field::laws`].
    pub laws: Vec<LawOutcome>,
    /// The facts of each draw: names and values.
    pub draws: Vec<Vec<Fact>>,
}

/// A law on a family's draws.
#[derive(Clone, Debug, Serialize)]
pub struct LawOutcome {
    /// The law, with its settings.
    pub law: String,
    /// The values of the table, in the order of [`FamilyOutcome::columns`].
    pub values: Vec<f64>,
    /// The values of each figure, in the order of the draws.
    pub figures: Vec<Vec<f64>>,
    /// Its worst draws, worst first.
    pub worst: Vec<Worst>,
}

/// A drawn quantity of a network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fact {
    /// Its name with its unit, such as `rate_mbit_per_s`.
    pub name: &'static str,
    /// Its value, in the unit that the name ends with.
    pub value: f64,
}

/// A draw on which a law does badly.
#[derive(Clone, Debug, Serialize)]
pub struct Worst {
    /// The number of the draw, from 0.
    pub draw: usize,
    /// The value of the family's first figure.
    pub value: f64,
    /// The name of the file with its scenario: `alone-17-cubic.toml`.
    pub file: String,
    /// The scenario, as it was run.
    #[serde(skip)]
    pub scenario: String,
}

/// A family, with a rival where it needs one.
struct Part<'a> {
    family: Family,
    rival: Option<&'a Contender>,
    cases: Vec<Case>,
}

impl Part<'_> {
    fn name(&self) -> String {
        match self.rival {
            Some(rival) => format!("{} {}", self.family.name(), rival.label()),
            None => self.family.name().to_owned(),
        }
    }

    fn file(&self, index: usize, law: &Contender) -> String {
        match self.rival {
            Some(rival) => format!("{}-{}-{index}-{}.toml", self.family.name(), rival.slug(), law.slug()),
            None => format!("{}-{index}-{}.toml", self.family.name(), law.slug()),
        }
    }

    /// The scenario of a draw with a law.
    fn scenario(&self, index: usize, law: &Contender) -> String {
        self.cases[index].scenario(self.family, law, self.rival)
    }
}

/// Runs the field.
///
/// # Errors
/// If two different laws have one name, a law fails in a run, or the first scenario of a family is not valid with a law.
///
/// # Panics
/// If `watch` stops it; [`run_until`] is for that.
pub fn run(request: &Request, watch: impl Watch) -> Result<Field, Diagnostic> {
    run_until(request, watch).map(|field| field.expect("the watcher lets it go on"))
}

/// The same; `None` if `watch` stops it.
///
/// # Errors
/// As [`run()`].
pub fn run_until(request: &Request, mut watch: impl Watch) -> Result<Option<Field>, Diagnostic> {
    let laws: Vec<&Contender> = [&request.law].into_iter().chain(&request.against).collect();
    let given = given(laws.iter().copied())?;
    let parts = parts(request);
    let mut plan = Plan::default();
    for part in &parts {
        for (index, case) in part.cases.iter().enumerate() {
            laws.iter().for_each(|law| plan.add(part.file(index, law), part.scenario(index, law), case));
        }
    }
    let (total, mut done) = (plan.jobs.len(), 0);
    let is_stopped = AtomicBool::new(!watch.goes_on());
    let job = |index: usize| (!is_stopped.load(Ordering::Relaxed)).then(|| plan.jobs[index].run(&given));
    let results = parallel::in_order(total, request.jobs, job, || {
        done += 1;
        watch.runs(done, total);
        is_stopped.fetch_or(!watch.goes_on(), Ordering::Relaxed);
    });
    let Some(results) = results.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
    let results: Vec<Measured> = results.into_iter().collect::<Result<_, _>>()?;
    let hash = combined_hash(results.iter().map(|measured| measured.hash.as_str()));
    let mut next = plan.places.iter().map(|&place| &results[place].values[..]);
    let families = parts.iter().map(|part| outcome(part, &laws, &mut next)).collect();
    Ok(Some(Field {
        schema: SCHEMA,
        seed: request.seed,
        draws: request.draws,
        laws: laws.iter().map(|law| law.label()).collect(),
        families,
        runs: total,
        hash,
        command: command(request),
        modules: modules(laws),
    }))
}

/// The command of this request.
fn command(request: &Request) -> String {
    let Request { law, against, families, draws, seed, .. } = request;
    let mut options =
        vec![Choice::flag("field"), Choice::value("draws", draws.to_string()), Choice::value("seed", seed.to_string())];
    if *families != Family::ALL {
        options.push(Choice::list("family", families.iter().map(|family| family.name())));
    }
    evaluation::command(law, against, &options)
}

fn parts(request: &Request) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for &family in &request.families {
        let rivals: Vec<Option<&Contender>> =
            if family.needs_rival() { request.against.iter().map(Some).collect() } else { vec![None] };
        for rival in rivals {
            let cases = (0..request.draws).map(|index| draw(family, request.seed, index)).collect();
            parts.push(Part { family, rival, cases });
        }
    }
    parts
}

/// The draw of this number: it depends on the family, the seed and the number alone, so more draws change no other.
fn draw(family: Family, seed: u64, index: u32) -> Case {
    let network = index / family.turns();
    let stream = Substreams::new(seed).stream(&format!("field.{}.{network}", family.name()));
    family.draw(index, &mut Draw::new(stream))
}

/// The runs of a field, each once.
#[derive(Default)]
struct Plan<'a> {
    jobs: Vec<Job<'a>>,
    /// The job of each draw and law, in their order.
    places: Vec<usize>,
    /// The jobs by their network: a rival beside another is the same run in either role.
    known: BTreeMap<String, usize>,
}

impl<'a> Plan<'a> {
    fn add(&mut self, file: String, text: String, case: &'a Case) {
        let next = self.jobs.len();
        // The roles are in the measures alone.
        let (network, _) = text.split_once(MEASURE).expect("every case measures something");
        let place = *self.known.entry(network.to_owned()).or_insert(next);
        if place == next {
            self.jobs.push(Job { file, text, case });
        }
        self.places.push(place);
    }
}

/// A scenario to run.
struct Job<'a> {
    file: String,
    text: String,
    case: &'a Case,
}

/// The values of a run's measures, and its hash.
struct Measured {
    values: Vec<f64>,
    hash: String,
}

impl Job<'_> {
    fn run(&self, given: &Given) -> Result<Measured, Diagnostic> {
        let Self { file, text, case } = self;
        let nothing = &mut |_: &str| Err("no other file is read here".to_owned());
        let document = Document::parse_given(file, text, nothing, given)?;
        let scenario = Scenario::parse(&document)?;
        let measured = run::run_watched(&scenario, |simulation| {
            let values = measure::run(simulation, case.measures());
            Measured { values, hash: simulation.hash() }
        });
        measured
            .map_err(|error| Fault::new(error.0).remedy("a field goes on only with laws that do not fail").about(file))
    }
}

fn outcome<'a>(part: &Part<'_>, laws: &[&Contender], next: &mut impl Iterator<Item = &'a [f64]>) -> FamilyOutcome {
    let kinds = part.family.figures();
    let mut figures = vec![vec![Vec::with_capacity(part.cases.len()); kinds.len()]; laws.len()];
    for case in &part.cases {
        for law in &mut figures {
            let values = case.figures(next.next().expect("each draw has a run with each law"));
            law.iter_mut().zip(values).for_each(|(all, value)| all.push(value));
        }
    }
    let columns = part.family.columns();
    let laws = laws.iter().zip(figures).map(|(law, figures)| LawOutcome {
        law: law.label(),
        values: columns.iter().map(|column| column.statistic.of(&figures[column.figure])).collect(),
        worst: worst(part, law, &figures[0], kinds[0].better),
        figures,
    });
    FamilyOutcome {
        name: part.name(),
        question: part.family.question(),
        drawn: part.family.drawn(),
        figures: kinds.to_vec(),
        columns: columns.to_vec(),
        laws: laws.collect(),
        draws: part.cases.iter().map(|case| case.facts().to_vec()).collect(),
    }
}

fn worst(part: &Part<'_>, law: &Contender, values: &[f64], better: Better) -> Vec<Worst> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| {
        let by_value = values[a].total_cmp(&values[b]);
        let by_value = if better == Better::Low { by_value.reverse() } else { by_value };
        by_value.then(a.cmp(&b))
    });
    let worst = |&draw: &usize| Worst {
        draw,
        value: values[draw],
        file: part.file(draw, law),
        scenario: part.scenario(draw, law),
    };
    order.iter().take(WORST).map(worst).collect()
}

#[cfg(test)]
mod tests;
