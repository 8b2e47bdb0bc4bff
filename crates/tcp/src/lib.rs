//! Genuine TCP in user space: the engine's TCP form on IP packets, for any peer that speaks TCP.
//!
//! ```text
//!   TcpStream, Listener      tokio's AsyncRead and AsyncWrite                      host     (Linux)
//!          |
//!        Host                a task: TUN device, clock, wakers                     host     (Linux)
//!          |
//!         Mux                streams of one connection that several share          mux      (sans I/O)
//!          |
//!        Stack               connections by four-tuple, listeners, resets, ICMP    stack    (sans I/O)
//!          |
//!   Connection<Bytes>        one connection                                        crates/proto
//!          |
//!        packet              IPv4 and IPv6 around encoded segments                 packet
//! ```
//!
//! A listener whose backlog is full answers with SYN cookies: it keeps nothing of a peer until that peer has shown that it gets our answers.
//!
//! Not here yet: TCP Fast Open.

mod cookie;
#[cfg(target_os = "linux")]
mod host;
mod key;
mod mux;
#[cfg(target_os = "linux")]
mod offload;
mod packet;
mod parts;
mod socket;
mod stack;
#[cfg(test)]
mod testing;

pub use anabranch_proto::{Config, ConfigError, KeepAlive};

#[cfg(target_os = "linux")]
pub use self::host::{Acknowledged, Host, HostError, Listener, TcpStream};
pub use self::mux::Mux;
pub use self::packet::{Body, IpFields, Notice, NoticeKind, Packet, Unfit};
pub use self::socket::{Settings, SocketError, SocketEvent, SocketId, StackTally};
