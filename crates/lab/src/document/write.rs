//! Writes a document as one text that extends nothing: as it is after its bases, lists and overrides.

use super::{Document, Key, Node, Value};

impl Document {
    /// The keys and values as TOML, without some keys of the root; what was written by `extends`, `each` or `count` is written out.
    pub(crate) fn written(&self, without: &[&str]) -> String {
        let Value::Table(entries) = &self.root.value else { return String::new() };
        let kept = || entries.iter().filter(|(key, _)| !without.contains(&key.name.as_str()));
        let (mut lines, mut tables) = (String::new(), String::new());
        // In TOML the keys of the root come before the first table.
        for (key, node) in kept() {
            match &node.value {
                Value::Table(entries) => tables += &table(&format!("[{}]", name(key)), entries),
                Value::Array(elements) if !elements.is_empty() && elements.iter().all(is_table) => {
                    for element in elements {
                        let Value::Table(entries) = &element.value else { continue };
                        tables += &table(&format!("[[{}]]", name(key)), entries);
                    }
                }
                _ => lines += &line(key, node),
            }
        }
        lines + &tables
    }
}

fn is_table(node: &Node) -> bool {
    matches!(node.value, Value::Table(_))
}

fn table(head: &str, entries: &[(Key, Node)]) -> String {
    let lines: String = entries.iter().map(|(key, node)| line(key, node)).collect();
    format!("\n{head}\n{lines}")
}

fn line(key: &Key, node: &Node) -> String {
    format!("{} = {}\n", name(key), inline(node))
}

fn name(key: &Key) -> String {
    let is_bare = |sign: char| sign.is_ascii_alphanumeric() || sign == '_' || sign == '-';
    match !key.name.is_empty() && key.name.chars().all(is_bare) {
        true => key.name.clone(),
        false => quoted(&key.name),
    }
}

/// A value on one line.
fn inline(node: &Node) -> String {
    match &node.value {
        Value::String(text) => quoted(text),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) if number.is_nan() => "nan".to_owned(),
        Value::Float(number) => format!("{number:?}"),
        Value::Boolean(truth) => truth.to_string(),
        Value::Array(elements) => format!("[{}]", elements.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Value::Table(entries) => {
            let entries = entries.iter().map(|(key, node)| format!("{} = {}", name(key), inline(node)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for sign in text.chars() {
        match sign {
            '"' | '\\' => quoted.extend(['\\', sign]),
            sign if sign.is_control() => quoted += &format!("\\u{:04X}", sign as u32),
            sign => quoted.push(sign),
        }
    }
    quoted + "\""
}
