//! What the sockets of this computer can do.

use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use anabranch_proto::endpoint::Batch;
use anabranch_proto::{EcnCodepoint, FourTuple};

use crate::address;
use crate::clock::Clock;
use crate::socket::{Received, Socket};

/// What a UDP socket of this computer can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// Datagrams that the kernel takes with one call (GSO); 1 if it takes them one by one.
    pub sent_at_once: usize,
    /// Datagrams that it may hand over with one call (GRO); 1 if one by one.
    pub received_at_once: usize,
    /// Whether marks of ECN pass it both ways.
    pub has_ecn: bool,
    /// Whether it says when a datagram came.
    pub has_arrival_times: bool,
    /// Bytes that it holds until they are read, and until they leave, of those that were asked for.
    pub receive_buffer: usize,
    /// See there.
    pub send_buffer: usize,
}

impl Diagnosis {
    /// Has two sockets of this computer talk, at this address of its own, each of which asks for such buffers.
    ///
    /// # Errors
    /// If there are no such sockets, or nothing arrives.
    pub async fn of(address: SocketAddr, buffer: usize) -> io::Result<Self> {
        let bind = || Socket::new(UdpSocket::bind(SocketAddr::new(address.ip(), 0))?, buffer);
        let (from, mut to) = (bind()?, bind()?);
        let tuple = FourTuple { local: address::of(from.local()), remote: address::of(to.local()) };
        let batch = Batch::marked(tuple, Some(EcnCodepoint::Ect0), GREETING.len());
        poll_fn(|cx| from.poll_send(cx, &batch, GREETING)).await;
        let (clock, mut received) = (Clock::new(), None);
        let receive = poll_fn(|cx| to.poll_receive(cx, &clock, |batch| received = Some(batch)));
        tokio::time::timeout(ARRIVES_WITHIN, receive).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        let Some(Received { arrival, has_time, .. }) = received else { return Err(io::ErrorKind::TimedOut.into()) };
        let (receive_buffer, send_buffer) = to.buffers();
        Ok(Self {
            sent_at_once: from.batch_max(),
            received_at_once: to.received_at_once(),
            has_ecn: arrival.ecn == Some(EcnCodepoint::Ect0),
            has_arrival_times: has_time,
            receive_buffer,
            send_buffer,
        })
    }
}

const GREETING: &[u8] = b"anabranch";

/// On one computer it takes microseconds.
const ARRIVES_WITHIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// Every system that tests run on marks and batches over its own interface, and gives a buffer of some kind.
    #[tokio::test]
    async fn loopback_can_do_everything() {
        let found = Diagnosis::of("127.0.0.1:0".parse().unwrap(), 65_536).await.unwrap();
        assert!(found.has_ecn && found.receive_buffer >= 65_536 && found.send_buffer >= 65_536, "{found:?}");
        #[cfg(target_os = "linux")]
        assert!(found.has_arrival_times && found.sent_at_once > 1 && found.received_at_once > 1, "{found:?}");
    }
}
