//! The keys that make an experiment of a scenario. Their comments are the reference.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use anabranch_units::SimSpan;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::load::values::Text;

/// What paper the experiment is from, and how often it is run.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "experiment")]
pub(crate) struct ExperimentKeys {
    /// Key of the paper in docs/bibliography.md.
    pub(crate) paper: String,
    /// How many seeds a variant with chance in it is run with; one without is run once.
    #[serde(default = "thirty")]
    pub(crate) seeds: u32,
}

/// Enough that the sd is known within 13 % (one standard error of it).
fn thirty() -> u32 {
    30
}

/// What is varied.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "axis")]
pub(crate) struct AxisKeys {
    /// What it is called; in the table of a sweep, the head of a column.
    pub(crate) name: String,
    /// Each value's label, and the keys that it sets: `{ "flow.f0.window" = 50 }`. Labels are those that the paper prints.
    pub(crate) values: Ordered<AssignmentKeys>,
}

/// Keys of the scenario and what they are set to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AssignmentKeys(pub(crate) Vec<String>);

/// Claims that a paper prints as a table.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "table")]
pub(crate) struct TableKeys {
    /// `table1`, `fig5`, `text`: where in the paper.
    pub(crate) item: String,
    /// What the table is called.
    pub(crate) title: String,
    /// Who says so.
    #[serde(default)]
    pub(crate) source: SourceKeys,
    /// As what it is counted; a result if absent.
    #[serde(default)]
    pub(crate) counts_as: CountsAsKeys,
    /// Where they say so.
    pub(crate) cite: String,
    /// Unit of its numbers.
    pub(crate) unit: String,
    /// The measure that it shows, unless its rows or its columns are measures.
    #[serde(default)]
    pub(crate) measure: Option<String>,
    /// Labels of axes that neither a row nor a column says.
    #[serde(default)]
    pub(crate) variant: Vec<String>,
    /// Labels of axes: each number is then a ratio, over the same measure where these labels stand in the place of others of their axes.
    #[serde(default)]
    pub(crate) over: Vec<String>,
    /// How near ours must be: `"exact"`; `"truncated to 0.01"` (equal if what is behind the second decimal is cut off);
    /// `"prediction"` (what is published is one draw: it lies in the 95 % prediction interval of ours); `"±5"`, `"±1%"`;
    /// `"2..3"`; `">= 2"`, `"<= 3"`. Numbers that are printed with their `±` need none.
    #[serde(default)]
    pub(crate) band: Option<String>,
    /// Labels of its columns: of an axis, or names of measures.
    pub(crate) columns: Vec<String>,
    /// Labels of its rows, and what is published in each column: a number, mean and allowance,
    /// `"17974±1274"`, or nothing, `""`.
    pub(crate) rows: Ordered<Vec<CellKeys>>,
    /// Why we get something else, for all numbers of this table that deviate.
    #[serde(default)]
    pub(crate) because: Option<String>,
    /// Why our own transport in the place of ns-2's agents gives numbers that are more than 5 % off theirs, for all that are.
    #[serde(default)]
    pub(crate) engine: Option<String>,
    /// Whether the numbers cannot be reproduced; `because` says why.
    #[serde(default)]
    pub(crate) not_reproducible: bool,
    /// Whether the reason of a deviation is still to be found; `because` says what is known. Such claims are counted apart.
    #[serde(default)]
    pub(crate) open: bool,
}

/// A claim that stands alone.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "claim")]
pub(crate) struct ClaimKeys {
    /// `table1`, `fig5`, `text`: where in the paper.
    pub(crate) item: String,
    /// What the group of claims is called.
    pub(crate) title: String,
    /// Who says so.
    #[serde(default)]
    pub(crate) source: SourceKeys,
    /// As what it is counted; a result if absent.
    #[serde(default)]
    pub(crate) counts_as: CountsAsKeys,
    /// Where they say so.
    pub(crate) cite: String,
    /// What it is about.
    pub(crate) row: String,
    /// Under what condition.
    #[serde(default)]
    pub(crate) column: String,
    /// What is claimed.
    #[serde(default)]
    pub(crate) kind: KindKeys,
    /// Unit of the measure.
    #[serde(default)]
    pub(crate) unit: String,
    /// An expression of measures at variants: `delivered('CTCP', 'error=0.01') / delivered('Vegas', 'error=0.01')`.
    #[serde(default)]
    pub(crate) measure: Option<String>,
    /// Expressions whose means descend. Only of an `order`.
    #[serde(default)]
    pub(crate) order: Vec<String>,
    /// A number, or a statement in words.
    pub(crate) published: CellKeys,
    /// As in a table; an `order` has none.
    #[serde(default)]
    pub(crate) band: Option<String>,
    /// Why we get something else.
    #[serde(default)]
    pub(crate) because: Option<String>,
    /// Why our own transport in the place of ns-2's agents gives a number that is more than 5 % off theirs, or breaks an order, a
    /// time or a shape that they keep.
    #[serde(default)]
    pub(crate) engine: Option<String>,
    /// Whether it cannot be reproduced; `because` says why.
    #[serde(default)]
    pub(crate) not_reproducible: bool,
    /// Whether the reason of a deviation is still to be found; `because` says what is known. Such claims are counted apart.
    #[serde(default)]
    pub(crate) open: bool,
}

