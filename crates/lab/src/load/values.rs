//! The types of values in a scenario file: quantities with units, names, counts, and settings of laws.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use anabranch_units::{Bytes, ParseError, Rate, SimSpan};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};

use crate::document::COUNT_MAX as REPEATED_MAX;

/// The schema of a type, written out where the type is used.
macro_rules! inline_schema {
    (impl[$($generics:tt)*] $type:ty, $name:expr, |$generator:pat_param| $schema:expr) => {
        impl<$($generics)*> schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema($generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $schema
            }
        }
    };
    ($type:ty, $name:expr, |$generator:pat_param| $schema:expr) => {
        inline_schema!(impl[] $type, $name, |$generator| $schema);
    };
}

pub(crate) use inline_schema;

/// A quantity that is written as a string with its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text<T>(pub(crate) T);

/// The words and units of a quantity for messages and the schema.
pub(crate) trait Quantity: FromStr<Err = ParseError> {
    const NAME: &'static str;
    const EXPECTED: &'static str;
    const UNITS: &'static str;
}

impl Quantity for SimSpan {
    const NAME: &'static str = "time";
    const EXPECTED: &'static str = "a length of time, such as \"100ms\"";
    const UNITS: &'static str = "h|min|s|ms|us|µs|ns|ps";
}

impl Quantity for Rate {
    const NAME: &'static str = "rate";
    const EXPECTED: &'static str = "a rate, such as \"1.5Mbit/s\"";
    const UNITS: &'static str = "bit/s|kbit/s|Mbit/s|Gbit/s|Tbit/s";
}

impl Quantity for Bytes {
    const NAME: &'static str = "bytes";
    const EXPECTED: &'static str = "an amount of data, such as \"1500B\"";
    const UNITS: &'static str = "B|kB|MB|GB|KiB|MiB|GiB";
}

impl<'de, T: Quantity> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct QuantityVisitor<T>(PhantomData<T>);

        impl<T: Quantity> Visitor<'_> for QuantityVisitor<T> {
            type Value = Text<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::EXPECTED)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<T>, E> {
                text.parse().map(Text).map_err(E::custom)
            }
        }

        deserializer.deserialize_str(QuantityVisitor(PhantomData))
    }
}

inline_schema!(impl[T: Quantity] Text<T>, T::NAME, |_| {
    let pattern = format!(r"^\s*[0-9_]*\.?[0-9_]+\s*({})?\s*$", T::UNITS);
    json_schema!({ "type": "string", "format": T::NAME, "pattern": pattern })
});

/// The name of a node, a link or a flow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name(pub(crate) String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        // A name becomes a part of a file name (`flow.<id>.csv`) and of a path (`flow.<id>.window`).
        match (1..=NAME_LENGTH_MAX).contains(&name.len()) && name.chars().all(fits) {
            true => Ok(Self(name)),
            false => Err(de::Error::custom(format!(
                "`{name}` is not a name: use 1 to {NAME_LENGTH_MAX} letters, digits, `-` and `_`"
            ))),
        }
    }
}

/// Names become parts of file names; 64 leaves room for the rest on every file system.
const NAME_LENGTH_MAX: usize = 64;

inline_schema!(Name, "name", |_| {
    // In an element with a `count`, `#` stands for a number.
    json_schema!({ "type": "string", "format": "name", "pattern": "^[A-Za-z0-9_#-]{1,64}$" })
});

/// A number of packets, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) u32);

/// The limit of a window or a queue: a larger one is the same as no limit, and sums of such numbers stay within 32 bits.
pub(crate) const COUNT_MAX: u32 = 1_000_000_000;

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountVisitor;

        impl Visitor<'_> for CountVisitor {
            type Value = Count;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number of packets from 1 to {COUNT_MAX}")
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Count, E> {
                match u32::try_from(number) {
                    Ok(count @ 1..=COUNT_MAX) => Ok(Count(count)),
                    _ => Err(E::invalid_value(de::Unexpected::Unsigned(number), &self)),
                }
            }
        }

        deserializer.deserialize_u64(CountVisitor)
    }
}

inline_schema!(Count, "packets", |_| {
    json_schema!({ "type": "integer", "format": "packets", "minimum": 1, "maximum": COUNT_MAX })
});

/// A whole number from `LEAST` to `MOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whole<const LEAST: u32, const MOST: u32>(pub(crate) u32);

impl<'de, const LEAST: u32, const MOST: u32> Deserialize<'de> for Whole<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u32::deserialize(deserializer)?;
        match (LEAST..=MOST).contains(&number) {
            true => Ok(Self(number)),
            false => {
                Err(de::Error::custom(format!("found `{number}`, expected a whole number from {LEAST} to {MOST}")))
            }
        }
    }
}

inline_schema!(impl[const LEAST: u32, const MOST: u32] Whole<LEAST, MOST>, format!("integer_from_{LEAST}_to_{MOST}"), |_| {
    json_schema!({ "type": "integer", "minimum": LEAST, "maximum": MOST })
});

