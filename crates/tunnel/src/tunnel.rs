//! An end of a tunnel: it opens TCP connections and UDP flows at the other end, and serves the other end's requests.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch::{Connection, Lost, RecvStream, SendStream, StreamError};
use bytes::Bytes;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::flow::{self, Carrier, FlowNumber, Sink, Source};
use crate::header::{Answer, Header};
use crate::pipe;
use crate::ports::Ports;
use crate::shares::{Client, Share, Shares};
use crate::target::Target;
use crate::vpn::{self, Hub, Lease, Seat};

/// An end of a tunnel. Clones are handles of the same end.
#[derive(Clone, Debug)]
pub struct Tunnel {
    shared: Arc<Shared>,
}

/// What the other end may request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// The targets to which it connects.
    pub targets: Targets,
    /// The targets to which it sends UDP packets.
    pub udp: Targets,
    /// Whether it listens for TCP connections.
    pub listens: bool,
}

/// The targets to which an end connects for the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Targets {
    /// Only these targets.
    Listed(BTreeSet<Target>),
    /// Every target that this computer can reach.
    All,
}

/// What the tunnels of a server share.
#[derive(Clone, Debug, Default)]
pub struct Common {
    /// The ports on which it listens for its clients.
    pub ports: Ports,
    /// The TCP connections that each client may hold.
    pub shares: Shares,
    /// The virtual network, if clients may join one.
    pub hub: Option<Hub>,
}

/// A TCP connection opened at the other end.
#[derive(Debug)]
pub struct Opened {
    /// Data to the TCP connection.
    pub out: SendStream,
    /// Data from the TCP connection.
    pub back: RecvStream,
}

/// Why the other end has not opened a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The other end has refused.
    Refused(Answer),
    /// The other end does not answer, or its answer is invalid.
    NoAnswer,
    /// The connection is lost.
    Gone,
}

#[derive(Debug)]
struct Shared {
    connection: Connection,
    permissions: Permissions,
    common: Common,
    /// The other end, by which its TCP connections count.
    client: Client,
    /// The number of this tunnel among those that share the ports.
    number: u64,
    numbers: AtomicU32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Requests that wait for an answer, by number.
    waiting: BTreeMap<u32, oneshot::Sender<(Answer, u16, RecvStream)>>,
    /// The targets of remote listeners, by the number of the request.
    arrivals: BTreeMap<u32, Target>,
    /// The queues for the other end's datagrams, by the number that they bear.
    flows: BTreeMap<FlowNumber, mpsc::Sender<Bytes>>,
    /// The number of listeners for the other end.
    listeners: usize,
    /// Whether answers are no longer processed.
    is_over: bool,
}

/// While it exists, answers are processed.
struct Running<'a>(&'a Shared);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_over = true;
        // Waiting requests fail.
        state.waiting.clear();
    }
}

/// A listener for the other end; it counts while it exists.
struct Listens<'a>(&'a Shared);

impl<'a> Listens<'a> {
    /// A new listener; `None` at the limit.
    fn one(shared: &'a Shared) -> Option<Self> {
        let mut state = shared.lock();
        if state.listeners == LISTENERS_MAX {
            return None;
        }
        state.listeners += 1;
        Some(Self(shared))
    }
}

impl Drop for Listens<'_> {
    fn drop(&mut self) {
        self.0.lock().listeners -= 1;
    }
}

/// A queue of datagrams.
type Queue = (mpsc::Sender<Bytes>, mpsc::Receiver<Bytes>);

/// The queue of a flow's datagrams. It is removed when this is dropped.
struct Inbox<'a> {
    shared: &'a Shared,
    number: FlowNumber,
}

impl Drop for Inbox<'_> {
    fn drop(&mut self) {
        self.shared.lock().flows.remove(&self.number);
    }
}

/// The number of a waiting request. The request is removed when this is dropped.
struct Waits<'a> {
    shared: &'a Shared,
    number: u32,
    answer: oneshot::Receiver<(Answer, u16, RecvStream)>,
}

impl Tunnel {
    /// The end of a tunnel over this connection. [`Tunnel::run`] must run, or nothing is served.
    pub fn new(connection: Connection, permissions: Permissions) -> Self {
        Self::sharing(connection, permissions, Common::default())
    }

