//! The licences of what is in a program: those of all crates that are linked into it, of Rust's library, and of musl.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cargo_metadata::{MetadataCommand, Package};

use super::archive::File;
use super::release::Release;
use crate::run;

/// Files with the licences of all that the program for a target contains besides ours.
pub(super) fn text(release: &Release, triple: &str) -> Result<Vec<File>, String> {
    let linked = linked(release, triple)?;
    let found = MetadataCommand::new()
        .current_dir(&release.source)
        .other_options(["--locked".to_owned(), "--filter-platform".to_owned(), triple.to_owned()])
        .exec();
    let metadata = found.map_err(|error| format!("cargo metadata: {error}"))?;
    let is_linked = |package: &&Package| {
        package.source.is_some() && linked.contains(&format!("{} v{}", package.name, package.version))
    };
    let mut packages: Vec<&Package> = metadata.packages.iter().filter(is_linked).collect();
    packages.sort_by(|left, right| (&left.name, &left.version).cmp(&(&right.name, &right.version)));
    if packages.is_empty() {
        return Err("cargo tree names no package of others".to_owned());
    }
    let mut entries = vec![];
    for package in packages {
        let folder = package.manifest_path.parent().expect("a manifest stands in a folder");
        entries.push(Entry {
            name: format!("{} {}", package.name, package.version),
            licence: package.license.clone().unwrap_or_else(|| "licence in its text".to_owned()),
            repository: package.repository.clone().unwrap_or_default(),
            texts: texts(folder.as_std_path())?,
        });
    }
    let mut files = vec![File::new("LICENSES-THIRD-PARTY.txt", page(&release.version, &entries))];
    let sysroot = run::output_in(&release.source, "rustc", &["--print", "sysroot"])?;
    let library = Path::new(sysroot.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    let library = std::fs::read(&library).map_err(|error| format!("{}: {error}", library.display()))?;
    files.push(File::new("LICENSES-RUST-LIBRARY.html", library));
    Ok(files)
}

/// A package of others.
struct Entry {
    name: String,
    licence: String,
    repository: String,
    texts: Vec<String>,
}

/// The packages that are linked into the program, such as `bytes v1.12.1`.
pub(super) fn linked(release: &Release, triple: &str) -> Result<BTreeSet<String>, String> {
    let arguments = ["tree", "--locked", "--package", "anabranch-cli", "--target", triple];
    let format = ["--edges", "normal", "--prefix", "none", "--format", "{p}"];
    let told = run::output_in(&release.source, "cargo", &[&arguments[..], &format].concat())?;
    let words = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    Ok(told.lines().map(words).collect())
}

/// The texts that lie beside a manifest.
fn texts(folder: &Path) -> Result<Vec<String>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && WORDS.iter().any(|word| name.starts_with(word)) {
            let text = std::fs::read(&path).map_err(failed)?;
            let text = String::from_utf8_lossy(&text).replace("\r\n", "\n");
            found.insert(name, text.trim_matches('\n').to_owned());
        }
    }
    Ok(found.into_values().filter(|text| !text.is_empty()).collect())
}

/// The beginnings of the names of such files.
const WORDS: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];

/// The page: what there is, then each text once, with those that it is of.
fn page(version: &str, entries: &[Entry]) -> String {
    let mut page = format!(
        "anabranch {version} contains the packages below, Rust's library (LICENSES-RUST-LIBRARY.html), and musl, Copyright (c) 2005-2020 Rich Felker, et al., \
         under the MIT licence.\n\n"
    );
    let mut of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for Entry { name, licence, repository, texts } in entries {
        page.push_str(&[name, licence, repository].map(|text| text.as_str()).join("  "));
        page.push_str(if texts.is_empty() { "  (it comes without a text)\n" } else { "\n" });
        for text in texts {
            of.entry(text).or_default().push(name);
        }
    }
    let mut parts: Vec<(Vec<&str>, &str)> = of.into_iter().map(|(text, names)| (names, text)).collect();
    parts.sort();
    for (names, text) in parts {
        page.push_str(&format!("\n{}\nOf {}:\n\n{text}\n", "-".repeat(80), names.join(", ")));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_stands_once_with_all_its_packages() {
        let entry = |name: &str, texts: &[&str]| Entry {
            name: name.to_owned(),
            licence: "MIT".to_owned(),
            repository: "https://example.org".to_owned(),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        };
        let page =
            page("1.2.3", &[entry("a 1.0.0", &["same", "other"]), entry("b 2.0.0", &["same"]), entry("c 3.0.0", &[])]);
        assert_eq!(page.matches("same").count(), 1);
        assert!(page.contains("Of a 1.0.0, b 2.0.0:\n\nsame\n"), "{page}");
        assert!(page.contains("Of a 1.0.0:\n\nother\n"), "{page}");
        assert!(page.contains("c 3.0.0  MIT  https://example.org  (it comes without a text)\n"), "{page}");
    }

    #[test]
    fn texts_of_this_project_are_found() {
        let found = texts(&run::root()).unwrap();
        assert_eq!(found.len(), 2);
        assert!(found[1].starts_with("MIT License"), "{}", found[1]);
    }
}
