//! Errors: one enum per operation.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use anabranch_proto::endpoint::SHARDS_MAX;
use anabranch_proto::{CloseReason, ConfigError, PathMtu, seal};
use anabranch_units::Rate;

use crate::message::Refusal;
use crate::socket::PACKET_MAX;

/// Why an endpoint cannot be created.
#[derive(Debug)]
pub enum BindError {
    /// The system cannot bind the socket.
    Socket(SocketAddr, io::Error),
    /// The relay's TCP socket cannot be bound.
    Tcp(SocketAddr, io::Error),
    /// The relay's certificate cannot be used.
    Certificate(String),
    /// The system's random source is not available.
    Randomness(io::Error),
    /// The settings are invalid.
    Config(ConfigError),
    /// [`Config::shards`](crate::Config::shards) is zero or above 64.
    Shards(usize),
    /// [`Config::packet_max`](crate::Config::packet_max) is below 1,280 or above 9,000.
    PacketMax(u32),
    /// [`Config::rate_max`](crate::Config::rate_max) is below 10 kbit/s.
    RateMax(Rate),
    /// The system cannot start a thread (only [`crate::blocking`]).
    Thread(io::Error),
    /// The folder for logs cannot be written.
    Qlog(PathBuf, io::Error),
}

/// A limit of the rate that is below [`Config::RATE_MIN`](crate::Config::RATE_MIN).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateTooLow(pub Rate);

/// Why a connection cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// No peer with the ticket's key answered in time, at any of the addresses.
    NoAnswer(Vec<SocketAddr>),
    /// The peer refused the connection.
    Refused(SocketAddr),
    /// The peer has as many connections as it allows.
    Full(SocketAddr, Full),
    /// The endpoint's sockets have none of the address families of the ticket.
    NoAddress,
    /// The limit of connections is reached.
    TooMany,
    /// The settings are invalid.
    Config(ConfigError),
    /// The endpoint's socket is gone.
    EndpointGone,
    /// The relay at these addresses did not lead to the peer.
    Relay(Vec<SocketAddr>, RelayError),
}

/// Why a relay does not lead to a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelayError {
    /// No relay with the expected key answered at any of the addresses.
    NoAnswer(Vec<SocketAddr>),
    /// The relay did not take this end as a member.
    NotJoined(String),
    /// The relay makes no route to the peer.
    Refused(Refusal),
    /// The relay knows the peer, which did not answer.
    PeerSilent,
    /// The peer refused the connection.
    PeerRefuses,
    /// The peer has as many connections as it allows.
    PeerFull(Full),
    /// The endpoint is a member of too many relays.
    TooMany,
    /// The connection with the relay has ended.
    Gone,
}

/// Why a code does not lead to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeError {
    /// The relay cannot be joined.
    Relay(ConnectError),
    /// The connection with the relay has ended.
    RelayGone,
    /// The relay has no such code.
    NotThere,
    /// The end that offers the code does not answer.
    Silent,
    /// The code is wrong.
    Wrong,
    /// Three attempts with wrong codes were made, or were not finished.
    Guessed,
    /// The system's random source is not available.
    Randomness(String),
}

/// The limit of connections that a new one would exceed, and the number of connections that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The limit of this end's public key ([`crate::Config::connections_per_key`]).
    Key(u32),
    /// The limit of this end's address ([`crate::Config::connections_per_address`]).
    Address(u32),
    /// The limit of all connections ([`crate::Config::connections_max`]).
    Everybody(u32),
}

/// Why a path cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddPathError {
    /// The endpoint has no socket that sends from this address: see [`Endpoint::add_address`](crate::Endpoint::add_address).
    NoSocket(IpAddr),
    /// The connection is not established yet, or did not negotiate several paths.
    NotNegotiated,
    /// The limit of paths is reached.
    TooMany,
    /// This path already exists.
    InUse,
    /// The peer did not answer on the path.
    NoAnswer(SocketAddr),
    /// The connection is over.
    Gone,
}

/// Why a connection was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The peer has reset it, or does not know it.
    Reset,
    /// The peer has as many connections as it allows, and needed the place of this one, which was idle, for another one.
    GaveWay,
    /// The peer is silent, and the network says that no program has its port any more.
    PortClosed,
    /// The peer was silent for too long.
    TimedOut,
    /// The peer answers short datagrams, but gets nothing of what is sent: a network on the way probably does not carry packets of
    /// 1,228 bytes (IPv6: 1,248).
    Stalled,
    /// This end has aborted it.
    Aborted,
    /// The peer has violated the protocol.
    Misbehaved,
    /// The endpoint's socket is gone.
    EndpointGone,
}

/// Why a stream cannot be opened or accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// The end that would open the stream has closed.
    Closed,
    /// The connection is lost.
    Lost(Lost),
}

