//! Refuses long files of core crates: a file that is too long for a reader should be two.

use std::path::Path;

use super::sources;

/// The crates with this limit, tests and examples included.
pub(super) const CORE: &[&str] =
    &["anabranch-cc", "anabranch-ns2", "anabranch-proto", "anabranch-sim", "anabranch-lab", "anabranch-units"];

/// The limit: about ten screens. A longer file has a second idea.
const LINES_MAX: usize = 600;

/// Adds a problem for each longer file below `folder`.
pub(super) fn check(folder: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    sources::each(folder, &mut |path, text| problems.extend(problem(path, text)))
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
