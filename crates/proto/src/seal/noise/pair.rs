//! A secret key and its public key, as `snow` asks for them. Unlike its own, the static public key is not calculated again for each handshake.

use snow::Error;
use snow::types::{Dh, Random};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::seal::key::SecretKey;
use crate::seal::x25519::{Key, product, public};

/// A secret key and its public key.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(super) struct Pair {
    secret: Key,
    public: Key,
}

impl Pair {
    /// The static keys of an end.
    pub(super) fn of(secret: &SecretKey) -> Self {
        Self { secret: *secret.bytes(), public: secret.public().0 }
    }
}

impl Dh for Pair {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, secret: &[u8]) {
        // Mostly it is the one that is there.
        if self.secret != secret {
            self.secret.copy_from_slice(secret);
            self.public = public(self.secret);
        }
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), Error> {
        rng.try_fill_bytes(&mut self.secret)?;
        self.public = public(self.secret);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &self.secret
    }

    /// Refuses the few public keys for which every secret key yields zero ([rfc-7748] sec. 6.1).
    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let public = public.first_chunk().ok_or(Error::Dh)?;
        out[..32].copy_from_slice(&product(self.secret, Some(*public)));
        if out[..32].iter().fold(0, |any, byte| any | byte) == 0 { Err(Error::Dh) } else { Ok(()) }
    }
}
