//! An incomplete file that is being written.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::sync::Arc;

use crate::frame::SMALL;
use crate::hash::{self, Digest, Value, chunk_len};
use crate::manifest::{Entry, Kind};
use crate::plan::{ANOTHER, Want};
use crate::site::{PartName, Shop, Site, Trouble};

/// A file that is being written, chunk by chunk.
#[derive(Debug)]
pub(crate) struct Part {
    shop: Arc<Shop>,
    file: File,
    size: u64,
    is_sparse: bool,
    /// What earlier transfers have left in the file: data that may have to be overwritten by zeros.
    old: u64,
    kept: Vec<Value>,
    digest: Digest,
}

/// A complete file that has no name yet.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) index: u32,
    pub(crate) want: Want,
    pub(crate) shop: Arc<Shop>,
    /// Whether its data is durable already.
    pub(crate) is_synced: bool,
}

/// Why data is not written.
#[derive(Debug)]
pub(crate) enum WriteFailed {
    /// The peer sends what it may not.
    Protocol,
    Io(io::Error),
}

impl Site {
    /// Begins a file; `kept` are the hashes of the chunks that are there.
    pub(crate) fn begin(&self, index: u32, kept: Vec<Value>) -> Result<Part, Trouble> {
        let entry = self.manifest.entry(index);
        let Kind::File { size, is_sparse } = entry.kind else { return Err(Trouble::Entry("it is no file".into())) };
        let spot = self.spot(entry.parent)?;
        let name = PartName::of(&self.manifest, index);
        let open = || {
            if kept.is_empty() {
                return match spot.shop.folder.create(name.leaf()) {
                    // Usually there is none. Trying to remove a missing file would lock the folder for as long as creating one does.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        spot.shop.folder.remove(name.leaf())?;
                        Ok((spot.shop.folder.create(name.leaf())?, 0))
                    }
                    created => Ok((created?, 0)),
                };
            }
            let file = spot.shop.folder.open(name.leaf())?;
            let old = file.metadata()?.len();
            Ok((file, old))
        };
        let (file, old) = open().map_err(|error: io::Error| self.trouble("it cannot be created", error))?;
        Ok(Part { shop: Arc::clone(&spot.shop), file, size, is_sparse, old, kept, digest: Digest::new(size) })
    }

    /// Verifies a complete file, and gives it its time and mode.
    pub(crate) fn finish(&self, index: u32, want: Want, part: Part, hash: &Value) -> Result<Ready, Trouble> {
        let entry = self.manifest.entry(index);
        let Part { shop, file, size, is_sparse, old, digest, .. } = part;
        if digest.finish() != Some(*hash) {
            self.discard(index);
            return Err(Trouble::Entry("the checksum of the file is wrong; send it again".into()));
        }
        let is_synced = size > SMALL || !shop.syncs_all;
        let end = || {
            // Holes at the end, and what was there beyond it.
            if is_sparse || old > 0 {
                file.set_len(size)?;
            }
            self.dress(&file, &entry);
            if is_synced { file.sync_all() } else { Ok(()) }
        };
        end().map_err(|error| self.trouble("it cannot be written", error))?;
        Ok(Ready { index, want, shop, is_synced })
    }

    /// Gives a complete file its name.
    pub(crate) fn place(&self, ready: &Ready) -> Result<(), Trouble> {
        let entry = self.manifest.entry(ready.index);
        let name = PartName::of(&self.manifest, ready.index);
        let spot = self.spot(entry.parent)?;
        let placed = ready.shop.folder.rename(name.leaf(), &spot.folder, entry.name, ready.want.occupied());
        placed.map_err(|error| {
            let trouble = match error.kind() {
                io::ErrorKind::AlreadyExists => self.occupied(&entry),
                // The folder is open, and the file is there.
                io::ErrorKind::InvalidInput | io::ErrorKind::NotFound | io::ErrorKind::InvalidFilename => {
                    Trouble::Entry(format!("the file system does not take this name: {error}"))
                }
                _ => self.trouble("it cannot get its name", error),
            };
            if matches!(trouble, Trouble::Entry(_)) {
                self.discard(ready.index);
            }
            trouble
        })
    }

    /// The name was free when the transfer began.
    fn occupied(&self, entry: &Entry<'_>) -> Trouble {
        let is_listed = self
            .spot(entry.parent)
            .and_then(|spot| spot.folder.listing().map_err(|error| self.trouble("", error)))
            .is_ok_and(|names| names.binary_search(&entry.name.number()).is_ok());
        Trouble::Entry(match is_listed {
            true => ANOTHER.into(),
            false => {
                "the file system takes its name and that of a file that has arrived for the same; rename one of them"
                    .into()
            }
        })
    }

    /// Removes what has arrived of a file.
    pub(crate) fn discard(&self, index: u32) {
        if let Ok(spot) = self.spot(self.manifest.entry(index).parent) {
            // If it stays, the next transfer of the file overwrites it.
            _ = spot.shop.folder.remove(PartName::of(&self.manifest, index).leaf());
        }
    }
}

impl Part {
    /// Writes the next chunk.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), WriteFailed> {
        let number = self.digest.added();
        if bytes.is_empty() || bytes.len() as u64 != chunk_len(self.size, number) {
            return Err(WriteFailed::Protocol);
        }
        let at = number * hash::CHUNK;
        self.write_at(bytes, at).map_err(WriteFailed::Io)?;
        self.digest.add(hash::value(self.size, number, bytes));
        Ok(())
    }

    fn write_at(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        if !self.is_sparse || at < self.old {
            self.file.seek(SeekFrom::Start(at))?;
            return self.file.write_all(bytes);
        }
        // Blocks of zeros become holes.
        let blocks =
            bytes.chunks(BLOCK).map(|block| block.iter().all(|byte| *byte == 0)).enumerate().collect::<Vec<_>>();
        for run in blocks.chunk_by(|one, other| one.1 == other.1).filter(|run| !run[0].1) {
            let (first, last) = (run[0].0 * BLOCK, bytes.len().min((run[run.len() - 1].0 + 1) * BLOCK));
            self.file.seek(SeekFrom::Start(at + first as u64))?;
            self.file.write_all(&bytes[first..last])?;
        }
        Ok(())
    }

    /// Keeps the next chunks, which were hashed and compared.
    pub(crate) fn keep(&mut self, count: u32) -> Result<u64, WriteFailed> {
        let mut bytes = 0;
        for _ in 0..count {
            let number = self.digest.added();
            let value = usize::try_from(number).ok().and_then(|number| self.kept.get(number));
            self.digest.add(*value.ok_or(WriteFailed::Protocol)?);
            bytes += chunk_len(self.size, number);
        }
        Ok(bytes)
    }

    /// Leaves the next chunks, at most [`ZEROS_MAX`], as holes.
    pub(crate) fn zeros(&mut self, count: u32) -> Result<u64, WriteFailed> {
        let zeros = vec![0; chunk_len(self.size, 0) as usize];
        let mut bytes = 0;
        for _ in 0..count {
            let len = chunk_len(self.size, self.digest.added());
            self.write(&zeros[..len as usize])?;
            bytes += len;
        }
        Ok(bytes)
    }
}

/// What most file systems allocate at once.
const BLOCK: usize = 4096;

/// The limit of chunks of zeros in one frame: a second of hashing.
pub(crate) const ZEROS_MAX: u32 = 1024;
