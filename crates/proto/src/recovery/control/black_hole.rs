//! Undo of a loss that no congestion caused: the path loses what is ECN-capable.
//!
//! ```text
//!            loss of segments sent with the codepoint             ECN turns out to be lost
//! Unblamed ─────────────────────────────────────────> Suspected ───────────────────────────> Proven ──recovery is over──> undo
//!    ^                                                    │
//!    └───────another loss, or the law starts again────────┘
//! ```
//!
//! [rfc-9000] sec. 13.4.2 leaves open what becomes of the window. Here the controller undoes its reduction, as
//! for a spurious loss: segments without the codepoint arrive all the time, so there was room for those with it.

use anabranch_units::Time;

use super::PathControl;

/// Whether the codepoint is the cause of the latest loss that the controller was told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Blame {
    #[default]
    Unblamed,
    /// What was lost had left with the codepoint before that came into doubt.
    Suspected,
    /// The path loses the codepoint; the recovery goes on.
    Proven,
}

impl PathControl {
    /// The controller is told of a loss of what left at `departure`.
    pub(super) fn blame(&mut self, departure: Time) {
        self.blame = if self.ecn.is_blamed(departure) { Blame::Suspected } else { Blame::Unblamed };
    }

    /// Handles the timeout of a probe with the codepoint.
    pub(crate) fn handle_ecn_timeout(&mut self, now: Time) {
        if self.ecn.handle_timeout(now) && self.blame == Blame::Suspected {
            self.blame = Blame::Proven;
            self.acquit(now);
        }
    }

    /// Undoes the response to the loss if its cause is proven, and its recovery is over.
    pub(super) fn acquit(&mut self, now: Time) {
        if self.blame != Blame::Proven || !self.episode.is_open() {
            return;
        }
        (self.blame, self.suspicion) = (Blame::Unblamed, None);
        self.tally.undone += 1;
        let view = self.view(now);
        self.law.tell(|law| law.on_undo(&view));
    }
}
