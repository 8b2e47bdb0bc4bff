//! Connections as applications have them: each a connection of TCP, or a *channel*, a pair of streams in a connection that several share.
//!
//! ```text
//! connect ──> a connection to that port, with streams     a channel in it
//!             none, and the peer is known to be plain     a connection of its own
//!             none                                        a connection that asks for streams, and a channel that waits:
//!                                                           granted    all that wait become channels
//!                                                           plain      the first has the connection; each other opens its own
//! ```
//!
//! The opener of a channel begins its stream with a number, and the other end begins the stream of its answers with the same one. Where
//! it resets that stream, which may leave the number unsaid, it says it by the code ([`gone`]). A connection without channels is closed after [`IDLE`].

mod events;
mod streams;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use anabranch_proto::{Address, CloseReason, ConfigError, FourTuple, PathReport, Read, Sid, State};
use anabranch_units::{Span, Time};
use bytes::Bytes;

use crate::packet::{IpFields, NoticeKind, Sum};
use crate::socket::{Settings, SocketError, SocketEvent, SocketId, StackTally};
use crate::stack::Stack;

/// The connections of a host as its applications have them, without a clock, a device or a thread.
///
/// The driver passes packets and timeouts, then sends everything from [`Mux::poll_transmit`], takes every [`Mux::poll_event`], and reads
/// [`Mux::poll_timeout`].
#[derive(Debug)]
pub struct Mux {
    stack: Stack,
    /// The channels, by numbers above those of the stack's connections.
    channels: HashMap<SocketId, Channel>,
    next: u64,
    /// Connections that channels share.
    carriers: HashMap<SocketId, Carrier>,
    /// Those to peers, by our address and theirs.
    by_peer: HashMap<(u128, Address), SocketId>,
    /// The channels that have a connection of their own, by that.
    alone: HashMap<SocketId, SocketId>,
    /// Peers that had no streams.
    plain: BTreeMap<Address, Plain>,
    /// Channels that wait to be accepted, by port.
    ready: HashMap<u16, VecDeque<SocketId>>,
    /// When idle carriers are closed, and released channels given up.
    timers: BTreeSet<(Time, SocketId)>,
    events: VecDeque<SocketEvent>,
    /// The time of the last input.
    now: Time,
    /// No application is left: what is idle is closed at once.
    is_over: bool,
}

/// A peer that had no streams when it was asked.
#[derive(Clone, Copy, Debug)]
struct Plain {
    until: Time,
    /// It has said so, or did not answer twice in a row: one SYN may be lost.
    is_sure: bool,
}

/// A connection that channels share.
#[derive(Debug)]
struct Carrier {
    role: Role,
    stage: Stage,
    /// Streams in each direction that are asked for, or granted.
    streams: u16,
    by_number: BTreeMap<u32, SocketId>,
    by_out: BTreeMap<Sid, SocketId>,
    by_back: BTreeMap<Sid, SocketId>,
    /// Streams of the peer that have begun, and as much of their number as has arrived.
    begun: BTreeMap<Sid, Vec<u8>>,
    /// Channels without a stream of ours, the first first.
    unopened: VecDeque<SocketId>,
    /// The [`gone`] codes of the peer's channels that ended here before they had a stream of ours.
    unsaid: VecDeque<u16>,
    next: u32,
    idle_until: Time,
}

/// Who begins the channels of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// This end: our address, and the port of the peer.
    Opener((u128, Address)),
    /// The peer; they are accepted at this port.
    Acceptor(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its handshake is not over.
    Opening,
    Open,
    /// The peer has closed.
    Ending,
}

#[derive(Debug)]
struct Channel {
    way: Way,
    ends: FourTuple,
    closed: Option<CloseReason>,
    /// What the network had said of the connection when its streams ended.
    soft_error: Option<NoticeKind>,
    /// The application has let go of it.
    is_released: bool,
    /// The application has written the last byte, or waits to write.
    is_closing: bool,
    wants_room: bool,
    /// When it is given up, and how much the peer had acknowledged when that was set.
    deadline: Time,
    acked: u64,
}

