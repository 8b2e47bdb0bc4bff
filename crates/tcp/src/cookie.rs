//! SYN cookies ([rfc-4987] sec. 3.6): an initial sequence number that stands for what a listener would have to keep of a SYN.
//!
//! ```text
//!  31           20 19             8 7       3 2     0
//! +---------------+---------------+---------+-------+
//! |  tag of ends  | tag of number | minute  | size  |
//! +---------------+---------------+---------+-------+
//! ```
//!
//! The second tag is of the ends and the peer's initial number, and both are of the rest of the cookie. The first one alone recognises a segment that is not
//! the first after the SYN: it overtook that one, or came after there was no place for it. That one comes again, so such a segment is no stranger's.
//!
//! A connection that a cookie opens has neither SACK nor a window scale, as there is no place for them.

use anabranch_proto::{FourTuple, HandshakeOptions, SeqNumber};
use anabranch_units::{Span, Time};

use crate::key::StackKey;

/// The cookie that answers a SYN, and what it keeps of it.
pub(crate) fn make(
    key: &StackKey,
    now: Time,
    tuple: FourTuple,
    peer: SeqNumber,
    mss: Option<u16>,
) -> (SeqNumber, HandshakeOptions) {
    // [rfc-9293] sec. 3.7.1: the defaults of IPv4 and IPv6.
    let mss = mss.unwrap_or(if tuple.local.is_ipv4() { SIZES[0] } else { SIZES[1] });
    let size = SIZES.iter().rposition(|&size| size <= mss).unwrap_or(0) as u8;
    (cookie(key, tuple, peer, minute(now), size), kept(size))
}

/// What the SYN had, if `number` is a cookie of the last two minutes for it.
pub(crate) fn check(
    key: &StackKey,
    now: Time,
    tuple: FourTuple,
    peer: SeqNumber,
    number: SeqNumber,
) -> Option<HandshakeOptions> {
    let size = (number.0 & SIZE_MASK) as u8;
    is_recent(now, |minute| cookie(key, tuple, peer, minute, size) == number).then(|| kept(size))
}

/// Whether `number` is a cookie of the last two minutes for these ends, whatever the number of the SYN was.
pub(crate) fn is_of_ends(key: &StackKey, now: Time, tuple: FourTuple, number: SeqNumber) -> bool {
    let size = (number.0 & SIZE_MASK) as u8;
    let has_tag = |minute| number.0 >> ENDS_SHIFT == key.cookie(tuple, None, minute, size);
    is_recent(now, |minute| has_tag(minute) && number.0 & REST_MASK == rest(minute, size))
}

/// Whether this is so for the present minute, or the one before.
fn is_recent(now: Time, is_of: impl Fn(u64) -> bool) -> bool {
    let present = minute(now);
    (0..MINUTES).any(|ago| present.checked_sub(ago).is_some_and(&is_of))
}

fn kept(size: u8) -> HandshakeOptions {
    HandshakeOptions { mss: SIZES.get(usize::from(size)).copied(), ..HandshakeOptions::default() }
}

fn cookie(key: &StackKey, tuple: FourTuple, peer: SeqNumber, minute: u64, size: u8) -> SeqNumber {
    let [ends, number] = [None, Some(peer)].map(|peer| key.cookie(tuple, peer, minute, size));
    SeqNumber(ends << ENDS_SHIFT | number << NUMBER_SHIFT | rest(minute, size))
}

fn rest(minute: u64, size: u8) -> u32 {
    ((minute & MINUTE_MASK) as u32) << MINUTE_SHIFT | u32::from(size)
}

fn minute(now: Time) -> u64 {
    now.since(Time::ZERO).ticks() / MINUTE.ticks()
}

/// Segment sizes of common paths in bytes: the least that all have, IPv6's least MTU, tunnels, Ethernet, jumbo frames.
const SIZES: [u16; 8] = [536, 1220, 1360, 1400, 1440, 1460, 4312, 8960];

