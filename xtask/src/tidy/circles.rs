//! Refuses dependency cycles among the modules of a crate. Two modules that need each other are one module, or share a third.
//!
//! A module is a file. A part may name the modules that contain it: these edges do not count, but edges from a module to its parts do. Names are
//! taken from paths that begin with `crate`, `super`, `self` or the name of a part, outside of comments and tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The names that a module, such as `recovery::rack`, uses.
type Edges = BTreeMap<String, BTreeSet<String>>;

/// Adds a problem for each circle among the modules below `source`.
pub(super) fn check(source: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    let mut texts = BTreeMap::new();
    read(source, "", &mut texts)?;
    for circle in circles(&edges(&texts)) {
        problems.push(format!(
            "{}: these modules name each other in a circle: {}",
            source.display(),
            circle.join(", ")
        ));
    }
    Ok(())
}

/// The code of each file below a folder, by module name.
fn read(folder: &Path, prefix: &str, texts: &mut BTreeMap<String, String>) -> Result<(), String> {
    let fail = |error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
        if matches!(stem, "lib" | "tests" | "testing" | "vectors") {
            continue;
        }
        let name = format!("{prefix}{stem}");
        if path.is_dir() {
            read(&path, &format!("{name}::"), texts)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            texts.insert(name, code(&text));
        }
    }
    Ok(())
}

/// A file without its comments and its tests, which are at the end.
fn code(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let mut kept: Vec<&str> = vec![];
    for line in lines {
        if line.starts_with("mod tests") && kept.last().is_some_and(|last| last.starts_with("#[cfg(test)]")) {
            break;
        }
        kept.push(line);
    }
    kept.join("\n")
}

fn edges(texts: &BTreeMap<String, String>) -> Edges {
    let edges_of = |(name, text): (&String, &String)| {
        let parent = name.rsplit_once("::").map_or("", |(parent, _)| parent);
        let named = paths(text, "crate::").into_iter().chain(
            paths(text, "super::")
                .into_iter()
                .map(|path| if parent.is_empty() { path } else { format!("{parent}::{path}") }),
        );
        let parts = texts.keys().filter(|part| part.rsplit_once("::").is_some_and(|(parent, _)| parent == name));
        let parts = parts.flat_map(|part| {
            let own = &part[name.len() + 2..];
            paths(text, &format!("{own}::")).into_iter().map(move |path| format!("{part}::{path}"))
        });
        let parts = parts.chain(paths(text, "self::").into_iter().map(|path| format!("{name}::{path}")));
        let others = named.chain(parts).filter_map(|path| module(&path, texts));
        let others = others.filter(|other| !contains(other, name)).collect();
        (name.clone(), others)
    };
    texts.iter().map(edges_of).collect()
}

/// The paths after a word, one for each name in braces.
fn paths(text: &str, word: &str) -> Vec<String> {
    let mut found = vec![];
    for (at, _) in text.match_indices(word) {
        // A part of a longer path or name, such as `super::super::`.
        if text[..at].ends_with("::") || text[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_')
        {
            continue;
        }
        let rest = &text[at + word.len()..];
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
        let path = &rest[..rest.find(|letter| !is_part(letter)).unwrap_or(rest.len())];
        match rest[path.len()..].strip_prefix('{') {
            Some(list) => {
                let list = &list[..list.find('}').unwrap_or(list.len())];
                found.extend(list.split(',').map(|name| format!("{path}{}", name.trim())));
            }
            None => found.push(path.to_owned()),
        }
    }
    found
}

/// The module that a path leads into.
fn module(path: &str, texts: &BTreeMap<String, String>) -> Option<String> {
    let mut path = path;
    loop {
        if texts.contains_key(path) {
            return Some(path.to_owned());
        }
        path = path.rsplit_once("::")?.0;
    }
}

fn contains(outer: &str, inner: &str) -> bool {
    inner == outer || inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with("::"))
}

/// The groups of modules that reach each other.
fn circles(edges: &Edges) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        edges.keys().map(|name| (name, reachable(name, edges))).collect();
    let mut groups = BTreeSet::new();
    for (name, others) in &reached {
        let group: Vec<String> =
            others.iter().filter(|other| reached[*other].contains(name)).map(|other| (*other).clone()).collect();
        if group.len() > 1 {
            groups.insert(group);
        }
    }
    groups.into_iter().collect()
}

fn reachable<'a>(name: &String, edges: &'a Edges) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&String> = edges[name].iter().collect();
    while let Some(next) = open.pop() {
        if found.insert(next) {
            open.extend(&edges[next]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let texts = files.iter().map(|(name, text)| ((*name).to_owned(), code(text))).collect();
        circles(&edges(&texts))
    }

    #[test]
    fn modules_that_name_each_other_are_a_circle() {
        let found = circles_of(&[
            ("a", "use crate::{b::B, c};"),
            ("b", "use crate::c::{D, E};"),
            ("c", "fn f() { super::a::g() }"),
        ]);
        assert_eq!(found, [["a", "b", "c"]]);
        assert!(circles_of(&[("a", "use crate::b::B;"), ("b", "use crate::c::C;"), ("c", "")]).is_empty());
    }

    /// A module names its part, and the part names another module, which names the first.
    #[test]
    fn parts_close_a_circle() {
        let found = circles_of(&[
            ("a", "mod b;\nuse self::b::B;"),
            ("a::b", "use super::A;\nuse crate::c::C;"),
            ("c", "use crate::a::A;"),
        ]);
        assert_eq!(found, [["a", "a::b", "c"]]);
        let by_name =
            circles_of(&[("a", "fn f() { b::g() }"), ("a::b", "use crate::c::C;"), ("c", "use crate::a::A;")]);
        assert_eq!(by_name, [["a", "a::b", "c"]]);
    }

    #[test]
    fn comments_tests_and_what_contains_the_other_do_not_count() {
        let found = circles_of(&[
            ("a", "use crate::b::B;"),
            ("b", "//! See [`crate::a`].\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}"),
            ("c", "use self::d::D;\nuse crate::c::d::E;"),
            ("c::d", "use super::C;\nuse crate::c::F;"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
