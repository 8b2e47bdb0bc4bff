//! The Internet checksum ([rfc-1071]) over a segment and the pseudo header of the network below ([rfc-9293] sec. 3.1,
//! [rfc-8200] sec. 8.1).

use crate::path::FourTuple;

/// The network below TCP, which determines the pseudo header of the checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// No checksum: the seal protects the segment, and the field carries nonces.
    None,
    /// IPv4: source and destination address.
    V4([[u8; 4]; 2]),
    /// IPv6: source and destination address.
    V6([[u8; 16]; 2]),
}

impl Checksum {
    /// The checksum for this path: that of IPv4 if both addresses are IPv4-mapped IPv6 addresses ([rfc-4291] sec. 2.5.5.2).
    pub const fn of_path(tuple: FourTuple) -> Self {
        let (source, target) = (tuple.local.address, tuple.remote.address);
        if source >> 32 == MAPPED && target >> 32 == MAPPED {
            Self::V4([(source as u32).to_be_bytes(), (target as u32).to_be_bytes()])
        } else {
            Self::V6([source.to_be_bytes(), target.to_be_bytes()])
        }
    }

    /// The checksum of a segment whose field is zero; `None` if the field stays zero.
    pub fn of(self, segment: &[u8]) -> Option<u16> {
        let (addresses, rest) = match &self {
            Self::None => return None,
            // Zero, the protocol, and the length in 16 bits. IPv6 has 32 bits for protocol and length each, with the same sum.
            Self::V4(addresses) => (addresses.as_flattened(), pseudo_rest(segment.len())),
            Self::V6(addresses) => (addresses.as_flattened(), pseudo_rest(segment.len())),
        };
        Some(internet_checksum(&[addresses, &rest, segment]))
    }

    /// Whether the checksum is right.
    pub fn is_right(self, segment: &[u8]) -> bool {
        // If the sum includes the checksum, it is zero.
        self.of(segment).is_none_or(|sum| sum == 0)
    }
}

/// The Internet checksum: the complement of the one's complement sum of 16-bit words. Only the last part may have an odd length.
pub fn internet_checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u64;
    for part in parts {
        let (pairs, odd) = part.as_chunks::<2>();
        sum += pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum::<u64>();
        sum += odd.first().map_or(0, |&last| u64::from(last) << 8);
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn pseudo_rest(len: usize) -> [u8; 8] {
    let [a, b, c, d] = (len as u32).to_be_bytes();
    [a, b, c, d, 0, 0, 0, PROTOCOL]
}

/// The protocol number of TCP.
const PROTOCOL: u8 = 6;

/// The upper 96 bits of an IPv4 address mapped into IPv6.
const MAPPED: u128 = 0xffff;
