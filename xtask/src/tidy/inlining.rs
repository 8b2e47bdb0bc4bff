//! Refuses `#[inline]` and `#[cold]` without a figure: they stand only where the instruction counts show more than one per cent, and the comment above
//! says how much.

use std::fs;
use std::path::Path;

/// The files whose attributes are not measured yet.
const UNMEASURED: &str = "law/fast";

/// Adds a problem for each attribute in the sources of a crate that has no comment with a percentage above it.
pub(super) fn check(folder: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    let fail = |error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.is_dir() {
            check(&path, problems)?;
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.to_string_lossy().contains(UNMEASURED)
        {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            problems.extend(unmeasured(&text).map(|line| {
                format!(
                    "{}:{line}: say above it how many per cent of the instructions it saves (`cargo xtask counts`); below 1 % leave it out",
                    path.display()
                )
            }));
        }
    }
    Ok(())
}

/// The lines, from 1, of attributes without a figure.
fn unmeasured(text: &str) -> impl Iterator<Item = usize> {
    let is_attribute = |line: &str| line == "#[cold]" || line == "#[inline]" || line.starts_with("#[inline(");
    let mut above = "";
    text.lines().enumerate().filter_map(move |(index, line)| {
        let line = line.trim();
        let is_measured = above.starts_with("// ") && above.contains(" %");
        if is_attribute(line) {
            // A second attribute has the comment of the first.
            return (!is_measured).then_some(index + 1);
        }
        above = line;
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribute_without_figure_is_found() {
        let text = "// Inlined, it takes 4 % fewer instructions.\n#[inline(always)]\nfn a() {}\n\n/// A tenth: 10 %.\n#[inline]\nfn b() {}\n\n    \
                    // Often called.\n    #[cold]\n    fn c() {}\n\n    // Apart: 2 %.\n    #[cold]\n    #[inline(never)]\n    fn d() {}\n";
        assert_eq!(unmeasured(text).collect::<Vec<_>>(), [6, 10]);
    }
}
