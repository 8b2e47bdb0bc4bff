//! What crates.io and its readers ask of the crates that others may use: a description, keywords, a README, licences, and requirements of the same version.

use std::fs;
use std::path::Path;

use cargo_metadata::{DependencyKind, Package};

/// The crates that others may use, each after those that it needs. All others are kept from being published.
pub(crate) const PUBLISHED: [&str; 7] = [
    "anabranch-units",
    "anabranch-cc",
    "anabranch-ns2",
    "anabranch-proto",
    "anabranch-sim",
    "anabranch",
    "anabranch-quinn-cc",
];

/// crates.io takes five keywords of twenty characters, and five categories.
const KEYWORDS_MAX: usize = 5;
const KEYWORD_LEN_MAX: usize = 20;
/// A line of a list of search results.
const DESCRIPTION_LEN_MAX: usize = 120;

/// Adds a problem for each thing that is missing. `root` has the licences.
pub(super) fn check(packages: &[Package], root: &Path, problems: &mut Vec<String>) -> Result<(), String> {
    for package in packages {
        problems.extend(metadata(package, packages));
        if !PUBLISHED.contains(&package.name.as_str()) {
            continue;
        }
        let folder = package.manifest_path.parent().expect("a manifest stands in a folder").as_std_path();
        problems.extend(readme(package, &fs::read_to_string(folder.join("README.md")).unwrap_or_default()));
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let read = |path: &Path| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
            if fs::read(folder.join(licence)).ok() != Some(read(&root.join(licence))?) {
                problems.push(format!("{}: link {licence} to the one of the root", package.name));
            }
        }
    }
    for name in PUBLISHED {
        if !packages.iter().any(|package| package.name == name) {
            problems.push(format!("{name} is in the list of xtask/src/tidy/published.rs, but not in the workspace"));
        }
    }
    Ok(())
}

/// What is wrong with the manifest of a package among all of the workspace.
fn metadata(package: &Package, packages: &[Package]) -> Vec<String> {
    let name = &package.name;
    let mut problems = vec![];
    let mut problem = |text: &str| problems.push(format!("{name}: {text}"));
    if packages.iter().any(|other| other.version != package.version) {
        problem("all crates have one version, that of the workspace");
    }
    let is_kept = package.publish.as_ref().is_some_and(Vec::is_empty);
    if !PUBLISHED.contains(&name.as_str()) {
        if !is_kept {
            problem("write `publish.workspace = true`, or add it to the list of xtask/src/tidy/published.rs");
        }
        return problems;
    }
    if is_kept {
        problem("it is for others, but `publish` forbids that");
    }
    let description = package.description.as_deref().unwrap_or_default();
    if description.is_empty() || description.len() > DESCRIPTION_LEN_MAX || description.contains('\n') {
        problem("the description is one line of at most 120 bytes");
    }
    if package.license.is_none() {
        problem("it has no licence");
    }
    let is_other =
        |other: &Package| PUBLISHED.contains(&other.name.as_str()) && other.rust_version != package.rust_version;
    if package.rust_version.is_none() || packages.iter().any(is_other) {
        problem("the crates for others have one `rust-version`");
    }
    let is_keyword = |word: &String| {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '+');
        word.len() <= KEYWORD_LEN_MAX
            && word.starts_with(|first: char| first.is_ascii_alphanumeric())
            && word.chars().all(is_part)
    };
    if package.keywords.is_empty() || package.keywords.len() > KEYWORDS_MAX || !package.keywords.iter().all(is_keyword)
    {
        problem("it has one to five keywords of at most 20 letters, digits, `-`, `_` or `+`");
    }
    if package.categories.is_empty() || package.categories.len() > KEYWORDS_MAX {
        problem("it has one to five categories");
    }
    for dependency in package.dependencies.iter().filter(|dependency| dependency.path.is_some()) {
        let is_dev = dependency.kind == DependencyKind::Development;
        let requirement = dependency.req.to_string();
        // One that only tests need, without a version, is left out of the package.
        if is_dev && requirement == "*" {
            continue;
        }
        if !PUBLISHED.contains(&dependency.name.as_str()) {
            problem(&format!("it needs {}, which is not published", dependency.name));
        } else if requirement != format!("^{}", package.version) {
            problem(&format!("it needs {} {requirement}, not the version of the workspace", dependency.name));
        }
    }
    problems
}

