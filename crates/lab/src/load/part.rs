//! Parts of the simulator in a file: queues, error models, holds, delays, workloads. Each [`Part`] lists its kinds and their settings; here they become
//! the keys of a table, for reading and for the reference.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use anabranch_units::settings::{Flaw, Kind, Parameter, Part, PartKind, PartTable, Value};
use anabranch_units::{Bytes, Rate, SimSpan, SimTime};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, VariantAccess, Visitor};

use super::Checked;
use super::values::{Count, Probability, Text};
use crate::diagnostic::{Fault, suggestion};
use crate::document::{Path, REMEDY};

/// A part as a file gives it: every setting has its type, and none is unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PartKeys<T>(pub(crate) T);

impl<T: Part> PartKeys<T> {
    /// The part, if its settings are possible together.
    pub(super) fn check(&self, path: &Path) -> Checked<T> {
        self.0.flaw().map_or_else(|| Ok(self.0.clone()), |flaw| Err(refused(flaw, path)))
    }
}

/// The fault of the part at `path`, and its place.
pub(super) fn refused(Flaw { key, message, remedy }: Flaw, path: &Path) -> (Path, Fault) {
    let path = if key.is_empty() { path.clone() } else { path.key(&key) };
    (path, Fault::new(message).remedy(remedy))
}

impl<'de, T: Part> Deserialize<'de> for PartKeys<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (word, values) = TableSeed(T::table()).deserialize(deserializer)?;
        let fits = T::with(word, values).map(PartKeys);
        fits.map_err(|flaw| D::Error::custom(format!("{}{REMEDY}{}", flaw.message, flaw.remedy)))
    }
}

/// The kind of a part, and its settings.
type Set = (&'static str, BTreeMap<String, Value>);

/// Reads the table of a part.
struct TableSeed(PartTable);

impl<'de> DeserializeSeed<'de> for TableSeed {
    type Value = Set;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Set, D::Error> {
        deserializer.deserialize_enum(self.0.name, &[], self)
    }
}

impl<'de> Visitor<'de> for TableSeed {
    type Value = Set;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a table with the key `kind`")
    }

    fn visit_unit<E: Error>(self) -> Result<Set, E> {
        let words: Vec<_> = self.0.kinds().iter().map(|kind| kind.word).collect();
        Err(E::custom(format!("the key `kind` is missing{REMEDY}it is one of {}", words.join(", "))))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, table: A) -> Result<Set, A::Error> {
        let (word, keys) = table.variant_seed(KindSeed(self.0))?;
        Ok((word, keys.struct_variant(&[], KeysVisitor(&self.0.parameters(word)))?))
    }
}

/// Reads the word for a kind.
struct KindSeed(PartTable);

impl<'de> DeserializeSeed<'de> for KindSeed {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let word = String::deserialize(deserializer)?;
        let kinds = self.0.kinds();
        let means = |kind: &&PartKind<_>| kind.word == word || kind.synonyms.contains(&word.as_str());
        kinds.iter().find(means).map(|kind| kind.word).ok_or_else(|| {
            let remedy = suggestion(&word, kinds.iter().map(|kind| kind.word));
            Error::custom(format!("unknown kind `{word}`{REMEDY}{remedy}"))
        })
    }
}

/// Reads the settings of a kind.
struct KeysVisitor<'a>(&'a [Parameter]);

impl<'de> Visitor<'de> for KeysVisitor<'_> {
    type Value = BTreeMap<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the keys of a kind")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = BTreeMap::new();
        while let Some(parameter) = map.next_key_seed(KeySeed(self.0))? {
            values.insert(parameter.name.clone(), map.next_value_seed(ValueSeed(&parameter.kind))?);
        }
        match self.0.iter().find(|one| one.is_required && !values.contains_key(&one.name)) {
            Some(missing) => Err(Error::custom(format!("the key `{}` is missing{REMEDY}add it", missing.name))),
            None => Ok(values),
        }
    }
}

/// Reads the name of a setting.
struct KeySeed<'a>(&'a [Parameter]);

impl<'de, 'a> DeserializeSeed<'de> for KeySeed<'a> {
    type Value = &'a Parameter;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'a Parameter, D::Error> {
        let key = String::deserialize(deserializer)?;
        self.0.iter().find(|parameter| parameter.name == key).ok_or_else(|| {
            let remedy = match self.0 {
                [] => "this kind has no keys but `kind`: remove it".to_owned(),
                known => suggestion(&key, known.iter().map(|parameter| parameter.name.as_str())),
            };
            Error::custom(format!("unknown key `{key}`{REMEDY}{remedy}"))
        })
    }
}

