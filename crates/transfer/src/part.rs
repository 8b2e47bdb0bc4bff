//! Incomplete files. They are in the folder `.anabranch` of the receiver's folder, named by the hash of their name. When complete
//! they are renamed.
//!
//! A file of more than one chunk has a list of its chunks, which records what was written:
//!
//! ```text
//! list  magic 8 | size 8 | seconds 8 | nanoseconds 4 | chaining value 32 | …
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blake3::hazmat::ChainingValue;
use tokio::sync::watch;

use crate::frame::Step;
use crate::hash::{CHUNK, Chunks};
use crate::manifest::{Entry, Kind};
use crate::name::{Name, WORKSHOP};
use crate::scan;

/// What happens to existing files that differ from the sender's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// Existing files stay, and the sender's files are refused.
    #[default]
    Keep,
    /// The sender's files replace existing ones.
    Overwrite,
}

/// The folder of a receiver.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    folder: PathBuf,
    existing: Existing,
    /// Held by a transfer while it works in the folder.
    #[expect(dead_code, reason = "it is there to be dropped")]
    holder: Option<Arc<watch::Sender<()>>>,
}

/// A file that is being written.
#[derive(Debug)]
pub(crate) struct Part {
    path: PathBuf,
    file: File,
    list: Option<(PathBuf, File)>,
    chunks: Chunks,
    /// The hash of a file that has no list.
    small: Option<blake3::Hash>,
    written: u64,
}

/// Why a file is not written.
#[derive(Debug)]
pub(crate) enum PartError {
    /// Only this file is refused, for this reason.
    Refused(String),
    /// An I/O error: probably no file can be written.
    Io(PathBuf, io::Error),
}

impl Place {
    pub(crate) fn new(folder: PathBuf, existing: Existing) -> Self {
        Self { folder, existing, holder: None }
    }

    /// The same folder, with this transfer as its holder.
    pub(crate) fn held_by(self, holder: Arc<watch::Sender<()>>) -> Self {
        Self { holder: Some(holder), ..self }
    }

    fn workshop(&self) -> PathBuf {
        self.folder.join(WORKSHOP)
    }

    fn part(&self, name: &Name, ending: &str) -> PathBuf {
        let hash = blake3::hash(name.to_string().as_bytes()).to_hex();
        self.workshop().join(format!("{}.{ending}", &hash[..32]))
    }

    /// Creates the folder.
    pub(crate) fn prepare(&self) -> Result<(), PartError> {
        fs::create_dir_all(&self.folder).map_err(|error| PartError::Io(self.folder.clone(), error))?;
        folder(&self.workshop())
    }

