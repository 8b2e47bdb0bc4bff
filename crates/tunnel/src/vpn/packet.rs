//! What a packet says of itself, checked.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The header of a packet that is what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) protocol: u8,
    /// Source and destination port of TCP and UDP; not those of a fragment.
    pub(crate) ports: Option<(u16, u16)>,
}

impl Header {
    /// Reads the header of a whole packet. `None` if its version, a length, or an address cannot be: nobody is the source of such a packet.
    pub(crate) fn read(packet: &[u8]) -> Option<Self> {
        let header = match packet.first()? >> 4 {
            4 => Self::read_4(packet)?,
            6 => Self::read_6(packet)?,
            _ => return None,
        };
        (is_host(header.source) && is_host(header.destination)).then_some(header)
    }

    fn read_4(packet: &[u8]) -> Option<Self> {
        let header: &[u8; 20] = packet.first_chunk()?;
        let len = usize::from(header[0] & 15) * 4;
        if len < header.len() || len > packet.len() || packet.len() != usize::from(word(header, 2)) {
            return None;
        }
        let protocol = header[9];
        // More fragments, or an offset.
        let is_fragment = word(header, 6) & 0x3fff != 0;
        let source = Ipv4Addr::from([header[12], header[13], header[14], header[15]]).into();
        let destination = Ipv4Addr::from([header[16], header[17], header[18], header[19]]).into();
        let ports = if is_fragment { None } else { ports(protocol, &packet[len..]) };
        Some(Self { source, destination, protocol, ports })
    }

    fn read_6(packet: &[u8]) -> Option<Self> {
        let header: &[u8; 40] = packet.first_chunk()?;
        if packet.len() != header.len() + usize::from(word(header, 4)) {
            return None;
        }
        let address = |at: usize| <[u8; 16]>::try_from(&header[at..at + 16]).map(|bytes| Ipv6Addr::from(bytes).into());
        let (source, destination) = (address(8).ok()?, address(24).ok()?);
        // Extension headers are not followed: what has some is a flow by its addresses.
        let protocol = header[6];
        Some(Self { source, destination, protocol, ports: ports(protocol, &packet[header.len()..]) })
    }

    /// A number that packets of the same flow have in common.
    pub(crate) fn flow(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.source, self.destination, self.protocol, self.ports).hash(&mut hasher);
        hasher.finish()
    }

    /// Whether its receiver takes a packet that was overtaken for lost: TCP, and QUIC, which has the port of HTTPS.
    pub(crate) fn needs_order(&self) -> bool {
        let is_quic = |(source, destination): (u16, u16)| source == QUIC_PORT || destination == QUIC_PORT;
        self.protocol == TCP || self.protocol == UDP && self.ports.is_some_and(is_quic)
    }

    /// Whether this is a packet of UDP that has one of these ports at the end that `of` chooses.
    pub(crate) fn is_udp_of(&self, of: impl Fn((u16, u16)) -> u16, own: &[u16]) -> bool {
        self.protocol == UDP && self.ports.is_some_and(|ports| own.contains(&of(ports)))
    }
}

