//! The owner of all connections of a socket. Sealed datagrams go in and out; a driver is a short loop around it.
//!
//! ```text
//! socket ── datagrams ──> handle_datagrams ──┬──> Listener ──> a new connection
//!                                            └──> Seal ──> Connection
//! socket <── batches ──── poll_transmit <──────── Seal <── Connection
//! ```
//!
//! The contract is that of a [`Connection`]: after each input the driver sends everything from [`Endpoint::poll_transmit`], then
//! takes every [`Endpoint::poll_event`], then reads [`Endpoint::poll_timeout`].
//!
//! * Datagrams are received and sent in batches: several of one length, concatenated, with the same addresses, as in the kernel's
//!   offloads (GRO, GSO). They are opened and sealed in place.
//! * A connection is polled for a segment only if its seal can encrypt it. Otherwise the segment stays in the connection.
//! * The connection knows which addresses are validated; its seal asks the connection.
//! * Connections take turns, one batch per turn.
//! * Path MTU discovery probes datagram sizes per path. So the driver must send datagrams unfragmented (DF). A datagram that the
//!   kernel refuses as too long counts as lost.
//!
//! Limits: [`EndpointConfig::connections_max`] connections, of which [`Shares`] gives each owner a part; the listener's half-open
//! ones; `REPLIES_MAX` cookies, refusals and resets in the send queue; the resets of a thousand ended connections.

mod admit;
mod batch;
mod farewells;
mod numbers;
mod resets;
mod routes;
mod shares;
mod timers;
mod trace;

use std::collections::{BTreeSet, VecDeque};

use anabranch_units::Time;
use bytes::{Bytes, BytesMut};

pub use self::batch::Batch;
use self::farewells::Farewells;
pub use self::numbers::{Destination, SHARDS_MAX};
pub use self::shares::Shares;
use self::shares::{Activity, Held, Owner};
use self::timers::Timers;
use self::trace::Trace;
pub use self::trace::{Metrics, TraceEvent, Traced, TracedSegment, Traces};
use crate::config::{Config, ConfigError, Form};
use crate::connection::{Connection, State, Transmit};
use crate::ecn::EcnCodepoint;
use crate::event::Event;
use crate::path::FourTuple;
use crate::random::Secret;
use crate::seal::{
    Answer, Entropy, Listener, ListenerConfig, Network, Outgoing, PublicKey, Recipient, Resets, Seal, SealConfig,
    SealTally, SecretKey, Timestamp,
};

/// All connections of a socket.
#[derive(Debug)]
pub struct Endpoint {
    secret: SecretKey,
    config: EndpointConfig,
    listener: Option<Listener>,
    /// Whether it accepts no more connections.
    is_refusing: bool,
    entropy: Entropy,
    resets: Resets,
    farewells: Farewells,
    /// The numbers in indices are those of slots, exclusive-or this: after a restart with the same key they differ, so that the
    /// datagrams of a lost connection do not reach a new one.
    mask: u32,
    numbers_max: usize,
    /// By number.
    slots: Vec<Option<Box<Slot>>>,
    held: Held,
    /// Free numbers, the one freed first in front, so that late datagrams of a closed connection match no new one.
    free: VecDeque<u32>,
    /// Connections made so far.
    made: u64,
    timers: Timers,
    /// Connections that may have segments to send, in the order of their turns.
    turns: VecDeque<u32>,
    /// Connections that may have events.
    news: VecDeque<u32>,
    /// The four-tuples of paths that are silent, for the driver.
    silent: VecDeque<FourTuple>,
    /// Cookies and stateless resets to send.
    replies: VecDeque<(FourTuple, Vec<u8>)>,
    /// A datagram that did not fit into the last batch.
    spill: batch::Spill,
    tally: EndpointTally,
    /// Whether new connections are traced, and the remaining traces of closed ones.
    is_tracing: bool,
    traces_left: VecDeque<Traces>,
}

/// The settings of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The largest number of connections, in both directions together, apart from half-open ones, which the listener limits.
    pub connections_max: usize,
    /// The seal of connections that this end opens.
    pub seal: SealConfig,
    /// Settings for incoming connections; an endpoint without them only connects.
    pub server: Option<ServerConfig>,
}

