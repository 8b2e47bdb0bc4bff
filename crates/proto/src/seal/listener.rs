//! The listener stands in front of all connections of a socket, and decides for which initiations a handshake is computed.
//!
//! It checks in this order, the cheapest first: mac1 (two hashes); whether the initiation is a copy; under load mac2, which
//! proves the address; the rate limits of its network and of all networks together; then Noise (four multiplications on the
//! curve); then whether the timestamp is new. For an unauthenticated peer it stores only a token bucket.
//!
//! No peer is locked out: one without a cookie is sent a cookie. At the limit of half-open connections the oldest is evicted,
//! which has had more time than a handshake takes.

use anabranch_units::{Span, Time};
use bytes::Bytes;

use super::buckets::{Buckets, Network, Pace};
use super::cookie::{CookieJar, cookie_mac, mac1};
use super::datagram::{COOKIE, Datagram, Initiation, begin};
use super::handshake::{ResponderParts, prologue};
use super::hello::Hello;
use super::initiations::{HalfOpen, Initiated, Timestamps};
use super::noise::{Entropy, Handshake, is_equal};
use super::{NUMBER_MAX, PublicKey, Refusal, Seal, SealConfig, SealTally, SecretKey};
use crate::path::FourTuple;
use crate::segment::Segment;

/// Answers initiations at a socket.
#[derive(Debug)]
pub struct Listener {
    secret: SecretKey,
    public: PublicKey,
    config: ListenerConfig,
    pub(super) entropy: Entropy,
    cookies: CookieJar,
    half_open: HalfOpen,
    timestamps: Timestamps,
    /// Handshakes for initiators without a cookie, in total and per network. Beyond this rate a cookie is requested.
    unproven: Buckets,
    unproven_each: Buckets,
    /// Handshakes for initiators with a cookie. Beyond this rate initiations are dropped.
    proven: Buckets,
    proven_each: Buckets,
    tally: SealTally,
}

/// The limits of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerConfig {
    /// Half-open connections at a time. From half of this number on, a cookie is requested. At the limit the oldest is evicted.
    pub half_open: usize,
    /// The time for which a half-open connection counts, unless it is released earlier.
    pub half_open_for: Span,
    /// The rate of handshakes without a cookie. Beyond it a cookie is requested.
    pub unproven: Pace,
    /// The rate of handshakes with a cookie. Beyond it initiations are dropped.
    pub proven: Pace,
    /// Either rate for one network: an IPv4 address, or the first 64 bits of an IPv6 address.
    pub each_network: Pace,
    /// The number of public keys whose timestamps are remembered, against replayed initiations.
    pub clients: usize,
    /// The seal of each connection.
    pub connection: SealConfig,
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
            cookies: CookieJar::new(now, &mut entropy),
            entropy,
            half_open: HalfOpen::default(),
            timestamps: Timestamps::new(config.clients),
            unproven: Buckets::new(config.unproven),
            unproven_each: Buckets::new(config.each_network),
            proven: Buckets::new(config.proven),
            proven_each: Buckets::new(config.each_network),
            config,
            tally: SealTally::default(),
        }
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
        let is_proven =
            mac2 != [0; 16] && self.cookies.is_right(now, path.remote, before_mac2, &mac2, &mut self.entropy);
        if !self.may_calculate(now, path, is_proven)? {
            let cookie = self.cookies.make(now, path.remote, &mut self.entropy);
            begin(COOKIE, sender, out);
            out.extend(cookie);
            out.extend(cookie_mac(&self.public, &tag, &cookie));
            return Ok(Answer::Reply);
        }
        if self.half_open.has(number) {
            return Err(Refusal::TooMany);
        }
        let received = Handshake::receive(&self.secret, &prologue(sender), self.entropy.draw(), noise);
        let (handshake, remote, payload) = received.map_err(|_| Refusal::Forged)?;
        let hello = Hello::read(payload.into())?;
        let cipher = hello.choose(&self.config.connection.ciphers).ok_or(Refusal::NoCipher)?;
        if !self.timestamps.insert(now, remote, hello.timestamp) {
            return Err(Refusal::Replayed);
        }
        let evicted = self.half_open.oldest().filter(|_| self.half_open.len() >= self.config.half_open);
        if let Some(oldest) = evicted {
            self.forget(oldest);
        }
        let initiated = Initiated { ephemeral, client: remote, timestamp: hello.timestamp };
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

    /// Takes the tokens for a handshake. Returns whether there were any. An initiator with a cookie gets more.
    fn may_calculate(&mut self, now: Time, path: FourTuple, is_proven: bool) -> Result<bool, Refusal> {
        let network = Network::of(path.remote.address);
        let (all, each) = if is_proven {
            (&mut self.proven, &mut self.proven_each)
        } else {
            (&mut self.unproven, &mut self.unproven_each)
        };
        let is_crowded = !is_proven && self.half_open.len() >= self.config.half_open / 2;
        let may = !is_crowded && all.has(now, Network::EVERYBODY) && each.take(now, network);
        if may {
            all.take(now, Network::EVERYBODY);
        }
        if is_proven && !may { Err(Refusal::TooMany) } else { Ok(may) }
    }

    /// A half-open connection came to nothing: its initiation may be accepted again.
    fn forget(&mut self, number: u32) {
        if let Some(initiated) = self.half_open.remove(number) {
            self.timestamps.remove(&initiated);
        }
    }
}

impl Default for ListenerConfig {
    fn default() -> Self {
        Self {
            // A half-open seal takes about 2 kB.
            half_open: 4096,
            // A SYN is retransmitted after 1, 3, 7, 15 and 31 s. A client that has not succeeded by then starts a new connection.
            half_open_for: Span::from_secs(60),
            // A handshake takes 0.2 ms: this is a tenth of a core without cookies,
            unproven: Pace { per_second: 500, burst: 500 },
            // and 40 % with cookies. A half-open connection then lives for 2 s, longer than a handshake takes.
            proven: Pace { per_second: 2000, burst: 2000 },
            // WireGuard's rate; the burst allows many connections at once.
            each_network: Pace { per_second: 20, burst: 50 },
            // At most 1 kB each.
            clients: 8192,
            connection: SealConfig::default(),
        }
    }
}
