//! The sockets of an endpoint: one for each bound address, and what carries datagrams over TCP.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use anabranch_proto::endpoint::Batch;
use anabranch_proto::{Address, EcnCodepoint, FourTuple};

use crate::address;
use crate::carriers::{self, Carriers};
use crate::clock::Clock;
use crate::socket::{Received, Socket};

/// All sockets of an endpoint.
#[derive(Debug)]
pub(crate) struct Sockets {
    all: Vec<Socket>,
    addresses: Vec<SocketAddr>,
    carriers: Arc<Carriers>,
}

impl Sockets {
    pub(crate) fn new(first: Socket, carriers: Arc<Carriers>) -> Self {
        Self { addresses: vec![first.local()], all: vec![first], carriers }
    }

    pub(crate) fn push(&mut self, socket: Socket) {
        self.addresses.push(socket.local());
        self.all.push(socket);
    }

    /// The number of datagrams of one length that every socket sends at once.
    pub(crate) fn batch_max(&self) -> usize {
        self.all.iter().map(Socket::batch_max).min().unwrap_or(1)
    }

    /// Reads a batch from each socket, and what has come over TCP. Calls `lost` for a socket that is gone.
    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        clock: &Clock,
        received: &mut Vec<Received>,
        mut lost: impl FnMut(SocketAddr),
    ) -> Poll<io::Result<()>> {
        let (mut is_ready, mut place) = (false, 0);
        while let Some(socket) = self.all.get_mut(place) {
            match socket.poll_receive(cx, clock, |batch| received.push(batch)) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => is_ready = true,
                // Without any socket, the endpoint is gone.
                Poll::Ready(Err(error)) if self.all.len() == 1 => return Poll::Ready(Err(error)),
                Poll::Ready(Err(_)) => {
                    self.all.remove(place);
                    lost(self.addresses.remove(place));
                    continue;
                }
            }
            place += 1;
        }
        is_ready |= self.carriers.poll_take(cx, received).is_ready();
        if is_ready { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Sends a batch over the socket of its local address, or waits until the kernel has room. With several sockets it never
    /// waits: datagrams that do not fit are dropped as by a full queue, so a stalled interface does not block the others. Nor does it
    /// wait for TCP.
    pub(crate) fn poll_send(&mut self, cx: &mut Context<'_>, batch: &Batch, bytes: &[u8]) -> Poll<io::Result<()>> {
        if let Some(carrier) = carriers::number(batch.tuple.local) {
            self.carriers.send(carrier, batch.size, bytes);
            return Poll::Ready(Ok(()));
        }
        let Some(place) = serving(&self.addresses, batch.tuple.local) else { return Poll::Ready(Ok(())) };
        match self.all[place].poll_send(cx, batch, bytes) {
            Poll::Pending if self.all.len() > 1 => Poll::Ready(Ok(())),
            sent => sent,
        }
    }

    /// Sends datagrams of `size` bytes over the socket of this local address, if the kernel has room. Otherwise they are lost. Returns
    /// `false` if the queue of a TCP connection was full.
    pub(crate) fn try_send(&self, tuple: &FourTuple, ecn: Option<EcnCodepoint>, size: usize, bytes: &[u8]) -> bool {
        if let Some(carrier) = carriers::number(tuple.local) {
            return self.carriers.send(carrier, size, bytes);
        }
        if let Some(place) = serving(&self.addresses, tuple.local) {
            self.all[place].try_send(tuple, ecn, size, bytes);
        }
        true
    }

    /// The same sockets for another task.
    pub(crate) fn share(&self) -> io::Result<Self> {
        let all = self.all.iter().map(Socket::share).collect::<io::Result<_>>()?;
        Ok(Self { all, addresses: self.addresses.clone(), carriers: Arc::clone(&self.carriers) })
    }

    /// The bound addresses.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The bound address of the socket that serves this local address.
    pub(crate) fn bound(&self, local: Address) -> Option<SocketAddr> {
        serving(&self.addresses, local).map(|place| self.addresses[place])
    }
}

/// The socket for a datagram from `local`: the one bound to it, else one with its port that is bound to all addresses.
pub(crate) fn serving(bound: &[SocketAddr], local: Address) -> Option<usize> {
    let is_general = |socket: &SocketAddr| {
        socket.port() == local.port && socket.ip().is_unspecified() && (socket.is_ipv6() || local.is_ipv4())
    };
    bound.iter().position(|socket| address::of(*socket) == local).or_else(|| bound.iter().position(is_general))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_leaves_by_the_socket_of_its_address() {
        let bound: Vec<SocketAddr> =
            ["0.0.0.0:7", "10.0.0.1:7", "[::]:9", "10.0.0.2:11"].map(|text| text.parse().unwrap()).into();
        let by = |local: &str| serving(&bound, address::of(local.parse().unwrap()));
        assert_eq!(by("10.0.0.1:7"), Some(1), "its own before one for all");
        assert_eq!(by("10.0.0.5:7"), Some(0));
        assert_eq!(by("[2001:db8::1]:7"), None, "a socket of IPv4 sends no IPv6");
        assert_eq!((by("[2001:db8::1]:9"), by("10.0.0.5:9")), (Some(2), Some(2)), "one of IPv6 sends both");
        assert_eq!(by("10.0.0.5:11"), None, "that port is another address's");
    }
}
