//! X25519 ([rfc-7748]). `snow` has it, too, but multiplies the base point without tables.

#[cfg(fuzzing)]
mod remembered;

use curve25519_dalek::montgomery::MontgomeryPoint;

/// The 32 bytes of a secret or a public key.
pub(super) type Key = [u8; 32];

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

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7748 sec. 5.2: the first vector, and the first iterations of the second.
    #[test]
    fn product_is_that_of_rfc_7748() {
        let scalar = bytes("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4");
        let point = bytes("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c");
        let result = bytes("c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552");
        assert_eq!(product(scalar, Some(point)), result);
        let (mut k, mut u) = (BASE, BASE);
        for round in 1..=1000 {
            (k, u) = (product(k, Some(u)), k);
            match round {
                1 => assert_eq!(k, bytes("422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079")),
                1000 => assert_eq!(k, bytes("684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51")),
                _ => {}
            }
        }
    }

    /// RFC 7748 sec. 6.1: Bob's public key, by the tables of the base point and without them, and the secret that he has with Alice.
    #[test]
    fn public_key_by_tables_is_that_of_rfc_7748() {
        let bob = bytes("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
        let public_bob = bytes("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
        assert_eq!([public(bob), product(bob, Some(BASE))], [public_bob; 2]);
        let public_alice = bytes("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
        let both = bytes("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
        assert_eq!(product(bob, Some(public_alice)), both);
    }

    fn bytes(hex: &str) -> Key {
        std::array::from_fn(|index| u8::from_str_radix(&hex[2 * index..2 * index + 2], 16).unwrap())
    }

    /// The base point.
    const BASE: Key = {
        let mut point = [0; 32];
        point[0] = 9;
        point
    };
}
