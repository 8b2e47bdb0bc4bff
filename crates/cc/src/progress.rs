//! The progress of a path that its controller is told, from which delivery-rate samples are made.
//!
//! Each sent segment stores the account at its sending. A sample is what has been delivered since, divided by the longer one of
//! two times: that in which it was acknowledged, and that in which it was sent.
//!
//! Citation: draft-ietf-ccwg-bbr sec. 4.1.
//!
//! Differs from the draft in:
//! * Data held back by the peer's window or by this host's memory limit counts as data that the application does not have.

use anabranch_units::Time;

use crate::controller::{Progress, Supply};

/// The account of one path, in segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    progress: Progress,
    /// The sender is application-limited until more than this has been delivered; zero if it never was.
    short_until: f64,
}

impl Account {
    /// The progress so far.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Whether a segment sent now counts as application-limited.
    pub fn supply(&self) -> Supply {
        if self.progress.delivered < self.short_until { Supply::Short } else { Supply::Enough }
    }

    /// A flight begins: nothing else is in flight.
    pub fn on_first(&mut self, now: Time) {
        (self.progress.delivered_at, self.progress.departed) = (now, now);
    }

    /// `segments` segments were delivered according to an acknowledgement that arrived at `arrival`. The latest of them was sent
    /// at `departed`.
    pub fn on_delivered(&mut self, segments: f64, arrival: Time, departed: Time) {
        let progress = &mut self.progress;
        progress.delivered += segments;
        progress.delivered_at = progress.delivered_at.max(arrival);
        progress.departed = progress.departed.max(departed);
    }

    /// `segments` segments were detected as lost.
    pub fn on_lost(&mut self, segments: f64) {
        self.progress.lost += segments;
    }

    /// There is nothing to send although there is room, while `flight` segments are in flight.
    pub fn on_short(&mut self, flight: f64) {
        self.short_until = self.progress.delivered + flight + ABOVE;
    }
}

/// The draft ends the application-limited phase when more has been delivered than was in flight. The counts are not always whole
/// segments.
const ABOVE: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use anabranch_units::Span;

    use super::*;
    use crate::testing::at;

    /// Four segments are sent at once, and their ACKs arrive 1 ms apart: the sample is a segment per millisecond, although
    /// sending took no time.
    #[test]
    fn burst_is_sampled_at_rate_of_its_acks() {
        let mut account = Account::default();
        account.on_first(at(100));
        let then = account.progress();
        for ack in 1..=4 {
            account.on_delivered(1.0, at(199 + ack), at(100));
        }
        let now = account.progress();
        assert_eq!((now.delivered - then.delivered) as u32, 4);
        assert_eq!(now.delivered_at.since(then.delivered_at), Span::from_millis(103));
        // From the second flight on, the time is measured from ACK to ACK.
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
