//! The data ciphers, implemented by `ring` and `aegis`, and their negotiation.

use std::fmt;
use std::hint::black_box;

use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::aegis;
use super::noise::{TAG, mac};

/// An authenticated cipher (AEAD), with its number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Cipher {
    /// [rfc-8439]: fast on every machine. Every end supports it.
    ChaCha20Poly1305 = 1,
    /// [rfc-5116]: several times as fast on machines with AES instructions, and slow on others.
    Aes128Gcm = 2,
    /// AES with a 256-bit key; a third slower than 128 bits.
    Aes256Gcm = 3,
    /// [aegis-aead]: about half the time of AES-128-GCM, on machines with AES instructions. Built for x86-64 and AArch64 only.
    Aegis128L = 4,
}

/// The ciphers of an end in order of preference. [`Cipher::ChaCha20Poly1305`] is always among them.
///
/// The responder takes the first cipher of the initiator's list that it supports. So an end lists only ciphers that are fast on
/// its machine, and AES is used if it is fast on both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CipherPreference {
    ciphers: [Cipher; Cipher::ALL.len()],
    count: usize,
}

/// The key of one direction.
pub(super) enum Key {
    Ring(Box<LessSafeKey>),
    Aegis(Box<aegis::Key>),
}

/// The use limits of a key ([rfc-9001] sec. 6.6 and appendix B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UseLimits {
    /// Datagrams that may be sealed with it.
    pub(super) messages: u64,
    /// Datagrams after which it is replaced.
    pub(super) rekey_after_messages: u64,
    /// Failed openings after which it opens nothing more.
    pub(super) forgeries: u64,
}

impl Cipher {
    /// Every cipher, by number.
    pub const ALL: [Self; 4] = [Self::ChaCha20Poly1305, Self::Aes128Gcm, Self::Aes256Gcm, Self::Aegis128L];

    /// Whether it is built for this kind of machine.
    pub const fn is_built(self) -> bool {
        !matches!(self, Self::Aegis128L) || aegis::IS_BUILT
    }

    /// Its name, as IANA's registry of AEAD algorithms has it, in small letters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ChaCha20Poly1305 => "chacha20-poly1305",
            Self::Aes128Gcm => "aes-128-gcm",
            Self::Aes256Gcm => "aes-256-gcm",
            Self::Aegis128L => "aegis-128l",
        }
    }

    /// The cipher with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cipher| cipher.name() == name)
    }

    pub(super) const fn number(self) -> u8 {
        self as u8
    }

    pub(super) fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|cipher| cipher.number() == number)
    }

    pub(super) const fn limits(self) -> UseLimits {
        match self {
            // No machine sends that many datagrams. The nonce would allow more. For AEGIS, [aegis-aead] sec. 6 allows more forgeries, too.
            Self::ChaCha20Poly1305 | Self::Aegis128L => {
                UseLimits { messages: 1 << 62, rekey_after_messages: 1 << 60, forgeries: 1 << 36 }
            }
            // Half of the limit is reserved for the time of a replacement: 4 s at a million datagrams per second.
            Self::Aes128Gcm | Self::Aes256Gcm => {
                UseLimits { messages: 1 << 23, rekey_after_messages: 1 << 22, forgeries: 1 << 52 }
            }
        }
    }

    /// The implementation by `ring`, if it has one.
    fn algorithm(self) -> Option<&'static Algorithm> {
        match self {
            Self::ChaCha20Poly1305 => Some(&CHACHA20_POLY1305),
            Self::Aes128Gcm => Some(&AES_128_GCM),
            Self::Aes256Gcm => Some(&AES_256_GCM),
            Self::Aegis128L => None,
        }
    }
}

impl CipherPreference {
    /// These ciphers, the preferred one first. Duplicates and ciphers that are not built are dropped; ChaCha20-Poly1305 is appended if it is
    /// missing.
    pub fn new(named: &[Cipher]) -> Self {
        let mut preference = Self { ciphers: Cipher::ALL, count: 0 };
        for &cipher in named.iter().chain(&[Cipher::ChaCha20Poly1305]) {
            if cipher.is_built() && !preference.has(cipher) {
                preference.ciphers[preference.count] = cipher;
                preference.count += 1;
            }
        }
        preference
    }

    /// The preference of a machine with instructions for AES and carry-less multiplication: `aes` and `pclmulqdq` on x86-64,
    /// `aes` and `pmull` on AArch64. The caller must test the machine. AEGIS is taken only if the initiator prefers it: fewer have studied it.
    pub fn fast_aes() -> Self {
        Self::new(&[Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::Aegis128L])
    }

    /// The same ciphers with this one in front.
    #[must_use]
    pub fn preferring(&self, cipher: Cipher) -> Self {
        Self::new(&[&[cipher], self.ciphers()].concat())
    }

    /// The ciphers, the preferred one first.
    pub fn ciphers(&self) -> &[Cipher] {
        &self.ciphers[..self.count]
    }

    /// Whether this cipher is among them.
    pub fn has(&self, cipher: Cipher) -> bool {
        self.ciphers().contains(&cipher)
    }
}

/// For any machine: ChaCha20-Poly1305 alone.
impl Default for CipherPreference {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl Key {
    /// The key for this cipher, derived from a key of the handshake by one block of HKDF-Expand ([rfc-5869] sec. 2.3).
    pub(super) fn derive(cipher: Cipher, split: &[u8; 32]) -> Self {
        let mut block = mac(split, &[LABEL, &[cipher.number(), 1]]);
        let key = Self::new(cipher, &block);
        block.zeroize();
        key
    }

    /// The key that these bytes begin with.
    fn new(cipher: Cipher, bytes: &[u8; 32]) -> Self {
        match cipher.algorithm() {
            Some(algorithm) => Self::Ring(Box::new(expanded(algorithm, bytes))),
            None => Self::Aegis(Box::new(aegis::Key::new(bytes))),
        }
    }

