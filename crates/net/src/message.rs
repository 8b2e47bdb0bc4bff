//! The messages between a relay and its members, on streams of their connection (docs/wire.md, sec. 4.2).

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;

use crate::key::PublicKey;
use crate::ticket::{read_address, write_address};

/// A message of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// It speaks this version.
    Present { version: u8 },
    /// It wants a route to the member with this key. The number is its own.
    Call { number: u32, key: PublicKey, candidates: Vec<SocketAddr> },
    /// It knows of a route to it.
    Ready { route: u64, candidates: Vec<SocketAddr> },
    /// It offers a code.
    Offer,
    /// It claims the code with this number. The number of the claim is 64 random bits of its own.
    Claim { claim: u64, number: u32, bytes: Vec<u8> },
    /// For the other end of a claim.
    Pass { claim: u64, bytes: Vec<u8> },
    /// It offers no code any more.
    Withdraw,
}

/// A message of a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RelayMessage {
    /// It is a member, and is seen at this address. The relay listens at this TCP port, too.
    Member { seen: SocketAddr, tcp_port: Option<u16> },
    /// There is a route for its call.
    Route { number: u32, route: u64, token: u64, candidates: Vec<SocketAddr> },
    /// There is none.
    Refused { number: u32, why: Refusal },
    /// There is a route from the member with this key to it.
    Called { route: u64, token: u64, key: PublicKey, candidates: Vec<SocketAddr> },
    /// The code that it offers has this number.
    Offered { number: u32 },
    /// A member claims its code.
    Claimed { claim: u64, bytes: Vec<u8> },
    /// From the other end of a claim.
    Passed { claim: u64, bytes: Vec<u8> },
    /// There is no such code, or it has been claimed too often.
    NoCode { claim: u64 },
}

/// Why a relay makes no route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No member has this key.
    NotThere,
    /// The caller has called too often of late.
    TooOften,
    /// A reason that this version does not know.
    Other,
}

impl Asked {
    pub(crate) fn write(&self) -> Bytes {
        match self {
            Self::Present { version } => Bytes::copy_from_slice(&[1, *version]),
            Self::Call { number, key, candidates } => {
                let mut bytes = [&[2][..], &number.to_be_bytes(), key.bytes()].concat();
                write_addresses(candidates, &mut bytes);
                bytes.into()
            }
            Self::Ready { route, candidates } => {
                let mut bytes = [&[3][..], &route.to_be_bytes()].concat();
                write_addresses(candidates, &mut bytes);
                bytes.into()
            }
            Self::Offer => Bytes::from_static(&[4]),
            Self::Claim { claim, number, bytes } => {
                [&[5][..], &claim.to_be_bytes(), &number.to_be_bytes(), bytes].concat().into()
            }
            Self::Pass { claim, bytes } => [&[6][..], &claim.to_be_bytes(), bytes].concat().into(),
            Self::Withdraw => Bytes::from_static(&[7]),
        }
    }

    /// `None` if the message is malformed, or of a later version.
    pub(crate) fn read(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        Some(match take::<1>(rest)? {
            [1] => Self::Present { version: take::<1>(rest)?[0] },
            [2] => Self::Call {
                number: u32::from_be_bytes(take(rest)?),
                key: PublicKey::new(take(rest)?),
                candidates: read_addresses(rest)?,
            },
            [3] => Self::Ready { route: u64::from_be_bytes(take(rest)?), candidates: read_addresses(rest)? },
            [4] => Self::Offer,
            [5] => Self::Claim {
                claim: u64::from_be_bytes(take(rest)?),
                number: u32::from_be_bytes(take(rest)?),
                bytes: rest.to_vec(),
            },
            [6] => Self::Pass { claim: u64::from_be_bytes(take(rest)?), bytes: rest.to_vec() },
            [7] => Self::Withdraw,
            _ => return None,
        })
    }
}

