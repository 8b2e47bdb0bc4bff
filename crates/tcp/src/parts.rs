//! Segments of streams that a middlebox has split or joined, made whole by their extents (`docs/wire.md` 2.7).
//!
//! ```text
//! sent        |------ extent ------|------ extent ------|
//! split       |---------|----------|                       kept until the parts are together
//! joined      |------ extent ------|--------------------|  cut to the first; the rest is sent again
//! mangled     no extent, or no MSE                         lost; given up if it is always so
//! ```
//!
//! If the peer has not seen our grant of streams, the connection is plain, and it is a segment *with* an extent that shows otherwise.

use std::collections::{BTreeMap, VecDeque};

use anabranch_proto::wire::Checksum;
use anabranch_proto::{Extent, Flags, SeqNumber};
use bytes::Bytes;

/// The parts of segments that a connection keeps.
#[derive(Debug)]
pub(crate) struct Parts {
    /// The peer's initial number.
    initial: SeqNumber,
    /// The connection is plain, although streams were granted.
    is_plain: bool,
    /// Segments that are not whole, the oldest first.
    kept: VecDeque<Kept>,
    /// Segments in a row at the expected number from which a middlebox has taken the flag or the extent.
    mangled: u32,
}

/// What an arrived segment comes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A segment as it was sent.
    Whole(Bytes),
    /// A part, which is kept, or nothing of use.
    Kept,
    /// It has lost what its stream needs. After several at the same place, none will ever arrive.
    Mangled { is_hopeless: bool },
}

/// Parts of one segment.
#[derive(Debug)]
struct Kept {
    seq: SeqNumber,
    len: usize,
    /// Contents by their positions.
    parts: BTreeMap<usize, Bytes>,
    /// The part that reaches the end has a FIN.
    is_last: bool,
}

impl Parts {
    /// None yet, of a peer with this initial number.
    pub(crate) fn new(initial: SeqNumber) -> Self {
        Self { initial, is_plain: false, kept: VecDeque::new(), mangled: 0 }
    }

    /// The peer has not seen our grant of streams.
    pub(crate) fn become_plain(&mut self) {
        self.is_plain = true;
        self.kept.clear();
    }

    /// Takes an encoded segment. `expected` is the number that the receiver expects next: who does not know it cannot make the connection be given up.
    pub(crate) fn take(&mut self, segment: Bytes, checksum: Checksum, expected: SeqNumber) -> Part {
        let Some(head) = Head::read(&segment) else { return Part::Whole(segment) };
        if head.len == segment.len() || head.flags.contains(Flags::SYN) || head.flags.contains(Flags::RST) {
            return Part::Whole(segment);
        }
        let content = segment.len() - head.len;
        let extent = Extent::read(&segment);
        if self.is_plain {
            return if extent.is_none() { Part::Whole(segment) } else { self.mangled(&head, expected) };
        }
        let extent = extent.filter(|_| head.flags.contains(Flags::MSE));
        let place = extent.map(|extent| (head.position(self.initial, extent), usize::from(extent.len)));
        if place == Some((0, content)) {
            self.mangled = 0;
            return Part::Whole(segment);
        }
        if !checksum.is_right(&segment) {
            // Whoever decodes it refuses it.
            return Part::Whole(segment);
        }
        let Some((position, len)) = place.filter(|(position, len)| position < len) else {
            return self.mangled(&head, expected);
        };
        let start = SeqNumber(head.seq.0.wrapping_sub(position as u32));
        if start.0.wrapping_sub(expected.0).wrapping_add(NEAR) > 2 * NEAR {
            return Part::Kept;
        }
        let taken = content.min(len - position);
        let is_last = taken == content && head.flags.contains(Flags::FIN);
        // A copy: a slice would keep a long packet for a short part of it.
        let part = Bytes::copy_from_slice(&segment[head.len..head.len + taken]);
        let whole = self.join(start, len, position, part, is_last);
        whole.map_or(Part::Kept, |(content, is_last)| {
            Part::Whole(head.around(&segment, start, &content, is_last, checksum))
        })
    }

    /// A segment has lost what its stream needs.
    fn mangled(&mut self, head: &Head, expected: SeqNumber) -> Part {
        self.mangled += u32::from(head.seq == expected);
        Part::Mangled { is_hopeless: self.mangled >= MANGLED_MAX }
    }

