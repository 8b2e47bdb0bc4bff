//! Endpoints: sockets, and all connections on them.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;

use anabranch_proto::endpoint::{self as engine, ConnectionId, SHARDS_MAX};
use anabranch_proto::{FourTuple, PathId, PathState};
use anabranch_units::{Span, Time};
use tokio::runtime::RuntimeFlavor;

use crate::aborter::Aborter;
use crate::address;
use crate::call::{Call, Stage};
use crate::carriers::Carrier;
use crate::clock::{self, Clock};
use crate::config::{Admission, Config};
use crate::connection::Connection;
use crate::driver::Driver;
use crate::error::{BindError, ConnectError};
use crate::handle::Handle;
use crate::inbox::Inbox;
use crate::intake::Intake;
use crate::interfaces::Interface;
use crate::key::{PublicKey, SecretKey, random};
use crate::lobby::{Lobby, SharedLobby};
use crate::membership::MemberPlace;
use crate::qlog::{Qlog, QlogReport, Vantage};
use crate::routes;
use crate::socket::Socket;
use crate::sockets::Sockets;
use crate::spans;
use crate::state::Shared;
use crate::ticket::Ticket;

/// One or several sockets with all their connections, outgoing and incoming.
///
/// Connections outlive the endpoint's handles. When the last handle is dropped, further connections are refused. An endpoint needs a
/// tokio runtime with time and I/O.
#[derive(Debug)]
pub struct Endpoint {
    /// One at least.
    shards: Arc<[Arc<Shared>]>,
    intake: Arc<Intake>,
    /// Whether it counts as a handle, which keeps the endpoint open.
    is_counted: bool,
}

