//! A virtual network through the tunnel: IP packets of a device (TUN) at either end.
//!
//! A packet is a datagram of the connection: unreliable, as IP is, so that the programs' own congestion control works. What is larger than a datagram goes
//! over a pair of streams, each packet behind its length; the same streams mark the begin and the end.
//!
//! ```text
//! client ──[vpn 7]──> server                                              stream: packets that are too large follow
//!        <──[answer 7, done][lease: addresses]──                           the same in the opposite direction
//!        ──(7, place, packet)──>  <──(7 from the server, place, packet)──  datagrams
//! ```
//!
//! On its way, a packet waits in a fair queue for each client (`queue`): flows take turns, and none waits for longer than a tenth of a second. Datagrams of
//! several paths overtake each other; the receiver puts those of a flow in order (`order`), for a time that the paths' RTTs tell.
//!
//! Nobody is trusted: each packet's header is checked (`packet`); a server takes packets only from the address that the client has of it, a client only
//! those for its own address and from networks that are routed to the tunnel.
//!
//! * [`Hub`] is the server's side: addresses for clients (`pool`), and the device that they share. [`Seat`] is the client's.
//! * [`Device`] is what reads and writes packets; [`Lease`] has the client's addresses, [`IpNetwork`] is an address with its prefix.

mod carrier;
mod hub;
mod ip_network;
mod lane;
mod lease;
mod order;
mod packet;
mod pool;
mod queue;
mod seat;

use std::future::Future;
use std::io;

pub(crate) use carrier::Streams;
pub(crate) use carrier::inbox as datagrams;
pub use hub::Hub;
pub use ip_network::{IpNetwork, ParseIpNetworkError};
pub use lease::{Address, Lease};
pub use seat::{Seat, Traffic};

/// What reads and writes IP packets: a TUN device.
pub trait Device: Send + Sync {
    /// Waits for the next packet that the system sends there, and returns its length.
    ///
    /// # Errors
    /// If the device is gone.
    fn recv(&self, packet: &mut [u8]) -> impl Future<Output = io::Result<usize>> + Send;

    /// Gives a packet to the system.
    ///
    /// # Errors
    /// If the system does not take this packet.
    fn send(&self, packet: &[u8]) -> impl Future<Output = io::Result<()>> + Send;

    /// The largest packet that the system may send there has changed.
    fn set_mtu(&self, mtu: u16);
}

/// The least MTU of a device: IPv6 demands it ([rfc-8200] sec. 5).
pub const MTU_MIN: u16 = 1280;

/// The largest packet.
pub(crate) const PACKET_MAX: usize = u16::MAX as usize;
