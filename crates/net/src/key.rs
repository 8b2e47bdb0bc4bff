//! Keys, which identify an end; and the file of a secret key: a line with `anabranch-secret-key` and the key in base32 with a
//! checksum.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anabranch_proto::seal;
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use anabranch_units::shown;

use crate::base32::{self, Base32Error};

/// The secret key of an end. It is never sent.
#[derive(Clone)]
pub struct SecretKey(Zeroizing<[u8; 32]>);

/// The public key of an end, which identifies it. It is written as 58 letters, the last six of which are a checksum.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey(pub(crate) seal::PublicKey);

/// Why a key file cannot be used.
#[derive(Debug)]
pub enum KeyFileError {
    /// It cannot be read or written.
    Io(PathBuf, io::Error),
    /// It exists: a key is never overwritten.
    Exists(PathBuf),
    /// Users other than its owner may read it; the file's mode.
    Shared(PathBuf, u32),
    /// It is not a key file.
    NoKey(PathBuf),
}

/// Why a text is not a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseKeyError {
    /// The letter at this position, counted from 0, is not base32.
    Letter(usize),
    /// The number of letters is wrong.
    Length,
    /// The checksum is wrong: a letter was mistyped.
    Checksum,
}

impl SecretKey {
    /// A new key from the system's random source.
    ///
    /// # Errors
    /// If the random source fails.
    pub fn generate() -> io::Result<Self> {
        random().map(|bytes| Self(Zeroizing::new(bytes)))
    }

    /// The public key of this secret key.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.engine().public())
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// If it cannot be read, is not a key file, or can be read by others than its owner.
    pub fn read(file: &Path) -> Result<Self, KeyFileError> {
        let io = |error| KeyFileError::Io(file.to_owned(), error);
        let no_key = || KeyFileError::NoKey(file.to_owned());
        let opened = open(file).map_err(io)?.ok_or_else(no_key)?;
        let shared = shared_mode(&opened).map_err(io)?;
        let mut text = Zeroizing::new(String::new());
        opened.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => no_key(),
            _ => io(error),
        })?;
        let key = text.trim().strip_prefix(TITLE).ok_or_else(no_key)?;
        let key = parse(key.trim_start()).map(|bytes| Self(Zeroizing::new(bytes))).map_err(|_| no_key())?;
        // Nobody is told to change the mode of a file that holds no key.
        shared.map_or(Ok(key), |mode| Err(KeyFileError::Shared(file.to_owned(), mode)))
    }

    /// Writes a new key file that only its owner may read. It is written completely or not at all.
    ///
    /// # Errors
    /// If the file exists, or cannot be written.
    pub fn write_new(&self, file: &Path) -> Result<(), KeyFileError> {
        let io = |error| KeyFileError::Io(file.to_owned(), error);
        let mut part = file.as_os_str().to_owned();
        part.push(format!(".{}.part", std::process::id()));
        let part = PathBuf::from(part);
        let text = Zeroizing::new(format!("{TITLE} {}\n", show(&self.0)));
        // A file that is there already is not ours, and stays.
        let mut new = private_file(&part).map_err(|error| KeyFileError::Io(part.clone(), error))?;
        let written = new.write_all(text.as_bytes()).and_then(|()| new.sync_all());
        // A hard link fails if the file exists; a rename would overwrite it.
        let linked = written.and_then(|()| fs::hard_link(&part, file));
        _ = fs::remove_file(&part);
        linked.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => KeyFileError::Exists(file.to_owned()),
            _ => io(error),
        })
    }

    pub(crate) fn engine(&self) -> seal::SecretKey {
        seal::SecretKey::new(*self.0)
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(..)")
    }
}

