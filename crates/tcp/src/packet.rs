//! IP packets: the headers around TCP segments, and the ICMP messages that concern TCP.
//!
//! What arrives is untrusted: a packet that is cut, wrong or none of ours is an [`Unfit`], and nothing panics.

use std::net::IpAddr;

use anabranch_proto::wire::{self, Checksum, Ports, internet_checksum};
use anabranch_proto::{Address, EcnCodepoint, FourTuple, Segment, SeqNumber};
use bytes::Bytes;
use etherparse::{IpDscp, IpEcn, IpNumber, IpSlice, Ipv4Header, Ipv6Header};

use crate::parts;

/// A packet that arrived, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its ends: ours is `local`.
    pub tuple: FourTuple,
    /// The ECN codepoint of its IP header.
    pub ecn: Option<EcnCodepoint>,
    /// What it carries.
    pub body: Body,
}

/// What a packet carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A TCP segment, as it arrived: its checksum may be wrong.
    Segment(Bytes),
    /// An ICMP message about a segment of ours; its ends are those of that segment.
    Notice(Notice),
    /// An echo request: its ICMP message.
    Ping(Bytes),
}

/// The checksum of a segment that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sum {
    /// It is to be checked.
    Computed,
    /// It was left out, or the kernel has checked it.
    Vouched,
}

/// An ICMP message about a segment of ours ([rfc-792], [rfc-4443]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What happened to the segment.
    pub kind: NoticeKind,
    /// Its sequence number, which a stranger does not know ([rfc-5927] sec. 4.1).
    pub seq: SeqNumber,
}

/// What happened to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeKind {
    /// The host has no such port, or no TCP: a hard error ([rfc-1122] sec. 4.2.3.9).
    PortUnreachable,
    /// The network or the host cannot be reached, or a filter refuses: a soft error.
    Unreachable,
    /// The packet was longer than this MTU, in bytes.
    TooBig(u32),
    /// The packet has met too many routers, or its fragments were not complete in time.
    TimeExceeded,
}

/// What an application chooses of the IP headers of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpFields {
    hop_limit: u8,
    dscp: u8,
}

impl IpFields {
    /// A hop limit (IPv4's time to live), and a codepoint of the Diffserv field ([rfc-2474]); `None` if the limit is zero, or the codepoint has more than
    /// six bits.
    pub const fn new(hop_limit: u8, dscp: u8) -> Option<Self> {
        if hop_limit > 0 && dscp < 1 << 6 { Some(Self { hop_limit, dscp }) } else { None }
    }
}

/// The hop limit that systems use, and best effort.
impl Default for IpFields {
    fn default() -> Self {
        Self { hop_limit: 64, dscp: 0 }
    }
}

/// Why a packet is not for us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is no IP packet, or it is cut.
    Malformed,
    /// A fragment. Whoever forwards to the device must put them together, as connection tracking does.
    Fragment,
    /// Neither TCP nor ICMP.
    OtherProtocol,
    /// An ICMP message with a wrong checksum, or about nothing of ours.
    Icmp,
}

impl Packet {
    /// Reads an IP packet.
    ///
    /// # Errors
    /// If it is none, or neither a TCP segment nor an ICMP message that concerns TCP.
    pub fn read(bytes: &Bytes) -> Result<Self, Unfit> {
        let packet = IpSlice::from_slice(bytes).map_err(|_| Unfit::Malformed)?;
        let payload = packet.payload();
        if payload.fragmented {
            return Err(Unfit::Fragment);
        }
        let class = match &packet {
            IpSlice::Ipv4(packet) => packet.header().ecn().value(),
            IpSlice::Ipv6(packet) => packet.header().traffic_class(),
        };
        let (remote, local) = (number(packet.source_addr()), number(packet.destination_addr()));
        let ecn = EcnCodepoint::from_bits(class);
        let ends =
            FourTuple { local: Address { address: local, port: 0 }, remote: Address { address: remote, port: 0 } };
        let content = bytes.slice_ref(payload.payload);
        match payload.ip_number {
            IpNumber::TCP => {
                let Some(&[a, b, c, d]) = content.first_chunk() else { return Err(Unfit::Malformed) };
                let tuple = with_ports(ends, u16::from_be_bytes([c, d]), u16::from_be_bytes([a, b]));
                Ok(Self { tuple, ecn, body: Body::Segment(content) })
            }
            IpNumber::ICMP if packet.ipv4().is_some() => icmp(ends, ecn, content, &V4),
            IpNumber::IPV6_ICMP if packet.ipv6().is_some() => icmp(ends, ecn, content, &V6),
            _ => Err(Unfit::OtherProtocol),
        }
    }
}