    /// Adds a part of the segment at `seq`. Returns the content if it is whole, and whether it has a FIN.
    fn join(
        &mut self,
        seq: SeqNumber,
        len: usize,
        position: usize,
        part: Bytes,
        is_last: bool,
    ) -> Option<(Vec<u8>, bool)> {
        let at = self.kept.iter().position(|kept| (kept.seq, kept.len) == (seq, len));
        let mut kept = match at.and_then(|at| self.kept.remove(at)) {
            Some(kept) => kept,
            None => Kept { seq, len, parts: BTreeMap::new(), is_last: false },
        };
        kept.is_last |= is_last;
        let longest = kept.parts.entry(position).or_default();
        if longest.len() < part.len() {
            *longest = part;
        }
        if let Some(content) = kept.content() {
            return Some((content, kept.is_last));
        }
        if kept.parts.len() <= PARTS_MAX {
            self.kept.push_back(kept);
        }
        while self.kept.len() > KEPT_MAX || self.kept.iter().map(Kept::bytes).sum::<usize>() > BYTES_MAX {
            // The oldest one: it is sent again.
            self.kept.pop_front();
        }
        None
    }
}

/// The parts of an encoded segment that have at most `most` bytes each, with all of its options. One that says its extent is made whole by its receiver.
pub(crate) fn split(segment: &[u8], most: usize, checksum: Checksum) -> Vec<Bytes> {
    let Some(head) = Head::read(segment) else { return vec![] };
    let content = &segment[head.len..];
    let room = most.saturating_sub(head.len).max(1);
    let part = |at: usize| {
        let end = content.len().min(at + room);
        let is_last = end == content.len() && head.flags.contains(Flags::FIN);
        head.around(segment, head.seq.plus(at as u64), &content[at..end], is_last, checksum)
    };
    (0..content.len()).step_by(room).map(part).collect()
}

impl Kept {
    fn bytes(&self) -> usize {
        self.parts.values().map(Bytes::len).sum()
    }

    /// The content, if there are all parts of it.
    fn content(&self) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        for (&position, part) in &self.parts {
            let known = content.len().checked_sub(position)?;
            content.extend_from_slice(part.get(known..).unwrap_or_default());
        }
        (content.len() == self.len).then_some(content)
    }
}

/// What is read of a TCP header.
struct Head {
    seq: SeqNumber,
    flags: Flags,
    /// Bytes of the header with its options.
    len: usize,
}

impl Head {
    fn read(segment: &[u8]) -> Option<Self> {
        let &[_, _, _, _, a, b, c, d, _, _, _, _, e, f] = segment.first_chunk()?;
        let len = usize::from(e >> 4) * 4;
        let flags = Flags::from_bits(u16::from_be_bytes([e, f]));
        (len <= segment.len()).then_some(Self { seq: SeqNumber(u32::from_be_bytes([a, b, c, d])), flags, len })
    }

    /// Where in its extent the content begins.
    fn position(&self, initial: SeqNumber, extent: Extent) -> usize {
        let at = self.seq.0.wrapping_sub(initial.0) as u16;
        usize::from(at.wrapping_sub(extent.start))
    }

