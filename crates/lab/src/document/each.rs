//! Similar claims: a `[[claim]]` with `each = [{ ... }, { ... }]` is one claim for each entry. The same holds for a table, a note and a
//! figure.
//!
//! `$name` in a string becomes the entry's value of `name`, or else the text `name` in `[text]`; `$$` is `$`. A key of the entry that no `$`
//! uses becomes a key of the element, and replaces the element's own.
//!
//! ```toml
//! [text]
//! short = "The run is over before the window has grown."
//!
//! [[claim]]
//! row = "$law above SACK"
//! order = ["rate('$law', '$loss')", "rate('SACK', '$loss')"]
//! each = [
//!   { law = "FAST", loss = "none", published = "FAST > SACK" },
//!   { law = "Vegas", loss = "none", published = "Vegas > SACK", because = "$short" },
//! ]
//! ```
//!
//! All elements are written out when the file is read, after its bases. No other part of the program knows `each`.

use std::collections::BTreeMap;

use super::{COUNT_MAX, Key, Node, Value, values};
use crate::diagnostic::{Fault, Place, suggestion};

/// The lists whose elements may have `each`.
const LISTS: [&str; 4] = ["table", "claim", "note", "figure"];

/// The key with the entries.
const EACH: &str = "each";

/// The table of texts.
const TEXTS: &str = "text";

/// The sign before a name.
const SIGN: char = '$';

/// Writes out all elements with entries, and all names of texts. `left` is the number of values that may still be made.
pub(super) fn write_out(root: &mut Node, left: &mut usize) -> Result<(), Fault> {
    let Value::Table(entries) = &mut root.value else { return Ok(()) };
    let texts = match entries.iter().position(|(key, _)| key.name == TEXTS) {
        Some(position) => texts(entries.remove(position).1)?,
        None => BTreeMap::new(),
    };
    for (_, list) in entries.iter_mut().filter(|(key, _)| LISTS.contains(&key.name.as_str())) {
        let Value::Array(elements) = &mut list.value else { continue };
        let mut all = Vec::with_capacity(elements.len());
        for element in std::mem::take(elements) {
            written_out(element, &texts, left, &mut all)?;
        }
        *elements = all;
    }
    Ok(())
}

fn texts(node: Node) -> Result<BTreeMap<String, String>, Fault> {
    let fault = |place: &Place| {
        let fault = Fault::new(format!("[{TEXTS}] holds names and strings"));
        fault.remedy(format!("write name = \"...\", and {SIGN}name where it is to stand")).at(place)
    };
    let Value::Table(entries) = node.value else { return Err(fault(&node.place)) };
    entries
        .into_iter()
        .map(|(key, node)| match node.value {
            Value::String(text) if !key.name.is_empty() && key.name.chars().all(is_of_name) => Ok((key.name, text)),
            _ => Err(fault(&node.place)),
        })
        .collect()
}

/// Adds an element to `all`, or one for each of its entries.
fn written_out(
    mut element: Node,
    texts: &BTreeMap<String, String>,
    left: &mut usize,
    all: &mut Vec<Node>,
) -> Result<(), Fault> {
    let position = match &element.value {
        Value::Table(entries) => entries.iter().position(|(key, _)| key.name == EACH),
        _ => None,
    };
    let (Some(position), Value::Table(shared)) = (position, &mut element.value) else {
        fill(&mut element, texts, left)?;
        all.push(element);
        return Ok(());
    };
    let (_, each) = shared.remove(position);
    let refuse = |message: String, place| {
        Err(Fault::new(message).remedy(format!("write {EACH} = [{{ row = \"a\" }}, {{ row = \"b\" }}]")).at(place))
    };
    let Value::Array(entries) = each.value else { return refuse(format!("`{EACH}` is not a list"), &each.place) };
    if entries.is_empty() || entries.len() as i64 > COUNT_MAX {
        return refuse(format!("`{EACH}` has {} entries, and not 1 to {COUNT_MAX}", entries.len()), &each.place);
    }
    for entry in entries {
        let Value::Table(said) = entry.value else {
            return refuse(format!("an entry of `{EACH}` is not a table"), &entry.place);
        };
        let mut one = Node { place: entry.place, value: element.value.clone() };
        spend(values(&one) + said.iter().map(|(_, node)| values(node)).sum::<usize>(), left)?;
        let mut names = texts.clone();
        let (asked, own) = said.iter().cloned().partition::<Vec<_>, _>(|(key, _)| {
            asks(&element, &key.name) || said.iter().any(|(_, node)| asks(node, &key.name))
        });
        for (key, node) in asked {
            names.insert(key.name, written(node)?);
        }
        let Value::Table(keys) = &mut one.value else { unreachable!("its entries were taken out of it") };
        own.into_iter().for_each(|entry| set(keys, entry));
        fill(&mut one, &names, left)?;
        all.push(one);
    }
    Ok(())
}

