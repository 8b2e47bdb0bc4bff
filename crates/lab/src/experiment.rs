//! Experiments: a scenario, what is varied in it, what is measured, and what is claimed about that.

mod check;
pub(crate) mod file;
pub(crate) mod keys;

use std::collections::BTreeSet;

use crate::diagnostic::Diagnostic;
use crate::document::{Document, Node};
use crate::expression::{Expression, ExpressionError};
use crate::scenario::Scenario;
use crate::verdict::Band;

pub use keys::{CountsAsKeys as CountsAs, KindKeys as ClaimKind, SourceKeys as Source};

/// A scenario with its axes; an experiment if it has claims.
#[derive(Clone, Debug)]
pub struct Experiment {
    document: Document,
    /// Key of the paper; empty for a scenario that is none of a paper's.
    pub paper: String,
    /// How many seeds a variant with chance in it is run with.
    pub seeds: u32,
    /// What is varied.
    pub axes: Vec<Axis>,
    measures: Vec<(String, Expression)>,
    /// What is claimed, in the order of the file.
    pub claims: Vec<Claim>,
    /// Remarks.
    pub notes: Vec<Note>,
    pub(crate) figures: Vec<FigurePlan>,
}

/// What is varied.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: Vec<AxisValue>,
}

impl Axis {
    /// The keys of the scenario that one value or another sets, in their order.
    pub fn keys(&self) -> Vec<String> {
        let keys = self.values.iter().flat_map(|value| &value.assignments).map(|(key, _)| key.clone());
        keys.collect::<BTreeSet<String>>().into_iter().collect()
    }
}

/// One value of an axis.
#[derive(Clone, Debug)]
pub struct AxisValue {
    /// What it is called: by the paper, if the paper varies it.
    pub label: String,
    /// Keys of the scenario and what they are set to.
    assignments: Vec<(String, Node)>,
}

/// One value of each axis, by position.
pub type Variant = Vec<usize>;

/// What a measure, or a gauge such as `flow.f0.max_seq`, was in a variant.
pub(crate) type VariantLookup<'a> = dyn FnMut(&Variant, &str) -> Result<f64, ExpressionError> + 'a;

/// What somebody claims.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Where in the paper.
    pub item: String,
    /// What the table is called.
    pub title: String,
    /// Who says so.
    pub source: Source,
    /// As what it is counted.
    pub counts_as: CountsAs,
    /// Whether no change of a sensitivity run flips its verdict: [`crate::sensitivity`] says so.
    pub is_coarse: bool,
    /// Where they say so.
    pub cite: String,
    /// Labels, as printed.
    pub row: String,
    /// Labels, as printed.
    pub column: String,
    /// What is claimed.
    pub kind: ClaimKind,
    /// Unit of the measure.
    pub unit: String,
    /// What is published.
    pub published: Published,
    /// What we compare with it.
    pub(crate) statistic: Statistic,
    /// How near it must be.
    pub band: Band,
    /// Why we get something else.
    pub because: Option<String>,
    /// Why our own transport gives something else than ns-2's agents.
    pub engine_because: Option<String>,
    /// Whether it is known that it cannot be reproduced.
    pub not_reproducible: bool,
    /// Whether the reason of a deviation is still to be found.
    pub is_open: bool,
}

/// What is published.
#[derive(Clone, Debug, PartialEq)]
pub enum Published {
    /// A number.
    Number(f64),
    /// A statement.
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

/// A remark.
#[derive(Clone, Debug)]
pub struct Note {
    /// Under which item.
    pub item: String,
    pub(crate) pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Text(String),
    /// A value and how many decimals of it are shown.
    Value(Expression, usize),
}

/// What a figure shows.
#[derive(Clone, Debug)]
pub(crate) struct FigurePlan {
    pub(crate) item: String,
    pub(crate) title: String,
    pub(crate) caption: String,
    /// In seconds.
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// With what each is called in the legend: nothing where there is one.
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
    /// A series of a run.
    pub(crate) of: String,
    /// In seconds.
    pub(crate) bin: Option<f64>,
    pub(crate) scale: f64,
}

impl Experiment {
    /// Reads a document with everything in it, and checks every variant.
    ///
    /// # Errors
    /// The first mistake in it, with its place and what to do about it.
    pub fn parse(document: Document) -> Result<Self, Diagnostic> {
        check::check(document)
    }

    /// The question that the file asks in its first comment.
    pub fn question(&self) -> &str {
        self.document.comment()
    }

    /// The file.
    pub fn file(&self) -> &str {
        self.document.file()
    }

    /// The file's name without its folder and ending: `table2`, `fig5`.
    pub fn name(&self) -> &str {
        std::path::Path::new(self.file()).file_stem().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// What [`crate::sensitivity`] calls it: `ctcp-2019/table2`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.paper, self.name())
    }

    /// The file's text.
    pub fn source(&self) -> &str {
        self.document.text()
    }

    /// The scenario of a variant.
    ///
    /// # Errors
    /// If the variant makes a mistake of it.
    pub fn scenario(&self, variant: &Variant) -> Result<Scenario, Diagnostic> {
        check::scenario(&self.document, &self.axes, variant)
    }

    /// What decides about the outcome of a variant, as one text: the scenario with the variant's values, without its seed, and the measures.
    ///
    /// # Errors
    /// If the variant makes a mistake of it.
    pub(crate) fn content(&self, variant: &Variant) -> Result<String, Diagnostic> {
        check::content(&self.document, &self.axes, variant)
    }

    /// The scenario of a variant with our own transport in the place of ns-2's agents that speak FAST, MFast, EMFast, FAST
    /// multihoming, Composite TCP or RRFast; `None` if it has no such flow. All other flows stay what they are.
    ///
    /// # Errors
    /// If the variant makes a mistake of it.
    pub fn twin(&self, variant: &Variant) -> Result<Option<Scenario>, Diagnostic> {
        check::twin(&self.document, &self.axes, variant)
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

    /// The names of the series that its measures ask for.
    pub fn series(&self) -> Vec<String> {
        self.measures.iter().flat_map(|(_, expression)| expression.series()).collect()
    }

    /// Whether it has a measure of this name.
    pub fn has_measure(&self, name: &str) -> bool {
        self.measures.iter().any(|(known, _)| known == name)
    }

    /// How many figures it draws.
    pub fn figures(&self) -> usize {
        self.figures.len()
    }

    /// Drops the claims of some columns and the variants of figures that have one of these labels, so that nothing is run for them.
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

    /// Evaluates an expression of measures; `value` knows what a measure or a gauge was in a variant.
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

    /// The position of the measure `name`, if it asks for series.
    pub(crate) fn measure_of_series(&self, name: &str) -> Option<usize> {
        self.measures.iter().position(|(known, expression)| known == name && expression.asks_series())
    }

    /// The variant that some labels name, one of each axis in any order.
    pub(crate) fn variant(&self, labels: &[&str]) -> Result<Variant, ExpressionError> {
        check::variant(&self.axes, labels)
    }
}

#[cfg(test)]
mod tests;