    /// As [`Tunnel::new`], for a server of several connections. A new connection of the same key takes over the listeners of an
    /// earlier one, and each client gets its share of TCP connections.
    pub fn sharing(connection: Connection, permissions: Permissions, common: Common) -> Self {
        let number = common.ports.join();
        let address = connection.paths().first().map_or(Ipv4Addr::UNSPECIFIED.into(), |path| path.remote.ip());
        let client = Client::new(connection.remote_key(), address);
        let (numbers, state) = (AtomicU32::new(0), Mutex::default());
        let shared = Shared { connection, permissions, common, client, number, numbers, state };
        Self { shared: Arc::new(shared) }
    }

    /// Serves the other end's requests, and processes its answers, until the connection ends.
    ///
    /// # Errors
    /// If the connection is lost.
    pub async fn run(&self) -> Result<(), Lost> {
        let _running = Running(&self.shared);
        // The tasks for the other end's requests end when this is dropped.
        let mut tasks = JoinSet::new();
        let mut takes_datagrams = true;
        loop {
            tokio::select! {
                stream = self.shared.connection.accept_stream() => match stream {
                    Ok(stream) => drop(tasks.spawn(self.clone().serve(stream))),
                    Err(StreamError::Closed) => break,
                    Err(StreamError::Lost(lost)) => return Err(lost),
                },
                datagram = self.shared.connection.read_datagram(), if takes_datagrams => match datagram {
                    Ok(datagram) => self.shared.put(datagram),
                    // The streams tell how the connection ended.
                    Err(_) => takes_datagrams = false,
                },
                Some(_) = tasks.join_next() => {}
            }
        }
        while tasks.join_next().await.is_some() {}
        Ok(())
    }

    /// Opens a TCP connection from the other end to a target.
    ///
    /// # Errors
    /// If the other end refuses, or does not answer in time.
    pub async fn open(&self, target: &Target) -> Result<Opened, OpenError> {
        let waits = self.shared.wait();
        let out = self.send(&Header::Open { number: waits.number, target: target.clone() }).await?;
        let (_, back) = waits.answer().await?;
        Ok(Opened { out, back })
    }

    /// Forwards a TCP connection to a target at the other end, until both directions have ended. Data of this side does not wait
    /// for the answer.
    ///
    /// # Errors
    /// If the other end does not connect. The TCP connection was then reset.
    pub async fn carry(&self, tcp: TcpStream, target: &Target) -> Result<(), OpenError> {
        let number = self.shared.wait();
        let header = Header::Open { number: number.number, target: target.clone() };
        self.carry_as(tcp, &header, number).await
    }

    /// Forwards packets to a target at the other end, and its answers to `sink`, until the queue closes or no packet has come for minutes.
    pub(crate) async fn carry_flow(
        &self,
        target: &Target,
        packets: mpsc::Receiver<Bytes>,
        sink: Sink,
    ) -> Result<(), OpenError> {
        let waits = self.shared.wait();
        let number = FlowNumber::of_opener(waits.number);
        let Some((_inbox, inbox)) = self.shared.inbox(number.back(), flow::queue()) else {
            return Err(OpenError::NoAnswer);
        };
        let out = self.send(&Header::Flow { number: waits.number, target: target.clone() }).await?;
        let back = async { waits.answer().await.map(|(_, back)| back) };
        let carrier = Carrier { connection: &self.shared.connection, number, out, inbox };
        carrier.carry(Source::Queue(packets), sink, back).await
    }