/// How a channel reaches its peer.
#[derive(Debug)]
enum Way {
    /// A connection of its own.
    Alone(SocketId),
    /// A pair of streams.
    Shared { carrier: SocketId, number: u32, out: Out, back: Back },
    /// Nothing any more.
    Gone,
}

/// Our stream of a channel.
#[derive(Debug)]
enum Out {
    Unopened,
    /// Open; these bytes of the number are still to be written.
    Open(Sid, Bytes),
    /// All is written, and was not acknowledged.
    Ended(Sid),
    Over,
}

/// The peer's stream of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Back {
    Awaited,
    Open(Sid),
    /// The application has read its end.
    Over,
}

impl Mux {
    /// Nothing yet; `seed` must come from the system's random source.
    ///
    /// # Errors
    /// If the settings of connections are invalid.
    pub fn new(settings: Settings, seed: [u8; 32]) -> Result<Self, ConfigError> {
        Ok(Self {
            stack: Stack::new(settings, seed)?,
            channels: HashMap::new(),
            next: FIRST,
            carriers: HashMap::new(),
            by_peer: HashMap::new(),
            alone: HashMap::new(),
            plain: BTreeMap::new(),
            ready: HashMap::new(),
            timers: BTreeSet::new(),
            events: VecDeque::new(),
            now: Time::ZERO,
            is_over: false,
        })
    }

    /// Opens a connection from an address of the host; with port 0 from a free port, and then in a connection that others share, if the settings and the
    /// peer have streams.
    ///
    /// # Errors
    /// If the address is not the host's, the peer's is none of a host, or the port or the number of sockets does not allow it.
    pub fn connect(&mut self, now: Time, local: Address, remote: Address) -> Result<SocketId, SocketError> {
        self.now = now;
        let streams = self.stack.settings().connection.streams;
        if streams == 0 || local.port != 0 || self.is_plain(remote) {
            return self.stack.connect(now, local, remote, 0);
        }
        if self.channels.len() >= self.stack.settings().sockets_max {
            return Err(SocketError::TooMany);
        }
        let carrier = self.carrier_to((local.address, remote))?;
        Ok(self.add(carrier, None, Back::Awaited))
    }

    /// A connection to a peer with room for one more channel; a new one if there is none.
    fn carrier_to(&mut self, peer: (u128, Address)) -> Result<SocketId, SocketError> {
        let known = self.by_peer.get(&peer).copied();
        if let Some(carrier) = known.filter(|id| self.carriers.get(id).is_some_and(Carrier::has_room)) {
            return Ok(carrier);
        }
        let (address, remote) = peer;
        let streams = self.stack.settings().connection.streams;
        let id = self.stack.connect(self.now, Address { address, port: 0 }, remote, streams)?;
        self.carriers.insert(id, Carrier::new(Role::Opener(peer), Stage::Opening, streams));
        self.by_peer.insert(peer, id);
        Ok(id)
    }

    /// Accepts connections to a port of the host.
    ///
    /// # Errors
    /// If the port has a listener.
    pub fn listen(&mut self, port: u16) -> Result<(), SocketError> {
        self.stack.listen(port)?;
        self.ready.insert(port, VecDeque::new());
        Ok(())
    }

    /// Ends a listener. Connections that nobody has accepted are reset.
    pub fn unlisten(&mut self, port: u16) {
        self.stack.unlisten(port);
        for id in self.ready.remove(&port).unwrap_or_default() {
            self.abort(id);
            self.release(id);
        }
    }

    /// A connection that waits at a port.
    pub fn accept(&mut self, port: u16) -> Option<SocketId> {
        loop {
            if let Some(id) = self.ready.get_mut(&port)?.pop_front() {
                return Some(id);
            }
            let id = self.stack.accept(port)?;
            let Some(count) = self.stack.stream_count(id) else { return Some(id) };
            self.carriers.insert(id, Carrier::new(Role::Acceptor(port), Stage::Open, count));
            self.rest(id);
            // Streams that have begun before told it to nobody.
            for sid in (1..=count).map(Sid::new) {
                self.begin(id, sid);
            }
        }
    }