    /// What is still needed of an entry. Creates the folders above it.
    pub(crate) fn step(&self, entry: &Entry) -> Result<Step, PartError> {
        let parts = entry.name.parts();
        // Each parent must be a real folder, and not a link that leads elsewhere.
        let depth = if entry.kind == Kind::Folder { parts.len() } else { parts.len() - 1 };
        let mut path = self.folder.clone();
        for part in &parts[..depth] {
            path.push(part);
            match folder(&path) {
                Ok(()) => {}
                Err(PartError::Refused(reason)) => return Ok(Step::Refused(reason)),
                Err(error) => return Err(error),
            }
        }
        let Kind::File { size } = entry.kind else { return Ok(Step::Nothing) };
        let path = entry.name.below(&self.folder);
        match fs::symlink_metadata(&path) {
            Ok(there) if there.is_file() && is_same(entry, &there) => return Ok(Step::Nothing),
            Ok(there) => {
                if let Some(reason) = self.refusal(&there) {
                    return Ok(Step::Refused(reason));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Ok(Step::Refused(error.to_string())),
        }
        let chunks = self.kept(entry, size);
        Ok(if chunks.0.is_empty() { Step::All } else { Step::From(chunks) })
    }

    /// Why an existing file may not be replaced.
    fn refusal(&self, there: &fs::Metadata) -> Option<String> {
        if there.is_symlink() {
            Some("a symbolic link has this name".into())
        } else if !there.is_file() {
            Some("something other than a file has this name".into())
        } else if self.existing == Existing::Keep {
            Some("another file has this name; receive with --overwrite, or elsewhere".into())
        } else {
            None
        }
    }

    /// The chunks of an earlier transfer. The last ones are verified, as the computer may have lost them in a crash.
    fn kept(&self, entry: &Entry, size: u64) -> Chunks {
        let read = || {
            let mut list = plain_file(&self.part(&entry.name, "chunks"))?;
            let mut head = [0; LIST_HEAD];
            list.read_exact(&mut head)?;
            if head != list_head(entry, size) {
                return Ok(Chunks::default());
            }
            let mut values = vec![];
            list.take(size / CHUNK * 32).read_to_end(&mut values)?;
            let mut chunks = Chunks(values.as_chunks::<32>().0.to_vec());
            let mut part = plain_file(&self.part(&entry.name, "part"))?;
            chunks.0.truncate((part.metadata()?.len() / CHUNK) as usize);
            // If all chunks are present, the last one is requested again, and with it the end of the file.
            if chunks.0.len() as u64 * CHUNK >= size {
                chunks.0.pop();
            }
            let suspects = chunks.0.len().saturating_sub(LOOKED_AT);
            let (mut number, mut bytes) = (suspects, vec![0; CHUNK as usize]);
            part.seek(SeekFrom::Start(suspects as u64 * CHUNK))?;
            while number < chunks.0.len() {
                part.read_exact(&mut bytes)?;
                if Chunks::of(number as u64, &bytes) != chunks.0[number] {
                    chunks.0.truncate(number);
                }
                number += 1;
            }
            Ok::<_, io::Error>(chunks)
        };
        // If the list is unreadable, everything is requested again.
        read().unwrap_or_default()
    }

    /// Opens a file for writing, after the kept chunks.
    pub(crate) fn open(&self, entry: &Entry, size: u64, kept: Chunks) -> Result<Part, PartError> {
        let path = self.part(&entry.name, "part");
        let written = kept.0.len() as u64 * CHUNK;
        let file = writable(&path, written).map_err(|error| PartError::Io(path.clone(), error))?;
        let list = if size > CHUNK { Some(self.open_list(entry, size, &kept)?) } else { None };
        Ok(Part { path, file, list, chunks: kept, small: None, written })
    }

    fn open_list(&self, entry: &Entry, size: u64, kept: &Chunks) -> Result<(PathBuf, File), PartError> {
        let path = self.part(&entry.name, "chunks");
        let open = || {
            let len = if kept.0.is_empty() { 0 } else { (LIST_HEAD + 32 * kept.0.len()) as u64 };
            let mut list = writable(&path, len)?;
            if kept.0.is_empty() {
                list.write_all(&list_head(entry, size))?;
            }
            Ok(list)
        };
        open().map(|list| (path.clone(), list)).map_err(|error| PartError::Io(path.clone(), error))
    }

    /// Verifies a complete file and renames it.
    pub(crate) fn finish(&self, entry: &Entry, part: Part, hash: &[u8; 32]) -> Result<(), PartError> {
        let Part { path, file, list, chunks, small, written } = part;
        let io = |path: &Path| {
            let path = path.to_owned();
            move |error| PartError::Io(path, error)
        };
        let own = match small {
            Some(hash) => hash,
            None if chunks.0.len() > 1 => chunks.root(),
            None => blake3::hash(&[]),
        };
        if entry.size() != Some(written) || own != *hash {
            self.discard(entry);
            return Err(PartError::Refused("the checksum of the file is wrong; send it again".into()));
        }
        let target = entry.name.below(&self.folder);
        if let Some(reason) = fs::symlink_metadata(&target).ok().and_then(|there| self.refusal(&there)) {
            return Err(PartError::Refused(reason));
        }
        if list.is_some() {
            file.sync_data().map_err(io(&path))?;
        }
        file.set_modified(entry.modified.time()).map_err(io(&path))?;
        set_mode(&path, entry.mode).map_err(io(&path))?;
        drop(file);
        fs::rename(&path, &target).map_err(io(&target))?;
        if let Some((list, file)) = list {
            drop(file);
            // The list is no longer valid.
            _ = fs::remove_file(list);
        }
        Ok(())
    }

    /// Deletes the chunks of a file that has changed at the sender.
    pub(crate) fn discard(&self, entry: &Entry) {
        for ending in ["chunks", "part"] {
            _ = fs::remove_file(self.part(&entry.name, ending));
        }
    }

    /// Sets modes and times of folders after everything is written, and removes the folder for incomplete files.
    pub(crate) fn close<'a>(&self, folders: impl DoubleEndedIterator<Item = &'a Entry>) {
        // The removal fails while the folder contains anything.
        _ = fs::remove_dir(self.workshop());
        for entry in folders.rev() {
            let path = entry.name.below(&self.folder);
            // If the time of a folder cannot be set, the folder is still valid.
            _ = File::open(&path).and_then(|folder| folder.set_modified(entry.modified.time()));
            _ = set_mode(&path, entry.mode);
        }
    }
}

impl Part {
    /// Writes the next chunk.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), PartError> {
        self.file.write_all(bytes).map_err(|error| PartError::Io(self.path.clone(), error))?;
        match &mut self.list {
            None => self.small = Some(blake3::hash(bytes)),
            Some((path, list)) => {
                let value: ChainingValue = Chunks::of(self.chunks.0.len() as u64, bytes);
                self.chunks.0.push(value);
                list.write_all(&value).map_err(|error| PartError::Io(path.clone(), error))?;
            }
        }
        self.written += bytes.len() as u64;
        Ok(())
    }

