//! TCP options as types. A segment has either the options of the handshake or those of later segments.

use anabranch_units::Span;

use crate::seq::SeqNumber;
use crate::stream_header::StreamHeader;

/// The options of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Options {
    /// The options of a SYN or SYN-ACK.
    Handshake(HandshakeOptions),
    /// The options of any other segment.
    Acknowledgement(AcknowledgementOptions),
    /// The option of a path segment, which has no content.
    Path(PathOption),
}

/// The options of the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandshakeOptions {
    /// The largest sequence space of a segment that the sender of this option accepts ([rfc-9293] sec. 3.7.1).
    pub mss: Option<u16>,
    /// The shift of later windows ([rfc-7323] sec. 2.2).
    pub window_scale: Option<u8>,
    /// Whether SACK blocks are understood ([rfc-2018] sec. 2).
    pub sack_permitted: bool,
    /// The request for streams; in an answer, the grant.
    pub multistream: Option<Multistream>,
    /// The timestamps of the option's sender ([rfc-7323] sec. 3.2).
    pub timestamps: Option<Timestamps>,
}

/// The negotiation of streams: an experimental option (kind 253, [rfc-6994]) together with the MSE flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multistream {
    /// [`Multistream::VERSION`]. An option with another version is treated as missing.
    pub version: u8,
    /// Streams requested in each direction, or granted in the answer; at least one. In units of 16 if [`Features::MANY_STREAMS`]
    /// is set.
    pub streams: u8,
    /// The sender's features. A feature is in use if both ends have it.
    pub features: Features,
    /// The exponent of the initial flow-control credit of each stream: 2 to this power bytes, at most 31.
    pub credit: u8,
}

/// Features of an end, in addition to streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features(pub u8);

/// A timestamp and its echo ([rfc-7323] sec. 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// The sender's timestamp.
    pub value: u32,
    /// The latest timestamp of the peer.
    pub echo: u32,
}

/// Which part of the sequence space the content of a segment took when it was sent. Whoever splits a segment copies its options to all parts, and whoever
/// joins segments keeps the options of one; so a segment whose content is not its extent has lost its boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The number of its first byte, counted from the sender's initial number, modulo 2^16. A middlebox may shift all numbers of a connection.
    pub start: u16,
    /// Bytes of its content.
    pub len: u16,
}

/// The option of a path segment: an experimental option (kind 253, [rfc-6994]). The segment has no other option and no content.
/// It concerns the path on which it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathOption {
    /// The receiver must return the token on the same path.
    Challenge([u8; 8]),
    /// The token of a challenge.
    Response([u8; 8]),
    /// The sender abandons the path. The token is that of the latest challenge that this sender has received on the path.
    /// Off-path attackers do not know it.
    Leave([u8; 8]),
}

/// What has arrived beyond the acknowledgement number. Simulations copy segments often, so the structure is compact: timestamps
/// and counts occupy the places of the last blocks, as the wire has no room for all of them either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcknowledgementOptions {
    blocks: [(SeqNumber, SeqNumber); SackBlocks::MAX],
    /// The delay of the acknowledgement, in units of [`AcknowledgementOptions::DELAY_UNIT`].
    delay: u16,
    expected: Option<StreamHeader>,
    beside: Beside,
}

/// What the places of blocks hold instead of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Beside {
    #[default]
    Nothing,
    /// Timestamps in the last place.
    Timestamps,
    /// Counts in the last place.
    Counts,
    /// Both, in the last two places.
    TimestampsAndCounts,
}

/// The number of segments that arrived on a path with each ECN codepoint ([rfc-3168] sec. 5), modulo 2^16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// CE: marked by a router (congestion experienced).
    pub ce: u16,
    /// ECT(0): the codepoint that this transport sends for most laws.
    pub ect0: u16,
    /// ECT(1): the codepoint that this transport sends for scalable laws ([rfc-9331]).
    pub ect1: u16,
}

/// Up to three blocks `left..right` of sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    /// The used places come first. In an unused place both ends are equal, which they never are in a block.
    blocks: [(SeqNumber, SeqNumber); Self::MAX],
}

impl AcknowledgementOptions {
    /// SACK blocks, the most recent first ([rfc-2018]), after an optional DSACK block ([rfc-2883]). `expected` is the stream of
    /// the acknowledged segment with the SSN expected next on it ([mfast-2019] Procedure 1, lines 4 to 21).
    pub fn new(sack: SackBlocks, expected: Option<StreamHeader>) -> Self {
        Self { blocks: sack.blocks, expected, ..Self::default() }
    }

