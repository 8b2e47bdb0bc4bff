//! Undo of spurious losses: detects that segments declared lost have arrived.
//!
//! ```text
//! timeout, during its recovery:   spurious if an ACK covers a segment that was not retransmitted, or an original
//! any loss, up to an RTO after:   spurious if every retransmission is reported as a duplicate, or the originals arrived
//! spurious:                       the controller undoes its reduction; segments still counted as lost are in flight again;
//!                                 after a timeout the backoff of the RTO ends, and the RTO is raised to the late segment's RTT
//! ```
//!
//! Citation: rfc-3708 (DSACK), rfc-3522 and rfc-4015 (timestamps, and the response), rfc-5682 (F-RTO).
//!
//! Differs from them in:
//! * No new data is sent to provoke an ACK (rfc-5682 sec. 2.1 step 2b): ACKs of late segments follow each other within less than
//!   an RTT.
//! * The window returns at once to its previous value (rfc-9438 sec. 4.9), not by slow start (rfc-4015 sec. 3.5): the late
//!   segments are in flight, so there is no burst.

use anabranch_cc::{Departure, Signal};
use anabranch_units::Time;

use super::PathControl;
use super::black_hole::Blame;
use crate::recovery::episode::Episode;
use crate::recovery::scoreboard::{Found, NewlyAcked, Scoreboard};

/// A loss to which the controller has responded, and which may prove spurious.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Suspicion {
    signal: Signal,
    /// When the first of the segments was sent.
    departed: Time,
    /// When the suspicion expires; `None` during the recovery.
    expiry: Option<Time>,
}

impl PathControl {
    /// A loss was reported to the controller. If it is the only one in the recovery, all retransmissions belong to it.
    pub(super) fn suspect<T>(&mut self, board: &mut Scoreboard<T>, signal: Signal, found: &Found) {
        self.suspicion = None;
        let is_alone = !found.is_doubled && board.damaged(self.id) == found.count;
        if let Some(Departure { time, .. }) = found.departure.filter(|_| is_alone) {
            board.open_log(self.id);
            self.suspicion = Some(Suspicion { signal, departed: time, expiry: None });
        }
    }

    /// Whether the latest ACK proves the latest loss spurious.
    pub(super) fn reconsider<T>(&mut self, now: Time, board: &mut Scoreboard<T>, newly_acked: &NewlyAcked) {
        let Some(suspicion) = &mut self.suspicion else { return };
        // The last retransmission is acknowledged within a round trip.
        let timeout = self.rtt.timeout();
        if self.episode.is_open() && now >= *suspicion.expiry.get_or_insert(now.saturating_add(timeout)) {
            self.suspicion = None;
            return;
        }
        let suspicion = *suspicion;
        let retransmission_log = board.retransmission_log(self.id);
        let is_settled = retransmission_log.is_settled();
        let is_spurious = match self.episode {
            // [rfc-5682] sec. 3.1 step 3b. The ACK of a retransmission may also cover segments sent before the timeout, so it
            // proves nothing.
            Episode::AfterTimeout { .. } => {
                let is_late = newly_acked.is_original || (newly_acked.is_late && !newly_acked.is_ambiguous);
                if is_late {
                    self.rtt.on_late(now.since(suspicion.departed));
                }
                is_late || (is_settled && retransmission_log.has_resent())
            }
            Episode::Open | Episode::Recovery { .. } => is_settled && board.damaged(self.id) == 0,
        };
        if is_spurious {
            self.take_back(now, board, suspicion.signal);
        }
    }

    fn take_back<T>(&mut self, now: Time, board: &mut Scoreboard<T>, signal: Signal) {
        (self.suspicion, self.blame) = (None, Blame::Unblamed);
        if signal == Signal::Timeout {
            self.rtt.forgive();
        } else {
            // The late segment had been overtaken.
            self.rack.on_reordering();
        }
        if !self.episode.is_open() {
            self.flight += board.restore(self.id);
            // A retransmission seemed to have arrived, so RACK would again declare everything before it lost.
            self.rack.forget();
            self.episode = Episode::Open;
        }
        (self.is_urgent, self.is_silent) = (false, false);
        self.check(board);
        self.tally.undone += 1;
        let view = self.view(now);
        self.law.tell(|law| law.on_undo(&view));
    }
}