    /// Reads at most `most` bytes.
    ///
    /// # Errors
    /// If there is no such connection, or it has ended other than by a close of the peer.
    pub fn read(&mut self, id: SocketId, most: u32) -> Result<Read<Bytes>, SocketError> {
        let Some(channel) = self.channels.get_mut(&id) else {
            return self.stack.read(id, most);
        };
        let closed = channel.closed;
        let (carrier, sid) = match channel.way {
            Way::Alone(inner) => return self.stack.read(inner, most),
            Way::Shared { carrier, back: Back::Open(sid), .. } => (carrier, sid),
            Way::Shared { back: Back::Over, .. } => return Ok(Read::End),
            Way::Shared { back: Back::Awaited, .. } | Way::Gone => {
                return match closed {
                    None => Ok(Read::Nothing),
                    Some(CloseReason::Finished) => Ok(Read::End),
                    Some(reason) => Err(SocketError::Closed(reason)),
                };
            }
        };
        let read = self.stack.streams(carrier).and_then(|mut streams| streams.read(sid, most).ok());
        match read {
            Some(Read::Data(data)) => Ok(Read::Data(data)),
            Some(Read::End) => {
                self.leave_back(id, Back::Over);
                self.settle(id);
                Ok(Read::End)
            }
            Some(Read::Reset(_)) => {
                self.leave_back(id, Back::Awaited);
                self.fail(id, CloseReason::Reset);
                Err(SocketError::Closed(CloseReason::Reset))
            }
            Some(Read::Nothing) | None => closed.map_or(Ok(Read::Nothing), |reason| Err(SocketError::Closed(reason))),
        }
    }

    /// Takes as much of `data` as there is room for, and returns the number of bytes.
    ///
    /// # Errors
    /// If there is no such connection, or it is not open for writing.
    pub fn write(&mut self, id: SocketId, data: &mut Bytes) -> Result<u32, SocketError> {
        let Some(channel) = self.channels.get_mut(&id) else {
            return self.stack.write(id, Sid::PLAIN, data);
        };
        if let Some(reason) = channel.closed {
            return Err(SocketError::Closed(reason));
        }
        if channel.is_closing {
            return Err(SocketError::NotOpen);
        }
        let taken = match &mut channel.way {
            Way::Alone(inner) => return self.stack.write(*inner, Sid::PLAIN, data),
            Way::Shared { out: Out::Unopened, .. } => 0,
            Way::Shared { carrier, out: Out::Open(sid, head), .. } => {
                if !head.is_empty() {
                    self.stack.write(*carrier, *sid, head)?;
                }
                if head.is_empty() { self.stack.write(*carrier, *sid, data)? } else { 0 }
            }
            Way::Shared { out: Out::Ended(_) | Out::Over, .. } | Way::Gone => return Err(SocketError::NotOpen),
        };
        channel.wants_room = !data.is_empty();
        Ok(taken)
    }

    /// As [`Mux::write`]; all that was written so far is urgent.
    ///
    /// # Errors
    /// As [`Mux::write`]; or if others share the connection.
    pub fn write_urgent(&mut self, id: SocketId, data: &mut Bytes) -> Result<u32, SocketError> {
        self.stack.write_urgent(self.alone(id).ok_or(SocketError::Shared)?, data)
    }

    /// Bytes that the peer calls urgent and that are not read yet; none where others share the connection.
    pub fn urgent(&self, id: SocketId) -> u64 {
        self.alone(id).map_or(0, |inner| self.stack.urgent(inner))
    }

    /// The connection of the stack that nobody shares.
    fn alone(&self, id: SocketId) -> Option<SocketId> {
        match self.channels.get(&id).map(|channel| &channel.way) {
            None => Some(id),
            Some(&Way::Alone(inner)) => Some(inner),
            Some(Way::Shared { .. } | Way::Gone) => None,
        }
    }

