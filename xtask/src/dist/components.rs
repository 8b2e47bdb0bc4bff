//! The list of components of the program, in CycloneDX's format, by cargo-cyclonedx.

use super::binary;
use super::name::Name;
use super::output::Output;
use super::release::Release;
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
    output.write(&Name::new(&format!("anabranch-{}.cdx.json", release.version))?, text.as_bytes())
}

const FILE: &str = "anabranch.cdx";

/// The list without the folder of this machine, which is a part of the names of our own packages.
fn without_place(text: &str, source: &str) -> String {
    text.replace(source, "/anabranch")
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
}
