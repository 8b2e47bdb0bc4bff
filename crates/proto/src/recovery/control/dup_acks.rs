//! Loss detection by counting, for those who want it plain, and for peers without SACK.
//!
//! ```text
//! with SACK:     lost: left before three others that have arrived
//! without it:    the third duplicate ACK: the first segment is lost; each ACK within the recovery that moves: the next one
//!                a duplicate stands for a segment that has arrived, and lets another one leave; before the third, two at most
//! ```
//!
//! Citation: rfc-6675 with SACK, rfc-6582 without; rfc-3042 for the first two duplicates. With SACK that is nothing
//! special: what was reported is not in flight any more, and for the controller it is acknowledged.
//!
//! Differs from rfc-6675 in: it counts segments, not bytes, as boundaries are known; and by departure, not by place, so that
//! a retransmission that is lost is found as well, where the RFC waits for the timer.
//! Differs from rfc-6582 in: every partial ACK starts the timer anew, not the first only.

use super::PathControl;
use crate::config::LossDetection;
use crate::recovery::episode::Episode;
use crate::recovery::scoreboard::{Found, Scoreboard};
use crate::seq::Offset;

/// How losses are found on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detection {
    /// By time, with a tail loss probe.
    Rack,
    /// By what overtakes them.
    Overtaken,
    /// By ACKs that say nothing new: the peer has no SACK.
    NewReno,
}

/// Duplicate ACKs of a peer without SACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Duplicates {
    /// How many stand for a segment that has arrived.
    count: u64,
    /// Where the acknowledgement number stood.
    edge: Offset,
    /// The end of what was out at the latest loss ([rfc-6582] sec. 3.2: recover).
    recover: Offset,
}

impl Duplicates {
    /// None, after a SYN that is acknowledged.
    pub(super) fn new() -> Self {
        Self { count: 0, edge: 1, recover: 0 }
    }
}

impl Detection {
    /// What is wanted, as far as the peer can help.
    pub(crate) fn of(wanted: LossDetection, has_sack: bool) -> Self {
        match wanted {
            _ if !has_sack => Self::NewReno,
            LossDetection::Rack => Self::Rack,
            LossDetection::DupAcks => Self::Overtaken,
        }
    }
}

impl PathControl {
    /// Settles how losses are found.
    pub(crate) fn detect_by(&mut self, detection: Detection) {
        self.detection = detection;
    }

    /// An ACK came that says nothing, while something is out ([rfc-5681] sec. 2).
    pub(crate) fn on_duplicate_ack<T>(&mut self, board: &Scoreboard<T>) {
        let is_counting = match self.episode {
            Episode::Open | Episode::Recovery { .. } => self.detection == Detection::NewReno,
            Episode::AfterTimeout { .. } => false,
        };
        if is_counting && self.duplicates.count < board.len() as u64 {
            self.duplicates.count += 1;
        }
    }

    /// What an ACK of a peer without SACK says is lost.
    pub(super) fn count_duplicates<T>(&mut self, board: &mut Scoreboard<T>) -> Found {
        let acked = board.acked();
        let moved = acked - std::mem::replace(&mut self.duplicates.edge, acked);
        let mut found = Found::default();
        match self.episode {
            // [rfc-6582] sec. 3.2 step 2, with its condition against a second recovery for one window.
            Episode::Open if moved == 0 => {
                if self.duplicates.count == THRESHOLD && acked > self.duplicates.recover {
                    board.lose_first(self.id, &mut found);
                }
            }
            // Step 3: a partial ACK. Of what it covers the first had been lost, and the others had come as duplicates.
            Episode::Recovery { until, .. } if acked < until => {
                self.duplicates.recover = until;
                if moved > 0 {
                    let others = (moved / self.mss).saturating_sub(1);
                    self.duplicates.count = self.duplicates.count.saturating_sub(others);
                    board.lose_first(self.id, &mut found);
                    self.is_urgent = true;
                }
            }
            Episode::Recovery { until, .. } | Episode::AfterTimeout { until } => {
                (self.duplicates.recover, self.duplicates.count) = (until, 0);
            }
            Episode::Open => self.duplicates.count = 0,
        }
        found
    }

    /// Bytes in flight that duplicate ACKs say have arrived; the scoreboard does not know which.
    pub(super) fn presumed(&self) -> u64 {
        if self.duplicates.count == 0 {
            return 0;
        }
        let count = match self.episode {
            // [rfc-3042] sec. 2: two segments at most.
            Episode::Open => self.duplicates.count.min(THRESHOLD - 1),
            Episode::Recovery { .. } | Episode::AfterTimeout { .. } => self.duplicates.count,
        };
        (count * self.mss).min(self.flight.saturating_sub(self.mss))
    }
}

/// [rfc-5681] sec. 3.2: three duplicates.
const THRESHOLD: u64 = crate::recovery::scoreboard::DUPLICATES as u64;
