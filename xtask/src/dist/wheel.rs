//! The Python module: its sources, and of these a wheel for the stable ABI.

use std::collections::BTreeSet;
use std::path::PathBuf;

use flate2::read::GzDecoder;

use super::output::Output;
use super::release::{self, Release};
use crate::{packages, tools};

/// The wheel's target: the oldest system of PEP 599 that Rust's library supports, so zig links it.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";
const SYSTEM: &str = "manylinux2014";

/// Packs the sources, builds the wheel of them and of nothing else, installs it in a folder, and runs a scenario with it.
pub(super) fn make(release: &Release, output: &Output) -> Result<(), String> {
    let python = tools::python()?;
    packages::install_target(TRIPLE, "a wheel is released for it")?;
    let folder = release.scratch("wheel")?;
    let out = folder.to_string_lossy().into_owned();
    let read = |path: &PathBuf| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    release.run(&python, &["-m", "maturin", "sdist", "--out", &out], &[])?;
    let sources = made(&folder, "gz")?;
    release::unpack(GzDecoder::new(&read(&sources)?[..]), &release.sdist)?;
    let root = release.sdist.join(format!("anabranch-{}", release.version));

    // maturin looks for zig in the first Python that it finds.
    let programs = PathBuf::from(&python).parent().map(|folder| folder.to_string_lossy().into_owned());
    let path = format!("{}:{}", programs.unwrap_or_default(), std::env::var("PATH").unwrap_or_default());
    let cache = release.source.with_file_name("compilers").join("zig").to_string_lossy().into_owned();
    let environment = [
        ("PATH", path.as_str()),
        ("ZIG_GLOBAL_CACHE_DIR", &cache),
        ("ZIG_LOCAL_CACHE_DIR", &cache),
        ("CARGO_ZIGBUILD_CACHE_DIR", &cache),
    ];
    let build = ["-m", "maturin", "build", "--quiet", "--profile", super::binary::PROFILE, "--zig"];
    let target = ["--target", TRIPLE, "--compatibility", SYSTEM, "--interpreter", &python, "--out", &out];
    release.run_in(&root, &python, &[&build[..], &target].concat(), &environment)?;
    let locked = |folder: &PathBuf| locked(&String::from_utf8_lossy(&read(&folder.join("Cargo.lock"))?));
    let others: Vec<String> = locked(&root)?.difference(&locked(&release.source)?).cloned().collect();
    if !others.is_empty() {
        return Err(format!("the lock file does not have {}", others.join(", ")));
    }

    let wheel = made(&folder, "whl")?;
    let place = folder.join("installed").to_string_lossy().into_owned();
    let install = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", &place];
    release.run(&python, &[&install[..], &[&*wheel.to_string_lossy()]].concat(), &[])?;
    let program = "import anabranch; print(anabranch.__version__, anabranch.run('docs/kernel.toml', record=False))";
    release.run(&python, &["-c", program], &[("PYTHONPATH", &place)])?;
    output.take(&sources)?;
    output.take(&wheel)
}

/// The one file of a kind that maturin has made.
fn made(folder: &PathBuf, extension: &str) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?.flatten();
    let mut found = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == extension));
    match (found.next(), found.next()) {
        (Some(path), None) => Ok(path),
        _ => Err(format!("{}: maturin has not made one file .{extension}", folder.display())),
    }
}

/// The packages of a lock file, with their sums.
fn locked(lock: &str) -> Result<BTreeSet<String>, String> {
    let lock: toml::Table = toml::from_str(lock).map_err(|error| format!("Cargo.lock: {error}"))?;
    let packages = lock.get("package").and_then(toml::Value::as_array).ok_or("Cargo.lock has no packages")?;
    let text =
        |package: &toml::Value, key| package.get(key).and_then(toml::Value::as_str).unwrap_or_default().to_owned();
    let line = |package| ["name", "version", "checksum"].map(|key| text(package, key)).join(" ").trim().to_owned();
    Ok(packages.iter().map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_of_another_version_is_in_no_lock_file() {
        let package = |version: &str, sum: &str| {
            format!("[[package]]\nname = \"a\"\nversion = \"{version}\"\nchecksum = \"{sum}\"\n")
        };
        let own = "[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
        let whole = locked(&format!("version = 4\n{own}{}", package("1.0.0", "77"))).unwrap();
        assert_eq!(whole, ["a 1.0.0 77", "own 0.1.0"].map(str::to_owned).into());
        assert!(locked(own).unwrap().is_subset(&whole));
        assert!(!locked(&package("1.0.1", "77")).unwrap().is_subset(&whole));
        assert!(!locked(&package("1.0.0", "78")).unwrap().is_subset(&whole));
        assert!(locked("version = 4\n").is_err());
    }
}
