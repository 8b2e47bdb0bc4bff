//! What is released: the files of a commit, and the surroundings in which they are compiled.

use std::path::{Path, PathBuf};

use crate::run;

/// A commit, its files, and a place to build them.
pub(super) struct Release {
    /// The version of the workspace, such as `0.1.0`.
    pub(super) version: String,
    /// The hash of the commit.
    pub(super) commit: String,
    /// The time of the commit in seconds since 1970, which everything gets.
    pub(super) time: u64,
    /// The files of the commit.
    pub(super) source: PathBuf,
    /// Cargo's target folder for them.
    pub(super) build: PathBuf,
    /// Paths of this machine as they are in C's `__FILE__` and Rust's panics, and what is written instead. The last that fits counts.
    pub(super) paths: [(String, &'static str); 3],
    /// The environment of everything that compiles them.
    environment: Vec<(String, String)>,
}

/// The folder of all this in cargo's target folder.
pub(super) const FOLDER: &str = "dist";

impl Release {
    /// The newest commit of the work tree.
    pub(super) fn of_commit() -> Result<Self, String> {
        let root = run::root();
        let git = |arguments: &[&str]| run::output_in(&root, "git", arguments);
        let commit = git(&["rev-parse", "HEAD"])?.trim().to_owned();
        let time = git(&["log", "-1", "--format=%ct", &commit])?;
        let time = time.trim().parse().map_err(|_| format!("git says that commit {commit} is of {time}"))?;
        let changed = git(&["status", "--porcelain"])?.lines().count();
        if changed > 0 {
            run::say(&format!("{changed} files differ from commit {commit}; the release is made of the commit"));
        }
        let folder = run::target()?.join(FOLDER);
        let (source, build) = (folder.join("source"), folder.join("build"));
        run::remove_in_target(&format!("{FOLDER}/source"))?;
        unpack(&root, &commit, &folder, &source)?;
        let metadata = run::metadata_in(&source)?;
        let package = metadata.packages.iter().find(|package| package.name == "anabranch-cli");
        let version = package.ok_or("the workspace has no package anabranch-cli")?.version.to_string();
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let paths = [(run::cargo_home()?, "cargo"), (text(&folder), "target"), (text(&source), ".")];
        let environment = environment(time, &build, &paths);
        Ok(Self { version, commit, time, source, build, paths, environment })
    }

    /// The folder of all that is built besides what cargo builds, below cargo's target folder; it is empty.
    pub(super) fn scratch(&self, name: &'static str) -> Result<PathBuf, String> {
        run::remove_in_target(&format!("{FOLDER}/{name}"))?;
        let folder = self.source.with_file_name(name);
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(folder)
    }

    /// Runs a program among the files of the commit, with more environment.
    pub(super) fn run(&self, program: &str, arguments: &[&str], more: &[(&str, &str)]) -> Result<(), String> {
        let own = self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let environment: Vec<(&str, &str)> = own.chain(more.iter().copied()).collect();
        run::run_in(&self.source, program, arguments, &environment)
    }
}

fn environment(time: u64, build: &Path, paths: &[(String, &str)]) -> Vec<(String, String)> {
    let flags: Vec<String> = paths.iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}")).collect();
    let entries = [
        ("SOURCE_DATE_EPOCH", time.to_string()),
        ("CARGO_TARGET_DIR", build.to_string_lossy().into_owned()),
        // In place of those of this machine; with spaces in them.
        ("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f")),
        ("CARGO_INCREMENTAL", "0".to_owned()),
        ("LC_ALL", "C".to_owned()),
        ("TZ", "UTC".to_owned()),
    ];
    entries.map(|(name, value)| (name.to_owned(), value)).into()
}

/// Writes the files of a commit. They get the time of now: cargo compares times, and a commit may be older than what was built before.
fn unpack(root: &Path, commit: &str, folder: &Path, source: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", source.display());
    std::fs::create_dir_all(source).map_err(failed)?;
    let packed = folder.join("source.tar");
    let output = format!("--output={}", packed.to_string_lossy());
    run::run_in(root, "git", &["archive", "--format=tar", &output, commit], &[])?;
    let mut archive = tar::Archive::new(std::fs::File::open(&packed).map_err(failed)?);
    archive.set_preserve_mtime(false);
    archive.unpack(source).map_err(failed)
}
