//! Stateless resets ([rfc-9000] sec. 10.3): how a responder that has lost its connections says so.
//!
//! ```text
//! initiator                                responder
//!           <── response: token of its index and of this address ──
//!           <── token of its index and of another address ──     (after data from there)
//!                                          (it restarts with the same static key)
//!           ── data for the index ────────────────────────>
//!           <───────────────────── reset: index, token ──
//! ```
//!
//! The token follows from the responder's static secret key, the index, and the address to which it is sent. So the responder needs
//! no memory for it, and nobody else can compute it. An index may be used again for another initiator, which knows the token of its
//! own address only. The initiator cannot see that its address has changed, as behind a NAT, so the responder gives the token of each
//! validated address, within the session. Nothing acknowledges it, so it is repeated.
//!
//! Only datagrams with data are answered, each by a shorter one, and resets are not: so two ends never answer each other's resets.

use std::sync::{Arc, Mutex, PoisonError};

use anabranch_units::{Span, Time};

use super::buckets::{Buckets, Network, Pace};
use super::datagram::{DataHeader, RESET, begin};
use super::noise::{TAG, is_equal, mac};
use super::{Datagram, SecretKey};
use crate::path::Address;

/// Derives tokens, and limits the resets that an endpoint sends and checks.
#[derive(Debug)]
pub struct Resets {
    key: ResetKey,
    /// All shards of a socket together.
    sent: Arc<Mutex<Limit>>,
    checked: Limit,
}

/// The key of tokens.
#[derive(Clone)]
pub(super) struct ResetKey([u8; 32]);

/// A token that the responder has given.
pub(super) type Token = [u8; TAG];

/// The tokens of the initiator's addresses that the responder has given or is to give, for the current session.
#[derive(Debug, Default)]
pub(super) struct Given {
    gifts: Vec<Gift>,
    /// The address whose token is to be sent now.
    due: Option<Address>,
}

#[derive(Debug)]
struct Gift {
    address: Address,
    /// How often the token was sent, and when the next time is.
    sent: u32,
    at: Time,
}

/// The tokens that the initiator was given for the current session.
#[derive(Debug, Default)]
pub(super) struct Tokens(Vec<Token>);

#[derive(Debug)]
struct Limit {
    all: Buckets,
    each: Buckets,
}

impl Limit {
    fn new(all: Pace, each: Pace) -> Self {
        Self { all: Buckets::new(all), each: Buckets::new(each) }
    }

    fn take(&mut self, now: Time, address: Address) -> bool {
        self.all.has(now, Network::EVERYBODY)
            && self.each.take(now, Network::of(address.address))
            && self.all.take(now, Network::EVERYBODY)
    }
}

impl ResetKey {
    pub(super) fn new(secret: &SecretKey) -> Self {
        Self(mac(secret.bytes(), &[LABEL]))
    }

    /// The token for datagrams to `index` that come from `address`.
    pub(super) fn token(&self, index: u32, address: Address) -> Token {
        let whole = mac(&self.0, &[&index.to_be_bytes(), &address.address.to_be_bytes(), &address.port.to_be_bytes()]);
        *whole.first_chunk().expect("a hash is longer than a tag")
    }
}

/// The token at the beginning of these bytes; `None` if there is none, as from a responder that gives none and pads with zeros.
pub(super) fn token(bytes: &[u8]) -> Option<Token> {
    bytes.first_chunk().copied().filter(|token| *token != [0; TAG])
}

impl Given {
    /// The response, or an answer of rekeying, has the token of this address: its arrival is certain.
    pub(super) fn to(address: Address) -> Self {
        Self { gifts: vec![Gift { address, sent: SENDINGS, at: Time::NEVER }], due: None }
    }

    /// An authentic datagram arrived from this validated address.
    pub(super) fn on_heard(&mut self, now: Time, address: Address) {
        let gift = match self.gifts.iter_mut().find(|gift| gift.address == address) {
            Some(gift) if gift.at > now => return,
            Some(gift) => gift,
            None => {
                if self.gifts.len() == ADDRESSES {
                    self.gifts.remove(0);
                }
                self.gifts.push(Gift { address, sent: 0, at: now });
                self.gifts.last_mut().expect("it was pushed")
            }
        };
        gift.sent += 1;
        gift.at = if gift.sent < SENDINGS { now.saturating_add(SENT_EACH) } else { Time::NEVER };
        self.due = Some(address);
    }

    /// Takes the address whose token is to be sent.
    pub(super) fn take_due(&mut self) -> Option<Address> {
        self.due.take()
    }
}

impl Tokens {
    /// The tokens of a new session.
    pub(super) fn new(first: Option<Token>) -> Self {
        Self(first.into_iter().collect())
    }

    /// Another token was given.
    pub(super) fn add(&mut self, token: Token) {
        if self.has(&token) {
            return;
        }
        if self.0.len() == ADDRESSES {
            self.0.remove(0);
        }
        self.0.push(token);
    }

    pub(super) fn has(&self, token: &Token) -> bool {
        self.0.iter().any(|known| is_equal(known, token))
    }
}

impl Resets {
    /// Resets of the endpoint with this static key.
    pub fn new(secret: &SecretKey) -> Self {
        let sent = Arc::new(Mutex::new(Limit::new(SENT, EACH)));
        Self { key: ResetKey::new(secret), sent, checked: Limit::new(CHECKED, EACH) }
    }

    /// From now on this shard limits the resets that it sends together with another.
    pub(crate) fn join(&mut self, first: &Self) {
        self.sent = Arc::clone(&first.sent);
    }

    /// Appends the reset that answers a datagram with an unknown index, which came from `address`. Returns whether there is one:
    /// only data is answered, and only so often.
    pub fn answer(&mut self, now: Time, address: Address, datagram: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(Datagram::Data(DataHeader { receiver, .. })) = Datagram::parse(datagram) else { return false };
        // Nothing panics while it is locked.
        if !self.sent.lock().unwrap_or_else(PoisonError::into_inner).take(now, address) {
            return false;
        }
        begin(RESET, receiver, out);
        out.extend(self.key.token(receiver, address));
        true
    }

    /// Whether a reset from this address may be compared with the tokens of all connections, which takes time.
    pub fn may_check(&mut self, now: Time, address: Address) -> bool {
        self.checked.take(now, address)
    }
}

impl std::fmt::Debug for ResetKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ResetKey(..)")
    }
}

/// A peer's connections need one reset each, and repeat their datagrams if it was lost.
const EACH: Pace = Pace { per_second: 20, burst: 50 };

/// A reset takes 2 us. All connections of an endpoint are told within a second or two.
const SENT: Pace = Pace { per_second: 1000, burst: 1000 };

/// A check compares an index for each connection: at most 2 ms a second with a thousand connections.
const CHECKED: Pace = Pace { per_second: 1000, burst: 1000 };

/// The addresses of an initiator for which tokens are kept, at both ends: as many as the paths of a connection by default.
const ADDRESSES: usize = 8;

/// With one loss in ten, all are lost in one of a thousand cases.
const SENDINGS: u32 = 3;
const SENT_EACH: Span = Span::from_secs(1);

/// Separates this use of the static key.
const LABEL: &[u8] = b"anabranch reset";
