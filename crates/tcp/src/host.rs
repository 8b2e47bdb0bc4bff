//! A stack on a TUN device, driven by a task of tokio (Linux).
//!
//! The kernel routes packets for the addresses of the host to the device, and reads those that the host writes. `ip` gives the device its own address; opening
//! it needs CAP_NET_ADMIN.

use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use anabranch_proto::{Address, CloseReason, FourTuple, PathReport, Read};
use anabranch_units::{Span, Time};
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tun_rs::{AsyncDevice, DeviceBuilder};

use crate::mux::Mux;
use crate::offload::{self, Train};
use crate::packet::{self, IpFields, NoticeKind};
use crate::socket::{Settings, SocketError, SocketEvent, SocketId, StackTally};

/// A host with addresses of its own behind a TUN device.
#[derive(Clone, Debug)]
pub struct Host {
    shared: Arc<Shared>,
    /// Its end ends the task.
    _alive: Arc<Alive>,
}

/// Accepts the connections to a port. Its end resets those that nobody has accepted.
#[derive(Debug)]
pub struct Listener {
    host: Host,
    port: u16,
}

/// A connection. Its end closes it: what was written is still sent.
#[derive(Debug)]
pub struct TcpStream {
    host: Host,
    id: SocketId,
    ends: FourTuple,
}

/// Tells how much the peer of a connection has acknowledged. It does not keep the connection.
#[derive(Clone, Debug)]
pub struct Acknowledged {
    shared: Arc<Shared>,
    id: SocketId,
}

/// Why there is no host.
#[derive(Debug)]
pub enum HostError {
    /// The device cannot be opened.
    Device {
        /// The name that was asked for.
        name: String,
        /// What the system says.
        error: io::Error,
    },
    /// The settings are invalid.
    Settings(anabranch_proto::ConfigError),
}

struct Shared {
    state: Mutex<Inner>,
    /// Commands of applications.
    wake: Notify,
    device: AsyncDevice,
    start: Instant,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("state", &self.state).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Inner {
    mux: Mux,
    sockets: BTreeMap<SocketId, Wakers>,
    listeners: BTreeMap<u16, Option<Waker>>,
    /// All hosts and streams are gone.
    is_over: bool,
    /// The task has ended: the device is gone.
    is_broken: bool,
    /// Packets that the device did not take.
    unsent: u64,
}

#[derive(Debug, Default)]
struct Wakers {
    read: Option<Waker>,
    write: Option<Waker>,
    urgent: Option<Waker>,
}

impl Wakers {
    fn wake(&mut self) {
        [&mut self.read, &mut self.write, &mut self.urgent].into_iter().for_each(|waker| wake(Some(waker)));
    }
}

#[derive(Debug)]
struct Alive(Arc<Shared>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.wake.notify_one();
    }
}

impl Host {
    /// Opens a TUN device, which must exist with this name or is made, and drives a stack on it until the last handle is dropped. `seed` must come from
    /// the system's random source. The runtime must have I/O and time.
    ///
    /// # Errors
    /// If the device cannot be opened, or the settings are invalid.
    pub fn open(name: &str, settings: Settings, seed: [u8; 32]) -> Result<Self, HostError> {
        let mux = Mux::new(settings, seed).map_err(HostError::Settings)?;
        let device = DeviceBuilder::new().name(name).offload(true).inherit_enable_state().build_async();
        let device = device.map_err(|error| HostError::Device { name: name.to_owned(), error })?;
        let inner = Inner {
            mux,
            sockets: BTreeMap::new(),
            listeners: BTreeMap::new(),
            is_over: false,
            is_broken: false,
            unsent: 0,
        };
        let shared = Arc::new(Shared { state: Mutex::new(inner), wake: Notify::new(), device, start: Instant::now() });
        tokio::spawn(drive(Arc::clone(&shared)));
        Ok(Self { _alive: Arc::new(Alive(Arc::clone(&shared))), shared })
    }

    /// Accepts connections to a port.
    ///
    /// # Errors
    /// If the port has a listener.
    pub fn listen(&self, port: u16) -> io::Result<Listener> {
        let mut inner = self.shared.lock();
        inner.mux.listen(port).map_err(io_error)?;
        inner.listeners.insert(port, None);
        Ok(Listener { host: self.clone(), port })
    }

