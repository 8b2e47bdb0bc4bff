//! The manifest: the list of files to send.
//!
//! ```text
//! manifest  "ab-list" | version 1 | flags 1 | entry …          numbers are little endian
//! entry     kind 1 | parent 4 | mode 2 | seconds 8 | nanoseconds 4 | size 8 | length 1 | name | target, of a link | attributes
//! flags     1: compare the content of files that are there; 2: do only that, and write nothing
//! kind      0 folder, 1 file, 2 file with holes, 3 symbolic link, whose size is the length of its target, 4 stream of unknown
//!           length, 5 text, a stream that is shown, 6 another name of an earlier file, whose number is the size;
//!           and 128 if attributes follow: length 4 | attribute …, as in `attributes`
//! parent    the number of an earlier entry, a folder, or 2^32 - 1
//! seconds   since 1970, signed
//! ```
//!
//! An entry has the name of one file, so no entry is longer than its own name and target. The list is kept as it came, with eight
//! bytes more for each entry.

use std::cmp::Ordering;
use std::fmt;
use std::time::{Duration, SystemTime};

use bytes::{Buf as _, BufMut as _, Bytes};

use anabranch::units::shown_bytes;

use crate::attributes::Attributes;
use crate::name::{Leaf, NameError, stays_inside};

/// The entries to send, in the order of their indices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Manifest {
    bytes: Bytes,
    rows: Vec<Row>,
    pub(crate) asks: Asks,
}

/// What the sender asks for, for all files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asks {
    /// To compare files that are there by their content.
    pub(crate) compares: bool,
    /// To do only that, and to write nothing.
    pub(crate) verifies: bool,
}

/// A manifest that is being made.
#[derive(Debug)]
pub(crate) struct Builder {
    bytes: Vec<u8>,
    rows: Vec<Row>,
}

/// The place of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    at: u32,
    /// Folders above it.
    depth: u16,
    /// Bytes of its path.
    length: u16,
}

/// A file, a folder or a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    /// The folder it is in; `None` for those that the sender's user has named.
    pub(crate) parent: Option<u32>,
    pub(crate) name: Leaf<'a>,
    pub(crate) kind: Kind<'a>,
    /// The Unix mode, of which only the permissions are left.
    pub(crate) mode: u32,
    pub(crate) modified: Stamp,
    /// Extended attributes of a file or folder.
    pub(crate) attributes: Attributes<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    Folder,
    /// With its size in bytes, and whether it has holes.
    File {
        size: u64,
        is_sparse: bool,
    },
    /// A symbolic link to this target.
    Link(&'a [u8]),
    /// What comes until it ends.
    Stream,
    /// The same, to be shown to the receiver's user.
    Text,
    /// Another name of the file with this number: a hard link.
    Name(u32),
}

/// The time of the last modification, since 1970 or, negative, before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) seconds: i64,
    /// After these seconds.
    pub(crate) nanoseconds: u32,
}

/// Why a manifest is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestError {
    /// Not a manifest.
    Magic,
    /// A manifest of another version.
    Version(u8),
    /// It asks for what this version does not know.
    Flags(u8),
    /// This entry is incomplete, or of an unknown kind.
    Entry(usize),
    /// This entry's name is not allowed.
    Name(usize, NameError),
    /// This entry is in no folder of the list.
    Parent(usize),
    /// The target of this link leads out of the transferred folder.
    Target(usize),
    /// This entry is another name of what is no file before it.
    Original(usize),
    /// This entry's name, which is given escaped, occurs twice.
    Twice(usize, String),
    /// The limit of entries or bytes is exceeded.
    TooMany,
}

impl Default for Builder {
    fn default() -> Self {
        Self { bytes: [&MAGIC[..], &[VERSION, 0]].concat(), rows: vec![] }
    }
}

