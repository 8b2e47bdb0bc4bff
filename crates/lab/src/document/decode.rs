//! Decodes the tree into typed values, by `serde`, with the place of every error.
//!
//! A table becomes an enum by its key `kind`: `{ kind = "drop_tail", packets = 10 }`.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::{Key, Node, Value};
use crate::diagnostic::{Fault, nearest, suggestion};

/// The key that selects the kind of a table.
const TAG: &str = "kind";

/// The key that selects the type of the other keys of its table, besides the keys that are common to all types.
const SHARED_TAG: &str = "transport";

/// What separates message and remedy in the text of an error of our own types: `serde` passes on one text.
pub(crate) const REMEDY: char = '\u{1f}';

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let text = message.to_string();
        match text.split_once(REMEDY) {
            Some((message, remedy)) => Self::new(message).remedy(remedy),
            None => Self::new(text),
        }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("found {}, expected {}", found_word(found), expected_words(&expected.to_string())))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("unknown key `{field}`")).remedy(suggestion(field, expected.iter().copied()))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("unknown kind `{variant}`")).remedy(suggestion(variant, expected.iter().copied()))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("the key `{field}` is missing")).remedy("add it")
    }
}

/// The type of a value, in the words of the reference.
fn found_word(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(truth) => format!("`{truth}`"),
        Unexpected::Unsigned(number) => format!("integer `{number}`"),
        Unexpected::Signed(number) => format!("integer `{number}`"),
        Unexpected::Float(number) => format!("number `{number}`"),
        Unexpected::Str(text) => format!("string `{text}`"),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}

/// The expected type: our own types' words are used as they are, names of Rust's types are translated.
fn expected_words(expected: &str) -> String {
    let integer = |least: i128, most: i128| format!("a whole number from {least} to {most}");
    match expected {
        "u8" => integer(0, u8::MAX.into()),
        "u16" => integer(0, u16::MAX.into()),
        "u32" => integer(0, u32::MAX.into()),
        "a nonzero u8" => integer(1, u8::MAX.into()),
        "a nonzero u16" => integer(1, u16::MAX.into()),
        "u64" => "a whole number, not below 0".to_owned(),
        "i64" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a map" => "a table".to_owned(),
        "a sequence" => "a list".to_owned(),
        other if other.starts_with("struct ") => "a table".to_owned(),
        other => other.to_owned(),
    }
}

/// The decoder of a value.
pub(super) struct Decoder<'a> {
    node: &'a Node,
    /// If the value selects the type of its table.
    table: Option<Shared<'a>>,
}

/// A table of which one key selects the type of the others.
#[derive(Clone, Copy)]
struct Shared<'a> {
    entries: &'a [(Key, Node)],
    /// The keys that are common to all types.
    keys: &'static [&'static str],
}

impl<'a> Decoder<'a> {
    pub(super) fn new(node: &'a Node) -> Self {
        Self { node, table: None }
    }
}

impl<'de> Deserializer<'de> for Decoder<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let result = match &self.node.value {
            Value::String(text) => visitor.visit_str(text),
            Value::Integer(number) => match u64::try_from(*number) {
                Ok(number) => visitor.visit_u64(number),
                Err(_) => visitor.visit_i64(*number),
            },
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Boolean(truth) => visitor.visit_bool(*truth),
            Value::Array(elements) => visitor.visit_seq(Elements(elements.iter())),
            Value::Table(entries) => visitor.visit_map(Entries::new(entries, Shown::All)),
        };
        result.map_err(|fault| fault.at(&self.node.place))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let chosen = match self.variant(name, variants)? {
            Some(variant) => visitor.visit_enum(variant),
            None => visitor.visit_unit(),
        };
        chosen.map_err(|fault| fault.at(&self.node.place))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let entries = self.entries(fields, &visitor)?;
        visitor.visit_map(entries).map_err(|fault| fault.at(&self.node.place))
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.whole(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.whole(visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.whole(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u16 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

impl<'a> Decoder<'a> {
    /// The kind that a value selects; nothing for a type without kinds. It is no part of the generic functions, of which there is one for each type.
    fn variant(&self, name: &'static str, variants: &'static [&'static str]) -> Result<Option<Variant<'a>>, Fault> {
        let choice = || format!("it is one of {}", variants.join(", "));
        let variant = match &self.node.value {
            _ if let Some(Shared { entries, keys }) = self.table => {
                String::deserialize(Self::new(self.node))?;
                Variant { name: SHARED_TAG, tag: self.node, entries, shown: Shown::Without(keys) }
            }
            Value::String(_) => Variant { name: TAG, tag: self.node, entries: &[], shown: Shown::All },
            Value::Table(entries) => match entries.iter().find(|(key, _)| key.name == TAG) {
                Some((_, tag)) if matches!(tag.value, Value::String(_)) || variants.is_empty() => {
                    Variant { name: TAG, tag, entries, shown: Shown::Without(&[TAG]) }
                }
                // A number would select a kind by position.
                Some((_, tag)) => {
                    return Err(Fault::new(format!("`{TAG}` is not a string")).remedy(choice()).at(&tag.place));
                }
                None if variants.is_empty() => return Ok(None),
                None => {
                    let fault = Fault::new(format!("the key `{TAG}` is missing"));
                    return Err(fault.remedy(choice()).at(&self.node.place));
                }
            },
            _ if variants.is_empty() => return Ok(None),
            _ => {
                let fault = Fault::new(format!("expected a table with the key `{TAG}` for {name}"));
                return Err(fault.remedy(choice()).at(&self.node.place));
            }
        };
        Ok(Some(variant))
    }

    /// The entries of the table that a struct is made of.
    fn entries(&self, fields: &'static [&'static str], expected: &dyn Expected) -> Result<Entries<'a>, Fault> {
        let found = match &self.node.value {
            Value::Table(entries) if fields.contains(&SHARED_TAG) => {
                let has_tag = entries.iter().any(|(key, _)| key.name == SHARED_TAG);
                let is_meant =
                    |key: &&Key| !fields.contains(&key.name.as_str()) && nearest(&key.name, &[SHARED_TAG]).is_some();
                if let Some(key) = entries.iter().map(|(key, _)| key).filter(|_| !has_tag).find(is_meant) {
                    return Err(Fault::unknown_field(&key.name, &[SHARED_TAG]).at(&key.place));
                }
                return Ok(Entries::new(entries, Shown::Only(fields)));
            }
            Value::Table(entries) => return Ok(Entries::new(entries, Shown::All)),
            // A list would give values by their positions.
            Value::Array(_) => Unexpected::Seq,
            Value::String(text) => Unexpected::Str(text),
            &Value::Integer(number) => Unexpected::Signed(number),
            &Value::Float(number) => Unexpected::Float(number),
            &Value::Boolean(truth) => Unexpected::Bool(truth),
        };
        Err(Fault::invalid_type(found, expected).at(&self.node.place))
    }

    /// Accepts a float such as `1e3` as a whole number.
    fn whole<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.node.value {
            Value::Float(number) if number.fract() == 0.0 && (0.0..WHOLE_MAX).contains(&number) => {
                visitor.visit_u64(number as u64).map_err(|fault: Fault| fault.at(&self.node.place))
            }
            _ => self.deserialize_any(visitor),
        }
    }
}

/// Up to here floats represent every whole number.
const WHOLE_MAX: f64 = (1_u64 << 53) as f64;

struct Elements<'a>(std::slice::Iter<'a, Node>);

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        self.0.next().map(|node| seed.deserialize(Decoder::new(node))).transpose()
    }
}

