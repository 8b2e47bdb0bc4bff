//! Stateless resets ([rfc-9000] sec. 10.3): how a responder that has lost its connections says so.
//!
//! ```text
//! initiator                                responder
//!           <── response: token of its index and of this address ──
//!                                          (it restarts with the same static key)
//!           ── data for the index ────────────────────────>
//!           <───────────────────── reset: index, token ──
//! ```
//!
//! The token follows from the responder's static secret key, the index, and the address to which it is sent. So the responder needs
//! no memory for it, and nobody else can compute it. An index may be used again for another initiator, which knows the token of its
//! own address only.
//!
//! Only datagrams with data are answered, each by a shorter one, and resets are not: so two ends never answer each other's resets.

use anabranch_units::Time;

use super::buckets::{Buckets, Network, Pace};
use super::datagram::{DataHeader, RESET, begin};
use super::noise::{TAG, mac};
use super::{Datagram, SecretKey};
use crate::path::Address;

/// Derives tokens, and limits the resets that an endpoint sends and checks.
#[derive(Debug)]
pub struct Resets {
    key: ResetKey,
    sent: Limit,
    checked: Limit,
}

/// The key of tokens.
#[derive(Clone)]
pub(super) struct ResetKey([u8; 32]);

/// A token that the responder has given.
pub(super) type Token = [u8; TAG];

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

impl Resets {
    /// Resets of the endpoint with this static key.
    pub fn new(secret: &SecretKey) -> Self {
        Self { key: ResetKey::new(secret), sent: Limit::new(SENT, EACH), checked: Limit::new(CHECKED, EACH) }
    }

    /// Appends the reset that answers a datagram with an unknown index, which came from `address`. Returns whether there is one:
    /// only data is answered, and only so often.
    pub fn answer(&mut self, now: Time, address: Address, datagram: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(Datagram::Data(DataHeader { receiver, .. })) = Datagram::parse(datagram) else { return false };
        if !self.sent.take(now, address) {
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

/// Separates this use of the static key.
const LABEL: &[u8] = b"anabranch reset";