impl RelayMessage {
    pub(crate) fn write(&self) -> Bytes {
        let mut bytes;
        match self {
            Self::Member { seen, tcp_port } => {
                bytes = vec![0x81];
                write_addresses(std::slice::from_ref(seen), &mut bytes);
                bytes.extend(tcp_port.unwrap_or_default().to_be_bytes());
            }
            Self::Route { number, route, token, candidates } => {
                bytes = [&[0x82][..], &number.to_be_bytes(), &route.to_be_bytes(), &token.to_be_bytes()].concat();
                write_addresses(candidates, &mut bytes);
            }
            Self::Refused { number, why } => {
                let why = match why {
                    Refusal::NotThere => 1,
                    Refusal::TooOften => 2,
                    Refusal::Other => 0,
                };
                bytes = [&[0x83][..], &number.to_be_bytes(), &[why]].concat();
            }
            Self::Called { route, token, key, candidates } => {
                bytes = [&[0x84][..], &route.to_be_bytes(), &token.to_be_bytes(), key.bytes()].concat();
                write_addresses(candidates, &mut bytes);
            }
            Self::Offered { number } => bytes = [&[0x85][..], &number.to_be_bytes()].concat(),
            Self::Claimed { claim, bytes: passed } => bytes = [&[0x86][..], &claim.to_be_bytes(), passed].concat(),
            Self::Passed { claim, bytes: passed } => bytes = [&[0x87][..], &claim.to_be_bytes(), passed].concat(),
            Self::NoCode { claim } => bytes = [&[0x88][..], &claim.to_be_bytes()].concat(),
        }
        bytes.into()
    }

    /// `None` if the message is malformed, or of a later version.
    pub(crate) fn read(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        Some(match take::<1>(rest)? {
            [0x81] => {
                let seen = *read_addresses(rest)?.first()?;
                // Earlier versions do not tell a port.
                let port = if rest.is_empty() { 0 } else { u16::from_be_bytes(take(rest)?) };
                Self::Member { seen, tcp_port: Some(port).filter(|port| *port != 0) }
            }
            [0x82] => Self::Route {
                number: u32::from_be_bytes(take(rest)?),
                route: u64::from_be_bytes(take(rest)?),
                token: u64::from_be_bytes(take(rest)?),
                candidates: read_addresses(rest)?,
            },
            [0x83] => Self::Refused {
                number: u32::from_be_bytes(take(rest)?),
                why: match take::<1>(rest)? {
                    [1] => Refusal::NotThere,
                    [2] => Refusal::TooOften,
                    _ => Refusal::Other,
                },
            },
            [0x84] => Self::Called {
                route: u64::from_be_bytes(take(rest)?),
                token: u64::from_be_bytes(take(rest)?),
                key: PublicKey::new(take(rest)?),
                candidates: read_addresses(rest)?,
            },
            [0x85] => Self::Offered { number: u32::from_be_bytes(take(rest)?) },
            [0x86] => Self::Claimed { claim: u64::from_be_bytes(take(rest)?), bytes: rest.to_vec() },
            [0x87] => Self::Passed { claim: u64::from_be_bytes(take(rest)?), bytes: rest.to_vec() },
            [0x88] => Self::NoCode { claim: u64::from_be_bytes(take(rest)?) },
            _ => return None,
        })
    }
}

/// The version of the messages and frames.
pub(crate) const VERSION: u8 = 1;

/// The largest message: a sealed ticket with all addresses of IPv6 has some 800 bytes.
pub(crate) const MESSAGE_MAX: usize = 1024;

/// Addresses at which a member may be reached. A probe goes to each.
pub(crate) const CANDIDATES_MAX: usize = 8;

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*taken)
}

/// A count, then family, host and port of each.
fn write_addresses(addresses: &[SocketAddr], bytes: &mut Vec<u8>) {
    let addresses = &addresses[..addresses.len().min(CANDIDATES_MAX)];
    bytes.push(addresses.len() as u8);
    for address in addresses {
        write_address(&SocketAddr::new(address.ip().to_canonical(), address.port()), bytes);
    }
}

