//! The device's offloads: a header of virtio before each packet ([virtio] sec. 5.1.6), by which the kernel and we spare each other work.
//!
//! * What arrives may be as long as several segments of the kernel's TCP, and needs no checksum if it was never on a wire. It is taken as one segment:
//!   the receiver of plain TCP asks for no boundaries.
//! * What leaves is gathered into a [`Train`]: segments of one connection in a row, of one size but for the last, with the same header but for number
//!   and PSH. The kernel delivers it whole to its own TCP, or takes it apart at the same boundaries where it forwards it to a wire. So a segment keeps
//!   its boundaries, and is sent again as it was. Segments of streams say an extent each, so they go alone.

use anabranch_proto::wire::internet_checksum;

use crate::packet::Sum;

/// Takes the header off a packet that arrived; `None` if it is shorter.
pub(crate) fn take(packet: &[u8]) -> Option<(Sum, &[u8])> {
    let (header, packet) = packet.split_first_chunk::<HEADER>()?;
    let sum = if header[0] & (NEEDS_SUM | SUM_IS_RIGHT) == 0 { Sum::Computed } else { Sum::Vouched };
    Some((sum, packet))
}

/// Packets that leave as one.
#[derive(Debug)]
pub(crate) struct Train {
    /// The header, and the first packet with the contents of those that follow; empty if there is none.
    bytes: Vec<u8>,
    /// What the first one is, if it can lead others.
    lead: Option<Head>,
    count: usize,
    /// The number that the next one has.
    next: u32,
    /// No other one can follow: the last one is shorter, or pushed.
    is_closed: bool,
}

impl Train {
    pub(crate) fn new() -> Self {
        Self { bytes: Vec::with_capacity(HEADER + LONGEST), lead: None, count: 0, next: 0, is_closed: false }
    }

    /// Adds a packet; false if it cannot go with those that are here.
    pub(crate) fn add(&mut self, packet: &[u8]) -> bool {
        let head = Head::read(packet);
        if self.count == 0 {
            self.bytes.resize(HEADER, 0);
            self.bytes.extend_from_slice(packet);
            (self.lead, self.count) = (head.filter(|head| head.flags == ACK), 1);
        } else {
            let (Some(lead), Some(head)) = (self.lead, head) else { return false };
            let room = HEADER + LONGEST - self.bytes.len();
            let fits = head.content <= lead.content.min(room) && head.seq == self.next && !self.is_closed;
            if !fits || !lead.has_equal(&self.bytes[HEADER..], &head, packet) {
                return false;
            }
            self.bytes.extend_from_slice(&packet[head.len..]);
            self.count += 1;
            self.bytes[HEADER + lead.ip + FLAGS_AT] |= head.flags;
            self.is_closed = head.content < lead.content || head.flags != ACK;
        }
        self.next = head.map_or(0, |head| head.seq.wrapping_add(head.content as u32));
        true
    }

    /// The packets as the device takes them; nothing if there are none. [`Train::clear`] comes next.
    pub(crate) fn finish(&mut self) -> &[u8] {
        let Some(lead) = self.lead.filter(|_| self.count > 1) else { return &self.bytes };
        let packet = &mut self.bytes[HEADER..];
        let (len, segment) = (packet.len() as u16, (packet.len() - lead.ip) as u16);
        let (kind, addresses) = if lead.ip == IPV4 {
            packet[2..4].copy_from_slice(&len.to_be_bytes());
            packet[10..12].fill(0);
            let sum = internet_checksum(&[&packet[..IPV4]]);
            packet[10..12].copy_from_slice(&sum.to_be_bytes());
            (TCP_V4, 12..20)
        } else {
            packet[4..6].copy_from_slice(&segment.to_be_bytes());
            (TCP_V6, 8..40)
        };
        // The sum of the pseudo header alone, and not its complement: whoever divides or delivers the packet goes on from there.
        let rest = [[0, TCP], segment.to_be_bytes()];
        let sum = !internet_checksum(&[&packet[addresses], rest.as_flattened()]);
        let at = lead.ip + SUM_AT;
        packet[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        let words = [lead.len, lead.content, lead.ip, SUM_AT].map(|word| (word as u16).to_ne_bytes());
        self.bytes[..2].copy_from_slice(&[NEEDS_SUM, kind]);
        self.bytes[2..HEADER].copy_from_slice(words.as_flattened());
        &self.bytes
    }

    /// The number of packets.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        (self.lead, self.count, self.is_closed) = (None, 0, false);
    }
}

/// What is read of a TCP segment with content in a packet of ours, without flags beyond the first byte of them.
#[derive(Clone, Copy, Debug)]
struct Head {
    /// Bytes of the IP header, and of both headers.
    ip: usize,
    len: usize,
    seq: u32,
    flags: u8,
    content: usize,
}

