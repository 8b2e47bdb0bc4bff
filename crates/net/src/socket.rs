//! A UDP socket that reads and sends batches, as far as the system has them.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::task::{Context, Poll, ready};

use anabranch_proto::endpoint::{Arrival, Batch};
use anabranch_proto::{Address, EcnCodepoint, FourTuple};
use bytes::BytesMut;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use tokio::io::Interest;

use crate::address;
use crate::clock::Clock;

/// The socket of an endpoint.
#[derive(Debug)]
pub(crate) struct Socket {
    io: tokio::net::UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    /// What is read into, one for each message of a batch.
    buffers: Vec<Buffer>,
    metas: Vec<RecvMeta>,
    /// Errors of reading in a row.
    errors: u32,
}

/// Memory to read into. What has been read leaves without a copy, and comes back when nobody needs it any more.
#[derive(Debug)]
struct Buffer {
    room: BytesMut,
    /// The longest message.
    message: usize,
}

/// Datagrams that came together.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) arrival: Arrival,
    pub(crate) datagrams: BytesMut,
    /// Whether the system has said when they came.
    pub(crate) has_time: bool,
}

impl Socket {
    /// Makes one of a bound socket, in tokio's care. `buffer` is what the kernel is asked to hold either way.
    pub(crate) fn new(socket: UdpSocket, buffer: usize) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        // What the system does not give is not to be had.
        _ = state.set_recv_buffer_size((&socket).into(), buffer);
        _ = state.set_send_buffer_size((&socket).into(), buffer);
        let local = socket.local_addr()?;
        let io = tokio::net::UdpSocket::from_std(socket)?;
        let message = if state.gro_segments() > 1 { MESSAGE_MAX } else { DATAGRAM_MAX };
        let metas = vec![RecvMeta::default(); quinn_udp::BATCH_SIZE.min(MESSAGES_MAX)];
        let buffers = metas.iter().map(|_| Buffer { room: BytesMut::new(), message }).collect();
        Ok(Self { io, state, local, buffers, metas, errors: 0 })
    }

    /// Where it is bound.
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// How many datagrams of one length the kernel takes at once.
    pub(crate) fn batch_max(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// How many datagrams the kernel may hand over as one message.
    pub(crate) fn received_at_once(&self) -> usize {
        self.state.gro_segments()
    }

    /// Bytes that the kernel holds until they are read, and until they leave.
    pub(crate) fn buffers(&self) -> (usize, usize) {
        let read = |size: io::Result<usize>| size.unwrap_or_default();
        (read(self.state.recv_buffer_size((&self.io).into())), read(self.state.send_buffer_size((&self.io).into())))
    }

    /// Reads a batch, and hands out what came.
    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        clock: &Clock,
        mut take: impl FnMut(Received),
    ) -> Poll<io::Result<()>> {
        let Self { io, state, local, buffers, metas, errors } = self;
        let count = loop {
            ready!(io.poll_recv_ready(cx))?;
            let mut slices = buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer.room()));
            let mut slices: [IoSliceMut<'_>; MESSAGES_MAX] =
                std::array::from_fn(|_| slices.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
            let slices = &mut slices[..metas.len()];
            match io.try_io(Interest::READABLE, || state.recv((&*io).into(), slices, metas)) {
                Ok(count) => break count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // [rfc-1122] sec. 4.1.3.3: an answer of ICMP to something sent before says nothing about what comes. Nor does a network that is
                // down for now; a socket that is gone says the same for ever.
                Err(error) if *errors >= ERRORS_MAX => return Poll::Ready(Err(error)),
                Err(_) => *errors += 1,
            }
        };
        *errors = 0;
        let reading = clock.read();
        for (meta, buffer) in metas[..count].iter().zip(buffers) {
            let here = address::of(SocketAddr::new(here(*local, meta.dst_ip), local.port()));
            let tuple = FourTuple { local: here, remote: address::of(meta.addr) };
            let ecn = meta.ecn.and_then(|codepoint| EcnCodepoint::from_bits(codepoint as u8));
            let arrival = Arrival { at: reading.arrival(meta.timestamp), tuple, size: meta.stride, ecn };
            let has_time = meta.timestamp.is_some();
            take(Received { arrival, datagrams: buffer.take(meta.len), has_time });
        }
        Poll::Ready(Ok(()))
    }

    /// Sends a batch, or waits until the kernel has room. What cannot be sent is as good as lost.
    pub(crate) fn poll_send(&self, cx: &mut Context<'_>, batch: &Batch, bytes: &[u8]) -> Poll<()> {
        let is_ipv6 = self.local.is_ipv6();
        let transmit = Transmit {
            destination: address::for_family(batch.tuple.remote, is_ipv6),
            ecn: batch.ecn.and_then(|codepoint| quinn_udp::EcnCodepoint::from_bits(codepoint.bits())),
            contents: bytes,
            segment_size: (batch.count > 1).then_some(batch.size),
            src_ip: self.source(batch.tuple.local),
        };
        let send = || self.state.try_send((&self.io).into(), &transmit);
        // Of a new socket the runtime does not know yet that it has room.
        let mut sent = send();
        while sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            if ready!(self.io.poll_send_ready(cx)).is_err() {
                break;
            }
            sent = self.io.try_io(Interest::WRITABLE, send);
        }
        Poll::Ready(())
    }

    /// From which of its addresses a socket without one of its own sends.
    fn source(&self, local: Address) -> Option<IpAddr> {
        let ip = address::for_family(local, self.local.is_ipv6()).ip();
        (self.local.ip().is_unspecified() && !ip.is_unspecified()).then_some(ip)
    }
}

impl Buffer {
    /// Room for a message.
    fn room(&mut self) -> &mut [u8] {
        if self.room.len() < self.message {
            self.room.clear();
            self.room.reserve(2 * self.message);
            self.room.resize(2 * self.message, 0);
        }
        &mut self.room[..self.message]
    }

    /// A message that has been read. A short one is copied, so that it does not keep all of the memory.
    fn take(&mut self, len: usize) -> BytesMut {
        if len < COPIED_MAX { BytesMut::from(&self.room[..len]) } else { self.room.split_to(len) }
    }
}

/// The address at which a datagram came, as far as it is known.
fn here(local: SocketAddr, destination: Option<IpAddr>) -> IpAddr {
    if local.ip().is_unspecified() { destination.unwrap_or(local.ip()) } else { local.ip() }
}

/// Messages read at once: with receive offload each may have many datagrams, and what has been read must be answered before long.
const MESSAGES_MAX: usize = 16;

/// As many errors as datagrams may have been answered by ICMP since the last one came.
const ERRORS_MAX: u32 = 10_000;

/// Shorter messages are copied.
const COPIED_MAX: usize = 4_096;

/// The most that the kernel joins.
const MESSAGE_MAX: usize = 65_535;

/// More than any of our datagrams has on a path to the Internet; what is longer is cut, and so forged.
const DATAGRAM_MAX: usize = 9_216;