/// The keys of a table that are passed on.
#[derive(Clone, Copy)]
enum Shown {
    All,
    Only(&'static [&'static str]),
    Without(&'static [&'static str]),
}

impl Shown {
    fn shows(self, key: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(keys) => keys.contains(&key),
            Self::Without(keys) => !keys.contains(&key),
        }
    }
}

struct Entries<'a> {
    all: &'a [(Key, Node)],
    rest: std::slice::Iter<'a, (Key, Node)>,
    shown: Shown,
    /// The value of [`SHARED_TAG`], for messages.
    of: Option<&'a str>,
    value: Option<(&'a Key, &'a Node)>,
}

impl<'a> Entries<'a> {
    fn new(all: &'a [(Key, Node)], shown: Shown) -> Self {
        Self { all, rest: all.iter(), shown, of: None, value: None }
    }

    /// The next key that is passed on.
    fn next_key(&mut self) -> Option<&'a Key> {
        let shown = self.shown;
        self.value = self.rest.find(|(key, _)| shown.shows(&key.name)).map(|(key, node)| (key, node));
        self.value.map(|(key, _)| key)
    }

    fn next_value(&mut self) -> Decoder<'a> {
        let (key, node) = self.value.take().expect("serde asks for a value after its key");
        let table = match self.shown {
            Shown::Only(keys) if key.name == SHARED_TAG => Some(Shared { entries: self.all, keys }),
            _ => None,
        };
        Decoder { node, table }
    }

    /// The message about an unknown key.
    fn refuse(&self, key: &Key, fault: Fault) -> Fault {
        match (self.of, self.shown) {
            (Some(of), Shown::Without(shared)) => {
                let like = shared.iter().find(|known| strsim::damerau_levenshtein(known, &key.name) == 1);
                let remedy = match like {
                    Some(known) => format!("did you mean `{known}`?"),
                    None => fault.remedy.unwrap_or_default(),
                };
                Fault::new(format!("`{of}` has no key `{}`", key.name)).remedy(remedy)
            }
            _ => fault,
        }
    }
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some(key) = self.next_key() else { return Ok(None) };
        let name = IntoDeserializer::<Fault>::into_deserializer(key.name.as_str());
        seed.deserialize(name).map(Some).map_err(|fault| self.refuse(key, fault).at(&key.place))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let decoder = self.next_value();
        let node = decoder.node;
        seed.deserialize(decoder).map_err(|fault| fault.at(&node.place))
    }
}

struct Variant<'a> {
    /// The name of the key that selects.
    name: &'static str,
    tag: &'a Node,
    entries: &'a [(Key, Node)],
    shown: Shown,
}

impl<'de, 'a> EnumAccess<'de> for Variant<'a> {
    type Error = Fault;
    type Variant = Fields<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Fields<'a>), Fault> {
        let Self { name, tag, entries, shown } = self;
        let named = |fault: Fault| Fault { message: fault.message.replacen(TAG, name, 1), ..fault };
        let value = seed.deserialize(Decoder::new(tag)).map_err(|fault| named(fault).at(&tag.place))?;
        let of = match &tag.value {
            Value::String(of) if name == SHARED_TAG => Some(of.as_str()),
            _ => None,
        };
        Ok((value, Fields { of, ..Fields::new(entries, shown) }))
    }
}

type Fields<'a> = Entries<'a>;

impl<'de> VariantAccess<'de> for Fields<'_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        let shown = self.shown;
        match self.all.iter().find(|(key, _)| shown.shows(&key.name)) {
            None => Ok(()),
            Some((key, _)) => {
                let fault = Fault::new(format!("unknown key `{}`", key.name));
                Err(fault.remedy(format!("this kind has no keys but `{TAG}`: remove it")).at(&key.place))
            }
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        seed.deserialize(MapAccessDeserializer::new(self))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Fault> {
        unreachable!("kinds of a table are declared as units, with named keys or as a table of their own")
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_map(self)
    }
}
