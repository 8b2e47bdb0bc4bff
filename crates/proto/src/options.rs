//! TCP's options, typed. Those of the handshake and those of everything after it never meet in one segment.

use anabranch_units::Span;

use crate::seq::SeqNumber;
use crate::stream_header::StreamHeader;

/// The options of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Options {
    /// Of a SYN or SYN-ACK.
    Handshake(HandshakeOptions),
    /// Of anything else.
    Acknowledgement(AcknowledgementOptions),
    /// Of a segment that sets a path up or gives it up, and carries nothing.
    Path(PathOption),
}

/// What is settled by the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandshakeOptions {
    /// The most sequence space that a segment to the sender of this option may carry ([rfc-9293] sec. 3.7.1).
    pub mss: Option<u16>,
    /// How far windows are shifted from now on ([rfc-7323] sec. 2.2).
    pub window_scale: Option<u8>,
    /// Whether SACK blocks will be understood ([rfc-2018] sec. 2).
    pub sack_permitted: bool,
    /// How many streams are wanted, or granted in the answer.
    pub multistream: Option<Multistream>,
    /// The clock of the sender of this option ([rfc-7323] sec. 3.2).
    pub timestamps: Option<Timestamps>,
}

/// The negotiation of streams: an experimental option (kind 253, [rfc-6994]) beside the flag MSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multistream {
    /// [`Multistream::VERSION`]; another one is answered like no option at all.
    pub version: u8,
    /// Streams wanted in each direction, or granted in the answer; at least one. With [`Features::MANY_STREAMS`] each counts for 16.
    pub streams: u8,
    /// What else its sender can do; what both can is done.
    pub features: Features,
    /// How much the sender of this option takes on each stream before it says more: 2 to this power, in bytes, at most 31.
    pub credit: u8,
}

/// What an end can do, beyond streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features(pub u8);

/// A clock and its echo ([rfc-7323] sec. 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// The clock of the sender.
    pub value: u32,
    /// The clock of its peer, as it was heard last.
    pub echo: u32,
}

/// How a path is set up and given up: an experimental option (kind 253, [rfc-6994]) of a segment that has no other option and
/// carries nothing. Which path it is about is the one that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathOption {
    /// Whoever gets this sends it back the same way.
    Challenge([u8; 8]),
    /// What came as a challenge.
    Response([u8; 8]),
    /// Its sender uses the path no more. The token is one that only who sees the path knows: that of the latest challenge which came
    /// to its sender on it.
    Leave([u8; 8]),
}

/// What has arrived, beyond the acknowledgement number. Segments are copied often in a simulation, and so this is packed: the
/// places of the last blocks may hold timestamps and counts, as there is no room for all of them on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcknowledgementOptions {
    blocks: [(SeqNumber, SeqNumber); SackBlocks::MAX],
    /// In units of [`AcknowledgementOptions::DELAY_UNIT`].
    delay: u16,
    expected: Option<StreamHeader>,
    beside: Beside,
}

/// What takes the places of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Beside {
    #[default]
    Nothing,
    /// In the last place.
    Timestamps,
    /// In the last place.
    Counts,
    /// In the last place, and in the one before it.
    TimestampsAndCounts,
}

/// How many datagrams came on a path with each codepoint of ECN ([rfc-3168] sec. 5), modulo 2^16.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// Marked by a router: congestion experienced.
    pub ce: u16,
    /// ECT(0).
    pub ect0: u16,
    /// ECT(1).
    pub ect1: u16,
}

/// At most three blocks `left..right` of sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    /// Those that are used come first; the others are empty, which a block never is.
    blocks: [(SeqNumber, SeqNumber); Self::MAX],
}

impl AcknowledgementOptions {
    /// What arrived above a hole, the most recent first ([rfc-2018]); before it, what arrived twice ([rfc-2883]). And the
    /// stream of the segment that is answered, with the SSN expected next on it ([mfast-2019] Procedure 1, lines 4 to 21).
    pub fn new(sack: SackBlocks, expected: Option<StreamHeader>) -> Self {
        Self { blocks: sack.blocks, expected, ..Self::default() }
    }

    /// The same with timestamps, if both ends said one in the handshake. They take the place of a block.
    #[must_use]
    pub fn with_timestamps(mut self, timestamps: Timestamps) -> Self {
        if let Some(counts) = self.counts() {
            return Self { beside: Beside::Timestamps, ..self }.set(LAST, timestamps).with_counts(counts);
        }
        self.beside = Beside::Timestamps;
        self.set(LAST, timestamps)
    }

    /// The same with counts, which take the place of a block. They go with a stream: without [`AcknowledgementOptions::expected`] they are not said.
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

    /// The same of a segment that waited so long for its acknowledgement. It goes with a stream, as the counts do.
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

    /// What arrived above a hole, and before it what arrived twice.
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

    /// Whether there are any: whatever else there is, it takes no place of the first.
    #[inline]
    pub(crate) fn has_sack(&self) -> bool {
        let [(left, right), ..] = self.blocks;
        left != right
    }

    /// How long the segment that is answered waited for that, if it did: to 8 us, and half a second at most.
    pub fn delay(&self) -> Span {
        Self::DELAY_UNIT.saturating_mul(self.delay.into())
    }