    /// Adds timestamps, if the handshake negotiated them. They replace the last block.
    #[must_use]
    pub fn with_timestamps(mut self, timestamps: Timestamps) -> Self {
        if let Some(counts) = self.counts() {
            return Self { beside: Beside::Timestamps, ..self }.set(LAST, timestamps).with_counts(counts);
        }
        self.beside = Beside::Timestamps;
        self.set(LAST, timestamps)
    }

    /// Adds ECN counts, which replace a block. Without [`AcknowledgementOptions::expected`] they are dropped.
    #[must_use]
    pub fn with_counts(mut self, counts: EcnCounts) -> Self {
        if self.expected.is_none() {
            return self;
        }
        let place = match self.beside {
            Beside::Nothing | Beside::Counts => {
                self.beside = Beside::Counts;
                LAST
            }
            Beside::Timestamps | Beside::TimestampsAndCounts => {
                self.beside = Beside::TimestampsAndCounts;
                LAST - 1
            }
        };
        let EcnCounts { ce, ect0, ect1 } = counts;
        self.set(place, Timestamps { value: u32::from(ce) << 16 | u32::from(ect0), echo: ect1.into() })
    }

    /// Adds the delay of the acknowledgement. Without [`AcknowledgementOptions::expected`] it is dropped.
    #[must_use]
    pub fn with_delay(mut self, delay: Span) -> Self {
        if self.expected.is_some() {
            let units = delay.ticks() / Self::DELAY_UNIT.ticks();
            self.delay = u16::try_from(units).unwrap_or(u16::MAX);
        }
        self
    }

    fn set(mut self, place: usize, words: Timestamps) -> Self {
        self.blocks[place] = (SeqNumber(words.value), SeqNumber(words.echo));
        self
    }

    /// The SACK blocks, with an optional DSACK block first.
    pub fn sack(&self) -> SackBlocks {
        const NOTHING: (SeqNumber, SeqNumber) = (SeqNumber(0), SeqNumber(0));
        let [first, second, _] = self.blocks;
        SackBlocks {
            blocks: match self.beside {
                Beside::Nothing => self.blocks,
                Beside::Timestamps | Beside::Counts => [first, second, NOTHING],
                Beside::TimestampsAndCounts => [first, NOTHING, NOTHING],
            },
        }
    }

    /// Whether there are SACK blocks. The first place never holds anything else.
    pub(crate) fn has_sack(&self) -> bool {
        let [(left, right), ..] = self.blocks;
        left != right
    }

    /// The delay of the acknowledgement: a multiple of 8 us, at most half a second.
    pub fn delay(&self) -> Span {
        Self::DELAY_UNIT.saturating_mul(self.delay.into())
    }

    /// The ECN counts, if there are any.
    pub fn counts(&self) -> Option<EcnCounts> {
        let (high, low) = match self.beside {
            Beside::Nothing | Beside::Timestamps => return None,
            Beside::Counts => self.blocks[LAST],
            Beside::TimestampsAndCounts => self.blocks[LAST - 1],
        };
        Some(EcnCounts { ce: (high.0 >> 16) as u16, ect0: high.0 as u16, ect1: low.0 as u16 })
    }

    /// Bytes of the option *expected*: kind, length, experiment identifier, stream, and delay and counts if present.
    pub(crate) fn expected_len(&self) -> u32 {
        match self.beside {
            _ if self.expected.is_none() => 0,
            Beside::Counts | Beside::TimestampsAndCounts => 16,
            Beside::Nothing | Beside::Timestamps if self.delay > 0 => 10,
            Beside::Nothing | Beside::Timestamps => 8,
        }
    }

    /// The stream of the acknowledged segment, and the SSN expected next on it.
    pub fn expected(&self) -> Option<StreamHeader> {
        self.expected
    }

    /// The timestamps, if there are any.
    pub fn timestamps(&self) -> Option<Timestamps> {
        let (value, echo) = self.blocks[LAST];
        let is_there = matches!(self.beside, Beside::Timestamps | Beside::TimestampsAndCounts);
        is_there.then_some(Timestamps { value: value.0, echo: echo.0 })
    }

    /// The unit of the delay.
    pub const DELAY_UNIT: Span = Span::from_micros(8);
}

/// The place of the last block.
const LAST: usize = SackBlocks::MAX - 1;

