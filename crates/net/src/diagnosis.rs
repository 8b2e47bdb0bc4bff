//! Tests the features of this computer's UDP sockets.

use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use anabranch_proto::endpoint::Batch;
use anabranch_proto::{EcnCodepoint, FourTuple};

use crate::address;
use crate::clock::Clock;
use crate::socket::{Received, Socket};

/// The features of a UDP socket on this computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// Datagrams that the kernel sends with one call (GSO); 1 without offload.
    pub sent_at_once: usize,
    /// Datagrams that the kernel may deliver with one call (GRO); 1 without offload.
    pub received_at_once: usize,
    /// Whether ECN marks pass in both directions.
    pub has_ecn: bool,
    /// Whether the kernel timestamps arrivals.
    pub has_arrival_times: bool,
    /// The granted size of the receive buffer in bytes.
    pub receive_buffer: usize,
    /// The granted size of the send buffer in bytes.
    pub send_buffer: usize,
}

impl Diagnosis {
    /// Tests two sockets of this computer at `address`, each with requested buffers of `buffer` bytes.
    ///
    /// # Errors
    /// If the sockets cannot be made, or nothing arrives.
    pub async fn of(address: SocketAddr, buffer: usize) -> io::Result<Self> {
        let bind = || Socket::new(UdpSocket::bind(SocketAddr::new(address.ip(), 0))?, buffer);
        let (mut from, mut to) = (bind()?, bind()?);
        let tuple = FourTuple { local: address::of(from.local()), remote: address::of(to.local()) };
        let batch = Batch::marked(tuple, Some(EcnCodepoint::Ect0), GREETING.len());
        poll_fn(|cx| from.poll_send(cx, &batch, GREETING)).await?;
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

/// On one computer, arrival takes microseconds.
const ARRIVES_WITHIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// Every system that runs these tests supports ECN marks and batches over loopback, and grants some buffer.
    #[tokio::test]
    async fn loopback_can_do_everything() {
        let found = Diagnosis::of("127.0.0.1:0".parse().unwrap(), 65_536).await.unwrap();
        assert!(found.has_ecn && found.receive_buffer >= 65_536 && found.send_buffer >= 65_536, "{found:?}");
        #[cfg(target_os = "linux")]
        assert!(found.has_arrival_times && found.sent_at_once > 1 && found.received_at_once > 1, "{found:?}");
    }
}
