//! Noise_IK_25519_ChaChaPoly_BLAKE2s by `snow`, with the caller's randomness, and the hashes around it.

mod pair;

use std::fmt;

use snow::params::{CipherChoice, DHChoice, HashChoice, NoiseParams};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState};
use zeroize::{Zeroize, ZeroizeOnDrop};

use self::pair::Pair;
use super::key::{PublicKey, SecretKey};

/// Bytes of an authentication tag.
pub(super) const TAG: usize = 16;
/// Bytes of the initiator's message without its payload: an ephemeral key, a sealed static key, a tag.
pub(super) const MESSAGE_1: usize = 32 + 32 + TAG + TAG;
/// Bytes of the responder's message without its payload: an ephemeral key and a tag.
pub(super) const MESSAGE_2: usize = 32 + TAG;

/// A handshake in progress.
pub(super) struct Handshake(Box<HandshakeState>);

/// A generator seeded with 32 secret bytes. Its past output cannot be computed from its current state.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Entropy([u8; 32]);

impl Entropy {
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        Self(seed)
    }

    pub(crate) fn draw(&mut self) -> [u8; 32] {
        let drawn = mac(&self.0, &[b"draw"]);
        self.0 = mac(&self.0, &[b"next"]);
        drawn
    }
}

impl Handshake {
    /// Begins a handshake and appends its first message to `out`.
    pub(super) fn initiate(
        secret: &SecretKey,
        remote: &PublicKey,
        prologue: &[u8],
        ephemeral: [u8; 32],
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Self, snow::Error> {
        let builder = builder(secret, prologue, ephemeral)?.remote_public_key(&remote.0)?;
        let mut state = builder.build_initiator()?;
        append(MESSAGE_1 + payload.len(), out, |space| state.write_message(payload, space))?;
        Ok(Self(Box::new(state)))
    }

    /// Reads a first message. Returns its payload and the initiator's key.
    pub(super) fn receive(
        secret: &SecretKey,
        prologue: &[u8],
        ephemeral: [u8; 32],
        message: &[u8],
    ) -> Result<(Self, PublicKey, Vec<u8>), snow::Error> {
        let mut state = builder(secret, prologue, ephemeral)?.build_responder()?;
        let payload = read(&mut state, message)?;
        let remote = state.get_remote_static().and_then(|key| key.try_into().ok()).ok_or(snow::Error::Dh)?;
        Ok((Self(Box::new(state)), PublicKey(remote), payload))
    }

    /// Appends the second message to `out`. The keys are then available.
    pub(super) fn respond(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), snow::Error> {
        append(MESSAGE_2 + payload.len(), out, |space| self.0.write_message(payload, space))
    }

    /// Reads the second message. Returns its payload. If the message is not authentic, nothing changes.
    pub(super) fn conclude(&mut self, message: &[u8]) -> Result<Vec<u8>, snow::Error> {
        read(&mut self.0, message)
    }

    /// The keys with which this end seals and opens, and the handshake hash.
    pub(super) fn finish(mut self) -> Result<([[u8; 32]; 2], [u8; 32]), snow::Error> {
        if !self.0.is_handshake_finished() {
            return Err(snow::error::StateProblem::HandshakeNotFinished.into());
        }
        let binding = self.0.get_handshake_hash().try_into().map_err(|_| snow::Error::Input)?;
        let (there, back) = self.0.dangerously_get_raw_split();
        Ok((if self.0.is_initiator() { [there, back] } else { [back, there] }, binding))
    }
}

fn builder<'a>(secret: &'a SecretKey, prologue: &'a [u8], ephemeral: [u8; 32]) -> Result<Builder<'a>, snow::Error> {
    let params: NoiseParams = "Noise_IK_25519_ChaChaPoly_BLAKE2s".parse()?;
    Builder::with_resolver(params, Box::new(Resolver { secret: secret.clone(), ephemeral }))
        .local_private_key(secret.bytes())?
        .prologue(prologue)
}

fn append(
    len: usize,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut [u8]) -> Result<usize, snow::Error>,
) -> Result<(), snow::Error> {
    let start = out.len();
    out.resize(start + len, 0);
    let written = write(&mut out[start..]);
    out.truncate(start + written.as_ref().copied().unwrap_or(0));
    written.map(|_| ())
}

fn read(state: &mut HandshakeState, message: &[u8]) -> Result<Vec<u8>, snow::Error> {
    let mut payload = vec![0; message.len()];
    let len = state.read_message(message, &mut payload)?;
    payload.truncate(len);
    Ok(payload)
}

/// `snow`'s own primitives but for X25519, with the caller's ephemeral key.
struct Resolver {
    secret: SecretKey,
    ephemeral: [u8; 32],
}

/// Random bytes that can be taken once.
struct Once(Option<[u8; 32]>);

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Once(Some(self.ephemeral))))
    }

    fn resolve_dh(&self, _: &DHChoice) -> Option<Box<dyn Dh>> {
        Some(Box::new(Pair::of(&self.secret)))
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

impl Random for Once {
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), snow::Error> {
        let bytes = self.0.take().filter(|bytes| bytes.len() == out.len()).ok_or(snow::Error::Rng)?;
        out.copy_from_slice(&bytes);
        Ok(())
    }
}

/// BLAKE2s of the concatenated parts.
pub(super) fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = blake2s();
    parts.iter().for_each(|part| hash.input(part));
    let mut out = [0; 32];
    hash.result(&mut out);
    out
}

/// HMAC ([rfc-2104]) with BLAKE2s of the concatenated parts.
pub(super) fn mac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let pad = |with: u8| {
        let mut block = [with; BLOCK];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let mut inner = blake2s();
    inner.input(&pad(0x36));
    parts.iter().for_each(|part| inner.input(part));
    let mut out = [0; 32];
    inner.result(&mut out);
    hash(&[&pad(0x5c), &out])
}

/// Whether two tags are equal, in constant time.
pub(super) fn is_equal(one: &[u8; TAG], other: &[u8; TAG]) -> bool {
    one.iter().zip(other).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
}

fn blake2s() -> Box<dyn Hash> {
    DefaultResolver.resolve_hash(&HashChoice::Blake2s).expect("the feature is on")
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handshake(..)")
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy(..)")
    }
}

/// The block size of BLAKE2s in bytes.
const BLOCK: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    }

    /// [rfc-7693] appendix B, and [rfc-7748] sec. 6.1.
    #[test]
    fn the_primitives_are_those_of_their_rfcs() {
        let abc = hash(&[b"a", b"", b"bc"]);
        assert_eq!(abc.to_vec(), hex("508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982"));
        let secret = hex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
        let expected = hex("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
        assert_eq!(SecretKey::new(secret.try_into().unwrap()).public().0.to_vec(), expected);
    }

    #[test]
    fn the_mac_is_that_of_noise() {
        let (key, mut expected) = ([7; 32], [0; 32]);
        blake2s().hmac(&key, b"some bytes", &mut expected);
        assert_eq!(mac(&key, &[b"some ", b"bytes"]), expected);
    }

    #[test]
    fn drawn_entropy_does_not_repeat() {
        let mut entropy = Entropy::new([1; 32]);
        let drawn = [entropy.draw(), entropy.draw(), entropy.draw()];
        assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2] && drawn[0] != drawn[2]);
        assert_eq!(Once(Some([5; 32])).try_fill_bytes(&mut [0; 31]).ok(), None);
    }
}
