//! TCP connections and packets of UDP through a connection of this transport: forwarded ports and SOCKS5, as with `ssh -L`, `-R` and `-D`.
//!
//! Each TCP connection uses a pair of streams, so a lost segment of one does not delay the others. The opener sends a [`Header`],
//! immediately followed by its data. The other end connects to the target and answers on a stream of its own, whose header names
//! the request.
//!
//! ```text
//! client ──TCP──> listener ──[open 7, example.org:80]──data──> exit ──TCP──> example.org:80
//!                          <──[answer 7, connected]────data──
//! ```
//!
//! Packets of UDP are datagrams of the connection, each with the number of its flow, which has a pair of streams for its beginning, its end, and
//! packets that are too large (`flow`). Packets of flows that send little (`sparse`) are urgent.
//!
//! [`Permissions`] limit what the other end may request: the targets to connect to or to send packets to, and whether to listen.
//!
//! * [`Tunnel`] is an end; it opens connections and answers requests. `pipe` moves the bytes. [`forward`] opens streams for
//!   incoming TCP connections, [`udp`] for packets; [`socks`] also gets the target from each client.
//! * [`Header`] begins a stream, [`Target`] is a host and a port, [`PortForward`] is the value of an option.
//!
//! # Limits
//!
//! A listener has at most 4,000 TCP connections open; others wait to be accepted. A server limits the TCP connections of all of its
//! clients, and those of a client and of a network so that others get some, too ([`Shares`]). A header must arrive within ten seconds, and a target must
//! answer within 20 seconds. There are at most 64 listeners for the other end. A pipe buffers 64 kB per direction, in addition to
//! the buffers of streams and TCP. A port has at most 1,000 flows of packets; a flow at the other end counts as a TCP connection. It ends after two to four minutes
//! without a packet.

#![forbid(unsafe_code)]

mod flow;
pub mod forward;
mod header;
mod pipe;
mod ports;
mod shares;
pub mod socks;
mod sparse;
mod specification;
mod target;
mod tunnel;
pub mod udp;
pub mod vpn;

pub use header::{Answer, Header, HeaderError};
pub use ports::{Ports, bind};
pub use shares::Shares;
pub use specification::{ListenAt, ParseForwardError, PortForward};
pub use target::{ParseTargetError, Target};
pub use tunnel::{Common, OpenError, Opened, Permissions, Targets, Tunnel};
