//! The connections of a host, without a clock, a device or a thread.
//!
//! ```text
//! packet ──> malformed, not ours                     counted
//!            ICMP about a segment in flight          ends a connection that is being opened, if its port is closed
//!            segment of a socket                     its connection
//!              a new SYN in TIME-WAIT                a new connection ([rfc-9293] sec. 3.6.1)
//!            SYN to a listener                       a connection; a cookie if the backlog is full
//!            ACK to a listener, with a cookie        a connection, established
//!            anything else                           a reset
//! ```
//!
//! Everything that a stranger can make grow has a limit: sockets, the backlog of a listener, answers that wait to be sent.

mod calls;
mod input;
mod listener;
mod mtu;
mod paths;
mod urgent;

use std::collections::{BTreeSet, HashMap, VecDeque};

use anabranch_proto::wire;
use anabranch_proto::{
    Address, CloseReason, Config, ConfigError, Connection, Event, Flags, FourTuple, Read, Segment, SeqNumber, Sid,
    State, Transmit,
};
use anabranch_units::{Span, Time};
use bytes::Bytes;

use self::listener::Listener;
use self::mtu::{Mtu, Mtus};
use self::urgent::Urgent;
use crate::key::StackKey;
use crate::packet::{self, IpFields, NoticeKind};
use crate::parts::Parts;
use crate::socket::{Settings, SocketError, SocketId, StackTally};

/// The connections of a host.
#[derive(Debug)]
pub(crate) struct Stack {
    settings: Settings,
    /// The addresses of the host, as the engine has them.
    addresses: Vec<u128>,
    key: StackKey,
    sockets: HashMap<SocketId, Socket>,
    by_tuple: HashMap<FourTuple, SocketId>,
    /// Connections that may have several paths, by our port and the peer's.
    by_ports: HashMap<(u16, u16), Vec<SocketId>>,
    listeners: HashMap<u16, Listener>,
    /// The next socket.
    next: u64,
    /// The identification of the next packet that may be fragmented, for each class of peers.
    packets: [u16; 256],
    mtus: Mtus,
    /// Packets of a segment that was too long for its path.
    cut: VecDeque<Vec<u8>>,
    /// Sockets that may have something to send, and what the first one has sent in its turn.
    busy: VecDeque<SocketId>,
    in_turn: usize,
    timers: BTreeSet<(Time, SocketId)>,
    /// Sockets that the application has let go of, the oldest first; some are gone.
    released: VecDeque<SocketId>,
    answers: VecDeque<Answer>,
    events: VecDeque<StackEvent>,
    tally: StackTally,
}

#[derive(Debug)]
struct Socket {
    connection: Connection<Bytes>,
    /// The ends of its handshake, and those of its other paths.
    tuple: FourTuple,
    others: Vec<FourTuple>,
    /// This end has begun it.
    is_opener: bool,
    /// The initial numbers of both ends; the peer's is known from its SYN.
    initial: SeqNumber,
    peer_initial: Option<SeqNumber>,
    /// The class of its peer, for the identification of packets.
    class: u8,
    /// The listener of a connection that is not accepted yet.
    listener: Option<u16>,
    is_busy: bool,
    timer: Time,
    /// Why it is over.
    closed: Option<CloseReason>,
    /// Why this end has given it up, if it was not the application.
    fate: Option<CloseReason>,
    /// The application has let go of it.
    is_released: bool,
    /// The peer has closed, and the application has read all.
    is_ended: bool,
    /// Streams in each direction, once that is agreed; none with plain TCP.
    streams: Option<u16>,
    /// What the application has chosen of its IP headers.
    fields: IpFields,
    /// Parts of segments, if they say their extent.
    parts: Option<Box<Parts>>,
    urgent: Urgent,
    /// What the network last said of a segment in flight, and what was acknowledged then.
    soft_error: Option<(NoticeKind, u64)>,
    /// What is known of its path.
    mtu: Mtu,
    /// What was acknowledged when losses last cast doubt on it.
    doubted: Option<u64>,
    /// When it is given up: a handshake that does not end, or a socket that was let go of and makes no progress.
    deadline: Time,
    /// What was acknowledged when that was set.
    acked: u64,
}

