//! Errors of a transfer, and of a single file.

use std::fmt;
use std::io;
use std::path::PathBuf;

use anabranch::{Lost, ReadError, StreamError, WriteError};

use crate::manifest::{ENTRIES_MAX, MANIFEST_MAX, ManifestError};
use anabranch::units::shown;

/// A file that was not transferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Its name, or its path at the sender, escaped by [`shown`].
    pub name: String,
    /// Why it was not transferred.
    pub reason: String,
}

/// Why a transfer cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendError {
    /// This path cannot be read or sent, for this reason.
    Path(PathBuf, String),
    /// The limit of files in one transfer, or of the bytes of their names, is exceeded.
    TooMany,
    /// The receiver has given up, for this reason.
    Receiver(String),
    /// The connection is lost. Another attempt resumes the transfer.
    Lost(Lost),
    /// The peer violates the protocol of a receiver.
    Protocol(Breach),
    /// The peer has said nothing for ten seconds.
    Silent,
    /// A task of this end has failed, for this reason.
    Fault(String),
}

/// Why a transfer cannot be received.
#[derive(Debug)]
pub enum ReceiveError {
    /// The list of files is invalid.
    Manifest(ManifestError),
    /// The lists of files of other transfers take all memory for them.
    Busy,
    /// This folder cannot be written.
    Folder(PathBuf, io::Error),
    /// The connection is lost. Another attempt resumes the transfer.
    Lost(Lost),
    /// The peer violates the protocol of a sender.
    Protocol(Breach),
    /// The peer has sent nothing for ten seconds.
    Silent,
    /// Another sender's stream with the same name is being received, or this one's would end another sender's transfer.
    Taken,
    /// Another sender has started a transfer with the same files.
    Replaced,
    /// More than one file comes, or a folder, where only one file can be written.
    Several,
    /// What has come cannot be written to where it goes.
    Output(io::Error),
    /// A task of this end has failed, for this reason.
    Fault(String),
}

/// How a peer violates the protocol of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// It sends what does not belong there.
    Unexpected,
    /// A stream ended early, or has something in it that cannot be read.
    Ended,
    /// It has reset a stream, with this code.
    Reset(u16),
    /// It reads no more of what this end sends, with this code.
    Stopped(u16),
    /// The connection is closed.
    Closed,
    /// All its streams have ended, but not all files have come.
    Missing,
}

impl Breach {
    fn of_read(error: ReadError) -> Result<Self, Lost> {
        match error {
            ReadError::Reset(code) => Ok(Self::Reset(code)),
            ReadError::Ended => Ok(Self::Ended),
            ReadError::TooLong => Ok(Self::Unexpected),
            ReadError::Lost(lost) => Err(lost),
        }
    }

    fn of_write(error: WriteError) -> Result<Self, Lost> {
        match error {
            WriteError::Stopped(code) => Ok(Self::Stopped(code)),
            WriteError::Closed => Ok(Self::Closed),
            WriteError::Lost(lost) => Err(lost),
        }
    }

    fn of_stream(error: StreamError) -> Result<Self, Lost> {
        match error {
            StreamError::Closed => Ok(Self::Closed),
            StreamError::Lost(lost) => Err(lost),
        }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unexpected => f.write_str("it sends what does not belong there"),
            Self::Ended => f.write_str("a stream of it ends early or cannot be read"),
            Self::Reset(code) => write!(f, "it has reset a stream, code {code}"),
            Self::Stopped(code) => write!(f, "it reads no more, code {code}"),
            Self::Closed => f.write_str("it has closed"),
            Self::Missing => f.write_str("its streams have ended, but not all files have come"),
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.reason)
    }
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path, reason) => write!(f, "{}: {reason}", shown(path)),
            Self::TooMany => write!(
                f,
                "more than {ENTRIES_MAX} files and folders, or more than {} MB of their names; send them in parts",
                MANIFEST_MAX >> 20
            ),
            Self::Receiver(reason) => write!(f, "the receiver cannot go on: {reason}"),
            Self::Lost(lost) => write!(f, "{lost}; send again to resume"),
            Self::Protocol(breach) => {
                write!(f, "the other end is not a receiver of files ({breach}): is it `anabranch recv`?")
            }
            Self::Fault(reason) => {
                write!(f, "this program has a fault ({reason}): please report it; send again to resume")
            }
            Self::Silent => f.write_str(
                "the other end says nothing: is it `anabranch recv`, and does no other sender have its turn?",
            ),
        }
    }
}

impl fmt::Display for ReceiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manifest(error) => error.fmt(f),
            Self::Busy => {
                f.write_str("the lists of files of other transfers take all memory for them; send again later")
            }
            Self::Folder(path, error) => {
                write!(f, "{}: {error}; correct this, then send again to resume", shown(path))
            }
            Self::Lost(lost) => write!(f, "{lost}; what has arrived is kept for the next time"),
            Self::Protocol(breach) => {
                write!(f, "the other end is not a sender of files ({breach}): is it `anabranch send`?")
            }
            Self::Silent => f.write_str("the other end has sent nothing: is it `anabranch send`?"),
            Self::Taken => f.write_str(
                "something of the same name is being received from another sender, and a stream cannot be sent again: send it with another --name, or later",
            ),
            Self::Replaced => f.write_str("another sender has come with the same files"),
            Self::Several => f.write_str(
                "the receiver writes what comes to its standard output, which takes one file, one text or `-`: send one, or receive into a folder",
            ),
            Self::Fault(reason) => write!(f, "this program has a fault ({reason}): please report it; receive again to resume"),
            Self::Output(error) => write!(f, "what comes cannot be written to the standard output: {error}"),
        }
    }
}

impl std::error::Error for SendError {}
impl std::error::Error for ReceiveError {}

impl From<ReadError> for SendError {
    fn from(error: ReadError) -> Self {
        Breach::of_read(error).map_or_else(Self::Lost, Self::Protocol)
    }
}

impl From<WriteError> for SendError {
    fn from(error: WriteError) -> Self {
        Breach::of_write(error).map_or_else(Self::Lost, Self::Protocol)
    }
}

impl From<StreamError> for SendError {
    fn from(error: StreamError) -> Self {
        Breach::of_stream(error).map_or_else(Self::Lost, Self::Protocol)
    }
}

impl From<ReadError> for ReceiveError {
    fn from(error: ReadError) -> Self {
        Breach::of_read(error).map_or_else(Self::Lost, Self::Protocol)
    }
}

impl From<WriteError> for ReceiveError {
    fn from(error: WriteError) -> Self {
        Breach::of_write(error).map_or_else(Self::Lost, Self::Protocol)
    }
}

impl From<StreamError> for ReceiveError {
    fn from(error: StreamError) -> Self {
        Breach::of_stream(error).map_or_else(Self::Lost, Self::Protocol)
    }
}
