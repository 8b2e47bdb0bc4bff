//! The state of a connection that a trace needs in addition to the path reports.

use super::Connection;
use crate::path::PathId;
use crate::payload::Payload;
use crate::seq::{Offset, SeqNumber};

impl<P: Payload> Connection<P> {
    /// Starts to record losses; they accumulate until they are taken.
    pub(crate) fn keep_losses(&mut self) {
        self.sender.board.keep_losses();
    }

    /// Stops recording losses.
    pub(crate) fn forget_losses(&mut self) {
        self.sender.board.forget_losses();
    }

    /// Losses since the last call: the path, and the offset where the segment begins.
    pub(crate) fn take_losses(&mut self) -> Vec<(PathId, Offset)> {
        self.sender.board.take_losses()
    }

    /// Offsets of sequence numbers: of one that this end sends, and of one that the peer sends.
    pub(crate) fn offset_sent(&self, seq: SeqNumber) -> Offset {
        self.sender.place_sent(seq)
    }

    pub(crate) fn offset_received(&self, seq: SeqNumber) -> Offset {
        self.receiver.place(seq).unwrap_or(0)
    }

    /// The unit of windows in bytes of sequence space.
    pub(crate) fn segment(&self) -> f64 {
        self.peer.segment.into()
    }
}
