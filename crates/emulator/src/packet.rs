//! The fields of IP packets that matter on a link: destination and ECN codepoint. Nothing else is changed, so TTL and the checksums of the
//! transports stay valid.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anabranch_sim::EcnCodepoint;

/// The destination of an IP packet; `None` if the packet is invalid or incomplete.
pub(crate) fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 if packet.len() >= IPV4_HEADER => {
            let address: [u8; 4] = packet[16..20].try_into().ok()?;
            Some(Ipv4Addr::from(address).into())
        }
        6 if packet.len() >= IPV6_HEADER => {
            let address: [u8; 16] = packet[24..40].try_into().ok()?;
            Some(Ipv6Addr::from(address).into())
        }
        _ => None,
    }
}

/// The source of an IP packet of which [`destination`] is known.
pub(crate) fn source(packet: &[u8]) -> Option<IpAddr> {
    Some(match destination(packet)? {
        IpAddr::V4(_) => <[u8; 4]>::try_from(&packet[12..16]).ok()?.into(),
        IpAddr::V6(_) => <[u8; 16]>::try_from(&packet[8..24]).ok()?.into(),
    })
}

/// The ECN codepoint of an IP packet ([rfc-3168] section 5); `None` if its transport is not ECN-capable.
pub(crate) fn ecn(packet: &[u8]) -> Option<EcnCodepoint> {
    match packet {
        [first, class, ..] if first >> 4 == 4 => EcnCodepoint::from_bits(*class),
        [first, class, ..] if first >> 4 == 6 => EcnCodepoint::from_bits(class >> IPV6_CLASS_AT),
        _ => None,
    }
}

/// Writes the ECN codepoint of an IP packet, and the checksum of an IPv4 header by its difference ([rfc-1624] section 3).
pub(crate) fn set_ecn(packet: &mut [u8], ecn: Option<EcnCodepoint>) {
    let bits = ecn.map_or(0, EcnCodepoint::bits);
    let Some(version) = packet.first().map(|first| first >> 4) else { return };
    if version == 4 && packet.len() >= IPV4_HEADER {
        let word = |packet: &[u8], at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
        let before = word(packet, 0);
        packet[1] = packet[1] & !ECN | bits;
        let sum = [!word(packet, 10), !before, word(packet, 0)].map(u32::from).iter().sum::<u32>();
        // Two carries at most.
        let once = (sum & 0xffff) + (sum >> 16);
        let twice = (once & 0xffff) + (once >> 16);
        packet[10..12].copy_from_slice(&(!(twice as u16)).to_be_bytes());
    } else if version == 6 && packet.len() >= IPV6_HEADER {
        packet[1] = packet[1] & !(ECN << IPV6_CLASS_AT) | bits << IPV6_CLASS_AT;
    }
}

/// The bits of the ECN field in a type of service or traffic class.
const ECN: u8 = 0b11;
/// Where the lower half of the traffic class is in the second byte of an IPv6 header.
const IPV6_CLASS_AT: u32 = 4;

/// Bytes of an IPv4 header without options (RFC 791, section 3.1).
const IPV4_HEADER: usize = 20;
/// Bytes of an IPv6 header (RFC 8200, section 3).
const IPV6_HEADER: usize = 40;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The beginning of a UDP packet over IPv4, as the kernel would write it.
    pub(crate) fn ipv4(to: Ipv4Addr, len: usize) -> Vec<u8> {
        let mut packet = vec![0; len];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        packet[8] = 64;
        packet[9] = 17;
        packet[12..16].copy_from_slice(&[10, 77, 1, 1]);
        packet[16..20].copy_from_slice(&to.octets());
        packet
    }

    #[test]
    fn both_versions_say_where_they_go() {
        assert_eq!(destination(&ipv4(Ipv4Addr::new(10, 77, 2, 1), 28)), Some(Ipv4Addr::new(10, 77, 2, 1).into()));
        let to = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 2, 1);
        let mut packet = vec![0x60; 40];
        packet[24..].copy_from_slice(&to.octets());
        assert_eq!(destination(&packet), Some(to.into()));
    }

    /// The checksum of a header ([rfc-1071]); zero if the header has its checksum.
    fn checksum(header: &[u8]) -> u16 {
        let mut sum: u32 = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !sum as u16
    }

    /// Each identification, so each checksum, with the carries that the difference may have.
    #[test]
    fn checksum_is_right_after_a_mark_of_any_header() {
        for id in 0..=u16::MAX {
            let mut packet = ipv4(Ipv4Addr::new(10, 77, 2, 1), 28);
            packet[4..6].copy_from_slice(&id.to_be_bytes());
            packet[1] = 0b10;
            let sum = checksum(&packet[..20]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            set_ecn(&mut packet, Some(EcnCodepoint::Ce));
            assert_eq!(checksum(&packet[..20]), 0, "{id}");
            set_ecn(&mut packet, None);
            assert_eq!(checksum(&packet[..20]), 0, "{id}");
        }
    }

    #[test]
    fn codepoint_is_written_with_the_checksum_and_nothing_else() {
        let codepoints = [None, Some(EcnCodepoint::Ect0), Some(EcnCodepoint::Ect1), Some(EcnCodepoint::Ce)];
        for (before, after) in codepoints.iter().flat_map(|before| codepoints.map(|after| (*before, after))) {
            for class in [0, 0b1011_1000, 0b1111_1100] {
                let mut packet = ipv4(Ipv4Addr::new(10, 77, 2, 1), 28);
                packet[1] = class | before.map_or(0, EcnCodepoint::bits);
                let sum = checksum(&packet[..20]);
                packet[10..12].copy_from_slice(&sum.to_be_bytes());
                assert_eq!(ecn(&packet), before);
                let mut expected = packet.clone();
                set_ecn(&mut packet, after);
                assert_eq!((ecn(&packet), checksum(&packet[..20])), (after, 0), "{before:?} {class:b}");
                assert_eq!(packet[1] & !0b11, class);
                expected[1] = packet[1];
                expected[10..12].copy_from_slice(&packet[10..12]);
                assert_eq!(packet, expected);

                let mut packet = vec![0; 40];
                packet[0] = 0x60 | class >> 4;
                packet[1] = (class | before.map_or(0, EcnCodepoint::bits)) << 4 | 0x0f;
                assert_eq!(ecn(&packet), before);
                let mut expected = packet.clone();
                expected[1] = (class | after.map_or(0, EcnCodepoint::bits)) << 4 | 0x0f;
                set_ecn(&mut packet, after);
                assert_eq!(packet, expected);
            }
        }
    }

    #[test]
    fn codepoint_of_truncated_packet_is_not_written() {
        for packet in [&[][..], &[0x45], &[0x45; 19], &[0x15; 64]] {
            let mut bytes = packet.to_vec();
            set_ecn(&mut bytes, Some(EcnCodepoint::Ce));
            assert_eq!(bytes, packet);
        }
    }

    #[test]
    fn truncated_or_foreign_packet_has_no_route() {
        assert_eq!(destination(&[]), None);
        assert_eq!(destination(&[0x45; 19]), None);
        assert_eq!(destination(&[0x60; 39]), None);
        assert_eq!(destination(&[0x15; 64]), None);
    }
}
