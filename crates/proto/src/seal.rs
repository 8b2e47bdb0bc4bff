//! Sealed datagrams: segments that nobody else can read, forge or play again. `docs/wire.md` specifies them to the bit.
//!
//! In the manner of WireGuard: two messages of Noise IK make the keys of a *session*, and they ride on the transport's own SYN and
//! SYN-ACK. Each datagram after them has the receiver's index, the number of a path and a 64-bit counter of that path: both are the
//! nonce, and show replays. Sessions are replaced while data flows.
//!
//! ```text
//! initiator                                                              responder
//! Seal::initiator ── initiation: SYN ──────────────────────────> Listener::handle ──> Seal
//!                 <────────────────────────── cookie, under load ──┘
//!                 ── the same, with mac2 ──────────────────────────>
//!                 <───────────────────────────────── response: SYN-ACK ──
//!                 ── data ─────────────────────────────────────────────> the keys are confirmed, the address is validated
//! ```
//!
//! A [`Seal`] is one connection's; a [`Listener`] stands before all connections of a socket. Neither reads a clock or makes
//! random numbers: time is an argument, and each is given 32 secret bytes. What is wrong with a datagram is a [`Refusal`], counted and
//! told to nobody else.
//!
//! Differs from WireGuard in:
//! * segments ride on the handshake, which is sent again bit by bit when they are;
//! * who calls first renews the keys, always; both messages of that travel within the session that they replace;
//! * keys that cannot be replaced because nothing gets through stay: a long silence ends no connection;
//! * both ends name the ciphers of data that they have, so that AES is used where both machines are fast at it;
//! * each path has counters and a replay window of its own, so that what takes a slower one is not too old;
//! * a listener remembers several timestamps of a key, because a key may have many connections;
//! * cookies are sent in the clear, authenticated.

mod allowance;
mod buckets;
mod cipher;
mod config;
mod cookie;
mod datagram;
mod handshake;
mod hello;
mod initiations;
mod key;
mod listener;
mod noise;
mod plain;
mod reassembly;
mod renewal;
mod replay;
mod session;
mod tally;

use anabranch_units::Time;
use bytes::{Buf, Bytes, BytesMut};

use self::allowance::Allowances;
pub use self::buckets::Pace;
pub use self::cipher::{Cipher, CipherPreference};
pub use self::config::{Limits, Padding, SealConfig};
use self::datagram::{DataHeader, Datagram, PATH_NUMBERS, word};
use self::handshake::{Initiating, Responding};
pub use self::hello::Timestamp;
pub use self::key::{PublicKey, SecretKey};
pub use self::listener::{Answer, Listener, ListenerConfig};
pub(crate) use self::noise::Entropy;
use self::noise::TAG;
use self::plain::Layout;
use self::reassembly::Reassembly;
use self::renewal::{Age, Renewal};
use self::session::{Session, sealed_len};
pub use self::tally::{Refusal, SealError, SealTally};
use crate::path::{FourTuple, PathId};
use crate::segment::{HEADERS, Segment, TCP_HEADER};
use crate::wire::{self, Checksum, Ports};

/// The seal of one connection.
///
/// After each call the driver sends what [`Seal::poll_transmit`] has until there is nothing more, then reads [`Seal::poll_timeout`].
#[derive(Debug)]
pub struct Seal {
    secret: SecretKey,
    remote: PublicKey,
    config: SealConfig,
    entropy: Entropy,
    /// How many datagrams have data before the next one that has none.
    until_grease: u64,
    /// The upper 24 bits of all indices, by which the driver finds this connection; the lower eight count its sessions.
    number: u32,
    generation: u8,
    state: State,
    role: Role,
    /// The keys with which we seal.
    current: Option<Session>,
    /// The keys before them, until nothing can come of them any more.
    previous: Option<Previous>,
    renewal: Renewal,
    /// When keys were made for the peer last.
    answered: Option<Time>,
    addresses: Allowances,
    /// Where the newest authentic datagram from a validated address came from, or the first one went to.
    path: FourTuple,
    /// Segments that come in fragments, and how many went in them.
    reassembly: Reassembly,
    fragmented: u32,
    tally: SealTally,
}

