//! Encodes and decodes segments in the TCP form. `docs/wire.md` specifies it to the bit.
//!
//! ```text
//! 0                   1                   2                   3
//! 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |          source port          |       destination port        |
//! |                        sequence number                        |
//! |                     acknowledgement number                    |
//! | offset| 0 |M|  |...|A|P|R|S|F |            window             |
//! |            checksum           |        urgent pointer         |
//! |                     options, up to 40 bytes                   |
//! +---------------------------------------------------------------+
//! |      SID      |                      SSN                      |  with the M flag (MSE) and content, except in a SYN
//! |              data, or one to four records of 8 bytes          |
//! +---------------------------------------------------------------+
//! ```
//!
//! In the sealed form, nonces replace the checksum and the urgent pointer, and four bits of the destination port are the page of
//! the SID, its most significant bits.
//!
//! Encoding is canonical: a segment has one encoding. Decoding is tolerant, as [rfc-9293] sec. 3.1 requires: options may come in
//! any order and with any padding, unknown options are skipped, reserved bits are ignored. Only headers are copied.

mod checksum;
mod content;
mod extent;
mod options;

use std::fmt;

use bytes::{Buf, Bytes};

pub use self::checksum::{Checksum, internet_checksum};
use crate::options::Extent;
use crate::path::FourTuple;
use crate::payload::Payload;
use crate::segment::{Content, Flags, Header, Record, RecordList, Segment, Sid, StreamHeader};
use crate::seq::SeqNumber;

/// The TCP ports of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// The source port.
    pub source: u16,
    /// The destination port.
    pub target: u16,
}

/// Why bytes are not a valid segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// The error in the bytes.
    pub fault: Fault,
    /// The position of the fault: bytes from the start of the TCP header.
    pub at: usize,
}

/// The kinds of faults in an encoded segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Fewer bytes than a TCP header.
    HeaderTooShort,
    /// The data offset is inside the fixed header or past the end.
    DataOffset,
    /// The checksum is wrong: bits have changed in the network.
    Checksum,
    /// An option's length is below two, or exceeds the header.
    OptionLength {
        /// The kind of the option.
        kind: u8,
    },
    /// The length of an option is wrong for its kind.
    OptionSize {
        /// The kind of the option.
        kind: u8,
    },
    /// The content is too short for a stream header and at least one byte after it.
    StreamHeader,
    /// A void has content.
    Void,
    /// The content of the control stream is not one to [`crate::RecordList::MAX`] records of [`crate::Record::LEN`] bytes.
    RecordSize,
    /// A record of an unknown kind.
    RecordKind(u8),
}

impl Ports {
    /// The ports of a segment that is sent on this path.
    pub const fn of(tuple: FourTuple) -> Self {
        Self { source: tuple.local.port, target: tuple.remote.port }
    }
}

/// Appends the encoded segment to `out`.
pub fn encode(segment: &Segment<Bytes>, ports: Ports, checksum: Checksum, out: &mut Vec<u8>) {
    encode_with(segment, ports, checksum, None, out);
}

/// As [`encode`], for a connection with [`crate::Features::EXTENTS`] whose sender has this initial number.
pub fn encode_within(
    segment: &Segment<Bytes>,
    ports: Ports,
    checksum: Checksum,
    initial: SeqNumber,
    out: &mut Vec<u8>,
) {
    let Segment { header, stream_header, content, .. } = segment;
    let len = content.len() + if stream_header.is_some() { StreamHeader::LEN } else { 0 };
    let extent = (len > 0).then(|| Extent::of(header.seq, initial, len));
    encode_with(segment, ports, checksum, extent, out);
}

fn encode_with(segment: &Segment<Bytes>, ports: Ports, checksum: Checksum, extent: Option<Extent>, out: &mut Vec<u8>) {
    let start = out.len();
    let page = if checksum == Checksum::None { page(segment) } else { 0 };
    head(segment, Ports { target: ports.target | u16::from(page) << PAGE_SHIFT, ..ports }, extent, out);
    if let Content::Data(payload) = &segment.content {
        out.extend_from_slice(payload);
    }
    match checksum.of(&out[start..]) {
        Some(sum) => out[start + CHECKSUM_AT..start + URGENT_AT].copy_from_slice(&sum.to_be_bytes()),
        None => {
            let Header { nonce, nonce_sum, .. } = segment.header;
            out[start + CHECKSUM_AT..start + URGENT_AT].copy_from_slice(&nonce_sum.to_be_bytes());
            out[start + URGENT_AT..start + HEADER_LEN].copy_from_slice(&nonce.to_be_bytes());
        }
    }
}

/// The page of the SID in a segment.
fn page(segment: &Segment<Bytes>) -> u8 {
    let header = segment.stream_header.or_else(|| segment.options.as_acknowledgement().expected());
    header.map_or(0, |header| header.sid.parts().1)
}

/// Appends the segment without its data: TCP header with zero checksum and nonces, options, stream header, records.
pub fn encode_head<P: Payload>(segment: &Segment<P>, ports: Ports, out: &mut Vec<u8>) {
    head(segment, ports, None, out);
}

