//! UDP through the tunnel, a flow for each pair of a program here and a target there.
//!
//! A packet is a datagram of the connection: the number of its flow, then its bytes. What no datagram carries goes over the flow's pair of
//! streams, each packet behind its length: packets before the answer, so that the first one does not wait for a round trip; those that are
//! larger than a datagram; and all of them if an end takes no datagrams. The streams also mark the flow's beginning and end.
//!
//! ```text
//! opener  ──[flow 7, example.org:53][length][packet]──> exit ──UDP──> example.org:53      stream, until the answer is here
//!         <──[answer 7, done]──────────────────────────
//!         ──(7, packet)──>  <──(7 from the exit, packet)──                                 datagrams
//! ```
//!
//! A datagram that the network has not taken within a quarter of a second is dropped, and so is a packet that finds 64 others of its flow waiting:
//! programs that use UDP expect losses, and none expects a queue of seconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anabranch::{Connection, DatagramError, RecvStream, SendStream};
use bytes::{BufMut as _, Bytes, BytesMut};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::header::Answer;
use crate::sparse::Recent;
use crate::target::Target;

/// The number in the datagrams of a flow: the opener's, and who sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FlowNumber(u32);

/// Where the packets to the other end come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A port of this end that many programs use.
    Queue(mpsc::Receiver<Bytes>),
    /// The socket to a target, and room for a packet.
    Target(Arc<UdpSocket>, Vec<u8>),
}

/// Where the packets of the other end go.
#[derive(Debug)]
pub(crate) enum Sink {
    /// To a program, by a port of this end, behind a header.
    Program { socket: Arc<UdpSocket>, to: std::net::SocketAddr, header: Bytes },
    /// To a target.
    Target(Arc<UdpSocket>),
}

/// What carries a flow.
pub(crate) struct Carrier<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) number: FlowNumber,
    pub(crate) out: SendStream,
    /// The other end's datagrams.
    pub(crate) inbox: mpsc::Receiver<Bytes>,
}

impl FlowNumber {
    /// The number in the datagrams of the opener.
    pub(crate) fn of_opener(number: u32) -> Self {
        Self(number & !EXIT)
    }

    /// The number in the datagrams of the other direction.
    pub(crate) fn back(self) -> Self {
        Self(self.0 ^ EXIT)
    }

    /// The number as a datagram bears it.
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    /// Takes the number from the front of a datagram.
    pub(crate) fn take(datagram: &mut Bytes) -> Option<Self> {
        let number = datagram.first_chunk::<NUMBER_LEN>().map(|bytes| Self(u32::from_le_bytes(*bytes)))?;
        _ = datagram.split_to(NUMBER_LEN);
        Some(number)
    }

    /// A datagram of this packet.
    fn before(self, packet: &[u8]) -> Bytes {
        let mut datagram = BytesMut::with_capacity(NUMBER_LEN + packet.len());
        datagram.put_u32_le(self.0);
        datagram.put_slice(packet);
        datagram.freeze()
    }
}

/// A queue for the packets of a flow.
pub(crate) fn queue() -> (mpsc::Sender<Bytes>, mpsc::Receiver<Bytes>) {
    mpsc::channel(WAITING_MAX)
}

impl Carrier<'_> {
    /// Moves packets until either end closes the flow, or no packet has come for two to four minutes.
    ///
    /// # Errors
    /// If the other end's stream does not come.
    pub(crate) async fn carry<E>(
        self,
        mut source: Source,
        sink: Sink,
        back: impl Future<Output = Result<RecvStream, E>>,
    ) -> Result<(), E> {
        let Self { connection, number, mut out, mut inbox } = self;
        // Packets of a full size, as of WireGuard, would go over the stream until one of them has begun it.
        search(connection);
        let (is_active, is_answered) = (AtomicBool::new(true), AtomicBool::new(false));
        let up = async {
            let mut recent = Recent::new(Instant::now());
            while let Some(packet) = source.next().await {
                is_active.store(true, Ordering::Relaxed);
                let is_sparse = recent.is_sparse(Instant::now(), packet.len());
                let is_sent = is_answered.load(Ordering::Relaxed) && send(connection, number, &packet, is_sparse)?;
                if !is_sent {
                    write(&mut out, &packet).await?;
                }
            }
            Err(Ended)
        };
        let datagrams = async {
            while let Some(packet) = inbox.recv().await {
                is_active.store(true, Ordering::Relaxed);
                sink.put(&packet).await;
            }
            Err(Ended)
        };
        let streamed = async {
            let mut back = back.await?;
            is_answered.store(true, Ordering::Relaxed);
            while let Ok(packet) = read(&mut back).await {
                is_active.store(true, Ordering::Relaxed);
                sink.put(&packet).await;
            }
            Ok(())
        };
        let result = tokio::select! {
            Err::<(), _>(Ended) = up => Ok(()),
            Err::<(), _>(Ended) = datagrams => Ok(()),
            ended = streamed => ended,
            () = silence(&is_active) => Ok(()),
        };
        _ = out.finish();
        result
    }
}

/// Waits until nothing has set the flag for a whole interval.
async fn silence(is_active: &AtomicBool) {
    while is_active.swap(false, Ordering::Relaxed) {
        sleep(IDLE_MAX).await;
    }
}

/// The flow is over.
struct Ended;

/// Sends a packet as a datagram. Returns false if no datagram carries it.
fn send(connection: &Connection, number: FlowNumber, packet: &[u8], is_sparse: bool) -> Result<bool, Ended> {
    match send_datagram(connection, number.before(packet), EXPIRES, is_sparse) {
        Ok(()) => Ok(true),
        Err(DatagramError::TooLarge { .. } | DatagramError::Disabled | DatagramError::Unsupported) => Ok(false),
        Err(_) => Err(Ended),
    }
}

