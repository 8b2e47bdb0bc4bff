//! A file that extends another: `extends = "../common/chain.toml"`, relative to its own folder. The file's keys override those of its
//! base; a key that the file does not have is the base's. A base may extend another base.
//!
//! Tables merge key by key, but a table with another `kind` or `name` replaces the base's table. Links, flows and hosts merge by
//! their `id`, and new ones follow after the base's. Every other list, also of claims and of tables of numbers, replaces the
//! base's: claims belong to one simulation.
//!
//! This module reads no file: the caller passes a function that returns a base's text, and decides which files may be read.

use std::collections::BTreeMap;
use std::slice;
use std::sync::Arc;

use super::{Key, Node, Source, Value, parse_text};
use crate::diagnostic::{Diagnostic, Fault, Place};

/// Returns the text of a base by its name, or the reason why it cannot be read. The name is a path relative to the same folder as the
/// name of the extending file.
pub type Bases<'a> = dyn FnMut(&str) -> Result<String, String> + 'a;

/// The key that names the base.
pub(super) const EXTENDS: &str = "extends";

/// The limit of nested bases. More of them are a mistake, as with two symbolic links that give one file many names.
const DEPTH_MAX: usize = 8;

/// What names of controllers' files end in.
pub(crate) const MODULE: &str = ".wasm";

/// The lists whose elements merge.
const MERGED: [&str; 3] = ["link", "flow", "host"];

/// A table in which one of these keys differs is not merged: the keys of a queue of another kind have no meaning in it.
const CHOICES: [&str; 2] = ["kind", "name"];

/// Reads `text` with all its bases. The second value lists what was read: the file, then its bases, the nearest first.
pub(super) fn read(file: &str, text: &str, bases: &mut Bases<'_>) -> Result<(Node, Vec<Source>), Diagnostic> {
    let mut chain: Vec<Source> = vec![Source { file: file.into(), text: text.into() }];
    let mut above: Vec<Node> = Vec::new();
    loop {
        let last = &chain[chain.len() - 1];
        let mut node = parse_text(last)?;
        let extends = take(&mut node);
        if chain.len() > 1 {
            relocate(&mut node, &last.file);
        }
        above.push(node);
        let Some(extends) = extends else { break };
        let next = next(&chain, &extends, bases)
            .map_err(|fault| super::located(fault.at(&extends.place), slice::from_ref(last)))?;
        chain.push(next);
    }
    let merged = above.into_iter().rev().reduce(merge_root).expect("a file is above its bases");
    Ok((merged, chain))
}

/// Removes the key from a file's root.
fn take(root: &mut Node) -> Option<Node> {
    let Value::Table(entries) = &mut root.value else { return None };
    let position = entries.iter().position(|(key, _)| key.name == EXTENDS)?;
    Some(entries.remove(position).1)
}

fn next(chain: &[Source], extends: &Node, bases: &mut Bases<'_>) -> Result<Source, Fault> {
    let Value::String(name) = &extends.value else {
        return Err(Fault::new(format!("`{EXTENDS}` is not a string")).remedy("name one file, relative to this one"));
    };
    let last = &chain[chain.len() - 1].file;
    if !name.ends_with(".toml") {
        return Err(not_a_path(name, "a TOML file", "../common/chain.toml"));
    }
    let base = resolve(last, name)?;
    if chain.iter().any(|source| *source.file == *base) {
        let names: Vec<&str> = chain.iter().map(|source| &*source.file).chain([base.as_str()]).collect();
        let fault = Fault::new(format!("a file extends itself: {}", names.join(" extends ")));
        return Err(fault.remedy("let one of them extend nothing"));
    }
    if chain.len() > DEPTH_MAX {
        let fault = Fault::new(format!("more than {DEPTH_MAX} files extend each other"));
        return Err(fault.remedy("put what they share into fewer"));
    }
    let text = bases(&base).map_err(|reason| {
        Fault::new(format!("`{base}` cannot be read: {reason}")).remedy("name a scenario file, relative to this one")
    })?;
    Ok(Source { file: base.into(), text: text.into() })
}

fn not_a_path(name: &str, what: &str, example: &str) -> Fault {
    let fault = Fault::new(format!("`{name}` is not a relative path of {what}"));
    fault.remedy(format!("write it with `/`, relative to this file: \"{example}\""))
}

