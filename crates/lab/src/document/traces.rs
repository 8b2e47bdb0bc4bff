//! `trace = "cell.trace"`: the delivery opportunities of a link, from a file as Mahimahi writes it, a line for each.
//!
//! They replace the name when the scenario is read, as bases are read: the caller decides which files may be read, and an artifact
//! contains the file.

use std::sync::Arc;

use super::extends::{Bases, resolve};
use super::{Node, Source, Value};
use crate::diagnostic::{Fault, Place};

/// The key of a link.
const TRACE: &str = "trace";

/// The endings of such files; `.up` and `.down` are Mahimahi's own.
const ENDINGS: [&str; 3] = [".trace", ".up", ".down"];

/// Whether a file is a trace, by its name.
pub(crate) fn is_trace(name: &str) -> bool {
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Replaces the names of traces by their contents, and adds their files to `sources`, whose first is the scenario. `left` is the number
/// of values that may still be made.
pub(super) fn write_out(
    root: &mut Node,
    sources: &mut Vec<Source>,
    bases: &mut Bases<'_>,
    left: &mut usize,
) -> Result<(), Fault> {
    let Value::Table(entries) = &mut root.value else { return Ok(()) };
    let mut reading = Reading { own: Arc::clone(&sources[0].file), sources, bases, left };
    let tables = entries.iter_mut().filter(|(key, _)| ["link", "topology"].contains(&key.name.as_str()));
    tables.map(|(_, node)| node).try_for_each(|node| reading.look(node))
}

struct Reading<'a, 'b> {
    own: Arc<str>,
    sources: &'a mut Vec<Source>,
    bases: &'a mut Bases<'b>,
    left: &'a mut usize,
}

impl Reading<'_, '_> {
    fn look(&mut self, node: &mut Node) -> Result<(), Fault> {
        match &mut node.value {
            Value::Array(elements) => elements.iter_mut().try_for_each(|node| self.look(node)),
            Value::Table(entries) => entries.iter_mut().try_for_each(|(key, node)| match &node.value {
                Value::String(name) if key.name == TRACE => {
                    let millis = self.read(name, &node.place).map_err(|fault| fault.at(&node.place))?;
                    let place = node.place.clone();
                    let one = |millis| Node { place: place.clone(), value: Value::Integer(millis) };
                    node.value = Value::Array(millis.into_iter().map(one).collect());
                    Ok(())
                }
                _ => self.look(node),
            }),
            _ => Ok(()),
        }
    }

    fn read(&mut self, name: &str, place: &Place) -> Result<Vec<i64>, Fault> {
        let beside = match place {
            Place::Base { file, .. } => file,
            _ => &self.own,
        };
        if !is_trace(name) {
            let fault = Fault::new(format!("`{name}` is not the name of a trace"));
            return Err(fault.remedy(format!("let it end in one of {}", ENDINGS.join(", "))));
        }
        let file = resolve(beside, name)?;
        let text = match self.sources.iter().find(|source| *source.file == *file) {
            Some(source) => Arc::clone(&source.text),
            None => {
                let text: Arc<str> = (self.bases)(&file)
                    .map_err(|reason| {
                        let fault = Fault::new(format!("the trace `{file}` cannot be read: {reason}"));
                        fault.remedy("name a file relative to this one")
                    })?
                    .into();
                self.sources.push(Source { file: file.as_str().into(), text: Arc::clone(&text) });
                text
            }
        };
        let millis = parse(&file, &text)?;
        match self.left.checked_sub(millis.len()) {
            Some(rest) => *self.left = rest,
            None => {
                let fault = Fault::new(format!("the traces of this scenario have too many lines, {file} among them"));
                return Err(fault.remedy("cut it: it begins anew after its last line"));
            }
        }
        Ok(millis)
    }
}

fn parse(file: &str, text: &str) -> Result<Vec<i64>, Fault> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let number = |(number, line): (usize, &str)| {
        line.trim().parse::<u32>().map(i64::from).map_err(|_| {
            let fault = Fault::new(format!("line {number} of the trace {file} is `{}`", line.trim()));
            fault.remedy("a line is a whole number of milliseconds, as Mahimahi writes them")
        })
    };
    lines.map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Document;
    use crate::scenario::Scenario;

    const FLOW: &str = "[[flow]]\nid = \"f\"\nfrom = \"s\"\nto = \"d\"\ntransport = \"anabranch\"\n";

    /// The rates of the links of `net/own.toml`, which extends `net/base/net.toml`, in bits per second.
    fn rates(own: &str) -> Result<Vec<u64>, String> {
        let mut bases = |name: &str| match name {
            "net/base/net.toml" => Ok(format!(
                "duration = \"1s\"\n{FLOW}[[link]]\nid = \"l\"\nfrom = \"s\"\nto = \"d\"\ndelay = \"1ms\"\ntrace = \"a.up\"\n"
            )),
            // 3 · 1504 B in 8 ms, and 1 in 4.
            "net/base/a.up" => Ok("3\n3\n8\n\n".to_owned()),
            "net/b.trace" => Ok("4".to_owned()),
            "net/bad.down" => Ok("3\nfour\n".to_owned()),
            _ => Err("there is none".to_owned()),
        };
        let text = format!("extends = \"base/net.toml\"\n{own}");
        let document = Document::parse_with("net/own.toml", &text, &mut bases).map_err(|error| error.to_string())?;
        let scenario = Scenario::parse(&document).map_err(|error| error.to_string())?;
        Ok(scenario.links.iter().map(|link| link.spec.rate.bits_per_second()).collect())
    }

    #[test]
    fn a_name_is_relative_to_the_file_that_says_it() {
        let (fast, slow) = (3 * 1504 * 1000, 2 * 1504 * 1000);
        assert_eq!(rates("seed = 2"), Ok(vec![fast, fast]));
        assert_eq!(rates("[[link]]\nid = \"l\"\ntrace = \"b.trace\""), Ok(vec![slow, slow]));
        assert_eq!(rates("[[link]]\nid = \"l\"\nreverse = { trace = \"b.trace\" }"), Ok(vec![fast, slow]));
    }

    #[test]
    fn a_trace_that_cannot_be_read_is_refused_at_its_name() {
        let refused = |name: &str| rates(&format!("[[link]]\nid = \"l\"\ntrace = \"{name}\"")).unwrap_err();
        for (name, message) in [
            ("bad.down", "line 2 of the trace net/bad.down is `four`"),
            ("none.up", "cannot be read: there is none"),
            ("b.toml", "let it end in one of .trace, .up, .down"),
            ("/etc/a.up", "not a relative path"),
        ] {
            let refused = refused(name);
            assert!(refused.starts_with("net/own.toml:4:9: ") && refused.contains(message), "{refused}");
        }
    }
}
