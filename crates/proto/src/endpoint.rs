//! One owner of all connections of a socket: sealed datagrams in, sealed datagrams out, so that a driver is a short loop.
//!
//! ```text
//! socket ── datagrams ──> handle_datagrams ──┬──> Listener ──> a new connection
//!                                            └──> Seal ──> Connection
//! socket <── batches ──── poll_transmit <──────── Seal <── Connection
//! ```
//!
//! The contract is that of a [`Connection`]: after each input the driver sends what [`Endpoint::poll_transmit`] has until there is nothing
//! more, then takes all of [`Endpoint::poll_event`], then reads [`Endpoint::poll_timeout`].
//!
//! * Datagrams come and leave in batches: several of one length, one behind the other, between one pair of addresses, as the kernel's
//!   offloads (GRO, GSO) have them. They are opened and sealed where they lie.
//! * A connection is asked for a segment only when its seal can take it: what cannot be sealed stays where it is.
//! * Whether an address gets what is sent there is the connection's knowledge, and its seal asks for it.
//! * Connections take turns, a batch each.
//! * How long datagrams may be is found by probes, path by path. So the driver has the kernel send them whole or not at all (DF); what it
//!   refuses because it is too long is as good as lost.
//!
//! Everything has a limit: connections by [`EndpointConfig::connections_max`], half-open ones by the listener, cookies that wait to be sent by
//! `REPLIES_MAX`.

mod batch;
mod timers;
mod trace;

use std::collections::{BTreeSet, VecDeque};

use anabranch_units::Time;
use bytes::{Bytes, BytesMut};

pub use self::batch::Batch;
use self::timers::Timers;
use self::trace::Trace;
pub use self::trace::{Metrics, TraceEvent, Traced, TracedSegment, Traces};
use crate::config::{Config, Form};
use crate::connection::{ConfigError, Connection, State, Transmit};
use crate::ecn::EcnCodepoint;
use crate::event::Event;
use crate::path::FourTuple;
use crate::random::Secret;
use crate::seal::{
    Answer, Entropy, Listener, ListenerConfig, Outgoing, PublicKey, Recipient, Seal, SealConfig, SealTally, SecretKey,
    Timestamp,
};
use crate::segment::Segment;

/// All connections of a socket.
#[derive(Debug)]
pub struct Endpoint {
    secret: SecretKey,
    config: EndpointConfig,
    listener: Option<Listener>,
    entropy: Entropy,
    /// By number.
    slots: Vec<Option<Box<Slot>>>,
    /// Numbers that are free, the one that has been for longest first: what is late for a connection that is gone finds nobody.
    free: VecDeque<u32>,
    /// Connections made so far.
    made: u64,
    timers: Timers,
    /// Connections that may have something to send, in the order of their turns.
    turns: VecDeque<u32>,
    /// Connections that may have something to tell.
    news: VecDeque<u32>,
    /// Cookies that wait to be sent.
    replies: VecDeque<(FourTuple, Vec<u8>)>,
    /// A datagram that did not fit into the last batch.
    spill: batch::Spill,
    tally: EndpointTally,
    /// Whether new connections are traced, and what is left of those that are gone.
    is_tracing: bool,
    traces_left: VecDeque<Traces>,
}

/// What an endpoint can be set to.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The most connections at a time, of either direction.
    pub connections_max: usize,
    /// How connections that this end opens are sealed.
    pub seal: SealConfig,
    /// Who may call, and what they get; an endpoint without only calls.
    pub server: Option<ServerConfig>,
}

/// What others who call get.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// How much is calculated for them, and how their connections are sealed.
    pub listener: ListenerConfig,
    /// Who they may be.
    pub admission: Admission,
    /// How their connections are set, but for the form, which is [`Form::Sealed`].
    pub connection: Config,
}

/// Who may open a connection to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Whoever knows the endpoint's public key.
    Anyone,
    /// Those who prove one of these names. Others hear nothing.
    Keys(BTreeSet<PublicKey>),
}

/// A connection of an endpoint. Names are not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId {
    serial: u64,
    number: u32,
}

/// What an endpoint has to tell of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointEvent {
    /// Of which.
    pub connection: ConnectionId,
    /// What happened. A connection that somebody else has opened is heard of for the first time when it is established.
    pub event: Event,
}

