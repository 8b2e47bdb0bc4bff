//! What a router says of a packet that is longer than the MTU of the next link: ICMP "fragmentation needed" ([rfc-1191] section 4) or
//! "packet too big" ([rfc-4443] section 3.2).

use std::net::{Ipv4Addr, Ipv6Addr};

use etherparse::icmpv4::DestUnreachableHeader;
use etherparse::{
    Icmpv4Header, Icmpv4Type, Icmpv6Header, Icmpv6Type, IpNumber, Ipv4Header, Ipv4Slice, Ipv6FlowLabel, Ipv6Header,
    Ipv6Slice,
};

/// The message about a packet, from the router before a link; `None` where a router says nothing: about errors of ICMP, later
/// fragments, packets to many, and IPv4 packets that it may fragment ([rfc-1812] section 4.3.2.7, [rfc-4443] section 2.4).
pub(crate) fn too_big(packet: &[u8], link: usize, mtu: u32) -> Option<Vec<u8>> {
    match packet.first()? >> 4 {
        4 => over_ipv4(packet, link, u16::try_from(mtu).unwrap_or(u16::MAX)),
        6 => over_ipv6(packet, link, mtu),
        _ => None,
    }
}

fn over_ipv4(packet: &[u8], link: usize, mtu: u16) -> Option<Vec<u8>> {
    let sent = Ipv4Slice::from_slice(packet).ok()?;
    let header = sent.header();
    let payload = sent.payload();
    let is_error =
        payload.ip_number == IpNumber::ICMP && payload.payload.first().is_none_or(|kind| !ASKS_V4.contains(kind));
    let is_first = header.fragments_offset().value() == 0;
    if !header.dont_fragment() || !is_first || is_error || header.destination_addr().is_multicast() {
        return None;
    }
    let quote = &packet[..packet.len().min(QUOTED_V4 - Ipv4Header::MIN_LEN - Icmpv4Header::MIN_LEN)];
    let needed = DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: mtu };
    let icmp = Icmpv4Header::with_checksum(Icmpv4Type::DestinationUnreachable(needed), quote);
    let len = Icmpv4Header::MIN_LEN + quote.len();
    let mut outer = Ipv4Header::new(len as u16, TTL, IpNumber::ICMP, router_v4(link).octets(), header.source()).ok()?;
    outer.header_checksum = outer.calc_header_checksum();
    Some([&outer.to_bytes()[..], &icmp.to_bytes(), quote].concat())
}

fn over_ipv6(packet: &[u8], link: usize, mtu: u32) -> Option<Vec<u8>> {
    let sent = Ipv6Slice::from_slice(packet).ok()?;
    let header = sent.header();
    let payload = sent.payload();
    let is_error =
        payload.ip_number == IpNumber::IPV6_ICMP && payload.payload.first().is_none_or(|kind| *kind < ASKS_V6);
    if is_error || header.destination_addr().is_multicast() {
        return None;
    }
    let quote = &packet[..packet.len().min(QUOTED_V6 - Ipv6Header::LEN - Icmpv6Header::MIN_LEN)];
    let router = router_v6(link).octets();
    let kind = Icmpv6Type::PacketTooBig { mtu };
    let icmp = Icmpv6Header::with_checksum(kind, router, header.source(), quote).ok()?;
    let outer = Ipv6Header {
        traffic_class: 0,
        flow_label: Ipv6FlowLabel::ZERO,
        payload_length: (Icmpv6Header::MIN_LEN + quote.len()) as u16,
        next_header: IpNumber::IPV6_ICMP,
        hop_limit: TTL,
        source: router,
        destination: header.source(),
    };
    Some([&outer.to_bytes()[..], &icmp.to_bytes(), quote].concat())
}

/// The address of the router before a link. No host has it; links beyond the 254th share the last.
fn router_v4(link: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, link.min(253) as u8 + 1)
}

fn router_v6(link: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, link.min(0xfffe) as u16 + 1)
}

/// The longest message over IPv4 ([rfc-1812] section 4.3.2.3), and over IPv6, its least MTU.
const QUOTED_V4: usize = 576;
const QUOTED_V6: usize = 1280;

/// Of ICMP over IPv4, what is no error: echo, timestamp, and their answers.
const ASKS_V4: [u8; 4] = [0, 8, 13, 14];
/// Of ICMP over IPv6, the first kind that is no error.
const ASKS_V6: u8 = 128;

