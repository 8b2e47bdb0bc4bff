//! The five kinds of datagrams. `docs/wire.md` specifies them to the bit; all numbers are big endian.
//!
//! ```text
//! initiation  1 0 0 0         | sender 4   | Noise message 1: 32, 48, hello + 16 | mac1 16 | mac2 16
//! response    2 0 0 0         | receiver 4 | Noise message 2: 32, reply + 16
//! cookie      3 0 0 0         | receiver 4 | cookie 16 | mac 16
//! data        4 path grease 2 | receiver 4 | counter 8 | plain text + 16
//! reset       5 0 0 0         | sender 4   | token 16
//! ```

use super::noise::{MESSAGE_1, MESSAGE_2, TAG};

/// A parsed datagram; nothing in it is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Datagram<'a> {
    Initiation(Initiation<'a>),
    Response {
        receiver: u32,
        noise: &'a [u8],
    },
    Cookie {
        receiver: u32,
        cookie: [u8; TAG],
        mac: [u8; TAG],
    },
    Data(DataHeader),
    /// `sender` is the index of its sender, to which the answered datagram went.
    Reset {
        sender: u32,
        token: [u8; TAG],
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Initiation<'a> {
    pub(super) sender: u32,
    pub(super) noise: &'a [u8],
    /// The bytes that mac1 covers, and mac1; the bytes that mac2 covers, and mac2.
    pub(super) before_mac1: &'a [u8],
    pub(super) mac1: [u8; TAG],
    pub(super) before_mac2: &'a [u8],
    pub(super) mac2: [u8; TAG],
}

/// The header before the encrypted part. All of it is authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DataHeader {
    /// The sender's number of the path, which selects the counter.
    pub(super) path: u8,
    /// Any value. A receiver ignores it, so that a later version may use it.
    pub(super) grease: [u8; 2],
    pub(super) receiver: u32,
    pub(super) counter: u64,
}

impl<'a> Datagram<'a> {
    /// Parses a datagram; `None` if it is not of this protocol.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first_chunk::<4>()?;
        let (index, rest) = word(rest)?;
        match *kind {
            INITIATION => {
                let (before_mac2, mac2) = bytes.split_last_chunk()?;
                let (before_mac1, mac1) = before_mac2.split_last_chunk()?;
                let noise = before_mac1.get(8..).filter(|noise| noise.len() >= MESSAGE_1)?;
                let initiation =
                    Initiation { sender: index, noise, before_mac1, mac1: *mac1, before_mac2, mac2: *mac2 };
                Some(Self::Initiation(initiation))
            }
            RESPONSE => (rest.len() >= MESSAGE_2).then_some(Self::Response { receiver: index, noise: rest }),
            COOKIE => {
                let (cookie, mac) = rest.split_first_chunk()?;
                Some(Self::Cookie { receiver: index, cookie: *cookie, mac: mac.try_into().ok()? })
            }
            RESET => Some(Self::Reset { sender: index, token: rest.try_into().ok()? }),
            [DATA, path, grease @ ..] => {
                let (counter, sealed) = rest.split_first_chunk()?;
                let is_whole = sealed.len() >= TAG && usize::from(path) < PATH_NUMBERS;
                let header = DataHeader { path, grease, receiver: index, counter: u64::from_be_bytes(*counter) };
                is_whole.then_some(Self::Data(header))
            }
            _ => None,
        }
    }
}

impl DataHeader {
    pub(super) const LEN: usize = 16;

    pub(super) fn bytes(&self) -> [u8; Self::LEN] {
        let Self { path, grease, receiver, counter } = self;
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&[DATA, *path, grease[0], grease[1]]);
        bytes[4..8].copy_from_slice(&receiver.to_be_bytes());
        bytes[8..].copy_from_slice(&counter.to_be_bytes());
        bytes
    }

    /// The nonce, unique for each key.
    pub(super) fn nonce(&self) -> [u8; 12] {
        let mut nonce = [0; 12];
        nonce[..4].copy_from_slice(&u32::from(self.path).to_be_bytes());
        nonce[4..].copy_from_slice(&self.counter.to_be_bytes());
        nonce
    }
}

/// Appends the kind and the index, with which every datagram begins.
pub(super) fn begin(kind: [u8; 4], index: u32, out: &mut Vec<u8>) {
    out.extend(kind);
    out.extend(index.to_be_bytes());
}

/// The first four bytes as a number, and the rest.
pub(super) fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (word, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*word), rest))
}

pub(super) const INITIATION: [u8; 4] = [1, 0, 0, 0];
pub(super) const RESPONSE: [u8; 4] = [2, 0, 0, 0];
pub(super) const COOKIE: [u8; 4] = [3, 0, 0, 0];
pub(super) const RESET: [u8; 4] = [5, 0, 0, 0];
const DATA: u8 = 4;

/// The number of path numbers. The receiver has a replay window for each.
pub(super) const PATH_NUMBERS: usize = 16;
