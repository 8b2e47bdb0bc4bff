//! Records losses for a trace.

use super::Scoreboard;
use crate::path::PathId;
use crate::seq::Offset;

/// Losses that have not been taken; `None` unless they are recorded.
#[derive(Debug, Default)]
pub(super) struct LossesKept(Option<Vec<(PathId, Offset)>>);

impl LossesKept {
    pub(super) fn push(&mut self, path: PathId, offset: Offset) {
        if let Some(losses) = self.0.as_mut().filter(|losses| losses.len() < LOSSES_MAX) {
            losses.push((path, offset));
        }
    }
}

impl<T> Scoreboard<T> {
    /// Records losses from now on, until they are taken.
    pub(crate) fn keep_losses(&mut self) {
        self.losses_kept.0 = Some(vec![]);
    }

    /// Stops recording.
    pub(crate) fn forget_losses(&mut self) {
        self.losses_kept.0 = None;
    }

    /// Takes the losses since the last call: the path and the offset of each.
    pub(crate) fn take_losses(&mut self) -> Vec<(PathId, Offset)> {
        self.losses_kept.0.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// A trace takes them after each input. Losses beyond this number in one input are dropped.
const LOSSES_MAX: usize = 1 << 13;