fn ports(protocol: u8, payload: &[u8]) -> Option<(u16, u16)> {
    let bytes: &[u8; 4] = payload.first_chunk()?;
    (protocol == TCP || protocol == UDP).then(|| (word(bytes, 0), word(bytes, 2)))
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// Whether it is the address of one host, as another computer sees it.
fn is_host(address: IpAddr) -> bool {
    !address.is_unspecified() && !address.is_loopback() && !address.is_multicast() && address != Ipv4Addr::BROADCAST
}

const TCP: u8 = 6;
const UDP: u8 = 17;
const QUIC_PORT: u16 = 443;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A packet of UDP.
    pub(crate) fn udp(source: &str, destination: &str, ports: (u16, u16), len: usize) -> Vec<u8> {
        packet(UDP, source, destination, ports, len)
    }

    /// A packet of TCP or UDP whose payload is zeros.
    pub(crate) fn packet(protocol: u8, source: &str, destination: &str, ports: (u16, u16), len: usize) -> Vec<u8> {
        let mut packet = match (source.parse().unwrap(), destination.parse().unwrap()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let total = (20 + len) as u16;
                let mut header = vec![0x45, 0, (total >> 8) as u8, total as u8, 0, 0, 0x40, 0, 64, protocol, 0, 0];
                header.extend(source.octets());
                header.extend(destination.octets());
                header
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let mut header = vec![0x60, 0, 0, 0, (len >> 8) as u8, len as u8, protocol, 64];
                header.extend(source.octets());
                header.extend(destination.octets());
                header
            }
            _ => panic!("both are of one family"),
        };
        let begin = packet.len();
        packet.resize(begin + len, 0);
        packet[begin..begin + 2].copy_from_slice(&ports.0.to_be_bytes());
        packet[begin + 2..begin + 4].copy_from_slice(&ports.1.to_be_bytes());
        packet
    }

    #[test]
    fn header_tells_addresses_protocol_and_ports() {
        for (source, destination) in [("10.90.0.2", "192.0.2.1"), ("fd90::2", "2001:db8::1")] {
            let header = Header::read(&udp(source, destination, (7, 443), 30)).unwrap();
            let addresses = (source.parse().unwrap(), destination.parse().unwrap());
            assert_eq!((header.source, header.destination), addresses);
            assert_eq!((header.protocol, header.ports, header.needs_order()), (UDP, Some((7, 443)), true));
            let other = Header::read(&udp(source, destination, (7, 53), 30)).unwrap();
            assert!(!other.needs_order() && other.flow() != header.flow());
            assert!(other.is_udp_of(|(source, _)| source, &[1, 7]) && !other.is_udp_of(|(source, _)| source, &[53]));
        }
    }

    #[test]
    fn fragment_has_no_ports() {
        let mut packet = udp("10.90.0.2", "192.0.2.1", (7, 443), 32);
        for bits in [0x20, 0x1f] {
            packet[6] = bits;
            let header = Header::read(&packet).unwrap();
            assert!(header.ports.is_none() && !header.needs_order(), "{header:?}");
        }
    }

    #[test]
    fn malformed_packet_is_refused() {
        let good = udp("10.90.0.2", "192.0.2.1", (1, 2), 8);
        let change = |at: usize, byte: u8| {
            let mut packet = good.clone();
            packet[at] = byte;
            packet
        };
        assert!(Header::read(&good).is_some());
        // Version, header length below 20 and beyond the packet, total length.
        for packet in [change(0, 0x55), change(0, 0x44), change(0, 0x4f), change(3, 27), change(3, 29), change(2, 1)] {
            assert_eq!(Header::read(&packet), None, "{packet:?}");
        }
        let six = udp("fd90::2", "fd90::1", (1, 2), 8);
        for len in 0..six.len() {
            assert_eq!(Header::read(&six[..len]), None, "{len}");
            assert_eq!(Header::read(&good[..len.min(good.len() - 1)]), None, "{len}");
        }
        assert_eq!(Header::read(&[six, vec![0]].concat()), None);
    }

    #[test]
    fn address_of_no_host_is_refused() {
        for of_none in ["0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255"] {
            assert_eq!(Header::read(&udp(of_none, "10.90.0.1", (1, 2), 8)), None, "{of_none}");
            assert_eq!(Header::read(&udp("10.90.0.1", of_none, (1, 2), 8)), None, "{of_none}");
        }
        for of_none in ["::", "::1", "ff02::1"] {
            assert_eq!(Header::read(&udp(of_none, "fd90::1", (1, 2), 8)), None, "{of_none}");
            assert_eq!(Header::read(&udp("fd90::1", of_none, (1, 2), 8)), None, "{of_none}");
        }
    }

    /// Whatever bytes come, a header is read or not, and a header that is read has the packet's own length.
    #[test]
    fn random_bytes_never_panic() {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        let mut read = 0;
        for _ in 0..200_000 {
            let len = next() % 64;
            let mut packet: Vec<u8> = (0..len).map(|_| next() as u8).collect();
            if let Some(first) = packet.first_mut() {
                *first = if next() % 2 == 0 { 0x45 } else { 0x60 };
            }
            if next() % 2 == 0 && len >= 40 {
                packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
                packet[4..6].copy_from_slice(&(len as u16 - 40).to_be_bytes());
            }
            read += usize::from(Header::read(&packet).is_some());
        }
        assert!(read > 1000, "{read}");
    }
}
