//! The listener stands in front of all connections of a socket, and decides for which initiations a handshake is computed.
//!
//! It checks in this order, the cheapest first: mac1 (two hashes); whether the initiation is a copy; under load mac2, which
//! proves the address; the rate limits of its network and of all networks together; then Noise (four multiplications on the
//! curve); then whether the timestamp is new. For an unauthenticated peer it stores only a token bucket.
//!
//! No peer is locked out: one without a cookie is sent a cookie. At the limit of half-open connections the oldest is evicted,
//! which has had more time than a handshake takes.

use anabranch_units::Time;
use bytes::Bytes;

use super::cookie::{cookie_mac, mac1};
use super::datagram::{COOKIE, Datagram, Initiation, begin};
use super::gate::{Gate, Pass, Proof};
use super::handshake::{ResponderParts, prologue};
use super::hello::Hello;
use super::initiations::{HalfOpen, Initiated};
use super::noise::{Entropy, Handshake, is_equal};
use super::{ListenerConfig, NUMBER_MAX, PublicKey, Refusal, Seal, SealTally, SecretKey};
use crate::path::FourTuple;
use crate::segment::Segment;

/// Answers initiations at a socket.
#[derive(Debug)]
pub struct Listener {
    secret: SecretKey,
    public: PublicKey,
    config: ListenerConfig,
    pub(super) entropy: Entropy,
    half_open: HalfOpen,
    gate: Gate,
    tally: SealTally,
}

/// The result of handling an initiation.
#[derive(Debug)]
pub enum Answer {
    /// A new connection.
    Accept {
        /// The seal of the connection.
        seal: Box<Seal>,
        /// The SYN of the initiation.
        segment: Segment<Bytes>,
        /// The half-open connection that was evicted for it. The driver must drop it.
        evicted: Option<u32>,
    },
    /// A copy: it must be opened by the seal of the connection with this number.
    Again {
        /// The number of that connection.
        number: u32,
    },
    /// A cookie was appended, to be sent back to the source.
    Reply,
}

impl Listener {
    /// A listener with this static key. `seed` must be secret and used for nothing else.
    pub fn new(now: Time, secret: SecretKey, config: ListenerConfig, seed: [u8; 32]) -> Self {
        let mut entropy = Entropy::new(seed);
        Self {
            public: secret.public(),
            secret,
            gate: Gate::new(now, &config, &mut entropy),
            entropy,
            half_open: HalfOpen::default(),
            config,
            tally: SealTally::default(),
        }
    }

    /// From now on this listener of another shard limits handshakes together with `first`, and knows what that one has accepted.
    pub(crate) fn join(&mut self, first: &Self) {
        self.gate = first.gate.clone();
    }

    /// Counters of initiations.
    pub fn tally(&self) -> SealTally {
        self.tally
    }

    /// Handles an initiation that arrived on this path. A new connection gets `number`; a cookie is appended to `out`.
    ///
    /// # Errors
    /// Why the initiation is ignored. The tally has counted it.
    pub fn handle(
        &mut self,
        now: Time,
        path: FourTuple,
        datagram: &[u8],
        number: u32,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Refusal> {
        let answer = match Datagram::parse(datagram) {
            Some(Datagram::Initiation(initiation)) => {
                self.handle_initiation(now, path, &initiation, datagram.len(), number & NUMBER_MAX, out)
            }
            Some(
                Datagram::Response { .. } | Datagram::Cookie { .. } | Datagram::Data { .. } | Datagram::Reset { .. },
            ) => Err(Refusal::Unexpected),
            None => Err(Refusal::Malformed),
        };
        match &answer {
            Ok(_) => self.tally.opened += 1,
            Err(refusal) => self.tally.count(*refusal),
        }
        answer
    }

    /// A connection is no longer half open: it is established, or gone.
    pub fn release(&mut self, number: u32) {
        self.half_open.remove(number & NUMBER_MAX);
    }

    /// A connection was refused: the same initiation may be answered again.
    pub fn refuse(&mut self, number: u32) {
        self.forget(number & NUMBER_MAX);
    }

    fn handle_initiation(
        &mut self,
        now: Time,
        path: FourTuple,
        initiation: &Initiation<'_>,
        len: usize,
        number: u32,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Refusal> {
        let Initiation { sender, noise, before_mac1, mac1: tag, before_mac2, mac2 } = *initiation;
        if !is_equal(&mac1(&self.public, before_mac1), &tag) {
            return Err(Refusal::Forged);
        }
        let ephemeral = *noise.first_chunk().ok_or(Refusal::Malformed)?;
        while let Some(number) = self.half_open.expired(now, self.config.half_open_for) {
            self.forget(number);
        }
        if let Some(number) = self.half_open.find(&ephemeral) {
            return Ok(Answer::Again { number });
        }
        let is_crowded = self.half_open.len() >= self.config.half_open / 2;
        let proof = Proof { covered: before_mac2, mac2: &mac2 };
        let is_proven = match self.gate.pass(now, path.remote, proof, is_crowded, &mut self.entropy)? {
            Pass::Handshake { is_proven } => is_proven,
            Pass::Cookie(cookie) => {
                begin(COOKIE, sender, out);
                out.extend(cookie);
                out.extend(cookie_mac(&self.public, &tag, &cookie));
                return Ok(Answer::Reply);
            }
        };
        if self.half_open.has(number) {
            return Err(Refusal::TooMany);
        }
        let received = Handshake::receive(&self.secret, &prologue(sender), self.entropy.draw(), noise);
        let (handshake, remote, payload) = received.map_err(|_| Refusal::Forged)?;
        let hello = Hello::read(payload.into())?;
        let cipher = hello.choose(&self.config.connection.ciphers).ok_or(Refusal::NoCipher)?;
        let initiated = Initiated { ephemeral, client: remote, timestamp: hello.timestamp };
        if !self.gate.insert(now, &initiated) {
            return Err(Refusal::Replayed);
        }
        let evicted = self.half_open.oldest().filter(|_| self.half_open.len() >= self.config.half_open);
        if let Some(oldest) = evicted {
            self.forget(oldest);
        }
        self.half_open.insert(now, number, initiated);
        let parts = ResponderParts {
            secret: self.secret.clone(),
            remote,
            number,
            config: self.config.connection,
            entropy: Entropy::new(self.entropy.draw()),
            path,
            handshake,
            cipher,
            sender,
            tag: *noise.last_chunk().ok_or(Refusal::Malformed)?,
            len,
            is_validated: is_proven,
        };
        let segment = hello.syn;
        let seal = Box::new(Seal::responder(parts, segment.clone()));
        Ok(Answer::Accept { seal, segment, evicted })
    }

    /// A half-open connection came to nothing: its initiation may be accepted again.
    fn forget(&mut self, number: u32) {
        if let Some(initiated) = self.half_open.remove(number) {
            self.gate.remove(&initiated);
        }
    }
}