/// Something that happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StackEvent {
    /// One waits to be accepted at this port.
    Incoming(u16),
    /// The handshake is over; with streams or without.
    Established(SocketId, Option<u16>),
    /// There is something to read, which may be the end.
    Readable(SocketId, Sid),
    /// There is room again after a write that was not taken whole.
    Writable(SocketId, Sid),
    /// There is urgent data beyond what was known.
    Urgent(SocketId),
    /// The peer has all of a stream, or its reset.
    Finished(SocketId, Sid),
    /// The peer has refused the rest of a stream, for this reason.
    Stopped(SocketId, Sid, u16),
    /// The peer of a connection with streams begins none any more.
    PeerClosed(SocketId),
    /// The connection is over.
    Closed(SocketId, CloseReason),
}

#[derive(Debug)]
enum Answer {
    Segment(FourTuple, Segment<Bytes>),
    Pong(FourTuple, Bytes),
}

impl Stack {
    /// A stack; `seed` must come from the system's random source.
    ///
    /// # Errors
    /// If the settings of connections are invalid.
    pub(crate) fn new(mut settings: Settings, seed: [u8; 32]) -> Result<Self, ConfigError> {
        let connection = &mut settings.connection;
        (connection.stream_offers, connection.extents) = (1, true);
        settings.connection.check()?;
        let key = StackKey::new(seed);
        Ok(Self {
            addresses: settings.addresses.iter().copied().map(packet::number).collect(),
            settings,
            key,
            sockets: HashMap::new(),
            by_tuple: HashMap::new(),
            by_ports: HashMap::new(),
            listeners: HashMap::new(),
            next: 0,
            packets: [0; 256],
            mtus: Mtus::default(),
            cut: VecDeque::new(),
            busy: VecDeque::new(),
            in_turn: 0,
            timers: BTreeSet::new(),
            released: VecDeque::new(),
            answers: VecDeque::new(),
            events: VecDeque::new(),
            tally: StackTally::default(),
        })
    }

    /// Opens a connection from an address of the host; with port 0 from a free port. It asks for so many streams.
    ///
    /// # Errors
    /// If the address is not the host's, the peer's is none of a host, or the port or the number of sockets does not allow it.
    pub(crate) fn connect(
        &mut self,
        now: Time,
        mut local: Address,
        remote: Address,
        streams: u16,
    ) -> Result<SocketId, SocketError> {
        let is_own = |end: Address| self.addresses.contains(&end.address);
        if !is_own(local) || is_own(remote) || local.is_ipv4() != remote.is_ipv4() {
            return Err(SocketError::NotOurs);
        }
        if !is_host(remote) || remote.port == 0 {
            return Err(SocketError::NoHost);
        }
        if !self.has_place() {
            return Err(SocketError::TooMany);
        }
        if local.port == 0 {
            local.port = self.free_port(local, remote).ok_or(SocketError::PortInUse)?;
        }
        let tuple = FourTuple { local, remote };
        if self.by_tuple.contains_key(&tuple) {
            return Err(SocketError::PortInUse);
        }
        let initial = self.key.initial(now, tuple);
        let secret = self.key.secret(tuple, self.next, initial);
        let config = self.config(tuple, streams);
        let connection = Connection::connect(now, config, tuple, secret).map_err(SocketError::Config)?;
        Ok(self.insert(now, connection, tuple, initial, None, None))
    }

