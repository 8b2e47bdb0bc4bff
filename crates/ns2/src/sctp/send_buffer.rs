//! The sent chunks that are not cumulatively acknowledged, ordered by TSN without holes.

use std::collections::VecDeque;

use super::packet::Data;

#[derive(Clone, Debug, Default)]
pub(crate) struct SendBuffer {
    /// The chunks. Their number is bounded by the windows and the peer's receive buffer.
    chunks: VecDeque<Outstanding>,
    /// How many of them are marked, so that no SACK looks at all for those.
    marked: usize,
    /// How many of them the last SACK has in gap blocks.
    gap_acked: usize,
}

/// A chunk that was sent.
#[derive(Clone, Debug)]
pub(crate) struct Outstanding {
    pub(crate) data: Data,
    /// The destination of the last transmission.
    pub(crate) destination: usize,
    is_gap_acked: bool,
    /// Whether its bytes were added to `partial` of its destination.
    pub(crate) is_counted: bool,
    pub(crate) missing_reports: u32,
    mark: Mark,
    /// It was fast-retransmitted once, and may not be again. In CMT also a chunk that timed out.
    pub(crate) is_ineligible: bool,
    pub(crate) transmissions: u32,
    /// When it was first sent, in seconds.
    pub(crate) sent_s: f64,
    /// Whether it is to give an RTT sample.
    pub(crate) is_measuring: bool,
}

/// Whether a chunk waits for retransmission, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    None,
    Reported,
    TimedOut,
}

impl SendBuffer {
    pub(crate) fn push(&mut self, chunk: Outstanding) {
        debug_assert!(
            self.chunks.back().is_none_or(|last| last.data.tsn + 1 == chunk.data.tsn),
            "TSNs are given in order"
        );
        self.chunks.push_back(chunk);
    }

    /// Removes and returns the first chunk if its TSN is at most `tsn`.
    pub(crate) fn pop_up_to(&mut self, tsn: u32) -> Option<Outstanding> {
        let chunk = self.chunks.pop_front_if(|first| first.data.tsn <= tsn)?;
        self.marked -= usize::from(chunk.is_marked());
        self.gap_acked -= usize::from(chunk.is_gap_acked);
        Some(chunk)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn mark(&mut self, index: usize, mark: Mark) {
        let chunk = &mut self.chunks[index];
        self.marked -= usize::from(chunk.is_marked());
        chunk.mark = mark;
        self.marked += usize::from(chunk.is_marked());
    }

    /// Records whether the last SACK has a chunk in a gap block.
    pub(crate) fn set_gap_acked(&mut self, index: usize, is_gap_acked: bool) {
        let chunk = &mut self.chunks[index];
        self.gap_acked -= usize::from(chunk.is_gap_acked);
        chunk.is_gap_acked = is_gap_acked;
        self.gap_acked += usize::from(is_gap_acked);
    }

    pub(crate) fn len(&self) -> usize {
        self.chunks.len()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Outstanding> {
        self.chunks.iter()
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> &mut Outstanding {
        &mut self.chunks[index]
    }

    pub(crate) fn get(&self, index: usize) -> &Outstanding {
        &self.chunks[index]
    }

    /// The marked chunks.
    pub(crate) fn marked(&self) -> impl Iterator<Item = &Outstanding> {
        self.chunks.iter().filter(|chunk| chunk.is_marked()).take(self.marked)
    }

    pub(crate) fn is_any_marked(&self) -> bool {
        self.marked > 0
    }

    /// The number of chunks that the last SACK has in gap blocks.
    pub(crate) fn gap_acked(&self) -> usize {
        self.gap_acked
    }
}

impl Outstanding {
    /// A chunk that is sent for the first time.
    pub(crate) const fn new(data: Data, destination: usize, sent_s: f64, is_measuring: bool) -> Self {
        Self {
            data,
            destination,
            is_gap_acked: false,
            is_counted: false,
            missing_reports: 0,
            mark: Mark::None,
            is_ineligible: false,
            transmissions: 1,
            sent_s,
            is_measuring,
        }
    }

    /// Whether the last SACK has it in a gap block.
    pub(crate) const fn is_gap_acked(&self) -> bool {
        self.is_gap_acked
    }

    /// Whether it waits for retransmission, and why.
    pub(crate) const fn mark(&self) -> Mark {
        self.mark
    }

    pub(crate) fn is_marked(&self) -> bool {
        self.mark != Mark::None
    }

    pub(crate) fn length(&self) -> i32 {
        self.data.length as i32
    }
}
