//! A UDP socket that reads and sends batches, as far as the system supports them.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use anabranch_proto::endpoint::{Arrival, Batch};
use anabranch_proto::{Address, EcnCodepoint, FourTuple};
use bytes::BytesMut;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use tokio::io::Interest;

use crate::address;
use crate::clock::Clock;

/// A socket of an endpoint. One task reads it, several may send over it.
#[derive(Debug)]
pub(crate) struct Socket {
    io: Arc<tokio::net::UdpSocket>,
    state: UdpSocketState,
    local: SocketAddr,
    /// Read buffers, one for each message of a batch.
    buffers: Vec<Buffer>,
    metas: Vec<RecvMeta>,
    /// Consecutive read errors.
    errors: u32,
    /// Set while the kernel has no room.
    writable: Option<Writable>,
}

/// Waits for room in the kernel. The runtime's own poll function would wake only one of several senders.
struct Writable(Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>);

/// A read buffer. Messages are taken from it without a copy, and its memory is reused when it is no longer needed.
#[derive(Debug)]
struct Buffer {
    room: BytesMut,
    /// The longest message so far.
    message: usize,
}

/// Datagrams that were received together.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) arrival: Arrival,
    pub(crate) datagrams: BytesMut,
    /// Whether the kernel has timestamped the datagrams.
    pub(crate) has_time: bool,
}

impl Received {
    /// The same for another shard.
    pub(crate) fn copy(&self) -> Self {
        Self { arrival: self.arrival, datagrams: self.datagrams.clone(), has_time: self.has_time }
    }
}

impl Socket {
    /// Wraps a bound socket for tokio. `buffer` is the requested size of either kernel buffer.
    pub(crate) fn new(socket: UdpSocket, buffer: usize) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        // The system may grant less.
        _ = state.set_recv_buffer_size((&socket).into(), buffer);
        _ = state.set_send_buffer_size((&socket).into(), buffer);
        let local = socket.local_addr()?;
        let io = Arc::new(tokio::net::UdpSocket::from_std(socket)?);
        Ok(Self::of(io, state, local))
    }

    /// The same socket for another task.
    pub(crate) fn share(&self) -> io::Result<Self> {
        let state = UdpSocketState::new((&*self.io).into())?;
        Ok(Self::of(Arc::clone(&self.io), state, self.local))
    }

    fn of(io: Arc<tokio::net::UdpSocket>, state: UdpSocketState, local: SocketAddr) -> Self {
        let message = if state.gro_segments() > 1 { MESSAGE_MAX } else { DATAGRAM_MAX };
        let metas = vec![RecvMeta::default(); quinn_udp::BATCH_SIZE.min(MESSAGES_MAX)];
        let buffers = metas.iter().map(|_| Buffer { room: BytesMut::new(), message }).collect();
        Self { io, state, local, buffers, metas, errors: 0, writable: None }
    }

    /// The bound address.
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// The number of datagrams of one length that the kernel sends at once.
    pub(crate) fn batch_max(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// The number of datagrams that the kernel may deliver as one message.
    pub(crate) fn received_at_once(&self) -> usize {
        self.state.gro_segments()
    }

    /// The sizes of the kernel's receive and send buffer.
    pub(crate) fn buffers(&self) -> (usize, usize) {
        let read = |size: io::Result<usize>| size.unwrap_or_default();
        (read(self.state.recv_buffer_size((&*self.io).into())), read(self.state.send_buffer_size((&*self.io).into())))
    }

    /// Bytes of datagrams that the kernel holds until they are read. Linux tells twice of what was asked for, and counts its own
    /// overhead; joined datagrams have little.
    pub(crate) fn holds(&self) -> u64 {
        (self.buffers().0 / 2).max(HOLDS_LEAST) as u64
    }

    /// Reads a batch and passes it on.
    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        clock: &Clock,
        mut take: impl FnMut(Received),
    ) -> Poll<io::Result<()>> {
        let Self { io, state, local, buffers, metas, errors, .. } = self;
        let count = loop {
            ready!(io.poll_recv_ready(cx))?;
            let mut slices = buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer.room()));
            let mut slices: [IoSliceMut<'_>; MESSAGES_MAX] =
                std::array::from_fn(|_| slices.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
            let slices = &mut slices[..metas.len()];
            match io.try_io(Interest::READABLE, || state.recv((&**io).into(), slices, metas)) {
                Ok(count) => break count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // [rfc-1122] sec. 4.1.3.3: an ICMP error about an earlier datagram says nothing about later ones, nor does a
                // network that is temporarily down. A socket that is gone returns the same error for ever.
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

    /// Sends a batch, or waits until the kernel has room. A datagram that cannot be sent counts as lost.
    pub(crate) fn poll_send(&mut self, cx: &mut Context<'_>, batch: &Batch, bytes: &[u8]) -> Poll<io::Result<()>> {
        let is_ipv6 = self.local.is_ipv6();
        let source = self.source(batch.tuple.local);
        let transmit = Transmit {
            destination: address::for_family(batch.tuple.remote, is_ipv6),
            ecn: batch.ecn.and_then(|codepoint| quinn_udp::EcnCodepoint::from_bits(codepoint.bits())),
            contents: bytes,
            segment_size: (batch.count > 1).then_some(batch.size),
            src_ip: source,
        };
        let send = || self.state.try_send((&*self.io).into(), &transmit);
        // The runtime does not know yet that a new socket is writable, so sending is tried first.
        let mut sent = send();
        while sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            let writable = self.writable.get_or_insert_with(|| {
                let io = Arc::clone(&self.io);
                Writable(Box::pin(async move { io.writable().await }))
            });
            let is_ready = ready!(writable.0.as_mut().poll(cx));
            self.writable = None;
            if is_ready.is_err() {
                break;
            }
            sent = self.io.try_io(Interest::WRITABLE, send);
        }
        let is_invalid = sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::InvalidInput);
        if is_invalid && source.is_some_and(|ip| UdpSocket::bind((ip.to_canonical(), 0)).is_err()) {
            // The source address is gone. The library takes this error for an offload or a codepoint that the system does not
            // support, and would do without both from now on.
            self.renew();
        }
        Poll::Ready(sent)
    }

    /// Sends datagrams of `size` bytes, the last of which may be shorter, if the kernel has room. Otherwise they are lost.
    pub(crate) fn try_send(&self, tuple: &FourTuple, ecn: Option<EcnCodepoint>, size: usize, bytes: &[u8]) {
        let transmit = Transmit {
            destination: address::for_family(tuple.remote, self.local.is_ipv6()),
            ecn: ecn.and_then(|codepoint| quinn_udp::EcnCodepoint::from_bits(codepoint.bits())),
            contents: bytes,
            segment_size: (bytes.len() > size).then_some(size),
            src_ip: self.source(tuple.local),
        };
        let most = self.batch_max().saturating_mul(size).max(1);
        for contents in bytes.chunks(most) {
            let segment_size = transmit.segment_size.filter(|size| contents.len() > *size);
            _ = self.state.try_send((&*self.io).into(), &Transmit { contents, segment_size, ..transmit });
        }
    }

    /// Forgets what the library has learned of the system. The sizes of the buffers remain.
    fn renew(&mut self) {
        if let Ok(state) = UdpSocketState::new((&*self.io).into()) {
            self.state = state;
        }
    }

    /// The source address for a socket that is bound to all addresses.
    fn source(&self, local: Address) -> Option<IpAddr> {
        let ip = address::for_family(local, self.local.is_ipv6()).ip();
        (self.local.ip().is_unspecified() && !ip.is_unspecified()).then_some(ip)
    }
}

