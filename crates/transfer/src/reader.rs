//! Reads a file of the sender chunk by chunk, and checks that it does not change.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::PathBuf;

use bytes::Bytes;

use crate::frame::{Frame, SMALL};
use crate::hash::{self, CHUNK, Digest, Value, chunk_len, chunks};
use crate::manifest::Stamp;
use crate::pool::Pool;
use crate::scan;

/// A file as it was listed.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    /// Whether the path may be a link: the user has named it.
    pub(crate) is_named: bool,
    pub(crate) size: u64,
    pub(crate) modified: Stamp,
    pub(crate) is_sparse: bool,
}

/// What the receiver has of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum There {
    #[default]
    Nothing,
    /// The hashes of the first chunks of an incomplete file.
    Chunks(Vec<Value>),
    /// The hash of another file, which the file replaces, and those of its chunks that need not be sent again.
    File(Value, Vec<Value>),
    /// The hash of another file, which stays.
    FileThatStays(Value),
    /// A shorter file that the file replaces if it begins like this one.
    Begin(u64, Value),
}

/// A part of a file, to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Data(Bytes),
    /// A chunk that the receiver has.
    Kept,
    /// A chunk of zeros.
    Zeros,
}

/// Reads a file.
pub(crate) struct Reader {
    source: Source,
    there: There,
    file: Option<File>,
    digest: Digest,
    pool: Pool,
}

impl Reader {
    pub(crate) fn new(source: Source, there: There) -> Self {
        let digest = Digest::new(source.size);
        Self { source, there, file: None, digest, pool: Pool::default() }
    }

    /// Compares the file with the one at the receiver: the frame that ends it if nothing has to be sent.
    pub(crate) fn compare(&mut self) -> Result<Option<Frame>, String> {
        let (size, hash) = match self.there {
            There::Nothing | There::Chunks(_) => return Ok(None),
            There::File(hash, _) | There::FileThatStays(hash) => (self.source.size, hash),
            There::Begin(size, hash) => (size, hash),
        };
        let own = self.open().and_then(|file| {
            let own = hash::file(&file, size)?;
            self.check(&file.metadata()?)?;
            self.file = Some(file);
            Ok(own)
        });
        let is_same = own.map_err(unreadable)? == hash;
        Ok(match (&self.there, is_same) {
            (There::File(..) | There::FileThatStays(_), true) => Some(Frame::Same),
            (There::FileThatStays(_), false) | (There::Begin(..), false) => Some(Frame::Differs),
            _ => None,
        })
    }

    /// The next piece, a chunk; `None` at the end.
    pub(crate) fn next(mut self) -> (Self, Result<Option<Piece>, String>) {
        let piece = self.read();
        (self, piece)
    }

    pub(crate) fn read(&mut self) -> Result<Option<Piece>, String> {
        self.try_read().map_err(unreadable)
    }

    fn try_read(&mut self) -> io::Result<Option<Piece>> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.open()?,
        };
        let number = self.digest.added();
        if number >= chunks(self.source.size) {
            self.check_end(&mut file)?;
            return Ok(None);
        }
        let len = chunk_len(self.source.size, number);
        // A small file has a single chunk.
        let is_small = len <= SMALL;
        let mut bytes = if is_small { Vec::with_capacity(len as usize) } else { self.pool.take() };
        (&mut file).take(len).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != len {
            self.check(&file.metadata()?)?;
            return Err(io::Error::other("it has less content than its size says"));
        }
        let value = hash::value(self.source.size, number, &bytes);
        self.digest.add(value);
        self.file = Some(file);
        let is_kept = match &self.there {
            There::Chunks(kept) | There::File(_, kept) => kept.get(number as usize) == Some(&value),
            There::Nothing | There::FileThatStays(_) | There::Begin(..) => false,
        };
        let is_zero = self.source.is_sparse && bytes.iter().all(|byte| *byte == 0);
        if is_kept || is_zero {
            if !is_small {
                self.pool.give(bytes);
            }
            return Ok(Some(if is_kept { Piece::Kept } else { Piece::Zeros }));
        }
        Ok(Some(Piece::Data(if is_small { bytes.into() } else { self.pool.share(bytes) })))
    }

    /// Opens the file, and checks that it has not changed.
    fn open(&self) -> io::Result<File> {
        let file = scan::open(&self.source.path, self.source.is_named)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is no file any more"));
        }
        self.check(&metadata)?;
        Ok(file)
    }

    fn check(&self, metadata: &Metadata) -> io::Result<()> {
        let is_same = metadata.len() == self.source.size && scan::modified(metadata) == self.source.modified;
        if is_same { Ok(()) } else { Err(io::Error::other(CHANGED)) }
    }

    /// Checks that nothing comes after the end.
    fn check_end(&self, file: &mut File) -> io::Result<()> {
        if file.read(&mut [0])? > 0 {
            // Files of the kernel, as in /proc, do not know their size.
            let is_special = self.source.size == 0 && self.check(&file.metadata()?).is_ok();
            let reason = "its size is said to be 0, but it has content; copy it to an ordinary file, and send that";
            return Err(io::Error::other(if is_special { reason } else { CHANGED }));
        }
        self.check(&file.metadata()?)
    }

    /// The bytes of the chunk before, for the count of what was not sent.
    pub(crate) fn len_before(&self) -> u64 {
        chunk_len(self.source.size, self.digest.added().saturating_sub(1))
    }

    /// The hash of the file, after its end.
    pub(crate) fn hash(self) -> Result<Value, String> {
        self.digest.finish().ok_or_else(|| CHANGED.into())
    }
}

