//! Debian packages, by cargo-deb; `crates/cli/Cargo.toml` says what is in them.

use std::path::{Path, PathBuf};

use super::archive::{self, File};
use super::binary::{PROFILE, Target};
use super::name::Name;
use super::output::Output;
use super::pages::Pages;
use super::release::{FOLDER, Release};
use super::{Missing, binary};
use crate::{run, tools};

/// Makes the package of a program that has been built; returns its path.
pub(super) fn make(
    release: &Release,
    target: &Target,
    pages: &Pages,
    licences: &[File],
    output: &Output,
) -> Result<PathBuf, String> {
    let program = tools::cargo(&tools::DEB)?;
    stage(release, target, pages, licences)?;
    let made = release.scratch("deb")?;
    let arguments = ["--no-build", "--no-strip", "--locked", "--package", "anabranch-cli", "--profile", PROFILE];
    let place = ["--target", target.triple, "--output", &made.to_string_lossy()];
    release.run(&program, &[&arguments[..], &place].concat(), &[])?;
    let mut entries = std::fs::read_dir(&made).map_err(|error| format!("{}: {error}", made.display()))?.flatten();
    let package = entries.next().ok_or("cargo-deb has made no package")?.path();
    output.take(&package)?;
    Ok(output.folder().join(Name::of(&package)?.as_str()))
}

/// Writes what comes with the program to where cargo-deb looks for it, beside the program.
fn stage(release: &Release, target: &Target, pages: &Pages, licences: &[File]) -> Result<(), String> {
    run::remove_in_target(&format!("{FOLDER}/build/{}/{PROFILE}/package", target.triple))?;
    let folder = release.build.join(target.triple).join(PROFILE).join("package");
    let write = |part: &str, name: &str, bytes: &[u8]| {
        let part = folder.join(part);
        std::fs::create_dir_all(&part)
            .and_then(|()| std::fs::write(part.join(name), bytes))
            .map_err(|error| format!("{}: {error}", part.display()))
    };
    for (name, page) in &pages.man {
        write("man", &format!("{name}.gz"), &archive::gz(page)?)?;
    }
    for (name, script) in &pages.completions {
        write("completions", name.as_str(), script)?;
    }
    for file in licences {
        write("licences", &file.path, &file.bytes)?;
    }
    let unit = release.source.join("docs/systemd").join(UNIT);
    let text = std::fs::read_to_string(&unit).map_err(|error| format!("{}: {error}", unit.display()))?;
    write("systemd", UNIT, of_package(&text)?.as_bytes())
}

const UNIT: &str = "anabranch-kernel@.service";

/// The unit for a program that the system's packages have, not a person.
fn of_package(unit: &str) -> Result<String, String> {
    match unit.contains("=/usr/local/bin/anabranch ") {
        true => Ok(unit.replace("=/usr/local/bin/anabranch ", "=/usr/bin/anabranch ")),
        false => Err(format!("{UNIT} does not name the program")),
    }
}

/// Unpacks the package and runs its program, and asks lintian, where these are.
pub(super) fn try_out(package: &Path, target: &Target, missing: &mut Missing) -> Result<(), String> {
    let shown = package.display().to_string();
    if !run::is_installed("dpkg-deb") {
        missing.test(&shown, "there is no dpkg-deb");
        return Ok(());
    }
    let name = format!("{FOLDER}/deb-unpacked");
    run::remove_in_target(&name)?;
    let folder = run::target()?.join(&name);
    let (package, place) = (package.to_string_lossy(), folder.to_string_lossy());
    run::run("dpkg-deb", &["--extract", &package, &place], &[])?;
    match binary::runner(target) {
        Ok(runner) => {
            let told = binary::told(runner.as_deref(), &folder.join("usr/bin/anabranch"), &["--version"])?;
            run::say(&format!("{shown}: {}", told.trim()));
        }
        Err(why) => missing.test(&shown, &why),
    }
    match run::is_installed("lintian") {
        // It may not run as root unless it is told to. What it says of a program without libraries of Debian is in docs/development.md.
        true => run::run("lintian", &["--allow-root", "--fail-on", "none", "--tag-display-limit", "3", &package], &[]),
        false => {
            missing.test(&shown, "there is no lintian, which knows Debian's rules");
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_names_the_program_of_the_package() {
        let unit = std::fs::read_to_string(run::root().join("docs/systemd").join(UNIT)).unwrap();
        let changed = of_package(&unit).unwrap();
        assert_eq!(changed.matches("=/usr/bin/anabranch ").count(), 3, "{changed}");
        assert!(!changed.contains("/usr/local"), "{changed}");
        assert!(of_package("[Unit]\n").is_err());
    }
}