/// What is wrong with the README of a package.
fn readme(package: &Package, text: &str) -> Vec<String> {
    let mut problems = vec![];
    if text.lines().next() != Some(&format!("# {}", package.name)) || text.lines().count() < 3 {
        problems.push(format!("{}: its README.md begins with `# {0}`, then says what it is", package.name));
    }
    for feature in package.features.keys().filter(|feature| *feature != "default") {
        if !text.contains(&format!("`{feature}`")) {
            problems.push(format!("{}: its README.md does not say what the feature `{feature}` is", package.name));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::run;

    fn package(name: &str, change: impl FnOnce(&mut Value)) -> Package {
        let mut value = json!({
            "name": name, "version": "1.2.3", "id": name, "source": null, "license": "MIT", "description": "What it is",
            "keywords": ["tcp"], "categories": ["simulation"], "rust_version": "1.88", "targets": [],
            "features": {}, "dependencies": [], "manifest_path": "/nowhere/Cargo.toml", "publish": null,
        });
        change(&mut value);
        serde_json::from_value(value).unwrap()
    }

    fn needs(name: &str, req: &str, kind: Option<&str>) -> Value {
        json!({"name": name, "req": req, "kind": kind, "optional": false, "uses_default_features": true,
            "features": [], "path": "/nowhere", "source": null, "target": null, "rename": null, "registry": null})
    }

    fn count(name: &str, change: impl FnOnce(&mut Value)) -> usize {
        let package = package(name, change);
        metadata(&package, std::slice::from_ref(&package)).len()
    }

    #[test]
    fn crates_of_the_workspace_are_complete() {
        let mut problems = vec![];
        check(&run::metadata().unwrap().packages, &run::root(), &mut problems).unwrap();
        assert!(problems.is_empty(), "{problems:#?}");
    }

    #[test]
    fn missing_part_of_a_manifest_is_a_problem() {
        assert_eq!(count("anabranch-cc", |_| {}), 0);
        assert_eq!(count("anabranch-cc", |it| it["description"] = Value::Null), 1);
        assert_eq!(count("anabranch-cc", |it| it["description"] = "a".repeat(121).into()), 1);
        assert_eq!(count("anabranch-cc", |it| it["license"] = Value::Null), 1);
        assert_eq!(count("anabranch-cc", |it| it["rust_version"] = Value::Null), 1);
        assert_eq!(count("anabranch-cc", |it| it["publish"] = json!([])), 1);
        for words in [json!([]), json!(["a", "b", "c", "d", "e", "f"]), json!(["a b"]), json!(["a".repeat(21)])] {
            assert_eq!(count("anabranch-cc", |it| it["keywords"] = words.clone()), 1, "{words}");
        }
        assert_eq!(count("anabranch-cc", |it| it["categories"] = json!([])), 1);
    }

    #[test]
    fn crate_that_is_not_for_others_says_so() {
        assert_eq!(count("anabranch-cli", |_| {}), 1);
        assert_eq!(count("anabranch-cli", |it| it["publish"] = json!([])), 0);
    }

    #[test]
    fn needed_crate_is_published_and_of_the_same_version() {
        let with = |needed: Value| count("anabranch-cc", |it| it["dependencies"] = json!([needed]));
        assert_eq!(with(needs("anabranch-units", "^1.2.3", None)), 0);
        assert_eq!(with(needs("anabranch-units", "^1.2.2", None)), 1);
        assert_eq!(with(needs("anabranch-units", "*", None)), 1);
        assert_eq!(with(needs("anabranch-lab", "^1.2.3", None)), 1);
        assert_eq!(with(needs("anabranch-lab", "^1.2.3", Some("build"))), 1);
        assert_eq!(with(needs("anabranch-lab", "*", Some("dev"))), 0);
        let other = package("anabranch-units", |it| it["version"] = "1.2.4".into());
        assert_eq!(metadata(&package("anabranch-cc", |_| {}), &[other]).len(), 1);
    }

    #[test]
    fn readme_has_the_name_and_the_features() {
        let package = package("anabranch-cc", |it| it["features"] = json!({"default": [], "fast": []}));
        assert!(readme(&package, "# anabranch-cc\n\nLaws. `fast` is one.\n").is_empty());
        assert_eq!(readme(&package, "# anabranch-cc\n\nLaws.\n").len(), 1);
        assert_eq!(readme(&package, "").len(), 2);
    }
}
