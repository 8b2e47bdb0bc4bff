//! What is being repaired on a path.
//!
//! ```text
//! Open ──loss──> Recovery ──all that was out is acknowledged──> Open
//!   └──timeout──> AfterTimeout ──likewise──> Open          (a timeout ends a recovery, too)
//! ```
//!
//! Losses in one window are one episode ([rfc-6675] sec. 5: RecoveryPoint): the controller hears of the first.

use anabranch_cc::{Departure, Phase};

use crate::recovery::scoreboard::Found;
use crate::seq::Offset;

/// What is being repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Episode {
    /// Nothing.
    #[default]
    Open,
    /// A loss that duplicate ACKs or time showed.
    Recovery {
        /// The end of what was out when it began.
        until: Offset,
        /// Whether it may still turn out to be another loss than it seemed.
        belief: Belief,
        /// The first departure of those lost since that were not out then: another episode, if they are still being repaired
        /// when this one ends.
        later: Option<Departure>,
    },
    /// A loss that the retransmission timer found.
    AfterTimeout {
        /// The end of what was out then.
        until: Offset,
    },
}

/// What is thought of a loss, and what the controller did about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Belief {
    /// The controller has answered it: there is nothing more to say.
    Answered,
    /// It seemed random, and the controller left its window alone. If it turns out to be congestion, it hears so.
    Spared,
}

impl Episode {
    pub(crate) fn phase(&self) -> Phase {
        match self {
            Self::Recovery { .. } => Phase::Recovery,
            Self::Open | Self::AfterTimeout { .. } => Phase::Open,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        *self == Self::Open
    }

    /// Whether it ends when everything below `acked` has been acknowledged.
    pub(crate) fn is_over(&self, acked: Offset) -> bool {
        match *self {
            Self::Open => false,
            Self::Recovery { until, .. } | Self::AfterTimeout { until } => acked >= until,
        }
    }

    /// More is lost while this is being repaired.
    pub(crate) fn on_more(&mut self, found: &Found) {
        if let Self::Recovery { until, later, .. } = self
            && found.end > *until
        {
            *later = later.or(found.departure);
        }
    }
}