impl Head {
    fn read(packet: &[u8]) -> Option<Self> {
        let ip = match packet.first()? {
            // Without options; routers may not fragment it.
            0x45 if packet.get(9) == Some(&TCP) && packet.get(6..8) == Some(&[0x40, 0]) => IPV4,
            0x60..=0x6f if packet.get(6) == Some(&TCP) => IPV6,
            _ => return None,
        };
        let &[_, _, _, _, a, b, c, d, _, _, _, _, offset, flags] = packet.get(ip..)?.first_chunk()?;
        let len = ip + usize::from(offset >> 4) * 4;
        let content = packet.len().checked_sub(len).filter(|&content| content > 0)?;
        (offset & 0x0f == 0).then_some(Self { ip, len, seq: u32::from_be_bytes([a, b, c, d]), flags, content })
    }

    /// Whether another packet has the same headers but for lengths, numbers, sums and PSH.
    fn has_equal(&self, own: &[u8], other: &Self, packet: &[u8]) -> bool {
        let is_same = |range: std::ops::Range<usize>| own.get(range.clone()) == packet.get(range);
        let ip = self.ip;
        let is_same_ip = if ip == IPV4 {
            is_same(0..2) && is_same(4..10) && is_same(12..20)
        } else {
            is_same(0..4) && is_same(6..40)
        };
        let is_same_tcp = is_same(ip..ip + 4)
            && is_same(ip + 8..ip + FLAGS_AT)
            && is_same(ip + 14..ip + SUM_AT)
            && is_same(ip + SUM_AT + 2..self.len);
        let is_usual = other.flags & !PSH == ACK;
        is_usual && (other.ip, other.len) == (self.ip, self.len) && is_same_ip && is_same_tcp
    }
}

/// Bytes of the header of virtio.
pub(crate) const HEADER: usize = 10;

