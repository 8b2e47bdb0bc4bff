//! What `reproduce` found out, as one document: `--format json` prints it, reports are drawn from it.

use serde::Serialize;

use crate::experiment::{ClaimKind, CountsAs, Source};
use crate::verdict::Verdict;

/// The schema of [`Outcome`]; its number rises when a field changes its meaning or goes.
pub const SCHEMA: &str = "anabranch-reproduce/4";

/// Everything that `reproduce` found out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Name of this document's schema.
    pub schema: &'static str,
    /// Version of the laboratory.
    pub version: &'static str,
    /// Time it took.
    pub wall_seconds: f64,
    /// Of the hashes of all judged runs, in 16 hexadecimal digits.
    pub hash: String,
    /// How many judged runs there were.
    pub runs: usize,
    /// What was asked for instead of the experiments' own numbers of seeds.
    pub seeds: Option<u32>,
    /// What to type to get everything again.
    pub command: String,
    /// The papers, then what follows from laws and our own questions.
    pub papers: Vec<Paper>,
}

/// One paper.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Paper {
    /// Its key in docs/bibliography.md.
    pub key: String,
    /// What it is called; its key if the laboratory does not know.
    pub title: String,
    /// What it asks; empty if the laboratory does not know.
    pub question: String,
    /// What to type to get all of it again.
    pub command: String,
    /// In the order of their files' names.
    pub experiments: Vec<ExperimentOutcome>,
}

/// One experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExperimentOutcome {
    /// Which table or figure of the paper it is about: the name of its file. Its claims may belong to others, too.
    pub item: String,
    /// What it asks.
    pub question: String,
    /// Where it was read.
    pub file: String,
    /// How many seeds a variant with chance in it was run with.
    pub seeds: u32,
    /// Whether there is chance in a variant that was run.
    pub is_random: bool,
    /// The scenario's seed. Variant v is run with the seeds from `seed + v · 10000` on; without chance in it, with this one.
    pub seed: u64,
    /// How long a run lasts: `100s`.
    pub duration: String,
    /// What is varied, in the order of the file.
    pub axes: Vec<VariedAxis>,
    /// What is simulated if no axis changes it.
    pub topology: Topology,
    /// In the order of the file.
    pub claims: Vec<JudgedClaim>,
    /// Remarks, in the order of the file.
    pub notes: Vec<JudgedNote>,
    /// In the order of the file.
    pub figures: Vec<Figure>,
    /// The file's text.
    pub source: String,
    /// What to type to get this again.
    pub command: String,
}

/// What is varied.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariedAxis {
    /// Its name.
    pub name: String,
    /// What its values are called.
    pub values: Vec<String>,
    /// The keys of the scenario that one value or another sets: `link.lossy.error.rate`.
    pub keys: Vec<String>,
}

/// The network of an experiment and who uses it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Topology {
    /// Their names, in the order in which the file names them.
    pub nodes: Vec<String>,
    /// In the order of the file. A way back that is not as `[[link]]` makes it by itself follows its link.
    pub links: Vec<TopologyLink>,
    /// In the order of the file.
    pub flows: Vec<TopologyFlow>,
}

/// A link. Quantities are texts with their units, for people.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TopologyLink {
    /// Its name.
    pub id: String,
    /// The node where it begins.
    pub from: String,
    /// The node where it ends.
    pub to: String,
    /// `1.5Mbit/s`.
    pub rate: String,
    /// `100ms`.
    pub delay: String,
    /// `drop-tail, 10 packets`.
    pub queue: String,
    /// What it loses in front of its queue, if it does.
    pub error: Option<String>,
    /// Whether packets can go back.
    pub is_duplex: bool,
}

/// A flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TopologyFlow {
    /// Its name.
    pub id: String,
    /// The node that sends.
    pub from: String,
    /// The node that receives.
    pub to: String,
    /// As in the scenario.
    pub transport: String,
}

/// One claim with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedClaim {
    /// `table2`, `fig5`, `text`.
    pub item: String,
    /// What the table is called.
    pub title: String,
    /// Who says so.
    pub source: Source,
    /// As what it is counted.
    pub counts_as: CountsAs,
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
    /// How our own transport stands to it, where it can take the place of ns-2's agents.
    pub engine: Option<BesideEngine>,
    /// What decides.
    pub band: JudgedBand,
    /// What became of it.
    pub verdict: Verdict,
    /// Why it is not reproduced.
    pub because: Option<String>,
    /// Whether it deviates and the experiment does not say why.
    pub is_missed: bool,
    /// Whether it deviates and the reason is still to be found.
    pub is_open: bool,
    /// Whether it is reproduced, and no change of a sensitivity run flips that.
    pub is_coarse: bool,
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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The experiment as its file has it: with the agents of ns-2, or with our own transport if it is about that.
    pub ours: Option<Measurement>,
    /// The same with our own transport in the place of ns-2's agents of the papers' protocols; nothing where there are none.
    pub engine: Option<Measurement>,
}

/// Our own transport in the place of ns-2's agents.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BesideEngine {
    /// Of a number: whether it is within 5 % of that of ns-2's agents. Of an order, a time or a shape: whether it holds.
    pub agrees: bool,
    /// Why it does not agree.
    pub because: Option<String>,
    /// Whether it does not agree and the experiment does not say why.
    pub is_missed: bool,
}

/// Claims that our own transport is held to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineCount {
    /// All of them.
    pub claims: usize,
    /// Those that it agrees with.
    pub agree: usize,
    /// Of the others those that are no numbers and that ns-2's agents do not keep either.
    pub kept_by_none: usize,
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
    /// `exact`, `truncated`, `prediction`, `mean` or `above`.
    pub kind: &'static str,
    /// Lower end.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// A remark with its numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedNote {
    /// Under which item.
    pub item: String,
    /// What it says.
    pub text: String,
}

/// Panels above each other with one axis of time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// `fig8`: under which item.
    pub item: String,
    /// What it is called.
    pub title: String,
    /// What to see in it.
    pub caption: String,
    /// Where the axis of time begins, in seconds.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// From the top.
    pub panels: Vec<Panel>,
}

/// Curves over one axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Panel {
    /// What is shown.
    pub title: String,
    /// Of the values.
    pub unit: String,
    /// In the order of the file, and of the variants.
    pub series: Vec<Series>,
}

/// One curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// How points are joined.
    pub style: Style,
    /// Times in seconds, which never go back.
    pub t: Vec<f64>,
    /// As many values.
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

    /// How many claims have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.claims().filter(|claim| claim.verdict == verdict).count()
    }

    /// How many claims deviate and their experiment does not say why.
    pub fn missed(&self) -> usize {
        self.claims().filter(|claim| claim.is_missed).count()
    }

    /// How many claims our own transport does not agree with, and their experiment does not say why.
    pub fn engine_missed(&self) -> usize {
        self.claims().filter(|claim| claim.engine.as_ref().is_some_and(|engine| engine.is_missed)).count()
    }

    /// Of the claims that our own transport can be held to, how many there are and how many it agrees with: of numbers, and of
    /// orders, times and shapes.
    pub fn engine_counts(&self) -> [EngineCount; 2] {
        EngineCount::of(self.claims())
    }

    /// How many claims deviate and the reason is still to be found.
    pub fn open(&self) -> usize {
        self.claims().filter(|claim| claim.is_open).count()
    }
}

impl EngineCount {
    /// Of numbers, and of orders, times and shapes.
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