/// Appends the IP packet of a segment; `id` is that of an IPv4 packet that routers may fragment. With the initial number of its sender, the segment says its extent.
pub(crate) fn write_segment(
    tuple: FourTuple,
    fields: IpFields,
    ecn: Option<EcnCodepoint>,
    id: Option<u16>,
    segment: &Segment<Bytes>,
    initial: Option<SeqNumber>,
    out: &mut Vec<u8>,
) {
    let begin = out.len();
    // The length is known after the segment.
    out.resize(begin + header_len(tuple), 0);
    let at = out.len();
    let (ports, checksum) = (Ports::of(tuple), Checksum::of_path(tuple));
    match initial {
        Some(initial) => wire::encode_within(segment, ports, checksum, initial, out),
        None => wire::encode(segment, ports, checksum, out),
    }
    let len = out.len() - at;
    let header = Outer { protocol: IpNumber::TCP, fields, ecn, id };
    write_header(tuple, &header, len, &mut out[begin..at]);
}

/// Appends the answer to an echo request with the ICMP message `ping`.
pub(crate) fn write_pong(tuple: FourTuple, id: u16, ping: &[u8], out: &mut Vec<u8>) {
    let (begin, family) = (out.len(), if tuple.local.is_ipv4() { &V4 } else { &V6 });
    out.resize(begin + header_len(tuple), 0);
    let at = out.len();
    out.extend_from_slice(ping);
    (out[at], out[at + 1]) = (family.pong, 0);
    out[at + 2..at + 4].fill(0);
    let sum = icmp_checksum(tuple, &out[at..]);
    out[at + 2..at + 4].copy_from_slice(&sum.to_be_bytes());
    let len = out.len() - at;
    let header = Outer { protocol: family.number, fields: IpFields::default(), ecn: None, id: Some(id) };
    write_header(tuple, &header, len, &mut out[begin..at]);
}

/// The packets of at most `most` bytes that carry the segment of this one, which may not be fragmented: each has a part of the content, and all options.
pub(crate) fn split(tuple: FourTuple, packet: &[u8], most: usize) -> Vec<Vec<u8>> {
    let (ip, tcp) = packet.split_at(header_len(tuple));
    let parts = parts::split(tcp, most.saturating_sub(ip.len()), Checksum::of_path(tuple));
    let (class, hop_limit) = if tuple.local.is_ipv4() { (ip[1], ip[8]) } else { (ip[0] << 4 | ip[1] >> 4, ip[7]) };
    let fields = IpFields { hop_limit, dscp: class >> 2 };
    let header = Outer { protocol: IpNumber::TCP, fields, ecn: EcnCodepoint::from_bits(class), id: None };
    let whole = |part: Bytes| {
        let mut packet = ip.to_vec();
        write_header(tuple, &header, part.len(), &mut packet);
        packet.extend(part);
        packet
    };
    parts.into_iter().map(whole).collect()
}

pub(crate) fn header_len(tuple: FourTuple) -> usize {
    if tuple.local.is_ipv4() { IPV4_HEADER } else { Ipv6Header::LEN }
}

/// Bytes of an IPv4 header without options.
pub(crate) const IPV4_HEADER: usize = Ipv4Header::MIN_LEN;

/// What an IP header says besides its ends.
struct Outer {
    protocol: IpNumber,
    fields: IpFields,
    ecn: Option<EcnCodepoint>,
    /// The identification of an IPv4 packet that may be fragmented.
    id: Option<u16>,
}

/// Fills the place of an IP header before `len` bytes.
fn write_header(tuple: FourTuple, &Outer { protocol, fields, ecn, id }: &Outer, len: usize, place: &mut [u8]) {
    let bits = ecn.map_or(0, EcnCodepoint::bits);
    let (source, destination) = (tuple.local.address, tuple.remote.address);
    if tuple.local.is_ipv4() {
        let mut header = Ipv4Header {
            total_len: (place.len() + len) as u16,
            // [rfc-6864] sec. 4.1: without fragments it means nothing.
            identification: id.unwrap_or(0),
            dont_fragment: id.is_none(),
            dscp: IpDscp::try_new(fields.dscp).unwrap_or_default(),
            ecn: IpEcn::try_new(bits).unwrap_or_default(),
            time_to_live: fields.hop_limit,
            protocol,
            source: (source as u32).to_be_bytes(),
            destination: (destination as u32).to_be_bytes(),
            ..Ipv4Header::default()
        };
        header.header_checksum = header.calc_header_checksum();
        place.copy_from_slice(&header.to_bytes());
    } else {
        let header = Ipv6Header {
            traffic_class: fields.dscp << 2 | bits,
            payload_length: len as u16,
            next_header: protocol,
            hop_limit: fields.hop_limit,
            source: source.to_be_bytes(),
            destination: destination.to_be_bytes(),
            ..Ipv6Header::default()
        };
        place.copy_from_slice(&header.to_bytes());
    }
}