/// How datagrams came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When they came to the host, by the stamp of its kernel, if that is before they are read; else when they are read.
    pub at: Time,
    /// By which addresses.
    pub tuple: FourTuple,
    /// Bytes of each datagram but the last one, which may have fewer.
    pub size: usize,
    /// What their packets said of ECN, all the same.
    pub ecn: Option<EcnCodepoint>,
}

/// Why no connection can be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectError {
    /// The configuration cannot work.
    Config(ConfigError),
    /// There are as many connections as there may be.
    TooMany,
}

/// What happened to datagrams that belong to no connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndpointTally {
    /// Initiations of those who may not call.
    pub not_admitted: u64,
    /// Initiations for which there was no place.
    pub too_many: u64,
    /// Datagrams of no connection that there is.
    pub unknown: u64,
    /// Cookies that were not sent, because too many waited.
    pub replies_dropped: u64,
}

#[derive(Debug)]
struct Slot {
    id: ConnectionId,
    connection: Connection<Bytes>,
    seal: Seal,
    /// Whether it has a turn, and a place among the news.
    is_queued: bool,
    has_news: bool,
    /// Whether the listener counts it as half open.
    is_half_open: bool,
    trace: Option<Box<Trace>>,
}

impl Endpoint {
    /// An endpoint that proves this name. `seed` is 32 random bytes that nobody else knows and that are used nowhere else.
    pub fn new(now: Time, secret: SecretKey, config: EndpointConfig, seed: [u8; 32]) -> Self {
        let mut entropy = Entropy::new(seed);
        let listener =
            config.server.as_ref().map(|server| Listener::new(now, secret.clone(), server.listener, entropy.draw()));
        Self {
            secret,
            config,
            listener,
            entropy,
            slots: vec![],
            free: VecDeque::new(),
            made: 0,
            timers: Timers::default(),
            turns: VecDeque::new(),
            news: VecDeque::new(),
            replies: VecDeque::new(),
            spill: batch::Spill::default(),
            tally: EndpointTally::default(),
            is_tracing: false,
            traces_left: VecDeque::new(),
        }
    }

    /// Opens a connection to who proves the name `remote`, in the sealed form whatever its configuration says. No two calls have the same `timestamp`; a clock of the computer will do.
    ///
    /// # Errors
    /// If the configuration cannot work, or there are too many connections.
    pub fn connect(
        &mut self,
        now: Time,
        timestamp: Timestamp,
        remote: PublicKey,
        tuple: FourTuple,
        config: Config,
    ) -> Result<ConnectionId, ConnectError> {
        let number = self.claim().ok_or(ConnectError::TooMany)?;
        let config = Config { form: Form::Sealed, ..config };
        let connection = match Connection::connect(now, config, tuple, Secret::new(self.entropy.draw())) {
            Ok(connection) => connection,
            Err(error) => {
                self.free.push_front(number);
                return Err(ConnectError::Config(error));
            }
        };
        let seed = self.entropy.draw();
        let seal = Seal::initiator(self.secret.clone(), remote, number, self.config.seal, timestamp, seed);
        Ok(self.put(number, connection, seal, false))
    }

    /// Datagrams have come, one behind the other, and are read now. For how long they waited in the host is no part of an RTT ([`Connection::handle_late`]).
    pub fn handle_datagrams(&mut self, now: Time, arrival: &Arrival, mut datagrams: BytesMut) {
        let size = arrival.size.max(1);
        while !datagrams.is_empty() {
            let datagram = datagrams.split_to(size.min(datagrams.len()));
            self.handle_datagram(now, arrival, datagram);
        }
    }