impl Builder {
    /// Adds an entry, and returns its number.
    ///
    /// # Errors
    /// If the name or target is not allowed, or the limits are reached.
    pub(crate) fn add(&mut self, entry: &Entry<'_>) -> Result<u32, ManifestError> {
        let number = self.rows.len();
        let at = self.bytes.len();
        put(entry, &mut self.bytes);
        let row = checked(number, at, entry, &self.rows, &self.bytes);
        match row {
            Ok(row) if number < ENTRIES_MAX && self.bytes.len() <= MANIFEST_MAX => {
                self.rows.push(row);
                Ok(number as u32)
            }
            Ok(_) => Err(ManifestError::TooMany),
            Err(error) => {
                self.bytes.truncate(at);
                Err(error)
            }
        }
    }

    pub(crate) fn build(mut self, asks: Asks) -> Manifest {
        if let Some(flags) = self.bytes.get_mut(MAGIC.len() + 1) {
            *flags = [(asks.compares, COMPARES), (asks.verifies, VERIFIES)]
                .iter()
                .filter(|(is_set, _)| *is_set)
                .map(|(_, flag)| flag)
                .sum();
        }
        Manifest { bytes: self.bytes.into(), rows: self.rows, asks }
    }
}

impl Manifest {
    /// Its encoded form.
    pub(crate) fn encoded(&self) -> Bytes {
        self.bytes.clone()
    }

    /// Parses a peer's manifest.
    pub(crate) fn read(bytes: Bytes) -> Result<Self, ManifestError> {
        let mut rest = &bytes[..];
        if rest.len() < MAGIC.len() + 2 || !rest.starts_with(MAGIC) {
            return Err(ManifestError::Magic);
        }
        rest = &rest[MAGIC.len()..];
        let version = rest.get_u8();
        if version != VERSION {
            return Err(ManifestError::Version(version));
        }
        let flags = rest.get_u8();
        if flags & !(COMPARES | VERIFIES) != 0 {
            return Err(ManifestError::Flags(flags));
        }
        let asks = Asks { compares: flags & COMPARES != 0, verifies: flags & VERIFIES != 0 };
        let mut rows: Vec<Row> = vec![];
        while !rest.is_empty() {
            let number = rows.len();
            if number >= ENTRIES_MAX || bytes.len() > MANIFEST_MAX {
                return Err(ManifestError::TooMany);
            }
            let at = bytes.len() - rest.len();
            let entry = take(number, &mut rest)?;
            rows.push(checked(number, at, &entry, &rows, &bytes)?);
        }
        rows.shrink_to_fit();
        let manifest = Self { bytes, rows, asks };
        manifest.check_twice()?;
        Ok(manifest)
    }

    fn check_twice(&self) -> Result<(), ManifestError> {
        let place = |index: &u32| self.place(*index);
        let mut sorted: Vec<u32> = (0..self.len()).collect();
        sorted.sort_unstable_by(|one, other| place(one).cmp(&place(other)).then(one.cmp(other)));
        match sorted.windows(2).find(|pair| place(&pair[0]).cmp(&place(&pair[1])) == Ordering::Equal) {
            Some(pair) => Err(ManifestError::Twice(pair[1] as usize, self.path(pair[1]))),
            None => Ok(()),
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.rows.len() as u32
    }

    /// The entry of this number, which must be below the number of entries.
    pub(crate) fn entry(&self, index: u32) -> Entry<'_> {
        let mut bytes = &self.bytes[self.rows[index as usize].at as usize..];
        take(index as usize, &mut bytes).expect("it was checked when the manifest was made or read")
    }