/// How a segment leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// From where and to where.
    pub tuple: FourTuple,
    /// On which of the connection's paths. Each has its own counters.
    pub path: PathId,
    /// The longest datagram that the path takes: bytes of UDP's payload. A segment that takes more goes in several.
    pub datagram_max: u32,
    /// The datagram is made so long, if it is shorter, the path takes it, and its address may be sent as much.
    pub pad_to: u32,
}

/// The datagrams that a segment became, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Bytes of each but the last one, which may have fewer.
    pub size: usize,
    /// How many there are.
    pub count: usize,
}

/// Who gets a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// [`Listener::handle`].
    Listener,
    /// [`Seal::open`] of the connection with this number.
    Connection(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Initiator,
    Responder,
}

/// Who has shown what.
#[derive(Debug)]
enum State {
    /// Nothing has been sent. The initiation will have this timestamp.
    Idle(Timestamp),
    /// Expects a response.
    Initiating(Box<Initiating>),
    /// Expects the connection's answer, and then a datagram with data.
    Responding(Box<Responding>),
    /// Both have the keys. The first response and what was in it, as long as it may come again.
    Established(Option<Box<([u8; TAG], Segment<Bytes>)>>),
}

#[derive(Debug)]
struct Previous {
    session: Session,
    /// When they go; never before the peer has shown that it has the new ones.
    until: Time,
}

impl Outgoing {
    /// On the path on which the connection is opened, in datagrams that every path takes.
    pub const fn new(tuple: FourTuple) -> Self {
        Self { tuple, path: PathId::FIRST, datagram_max: Seal::DATAGRAM_FIRST, pad_to: 0 }
    }
}

impl Seal {
    /// What a sealed datagram has around the TCP form of its segment.
    pub const OVERHEAD: u32 = sealed_len(0) as u32;

    /// Bytes of a datagram that any path is taken to carry until more is known: IPv6 carries 1232, and tunnels take of that.
    pub const DATAGRAM_FIRST: u32 = 1200;

    /// The seal of an end that opens a connection to `remote`. Datagrams for it come to [`Recipient::Connection`] of `number`, of
    /// which the lower 24 bits count; it must be in use once only. No two connections of a key have the same `timestamp`. `seed` is
    /// secret and used nowhere else.
    pub fn initiator(
        secret: SecretKey,
        remote: PublicKey,
        number: u32,
        config: SealConfig,
        timestamp: Timestamp,
        seed: [u8; 32],
    ) -> Self {
        Self::new(secret, remote, number, config, Entropy::new(seed), Role::Initiator, State::Idle(timestamp))
    }

    fn new(
        secret: SecretKey,
        remote: PublicKey,
        number: u32,
        config: SealConfig,
        entropy: Entropy,
        role: Role,
        state: State,
    ) -> Self {
        Self {
            secret,
            remote,
            config,
            entropy,
            until_grease: GREASE_FIRST,
            number: number & NUMBER_MAX,
            generation: 0,
            state,
            role,
            current: None,
            previous: None,
            renewal: Renewal::None,
            answered: None,
            addresses: Allowances::default(),
            path: FourTuple::default(),
            reassembly: Reassembly::default(),
            fragmented: 0,
            tally: SealTally::default(),
        }
    }

    /// Who gets a datagram; `None` if it is none of ours.
    pub fn recipient(datagram: &[u8]) -> Option<Recipient> {
        let index = match Datagram::parse(datagram)? {
            Datagram::Initiation(_) => return Some(Recipient::Listener),
            Datagram::Response { receiver, .. }
            | Datagram::Cookie { receiver, .. }
            | Datagram::Data(DataHeader { receiver, .. }) => receiver,
        };
        Some(Recipient::Connection(index >> 8))
    }

    /// The other end's name.
    pub fn remote(&self) -> PublicKey {
        self.remote
    }

    /// Whether both ends have shown that they have the keys.
    pub fn is_established(&self) -> bool {
        matches!(self.state, State::Established(_))
    }

    /// Whether a segment can be sealed now. Without keys that is the handshake's; and keys seal no more than they may.
    pub fn may_send(&self) -> bool {
        match &self.state {
            State::Idle(_) | State::Initiating(_) | State::Responding(_) => true,
            State::Established(_) => self.current.as_ref().is_some_and(|session| session.room(&self.config.limits) > 0),
        }
    }

