//! The manifest: the list of files to send.
//!
//! ```text
//! manifest  magic 8 | entry …                                  numbers are little endian
//! entry     kind 1 | mode 4 | seconds 8 | nanoseconds 4 | size 8 | parts 2 | length 2, part | …
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use crate::name::{Name, NameError};

/// The entries to send, in the order of their indices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) entries: Vec<Entry>,
}

/// A file or a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: Name,
    pub(crate) kind: Kind,
    /// The Unix mode.
    pub(crate) mode: u32,
    pub(crate) modified: Stamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Folder,
    File { size: u64 },
}

/// The time of the last modification, since 1970. Earlier times are not supported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) seconds: u64,
    pub(crate) nanoseconds: u32,
}

/// Why a manifest is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestError {
    /// Not a manifest, or one of another version.
    Magic,
    /// This entry is incomplete, or of an unknown kind.
    Entry(usize),
    /// This entry's name is not allowed.
    Name(usize, NameError),
    /// This entry's name occurs twice, or is below a file.
    Twice(usize, Name),
    /// The limit of entries is exceeded.
    TooMany,
}

impl Manifest {
    pub(crate) fn write(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(64 * self.entries.len() + MAGIC.len());
        out.put_slice(MAGIC);
        for entry in &self.entries {
            let (kind, size) = match entry.kind {
                Kind::Folder => (0, 0),
                Kind::File { size } => (1, size),
            };
            out.put_u8(kind);
            out.put_u32_le(entry.mode);
            out.put_u64_le(entry.modified.seconds);
            out.put_u32_le(entry.modified.nanoseconds);
            out.put_u64_le(size);
            out.put_u16_le(entry.name.parts().len() as u16);
            for part in entry.name.parts() {
                out.put_u16_le(part.len() as u16);
                out.put_slice(part.as_bytes());
            }
        }
        out.freeze()
    }

    /// Parses a peer's manifest.
    pub(crate) fn read(mut bytes: Bytes) -> Result<Self, ManifestError> {
        if bytes.len() < MAGIC.len() || bytes.split_to(MAGIC.len()) != MAGIC[..] {
            return Err(ManifestError::Magic);
        }
        let (mut entries, mut known) = (vec![], BTreeMap::new());
        while !bytes.is_empty() {
            let number = entries.len();
            if number >= ENTRIES_MAX {
                return Err(ManifestError::TooMany);
            }
            let entry = Entry::read(number, &mut bytes)?;
            let is_folder = entry.kind == Kind::Folder;
            if known.insert(entry.name.parts().to_vec(), is_folder).is_some() {
                return Err(ManifestError::Twice(number, entry.name));
            }
            entries.push(entry);
        }
        // No entry may be below a file.
        for (number, entry) in entries.iter().enumerate() {
            let parts = entry.name.parts();
            if (1..parts.len()).any(|depth| known.get(&parts[..depth]) == Some(&false)) {
                return Err(ManifestError::Twice(number, entry.name.clone()));
            }
        }
        Ok(Self { entries })
    }

    /// The number of files and their total bytes.
    pub(crate) fn totals(&self) -> (u64, u64) {
        self.entries.iter().fold((0, 0), |(files, bytes), entry| match entry.kind {
            Kind::Folder => (files, bytes),
            Kind::File { size } => (files + 1, bytes.saturating_add(size)),
        })
    }
}

impl Entry {
    fn read(number: usize, bytes: &mut Bytes) -> Result<Self, ManifestError> {
        let short = |_| ManifestError::Entry(number);
        let kind = bytes.try_get_u8().map_err(short)?;
        let mode = bytes.try_get_u32_le().map_err(short)?;
        let seconds = bytes.try_get_u64_le().map_err(short)?;
        let nanoseconds = bytes.try_get_u32_le().map_err(short)?;
        let size = bytes.try_get_u64_le().map_err(short)?;
        let mut parts = vec![];
        for _ in 0..bytes.try_get_u16_le().map_err(short)? {
            let len = usize::from(bytes.try_get_u16_le().map_err(short)?);
            if bytes.len() < len {
                return Err(ManifestError::Entry(number));
            }
            let part = String::from_utf8(bytes.split_to(len).to_vec());
            parts.push(part.map_err(|_| ManifestError::Name(number, NameError::Unicode))?);
        }
        let name = Name::new(parts).map_err(|error| ManifestError::Name(number, error))?;
        let kind = match kind {
            0 => Kind::Folder,
            1 if size <= SIZE_MAX => Kind::File { size },
            _ => return Err(ManifestError::Entry(number)),
        };
        let modified = Stamp { seconds: seconds.min(SECONDS_MAX), nanoseconds: nanoseconds.min(999_999_999) };
        Ok(Self { name, kind, mode: mode & 0o777, modified })
    }

