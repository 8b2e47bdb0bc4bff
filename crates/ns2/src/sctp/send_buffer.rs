//! The sent chunks that are not cumulatively acknowledged, ordered by TSN without holes.

use std::collections::VecDeque;

use super::packet::Data;

#[derive(Clone, Debug, Default)]
pub(crate) struct SendBuffer {
    /// The chunks. Their number is bounded by the windows and the peer's receive buffer.
    chunks: VecDeque<Outstanding>,
}

/// A chunk that was sent.
#[derive(Clone, Debug)]
pub(crate) struct Outstanding {
    pub(crate) data: Data,
    /// The destination of the last transmission.
    pub(crate) destination: usize,
    /// Whether the last SACK has it in a gap block.
    pub(crate) is_gap_acked: bool,
    /// Whether its bytes were added to `partial` of its destination.
    pub(crate) is_counted: bool,
    pub(crate) missing_reports: u32,
    pub(crate) mark: Mark,
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
        self.chunks.pop_front_if(|first| first.data.tsn <= tsn)
    }

    pub(crate) fn clear(&mut self) {
        self.chunks.clear();
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

    pub(crate) fn is_any_marked(&self) -> bool {
        self.chunks.iter().any(Outstanding::is_marked)
    }
}

impl Outstanding {
    pub(crate) fn is_marked(&self) -> bool {
        self.mark != Mark::None
    }

    pub(crate) fn length(&self) -> i32 {
        self.data.length as i32
    }
}
