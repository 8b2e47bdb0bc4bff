//! Endpoints in a room with a hostile network. All datagrams are sealed and carry real bytes. Both ends of each connection open, write, finish,
//! reset and stop streams, and add, remove and lose paths; an attacker replays, truncates, changes, forges and floods.
//!
//! A seed draws the hosts, the wires and all actions. Faults and attacks end after [`FAULTS_END`]; then the applications finish their
//! streams and close. The invariants:
//!
//! * the bytes read from a stream are those written to it, in their order, and no more;
//! * a stream that was finished, and neither reset nor stopped, is read to its end;
//! * only its applications end a connection, for any datagrams of others;
//! * a server has no more connections than its limit;
//! * a second run of the same seed is the same to the bit.
//!
//! `ANABRANCH_ROOMS=N` runs that many rooms.

mod draw;

use std::collections::{BTreeMap, VecDeque};

use anabranch_cc::{Settings, registry};
use anabranch_proto::endpoint::{Admission, Arrival, ConnectionId, Endpoint, EndpointConfig, ServerConfig, Shares};
use anabranch_proto::seal::{Cipher, CipherPreference, ListenerConfig, PublicKey, SealConfig, SecretKey, Timestamp};
use anabranch_proto::{Address, CloseReason, Config, EcnCodepoint, Event, FourTuple, Read, Sid};
use anabranch_units::{Span, Time};
use bytes::{Bytes, BytesMut};

use crate::draw::Draw;

/// The outcome of a room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// Bytes that were read.
    bytes: u64,
    /// Delivered datagrams, the attacker's included.
    datagrams: u64,
    /// Datagrams of the attacker.
    attacks: u64,
    paths_validated: u64,
    /// Abandoned and removed paths.
    paths_gone: u64,
    /// When the last connection was over.
    done: Time,
}

/// Runs the room of a seed and checks it.
fn check(seed: u64) -> Result<Outcome, String> {
    let mut room = Room::new(seed);
    while room.now < DURATION {
        room.step()?;
        if room.is_over() {
            return Ok(Outcome { done: room.now, ..room.outcome });
        }
    }
    Err(format!("the sealed room of the seed is not over at {}: {}", room.now, room.describe()))
}

struct Room {
    draw: Draw,
    now: Time,
    hosts: Vec<Host>,
    flying: BTreeMap<(Time, u64), Delivery>,
    order: u64,
    network: Network,
    /// Datagrams that the attacker has seen.
    seen: VecDeque<(FourTuple, Vec<u8>)>,
    attacks_per_step: f64,
    /// Ports of clients with an outage, and its end.
    cut: BTreeMap<u16, Time>,
    next_attack: Time,
    next_act: Time,
    outcome: Outcome,
}

/// The faults of the network until they end.
struct Network {
    delay: Span,
    jitter: Span,
    loss: f64,
    duplicates: f64,
}

struct Host {
    endpoint: Endpoint,
    name: PublicKey,
    /// The connections by their ids, with their applications.
    ends: BTreeMap<ConnectionId, End>,
}

struct Delivery {
    arrival: Arrival,
    bytes: Vec<u8>,
}

/// One end of a connection and its application.
#[derive(Default)]
struct End {
    /// The written streams by their present names.
    writing: BTreeMap<Sid, Story>,
    /// The read streams by their names, which may be reused.
    reading: BTreeMap<Sid, Reading>,
    is_established: bool,
    is_closing: bool,
    has_peer_closed: bool,
    closed: Option<CloseReason>,
}

/// The writer's record of a stream.
struct Story {
    tag: u64,
    written: u64,
    is_finished: bool,
}

/// The reader's record of a stream, whose first eight bytes are its tag.
#[derive(Default)]
struct Reading {
    head: Vec<u8>,
    bytes: u64,
}

