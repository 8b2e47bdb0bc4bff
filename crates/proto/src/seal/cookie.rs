//! What an initiator proves before the responder computes a handshake: that it knows the responder's key (mac1) and, under load,
//! that it receives datagrams at its address (mac2, with a cookie). The responder stores nothing for this.

use anabranch_units::{Span, Time};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::key::PublicKey;
use super::noise::{Entropy, TAG, hash, is_equal, mac};
use crate::path::Address;

/// The responder's current secret for cookies.
#[derive(Debug)]
pub(super) struct CookieJar {
    secrets: [Secret; 2],
    changed: Time,
}

/// Bytes that are never printed, and wiped when dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct Secret([u8; 32]);

impl CookieJar {
    pub(super) fn new(now: Time, entropy: &mut Entropy) -> Self {
        Self { secrets: [Secret(entropy.draw()), Secret(entropy.draw())], changed: now }
    }

    /// A cookie for this address.
    pub(super) fn make(&mut self, now: Time, address: Address, entropy: &mut Entropy) -> [u8; TAG] {
        self.rotate(now, entropy);
        cookie(&self.secrets[0], address)
    }

    /// Whether mac2 was made with a valid cookie for this address.
    pub(super) fn is_right(
        &mut self,
        now: Time,
        address: Address,
        covered: &[u8],
        mac2: &[u8; TAG],
        entropy: &mut Entropy,
    ) -> bool {
        self.rotate(now, entropy);
        self.secrets.iter().any(|secret| is_equal(&with_cookie(&cookie(secret, address), covered), mac2))
    }

    fn rotate(&mut self, now: Time, entropy: &mut Entropy) {
        let age = now.since(self.changed);
        if age >= LIFETIME {
            // After two lifetimes the latest secret is too old, too.
            let before = if age >= LIFETIME.saturating_mul(2) { entropy.draw() } else { self.secrets[0].0 };
            self.secrets = [Secret(entropy.draw()), Secret(before)];
            self.changed = now;
        }
    }
}

/// mac1: over all bytes before it, with a key derived from the responder's public key.
pub(super) fn mac1(responder: &PublicKey, covered: &[u8]) -> [u8; TAG] {
    first(mac(&hash(&[MAC1, &responder.0]), &[covered]))
}

/// mac2: over all bytes before it, with the cookie.
pub(super) fn with_cookie(cookie: &[u8; TAG], covered: &[u8]) -> [u8; TAG] {
    let mut key = [0; 32];
    key[..TAG].copy_from_slice(cookie);
    first(mac(&key, &[covered]))
}

/// The cookie's mac. It proves that the sender of a cookie has seen the initiation.
pub(super) fn cookie_mac(responder: &PublicKey, mac1: &[u8; TAG], cookie: &[u8; TAG]) -> [u8; TAG] {
    first(mac(&hash(&[COOKIE, &responder.0]), &[mac1, cookie]))
}

fn cookie(secret: &Secret, address: Address) -> [u8; TAG] {
    first(mac(&secret.0, &[&address.address.to_be_bytes(), &address.port.to_be_bytes()]))
}

fn first(whole: [u8; 32]) -> [u8; TAG] {
    let mut part = [0; TAG];
    part.copy_from_slice(&whole[..TAG]);
    part
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A cookie is valid for one to two lifetimes, as in WireGuard.
pub(super) const LIFETIME: Span = Span::from_secs(120);

/// Labels that separate the uses of a public key.
const MAC1: &[u8] = b"anabranch mac1";
const COOKIE: &[u8] = b"anabranch cookie";
