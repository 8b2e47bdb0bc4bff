//! Experiments: a scenario with variations, measures and claims.

mod check;
pub(crate) mod file;
pub(crate) mod keys;
pub(crate) mod vary;

use std::collections::BTreeSet;
use std::path::Path;

use crate::diagnostic::Diagnostic;
use crate::document::{Document, Node};
use crate::expression::{Expression, ExpressionError};
use crate::scenario::Scenario;
use crate::verdict::Band;

pub use keys::{CountsAsKeys as CountsAs, KindKeys as ClaimKind, SourceKeys as Source};

/// The folder of files that are no experiments: experiments extend them.
pub const COMMON: &str = "common";

/// The folder of files that a command has written of the experiments.
pub const GENERATED: &str = "generated";

/// Whether this is a folder of experiments: those of a paper, or a group of our own questions.
pub fn is_group(path: &Path) -> bool {
    path.is_dir() && !path.ends_with(COMMON) && !path.ends_with(GENERATED)
}

/// A scenario with its axes; an experiment if it has claims.
#[derive(Clone, Debug)]
pub struct Experiment {
    document: Document,
    /// The scenario of the first value of each axis.
    first: Scenario,
    /// The keys that are set when our own transport replaces ns-2's agents, and their values.
    engine: Vec<(String, Node)>,
    /// The key of the paper; empty for a scenario without a paper.
    pub paper: String,
    /// The number of seeds of a variant that involves chance.
    pub seeds: u32,
    /// The variations of the scenario.
    pub axes: Vec<Axis>,
    measures: Vec<(String, Expression)>,
    /// The claims, in the order of the file.
    pub claims: Vec<Claim>,
    /// Remarks for the report.
    pub notes: Vec<Note>,
    pub(crate) figures: Vec<FigurePlan>,
}

/// An axis of variation.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The name of the axis.
    pub name: String,
    /// The values of the axis.
    pub values: Vec<AxisValue>,
}

impl Axis {
    /// The scenario keys that any of the values sets, in order.
    pub fn keys(&self) -> Vec<String> {
        let keys = self.values.iter().flat_map(|value| &value.assignments).map(|(key, _)| key.clone());
        keys.collect::<BTreeSet<String>>().into_iter().collect()
    }
}

/// One value of an axis.
#[derive(Clone, Debug)]
pub struct AxisValue {
    /// The label: the paper's, if the paper varies it.
    pub label: String,
    /// The scenario keys and their values.
    assignments: Vec<(String, Node)>,
}

/// One value of each axis, by position.
pub type Variant = Vec<usize>;

/// The value of a measure, or of a gauge such as `flow.f0.max_seq`, in a variant.
pub(crate) type VariantLookup<'a> = dyn FnMut(&Variant, &str) -> Result<f64, ExpressionError> + 'a;

/// A claim about the measures.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The place in the paper.
    pub item: String,
    /// The title of its table.
    pub title: String,
    /// The kind of its source.
    pub source: Source,
    /// The category in which it is counted.
    pub counts_as: CountsAs,
    /// Whether no change of a sensitivity run flips its verdict ([`crate::sensitivity`]).
    pub is_coarse: bool,
    /// The citation of the source.
    pub cite: String,
    /// The label of the row, as printed.
    pub row: String,
    /// The label of the column, as printed.
    pub column: String,
    /// The kind of the claim.
    pub kind: ClaimKind,
    /// The unit of the measure.
    pub unit: String,
    /// The published value.
    pub published: Published,
    /// The expression that is compared with it.
    pub(crate) statistic: Statistic,
    /// The tolerance for the measured value.
    pub band: Band,
    /// The reason of a deviation.
    pub because: Option<String>,
    /// The reason why the transport's value differs from that of ns-2's agents.
    pub engine_because: Option<String>,
    /// Whether it is known to be impossible to reproduce.
    pub not_reproducible: bool,
    /// Whether the reason of a deviation is not yet known.
    pub is_open: bool,
}

/// A published value.
#[derive(Clone, Debug, PartialEq)]
pub enum Published {
    /// A single number.
    Number(f64),
    /// A statement in words.
    Words(String),
}

impl Published {
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Words(_) => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Statistic {
    /// An expression of measures at variants.
    Value(Expression),
    /// Expressions of measures at variants, the largest first.
    Order(Vec<Expression>),
}

impl Statistic {
    pub(crate) fn expressions(&self) -> &[Expression] {
        match self {
            Self::Value(expression) => std::slice::from_ref(expression),
            Self::Order(expressions) => expressions,
        }
    }
}

/// A remark for the report.
#[derive(Clone, Debug)]
pub struct Note {
    /// The item of the paper that it belongs to.
    pub item: String,
    pub(crate) pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Text(String),
    /// A value and the number of its decimals.
    Value(Expression, usize),
}

#[derive(Clone, Debug)]
pub(crate) struct FigurePlan {
    pub(crate) item: String,
    pub(crate) title: String,
    pub(crate) caption: String,
    /// The start of its time axis in seconds.
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// The variants with their names in the legend; empty if there is one.
    pub(crate) variants: Vec<(Variant, String)>,
    pub(crate) panels: Vec<PanelPlan>,
}

#[derive(Clone, Debug)]
pub(crate) struct PanelPlan {
    pub(crate) title: String,
    pub(crate) unit: String,
    pub(crate) curves: Vec<Curve>,
}

#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) name: String,
    /// The series of a run.
    pub(crate) of: String,
    /// In seconds.
    pub(crate) bin: Option<f64>,
    pub(crate) scale: f64,
}

