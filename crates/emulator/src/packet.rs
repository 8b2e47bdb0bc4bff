//! Reads the destination of a packet. Nothing is changed, so checksums and TTL stay valid.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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

    #[test]
    fn truncated_or_foreign_packet_has_no_route() {
        assert_eq!(destination(&[]), None);
        assert_eq!(destination(&[0x45; 19]), None);
        assert_eq!(destination(&[0x60; 39]), None);
        assert_eq!(destination(&[0x15; 64]), None);
    }
}
