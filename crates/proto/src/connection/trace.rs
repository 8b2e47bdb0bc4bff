//! What a log has to know of a connection beyond what its paths report.

use super::Connection;
use crate::path::PathId;
use crate::payload::Payload;
use crate::seq::{Offset, SeqNumber};

impl<P: Payload> Connection<P> {
    /// From now on losses are kept until they are taken.
    pub(crate) fn keep_losses(&mut self) {
        self.sender.board.keep_losses();
    }

    /// No more.
    pub(crate) fn forget_losses(&mut self) {
        self.sender.board.forget_losses();
    }

    /// Segments that were taken for lost since this was asked last: on which path, and where they begin.
    pub(crate) fn take_losses(&mut self) -> Vec<(PathId, Offset)> {
        self.sender.board.take_losses()
    }

    /// The place of a number in what this end sends, and in what the peer does.
    pub(crate) fn offset_sent(&self, seq: SeqNumber) -> Offset {
        self.sender.place_sent(seq)
    }

    pub(crate) fn offset_received(&self, seq: SeqNumber) -> Offset {
        self.receiver.place(seq).unwrap_or(0)
    }

    /// What a window counts in: bytes of sequence space.
    pub(crate) fn segment(&self) -> f64 {
        self.peer.segment.into()
    }
}
