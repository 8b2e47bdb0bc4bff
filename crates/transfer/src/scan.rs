//! Lists what is to be sent: the given files and folders with their content.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Failed, SendError};
use crate::manifest::{ENTRIES_MAX, Entry, Kind, Manifest, Stamp};
use crate::name::Name;

/// The entries to send, their paths, and failures.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) manifest: Manifest,
    /// The path of each entry.
    pub(crate) sources: Vec<PathBuf>,
    pub(crate) failed: Vec<Failed>,
}

/// Lists everything below these paths. A link that the user gave is followed; other links are not sent.
pub(crate) fn scan(paths: &[PathBuf]) -> Result<Found, SendError> {
    let (mut found, mut known) = (Found::default(), BTreeSet::new());
    for path in paths {
        let unusable = |reason: String| SendError::Path(path.clone(), reason);
        let metadata = fs::metadata(path).map_err(|error| unusable(error.to_string()))?;
        let whole = fs::canonicalize(path).map_err(|error| unusable(error.to_string()))?;
        // `.` and `..` get the name of the folder; a link keeps its own name.
        let last =
            path.file_name().or(whole.file_name()).ok_or_else(|| unusable("it has no name to send it under".into()))?;
        let last = last.to_str().ok_or_else(|| unusable("its name is not Unicode".into()))?;
        let name = Name::new([last]).map_err(|error| unusable(error.to_string()))?;
        if !known.insert(name.clone()) {
            return Err(unusable("another path has the same name; send them one after the other".into()));
        }
        if !metadata.is_dir() && !metadata.is_file() {
            return Err(unusable("it is neither a file nor a folder".into()));
        }
        found.add(name, path.clone(), &metadata)?;
    }
    Ok(found)
}

impl Found {
    fn add(&mut self, name: Name, path: PathBuf, metadata: &Metadata) -> Result<(), SendError> {
        if self.sources.len() >= ENTRIES_MAX {
            return Err(SendError::TooMany);
        }
        let kind = if metadata.is_dir() { Kind::Folder } else { Kind::File { size: metadata.len() } };
        self.manifest.entries.push(Entry {
            name: name.clone(),
            kind,
            mode: mode(metadata),
            modified: modified(metadata),
        });
        self.sources.push(path.clone());
        if kind == Kind::Folder {
            match names(&path) {
                Ok(names) => names.into_iter().try_for_each(|inner| self.look(&name, &path.join(inner)))?,
                Err(error) => self.fail(&path, error),
            }
        }
        Ok(())
    }

    fn look(&mut self, folder: &Name, path: &Path) -> Result<(), SendError> {
        let metadata = match fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) => {
                self.fail(path, error);
                return Ok(());
            }
        };
        if metadata.is_symlink() {
            self.fail(path, "it is a symbolic link, which is not sent");
        } else if !metadata.is_dir() && !metadata.is_file() {
            self.fail(path, "it is neither a file nor a folder");
        } else {
            match path.file_name().and_then(|last| last.to_str()).map(|last| folder.join(last)) {
                Some(Ok(name)) => self.add(name, path.to_owned(), &metadata)?,
                Some(Err(error)) => self.fail(path, error),
                None => self.fail(path, "its name is not Unicode"),
            }
        }
        Ok(())
    }

    fn fail(&mut self, path: &Path, reason: impl ToString) {
        self.failed.push(Failed { name: path.display().to_string(), reason: reason.to_string() });
    }
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let mut names: Vec<_> = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    names.sort();
    Ok(names)
}

/// The time of the last modification.
pub(crate) fn modified(metadata: &Metadata) -> Stamp {
    metadata.modified().map(Stamp::of).unwrap_or_default()
}

#[cfg(unix)]
fn mode(metadata: &Metadata) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o777
}

/// The mode on systems without modes: writable or not.
#[cfg(not(unix))]
fn mode(metadata: &Metadata) -> u32 {
    match (metadata.is_dir(), metadata.permissions().readonly()) {
        (true, _) => 0o755,
        (false, true) => 0o444,
        (false, false) => 0o644,
    }
}
