//! The folder of the release. Nothing is written or removed outside of it, nor in a folder that this program did not make.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::name::Name;

/// A folder with files of one commit.
pub(super) struct Output {
    folder: PathBuf,
}

/// Says that this program made the folder, and of which commit.
const MARK: &str = ".made-by-cargo-xtask-dist";
const SUMS: &str = "SHA256SUMS";

impl Output {
    /// Makes the folder, or takes up one with files of the same commit. One with files of another commit is made anew; one that was not made here is refused.
    pub(super) fn open(folder: &Path, commit: &str) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        let mark = folder.join(MARK);
        let refused = || format!("{}: `cargo xtask dist` did not make it; move it away", folder.display());
        match fs::symlink_metadata(folder) {
            Ok(there) if !there.is_dir() => return Err(refused()),
            Ok(_) => match fs::read_to_string(&mark) {
                Ok(marked) if marked.trim() == commit => {}
                Ok(_) => fs::remove_dir_all(folder).map_err(failed)?,
                Err(_) if fs::read_dir(folder).map_err(failed)?.next().is_some() => return Err(refused()),
                Err(_) => {}
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        fs::create_dir_all(folder).map_err(failed)?;
        fs::write(&mark, format!("{commit}\n")).map_err(failed)?;
        Ok(Self { folder: folder.to_owned() })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a file, in place of one of the same name.
    pub(super) fn write(&self, name: &Name, bytes: &[u8]) -> Result<(), String> {
        let path = self.folder.join(name.as_str());
        // Not through a link.
        if fs::symlink_metadata(&path).is_ok_and(|there| !there.is_file()) {
            return Err(format!("{}: it is no file", path.display()));
        }
        fs::write(&path, bytes).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Copies a file that a tool has made.
    pub(super) fn take(&self, made: &Path) -> Result<(), String> {
        let bytes = fs::read(made).map_err(|error| format!("{}: {error}", made.display()))?;
        self.write(&Name::of(made)?, &bytes)
    }

    /// Writes the sums of all files; returns a line for each, with its size.
    pub(super) fn seal(&self) -> Result<Vec<String>, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.folder.display());
        let mut files = vec![];
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.file_name().is_some_and(|name| name == MARK || name == SUMS) {
                continue;
            }
            files.push((Name::of(&path)?, fs::read(&path).map_err(failed)?));
        }
        files.sort();
        self.write(&Name::new(SUMS)?, sums(&files).as_bytes())?;
        let line = |(name, bytes): &(Name, Vec<u8>)| format!("{:>10} bytes  {name}", bytes.len());
        Ok(files.iter().map(line).collect())
    }
}

/// Lines for `sha256sum --check`.
fn sums(files: &[(Name, Vec<u8>)]) -> String {
    let sum = |bytes: &[u8]| Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    files.iter().map(|(name, bytes)| format!("{}  {name}\n", sum(bytes))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;

    fn folder(name: &str) -> PathBuf {
        let folder = run::target().unwrap().join("tmp/dist-tests").join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.parent().unwrap()).unwrap();
        folder
    }

    /// The sums of FIPS 180-2, appendix B.1, and of no bytes.
    #[test]
    fn sums_are_as_sha256sum_reads_them() {
        let files = [(Name::new("a.deb").unwrap(), b"abc".to_vec()), (Name::new("b.whl").unwrap(), vec![])];
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a.deb\n\
                        e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b.whl\n";
        assert_eq!(sums(&files), expected);
    }

    #[test]
    fn folder_of_another_commit_is_made_anew() {
        let folder = folder("commits");
        let name = Name::new("a").unwrap();
        Output::open(&folder, "one").unwrap().write(&name, b"1").unwrap();
        let output = Output::open(&folder, "one").unwrap();
        assert_eq!(output.seal().unwrap(), ["         1 bytes  a"]);
        // The sums are not summed, nor is the mark.
        assert_eq!(output.seal().unwrap().len(), 1);
        assert_eq!(fs::read_to_string(folder.join(SUMS)).unwrap().lines().count(), 1);
        assert!(Output::open(&folder, "two").unwrap().seal().unwrap().is_empty());
    }

    #[test]
    fn folder_that_was_not_made_here_is_left_alone() {
        let folder = folder("strange");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("mine"), "1").unwrap();
        assert!(Output::open(&folder, "one").is_err());
        assert!(folder.join("mine").exists());
        fs::remove_file(folder.join("mine")).unwrap();
        assert!(Output::open(&folder, "one").is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_written_through() {
        let (folder, other) = (folder("links"), folder("links-other"));
        fs::create_dir_all(&other).unwrap();
        fs::write(other.join("mine"), "1").unwrap();
        std::os::unix::fs::symlink(&other, &folder).unwrap();
        assert!(Output::open(&folder, "one").is_err());
        fs::remove_file(&folder).unwrap();
        let output = Output::open(&folder, "one").unwrap();
        std::os::unix::fs::symlink(other.join("mine"), folder.join("a")).unwrap();
        assert!(output.write(&Name::new("a").unwrap(), b"2").is_err());
        assert_eq!(fs::read(other.join("mine")).unwrap(), b"1");
    }
}