    /// Joins the other end's virtual network, and leaves it when `act` returns.
    ///
    /// # Errors
    /// If the other end refuses, or its answer is invalid.
    pub async fn join<T>(&self, act: impl AsyncFnOnce(Seat<'_>) -> T) -> Result<T, OpenError> {
        let waits = self.shared.wait();
        let number = FlowNumber::of_opener(waits.number);
        let inbox = self.shared.inbox(number.back(), vpn::datagrams());
        let Some((_inbox, inbox)) = inbox else { return Err(OpenError::NoAnswer) };
        let out = self.send(&Header::Vpn { number: waits.number }).await?;
        let (_, mut back) = waits.answer().await?;
        let lease = timeout(HEADER_WITHIN, Lease::receive(&mut back)).await;
        let Ok(Some(lease)) = lease else { return Err(OpenError::NoAnswer) };
        let streams = vpn::Streams { connection: &self.shared.connection, number, inbox, out, back };
        Ok(act(Seat::new(streams, lease)).await)
    }

    async fn carry_as(&self, tcp: TcpStream, header: &Header, waits: Waits<'_>) -> Result<(), OpenError> {
        match self.send(header).await {
            Ok(out) => pipe::join_later(tcp, out, async { waits.answer().await.map(|(_, back)| back) }).await,
            Err(error) => {
                // The reset tells the client that the connection failed.
                _ = pipe::reset_on_close(&tcp);
                Err(error)
            }
        }
    }

    /// Makes the other end listen, and connects TCP connections that arrive there to a target of this end, while the tunnel
    /// lasts. Returns the bound port.
    ///
    /// # Errors
    /// If the other end does not listen, for the reason that it gives.
    pub async fn listen_there(&self, address: IpAddr, port: u16, target: &Target) -> Result<u16, OpenError> {
        let waits = self.shared.wait();
        let number = waits.number;
        // A TCP connection may arrive before the answer.
        self.shared.lock().arrivals.insert(number, target.clone());
        let asked = async {
            let mut out = self.send(&Header::Listen { number, address: address.to_string(), port }).await?;
            _ = out.finish();
            waits.answer().await
        };
        let answered = asked.await;
        if answered.is_err() {
            self.shared.lock().arrivals.remove(&number);
        }
        answered.map(|(port, _)| port)
    }

    async fn send(&self, header: &Header) -> Result<SendStream, OpenError> {
        let mut out = self.shared.connection.open_stream().await.map_err(|_| OpenError::Gone)?;
        out.write_all(&header.to_bytes()).await.map_err(|_| OpenError::Gone)?;
        Ok(out)
    }

    /// Serves a stream of the other end.
    async fn serve(self, mut stream: RecvStream) {
        // If the header is invalid or late, the stream is dropped, which stops it.
        let Ok(Ok(header)) = timeout(HEADER_WITHIN, Header::read(&mut stream)).await else { return };
        match header {
            Header::Answer { number, answer, port } => {
                if let Some(waiting) = self.shared.lock().waiting.remove(&number) {
                    // This fails if the requester has given up.
                    _ = waiting.send((answer, port, stream));
                }
            }
            Header::Open { number, target } => {
                let target = self.shared.permissions.targets.check(target);
                self.connect(number, target, stream).await;
            }
            Header::Flow { number, target } => {
                let target = self.shared.permissions.udp.check(target);
                self.exchange(number, target, stream).await;
            }
            Header::Vpn { number } => self.seat(number, stream).await,
            Header::Arrival { number, listen } => {
                let target = self.shared.lock().arrivals.get(&listen).cloned().ok_or(Answer::Forbidden);
                self.connect(number, target, stream).await;
            }
            Header::Listen { number, address, port } => {
                // Frees the SID for the next stream.
                drop(stream);
                self.listen(number, &address, port).await;
            }
        }
    }

    /// Connects to a target for the other end.
    async fn connect(&self, number: u32, target: Result<Target, Answer>, back: RecvStream) {
        // Counts from here on: an attempt holds a socket, too.
        let share = target.and_then(|target| Ok((target, self.shared.take().ok_or(Answer::Full)?)));
        let connected = match share {
            Ok((target, share)) => connect(&target).await.map(|tcp| (tcp, share)),
            Err(answer) => Err(answer),
        };
        match connected {
            Ok((tcp, _share)) => {
                if let Some(out) = self.answer(number, Answer::Done, 0).await {
                    pipe::join(tcp, out, back).await;
                }
            }
            Err(answer) => {
                if let Some(mut out) = self.answer(number, answer, 0).await {
                    _ = out.finish();
                }
            }
        }
    }

    /// Sends packets to a target for the other end, and its answers back.
    async fn exchange(&self, number: u32, target: Result<Target, Answer>, back: RecvStream) {
        // Counts from here on, as a TCP connection does.
        let share = target.and_then(|target| Ok((target, self.shared.take().ok_or(Answer::Full)?)));
        let connected = match &share {
            Ok((target, _)) => flow::connect(target, CONNECT_WITHIN).await.map(Arc::new),
            Err(answer) => Err(*answer),
        };
        let there = FlowNumber::of_opener(number);
        // The other end sends datagrams as soon as it has the answer.
        let opened =
            connected.and_then(|socket| Ok((socket, self.shared.inbox(there, flow::queue()).ok_or(Answer::Failed)?)));
        match opened {
            Ok((socket, (_inbox, inbox))) => {
                let Some(out) = self.answer(number, Answer::Done, 0).await else { return };
                let carrier = Carrier { connection: &self.shared.connection, number: there.back(), out, inbox };
                // The other end's stream is here.
                _ = carrier
                    .carry(Source::target(socket.clone()), Sink::Target(socket), async { Ok::<_, OpenError>(back) })
                    .await;
            }
            Err(answer) => {
                if let Some(mut out) = self.answer(number, answer, 0).await {
                    _ = out.finish();
                }
            }
        }
    }

    /// Lets the other end join the virtual network.
    async fn seat(&self, number: u32, back: RecvStream) {
        let there = FlowNumber::of_opener(number);
        let join = || {
            let hub = self.shared.common.hub.as_ref().ok_or(Answer::Forbidden)?;
            let member = hub.join(self.shared.client.key).ok_or(Answer::Full)?;
            Ok((member, self.shared.inbox(there, vpn::datagrams()).ok_or(Answer::Failed)?))
        };
        match join() {
            Ok((member, (_inbox, inbox))) => {
                let Some(mut out) = self.answer(number, Answer::Done, 0).await else { return };
                if out.write_all(&member.lease.to_bytes()).await.is_ok() {
                    let connection = &self.shared.connection;
                    member.carry(vpn::Streams { connection, number: there.back(), inbox, out, back }).await;
                }
            }
            Err(answer) => {
                if let Some(mut out) = self.answer(number, answer, 0).await {
                    _ = out.finish();
                }
            }
        }
    }

    /// Listens for the other end.
    async fn listen(&self, number: u32, address: &str, port: u16) {
        let (listens, share) = (Listens::one(&self.shared), self.shared.take());
        let bound = match address.parse::<IpAddr>() {
            _ if !self.shared.permissions.listens => Err(Answer::Forbidden),
            _ if listens.is_none() || share.is_none() => Err(Answer::Full),
            Ok(address) => {
                let Shared { common, connection, number, .. } = &*self.shared;
                let bound = common.ports.bind(SocketAddr::new(address, port), *number, connection).await;
                bound.map_err(|_| Answer::Refused)
            }
            Err(_) => Err(Answer::NoHost),
        };
        let (answer, port) = match &bound {
            Ok((listener, _)) => (Answer::Done, listener.local_addr().map_or(0, |address| address.port())),
            Err(answer) => (*answer, 0),
        };
        let Some(mut out) = self.answer(number, answer, port).await else { return };
        _ = out.finish();
        let Ok((listener, mut held)) = bound else { return };
        let mut carried = JoinSet::new();
        loop {
            let tcp = tokio::select! {
                tcp = accept(&listener), if carried.len() < CARRIED_MAX => tcp,
                Some(_) = carried.join_next() => continue,
                _ = self.shared.connection.closed() => {
                    carried.abort_all();
                    break;
                }
                // The same client has come back. What it carried over the earlier connection goes on as long as that does.
                () = held.until_wanted() => break,
            };
            let tunnel = self.clone();
            let Some(share) = self.shared.take() else {
                // The reset tells the caller; waiting for room, it would hold a file.
                _ = pipe::reset_on_close(&tcp);
                continue;
            };
            carried.spawn(async move {
                let _share = share;
                let waits = tunnel.shared.wait();
                let header = Header::Arrival { number: waits.number, listen: number };
                // The reset tells the caller that the connection failed.
                _ = tunnel.carry_as(tcp, &header, waits).await;
            });
        }
        drop((listener, held));
        while carried.join_next().await.is_some() {}
    }

    async fn answer(&self, number: u32, answer: Answer, port: u16) -> Option<SendStream> {
        self.send(&Header::Answer { number, answer, port }).await.ok()
    }
}

impl Targets {
    /// The target, if it is one of these.
    fn check(&self, target: Target) -> Result<Target, Answer> {
        match self {
            Self::Listed(listed) if !listed.contains(&target) => Err(Answer::Forbidden),
            Self::Listed(_) | Self::All => Ok(target),
        }
    }
}

impl Default for Targets {
    /// No permissions.
    fn default() -> Self {
        Self::Listed(BTreeSet::new())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a TCP connection for the other end, if it has room.
    fn take(&self) -> Option<Share> {
        self.common.shares.take(self.client)
    }

    /// A queue for the datagrams of this number; `None` if a flow has it.
    fn inbox(&self, number: FlowNumber, (sender, receiver): Queue) -> Option<(Inbox<'_>, mpsc::Receiver<Bytes>)> {
        match self.lock().flows.entry(number) {
            Entry::Occupied(_) => None,
            Entry::Vacant(entry) => {
                entry.insert(sender);
                Some((Inbox { shared: self, number }, receiver))
            }
        }
    }

    /// A datagram has come. Nobody waits for one of a flow that has ended, and one that finds a full queue is lost.
    fn put(&self, mut datagram: Bytes) {
        if let Some(flow) = FlowNumber::take(&mut datagram).and_then(|number| self.lock().flows.get(&number).cloned()) {
            _ = flow.try_send(datagram);
        }
    }

    /// A number for a request.
    fn wait(&self) -> Waits<'_> {
        let (sender, answer) = oneshot::channel();
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock();
        if !state.is_over {
            state.waiting.insert(number, sender);
        }
        drop(state);
        Waits { shared: self, number, answer }
    }
}

impl Waits<'_> {
    /// Waits for the answer for as long as connecting may take.
    async fn answer(mut self) -> Result<(u16, RecvStream), OpenError> {
        match timeout(CONNECT_WITHIN + HEADER_WITHIN, &mut self.answer).await {
            Ok(Ok((Answer::Done, port, stream))) => Ok((port, stream)),
            Ok(Ok((answer, ..))) => Err(OpenError::Refused(answer)),
            Ok(Err(_)) => Err(OpenError::Gone),
            Err(_) => Err(OpenError::NoAnswer),
        }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.shared.lock().waiting.remove(&self.number);
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(answer) => answer.fmt(f),
            Self::NoAnswer => f.write_str("the other end does not answer"),
            Self::Gone => f.write_str("the tunnel is gone"),
        }
    }
}

