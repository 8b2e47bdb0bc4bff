//! The attack: a search in the ranges of the field for the scenario in which a law does worst.
//!
//! It begins with random networks and climbs from the worst: one or two numbers of the draw change, and a network that is worse takes its place. When it
//! gets no worse, it climbs from the next worst random network. A search of more steps begins with those of a shorter one.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use anabranch_sim::{Stream, Substreams};
use serde::Serialize;

use super::draw::Draw;
use super::family::{Better, Case, Family, FigureKind};
use super::{Fact, Job, Measured};
use crate::diagnostic::Diagnostic;
use crate::evaluation::{Contender, given};
use crate::parallel;

/// What a law is to do worst by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Aim {
    /// The part of a link that is used.
    Use,
    /// The delay of the queue, in round trips.
    Delay,
    /// The share beside one flow of a rival.
    Share,
    /// The goodput of the least of several flows of the law.
    Starvation,
}

impl Aim {
    /// All aims, in the order of a report.
    pub const ALL: [Self; 4] = [Self::Use, Self::Delay, Self::Share, Self::Starvation];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Use => "use",
            Self::Delay => "delay",
            Self::Share => "share",
            Self::Starvation => "starvation",
        }
    }

    /// The aim of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|aim| aim.name() == name)
    }

    /// The name of the figure.
    fn figure(self) -> &'static str {
        match self {
            Self::Use => "used",
            Self::Delay => "queue",
            Self::Share => "share",
            Self::Starvation => "least",
        }
    }

    /// How bad a figure is: more is worse.
    fn badness(self, figure: f64, case: &Case) -> f64 {
        match self {
            Self::Use | Self::Share | Self::Starvation => -figure,
            Self::Delay => figure / case.fact("rtt_ms").expect("every family has a round trip"),
        }
    }
}

/// A request for a search.
#[derive(Clone, Debug)]
pub struct Request {
    /// The law under test.
    pub law: Contender,
    /// The rivals, each once.
    pub against: Vec<Contender>,
    /// What the law is to do worst by.
    pub aim: Aim,
    /// The families to search in, as far as they have the figure.
    pub families: Vec<Family>,
    /// The seed of the search.
    pub seed: u64,
    /// The number of scenarios to try.
    pub steps: u32,
    /// The number of parallel runs. It does not change what is found.
    pub jobs: NonZeroUsize,
}

/// The default number of scenarios.
pub const STEPS: u32 = 200;

/// The limit of scenarios.
pub const STEPS_MAX: u32 = 100_000;

/// The worst scenario that a search has found.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// What it is worst by.
    pub aim: Aim,
    /// The name of its family: `alone`, `beside cubic`.
    pub family: String,
    /// The figure that belongs to the aim.
    pub figure: FigureKind,
    /// The value of the figure, in its unit.
    pub value: f64,
    /// The facts of the network: names and values.
    pub facts: Vec<Fact>,
    /// The number of scenarios that were tried.
    pub steps: u32,
    /// The number of the step that found it, from 1.
    pub step: u32,
    /// The hash of its run.
    pub hash: String,
    /// The scenario, as it was run.
    #[serde(skip)]
    pub scenario: String,
}

/// A network that was tried.
#[derive(Clone)]
struct Tried<'a> {
    kind: Kind<'a>,
    /// Whether the law is first, and the numbers of the draw.
    numbers: Vec<f64>,
    badness: f64,
    found: Found,
}

/// A family, with a rival where it needs one.
#[derive(Clone, Copy)]
struct Kind<'a> {
    family: Family,
    rival: Option<&'a Contender>,
}

impl Kind<'_> {
    /// The network with these numbers, and all numbers that it has used.
    fn case(self, numbers: &[f64], stream: Stream) -> (Case, Vec<f64>) {
        let (turn, rest) = numbers.split_first().map_or((0.0, &[][..]), |(turn, rest)| (*turn, rest));
        let mut draw = Draw::like(rest.to_vec(), stream);
        let case = self.family.draw((turn * f64::from(self.family.turns())) as u32, &mut draw);
        (case, [turn].into_iter().chain(draw.numbers()).collect())
    }

    fn name(self) -> String {
        let rival = self.rival.map(|rival| format!(" {}", rival.label()));
        self.family.name().to_owned() + &rival.unwrap_or_default()
    }
}

/// Networks of one batch, whose runs are independent. The number of threads does not change what is found, so it is not this.
const BATCH: usize = 8;

/// Batches of random networks before the first climb, and then one in so many.
const RANDOM_FIRST: usize = 4;
const RANDOM_EVERY: usize = 4;

/// Batches without a worse network until the climb begins elsewhere.
const PATIENCE: usize = 5;