    /// Closes the sending side after what was written.
    pub fn close(&mut self, id: SocketId) {
        let Some(channel) = self.channels.get_mut(&id) else {
            return self.stack.close(id);
        };
        channel.is_closing = true;
        match channel.way {
            Way::Alone(inner) => self.stack.close(inner),
            Way::Shared { .. } => self.finish(id),
            Way::Gone => {}
        }
    }

    /// Ends the connection with a reset.
    pub fn abort(&mut self, id: SocketId) {
        match self.channels.get(&id).map(|channel| &channel.way) {
            None => self.stack.abort(id),
            Some(&Way::Alone(inner)) => self.stack.abort(inner),
            Some(Way::Shared { .. }) => self.fail(id, CloseReason::Aborted),
            Some(Way::Gone) => {}
        }
    }

    /// Sets the fields of the IP headers of a connection, from the next segment on.
    ///
    /// # Errors
    /// If there is no such connection, or others share it.
    pub fn set_ip_fields(&mut self, id: SocketId, fields: IpFields) -> Result<(), SocketError> {
        match self.channels.get(&id).map(|channel| &channel.way) {
            None => self.stack.set_ip_fields(id, fields),
            Some(&Way::Alone(inner)) => self.stack.set_ip_fields(inner, fields),
            Some(Way::Shared { .. }) => Err(SocketError::Shared),
            Some(Way::Gone) => Err(SocketError::NoSuchSocket),
        }
    }

    /// Ends every connection with a reset.
    pub fn abort_all(&mut self) {
        self.stack.abort_all();
    }

    /// The application lets go of a connection. What was written is still sent; data that nobody has read or that arrives from now on resets it, so that
    /// the peer knows.
    pub fn release(&mut self, id: SocketId) {
        let Some(channel) = self.channels.get_mut(&id) else {
            return self.stack.release(id);
        };
        if let Way::Alone(inner) = channel.way {
            self.alone.remove(&inner);
            self.channels.remove(&id);
            return self.stack.release(inner);
        }
        channel.is_released = true;
        if channel.closed.is_some() {
            return self.remove(id);
        }
        self.close(id);
        self.refuse_unread(id);
        self.settle(id);
        self.linger(id);
    }

    /// No application is left: idle connections are closed at once.
    pub fn end(&mut self) {
        self.is_over = true;
        for id in self.carriers.keys().copied().collect::<Vec<_>>() {
            self.rest(id);
        }
    }

    /// Handles an IP packet.
    pub fn handle_packet(&mut self, now: Time, bytes: &Bytes) {
        self.handle_with(now, bytes, Sum::Computed);
    }

    /// Handles an IP packet, and checks the checksum of its segment, if there is one to be checked.
    pub(crate) fn handle_with(&mut self, now: Time, bytes: &Bytes, sum: Sum) {
        self.now = now;
        self.stack.handle_with(now, bytes, sum);
    }

