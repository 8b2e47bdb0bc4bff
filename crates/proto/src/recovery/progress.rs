//! How far a path has come, as its controller is told: what delivery-rate samples are made of.
//!
//! Each departure remembers the account as it was then. What has been delivered since, over the longer of the time in which it was acknowledged and
//! the time in which it left, is a sample.
//!
//! Citation: draft-ietf-ccwg-bbr sec. 4.1.
//!
//! Differs from the draft in:
//! * What the peer's window or this host's memory holds back counts as what the application does not have.

use anabranch_cc::{Progress, Supply};
use anabranch_units::Time;

/// The account of one path, in segments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    progress: Progress,
    /// The supply is short until more than this has been delivered; zero if it never was.
    short_until: f64,
}

impl Account {
    /// The same, for who only looks.
    #[inline]
    pub(crate) fn progress(&self) -> Progress {
        self.progress
    }

    /// Whether what leaves now leaves a path that is given enough.
    #[inline]
    pub(crate) fn supply(&self) -> Supply {
        if self.progress.delivered < self.short_until { Supply::Short } else { Supply::Enough }
    }

    /// A flight begins: nothing is under way.
    #[inline]
    pub(crate) fn on_first(&mut self, now: Time) {
        (self.progress.delivered_at, self.progress.departed) = (now, now);
    }

    /// So many segments were delivered, as an acknowledgement says that arrived then; the latest of them had left at `departed`.
    #[inline]
    pub(crate) fn on_delivered(&mut self, segments: f64, arrival: Time, departed: Time) {
        let progress = &mut self.progress;
        progress.delivered += segments;
        progress.delivered_at = progress.delivered_at.max(arrival);
        progress.departed = progress.departed.max(departed);
    }

    /// So many were found to be lost.
    #[inline]
    pub(crate) fn on_lost(&mut self, segments: f64) {
        self.progress.lost += segments;
    }

    /// There is nothing to send, and room for it, while `flight` segments are under way.
    #[inline]
    pub(crate) fn on_short(&mut self, flight: f64) {
        self.short_until = self.progress.delivered + flight + ABOVE;
    }
}

/// The draft clears its mark when more has been delivered than was under way; segments are not always whole.
const ABOVE: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use anabranch_units::Span;

    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// Four leave at once, and an ACK for each comes 1 ms after the one before: a segment a millisecond, though they left in no time.
    #[test]
    fn a_flight_that_leaves_at_once_is_sampled_at_the_rate_of_its_acknowledgements() {
        let mut account = Account::default();
        account.on_first(at(100));
        let then = account.progress();
        for ack in 1..=4 {
            account.on_delivered(1.0, at(199 + ack), at(100));
        }
        let now = account.progress();
        assert_eq!((now.delivered - then.delivered) as u32, 4);
        assert_eq!(now.delivered_at.since(then.delivered_at), Span::from_millis(103));
        // From the second flight on the clock runs from ACK to ACK.
        account.on_delivered(1.0, at(204), at(203));
        assert_eq!(account.progress().delivered_at.since(now.delivered_at), Span::from_millis(1));
    }

    #[test]
    fn a_short_supply_is_over_when_what_was_under_way_has_come() {
        let mut account = Account::default();
        assert_eq!(account.supply(), Supply::Enough);
        account.on_short(2.0);
        assert_eq!(account.supply(), Supply::Short);
        account.on_delivered(2.0, at(1), at(0));
        assert_eq!(account.supply(), Supply::Short, "it is over with more than that");
        account.on_delivered(0.5, at(1), at(0));
        assert_eq!(account.supply(), Supply::Enough);
    }
}