impl Room {
    fn new(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let clients = 1 + draw.below(3) as usize;
        let network = Network {
            delay: Span::from_micros(draw.log(200.0, 150_000.0) as u64),
            jitter: Span::from_micros(draw.log(10.0, 30_000.0) as u64),
            loss: if draw.happens(0.5) { draw.log(0.001, 0.08) } else { 0.0 },
            duplicates: if draw.happens(0.5) { draw.log(0.001, 0.05) } else { 0.0 },
        };
        let mut hosts = vec![];
        for host in 0..=clients {
            let seal = SealConfig {
                ciphers: CipherPreference::new(&[Cipher::ALL[draw.below(Cipher::ALL.len() as u64) as usize]]),
                ..SealConfig::default()
            };
            let config = EndpointConfig {
                connections_max: CONNECTIONS_MAX,
                seal,
                server: (host == 0).then(|| ServerConfig {
                    listener: ListenerConfig { connection: seal, ..ListenerConfig::default() },
                    admission: Admission::Anyone,
                    shares: Shares::default(),
                    connection: connection(&mut draw),
                }),
            };
            let secret = SecretKey::new([host as u8 + 1; 32]);
            let name = secret.public();
            let mut bytes = [host as u8; 32];
            bytes[..8].copy_from_slice(&seed.to_be_bytes());
            hosts.push(Host {
                endpoint: Endpoint::new(Time::ZERO, secret, config, bytes),
                name,
                ends: BTreeMap::new(),
            });
        }
        let attacks_per_step = if draw.happens(0.8) { draw.log(0.1, 5.0) } else { 0.0 };
        let mut room = Self {
            draw,
            now: Time::ZERO,
            hosts,
            flying: BTreeMap::new(),
            order: 0,
            network,
            seen: VecDeque::new(),
            attacks_per_step,
            cut: BTreeMap::new(),
            next_attack: Time::ZERO,
            next_act: Time::ZERO,
            outcome: Outcome::default(),
        };
        for host in 1..=clients {
            for call in 0..1 + room.draw.below(2) {
                room.call(host, call);
            }
        }
        room
    }

    fn call(&mut self, host: usize, call: u64) {
        let config = connection(&mut self.draw);
        let (server, stamp) = (self.hosts[0].name, Timestamp::since_1970(Span::from_secs(1 + call)));
        let port = 1000 + call as u16;
        let tuple = FourTuple { local: Address { address: host as u128 + 1, port }, remote: address(0) };
        let Host { endpoint, ends, .. } = &mut self.hosts[host];
        let id =
            endpoint.connect(self.now, stamp, server, tuple, config).expect("there is room, and the settings work");
        ends.insert(id, End::default());
    }

