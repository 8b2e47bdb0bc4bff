//! Refuses `#[inline]` and `#[cold]` without a figure: they stand only where the instruction counts show more than one per cent, and the comment above
//! says how much.

use std::path::Path;

use super::sources;

/// Adds a problem for each attribute in the sources of a crate that has no comment with a percentage above it.
pub(super) fn check(folder: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    sources::each(folder, &mut |path, text| {
        let path = path.display();
        problems.extend(unmeasured(text).map(|line| {
            format!("{path}:{line}: say above it how many per cent of the instructions it saves (`cargo xtask counts`); below 1 % leave it out")
        }));
    })
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
