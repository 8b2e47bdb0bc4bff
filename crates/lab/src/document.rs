//! A TOML file as a tree that remembers where every key and value was written.
//!
//! Overrides are applied to the tree, so a mistake in `--set` is found by the same checks as one in the file, and is shown where
//! it was made.

mod decode;
mod repeat;
mod topology;

use std::fs;
use std::io::Read as _;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Fault, Place, is_command, suggestion};

pub(crate) use repeat::COUNT_MAX;
pub(crate) use topology::{PORTS_MAX, SIZE_MAX};

/// A parsed file with its overrides.
#[derive(Clone, Debug)]
pub struct Document {
    file: Arc<str>,
    text: Arc<str>,
    comment: String,
    root: Node,
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    String(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Array(Vec<Node>),
    /// In the order of the file.
    Table(Vec<(Key, Node)>),
}

#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) place: Place,
    pub(crate) name: String,
}

/// A way from the root to a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path(Vec<Step>);

#[derive(Clone, Debug)]
enum Step {
    Key(String),
    Index(usize),
}

impl Path {
    pub(crate) fn key(&self, name: &str) -> Self {
        let mut path = self.clone();
        path.0.push(Step::Key(name.to_owned()));
        path
    }

    pub(crate) fn index(&self, index: usize) -> Self {
        let mut path = self.clone();
        path.0.push(Step::Index(index));
        path
    }
}

impl Document {
    /// Reads and parses a file.
    ///
    /// # Errors
    /// If it cannot be read, is longer than 16 MiB, or is not TOML.
    pub fn read(path: &std::path::Path) -> Result<Self, Diagnostic> {
        let name = path.display().to_string();
        let fail = |fault: Fault, place: Place| fault.at(&place).in_file(&name.as_str().into());
        let mut bytes = Vec::new();
        let read = fs::File::open(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes));
        read.map_err(|error| {
            let fault = Fault::new(format!("cannot be read: {error}"));
            fail(fault.remedy("name a scenario file that exists and may be read"), Place::File)
        })?;
        if bytes.len() as u64 > BYTES_MAX {
            let fault = Fault::new(format!("it has more than {} MiB, and no scenario has", BYTES_MAX >> 20));
            return Err(fail(fault.remedy("name a scenario file, or make it smaller with `count`"), Place::File));
        }
        let text = String::from_utf8(bytes).map_err(|error| {
            let before = String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]).into_owned();
            let fault = Fault::new("not TOML: it is not UTF-8").remedy("save it as UTF-8");
            fail(fault, Lines::new(&before).place(before.len()))
        })?;
        Self::parse(&name, &text)
    }

    /// Parses `text`; `file` is what to call it in messages.
    ///
    /// # Errors
    /// If `text` is not TOML.
    pub fn parse(file: &str, text: &str) -> Result<Self, Diagnostic> {
        let file: Arc<str> = file.into();
        let lines = Lines::new(text);
        let place = |span: &std::ops::Range<usize>| lines.place(span.start);
        let table = DeTable::parse(text).map_err(|error| {
            let fault = Fault::new(format!("not TOML: {}", error.message().trim_end()));
            let fault = fault.remedy("a scenario has lines `key = value` under [[link]] and [[flow]]");
            fault.at(&error.span().map_or(Place::File, |span| place(&span))).in_file(&file)
        })?;
        let mut root =
            Node { place: Place::Line { line: 1, column: 1 }, value: convert_table(table.get_ref(), &lines) };
        refuse_controls(&root).map_err(|fault| fault.in_file(&file))?;
        repeat::write_out(&mut root, &file)?;
        topology::write_out(&mut root, &file)?;
        Ok(Self { file, text: text.into(), comment: first_comment(text), root })
    }

    /// The comment that the file opens with: the question that a scenario or an experiment asks. An empty line of it parts
    /// paragraphs.
    pub fn comment(&self) -> &str {
        &self.comment
    }

    /// What the file is called in messages.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The file as it was read; overrides are not in it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Applies `key=value`, as `--set` has it: `flow.f0.cc.alpha=5`. Elements of a list are named by their `id` or counted from
    /// 0, `*` is all of them and `f*` those whose names begin so; the value is TOML, and a string needs no quotes.
    ///
    /// # Errors
    /// If it is not of this form or names an element that there is not. Whether the key is known is found when the document
    /// is decoded.
    pub fn set(&mut self, argument: &str) -> Result<(), Diagnostic> {
        let place = Place::Set(argument.into());
        let fail = |fault: Fault| fault.at(&place).in_file(&self.file);
        let Some((path, value)) = argument.split_once('=') else {
            return Err(fail(Fault::new("there is no `=`").remedy("write key=value, such as flow.f0.window=50")));
        };
        let node = scalar_or_text(value.trim(), &place);
        refuse_controls(&node).map_err(fail)?;
        assign(&mut self.root, path.trim(), &node, &place).map_err(fail)
    }

    /// [`Document::set`] with a value that is already parsed, as the values of an axis are.
    pub(crate) fn assign(&mut self, path: &str, value: &Node) -> Result<(), Diagnostic> {
        let place = value.place.clone();
        assign(&mut self.root, path, value, &place).map_err(|fault| fault.at(&place).in_file(&self.file))
    }

    /// Reads the document into a type.
    pub(crate) fn decode<T: DeserializeOwned>(&self) -> Result<T, Diagnostic> {
        T::deserialize(decode::Decoder(&self.root)).map_err(|fault| fault.at(&self.root.place).in_file(&self.file))
    }

    /// The value at `path`, if there is one.
    pub(crate) fn node(&self, path: &Path) -> Option<&Node> {
        path.0.iter().try_fold(&self.root, |node, step| node.child(step))
    }

    /// Makes a fault into a message about what stands at `path`, or about the innermost thing around it that was written.
    pub(crate) fn diagnose(&self, path: &Path, fault: Fault) -> Diagnostic {
        let mut node = &self.root;
        for step in &path.0 {
            let Some(child) = node.child(step) else { break };
            node = child;
        }
        fault.at(&node.place).in_file(&self.file)
    }
}

