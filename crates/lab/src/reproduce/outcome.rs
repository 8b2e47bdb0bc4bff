//! The outcome of `reproduce` as one document: `--format json` prints it, and reports are drawn from it.

use serde::Serialize;

use crate::experiment::{ClaimKind, CountsAs, Source};
use crate::verdict::Verdict;

/// The schema of [`Outcome`]; its number rises when a field changes its meaning or is removed.
pub const SCHEMA: &str = "anabranch-reproduce/4";

/// The outcome of `reproduce`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The name of this document's schema.
    pub schema: &'static str,
    /// The version of the laboratory.
    pub version: &'static str,
    /// The wall time in seconds.
    pub wall_seconds: f64,
    /// The combined hash of all judged runs, 16 hexadecimal digits.
    pub hash: String,
    /// The number of judged runs.
    pub runs: usize,
    /// The number of seeds in place of the experiments' own, if one was given.
    pub seeds: Option<u32>,
    /// The command that reproduces everything.
    pub command: String,
    /// The papers, then derivations and our own questions.
    pub papers: Vec<Paper>,
}

/// The outcome of one paper.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Paper {
    /// The paper's key in docs/bibliography.md.
    pub key: String,
    /// The title; the key if the title is unknown.
    pub title: String,
    /// The question of the paper; empty if unknown.
    pub question: String,
    /// The command that reproduces the paper.
    pub command: String,
    /// The experiments, sorted by file name.
    pub experiments: Vec<ExperimentOutcome>,
}

/// The outcome of one experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExperimentOutcome {
    /// The table or figure of the paper: the name of the file. Its claims may belong to other items, too.
    pub item: String,
    /// The question of the experiment.
    pub question: String,
    /// The file that it was read from.
    pub file: String,
    /// The number of seeds of a variant that involves chance.
    pub seeds: u32,
    /// Whether a variant that was run involves chance.
    pub is_random: bool,
    /// The scenario's seed. Variant v runs with the seeds from `seed + v · 10000` on; without chance with this one.
    pub seed: u64,
    /// The duration of a run: `100s`.
    pub duration: String,
    /// The axes, in the order of the file.
    pub axes: Vec<VariedAxis>,
    /// The network before variation.
    pub topology: DescribedNetwork,
    /// The claims, in the order of the file.
    pub claims: Vec<JudgedClaim>,
    /// The remarks, in the order of the file.
    pub notes: Vec<JudgedNote>,
    /// The figures, in the order of the file.
    pub figures: Vec<Figure>,
    /// The text of the file.
    pub source: String,
    /// The command that reproduces the experiment.
    pub command: String,
}

impl ExperimentOutcome {
    /// The axis with this label among its values.
    pub fn axis_of(&self, label: &str) -> Option<&VariedAxis> {
        self.axes.iter().find(|axis| axis.values.iter().any(|value| value == label))
    }
}

/// An axis of variation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariedAxis {
    /// The name of the axis.
    pub name: String,
    /// The labels of its values.
    pub values: Vec<String>,
    /// The scenario keys that any value sets: `link.lossy.error.rate`.
    pub keys: Vec<String>,
}

/// The network of an experiment, with its flows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DescribedNetwork {
    /// The names of the nodes, in the order of the file.
    pub nodes: Vec<String>,
    /// The links, in the order of the file. A reverse direction that differs from the default follows its link.
    pub links: Vec<DescribedLink>,
    /// The flows, in the order of the file.
    pub flows: Vec<DescribedFlow>,
}

/// A link. Quantities are texts with units, for people.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DescribedLink {
    /// The name of the link.
    pub id: String,
    /// The node where it begins.
    pub from: String,
    /// The node where it ends.
    pub to: String,
    /// The rate, such as `1.5Mbit/s`.
    pub rate: String,
    /// The delay, such as `100ms`.
    pub delay: String,
    /// The queue, such as `drop_tail, packets 10`.
    pub queue: String,
    /// The error model before the queue, if there is one.
    pub error: Option<String>,
    /// Whether the link is duplex.
    pub is_duplex: bool,
}

/// A flow of the network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DescribedFlow {
    /// The name of the flow.
    pub id: String,
    /// The node that sends.
    pub from: String,
    /// The node that receives.
    pub to: String,
    /// The transport, as in the scenario.
    pub transport: String,
}

/// A claim with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedClaim {
    /// The item of the paper: `table2`, `fig5`, `text`.
    pub item: String,
    /// The title of its table.
    pub title: String,
    /// The kind of its source.
    pub source: Source,
    /// The category in which it is counted.
    pub counts_as: CountsAs,
    /// The citation of the source.
    pub cite: String,
    /// The label of the row, as printed.
    pub row: String,
    /// The label of the column, as printed.
    pub column: String,
    /// The kind of the claim.
    pub kind: ClaimKind,
    /// The unit of the numbers.
    pub unit: String,
    /// The published number or statement.
    pub published: PublishedValue,
    /// Our values for it.
    pub measured: Measured,
    /// The comparison of our own transport with ns-2's agents, if there is one.
    pub engine: Option<BesideEngine>,
    /// The interval that decides.
    pub band: JudgedBand,
    /// The verdict on the claim.
    pub verdict: Verdict,
    /// The reason why it is not reproduced.
    pub because: Option<String>,
    /// Whether it deviates without a reason.
    pub is_missed: bool,
    /// Whether it deviates and the reason is not yet known.
    pub is_open: bool,
    /// Whether it is reproduced, and no change of a sensitivity run flips that.
    pub is_coarse: bool,
}

