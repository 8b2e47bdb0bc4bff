//! Refuses documentation of a public item in two words or fewer, which adds nothing to its name.
//!
//! A public item begins with `pub`, or is part of a public enum or trait. Tests are excluded. The lint `missing_docs` finds items without any
//! documentation.

use std::fs;
use std::path::Path;

/// Adds a problem for each public item below `source` whose documentation begins with a paragraph of two words or fewer.
pub(super) fn check(source: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    let fail = |error| format!("{}: {error}", source.display());
    let mut paths = vec![];
    for entry in fs::read_dir(source).map_err(fail)? {
        paths.push(entry.map_err(fail)?.path());
    }
    paths.sort();
    for path in paths {
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        if stem.is_none_or(|stem| matches!(stem, "tests" | "testing" | "vectors")) {
            continue;
        }
        if path.is_dir() {
            check(&path, problems)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            problems.extend(short(&text).into_iter().map(|(line, doc)| {
                format!("{}:{line}: `{doc}` is no documentation; say what the item is, with its unit", path.display())
            }));
        }
    }
    Ok(())
}

/// The public items of a file whose documentation is too short: line numbers and first paragraphs.
fn short(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = vec![];
    // The last line of the present public enum or trait.
    let mut end: Option<String> = None;
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        if line.starts_with("mod tests") && at > 0 && lines[at - 1].starts_with("#[cfg(test)]") {
            break;
        }
        if end.as_deref() == Some(*line) {
            end = None;
        }
        let code = line.trim_start();
        if !code.starts_with("///") {
            if (code.starts_with("pub enum ") || code.starts_with("pub trait ")) && code.ends_with('{') {
                end = Some(format!("{}}}", &line[..line.len() - code.len()]));
            }
            at += 1;
            continue;
        }
        let begin = at;
        let docs = lines[begin..].iter().map_while(|line| line.trim_start().strip_prefix("///"));
        let count = docs.clone().count();
        let doc = docs.map(str::trim).take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        at += count;
        let item = item(&lines[at..]);
        let words = doc.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
        if words <= WORDS_TOO_FEW && (item.starts_with("pub ") || end.is_some()) {
            found.push((begin + 1, doc));
        }
    }
    found
}

/// The first line that is no attribute.
fn item<'a>(lines: &[&'a str]) -> &'a str {
    let mut open = 0_i64;
    for line in lines {
        let code = line.trim_start();
        if open == 0 && !code.starts_with("#[") {
            return code;
        }
        let count = |bracket| code.matches(bracket).count() as i64;
        open += count('[') - count(']');
    }
    ""
}

/// Docs such as "Its name." or "The segment." are too short.
const WORDS_TOO_FEW: usize = 2;

#[cfg(test)]
mod tests {
    use super::short;

    fn lines(text: &str) -> Vec<usize> {
        short(text).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn two_words_are_too_few_for_a_public_item() {
        assert_eq!(lines("/// Its name.\npub fn name() {}\n/// Bytes of the name.\npub fn len() {}\n"), [1]);
        assert_eq!(lines("/// Its name.\n///\n/// # Panics\n/// Never at all.\n#[must_use]\npub fn name() {}\n"), [1]);
        assert!(lines("/// Its\n/// own name.\npub fn name() {}\n").is_empty());
    }

    #[test]
    fn parts_of_a_public_enum_or_trait_are_public() {
        let text = "/// The kinds that exist.\npub enum Kind {\n    /// One.\n    One {\n        /// Its size.\n        size: u8,\n    },\n}\n";
        assert_eq!(lines(text), [3, 5]);
        assert_eq!(lines("/// A thing with sides.\npub trait Side {\n    /// Nothing.\n    fn none();\n}\n"), [3]);
    }

    #[test]
    fn private_items_and_tests_may_be_short() {
        assert!(lines("/// Its name.\nfn name() {}\n/// Its name.\npub(crate) fn other() {}\n").is_empty());
        let text =
            "enum Kind {\n    /// One.\n    One,\n}\n#[cfg(test)]\nmod tests {\n    /// It.\n    pub fn it() {}\n}\n";
        assert!(lines(text).is_empty());
    }
}
