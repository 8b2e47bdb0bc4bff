//! Refuses long files of core crates: a file that is too long for a reader should be two.

use std::fs;
use std::path::Path;

/// The crates with this limit, tests and examples included.
pub(super) const CORE: &[&str] =
    &["anabranch-cc", "anabranch-ns2", "anabranch-proto", "anabranch-sim", "anabranch-lab", "anabranch-units"];

/// The limit: about ten screens. A longer file has a second idea.
const LINES_MAX: usize = 600;

/// Adds a problem for each longer file below `folder`.
pub(super) fn check(folder: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    let fail = |error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.is_dir() {
            check(&path, problems)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            problems.extend(problem(&path, &text));
        }
    }
    Ok(())
}

fn problem(path: &Path, text: &str) -> Option<String> {
    let lines = text.lines().count();
    let name = path.display();
    (lines > LINES_MAX).then(|| format!("{name}: {lines} lines, and {LINES_MAX} are the most: divide it by its ideas"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_600_lines_at_most() {
        let of = |lines| problem(Path::new("a.rs"), &"line\n".repeat(lines));
        assert_eq!(of(600), None);
        assert!(of(601).is_some_and(|problem| problem.contains("601 lines")));
    }
}