    /// The settings of a connection that may have streams. The size of segments is that of IPv4. Streams begin with parts of the receive buffer, so it
    /// does not begin small where there are some: with 256 KiB each would have the credit of 256 bytes, and wait for more.
    fn config(&self, tuple: FourTuple, streams: u16) -> Config {
        let config = self.settings.connection.clone();
        let longer = packet::header_len(tuple) - packet::IPV4_HEADER;
        let mss = config.mss.saturating_sub(longer as u16).max(Config::MSS_MIN);
        let most = if streams > 0 { config.receive_buffer_max } else { 0 };
        Config { mss, streams, receive_buffer: config.receive_buffer.max(most), ..config }
    }

    /// A port from which no connection to `remote` exists, the first from a random one on ([rfc-6056] sec. 3.3.2). A socket in TIME-WAIT that the
    /// application has let go of gives way if there is no other.
    fn free_port(&mut self, local: Address, remote: Address) -> Option<u16> {
        let first = self.key.port(FourTuple { local, remote }, self.next) % PORTS;
        let tuple = |number: u32| {
            let port = PORT_FIRST + ((first + number) % PORTS) as u16;
            FourTuple { local: Address { port, ..local }, remote }
        };
        if let Some(free) = (0..PORTS).map(tuple).find(|tuple| !self.by_tuple.contains_key(tuple)) {
            return Some(free.local.port);
        }
        let is_old = |socket: &Socket| socket.is_released && socket.connection.state() == State::TimeWait;
        let old = (0..PORTS).map(tuple).find_map(|tuple| {
            let id = *self.by_tuple.get(&tuple)?;
            self.sockets.get(&id).is_some_and(is_old).then_some((id, tuple.local.port))
        });
        let (id, port) = old?;
        self.remove(id);
        Some(port)
    }

    fn insert(
        &mut self,
        now: Time,
        connection: Connection<Bytes>,
        tuple: FourTuple,
        initial: SeqNumber,
        peer_initial: Option<SeqNumber>,
        listener: Option<u16>,
    ) -> SocketId {
        let id = SocketId(self.next);
        self.next += 1;
        let socket = Socket {
            connection,
            tuple,
            others: vec![],
            is_opener: listener.is_none(),
            initial,
            peer_initial,
            class: self.key.class(tuple),
            listener,
            is_busy: false,
            timer: Time::NEVER,
            closed: None,
            fate: None,
            is_released: false,
            is_ended: false,
            streams: None,
            fields: IpFields::default(),
            parts: None,
            urgent: Urgent::default(),
            soft_error: None,
            mtu: Mtu::NONE,
            doubted: None,
            deadline: if listener.is_some() { now + HALF_OPEN_LIFE } else { Time::NEVER },
            acked: 0,
        };
        if let Some(listener) = listener.and_then(|port| self.listeners.get_mut(&port)) {
            listener.half_open += 1;
        }
        let socket = self.sockets.entry(id).insert_entry(socket).into_mut();
        socket.set_mtu(now, self.mtus.of(tuple.remote.address));
        self.by_tuple.insert(tuple, id);
        self.touch(id);
        id
    }

    /// Whether there may be another socket: the oldest that the application has let go of gives way.
    fn has_place(&mut self) -> bool {
        while self.sockets.len() >= self.settings.sockets_max {
            match self.released.pop_front() {
                Some(id) => self.remove(id),
                None => return false,
            }
        }
        true
    }

    fn answer(&mut self, answer: Answer) {
        if self.answers.len() >= ANSWERS_MAX {
            self.tally.dropped += 1;
            return;
        }
        self.answers.push_back(answer);
    }

    /// The number of sockets.
    pub(crate) fn len(&self) -> usize {
        self.sockets.len()
    }

    /// Whether there are no sockets.
    pub(crate) fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    /// The counters since the stack was made.
    pub(crate) fn tally(&self) -> StackTally {
        self.tally
    }

    /// The next event.
    pub(crate) fn poll_event(&mut self) -> Option<StackEvent> {
        self.events.pop_front()
    }

    /// When to call [`Stack::handle_timeout`]; [`Time::NEVER`] if there is no deadline.
    pub(crate) fn poll_timeout(&self) -> Time {
        self.timers.first().map_or(Time::NEVER, |&(time, _)| time).min(self.mtus.deadline())
    }