fn set(keys: &mut Vec<(Key, Node)>, entry: (Key, Node)) {
    match keys.iter_mut().find(|(key, _)| key.name == entry.0.name) {
        Some(known) => *known = entry,
        None => keys.push(entry),
    }
}

/// The text for a name: a string, or a whole number as it is written.
fn written(node: Node) -> Result<String, Fault> {
    match node.value {
        Value::String(text) => Ok(text),
        Value::Integer(number) => Ok(number.to_string()),
        _ => {
            let fault = Fault::new(format!("what stands for a {SIGN}name is a string or a whole number"));
            Err(fault.remedy("write it as a string").at(&node.place))
        }
    }
}

/// Whether a string in `node` uses `name`.
fn asks(node: &Node, name: &str) -> bool {
    match &node.value {
        Value::String(text) => Pieces(text).any(|piece| piece == Piece::Name(name)),
        Value::Array(elements) => elements.iter().any(|node| asks(node, name)),
        Value::Table(entries) => entries.iter().any(|(_, node)| asks(node, name)),
        _ => false,
    }
}

/// Replaces all names in `node` by their texts.
fn fill(node: &mut Node, names: &BTreeMap<String, String>, left: &mut usize) -> Result<(), Fault> {
    match &mut node.value {
        Value::String(text) if text.contains(SIGN) => {
            *text = filled(text, names, left).map_err(|fault| fault.at(&node.place))?;
            Ok(())
        }
        Value::Array(elements) => elements.iter_mut().try_for_each(|node| fill(node, names, left)),
        Value::Table(entries) => entries.iter_mut().try_for_each(|(_, node)| fill(node, names, left)),
        _ => Ok(()),
    }
}

fn filled(text: &str, names: &BTreeMap<String, String>, left: &mut usize) -> Result<String, Fault> {
    let mut filled = String::new();
    for piece in Pieces(text) {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Name("") => {
                let fault = Fault::new(format!("`{SIGN}` without a name"));
                return Err(fault.remedy(format!("write {SIGN}name, or {SIGN}{SIGN} for the sign itself")));
            }
            Piece::Name(name) => match names.get(name) {
                Some(text) => {
                    spend(1 + text.len() / BYTES_A_VALUE, left)?;
                    filled.push_str(text);
                }
                None => {
                    let fault = Fault::new(format!("nothing says what `{SIGN}{name}` is"));
                    let known = suggestion(name, names.keys().map(String::as_str));
                    return Err(fault.remedy(format!("say it in `{EACH}` or in [{TEXTS}]: {known}")));
                }
            },
        }
    }
    Ok(filled)
}

/// A text counts as one value for each of this many bytes.
const BYTES_A_VALUE: usize = 100;

fn spend(values: usize, left: &mut usize) -> Result<(), Fault> {
    match left.checked_sub(values) {
        Some(rest) => {
            *left = rest;
            Ok(())
        }
        None => {
            let fault = Fault::new(format!("written out, all that `{EACH}` and [{TEXTS}] stand for is too much"));
            Err(fault.remedy("use fewer entries, or shorter texts"))
        }
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// A part of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    /// A name without its sign.
    Name(&'a str),
}

/// The parts of a string, from the first on.
struct Pieces<'a>(&'a str);

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let (piece, rest) = match self.0.strip_prefix(SIGN) {
            _ if self.0.is_empty() => return None,
            Some(behind) if behind.starts_with(SIGN) => {
                (Piece::Text(&behind[..SIGN.len_utf8()]), &behind[SIGN.len_utf8()..])
            }
            Some(behind) => {
                let (name, rest) = behind.split_at(behind.find(|c| !is_of_name(c)).unwrap_or(behind.len()));
                (Piece::Name(name), rest)
            }
            None => {
                let (text, rest) = self.0.split_at(self.0.find(SIGN).unwrap_or(self.0.len()));
                (Piece::Text(text), rest)
            }
        };
        self.0 = rest;
        Some(piece)
    }
}

#[cfg(test)]
mod tests;