    /// The segment with this content from `seq` on, and the options of `segment`.
    fn around(&self, segment: &[u8], seq: SeqNumber, content: &[u8], is_last: bool, checksum: Checksum) -> Bytes {
        let mut whole = [&segment[..self.len], content].concat();
        whole[SEQ_AT..SEQ_AT + 4].copy_from_slice(&seq.0.to_be_bytes());
        whole[FLAGS_AT] = whole[FLAGS_AT] & !FIN | if is_last { FIN } else { 0 };
        whole[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
        if let Some(sum) = checksum.of(&whole) {
            whole[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
        }
        whole.into()
    }
}

/// Positions in a TCP header ([rfc-9293] sec. 3.1).
const SEQ_AT: usize = 4;
const FLAGS_AT: usize = 13;
const CHECKSUM_AT: usize = 16;

/// The bit of the flag FIN.
const FIN: u8 = 1;

/// Segments that are kept, the parts of each, and the bytes of all: a window of parts out of order. More come again.
const KEPT_MAX: usize = 64;
const PARTS_MAX: usize = 16;
const BYTES_MAX: usize = 128 << 10;

/// Parts are kept so far from the expected number, either way: who does not know it seldom finds a place.
const NEAR: u32 = 1 << 24;

/// After so many segments in a row at the same place, none will come as it was sent.
const MANGLED_MAX: u32 = 8;

#[cfg(test)]
mod tests {
    use anabranch_proto::wire::{self, Ports};
    use anabranch_proto::{
        AcknowledgementOptions, Content, FourTuple, Header, Options, Segment, Sid, Ssn, StreamHeader, Timestamps,
    };
    use proptest::prelude::*;

    use super::*;

    const INITIAL: SeqNumber = SeqNumber(u32::MAX - 30_000);

    fn checksum() -> Checksum {
        Checksum::of_path(FourTuple::default())
    }

    /// A segment of 4 + `len` bytes, of which the peer has sent `offset` bytes before.
    fn segment(offset: u32, len: usize) -> Bytes {
        let seq = INITIAL.plus(u64::from(offset) + 1);
        let header = Header { seq, flags: Flags::ACK | Flags::MSE, ..Header::default() };
        let stamps = Timestamps { value: 1, echo: 2 };
        let options = Options::Acknowledgement(AcknowledgementOptions::default().with_timestamps(stamps));
        let stream_header = Some(StreamHeader { sid: Sid::new(1), ssn: Ssn::of(u64::from(offset)) });
        let content = Content::Data((0..len).map(|at| (at + offset as usize) as u8).collect());
        let mut out = vec![];
        let segment = Segment { header, options, stream_header, content };
        wire::encode_within(&segment, Ports::default(), checksum(), INITIAL, &mut out);
        out.into()
    }

    /// The part of the bytes `from..to` of the content, as a middlebox makes it: all options are copied.
    fn part(of: &Bytes, from: usize, to: usize) -> Bytes {
        let head = Head::read(of).unwrap();
        let seq = SeqNumber(head.seq.0.wrapping_add(from as u32));
        head.around(of, seq, &of[head.len + from..head.len + to], false, checksum())
    }

    /// Whatever the room, the parts come whole again.
    #[test]
    fn parts_of_a_split_segment_are_whole_together() {
        let whole = segment(77, 1300);
        for most in [60, 500, 1000, 1350, 1400] {
            let mut parts = Parts::new(INITIAL);
            let split = split(&whole, most, checksum());
            assert!(split.iter().all(|part| part.len() <= most));
            let mut taken: Vec<_> = split.into_iter().map(|part| parts.take(part, checksum(), INITIAL)).collect();
            assert_eq!(taken.pop(), if most == 60 { Some(Part::Kept) } else { Some(Part::Whole(whole.clone())) });
            assert!(taken.iter().all(|part| *part == Part::Kept));
        }
    }

    /// Two segments in one, with the options of the first.
    fn joined(first: &Bytes, second: &Bytes) -> Bytes {
        let (head, rest) = (Head::read(first).unwrap(), Head::read(second).unwrap());
        let content = [&first[head.len..], &second[rest.len..]].concat();
        head.around(first, head.seq, &content, false, checksum())
    }

    #[test]
    fn joined_segments_are_cut_to_the_first() {
        let (first, second) = (segment(0, 1000), segment(1004, 700));
        let mut parts = Parts::new(INITIAL);
        assert_eq!(parts.take(joined(&first, &second), checksum(), INITIAL), Part::Whole(first));
        assert_eq!(parts.take(second.clone(), checksum(), INITIAL), Part::Whole(second));
    }

    /// Joined and cut at other places, as by a proxy with a smaller segment size: what is not told by its own options comes again.
    #[test]
    fn shifted_boundaries_are_not_taken_for_right_ones() {
        let (first, second) = (segment(0, 996), segment(1000, 996));
        let both = joined(&first, &second);
        let mut parts = Parts::new(INITIAL);
        assert_eq!(parts.take(part(&both, 0, 500), checksum(), INITIAL), Part::Kept);
        // As long as a segment, but with another begin.
        assert_eq!(parts.take(part(&both, 500, 1500), checksum(), INITIAL), Part::Whole(first));
        assert!(matches!(
            parts.take(part(&both, 1500, 2000), checksum(), INITIAL),
            Part::Mangled { is_hopeless: false }
        ));
    }

    /// Only who knows the expected number makes a connection be given up, by eight in a row; one good segment forgives.
    #[test]
    fn eight_segments_without_extent_are_hopeless() {
        let good = segment(0, 100);
        let mut bad = good.to_vec();
        // The option is skipped as another experiment.
        let at = bad.windows(2).position(|pair| pair == b"MS").unwrap();
        bad[at] = b'X';
        let expected = INITIAL.plus(1);
        let bad =
            Head::read(&bad).unwrap().around(&bad, expected, &bad[Head::read(&bad).unwrap().len..], false, checksum());
        let mut parts = Parts::new(INITIAL);
        for _ in 0..100 {
            let part = parts.take(bad.clone(), checksum(), expected.plus(1));
            assert_eq!(part, Part::Mangled { is_hopeless: false });
        }
        for count in 1..=20 {
            if count == 8 {
                assert_eq!(parts.take(good.clone(), checksum(), expected), Part::Whole(good.clone()));
            }
            let part = parts.take(bad.clone(), checksum(), expected);
            assert_eq!(part, Part::Mangled { is_hopeless: count >= 15 }, "{count}");
        }
    }

    #[test]
    fn kept_parts_have_a_limit() {
        let mut parts = Parts::new(INITIAL);
        for number in 0..1000 {
            let of = segment(number * 104, 100);
            for at in 0..40 {
                assert_eq!(parts.take(part(&of, 2 * at, 2 * at + 1), checksum(), INITIAL), Part::Kept);
            }
        }
        assert!(parts.kept.len() <= KEPT_MAX);
        assert!(parts.kept.iter().all(|kept| kept.parts.len() <= PARTS_MAX));
        // Long ones, as a kernel that puts fragments together may pass on.
        let mut parts = Parts::new(INITIAL);
        for number in 0..40 {
            let of = segment(number * 60_000, 59_996);
            assert_eq!(parts.take(part(&of, 0, 50_000), checksum(), INITIAL), Part::Kept);
        }
        assert!(parts.kept.iter().map(Kept::bytes).sum::<usize>() <= 128 << 10);
        // Far from what is expected.
        let before = parts.kept.len();
        let far = segment(NEAR + 2, 1000);
        assert_eq!(parts.take(part(&far, 0, 500), checksum(), INITIAL), Part::Kept);
        assert_eq!(parts.kept.len(), before);
    }

    /// A damaged part is passed on for the decoder to refuse; it spoils no segment.
    #[test]
    fn damaged_part_is_not_kept() {
        let whole = segment(0, 1000);
        let mut parts = Parts::new(INITIAL);
        let mut damaged = part(&whole, 0, 600).to_vec();
        *damaged.last_mut().unwrap() ^= 1;
        assert_eq!(parts.take(damaged.clone().into(), checksum(), INITIAL), Part::Whole(damaged.into()));
        assert_eq!(parts.take(part(&whole, 600, 1004), checksum(), INITIAL), Part::Kept);
        assert_eq!(parts.take(part(&whole, 0, 600), checksum(), INITIAL), Part::Whole(whole));
    }

    /// The end of the connection is where the last part says it, even if that comes first.
    #[test]
    fn end_of_the_last_part_is_kept() {
        let whole = segment(0, 1000);
        let head = Head::read(&whole).unwrap();
        let whole = head.around(&whole, head.seq, &whole[head.len..], true, checksum());
        let mut split = split(&whole, 600, checksum());
        split.reverse();
        let mut parts = Parts::new(INITIAL);
        assert_eq!(parts.take(split[0].clone(), checksum(), INITIAL), Part::Kept);
        assert_eq!(parts.take(split[1].clone(), checksum(), INITIAL), Part::Whole(whole));
    }

    /// Where the grant of streams was not seen, a segment with an extent is of a peer that has seen it: a middlebox has taken the flag off.
    #[test]
    fn extent_in_plain_connection_is_mangled() {
        let mut parts = Parts::new(INITIAL);
        parts.become_plain();
        let (told, expected) = (segment(0, 100), INITIAL.plus(1));
        for count in 1..=8 {
            assert_eq!(parts.take(told.clone(), checksum(), expected), Part::Mangled { is_hopeless: count == 8 });
        }
    }

    proptest! {
        /// However a segment is split, in whatever order and how often the parts come: it comes whole, once for each full set, and never otherwise.
        #[test]
        fn split_segment_comes_as_it_was_sent(
            offset in 0u32..200_000,
            len in 20usize..1400,
            cuts in prop::collection::btree_set(1usize..20, 1..8),
            order in any::<[u8; 9]>(),
            twice in any::<bool>(),
        ) {
            let whole = segment(offset, len);
            let mut ends: Vec<usize> = cuts.into_iter().chain([len + 4]).collect();
            ends.dedup();
            let mut pieces: Vec<_> = (0..ends.len()).map(|at| (if at == 0 { 0 } else { ends[at - 1] }, ends[at])).collect();
            pieces.sort_by_key(|(from, _)| order[*from % 9]);
            let mut parts = Parts::new(INITIAL);
            let last = pieces.len() - 1;
            for (at, (from, to)) in pieces.into_iter().enumerate() {
                if twice && at < last {
                    prop_assert_eq!(parts.take(part(&whole, from, to), checksum(), INITIAL), Part::Kept);
                }
                let expected = if at == last { Part::Whole(whole.clone()) } else { Part::Kept };
                prop_assert_eq!(parts.take(part(&whole, from, to), checksum(), INITIAL), expected);
            }
            prop_assert!(parts.kept.is_empty());
        }

        #[test]
        fn random_bytes_cause_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..120), seq in any::<u32>()) {
            let mut bytes = bytes;
            if bytes.len() > CHECKSUM_AT + 2 {
                bytes[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
                let sum = checksum().of(&bytes).unwrap();
                bytes[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&sum.to_be_bytes());
            }
            _ = Parts::new(SeqNumber(seq)).take(bytes.into(), checksum(), SeqNumber(seq));
        }
    }
}
