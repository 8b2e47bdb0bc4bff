//! What stands before all connections of a socket: it decides for whom to calculate.
//!
//! In this order, the cheapest first: mac1 (two hashes), whether the initiation is known, under load mac2, then Noise (four
//! multiplications on the curve). It keeps nothing for a peer whose initiation has not been authenticated.

use std::collections::BTreeMap;

use anabranch_units::{NANO, Span, Time};
use bytes::Bytes;

use super::cookie::{CookieJar, cookie_mac, mac1};
use super::datagram::{COOKIE, Datagram, Initiation, begin};
use super::noise::{Entropy, Handshake, is_equal};
use super::{
    Limits, NUMBER_MAX, PublicKey, Refusal, ResponderParts, Seal, SealTally, SecretKey, prologue, read_segment,
};
use crate::path::FourTuple;
use crate::segment::{Flags, Segment};

/// Answers initiations.
#[derive(Debug)]
pub struct Listener {
    secret: SecretKey,
    public: PublicKey,
    limits: ListenerLimits,
    pub(super) entropy: Entropy,
    cookies: CookieJar,
    pending: Pending,
    /// Handshakes that may be calculated before a cookie is asked for, and since when.
    budget: u32,
    filled: Time,
    tally: SealTally,
}

/// How much a listener takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerLimits {
    /// Connections that are half open at a time. From half of them on a cookie is asked for.
    pub half_open: usize,
    /// How long a half-open connection counts, if nobody releases it.
    pub half_open_for: Span,
    /// Handshakes a second, and at once, beyond which a cookie is asked for.
    pub handshakes_per_second: u32,
    /// Those of each connection.
    pub connection: Limits,
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
    },
    /// It came before: the seal of the connection with this number is to open it.
    Again {
        /// Which.
        number: u32,
    },
    /// A cookie goes back: it is what was appended.
    Reply,
}

/// Connections that are half open. Each is in all three maps.
#[derive(Debug, Default)]
struct Pending {
    by_age: BTreeMap<(Time, u32), [u8; 32]>,
    by_number: BTreeMap<u32, Time>,
    by_ephemeral: BTreeMap<[u8; 32], u32>,
}

impl Listener {
    /// A listener with this name. `seed` is secret and used nowhere else.
    pub fn new(now: Time, secret: SecretKey, limits: ListenerLimits, seed: [u8; 32]) -> Self {
        let mut entropy = Entropy::new(seed);
        Self {
            public: secret.public(),
            secret,
            cookies: CookieJar::new(now, &mut entropy),
            entropy,
            pending: Pending::default(),
            budget: limits.handshakes_per_second,
            filled: now,
            limits,
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
        self.pending.remove(number & NUMBER_MAX);
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
        self.pending.expire(now, self.limits.half_open_for);
        if let Some(&number) = self.pending.by_ephemeral.get(&ephemeral) {
            return Ok(Answer::Again { number });
        }
        let is_validated =
            mac2 != [0; 16] && self.cookies.is_right(now, path.remote, before_mac2, &mac2, &mut self.entropy);
        if !is_validated && self.is_loaded(now) {
            let cookie = self.cookies.make(now, path.remote, &mut self.entropy);
            begin(COOKIE, sender, out);
            out.extend(cookie);
            out.extend(cookie_mac(&self.public, &tag, &cookie));
            return Ok(Answer::Reply);
        }
        if self.pending.by_number.len() >= self.limits.half_open || self.pending.by_number.contains_key(&number) {
            return Err(Refusal::TooMany);
        }
        self.budget = self.budget.saturating_sub(1);
        let received = Handshake::receive(&self.secret, &prologue(sender), self.entropy.draw(), noise);
        let (handshake, remote, plain) = received.map_err(|_| Refusal::Forged)?;
        let segment = read_segment(plain.into())?;
        if !segment.has(Flags::SYN) {
            return Err(Refusal::NoSegment);
        }
        self.pending.insert(now, number, ephemeral);
        let parts = ResponderParts {
            secret: self.secret.clone(),
            remote,
            number,
            limits: self.limits.connection,
            entropy: Entropy::new(self.entropy.draw()),
            path,
            tag: *noise.last_chunk().ok_or(Refusal::Malformed)?,
            len,
            is_validated,
        };
        let seal = Box::new(Seal::responder(parts, handshake, sender, segment.clone()));
        Ok(Answer::Accept { seal, segment })
    }

    /// Whether whoever comes must show that it gets what is sent to its address.
    fn is_loaded(&mut self, now: Time) -> bool {
        let rate = u64::from(self.limits.handshakes_per_second);
        // What has come in since then, in whole handshakes; the rest of the time stays.
        let second = NANO;
        let gained = now.since(self.filled).ticks().saturating_mul(rate) / second;
        if gained > 0 {
            self.budget = gained.saturating_add(self.budget.into()).min(rate) as u32;
            self.filled = now;
        }
        self.budget == 0 || self.pending.by_number.len() >= self.limits.half_open / 2
    }
}

impl Pending {
    fn insert(&mut self, now: Time, number: u32, ephemeral: [u8; 32]) {
        self.by_age.insert((now, number), ephemeral);
        self.by_number.insert(number, now);
        self.by_ephemeral.insert(ephemeral, number);
    }

    fn remove(&mut self, number: u32) {
        if let Some(since) = self.by_number.remove(&number)
            && let Some(ephemeral) = self.by_age.remove(&(since, number))
        {
            self.by_ephemeral.remove(&ephemeral);
        }
    }

    fn expire(&mut self, now: Time, life: Span) {
        while let Some((&(since, number), _)) = self.by_age.first_key_value()
            && now.since(since) >= life
        {
            self.remove(number);
        }
    }
}

impl Default for ListenerLimits {
    fn default() -> Self {
        Self {
            // A seal that is half open takes some 2 kB.
            half_open: 4096,
            // The SYN goes out again after 1, 3, 7, 15 and 31 s: who has not made it by then begins anew.
            half_open_for: Span::from_secs(60),
            // A tenth of what one core can calculate.
            handshakes_per_second: 500,
            connection: Limits::default(),
        }
    }
}
