//! Captures in pcap-ng (draft-ietf-opsawg-pcapng), as at the entrance of a link's queue.
//!
//! Every link is an interface of the capture. Packets are raw IPv4 (`LINKTYPE_RAW`) with nanosecond times since the start, and only
//! their headers are stored. The simulator has no headers; they are derived from the packets:
//!
//! * flow f goes from 10.x.y.1 to 10.x.y.2 port 5001, where x and y are the two low bytes of f;
//! * ns-2's agents count packets. A sequence number in bytes is the packet's number times the payload of the flow's last data
//!   packet (wire size minus 40). An acknowledgement is the number after the acknowledged one, and SACK blocks likewise;
//! * SCTP's packets are cut after 80 bytes, IP's header included;
//! * other packets are UDP, with the packet's number as the first eight bytes of payload;
//! * segments of the transport are encoded as by `anabranch_proto::wire`, without their data;
//! * the IP checksum is correct; those of TCP, UDP and SCTP are zero, because there is no payload to compute them from.

mod sctp;

use std::collections::BTreeMap;
use std::io::{self, Write};

use anabranch_ns2::{Kind, Packet};
use anabranch_proto::wire::{Ports, encode_head, internet_checksum};
use anabranch_units::Time;

use crate::id::{FlowId, LinkId};
use crate::packet::{Body, Raw};
use crate::probe::{Direction, Happening, Observer, PacketEvent};

/// Writes the packets that enter links to a writer.
#[derive(Debug)]
pub struct Capture<W> {
    out: W,
    /// The interface number of each link.
    interfaces: BTreeMap<LinkId, u32>,
    /// Payload bytes of each flow's last data packet.
    payloads: BTreeMap<FlowId, u32>,
    /// The first error; nothing is written after it.
    error: Option<io::Error>,
}

