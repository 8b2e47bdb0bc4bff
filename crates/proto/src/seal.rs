//! Sealed datagrams: segments that nobody else can read, forge or play again. `docs/wire.md` specifies them to the bit.
//!
//! In the manner of WireGuard: two messages of Noise IK make the keys of a *session*, and they ride on the transport's own SYN and
//! SYN-ACK. Each datagram after them has the receiver's index and a 64-bit counter, which is the nonce and shows replays. Sessions
//! are replaced while data flows.
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
//! * there is no clock in the initiation. One that is played again makes a half-open connection at most, of which there are so
//!   many as the listener allows;
//! * cookies are sent in the clear, authenticated.

mod allowance;
mod cookie;
mod datagram;
mod key;
mod listener;
mod noise;
mod renewal;
mod replay;
mod session;

use anabranch_units::{Span, Time};
use bytes::{Buf, Bytes, BytesMut};

use self::allowance::Allowances;
use self::datagram::{Datagram, INITIATION, RESPONSE, begin, word};
pub use self::key::{PublicKey, SecretKey};
pub use self::listener::{Answer, Listener, ListenerLimits};
use self::noise::{Entropy, Handshake, MESSAGE_2, TAG};
use self::renewal::{Age, Renewal};
use self::session::{Session, sealed_len};
use crate::path::FourTuple;
use crate::segment::{Flags, Segment};
use crate::wire::{self, Checksum, Ports};

/// The seal of one connection.
///
/// After each call the driver sends what [`Seal::poll_transmit`] has until there is nothing more, then reads [`Seal::poll_timeout`].
#[derive(Debug)]
pub struct Seal {
    secret: SecretKey,
    remote: PublicKey,
    limits: Limits,
    entropy: Entropy,
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
    addresses: Allowances,
    /// Where the newest authentic datagram came from, or the first one went to.
    path: FourTuple,
    /// Plain text on its way.
    scratch: Vec<u8>,
    tally: SealTally,
}

/// When keys are replaced, and what ends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Keys of this age are replaced at the next datagram.
    pub rekey_after: Span,
    /// Keys with which so many datagrams were sealed in one direction are replaced.
    pub rekey_after_messages: u64,
    /// After so long an unanswered rekeying is sent again.
    pub rekey_retry: Span,
    /// How long replaced keys still open what is late.
    pub keep_previous: Span,
    /// No more datagrams are sealed with one key.
    pub messages: u64,
    /// After so many forgeries nothing more is opened.
    pub forgeries: u64,
}

/// What happened to datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealTally {
    /// Datagrams that were sealed.
    pub sealed: u64,
    /// Datagrams that were opened.
    pub opened: u64,
    /// How often the keys were replaced.
    pub rekeyed: u64,
    refused: [u64; Refusal::ALL.len()],
}

/// Why a datagram is not accepted. Nobody is told but the owner of the tally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is none of our datagrams.
    Malformed,
    /// It names keys that we do not have, or no more.
    UnknownSession,
    /// Its counter came before, or is too old to tell.
    Replayed,
    /// It was not made with the key.
    Forged,
    /// Nothing of its kind is expected now.
    Unexpected,
    /// It is authentic, but holds no segment.
    NoSegment,
    /// Too many forgeries came.
    Exhausted,
    /// Too many connections are half open.
    TooMany,
}

/// Why a segment cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealError {
    /// The keys are not there, or the peer has not shown that it has them: only the handshake may be sent.
    NotReady,
    /// The address is not validated and three times what came from it has been sent.
    NotAllowed,
    /// The keys have sealed all that they may.
    Exhausted,
    /// It is longer than a datagram can be.
    TooLong,
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
    /// Nothing has been sent.
    Idle,
    /// Expects a response.
    Initiating(Box<Initiating>),
    /// Expects the connection's answer, and then a datagram with data.
    Responding(Box<Responding>),
    /// Both have the keys. The first response and what was in it, as long as it may come again.
    Established(Option<Box<([u8; TAG], Segment<Bytes>)>>),
}