impl SackBlocks {
    /// Three blocks fit in the 40 bytes of options together with the expected SSN (26 + 8 bytes, or 10); two together with
    /// timestamps (18 + 8 + 10) or counts (18 + 16); one together with both (10 + 16 + 10).
    pub const MAX: usize = 3;

    /// These blocks in order; unused places are empty.
    pub(crate) const fn of(blocks: [(SeqNumber, SeqNumber); Self::MAX]) -> Self {
        Self { blocks }
    }

    /// Appends a block, if there are fewer than three.
    pub fn push(&mut self, left: SeqNumber, right: SeqNumber) {
        debug_assert!(left.is_before(right), "a block has something in it: {left}..{right}");
        let len = self.as_slice().len();
        if let Some(free) = self.blocks.get_mut(len) {
            *free = (left, right);
        }
    }

    /// The blocks in order.
    pub fn as_slice(&self) -> &[(SeqNumber, SeqNumber)] {
        let len = self.blocks.iter().position(|(left, right)| left == right).unwrap_or(Self::MAX);
        &self.blocks[..len]
    }

    /// Whether there are no blocks.
    pub fn is_empty(&self) -> bool {
        let [(left, right), ..] = self.blocks;
        left == right
    }
}

impl Features {
    /// Several paths in one connection.
    pub const PATHS: Self = Self(0x01);

    /// Nonces, with which acknowledgements prove receipt. In the sealed form only.
    pub const NONCES: Self = Self(0x02);

    /// More than 255 streams. In the sealed form only.
    pub const MANY_STREAMS: Self = Self(0x04);

    /// Segments with content say their [`Extent`]. In the TCP form only, as nobody can split a sealed datagram.
    pub const EXTENTS: Self = Self(0x08);

    /// Unreliable datagrams. In the sealed form only, where their SIDs can be told.
    pub const DATAGRAMS: Self = Self(0x10);

    /// The features in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The union of two sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `features` are set.
    pub const fn contains(self, features: Self) -> bool {
        self.0 & features.0 == features.0
    }
}

impl Timestamps {
    /// Bytes of the option on the wire.
    pub const LEN: u32 = 10;
}

impl Extent {
    /// The extent of `len` bytes from this number on, of a sender with this initial number.
    pub const fn of(seq: SeqNumber, initial: SeqNumber, len: u32) -> Self {
        Self { start: seq.0.wrapping_sub(initial.0) as u16, len: len as u16 }
    }

    /// Bytes of the option: kind, length, experiment identifier, type, start, length.
    pub(crate) const LEN: u8 = 9;
}

impl PathOption {
    /// Bytes of the option: kind, length, experiment identifier, type, token.
    pub const fn size(self) -> u32 {
        match self {
            Self::Challenge(_) | Self::Response(_) | Self::Leave(_) => 13,
        }
    }
}

impl Multistream {
    /// The version of the stream header and of the control records.
    pub const VERSION: u8 = 2;

    /// The number of streams in each direction that an answer grants.
    pub(crate) fn count(&self) -> u16 {
        let each = if self.features.contains(Features::MANY_STREAMS) { Self::MANY } else { 1 };
        u16::from(self.streams) * each
    }

    /// The unit in which streams are counted with [`Features::MANY_STREAMS`].
    pub(crate) const MANY: u16 = 16;
}

impl Options {
    /// Bytes in the header, padded to words.
    pub fn len(&self) -> u32 {
        self.space(false)
    }

    /// Bytes in the header, padded to words, with an [`Extent`] or without.
    pub(crate) fn space(&self, has_extent: bool) -> u32 {
        let len = match self {
            Self::Handshake(options) => {
                // Kind and length, then the value. The experiment identifier takes two more bytes.
                let mss = if options.mss.is_some() { 4 } else { 0 };
                let scale = if options.window_scale.is_some() { 3 } else { 0 };
                let sack = if options.sack_permitted { 2 } else { 0 };
                let multistream = if options.multistream.is_some() { 4 + 4 } else { 0 };
                let timestamps = if options.timestamps.is_some() { Timestamps::LEN } else { 0 };
                mss + scale + sack + multistream + timestamps
            }
            Self::Acknowledgement(options) => {
                let sack = if options.has_sack() { 2 + 8 * options.sack().as_slice().len() as u32 } else { 0 };
                let timestamps = if options.timestamps().is_some() { Timestamps::LEN } else { 0 };
                sack + options.expected_len() + timestamps
            }
            Self::Path(option) => option.size(),
        };
        let extent = if has_extent { u32::from(Extent::LEN) } else { 0 };
        (extent + len).next_multiple_of(4)
    }