impl Experiment {
    /// Reads a document with all its keys, and checks every variant.
    ///
    /// # Errors
    /// The first error, with its place and the remedy.
    pub fn parse(document: Document) -> Result<Self, Diagnostic> {
        check::check(document)
    }

    /// The question in the file's first comment.
    pub fn question(&self) -> &str {
        self.document.comment()
    }

    /// The name of the file.
    pub fn file(&self) -> &str {
        self.document.file()
    }

    /// The file's name without folder and extension: `table2`, `fig5`.
    pub fn name(&self) -> &str {
        Path::new(self.file()).file_stem().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Its name in [`crate::sensitivity`]: `ctcp-2019/table2`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.paper, self.name())
    }

    /// The file's text, and that of what it extends.
    pub fn source(&self) -> String {
        self.document.whole_text()
    }

    /// The scenario of the first value of each axis.
    pub(crate) fn first(&self) -> &Scenario {
        &self.first
    }

    /// The file as it was read.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// The scenario of a variant.
    ///
    /// # Errors
    /// If the variant is not a valid scenario.
    pub fn scenario(&self, variant: &Variant) -> Result<Scenario, Diagnostic> {
        vary::vary(self, variant, false).map(|varied| varied.own)
    }

    /// A file of its own for a variant with a seed: the same scenario and measures, without axes and claims, and without another file that it extends. If a
    /// measure is beyond the end of the variant, there are no measures.
    ///
    /// # Errors
    /// If the variant has keys that the file cannot take.
    pub fn written(&self, variant: &Variant, seed: u64) -> Result<String, Diagnostic> {
        vary::written(self, variant, seed)
    }

    /// Everything that determines a run of a variant, as one text: the scenario with the variant's values but without its seed, and the measures.
    ///
    /// # Errors
    /// If the variant is not a valid scenario.
    pub(crate) fn content(&self, variant: &Variant) -> Result<String, Diagnostic> {
        vary::content(self, variant)
    }

    /// The scenario of a variant with our own transport in place of ns-2's agents for FAST, MFast, EMFast, FAST multihoming,
    /// Composite TCP or RRFast; `None` if it has no such flow. Other flows stay.
    ///
    /// # Errors
    /// If the variant is not a valid scenario.
    pub fn twin(&self, variant: &Variant) -> Result<Option<Scenario>, Diagnostic> {
        vary::vary(self, variant, true).map(|varied| varied.twin)
    }

    /// Every combination of the axes' values, the last axis fastest.
    pub fn variants(&self) -> Vec<Variant> {
        self.axes.iter().fold(vec![Vec::new()], |variants, axis| {
            let extended = |variant: &Variant| {
                let extend = |value| variant.iter().copied().chain([value]).collect();
                (0..axis.values.len()).map(extend).collect::<Vec<Variant>>()
            };
            variants.iter().flat_map(extended).collect()
        })
    }

    /// The labels of a variant, axis by axis.
    pub fn labels(&self, variant: &Variant) -> Vec<&str> {
        self.axes.iter().zip(variant).map(|(axis, &value)| axis.values[value].label.as_str()).collect()
    }

    /// The names of the series that its measures use.
    pub fn series(&self) -> Vec<String> {
        self.measures.iter().flat_map(|(_, expression)| expression.series()).collect()
    }

    /// Whether it has a measure of this name.
    pub fn has_measure(&self, name: &str) -> bool {
        self.measures.iter().any(|(known, _)| known == name)
    }

    /// Whether a measure or a gauge can be below zero: a difference can, and no gauge.
    pub fn may_be_negative(&self, name: &str) -> bool {
        self.measures.iter().any(|(known, expression)| known == name && expression.may_be_negative())
    }

    /// The number of its figures.
    pub fn figures(&self) -> usize {
        self.figures.len()
    }

    /// Removes the claims of columns, and the variants of figures, with one of these labels, so that nothing is run for them.
    pub(crate) fn leave_out(&mut self, labels: &[&str]) {
        self.claims.retain(|claim| !labels.contains(&claim.column.as_str()));
        let Self { axes, figures, .. } = self;
        let is_left_out = |variant: &Variant| {
            axes.iter().zip(variant).any(|(axis, &value)| labels.contains(&axis.values[value].label.as_str()))
        };
        figures.iter_mut().for_each(|figure| figure.variants.retain(|(variant, _)| !is_left_out(variant)));
    }

    /// Names of measures with their expressions.
    pub(crate) fn measures(&self) -> &[(String, Expression)] {
        &self.measures
    }

    /// Evaluates an expression of measures; `value` looks up a measure or a gauge in a variant.
    pub(crate) fn evaluate(
        &self,
        expression: &Expression,
        value: &mut VariantLookup<'_>,
    ) -> Result<f64, ExpressionError> {
        expression.evaluate(&mut |name, labels| {
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            value(&self.variant(&labels)?, name)
        })
    }

    /// The position of the measure `name`, if it uses series.
    pub(crate) fn measure_of_series(&self, name: &str) -> Option<usize> {
        self.measures.iter().position(|(known, expression)| known == name && expression.asks_series())
    }

    /// The variant with these labels, one of each axis in any order.
    pub(crate) fn variant(&self, labels: &[&str]) -> Result<Variant, ExpressionError> {
        check::variant(&self.axes, labels)
    }
}

#[cfg(test)]
mod tests;
