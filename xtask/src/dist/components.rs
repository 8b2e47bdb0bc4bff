//! The list of components of the program, in CycloneDX's format, by cargo-cyclonedx.

use std::collections::BTreeSet;

use serde_json::Value;

use super::name::Name;
use super::output::Output;
use super::release::Release;
use super::{binary, licences};
use crate::tools;

pub(super) fn make(release: &Release, output: &Output) -> Result<(), String> {
    let program = tools::cargo(&tools::CYCLONEDX)?;
    let [target, ..] = binary::targets();
    let what = ["cyclonedx", "--manifest-path", "crates/cli/Cargo.toml", "--target", target.triple];
    // It writes a file beside each manifest of the workspace.
    let how = ["--format", "json", "--spec-version", "1.5", "--override-filename", FILE];
    release.run(&program, &[&what[..], &how].concat(), &[])?;
    let path = release.source.join("crates/cli").join(format!("{FILE}.json"));
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let text = without_place(&text, &release.source.to_string_lossy());
    let mut linked = licences::linked(release, target.triple)?;
    // The program is what the list is of.
    linked.remove(&format!("anabranch-cli v{}", release.version));
    let absent = absent(&text, &linked)?;
    if !absent.is_empty() {
        return Err(format!("the list does not have {}", absent.join(", ")));
    }
    output.write(&Name::new(&format!("anabranch-{}.cdx.json", release.version))?, text.as_bytes())
}

const FILE: &str = "anabranch.cdx";

/// The list without the folder of this machine, which is a part of the names of our own packages.
fn without_place(text: &str, source: &str) -> String {
    text.replace(source, "/anabranch")
}

/// The packages that are linked, such as `bytes v1.12.1`, and are not in the list.
fn absent<'a>(list: &str, linked: &'a BTreeSet<String>) -> Result<Vec<&'a str>, String> {
    let list: Value = serde_json::from_str(list).map_err(|error| format!("the list is no JSON: {error}"))?;
    let components = list["components"].as_array().filter(|_| list["bomFormat"] == "CycloneDX");
    let components = components.ok_or("the list is none of CycloneDX")?;
    let name = |component: &Value| Some(format!("{} v{}", component["name"].as_str()?, component["version"].as_str()?));
    let listed: BTreeSet<String> = components.iter().filter_map(name).collect();
    Ok(linked.iter().filter(|name| !listed.contains(*name)).map(String::as_str).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_not_told() {
        let told =
            without_place("\"path+file:///home/me/dist/source/crates/cc#anabranch-cc@0.1.0\"", "/home/me/dist/source");
        assert_eq!(told, "\"path+file:///anabranch/crates/cc#anabranch-cc@0.1.0\"");
    }

    #[test]
    fn linked_package_that_is_not_listed_is_named() {
        let list = r#"{"bomFormat": "CycloneDX", "components": [{"name": "a", "version": "1.0.0"}, {"name": "b"}]}"#;
        let linked = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(absent(list, &linked(&["a v1.0.0"])).unwrap(), [""; 0]);
        assert_eq!(absent(list, &linked(&["a v1.0.0", "a v1.0.1", "b v1.0.0"])).unwrap(), ["a v1.0.1", "b v1.0.0"]);
        for other in ["", "{}", r#"{"bomFormat": "SPDX", "components": []}"#, r#"{"bomFormat": "CycloneDX"}"#] {
            assert!(absent(other, &linked(&[])).is_err(), "{other}");
        }
    }
}