/// The reason for which a file is not sent: a sentence of ours, or an error of the system.
fn unreadable(error: io::Error) -> String {
    if error.kind() == io::ErrorKind::Other { error.to_string() } else { format!("it cannot be read: {error}") }
}

const CHANGED: &str = "it has changed since the start of the transfer; send it again";

/// Chunks of zeros that are told at once.
pub(crate) const ZEROS_AT_ONCE: u32 = (64 << 20) / CHUNK as u32;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::scan::{Options, Parcel};

    /// The pieces of a file that `change` modifies after the scan, or the reason for which it is not sent.
    fn read_after(change: fn(&Path), there: There) -> Result<Vec<Piece>, String> {
        let folder = std::env::temp_dir().join(format!("anabranch-reader-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("small");
        fs::write(&path, "0123456789").unwrap();
        let parcel = Parcel::of_paths(std::slice::from_ref(&path), Options::default()).unwrap();
        let entry = parcel.manifest.entry(0);
        let source = Source {
            path: path.clone(),
            is_named: true,
            size: entry.size().unwrap(),
            modified: entry.modified,
            is_sparse: false,
        };
        change(&path);
        let mut reader = Reader::new(source, there);
        let mut pieces = vec![];
        let end = loop {
            match reader.read() {
                Ok(Some(piece)) => pieces.push(piece),
                Ok(None) => break Ok(()),
                Err(reason) => break Err(reason),
            }
        };
        fs::remove_dir_all(&folder).unwrap();
        end?;
        assert_eq!(reader.hash(), Ok(*blake3::hash(b"0123456789").as_bytes()));
        Ok(pieces)
    }

    #[test]
    fn file_that_has_changed_is_not_sent_as_if_it_were_whole() {
        let whole = Piece::Data(Bytes::from_static(b"0123456789"));
        assert_eq!(read_after(|_| (), There::Nothing), Ok(vec![whole]));
        let changes: [fn(&Path); 3] = [
            |path| fs::write(path, "0123456789a").unwrap(),
            |path| fs::write(path, "012345678").unwrap(),
            |path| {
                let file = File::options().write(true).open(path).unwrap();
                file.set_modified(SystemTime::now() - Duration::from_secs(9)).unwrap();
            },
        ];
        for change in changes {
            assert!(read_after(change, There::Nothing).is_err_and(|reason| reason.contains(CHANGED)));
        }
        let gone: fn(&Path) = |path| fs::remove_file(path).unwrap();
        assert!(read_after(gone, There::Nothing).is_err_and(|reason| reason.contains("cannot be read")));
        let becomes_folder: fn(&Path) = |path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        };
        assert!(read_after(becomes_folder, There::Nothing).is_err_and(|reason| reason.contains("no file any more")));
    }

    #[test]
    fn chunk_that_the_receiver_has_is_not_sent() {
        let kept = There::Chunks(vec![*blake3::hash(b"0123456789").as_bytes()]);
        assert_eq!(read_after(|_| (), kept), Ok(vec![Piece::Kept]));
        let other = There::Chunks(vec![*blake3::hash(b"0123456780").as_bytes()]);
        assert!(matches!(read_after(|_| (), other).unwrap()[..], [Piece::Data(_)]));
    }
}