    /// Bytes of options in each segment with content.
    pub(crate) fn of_data(has_timestamps: bool, has_extents: bool) -> u32 {
        let options = AcknowledgementOptions::default();
        let options = if has_timestamps { options.with_timestamps(Timestamps::default()) } else { options };
        Self::Acknowledgement(options).space(has_extents)
    }

    /// Whether there are no options.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets the page of the SID of the acknowledged segment.
    pub(crate) fn set_page(&mut self, page: u8) {
        if let Self::Acknowledgement(AcknowledgementOptions { expected: Some(expected), .. }) = self {
            expected.sid = expected.sid.on_page(page);
        }
    }

    /// The options of a SYN; empty for other segments.
    pub fn handshake(&self) -> HandshakeOptions {
        match self {
            Self::Handshake(options) => *options,
            Self::Acknowledgement(_) | Self::Path(_) => HandshakeOptions::default(),
        }
    }

    /// The acknowledgement options, by reference.
    pub(crate) fn as_acknowledgement(&self) -> &AcknowledgementOptions {
        const NOTHING: AcknowledgementOptions = AcknowledgementOptions {
            blocks: [(SeqNumber(0), SeqNumber(0)); SackBlocks::MAX],
            delay: 0,
            expected: None,
            beside: Beside::Nothing,
        };
        match self {
            Self::Handshake(_) | Self::Path(_) => &NOTHING,
            Self::Acknowledgement(options) => options,
        }
    }

    /// The acknowledgement options; empty for a SYN.
    pub fn acknowledgement(&self) -> AcknowledgementOptions {
        *self.as_acknowledgement()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::Acknowledgement(AcknowledgementOptions::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seq::Ssn;
    use crate::stream_header::Sid;

    #[test]
    fn no_segment_has_more_than_40_bytes_of_options() {
        let multistream = Some(Multistream { version: 2, streams: 8, features: Features::PATHS, credit: 20 });
        let timestamps = Some(Timestamps::default());
        let handshake =
            HandshakeOptions { mss: Some(1460), window_scale: Some(7), sack_permitted: true, multistream, timestamps };
        assert_eq!(Options::Handshake(handshake).len(), 28, "4 + 3 + 2 + 8 + 10 + 1");
        let mut sack = SackBlocks::default();
        for block in 0..4 {
            sack.push(SeqNumber(10 * block), SeqNumber(10 * block + 5));
        }
        let expected = Some(StreamHeader { sid: Sid::new(1), ssn: Ssn::of(1) });
        let plain = AcknowledgementOptions::new(sack, expected);
        assert_eq!(Options::Acknowledgement(plain).len(), 36, "2 + 24 + 8 + 2");
        let timestamps = Timestamps { value: 1, echo: 2 };
        let timed = plain.with_timestamps(timestamps);
        assert_eq!(Options::Acknowledgement(timed).len(), 36, "2 + 16 + 8 + 10");
        assert_eq!((timed.sack().as_slice().len(), timed.timestamps()), (2, Some(timestamps)));
        let delay = Span::from_micros(80);
        assert_eq!(Options::Acknowledgement(plain.with_delay(delay)).len(), 36, "26 + 10");
        assert_eq!(Options::Acknowledgement(timed.with_delay(delay)).len(), 40, "18 + 10 + 10 + 2");
        let counts = EcnCounts { ce: 1, ect0: 2, ect1: 65_535 };
        let counted = plain.with_delay(delay).with_counts(counts);
        assert_eq!(Options::Acknowledgement(counted).len(), 36, "18 + 16 + 2");
        assert_eq!((counted.sack().as_slice().len(), counted.counts(), counted.delay()), (2, Some(counts), delay));
        for both in [counted.with_timestamps(timestamps), timed.with_counts(counts).with_delay(delay)] {
            assert_eq!(Options::Acknowledgement(both).len(), 36, "10 + 16 + 10");
            assert_eq!(
                (both.sack().as_slice().len(), both.counts(), both.timestamps()),
                (1, Some(counts), Some(timestamps))
            );
            assert_eq!(both.delay(), delay);
        }
        let without = AcknowledgementOptions::new(sack, None).with_counts(counts).with_delay(delay);
        assert_eq!(
            (without.counts(), without.delay(), Options::Acknowledgement(without).len()),
            (None, Span::ZERO, 28)
        );
        assert_eq!(Options::default().len(), 0);
    }
}