/// The path of the file that `file` calls `name`. Both paths are relative to the same folder; `..` is resolved where possible.
///
/// # Errors
/// If `name` is not a relative path with `/` between its parts: it must mean the same on every machine.
pub(super) fn resolve(file: &str, name: &str) -> Result<String, Fault> {
    let is_plain = |part: &str| !matches!(part, "" | ".") && !part.contains(['\\', ':']);
    if !name.split('/').all(is_plain) {
        let (what, example) = match name.ends_with(".toml") {
            true => ("a TOML file", "../common/chain.toml"),
            false if name.ends_with(MODULE) => ("a controller", "../common/mine.wasm"),
            false => ("a trace", "../common/cell.trace"),
        };
        return Err(not_a_path(name, what, example));
    }
    let mut parts: Vec<&str> = file.split(['/', '\\']).collect();
    parts.pop();
    for part in name.split('/') {
        match (part, parts.last()) {
            ("..", Some(&above)) if !matches!(above, "" | "." | "..") && !above.ends_with(':') => _ = parts.pop(),
            _ => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// Sets the place of every value in a base to the base's file.
fn relocate(node: &mut Node, file: &Arc<str>) {
    let there = |place: &mut Place| {
        if let Place::Line { line, column } = *place {
            *place = Place::Base { file: Arc::clone(file), line, column };
        }
    };
    there(&mut node.place);
    match &mut node.value {
        Value::Array(elements) => elements.iter_mut().for_each(|node| relocate(node, file)),
        Value::Table(entries) => entries.iter_mut().for_each(|(key, node)| {
            there(&mut key.place);
            relocate(node, file);
        }),
        _ => {}
    }
}

/// The tree of a file with the keys `own` that extends `base`.
fn merge_root(base: Node, own: Node) -> Node {
    let by_key = |key: &str, base: Node, own: Node| match (base.value, own.value) {
        (Value::Array(base), Value::Array(elements)) if MERGED.contains(&key) => {
            Node { place: own.place, value: Value::Array(merge_elements(base, elements)) }
        }
        (below, value) => merge(Node { place: base.place, value: below }, Node { place: own.place, value }),
    };
    match (base.value, own.value) {
        (Value::Table(base), Value::Table(entries)) => {
            Node { place: own.place, value: Value::Table(merge_tables(base, entries, by_key)) }
        }
        _ => unreachable!("a TOML file is a table"),
    }
}

/// The same for a value below the root.
fn merge(base: Node, own: Node) -> Node {
    let value = match (base.value, own.value) {
        (Value::Table(base), Value::Table(entries)) if !is_other(&base, &entries) => {
            Value::Table(merge_tables(base, entries, |_, base, own| merge(base, own)))
        }
        (_, value) => value,
    };
    Node { place: own.place, value }
}

fn merge_tables(
    base: Vec<(Key, Node)>,
    own: Vec<(Key, Node)>,
    merge: impl Fn(&str, Node, Node) -> Node,
) -> Vec<(Key, Node)> {
    let mut own: Vec<Option<(Key, Node)>> = own.into_iter().map(Some).collect();
    let positions: BTreeMap<String, usize> =
        own.iter().flatten().enumerate().map(|(position, (key, _))| (key.name.clone(), position)).collect();
    let mut merged = Vec::with_capacity(base.len() + own.len());
    for (key, below) in base {
        let said = positions.get(&key.name).and_then(|&position| own[position].take());
        merged.push(match said {
            Some((key, node)) => {
                let node = merge(&key.name, below, node);
                (key, node)
            }
            None => (key, below),
        });
    }
    merged.extend(own.into_iter().flatten());
    merged
}

fn merge_elements(mut base: Vec<Node>, own: Vec<Node>) -> Vec<Node> {
    let mut ids: BTreeMap<String, usize> =
        base.iter().enumerate().filter_map(|(position, node)| Some((node.id()?.to_owned(), position))).collect();
    for element in own {
        // A second element with this id in the file is a mistake, and is found later.
        match element.id().and_then(|id| ids.remove(id)) {
            None => base.push(element),
            Some(position) => base[position] = merge(base[position].clone(), element),
        }
    }
    base
}

/// Whether two tables differ in a key of [`CHOICES`].
fn is_other(base: &[(Key, Node)], own: &[(Key, Node)]) -> bool {
    fn said<'a>(entries: &'a [(Key, Node)], choice: &str) -> Option<&'a str> {
        match &entries.iter().find(|(key, _)| key.name == choice)?.1.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }
    CHOICES.iter().any(|choice| said(base, choice).zip(said(own, choice)).is_some_and(|(base, own)| base != own))
}

#[cfg(test)]
mod tests;