/// Reads the value of a setting.
struct ValueSeed<'a>(&'a Kind);

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Value, D::Error> {
        let time = |Text(span): Text<SimSpan>| SimTime::ZERO.saturating_add(span);
        Ok(match self.0 {
            kind if *kind == Kind::PROBABILITY => Value::Number(Probability::deserialize(d)?.0),
            Kind::Number { .. } => Value::Number(f64::deserialize(d)?),
            Kind::Switch => Value::Switch(bool::deserialize(d)?),
            Kind::Packets => Value::Whole(Count::deserialize(d)?.0.into()),
            Kind::Whole => Value::Whole(u64::deserialize(d)?),
            Kind::Bytes => Value::Bytes(Text::<Bytes>::deserialize(d)?.0),
            Kind::Time => Value::Time(Text::<SimSpan>::deserialize(d)?.0),
            Kind::Rate => Value::Rate(Text::<Rate>::deserialize(d)?.0),
            Kind::Wholes => Value::Wholes(Vec::deserialize(d)?),
            Kind::Times => Value::Times(Vec::deserialize(d)?.into_iter().map(time).collect()),
            Kind::Part(table) => {
                let (word, values) = TableSeed(*table).deserialize(d)?;
                Value::Part(word, values)
            }
            Kind::Span { .. } | Kind::Choice { .. } => unreachable!("settings of laws alone have this type"),
        })
    }
}

impl<T: Part> JsonSchema for PartKeys<T> {
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        table_schema(T::table(), generator)
    }
}

fn table_schema(table: PartTable, generator: &mut SchemaGenerator) -> Schema {
    let kinds: Vec<Schema> = table.kinds().iter().map(|kind| kind_schema(table, kind, generator)).collect();
    json_schema!({ "description": table.help, "oneOf": kinds })
}

fn kind_schema(table: PartTable, kind: &PartKind<()>, generator: &mut SchemaGenerator) -> Schema {
    let mut properties = BTreeMap::from([("kind".to_owned(), json_schema!({ "type": "string", "const": kind.word }))]);
    let mut required = vec!["kind".to_owned()];
    for Parameter { name, help, kind, value, is_required, .. } in table.parameters(kind.word) {
        let mut schema = match kind {
            kind if kind == Kind::PROBABILITY => Probability::json_schema(generator),
            Kind::Number { .. } => f64::json_schema(generator),
            Kind::Switch => bool::json_schema(generator),
            Kind::Packets => Count::json_schema(generator),
            Kind::Whole => u64::json_schema(generator),
            Kind::Bytes => Text::<Bytes>::json_schema(generator),
            Kind::Time => Text::<SimSpan>::json_schema(generator),
            Kind::Rate => Text::<Rate>::json_schema(generator),
            Kind::Wholes => Vec::<u64>::json_schema(generator),
            Kind::Times => Vec::<Text<SimSpan>>::json_schema(generator),
            Kind::Part(table) => {
                let name = table.name;
                let schema = table_schema(table, generator);
                generator.definitions_mut().insert(name.to_owned(), schema.into());
                Schema::new_ref(format!("#/$defs/{name}"))
            }
            Kind::Span { .. } | Kind::Choice { .. } => unreachable!("settings of laws alone have this type"),
        };
        schema.insert("description".to_owned(), format!("{help}.").into());
        let default = match value {
            _ if is_required => None,
            Value::Number(number) => Some(number.into()),
            Value::Switch(switch) => Some(switch.into()),
            Value::Whole(number) => Some(number.into()),
            Value::Absent => None,
            quantity => Some(quantity.to_string().into()),
        };
        if let Some(default) = default {
            schema.insert("default".to_owned(), default);
        }
        if is_required {
            required.push(name.clone());
        }
        properties.insert(name, schema);
    }
    let synonyms: Vec<String> = kind.synonyms.iter().map(|word| format!("`{word}`")).collect();
    let same = match &synonyms[..] {
        [] => String::new(),
        [one] => format!(" The name {one} means the same."),
        [most @ .., last] => format!(" The names {} and {last} mean the same.", most.join(", ")),
    };
    json_schema!({
        "type": "object",
        "description": format!("{}{same}", kind.help),
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
