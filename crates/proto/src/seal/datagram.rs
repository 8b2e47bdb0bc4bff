//! The four kinds of datagrams. `docs/wire.md` specifies them to the bit; all numbers are big endian.
//!
//! ```text
//! initiation  1 0 0 0 | sender 4 | Noise message 1: 32, 48, SYN + 16 | mac1 16 | mac2 16
//! response    2 0 0 0 | receiver 4 | Noise message 2: 32, sender 4 and SYN-ACK + 16
//! cookie      3 0 0 0 | receiver 4 | cookie 16 | mac 16
//! data        4 0 0 0 | receiver 4 | counter 8 | sealed: a segment or a word of rekeying + 16
//! ```

use super::noise::{MESSAGE_1, MESSAGE_2, TAG};

/// A datagram taken apart, nothing of it believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Datagram<'a> {
    Initiation(Initiation<'a>),
    Response { receiver: u32, noise: &'a [u8] },
    Cookie { receiver: u32, cookie: [u8; TAG], mac: [u8; TAG] },
    Data { receiver: u32, counter: u64, sealed: &'a [u8] },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Initiation<'a> {
    pub(super) sender: u32,
    pub(super) noise: &'a [u8],
    /// All that mac1 covers, and mac1; all that mac2 covers, and mac2.
    pub(super) before_mac1: &'a [u8],
    pub(super) mac1: [u8; TAG],
    pub(super) before_mac2: &'a [u8],
    pub(super) mac2: [u8; TAG],
}

impl<'a> Datagram<'a> {
    /// Takes a datagram apart; `None` if it is none of ours.
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
            DATA => {
                let (counter, sealed) = rest.split_first_chunk()?;
                let counter = u64::from_be_bytes(*counter);
                (sealed.len() >= TAG).then_some(Self::Data { receiver: index, counter, sealed })
            }
            _ => None,
        }
    }
}

/// Appends kind and index, with which all begin.
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
pub(super) const DATA: [u8; 4] = [4, 0, 0, 0];

/// Bytes before what is sealed in a datagram with data.
pub(super) const DATA_HEADER: usize = 16;
