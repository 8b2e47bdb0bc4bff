//! Runs other programs and reports their outcome.

use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{Metadata, MetadataCommand};

/// Prints a line of progress.
#[expect(clippy::print_stdout, reason = "a build tool talks to its terminal")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().expect("xtask lies in the root of the workspace").to_owned()
}

/// Cargo's metadata of the workspace.
pub(crate) fn metadata() -> Result<Metadata, String> {
    metadata_in(&root())
}

/// Cargo's metadata of the workspace in a folder, without what it depends on.
pub(crate) fn metadata_in(folder: &Path) -> Result<Metadata, String> {
    let found = MetadataCommand::new().no_deps().current_dir(folder).exec();
    found.map_err(|error| format!("cargo metadata: {error}"))
}

/// Cargo's target folder, which `CARGO_TARGET_DIR` or a cargo configuration can move.
pub(crate) fn target() -> Result<PathBuf, String> {
    metadata().map(|metadata| metadata.target_directory.into())
}

/// Removes a folder in cargo's target folder, if there is one. Cargo marks its own folder with a file; in another one nothing is removed.
pub(crate) fn remove_in_target(name: &str) -> Result<(), String> {
    let target = target()?;
    let folder = target.join(name);
    if !folder.exists() {
        return Ok(());
    }
    if !target.join("CACHEDIR.TAG").is_file() {
        return Err(format!("{}: cargo did not make this folder, so nothing in it is removed", target.display()));
    }
    std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))
}

/// Builds the release of the command; returns its path.
pub(crate) fn anabranch() -> Result<String, String> {
    target().map(|target| target.join("release/anabranch").to_string_lossy().into_owned())
}

/// Builds the release of an example; returns its path.
pub(crate) fn example(name: &str) -> Result<String, String> {
    target().map(|target| target.join("release/examples").join(name).to_string_lossy().into_owned())
}

/// Cargo's folder for what it fetches, whose paths are in what it compiles.
pub(crate) fn cargo_home() -> Result<String, String> {
    let home = std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")));
    home.map_err(|_| "neither CARGO_HOME nor HOME is set".to_owned())
}

/// Runs `program` in the root. If it fails, the error has its command line.
pub(crate) fn run(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    run_in(&root(), program, arguments, environment)
}

/// Runs `program` in a folder.
pub(crate) fn run_in(
    folder: &Path,
    program: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Result<(), String> {
    say(&format!("$ {program} {}", arguments.join(" ")));
    let status = Command::new(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(folder)
        .status()
        .map_err(|error| format!("cannot start `{program}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{program} {}` failed: {status}", arguments.join(" "))) }
}

/// What `program` prints when it runs in a folder.
pub(crate) fn output_in(folder: &Path, program: &str, arguments: &[&str]) -> Result<String, String> {
    let failed = |why: &str| format!("`{program} {}` failed: {why}", arguments.join(" "));
    let told = Command::new(program).args(arguments).current_dir(folder).output();
    let told = told.map_err(|error| failed(&error.to_string()))?;
    match told.status.success() {
        true => String::from_utf8(told.stdout).map_err(|_| failed("what it prints is no UTF-8")),
        false => Err(failed(String::from_utf8_lossy(&told.stderr).trim())),
    }
}

/// Whether this process may install packages.
pub(crate) fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|found| found.stdout.trim_ascii() == b"0")
}

/// Whether `program` can be started.
pub(crate) fn is_installed(program: &str) -> bool {
    Command::new("sh").args(["-c", &format!("command -v {program}")]).output().is_ok_and(|found| found.status.success())
}