/// Why a stream cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// The peer has refused the rest of the stream, with this error code of its application.
    Stopped(u16),
    /// This end has finished or reset the stream, or closed the connection.
    Closed,
    /// The connection is lost.
    Lost(Lost),
}

/// Why a datagram cannot be sent or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramError {
    /// The peer takes no datagrams: its version is too old, or its [`Config::datagram_receive_buffer`](crate::Config::datagram_receive_buffer) is 0.
    Unsupported,
    /// This end takes no datagrams: its [`Config::datagram_receive_buffer`](crate::Config::datagram_receive_buffer) is 0, or its
    /// [`Config::datagram_send_buffer`](crate::Config::datagram_send_buffer) has no room for any.
    Disabled,
    /// The datagram has more bytes than a packet of any path carries, or than the send buffer takes.
    TooLarge {
        /// The bytes of the datagram.
        len: usize,
        /// The most that can be sent now.
        max: usize,
    },
    /// The end that would send the datagram has closed.
    Closed,
    /// The connection is lost.
    Lost(Lost),
}

/// Why no message can be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// No further message can arrive.
    Stream(StreamError),
    /// This message is incomplete or too long.
    Read(ReadError),
}

/// Why a stream cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The peer has reset the stream with this error code of its application. The data read so far is incomplete.
    Reset(u16),
    /// The stream ended before the requested number of bytes.
    Ended,
    /// The stream is longer than the caller's limit.
    TooLong,
    /// The connection is lost.
    Lost(Lost),
}

impl Full {
    pub(crate) fn of(full: seal::Full) -> Self {
        match full {
            seal::Full::Key(count) => Self::Key(count),
            seal::Full::Network(count) => Self::Address(count),
            seal::Full::Everybody(count) => Self::Everybody(count),
        }
    }
}

impl Lost {
    /// `None` if both ends have closed.
    pub(crate) fn of(reason: CloseReason) -> Option<Self> {
        match reason {
            CloseReason::Finished => None,
            CloseReason::Aborted => Some(Self::Aborted),
            CloseReason::Refused | CloseReason::Reset => Some(Self::Reset),
            CloseReason::GaveWay => Some(Self::GaveWay),
            CloseReason::PortClosed => Some(Self::PortClosed),
            CloseReason::TimedOut => Some(Self::TimedOut),
            CloseReason::Stalled => Some(Self::Stalled),
            CloseReason::FalseAcknowledgement | CloseReason::Mangled => Some(Self::Misbehaved),
        }
    }

    fn kind(self) -> io::ErrorKind {
        match self {
            Self::Reset | Self::GaveWay | Self::PortClosed => io::ErrorKind::ConnectionReset,
            Self::TimedOut | Self::Stalled => io::ErrorKind::TimedOut,
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

impl From<DatagramError> for io::Error {
    fn from(error: DatagramError) -> Self {
        let kind = match error {
            DatagramError::Unsupported | DatagramError::Disabled => io::ErrorKind::Unsupported,
            DatagramError::TooLarge { .. } => io::ErrorKind::InvalidInput,
            DatagramError::Closed => io::ErrorKind::NotConnected,
            DatagramError::Lost(lost) => lost.kind(),
        };
        Self::new(kind, error)
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

impl fmt::Display for RateTooLow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self(rate), least) = (self, crate::Config::RATE_MIN);
        write!(
            f,
            "a rate limit of {rate} is too low: the least is {least}, as a packet must leave before timers expire"
        )
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(address, error) => write!(f, "no UDP socket at {address}: {error}"),
            Self::Tcp(address, error) => write!(f, "no TCP socket at {address}: {error}"),
            Self::Certificate(why) => write!(f, "no TLS: {why}"),
            Self::Randomness(error) => write!(f, "the system has no random numbers: {error}"),
            Self::Config(error) => write!(f, "the settings cannot work: {error:?}"),
            Self::Shards(count) => write!(f, "{count} shards cannot be: an endpoint has 1 to {SHARDS_MAX}"),
            Self::PacketMax(bytes) => write!(
                f,
                "packets of up to {bytes} bytes cannot be looked for: the largest is from {} to {PACKET_MAX}",
                PathMtu::PACKET_MIN
            ),
            Self::RateMax(rate) => RateTooLow(*rate).fmt(f),
            Self::Thread(error) => write!(f, "cannot start a thread: {error}"),
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
            Self::Full(address, full) => write!(f, "{address} {full}"),
            Self::NoAddress => f.write_str("the ticket has no address that this socket can reach (IPv4 or IPv6)"),
            Self::TooMany => f.write_str("the limit of connections is reached"),
            Self::Config(error) => write!(f, "the settings cannot work: {error:?}"),
            Self::EndpointGone => Lost::EndpointGone.fmt(f),
            Self::Relay(addresses, error) => {
                let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
                write!(f, "the relay at {} {error}", addresses.join(", "))
            }
        }
    }
}

impl fmt::Display for RelayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer(_) => f.write_str(
                "does not answer: is `anabranch relay serve` running there with that key, does it admit yours, and does the network let UDP through, or TCP to a relay with `--tcp`?",
            ),
            Self::NotJoined(why) => write!(f, "cannot be joined: {why}"),
            Self::Refused(Refusal::NotThere) => {
                f.write_str("has no member with the ticket's key: is the other end running, and did it join this relay?")
            }
            Self::Refused(Refusal::TooOften) => f.write_str("says that this end calls too often: wait a minute"),
            Self::Refused(Refusal::Other) => f.write_str("makes no route to the other end"),
            Self::PeerSilent => f.write_str("knows the other end, but that does not answer: may this end call it?"),
            Self::PeerRefuses => f.write_str("leads to the other end, which refuses the connection"),
            Self::PeerFull(full) => write!(f, "leads to the other end, which {full}"),
            Self::TooMany => f.write_str("is one too many: an endpoint is a member of 8 relays at most"),
            Self::Gone => f.write_str("has ended its connection with this end"),
        }
    }
}