    /// Handles the timeouts until now.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        self.expire_mtus(now);
        while let Some(&(time, id)) = self.timers.first().filter(|(time, _)| *time <= now) {
            self.timers.remove(&(time, id));
            if let Some(socket) = self.sockets.get_mut(&id) {
                socket.timer = Time::NEVER;
                if socket.deadline <= now && socket.listener.is_some() {
                    // The peer of a handshake may be an invention: it is told nothing.
                    self.remove(id);
                    continue;
                }
                if socket.deadline <= now && socket.connection.acked() == socket.acked {
                    socket.connection.abort();
                } else if socket.deadline <= now {
                    socket.deadline = Time::NEVER;
                }
                socket.connection.handle_timeout(now);
                self.touch(id);
            }
        }
    }

    /// Appends the next IP packet to `out`; false if there is none now.
    pub(crate) fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
        if let Some(packet) = self.cut.pop_front() {
            out.extend(packet);
            return true;
        }
        match self.answers.pop_front() {
            Some(Answer::Segment(tuple, segment)) => {
                packet::write_segment(tuple, IpFields::default(), None, None, &segment, None, out);
                return true;
            }
            Some(Answer::Pong(tuple, ping)) => {
                packet::write_pong(tuple, self.number(tuple), &ping, out);
                return true;
            }
            None => {}
        }
        while let Some(&id) = self.busy.front() {
            let Some(socket) = self.sockets.get_mut(&id) else {
                self.busy.pop_front();
                continue;
            };
            if let Some(Transmit { tuple, mut segment, ecn, .. }) = socket.connection.poll_transmit(now) {
                // The receiver need not wait for more: [rfc-9293] sec. 3.9.1.2 (MUST-61).
                if socket.connection.is_last_data(&segment) {
                    segment.header.flags = segment.header.flags | Flags::PSH;
                }
                let mtu = if tuple == socket.tuple { socket.mtu } else { self.mtus.of(tuple.remote.address) };
                // Without extents, nobody could put the parts of a stream's segment together.
                let must_stay_whole = socket.streams.is_some() && socket.parts.is_none();
                let may_fragment = mtu.may_fragment || must_stay_whole;
                let number = may_fragment.then(|| next_number(&mut self.packets, socket.class, tuple));
                let initial = socket.connection.extents().map(|(ours, _)| ours);
                let begin = out.len();
                packet::write_segment(tuple, socket.fields, ecn, number, &segment, initial, out);
                if !may_fragment && out.len() - begin > mtu.packet as usize {
                    self.cut.extend(packet::split(tuple, &out[begin..], mtu.packet as usize));
                    out.truncate(begin);
                    out.extend(self.cut.pop_front().unwrap_or_default());
                }
                if socket.has_urgent() {
                    let (urgent, initial, sent) = (socket.urgent, socket.initial, socket.connection.sent());
                    self.cut.iter_mut().for_each(|part| urgent.put(tuple, initial, sent, part));
                    urgent.put(tuple, initial, sent, &mut out[begin..]);
                }
                self.in_turn += 1;
                if self.in_turn >= TURN {
                    // The others' turn.
                    self.busy.rotate_left(1);
                    self.in_turn = 0;
                }
                return true;
            }
            self.busy.pop_front();
            self.in_turn = 0;
            socket.is_busy = false;
            self.settle(now, id);
        }
        false
    }

    fn number(&mut self, tuple: FourTuple) -> u16 {
        next_number(&mut self.packets, self.key.class(tuple), tuple)
    }

    /// A socket has had an input.
    fn touch(&mut self, id: SocketId) {
        if let Some(socket) = self.sockets.get_mut(&id)
            && !socket.is_busy
        {
            socket.is_busy = true;
            self.busy.push_back(id);
        }
    }

    /// A socket has sent what it could: takes its events and its deadline.
    fn settle(&mut self, now: Time, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let (mut has_readable, mut is_established) = (false, false);
        while let Some(event) = socket.connection.poll_event() {
            is_established |= matches!(event, Event::Established { .. });
            match event {
                Event::Established { streams } => match socket.listener {
                    Some(port) => {
                        socket.agree(streams);
                        socket.deadline = Time::NEVER;
                        if let Some(listener) = self.listeners.get_mut(&port) {
                            listener.half_open -= 1;
                            listener.ready.push_back(id);
                        }
                        self.events.push_back(StackEvent::Incoming(port));
                    }
                    None => {
                        socket.agree(streams);
                        self.events.push_back(StackEvent::Established(id, streams));
                    }
                },
                Event::PeerClosed if socket.streams.is_some() => self.events.push_back(StackEvent::PeerClosed(id)),
                Event::PeerClosed => self.events.push_back(StackEvent::Readable(id, Sid::PLAIN)),
                Event::Readable(sid) => {
                    has_readable = true;
                    self.events.push_back(StackEvent::Readable(id, sid));
                }
                Event::Writable(sid) => self.events.push_back(StackEvent::Writable(id, sid)),
                Event::Finished(sid) => self.events.push_back(StackEvent::Finished(id, sid)),
                Event::Stopped { sid, code } => self.events.push_back(StackEvent::Stopped(id, sid, code)),
                Event::Closed(reason) => {
                    let reason = socket.fate.unwrap_or(reason);
                    socket.closed.get_or_insert(reason);
                    self.events.push_back(StackEvent::Closed(id, reason));
                }
                // The engine has acted on what paths have done; the others are none of the TCP form.
                Event::DatagramsReadable
                | Event::PathValidated(_)
                | Event::PathFailed(_)
                | Event::PathRestored(_)
                | Event::PathGone(_)
                | Event::Stalled => {}
            }
        }
        if socket.connection.take_mtu_doubt() {
            self.on_doubt(now, id);
        }
        if is_established {
            self.open_paths(now, id);
            // Their challenges.
            self.touch(id);
        }
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        if socket.is_released && socket.deadline == Time::NEVER && socket.connection.state() != State::TimeWait {
            (socket.deadline, socket.acked) = (now + RELEASED_LIFE, socket.connection.acked());
        }
        let timer = match socket.connection.state() {
            State::Closed => Time::NEVER,
            State::TimeWait => socket.connection.poll_timeout(),
            _ => socket.connection.poll_timeout().min(socket.deadline),
        };
        if timer != socket.timer {
            self.timers.remove(&(socket.timer, id));
            socket.timer = timer;
            if timer != Time::NEVER {
                self.timers.insert((timer, id));
            }
        }
        let is_unread = socket.is_released && socket.streams.is_some() && has_readable;
        if socket.closed.is_some() {
            let (port, is_released) = (socket.listener, socket.is_released);
            self.unmap(id);
            if is_released {
                self.remove(id);
            } else if let Some(port) = port {
                // Nobody has accepted it. What it has received may still be read.
                let listener = self.listeners.get_mut(&port);
                if listener.is_none_or(|listener| !listener.ready.contains(&id)) {
                    self.remove(id);
                }
            }
        } else if is_unread {
            self.abort(id);
        }
    }

    /// A socket is gone for the network; the application may still read what it has received.
    fn forget(&mut self, id: SocketId) {
        self.unmap(id);
        if let Some(socket) = self.sockets.get_mut(&id) {
            if socket.connection.state() == State::TimeWait {
                socket.closed.get_or_insert(CloseReason::Finished);
                socket.connection.abort();
            }
            self.touch(id);
        }
    }

    fn remove(&mut self, id: SocketId) {
        self.unmap(id);
        let Some(socket) = self.sockets.remove(&id) else { return };
        self.timers.remove(&(socket.timer, id));
        if let Some(listener) = socket.listener.and_then(|port| self.listeners.get_mut(&port)) {
            let before = listener.ready.len();
            listener.ready.retain(|ready| *ready != id);
            listener.half_open -= usize::from(listener.ready.len() == before);
        }
    }
}

