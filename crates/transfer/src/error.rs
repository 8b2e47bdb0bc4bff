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
    Protocol,
    /// The peer has said nothing for ten seconds.
    Silent,
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
    Protocol,
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
            Self::Protocol => f.write_str("the other end is not a receiver of files: is it `anabranch recv`?"),
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
            Self::Protocol => f.write_str("the other end is not a sender of files: is it `anabranch send`?"),
            Self::Silent => f.write_str("the other end has sent nothing: is it `anabranch send`?"),
            Self::Taken => f.write_str(
                "something of the same name is being received from another sender, and a stream cannot be sent again: send it with another --name, or later",
            ),
            Self::Replaced => f.write_str("another sender has come with the same files"),
            Self::Several => f.write_str(
                "the receiver writes what comes to its standard output, which takes one file, one text or `-`: send one, or receive into a folder",
            ),
            Self::Output(error) => write!(f, "what comes cannot be written to the standard output: {error}"),
        }
    }
}

impl std::error::Error for SendError {}
impl std::error::Error for ReceiveError {}

impl From<ReadError> for SendError {
    fn from(error: ReadError) -> Self {
        if let ReadError::Lost(lost) = error { Self::Lost(lost) } else { Self::Protocol }
    }
}

impl From<WriteError> for SendError {
    fn from(error: WriteError) -> Self {
        if let WriteError::Lost(lost) = error { Self::Lost(lost) } else { Self::Protocol }
    }
}

impl From<StreamError> for SendError {
    fn from(error: StreamError) -> Self {
        if let StreamError::Lost(lost) = error { Self::Lost(lost) } else { Self::Protocol }
    }
}

impl From<ReadError> for ReceiveError {
    fn from(error: ReadError) -> Self {
        if let ReadError::Lost(lost) = error { Self::Lost(lost) } else { Self::Protocol }
    }
}

impl From<WriteError> for ReceiveError {
    fn from(error: WriteError) -> Self {
        if let WriteError::Lost(lost) = error { Self::Lost(lost) } else { Self::Protocol }
    }
}

impl From<StreamError> for ReceiveError {
    fn from(error: StreamError) -> Self {
        if let StreamError::Lost(lost) = error { Self::Lost(lost) } else { Self::Protocol }
    }
}
