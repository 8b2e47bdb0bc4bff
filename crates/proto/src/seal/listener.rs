//! What stands before all connections of a socket: it decides for whom to calculate.
//!
//! In this order, the cheapest first: mac1 (two hashes); whether the initiation is known; under load mac2, which shows that the address gets
//! what is sent there; how much was calculated for its network, and for all, a short while ago; then Noise (four multiplications on
//! the curve), and whether the timestamp is new. It keeps nothing for a peer whose initiation has not been authenticated but a token
//! bucket.
//!
//! Nobody is locked out: who has no cookie is asked for one, and where half-open connections take all places the oldest gives way, which
//! has had more time than a handshake takes.

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

/// Answers initiations.
#[derive(Debug)]
pub struct Listener {
    secret: SecretKey,
    public: PublicKey,
    config: ListenerConfig,
    pub(super) entropy: Entropy,
    cookies: CookieJar,
    half_open: HalfOpen,
    timestamps: Timestamps,
    /// Handshakes for whoever comes, and for those of them who come from one network. Beyond that a cookie is asked for.
    unproven: Buckets,
    unproven_each: Buckets,
    /// Handshakes for who has a cookie. Beyond that nothing is calculated.
    proven: Buckets,
    proven_each: Buckets,
    tally: SealTally,
}

/// How much a listener takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerConfig {
    /// Connections that are half open at a time. From half of them on a cookie is asked for; when all are there, the oldest gives way.
    pub half_open: usize,
    /// How long a half-open connection counts, if nobody releases it.
    pub half_open_for: Span,
    /// Handshakes without a cookie. Beyond that one is asked for.
    pub unproven: Pace,
    /// Handshakes with a cookie. Beyond that nothing is calculated.
    pub proven: Pace,
    /// Either of them for one network: an IPv4 address, or the first 64 bits of an IPv6 address.
    pub each_network: Pace,
    /// Public keys of which timestamps are remembered, against initiations that are played again.
    pub clients: usize,
    /// How each connection is sealed.
    pub connection: SealConfig,
}

/// What becomes of an initiation.
#[derive(Debug)]
pub enum Answer {
    /// A new connection.
    Accept {
        /// Its seal.
        seal: Box<Seal>,
        /// The SYN.
        segment: Segment<Bytes>,
        /// The half-open connection that has given way to it: the driver drops it.
        evicted: Option<u32>,
    },
    /// It came before: the seal of the connection with this number is to open it.
    Again {
        /// Which.
        number: u32,
    },
    /// A cookie goes back: it is what was appended.
    Reply,
}

impl Listener {
    /// A listener with this name. `seed` is secret and used nowhere else.
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

    /// What happened so far.
    pub fn tally(&self) -> SealTally {
        self.tally
    }

    /// An initiation came on this path. If it opens a connection, that will have `number`; if a cookie goes back, it is appended to
    /// `out`.
    ///
    /// # Errors
    /// If it is to be ignored. The tally has counted why.
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
            Some(Datagram::Response { .. } | Datagram::Cookie { .. } | Datagram::Data { .. }) => {
                Err(Refusal::Unexpected)
            }
            None => Err(Refusal::Malformed),
        };
        match &answer {
            Ok(_) => self.tally.opened += 1,
            Err(refusal) => self.tally.count(*refusal),
        }
        answer
    }

    /// A connection is half open no more: its seal is established, or it is gone.
    pub fn release(&mut self, number: u32) {
        self.half_open.remove(number & NUMBER_MAX);
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

    /// Takes the tokens of a handshake, and whether there are any. If not, a cookie gives more.
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

    /// Nothing has come of a half-open connection: its initiation may come again.
    fn forget(&mut self, number: u32) {
        if let Some(initiated) = self.half_open.remove(number) {
            self.timestamps.remove(&initiated);
        }
    }
}

impl Default for ListenerConfig {
    fn default() -> Self {
        Self {
            // A seal that is half open takes some 2 kB.
            half_open: 4096,
            // The SYN goes out again after 1, 3, 7, 15 and 31 s: who has not made it by then begins anew.
            half_open_for: Span::from_secs(60),
            // A handshake takes 0.2 ms: a tenth of a core for whoever comes,
            unproven: Pace { per_second: 500, burst: 500 },
            // and 40 % for those who can be told apart. Half-open places last for 2 s then, longer than a handshake takes.
            proven: Pace { per_second: 2000, burst: 2000 },
            // WireGuard's pace; a page full of connections at once.
            each_network: Pace { per_second: 20, burst: 50 },
            // 1 kB each at most.
            clients: 8192,
            connection: SealConfig::default(),
        }
    }
}
