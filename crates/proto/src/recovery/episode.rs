//! Recovery episodes of a path.
//!
//! ```text
//! Open ──loss──> Recovery ──everything in flight at the loss is acknowledged──> Open
//!   └──timeout──> AfterTimeout ──likewise──> Open          (a timeout ends a recovery, too)
//! ```
//!
//! The losses in one window are one episode ([rfc-6675] sec. 5: RecoveryPoint). The controller is told only of the first loss.

use anabranch_cc::{Departure, Phase};

use crate::recovery::prr::Prr;
use crate::recovery::scoreboard::Found;
use crate::seq::Offset;

/// The current recovery of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Episode {
    /// No recovery.
    #[default]
    Open,
    /// Recovery from a loss detected by duplicate ACKs or by time.
    Recovery {
        /// The end of the sent data at the start of the recovery.
        until: Offset,
        /// Whether the classification of the loss may still change.
        belief: Belief,
        /// The first sending time of later losses, that is, of segments sent after the start. They are another episode if they
        /// are still in recovery when this one ends.
        later: Option<Departure>,
        /// Proportional rate reduction, if the law uses it and has responded.
        prr: Option<Prr>,
    },
    /// Recovery from a loss detected by the retransmission timer.
    AfterTimeout {
        /// The end of the sent data at the timeout.
        until: Offset,
    },
}

/// The classification of a loss, and the controller's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Belief {
    /// The controller has responded; the classification is final.
    Answered,
    /// Classified as random, and the controller left its window unchanged. If it proves to be congestion, the controller is
    /// informed.
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
        matches!(self, Self::Open)
    }

    /// Whether the episode ends when everything below `acked` has been acknowledged.
    pub(crate) fn is_over(&self, acked: Offset) -> bool {
        match *self {
            Self::Open => false,
            Self::Recovery { until, .. } | Self::AfterTimeout { until } => acked >= until,
        }
    }

    /// The rate reduction, if it decides what may be sent.
    pub(crate) fn prr(&self) -> Option<&Prr> {
        match self {
            Self::Recovery { prr, .. } => prr.as_ref(),
            Self::Open | Self::AfterTimeout { .. } => None,
        }
    }

    /// As [`Self::prr`].
    pub(crate) fn prr_mut(&mut self) -> Option<&mut Prr> {
        match self {
            Self::Recovery { prr, .. } => prr.as_mut(),
            Self::Open | Self::AfterTimeout { .. } => None,
        }
    }

    /// More losses were detected during the episode.
    pub(crate) fn on_more(&mut self, found: &Found) {
        if let Self::Recovery { until, later, .. } = self
            && found.end > *until
        {
            *later = later.or(found.departure);
        }
    }
}
