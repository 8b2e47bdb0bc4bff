//! Sealed datagrams: segments that are encrypted, authenticated and protected against replay. `docs/wire.md` specifies them to
//! the bit.
//!
//! The design follows WireGuard. Two messages of Noise IK, which carry the transport's SYN and SYN-ACK, produce the keys of a
//! *session*. Each later datagram has the receiver's index, the number of a path and a 64-bit counter of that path. Path and
//! counter are the nonce and detect replays. Sessions are replaced while data flows.
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
//! A [`Seal`] belongs to one connection. A [`Listener`] stands in front of all connections of a socket. Neither reads a clock or
//! generates randomness: time is an argument, and each gets 32 secret bytes. An invalid datagram is a [`Refusal`]; it is counted
//! and never answered.
//!
//! Differs from WireGuard in:
//! * the handshake carries segments, and is retransmitted together with them, bit for bit;
//! * only the initiator of the connection renews keys; both messages are sent within the session that they replace;
//! * keys that cannot be replaced, because nothing arrives, stay valid: a long silence does not end a connection;
//! * both ends list their data ciphers, so AES is used if it is fast on both machines;
//! * each path has its own counters and replay window, so datagrams of a slow path are not rejected as old;
//! * a listener remembers several timestamps per key, because a key may have many connections;
//! * cookies are sent in the clear, authenticated.

mod aegis;
mod allowance;
mod buckets;
mod cipher;
mod config;
mod cookie;
mod datagram;
mod full;
mod gate;
mod handshake;
mod hello;
mod initiations;
mod key;
mod listener;
mod noise;
mod own;
mod plain;
mod reassembly;
mod renewal;
mod replay;
mod reset;
mod session;
mod tally;
mod x25519;

use anabranch_units::Time;
use bytes::{Buf, Bytes, BytesMut};

use self::allowance::{Allowances, Load};
pub(crate) use self::buckets::Network;
pub use self::buckets::Pace;
pub use self::cipher::{Cipher, CipherPreference};
pub use self::config::{Limits, ListenerConfig, Padding, SealConfig};
use self::datagram::{DataHeader, Datagram, word};
pub use self::full::Full;
use self::handshake::{Initiating, Responding};
pub use self::hello::Timestamp;
pub use self::key::{PublicKey, SecretKey};
pub use self::listener::{Answer, Listener};
pub(crate) use self::noise::Entropy;
use self::noise::TAG;
use self::plain::Layout;
use self::reassembly::Reassembly;
use self::renewal::{Age, Renewal};
pub use self::reset::Resets;
use self::reset::{Given, ResetKey, Tokens};
use self::session::{Session, sealed_len};
pub use self::tally::{Refusal, SealError, SealTally};
use crate::path::{FourTuple, PathId};
use crate::segment::{HEADERS, Segment, TCP_HEADER};
use crate::wire::{self, Checksum, Ports};

/// The seal of one connection.
///
/// After each call the driver sends everything from [`Seal::poll_transmit`], then reads [`Seal::poll_timeout`].
#[derive(Debug)]
pub struct Seal {
    secret: SecretKey,
    remote: PublicKey,
    config: SealConfig,
    entropy: Entropy,
    /// Data datagrams until the next grease datagram.
    until_grease: u64,
    /// The upper 24 bits of all indices, by which the driver finds this connection. The lower eight bits count its sessions.
    number: u32,
    generation: u8,
    state: State,
    role: Role,
    /// The session that seals.
    current: Option<Session>,
    /// The previous session, for late datagrams.
    previous: Option<Previous>,
    renewal: Renewal,
    /// When the last request for new keys was answered.
    answered: Option<Time>,
    addresses: Allowances,
    /// The source of the newest authentic datagram from a validated address, or the destination of the first one.
    path: FourTuple,
    /// Reassembly of fragments, and the number of segments sent as fragments.
    reassembly: Reassembly,
    fragmented: u32,
    /// Derives the reset tokens that the responder gives; those that it has given; and those that the initiator was given.
    resets: ResetKey,
    given: Given,
    tokens: Tokens,
    /// Why the responder has refused the connection, or will refuse it.
    full: Option<Full>,
    tally: SealTally,
    /// See [`Seal::ahead`].
    ahead: Option<u64>,
}

/// The destination and size of a segment's datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The source and destination addresses.
    pub tuple: FourTuple,
    /// The path of the connection, which has its own counters.
    pub path: PathId,
    /// The largest datagram of the path, in bytes of UDP payload. A longer segment is sent as fragments.
    pub datagram_max: u32,
    /// The size to which the datagram is padded, as far as the path and the anti-amplification limit allow.
    pub pad_to: u32,
}

