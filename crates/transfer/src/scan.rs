//! Lists what is to be sent: the given files and folders with their content, a stream, a text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bytes::Bytes;

use crate::Summary;
use crate::attributes::{Attributes, Found};
use crate::error::SendError;
use crate::manifest::{Asks, Builder, Entry, Kind, Manifest, ManifestError, Stamp};
use crate::name::Leaf;
use crate::site::locked;

/// How files are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// What happens to symbolic links.
    pub links: Links,
    /// How files that are there are compared.
    pub compare: Compare,
    /// Whether files with several names stay one file (hard links), and extended attributes of users (`user.…`, Linux) are sent. Files that are
    /// there already do not get other attributes.
    pub archives: bool,
}

/// How a file is recognised that the receiver has already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compare {
    /// By size and time. A file of another time but the same size is compared by content.
    #[default]
    SizeAndTime,
    /// By its content: both ends hash the file, and the receiver's is replaced or stays as if its size differed.
    Content,
    /// By its content, and nothing is sent or written: what is missing at the receiver or differs is a failure.
    Only,
}

/// What happens to symbolic links in the folders that are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// They are not sent, and each is reported.
    #[default]
    Report,
    /// Links that stay inside of their transferred folder are sent as links. Others are reported.
    Copy,
}

/// Something to send.
pub enum Item {
    /// A file or a folder with its content. If it is a symbolic link, it is followed; links in the folder are not.
    Path(PathBuf),
    /// What can be read from here until its end, as a file of this name. It is sent once, and not again after an interruption.
    Stream {
        /// The name of the file that the receiver makes of it.
        name: String,
        /// Where it comes from.
        from: Box<dyn Read + Send>,
    },
    /// A text of at most 64 KiB, for the receiver's user to read.
    Text(String),
}

/// What is sent: a list of files and folders, and of streams. It can be sent to any number of receivers, also at once; a stream only to
/// the first one.
pub struct Parcel {
    pub(crate) manifest: Manifest,
    /// The paths of the entries that the user has named.
    roots: BTreeMap<u32, PathBuf>,
    streams: Mutex<BTreeMap<u32, Box<dyn Read + Send>>>,
    texts: BTreeMap<u32, Bytes>,
    pub(crate) summary: Summary,
}

/// A scan in progress.
struct Scan {
    options: Options,
    builder: Builder,
    roots: BTreeMap<u32, PathBuf>,
    /// The first name of each file that has several.
    originals: BTreeMap<(u64, u64), u32>,
    /// Kinds of attributes that are not sent.
    left: BTreeSet<String>,
    summary: Summary,
}

impl Parcel {
    /// Lists all that is to be sent.
    ///
    /// # Errors
    /// If an item cannot be sent. Of files and folders inside of a folder, those that cannot be read are failures in the summary of the transfer.
    pub fn pack(items: Vec<Item>, options: Options) -> Result<Self, SendError> {
        let mut scan = Scan {
            options,
            builder: Builder::default(),
            roots: BTreeMap::new(),
            originals: BTreeMap::new(),
            left: BTreeSet::new(),
            summary: Summary::default(),
        };
        let (mut known, mut streams, mut texts) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        for item in items {
            match item {
                Item::Path(path) => scan.root(&path, &mut known)?,
                Item::Stream { name, from } => {
                    _ = streams.insert(scan.without_file(&name, Kind::Stream, &mut known)?, from);
                }
                Item::Text(text) if text.len() > TEXT_MAX => {
                    let why = format!("a text has at most {TEXT_MAX} bytes; send it as a file");
                    return Err(SendError::Path(TEXT_NAME.into(), why));
                }
                Item::Text(text) => {
                    _ = texts.insert(scan.without_file(TEXT_NAME, Kind::Text, &mut known)?, text.into());
                }
            }
        }
        let asks = Asks { compares: options.compare == Compare::Content, verifies: options.compare == Compare::Only };
        let left = scan.left.iter().take(LEFT_MAX).map(|name| format!("attributes {name} are not sent"));
        scan.summary.remarks.extend(left);
        scan.summary.verified = asks.verifies;
        Ok(Self {
            manifest: scan.builder.build(asks),
            roots: scan.roots,
            streams: Mutex::new(streams),
            texts,
            summary: scan.summary,
        })
    }

    /// Lists everything below these paths.
    ///
    /// # Errors
    /// As [`Self::pack`].
    pub fn of_paths(paths: &[PathBuf], options: Options) -> Result<Self, SendError> {
        Self::pack(paths.iter().cloned().map(Item::Path).collect(), options)
    }

    /// Whether it had streams, and all of them were begun.
    pub fn is_used_up(&self) -> bool {
        locked(&self.streams).is_empty() && self.manifest.entries().any(|(_, entry)| entry.kind == Kind::Stream)
    }

    /// Where a stream or a text is read; `None` if somebody reads it already.
    pub(crate) fn input(&self, index: u32) -> Option<Box<dyn Read + Send>> {
        match self.texts.get(&index) {
            Some(text) => Some(Box::new(io::Cursor::new(text.clone()))),
            None => locked(&self.streams).remove(&index),
        }
    }
}