const SIZE_MASK: u32 = 0b111;
const MINUTE_SHIFT: u32 = 3;
const MINUTE_MASK: u64 = 0b1_1111;
const NUMBER_SHIFT: u32 = 8;
const ENDS_SHIFT: u32 = 20;
const REST_MASK: u32 = 0xff;

/// How long a cookie is of the present, and how many such spans it is believed: the peer must answer within one to two minutes.
const MINUTE: Span = Span::from_secs(60);
const MINUTES: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: SeqNumber = SeqNumber(77);

    fn seconds(count: u64) -> Time {
        Time::ZERO + Span::from_secs(count)
    }

    #[test]
    fn cookie_stands_for_the_size_for_two_minutes() {
        let (key, tuple) = (StackKey::new([7; 32]), v4());
        for (mss, kept) in [(None, 536), (Some(100), 536), (Some(1300), 1220), (Some(1460), 1460), (Some(9000), 8960)] {
            let (number, _) = make(&key, seconds(1000), tuple, PEER, mss);
            for (at, is_valid) in [(1000, true), (1060, true), (1140, false), (10_000, false)] {
                let options = check(&key, seconds(at), tuple, PEER, number);
                assert_eq!(options.map(|options| options.mss), is_valid.then_some(Some(kept)), "{mss:?} at {at}");
            }
        }
    }

    /// [rfc-9293] MUST-15: a peer that says no size has that of its protocol.
    #[test]
    fn silent_peer_has_the_default_size_of_its_protocol() {
        let (key, mut v6) = (StackKey::new([7; 32]), v4());
        (v6.local.address, v6.remote.address) = (0xfd00 << 112 | 1, 0xfd00 << 112 | 2);
        for (tuple, size) in [(v4(), 536), (v6, 1220)] {
            assert_eq!(make(&key, seconds(0), tuple, PEER, None).1.mss, Some(size));
        }
    }

    fn v4() -> FourTuple {
        let mut tuple = FourTuple::default();
        (tuple.local.address, tuple.remote.address) = (0xffff_0a00_0001, 0xffff_0a00_0002);
        tuple
    }

    /// Of 2^24 guesses one is right.
    #[test]
    fn other_numbers_and_other_ends_are_no_cookies() {
        let (key, tuple) = (StackKey::new([7; 32]), FourTuple::default());
        let (number, _) = make(&key, seconds(0), tuple, PEER, Some(1460));
        let valid =
            (0..32).filter(|bit| check(&key, seconds(0), tuple, PEER, SeqNumber(number.0 ^ 1 << bit)).is_some());
        assert_eq!(valid.count(), 0);
        assert!(check(&key, seconds(0), tuple, SeqNumber(78), number).is_none());
        let mut other = tuple;
        other.remote.port = 1;
        assert!(check(&key, seconds(0), other, PEER, number).is_none());
        assert!(check(&StackKey::new([8; 32]), seconds(0), tuple, PEER, number).is_none());
    }

    #[test]
    fn cookie_is_of_its_ends_for_two_minutes() {
        let (key, tuple) = (StackKey::new([7; 32]), v4());
        let (number, _) = make(&key, seconds(1000), tuple, PEER, Some(1460));
        for (at, is_valid) in [(1000, true), (1060, true), (1140, false), (10_000, false)] {
            assert_eq!(is_of_ends(&key, seconds(at), tuple, number), is_valid, "at {at}");
        }
        // One of 2048 by chance, in either minute.
        let others =
            (0..4096).filter(|at| is_of_ends(&key, seconds(1000), tuple, SeqNumber(number.0 ^ at << ENDS_SHIFT)));
        assert!(others.count() <= 2);
        let mut other = tuple;
        other.remote.port = 1;
        assert!(!is_of_ends(&key, seconds(1000), other, number));
        assert!(!is_of_ends(&StackKey::new([8; 32]), seconds(1000), tuple, number));
    }
}