impl Socket {
    /// The handshake is over.
    fn agree(&mut self, streams: Option<u16>) {
        self.streams = streams;
        if self.connection.extents().is_none()
            && let Some(parts) = &mut self.parts
        {
            parts.become_plain();
        }
    }

    /// Where this encoded segment is made whole, and the number that is expected next. Until the handshake is over, only the flag says that the peer has
    /// seen the grant of streams.
    fn parts(&mut self, segment: &[u8]) -> Option<(SeqNumber, &mut Parts)> {
        let expected = self.expected()?;
        let may_be_plain = self.connection.state() == State::SynReceived && !wire::flags(segment).contains(Flags::MSE);
        self.parts.as_deref_mut().filter(|_| !may_be_plain).map(|parts| (expected, parts))
    }

    /// The number that is expected next, once the peer's first is known.
    fn expected(&self) -> Option<SeqNumber> {
        self.peer_initial.map(|initial| initial.plus(self.connection.received()))
    }

    /// Whether the segment begins a connection that succeeds this one in TIME-WAIT: a SYN with a later timestamp, or, where timestamps do not tell, one
    /// beyond all that the peer has sent ([rfc-6191] sec. 2, [rfc-9293] sec. 3.6.1). A peer that sends more than 250 kB/s overtakes the clock of its
    /// initial numbers, so the timestamp alone may tell.
    fn is_succeeded_by(&self, segment: &Segment<Bytes>, has_timestamps: bool) -> bool {
        let is_syn = segment.has(Flags::SYN) && !segment.has(Flags::ACK) && !segment.has(Flags::RST);
        if !is_syn || self.connection.state() != State::TimeWait {
            return false;
        }
        let later = segment.timestamps().filter(|_| has_timestamps).map(|stamps| SeqNumber(stamps.value));
        match (self.connection.recent_timestamp().map(SeqNumber), later) {
            (Some(last), Some(later)) if last != later => last.is_before(later),
            (None, Some(_)) => true,
            _ => self.expected().is_some_and(|last| last.is_before(segment.header.seq)),
        }
    }
}