impl std::error::Error for OpenError {}

async fn connect(target: &Target) -> Result<TcpStream, Answer> {
    match timeout(CONNECT_WITHIN, TcpStream::connect((target.host(), target.port()))).await {
        Ok(Ok(tcp)) => Ok(tcp),
        Ok(Err(error)) => Err(match error.kind() {
            io::ErrorKind::ConnectionRefused => Answer::Refused,
            io::ErrorKind::TimedOut => Answer::TimedOut,
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Answer::Unreachable,
            // An error for a name that is not found has no kind of its own.
            _ if error.raw_os_error().is_none() => Answer::NoHost,
            _ => Answer::Failed,
        }),
        Err(_) => Err(Answer::TimedOut),
    }
}

/// The next TCP connection. Errors such as too many open files do not end the listener.
pub(crate) async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((tcp, _)) => return tcp,
            Err(_) => tokio::time::sleep(ACCEPT_AGAIN).await,
        }
    }
}

/// The header is in the first segment of the stream; this time allows a few retransmissions.
const HEADER_WITHIN: Duration = Duration::from_secs(10);

/// A TCP SYN is retransmitted after 1, 3, 7 and 15 seconds.
const CONNECT_WITHIN: Duration = Duration::from_secs(20);

/// The limit on listeners for the other end: ports are scarce, and each listener needs a socket.
const LISTENERS_MAX: usize = 64;

/// The delay after an error, in which the system may recover.
pub(crate) const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Nearly all streams of a connection, which has 4,080 in each direction. Further TCP connections wait in the listener's backlog. If
/// the process has fewer files, they wait there, too.
pub(crate) const CARRIED_MAX: usize = 4000;