/// Addresses to which nobody sends a probe are left out.
fn read_addresses(bytes: &mut &[u8]) -> Option<Vec<SocketAddr>> {
    let count = usize::from(take::<1>(bytes)?[0]);
    if count > CANDIDATES_MAX {
        return None;
    }
    let mut addresses = vec![];
    for _ in 0..count {
        let (address, rest) = read_address(bytes)?;
        *bytes = rest;
        let (ip, port) = (address.ip().to_canonical(), address.port());
        let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
        if !ip.is_unspecified() && !ip.is_multicast() && !is_broadcast && port != 0 {
            addresses.push(SocketAddr::new(ip, port));
        }
    }
    Some(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(count: usize) -> Vec<SocketAddr> {
        let of = |place: usize| match place % 2 {
            0 => SocketAddr::from(([192, 0, 2, place as u8 + 1], 7 + place as u16)),
            _ => SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, place as u16], 9)),
        };
        (0..count).map(of).collect()
    }

    fn asked() -> [Asked; 5] {
        let key = PublicKey::new([7; 32]);
        [
            Asked::Present { version: VERSION },
            Asked::Call { number: 0x0102_0304, key, candidates: candidates(8) },
            Asked::Ready { route: 5, candidates: vec![] },
            Asked::Offer,
            Asked::Withdraw,
        ]
    }

    fn told() -> [RelayMessage; 6] {
        let key = PublicKey::new([7; 32]);
        [
            RelayMessage::Member { seen: "203.0.113.9:4433".parse().unwrap(), tcp_port: Some(443) },
            RelayMessage::Route { number: 1, route: 2, token: 3, candidates: candidates(3) },
            RelayMessage::Refused { number: 9, why: Refusal::TooOften },
            RelayMessage::Called { route: u64::MAX, token: 1, key, candidates: candidates(8) },
            RelayMessage::Offered { number: 7 },
            RelayMessage::NoCode { claim: 5 },
        ]
    }

    #[test]
    fn messages_come_back_and_cut_ones_are_refused() {
        for message in asked() {
            let bytes = message.write();
            assert!(bytes.len() <= MESSAGE_MAX);
            assert_eq!(Asked::read(&bytes), Some(message));
            (0..bytes.len()).for_each(|len| assert_eq!(Asked::read(&bytes[..len]), None));
        }
        for message in told() {
            let bytes = message.write();
            assert!(bytes.len() <= MESSAGE_MAX);
            assert_eq!(RelayMessage::read(&bytes).as_ref(), Some(&message));
            let without_port = matches!(message, RelayMessage::Member { .. }).then(|| bytes.len() - 2);
            let cut = (0..bytes.len()).filter(|len| Some(*len) != without_port);
            cut.for_each(|len| assert_eq!(RelayMessage::read(&bytes[..len]), None));
        }
    }

    #[test]
    fn relay_without_tcp_or_of_an_earlier_version_tells_no_port() {
        let seen = "203.0.113.9:4433".parse().unwrap();
        let (without, with) =
            (RelayMessage::Member { seen, tcp_port: None }, RelayMessage::Member { seen, tcp_port: Some(443) });
        assert_eq!(RelayMessage::read(&without.write()), Some(without.clone()));
        let bytes = with.write();
        assert_eq!(RelayMessage::read(&bytes[..bytes.len() - 2]), Some(without));
    }

    /// What members pass to each other is as long as the message is.
    #[test]
    fn passed_bytes_come_back() {
        let bytes = vec![5; 700];
        for asked in
            [Asked::Claim { claim: 7, number: 9, bytes: bytes.clone() }, Asked::Pass { claim: 7, bytes: vec![] }]
        {
            assert_eq!(Asked::read(&asked.write()), Some(asked));
        }
        for told in [RelayMessage::Claimed { claim: 7, bytes: vec![] }, RelayMessage::Passed { claim: 7, bytes }] {
            assert_eq!(RelayMessage::read(&told.write()), Some(told));
        }
        assert_eq!((Asked::read(&[5; 12]), RelayMessage::read(&[0x86; 8])), (None, None));
    }

    #[test]
    fn candidates_beyond_the_limit_or_to_everybody_are_refused() {
        let mut many = Asked::Ready { route: 5, candidates: candidates(8) }.write().to_vec();
        many[9] = 9;
        many.extend([4, 192, 0, 2, 1, 0, 7]);
        assert_eq!(Asked::read(&many), None);
        let all = ["255.255.255.255:7", "224.0.0.1:7", "[ff02::1]:7", "0.0.0.0:7", "192.0.2.1:0", "192.0.2.1:7"];
        let all = all.map(|text| text.parse().unwrap()).to_vec();
        let bytes = Asked::Ready { route: 5, candidates: all }.write();
        let left = vec!["192.0.2.1:7".parse().unwrap()];
        assert_eq!(Asked::read(&bytes), Some(Asked::Ready { route: 5, candidates: left }));
    }

    #[test]
    fn a_reason_of_a_later_version_is_another_one() {
        let mut bytes = RelayMessage::Refused { number: 9, why: Refusal::NotThere }.write().to_vec();
        bytes[5] = 77;
        assert_eq!(RelayMessage::read(&bytes), Some(RelayMessage::Refused { number: 9, why: Refusal::Other }));
        assert_eq!((RelayMessage::read(&[1, 1]), Asked::read(&[0x81, 0]), Asked::read(&[])), (None, None, None));
    }
}