/// Sends a datagram: an urgent one of a sparse flow.
pub(crate) fn send_datagram(
    connection: &Connection,
    datagram: Bytes,
    within: Duration,
    is_sparse: bool,
) -> Result<(), DatagramError> {
    if is_sparse {
        connection.send_urgent_datagram(datagram, within)
    } else {
        connection.send_datagram_within(datagram, within)
    }
}

/// Begins a search for the largest packet: no packet carries this one, so it is refused.
pub(crate) fn search(connection: &Connection) {
    _ = connection.send_datagram(Bytes::from_static(&[0; 9000]));
}

async fn write(out: &mut SendStream, packet: &[u8]) -> Result<(), Ended> {
    let mut framed = BytesMut::with_capacity(2 + packet.len());
    // A packet of UDP is never longer.
    framed.put_u16_le(packet.len().min(PACKET_MAX) as u16);
    framed.put_slice(&packet[..packet.len().min(PACKET_MAX)]);
    out.write_all_bytes(framed.freeze()).await.map_err(|_| Ended)
}

async fn read(back: &mut RecvStream) -> Result<Bytes, Ended> {
    let mut len = [0; 2];
    back.read_exact(&mut len).await.map_err(|_| Ended)?;
    let mut packet = vec![0; u16::from_le_bytes(len).into()];
    back.read_exact(&mut packet).await.map_err(|_| Ended)?;
    Ok(packet.into())
}

impl Source {
    pub(crate) fn target(socket: Arc<UdpSocket>) -> Self {
        Self::Target(socket, vec![0; PACKET_MAX])
    }

    /// The next packet; `None` if there will be no more.
    async fn next(&mut self) -> Option<Bytes> {
        match self {
            Self::Queue(packets) => packets.recv().await,
            Self::Target(socket, room) => loop {
                match socket.recv(room).await {
                    Ok(len) => return Some(Bytes::copy_from_slice(&room[..len])),
                    // Nobody listens there now, or the route is gone for a while.
                    Err(_) => sleep(AGAIN).await,
                }
            },
        }
    }
}

impl Sink {
    /// Sends a packet. An error is a loss: the other program learns of it by the missing answer, as with every UDP.
    async fn put(&self, packet: &[u8]) {
        _ = match self {
            Self::Program { socket, to, header } if header.is_empty() => socket.send_to(packet, to).await,
            Self::Program { socket, to, header } => socket.send_to(&[header, packet].concat(), to).await,
            Self::Target(socket) => socket.send(packet).await,
        };
    }
}

/// A socket to a target, whose name is found within this time. Nothing tells whether anybody listens there.
pub(crate) async fn connect(target: &Target, within: Duration) -> Result<UdpSocket, Answer> {
    let resolved = tokio::time::timeout(within, tokio::net::lookup_host((target.host(), target.port())));
    let addresses = resolved.await.map_err(|_| Answer::TimedOut)?.map_err(|_| Answer::NoHost)?;
    let mut answer = Answer::NoHost;
    for address in addresses {
        let local = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let connected = async {
            let socket = UdpSocket::bind(local).await?;
            socket.connect(address).await.map(|()| socket)
        };
        match connected.await {
            Ok(socket) => return Ok(socket),
            Err(error) if error.kind() == std::io::ErrorKind::NetworkUnreachable => answer = Answer::Unreachable,
            Err(_) => answer = Answer::Failed,
        }
    }
    Err(answer)
}

/// The bit of the exit's direction.
const EXIT: u32 = 1 << 31;

const NUMBER_LEN: usize = 4;

/// The payload of an IPv4 packet of the largest size is a little shorter.
pub(crate) const PACKET_MAX: usize = u16::MAX as usize;

/// Packets of a flow that wait for the other task: those of a large video frame.
const WAITING_MAX: usize = 64;

/// A datagram that waits for longer is of no use to a call or a game, and a resolver asks again after a second.
const EXPIRES: Duration = Duration::from_millis(250);

/// [rfc-4787] REQ-5: a mapping lives for two minutes at least.
const IDLE_MAX: Duration = Duration::from_secs(120);

/// The pause after an error of a socket.
const AGAIN: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_numbers_tell_both_directions_apart() {
        let there = FlowNumber::of_opener(7);
        let mut datagram = there.back().before(b"packet");
        assert_eq!(datagram[..4], [7, 0, 0, 0x80]);
        assert_eq!(FlowNumber::take(&mut datagram), Some(there.back()));
        assert_eq!((&datagram[..], there.back().back()), (&b"packet"[..], there));
        assert_eq!(FlowNumber::of_opener(u32::MAX), FlowNumber(u32::MAX >> 1));
        assert_eq!(FlowNumber::take(&mut Bytes::from_static(b"abc")), None);
    }

    /// A packet each 119 s keeps a flow; after the last one it lives for two to four minutes.
    #[tokio::test(start_paused = true)]
    async fn silence_ends_flow_after_two_to_four_minutes() {
        let (is_active, begin) = (AtomicBool::new(true), tokio::time::Instant::now());
        let packets = async {
            for _ in 0..10 {
                sleep(Duration::from_secs(119)).await;
                is_active.store(true, Ordering::Relaxed);
            }
            begin.elapsed()
        };
        let ended = async {
            silence(&is_active).await;
            begin.elapsed()
        };
        let (last, ended) = tokio::join!(packets, ended);
        assert!((120..=240).contains(&(ended - last).as_secs()), "{ended:?} after {last:?}");
    }
}