    /// Handles the timeouts until now.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        self.stack.handle_timeout(now);
        while let Some(&(time, id)) = self.timers.first().filter(|(time, _)| *time <= now) {
            self.timers.remove(&(time, id));
            if self.carriers.contains_key(&id) {
                self.close_carrier(id);
            } else if self.acked(id) == self.channels.get(&id).map_or(0, |channel| channel.acked) {
                self.fail(id, CloseReason::TimedOut);
            } else {
                self.linger(id);
            }
        }
    }

    /// When to call [`Mux::handle_timeout`]; [`Time::NEVER`] if there is no deadline.
    pub fn poll_timeout(&self) -> Time {
        let own = self.timers.first().map_or(Time::NEVER, |&(time, _)| time);
        own.min(self.stack.poll_timeout())
    }

    /// Appends the next IP packet to `out`; false if there is none now.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
        self.now = now;
        loop {
            if self.stack.poll_transmit(now, out) {
                return true;
            }
            // What channels do about events may be sent, too.
            if !self.take_events() {
                return false;
            }
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<SocketEvent> {
        self.events.pop_front()
    }

    /// Whether a connection waits for its handshake.
    pub fn is_opening(&self, id: SocketId) -> bool {
        match self.channels.get(&id) {
            Some(Channel { closed: Some(_), .. }) => false,
            Some(Channel { way: Way::Shared { carrier, .. }, .. }) => {
                self.carriers.get(carrier).is_some_and(|carrier| carrier.stage == Stage::Opening)
            }
            Some(Channel { way: Way::Alone(inner), .. }) => self.is_connecting(*inner),
            Some(Channel { way: Way::Gone, .. }) => false,
            None => self.is_connecting(id),
        }
    }

    /// Whether a peer is known to have no streams.
    fn is_plain(&self, remote: Address) -> bool {
        self.plain.get(&remote).is_some_and(|plain| plain.is_sure && self.now < plain.until)
    }

    /// In Closed, the reason comes with the next turn.
    fn is_connecting(&self, id: SocketId) -> bool {
        let state = self.stack.state(id);
        matches!(state, Some(State::SynSent | State::SynReceived | State::Closed)) && self.stack.closed(id).is_none()
    }

    /// Whether both ends have closed, and each has all that the other has written.
    pub fn is_finished(&self, id: SocketId) -> bool {
        let inner = match self.channels.get(&id) {
            Some(Channel { way: Way::Alone(inner), .. }) => *inner,
            Some(channel) => return channel.closed == Some(CloseReason::Finished),
            None => id,
        };
        self.stack.closed(inner) == Some(CloseReason::Finished) || self.stack.state(inner) == Some(State::TimeWait)
    }

    /// Why a connection is over; `None` if it is not.
    pub fn closed(&self, id: SocketId) -> Option<CloseReason> {
        match self.channels.get(&id) {
            Some(Channel { way: Way::Alone(inner), .. }) => self.stack.closed(*inner),
            Some(channel) => channel.closed,
            None => self.stack.closed(id),
        }
    }

    /// A number that grows whenever the peer acknowledges something of a connection.
    pub fn acked(&mut self, id: SocketId) -> u64 {
        match self.channels.get(&id).map(|channel| &channel.way) {
            Some(Way::Alone(inner)) => self.stack.acked(*inner),
            Some(&Way::Shared { carrier, out: Out::Open(sid, _) | Out::Ended(sid), .. }) => {
                self.stack.streams(carrier).map_or(0, |streams| streams.delivered(sid))
            }
            Some(Way::Shared { .. } | Way::Gone) => 0,
            None => self.stack.acked(id),
        }
    }

    /// The ends of a connection; those that it shares, if it does.
    pub fn ends(&self, id: SocketId) -> Option<FourTuple> {
        self.channels.get(&id).map(|channel| channel.ends).or_else(|| self.stack.ends(id))
    }

    /// What the network has said of a segment of a connection, or of the one that it shares: a soft error, which ends nothing. Nothing once the peer has
    /// acknowledged something since.
    pub fn soft_error(&self, id: SocketId) -> Option<NoticeKind> {
        match self.channels.get(&id) {
            Some(Channel { way: Way::Alone(inner) | Way::Shared { carrier: inner, .. }, .. }) => {
                self.stack.soft_error(*inner)
            }
            Some(Channel { way: Way::Gone, soft_error, .. }) => *soft_error,
            None => self.stack.soft_error(id),
        }
    }

    /// A snapshot of the path of a connection.
    pub fn path(&self, id: SocketId) -> Option<PathReport> {
        match self.channels.get(&id).map(|channel| &channel.way) {
            Some(Way::Alone(inner) | Way::Shared { carrier: inner, .. }) => self.stack.path(*inner),
            Some(Way::Gone) => None,
            None => self.stack.path(id),
        }
    }

    /// Snapshots of all paths of a connection, or of the one that it shares.
    pub fn paths(&mut self, id: SocketId) -> Vec<PathReport> {
        match self.channels.get(&id).map(|channel| &channel.way) {
            Some(&(Way::Alone(inner) | Way::Shared { carrier: inner, .. })) => self.stack.paths(inner),
            Some(Way::Gone) => vec![],
            None => self.stack.paths(id),
        }
    }

    /// Whether a connection is a pair of streams in one that it shares.
    pub fn is_shared(&self, id: SocketId) -> bool {
        self.channels.get(&id).is_some_and(|channel| matches!(channel.way, Way::Shared { .. }))
    }

    /// The number of connections below, shared or not.
    pub fn len(&self) -> usize {
        self.stack.len()
    }

    /// Whether there are no connections.
    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }

    /// The counters since the start.
    pub fn tally(&self) -> StackTally {
        self.stack.tally()
    }

    /// A new channel in a connection.
    fn add(&mut self, carrier: SocketId, number: Option<u32>, back: Back) -> SocketId {
        let id = SocketId(self.next);
        self.next += 1;
        let channel = Channel {
            way: Way::Gone,
            ends: FourTuple::default(),
            closed: None,
            is_released: false,
            soft_error: None,
            is_closing: false,
            wants_room: false,
            deadline: Time::NEVER,
            acked: 0,
        };
        self.channels.insert(id, channel);
        self.place(id, carrier, number, back);
        id
    }

    /// Puts a channel into a connection, with this number or the next one.
    fn place(&mut self, id: SocketId, carrier: SocketId, number: Option<u32>, back: Back) {
        let Some(of) = self.carriers.get_mut(&carrier) else { return };
        let number = number.unwrap_or_else(|| of.free_number());
        of.by_number.insert(number, id);
        of.unopened.push_back(id);
        if let Back::Open(sid) = back {
            of.by_back.insert(sid, id);
        }
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.way = Way::Shared { carrier, number, out: Out::Unopened, back };
            channel.ends = self.stack.ends(carrier).unwrap_or_default();
        }
        self.rest(carrier);
        self.open_streams(carrier);
    }
}