impl fmt::Debug for Writable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Writable(..)")
    }
}

impl Buffer {
    /// Space for a message.
    fn room(&mut self) -> &mut [u8] {
        if self.room.len() < self.message {
            self.room.clear();
            self.room.reserve(2 * self.message);
            self.room.resize(2 * self.message, 0);
        }
        &mut self.room[..self.message]
    }

    /// Takes a message that was read. A short message is copied, so that it does not keep the whole buffer.
    fn take(&mut self, len: usize) -> BytesMut {
        if len < COPIED_MAX { BytesMut::from(&self.room[..len]) } else { self.room.split_to(len) }
    }
}

/// The local address of a datagram, as far as known.
fn here(local: SocketAddr, destination: Option<IpAddr>) -> IpAddr {
    if local.ip().is_unspecified() { destination.unwrap_or(local.ip()) } else { local.ip() }
}

/// Messages read at once. With receive offload each may contain many datagrams, which must be answered soon.
const MESSAGES_MAX: usize = 16;

/// Linux grants 425,984 bytes by default, in which this much mostly finds room, as joined messages: on loopback 2.5 % are lost then. A smaller
/// window is slower.
const HOLDS_LEAST: usize = 1 << 19;

/// ICMP may return this many errors between two arrivals.
const ERRORS_MAX: u32 = 10_000;

/// Messages up to this size are copied.
const COPIED_MAX: usize = 4_096;

/// The largest message into which the kernel joins datagrams.
const MESSAGE_MAX: usize = 65_535;

/// The largest packets of common networks. Read buffers without offload hold no more. Over loopback's 65,536 bytes a byte takes as much processor time as
/// with these, and a segment would be larger than the least part of a socket's buffer.
pub(crate) const PACKET_MAX: u32 = 9_000;

/// More than any of our datagrams. A longer datagram is truncated, and fails authentication.
const DATAGRAM_MAX: usize = 9_216;