/// The datagrams of one segment, concatenated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Bytes of each datagram; the last one may be shorter.
    pub size: usize,
    /// The number of datagrams.
    pub count: usize,
}

/// The recipient of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// The listener: [`Listener::handle`].
    Listener,
    /// The seal of the connection with this number: [`Seal::open`].
    Connection(u32),
    /// The connection, if any, for which it is a reset: [`Seal::is_reset`].
    Reset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Initiator,
    Responder,
}

/// The state of the handshake.
#[derive(Debug)]
enum State {
    /// Nothing has been sent. The initiation will carry this timestamp.
    Idle(Timestamp),
    /// Waits for a response.
    Initiating(Box<Initiating>),
    /// Waits for the connection's SYN-ACK, then for a datagram with data.
    Responding(Box<Responding>),
    /// Both ends have the keys. Keeps the first response and its segment while a copy may arrive.
    Established(Option<Box<([u8; TAG], Segment<Bytes>)>>),
}

#[derive(Debug)]
struct Previous {
    session: Session,
    /// When it is dropped, but never before the peer has used the new session.
    until: Time,
}

impl Outgoing {
    /// For the connection's first path, in datagrams of the initial size.
    pub const fn new(tuple: FourTuple) -> Self {
        Self { tuple, path: PathId::FIRST, datagram_max: Seal::DATAGRAM_FIRST, pad_to: 0 }
    }
}

impl Seal {
    /// Bytes that sealing adds to the TCP form of a segment.
    pub const OVERHEAD: u32 = sealed_len(0) as u32;

    /// The initial datagram size in bytes, which every path is assumed to carry. IPv6 carries at least 1232, and tunnels take
    /// some of that.
    pub const DATAGRAM_FIRST: u32 = 1200;

