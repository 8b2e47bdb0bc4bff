//! Holds docs/rfc-9293.md to the tests: each requirement stands there once, each test that is named exists, and a *yes* names one.

use std::collections::BTreeSet;
use std::fs;

use super::sources;
use crate::run;

const PAGE: &str = "docs/rfc-9293.md";

/// The kinds of requirements and how many [rfc-9293] has of each, in appendix B.
const KINDS: [(&str, usize); 2] = [("MUST", 69), ("SHLD", 31)];

/// What may be said of a requirement.
const VERDICTS: [&str; 4] = ["yes", "partly", "no", "not applicable"];

/// The crates whose tests are named.
const CRATES: [&str; 2] = ["proto", "tcp"];

pub(super) fn check(problems: &mut Vec<String>) -> Result<(), String> {
    let root = run::root();
    let page = fs::read_to_string(root.join(PAGE)).map_err(|error| format!("{PAGE}: {error}"))?;
    let mut tests = BTreeSet::new();
    for name in CRATES {
        for part in ["src", "tests"] {
            sources::each(&root.join("crates").join(name).join(part), &mut |_, text| {
                tests.extend(names(text).map(|test| format!("{name}::{test}")));
            })?;
        }
    }
    problems.extend(judge(&page, &tests));
    Ok(())
}

/// The tests of a file: functions after the attribute, and the scripts of a list of scripts.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    text.lines().filter_map(move |line| {
        let line = line.trim();
        if line == "#[test]" {
            is_test = true;
        } else if let Some((name, file)) = line.split_once(": \"")
            && file.ends_with(".pkt\",")
        {
            return Some(name);
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            let name = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
            return name.filter(|_| std::mem::take(&mut is_test)).and_then(|name| name.split('(').next());
        }
        None
    })
}

/// What is wrong with the page.
fn judge(page: &str, tests: &BTreeSet<String>) -> Vec<String> {
    let mut problems = vec![];
    for (kind, count) in KINDS {
        let mut expected = 1;
        for line in page.lines().filter(|line| line.starts_with(&format!("| {kind}-"))) {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let [_, number, _, verdict, remark, named, _] = cells[..] else {
                problems.push(format!("{PAGE}: `{line}` has not five cells"));
                continue;
            };
            if number != format!("{kind}-{expected}") {
                problems.push(format!("{PAGE}: {number} stands where {kind}-{expected} is missing"));
            }
            expected += 1;
            let named: Vec<&str> = named.split(", ").filter(|name| !name.is_empty()).collect();
            for name in &named {
                let name = name.trim_matches('`');
                if !tests.contains(name) {
                    problems.push(format!("{PAGE}: {number} names {name}, which is no test"));
                }
            }
            if !VERDICTS.contains(&verdict) {
                problems.push(format!("{PAGE}: {number} is `{verdict}`; say {}", VERDICTS.join(", ")));
            } else if verdict == "yes" && named.is_empty() {
                problems.push(format!("{PAGE}: {number} is held by no test"));
            } else if verdict != "yes" && remark.is_empty() {
                problems.push(format!("{PAGE}: {number} is not held; say what is different"));
            }
        }
        if expected != count + 1 {
            problems.push(format!("{PAGE}: it has {} of the {count} requirements {kind}", expected - 1));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_found_by_attribute_and_in_lists_of_scripts() {
        let text = "#[test]\n#[ignore = \"\"]\nfn one() {\nfn helper() {\n    #[test]\n    /// Of what.\n    async fn two(\n    three: \"x.pkt\",\n";
        assert_eq!(names(text).collect::<Vec<_>>(), ["one", "two", "three"]);
    }

    #[test]
    fn page_without_test_remark_or_requirement_is_refused() {
        let tests = BTreeSet::from(["tcp::a".to_owned()]);
        let row = |kind: &str, number: usize| format!("| {kind}-{number} | what | yes | | `tcp::a` |\n");
        let page: String = KINDS.iter().flat_map(|&(kind, count)| (1..=count).map(move |at| row(kind, at))).collect();
        assert_eq!(judge(&page, &tests), [""; 0]);
        for (change, expected) in [
            ("", "it has 68 of the 69"),
            ("| MUST-9 | what | yes | | `tcp::a` |\n", "stands where MUST-7"),
            ("| MUST-7 | what | yes | | `tcp::b` |\n", "which is no test"),
            ("| MUST-7 | what | yes | | |\n", "held by no test"),
            ("| MUST-7 | what | perhaps | | |\n", "say yes"),
            ("| MUST-7 | what | no | | |\n", "say what is different"),
        ] {
            let problems = judge(&page.replacen(&row("MUST", 7), change, 1), &tests);
            assert!(problems.iter().any(|problem| problem.contains(expected)), "{change}: {problems:?}");
        }
    }
}
