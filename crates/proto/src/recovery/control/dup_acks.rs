//! Loss detection by duplicate ACKs: optional with SACK, the only method for peers without SACK.
//!
//! ```text
//! with SACK:     lost: three segments that were sent later have arrived
//! without it:    the third duplicate ACK: the first segment is lost; each partial ACK in the recovery: the next one
//!                a duplicate stands for an arrived segment and allows a new one; before the third, two at most
//! ```
//! Citation: rfc-6675 with SACK, rfc-6582 without; rfc-3042 for the first two duplicates. With SACK, limited transmit needs no
//! rule of its own: a reported segment is not in flight, and the controller sees it as acknowledged.
//!
//! Differs from rfc-6675 in: it counts segments, not bytes, since boundaries are known. It counts in the order of sending, not of
//! offsets, so it also detects a lost retransmission (the RFC waits for the timer). Differs from rfc-6582 in: every partial ACK
//! restarts the timer, not only the first.

use super::PathControl;
use crate::recovery::detection::Detection;
use crate::recovery::episode::Episode;
use crate::recovery::scoreboard::{Found, Scoreboard};
use crate::seq::Offset;

/// Duplicate ACKs of a peer without SACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Duplicates {
    /// The number of duplicates, each of which stands for an arrived segment.
    count: u64,
    /// The last acknowledgement number.
    edge: Offset,
    /// The end of the flight at the latest loss ([rfc-6582] sec. 3.2: recover).
    recover: Offset,
}

impl Duplicates {
    /// The state after the SYN was acknowledged: no duplicates.
    pub(super) fn new() -> Self {
        Self { count: 0, edge: 1, recover: 0 }
    }
}

impl PathControl {
    /// Sets the loss detection.
    pub(crate) fn detect_by(&mut self, detection: Detection) {
        self.detection = detection;
    }

    /// A duplicate ACK arrived while data was in flight ([rfc-5681] sec. 2).
    pub(crate) fn on_duplicate_ack<T>(&mut self, board: &Scoreboard<T>) {
        let is_counting = match self.episode {
            Episode::Open | Episode::Recovery { .. } => self.detection == Detection::NewReno,
            Episode::AfterTimeout { .. } => false,
        };
        if is_counting && self.duplicates.count < board.len() as u64 {
            self.duplicates.count += 1;
        }
    }

    /// The losses that an ACK of a peer without SACK implies.
    pub(super) fn count_duplicates<T>(&mut self, board: &mut Scoreboard<T>) -> Found {
        let acked = board.acked();
        let moved = acked - std::mem::replace(&mut self.duplicates.edge, acked);
        let mut found = Found::default();
        match self.episode {
            // [rfc-6582] sec. 3.2 step 2, with its condition against two recoveries for one window.
            Episode::Open if moved == 0 => {
                if self.duplicates.count == THRESHOLD && acked > self.duplicates.recover {
                    board.lose_first(self.id, &mut found);
                }
            }
            // Step 3: a partial ACK. The first segment that it covers had been lost; the others had arrived and were counted as
            // duplicates.
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

    /// Bytes in flight that duplicate ACKs count as arrived. The scoreboard does not know which ones.
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