impl Node {
    fn child(&self, step: &Step) -> Option<&Self> {
        match (&self.value, step) {
            (Value::Table(entries), Step::Key(name)) => {
                entries.iter().find(|(key, _)| key.name == *name).map(|(_, node)| node)
            }
            (Value::Array(elements), Step::Index(index)) => elements.get(*index),
            _ => None,
        }
    }

    /// Whether `name` is `*` or the beginning of the element's `id` and a `*`.
    fn is_meant_by(&self, name: &str) -> bool {
        let Some(beginning) = name.strip_suffix('*') else { return false };
        beginning.is_empty() || self.id().is_some_and(|id| id.starts_with(beginning))
    }

    fn id(&self) -> Option<&str> {
        match &self.child(&Step::Key("id".to_owned()))?.value {
            Value::String(id) => Some(id),
            _ => None,
        }
    }
}

/// Puts `value` at `path`, making the tables that are missing on the way.
fn assign(root: &mut Node, path: &str, value: &Node, place: &Place) -> Result<(), Fault> {
    if path.split('.').any(str::is_empty) {
        let fault = Fault::new(format!("`{path}` has an empty part"));
        return Err(fault.remedy("write names between dots: flow.f0.window"));
    }
    if path.split('.').count() > DEPTH_MAX {
        return Err(Fault::new(format!("a path of more than {DEPTH_MAX} names leads nowhere")).remedy("shorten it"));
    }
    descend(root, path, path, value, place)
}

/// [`assign`] below a node, where `rest` of the path is left.
fn descend(node: &mut Node, rest: &str, path: &str, value: &Node, place: &Place) -> Result<(), Fault> {
    let (name, rest) = rest.split_once('.').unwrap_or((rest, ""));
    if name.is_empty() {
        *node = value.clone();
        return Ok(());
    }
    match &mut node.value {
        Value::Table(entries) => {
            let position = entries.iter().position(|(key, _)| key.name == name).unwrap_or_else(|| {
                let key = Key { place: place.clone(), name: name.to_owned() };
                entries.push((key, Node { place: place.clone(), value: Value::Table(Vec::new()) }));
                entries.len() - 1
            });
            descend(&mut entries[position].1, rest, path, value, place)
        }
        Value::Array(elements) if elements.iter().any(|element| element.is_meant_by(name)) => elements
            .iter_mut()
            .filter(|element| element.is_meant_by(name))
            .try_for_each(|element| descend(element, rest, path, value, place)),
        Value::Array(elements) => {
            let ids: Vec<String> = elements.iter().filter_map(|node| node.id().map(str::to_owned)).collect();
            let by_id = elements.iter().position(|node| node.id() == Some(name));
            let index = by_id.or_else(|| name.parse().ok()).filter(|&index| index < elements.len());
            let unknown = || {
                let fault = Fault::new(format!("nothing is called `{name}` in `{path}`"));
                fault.remedy(suggestion(name, ids.iter().map(String::as_str)))
            };
            descend(&mut elements[index.ok_or_else(unknown)?], rest, path, value, place)
        }
        _ => {
            let fault = Fault::new(format!("`{name}` in `{path}` cannot be set"));
            Err(fault.remedy("what stands before it is a value, not a table"))
        }
    }
}