#[derive(Debug)]
struct Initiating {
    handshake: Handshake,
    /// The initiation up to and with mac1, as it is sent each time.
    message: Vec<u8>,
    mac1: [u8; TAG],
    cookie: Option<([u8; TAG], Time)>,
    /// Whether a cookie came since the segment was sent, so that it is sent again at once.
    is_due: bool,
    may_hurry: bool,
}

#[derive(Debug)]
struct Responding {
    /// Until the response is made.
    handshake: Option<(Handshake, u32)>,
    response: Vec<u8>,
    /// The last bytes of the initiation and what was in it: it may come again.
    tag: [u8; TAG],
    segment: Segment<Bytes>,
}

#[derive(Debug)]
struct Previous {
    session: Session,
    /// When they go; never before the peer has shown that it has the new ones.
    until: Time,
}

impl Seal {
    /// What a sealed datagram has around the TCP form of its segment.
    pub const OVERHEAD: u32 = sealed_len(0) as u32;

    /// The seal of an end that opens a connection to `remote`. Datagrams for it come to [`Recipient::Connection`] of `number`, of
    /// which the lower 24 bits count; it must be in use once only. `seed` is secret and used nowhere else.
    pub fn initiator(secret: SecretKey, remote: PublicKey, number: u32, limits: Limits, seed: [u8; 32]) -> Self {
        Self::new(secret, remote, number, limits, Entropy::new(seed), Role::Initiator, State::Idle)
    }

    fn new(
        secret: SecretKey,
        remote: PublicKey,
        number: u32,
        limits: Limits,
        entropy: Entropy,
        role: Role,
        state: State,
    ) -> Self {
        Self {
            secret,
            remote,
            limits,
            entropy,
            number: number & NUMBER_MAX,
            generation: 0,
            state,
            role,
            current: None,
            previous: None,
            renewal: Renewal::None,
            addresses: Allowances::default(),
            path: FourTuple::default(),
            scratch: vec![],
            tally: SealTally::default(),
        }
    }

    /// The seal of an end to which this came.
    fn responder(listener: ResponderParts, handshake: Handshake, sender: u32, segment: Segment<Bytes>) -> Self {
        let ResponderParts { secret, remote, number, limits, entropy, path, tag, len, is_validated } = listener;
        let state = State::Responding(Box::new(Responding {
            handshake: Some((handshake, sender)),
            response: vec![],
            tag,
            segment,
        }));
        let mut seal = Self::new(secret, remote, number, limits, entropy, Role::Responder, state);
        seal.path = path;
        seal.addresses.on_received(path.remote, len);
        if is_validated {
            seal.addresses.validate(path.remote);
        }
        seal
    }