/// A probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Probability(pub(crate) f64);

impl<'de> Deserialize<'de> for Probability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = f64::deserialize(deserializer)?;
        match (0.0..=1.0).contains(&number) {
            true => Ok(Self(number)),
            false => Err(de::Error::custom(format!("{number} is not a probability: use a number from 0 to 1"))),
        }
    }
}

inline_schema!(Probability, "probability", |_| {
    json_schema!({ "type": "number", "format": "probability", "minimum": 0, "maximum": 1 })
});

/// The name of a law and its parameters: `{ name = "fast", alpha = 8, refill = { kind = "ccafr", ipd_weight = 0.125 } }`. The key of a part's
/// parameter has the part and a dot before it: `refill.ipd_weight`. `refill = "ccafr"` is short for `refill = { kind = "ccafr" }`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LawKeys(pub(crate) BTreeMap<String, Setting>);

impl<'de> Deserialize<'de> for LawKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut keys = BTreeMap::new();
        for (Plain(part), given) in BTreeMap::<Plain, SettingOrTable>::deserialize(deserializer)? {
            match given {
                SettingOrTable::Setting(setting) => drop(keys.insert(part, setting)),
                SettingOrTable::Table(table) => {
                    keys.extend(table.into_iter().map(|(Plain(key), setting)| (format!("{part}.{key}"), setting)));
                }
            }
        }
        Ok(Self(keys))
    }
}

impl JsonSchema for LawKeys {
    fn schema_name() -> Cow<'static, str> {
        "cc".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "A congestion law and its parameters; `anabranch cc show NAME` tells which there are. Those of a part stand in a table: `refill = { kind = \"ccafr\", ipd_weight = 0.125 }`, which `anabranch cc show` lists as `refill` and `refill.ipd_weight`. Of a controller of one's own `plugin` names the WASM module, and the other keys are the settings that it declares: `docs/own-controllers.md`.",
            "properties": {
                "name": { "type": "string", "description": "The law." },
                "plugin": { "type": "string", "description": "In the place of `name`, for `anabranch` alone: the file of a controller, relative to this one." },
            },
            "additionalProperties": {
                "type": ["number", "string", "boolean", "object"],
                "additionalProperties": { "type": ["number", "string", "boolean"] },
            },
        })
    }
}

/// A key without a dot; with a dot it would be the key of a part's parameter.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Plain(String);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let key = String::deserialize(deserializer)?;
        match key.split_once('.') {
            None => Ok(Self(key)),
            Some((part, rest)) => Err(de::Error::custom(format!(
                "the key `\"{key}\"` has a dot within quotes: write {part} = {{ {rest} = ... }}"
            ))),
        }
    }
}

/// A parameter of a law, or the parameters of one of its parts.
enum SettingOrTable {
    Setting(Setting),
    Table(BTreeMap<Plain, Setting>),
}

impl<'de> Deserialize<'de> for SettingOrTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EitherVisitor;

        impl<'de> Visitor<'de> for EitherVisitor {
            type Value = SettingOrTable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a string, a truth value or a table of them")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<SettingOrTable, E> {
                SettingVisitor.visit_str(text).map(SettingOrTable::Setting)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<SettingOrTable, E> {
                SettingVisitor.visit_u64(number).map(SettingOrTable::Setting)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<SettingOrTable, E> {
                SettingVisitor.visit_i64(number).map(SettingOrTable::Setting)
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<SettingOrTable, E> {
                SettingVisitor.visit_f64(number).map(SettingOrTable::Setting)
            }

            fn visit_bool<E: de::Error>(self, truth: bool) -> Result<SettingOrTable, E> {
                SettingVisitor.visit_bool(truth).map(SettingOrTable::Setting)
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<SettingOrTable, A::Error> {
                BTreeMap::deserialize(de::value::MapAccessDeserializer::new(map)).map(SettingOrTable::Table)
            }
        }

        deserializer.deserialize_any(EitherVisitor)
    }
}

inline_schema!(Setting, "setting", |_| json_schema!({ "type": ["number", "string", "boolean"], "format": "setting" }));

/// The value of a parameter of a law, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting(pub(crate) String);

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SettingVisitor)
    }
}

struct SettingVisitor;

impl Visitor<'_> for SettingVisitor {
    type Value = Setting;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a string or a truth value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Setting, E> {
        Ok(Setting(text.to_owned()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Setting, E> {
        Ok(Setting(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Setting, E> {
        Ok(Setting(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Setting, E> {
        Ok(Setting(number.to_string()))
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Setting, E> {
        Ok(Setting(truth.to_string()))
    }
}

/// A `count`, which exists only in the file: elements are written out before keys are read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WrittenOut {}

impl<'de> Deserialize<'de> for WrittenOut {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(de::Error::custom("a `count` cannot be set from outside the file"))
    }
}

inline_schema!(WrittenOut, "count", |_| {
    json_schema!({ "type": "integer", "format": "count", "minimum": 1, "maximum": REPEATED_MAX })
});