impl Endpoint {
    /// An endpoint that only connects, at any local address, with a new key.
    ///
    /// # Errors
    /// If no socket can be bound, or the settings are invalid.
    pub fn client(config: Config) -> Result<Self, BindError> {
        let key = SecretKey::generate().map_err(BindError::Randomness)?;
        let config = Config { admission: None, ..config };
        // Dual-stack if IPv6 exists, else the address family that exists.
        Self::bind(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)), &key, config.clone())
            .or_else(|_| Self::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), &key, config))
    }

    /// An endpoint that admits every peer with its ticket, unless the settings restrict it.
    ///
    /// # Errors
    /// If no socket can be bound, or the settings are invalid.
    pub fn server(address: SocketAddr, key: &SecretKey, config: Config) -> Result<Self, BindError> {
        let admission = Some(config.admission.clone().unwrap_or(Admission::Ticket));
        Self::bind(address, key, Config { admission, ..config })
    }

    /// An endpoint at this address with this key. It can connect, and it admits peers according to the settings.
    ///
    /// # Errors
    /// If no socket can be bound, or the settings are invalid.
    pub fn bind(address: SocketAddr, key: &SecretKey, config: Config) -> Result<Self, BindError> {
        let no_socket = |error| BindError::Socket(address, error);
        config.check()?;
        let socket = UdpSocket::bind(address).map_err(no_socket)?;
        let socket = Socket::new(socket, config.socket_buffer).map_err(no_socket)?;
        let (clock, first, config) = (Clock::new(), socket.local(), Arc::new(config));
        let count = config.shards.unwrap_or_else(|| cores().min(SHARDS_MAX));
        // A log is for looking, not for speed, and has one writer.
        let count = if config.qlog.is_some() { 1 } else { count };
        let lobby = Arc::new(SharedLobby::new(first, socket.holds()));
        let seeds = (0..count).map(|_| random()).collect::<Result<Vec<_>, _>>().map_err(BindError::Randomness)?;
        let mut settings = config.endpoint();
        if let Some(server) = &mut settings.server {
            server.connection.arrival_buffer = lobby.arrival_buffer.clone();
        }
        let engines = engine::Endpoint::divided(clock.now(), &key.engine(), settings, &seeds);
        let share =
            |(place, engine)| Shared::new(clock, Arc::clone(&config), key.public(), Arc::clone(&lobby), place, engine);
        let shards: Vec<_> = engines.into_iter().enumerate().map(share).collect();
        if let Some(folder) = &config.qlog {
            let started = Qlog::start(folder, clock.epoch());
            let mut state = shards[0].lock();
            state.engine.trace();
            state.qlog = Some(started.map_err(|error| BindError::Qlog(folder.clone(), error))?);
        }
        let senders = shards.iter().map(|_| socket.share()).collect::<Result<Vec<_>, _>>().map_err(no_socket)?;
        let sockets = Sockets::new(socket, Arc::clone(&lobby.carriers));
        let intake = Arc::new(Intake::new(sockets, count, config.socket_buffer, key));
        for (shared, sender) in shards.iter().zip(senders) {
            tokio::spawn(Driver::new(Arc::clone(shared), Arc::clone(&intake), sender));
        }
        Ok(Self { shards: shards.into(), intake, is_counted: true })
    }

    /// The shard for a new connection.
    fn place(&self) -> usize {
        self.lobby().place(self.intake.inboxes.iter().map(Inbox::load))
    }

    /// The first shard, for what all have in common.
    fn front(&self) -> &Shared {
        &self.shards[0]
    }

    fn lobby(&self) -> MutexGuard<'_, Lobby> {
        self.front().lobby.lock()
    }

    /// Binds another socket. Connections may then have paths from its address, and the ticket includes it. Returns the bound
    /// address.
    ///
    /// # Errors
    /// If the socket cannot be bound.
    pub fn add_address(&self, address: SocketAddr) -> Result<SocketAddr, BindError> {
        let no_socket = |error| BindError::Socket(address, error);
        let socket = UdpSocket::bind(address).map_err(no_socket)?;
        let socket = Socket::new(socket, self.front().config.socket_buffer).map_err(no_socket)?;
        let local = socket.local();
        let senders = self.shards.iter().map(|_| socket.share()).collect::<Result<Vec<_>, _>>().map_err(no_socket)?;
        self.intake.push(socket);
        self.lobby().locals.push(local);
        for (shared, sender) in self.shards.iter().zip(senders) {
            shared.with(|state| {
                state.sockets.push(sender);
                state.rouse();
            });
        }
        Ok(local)
    }

    /// Connects to one of the addresses of this ticket, without a relay.
    pub(crate) async fn connect_directly(&self, ticket: &Ticket) -> Result<Connection, ConnectError> {
        let locals = self.local_addresses();
        let tuple = |address: &SocketAddr| {
            let local = home(&locals, *address)?;
            Some(FourTuple { local: address::of(local), remote: address::of(*address) })
        };
        let tuples: Vec<_> = ticket.addresses().iter().filter_map(tuple).collect();
        if tuples.is_empty() {
            return Err(ConnectError::NoAddress);
        }
        self.call_all(ticket.key(), &tuples).await
    }

    /// Connects on these four-tuples, with a delay between them, and keeps the first connection that is established. The others are
    /// aborted.
    pub(crate) async fn call_all(&self, key: PublicKey, tuples: &[FourTuple]) -> Result<Connection, ConnectError> {
        let no_answer = || ConnectError::NoAnswer(tuples.iter().map(|tuple| address::plain(tuple.remote)).collect());
        let timeout = self.front().config.connect_timeout;
        tokio::time::timeout(timeout, self.call_each(key, tuples)).await.unwrap_or_else(|_| Err(no_answer()))
    }

    async fn call_each(&self, key: PublicKey, tuples: &[FourTuple]) -> Result<Connection, ConnectError> {
        let mut calls: Vec<(Handle, SocketAddr)> = vec![];
        let mut waiting = tuples.iter();
        let mut last = None;
        loop {
            if let Some(&tuple) = waiting.next() {
                calls.push((self.call(key, tuple)?, address::plain(tuple.remote)));
            }
            let first = poll_fn(|cx| Self::poll_established(cx, &mut calls));
            let patience = if waiting.len() > 0 { STAGGER } else { Duration::MAX };
            match tokio::time::timeout(patience, first).await {
                Ok(Ok(handle)) => return Ok(Connection::new(handle)),
                Ok(Err(error)) => last = Some(error),
                Err(_) => {}
            }
            if let (true, 0, Some(last)) = (calls.is_empty(), waiting.len(), &last) {
                return Err(last.clone());
            }
        }
    }

    fn call(&self, key: PublicKey, tuple: FourTuple) -> Result<Handle, ConnectError> {
        let (place, stamp) = (self.place(), clock::timestamp(&mut self.lobby().stamp));
        let shared = &self.shards[place];
        let id = shared.with(|state| {
            if state.is_gone {
                return Err(ConnectError::EndpointGone);
            }
            let now = state.at(shared.clock.now());
            let arrival_buffer = shared.lobby.arrival_buffer.clone();
            let config = anabranch_proto::Config { arrival_buffer, ..shared.config.connection() };
            let id = state.engine.connect(now, stamp, key.0, tuple, config).map_err(|error| match error {
                engine::ConnectError::Config(error) => ConnectError::Config(error),
                engine::ConnectError::TooMany => ConnectError::TooMany,
            })?;
            let call = Call::new(Vantage::Client, key);
            spans::calls(&call.span, tuple);
            state.insert(id, call);
            if let Some(qlog) = &state.qlog {
                qlog.open(id, Vantage::Client, tuple, now);
            }
            self.intake.inboxes[place].set_load(state.engine.len());
            state.rouse();
            Ok::<ConnectionId, _>(id)
        })?;
        Ok(Handle::adopt(Arc::clone(shared), id))
    }

    fn poll_established(cx: &Context<'_>, calls: &mut Vec<(Handle, SocketAddr)>) -> Poll<Result<Handle, ConnectError>> {
        let mut found = None;
        for (place, (handle, address)) in calls.iter().enumerate() {
            let mut state = handle.shared().lock();
            let call = state.call(handle.id());
            if call.lost().is_some() || call.closed.is_some() {
                let why = match call.full {
                    Some(full) => ConnectError::Full(*address, full),
                    None => ConnectError::Refused(*address),
                };
                found = Some((place, Err(why)));
                break;
            }
            if call.stage >= Stage::Established {
                found = Some((place, Ok(())));
                break;
            }
            call.opening.add(cx);
        }
        // Dropping a handle takes the lock, so it must not happen under it.
        let Some((place, result)) = found else { return Poll::Pending };
        let (handle, _) = calls.swap_remove(place);
        Poll::Ready(result.map(|()| handle))
    }

    /// Waits for the next incoming connection; `None` if the socket is gone.
    pub async fn accept(&self) -> Option<Connection> {
        poll_fn(|cx| {
            let mut lobby = self.lobby();
            match lobby.incoming.pop_front() {
                Some((place, id)) => {
                    Poll::Ready(Some(Connection::new(Handle::adopt(Arc::clone(&self.shards[place]), id))))
                }
                None if lobby.is_gone => Poll::Ready(None),
                None => {
                    lobby.accepting.add(cx);
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// What ends all connections of this endpoint at once.
    pub fn aborter(&self) -> Aborter {
        Aborter::new(Arc::clone(&self.shards))
    }

    /// Waits until no connection is left. The end that closes first waits for some more seconds, as the peer may have missed the
    /// last acknowledgement.
    pub async fn wait_idle(&self) {
        poll_fn(|cx| {
            // Before looking, so that no end is missed.
            self.lobby().idling.add(cx);
            // Those with relays last as long as the endpoint.
            let lasting = self.lobby().memberships.iter().filter(|of| of.place().is_some()).count();
            if self.connections() <= lasting { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Ends the logs of [`Config::qlog`]: writes the rest and returns a report. Afterwards nothing is logged. `None` if there are
    /// no logs, or if they have ended.
    pub async fn finish_qlog(&self) -> Option<QlogReport> {
        let qlog = self.front().with(|state| {
            state.log_traces();
            state.engine.stop_trace();
            state.qlog.take()
        })?;
        tokio::task::spawn_blocking(|| qlog.finish()).await.ok()
    }

    /// A handle that keeps nothing open.
    pub(crate) fn uncounted(&self) -> Self {
        Self { shards: Arc::clone(&self.shards), intake: Arc::clone(&self.intake), is_counted: false }
    }

    pub(crate) fn shared_lobby(&self) -> &Arc<SharedLobby> {
        &self.front().lobby
    }

    pub(crate) fn connect_timeout(&self) -> Duration {
        self.front().config.connect_timeout
    }

    /// A new carrier of datagrams to this address.
    pub(crate) fn add_carrier(&self, remote: SocketAddr) -> Carrier {
        let carrier = self.shared_lobby().carriers.add(remote);
        // From now on, the drivers look for arrivals.
        self.shards.iter().for_each(|shared| shared.with(|state| state.rouse()));
        carrier
    }

    pub(crate) fn clock(&self) -> Clock {
        self.front().clock
    }

    pub(crate) fn now(&self) -> Time {
        self.front().clock.now()
    }

    pub(crate) fn share_sockets(&self) -> io::Result<Sockets> {
        self.intake.share_sockets()
    }

    /// The number of connections, also of those that are closing.
    pub(crate) fn connections(&self) -> usize {
        let count = |shared: &Arc<Shared>| {
            let state = shared.lock();
            if state.is_gone { 0 } else { state.engine.len() }
        };
        self.shards.iter().map(count).sum()
    }

    /// Whether a connection has this path.
    pub(crate) fn has_path(&self, tuple: FourTuple) -> bool {
        self.shards.iter().any(|shared| shared.lock().has_path(tuple))
    }

    /// Whether a connection has this path alone, and has heard nothing for so long.
    pub(crate) fn is_silent_on(&self, tuple: FourTuple, long: Span) -> bool {
        let since = Time::from_ticks(self.now().ticks().saturating_sub(long.ticks()));
        self.shards.iter().any(|shared| shared.lock().is_silent_on(tuple, since))
    }

    /// Sets up a path of a connection of this shard; `None` if that is not possible.
    pub(crate) fn add_path(&self, place: usize, connection: ConnectionId, tuple: FourTuple) -> Option<PathId> {
        let shared = &self.shards[place];
        shared.with(|state| {
            let now = state.at(shared.clock.now());
            let path = state.engine.connection(connection)?.paths().add(now, tuple).ok();
            state.rouse();
            path
        })
    }

    /// The state of a path; `None` if it is gone.
    pub(crate) fn path_state(
        &self,
        place: usize,
        connection: ConnectionId,
        path: PathId,
        tuple: FourTuple,
    ) -> Option<PathState> {
        let state = self.shards[place].lock();
        let report = state.engine.view(connection)?.path(path)?;
        (report.tuple == tuple).then_some(report.state)
    }

    /// Gives a path up.
    pub(crate) fn remove_path(&self, place: usize, connection: ConnectionId, path: PathId) {
        let shared = &self.shards[place];
        shared.with(|state| {
            let now = state.at(shared.clock.now());
            if let Some(connection) = state.engine.connection(connection) {
                // By now it may be the only one.
                _ = connection.paths().remove(now, path);
            }
            state.rouse();
        });
    }

    #[cfg(feature = "prometheus")]
    pub(crate) fn shards(&self) -> &Arc<[Arc<Shared>]> {
        &self.shards
    }

    /// The bound address of the first socket.
    pub fn local_address(&self) -> SocketAddr {
        self.front().first
    }

    /// The bound addresses of all sockets.
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        self.lobby().locals.clone()
    }

    /// The public key of this endpoint.
    pub fn public_key(&self) -> PublicKey {
        self.front().public
    }

    /// A ticket for this endpoint. For a socket bound to all addresses it lists all of them: first those that reach the Internet,
    /// then those of other interfaces; loopback only if there is no other. It names a relay of which the endpoint is a member.
    pub fn ticket(&self) -> Ticket {
        let mut addresses = self.own_addresses();
        let (seen, relay) = {
            let lobby = self.lobby();
            let joined = lobby.memberships.iter().find_map(|of| Some((of.place()?, of.relay.clone())));
            let told = |place: MemberPlace, relay: Ticket| {
                let tcp_port = place.tcp_port.or(relay.tcp_port());
                // A port of TCP is none of this endpoint's.
                (Some(place.seen).filter(|_| place.over_tcp.is_none()), relay.with_tcp_port(tcp_port))
            };
            let (seen, relay) = joined.map(|(place, relay)| told(place, relay)).unzip();
            (seen.flatten(), relay)
        };
        // Where the NAT of a home router forwards this port, or lets everybody in.
        addresses.truncate(Ticket::ADDRESSES_MAX - 1);
        addresses.extend(seen.filter(|seen| !addresses.contains(seen)));
        let ticket = Ticket::new(self.front().public, addresses).expect("there is one, with the socket's port");
        match relay {
            Some(relay) => ticket.with_relay(&relay),
            None => ticket,
        }
    }

    /// The addresses under which the sockets are listed.
    pub(crate) fn own_addresses(&self) -> Vec<SocketAddr> {
        let mut addresses = vec![];
        for bound in self.local_addresses() {
            offer(bound, &mut addresses);
        }
        if addresses.is_empty() {
            addresses.push(SocketAddr::from((Ipv4Addr::LOCALHOST, self.front().first.port())));
        }
        addresses
    }
}

/// Appends the addresses under which a socket is listed.
fn offer(bound: SocketAddr, addresses: &mut Vec<SocketAddr>) {
    let mut add = |ip: IpAddr| {
        let address = SocketAddr::new(ip.to_canonical(), bound.port());
        if !address.ip().is_unspecified() && !addresses.contains(&address) {
            addresses.push(address);
        }
    };
    if !bound.ip().is_unspecified() {
        return add(bound.ip());
    }
    let families: &[SocketAddr] = if bound.is_ipv6() { &[ABROAD_4, ABROAD_6] } else { &[ABROAD_4] };
    families.iter().for_each(|abroad| add(routes::routed(bound, *abroad)));
    let others = Interface::all().into_iter().map(|interface| interface.ip);
    others.filter(|ip| bound.is_ipv6() || ip.is_ipv4()).for_each(add);
}

impl Clone for Endpoint {
    fn clone(&self) -> Self {
        self.lobby().handles += 1;
        Self { shards: Arc::clone(&self.shards), intake: Arc::clone(&self.intake), is_counted: true }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if !self.is_counted {
            return;
        }
        let (is_last, unaccepted) = {
            let mut lobby = self.lobby();
            lobby.handles -= 1;
            let is_last = lobby.handles == 0;
            (is_last, if is_last { std::mem::take(&mut lobby.incoming) } else { VecDeque::new() })
        };
        if !is_last {
            return;
        }
        for (place, id) in unaccepted {
            self.shards[place].with(|state| state.drop_handle(id));
        }
        for shared in &*self.shards {
            shared.with(|state| {
                state.engine.refuse_all();
                state.rouse();
            });
        }
    }
}

/// The threads of a runtime with several; else one.
fn cores() -> usize {
    let runtime = tokio::runtime::Handle::current();
    match runtime.runtime_flavor() {
        RuntimeFlavor::MultiThread => runtime.metrics().num_workers(),
        _ => 1,
    }
}

/// The local address for connections to `remote`: the address that the system would choose if a socket has it, else the first
/// suitable one. `None` if no socket has the address family.
fn home(bound: &[SocketAddr], remote: SocketAddr) -> Option<SocketAddr> {
    let mut can = bound.iter().filter(|bound| {
        let ip = bound.ip().to_canonical();
        if ip.is_unspecified() { bound.is_ipv6() || remote.is_ipv4() } else { ip.is_ipv4() == remote.is_ipv4() }
    });
    let first = *can.clone().next()?;
    let chosen =
        can.find(|bound| bound.ip().is_unspecified() || bound.ip().to_canonical() == routes::routed(**bound, remote));
    let chosen = chosen.copied().unwrap_or(first);
    if !chosen.ip().is_unspecified() {
        return Some(chosen);
    }
    Some(SocketAddr::new(routes::routed(chosen, remote), chosen.port()))
}

/// The delay between two addresses: [rfc-8305] sec. 5, "Connection Attempt Delay".
const STAGGER: Duration = Duration::from_millis(250);

/// Documentation addresses. They are routed like Internet addresses but belong to nobody ([rfc-5737], [rfc-3849]).
const ABROAD_4: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9);
const ABROAD_6: SocketAddr = SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)), 9);
