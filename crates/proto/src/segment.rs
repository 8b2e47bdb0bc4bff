//! Segments as the engine sees them: typed. Bytes are made of them at the edge, and in a simulation never.

use std::fmt;
use std::ops::BitOr;

use crate::options::{Options, Timestamps};
use crate::payload::Payload;
use crate::seq::{SeqNumber, Ssn};
pub(crate) use crate::stream_header::{Sid, StreamHeader};

/// Bytes of an IPv4 and a TCP header without options: what the wire adds to a segment.
pub const HEADERS: u32 = 40;

/// Bytes of a TCP header without options.
pub(crate) const TCP_HEADER: u32 = 20;

/// One TCP segment. Its ports and addresses are the four-tuple that it comes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<P> {
    /// The fixed part of TCP's header.
    pub header: Header,
    /// TCP's options.
    pub options: Options,
    /// Which stream the content belongs to; `None` without content and in plain TCP.
    pub stream_header: Option<StreamHeader>,
    /// What it carries.
    pub content: Content<P>,
}

/// The fixed part of TCP's header ([rfc-9293] sec. 3.1), but for the ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Sequence number of the first byte, the stream header's if there is one.
    pub seq: SeqNumber,
    /// The sequence number that the sender of this segment expects next; it counts if [`Flags::ACK`] is set.
    pub ack: SeqNumber,
    /// The control bits.
    pub flags: Flags,
    /// The receive window, shifted right by what the handshake said, but in a SYN.
    pub window: u16,
    /// If both ends have [`crate::Features::NONCES`]: of a segment with content, a number that nobody can guess; of any other, the sum of those
    /// of all segments in its SACK blocks. In the place of the urgent pointer.
    pub nonce: u16,
    /// Likewise: the sum of those of all segments below `ack`. In the place of the checksum.
    pub nonce_sum: u16,
}

/// TCP's control bits, in their places in the 16 bits that they share with the data offset.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(u16);

/// What a segment carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<P> {
    /// Nothing.
    Nothing,
    /// Data of one stream.
    Data(P),
    /// Records of the control stream.
    Control(RecordList),
}

/// What the control stream says. A record has all that it takes to act on it, so it is acted on when it arrives, whatever of the
/// control stream is missing before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// The stream has ended. Its end takes a number, which no segment has: the next stream of this name begins after it, and
    /// no number ever belongs to two streams.
    Finish {
        /// Which stream.
        sid: Sid,
        /// The number of its end: the one after that of its last segment.
        end: Ssn,
    },
    /// The sender gives the stream up: what came of it and what is still to come is of no use to anybody. It may follow a
    /// Finish with the same end, and arrive before it.
    Reset {
        /// Which stream.
        sid: Sid,
        /// The number of its end: the one after that of its last segment.
        end: Ssn,
        /// Why, in the application's words.
        code: u16,
    },
    /// The receiver of a stream does not want the rest of it, and asks its sender to reset it.
    Stop {
        /// Which stream.
        sid: Sid,
        /// The number that the receiver expects: it belongs to the stream that is meant.
        expected: Ssn,
        /// Why, in the application's words.
        code: u16,
    },
    /// How much the receiver of a stream takes.
    MaxStreamData {
        /// Which stream.
        sid: Sid,
        /// Bytes of payload on all streams of this name since the handshake, modulo 2^32.
        limit: u32,
        /// Streams of this name that are over for the receiver's application, modulo 256: it has read their end or their reset, or they have ended after
        /// it stopped them. A hint, to which of the names that are not in use the next stream had better have.
        over: u8,
    },
    /// How often its sender wants to be acknowledged, on each path.
    AcknowledgeEach {
        /// Each so many segments with content; none is taken for one.
        every: u8,
        /// How long an acknowledgement may wait for more of them, in units of [`crate::AcknowledgementOptions::DELAY_UNIT`].
        delay: u16,
    },
}

/// What one segment of the control stream says: one to [`RecordList::MAX`] records, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordList {
    first: Record,
    /// Those that are used come first.
    more: [Option<Record>; Self::MAX - 1],
}

impl<P: Payload> Segment<P> {
    /// How much sequence space it takes ([rfc-9293] sec. 3.4: SYN and FIN count one each).
    pub fn space(&self) -> u64 {
        let header = if self.stream_header.is_some() { StreamHeader::LEN } else { 0 };
        let flags = u64::from(self.has(Flags::SYN)) + u64::from(self.has(Flags::FIN));
        u64::from(header + self.content.len()) + flags
    }

    /// Whether all of these control bits are set.
    pub fn has(&self, flags: Flags) -> bool {
        self.header.flags.contains(flags)
    }

    /// What it says of clocks.
    pub fn timestamps(&self) -> Option<Timestamps> {
        match &self.options {
            Options::Handshake(options) => options.timestamps,
            Options::Acknowledgement(options) => options.timestamps(),
            Options::Path(_) => None,
        }
    }

    /// Bytes that it takes on an IPv4 network.
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

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Record {
    /// Bytes of a record on the wire: its kind, a stream, a code of two bytes, and a number of four.
    pub const LEN: u32 = 8;
}

impl RecordList {
    /// As many as a segment holds without being larger than others in a simulation, and a third of the bytes that each by itself would take.
    pub const MAX: usize = 4;

    /// Appends a record. Gives it back if there is no room.
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

    /// The records in their order.
    pub fn iter(&self) -> impl Iterator<Item = Record> + '_ {
        std::iter::once(self.first).chain(self.more.iter().flatten().copied())
    }

    /// How many.
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
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// The first segment: synchronises sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// The connection is gone.
    pub const RST: Self = Self(0x04);
    /// Pass the data on at once.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number counts.
    pub const ACK: Self = Self(0x10);
    /// Multistream enabled. [mfast-2019] drew it beside URG, where [rfc-3168] has since put ECE; 0x200 is the nearest bit that
    /// is still reserved.
    pub const MSE: Self = Self(0x200);
    /// All of these.
    const KNOWN: Self = Self(0x21f);

    /// What a header says; bits that have no name here mean nothing to us.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits & Self::KNOWN.0)
    }

    /// The 16 bits with no data offset in them.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether all of `flags` are set.
    pub const fn contains(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
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
