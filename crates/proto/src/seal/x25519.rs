//! X25519 ([rfc-7748]). `snow` has it, too, but multiplies the base point without tables.

#[cfg(fuzzing)]
mod remembered;

use curve25519_dalek::montgomery::MontgomeryPoint;

/// The 32 bytes of a secret or a public key.
pub(super) type Key = [u8; 32];

/// The public key of a secret key.
pub(super) fn public(secret: Key) -> Key {
    product(secret, None)
}

/// The product of a secret key with a public key, or with the base point.
#[cfg(not(fuzzing))]
pub(super) fn product(secret: Key, public: Option<Key>) -> Key {
    calculated(secret, public)
}

/// The same, remembered.
#[cfg(fuzzing)]
pub(super) fn product(secret: Key, public: Option<Key>) -> Key {
    remembered::product((secret, public), || calculated(secret, public))
}

fn calculated(secret: Key, public: Option<Key>) -> Key {
    match public {
        Some(public) => MontgomeryPoint(public).mul_clamped(secret).to_bytes(),
        None => MontgomeryPoint::mul_base_clamped(secret).to_bytes(),
    }
}