fn head<P: Payload>(segment: &Segment<P>, ports: Ports, extent: Option<Extent>, out: &mut Vec<u8>) {
    let Segment { header, options, stream_header, content } = segment;
    // At most 60 bytes are 15 words.
    let words = (HEADER_LEN as u32 + options.space(extent.is_some())) as u16 / 4;
    out.extend(ports.source.to_be_bytes());
    out.extend(ports.target.to_be_bytes());
    out.extend(header.seq.0.to_be_bytes());
    out.extend(header.ack.0.to_be_bytes());
    out.extend((words << 12 | header.flags.bits()).to_be_bytes());
    out.extend(header.window.to_be_bytes());
    // The checksum and the urgent pointer, or nonces.
    out.extend([0; 4]);
    options::encode(options, extent, out);
    if let Some(header) = stream_header {
        out.extend(content::stream_header(*header));
    }
    if let Content::Control(records) = content {
        records.iter().for_each(|record| out.extend(content::record(record)));
    }
}

/// Decodes a segment. Its data shares the memory of `bytes`.
///
/// # Errors
/// If the bytes are not a valid segment. It never panics.
pub fn decode(mut bytes: Bytes, checksum: Checksum) -> Result<(Ports, Segment<Bytes>), DecodeError> {
    if bytes.len() < HEADER_LEN {
        return Err(DecodeError { fault: Fault::HeaderTooShort, at: bytes.len() });
    }
    let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let header_len = header_len(&bytes).ok_or(DecodeError { fault: Fault::DataOffset, at: FLAGS_AT })?;
    if !checksum.is_right(&bytes) {
        return Err(DecodeError { fault: Fault::Checksum, at: CHECKSUM_AT });
    }
    let ports = Ports { source: half(0), target: half(2) };
    let flags = Flags::from_bits(half(FLAGS_AT));
    let (nonce_sum, nonce) = if checksum == Checksum::None { (half(CHECKSUM_AT), half(URGENT_AT)) } else { (0, 0) };
    let (seq, ack) = (SeqNumber(word(4)), SeqNumber(word(8)));
    let header = Header { seq, ack, flags, window: half(WINDOW_AT), nonce, nonce_sum };
    let mut options = options::decode(&bytes[HEADER_LEN..header_len], flags)
        .map_err(|(fault, at)| DecodeError { fault, at: HEADER_LEN + at })?;
    bytes.advance(header_len);
    let page = if checksum == Checksum::None { (ports.target >> PAGE_SHIFT) as u8 & Sid::PAGE_MAX } else { 0 };
    let ports = Ports { target: ports.target & !(u16::from(page) << PAGE_SHIFT), ..ports };
    let (stream_header, content) =
        content::decode(bytes, flags, page).map_err(|(fault, at)| DecodeError { fault, at: header_len + at })?;
    if stream_header.is_none() {
        options.set_page(page);
    }
    Ok((ports, Segment { header, options, stream_header, content }))
}

/// The flags of an encoded segment; none if it is too short.
pub fn flags(segment: &[u8]) -> Flags {
    let bits = segment.get(FLAGS_AT..).and_then(<[u8]>::first_chunk);
    bits.map_or(Flags::default(), |bits| Flags::from_bits(u16::from_be_bytes(*bits)))
}

/// Bytes of the header with its options, if the segment is that long.
fn header_len(segment: &[u8]) -> Option<usize> {
    let len = usize::from(segment.get(FLAGS_AT)? >> 4) * 4;
    (HEADER_LEN..=segment.len()).contains(&len).then_some(len)
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fault, at } = self;
        match fault {
            Fault::HeaderTooShort => write!(f, "{at} bytes are no TCP header, which has {HEADER_LEN}"),
            Fault::DataOffset => write!(f, "the data offset at byte {at} does not fit the header"),
            Fault::Checksum => write!(f, "the checksum at byte {at} is wrong"),
            Fault::OptionLength { kind } => write!(f, "option {kind} at byte {at} does not end within the header"),
            Fault::OptionSize { kind } => write!(f, "option {kind} at byte {at} has a length that it cannot have"),
            Fault::StreamHeader => write!(f, "the content at byte {at} is no stream header and something after it"),
            Fault::Void => write!(f, "there is content at byte {at}, after a void"),
            Fault::RecordSize => {
                write!(f, "the content at byte {at} is not 1 to {} records of {} bytes", RecordList::MAX, Record::LEN)
            }
            Fault::RecordKind(kind) => write!(f, "the record at byte {at} is of the unknown kind {kind}"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Bytes of a TCP header without options, and the positions of its fields ([rfc-9293] sec. 3.1).
const HEADER_LEN: usize = 20;
const FLAGS_AT: usize = 12;
const WINDOW_AT: usize = 14;
const CHECKSUM_AT: usize = 16;
const URGENT_AT: usize = 18;

/// The position of the page in the destination port, in the sealed form.
const PAGE_SHIFT: u32 = 8;

#[cfg(test)]
mod tests;