impl fmt::Display for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Relay(error) => error.fmt(f),
            Self::RelayGone => f.write_str("the relay has ended its connection with this end"),
            Self::NotThere => f.write_str(
                "the relay has no such code: is it still shown at the other end, and is this the same relay? A code is for one use",
            ),
            Self::Silent => f.write_str("the end with that code does not answer: is it still running?"),
            Self::Wrong => f.write_str("the code is wrong: look at it again; three wrong ones end it"),
            Self::Guessed => f.write_str(
                "three attempts with this code have failed, so it is over, as somebody may have guessed: start again for a new code",
            ),
            Self::Randomness(error) => write!(f, "the system has no random numbers: {error}"),
        }
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(count) => {
                write!(f, "has {count} connections of your key already, as many as it allows one key: close one first")
            }
            Self::Address(count) => {
                write!(f, "has {count} connections from your address already, as many as it allows one address")
            }
            Self::Everybody(count) => write!(f, "has {count} connections already, as many as it allows: try later"),
        }
    }
}

impl fmt::Display for AddPathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSocket(ip) => write!(f, "no socket of the endpoint sends from {ip}"),
            Self::NotNegotiated => f.write_str("the connection is not open, or has a single path"),
            Self::TooMany => f.write_str("the limit of paths is reached"),
            Self::InUse => f.write_str("the path exists already"),
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
            Self::Reset => "the other end has reset the connection",
            Self::GaveWay => {
                "the other end has as many connections as it allows, and needed the place of this one, which was idle"
            }
            Self::PortClosed => "the other end is silent, and no program has its port any more: it has ended",
            Self::TimedOut => "the other end no longer answers",
            Self::Stalled => {
                "the other end answers, but gets no full packet: packets of 1,228 bytes (IPv6: 1,248) must pass, so raise the MTU of the interface or tunnel on the way that is below"
            }
            Self::Aborted => "the connection was aborted here",
            Self::Misbehaved => "the other end has violated the protocol",
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

impl fmt::Display for DatagramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported => f.write_str(
                "the other end takes no datagrams: its program is older than they are, or has switched them off; use a stream",
            ),
            Self::Disabled => {
                f.write_str("datagrams are switched off at this end: give their send and receive buffers some room")
            }
            Self::TooLarge { len, max } => write!(
                f,
                "a datagram of {len} bytes is too large: it must fit one packet, so at most {max} can be sent now; use a stream for more"
            ),
            Self::Closed => f.write_str("the connection is closed to new datagrams"),
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
            Self::Stopped(code) => write!(f, "the other end has refused the rest of the stream (code {code})"),
            Self::Closed => f.write_str("the stream is closed"),
            Self::Lost(lost) => lost.fmt(f),
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reset(code) => write!(f, "the other end has reset the stream (code {code})"),
            Self::Ended => f.write_str("the stream ended too early"),
            Self::TooLong => f.write_str("the stream is longer than expected"),
            Self::Lost(lost) => lost.fmt(f),
        }
    }
}

impl std::error::Error for BindError {}
impl std::error::Error for RateTooLow {}
impl std::error::Error for AddPathError {}
impl std::error::Error for DatagramError {}
impl std::error::Error for MessageError {}
impl std::error::Error for ConnectError {}
impl std::error::Error for RelayError {}
impl std::error::Error for CodeError {}
impl std::error::Error for Lost {}
impl std::error::Error for StreamError {}
impl std::error::Error for WriteError {}
impl std::error::Error for ReadError {}