const TTL: u8 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::tests::ipv4;

    /// The sum of a message over 16-bit words ([rfc-1071]); all ones if it has its checksum.
    fn sum(bytes: &[u8], pseudo: u32) -> u16 {
        let word = |pair: &[u8]| u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
        let mut sum = pseudo + bytes.chunks(2).map(word).sum::<u32>();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    fn whole(len: usize) -> Vec<u8> {
        let mut packet = ipv4(Ipv4Addr::new(10, 77, 2, 1), len);
        packet[6] = 0x40;
        packet
    }

    /// By the figures of RFC 1191 section 4 and RFC 792: type 3, code 4, the MTU in the last two bytes of the header.
    #[test]
    fn message_over_ipv4_quotes_the_packet_and_says_the_mtu() {
        for len in [28, 700, 1500] {
            let packet = whole(len);
            let message = too_big(&packet, 2, 1400).unwrap();
            assert_eq!(message.len(), 28 + len.min(548));
            assert_eq!(u16::from_be_bytes([message[2], message[3]]) as usize, message.len());
            assert_eq!((message[9], &message[12..16], &message[16..20]), (1, &[10, 77, 0, 3][..], &[10, 77, 1, 1][..]));
            assert_eq!((sum(&message[..20], 0), sum(&message[20..], 0)), (0xffff, 0xffff));
            assert_eq!((message[20], message[21], &message[24..28]), (3, 4, &[0, 0, 0x05, 0x78][..]));
            assert_eq!(message[28..], packet[..len.min(548)]);
        }
    }

    /// By the figure of RFC 4443 section 3.2: type 2, code 0, the MTU in 32 bits.
    #[test]
    fn message_over_ipv6_quotes_the_packet_and_says_the_mtu() {
        let addresses = ["fd77::1:1", "fd77::2:1"].map(|address| address.parse::<Ipv6Addr>().unwrap().octets());
        for len in [40, 1300, 1500] {
            let mut packet = vec![0; len];
            packet[0] = 0x60;
            packet[4..6].copy_from_slice(&(len as u16 - 40).to_be_bytes());
            (packet[6], packet[7]) = (17, 64);
            packet[8..24].copy_from_slice(&addresses[0]);
            packet[24..40].copy_from_slice(&addresses[1]);
            let message = too_big(&packet, 0, 1280).unwrap();
            assert_eq!(message.len(), 48 + len.min(1232));
            assert_eq!(u16::from_be_bytes([message[4], message[5]]) as usize, message.len() - 40);
            assert_eq!((message[6], &message[24..40]), (58, &addresses[0][..]));
            assert_eq!((message[40], message[41], &message[44..48]), (2, 0, &[0, 0, 0x05, 0x00][..]));
            // The pseudo-header of RFC 8200 section 8.1: addresses, length, next header.
            let pseudo = u32::from(sum(&message[8..40], 0)) + (message.len() as u32 - 40) + 58;
            assert_eq!(sum(&message[40..], pseudo), 0xffff);
            assert_eq!(message[48..], packet[..len.min(1232)]);
        }
    }

    #[test]
    fn router_says_nothing_where_it_must_not() {
        let changed = |change: fn(&mut Vec<u8>)| {
            let mut packet = whole(1500);
            change(&mut packet);
            too_big(&packet, 0, 1400)
        };
        assert!(changed(|_| {}).is_some());
        // It may be fragmented; a later fragment; an error of ICMP; to many.
        assert_eq!(changed(|packet| packet[6] = 0), None);
        assert_eq!(changed(|packet| packet[7] = 1), None);
        assert_eq!(changed(|packet| (packet[9], packet[20]) = (1, 3)), None);
        assert_eq!(changed(|packet| packet[16] = 224), None);
        assert!(changed(|packet| (packet[9], packet[20]) = (1, 8)).is_some());
        assert_eq!(changed(|packet| packet.truncate(19)), None);

        let over_ipv6 = |next_header: u8, kind: u8, to: u8| {
            let mut packet = vec![0; 1500];
            (packet[0], packet[5], packet[6], packet[24], packet[40]) = (0x60, 0xb4, next_header, to, kind);
            packet[4] = 0x05;
            too_big(&packet, 0, 1280)
        };
        assert!(over_ipv6(17, 0, 0xfd).is_some());
        // An error of ICMP, and its echo; to many.
        assert_eq!(over_ipv6(58, 127, 0xfd), None);
        assert!(over_ipv6(58, 128, 0xfd).is_some());
        assert_eq!(over_ipv6(17, 0, 0xff), None);
        assert_eq!(too_big(&[0x60; 39], 0, 1280), None);
        assert_eq!(too_big(&[], 0, 1280), None);
    }
}
