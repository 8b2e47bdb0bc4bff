//! A wire between two ends: it delays, loses, duplicates, marks and corrupts segments as told.

use std::collections::BTreeMap;

use anabranch_units::{Span, Time};
use bytes::Bytes;

use super::{Marked, ms};
use crate::wire::{self, Checksum, Ports};
use crate::{Content, EcnCodepoint, HandshakeOptions, Options, Record, Segment, SeqNumber, Transmit};

/// What happens to one segment on a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Lose,
    Duplicate,
    Delay(Span),
    /// This bit of its bytes is inverted. The checksum detects it, so the segment is lost.
    Corrupt(u32),
}

/// One direction between the two ends.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) delay: Span,
    /// The transmission time of a full segment; zero is infinitely fast.
    pub(crate) spacing: Span,
    /// Faults by the number of the segment on this wire, from 0.
    pub(crate) faults: BTreeMap<u64, Fault>,
    /// How a router changes the codepoint of each segment.
    pub(crate) router: fn(u64, Option<EcnCodepoint>) -> Option<EcnCodepoint>,
    /// Loses everything.
    pub(crate) is_cut: bool,
    /// Loses every segment with an ECN codepoint.
    pub(crate) loses_ecn: bool,
    /// Loses every segment with this sequence number.
    pub(crate) lost_at: Option<SeqNumber>,
    /// What a middlebox changes in each segment; whether it lets it pass.
    pub(crate) middlebox: fn(&mut Segment<Marked>) -> bool,
    /// Segments so far.
    pub(crate) count: u64,
    /// When it can send the next segment. If this is in the future, segments are queued.
    pub(crate) free_at: Time,
    pub(super) flying: BTreeMap<(Time, u64), (Segment<Marked>, Option<EcnCodepoint>)>,
    /// The segments that entered it.
    pub(crate) log: Vec<(Time, Segment<Marked>)>,
}

impl Wire {
    pub(super) fn new() -> Self {
        Self {
            delay: ms(50),
            spacing: Span::ZERO,
            faults: BTreeMap::new(),
            router: |_, ecn| ecn,
            is_cut: false,
            loses_ecn: false,
            lost_at: None,
            middlebox: |_| true,
            count: 0,
            free_at: Time::ZERO,
            flying: BTreeMap::new(),
            log: Vec::new(),
        }
    }

    pub(super) fn carry(&mut self, now: Time, order: u64, transmit: Transmit<Marked>) {
        let Transmit { mut segment, ecn, .. } = transmit;
        let passes = (self.middlebox)(&mut segment);
        let number = self.count;
        self.count += 1;
        self.log.push((now, segment));
        let fault = self.faults.remove(&number);
        if let Some(Fault::Corrupt(bit)) = fault {
            assert!(is_refused(&segment, bit), "bit {bit} of {segment:?}");
        }
        let is_cut =
            !passes || self.is_cut || self.loses_ecn && ecn.is_some() || self.lost_at == Some(segment.header.seq);
        if is_cut || matches!(fault, Some(Fault::Lose | Fault::Corrupt(_))) {
            return;
        }
        let size = Span::from_ticks(self.spacing.ticks() * u64::from(segment.wire_size()) / 1040);
        self.free_at = self.free_at.max(now) + size;
        let arrival = self.free_at + self.delay;
        let arrival = if let Some(Fault::Delay(span)) = fault { arrival + span } else { arrival };
        let ecn = (self.router)(number, ecn);
        self.flying.insert((arrival, order), (segment, ecn));
        if fault == Some(Fault::Duplicate) {
            self.flying.insert((arrival, order + 1), (segment, ecn));
        }
    }

    /// The next arrived segment, if any.
    pub(super) fn deliver(&mut self, now: Time) -> Option<(Segment<Marked>, Option<EcnCodepoint>)> {
        let entry = self.flying.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(entry.remove())
    }

    /// The records that entered it, counting each transmission.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> {
        self.log.iter().flat_map(|(_, segment)| match segment.content {
            Content::Control(records) => records.iter().collect::<Vec<_>>(),
            Content::Nothing | Content::Data(_) => vec![],
        })
    }

    pub(crate) fn data(&self) -> impl Iterator<Item = &(Time, Segment<Marked>)> {
        self.log.iter().filter(|(_, segment)| !segment.content.is_empty())
    }
}

/// A middlebox that removes an option from every SYN.
pub(crate) fn removes_sack(segment: &mut Segment<Marked>) -> bool {
    change_syn(segment, |options| options.sack_permitted = false)
}

pub(crate) fn removes_scale(segment: &mut Segment<Marked>) -> bool {
    change_syn(segment, |options| options.window_scale = None)
}

pub(crate) fn removes_mss(segment: &mut Segment<Marked>) -> bool {
    change_syn(segment, |options| options.mss = None)
}

pub(crate) fn removes_multistream(segment: &mut Segment<Marked>) -> bool {
    change_syn(segment, |options| options.multistream = None)
}

fn change_syn(segment: &mut Segment<Marked>, change: fn(&mut HandshakeOptions)) -> bool {
    if let Options::Handshake(options) = &mut segment.options {
        change(options);
    }
    true
}

/// Whether the codec refuses the bytes of a segment with one bit inverted.
fn is_refused(segment: &Segment<Marked>, bit: u32) -> bool {
    let Segment { header, options, stream_header, content } = *segment;
    let content = match content {
        Content::Nothing => Content::Nothing,
        Content::Control(records) => Content::Control(records),
        Content::Data(Marked { tag, len, .. }) => Content::Data(Bytes::from(vec![tag as u8; len as usize])),
    };
    let mut bytes = vec![];
    let checksum = Checksum::V4([[192, 0, 2, 1], [192, 0, 2, 2]]);
    wire::encode(&Segment { header, options, stream_header, content }, Ports::default(), checksum, &mut bytes);
    let bit = bit as usize % (8 * bytes.len());
    bytes[bit / 8] ^= 1 << (bit % 8);
    wire::decode(bytes.into(), checksum).is_err()
}