    /// How many datagrams came with each codepoint, if any did.
    pub fn counts(&self) -> Option<EcnCounts> {
        let (high, low) = match self.beside {
            Beside::Nothing | Beside::Timestamps => return None,
            Beside::Counts => self.blocks[LAST],
            Beside::TimestampsAndCounts => self.blocks[LAST - 1],
        };
        Some(EcnCounts { ce: (high.0 >> 16) as u16, ect0: high.0 as u16, ect1: low.0 as u16 })
    }

    /// Bytes of the option that names the stream: kind, length, the experiment's identifier, the stream, and what there is of delay and counts.
    pub(crate) fn expected_len(&self) -> u32 {
        match self.beside {
            _ if self.expected.is_none() => 0,
            Beside::Counts | Beside::TimestampsAndCounts => 16,
            Beside::Nothing | Beside::Timestamps if self.delay > 0 => 10,
            Beside::Nothing | Beside::Timestamps => 8,
        }
    }

    /// The stream of the segment that is answered, and the SSN expected next on it.
    pub fn expected(&self) -> Option<StreamHeader> {
        self.expected
    }

    /// The clocks.
    pub fn timestamps(&self) -> Option<Timestamps> {
        let (value, echo) = self.blocks[LAST];
        let is_there = matches!(self.beside, Beside::Timestamps | Beside::TimestampsAndCounts);
        is_there.then_some(Timestamps { value: value.0, echo: echo.0 })
    }

    /// What a delay is told in.
    pub const DELAY_UNIT: Span = Span::from_micros(8);
}

/// The place of the last block.
const LAST: usize = SackBlocks::MAX - 1;

impl SackBlocks {
    /// Three fit into the 40 bytes of options beside the expected SSN (26 + 8 bytes, or 10), two beside timestamps (18 + 8 + 10) or counts
    /// (18 + 16), one beside both (10 + 16 + 10).
    pub const MAX: usize = 3;

    /// These blocks in their order, and after them empty ones if there are fewer.
    pub(crate) const fn of(blocks: [(SeqNumber, SeqNumber); Self::MAX]) -> Self {
        Self { blocks }
    }

    /// Appends a block; a fourth is not taken.
    pub fn push(&mut self, left: SeqNumber, right: SeqNumber) {
        debug_assert!(left.is_before(right), "a block has something in it: {left}..{right}");
        let len = self.as_slice().len();
        if let Some(free) = self.blocks.get_mut(len) {
            *free = (left, right);
        }
    }

    /// The blocks in their order.
    pub fn as_slice(&self) -> &[(SeqNumber, SeqNumber)] {
        let len = self.blocks.iter().position(|(left, right)| left == right).unwrap_or(Self::MAX);
        &self.blocks[..len]
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        let [(left, right), ..] = self.blocks;
        left == right
    }
}

impl Features {
    /// Several paths.
    pub const PATHS: Self = Self(0x01);

    /// Acknowledgements prove that what they acknowledge has come. Only in the sealed form is there room for it.
    pub const NONCES: Self = Self(0x02);

    /// More than 255 streams. Only in the sealed form is there room for their names.
    pub const MANY_STREAMS: Self = Self(0x04);

    /// What both can do.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// These and those.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `features` are there.
    pub const fn contains(self, features: Self) -> bool {
        self.0 & features.0 == features.0
    }
}

impl Timestamps {
    /// Bytes of the option.
    pub const LEN: u32 = 10;

    /// The same with what fills the word.
    pub(crate) const SPACE: u32 = Self::LEN.next_multiple_of(4);
}

impl PathOption {
    /// Bytes of the option: kind, length, the experiment's identifier, what it is, and the token.
    pub const fn size(self) -> u32 {
        match self {
            Self::Challenge(_) | Self::Response(_) | Self::Leave(_) => 13,
        }
    }
}

impl Multistream {
    /// The version of the stream header and of the records that this crate speaks.
    pub const VERSION: u8 = 2;

    /// How many streams that are in each direction, if it is an answer.
    pub(crate) fn count(&self) -> u16 {
        let each = if self.features.contains(Features::MANY_STREAMS) { Self::MANY } else { 1 };
        u16::from(self.streams) * each
    }

    /// Streams for each that is counted, if they are many.
    pub(crate) const MANY: u16 = 16;
}

impl Options {
    /// Bytes in the header, padded to words.
    pub fn len(&self) -> u32 {
        let len = match self {
            Self::Handshake(options) => {
                // Kind and length, then the value; the experiment's identifier takes two bytes more.
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
        len.next_multiple_of(4)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The stream of the segment that is answered has a name on this page.
    pub(crate) fn set_page(&mut self, page: u8) {
        if let Self::Acknowledgement(AcknowledgementOptions { expected: Some(expected), .. }) = self {
            expected.sid = expected.sid.on_page(page);
        }
    }

    /// What a SYN settles; nothing in any other segment.
    pub fn handshake(&self) -> HandshakeOptions {
        match self {
            Self::Handshake(options) => *options,
            Self::Acknowledgement(_) | Self::Path(_) => HandshakeOptions::default(),
        }
    }

    /// The same, where it stands.
    #[inline]
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

    /// What an acknowledgement says; nothing in a SYN.
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