    /// The entry of this number; `None` if there is none.
    pub(crate) fn find(&self, index: u32) -> Option<Entry<'_>> {
        (index < self.len()).then(|| self.entry(index))
    }

    pub(crate) fn entries(&self) -> impl DoubleEndedIterator<Item = (u32, Entry<'_>)> {
        (0..self.len()).map(|index| (index, self.entry(index)))
    }

    /// The folder and the name of an entry, without reading the rest of it, which may be long.
    pub(crate) fn place(&self, index: u32) -> (Option<u32>, Leaf<'_>) {
        let bytes = &self.bytes[self.rows[index as usize].at as usize..];
        let parent = bytes[PARENT_AT..].first_chunk().map_or(u32::MAX, |parent| u32::from_le_bytes(*parent));
        let name = &bytes[NAME_AT..][..usize::from(bytes[NAME_AT - 1])];
        let name = Leaf::new(name).expect("it was checked when the manifest was made or read");
        ((parent != u32::MAX).then_some(parent), name)
    }

    /// The names from the outermost folder to the entry.
    pub(crate) fn leaves(&self, index: u32) -> Vec<Leaf<'_>> {
        let mut leaves = vec![];
        let mut next = Some(index);
        while let Some((parent, name)) = next.map(|index| self.place(index)) {
            leaves.push(name);
            next = parent;
        }
        leaves.reverse();
        leaves
    }

    /// The path with slashes, as messages show it.
    pub(crate) fn path(&self, index: u32) -> String {
        self.leaves(index).iter().map(|leaf| shown_bytes(leaf.bytes())).collect::<Vec<_>>().join("/")
    }

    /// Groups of entries in one folder whose names may be one if the file system ignores case: each such entry with the first of
    /// its group, sorted by that.
    pub(crate) fn twins(&self) -> Vec<(u32, u32)> {
        let fold = |index: u32| {
            let (parent, name) = self.place(index);
            (parent, name.folded(), index)
        };
        let mut folded: Vec<_> = (0..self.len()).map(fold).collect();
        folded.sort_unstable();
        let mut twins = vec![];
        for same in folded.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)).filter(|same| same.len() > 1) {
            twins.extend(same.iter().map(|twin| (same[0].2, twin.2)));
        }
        twins.sort_unstable();
        twins
    }

    /// The number of files and streams, and the total bytes of the files.
    pub(crate) fn totals(&self) -> (u64, u64) {
        self.entries().fold((0, 0), |(files, bytes), (_, entry)| {
            (files + u64::from(entry.has_content()), bytes.saturating_add(entry.size().unwrap_or(0)))
        })
    }
}

impl Entry<'_> {
    /// The size of a file; `None` for all else.
    pub(crate) fn size(&self) -> Option<u64> {
        if let Kind::File { size, .. } = self.kind { Some(size) } else { None }
    }

    /// Whether it comes on a data stream.
    pub(crate) fn has_content(&self) -> bool {
        matches!(self.kind, Kind::File { .. } | Kind::Stream | Kind::Text)
    }
}

fn put(entry: &Entry<'_>, out: &mut Vec<u8>) {
    let (kind, size, target) = match entry.kind {
        Kind::Folder => (FOLDER, 0, &[][..]),
        Kind::File { size, is_sparse } => (if is_sparse { SPARSE } else { FILE }, size, &[][..]),
        Kind::Link(target) => (LINK, target.len() as u64, target),
        Kind::Stream => (STREAM, 0, &[][..]),
        Kind::Text => (TEXT, 0, &[][..]),
        Kind::Name(original) => (NAME, original.into(), &[][..]),
    };
    let (name, attributes) = (entry.name.bytes(), entry.attributes.encoded());
    let is_dressed = !attributes.is_empty();
    out.put_u8(if is_dressed { kind | ATTRIBUTES } else { kind });
    out.put_u32_le(entry.parent.unwrap_or(u32::MAX));
    out.put_u16_le(entry.mode as u16);
    out.put_i64_le(entry.modified.seconds);
    out.put_u32_le(entry.modified.nanoseconds);
    out.put_u64_le(size);
    out.put_u8(name.len() as u8);
    out.put_slice(name);
    out.put_slice(target);
    if is_dressed {
        out.put_u32_le(attributes.len() as u32);
        out.put_slice(attributes);
    }
}