/// Settings for incoming connections.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The limits on handshakes, and the seal of incoming connections.
    pub listener: ListenerConfig,
    /// Which peers may connect.
    pub admission: Admission,
    /// How many connections one peer may have.
    pub shares: Shares,
    /// The settings of incoming connections; the form is always [`Form::Sealed`].
    pub connection: Config,
}

/// Which peers may open a connection to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Every peer that knows the endpoint's public key.
    Anyone,
    /// Peers that prove one of these public keys. Others get no answer.
    Keys(BTreeSet<PublicKey>),
}

/// The identifier of a connection of an endpoint; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId {
    serial: u64,
    number: u32,
}

/// An event of a connection of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointEvent {
    /// The connection that it concerns.
    pub connection: ConnectionId,
    /// The event. The first event of an incoming connection is that it is established.
    pub event: Event,
}

/// The arrival of a batch of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The kernel's receive timestamp, or the time of reading if that is earlier.
    pub at: Time,
    /// The source and destination of all datagrams.
    pub tuple: FourTuple,
    /// Bytes of each datagram; the last one may be shorter.
    pub size: usize,
    /// The ECN codepoint of all their packets.
    pub ecn: Option<EcnCodepoint>,
}

/// Why a connection cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// The configuration is invalid.
    Config(ConfigError),
    /// The limit of connections is reached.
    TooMany,
}

/// Counters of datagrams that belong to no connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointTally {
    /// Initiations of peers that are not admitted.
    pub not_admitted: u64,
    /// Connections beyond a limit, which were refused.
    pub too_many: u64,
    /// Connections that gave way to a new one.
    pub gave_way: u64,
    /// Datagrams with an unknown index.
    pub unknown: u64,
    /// Stateless resets sent in answer to some of them.
    pub resets_sent: u64,
    /// Cookies dropped because the send queue was full.
    pub replies_dropped: u64,
}

#[derive(Debug)]
struct Slot {
    id: ConnectionId,
    connection: Connection<Bytes>,
    seal: Seal,
    /// Whether the connection is in `turns`, and whether it is in `news`.
    is_queued: bool,
    has_news: bool,
    /// Whether the listener counts it as half open.
    is_half_open: bool,
    /// Whether this end opened it.
    is_own: bool,
    /// The peer, and what the connection that counts for it tells other shards.
    owner: Owner,
    activity: Option<Activity>,
    trace: Option<Box<Trace>>,
}

impl Endpoint {
    /// An endpoint with this static key. `seed` must be 32 secret random bytes that are used for nothing else.
    pub fn new(now: Time, secret: SecretKey, config: EndpointConfig, seed: [u8; 32]) -> Self {
        let mut entropy = Entropy::new(seed);
        let listener =
            config.server.as_ref().map(|server| Listener::new(now, secret.clone(), server.listener, entropy.draw()));
        let [a, b, c, ..] = entropy.draw();
        Self {
            resets: Resets::new(&secret),
            farewells: Farewells::default(),
            mask: u32::from_be_bytes([0, a, b, c]),
            numbers_max: numbers::NUMBERS,
            secret,
            config,
            listener,
            is_refusing: false,
            entropy,
            slots: vec![],
            held: Held::default(),
            free: VecDeque::new(),
            made: 0,
            timers: Timers::default(),
            turns: VecDeque::new(),
            news: VecDeque::new(),
            silent: VecDeque::new(),
            replies: VecDeque::new(),
            spill: batch::Spill::default(),
            tally: EndpointTally::default(),
            is_tracing: false,
            traces_left: VecDeque::new(),
        }
    }

    /// Opens a connection to the peer with the public key `remote`, always in the sealed form. `timestamp` must differ in every
    /// call; the system clock is suitable.
    ///
    /// # Errors
    /// If the configuration is invalid, or the limit of connections is reached.
    pub fn connect(
        &mut self,
        now: Time,
        timestamp: Timestamp,
        remote: PublicKey,
        tuple: FourTuple,
        config: Config,
    ) -> Result<ConnectionId, ConnectError> {
        let config = Config { form: Form::Sealed, ..config };
        let connection = Connection::connect(now, config, tuple, Secret::new(self.entropy.draw()));
        let connection = connection.map_err(ConnectError::Config)?;
        let number = self.claim().ok_or(ConnectError::TooMany)?;
        if !self.held.settle(self.config.connections_max) {
            self.free.push_front(number);
            return Err(ConnectError::TooMany);
        }
        let seed = self.entropy.draw();
        let seal = Seal::initiator(self.secret.clone(), remote, number ^ self.mask, self.config.seal, timestamp, seed);
        let owner = Owner { key: remote, network: Network::of(tuple.remote.address) };
        Ok(self.put(number, connection, seal, owner, false))
    }

