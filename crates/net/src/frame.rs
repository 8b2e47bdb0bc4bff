//! Frames: the datagrams between a relay and its members, and the probes between two members (docs/wire.md, sec. 4).
//!
//! A peer that is reached through a relay has an address that no network has: the engine takes it for the address of a path. Its
//! number is this end's own, and names a route of the relay.

use anabranch_proto::{Address, FourTuple};

/// The kinds of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A datagram of the sealed form, for the other end of a route.
    Data,
    /// A probe for a way between two members that avoids the relay.
    Probe,
    /// Asks a relay for its public key.
    Question,
    /// The answer to that.
    Answer,
}

/// The first byte of all frames, which no datagram of the sealed form has.
pub(crate) const FIRST: u8 = 6;

/// Bytes of the header: first byte, kind, two reserved ones, and a number of 8 bytes.
pub(crate) const HEADER: usize = 12;

/// Bytes of a question, most of which are padding: its answer is shorter.
pub(crate) const QUESTION: usize = 64;

/// The least bytes of an answer: without the port.
pub(crate) const ANSWER: usize = HEADER + 32;

/// The kind of a frame, and its number; `None` if it is none.
pub(crate) fn read(datagram: &[u8]) -> Option<(Kind, u64)> {
    let (header, rest) = datagram.split_first_chunk::<HEADER>()?;
    let [FIRST, kind, _, _, number @ ..] = *header else { return None };
    let (kind, is_good) = match kind {
        1 => (Kind::Data, !rest.is_empty()),
        2 => (Kind::Probe, true),
        3 => (Kind::Question, datagram.len() >= QUESTION),
        4 => (Kind::Answer, datagram.len() >= ANSWER),
        _ => return None,
    };
    is_good.then_some((kind, u64::from_be_bytes(number)))
}

/// Whether a datagram begins as a frame does.
pub(crate) fn begins(datagram: &[u8]) -> bool {
    datagram.first() == Some(&FIRST)
}

/// The header of a frame.
pub(crate) fn header(kind: Kind, number: u64) -> [u8; HEADER] {
    let kind = match kind {
        Kind::Data => 1,
        Kind::Probe => 2,
        Kind::Question => 3,
        Kind::Answer => 4,
    };
    let mut header = [0; HEADER];
    (header[0], header[1]) = (FIRST, kind);
    header[4..].copy_from_slice(&number.to_be_bytes());
    header
}

/// A question for a relay's public key.
pub(crate) fn question(number: u64) -> [u8; QUESTION] {
    let mut question = [0; QUESTION];
    question[..HEADER].copy_from_slice(&header(Kind::Question, number));
    question
}

/// The answer to a question: the key, and the TCP port at which the relay listens, too; 0 for none.
pub(crate) fn answer(number: u64, key: &[u8; 32], port: Option<u16>) -> [u8; ANSWER + 2] {
    let mut answer = [0; ANSWER + 2];
    answer[..HEADER].copy_from_slice(&header(Kind::Answer, number));
    answer[HEADER..ANSWER].copy_from_slice(key);
    answer[ANSWER..].copy_from_slice(&port.unwrap_or_default().to_be_bytes());
    answer
}

/// The four-tuple of a path through a relay to the peer with this number. It stays the same when the addresses change from which the
/// relay is reached.
pub(crate) fn tuple(number: u32) -> FourTuple {
    FourTuple { local: address(0), remote: address(number) }
}

/// The number of a peer that is reached through a relay; `None` for an address of a network.
pub(crate) fn number(address: Address) -> Option<u32> {
    let number = (address.address >> NUMBER_AT) as u32;
    (address.address >> PREFIX_AT == PREFIX).then_some(number)
}

/// Each number has 64 bits of its own in front, which is what limits count as a network.
fn address(number: u32) -> Address {
    Address { address: PREFIX << PREFIX_AT | u128::from(number) << NUMBER_AT | 1, port: 1 }
}

/// 0100::/8 is reserved by the IETF ([rfc-4291]), and of it only two prefixes are in use, both for packets that go nowhere. The engine
/// takes the address for one of IPv6, so packets have room for the longer header and 20 bytes besides if the relay is reached by IPv4.
const PREFIX: u128 = 0x0100_0ab0;
const PREFIX_AT: u32 = 96;
const NUMBER_AT: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address;

    #[test]
    fn frames_come_back_and_others_are_none() {
        let frame = |kind, rest: usize| [&header(kind, 0x0102_0304_0506_0708)[..], &vec![9; rest]].concat();
        for (kind, rest) in [(Kind::Data, 1), (Kind::Probe, 0), (Kind::Question, 52), (Kind::Answer, 32)] {
            assert_eq!(read(&frame(kind, rest)), Some((kind, 0x0102_0304_0506_0708)));
            let is_optional = kind == Kind::Probe;
            assert!(is_optional || read(&frame(kind, rest - 1)).is_none(), "{kind:?} that is too short");
        }
        for other in [&[][..], &[6; 11], &[6; 40], &[4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(read(other), None, "{other:?}");
        }
    }

    #[test]
    fn answer_shorter_than_its_question() {
        let (question, answer) = (question(7), answer(7, &[5; 32], Some(443)));
        assert_eq!((read(&question), read(&answer)), (Some((Kind::Question, 7)), Some((Kind::Answer, 7))));
        assert!(answer.len() < question.len());
    }

    #[test]
    fn relayed_addresses_have_numbers_and_others_none() {
        for of in [0, 1, 0xffff, u32::MAX] {
            assert_eq!(number(tuple(of).remote), Some(of));
            assert!(!tuple(of).remote.is_ipv4());
        }
        for text in ["10.0.0.1:7", "[::1]:1", "[2001:db8::1]:1", "[100::1]:1", "[fd77::1]:1"] {
            assert_eq!(number(address::of(text.parse().unwrap())), None, "{text}");
        }
        assert_ne!(tuple(1).remote.address >> 64, tuple(2).remote.address >> 64, "each is a network of its own");
    }
}
