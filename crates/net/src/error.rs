//! What can go wrong, an enum for each operation.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use anabranch_proto::{CloseReason, ConfigError};

/// Why an endpoint cannot be made.
#[derive(Debug)]
pub enum BindError {
    /// The system gives no such socket.
    Socket(SocketAddr, io::Error),
    /// The system gives no randomness.
    Randomness(io::Error),
    /// The settings cannot work.
    Config(ConfigError),
    /// The system gives no thread to work in (only [`crate::blocking`]).
    Thread(io::Error),
    /// No logs can be written into this folder.
    Qlog(PathBuf, io::Error),
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// Nobody who proves the ticket's key answered in time, at any of the addresses.
    NoAnswer(Vec<SocketAddr>),
    /// It was answered, and refused.
    Refused(SocketAddr),
    /// No address of the ticket is of the kind of the endpoint's socket.
    NoAddress,
    /// There are as many connections as there may be.
    TooMany,
    /// The settings cannot work.
    Config(ConfigError),
    /// The endpoint's socket is gone.
    EndpointGone,
}

/// Why there is no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddPathError {
    /// The endpoint has no socket that sends from this address: see [`Endpoint::add_address`](crate::Endpoint::add_address).
    NoSocket(IpAddr),
    /// The connection is not established yet, or has none but its first path.
    NotNegotiated,
    /// There are as many paths as there may be.
    TooMany,
    /// There is such a path.
    InUse,
    /// Nobody answered on it.
    NoAnswer(SocketAddr),
    /// The connection is gone.
    Gone,
}

/// Why a connection is no more, though it was not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The peer has aborted it, or knows nothing of it.
    Reset,
    /// The peer has said nothing for too long.
    TimedOut,
    /// This end has aborted it.
    Aborted,
    /// The peer has broken the rules.
    Misbehaved,
    /// The endpoint's socket is gone.
    EndpointGone,
}

/// Why no stream can be opened, or comes any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// The side that opens them has closed.
    Closed,
    /// The connection is gone.
    Lost(Lost),
}

/// Why nothing can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// The peer does not want more of this stream, for this reason of its application's.
    Stopped(u16),
    /// This end has finished or reset the stream, or closed the connection.
    Closed,
    /// The connection is gone.
    Lost(Lost),
}

/// Why no message comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// None comes any more.
    Stream(StreamError),
    /// This one does not come whole.
    Read(ReadError),
}

/// Why nothing can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The peer has given the stream up, for this reason of its application's. What was read is not all.
    Reset(u16),
    /// The stream ended before the bytes that were asked for.
    Ended,
    /// There is more than the caller takes.
    TooLong,
    /// The connection is gone.
    Lost(Lost),
}

impl Lost {
    /// `None` if both sides have closed.
    pub(crate) fn of(reason: CloseReason) -> Option<Self> {
        match reason {
            CloseReason::Finished => None,
            CloseReason::Aborted => Some(Self::Aborted),
            CloseReason::Refused | CloseReason::Reset => Some(Self::Reset),
            CloseReason::TimedOut => Some(Self::TimedOut),
            CloseReason::FalseAcknowledgement => Some(Self::Misbehaved),
        }
    }

    fn kind(self) -> io::ErrorKind {
        match self {
            Self::Reset => io::ErrorKind::ConnectionReset,
            Self::TimedOut => io::ErrorKind::TimedOut,
            Self::Aborted => io::ErrorKind::ConnectionAborted,
            Self::Misbehaved => io::ErrorKind::InvalidData,
            Self::EndpointGone => io::ErrorKind::NotConnected,
        }
    }
}

impl From<Lost> for StreamError {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost)
    }
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        let kind = match error {
            WriteError::Stopped(_) => io::ErrorKind::BrokenPipe,
            WriteError::Closed => io::ErrorKind::NotConnected,
            WriteError::Lost(lost) => lost.kind(),
        };
        Self::new(kind, error)
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match error {
            ReadError::Reset(_) => io::ErrorKind::ConnectionReset,
            ReadError::Ended => io::ErrorKind::UnexpectedEof,
            ReadError::TooLong => io::ErrorKind::InvalidData,
            ReadError::Lost(lost) => lost.kind(),
        };
        Self::new(kind, error)
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(address, error) => write!(f, "no UDP socket at {address}: {error}"),
            Self::Randomness(error) => write!(f, "the system gives no random numbers: {error}"),
            Self::Config(error) => write!(f, "the settings cannot work: {error:?}"),
            Self::Thread(error) => write!(f, "the system gives no thread to work in: {error}"),
            Self::Qlog(folder, error) => write!(f, "no logs can be written into {}: {error}", folder.display()),
        }
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer(addresses) => {
                let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "nobody with the ticket's key answers at {}: is it running, is the ticket its latest, may this end call it?",
                    addresses.join(", ")
                )
            }
            Self::Refused(address) => write!(f, "{address} refuses the connection"),
            Self::NoAddress => f.write_str("the ticket has no address that this socket can reach (IPv4 or IPv6)"),
            Self::TooMany => f.write_str("there are as many connections as there may be"),
            Self::Config(error) => write!(f, "the settings cannot work: {error:?}"),
            Self::EndpointGone => Lost::EndpointGone.fmt(f),
        }
    }
}

impl fmt::Display for AddPathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSocket(ip) => write!(f, "no socket of the endpoint sends from {ip}"),
            Self::NotNegotiated => f.write_str("the connection is not open, or has a single path"),
            Self::TooMany => f.write_str("there are as many paths as there may be"),
            Self::InUse => f.write_str("there is such a path"),
            Self::NoAnswer(address) => {
                write!(f, "{address} does not answer on that path: does a route lead there from this address?")
            }
            Self::Gone => f.write_str("the connection is gone"),
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reset => "the other end has ended the connection",
            Self::TimedOut => "the other end does not answer any more",
            Self::Aborted => "the connection was aborted here",
            Self::Misbehaved => "the other end has broken the rules",
            Self::EndpointGone => "the socket is gone",
        })
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the connection is closed to new streams"),
            Self::Lost(lost) => lost.fmt(f),
        }
    }
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream(error) => error.fmt(f),
            Self::Read(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped(code) => write!(f, "the other end does not want more of the stream (code {code})"),
            Self::Closed => f.write_str("the stream is closed"),
            Self::Lost(lost) => lost.fmt(f),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reset(code) => write!(f, "the other end has given the stream up (code {code})"),
            Self::Ended => f.write_str("the stream ended too early"),
            Self::TooLong => f.write_str("the stream is longer than expected"),
            Self::Lost(lost) => lost.fmt(f),
        }
    }
}

impl std::error::Error for BindError {}
impl std::error::Error for AddPathError {}
impl std::error::Error for MessageError {}
impl std::error::Error for ConnectError {}
impl std::error::Error for Lost {}
impl std::error::Error for StreamError {}
impl std::error::Error for WriteError {}
impl std::error::Error for ReadError {}