impl PublicKey {
    /// The key with these bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(seal::PublicKey(bytes))
    }

    /// The 32 bytes of the key.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0.0
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show(self.bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for PublicKey {
    type Err = ParseKeyError;

    fn from_str(text: &str) -> Result<Self, ParseKeyError> {
        parse(text).map(Self::new)
    }
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(file, error) => write!(f, "{}: {error}", shown(file)),
            Self::Exists(file) => {
                write!(f, "{}: there is such a file, and nothing is written over a key; name another one", shown(file))
            }
            Self::Shared(file, mode) => {
                let file = shown(file);
                write!(
                    f,
                    "{file}: others may read it (mode {mode:03o}), so this key proves nothing; let only its owner read it (mode 600)"
                )
            }
            Self::NoKey(file) => {
                write!(f, "{}: it holds no secret key; `anabranch key new FILE` writes one", shown(file))
            }
        }
    }
}

impl std::error::Error for KeyFileError {}

impl From<Base32Error> for ParseKeyError {
    fn from(error: Base32Error) -> Self {
        match error {
            Base32Error::Letter(place) => Self::Letter(place),
            Base32Error::Length => Self::Length,
        }
    }
}

impl fmt::Display for ParseKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Letter(place) => write!(f, "letter {} of the key is not one of a to z and 2 to 7", place + 1),
            Self::Length => write!(f, "a public key has {KEY_LETTERS} letters"),
            Self::Checksum => f.write_str("a letter of the key is wrong: its checksum does not fit"),
        }
    }
}

impl std::error::Error for ParseKeyError {}

/// Random bytes from the system.
pub(crate) fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

/// A checksum against typing errors. It misses one error in a thousand million.
pub(crate) fn checksum(parts: &[&[u8]]) -> [u8; CHECKSUM] {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    let digest: [u8; 32] = hash.finalize().into();
    let mut checksum = [0; CHECKSUM];
    checksum.copy_from_slice(&digest[..CHECKSUM]);
    checksum
}

fn show(key: &[u8; 32]) -> String {
    let mut bytes = Zeroizing::new([0; 32 + CHECKSUM]);
    bytes[..32].copy_from_slice(key);
    bytes[32..].copy_from_slice(&checksum(&[TITLE.as_bytes(), key]));
    base32::encode(&*bytes)
}

fn parse(text: &str) -> Result<[u8; 32], ParseKeyError> {
    let bytes = Zeroizing::new(base32::decode(text).map_err(ParseKeyError::from)?);
    let (key, sum) = bytes.split_first_chunk::<32>().ok_or(ParseKeyError::Length)?;
    if sum.len() != CHECKSUM {
        return Err(ParseKeyError::Length);
    }
    if sum == checksum(&[TITLE.as_bytes(), key]) { Ok(*key) } else { Err(ParseKeyError::Checksum) }
}

/// Opens a file to read it; `None` if it is no plain file. Opening a pipe would wait for its writer, but a descriptor of this process, which a
/// shell gives for `<(command)`, is open already.
fn open(file: &Path) -> io::Result<Option<File>> {
    let is_open_already = ["/dev/fd", "/proc/self/fd"].iter().any(|folder| file.parent() == Some(Path::new(folder)));
    let is_read = is_open_already || file == Path::new("/dev/stdin") || fs::metadata(file)?.is_file();
    is_read.then(|| File::open(file)).transpose()
}

#[cfg(unix)]
fn private_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// On systems without file modes, a user's folder is assumed to be private.
#[cfg(not(unix))]
fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// The mode of a file that others may read or write.
#[cfg(unix)]
fn shared_mode(file: &File) -> io::Result<Option<u32>> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    Ok((mode & 0o077 != 0).then_some(mode))
}

#[cfg(not(unix))]
fn shared_mode(_: &File) -> io::Result<Option<u32>> {
    Ok(None)
}

const TITLE: &str = "anabranch-secret-key";

/// A key file has a line of less than a hundred letters.
const FILE_BYTES_MAX: u64 = 1024;

pub(crate) const CHECKSUM: usize = 4;

/// Letters of a key: five bits each.
const KEY_LETTERS: usize = ((32 + CHECKSUM) * 8).div_ceil(5);

#[cfg(test)]
mod tests;
