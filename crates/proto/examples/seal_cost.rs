//! The cost of sealing and opening a datagram, including the encoding and decoding of its segment:
//! `cargo run --release -p anabranch-proto --example seal_cost`.
//!
//! Each size is that of a datagram's content, without what the seal adds; the last is an acknowledgement's. For comparison, the last rows are
//! the cipher of `snow`, with the copies of the plain text that its interface needs. All ciphers take turns, so a busy machine affects each alike.
//! The least of many turns counts.

#[path = "../tests/seals/mod.rs"]
mod seals;

use std::time::{Duration, Instant};

use anabranch_proto::Segment;
use anabranch_proto::seal::{Cipher, CipherPreference, Outgoing, Seal};
use anabranch_proto::wire::{Checksum, Ports, decode, encode};
use anabranch_units::Time;
use bytes::{Bytes, BytesMut};
use seals::{PATH, arrived, outgoing, pair, segment};
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Dh, Hash, Random};

/// Datagrams per turn, and the number of turns.
const BATCH: u32 = 32;
const TURNS: u32 = 2000;

/// Messages, datagrams of Ethernet and of jumbo frames, and acknowledgements.
const SIZES: [usize; 4] = [256, 1420, 8900, 52];

struct Row {
    name: String,
    size: usize,
    segment: Segment<Bytes>,
    ends: SealedEnds,
    out: Vec<u8>,
    buffer: BytesMut,
    sealing: Duration,
    opening: Duration,
}

enum SealedEnds {
    Ours(Box<(Seal, Seal)>),
    Snow(Box<Snow>),
}

struct Snow {
    ends: [snow::StatelessTransportState; 2],
    nonce: u64,
    plain: Vec<u8>,
}

impl Snow {
    fn new() -> Self {
        let params = || "Noise_NN_25519_ChaChaPoly_BLAKE2s".parse().expect("it is a name");
        let noise = || snow::Builder::with_resolver(params(), Box::new(Sevens));
        let mut one = noise().build_initiator().expect("it has no keys");
        let mut other = noise().build_responder().expect("it has no keys");
        let (mut message, mut payload) = ([0; 200], [0; 200]);
        let len = one.write_message(&[], &mut message).expect("it begins");
        other.read_message(&message[..len], &mut payload).expect("it reads");
        let len = other.write_message(&[], &mut message).expect("it answers");
        one.read_message(&message[..len], &mut payload).expect("it reads");
        let ends = [one, other].map(|end| end.into_stateless_transport_mode().expect("it is over"));
        Self { ends, nonce: 0, plain: vec![] }
    }
}

/// `snow` with a generator of constants instead of random numbers.
struct Sevens;

impl CryptoResolver for Sevens {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Self))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn snow::types::Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

impl Random for Sevens {
    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), snow::Error> {
        out.fill(7);
        Ok(())
    }
}

impl Row {
    fn new(name: String, size: usize, ends: SealedEnds) -> Self {
        let (segment, most) = (segment(size + Seal::OVERHEAD as usize), Duration::MAX);
        Self { name, size, segment, ends, out: vec![], buffer: BytesMut::new(), sealing: most, opening: most }
    }

    /// Seals and opens one batch.
    fn turn(&mut self) {
        let Self { segment, out, buffer, .. } = self;
        out.clear();
        let to = Outgoing { datagram_max: 9000, ..outgoing() };
        let begin = Instant::now();
        let mut size = 0;
        match &mut self.ends {
            SealedEnds::Ours(ends) => {
                for _ in 0..BATCH {
                    size = ends.0.seal(Time::ZERO, &to, segment, out).expect("there are keys").size;
                }
            }
            SealedEnds::Snow(snow) => {
                for number in 0..BATCH {
                    snow.plain.clear();
                    encode(segment, Ports::default(), Checksum::None, &mut snow.plain);
                    let start = out.len();
                    size = snow.plain.len() + 16;
                    out.resize(start + size, 0);
                    let nonce = snow.nonce + u64::from(number);
                    snow.ends[0].write_message(nonce, &snow.plain, &mut out[start..]).expect("there is room");
                }
            }
        }
        let middle = Instant::now();
        let mut batch = arrived(buffer, out);
        match &mut self.ends {
            SealedEnds::Ours(ends) => {
                while !batch.is_empty() {
                    let opened = ends.1.open(Time::ZERO, PATH.reversed(), batch.split_to(size));
                    assert!(opened.is_ok_and(|segment| segment.is_some()), "it is sealed");
                }
            }
            SealedEnds::Snow(snow) => {
                while !batch.is_empty() {
                    let mut plain = vec![0; size - 16];
                    snow.ends[1].read_message(snow.nonce, &batch.split_to(size), &mut plain).expect("it is sealed");
                    snow.nonce += 1;
                    decode(plain.into(), Checksum::None).expect("it is a segment");
                }
            }
        }
        self.sealing = self.sealing.min(middle - begin);
        self.opening = self.opening.min(middle.elapsed());
    }
}

#[expect(clippy::print_stdout, reason = "it is a program")]
fn main() {
    let mut rows = vec![];
    for size in SIZES {
        for cipher in Cipher::ALL {
            let ends = SealedEnds::Ours(Box::new(pair(CipherPreference::new(&[cipher]))));
            rows.push(Row::new(format!("{cipher:?}, {size} B"), size, ends));
        }
        rows.push(Row::new(format!("snow, ChaChaPoly, {size} B"), size, SealedEnds::Snow(Box::new(Snow::new()))));
    }
    for _ in 0..TURNS {
        rows.iter_mut().for_each(Row::turn);
    }
    let each = |batch: Duration| batch.as_secs_f64() * 1e9 / f64::from(BATCH);
    for row in rows {
        let (sealing, opening) = (each(row.sealing), each(row.opening));
        let of_gigabyte = (sealing + opening) / row.size as f64;
        println!("{:30} seal {sealing:6.0} ns, open {opening:6.0} ns, {of_gigabyte:.3} s/GB", row.name);
    }
}
