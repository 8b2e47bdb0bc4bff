//! Features: `cargo xtask` and `cargo test --workspace` must ask the same of a package, or it is compiled twice, with all that uses it.

use std::collections::BTreeSet;
use std::process::Command;

use crate::run;

/// Checks that xtask alone has each package with the features that the whole workspace has of it.
pub(super) fn check(problems: &mut Vec<String>) -> Result<(), String> {
    let workspace = packages(&["--workspace", "--edges", "normal,build,dev"])?;
    let own = packages(&["--package", "xtask", "--edges", "normal,build"])?;
    problems.extend(twice(&workspace, &own));
    Ok(())
}

/// A problem for each package of `own` that `workspace` does not have with the same features.
fn twice(workspace: &BTreeSet<String>, own: &BTreeSet<String>) -> Vec<String> {
    let other = |line: &str| {
        let package = line.split('[').next().unwrap_or(line);
        workspace.iter().filter(|line| line.starts_with(package)).cloned().collect::<Vec<_>>().join(" or ")
    };
    let problem = |line: &String| {
        let other = other(line);
        format!("{line} of `cargo xtask` is {other} in the workspace: name the features in xtask/Cargo.toml")
    };
    own.difference(workspace).map(problem).collect()
}

/// The packages that some packages of the workspace need, with their features: `bytes v1.12.1 [default,std]`.
fn packages(selection: &[&str]) -> Result<BTreeSet<String>, String> {
    let format = ["tree", "--locked", "--prefix", "none", "--format", "{p} [{f}]"];
    let output = Command::new("cargo")
        .args(format)
        .args(selection)
        .current_dir(run::root())
        .output()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo tree failed:\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    // A package that stands there again has a mark.
    Ok(text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).filter(|line| !line.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_with_other_features_is_found() {
        let set = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<BTreeSet<String>>();
        let workspace = set(&["bytes v1.12.1 [default,std]", "bytesize v2.0.0 []", "libm v0.2.16 []"]);
        assert_eq!(twice(&workspace, &set(&["bytes v1.12.1 [default,std]", "libm v0.2.16 []"])), Vec::<String>::new());
        let problems = twice(&workspace, &set(&["bytes v1.12.1 []", "libm v0.2.16 []"]));
        let expected = "bytes v1.12.1 [] of `cargo xtask` is bytes v1.12.1 [default,std] in the workspace: name the features in \
                        xtask/Cargo.toml";
        assert_eq!(problems, [expected]);
    }
}
