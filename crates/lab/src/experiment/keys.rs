//! The keys that make an experiment of a scenario. Their comments are the reference.

use std::collections::BTreeMap;
use std::fmt;

use anabranch_units::SimSpan;
use schemars::{JsonSchema, json_schema};
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::load::values::{Text, inline_schema};

/// The paper of the experiment, and its number of seeds.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "experiment")]
pub(crate) struct ExperimentKeys {
    /// The paper's key in docs/bibliography.md.
    pub(crate) paper: String,
    /// The number of seeds of a variant that involves chance; other variants run once.
    #[serde(default = "thirty")]
    pub(crate) seeds: u32,
}

/// Thirty seeds: the standard deviation is then known within 13 % (one standard error).
fn thirty() -> u32 {
    30
}

/// An axis of variation.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "axis")]
pub(crate) struct AxisKeys {
    /// Its name; the head of a column in the table of a sweep.
    pub(crate) name: String,
    /// Each value's label, as the paper prints it, and the keys that it sets: `{ "flow.f0.window" = 50 }`.
    pub(crate) values: Ordered<AssignmentKeys>,
}

/// A key that exists only in the file, because it is written out before keys are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFileOnly<T>(std::marker::PhantomData<T>);

impl<'de, T> Deserialize<'de> for InFileOnly<T> {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(de::Error::custom(
            "this stands in a file at the place that the reference says, and cannot be set from outside it",
        ))
    }
}

inline_schema!(impl[T: JsonSchema] InFileOnly<T>, T::schema_name(), |generator| T::json_schema(generator));

/// Scenario keys and their values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AssignmentKeys(pub(crate) Vec<String>);