    /// Handles the next event and its consequences.
    fn step(&mut self) -> Result<(), String> {
        let timers = self.hosts.iter().map(|host| host.endpoint.poll_timeout()).fold(Time::NEVER, Time::min);
        let arrival = self.flying.first_key_value().map_or(Time::NEVER, |((time, _), _)| *time);
        let attack = if self.now < FAULTS_END { self.next_attack } else { Time::NEVER };
        self.now = timers.min(arrival).min(attack).min(self.next_act).max(self.now);
        while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let Delivery { arrival, bytes } = entry.remove();
            self.deliver(&arrival, &bytes);
        }
        for host in &mut self.hosts {
            if host.endpoint.poll_timeout() <= self.now {
                host.endpoint.handle_timeout(self.now);
            }
        }
        if self.now >= self.next_act {
            self.next_act = self.now + ACT_EACH;
            self.act()?;
        }
        if self.now >= self.next_attack && self.now < FAULTS_END {
            self.next_attack = self.now + ACT_EACH;
            let attacks = self.attacks_per_step;
            for _ in 0..attacks as u64 + u64::from(self.draw.happens(attacks.fract())) {
                self.attack();
            }
        }
        self.drain()
    }

    fn deliver(&mut self, arrival: &Arrival, bytes: &[u8]) {
        self.outcome.datagrams += 1;
        let host = (arrival.tuple.local.address as usize).wrapping_sub(1);
        if let Some(host) = self.hosts.get_mut(host) {
            host.endpoint.handle_datagrams(self.now, arrival, BytesMut::from(bytes));
        }
    }

    /// Sends all pending datagrams, and takes all pending events.
    fn drain(&mut self) -> Result<(), String> {
        for host in 0..self.hosts.len() {
            let mut out = vec![];
            while let Some(batch) = self.hosts[host].endpoint.poll_transmit(self.now, 1 + host * 7, &mut out) {
                for datagram in out.chunks(batch.size) {
                    self.send(batch.tuple.reversed(), batch.ecn, datagram);
                }
                out.clear();
            }
            while let Some(told) = self.hosts[host].endpoint.poll_event() {
                self.hear(host, told.connection, told.event)?;
            }
            let count = self.hosts[host].endpoint.len();
            if count > CONNECTIONS_MAX {
                return Err(format!("host {host} has {count} connections"));
            }
        }
        Ok(())
    }

    fn send(&mut self, tuple: FourTuple, ecn: Option<EcnCodepoint>, bytes: &[u8]) {
        if self.seen.len() == SEEN_MAX {
            self.seen.pop_front();
        }
        self.seen.push_back((tuple, bytes.to_vec()));
        let is_faulty = self.now < FAULTS_END;
        if is_faulty && self.draw.happens(self.network.loss) {
            return;
        }
        let is_cut = |end: Address| self.cut.get(&end.port).is_some_and(|until| self.now < *until);
        if is_cut(tuple.local) || is_cut(tuple.remote) {
            return;
        }
        let copies = 1 + u64::from(is_faulty && self.draw.happens(self.network.duplicates));
        for _ in 0..copies {
            let jitter = Span::from_ticks(self.draw.below(self.network.jitter.ticks()));
            let arrival = self.now + self.network.delay + jitter;
            self.order += 1;
            let came = Arrival { at: arrival, tuple, size: bytes.len(), ecn };
            self.flying.insert((arrival, self.order), Delivery { arrival: came, bytes: bytes.to_vec() });
        }
    }

    fn hear(&mut self, host: usize, id: ConnectionId, event: Event) -> Result<(), String> {
        let end = self.hosts[host].ends.entry(id).or_default();
        match event {
            Event::Established { .. } => end.is_established = true,
            Event::Finished(sid) => {
                end.writing.remove(&sid);
            }
            Event::Stopped { sid, .. } => {
                end.writing.remove(&sid);
            }
            Event::PeerClosed => end.has_peer_closed = true,
            Event::Closed(reason) => {
                end.closed = Some(reason);
                if reason != CloseReason::Finished {
                    return Err(format!("at {} a connection of host {host} ended: {reason:?}", self.now));
                }
            }
            Event::PathValidated(_) => self.outcome.paths_validated += 1,
            Event::PathGone(_) => self.outcome.paths_gone += 1,
            Event::Readable(_)
            | Event::DatagramsReadable
            | Event::Writable(_)
            | Event::PathFailed(_)
            | Event::PathRestored(_)
            | Event::Stalled => {}
        }
        Ok(())
    }

    /// Lets every application act once.
    fn act(&mut self) -> Result<(), String> {
        let is_late = self.now >= FAULTS_END;
        for host in 0..self.hosts.len() {
            let ids: Vec<ConnectionId> = self.hosts[host].ends.keys().copied().collect();
            for id in ids {
                self.read(host, id, is_late)?;
                self.write(host, id, is_late);
                if !is_late {
                    self.change_paths(host, id);
                }
            }
        }
        Ok(())
    }

    /// Sometimes a client adds a path, either end removes one, or one has an outage. The port of a client identifies its path.
    fn change_paths(&mut self, host: usize, id: ConnectionId) {
        let Self { hosts, draw, cut, now, .. } = self;
        let Host { endpoint, ends, .. } = &mut hosts[host];
        let (Some(connection), Some(end)) = (endpoint.connection(id), ends.get(&id)) else { return };
        if !end.is_established || end.closed.is_some() {
            return;
        }
        if host > 0 && draw.happens(0.05) {
            // Some four-tuples are used again, and some are used by another connection, too.
            let local = Address { address: host as u128 + 1, port: 1000 + draw.below(6) as u16 };
            // It may fail, as the path exists or there are too many.
            _ = connection.paths().add(*now, FourTuple { local, remote: address(0) });
        }
        if draw.happens(0.03) {
            let paths: Vec<_> = connection.path_reports().map(|(path, _)| path).collect();
            let path = paths[draw.below(paths.len() as u64) as usize];
            // The last path cannot be removed.
            _ = connection.paths().remove(*now, path);
        }
        if draw.happens(0.01) {
            let port = 1000 + draw.below(6) as u16;
            cut.insert(port, (*now + Span::from_millis(draw.log(10.0, 3000.0) as u64)).min(FAULTS_END));
        }
    }

    fn write(&mut self, host: usize, id: ConnectionId, is_late: bool) {
        let Self { hosts, draw, .. } = self;
        let Host { endpoint, ends, .. } = &mut hosts[host];
        let (Some(connection), Some(end)) = (endpoint.connection(id), ends.get_mut(&id)) else { return };
        if !end.is_established || end.is_closing || end.closed.is_some() {
            return;
        }
        if !is_late
            && draw.happens(0.3)
            && let Ok(sid) = connection.streams().open()
        {
            let tag = (host as u64) << 32 | draw.below(1 << 32);
            end.writing.insert(sid, Story { tag, written: 0, is_finished: false });
        }
        let sids: Vec<Sid> = end.writing.keys().copied().collect();
        for sid in sids {
            let Some(story) = end.writing.get_mut(&sid) else { continue };
            let mut streams = connection.streams();
            if story.is_finished {
                if !is_late && draw.happens(0.01) && streams.reset(sid, 5).is_ok() {
                    end.writing.remove(&sid);
                }
                continue;
            }
            if draw.happens(0.5) {
                let len = draw.log(1.0, 20_000.0) as u64;
                let mut payload = Bytes::from(content(story.tag, story.written, len));
                story.written += u64::from(streams.write(sid, &mut payload).unwrap_or(0));
            }
            // A stream has at least a tag.
            let has_head = story.written >= HEAD;
            if (is_late || draw.happens(0.1)) && has_head {
                story.is_finished = streams.finish(sid).is_ok();
            } else if !is_late && draw.happens(0.01) && streams.reset(sid, 3).is_ok() {
                end.writing.remove(&sid);
            }
        }
        if is_late && end.writing.values().all(|story| story.is_finished) {
            connection.close();
            end.is_closing = true;
        }
    }

    fn read(&mut self, host: usize, id: ConnectionId, is_late: bool) -> Result<(), String> {
        let Self { hosts, draw, outcome, .. } = self;
        let Host { endpoint, ends, .. } = &mut hosts[host];
        let (Some(connection), Some(end)) = (endpoint.connection(id), ends.get_mut(&id)) else { return Ok(()) };
        if !end.is_established {
            return Ok(());
        }
        for sid in (1..=STREAMS).map(Sid::new) {
            if !is_late && draw.happens(0.5) {
                continue;
            }
            let mut streams = connection.streams();
            if !is_late && draw.happens(0.002) && streams.stop(sid, 9).is_ok() {
                end.reading.remove(&sid);
            }
            let most = if is_late { u32::MAX } else { draw.log(1.0, 100_000.0) as u32 };
            loop {
                match streams.read(sid, most) {
                    Ok(Read::Data(data)) => {
                        outcome.bytes += data.len() as u64;
                        end.reading
                            .entry(sid)
                            .or_default()
                            .take(&data)
                            .map_err(|error| format!("host {host}: {error}"))?;
                    }
                    Ok(Read::End | Read::Reset(_)) => {
                        end.reading.remove(&sid);
                    }
                    Ok(Read::Nothing) | Err(_) => break,
                }
            }
        }
        Ok(())
    }

    /// Lets the attacker act once. It sees all datagrams and has no keys.
    fn attack(&mut self) {
        self.outcome.attacks += 1;
        let count = self.seen.len() as u64;
        if count == 0 {
            return;
        }
        let (tuple, mut bytes) = self.seen[self.draw.below(count) as usize].clone();
        let mut tuple = tuple;
        if self.draw.happens(0.3) {
            // From the attacker's own address, or a forged one.
            tuple.remote =
                Address { address: u128::from(200 + self.draw.below(3)), port: self.draw.below(60_000) as u16 };
        }
        let len = bytes.len() as u64;
        match self.draw.below(6) {
            // Unchanged.
            0 => {}
            1 => bytes.truncate(self.draw.below(len) as usize),
            2 => {
                let at = self.draw.below(len) as usize;
                bytes[at] ^= 1 << self.draw.below(8);
            }
            3 => bytes.extend((0..1 + self.draw.below(40)).map(|byte| byte as u8)),
            // The header of a datagram with random bytes behind it.
            4 => {
                let mut guess = vec![0; 16 + self.draw.below(1400) as usize];
                guess.iter_mut().for_each(|byte| *byte = self.draw.below(256) as u8);
                let head = bytes.len().min(16).min(guess.len());
                guess[..head].copy_from_slice(&bytes[..head]);
                guess[head.saturating_sub(1)] ^= self.draw.below(256) as u8;
                bytes = guess;
            }
            // The bytes of a datagram, rotated.
            _ => bytes.rotate_left(self.draw.below(len) as usize),
        }
        if !bytes.is_empty() {
            let size = if self.draw.happens(0.1) { 1 + self.draw.below(len) as usize } else { bytes.len() };
            // An attacker that can forge addresses can also mark packets.
            self.deliver(&Arrival { at: self.now, tuple, size, ecn: Some(EcnCodepoint::Ce) }, &bytes);
        }
    }

    fn is_over(&self) -> bool {
        self.now > FAULTS_END && self.hosts.iter().all(|host| host.ends.values().all(|end| end.closed.is_some()))
    }

    fn describe(&self) -> String {
        let ends = self.hosts.iter().enumerate().flat_map(|(host, of)| of.ends.values().map(move |end| (host, end)));
        let open = ends.filter(|(_, end)| end.closed.is_none());
        let open: Vec<String> = open
            .map(|(host, end)| {
                let (writing, closing) = (end.writing.len(), end.is_closing);
                format!(
                    "host {host}: {writing} streams are written, closing: {closing}, the peer has: {}",
                    end.has_peer_closed
                )
            })
            .collect();
        open.join("; ")
    }
}