impl Carrier {
    fn new(role: Role, stage: Stage, streams: u16) -> Self {
        Self {
            role,
            stage,
            streams,
            by_number: BTreeMap::new(),
            by_out: BTreeMap::new(),
            by_back: BTreeMap::new(),
            begun: BTreeMap::new(),
            unopened: VecDeque::new(),
            unsaid: VecDeque::new(),
            next: 0,
            idle_until: Time::NEVER,
        }
    }

    /// The peer to whom this end has opened it.
    fn peer(&self) -> Option<(u128, Address)> {
        match self.role {
            Role::Opener(peer) => Some(peer),
            Role::Acceptor(_) => None,
        }
    }

    /// Whether there are streams for one more channel.
    fn has_room(&self) -> bool {
        self.by_number.len() < usize::from(self.streams)
    }

    /// The number of the next channel. There are at most as many channels as streams, so a free one is near.
    fn free_number(&mut self) -> u32 {
        while self.by_number.keys().any(|number| gone(*number, 0) == gone(self.next, 0)) {
            self.next = self.next.wrapping_add(1);
        }
        let number = self.next;
        self.next = number.wrapping_add(1);
        number
    }
}

/// Channels have numbers from here on, connections below.
const FIRST: u64 = 1 << 63;

/// Bytes of the number at the begin of each stream.
const NUMBER: usize = 4;

/// The error codes of streams: nobody accepts the channel; an end has reset it.
const REFUSED: u16 = 1;
const ABORTED: u16 = 2;

/// The code with which the acceptor of a channel resets its stream: why, and the end of the number, in which no two channels of a connection are equal.
fn gone(number: u32, why: u16) -> u16 {
    (number as u16 & 0x3fff) << 2 | why
}

/// A connection that no channel uses is closed after so long.
const IDLE: Span = Span::from_secs(60);

/// A channel that the application has let go of is given up after so long without new acknowledgements.
const RELEASED_LIFE: Span = Span::from_secs(60);

/// A peer that had no streams is not asked again for so long, and so many such peers are known.
const PLAIN_LIFE: Span = Span::from_secs(600);
const PLAIN_MAX: usize = 1024;

#[cfg(test)]
mod tests;