    /// Handles a batch of concatenated datagrams that was read now. RTT samples exclude the time since their arrival
    /// ([`Connection::handle_late`]).
    pub fn handle_datagrams(&mut self, now: Time, arrival: &Arrival, mut datagrams: BytesMut) {
        let size = arrival.size.max(1);
        while !datagrams.is_empty() {
            let datagram = datagrams.split_to(size.min(datagrams.len()));
            self.handle_datagram(now, arrival, datagram);
        }
    }

    /// Handles the timeout that [`Endpoint::poll_timeout`] announced.
    pub fn handle_timeout(&mut self, now: Time) {
        self.handle_leaving();
        while let Some(number) = self.timers.pop(now) {
            let Some(slot) = self.slot_mut(number) else { continue };
            slot.connection.handle_timeout(now);
            slot.seal.handle_timeout(now);
            self.note_silence(number);
            self.touch(number);
        }
    }

    /// Appends a batch of datagrams to `out`: at most `datagrams_max`, all but the last of one length, with the same addresses.
    pub fn poll_transmit(&mut self, now: Time, datagrams_max: usize, out: &mut Vec<u8>) -> Option<Batch> {
        if let Some((tuple, reply)) = self.replies.pop_front() {
            out.extend_from_slice(&reply);
            return Some(Batch::single(tuple, reply.len()));
        }
        let mut batch = Batch::new(datagrams_max);
        self.spill.take(&mut batch, out);
        if batch.is_full() {
            return Some(batch);
        }
        while let Some(&number) = self.turns.front() {
            let is_done = self.fill(now, number, &mut batch, out);
            if is_done {
                self.turns.pop_front();
                self.rest(number);
            }
            if batch.count > 0 {
                // The next batch belongs to another connection.
                if !is_done && self.turns.len() > 1 {
                    self.turns.rotate_left(1);
                }
                return Some(batch);
            }
        }
        (batch.count > 0).then_some(batch)
    }

    /// The next event for the application.
    pub fn poll_event(&mut self) -> Option<EndpointEvent> {
        while let Some(&number) = self.news.front() {
            let Some(slot) = self.slot_mut(number) else {
                self.news.pop_front();
                continue;
            };
            // An incoming connection reports no events before it is established.
            if let Some(event) = slot.connection.poll_event() {
                if slot.is_half_open {
                    continue;
                }
                return Some(EndpointEvent { connection: slot.id, event });
            }
            slot.has_news = false;
            self.news.pop_front();
            self.bury(number);
        }
        None
    }

    /// When to call [`Endpoint::handle_timeout`]; [`Time::NEVER`] if there is no deadline.
    pub fn poll_timeout(&self) -> Time {
        if self.held.is_called() { Time::ZERO } else { self.timers.next() }
    }

    /// A connection, until it is closed and all its events are taken. Every call through it counts as an input.
    pub fn connection(&mut self, id: ConnectionId) -> Option<&mut Connection<Bytes>> {
        self.find(id)?;
        self.touch(id.number);
        self.find(id).map(|slot| &mut slot.connection)
    }

    /// A connection for reading only; this is no input.
    pub fn view(&self, id: ConnectionId) -> Option<&Connection<Bytes>> {
        let slot = self.slots.get(id.number as usize)?.as_deref()?;
        (slot.id == id).then_some(&slot.connection)
    }

    /// The public key of the peer of a connection.
    pub fn remote(&mut self, id: ConnectionId) -> Option<PublicKey> {
        self.find(id).map(|slot| slot.seal.remote())
    }

    /// Counters of a connection's datagrams.
    pub fn seal_tally(&mut self, id: ConnectionId) -> Option<SealTally> {
        self.find(id).map(|slot| slot.seal.tally())
    }