/// Searches. `on_step` receives the number of scenarios and the worst so far; if it breaks, the search ends.
///
/// Returns `None` if no family of the request has the figure, or none was run.
///
/// # Errors
/// If two different laws have one name, or a law fails in a run.
pub fn run(
    request: &Request,
    mut on_step: impl FnMut(u32, &Found) -> ControlFlow<()>,
) -> Result<Option<Found>, Diagnostic> {
    let given = given([&request.law].into_iter().chain(&request.against))?;
    let kinds = kinds(request);
    if kinds.is_empty() {
        return Ok(None);
    }
    let streams = Substreams::new(request.seed);
    let mut search = Search::default();
    let (mut batch, mut steps) = (0, 0);
    while steps < request.steps {
        let count = BATCH.min((request.steps - steps) as usize);
        let is_random = batch < RANDOM_FIRST || batch % RANDOM_EVERY == 0;
        let tries: Vec<(Kind<'_>, Case, Vec<f64>, u32)> = (0..count)
            .map(|place| {
                let step = steps + place as u32;
                let mut stream = streams.stream(&format!("attack.{}.{step}", request.aim.name()));
                let (kind, numbers) = match (is_random, search.head()) {
                    (false, Some(head)) => (head.kind, changed(&head.numbers, &mut stream)),
                    _ => (kinds[below(&mut stream, kinds.len())], vec![stream.uniform()]),
                };
                let (case, numbers) = kind.case(&numbers, stream);
                (kind, case, numbers, step + 1)
            })
            .collect();
        let run = |index: usize| {
            let (kind, case, _, step) = &tries[index];
            let file = format!("{}-{step}.toml", request.aim.name());
            Job { file, text: case.scenario(kind.family, &request.law, kind.rival), case }.run(&given)
        };
        let results = parallel::in_order(count, request.jobs, run, || ());
        let results: Vec<Measured> = results.into_iter().collect::<Result<_, _>>()?;
        steps += count as u32;
        let tried = tries
            .into_iter()
            .zip(results)
            .map(|((kind, case, numbers, step), measured)| tried(request, kind, &case, numbers, step, measured));
        search.add(tried.collect(), is_random);
        batch += 1;
        if let Some(worst) = &mut search.worst {
            worst.found.steps = steps;
            if on_step(steps, &worst.found).is_break() {
                break;
            }
        }
    }
    Ok(search.worst.map(|worst| worst.found))
}

/// The families that have the figure, each once for every rival that it needs.
fn kinds(request: &Request) -> Vec<Kind<'_>> {
    let mut kinds = Vec::new();
    for &family in request.families.iter().filter(|family| family.figure(request.aim.figure()).is_some()) {
        match family.needs_rival() {
            true => kinds.extend(request.against.iter().map(|rival| Kind { family, rival: Some(rival) })),
            false => kinds.push(Kind { family, rival: None }),
        }
    }
    kinds
}

fn tried<'a>(
    request: &Request,
    kind: Kind<'a>,
    case: &Case,
    numbers: Vec<f64>,
    step: u32,
    measured: Measured,
) -> Tried<'a> {
    let place = kind.family.figure(request.aim.figure()).expect("only families with the figure are tried");
    let figure = kind.family.figures()[place];
    let value = case.figures(&measured.values)[place];
    let found = Found {
        aim: request.aim,
        family: kind.name(),
        figure,
        value,
        facts: case.facts().to_vec(),
        steps: 0,
        step,
        hash: measured.hash,
        scenario: case.scenario(kind.family, &request.law, kind.rival),
    };
    Tried { kind, numbers, badness: request.aim.badness(value, case), found }
}

/// What a search knows.
#[derive(Default)]
struct Search<'a> {
    worst: Option<Tried<'a>>,
    /// Random networks that no climb has begun from, the worst last.
    random: Vec<Tried<'a>>,
    /// The end of the present climb.
    climb: Option<Tried<'a>>,
    /// Batches since the climb has become worse.
    waited: usize,
}

impl<'a> Search<'a> {
    /// Where the next climb goes on.
    fn head(&self) -> Option<&Tried<'a>> {
        self.climb.as_ref()
    }

    fn add(&mut self, tried: Vec<Tried<'a>>, is_random: bool) {
        for one in &tried {
            // Of equal ones the first, so that the order is that of the steps.
            if self.worst.as_ref().is_none_or(|worst| one.badness > worst.badness) {
                self.worst = Some(one.clone());
            }
        }
        if is_random {
            self.random.extend(tried);
            self.random.sort_by(|a, b| a.badness.total_cmp(&b.badness).then(b.found.step.cmp(&a.found.step)));
        } else {
            self.waited += 1;
            for one in tried {
                if self.climb.as_ref().is_none_or(|climb| one.badness > climb.badness) {
                    (self.climb, self.waited) = (Some(one), 0);
                }
            }
        }
        if self.climb.is_none() || self.waited >= PATIENCE {
            // Without another one the climb goes on.
            self.climb = self.random.pop().or(self.climb.take());
            self.waited = 0;
        }
    }
}

/// The numbers with one or two of them changed: a step to a near value, or any value.
fn changed(numbers: &[f64], stream: &mut Stream) -> Vec<f64> {
    let mut numbers = numbers.to_vec();
    for _ in 0..=below(stream, 2) {
        let place = below(stream, numbers.len());
        numbers[place] = if stream.happens(ANYWHERE) {
            stream.uniform()
        } else {
            (numbers[place] + NEAR * (2.0 * stream.uniform() - 1.0)).clamp(0.0, NUMBER_MAX)
        };
    }
    numbers
}

/// How often a number takes any value.
const ANYWHERE: f64 = 0.3;

/// The largest step to a near value, of a range.
const NEAR: f64 = 0.15;

/// Numbers are below 1.
const NUMBER_MAX: f64 = 1.0 - f64::EPSILON;

fn below(stream: &mut Stream, count: usize) -> usize {
    ((stream.uniform() * count as f64) as usize).min(count - 1)
}

impl Found {
    /// The file: the scenario below comments with its figure and `command`, which found it.
    pub fn file(&self, command: &str) -> String {
        let Self { family, figure, value, steps, step, .. } = self;
        let unit = if figure.unit.is_empty() { String::new() } else { format!(" {}", figure.unit) };
        let better = if figure.better == Better::Low { "low" } else { "high" };
        format!(
            "# {} {value:.4}{unit}: {} ({better} is good). Family {family}, step {step} of {steps} of\n# {command}\n{}",
            figure.name, figure.what, self.scenario
        )
    }
}

#[cfg(test)]
mod tests;
