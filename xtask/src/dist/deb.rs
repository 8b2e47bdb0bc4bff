//! Debian packages, by cargo-deb; `crates/cli/Cargo.toml` says what is in them.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::archive::{self, File};
use super::binary::{PROFILE, Target};
use super::pages::Pages;
use super::release::{FOLDER, Release};
use super::{Missing, binary};
use crate::{run, tools};

/// Makes the package of a program that has been built; returns its path, which is not yet in `dist/`.
pub(super) fn make(release: &Release, target: &Target, pages: &Pages, licences: &[File]) -> Result<PathBuf, String> {
    let program = tools::cargo(&tools::DEB)?;
    stage(release, target, pages, licences)?;
    let made = release.scratch("deb")?;
    let arguments = ["--no-build", "--no-strip", "--locked", "--package", "anabranch-cli", "--profile", PROFILE];
    let place = ["--target", target.triple, "--output", &made.to_string_lossy()];
    release.run(&program, &[&arguments[..], &place].concat(), &[])?;
    let mut entries = std::fs::read_dir(&made).map_err(|error| format!("{}: {error}", made.display()))?.flatten();
    entries.next().map(|entry| entry.path()).ok_or_else(|| "cargo-deb has made no package".to_owned())
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

/// What is tested of a package, as far as this machine has the programs for it: `dpkg-deb` unpacks it, `dpkg` installs it in a folder and removes it again,
/// `systemd-analyze` reads its unit, bash its completions, and lintian says what it thinks.
pub(super) fn try_out(package: &Path, target: &Target, missing: &mut Missing) -> Result<(), String> {
    let shown = package.display().to_string();
    if !run::is_installed("dpkg-deb") {
        missing.test(&shown, "there is no dpkg-deb");
        return Ok(());
    }
    let name = format!("{FOLDER}/deb-unpacked");
    run::remove_in_target(&name)?;
    let folder = run::target()?.join(&name);
    let (path, place) = (package.to_string_lossy(), folder.to_string_lossy());
    run::run("dpkg-deb", &["--extract", &path, &place], &[])?;
    let absent = absent(&folder);
    if !absent.is_empty() {
        return Err(format!("{shown}: it has no {}", absent.join(", ")));
    }
    run::run("bash", &["-n", &folder.join(COMPLETIONS).to_string_lossy()], &[])?;
    match binary::runner(target) {
        Ok(runner) => {
            let told = binary::told(runner.as_deref(), &folder.join(PROGRAM), &["--version"])?;
            run::say(&format!("{shown}: {}", told.trim()));
        }
        Err(why) => missing.test(&shown, &why),
    }
    match run::is_installed("systemd-analyze") {
        true => verify_unit(&folder)?,
        false => missing.test(&shown, "there is no systemd-analyze, which reads its unit"),
    }
    match run::is_root() && run::is_installed("dpkg") {
        true => install(&path)?,
        false => missing.test(&shown, "only root can install it in a folder, by dpkg"),
    }
    match run::is_installed("lintian") {
        // It may not run as root unless it is told to. What it says of a program without libraries of Debian is in docs/development.md.
        true => run::run("lintian", &["--allow-root", "--fail-on", "none", "--tag-display-limit", "3", &path], &[]),
        false => {
            missing.test(&shown, "there is no lintian, which knows Debian's rules");
            Ok(())
        }
    }
}

/// Asks systemd what it thinks of the unit in an unpacked package. It only warns of a key that it does not know.
fn verify_unit(root: &Path) -> Result<(), String> {
    let units = root.join(UNITS);
    // Every unit waits for this one of the system's.
    std::fs::write(units.join("sysinit.target"), "[Unit]\n")
        .map_err(|error| format!("{}: {error}", units.display()))?;
    let unit = format!("/{UNITS}/{}", UNIT.replace('@', "@anabranch"));
    let arguments = ["verify", "--man=no", &format!("--root={}", root.display()), &unit];
    run::say(&format!("$ systemd-analyze {}", arguments.join(" ")));
    let told = Command::new("systemd-analyze").args(arguments).output();
    let told = told.map_err(|error| format!("cannot start `systemd-analyze`: {error}"))?;
    match told.status.success() && told.stderr.is_empty() {
        true => Ok(()),
        false => Err(format!("systemd says of {unit}: {}", String::from_utf8_lossy(&told.stderr).trim())),
    }
}

/// Installs a package in an empty system, and removes it. What is left is what dpkg keeps for itself.
fn install(package: &str) -> Result<(), String> {
    let name = format!("{FOLDER}/deb-installed");
    run::remove_in_target(&name)?;
    let folder = run::target()?.join(&name);
    let database = folder.join("var/lib/dpkg");
    // dpkg wants its folders and lists there.
    let make = || {
        for part in ["info", "updates", "triggers"] {
            std::fs::create_dir_all(database.join(part))?;
        }
        std::fs::write(database.join("status"), "")
    };
    make().map_err(|error| format!("{}: {error}", database.display()))?;
    let root = format!("--root={}", folder.display());
    // The other processor's package, and the packages that it recommends, are none of dpkg's business here.
    let dpkg = |action: &[&str]| run::run("dpkg", &[&[&root, "--force-architecture"], action].concat(), &[]);
    dpkg(&["--install", package])?;
    let absent = absent(&folder);
    if !absent.is_empty() {
        return Err(format!("{package}: dpkg has not installed {}", absent.join(", ")));
    }
    dpkg(&["--remove", "anabranch"])?;
    match folder.join("usr").exists() {
        true => Err(format!("{package}: something is left when it is removed")),
        false => Ok(()),
    }
}

/// The files of a system that a package does not have there. Names of pages and scripts are those that [`super::pages`] and `stage` give.
fn absent(root: &Path) -> Vec<&'static str> {
    FILES.into_iter().filter(|file| !root.join(file).is_file()).collect()
}