/// The keys of claims: those that a table and a single claim have in common, and their own.
macro_rules! claim_keys {
    ($(#[$about:meta])* $name:ident { $($(#[$meta:meta])* $key:ident: $type:ty,)* }) => {
        #[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        $(#[$about])*
        pub(crate) struct $name {
            /// Makes one of these for each entry. The keys of an entry are added to the keys here, or replace the `$name`s in them.
            #[expect(dead_code, reason = "elements are written out before they are read")]
            pub(crate) each: Option<InFileOnly<Vec<AssignmentKeys>>>,
            /// The place in the paper: `table1`, `fig5`, `text`.
            pub(crate) item: String,
            /// The title of the table or of the group of claims.
            pub(crate) title: String,
            /// The kind of the source.
            #[serde(default)]
            pub(crate) source: SourceKeys,
            /// The category in which it is counted; a result if absent.
            #[serde(default)]
            pub(crate) counts_as: CountsAsKeys,
            /// The citation of the source.
            pub(crate) cite: String,
            $($(#[$meta])* pub(crate) $key: $type,)*
            /// The reason of a deviation, for all claims here that deviate.
            pub(crate) because: Option<String>,
            /// The reason why our own transport in place of ns-2's agents gives a number that differs by more than 5 %, or misses an order, a
            /// time or a shape that they keep; for all claims here that do.
            pub(crate) engine: Option<String>,
            /// Whether it cannot be reproduced; `because` gives the reason.
            #[serde(default)]
            pub(crate) not_reproducible: bool,
            /// Whether the reason of a deviation is not yet known; `because` says what is known. Such claims are counted
            /// separately.
            #[serde(default)]
            pub(crate) open: bool,
        }

        impl $name {
            /// The keys that every claim has.
            pub(super) fn said(&self) -> Said<'_> {
                Said {
                    item: &self.item,
                    title: &self.title,
                    source: self.source,
                    counts_as: self.counts_as,
                    cite: &self.cite,
                    unit: &self.unit,
                    because: self.because.as_deref(),
                    engine: self.engine.as_deref(),
                    not_reproducible: self.not_reproducible,
                    open: self.open,
                }
            }
        }
    };
}

claim_keys! {
    /// Claims that a paper prints as a table.
    #[schemars(rename = "table")]
    TableKeys {
        /// Unit of its numbers.
        unit: String,
        /// The measure that it shows, unless its rows or columns are measures.
        measure: Option<String>,
        /// Labels of the axes that are neither rows nor columns.
        #[serde(default)]
        variant: Vec<String>,
        /// Labels of axes. Each number is then a ratio: the measure divided by the same measure with these labels in place of the other
        /// labels of their axes.
        #[serde(default)]
        over: Vec<String>,
        /// The tolerance: `"exact"`; `"truncated to 0.01"` (equal after cutting off further decimals); `"prediction"` (the
        /// published number is one draw within the 95 % prediction interval of ours); `"±5"`, `"±1%"`; `"2..3"`; `">= 2"`, `"<=
        /// 3"`. Numbers printed with their `±` need none.
        band: Option<String>,
        /// Labels of its columns: of an axis, or names of measures.
        columns: Vec<String>,
        /// Labels of the rows, and the published value in each column: a number, mean and allowance (`"17974±1274"`), or nothing
        /// (`""`).
        rows: Ordered<Vec<CellKeys>>,
    }
}

claim_keys! {
    /// A single claim.
    #[schemars(rename = "claim")]
    ClaimKeys {
        /// The subject of the claim.
        row: String,
        /// The condition of the claim.
        #[serde(default)]
        column: String,
        /// The kind of the claim.
        #[serde(default)]
        kind: KindKeys,
        /// The unit of the measure.
        #[serde(default)]
        unit: String,
        /// An expression of measures at variants: `delivered('CTCP', 'error=0.01') / delivered('Vegas', 'error=0.01')`.
        measure: Option<String>,
        /// Expressions with descending means. Only for an `order`.
        #[serde(default)]
        order: Vec<String>,
        /// A number, or a statement in words.
        published: CellKeys,
        /// The tolerance, as in a table; an `order` has none.
        band: Option<String>,
    }
}

/// The keys that every claim has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said<'a> {
    pub(super) item: &'a str,
    pub(super) title: &'a str,
    pub(super) source: SourceKeys,
    pub(super) counts_as: CountsAsKeys,
    pub(super) cite: &'a str,
    pub(super) unit: &'a str,
    pub(super) because: Option<&'a str>,
    pub(super) engine: Option<&'a str>,
    pub(super) not_reproducible: bool,
    pub(super) open: bool,
}

/// A remark that is printed under a table.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "note")]
pub(crate) struct NoteKeys {
    /// Makes one of these for each entry. The keys of an entry are added to the keys here, or replace the `$name`s in them.
    #[expect(dead_code, reason = "elements are written out before they are read")]
    pub(crate) each: Option<InFileOnly<Vec<AssignmentKeys>>>,
    /// The item that it belongs to.
    pub(crate) item: String,
    /// The remark; `{expression}` is replaced by the mean of its value, `{expression:2}` by the mean with two decimals.
    pub(crate) text: String,
}

/// A figure of a report: panels above each other with a common time axis. It shows the first run of each variant.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "figure")]
pub(crate) struct FigureKeys {
    /// Makes one of these for each entry. The keys of an entry are added to the keys here, or replace the `$name`s in them.
    #[expect(dead_code, reason = "elements are written out before they are read")]
    pub(crate) each: Option<InFileOnly<Vec<AssignmentKeys>>>,
    /// The item that it belongs to.
    pub(crate) item: String,
    /// The title of the figure.
    pub(crate) title: String,
    /// The caption: what to see in it.
    #[serde(default)]
    pub(crate) caption: String,
    /// The start of the time axis.
    #[serde(default)]
    pub(crate) from: Text<SimSpan>,
    /// The end of the time axis; the end of the run if absent.
    pub(crate) to: Option<Text<SimSpan>>,
    /// The variants that it shows, each by one label of each axis: `[["FAST"], ["MFast"]]`. Required if there are axes.
    #[serde(default)]
    pub(crate) variants: Vec<Vec<String>>,
    /// The panels from the top.
    pub(crate) panel: Vec<PanelKeys>,
}

/// One panel of a figure.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "panel")]
pub(crate) struct PanelKeys {
    /// The title of the panel.
    pub(crate) title: String,
    /// The unit of its values.
    pub(crate) unit: String,
    /// Its curves, for each variant.
    pub(crate) series: Vec<CurveKeys>,
}

/// One curve of a panel.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "curve")]
pub(crate) struct CurveKeys {
    /// The name of the curve, appended to the labels of its variant if there are several.
    #[serde(default)]
    pub(crate) name: String,
    /// The series that it shows: `flow.f0.window`.
    pub(crate) of: String,
    /// Shows events as their size per second in bins of this length.
    pub(crate) bin: Option<Text<SimSpan>>,
    /// A factor for the values: 0.001 shows bit/s in kbit/s.
    pub(crate) scale: Option<f64>,
}

/// The kind of a claim's source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "source")]
pub enum SourceKeys {
    /// The paper says so.
    #[default]
    Paper,
    /// A publication by others about another law or queue: a paper, an RFC or a draft.
    Published,
    /// A derivation from a law.
    Analytic,
    /// Another implementation, run by us.
    Oracle,
    /// Another simulator's own law of the same name, run by us: ns-3.
    Simulator,
    /// Our transport over real links, measured by us.
    Real,
    /// An aim for a law of our own, written down before the law met it.
    Aim,
    /// A criterion for any congestion law, with a band that was fixed beforehand.
    Criterion,
    /// An earlier run of ours, to detect changes. It is counted separately, and is no result.
    Regression,
}

/// The category in which a claim is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "counts_as")]
pub enum CountsAsKeys {
    /// A result: a simulation could have given another value.
    #[default]
    Result,
    /// A derivation from printed numbers, or from the construction of the experiment: no simulation can give another value.
    Derivation,
    /// An input of the experiment that appears in its outcome.
    Input,
}

/// The kind of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "claim_kind")]
pub enum KindKeys {
    /// A number with a band.
    #[default]
    Number,
    /// An order of several values.
    Order,
    /// The time of an event.
    Time,
    /// A statement about a series.
    Shape,
}

/// A published value: a number, a number with its allowance, or words.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CellKeys {
    Number(f64),
    Text(String),
}