/// A remark that is printed under a table.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "note")]
pub(crate) struct NoteKeys {
    /// The item under which it stands.
    pub(crate) item: String,
    /// The remark; `{expression}` is replaced by the mean of its value, `{expression:2}` with two decimals.
    pub(crate) text: String,
}

/// A figure of a report: panels above each other with one axis of time. It shows the first run of each variant.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "figure")]
pub(crate) struct FigureKeys {
    /// The item to which it belongs.
    pub(crate) item: String,
    /// What it is called.
    pub(crate) title: String,
    /// What to see in it.
    #[serde(default)]
    pub(crate) caption: String,
    /// Where its axis of time begins.
    #[serde(default)]
    pub(crate) from: Text<SimSpan>,
    /// Where it ends; with the run if absent.
    #[serde(default)]
    pub(crate) to: Option<Text<SimSpan>>,
    /// The variants that it shows, each by one label of each axis: `[["FAST"], ["MFast"]]`. Needed if there are axes.
    #[serde(default)]
    pub(crate) variants: Vec<Vec<String>>,
    /// From the top.
    pub(crate) panel: Vec<PanelKeys>,
}

/// One panel of a figure.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "panel")]
pub(crate) struct PanelKeys {
    /// What is shown.
    pub(crate) title: String,
    /// Unit of its values.
    pub(crate) unit: String,
    /// Its curves, of each variant.
    pub(crate) series: Vec<CurveKeys>,
}

/// One curve of a panel.
#[derive(Clone, Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "curve")]
pub(crate) struct CurveKeys {
    /// What it is called, behind the labels of its variant where there are several.
    #[serde(default)]
    pub(crate) name: String,
    /// The series: `flow.f0.window`.
    pub(crate) of: String,
    /// Shows events as their size per second in bins of this length.
    #[serde(default)]
    pub(crate) bin: Option<Text<SimSpan>>,
    /// What values are multiplied by: 0.001 shows bit/s in kbit/s.
    #[serde(default)]
    pub(crate) scale: Option<f64>,
}

/// Who says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "source")]
pub enum SourceKeys {
    /// The paper.
    #[default]
    Paper,
    /// What follows from a law on paper.
    Analytic,
    /// Another implementation, run by us.
    Oracle,
    /// The transport itself over real links, measured by us.
    Real,
    /// What we want of a law of our own, written down before it could do that.
    Aim,
    /// What a criterion for congestion control asks of any law, with a bound that was fixed beforehand.
    Criterion,
    /// An earlier run of ours, written down: nobody else says so, and a change is to be noticed. It is counted apart, and is no result.
    Regression,
}

/// As what a claim is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "counts_as")]
pub enum CountsAsKeys {
    /// A result: a simulation could have given something else.
    #[default]
    Result,
    /// It follows from printed numbers by arithmetic, or from how the experiment is built: no simulation can give something else.
    Derivation,
    /// What the experiment was given, found again in its outcome.
    Input,
}

/// What is claimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "claim_kind")]
pub enum KindKeys {
    /// A number.
    #[default]
    Number,
    /// One thing is above another.
    Order,
    /// When something happens.
    Time,
    /// How a series runs.
    Shape,
}

/// What is published: a number, a number with its allowance, or words.
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

impl JsonSchema for CellKeys {
    fn schema_name() -> Cow<'static, str> {
        "cell".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["number", "string"] })
    }
}

impl<'de> Deserialize<'de> for AssignmentKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The values are taken from the document: they may be of any type, and each keeps its place.
        BTreeMap::<String, IgnoredAny>::deserialize(deserializer).map(|keys| Self(keys.into_keys().collect()))
    }
}

impl JsonSchema for AssignmentKeys {
    fn schema_name() -> Cow<'static, str> {
        "assignment".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "format": "assignment" })
    }
}

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
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }
        }

        deserializer.deserialize_map(OrderedVisitor(std::marker::PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for Ordered<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("labelled_{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": generator.subschema_for::<T>() })
    }
}