    /// Opens a connection from an address of the host.
    ///
    /// # Errors
    /// If the address is not the host's, or the peer refuses or does not answer.
    pub async fn connect(&self, local: IpAddr, remote: SocketAddr) -> io::Result<TcpStream> {
        let now = self.shared.now();
        let stream = {
            let mut inner = self.shared.lock();
            inner.check()?;
            let local = Address { address: packet::number(local), port: 0 };
            let remote = Address { address: packet::number(remote.ip()), port: remote.port() };
            let id = inner.mux.connect(now, local, remote).map_err(io_error)?;
            self.stream(&mut inner, id)
        };
        self.shared.wake.notify_one();
        poll_fn(|context| {
            let mut inner = self.shared.lock();
            inner.check()?;
            if let Some(reason) = inner.mux.closed(stream.id) {
                return Poll::Ready(Err(inner.error(stream.id, SocketError::Closed(reason))));
            }
            if inner.mux.is_opening(stream.id) {
                inner.sockets.entry(stream.id).or_default().write = Some(context.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(Ok(()))
        })
        .await?;
        Ok(stream)
    }

    /// Resets every connection, and sends the resets before it returns: a program that is stopped leaves no peer waiting.
    pub fn abort_all(&self) {
        let mut inner = self.shared.lock();
        inner.mux.abort_all();
        inner.turn(self.shared.now(), &self.shared.device, &mut Outgoing::new());
    }

    /// The counters of the stack, and the packets that the device did not take.
    pub fn tally(&self) -> (StackTally, u64) {
        let inner = self.shared.lock();
        (inner.mux.tally(), inner.unsent)
    }

    fn stream(&self, inner: &mut Inner, id: SocketId) -> TcpStream {
        inner.sockets.insert(id, Wakers::default());
        TcpStream { host: self.clone(), id, ends: inner.mux.ends(id).unwrap_or_default() }
    }
}

impl Listener {
    /// The next connection.
    ///
    /// # Errors
    /// If the device is gone.
    pub async fn accept(&mut self) -> io::Result<TcpStream> {
        poll_fn(|context| {
            let mut inner = self.host.shared.lock();
            inner.check()?;
            match inner.mux.accept(self.port) {
                Some(id) => Poll::Ready(Ok(self.host.stream(&mut inner, id))),
                None => {
                    inner.listeners.insert(self.port, Some(context.waker().clone()));
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// The port of the host where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut inner = self.host.shared.lock();
        inner.mux.unlisten(self.port);
        inner.listeners.remove(&self.port);
        self.host.shared.wake.notify_one();
    }
}

impl TcpStream {
    /// The address of this end.
    pub fn local_addr(&self) -> SocketAddr {
        socket_addr(self.ends.local)
    }

    /// The address of the peer.
    pub fn peer_addr(&self) -> SocketAddr {
        socket_addr(self.ends.remote)
    }

    /// Whether it is a pair of streams in a connection that others share.
    pub fn is_shared(&self) -> bool {
        self.host.shared.lock().mux.is_shared(self.id)
    }

    /// A snapshot of the path, unless the connection is gone.
    pub fn path(&self) -> Option<PathReport> {
        self.host.shared.lock().mux.path(self.id)
    }

    /// Snapshots of all paths of the connection.
    pub fn paths(&self) -> Vec<PathReport> {
        self.host.shared.lock().mux.paths(self.id)
    }

    /// What the peer has acknowledged, also while others read and write.
    pub fn acknowledged(&self) -> Acknowledged {
        Acknowledged { shared: Arc::clone(&self.host.shared), id: self.id }
    }

    /// Closes the sending side, and waits until the peer has all that was written, and has closed its side.
    ///
    /// # Errors
    /// If the connection breaks before, or the peer acknowledges nothing for `most`.
    pub async fn finish(&self, most: Duration) -> io::Result<()> {
        self.host.shared.lock().mux.close(self.id);
        self.host.shared.wake.notify_one();
        let mut progress = (0, Instant::now());
        loop {
            {
                let mut inner = self.host.shared.lock();
                match inner.mux.closed(self.id) {
                    _ if inner.mux.is_finished(self.id) => return Ok(()),
                    Some(reason) => return Err(io_error(SocketError::Closed(reason))),
                    None => inner.check()?,
                }
                let acked = inner.mux.acked(self.id);
                if acked != progress.0 {
                    progress = (acked, Instant::now());
                }
            }
            if progress.1.elapsed() > most {
                return Err(io::ErrorKind::TimedOut.into());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// What the network has said of a segment that was sent, in vain so far: that the host cannot be reached, or that there were too many routers on the way.
    /// It ends nothing ([rfc-5461]); nothing is told once the peer has acknowledged something since. If the connection is given up, this is the reason
    /// ([`io::ErrorKind::HostUnreachable`]).
    pub fn soft_error(&self) -> Option<NoticeKind> {
        self.host.shared.lock().mux.soft_error(self.id)
    }

    /// Sets the fields of the IP headers of the connection, from the next segment on.
    ///
    /// # Errors
    /// If others share the connection.
    pub fn set_ip_fields(&self, fields: IpFields) -> io::Result<()> {
        self.host.shared.lock().mux.set_ip_fields(self.id, fields).map_err(io_error)
    }

    /// Writes data of which, as of all before it, the peer is told that it is urgent ([rfc-9293] sec. 3.8.5). It arrives in its place. New programs
    /// should not use it ([rfc-6093] sec. 5). Returns the number of bytes taken, more than zero if `data` is not empty.
    ///
    /// # Errors
    /// If the connection is not open for writing, or others share it.
    pub async fn write_urgent(&self, data: &[u8]) -> io::Result<usize> {
        let mut data = Bytes::copy_from_slice(&data[..data.len().min(WRITE_MAX)]);
        poll_fn(|context| {
            let mut inner = self.host.shared.lock();
            inner.check()?;
            let taken = inner.mux.write_urgent(self.id, &mut data).map_err(io_error)?;
            if taken == 0 && !data.is_empty() {
                inner.sockets.entry(self.id).or_default().write = Some(context.waker().clone());
                return Poll::Pending;
            }
            self.host.shared.wake.notify_one();
            Poll::Ready(Ok(taken as usize))
        })
        .await
    }

    /// Bytes that the peer calls urgent and that are still to be read, in their place.
    pub fn urgent(&self) -> u64 {
        self.host.shared.lock().mux.urgent(self.id)
    }

    /// Waits until the peer calls something urgent that is not read yet; returns as [`TcpStream::urgent`].
    ///
    /// # Errors
    /// If the connection is over.
    pub async fn urgent_comes(&self) -> io::Result<u64> {
        poll_fn(|context| {
            let mut inner = self.host.shared.lock();
            inner.check()?;
            match (inner.mux.urgent(self.id), inner.mux.closed(self.id)) {
                (0, Some(reason)) => Poll::Ready(Err(io_error(SocketError::Closed(reason)))),
                (0, None) => {
                    inner.sockets.entry(self.id).or_default().urgent = Some(context.waker().clone());
                    Poll::Pending
                }
                (left, _) => Poll::Ready(Ok(left)),
            }
        })
        .await
    }

    /// Resets the connection.
    pub fn abort(&self) {
        self.host.shared.lock().mux.abort(self.id);
        self.host.shared.wake.notify_one();
    }
}

impl Acknowledged {
    /// Bytes so far, the SYN included; 0 once the connection is gone.
    pub fn bytes(&self) -> u64 {
        self.shared.lock().mux.acked(self.id)
    }
}

impl Drop for TcpStream {
    fn drop(&mut self) {
        let mut inner = self.host.shared.lock();
        inner.mux.release(self.id);
        inner.sockets.remove(&self.id);
        self.host.shared.wake.notify_one();
    }
}

impl AsyncRead for TcpStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let shared = &self.host.shared;
        let mut inner = shared.lock();
        let read = inner.mux.read(self.id, buffer.remaining().try_into().unwrap_or(u32::MAX));
        match read.map_err(|error| inner.error(self.id, error))? {
            Read::Data(data) => {
                buffer.put_slice(&data);
                shared.wake.notify_one();
                Poll::Ready(Ok(()))
            }
            Read::End | Read::Reset(_) => Poll::Ready(Ok(())),
            Read::Nothing => {
                inner.check()?;
                inner.sockets.entry(self.id).or_default().read = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl AsyncWrite for TcpStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let shared = &self.host.shared;
        let mut inner = shared.lock();
        let mut data = Bytes::copy_from_slice(&data[..data.len().min(WRITE_MAX)]);
        inner.check()?;
        let taken = match inner.mux.write(self.id, &mut data) {
            Ok(taken) => taken,
            Err(SocketError::NotOpen) => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            Err(error) => return Poll::Ready(Err(inner.error(self.id, error))),
        };
        if taken == 0 {
            inner.sockets.entry(self.id).or_default().write = Some(context.waker().clone());
            return Poll::Pending;
        }
        shared.wake.notify_one();
        Poll::Ready(Ok(taken as usize))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.host.shared.lock().mux.close(self.id);
        self.host.shared.wake.notify_one();
        Poll::Ready(Ok(()))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Time {
        Time::ZERO + Span::from_ticks(self.start.elapsed().as_nanos() as u64)
    }
}

impl Inner {
    fn check(&self) -> io::Result<()> {
        match self.is_broken {
            true => Err(io::Error::new(io::ErrorKind::NotConnected, "the TUN device is gone")),
            false => Ok(()),
        }
    }

    /// The error of a call. A peer that is silent has the reason that the network gave.
    fn error(&self, id: SocketId, error: SocketError) -> io::Error {
        match error {
            SocketError::Closed(CloseReason::TimedOut) if self.mux.soft_error(id).is_some() => {
                io::ErrorKind::HostUnreachable.into()
            }
            _ => io_error(error),
        }
    }

    /// Gives the stack what waits at the device, at most a batch; `None` if the device is gone.
    fn receive(&mut self, shared: &Shared, buffer: &mut [u8]) -> Option<Waiting> {
        for _ in 0..BATCH {
            match shared.device.try_recv(buffer) {
                Ok(len) => {
                    let Some((sum, packet)) = offload::take(&buffer[..len]) else { continue };
                    // Of its own: what the engine keeps of it holds no memory of others.
                    self.mux.handle_with(shared.now(), &Bytes::copy_from_slice(packet), sum);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(Waiting::Nothing),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        Some(Waiting::Perhaps)
    }

    /// Sends what there is, and wakes whom it concerns. Returns the next deadline.
    fn turn(&mut self, now: Time, device: &AsyncDevice, Outgoing { packet, train }: &mut Outgoing) -> Time {
        loop {
            packet.clear();
            let is_last = !self.mux.poll_transmit(now, packet);
            if !is_last && train.add(packet) {
                continue;
            }
            // The network may lose any packet, and so may the device.
            if !train.is_empty() && device.try_send(train.finish()).is_err() {
                self.unsent += train.len() as u64;
            }
            train.clear();
            if is_last {
                break;
            }
            train.add(packet);
        }
        while let Some(event) = self.mux.poll_event() {
            match event {
                SocketEvent::Incoming(port) => wake(self.listeners.get_mut(&port)),
                SocketEvent::Readable(id) => wake(self.sockets.get_mut(&id).map(|wakers| &mut wakers.read)),
                SocketEvent::Writable(id) => wake(self.sockets.get_mut(&id).map(|wakers| &mut wakers.write)),
                SocketEvent::Urgent(id) => wake(self.sockets.get_mut(&id).map(|wakers| &mut wakers.urgent)),
                SocketEvent::Established(id) | SocketEvent::Closed(id, _) => {
                    self.sockets.get_mut(&id).into_iter().for_each(Wakers::wake);
                }
            }
        }
        self.mux.poll_timeout()
    }
}

/// What waits at the device after a read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Nothing,
    Perhaps,
}

/// Buffers for what leaves.
struct Outgoing {
    packet: Vec<u8>,
    train: Train,
}

impl Outgoing {
    fn new() -> Self {
        Self { packet: Vec::with_capacity(PACKET_MAX), train: Train::new() }
    }
}

fn wake(waker: Option<&mut Option<Waker>>) {
    if let Some(waker) = waker.and_then(Option::take) {
        waker.wake();
    }
}

/// Tells all who wait when the task ends, whatever the reason.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        inner.is_broken = true;
        let Inner { sockets, listeners, .. } = &mut *inner;
        listeners.values_mut().for_each(|waker| wake(Some(waker)));
        sockets.values_mut().for_each(Wakers::wake);
    }
}

/// Drives a stack until all its handles are gone and its connections are over, or time is up for them.
async fn drive(shared: Arc<Shared>) {
    let _ending = Ending(&shared);
    let device = &shared.device;
    let mut out = Outgoing::new();
    let mut buffer = vec![0; offload::HEADER + PACKET_MAX];
    let (mut over_at, mut read_all_at) = (None, shared.now());
    loop {
        let deadline = {
            let mut inner = shared.lock();
            let Some(waiting) = inner.receive(&shared, &mut buffer) else { return };
            let now = shared.now();
            if waiting == Waiting::Nothing {
                read_all_at = now;
            }
            // What waits may acknowledge what a timer would send again.
            if waiting == Waiting::Nothing || now.since(read_all_at) >= LATE_MAX {
                inner.mux.handle_timeout(now);
            }
            let deadline = inner.turn(now, device, &mut out);
            if inner.is_over {
                inner.mux.end();
                let over_at = *over_at.get_or_insert_with(|| Instant::now() + LINGER);
                if inner.mux.is_empty() || Instant::now() > over_at {
                    return;
                }
            }
            deadline
        };
        let until = match over_at {
            Some(over_at) => over_at.min(shared.start + Duration::from_nanos(deadline.ticks().min(FAR))),
            None => shared.start + Duration::from_nanos(deadline.ticks().min(FAR)),
        };
        tokio::select! {
            ready = device.readable() => {
                if ready.is_err() {
                    return;
                }
            }
            () = shared.wake.notified() => {}
            () = tokio::time::sleep_until(until.into()) => {}
        }
    }
}

fn socket_addr(end: Address) -> SocketAddr {
    SocketAddr::new(Ipv6Addr::from_bits(end.address).to_canonical(), end.port)
}

fn io_error(error: SocketError) -> io::Error {
    let kind = match error {
        SocketError::NoSuchSocket | SocketError::NotOpen => io::ErrorKind::NotConnected,
        SocketError::TooMany => io::ErrorKind::ResourceBusy,
        SocketError::PortInUse => io::ErrorKind::AddrInUse,
        SocketError::NotOurs => io::ErrorKind::AddrNotAvailable,
        SocketError::Config(_) | SocketError::NoHost | SocketError::Shared => io::ErrorKind::InvalidInput,
        SocketError::Closed(reason) => match reason {
            CloseReason::Refused | CloseReason::PortClosed => io::ErrorKind::ConnectionRefused,
            CloseReason::TimedOut | CloseReason::Stalled => io::ErrorKind::TimedOut,
            CloseReason::Aborted => io::ErrorKind::ConnectionAborted,
            CloseReason::Finished => io::ErrorKind::NotConnected,
            CloseReason::Reset | CloseReason::GaveWay | CloseReason::FalseAcknowledgement | CloseReason::Mangled => {
                io::ErrorKind::ConnectionReset
            }
        },
    };
    io::Error::from(kind)
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device { name, error } => write!(f, "the TUN device {name} cannot be opened: {error}"),
            Self::Settings(error) => write!(f, "the settings of connections are invalid: {error:?}"),
        }
    }
}

impl std::error::Error for HostError {}

/// Bytes of the largest packet, and packets that are read before what they ask for is sent.
const PACKET_MAX: usize = 65_536;
const BATCH: usize = 64;
/// Timers wait so long at most for a device that always has more to read: as long as the least retransmission timeout of [rfc-6298] sec. 2.4.
const LATE_MAX: Span = Span::from_secs(1);

/// Bytes that one write copies at most.
const WRITE_MAX: usize = 65_536;

/// How long the connections of a host that nobody holds any more may last.
const LINGER: Duration = Duration::from_secs(60);

/// How often [`TcpStream::finish`] looks.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A year, in ns: the timer of tokio takes no time that is much later.
const FAR: u64 = 31_536_000_000_000_000;