impl CellKeys {
    /// Whether it claims nothing.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }
}

impl<'de> Deserialize<'de> for CellKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CellVisitor;

        impl Visitor<'_> for CellVisitor {
            type Value = CellKeys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a string such as \"17974±1274\"")
            }

            fn visit_u64<E>(self, number: u64) -> Result<CellKeys, E> {
                Ok(CellKeys::Number(number as f64))
            }

            fn visit_i64<E>(self, number: i64) -> Result<CellKeys, E> {
                Ok(CellKeys::Number(number as f64))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<CellKeys, E> {
                match number.is_finite() {
                    true => Ok(CellKeys::Number(number)),
                    false => Err(E::custom(format!("{number} cannot be published"))),
                }
            }

            fn visit_str<E>(self, text: &str) -> Result<CellKeys, E> {
                Ok(CellKeys::Text(text.to_owned()))
            }
        }

        deserializer.deserialize_any(CellVisitor)
    }
}

inline_schema!(CellKeys, "cell", |_| json_schema!({ "type": ["number", "string"] }));

impl<'de> Deserialize<'de> for AssignmentKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The values are taken from the document later: they may have any type, and each keeps its place.
        BTreeMap::<String, IgnoredAny>::deserialize(deserializer).map(|keys| Self(keys.into_keys().collect()))
    }
}

inline_schema!(AssignmentKeys, "assignment", |_| json_schema!({ "type": "object", "format": "assignment" }));

/// A table whose keys are free, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ordered<T>(pub(crate) Vec<(String, T)>);

impl<T> Default for Ordered<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OrderedVisitor<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for OrderedVisitor<T> {
            type Value = Ordered<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered<T>, A::Error> {
                let entries = std::iter::from_fn(|| map.next_entry().transpose());
                entries.collect::<Result<_, _>>().map(Ordered)
            }
        }

        deserializer.deserialize_map(OrderedVisitor(std::marker::PhantomData))
    }
}

inline_schema!(impl[T: JsonSchema] Ordered<T>, format!("labelled_{}", T::schema_name()), |generator| {
    json_schema!({ "type": "object", "additionalProperties": generator.subschema_for::<T>() })
});
