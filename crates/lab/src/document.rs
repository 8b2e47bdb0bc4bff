//! A TOML file as a tree that records the place of every key and value.
//!
//! Overrides are applied to the tree, so an error in `--set` is found by the same checks as one in the file, and is reported at its
//! own place.

mod decode;
mod each;
mod extends;
mod files;
mod plugins;
mod repeat;
mod shapes;
mod traces;
mod write;

use std::slice;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use crate::diagnostic::Source;
use crate::diagnostic::{Diagnostic, Excerpt, Fault, Place, is_command, suggestion};
use crate::own::Given;

pub(crate) use decode::REMEDY;
pub use extends::Bases;
pub(crate) use extends::MODULE;
pub use files::Notice;
use plugins::Files;
pub(crate) use plugins::{PLUGIN, Plugins, module_bytes};
pub(crate) use repeat::COUNT_MAX;
pub(crate) use shapes::{PORTS_MAX, SIZE_MAX};
pub(crate) use traces::is_trace;

/// A parsed file with its overrides.
#[derive(Clone, Debug)]
pub struct Document {
    comment: String,
    root: Node,
    /// The file, and the files that it extends.
    sources: Vec<Source>,
    plugins: Plugins,
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

/// A path from the root to a value.
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
    /// Parses `text`, which extends no other file; `file` is what to call it in messages.
    ///
    /// # Errors
    /// If `text` is not TOML, or extends another file.
    pub fn parse(file: &str, text: &str) -> Result<Self, Diagnostic> {
        Self::parse_with(file, text, &mut |_| Err("no other file is read here".to_owned()))
    }

    /// Parses a file that may extend others and name traces. `bases` reads these: its argument is a name like `file`, such as
    /// `experiments/common/chain.toml`; it returns the text or the reason why the file cannot be read.
    ///
    /// # Errors
    /// If one of the files is not TOML, a named file cannot be read, or a file extends itself, perhaps through others.
    pub fn parse_with(file: &str, text: &str, bases: &mut Bases<'_>) -> Result<Self, Diagnostic> {
        Self::parse_from(file, text, bases, Files::Nowhere, &Given::new())
    }

    /// The same for a file that may name the laws in `given`.
    ///
    /// # Errors
    /// As [`Document::parse_with`].
    pub fn parse_given(file: &str, text: &str, bases: &mut Bases<'_>, given: &Given) -> Result<Self, Diagnostic> {
        Self::parse_from(file, text, bases, Files::Nowhere, given)
    }

    fn parse_from(
        file: &str,
        text: &str,
        bases: &mut Bases<'_>,
        files: Files,
        given: &Given,
    ) -> Result<Self, Diagnostic> {
        let (mut root, mut sources) = extends::read(file, text, bases)?;
        let mut left = VALUES_MAX;
        let traces = traces::write_out(&mut root, &mut sources, bases, &mut left);
        traces.map_err(|fault| located(fault, &sources))?;
        each::write_out(&mut root, &mut left).map_err(|fault| located(fault, &sources))?;
        repeat::write_out(&mut root, &mut left).map_err(|fault| located(fault, &sources))?;
        shapes::write_out(&mut root, &mut left).map_err(|fault| located(fault, &sources))?;
        let mut plugins = Plugins::new(file, files, given.clone());
        plugins.read("", &mut root).map_err(|fault| located(fault, &sources))?;
        Ok(Self { comment: first_comment(text), root, sources, plugins })
    }

    /// The first comment of the file: the question of a scenario or an experiment. An empty line separates paragraphs.
    pub fn comment(&self) -> &str {
        &self.comment
    }

    /// The name of the file in messages.
    pub fn file(&self) -> &str {
        &self.sources[0].file
    }

    /// The text of the file, without overrides and without its bases.
    pub fn text(&self) -> &str {
        &self.sources[0].text
    }

    /// Its bases, the nearest first; then the files of traces.
    pub fn bases(&self) -> &[Source] {
        &self.sources[1..]
    }

    /// The laws that it names and the registry does not have. The name of a module is that of its file.
    pub fn own_laws(&self) -> &Given {
        self.plugins.laws()
    }

    /// Its controllers.
    pub(crate) fn plugins(&self) -> &Plugins {
        &self.plugins
    }

    /// The text of the file, followed by each of its bases behind a line with its name. Traces are left out.
    pub fn whole_text(&self) -> String {
        let bases = self.bases().iter().filter(|base| !is_trace(&base.file));
        let bases = bases.map(|Source { file, text }| format!("\n# {file}\n\n{text}"));
        [self.text().to_owned()].into_iter().chain(bases).collect()
    }

    /// Applies `key=value` of a `--set`: `flow.f0.cc.alpha=5`. Elements of a list are addressed by their `id` or by position from
    /// 0; `*` is all of them, and `f*` those whose ids begin with `f`. The value is TOML; a string needs no quotes.
    ///
    /// # Errors
    /// If it has another form, or addresses an element that does not exist. Unknown keys are found when the document is decoded.
    pub fn set(&mut self, argument: &str) -> Result<(), Diagnostic> {
        let place = Place::Set(argument.into());
        let fail = |fault: Fault| located(fault.at(&place), &self.sources);
        let Some((path, value)) = argument.split_once('=') else {
            return Err(fail(Fault::new("there is no `=`").remedy("write key=value, such as flow.f0.window=50")));
        };
        let mut node = scalar_or_text(value.trim(), &place);
        refuse_controls(&node).map_err(fail)?;
        self.plugins.read(path.trim(), &mut node).map_err(fail)?;
        assign(&mut self.root, path.trim(), &node, &place).map_err(fail)
    }