    /// What encrypts data, once it is agreed on.
    pub fn cipher(&self) -> Option<Cipher> {
        self.current.as_ref().map(|session| session.cipher)
    }

    /// What happened so far.
    pub fn tally(&self) -> SealTally {
        self.tally
    }

    /// The address at the other end of this path gets what is sent there: the transport's challenge was answered, or the
    /// application named it. The first path needs no such word.
    pub fn validate(&mut self, path: FourTuple) {
        self.addresses.validate(path.remote);
    }

    /// Appends to `out` the datagrams with this segment in them, in most cases one. The first one carries the handshake, and so must be a
    /// SYN of an initiator, or the answer to it. Nothing is allocated if `out` has room.
    ///
    /// # Errors
    /// If it cannot be sent now; it is lost, as if the network had lost it, and `out` is as it was.
    pub fn seal(
        &mut self,
        now: Time,
        outgoing: &Outgoing,
        segment: &Segment<Bytes>,
        out: &mut Vec<u8>,
    ) -> Result<Sealed, SealError> {
        let start = out.len();
        let sealed = match &self.state {
            State::Established(_) => self.seal_data(outgoing, segment, out)?,
            State::Idle(_) | State::Initiating(_) => {
                self.seal_initiation(now, outgoing, segment, out)?;
                Sealed { size: out.len() - start, count: 1 }
            }
            State::Responding(_) => {
                self.seal_response(now, outgoing, segment, out)?;
                Sealed { size: out.len() - start, count: 1 }
            }
        };
        self.addresses.on_sent(outgoing.tuple.remote, out.len() - start);
        self.tally.sealed += sealed.count as u64;
        self.renew(now);
        Ok(sealed)
    }

    /// The datagrams in which a segment goes that has so many bytes in its TCP form, and the bytes of all of them; without a padding of the
    /// seal's own. For who models a network, and seals nothing.
    ///
    /// # Errors
    /// If it goes in none.
    pub fn layout(len: u32, datagram_max: u32, pad_to: u32) -> Result<(Sealed, u32), SealError> {
        let len = len as usize;
        let (bytes, count) = Layout::of(len, datagram_max as usize, pad_to as usize)?.size(len);
        let size = if count > 1 { datagram_max as usize } else { bytes };
        Ok((Sealed { size, count }, bytes as u32))
    }

    /// What a datagram that came on this path holds: a segment, or nothing for anybody but the seal. It is opened in place, and the
    /// segment's data keeps its memory.
    ///
    /// # Errors
    /// If it is to be ignored. The tally has counted why.
    pub fn open(&mut self, now: Time, path: FourTuple, datagram: BytesMut) -> Result<Option<Segment<Bytes>>, Refusal> {
        let opened = match Datagram::parse(&datagram) {
            None => Err(Refusal::Malformed),
            Some(Datagram::Initiation(initiation)) => self.open_again(path, &initiation, datagram.len()),
            Some(Datagram::Response { receiver, noise }) => self.open_response(now, receiver, noise),
            Some(Datagram::Cookie { receiver, cookie, mac }) => self.open_cookie(now, receiver, cookie, &mac),
            Some(Datagram::Data(header)) => {
                let opened = self.open_data(now, path, header, datagram);
                self.renew(now);
                opened
            }
        };
        match opened {
            Ok(_) => self.tally.opened += 1,
            Err(refusal) => self.tally.count(refusal),
        }
        opened
    }

    /// Appends to `out` a datagram that the seal itself has to send, and says on which path.
    pub fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<FourTuple> {
        let start = out.len();
        if let State::Initiating(initiating) = &mut self.state {
            if !std::mem::take(&mut initiating.is_due) {
                return None;
            }
            initiating.write(now, out);
        } else if !self.seal_own(now, out) {
            out.truncate(start);
            return None;
        }
        self.addresses.on_sent(self.path.remote, out.len() - start);
        self.tally.sealed += 1;
        Some(self.path)
    }