/// The identification of the next IPv4 packet that may be fragmented to a host of this class ([rfc-6864]).
fn next_number(packets: &mut [u16; 256], class: u8, tuple: FourTuple) -> u16 {
    if !tuple.local.is_ipv4() {
        return 0;
    }
    let next = &mut packets[usize::from(class)];
    *next = next.wrapping_add(1);
    *next
}

/// Whether data, other than the end, waits to be read.
fn has_data(connection: &mut Connection<Bytes>) -> bool {
    matches!(connection.streams().read(Sid::PLAIN, 1), Ok(Read::Data(_)))
}

/// Whether the address can be that of one host.
fn is_host(end: Address) -> bool {
    let is_multicast = match end.is_ipv4() {
        true => end.address as u32 >> 28 >= 0xe || end.address as u32 == 0,
        false => end.address >> 120 == 0xff || end.address == 0,
    };
    !is_multicast
}

/// Segments that a socket sends before it is the others' turn: in a row they leave together, and no more than 65,535 bytes do (`offload.rs`).
const TURN: usize = 44;

/// [rfc-6335] sec. 6: dynamic ports.
const PORT_FIRST: u16 = 49_152;
const PORTS: u32 = 16_384;

/// A handshake that a stranger began may take so long.
const HALF_OPEN_LIFE: Span = Span::from_secs(30);

/// A socket that the application has let go of is given up after so long without new acknowledgements.
const RELEASED_LIFE: Span = Span::from_secs(60);

/// So many entries of released sockets may be those of sockets that are gone.
const RELEASED_LEAST: usize = 64;

/// Answers that may wait to be sent. More are dropped: their senders retransmit.
const ANSWERS_MAX: usize = 1024;

#[cfg(test)]
mod tests;