    /// The document with other values, each set at its path as by [`Document::set`]. The values of an axis are an example.
    pub(crate) fn with<'a>(&self, values: impl Iterator<Item = &'a (String, Node)>) -> Result<Self, Diagnostic> {
        let mut document = self.clone();
        for (path, node) in values {
            assign(&mut document.root, path, node, &node.place)
                .map_err(|fault| located(fault.at(&node.place), &self.sources))?;
        }
        Ok(document)
    }

    /// Reads the document into a type.
    pub(crate) fn decode<T: DeserializeOwned>(&self) -> Result<T, Diagnostic> {
        T::deserialize(decode::Decoder::new(&self.root))
            .map_err(|fault| located(fault.at(&self.root.place), &self.sources))
    }

    /// Its keys and values as one text that does not depend on their notation and order, without some keys of the root. A controller
    /// that it names is there by its content.
    pub(crate) fn canonical(&self, without: &[&str]) -> String {
        let Value::Table(entries) = &self.root.value else { return String::new() };
        let mut kept: Vec<_> = entries.iter().filter(|(key, _)| !without.contains(&key.name.as_str())).collect();
        kept.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        kept.into_iter().map(|(key, node)| format!("{:?}={};", key.name, node.canonical(&self.plugins))).collect()
    }

    /// The value at `path`, if there is one.
    pub(crate) fn node(&self, path: &Path) -> Option<&Node> {
        path.0.iter().try_fold(&self.root, |node, step| node.child(step))
    }

    /// The diagnostic of a fault at `path`. If there is no value at `path`, it is placed at the innermost value around it.
    pub(crate) fn diagnose(&self, path: &Path, fault: Fault) -> Diagnostic {
        let mut node = &self.root;
        for step in &path.0 {
            let Some(child) = node.child(step) else { break };
            node = child;
        }
        located(fault.at(&node.place), &self.sources)
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

    fn canonical(&self, plugins: &Plugins) -> String {
        match &self.value {
            Value::String(text) => format!("{text:?}"),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => format!("{number:?}"),
            Value::Boolean(truth) => truth.to_string(),
            Value::Array(elements) => {
                format!("[{}]", elements.iter().map(|element| element.canonical(plugins) + ",").collect::<String>())
            }
            Value::Table(entries) => {
                let mut entries: Vec<_> = entries.iter().collect();
                entries.sort_by(|a, b| a.0.name.cmp(&b.0.name));
                let entry = |(key, node): &(Key, Self)| {
                    let law = match &node.value {
                        Value::String(name) if key.name == PLUGIN => plugins.law(name),
                        _ => None,
                    };
                    let value = law.map_or_else(|| node.canonical(plugins), |law| law.digest().to_owned());
                    format!("{:?}={value},", key.name)
                };
                format!("{{{}}}", entries.into_iter().map(entry).collect::<String>())
            }
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

/// The diagnostic of a fault in a file, which is the first of `sources`; the others are its bases.
fn located(fault: Fault, sources: &[Source]) -> Diagnostic {
    let own = Arc::clone(&sources[0].file);
    let (file, place) = match fault.place {
        Some(Place::Base { file, line, column }) => (file, Place::Line { line, column }),
        place => (own, place.unwrap_or(Place::File)),
    };
    let text = sources.iter().find(|source| source.file == file).map(|source| &source.text);
    let excerpt = match (&place, text) {
        (&Place::Line { line, column }, Some(text)) => Excerpt::of(text, line, column).map(Box::new),
        _ => None,
    };
    Diagnostic { file, place, message: fault.message, remedy: fault.remedy, excerpt }
}

fn parse_text(source: &Source) -> Result<Node, Diagnostic> {
    let text = &source.text;
    let lines = Lines::new(text);
    let table = DeTable::parse(text).map_err(|error| {
        let fault = Fault::new(format!("not TOML: {}", error.message().trim_end()));
        let fault = fault.remedy("a scenario has lines `key = value` under [[link]] and [[flow]]");
        let fault = fault.at(&error.span().map_or(Place::File, |span| lines.place(span.start)));
        located(fault, slice::from_ref(source))
    })?;
    let root = Node { place: Place::Line { line: 1, column: 1 }, value: convert_table(table.get_ref(), &lines) };
    refuse_controls(&root).map_err(|fault| located(fault, slice::from_ref(source)))?;
    Ok(root)
}

/// The limit of values in all expanded elements, each of about a hundred bytes.
const VALUES_MAX: usize = 2_000_000;

/// The number of values in a node, itself included. A long text counts as several.
fn values(node: &Node) -> usize {
    1 + match &node.value {
        Value::String(text) => text.len() / 100,
        Value::Array(elements) => elements.iter().map(values).sum(),
        Value::Table(entries) => entries.iter().map(|(_, node)| values(node)).sum(),
        _ => 0,
    }
}

/// Puts `value` at `path`, creating missing tables.
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

/// The limit of nesting; paths are walked on the stack.
const DEPTH_MAX: usize = 16;

/// A TOML value, or the text itself: `rate=2Mbit/s` needs no quotes, which a shell would remove.
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
    // The parser sorts keys by name; people expect the order of the file.
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
            // Too large for TOML's integers; the float is out of every range.
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

/// Refuses control characters in names and texts, which a terminal would interpret: `"\u001b[2J"` clears the screen. Checking here
/// spares every output.
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

/// The lines of the comment at the head of `text`, without their signs; an empty line separates paragraphs.
fn first_comment(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map_while(|line| line.trim().strip_prefix('#')).map(str::trim).collect();
    let paragraphs = lines.split(|line| line.is_empty()).filter(|lines| !lines.is_empty());
    paragraphs.map(|lines| lines.join(" ")).collect::<Vec<_>>().join("\n\n")
}

/// The starts of lines, to convert an offset to line and column.
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
