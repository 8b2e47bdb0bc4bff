//! What was lost, for a log that wants to know.

use super::Scoreboard;
use crate::path::PathId;
use crate::seq::Offset;

/// Losses that nobody has asked for yet; none are kept unless somebody will.
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
    /// From now on what is lost is kept until it is taken.
    pub(crate) fn keep_losses(&mut self) {
        self.losses_kept.0 = Some(vec![]);
    }

    /// No more.
    pub(crate) fn forget_losses(&mut self) {
        self.losses_kept.0 = None;
    }

    /// What was lost since this was asked last: where it left, and where it begins.
    pub(crate) fn take_losses(&mut self) -> Vec<(PathId, Offset)> {
        self.losses_kept.0.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// They are taken after each input. One that finds more lost leaves the rest untold.
const LOSSES_MAX: usize = 1 << 13;