impl<W: Write + Send + 'static> Capture<W> {
    /// Begins a capture of these links, given with their names.
    pub fn new<'a>(mut out: W, links: impl IntoIterator<Item = (LinkId, &'a str)>) -> io::Result<Self> {
        // Byte order magic, version 1.0, and a section of unknown length.
        let mut header = Vec::from(BYTE_ORDER.to_le_bytes());
        header.extend([1, 0, 0, 0]);
        header.extend(u64::MAX.to_le_bytes());
        write_block(&mut out, SECTION_HEADER, &header)?;
        let mut interfaces = BTreeMap::new();
        for (link, name) in links {
            let mut description = Vec::from(LINKTYPE_RAW.to_le_bytes());
            description.extend([0, 0]);
            description.extend((HEADERS_MAX as u32).to_le_bytes());
            push_option(&mut description, IF_NAME, name.as_bytes());
            push_option(&mut description, IF_TSRESOL, &[NANOSECONDS]);
            push_option(&mut description, END_OF_OPTIONS, &[]);
            write_block(&mut out, INTERFACE_DESCRIPTION, &description)?;
            interfaces.insert(link, interfaces.len() as u32);
        }
        Ok(Self { out, interfaces, payloads: BTreeMap::new(), error: None })
    }

    /// The error that ended the capture, if there was one.
    pub fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    /// Flushes the buffers; returns the error that ended the capture, if there was one.
    pub fn finish(&mut self) -> io::Result<()> {
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    /// The writer of the capture.
    pub fn writer(&self) -> &W {
        &self.out
    }

    fn write(&mut self, event: &PacketEvent<'_>) -> io::Result<()> {
        let Some(&interface) = self.interfaces.get(&event.link) else { return Ok(()) };
        let headers = self.headers(event);
        // ns-2's ACK of 40 bytes may have SACK blocks that do not fit; the header is stored nevertheless.
        let len = event.size.max(headers.len() as u32);
        let time = event.time.rescale::<{ anabranch_units::NANO }>();
        let mut packet = Vec::with_capacity(32 + HEADERS_MAX);
        for word in [interface, high(time), low(time), headers.len() as u32, len] {
            packet.extend(word.to_le_bytes());
        }
        packet.extend(&headers);
        packet.resize(packet.len().next_multiple_of(4), 0);
        write_block(&mut self.out, ENHANCED_PACKET, &packet)
    }

    /// The IP header and the headers after it.
    fn headers(&mut self, event: &PacketEvent<'_>) -> Vec<u8> {
        let [.., x, y] = event.flow.0.to_be_bytes();
        let (mut source, mut target) = ([10, x, y, 1], [10, x, y, 2]);
        let mut ports = [SOURCE_PORT, SINK_PORT];
        if event.direction == Direction::Backward {
            std::mem::swap(&mut source, &mut target);
            ports.reverse();
        }
        let mut transport = Vec::new();
        ports.iter().for_each(|port| transport.extend(port.to_be_bytes()));
        let protocol = match event.body {
            Body::Ns2(packet) => {
                self.tcp(event.flow, packet, &mut transport);
                TCP
            }
            Body::Sctp(packet) => {
                sctp::write(packet, HEADERS_MAX - 20 - transport.len(), &mut transport);
                SCTP
            }
            Body::Segment(segment) => {
                transport.clear();
                encode_head(segment, Ports { source: ports[0], target: ports[1] }, &mut transport);
                TCP
            }
            // The length in the first datagram shows that it is incomplete.
            Body::Fragment(fragment) => {
                transport.clear();
                encode_head(&fragment.segment, Ports { source: ports[0], target: ports[1] }, &mut transport);
                TCP
            }
            Body::Raw(Raw { seq, .. }) => {
                transport.extend((event.size.saturating_sub(20).max(16) as u16).to_be_bytes());
                transport.extend([0, 0]);
                transport.extend(seq.to_be_bytes());
                UDP
            }
        };
        let total = event.size.max(20 + transport.len() as u32).min(u32::from(u16::MAX)) as u16;
        let mut ip = vec![0x45, 0];
        ip.extend(total.to_be_bytes());
        ip.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
        ip.extend(source);
        ip.extend(target);
        let sum = internet_checksum(&[&ip]);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        ip.extend(transport);
        ip
    }

    /// The TCP header after the ports.
    fn tcp(&mut self, flow: FlowId, packet: &Packet, out: &mut Vec<u8>) {
        let payload = self.payloads.entry(flow).or_insert(1);
        if packet.kind == Kind::Data && packet.size > 40 {
            *payload = packet.size - 40;
        }
        // TCP's sequence numbers wrap, and so do these.
        let bytes = |packets: i32| (packets as u32).wrapping_mul(*payload);
        let (seq, ack) = match packet.kind {
            Kind::Data => (bytes(packet.seq), 0),
            Kind::Ack => (0, bytes(packet.seq + 1)),
        };
        let mut options = Vec::new();
        let blocks = packet.sack.as_slice();
        if !blocks.is_empty() {
            options.extend([NO_OPERATION, NO_OPERATION, SACK, 2 + 8 * blocks.len() as u8]);
            for &(left, right) in blocks {
                options.extend(bytes(left).to_be_bytes());
                options.extend(bytes(right).to_be_bytes());
            }
        }
        out.extend(seq.to_be_bytes());
        out.extend(ack.to_be_bytes());
        out.extend([((20 + options.len()) as u8 / 4) << 4, ACK_FLAG, 0xff, 0xff, 0, 0, 0, 0]);
        out.extend(options);
    }
}

impl<W: Write + Send + 'static> Observer for Capture<W> {
    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        if event.happening == Happening::Enqueued && self.error.is_none() {
            self.error = self.write(event).err();
        }
    }
}

/// A block: type, length, body, and the length again.
fn write_block(out: &mut impl Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let len = (12 + body.len() as u32).to_le_bytes();
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&len)?;
    out.write_all(body)?;
    out.write_all(&len)
}

/// An option: code, length, value, and zeros up to a multiple of four.
fn push_option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    // A name that is too long for an option is cut.
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

const fn high(time: Time) -> u32 {
    (time.ticks() >> 32) as u32
}

const fn low(time: Time) -> u32 {
    time.ticks() as u32
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const END_OF_OPTIONS: u16 = 0;
/// Timestamps have a resolution of 10^-9 s.
const NANOSECONDS: u8 = 9;
/// Packets begin with an IP header.
const LINKTYPE_RAW: u16 = 101;
/// IP without options, TCP with all options, a stream header.
const HEADERS_MAX: usize = 20 + 60 + 4;
const TCP: u8 = 6;
const SCTP: u8 = 132;
const UDP: u8 = 17;
const SOURCE_PORT: u16 = 49152;
const SINK_PORT: u16 = 5001;
const ACK_FLAG: u8 = 0x10;
const NO_OPERATION: u8 = 1;
const SACK: u8 = 5;
