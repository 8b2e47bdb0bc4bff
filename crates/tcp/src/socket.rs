//! What applications know of a stack's sockets.

use std::net::IpAddr;

use anabranch_proto::{CloseReason, Config, ConfigError};

/// The settings of a stack.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The addresses of the host; packets to others are dropped.
    pub addresses: Vec<IpAddr>,
    /// The settings of connections. With streams, what goes to the same port of a peer shares a connection where the peer has streams, too; with 0 each
    /// has its own. With more than one path, a connection with streams that this host opens uses all its addresses of the family, and peers may do so.
    pub connection: Config,
    /// The largest number of sockets.
    pub sockets_max: usize,
    /// Connections of a listener whose handshake is not over, and as many that wait to be accepted. Beyond them it answers with cookies.
    pub backlog: usize,
}

/// A socket of a stack. It is not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketId(pub(crate) u64);

/// Something that happened to a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketEvent {
    /// A connection waits to be accepted at this port.
    Incoming(u16),
    /// The handshake is over.
    Established(SocketId),
    /// There is something to read, which may be the end.
    Readable(SocketId),
    /// There is room again after a write that was not taken whole.
    Writable(SocketId),
    /// The peer calls data urgent beyond what was known of it.
    Urgent(SocketId),
    /// The connection is over.
    Closed(SocketId, CloseReason),
}

/// Why a call on a socket fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketError {
    /// There is no such socket.
    NoSuchSocket,
    /// The connection is over, for this reason.
    Closed(CloseReason),
    /// The side of the connection is closed already.
    NotOpen,
    /// The stack has as many sockets as it may have.
    TooMany,
    /// The port is in use, or none is free.
    PortInUse,
    /// The address is none of the host.
    NotOurs,
    /// The address of the peer is not that of one host, but multicast, broadcast or none, or its port is zero.
    NoHost,
    /// The connection is a pair of streams in one that others share.
    Shared,
    /// The settings of connections are invalid.
    Config(ConfigError),
}

/// Counters of a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackTally {
    /// Packets that arrived.
    pub packets: u64,
    /// Of these: no TCP segment or ICMP message, or none that is right.
    pub unfit: u64,
    /// Parts of segments that a middlebox has split or joined.
    pub parts: u64,
    /// Segments of streams that a middlebox has taken the flag or the extent from.
    pub mangled: u64,
    /// Of these: to an address that is not the host's.
    pub not_ours: u64,
    /// Resets for segments without a connection.
    pub resets: u64,
    /// SYNs that were answered with a cookie.
    pub cookies_sent: u64,
    /// Connections that cookies have opened.
    pub cookies_used: u64,
    /// ICMP messages about a segment in flight.
    pub notices: u64,
    /// Of these: that a packet was too long; path MTU discovery is not there yet.
    pub too_big: u64,
    /// Answers that were dropped because too many waited.
    pub dropped: u64,
}