    pub(crate) fn written(&self) -> u64 {
        self.written
    }
}

/// Creates a folder, unless it exists.
fn folder(path: &Path) -> Result<(), PartError> {
    match fs::symlink_metadata(path) {
        Ok(there) if there.is_dir() => Ok(()),
        Ok(_) => Err(PartError::Refused(format!("{} is no folder", path.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir(path).map_err(|error| PartError::Io(path.to_owned(), error))
        }
        Err(error) => Err(PartError::Io(path.to_owned(), error)),
    }
}

/// Whether a file has the size and time of an entry. Some file systems store whole seconds only.
fn is_same(entry: &Entry, there: &fs::Metadata) -> bool {
    let modified = scan::modified(there);
    let is_time = modified.seconds == entry.modified.seconds
        && (modified.nanoseconds == entry.modified.nanoseconds || modified.nanoseconds == 0);
    entry.size() == Some(there.len()) && is_time
}

/// Opens an existing plain file.
fn plain_file(path: &Path) -> io::Result<File> {
    if fs::symlink_metadata(path)?.is_file() { File::open(path) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

/// Opens a file for writing after its first `keep` bytes.
fn writable(path: &Path, keep: u64) -> io::Result<File> {
    if keep == 0 {
        let new = || OpenOptions::new().write(true).create_new(true).open(path);
        // Usually the file does not exist. Trying to remove a missing file would lock the folder for as long as creating a file
        // does.
        return match new() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                _ = fs::remove_file(path);
                new()
            }
            opened => opened,
        };
    }
    plain_file(path)?;
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.set_len(keep)?;
    file.seek(SeekFrom::End(0))?;
    Ok(file)
}

fn list_head(entry: &Entry, size: u64) -> [u8; LIST_HEAD] {
    let mut head = [0; LIST_HEAD];
    head[..8].copy_from_slice(LIST_MAGIC);
    head[8..16].copy_from_slice(&size.to_le_bytes());
    head[16..24].copy_from_slice(&entry.modified.seconds.to_le_bytes());
    head[24..].copy_from_slice(&entry.modified.nanoseconds.to_le_bytes());
    head
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    let mut permissions = fs::metadata(path)?.permissions();
    permissions.set_readonly(mode & 0o200 == 0);
    fs::set_permissions(path, permissions)
}

const LIST_MAGIC: &[u8; 8] = b"ab-part1";
const LIST_HEAD: usize = 28;

/// Chunks verified on resumption. A power failure usually loses fewer.
const LOOKED_AT: usize = 32;
