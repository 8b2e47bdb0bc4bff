//! Typed segments, as the engine sees them. Only the wire codec turns them into bytes; a simulation never does.

use std::fmt;
use std::ops::BitOr;

use crate::options::{Options, Timestamps};
use crate::payload::Payload;
use crate::seq::{SeqNumber, Ssn};
pub(crate) use crate::stream_header::{Sid, StreamHeader};

/// Bytes of an IPv4 header and a TCP header without options.
pub const HEADERS: u32 = 40;

/// Bytes of a TCP header without options.
pub(crate) const TCP_HEADER: u32 = 20;

/// A TCP segment. Its ports and addresses are not in it, but in the four-tuple that accompanies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<P> {
    /// The fixed part of the TCP header.
    pub header: Header,
    /// The TCP options.
    pub options: Options,
    /// The stream of the content; `None` if there is no content, and in plain TCP. [`Sid::DATAGRAM`] may have no content, and
    /// [`Sid::VOID`] has none.
    pub stream_header: Option<StreamHeader>,
    /// The content after the stream header.
    pub content: Content<P>,
}

/// The fixed part of the TCP header ([rfc-9293] sec. 3.1), without ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The sequence number of the first byte; that is the stream header's, if there is one.
    pub seq: SeqNumber,
    /// The acknowledgement number; valid if [`Flags::ACK`] is set.
    pub ack: SeqNumber,
    /// The control bits.
    pub flags: Flags,
    /// The window field, scaled except in a SYN.
    pub window: u16,
    /// With [`crate::Features::NONCES`]: in a segment with content its nonce, 16 unpredictable bits. In any other segment the sum
    /// of the nonces of all segments in its SACK blocks. On the wire it replaces the urgent pointer.
    pub nonce: u16,
    /// With [`crate::Features::NONCES`]: the sum of the nonces of all segments below `ack`. On the wire it replaces the checksum.
    pub nonce_sum: u16,
}

/// The TCP control bits, at their positions in the 16-bit word that they share with the data offset.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(u16);

/// The content of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<P> {
    /// The segment has no content.
    Nothing,
    /// Data of one stream.
    Data(P),
    /// Records of the control stream.
    Control(RecordList),
}

/// A record of the control stream. It is self-contained, so it takes effect on arrival, even if earlier parts of the control
/// stream are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// The stream has ended. Its end takes an SSN of its own, which no segment has. The next stream of this SID begins after it,
    /// so no SSN belongs to two streams.
    Finish {
        /// The stream that has ended.
        sid: Sid,
        /// The SSN of its end: one above that of its last segment.
        end: Ssn,
    },
    /// The sender resets the stream: received and later data is dropped. A Reset may follow a Finish with the same end, and may
    /// arrive before it.
    Reset {
        /// The stream that is reset.
        sid: Sid,
        /// The SSN of its end: one above that of its last segment.
        end: Ssn,
        /// The application's error code.
        code: u16,
    },
    /// The receiver refuses the rest of a stream and asks its sender to reset it.
    Stop {
        /// The stream that is refused.
        sid: Sid,
        /// The SSN that the receiver expects, which identifies the stream.
        expected: Ssn,
        /// The application's error code.
        code: u16,
    },
    /// The receiver raises the flow-control limit of a SID.
    MaxStreamData {
        /// The SID whose limit is raised.
        sid: Sid,
        /// The limit in bytes of payload, counted over all streams of this SID since the handshake, modulo 2^32.
        limit: u32,
        /// The number of streams of this SID, modulo 256, that are over for the receiver's application: it has read their end or
        /// reset, or they have ended after it stopped them. The sender uses it as a hint when it chooses a SID for a new stream.
        over: u8,
    },
    /// The sender of the record requests this acknowledgement frequency on each path.
    AcknowledgeEach {
        /// Segments with content per acknowledgement; 0 means 1.
        every: u8,
        /// The longest delay of an acknowledgement, in units of [`crate::AcknowledgementOptions::DELAY_UNIT`].
        delay: u16,
    },
}

/// The records of one control segment: one to [`RecordList::MAX`], in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordList {
    first: Record,
    /// Used places come first.
    more: [Option<Record>; Self::MAX - 1],
}

impl<P: Payload> Segment<P> {
    /// The sequence space of the segment in bytes ([rfc-9293] sec. 3.4: SYN and FIN count one each). A void takes that of the
    /// datagram for which it stands.
    pub fn space(&self) -> u64 {
        let header = self.stream_header.map_or(0, |header| StreamHeader::LEN + header.void());
        let flags = u64::from(self.has(Flags::SYN)) + u64::from(self.has(Flags::FIN));
        u64::from(header + self.content.len()) + flags
    }

    /// A reset with this sequence number, and this acknowledgement.
    pub fn reset(seq: SeqNumber, ack: Option<SeqNumber>) -> Self {
        let flags = if ack.is_some() { Flags::RST | Flags::ACK } else { Flags::RST };
        let header = Header { seq, ack: ack.unwrap_or_default(), flags, ..Header::default() };
        Self { header, options: Options::default(), stream_header: None, content: Content::Nothing }
    }