    pub(crate) fn size(&self) -> Option<u64> {
        match self.kind {
            Kind::Folder => None,
            Kind::File { size } => Some(size),
        }
    }
}

impl Stamp {
    pub(crate) fn of(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { seconds: since.as_secs(), nanoseconds: since.subsec_nanos() }
    }

    pub(crate) fn time(self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::new(self.seconds, self.nanoseconds)
    }
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => f.write_str("the list of files is invalid, or of another version of anabranch"),
            Self::Entry(number) => write!(f, "entry {number} of the list of files cannot be read"),
            Self::Name(number, error) => write!(f, "entry {number} of the list of files is refused: {error}"),
            Self::Twice(number, name) => {
                write!(f, "entry {number} of the list of files is refused: {name} is there twice")
            }
            Self::TooMany => write!(f, "the list of files has more than {ENTRIES_MAX} entries"),
        }
    }
}

impl std::error::Error for ManifestError {}

/// The magic bytes, which include the version.
const MAGIC: &[u8; 8] = b"ab-list1";

/// The limit on entries: more than ten times the files of the Linux kernel's sources; they take 200 MB of memory.
pub(crate) const ENTRIES_MAX: usize = 1_000_000;

/// The limit on a manifest in bytes.
pub(crate) const MANIFEST_MAX: usize = 256 << 20;

/// The limit on file sizes: half of the range of signed numbers.
const SIZE_MAX: u64 = 1 << 62;

/// The year 9999.
const SECONDS_MAX: u64 = 253_402_300_799;

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, kind: Kind) -> Entry {
        let modified = Stamp { seconds: 1_700_000_000, nanoseconds: 123_456_789 };
        Entry { name: Name::new(name.split('/')).unwrap(), kind, mode: 0o644, modified }
    }

    fn manifest() -> Manifest {
        let entries = vec![
            entry("a", Kind::Folder),
            entry("a/b.txt", Kind::File { size: 1 << 40 }),
            entry("a/ä", Kind::Folder),
            entry("c", Kind::File { size: 0 }),
        ];
        Manifest { entries }
    }

    #[test]
    fn a_manifest_comes_back() {
        assert_eq!(Manifest::read(manifest().write()), Ok(manifest()));
        assert_eq!(manifest().totals(), (2, 1 << 40));
    }

    #[test]
    fn a_manifest_that_is_cut_or_spoilt_is_refused_or_harmless() {
        let whole = manifest().write();
        for len in 0..whole.len() {
            let is_whole = matches!(Manifest::read(whole.slice(..len)), Ok(read) if read.entries.len() < 4);
            assert!(is_whole || Manifest::read(whole.slice(..len)).is_err(), "{len}");
        }
        for place in 0..whole.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bytes = whole.to_vec();
                bytes[place] ^= flip;
                // Whatever the bytes are, no name may leave the folder.
                if let Ok(read) = Manifest::read(bytes.into()) {
                    assert!(read.entries.iter().all(|entry| Name::new(entry.name.parts().iter().cloned()).is_ok()));
                }
            }
        }
    }

    #[test]
    fn nothing_is_there_twice() {
        let (file, folder) = (Kind::File { size: 1 }, Kind::Folder);
        for entries in [
            [("a", file), ("a", file)],
            [("a", file), ("a", folder)],
            [("a", file), ("a/b", file)],
            [("a/b/c", file), ("a/b", file)],
        ] {
            let manifest = Manifest { entries: entries.map(|(name, kind)| entry(name, kind)).to_vec() };
            assert!(matches!(Manifest::read(manifest.write()), Err(ManifestError::Twice(..))), "{entries:?}");
        }
    }
}