    /// A deadline of [`Endpoint::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some(number) = self.timers.pop(now) {
            let Some(slot) = self.slot_mut(number) else { continue };
            slot.connection.handle_timeout(now);
            slot.seal.handle_timeout(now);
            self.touch(number);
        }
    }

    /// Appends a batch of datagrams to `out`: as many as `datagrams_max`, all but the last of one length, between one pair of addresses.
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
                // The next batch is another's.
                if !is_done && self.turns.len() > 1 {
                    self.turns.rotate_left(1);
                }
                return Some(batch);
            }
        }
        (batch.count > 0).then_some(batch)
    }

    /// What the application is to know next.
    pub fn poll_event(&mut self) -> Option<EndpointEvent> {
        while let Some(&number) = self.news.front() {
            let Some(slot) = self.slot_mut(number) else {
                self.news.pop_front();
                continue;
            };
            // Nobody has been told of it before it is established, and what was never established is nobody's business.
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

    /// When to call [`Endpoint::handle_timeout`]; [`Time::NEVER`] if not at all.
    pub fn poll_timeout(&self) -> Time {
        self.timers.next()
    }

    /// A connection, as long as there is one and not all of it has been told. What is done through it is an input.
    pub fn connection(&mut self, id: ConnectionId) -> Option<&mut Connection<Bytes>> {
        self.find(id)?;
        self.touch(id.number);
        self.find(id).map(|slot| &mut slot.connection)
    }

    /// A connection, to be looked at: that is no input.
    pub fn view(&self, id: ConnectionId) -> Option<&Connection<Bytes>> {
        let slot = self.slots.get(id.number as usize)?.as_deref()?;
        (slot.id == id).then_some(&slot.connection)
    }

    /// Who is at the other end of a connection.
    pub fn remote(&mut self, id: ConnectionId) -> Option<PublicKey> {
        self.find(id).map(|slot| slot.seal.remote())
    }

    /// What happened to the datagrams of a connection.
    pub fn seal_tally(&mut self, id: ConnectionId) -> Option<SealTally> {
        self.find(id).map(|slot| slot.seal.tally())
    }

    /// What happened to datagrams that belong to no connection.
    pub fn tally(&self) -> EndpointTally {
        self.tally
    }

    /// What happened to initiations.
    pub fn listener_tally(&self) -> SealTally {
        self.listener.as_ref().map_or_else(SealTally::default, Listener::tally)
    }

    /// How many connections there are, half-open ones included.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn handle_datagram(&mut self, now: Time, arrival: &Arrival, datagram: BytesMut) {
        match Seal::recipient(&datagram) {
            Some(Recipient::Listener) => self.handle_initiation(now, arrival, datagram),
            Some(Recipient::Connection(number)) => self.handle_sealed(now, arrival, number, datagram),
            None => self.tally.unknown += 1,
        }
    }

    fn handle_sealed(&mut self, now: Time, arrival: &Arrival, number: u32, datagram: BytesMut) {
        let Arrival { at, tuple, ecn, .. } = *arrival;
        let Some(slot) = self.slot_mut(number) else {
            self.tally.unknown += 1;
            return;
        };
        let size = datagram.len();
        let opened = slot.seal.open(now, tuple, datagram);
        if slot.is_half_open && slot.seal.is_established() {
            slot.is_half_open = false;
            if let Some(listener) = &mut self.listener {
                listener.release(number);
            }
        }
        let Some(slot) = self.slot_mut(number) else { return };
        match opened {
            Ok(Some(segment)) => {
                if let Some(trace) = &mut slot.trace {
                    trace.on_received(now, (tuple, size), &segment, &slot.connection);
                }
                slot.connection.handle_late(now, at, tuple, ecn, segment);
            }
            Ok(None) => {}
            // Nobody who is not the peer makes us do more.
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
        let answer = listener.handle(now, tuple, &datagram, number, &mut reply);
        match answer {
            Ok(Answer::Accept { seal, segment, evicted }) => {
                if let Some(evicted) = evicted {
                    self.drop_slot(evicted);
                }
                self.accept(now, arrival, number, *seal, segment);
            }
            Ok(Answer::Again { number: known }) => {
                self.free.push_front(number);
                self.handle_sealed(now, arrival, known, datagram);
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

    fn accept(&mut self, now: Time, arrival: &Arrival, number: u32, seal: Seal, segment: Segment<Bytes>) {
        let Arrival { at, tuple, ecn, .. } = *arrival;
        let secret = Secret::new(self.entropy.draw());
        let is_admitted = |server: &&ServerConfig| match &server.admission {
            Admission::Anyone => true,
            Admission::Keys(keys) => keys.contains(&seal.remote()),
        };
        let connection = match self.config.server.as_ref().filter(is_admitted) {
            Some(server) => {
                let config = Config { form: Form::Sealed, ..server.connection.clone() };
                Connection::listen(now, config, tuple, secret).ok()
            }
            None => {
                self.tally.not_admitted += 1;
                None
            }
        };
        let Some(mut connection) = connection else {
            self.release(number);
            self.free.push_front(number);
            return;
        };
        connection.handle_late(now, at, tuple, ecn, segment);
        self.put(number, connection, seal, true);
    }

    /// Fills a batch with what a connection has to send. Whether that was all.
    fn fill(&mut self, now: Time, number: u32, batch: &mut Batch, out: &mut Vec<u8>) -> bool {
        let Self { slots, spill, .. } = self;
        let Some(slot) = slots.get_mut(number as usize).and_then(Option::as_mut) else { return true };
        let Slot { connection, seal, trace, .. } = &mut **slot;
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
                    // What its address is not allowed yet is as good as lost.
                    let Ok(sealed) = seal.seal(now, &outgoing, &transmit.segment, out) else { continue };
                    if let Some(trace) = trace {
                        trace.on_sent(now, (path, out.len() - start), &transmit.segment, connection);
                    }
                    ((tuple, ecn), sealed.size, sealed.count)
                }
            };
            let (to, size, count) = sent;
            if !batch.take(to, size, count, out.len() - start) {
                spill.put(to, size, count, &out[start..]);
                out.truncate(start);
                return false;
            }
        }
    }

    /// Something happened to a connection: it gets a turn, and may have something to tell.
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

    /// Forgets a connection that is closed, when everything has been sent and told.
    fn bury(&mut self, number: u32) {
        let is_over = |slot: &Slot| slot.connection.state() == State::Closed && !slot.is_queued && !slot.has_news;
        if self.slot_mut(number).is_some_and(|slot| is_over(slot)) {
            self.drop_slot(number);
        }
    }

    fn drop_slot(&mut self, number: u32) {
        let Some(mut slot) = self.slots.get_mut(number as usize).and_then(Option::take) else { return };
        let id = slot.id;
        if let Some(traces) = slot.trace.as_mut().and_then(|trace| trace.take(id)) {
            trace::leave(&mut self.traces_left, traces);
        }
        if slot.is_half_open {
            self.release(number);
        }
        self.timers.set(number, Time::NEVER);
        self.free.push_back(number);
    }

    fn release(&mut self, number: u32) {
        if let Some(listener) = &mut self.listener {
            listener.release(number);
        }
    }

    fn put(&mut self, number: u32, mut connection: Connection<Bytes>, seal: Seal, is_half_open: bool) -> ConnectionId {
        let id = ConnectionId { serial: self.made, number };
        self.made += 1;
        let trace = self.is_tracing.then(|| {
            connection.keep_losses();
            Box::default()
        });
        let slot = Slot { id, connection, seal, is_queued: false, has_news: false, is_half_open, trace };
        self.slots[number as usize] = Some(Box::new(slot));
        self.touch(number);
        id
    }

    /// A number that no connection has; none if there are too many.
    fn claim(&mut self) -> Option<u32> {
        let count = self.slots.len();
        // Numbers rest before they are used again, as long as there are new ones.
        if count < self.config.connections_max.min(NUMBERS)
            && (self.free.len() < NUMBERS_RESTING || self.free.is_empty())
        {
            self.slots.push(None);
            return Some(count as u32);
        }
        self.free.pop_front()
    }

    fn find(&mut self, id: ConnectionId) -> Option<&mut Slot> {
        self.slot_mut(id.number).filter(|slot| slot.id == id)
    }

    fn slot_mut(&mut self, number: u32) -> Option<&mut Slot> {
        self.slots.get_mut(number as usize)?.as_deref_mut()
    }
}

/// Cookies that wait to be sent: a driver sends after each batch that it reads, and a cookie that is not sent is asked for again.
const REPLIES_MAX: usize = 256;

/// Numbers that a seal has.
const NUMBERS: usize = 1 << 24;

/// So many are free before the first is used again.
const NUMBERS_RESTING: usize = 256;

#[cfg(test)]
mod tests;