    /// A deadline of [`Seal::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.previous.as_ref().is_some_and(|previous| previous.until <= now) {
            self.previous = None;
        }
        self.reassembly.expire(now);
    }

    /// When to call [`Seal::handle_timeout`] and then [`Seal::poll_transmit`]; [`Time::NEVER`] if not at all.
    pub fn poll_timeout(&self) -> Time {
        let previous = self.previous.as_ref().map_or(Time::NEVER, |previous| previous.until);
        let renewal = match self.renewal {
            Renewal::Asking { at, .. } => at,
            Renewal::None | Renewal::Answered { .. } => Time::NEVER,
        };
        previous.min(renewal).min(self.reassembly.deadline())
    }

    /// Lays the segment out in as many datagrams as it takes, and seals them where they are.
    fn seal_data(
        &mut self,
        outgoing: &Outgoing,
        segment: &Segment<Bytes>,
        out: &mut Vec<u8>,
    ) -> Result<Sealed, SealError> {
        let len = (segment.wire_size() - (HEADERS - TCP_HEADER)) as usize;
        let least = self.config.padding.least(sealed_len(len), plain::PADDED_HEADER);
        let datagram_max = outgoing.datagram_max as usize;
        let least = least.max(outgoing.pad_to as usize).min(self.addresses.room(outgoing.tuple.remote));
        let layout = Layout::of(len, datagram_max, least)?;
        let (bytes, count) = layout.size(len);
        if !self.addresses.allows(outgoing.tuple.remote, bytes) {
            return Err(SealError::NotAllowed);
        }
        let session = self.current.as_mut().ok_or(SealError::NotReady)?;
        if session.room(&self.config.limits) < count as u64 {
            return Err(SealError::Exhausted);
        }
        let start = out.len();
        out.reserve(bytes);
        out.resize(start + layout.segment_at(), 0);
        wire::encode(segment, Ports::default(), Checksum::None, out);
        debug_assert_eq!(out.len() - start, layout.segment_at() + len, "a segment knows how long it is");
        out.resize(start + bytes, 0);
        let space = &mut out[start..];
        layout.fill(len, self.fragmented, space);
        let size = if count > 1 { datagram_max } else { bytes };
        space.chunks_mut(size).for_each(|datagram| session.seal(outgoing.path.number(), datagram));
        self.fragmented = self.fragmented.wrapping_add(u32::from(count > 1));
        self.tally.fragmented += u64::from(count > 1);
        self.until_grease = self.until_grease.saturating_sub(count as u64);
        Ok(Sealed { size, count })
    }

    /// A message of rekeying, or what nobody looks at.
    fn seal_own(&mut self, now: Time, out: &mut Vec<u8>) -> bool {
        let limits = &self.config.limits;
        let start = out.len();
        out.resize(start + DataHeader::LEN, 0);
        match &mut self.renewal {
            Renewal::Asking { message, at, wait, .. } if *at <= now => {
                *at = now.saturating_add(*wait);
                *wait = wait.saturating_mul(2).min(limits.rekey_retry_max);
                out.extend(plain::REQUEST.to_be_bytes());
                out.extend_from_slice(message);
            }
            Renewal::Answered { answer, is_due, .. } if *is_due => {
                *is_due = false;
                out.extend(plain::ANSWER.to_be_bytes());
                out.extend_from_slice(answer);
            }
            Renewal::None | Renewal::Asking { .. } | Renewal::Answered { .. } => {
                let Some(session) = self.current.as_ref().filter(|_| self.until_grease == 0) else { return false };
                let [a, b, c, d, e, f, rest @ ..] = session.grease;
                self.until_grease = GREASE_LEAST + u64::from(u16::from_be_bytes([a, b]));
                out.extend([0x0a, c & 0xf0 | 0x0a, d & 0xf0 | 0x0a, e & 0xf0 | 0x0a]);
                out.extend_from_slice(&rest[..usize::from(f) % rest.len()]);
            }
        }
        // Behind what has a length of its own nobody looks.
        let least = self.config.padding.least(out.len() - start + TAG, 0).min(Self::DATAGRAM_FIRST as usize);
        let len = (out.len() - start + TAG).max(least);
        out.resize(start + len, 0);
        let Some(session) = &mut self.current else { return false };
        if !self.addresses.allows(self.path.remote, len) || session.room(&self.config.limits) == 0 {
            return false;
        }
        session.seal(OWN_PATH, &mut out[start..]);
        true
    }

    fn open_data(
        &mut self,
        now: Time,
        path: FourTuple,
        header: DataHeader,
        mut datagram: BytesMut,
    ) -> Result<Option<Segment<Bytes>>, Refusal> {
        let age = self.age(header.receiver).ok_or(Refusal::UnknownSession)?;
        let session = match (age, &mut self.current, &mut self.previous, &mut self.renewal) {
            (Age::Current, Some(session), ..) => session,
            (Age::Previous, _, Some(previous), _) => &mut previous.session,
            (Age::Next, _, _, Renewal::Answered { session, .. }) => session,
            _ => return Err(Refusal::UnknownSession),
        };
        let is_newest = session.open(&self.config.limits, &header, &mut datagram)?;
        self.addresses.on_received(path.remote, datagram.len());
        match age {
            Age::Next => self.promote(now),
            Age::Current => self.confirm(now, path),
            Age::Previous => {}
        }
        // Whoever holds a datagram back and sends it from elsewhere does not get ours.
        if is_newest && age != Age::Previous && self.addresses.is_validated(path.remote) {
            self.path = path;
        }
        datagram.truncate(datagram.len() - TAG);
        datagram.advance(DataHeader::LEN);
        self.read(now, age, datagram)
    }

    /// What an authentic datagram says.
    fn read(&mut self, now: Time, age: Age, mut plain: BytesMut) -> Result<Option<Segment<Bytes>>, Refusal> {
        let (word, message) = word(&plain).ok_or(Refusal::NoSegment)?;
        match word {
            word if word & !plain::PAGE == plain::SEGMENT => read_segment(plain.freeze()).map(Some),
            plain::PADDED => {
                let range = plain::padded(&plain).ok_or(Refusal::NoSegment)?;
                plain.truncate(range.end);
                plain.advance(range.start);
                read_segment(plain.freeze()).map(Some)
            }
            plain::FRAGMENT => {
                let fragment = plain::fragment(&plain).ok_or(Refusal::NoSegment)?;
                self.reassembly.insert(now, &fragment).map(read_segment).transpose()
            }
            plain::REQUEST if age == Age::Current => self.answer(now, message).map(|()| None),
            plain::ANSWER => self.conclude(now, message).map(|()| None),
            plain::REQUEST => Err(Refusal::Unexpected),
            // Of a later version, or of none.
            _ => {
                self.tally.ignored += 1;
                Ok(None)
            }
        }
    }

    /// The peer has used the current keys.
    fn confirm(&mut self, now: Time, path: FourTuple) {
        match &mut self.state {
            State::Responding(_) => {
                if path.remote == self.path.remote {
                    // It has the response, which was sent there.
                    self.addresses.validate(path.remote);
                }
                self.state = State::Established(None);
            }
            State::Established(first) => *first = None,
            State::Idle(_) | State::Initiating(_) => {}
        }
        if let Some(Previous { until, .. }) = &mut self.previous {
            *until = (*until).min(now.saturating_add(self.config.limits.keep_previous));
        }
    }

    /// The index of the newest session.
    fn index(&self) -> u32 {
        self.number << 8 | u32::from(self.generation)
    }

    /// The index of another session: three at most are there at a time, so none of them has it.
    fn next_index(&mut self) -> u32 {
        self.generation = self.generation.wrapping_add(1);
        self.index()
    }
}

fn read_segment(plain: Bytes) -> Result<Segment<Bytes>, Refusal> {
    match wire::decode(plain, Checksum::None) {
        Ok((_, segment)) => Ok(segment),
        Err(_) => Err(Refusal::NoSegment),
    }
}

/// The number of the seal's own datagrams and of others that belong to no path of the connection.
const OWN_PATH: u8 = PathId::NOWHERE.number();

const _: () = assert!(PathId::NOWHERE.index() < PATH_NUMBERS);

/// Datagrams before the first that says nothing, and the least number between two of them: 2^16 more at most, so that they cost nothing.
const GREASE_FIRST: u64 = 16;
const GREASE_LEAST: u64 = 1 << 10;

/// Connections of one socket are told apart by 24 bits.
const NUMBER_MAX: u32 = (1 << 24) - 1;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
