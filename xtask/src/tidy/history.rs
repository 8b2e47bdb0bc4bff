//! Refuses new commits that tell a reader nothing: merges, works in progress, repairs to be squashed, subjects without `area: verb object`.

use std::process::Command;

use crate::run;

/// The newest commits, as many as a change has at most. What is older is published, and stays as it is.
const NEW: &str = "-40";

/// Adds a problem for each such commit. A copy of the sources without its history has none.
pub(super) fn check(problems: &mut Vec<String>) {
    let log = Command::new("git").args(["log", NEW, "--format=%h\t%p\t%s"]).current_dir(run::root()).output();
    let log = log.ok().filter(|output| output.status.success()).map(|output| output.stdout).unwrap_or_default();
    problems.extend(String::from_utf8_lossy(&log).lines().filter_map(problem));
}

/// What is wrong with a commit: its hash, its parents and its subject, between tabs.
fn problem(line: &str) -> Option<String> {
    let mut parts = line.splitn(3, '\t');
    let (hash, parents, subject) = (parts.next()?, parts.next()?, parts.next()?);
    let said = |what: &str| Some(format!("commit {hash} `{subject}` {what}"));
    if parents.contains(' ') {
        return said("is a merge; rebase instead");
    }
    let Some((area, deed)) = subject.split_once(": ") else {
        return said("has no area; write `area: verb object`");
    };
    let is_lower = |text: &str| text.starts_with(|first: char| first.is_lowercase() || first.is_numeric());
    if area.contains('!') || area == "wip" || deed.starts_with("wip") || !is_lower(area) || !is_lower(deed) {
        return said("is unfinished, or no `area: verb object`; squash or reword it");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commit_that_tells_nothing_is_refused() {
        for subject in ["wip: more", "fixup! cc: find rivals", "cc: wip", "Find rivals", "Keep: a thing", "cc: Find"] {
            assert!(problem(&format!("a1\tb2\t{subject}")).is_some(), "{subject}");
        }
        assert!(problem("a1\tb2 c3\tcc: find rivals").is_some(), "a merge");
        assert_eq!(problem("a1\tb2\tsim, lab: describe queues: all of them"), None);
        assert_eq!(problem("a1\t\tcc: find rivals"), None, "the first commit");
    }
}