/// Parses an entry, and checks its name and numbers.
fn take<'a>(number: usize, bytes: &mut &'a [u8]) -> Result<Entry<'a>, ManifestError> {
    let short = |_| ManifestError::Entry(number);
    let first = bytes.try_get_u8().map_err(short)?;
    let (kind, is_dressed) = (first & !ATTRIBUTES, first & ATTRIBUTES != 0);
    let parent = bytes.try_get_u32_le().map_err(short)?;
    let mode = u32::from(bytes.try_get_u16_le().map_err(short)?) & MODE;
    let seconds = bytes.try_get_i64_le().map_err(short)?;
    let nanoseconds = bytes.try_get_u32_le().map_err(short)?;
    let size = bytes.try_get_u64_le().map_err(short)?;
    let len = usize::from(bytes.try_get_u8().map_err(short)?);
    let mut next = |len: usize| bytes.split_off(..len).ok_or(ManifestError::Entry(number));
    let name = Leaf::new(next(len)?).map_err(|error| ManifestError::Name(number, error))?;
    let kind = match kind {
        FOLDER => Kind::Folder,
        FILE | SPARSE if size <= SIZE_MAX => Kind::File { size, is_sparse: kind == SPARSE },
        LINK if size <= TARGET_MAX => Kind::Link(next(size as usize)?),
        STREAM if size == 0 => Kind::Stream,
        TEXT if size == 0 => Kind::Text,
        NAME => Kind::Name(u32::try_from(size).map_err(|_| ManifestError::Original(number))?),
        _ => return Err(ManifestError::Entry(number)),
    };
    if nanoseconds >= 1_000_000_000 || seconds.abs() > SECONDS_MAX {
        return Err(ManifestError::Entry(number));
    }
    let mut attributes = Attributes::default();
    if is_dressed {
        let len = bytes.try_get_u32_le().map_err(short)? as usize;
        let encoded = bytes.split_off(..len).ok_or(ManifestError::Entry(number))?;
        let is_bearer = matches!(kind, Kind::Folder | Kind::File { .. });
        attributes = Attributes::read(encoded).filter(|_| is_bearer).ok_or(ManifestError::Entry(number))?;
    }
    let parent = (parent != u32::MAX).then_some(parent);
    Ok(Entry { parent, name, kind, mode, modified: Stamp { seconds, nanoseconds }, attributes })
}

/// Checks an entry's place among those before it, which are encoded in `bytes`.
fn checked(number: usize, at: usize, entry: &Entry<'_>, rows: &[Row], bytes: &[u8]) -> Result<Row, ManifestError> {
    let kind = |row: &Row| bytes.get(row.at as usize).map(|first| first & !ATTRIBUTES);
    let above = match entry.parent {
        None if entry.name.is_reserved() => return Err(ManifestError::Name(number, NameError::Reserved)),
        None => Row { at: 0, depth: 0, length: 0 },
        Some(parent) => {
            let row = rows.get(parent as usize).filter(|row| kind(row) == Some(FOLDER));
            let row = row.ok_or(ManifestError::Parent(number))?;
            Row { depth: row.depth + 1, ..*row }
        }
    };
    let length = usize::from(above.length) + entry.name.bytes().len() + 1;
    if usize::from(above.depth) >= DEPTH_MAX || length > LENGTH_MAX {
        return Err(ManifestError::Name(number, NameError::Long));
    }
    // A link in the transferred folder itself may not climb at all.
    if matches!(entry.kind, Kind::Link(target) if !stays_inside(target, usize::from(above.depth).saturating_sub(1))) {
        return Err(ManifestError::Target(number));
    }
    if let Kind::Name(original) = entry.kind
        && !rows.get(original as usize).is_some_and(|row| matches!(kind(row), Some(FILE | SPARSE)))
    {
        return Err(ManifestError::Original(number));
    }
    Ok(Row { at: at as u32, depth: above.depth, length: length as u16 })
}