/// A published number or statement.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PublishedValue {
    /// A single number.
    Number(f64),
    /// A statement in words.
    Words(String),
}

/// The values of each implementation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The experiment as in its file: with ns-2's agents, or with our own transport if it is about that.
    pub ours: Option<Measurement>,
    /// The experiment with our own transport in place of ns-2's agents; `None` without such agents.
    pub engine: Option<Measurement>,
}

/// Our own transport compared with ns-2's agents.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BesideEngine {
    /// For a number: whether it is within 5 % of that of ns-2's agents. For an order, a time or a shape: whether it holds.
    pub agrees: bool,
    /// The reason of a disagreement.
    pub because: Option<String>,
    /// Whether it disagrees without a reason.
    pub is_missed: bool,
}

/// Counts of claims by which our own transport is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineCount {
    /// All claims of the comparison.
    pub claims: usize,
    /// Claims on which it agrees.
    pub agree: usize,
    /// Orders, times and shapes among the others that ns-2's agents do not keep either.
    pub kept_by_none: usize,
}

/// The samples of one implementation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measurement {
    /// The mean over the seeds.
    pub value: f64,
    /// The number of seeds; 1 without chance.
    pub seeds: usize,
    /// The standard deviation over the seeds.
    pub sd: f64,
    /// The lower end of the 95 % prediction interval of one run.
    pub low: f64,
    /// The upper end of that interval.
    pub high: f64,
}

/// The interval that decides. For a `prediction` the published number must lie between `low` and `high`, otherwise our mean. An
/// unbounded end is `null`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedBand {
    /// `exact`, `truncated`, `prediction`, `mean` or `above`.
    pub kind: &'static str,
    /// The lower end of the interval.
    pub low: Option<f64>,
    /// The upper end of the interval.
    pub high: Option<f64>,
}

/// A remark with its numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedNote {
    /// The item that it belongs to.
    pub item: String,
    /// The text of the remark.
    pub text: String,
}

/// A figure: panels above each other with a common time axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The item that it belongs to, such as `fig8`.
    pub item: String,
    /// The title of the figure.
    pub title: String,
    /// The caption of the figure.
    pub caption: String,
    /// The start of the time axis in seconds.
    pub from: f64,
    /// The end of the time axis in seconds.
    pub to: f64,
    /// The panels from the top.
    pub panels: Vec<Panel>,
}

/// Curves over one axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Panel {
    /// The title of the panel.
    pub title: String,
    /// The unit of the values.
    pub unit: String,
    /// The curves, in the order of the file and of the variants.
    pub series: Vec<Series>,
}

/// A curve of a panel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// How the points are joined.
    pub style: Style,
    /// Times in seconds, which never go back.
    pub t: Vec<f64>,
    /// The values at these times.
    pub v: Vec<f64>,
}

/// How the points of a curve are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// A value holds until the next point.
    Steps,
    /// Each point is an event of its own.
    Points,
}

impl Outcome {
    /// All claims, paper by paper.
    pub fn claims(&self) -> impl Iterator<Item = &JudgedClaim> + Clone {
        self.papers.iter().flat_map(|paper| &paper.experiments).flat_map(|experiment| &experiment.claims)
    }

    /// The number of claims with this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.claims().filter(|claim| claim.verdict == verdict).count()
    }

    /// The number of claims that deviate without a reason.
    pub fn missed(&self) -> usize {
        self.claims().filter(|claim| claim.is_missed).count()
    }

    /// The number of claims on which our own transport disagrees without a reason.
    pub fn engine_missed(&self) -> usize {
        self.claims().filter(|claim| claim.engine.as_ref().is_some_and(|engine| engine.is_missed)).count()
    }

    /// The comparison of our own transport: counts for numbers, and for orders, times and shapes.
    pub fn engine_counts(&self) -> [EngineCount; 2] {
        EngineCount::of(self.claims())
    }

    /// The number of claims that deviate for a reason not yet known.
    pub fn open(&self) -> usize {
        self.claims().filter(|claim| claim.is_open).count()
    }
}

impl EngineCount {
    /// Counts for numbers, and for orders, times and shapes.
    pub fn of<'a>(claims: impl Iterator<Item = &'a JudgedClaim> + Clone) -> [Self; 2] {
        [true, false].map(|of_numbers| {
            let claims = claims.clone().filter(|claim| (claim.kind == ClaimKind::Number) == of_numbers);
            claims.filter_map(|claim| claim.engine.as_ref().zip(Some(claim.verdict))).fold(
                Self::default(),
                |count, (engine, verdict)| {
                    let is_kept_by_none = !of_numbers && !engine.agrees && verdict != Verdict::Reproduced;
                    Self {
                        claims: count.claims + 1,
                        agree: count.agree + usize::from(engine.agrees),
                        kept_by_none: count.kept_by_none + usize::from(is_kept_by_none),
                    }
                },
            )
        })
    }
}