/// A longer file is no scenario that somebody wants to run; and a device or a pipe need not have an end.
const BYTES_MAX: u64 = 16 << 20;

/// Nothing stands so deep; paths are walked on the stack.
const DEPTH_MAX: usize = 16;

/// A TOML value, or the text itself: people write `rate=2Mbit/s` without quotes that their shell would take away.
fn scalar_or_text(text: &str, place: &Place) -> Node {
    let document = format!("value = {text}");
    let parsed = DeTable::parse(&document).ok().and_then(|table| {
        let value = match convert_table(table.get_ref(), &Lines::new("")) {
            Value::Table(entries) if entries.len() == 1 => entries.into_iter().next().map(|(_, node)| node),
            _ => None,
        };
        value.map(|mut node| {
            relocate(&mut node, place);
            node
        })
    });
    parsed.unwrap_or_else(|| Node { place: place.clone(), value: Value::String(text.to_owned()) })
}

fn relocate(node: &mut Node, place: &Place) {
    node.place = place.clone();
    match &mut node.value {
        Value::Array(elements) => elements.iter_mut().for_each(|node| relocate(node, place)),
        Value::Table(entries) => entries.iter_mut().for_each(|(key, node)| {
            key.place = place.clone();
            relocate(node, place);
        }),
        _ => {}
    }
}

fn convert_table(table: &DeTable<'_>, lines: &Lines) -> Value {
    let mut entries: Vec<_> = table.iter().collect();
    // The parser sorts keys by name; people expect rows and axes in the order in which they wrote them.
    entries.sort_by_key(|(key, _)| key.span().start);
    let convert = |(key, value): (&Spanned<std::borrow::Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
        let place = lines.place(key.span().start);
        (Key { place, name: key.get_ref().to_string() }, convert_value(value, lines))
    };
    Value::Table(entries.into_iter().map(convert).collect())
}

fn convert_value(value: &Spanned<DeValue<'_>>, lines: &Lines) -> Node {
    let place = lines.place(value.span().start);
    let value = match value.get_ref() {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::Integer(number),
            // Too large for TOML's own integers; whoever wants a number gets one that is out of every range.
            Err(_) => Value::Float(number.as_str().parse().unwrap_or(f64::INFINITY)),
        },
        DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(truth) => Value::Boolean(*truth),
        DeValue::Datetime(date) => Value::String(date.to_string()),
        DeValue::Array(elements) => {
            Value::Array(elements.iter().map(|element| convert_value(element, lines)).collect())
        }
        DeValue::Table(table) => convert_table(table, lines),
    };
    Node { place, value }
}

/// Names and texts are shown on terminals, where a control character is a command: that of `"\u001b[2J"` clears the screen. They
/// are refused where they are read, so that nobody has to think of them where they are shown.
fn refuse_controls(node: &Node) -> Result<(), Fault> {
    let refuse = |text: &str, place: &Place| match text.chars().find(|&c| is_command(c)) {
        None => Ok(()),
        Some(c) => {
            let fault = Fault::new(format!("a text cannot hold the control character U+{:04X}", u32::from(c)));
            Err(fault.remedy("remove it").at(place))
        }
    };
    match &node.value {
        Value::String(text) => refuse(text, &node.place),
        Value::Array(elements) => elements.iter().try_for_each(refuse_controls),
        Value::Table(entries) => entries.iter().try_for_each(|(key, node)| {
            refuse(&key.name, &key.place)?;
            refuse_controls(node)
        }),
        Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => Ok(()),
    }
}

/// The lines of a comment block at the head of `text`, without their signs; an empty line parts paragraphs.
fn first_comment(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map_while(|line| line.trim().strip_prefix('#')).map(str::trim).collect();
    let paragraphs = lines.split(|line| line.is_empty()).filter(|lines| !lines.is_empty());
    paragraphs.map(|lines| lines.join(" ")).collect::<Vec<_>>().join("\n\n")
}

/// Where lines begin, to turn an offset into a line and a column.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(offset, _)| offset + 1)).collect();
        Self { text, starts }
    }

    fn place(&self, offset: usize) -> Place {
        let line = self.starts.partition_point(|&start| start <= offset);
        let start = self.starts[line - 1];
        let column = self.text.get(start..offset).map_or(0, |before| before.chars().count()) + 1;
        Place::Line { line, column }
    }
}

#[cfg(test)]
mod tests;
