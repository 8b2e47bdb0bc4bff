//! A TCP segment in an IP packet without options or extension headers, as a middlebox sees it.

use std::net::IpAddr;

use anabranch_proto::wire::internet_checksum;

/// Fields of the TCP header.
pub(crate) const SEQ: usize = 4;
pub(crate) const ACK: usize = 8;
const OFFSET: usize = 12;
const FLAGS: usize = 13;
const CHECKSUM: usize = 16;
const OPTIONS: usize = 20;

/// Flags.
const FIN: u8 = 1;
const SYN: u8 = 2;
const PSH: u8 = 8;
const ACKNOWLEDGES: u8 = 16;
/// ECE and CWR.
const ECN: u8 = 0xc0;

/// Kinds of options.
const NO_OPERATION: u8 = 1;
pub(crate) const MSS: u8 = 2;
pub(crate) const SACK: u8 = 5;
pub(crate) const EXPERIMENT: u8 = 253;

/// Bytes of the IP headers, and the number of TCP in them.
const V4: usize = 20;
const V6: usize = 40;
const TCP: u8 = 6;

#[derive(Clone)]
pub(crate) struct Segment {
    /// The IP header; its length says the version.
    head: Vec<u8>,
    /// With its header.
    pub(crate) bytes: Vec<u8>,
}

impl Segment {
    pub(crate) fn read(packet: &[u8]) -> Option<Self> {
        let (len, protocol) = match packet.first()? {
            0x45 => (V4, 9),
            0x60..=0x6f => (V6, 6),
            _ => return None,
        };
        let is_tcp = packet.len() >= len + OPTIONS && packet[protocol] == TCP;
        is_tcp.then(|| Self { head: packet[..len].to_vec(), bytes: packet[len..].to_vec() })
    }

    /// Its packet, from the first of these addresses to the second.
    pub(crate) fn between(mut self, ends: [&str; 2]) -> Vec<u8> {
        let addresses = ends.map(octets).concat();
        let len = self.bytes.len() as u16;
        if self.is_v6() {
            self.head[4..6].copy_from_slice(&len.to_be_bytes());
            self.head[8..40].copy_from_slice(&addresses);
        } else {
            self.head[2..4].copy_from_slice(&(V4 as u16 + len).to_be_bytes());
            self.head[12..20].copy_from_slice(&addresses);
            self.head[10..12].fill(0);
            let sum = internet_checksum(&[&self.head]);
            self.head[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        self.bytes[CHECKSUM..CHECKSUM + 2].fill(0);
        let sum = internet_checksum(&[&addresses, &[0, TCP], &len.to_be_bytes(), &self.bytes]);
        self.bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
        [self.head, self.bytes].concat()
    }

    pub(crate) fn is_v6(&self) -> bool {
        self.head.len() == V6
    }

    pub(crate) fn is_from(&self, address: &str) -> bool {
        let source = if self.is_v6() { &self.head[8..24] } else { &self.head[12..16] };
        source == octets(address)
    }

    pub(crate) fn ports(&self) -> (u16, u16) {
        let port = |at: usize| u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]]);
        (port(0), port(2))
    }

    pub(crate) fn is_syn(&self) -> bool {
        self.bytes[FLAGS] & SYN != 0
    }

    pub(crate) fn is_ack(&self) -> bool {
        self.bytes[FLAGS] & ACKNOWLEDGES != 0
    }

    /// Whether it is the last one of a write, or of all.
    pub(crate) fn is_last(&self) -> bool {
        self.bytes[FLAGS] & (PSH | FIN) != 0
    }

    /// The option of streams, and the bits that the RFC reserves.
    pub(crate) fn asks_for_streams(&self) -> bool {
        self.option(EXPERIMENT).is_some() && self.bytes[OFFSET] & 0xf != 0
    }

    /// [rfc-3168] sec. 6.1.1.
    pub(crate) fn asks_for_ecn(&self) -> bool {
        self.bytes[FLAGS] & ECN == ECN
    }

    pub(crate) fn may_be_marked(&self) -> bool {
        // Of IPv6 the field's end is in the second byte, above four bits of the flow label.
        self.head[1] >> if self.is_v6() { 4 } else { 0 } & 3 != 0
    }

    pub(crate) fn clear_reserved(&mut self) {
        self.bytes[OFFSET] &= 0xf0;
    }

    fn header_len(&self) -> usize {
        usize::from(self.bytes[OFFSET] >> 4) * 4
    }

    pub(crate) fn content(&self) -> &[u8] {
        &self.bytes[self.header_len()..]
    }

    pub(crate) fn number(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.bytes[at..at + 4].try_into().unwrap())
    }

    pub(crate) fn shift(&mut self, at: usize, by: u32) {
        let shifted = self.number(at).wrapping_add(by);
        self.bytes[at..at + 4].copy_from_slice(&shifted.to_be_bytes());
    }

    /// The place of the option of this kind.
    pub(crate) fn option(&self, kind: u8) -> Option<std::ops::Range<usize>> {
        let mut at = OPTIONS;
        while at + 1 < self.header_len() && self.bytes[at] != 0 {
            let len = if self.bytes[at] == NO_OPERATION { 1 } else { usize::from(self.bytes[at + 1]).max(2) };
            if self.bytes[at] == kind {
                return Some(at..at + len);
            }
            at += len;
        }
        None
    }

    /// Takes out the option of this kind.
    pub(crate) fn strip(&mut self, kind: u8) {
        while let Some(place) = self.option(kind) {
            self.bytes[place].fill(NO_OPERATION);
        }
    }

    /// Two segments, which both have its options.
    pub(crate) fn split(mut self, at: usize) -> Vec<Self> {
        let mut rest = self.clone();
        let begin = self.header_len();
        rest.bytes.drain(begin..begin + at);
        rest.shift(SEQ, at as u32);
        self.bytes.truncate(begin + at);
        self.bytes[FLAGS] &= !(FIN | PSH);
        vec![self, rest]
    }

    /// Whether the other one continues it.
    pub(crate) fn is_before(&self, next: &Self) -> bool {
        self.number(SEQ).wrapping_add(self.content().len() as u32) == next.number(SEQ) && !next.content().is_empty()
    }

    /// Appends the content of the next one; the header is its own, but for the flags at the end.
    pub(crate) fn join(&mut self, next: &Self) {
        self.bytes.extend_from_slice(next.content());
        self.bytes[FLAGS] |= next.bytes[FLAGS] & (FIN | PSH);
    }
}

fn octets(address: &str) -> Vec<u8> {
    match address.parse().unwrap() {
        IpAddr::V4(address) => address.octets().into(),
        IpAddr::V6(address) => address.octets().into(),
    }
}
