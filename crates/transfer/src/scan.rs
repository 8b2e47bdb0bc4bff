//! Lists what is to be sent: the given files and folders with their content.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::Summary;
use crate::error::SendError;
use crate::manifest::{Builder, Entry, Kind, Manifest, ManifestError, Stamp};
use crate::name::Leaf;

/// What happens to symbolic links in the folders that are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// They are not sent, and each is reported.
    #[default]
    Report,
    /// Links that stay inside of their transferred folder are sent as links. Others are reported.
    Copy,
}

/// The entries to send, their paths, and failures.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) manifest: Manifest,
    /// The paths of the entries that the user has named.
    roots: BTreeMap<u32, PathBuf>,
    pub(crate) summary: Summary,
}

/// A scan in progress.
struct Scan {
    links: Links,
    builder: Builder,
    roots: BTreeMap<u32, PathBuf>,
    summary: Summary,
}

/// Lists everything below these paths. A link that the user gave is followed; others are not.
pub(crate) fn scan(paths: &[PathBuf], links: Links, compares: bool) -> Result<Found, SendError> {
    let mut scan = Scan { links, builder: Builder::default(), roots: BTreeMap::new(), summary: Summary::default() };
    let mut known = BTreeSet::new();
    for path in paths {
        let unusable = |reason: String| SendError::Path(path.clone(), reason);
        let metadata = fs::metadata(path).map_err(|error| unusable(error.to_string()))?;
        let whole = fs::canonicalize(path).map_err(|error| unusable(error.to_string()))?;
        // `.` and `..` get the name of the folder; a link keeps its own name.
        let last =
            path.file_name().or(whole.file_name()).ok_or_else(|| unusable("it has no name to send it under".into()))?;
        if !known.insert(last.to_owned()) {
            return Err(unusable("another path has the same name; send them one after the other".into()));
        }
        let kind = kind(&metadata).ok_or_else(|| unusable("it is neither a file nor a folder".into()))?;
        let name = Leaf::of(last).map_err(|error| unusable(error.to_string()))?;
        let entry = Entry { parent: None, name, kind, mode: mode(&metadata), modified: modified(&metadata) };
        let index = scan.builder.add(&entry).map_err(|error| reason(error).map_or_else(|error| error, unusable))?;
        scan.roots.insert(index, path.clone());
        if kind == Kind::Folder {
            scan.folder(index, path)?;
        }
    }
    Ok(Found { manifest: scan.builder.build(compares), roots: scan.roots, summary: scan.summary })
}

impl Scan {
    /// Adds the content of a folder.
    fn folder(&mut self, index: u32, path: &Path) -> Result<(), SendError> {
        match names(path) {
            Ok(names) => names.into_iter().try_for_each(|name| self.look(index, &path.join(name))),
            Err(error) => {
                self.fail(path, error);
                Ok(())
            }
        }
    }

    fn look(&mut self, parent: u32, path: &Path) -> Result<(), SendError> {
        let metadata = match fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(error) => {
                self.fail(path, error);
                return Ok(());
            }
        };
        let target = match (metadata.is_symlink(), self.links) {
            (false, _) => None,
            (true, Links::Report) => {
                self.fail(path, "it is a symbolic link, which is not sent (--links sends links inside of the folder)");
                return Ok(());
            }
            (true, Links::Copy) => match fs::read_link(path) {
                // The separators of other systems would be sent as letters of a name.
                Ok(_) if cfg!(not(unix)) => {
                    self.fail(path, "it is a symbolic link, which is not sent from this system");
                    return Ok(());
                }
                Ok(target) => Some(target.into_os_string().into_encoded_bytes()),
                Err(error) => {
                    self.fail(path, error);
                    return Ok(());
                }
            },
        };
        let kind = match &target {
            Some(target) => Some(Kind::Link(target)),
            None => kind(&metadata),
        };
        let Some(kind) = kind else {
            self.fail(path, "it is neither a file nor a folder");
            return Ok(());
        };
        let Some(last) = path.file_name() else { return Ok(()) };
        let added = Leaf::of(last).map_err(|error| ManifestError::Name(0, error)).and_then(|name| {
            let (mode, modified) = (mode(&metadata), modified(&metadata));
            self.builder.add(&Entry { parent: Some(parent), name, kind, mode, modified })
        });
        match added.map_err(reason) {
            Ok(index) if kind == Kind::Folder => self.folder(index, path),
            Ok(_) => Ok(()),
            Err(Ok(reason)) => {
                self.fail(path, reason);
                Ok(())
            }
            Err(Err(error)) => Err(error),
        }
    }

    fn fail(&mut self, path: &Path, reason: impl ToString) {
        self.summary.fail(anabranch::units::shown(path), reason.to_string());
    }
}

impl Found {
    /// The path of an entry, and whether the user has named it.
    pub(crate) fn path(&self, index: u32) -> (PathBuf, bool) {
        let mut names = vec![];
        let mut next = index;
        let root = loop {
            let entry = self.manifest.entry(next);
            match entry.parent {
                Some(parent) => {
                    names.push(entry.name);
                    next = parent;
                }
                None => break self.roots.get(&next).cloned().unwrap_or_default(),
            }
        };
        (names.iter().rev().fold(root, |path, name| path.join(name.os())), next == index)
    }
}

/// The reason for which an entry cannot be sent, or the error that ends the transfer.
fn reason(error: ManifestError) -> Result<String, SendError> {
    match error {
        ManifestError::TooMany => Err(SendError::TooMany),
        ManifestError::Name(_, error) => Ok(error.to_string()),
        ManifestError::Target(_) => Ok("it is a symbolic link that leads out of the folder, which is not sent".into()),
        error => Ok(error.to_string()),
    }
}

/// What is sent of a file or folder; `None` if it is neither.
fn kind(metadata: &Metadata) -> Option<Kind<'static>> {
    match (metadata.is_dir(), metadata.is_file()) {
        (true, _) => Some(Kind::Folder),
        (false, true) => Some(Kind::File { size: metadata.len(), is_sparse: is_sparse(metadata) }),
        (false, false) => None,
    }
}

/// Whether a file takes less room than it has content. Its blocks of zeros become holes at the receiver.
#[cfg(unix)]
fn is_sparse(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    // Less than a page may be stored with the name.
    metadata.len() > 4096 && metadata.blocks().saturating_mul(512) < metadata.len()
}

#[cfg(not(unix))]
fn is_sparse(_: &Metadata) -> bool {
    false
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