    /// The sequence number and the acknowledgement of the reset that answers this segment where there is no connection ([rfc-9293]
    /// sec. 3.10.7.1); none for a reset.
    pub fn refusal(&self) -> Option<(SeqNumber, Option<SeqNumber>)> {
        let answer = match self.has(Flags::ACK) {
            true => (self.header.ack, None),
            false => (SeqNumber::default(), Some(self.header.seq.plus(self.space()))),
        };
        (!self.has(Flags::RST)).then_some(answer)
    }

    /// Whether there is a stream header or content. A void and an empty datagram have a header alone.
    pub(crate) fn has_content(&self) -> bool {
        !self.content.is_empty() || self.stream_header.is_some()
    }

    /// Whether all of these control bits are set.
    pub fn has(&self, flags: Flags) -> bool {
        self.header.flags.contains(flags)
    }

    /// The timestamps option, if there is one.
    pub fn timestamps(&self) -> Option<Timestamps> {
        match &self.options {
            Options::Handshake(options) => options.timestamps,
            Options::Acknowledgement(options) => options.timestamps(),
            Options::Path(_) => None,
        }
    }

    /// Bytes of the segment's packet on an IPv4 network.
    pub fn wire_size(&self) -> u32 {
        let header = if self.stream_header.is_some() { StreamHeader::LEN } else { 0 };
        HEADERS + self.options.len() + header + self.content.len()
    }
}

impl<P: Payload> Content<P> {
    /// Bytes after the stream header.
    pub fn len(&self) -> u32 {
        match self {
            Self::Nothing => 0,
            Self::Data(payload) => payload.len(),
            Self::Control(records) => records.len() * Record::LEN,
        }
    }

    /// Whether there is no content.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Record {
    /// Bytes of a record on the wire: kind, SID, a code of two bytes, and a number of four.
    pub const LEN: u32 = 8;
}

impl RecordList {
    /// Four records: they do not make a segment larger than others in a simulation, and take a third of the bytes that separate
    /// segments would take.
    pub const MAX: usize = 4;

    /// Appends a record, or returns it if there is no room.
    ///
    /// # Errors
    /// The record, if there are [`RecordList::MAX`] already.
    pub fn push(&mut self, record: Record) -> Result<(), Record> {
        match self.more.iter_mut().find(|place| place.is_none()) {
            Some(place) => {
                *place = Some(record);
                Ok(())
            }
            None => Err(record),
        }
    }

    /// The records in order.
    pub fn iter(&self) -> impl Iterator<Item = Record> + '_ {
        std::iter::once(self.first).chain(self.more.iter().flatten().copied())
    }

    /// The number of records.
    #[expect(clippy::len_without_is_empty, reason = "it never is")]
    pub fn len(&self) -> u32 {
        1 + self.more.iter().flatten().count() as u32
    }
}

impl From<Record> for RecordList {
    fn from(first: Record) -> Self {
        Self { first, more: [None; Self::MAX - 1] }
    }
}

impl Flags {
    /// The sender has no more data.
    pub const FIN: Self = Self(0x01);
    /// The first segment, which synchronises sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// The connection is reset.
    pub const RST: Self = Self(0x04);
    /// Push: the receiver should deliver the data at once. The engine sends none; a host may add it.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(0x10);
    /// Multistream enabled. [mfast-2019] put it next to URG, at the bit that [rfc-3168] has since used for ECE; 0x200 is the
    /// nearest reserved bit.
    pub const MSE: Self = Self(0x200);
    /// All known flags.
    const KNOWN: Self = Self(0x21f);

    /// The flags of a header; unknown bits are dropped.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & Self::KNOWN.0)
    }

    /// The 16 bits, with a data offset of zero.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether all of `flags` are set.
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// All but `flags`.
    #[must_use]
    pub const fn without(self, flags: Self) -> Self {
        Self(self.0 & !flags.0)
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// `SYN|ACK|MSE`, or `0`.
impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Flags, &str); 6] = [
            (Flags::SYN, "SYN"),
            (Flags::FIN, "FIN"),
            (Flags::RST, "RST"),
            (Flags::PSH, "PSH"),
            (Flags::ACK, "ACK"),
            (Flags::MSE, "MSE"),
        ];
        let mut is_first = true;
        for (_, name) in NAMES.iter().filter(|(flag, _)| self.contains(*flag)) {
            if !is_first {
                f.write_str("|")?;
            }
            f.write_str(name)?;
            is_first = false;
        }
        if is_first { f.write_str("0") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Virtual;

    #[test]
    fn the_stream_header_takes_sequence_space() {
        let stream_header = Some(StreamHeader { sid: Sid::new(3), ssn: Ssn::of(9) });
        let header = Header { flags: Flags::ACK | Flags::FIN, ..Header::default() };
        let segment =
            Segment { header, options: Options::default(), stream_header, content: Content::Data(Virtual(996)) };
        assert_eq!(segment.space(), 1001, "4 + 996 + FIN");
        assert_eq!(segment.wire_size(), 1040, "20 + 20 + 4 + 996");
    }

    #[test]
    fn flags_print_their_names() {
        assert_eq!(format!("{:?}", Flags::SYN | Flags::ACK | Flags::MSE), "SYN|ACK|MSE");
        assert_eq!(format!("{:?}", Flags::default()), "0");
    }
}
