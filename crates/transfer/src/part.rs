//! An incomplete file that is being written.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::sync::Arc;

use tokio::sync::watch;

use crate::frame::SMALL;
use crate::hash::{self, Digest, Value, chunk_len};
use crate::manifest::{Entry, Kind};
use crate::plan::Want;
use crate::shared::Kept;
use crate::site::{ANOTHER, PartName, Shop, Site, Trouble};

/// A file that is being written, chunk by chunk.
#[derive(Debug)]
pub(crate) struct Part {
    shop: Arc<Shop>,
    file: File,
    is_sparse: bool,
    /// What earlier transfers have left in the file: data that may have to be overwritten by zeros.
    old: u64,
    kept: Kept,
    /// The file that is replaced, if chunks of it are kept.
    replaced: Option<File>,
    sum: Sum,
    passing: Option<Passing>,
}

/// What has arrived of a stream is removed when it is dropped, unless it has got its name: nobody can send the rest later.
#[derive(Debug)]
pub(crate) struct Passing {
    shop: Arc<Shop>,
    name: PartName,
    /// The next transfer waits for this.
    _holder: Arc<watch::Sender<()>>,
}

impl Drop for Passing {
    fn drop(&mut self) {
        _ = self.shop.folder.remove(self.name.leaf());
    }
}

/// The hash of what was written so far.
#[derive(Debug)]
enum Sum {
    /// Of a file of this size.
    File(u64, Digest),
    /// Of a stream, which has had so many bytes.
    Stream(u64, Box<blake3::Hasher>),
}

/// A complete file that has no name yet.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) index: u32,
    pub(crate) want: Want,
    pub(crate) shop: Arc<Shop>,
    /// Whether its data is durable already.
    pub(crate) is_synced: bool,
    _passing: Option<Passing>,
}

/// Why data is not written.
#[derive(Debug)]
pub(crate) enum WriteFailed {
    /// The peer sends what it may not.
    Protocol,
    Io(io::Error),
}

impl Site {
    /// Begins a file or a stream.
    pub(crate) fn begin(&self, index: u32, kept: Kept) -> Result<Part, Trouble> {
        let entry = self.manifest.entry(index);
        let (sum, is_sparse) = match entry.kind {
            Kind::File { size, is_sparse } => (Sum::File(size, Digest::new(size)), is_sparse),
            _ => (Sum::Stream(0, Box::default()), false),
        };
        let spot = self.spot(entry.parent)?;
        let shop = spot.shop()?;
        let name = PartName::of(&self.manifest, index);
        let open = || {
            if kept.own == 0 {
                return Ok((shop.create(&name)?, 0));
            }
            let file = shop.folder.open(name.leaf())?;
            let old = file.metadata()?.len();
            Ok((file, old))
        };
        let (file, old) = open().map_err(|error: io::Error| self.trouble("it cannot be created", error))?;
        let replaced = (kept.values.len() > kept.own).then(|| spot.folder.read(entry.name)).transpose();
        let replaced = replaced.map_err(|error| self.trouble("the file that it replaces cannot be read", error))?;
        let passing = match sum {
            Sum::File(..) => None,
            Sum::Stream(..) => Some(Passing { shop: Arc::clone(shop), name, _holder: self.holder() }),
        };
        Ok(Part { shop: Arc::clone(shop), file, is_sparse, old, kept, replaced, sum, passing })
    }

    /// Verifies a complete file, and gives it its time and mode.
    pub(crate) fn finish(&self, index: u32, want: Want, part: Part, hash: &Value) -> Result<Ready, Trouble> {
        let entry = self.manifest.entry(index);
        let Part { shop, file, is_sparse, old, sum, passing, .. } = part;
        let (size, own) = sum.finish();
        if own != Some(*hash) {
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
        Ok(Ready { index, want, shop, is_synced, _passing: passing })
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
        if let Ok(spot) = self.spot(self.manifest.entry(index).parent)
            && let Ok(shop) = spot.shop()
        {
            // If it stays, the next transfer of the file overwrites it.
            _ = shop.folder.remove(PartName::of(&self.manifest, index).leaf());
        }
    }
}

impl Part {
    /// Writes the next chunk, or the next piece of a stream.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), WriteFailed> {
        let at = match &self.sum {
            Sum::File(size, digest) if bytes.len() as u64 == chunk_len(*size, digest.added()) => {
                digest.added() * hash::CHUNK
            }
            Sum::Stream(at, _) => *at,
            Sum::File(..) => return Err(WriteFailed::Protocol),
        };
        if bytes.is_empty() {
            return Err(WriteFailed::Protocol);
        }
        self.write_at(bytes, at).map_err(WriteFailed::Io)?;
        self.sum.add(bytes);
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

    /// Keeps the next chunks, which were hashed and compared. Those of the file that is replaced are copied.
    pub(crate) fn keep(&mut self, count: u32) -> Result<u64, WriteFailed> {
        let mut kept = 0;
        let mut copy = vec![];
        for _ in 0..count {
            let Sum::File(size, digest) = &mut self.sum else { return Err(WriteFailed::Protocol) };
            let (size, number) = (*size, digest.added());
            let at = usize::try_from(number).map_err(|_| WriteFailed::Protocol)?;
            let value = *self.kept.values.get(at).ok_or(WriteFailed::Protocol)?;
            let len = chunk_len(size, number);
            if at < self.kept.own {
                digest.add(value);
            } else {
                let replaced = self.replaced.as_ref().ok_or(WriteFailed::Protocol)?;
                copy.resize(len as usize, 0);
                hash::read_at(replaced, &mut copy, number * hash::CHUNK).map_err(WriteFailed::Io)?;
                if hash::value(size, number, &copy) != value {
                    let why = "the file that it replaces has changed meanwhile; send it again";
                    return Err(WriteFailed::Io(io::Error::other(why)));
                }
                self.write(&copy)?;
            }
            kept += len;
        }
        Ok(kept)
    }

    /// Leaves the next chunks, at most [`ZEROS_MAX`], as holes.
    pub(crate) fn zeros(&mut self, count: u32) -> Result<u64, WriteFailed> {
        let mut bytes = 0;
        let mut zeros = vec![];
        for _ in 0..count {
            let Sum::File(size, digest) = &self.sum else { return Err(WriteFailed::Protocol) };
            let len = chunk_len(*size, digest.added());
            zeros.resize(len as usize, 0);
            self.write(&zeros)?;
            bytes += len;
        }
        Ok(bytes)
    }

    /// The bytes of a stream so far.
    pub(crate) fn streamed(&self) -> u64 {
        if let Sum::Stream(bytes, _) = self.sum { bytes } else { 0 }
    }
}

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        match self {
            Self::File(size, digest) => digest.add(hash::value(*size, digest.added(), bytes)),
            Self::Stream(at, hasher) => {
                hasher.update(bytes);
                *at += bytes.len() as u64;
            }
        }
    }

    /// The size, and the hash if all is there.
    fn finish(self) -> (u64, Option<Value>) {
        match self {
            Self::File(size, digest) => (size, digest.finish()),
            Self::Stream(size, hasher) => (size, Some(*hasher.finalize().as_bytes())),
        }
    }
}

/// What most file systems allocate at once.
const BLOCK: usize = 4096;

/// The limit of chunks of zeros in one frame: a second of hashing.
pub(crate) const ZEROS_MAX: u32 = 1024;
