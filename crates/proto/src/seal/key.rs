//! Static keys, which identify an end.

use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::x25519;

/// The public key of an end (X25519), which is its identity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey(pub [u8; 32]);

/// The secret key of an end: any 32 secret bytes. They are wiped from memory when dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct SecretKey {
    secret: [u8; 32],
    /// Its public key, which each handshake needs.
    public: [u8; 32],
}

impl SecretKey {
    /// The key with these bytes.
    pub fn new(secret: [u8; 32]) -> Self {
        Self { secret, public: x25519::public(secret) }
    }

    /// The public key of this secret key.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.public)
    }

    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.secret
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(..)")
    }
}
