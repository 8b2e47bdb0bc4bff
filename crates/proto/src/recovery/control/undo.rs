//! Second thoughts: was what seemed lost lost at all?
//!
//! ```text
//! timeout, while it is repaired:  spurious if an ACK comes for something that was not sent again, or for an original
//! any loss, and an RTO after it:  spurious if everything that was sent again came twice, or its original came
//! spurious:                       the controller takes its answer back; what still counts as lost is in flight again;
//!                                 after a timeout the RTO is no longer backed off, and holds for such an RTT
//! ```
//!
//! Citation: rfc-3708 (DSACK), rfc-3522 and rfc-4015 (timestamps, and the answer), rfc-5682 (F-RTO).
//!
//! Differs from them in:
//! * No new data is sent to provoke the answer (rfc-5682 sec. 2.1 step 2b): it comes by itself, as ACKs of what was late
//!   follow each other faster than an RTT.
//! * The window returns at once to what it was (rfc-9438 sec. 4.9), not by slow start (rfc-4015 sec. 3.5): what was late is in
//!   flight, so there is nothing to burst.

use anabranch_cc::{Departure, Signal};
use anabranch_units::Time;

use super::PathControl;
use crate::recovery::episode::Episode;
use crate::recovery::scoreboard::{Found, NewlyAcked, Scoreboard};

/// A loss that the controller has answered, and that may have been none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Suspicion {
    signal: Signal,
    /// When the first of what seemed lost had left.
    departed: Time,
    /// From when on nothing more is to be heard of it; `None` while it is being repaired.
    expiry: Option<Time>,
}

impl PathControl {
    /// A loss was reported to the controller. If it is all that is being repaired, everything that is sent again is for it.
    pub(super) fn suspect<T>(&mut self, board: &mut Scoreboard<T>, signal: Signal, found: &Found) {
        self.suspicion = None;
        if let Some(Departure { time, .. }) = found.departure.filter(|_| board.damaged(self.id) == found.count) {
            board.open_log(self.id);
            self.suspicion = Some(Suspicion { signal, departed: time, expiry: None });
        }
    }

    /// What the latest ACK says about the latest loss.
    pub(super) fn reconsider<T>(&mut self, now: Time, board: &mut Scoreboard<T>, newly_acked: &NewlyAcked) {
        let Some(suspicion) = &mut self.suspicion else { return };
        // What was sent again last is answered within a round trip.
        let timeout = self.rtt.timeout();
        if self.episode.is_open() && now >= *suspicion.expiry.get_or_insert(now.saturating_add(timeout)) {
            self.suspicion = None;
            return;
        }
        let suspicion = *suspicion;
        let retransmission_log = board.retransmission_log(self.id);
        let is_settled = retransmission_log.is_settled();
        let is_spurious = match self.episode {
            // [rfc-5682] sec. 3.1 step 3b. An ACK for what was sent again may have waited for just that, and covers what came
            // before the timeout, too: it says nothing.
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
        self.suspicion = None;
        if signal == Signal::Timeout {
            self.rtt.forgive();
        } else {
            // What was late had been overtaken.
            self.rack.on_reordering();
        }
        if !self.episode.is_open() {
            self.flight += board.restore(self.id);
            // A retransmission seemed to have arrived, and would make all that left before it look lost again.
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