/// The messages of ICMP for one family of addresses.
struct Family {
    number: IpNumber,
    ping: u8,
    pong: u8,
    kind: fn(u8, u8, [u8; 4]) -> Option<NoticeKind>,
}

const V4: Family = Family {
    number: IpNumber::ICMP,
    ping: 8,
    pong: 0,
    kind: |kind, code, rest| match (kind, code) {
        (3, 2 | 3) => Some(NoticeKind::PortUnreachable),
        // Before [rfc-1191], routers gave no MTU.
        (3, 4) => Some(NoticeKind::TooBig(u16::from_be_bytes([rest[2], rest[3]]).into())),
        (3, _) => Some(NoticeKind::Unreachable),
        (11, _) => Some(NoticeKind::TimeExceeded),
        _ => None,
    },
};

const V6: Family = Family {
    number: IpNumber::IPV6_ICMP,
    ping: 128,
    pong: 129,
    kind: |kind, code, rest| match (kind, code) {
        (1, 4) => Some(NoticeKind::PortUnreachable),
        (1, _) => Some(NoticeKind::Unreachable),
        (2, _) => Some(NoticeKind::TooBig(u32::from_be_bytes(rest))),
        (3, _) => Some(NoticeKind::TimeExceeded),
        _ => None,
    },
};

/// Reads an ICMP message, which quotes the head of the packet that it is about.
fn icmp(ends: FourTuple, ecn: Option<EcnCodepoint>, message: Bytes, family: &Family) -> Result<Packet, Unfit> {
    let Some((&[kind, code, _, _, a, b, c, d], quote)) = message.split_first_chunk::<ICMP_LEN>() else {
        return Err(Unfit::Icmp);
    };
    if icmp_checksum(ends, &message) != 0 {
        return Err(Unfit::Icmp);
    }
    if kind == family.ping {
        return Ok(Packet { tuple: ends, ecn, body: Body::Ping(message) });
    }
    let kind = (family.kind)(kind, code, [a, b, c, d]).ok_or(Unfit::Icmp)?;
    let (tuple, seq) = quoted(quote).ok_or(Unfit::Icmp)?;
    Ok(Packet { tuple, ecn, body: Body::Notice(Notice { kind, seq }) })
}

/// The ends and the number of the segment in a quoted packet of ours, of which routers may give no more than eight bytes after the IP header.
fn quoted(quote: &[u8]) -> Option<(FourTuple, SeqNumber)> {
    let (source, destination, segment) = match quote.first()? >> 4 {
        4 => {
            let (header, rest) = Ipv4Header::from_slice(quote).ok()?;
            (header.protocol == IpNumber::TCP).then_some(())?;
            (number(header.source.into()), number(header.destination.into()), rest)
        }
        6 => {
            let (header, rest) = Ipv6Header::from_slice(quote).ok()?;
            (header.next_header == IpNumber::TCP).then_some(())?;
            (number(header.source.into()), number(header.destination.into()), rest)
        }
        _ => return None,
    };
    let &[a, b, c, d, e, f, g, h] = segment.first_chunk()?;
    let local = Address { address: source, port: u16::from_be_bytes([a, b]) };
    let remote = Address { address: destination, port: u16::from_be_bytes([c, d]) };
    Some((FourTuple { local, remote }, SeqNumber(u32::from_be_bytes([e, f, g, h]))))
}

/// The checksum of an ICMP message; zero for a right one that has it.
fn icmp_checksum(ends: FourTuple, message: &[u8]) -> u16 {
    if ends.local.is_ipv4() {
        return internet_checksum(&[message]);
    }
    let addresses = [ends.local.address.to_be_bytes(), ends.remote.address.to_be_bytes()];
    let rest = [(message.len() as u32).to_be_bytes(), u32::from(IpNumber::IPV6_ICMP.0).to_be_bytes()];
    internet_checksum(&[addresses.as_flattened(), rest.as_flattened(), message])
}

/// An address as the engine has it.
pub(crate) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn with_ports(mut ends: FourTuple, local: u16, remote: u16) -> FourTuple {
    (ends.local.port, ends.remote.port) = (local, remote);
    ends
}

/// Bytes of an ICMP header.
const ICMP_LEN: usize = 8;