impl fmt::Debug for Parcel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parcel").field("roots", &self.roots).finish_non_exhaustive()
    }
}

impl Scan {
    /// Adds a stream or a text.
    fn without_file(
        &mut self,
        name: &str,
        kind: Kind<'_>,
        known: &mut BTreeSet<std::ffi::OsString>,
    ) -> Result<u32, SendError> {
        let unusable = |reason: String| SendError::Path(name.into(), reason);
        if !known.insert(name.into()) {
            return Err(unusable("another item has the same name; send them one after the other".into()));
        }
        let leaf = Leaf::new(name.as_bytes()).map_err(|error| unusable(error.to_string()))?;
        let modified = Stamp::of(std::time::SystemTime::now());
        let attributes = Attributes::default();
        let entry = Entry { parent: None, name: leaf, kind, mode: 0o666, modified, attributes };
        self.builder.add(&entry).map_err(|error| reason(error).map_or_else(|error| error, unusable))
    }

    /// Adds a path that the user has named, with everything below it.
    fn root(&mut self, path: &Path, known: &mut BTreeSet<std::ffi::OsString>) -> Result<(), SendError> {
        let unusable = |reason: String| SendError::Path(path.to_owned(), reason);
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
        let kind = self.original(&metadata).map_or(kind, Kind::Name);
        let found = self.attributes(path, kind, true);
        let (mode, modified) = (mode(&metadata), modified(&metadata));
        let entry = Entry { parent: None, name, kind, mode, modified, attributes: found.attributes() };
        let index = self.builder.add(&entry).map_err(|error| reason(error).map_or_else(|error| error, unusable))?;
        self.note(&metadata, index);
        self.roots.insert(index, path.to_owned());
        if kind == Kind::Folder {
            self.folder(index, path)?;
        }
        Ok(())
    }

    /// The file of which this is another name, if such names are sent.
    fn original(&self, metadata: &Metadata) -> Option<u32> {
        let id = several_names(metadata).filter(|_| self.options.archives)?;
        self.originals.get(&id).copied()
    }

    /// Remembers a file that has other names.
    fn note(&mut self, metadata: &Metadata, index: u32) {
        if let Some(id) = several_names(metadata).filter(|_| self.options.archives) {
            self.originals.entry(id).or_insert(index);
        }
    }

    /// The attributes of a file or folder, if they are sent.
    fn attributes(&mut self, path: &Path, kind: Kind<'_>, is_named: bool) -> Found {
        if !self.options.archives || !matches!(kind, Kind::File { .. } | Kind::Folder) {
            return Found::default();
        }
        match open(path, is_named).and_then(|file| Found::of(&file)) {
            Ok(found) => {
                // A receiver wants to know the kinds, not each file.
                self.left.extend(found.left.iter().take(LEFT_MAX.saturating_sub(self.left.len())).cloned());
                found
            }
            // What cannot be opened fails when it is sent.
            Err(_) => Found::default(),
        }
    }

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
        let target = match (metadata.is_symlink(), self.options.links) {
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
        let kind = self.original(&metadata).map_or(kind, Kind::Name);
        let found = self.attributes(path, kind, false);
        let added = Leaf::of(last).map_err(|error| ManifestError::Name(0, error)).and_then(|name| {
            let (mode, modified, attributes) = (mode(&metadata), modified(&metadata), found.attributes());
            self.builder.add(&Entry { parent: Some(parent), name, kind, mode, modified, attributes })
        });
        match added.map_err(reason) {
            Ok(index) if kind == Kind::Folder => self.folder(index, path),
            Ok(index) => {
                self.note(&metadata, index);
                Ok(())
            }
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

impl Parcel {
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

/// The identity of a file that has several names.
#[cfg(unix)]
fn several_names(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.is_file() && metadata.nlink() > 1).then(|| (metadata.dev(), metadata.ino()))
}

/// This system does not tell.
#[cfg(not(unix))]
fn several_names(_: &Metadata) -> Option<(u64, u64)> {
    None
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

/// The longest text in bytes.
pub(crate) const TEXT_MAX: usize = 64 << 10;

/// The name of a text in messages.
const TEXT_NAME: &str = "the text";

/// Kinds of attributes that are mentioned.
const LEFT_MAX: usize = 20;

/// Opens a file. Only one that the user has named may be a link.
#[cfg(unix)]
pub(crate) fn open(path: &Path, is_named: bool) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;

    use rustix::fs::OFlags;
    // Somebody may have replaced it by a pipe, which would be waited for.
    let flags = if is_named { OFlags::NONBLOCK } else { OFlags::NONBLOCK | OFlags::NOFOLLOW };
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

#[cfg(not(unix))]
pub(crate) fn open(path: &Path, is_named: bool) -> io::Result<File> {
    let is_plain = is_named || path.symlink_metadata()?.is_file();
    if !is_plain {
        return Err(io::Error::other("it is no file any more"));
    }
    OpenOptions::new().read(true).open(path)
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