    /// Counters of datagrams that belong to no connection.
    pub fn tally(&self) -> EndpointTally {
        self.tally
    }

    /// Counters of initiations.
    pub fn listener_tally(&self) -> SealTally {
        self.listener.as_ref().map_or_else(SealTally::default, Listener::tally)
    }

    /// The number of connections, half-open ones included.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there are no connections.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn handle_datagram(&mut self, now: Time, arrival: &Arrival, datagram: BytesMut) {
        match Seal::recipient(&datagram) {
            Some(Recipient::Listener) => self.handle_initiation(now, arrival, datagram),
            Some(Recipient::Connection(number)) => self.handle_sealed(now, arrival, number ^ self.mask, datagram),
            Some(Recipient::Reset) => self.handle_reset(now, arrival, &datagram),
            None => self.tally.unknown += 1,
        }
    }

    fn handle_sealed(&mut self, now: Time, arrival: &Arrival, number: u32, datagram: BytesMut) {
        let Arrival { at, tuple, ecn, .. } = *arrival;
        let mask = self.mask;
        let Some(slot) = self.slot_mut(number).filter(|slot| slot.seal.knows(&datagram)) else {
            return self.handle_unknown(now, arrival, number, &datagram);
        };
        let size = datagram.len();
        let opened = slot.seal.open(now, tuple, datagram);
        if slot.is_half_open && slot.seal.is_established() && slot.connection.state() != State::Closed {
            if let Some(listener) = &mut self.listener {
                listener.release(number ^ mask);
            }
            self.settle(now, number);
        }
        let Some(slot) = self.slot_mut(number) else { return };
        if let Some(ahead) = slot.seal.ahead().filter(|_| opened.is_ok()) {
            slot.connection.on_datagram(&tuple, ahead);
        }
        match opened {
            Ok(Some(segment)) => {
                if let Some(trace) = &mut slot.trace {
                    trace.on_received(now, (tuple, size), &segment, &slot.connection);
                }
                slot.connection.handle_late(now, at, tuple, ecn, segment);
            }
            Ok(None) => {}
            // A datagram that fails authentication causes no further work.
            Err(_) => return,
        }
        self.touch(number);
    }

    fn handle_initiation(&mut self, now: Time, arrival: &Arrival, datagram: BytesMut) {
        let tuple = arrival.tuple;
        let number = self.claim();
        let Some(listener) = &mut self.listener else {
            self.tally.unknown += 1;
            self.free.extend(number);
            return;
        };
        let Some(number) = number else {
            self.tally.too_many += 1;
            return;
        };
        let mut reply = vec![];
        let answer = listener.handle(now, tuple, &datagram, number ^ self.mask, &mut reply);
        match answer {
            Ok(Answer::Accept { seal, segment, evicted }) => {
                if let Some(evicted) = evicted {
                    self.drop_slot(evicted ^ self.mask);
                }
                self.accept(now, arrival, number, *seal, segment);
            }
            Ok(Answer::Again { number: known }) => {
                self.free.push_front(number);
                self.handle_sealed(now, arrival, known ^ self.mask, datagram);
            }
            Ok(Answer::Reply) => {
                self.free.push_front(number);
                if self.replies.len() < REPLIES_MAX {
                    self.replies.push_back((tuple, reply));
                } else {
                    self.tally.replies_dropped += 1;
                }
            }
            Err(_) => self.free.push_front(number),
        }
    }

    /// Fills a batch with a connection's segments. Returns whether the connection has no more.
    fn fill(&mut self, now: Time, number: u32, batch: &mut Batch, out: &mut Vec<u8>) -> bool {
        let Self { slots, spill, farewells, .. } = self;
        let Some(slot) = slots.get_mut(number as usize).and_then(Option::as_mut) else { return true };
        let Slot { connection, seal, trace, activity, .. } = &mut **slot;
        if let Some(activity) = activity {
            activity.note(connection);
        }
        if let Some(trace) = trace {
            trace.look(now, connection);
        }
        loop {
            if batch.is_full() {
                return false;
            }
            let start = out.len();
            let sent = match seal.poll_transmit(now, out) {
                Some(tuple) => ((tuple, None), out.len() - start, 1),
                None if !seal.may_send() => return true,
                None => {
                    let Some(transmit) = connection.poll_transmit(now) else { return true };
                    if connection.reaches(transmit.path) {
                        seal.validate(transmit.tuple);
                    }
                    let Transmit { path, tuple, datagram_max, pad_to, ecn, .. } = transmit;
                    let outgoing = Outgoing { tuple, path, datagram_max, pad_to };
                    // A segment beyond the anti-amplification limit counts as lost.
                    let Ok(sealed) = seal.seal(now, &outgoing, &transmit.segment, out) else { continue };
                    if let Some(trace) = trace {
                        trace.on_sent(now, (path, out.len() - start), &transmit.segment, connection);
                    }
                    if connection.state() == State::Closed {
                        farewells.keep(now, number, tuple, &out[start..]);
                    }
                    ((tuple, ecn), sealed.size, sealed.count)
                }
            };
            let (to, size, count) = sent;
            if !batch.take(to, size, count, out.len() - start) {
                spill.put(to, size, &out[start..]);
                out.truncate(start);
                if batch.count == 0 {
                    spill.take(batch, out);
                }
                return false;
            }
        }
    }

    /// A connection had an input: schedules its turn, and its events.
    fn touch(&mut self, number: u32) {
        let Some(slot) = self.slots.get_mut(number as usize).and_then(Option::as_mut) else { return };
        if !std::mem::replace(&mut slot.is_queued, true) {
            self.turns.push_back(number);
        }
        if !std::mem::replace(&mut slot.has_news, true) {
            self.news.push_back(number);
        }
    }

    /// A connection has nothing more to send for now.
    fn rest(&mut self, number: u32) {
        let Some(slot) = self.slots.get_mut(number as usize).and_then(Option::as_mut) else { return };
        slot.is_queued = false;
        self.timers.set(number, slot.connection.poll_timeout().min(slot.seal.poll_timeout()));
        self.bury(number);
    }

    /// Removes a closed connection when all its segments were sent and all its events taken.
    fn bury(&mut self, number: u32) {
        let is_over = |slot: &Slot| slot.connection.state() == State::Closed && !slot.is_queued && !slot.has_news;
        if self.slot_mut(number).is_some_and(|slot| is_over(slot)) {
            self.drop_slot(number);
        }
    }

    fn drop_slot(&mut self, number: u32) {
        self.withdraw(number);
        let Some(mut slot) = self.slots.get_mut(number as usize).and_then(Option::take) else { return };
        let id = slot.id;
        if let Some(traces) = slot.trace.as_mut().and_then(|trace| trace.take(id)) {
            trace::leave(&mut self.traces_left, traces);
        }
        if slot.is_half_open {
            self.release(number);
        } else {
            self.held.leave();
        }
        self.timers.set(number, Time::NEVER);
        self.free.push_back(number);
    }

    fn release(&mut self, number: u32) {
        if let Some(listener) = &mut self.listener {
            listener.release(number ^ self.mask);
        }
    }

    fn put(
        &mut self,
        number: u32,
        mut connection: Connection<Bytes>,
        seal: Seal,
        owner: Owner,
        is_half_open: bool,
    ) -> ConnectionId {
        let id = ConnectionId { serial: self.made, number };
        self.made += 1;
        let trace = self.is_tracing.then(|| {
            connection.keep_losses();
            Box::default()
        });
        let (is_own, is_queued, has_news, activity) = (!is_half_open, false, false, None);
        let slot = Slot { id, connection, seal, is_queued, has_news, is_half_open, is_own, owner, activity, trace };
        self.slots[number as usize] = Some(Box::new(slot));
        self.touch(number);
        id
    }

    fn find(&mut self, id: ConnectionId) -> Option<&mut Slot> {
        self.slot_mut(id.number).filter(|slot| slot.id == id)
    }

    fn slot_mut(&mut self, number: u32) -> Option<&mut Slot> {
        self.slots.get_mut(number as usize)?.as_deref_mut()
    }
}

/// The size of the send queue for cookies. A driver sends after each batch that it reads, and a peer retries if its cookie was
/// dropped.
const REPLIES_MAX: usize = 256;

#[cfg(test)]
mod tests;