    /// The seal of an end that opens a connection to `remote`. Its datagrams have the recipient [`Recipient::Connection`] with
    /// `number`, whose lower 24 bits must be unique. `timestamp` must be unique for the key. `seed` must be secret and used for
    /// nothing else.
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
            resets: ResetKey::new(&secret),
            given: Given::default(),
            tokens: Tokens::default(),
            full: None,
            secret,
            remote,
            config,
            entropy,
            until_grease: own::GREASE_FIRST,
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
            ahead: None,
        }
    }

    /// By how much the counter of the datagram opened last exceeds the highest before on its path: more than one tells of datagrams
    /// that are lost or late, zero of one that is late. `None` for a datagram of the handshake.
    pub(crate) fn ahead(&self) -> Option<u64> {
        self.ahead
    }

    /// The recipient of a datagram; `None` if the datagram is not of this protocol.
    pub fn recipient(datagram: &[u8]) -> Option<Recipient> {
        let index = match Datagram::parse(datagram)? {
            Datagram::Initiation(_) => return Some(Recipient::Listener),
            Datagram::Reset { .. } => return Some(Recipient::Reset),
            Datagram::Response { receiver, .. }
            | Datagram::Cookie { receiver, .. }
            | Datagram::Data(DataHeader { receiver, .. }) => receiver,
        };
        Some(Recipient::Connection(index >> 8))
    }

    /// The ephemeral key of an initiation, by which its copies are recognised.
    pub(crate) fn ephemeral(datagram: &[u8]) -> Option<[u8; 32]> {
        match Datagram::parse(datagram)? {
            Datagram::Initiation(initiation) => initiation.noise.first_chunk().copied(),
            _ => None,
        }
    }

    /// The public key of the peer.
    pub fn remote(&self) -> PublicKey {
        self.remote
    }

    /// Whether a datagram is not for a session that this connection never had, or no longer has.
    pub(crate) fn knows(&self, datagram: &[u8]) -> bool {
        match Datagram::parse(datagram) {
            Some(Datagram::Data(DataHeader { receiver, .. })) => self.age(receiver).is_some(),
            _ => true,
        }
    }

    /// Whether this datagram is a reset by which the responder says that it no longer knows this connection. Its token is known
    /// only to the responder and to this end, which got it in the session.
    pub fn is_reset(&self, datagram: &[u8]) -> bool {
        let Some(Datagram::Reset { sender, token }) = Datagram::parse(datagram) else { return false };
        let is_ours = self.current.as_ref().is_some_and(|current| current.remote == sender);
        is_ours && self.tokens.has(&token)
    }

    /// Whether both ends have proved that they have the keys.
    pub fn is_established(&self) -> bool {
        matches!(self.state, State::Established(_))
    }

    /// Whether a segment can be sealed now. Without keys only a segment of the handshake can; with keys, until their use limit.
    pub fn may_send(&self) -> bool {
        match &self.state {
            State::Idle(_) | State::Initiating(_) | State::Responding(_) => true,
            State::Established(_) => self.current.as_ref().is_some_and(|session| session.room(&self.config.limits) > 0),
        }
    }

    /// The data cipher, once it is negotiated.
    pub fn cipher(&self) -> Option<Cipher> {
        self.current.as_ref().map(|session| session.cipher)
    }

    /// Counters of datagrams.
    pub fn tally(&self) -> SealTally {
        self.tally
    }

    /// The address at the far end of this path is validated: it has answered the transport's challenge, or the application has
    /// named it. The first path needs no such call.
    pub fn validate(&mut self, path: FourTuple) {
        self.addresses.validate(path.remote);
    }

    /// Appends the datagrams of this segment to `out`; usually one. The handshake carries the first segment, which must be the
    /// initiator's SYN, or the answer to it. Nothing is allocated if `out` has room.
    ///
    /// # Errors
    /// If the segment cannot be sent now. It then counts as lost, and `out` is unchanged.
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
        self.addresses.on_sent(outgoing.tuple.remote, Load { count: sealed.count, bytes: out.len() - start });
        self.tally.sealed += sealed.count as u64;
        self.renew(now);
        Ok(sealed)
    }

    /// The layout of a segment of `len` bytes (in its TCP form) in datagrams, and their total bytes, without padding by the seal.
    /// It is for network models that do not encrypt.
    ///
    /// # Errors
    /// If no datagrams can carry it.
    pub fn layout(len: u32, datagram_max: u32, pad_to: u32) -> Result<(Sealed, u32), SealError> {
        let len = len as usize;
        let (bytes, count) = Layout::of(len, datagram_max as usize, pad_to as usize)?.size(len);
        let size = if count > 1 { datagram_max as usize } else { bytes };
        Ok((Sealed { size, count }, bytes as u32))
    }

    /// Opens a datagram that arrived on this path. Returns its segment, or `None` if the datagram is for the seal alone. It is
    /// decrypted in place, and the segment's data shares its memory.
    ///
    /// # Errors
    /// Why the datagram is ignored. The tally has counted it.
    pub fn open(&mut self, now: Time, path: FourTuple, datagram: BytesMut) -> Result<Option<Segment<Bytes>>, Refusal> {
        self.ahead = None;
        let opened = match Datagram::parse(&datagram) {
            None | Some(Datagram::Reset { .. }) => Err(Refusal::Malformed),
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

    /// Appends to `out` a datagram of the seal's own, and returns the path to send it on.
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
        self.addresses.on_sent(self.path.remote, Load::one(out.len() - start));
        self.tally.sealed += 1;
        Some(self.path)
    }

    /// Handles the timeout that [`Seal::poll_timeout`] announced.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.previous.as_ref().is_some_and(|previous| previous.until <= now) {
            self.previous = None;
        }
        self.reassembly.expire(now);
    }

    /// When to call [`Seal::handle_timeout`] and then [`Seal::poll_transmit`]; [`Time::NEVER`] if there is no deadline.
    pub fn poll_timeout(&self) -> Time {
        let previous = self.previous.as_ref().map_or(Time::NEVER, |previous| previous.until);
        let renewal = match self.renewal {
            Renewal::Asking { at, .. } => at,
            Renewal::None | Renewal::Answered { .. } => Time::NEVER,
        };
        previous.min(renewal).min(self.reassembly.deadline())
    }

    /// Lays out the segment in datagrams, and seals them in place.
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
        if !self.addresses.allows(outgoing.tuple.remote, Load { count, bytes }) {
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
        let ahead = session.open(&self.config.limits, &header, &mut datagram)?;
        self.ahead = Some(ahead);
        self.addresses.on_received(path.remote, datagram.len());
        match age {
            Age::Next => self.promote(now),
            Age::Current => self.confirm(now, path),
            Age::Previous => {}
        }
        // If an attacker delays a datagram and sends it from elsewhere, our datagrams are not redirected.
        if ahead > 0 && age != Age::Previous && self.addresses.is_validated(path.remote) {
            self.path = path;
            if self.role == Role::Responder {
                self.given.on_heard(now, path.remote);
            }
        }
        datagram.truncate(datagram.len() - TAG);
        datagram.advance(DataHeader::LEN);
        self.read(now, age, datagram)
    }

    /// Processes the content of an authentic datagram.
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
            plain::TOKEN => self.take_token(message).map(|()| None),
            // It belongs to a later version, or is grease.
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
                    // The peer has the response, which was sent to this address.
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

    /// A new index. At most three sessions exist at a time, so none of them has it.
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

/// The range of connection numbers of one socket: 24 bits.
const NUMBER_MAX: u32 = (1 << 24) - 1;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