/// Bytes of the longest packet.
const LONGEST: usize = 65_535;

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`, `…_DATA_VALID`; `VIRTIO_NET_HDR_GSO_TCPV4`, `…_TCPV6`.
const NEEDS_SUM: u8 = 1;
const SUM_IS_RIGHT: u8 = 2;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;

/// The number of TCP in IP headers, and the bytes of those.
const TCP: u8 = 6;
const IPV4: usize = 20;
const IPV6: usize = 40;

/// Positions in a TCP header, and flags.
const FLAGS_AT: usize = 13;
const SUM_AT: usize = 16;
const ACK: u8 = 0x10;
const PSH: u8 = 0x08;

#[cfg(test)]
mod tests {
    use anabranch_proto::wire::Checksum;
    use anabranch_proto::{
        AcknowledgementOptions, Address, Content, Flags, FourTuple, Header, Options, Segment, SeqNumber, Timestamps,
    };

    use super::*;
    use crate::packet::{self, IpFields};

    fn tuple(is_v4: bool) -> FourTuple {
        let end = |last, port| {
            let address: u128 = if is_v4 { 0xffff_0a63_0000 } else { 0xfd00_0099 << 96 };
            Address { address: address | last, port }
        };
        FourTuple { local: end(2, 80), remote: end(1, 4000) }
    }

    /// A packet with `len` bytes from `seq` on.
    fn packet(is_v4: bool, seq: u32, len: usize, flags: Flags, clock: u32) -> Vec<u8> {
        let header = Header { seq: SeqNumber(seq), flags, window: 500, ..Header::default() };
        let stamps = Timestamps { value: clock, echo: 2 };
        let options = Options::Acknowledgement(AcknowledgementOptions::default().with_timestamps(stamps));
        let content = Content::Data((0..len).map(|at| (at + seq as usize) as u8).collect());
        let segment = Segment { header, options, stream_header: None, content };
        let mut out = vec![];
        packet::write_segment(tuple(is_v4), IpFields::default(), None, None, &segment, None, &mut out);
        out
    }

    /// What the kernel makes of a train where it has to divide it ([virtio] sec. 5.1.6.2): the packets as they were.
    fn divide(train: &[u8], is_v4: bool) -> Vec<Vec<u8>> {
        let (header, whole) = train.split_at(HEADER);
        let word = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
        let (head, size) = (word(2), word(4));
        assert_eq!((header[0], header[1]), (1, if is_v4 { 1 } else { 4 }));
        assert_eq!((word(6), word(8)), (if is_v4 { 20 } else { 40 }, 16));
        let parts = whole[head..].chunks(size).enumerate();
        let count = whole[head..].len().div_ceil(size);
        let of = |(number, content): (usize, &[u8])| {
            let ip = word(6);
            let mut packet = [&whole[..head], content].concat();
            let len = packet.len() as u16;
            let seq = u32::from_be_bytes(packet[ip + 4..ip + 8].try_into().unwrap()) + (number * size) as u32;
            packet[ip + 4..ip + 8].copy_from_slice(&seq.to_be_bytes());
            if number + 1 < count {
                packet[ip + 13] &= !PSH;
            }
            if is_v4 {
                packet[2..4].copy_from_slice(&len.to_be_bytes());
                packet[10..12].fill(0);
                let sum = internet_checksum(&[&packet[..20]]);
                packet[10..12].copy_from_slice(&sum.to_be_bytes());
            } else {
                packet[4..6].copy_from_slice(&(len - 40).to_be_bytes());
            }
            packet[ip + 16..ip + 18].fill(0);
            let sum = Checksum::of_path(tuple(is_v4)).of(&packet[ip..]).unwrap();
            packet[ip + 16..ip + 18].copy_from_slice(&sum.to_be_bytes());
            packet
        };
        parts.map(of).collect()
    }

    #[test]
    fn divided_train_is_what_was_gathered() {
        for is_v4 in [true, false] {
            let all: Vec<_> = (0..5).map(|at| packet(is_v4, 7 + 1000 * at, 1000, Flags::ACK, 1)).collect();
            let last = packet(is_v4, 5007, 300, Flags::ACK | Flags::PSH, 1);
            let mut train = Train::new();
            assert!(all.iter().chain([&last]).all(|packet| train.add(packet)));
            let sent = train.finish().to_vec();
            assert_eq!(divide(&sent, is_v4), [&all[..], &[last]].concat());
            // The sum of the pseudo header, from which the kernel goes on: with the rest it gives what the checksum of the whole is.
            let ip = if is_v4 { 20 } else { 40 };
            let mut whole = sent[HEADER + ip..].to_vec();
            let sum = !internet_checksum(&[&whole]);
            whole[16..18].fill(0);
            assert_eq!(Some(!sum), Checksum::of_path(tuple(is_v4)).of(&whole));
            // After it comes another one.
            train.clear();
            assert!(train.finish().is_empty() && train.add(&all[3]));
            assert_eq!(train.finish(), [&[0; HEADER][..], &all[3]].concat());
        }
    }

    /// Another size, number, window, timestamp, flag or connection goes apart; so does what follows a push or a short one.
    #[test]
    fn packets_that_differ_go_apart() {
        let first = packet(true, 0, 1000, Flags::ACK, 1);
        let next = |len, flags, clock| packet(true, 1000, len, flags, clock);
        let mut other_ports = next(1000, Flags::ACK, 1);
        other_ports[21] ^= 1;
        let mut other_hops = next(1000, Flags::ACK, 1);
        other_hops[8] -= 1;
        let apart = [
            next(1001, Flags::ACK, 1),
            next(1000, Flags::ACK, 2),
            next(1000, Flags::ACK | Flags::FIN, 1),
            next(1000, Flags::ACK | Flags::MSE, 1),
            next(0, Flags::ACK, 1),
            packet(true, 1001, 1000, Flags::ACK, 1),
            packet(true, 0, 1000, Flags::ACK, 1),
            packet(false, 1000, 1000, Flags::ACK, 1),
            other_ports,
            other_hops,
        ];
        for packet in &apart {
            let mut train = Train::new();
            assert!(train.add(&first) && !train.add(packet), "{packet:?}");
        }
        for (len, flags) in [(999, Flags::ACK), (1000, Flags::ACK | Flags::PSH)] {
            let mut train = Train::new();
            let after = packet(true, 1000 + len as u32, 900, Flags::ACK, 1);
            assert!(train.add(&first) && train.add(&next(len, flags, 1)) && !train.add(&after));
        }
        for flags in [Flags::ACK | Flags::PSH, Flags::SYN, Flags::ACK | Flags::FIN] {
            let mut train = Train::new();
            assert!(train.add(&packet(true, 0, 1000, flags, 1)) && !train.add(&next(1000, Flags::ACK, 1)));
        }
    }

    /// 44 segments of 1448 bytes: one more would not have its length in an IP header.
    #[test]
    fn train_is_no_longer_than_a_packet() {
        let mut train = Train::new();
        let count = (0..).take_while(|at| train.add(&packet(true, 1448 * at, 1448, Flags::ACK, 1))).count();
        assert_eq!(count, (65_535 - 52) / 1448);
        assert_eq!(divide(train.finish(), true).len(), count);
    }

    #[test]
    fn header_of_what_arrives_is_taken_off() {
        assert_eq!(take(&[0; 9]), None);
        assert_eq!(take(&[0; 10]), Some((Sum::Computed, &[][..])));
        for flag in [1, 2] {
            assert_eq!(take(&[flag, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]), Some((Sum::Vouched, &[7][..])));
        }
    }
}