    /// Encrypts in place. The caller must never reuse a nonce.
    pub(super) fn seal(&self, nonce: [u8; 12], header: &[u8], plain: &mut [u8]) -> [u8; TAG] {
        match self {
            Self::Ring(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let tag = key.seal_in_place_separate_tag(nonce, Aad::from(header), plain);
                let tag = tag.expect("a datagram is shorter than what a cipher takes");
                tag.as_ref().try_into().expect("a tag has 16 bytes")
            }
            Self::Aegis(key) => key.seal(nonce, header, plain),
        }
    }

    /// Decrypts in place data that ends with its tag. If it is not authentic, the content is destroyed.
    pub(super) fn open(&self, nonce: [u8; 12], header: &[u8], sealed: &mut [u8]) -> bool {
        match self {
            Self::Ring(key) => {
                key.open_in_place(Nonce::assume_unique_for_key(nonce), Aad::from(header), sealed).is_ok()
            }
            Self::Aegis(key) => key.open(nonce, header, sealed),
        }
    }
}

/// `ring` does not wipe a key when it is dropped, so this overwrites the key with another one.
impl Zeroize for Key {
    fn zeroize(&mut self) {
        match self {
            Self::Ring(key) => {
                **key = expanded(&AES_256_GCM, &[0; 32]);
                black_box(key);
            }
            Self::Aegis(key) => key.zeroize(),
        }
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl ZeroizeOnDrop for Key {}

fn expanded(algorithm: &'static Algorithm, bytes: &[u8; 32]) -> LessSafeKey {
    let key = UnboundKey::new(algorithm, &bytes[..algorithm.key_len()]);
    LessSafeKey::new(key.expect("it is as long as it has to be"))
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// The label of the key derivation.
const LABEL: &[u8] = b"anabranch data key";

#[cfg(test)]
mod tests {
    use super::*;

    fn hex<const N: usize>(text: &str) -> [u8; N] {
        std::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
    }

    /// [rfc-8439] sec. 2.8.2, and test case 4 of the paper on GCM that [rfc-5116] refers to.
    #[test]
    fn the_ciphers_are_those_of_their_specifications() {
        let text = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.";
        let key = hex("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f");
        let key = Key::new(Cipher::ChaCha20Poly1305, &key);
        let mut plain = text.to_vec();
        let tag = key.seal(hex("070000004041424344454647"), &hex::<12>("50515253c0c1c2c3c4c5c6c7"), &mut plain);
        assert_eq!(plain[..16], hex::<16>("d31a8d34648e60db7b86afbc53ef7ec2"));
        assert_eq!(tag, hex("1ae10b594f09e26a7e902ecbd0600691"));

        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&hex::<16>("feffe9928665731c6d6a8f9467308308"));
        let key = Key::new(Cipher::Aes128Gcm, &bytes);
        let mut plain = hex::<60>(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        );
        let header = hex::<20>("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let tag = key.seal(hex("cafebabefacedbaddecaf888"), &header, &mut plain);
        assert_eq!(plain[..16], hex::<16>("42831ec2217774244b7221b784d0d49c"));
        assert_eq!(tag, hex("5bc94fbc3221a5db94fae95ae7121a47"));
        let mut sealed = [&plain[..], &tag].concat();
        assert!(key.open(hex("cafebabefacedbaddecaf888"), &header, &mut sealed));
        assert_eq!(sealed[..8], hex::<8>("d9313225f88406e5"));
    }

    /// A wiped key is all zeros: it seals as test case 13 of the specification of GCM says.
    #[test]
    fn wiped_key_is_all_zeros() {
        for cipher in [Cipher::ChaCha20Poly1305, Cipher::Aes128Gcm, Cipher::Aes256Gcm] {
            let mut key = Key::new(cipher, &[7; 32]);
            key.zeroize();
            assert_eq!(key.seal([0; 12], &[], &mut []), hex("530f8afbc74536b9a963b4f1c4cb738b"), "{cipher:?}");
        }
    }

    #[test]
    fn chacha_is_always_among_them_and_nothing_is_twice() {
        use Cipher::{Aegis128L, Aes128Gcm, Aes256Gcm, ChaCha20Poly1305};
        assert_eq!(CipherPreference::default().ciphers(), [ChaCha20Poly1305]);
        let all = [ChaCha20Poly1305, Aes256Gcm, ChaCha20Poly1305, Aes256Gcm, Aes128Gcm];
        assert_eq!(CipherPreference::new(&all).ciphers(), [ChaCha20Poly1305, Aes256Gcm, Aes128Gcm]);
        let aegis = if Aegis128L.is_built() { &[Aegis128L][..] } else { &[] };
        let fast = CipherPreference::fast_aes();
        assert_eq!(fast.ciphers(), [&[Aes128Gcm, Aes256Gcm], aegis, &[ChaCha20Poly1305]].concat());
        let preferring = fast.preferring(Aegis128L);
        assert_eq!(preferring.ciphers(), [aegis, &[Aes128Gcm, Aes256Gcm, ChaCha20Poly1305]].concat());
    }

    /// [rfc-9001] sec. 6.6.
    #[test]
    fn no_key_is_used_more_often_than_it_may() {
        for cipher in Cipher::ALL {
            let limits = cipher.limits();
            assert!(limits.rekey_after_messages < limits.messages);
            let is_gcm = matches!(cipher, Cipher::Aes128Gcm | Cipher::Aes256Gcm);
            assert_eq!(limits.forgeries, if is_gcm { 1 << 52 } else { 1 << 36 });
            assert!(!is_gcm || limits.messages == 1 << 23);
        }
    }
}