    /// Who gets a datagram; `None` if it is none of ours.
    pub fn recipient(datagram: &[u8]) -> Option<Recipient> {
        let index = match Datagram::parse(datagram)? {
            Datagram::Initiation(_) => return Some(Recipient::Listener),
            Datagram::Response { receiver, .. }
            | Datagram::Cookie { receiver, .. }
            | Datagram::Data { receiver, .. } => receiver,
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

    /// What happened so far.
    pub fn tally(&self) -> SealTally {
        self.tally
    }

    /// The address at the other end of this path gets what is sent there: the transport's challenge was answered, or the
    /// application named it. The first path needs no such word.
    pub fn validate(&mut self, path: FourTuple) {
        self.addresses.validate(path.remote);
    }

    /// Appends to `out` a datagram for this path with the segment in it. The first one carries the handshake, and so must be a SYN
    /// of an initiator, or the answer to it.
    ///
    /// # Errors
    /// If it cannot be sent now; it is lost, as if the network had lost it.
    pub fn seal(
        &mut self,
        now: Time,
        path: FourTuple,
        segment: &Segment<Bytes>,
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        let start = out.len();
        self.scratch.clear();
        wire::encode(segment, Ports::default(), Checksum::None, &mut self.scratch);
        match &self.state {
            State::Idle | State::Initiating(_) => self.seal_initiation(now, path, segment, out)?,
            State::Responding(_) => self.seal_response(now, path, segment, out)?,
            State::Established(_) => {
                if !self.addresses.allows(path.remote, sealed_len(self.scratch.len())) {
                    return Err(SealError::NotAllowed);
                }
                let session = self.current.as_mut().ok_or(SealError::NotReady)?;
                session.seal(&self.limits, &self.scratch, out)?;
                self.renew(now);
            }
        }
        self.addresses.on_sent(path.remote, out.len() - start);
        self.tally.sealed += 1;
        Ok(())
    }

    /// What a datagram that came on this path holds: a segment, or nothing for anybody but the seal. `buffer` lends the memory that
    /// the segment's data lies in; what was in it is lost.
    ///
    /// # Errors
    /// If it is to be ignored. The tally has counted why.
    pub fn open(
        &mut self,
        now: Time,
        path: FourTuple,
        datagram: &[u8],
        buffer: &mut BytesMut,
    ) -> Result<Option<Segment<Bytes>>, Refusal> {
        let opened = match Datagram::parse(datagram) {
            None => Err(Refusal::Malformed),
            Some(Datagram::Initiation(initiation)) => self.open_again(path, &initiation, datagram.len()),
            Some(Datagram::Response { receiver, noise }) => self.open_response(now, receiver, noise),
            Some(Datagram::Cookie { receiver, cookie, mac }) => self.open_cookie(now, receiver, cookie, &mac),
            Some(Datagram::Data { receiver, counter, sealed }) => {
                let opened = self.open_data(now, path, receiver, counter, sealed, buffer);
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
        } else {
            let (message, word) = match &mut self.renewal {
                Renewal::Asking { message, at, .. } if *at <= now => {
                    *at = now.saturating_add(self.limits.rekey_retry);
                    (&*message, ASK)
                }
                Renewal::Answered { answer, is_due, .. } if *is_due => {
                    *is_due = false;
                    (&*answer, ANSWER)
                }
                Renewal::None | Renewal::Asking { .. } | Renewal::Answered { .. } => return None,
            };
            self.scratch.clear();
            self.scratch.extend(word.to_be_bytes());
            self.scratch.extend(message);
            if !self.addresses.allows(self.path.remote, sealed_len(self.scratch.len())) {
                return None;
            }
            self.current.as_mut()?.seal(&self.limits, &self.scratch, out).ok()?;
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
    }

    /// When to call [`Seal::handle_timeout`] and then [`Seal::poll_transmit`]; [`Time::NEVER`] if not at all.
    pub fn poll_timeout(&self) -> Time {
        let previous = self.previous.as_ref().map_or(Time::NEVER, |previous| previous.until);
        let renewal = match self.renewal {
            Renewal::Asking { at, .. } => at,
            Renewal::None | Renewal::Answered { .. } => Time::NEVER,
        };
        previous.min(renewal)
    }

    /// The plain text in `scratch` goes with the handshake, or the handshake goes again.
    fn seal_initiation(
        &mut self,
        now: Time,
        path: FourTuple,
        segment: &Segment<Bytes>,
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        if !segment.has(Flags::SYN) {
            return Err(SealError::NotReady);
        }
        if let State::Idle = self.state {
            let mut message = vec![];
            let index = self.next_index();
            begin(INITIATION, index, &mut message);
            let (ephemeral, prologue) = (self.entropy.draw(), prologue(index));
            let Self { secret, remote, scratch, .. } = &*self;
            let handshake = Handshake::initiate(secret, remote, &prologue, ephemeral, scratch, &mut message)
                .map_err(|_| SealError::TooLong)?;
            let mac1 = cookie::mac1(remote, &message);
            message.extend(mac1);
            let cookie = None;
            let initiating = Initiating { handshake, message, mac1, cookie, is_due: false, may_hurry: true };
            self.state = State::Initiating(Box::new(initiating));
            // The application has named this address.
            self.addresses.validate(path.remote);
        }
        if let State::Initiating(initiating) = &mut self.state {
            initiating.may_hurry = true;
            initiating.is_due = false;
            initiating.write(now, out);
        }
        self.path = path;
        Ok(())
    }

    /// The plain text in `scratch` goes with the handshake; what goes a second time goes as it was.
    fn seal_response(
        &mut self,
        now: Time,
        path: FourTuple,
        segment: &Segment<Bytes>,
        out: &mut Vec<u8>,
    ) -> Result<(), SealError> {
        let local = self.index();
        let State::Responding(responding) = &mut self.state else { return Err(SealError::NotReady) };
        if !is_answer(segment) {
            return Err(SealError::NotReady);
        }
        let len = 12 + MESSAGE_2 + self.scratch.len();
        if !self.addresses.allows(path.remote, len.max(responding.response.len())) {
            return Err(SealError::NotAllowed);
        }
        if let Some((mut handshake, sender)) = responding.handshake.take() {
            begin(RESPONSE, sender, &mut responding.response);
            let payload = [&local.to_be_bytes(), self.scratch.as_slice()].concat();
            handshake.respond(&payload, &mut responding.response).map_err(|_| SealError::TooLong)?;
            self.current = Session::new(now, local, sender, handshake).ok();
        }
        out.extend(&responding.response);
        Ok(())
    }

    /// An initiation that came before: its answer was lost.
    fn open_again(
        &mut self,
        path: FourTuple,
        initiation: &datagram::Initiation<'_>,
        len: usize,
    ) -> Result<Option<Segment<Bytes>>, Refusal> {
        let State::Responding(responding) = &self.state else { return Err(Refusal::Unexpected) };
        let is_same = initiation.noise.last_chunk().is_some_and(|tag| noise::is_equal(tag, &responding.tag));
        if !is_same || path != self.path {
            return Err(Refusal::Unexpected);
        }
        self.addresses.on_received(path.remote, len);
        Ok(Some(responding.segment.clone()))
    }

    fn open_response(&mut self, now: Time, receiver: u32, noise: &[u8]) -> Result<Option<Segment<Bytes>>, Refusal> {
        let tag = *noise.last_chunk().ok_or(Refusal::Malformed)?;
        if receiver != self.index() {
            return Err(Refusal::UnknownSession);
        }
        match &mut self.state {
            State::Initiating(initiating) => {
                let mut plain = Bytes::from(initiating.handshake.conclude(noise).map_err(|_| Refusal::Forged)?);
                let sender = plain.try_get_u32().map_err(|_| Refusal::NoSegment)?;
                let established = State::Established(None);
                if let State::Initiating(initiating) = std::mem::replace(&mut self.state, established) {
                    self.current = Some(Session::new(now, receiver, sender, initiating.handshake)?);
                }
                let segment = read_segment(plain)?;
                if !is_answer(&segment) {
                    return Err(Refusal::NoSegment);
                }
                self.state = State::Established(Some(Box::new((tag, segment.clone()))));
                Ok(Some(segment))
            }
            // The connection's answer was lost.
            State::Established(Some(first)) if noise::is_equal(&first.0, &tag) => Ok(Some(first.1.clone())),
            State::Idle | State::Responding(_) | State::Established(_) => Err(Refusal::Unexpected),
        }
    }

    fn open_cookie(
        &mut self,
        now: Time,
        receiver: u32,
        cookie: [u8; TAG],
        mac: &[u8; TAG],
    ) -> Result<Option<Segment<Bytes>>, Refusal> {
        let index = self.index();
        let State::Initiating(initiating) = &mut self.state else { return Err(Refusal::Unexpected) };
        if receiver != index {
            return Err(Refusal::UnknownSession);
        }
        if !noise::is_equal(&cookie::cookie_mac(&self.remote, &initiating.mac1, &cookie), mac) {
            return Err(Refusal::Forged);
        }
        initiating.cookie = Some((cookie, now));
        // Once for each time that the segment is sent: whoever sees it can send cookies without end.
        initiating.is_due |= std::mem::take(&mut initiating.may_hurry);
        Ok(None)
    }

    fn open_data(
        &mut self,
        now: Time,
        path: FourTuple,
        receiver: u32,
        counter: u64,
        sealed: &[u8],
        buffer: &mut BytesMut,
    ) -> Result<Option<Segment<Bytes>>, Refusal> {
        let age = self.age(receiver).ok_or(Refusal::UnknownSession)?;
        let session = match (age, &mut self.current, &mut self.previous, &mut self.renewal) {
            (Age::Current, Some(session), ..) => session,
            (Age::Previous, _, Some(previous), _) => &mut previous.session,
            (Age::Next, _, _, Renewal::Answered { session, .. }) => session,
            _ => return Err(Refusal::UnknownSession),
        };
        let is_newest = counter >= session.window.next();
        let plain = session.open(&self.limits, counter, sealed, buffer)?;
        self.addresses.on_received(path.remote, sealed.len() + sealed_len(0) - TAG);
        match age {
            Age::Next => self.promote(now),
            Age::Current => self.confirm(now, path),
            Age::Previous => {}
        }
        if is_newest && age != Age::Previous {
            self.path = path;
        }
        let (word, message) = word(&plain).ok_or(Refusal::NoSegment)?;
        match word {
            SEGMENT => read_segment(plain).map(Some),
            ASK if age == Age::Current => self.answer(now, message).map(|()| None),
            ANSWER => self.conclude(now, message).map(|()| None),
            _ => Err(Refusal::Unexpected),
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
            State::Idle | State::Initiating(_) => {}
        }
        if let Some(Previous { until, .. }) = &mut self.previous {
            *until = (*until).min(now.saturating_add(self.limits.keep_previous));
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

/// What a listener knows of a connection that it accepts.
#[derive(Debug)]
struct ResponderParts {
    secret: SecretKey,
    remote: PublicKey,
    number: u32,
    limits: Limits,
    entropy: Entropy,
    path: FourTuple,
    tag: [u8; TAG],
    len: usize,
    is_validated: bool,
}

impl Initiating {
    /// Appends the initiation, with a cookie if there is one.
    fn write(&self, now: Time, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend(&self.message);
        let cookie = self.cookie.filter(|(_, since)| now.since(*since) < cookie::LIFETIME);
        let mac2 = cookie.map_or([0; TAG], |(cookie, _)| cookie::with_cookie(&cookie, &out[start..]));
        out.extend(mac2);
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // WireGuard's.
            rekey_after: Span::from_secs(120),
            rekey_after_messages: 1 << 60,
            rekey_retry: Span::from_secs(5),
            // Twice what is called the longest life of a packet in the Internet is far more than any path takes.
            keep_previous: Span::from_secs(10),
            // WireGuard's, a little below what the counter can count.
            messages: u64::MAX - (1 << 13),
            // [rfc-9001] sec. 6.6, for ChaCha20-Poly1305.
            forgeries: 1 << 36,
        }
    }
}

impl SealTally {
    /// How many datagrams were refused for this reason.
    pub fn refused(&self, refusal: Refusal) -> u64 {
        self.refused[refusal as usize]
    }

    fn count(&mut self, refusal: Refusal) {
        self.refused[refusal as usize] += 1;
    }
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Malformed,
        Self::UnknownSession,
        Self::Replayed,
        Self::Forged,
        Self::Unexpected,
        Self::NoSegment,
        Self::Exhausted,
        Self::TooMany,
    ];
}

fn read_segment(plain: Bytes) -> Result<Segment<Bytes>, Refusal> {
    match wire::decode(plain, Checksum::None) {
        Ok((_, segment)) => Ok(segment),
        Err(_) => Err(Refusal::NoSegment),
    }
}

/// Whether a segment may answer an initiation. It may come again, and so carries nothing that would count twice.
fn is_answer(segment: &Segment<Bytes>) -> bool {
    (segment.has(Flags::SYN) || segment.has(Flags::RST)) && segment.content.is_empty()
}

/// The keys are bound to the initiator's index, which the responder reads in the clear.
fn prologue(sender: u32) -> Vec<u8> {
    [PROLOGUE, &sender.to_be_bytes()].concat()
}

/// What both ends must agree on: the name and version of this protocol.
const PROLOGUE: &[u8] = b"anabranch seal 1";

/// The first four bytes within a sealed datagram: a segment, which has its ports there, or a message of rekeying.
const SEGMENT: u32 = 0;
const ASK: u32 = 1;
const ANSWER: u32 = 2;

/// Connections of one socket are told apart by 24 bits.
const NUMBER_MAX: u32 = (1 << 24) - 1;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