const PROGRAM: &str = "usr/bin/anabranch";
const COMPLETIONS: &str = "usr/share/bash-completion/completions/anabranch";
const UNITS: &str = "usr/lib/systemd/system";
const FILES: [&str; 10] = [
    PROGRAM,
    COMPLETIONS,
    "usr/lib/systemd/system/anabranch-kernel@.service",
    "usr/share/doc/anabranch/LICENSES-RUST-LIBRARY.html",
    "usr/share/doc/anabranch/LICENSES-THIRD-PARTY.txt",
    "usr/share/doc/anabranch/PATENTS.md",
    "usr/share/doc/anabranch/copyright",
    "usr/share/fish/vendor_completions.d/anabranch.fish",
    "usr/share/man/man1/anabranch.1.gz",
    "usr/share/zsh/vendor-completions/_anabranch",
];

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
    /// cargo-deb leaves a glob without files out, and says nothing.
    #[test]
    fn assets_of_the_manifest_are_the_files_that_are_asked_for() {
        let manifest = std::fs::read_to_string(run::root().join("crates/cli/Cargo.toml")).unwrap();
        let manifest: toml::Table = toml::from_str(&manifest).unwrap();
        let assets = manifest["package"]["metadata"]["deb"]["assets"].as_array().unwrap();
        let column =
            |index: usize| -> Vec<&str> { assets.iter().map(|asset| asset[index].as_str().unwrap()).collect() };
        let (places, modes) = (column(1), column(2));
        for file in FILES {
            let (above, _) = file.rsplit_once('/').unwrap();
            let is_placed = |place: &&str| file == *place || place.strip_suffix('/') == Some(above);
            // cargo-deb writes the copyright of its own accord.
            assert!(file.ends_with("/copyright") || places.iter().any(is_placed), "{file} is in none of {places:?}");
        }
        assert!(places.iter().all(|place| place.starts_with("usr/")), "{places:?}");
        assert_eq!(modes.iter().filter(|mode| **mode == "755").count(), 1, "only the program is one");
    }

    #[test]
    fn file_that_a_package_lacks_is_named() {
        let folder = run::target().unwrap().join("tmp/dist-tests/layout");
        let _ = std::fs::remove_dir_all(&folder);
        assert_eq!(absent(&folder), FILES);
        for file in FILES {
            std::fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
            std::fs::write(folder.join(file), "").unwrap();
        }
        assert!(absent(&folder).is_empty());
        std::fs::remove_file(folder.join(PROGRAM)).unwrap();
        assert_eq!(absent(&folder), [PROGRAM]);
        // A folder in the place of a file is none.
        std::fs::create_dir(folder.join(PROGRAM)).unwrap();
        assert_eq!(absent(&folder), [PROGRAM]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn unit_with_an_unknown_key_is_refused() {
        if !run::is_installed("systemd-analyze") {
            run::say("skipped: there is no systemd-analyze");
            return;
        }
        let folder = run::target().unwrap().join("tmp/dist-tests/unit");
        let _ = std::fs::remove_dir_all(&folder);
        let (units, program) = (folder.join(UNITS), folder.join(PROGRAM));
        std::fs::create_dir_all(&units).unwrap();
        std::fs::create_dir_all(program.parent().unwrap()).unwrap();
        std::fs::copy("/bin/true", &program).unwrap();
        let text = std::fs::read_to_string(run::root().join("docs/systemd").join(UNIT)).unwrap();
        // Not that of the package: there is no program.
        std::fs::write(units.join(UNIT), &text).unwrap();
        assert!(verify_unit(&folder).is_err());
        let changed = of_package(&text).unwrap();
        std::fs::write(units.join(UNIT), changed.replace("Description", "Desription")).unwrap();
        assert!(verify_unit(&folder).unwrap_err().contains("Desription"));
        std::fs::write(units.join(UNIT), changed).unwrap();
        assert_eq!(verify_unit(&folder), Ok(()));
    }
}
