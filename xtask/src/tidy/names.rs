//! Refuses names of tests that have no subject or are too long: a name tells subject, condition and result in the nouns of the code.

use std::path::Path;

use super::sources;

/// How a name without a subject begins.
const RIDDLES: [&str; 5] = ["what_", "who_", "nobody_", "nothing_", "whatever_"];

/// The limit of letters in a name: a longer one tells more than one thing.
const LETTERS_MAX: usize = 60;

/// Adds a problem if the sources and tests of a crate have such names, in Rust or Python.
pub(super) fn check(package: &str, folder: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    let mut found = vec![];
    for part in ["src", "tests"] {
        let folder = folder.join(part);
        if folder.is_dir() {
            sources::each_in(&["rs", "py"], &folder, &mut |path, text| {
                found.extend(riddles(text).map(|name| format!("{}: {name}", path.display())));
            })?;
        }
    }
    if !found.is_empty() {
        let message = "names have no subject or more than 60 letters; tell subject, condition and result";
        problems.push(format!("{package}: {} {message}:\n  {}", found.len(), found.join("\n  ")));
    }
    Ok(())
}

/// The names of functions in Rust, and of tests in Python without `test_`, that begin with such a word or are too long.
fn riddles(text: &str) -> impl Iterator<Item = &str> {
    let names = text.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("async ").unwrap_or(line);
        let name = line.strip_prefix("fn ").or_else(|| line.strip_prefix("def test_"))?;
        Some(name.split(['(', '<']).next().unwrap_or(name))
    });
    names.filter(|name| name.len() > LETTERS_MAX || RIDDLES.iter().any(|riddle| name.starts_with(riddle)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_without_subject_or_too_long_is_found() {
        let (fits, long) = ("a".repeat(60), "a".repeat(61));
        let text = format!(
            "#[test]\nfn what_fits_is_kept() {{}}\n    async fn nobody_is_there() {{}}\nfn whatever() {{}}\nfn {fits}() {{}}\nfn {long}() {{}}"
        );
        assert_eq!(riddles(&text).collect::<Vec<_>>(), ["what_fits_is_kept", "nobody_is_there", &long]);
    }

    #[test]
    fn name_of_python_test_without_subject_is_found() {
        let text = "def what_helps():\nasync def test_who_is_there():\ndef test_window_halves(file):";
        assert_eq!(riddles(text).collect::<Vec<_>>(), ["who_is_there"]);
    }
}
