//! Unpredictable numbers: the key stream of ChaCha20 ([rfc-8439] sec. 2.4) under a secret of the connection.
//!
//! Known outputs do not reveal earlier or later ones. The engine draws everything that must be unpredictable from it: challenge
//! tokens, segment nonces and the offset of the timestamp clock.

use std::fmt;

use crate::seq::SeqNumber;

/// The secret of one connection, from which all its unpredictable numbers are derived. It must come from the system's random
/// source and be different for every connection.
#[derive(Clone)]
pub struct Secret {
    key: [u8; 32],
    initial: SeqNumber,
    /// The offset of the timestamp clock, if the caller has made it.
    clock: Option<u32>,
}

/// The end of the connection that draws. Two ends with the same secret, as in a simulation, draw different numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Opens = 0,
    Listens = 1,
}

/// A stream of random numbers. Its 2^32 blocks are 256 GB, so it does not end.
#[derive(Clone)]
pub(crate) struct Random {
    key: [u8; 32],
    role: Role,
    /// Blocks made so far.
    blocks: u32,
    block: [u8; BLOCK],
    /// Bytes of the block that have been drawn.
    used: usize,
}

impl Secret {
    /// A secret from 32 random bytes. The initial sequence number is also derived from it.
    pub fn new(seed: [u8; 32]) -> Self {
        // No `Random` uses this nonce.
        let [a, b, c, d, ..] = block(&seed, 0, [u32::MAX; 3]);
        Self { key: seed, initial: SeqNumber(u32::from_le_bytes([a, b, c, d])), clock: None }
    }

    /// A secret from 32 random bytes, with an initial sequence number that the caller has made, as [rfc-6528] asks of a host with more than one
    /// connection.
    pub fn numbered(seed: [u8; 32], initial: SeqNumber) -> Self {
        Self { key: seed, initial, clock: None }
    }

    /// The same with a timestamp clock that has this value at [`Time::ZERO`](anabranch_units::Time::ZERO). A host that uses one value for all connections
    /// with the same ends lets a later one be told from an earlier one ([rfc-7323] sec. 5.4, [rfc-6191]).
    #[must_use]
    pub fn with_clock(self, offset: u32) -> Self {
        Self { clock: Some(offset), ..self }
    }

    /// A secret with a given initial sequence number, for simulations and tests. It is predictable and protects nothing.
    pub fn predictable(initial: SeqNumber) -> Self {
        Self { key: [0; 32], initial, clock: None }
    }

    pub(crate) fn initial(&self) -> SeqNumber {
        self.initial
    }

    pub(crate) fn clock(&self) -> Option<u32> {
        self.clock
    }
}

impl Random {
    pub(crate) fn new(secret: &Secret, role: Role) -> Self {
        Self { key: secret.key, role, blocks: 0, block: [0; BLOCK], used: BLOCK }
    }

    /// The next `N` bytes. If the rest of a block is too short, it is skipped.
    pub(crate) fn draw<const N: usize>(&mut self) -> [u8; N] {
        const { assert!(N <= BLOCK, "a block has all of it") };
        if self.used + N > BLOCK {
            self.refill();
        }
        let mut drawn = [0; N];
        drawn.copy_from_slice(&self.block[self.used..self.used + N]);
        self.used += N;
        drawn
    }

    // Kept apart with what else is rare, it takes 2.1 % fewer instructions of the engine with an ACK for 32.
    #[cold]
    fn refill(&mut self) {
        self.block = block(&self.key, self.blocks, [self.role as u32, 0, 0]);
        self.blocks = self.blocks.wrapping_add(1);
        self.used = 0;
    }
}

/// Does not print the secret.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random")
    }
}

/// The block function of ChaCha20 ([rfc-8439] sec. 2.3).
fn block(key: &[u8; 32], counter: u32, nonce: [u32; 3]) -> [u8; BLOCK] {
    let mut start = [0; 16];
    start[..4].copy_from_slice(&CONSTANTS);
    for (word, bytes) in start[4..12].iter_mut().zip(key.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    start[12] = counter;
    start[13..].copy_from_slice(&nonce);
    let mut state = start;
    for _ in 0..DOUBLE_ROUNDS {
        for [a, b, c, d] in COLUMNS_AND_DIAGONALS {
            state[a] = state[a].wrapping_add(state[b]);
            state[d] = (state[d] ^ state[a]).rotate_left(16);
            state[c] = state[c].wrapping_add(state[d]);
            state[b] = (state[b] ^ state[c]).rotate_left(12);
            state[a] = state[a].wrapping_add(state[b]);
            state[d] = (state[d] ^ state[a]).rotate_left(8);
            state[c] = state[c].wrapping_add(state[d]);
            state[b] = (state[b] ^ state[c]).rotate_left(7);
        }
    }
    let mut bytes = [0; BLOCK];
    for (out, (word, start)) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(state.into_iter().zip(start)) {
        *out = word.wrapping_add(start).to_le_bytes();
    }
    bytes
}

/// Bytes of a block.
const BLOCK: usize = 64;

/// ChaCha20 has 20 rounds.
const DOUBLE_ROUNDS: usize = 10;

/// "expand 32-byte k" as little-endian words.
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// The quarter rounds of a double round ([rfc-8439] sec. 2.3).
const COLUMNS_AND_DIAGONALS: [[usize; 4]; 8] = [
    [0, 4, 8, 12],
    [1, 5, 9, 13],
    [2, 6, 10, 14],
    [3, 7, 11, 15],
    [0, 5, 10, 15],
    [1, 6, 11, 12],
    [2, 7, 8, 13],
    [3, 4, 9, 14],
];

#[cfg(test)]
mod tests {
    use super::*;

    /// [rfc-8439] sec. 2.3.2: the key of the example, counter 1, and its nonce as little-endian words.
    #[test]
    fn a_block_is_that_of_the_rfc() {
        let key = std::array::from_fn(|index| index as u8);
        let block = block(&key, 1, [0x0900_0000, 0x4a00_0000, 0]);
        assert_eq!(
            block[..16],
            [0x10, 0xf1, 0xe7, 0xe4, 0xd1, 0x3b, 0x59, 0x15, 0x50, 0x0f, 0xdd, 0x1f, 0xa3, 0x20, 0x71, 0xc4]
        );
        assert_eq!(
            block[48..],
            [0xb5, 0x12, 0x9c, 0xd1, 0xde, 0x16, 0x4e, 0xb9, 0xcb, 0xd0, 0x83, 0xe8, 0xa2, 0x50, 0x3c, 0x4e]
        );
    }

    #[test]
    fn the_two_ends_of_a_secret_draw_apart_and_nothing_comes_twice() {
        let secret = Secret::new([7; 32]);
        let [mut opens, mut listens] = [Role::Opens, Role::Listens].map(|role| Random::new(&secret, role));
        let mut drawn: Vec<[u8; 8]> = (0..1000).flat_map(|_| [opens.draw(), listens.draw()]).collect();
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 2000);
    }

    #[test]
    fn short_draw_is_skipped() {
        let secret = Secret::predictable(SeqNumber(1));
        let mut random = Random::new(&secret, Role::Opens);
        let first: [u8; 60] = random.draw();
        let second: [u8; 8] = random.draw();
        assert_eq!(first[..], block(&secret.key, 0, [0; 3])[..60]);
        assert_eq!(second[..], block(&secret.key, 1, [0; 3])[..8]);
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", Secret::new([9; 32])), "Secret");
    }
}
