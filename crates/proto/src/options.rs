//! TCP's options, typed. Those of the handshake and those of everything after it never meet in one segment.

use crate::segment::StreamHeader;
use crate::seq::SeqNumber;

/// The options of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Options {
    /// Of a SYN or SYN-ACK.
    Handshake(HandshakeOptions),
    /// Of anything else.
    Acknowledgement(AcknowledgementOptions),
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
}

/// The negotiation of streams: an experimental option (kind 253, [rfc-6994]) beside the flag MSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multistream {
    /// [`Multistream::VERSION`]; another one is answered like no option at all.
    pub version: u8,
    /// Streams wanted in each direction, or granted in the answer; at least one.
    pub streams: u8,
    /// Bits for what may come; those that both sides know count. None so far.
    pub features: u8,
}

/// What has arrived, beyond the acknowledgement number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcknowledgementOptions {
    /// What arrived above a hole, the most recent first ([rfc-2018]); before it, what arrived twice ([rfc-2883]).
    pub sack: SackBlocks,
    /// The stream of the segment that is answered, and the SSN expected next on it ([mfast-2019] Procedure 1, lines 4 to 21).
    pub expected: Option<StreamHeader>,
}

/// At most three blocks `left..right` of sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    /// Those that are used come first; the others are empty, which a block never is.
    blocks: [(SeqNumber, SeqNumber); Self::MAX],
}

impl SackBlocks {
    /// Three fit into the 40 bytes of options beside the expected SSN (26 + 8 bytes); a fourth would not.
    pub const MAX: usize = 3;

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
        self.as_slice().is_empty()
    }
}

impl Multistream {
    /// The version of the stream header and of the records that this crate speaks.
    pub const VERSION: u8 = 1;
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
                let multistream = if options.multistream.is_some() { 4 + 3 } else { 0 };
                mss + scale + sack + multistream
            }
            Self::Acknowledgement(options) => {
                let sack = match options.sack.as_slice().len() as u32 {
                    0 => 0,
                    blocks => 2 + 8 * blocks,
                };
                let expected = if options.expected.is_some() { 4 + StreamHeader::LEN } else { 0 };
                sack + expected
            }
        };
        len.next_multiple_of(4)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What a SYN settles; nothing in any other segment.
    pub fn handshake(&self) -> HandshakeOptions {
        match self {
            Self::Handshake(options) => *options,
            Self::Acknowledgement(_) => HandshakeOptions::default(),
        }
    }

    /// What an acknowledgement says; nothing in a SYN.
    pub fn acknowledgement(&self) -> AcknowledgementOptions {
        match self {
            Self::Handshake(_) => AcknowledgementOptions::default(),
            Self::Acknowledgement(options) => *options,
        }
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
    use crate::segment::Sid;
    use crate::seq::Ssn;

    #[test]
    fn no_segment_has_more_than_40_bytes_of_options() {
        let multistream = Some(Multistream { version: 1, streams: 8, features: 0 });
        let handshake = HandshakeOptions { mss: Some(1460), window_scale: Some(7), sack_permitted: true, multistream };
        assert_eq!(Options::Handshake(handshake).len(), 16, "4 + 3 + 2 + 7");
        let mut sack = SackBlocks::default();
        for block in 0..4 {
            sack.push(SeqNumber(10 * block), SeqNumber(10 * block + 5));
        }
        let expected = Some(StreamHeader { sid: Sid::new(1), ssn: Ssn::of(1) });
        assert_eq!(Options::Acknowledgement(AcknowledgementOptions { sack, expected }).len(), 36, "2 + 24 + 8 + 2");
        assert_eq!(Options::default().len(), 0);
    }
}