impl Stamp {
    pub(crate) fn of(time: SystemTime) -> Self {
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => Self { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() },
            Err(before) => {
                let before = before.duration();
                let (seconds, nanoseconds) = (-(before.as_secs() as i64), before.subsec_nanos());
                match nanoseconds {
                    0 => Self { seconds, nanoseconds },
                    _ => Self { seconds: seconds - 1, nanoseconds: 1_000_000_000 - nanoseconds },
                }
            }
        }
    }

    /// The time; `None` if this system cannot represent it.
    pub(crate) fn time(self) -> Option<SystemTime> {
        let (epoch, seconds) = (SystemTime::UNIX_EPOCH, Duration::from_secs(self.seconds.unsigned_abs()));
        let whole = if self.seconds < 0 { epoch.checked_sub(seconds) } else { epoch.checked_add(seconds) };
        whole?.checked_add(Duration::from_nanos(self.nanoseconds.into()))
    }

    /// Whether a file system that keeps only multiples of some unit would keep `wanted` as this time. The units: a nanosecond,
    /// 100 (NTFS), a microsecond, a millisecond, 10 (exFAT), a second, and two (FAT).
    pub(crate) fn keeps(self, wanted: Self) -> bool {
        let nanoseconds = |stamp: Self| i128::from(stamp.seconds) * 1_000_000_000 + i128::from(stamp.nanoseconds);
        let (there, wanted) = (nanoseconds(self), nanoseconds(wanted));
        [1, 100, 1_000, 1_000_000, 10_000_000, 1_000_000_000, 2_000_000_000]
            .iter()
            .any(|unit| wanted - wanted.rem_euclid(*unit) == there)
    }
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = |number: &usize| format!("entry {number} of the list of files");
        match self {
            Self::Magic => {
                f.write_str("what came is no list of files: is the other end `anabranch send` of this version?")
            }
            Self::Version(version) => write!(
                f,
                "the other end sends files by version {} of the protocol, this one receives by version {}: use the same \
                 anabranch at both ends",
                char::from(*version).escape_default(),
                char::from(VERSION)
            ),
            Self::Flags(flags) => {
                write!(
                    f,
                    "the other end asks for what this one does not know ({flags:#x}): use the same anabranch at both ends"
                )
            }
            Self::Entry(number) => write!(f, "{} cannot be read", entry(number)),
            Self::Name(number, error) => write!(f, "{} is refused: {error}", entry(number)),
            Self::Parent(number) => write!(f, "{} is in no folder of the list", entry(number)),
            Self::Target(number) => write!(f, "{} is a link that leads out of its folder", entry(number)),
            Self::Original(number) => write!(f, "{} is another name of what is no file", entry(number)),
            Self::Twice(number, name) => write!(f, "{} is refused: {name} is there twice", entry(number)),
            Self::TooMany => {
                write!(f, "the list of files has more than {ENTRIES_MAX} entries, or {} MB", MANIFEST_MAX >> 20)
            }
        }
    }
}

impl std::error::Error for ManifestError {}

const MAGIC: &[u8; 7] = b"ab-list";

/// The version of the list, and of all streams of a transfer. The first version had the digit 1 here; in the second one, no reply began with a rate;
/// in the third one there were neither streams, texts, further names nor attributes.
const VERSION: u8 = b'4';

const COMPARES: u8 = 1;
const VERIFIES: u8 = 2;

const FOLDER: u8 = 0;
const FILE: u8 = 1;
const SPARSE: u8 = 2;
const LINK: u8 = 3;
const STREAM: u8 = 4;
const TEXT: u8 = 5;
const NAME: u8 = 6;
/// The bit that says that attributes follow.
const ATTRIBUTES: u8 = 0x80;

/// Where these begin in an entry.
const PARENT_AT: usize = 1;
const NAME_AT: usize = 1 + 4 + 2 + 8 + 4 + 8 + 1;

/// The permissions of a mode. Others, such as set-user-id, are not transferred.
const MODE: u32 = 0o777;

/// The limit on entries: more than ten times the files of the Linux kernel's sources.
pub(crate) const ENTRIES_MAX: usize = 1_000_000;

/// The limit on a manifest in bytes: a million entries with names of 55 bytes. A receiver holds at most twice of it.
pub(crate) const MANIFEST_MAX: usize = 80 << 20;

/// The limit on file sizes: half of the range of signed numbers.
const SIZE_MAX: u64 = 1 << 62;

/// Linux allows paths of 4096 bytes, including that of the folder.
const LENGTH_MAX: usize = 3072;
const DEPTH_MAX: usize = 256;

/// The limit of Linux for the target of a link.
const TARGET_MAX: u64 = 4095;

/// The year 9999, and as long before 1970.
const SECONDS_MAX: i64 = 253_402_300_799;

#[cfg(test)]
mod tests;