impl Reading {
    /// Checks the next bytes of a stream: its tag, then the content that the tag determines.
    fn take(&mut self, data: &[u8]) -> Result<(), String> {
        for &byte in data {
            if self.head.len() < HEAD as usize {
                self.head.push(byte);
            } else {
                let tag = u64::from_be_bytes(self.head[..].try_into().expect("a head has eight bytes"));
                let expected = byte_of(tag, self.bytes);
                if byte != expected {
                    return Err(format!("byte {} of stream {tag:x} is {byte} and not {expected}", self.bytes));
                }
            }
            self.bytes += 1;
        }
        Ok(())
    }
}

/// Bytes `from..from + len` of a stream.
fn content(tag: u64, from: u64, len: u64) -> Vec<u8> {
    (from..from + len).map(|at| byte_of(tag, at)).collect()
}

fn byte_of(tag: u64, at: u64) -> u8 {
    match tag.to_be_bytes().get(at as usize) {
        Some(byte) => *byte,
        None => (tag ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8,
    }
}

fn address(host: usize) -> Address {
    Address { address: host as u128 + 1, port: 7 }
}

/// A configuration with a random law and random buffers.
fn connection(draw: &mut Draw) -> Config {
    let rows = registry::rows();
    let law = Settings::default_for(&rows[draw.below(rows.len() as u64) as usize]);
    Config {
        streams: STREAMS,
        mss: MSS,
        receive_buffer: draw.log(8_000.0, 4_000_000.0) as u64,
        send_buffer: draw.log(2_000.0, 1_000_000.0) as u64,
        timestamps: draw.happens(0.3),
        paths_max: 1 + draw.below(4) as u8,
        ..Config::new(law)
    }
}

/// The streams of each connection in each direction.
const STREAMS: u16 = 6;

/// With its headers, a segment fills a datagram of 1200 bytes.
const MSS: u16 = 1100;

/// The bytes of a stream's tag.
const HEAD: u64 = 8;

/// The limit of connections: the hosts need fewer, so that the attacker finds room for some.
const CONNECTIONS_MAX: usize = 20;

/// The time between actions of applications and the attacker.
const ACT_EACH: Span = Span::from_millis(50);

/// The number of datagrams that the attacker remembers.
const SEEN_MAX: usize = 2000;

/// From here on nothing is lost or forged, and no stream is opened.
const FAULTS_END: Time = Time::ZERO.saturating_add(Span::from_secs(8));

/// The limit of a run: losses back the retransmission timer off, and the end that closes first remembers the connection for a minute.
const DURATION: Time = Time::ZERO.saturating_add(Span::from_secs(400));

/// The rooms of a test.
const ROOMS: u64 = 60;

#[test]
fn rooms_keep_invariants() {
    let rooms = std::env::var("ANABRANCH_ROOMS").ok().map_or(ROOMS, |count| count.parse().expect("a number of rooms"));
    let mut total = Outcome::default();
    for seed in 0..rooms {
        let first = check(seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(check(seed), Ok(first), "seed {seed}");
        total.bytes += first.bytes;
        total.attacks += first.attacks;
        total.paths_validated += first.paths_validated;
        total.paths_gone += first.paths_gone;
    }
    assert!(total.bytes > 1_000_000 && total.attacks > 1000, "{total:?}");
    assert!(total.paths_validated > 100 && total.paths_gone > 100, "{total:?}");
}

/// A wrong byte is detected.
#[test]
fn content_wrong_byte_is_refused() {
    let mut bytes = content(7, 0, 100);
    assert_eq!(Reading::default().take(&bytes), Ok(()));
    bytes[50] ^= 1;
    assert!(Reading::default().take(&bytes).is_err());
}
