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
    /// The files of the sources for Python, unpacked, of which the wheel is made.
    pub(super) sdist: PathBuf,
    /// Cargo's target folder for both.
    pub(super) build: PathBuf,
    /// Paths of this machine as they are in C's `__FILE__` and Rust's panics, and what is written instead. The last that fits counts.
    pub(super) paths: [(String, &'static str); 4],
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
        let (source, sdist, build) = (folder.join("source"), folder.join("sdist"), folder.join("build"));
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let packed = folder.join("source.tar");
        let to = format!("--output={}", packed.to_string_lossy());
        run::run_in(&root, "git", &["archive", "--format=tar", &to, &commit], &[])?;
        let bytes = std::fs::read(&packed).map_err(|error| format!("{}: {error}", packed.display()))?;
        unpack(&bytes[..], &source)?;
        let metadata = run::metadata_in(&source)?;
        let package = metadata.packages.iter().find(|package| package.name == "anabranch-cli");
        let version = package.ok_or("the workspace has no package anabranch-cli")?.version.to_string();
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let paths =
            [(run::cargo_home()?, "cargo"), (text(&folder), "target"), (text(&source), "."), (text(&sdist), ".")];
        let environment = environment(time, &build, &paths);
        Ok(Self { version, commit, time, source, sdist, build, paths, environment })
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
        self.run_in(&self.source, program, arguments, more)
    }

    /// Runs a program in a folder, with more environment.
    pub(super) fn run_in(
        &self,
        folder: &Path,
        program: &str,
        arguments: &[&str],
        more: &[(&str, &str)],
    ) -> Result<(), String> {
        let own = self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let environment: Vec<(&str, &str)> = own.chain(more.iter().copied()).collect();
        run::run_in(folder, program, arguments, &environment)
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

/// Makes a folder below cargo's target folder anew, of an archive. Files get the time of now, as cargo compares times, and a commit may be older than what was
/// built before. What is as it was in the last release keeps its time, and is not compiled again.
pub(super) fn unpack(packed: impl std::io::Read, folder: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let name = folder.file_name().expect("it is a folder of a release").to_string_lossy();
    run::remove_in_target(&format!("{FOLDER}/{name}{NEW}"))?;
    let new = folder.with_file_name(format!("{name}{NEW}"));
    std::fs::create_dir_all(&new).map_err(failed)?;
    let mut archive = tar::Archive::new(packed);
    archive.set_preserve_mtime(false);
    archive.unpack(&new).map_err(failed)?;
    keep_times(folder, &new).map_err(failed)?;
    run::remove_in_target(&format!("{FOLDER}/{name}"))?;
    std::fs::rename(&new, folder).map_err(failed)
}

/// The end of the name of a folder that is unpacked.
const NEW: &str = "-new";

/// Gives each file of `new` that has the same bytes in `old` the time that it has there, and folders that are the same as a whole, at whose times cargo looks, too.
/// Returns whether all is the same.
fn keep_times(old: &Path, new: &Path) -> std::io::Result<bool> {
    let entries: Vec<_> = std::fs::read_dir(new)?.collect::<Result<_, _>>()?;
    let mut is_same = std::fs::read_dir(old).is_ok_and(|before| before.count() == entries.len());
    for entry in entries {
        let (path, before, kind) = (entry.path(), old.join(entry.file_name()), entry.file_type()?);
        let there = std::fs::symlink_metadata(&before).ok().filter(|there| there.file_type() == kind);
        let is_kept = match there.is_some() {
            _ if kind.is_dir() => keep_times(&before, &path)?,
            true if kind.is_file() => std::fs::read(&before)? == std::fs::read(&path)?,
            is_there => is_there && std::fs::read_link(&before)? == std::fs::read_link(&path)?,
        };
        is_same &= is_kept;
        // Not through a link. Where a folder cannot be opened, it is compiled again.
        if let Some(there) = there.filter(|_| is_kept && !kind.is_symlink())
            && let Ok(file) = std::fs::File::options().read(true).write(kind.is_file()).open(&path)
        {
            file.set_modified(there.modified()?)?;
        }
    }
    Ok(is_same)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    /// Cargo must compile what has changed, even if the commit is older, and may leave what has not.
    #[test]
    fn only_same_files_keep_their_times() {
        let folder = run::target().unwrap().join("tmp/dist-tests/times");
        let _ = std::fs::remove_dir_all(&folder);
        let (old, new) = (folder.join("old"), folder.join("new"));
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let write = |root: &Path, name: &str, text: &str| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            path
        };
        let files =
            [("src/same.rs", "1"), ("src/changed.rs", "1"), ("all/a.rs", "1"), ("less/a.rs", "1"), ("less/b.rs", "1")];
        for (name, text) in files.into_iter().chain([("gone.rs", "1"), ("folder/a.rs", "1")]) {
            let path = write(&old, name, text);
            let set = |path: &Path| std::fs::File::open(path).unwrap().set_modified(then).unwrap();
            set(&path);
            set(path.parent().unwrap());
        }
        let files = [("src/same.rs", "1"), ("src/changed.rs", "2"), ("all/a.rs", "1"), ("less/a.rs", "1")];
        for (name, text) in files.into_iter().chain([("src/added.rs", "1"), ("folder", "1")]) {
            write(&new, name, text);
        }
        assert!(!keep_times(&old, &new).unwrap());
        let is_kept = |name: &str| new.join(name).metadata().unwrap().modified().unwrap() == then;
        for name in ["src/same.rs", "all/a.rs", "less/a.rs", "all"] {
            assert!(is_kept(name), "{name}");
        }
        for name in ["src/changed.rs", "src/added.rs", "folder", "src", "less"] {
            assert!(!is_kept(name), "{name}");
        }
        assert!(keep_times(&old.join("all"), &new.join("all")).unwrap());
        assert!(!keep_times(&folder.join("nothing"), &new).unwrap());
    }
}
