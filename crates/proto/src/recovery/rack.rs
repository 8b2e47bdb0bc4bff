//! RACK: a segment is lost if one that was sent later has arrived, and the reordering window has passed.
//!
//! ```text
//! on delivery:   the segment sent last among those that arrived, and its RTT
//! lost:          sent before that one, and now ≥ its sending time + RTT + reo_wnd
//! reo_wnd:       0 in recovery, or with three segments above a hole, as long as no reordering was seen;
//!                else rtt_min/4, once more for each round with a DSACK, at most SRTT; back to one quarter after 16 recoveries
//! ```
//!
//! Citation: rfc-8985 sec. 6. Differs from it in: the serial number of a transmission replaces the comparison of equal times and
//! sequence numbers; the timer waits for the first segment that may be lost, not for the last; a DSACK also counts as reordering,
//! because the original was late.

use anabranch_units::{Span, Time};

use crate::recovery::scoreboard::{DUPLICATES, Departed};

/// Loss detection on one path.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// The latest transmission that arrived (its serial number), and its RTT.
    newest: Option<(u64, Span)>,
    /// Whether the network reorders.
    has_reordered: bool,
    /// The factor of the reordering window: quarters of the minimum RTT, at least one.
    quarters: u32,
    /// Recoveries until the factor returns to one.
    recoveries_left: u32,
    /// The number of transmissions when a DSACK last counted: one counts per round.
    widened_at: u64,
}

/// The state of the path that RACK uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    pub(crate) rtt_min: Option<Span>,
    pub(crate) rtt_smoothed: Option<Span>,
    pub(crate) is_repairing: bool,
    /// Segments delivered above a hole.
    pub(crate) delivered: usize,
}

/// What is lost: transmissions before `serial` that were sent at `time` or earlier; later ones are lost `rtt_plus_reo_wnd` after
/// they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) serial: u64,
    pub(crate) rtt_plus_reo_wnd: Span,
}

impl Rack {
    pub(crate) fn new() -> Self {
        Self { newest: None, has_reordered: false, quarters: 1, recoveries_left: 0, widened_at: 0 }
    }

    /// Segments arrived; `newest` was sent last among them.
    pub(crate) fn on_delivered(&mut self, now: Time, newest: Departed) {
        // [rfc-8985] sec. 6.2 step 2.
        if self.newest.is_none_or(|(serial, _)| serial <= newest.serial) {
            self.newest = Some((newest.serial, now.since(newest.time)));
        }
    }

    /// As [`Self::on_delivered`], by an acknowledgement on another path. It gives no RTT, so the last one is kept.
    pub(crate) fn on_delivered_elsewhere(&mut self, newest: Departed) {
        if let Some((serial, _)) = &mut self.newest {
            *serial = newest.serial.max(*serial);
        }
    }

    /// A segment arrived after one that was sent later.
    pub(crate) fn on_reordering(&mut self) {
        self.has_reordered = true;
    }

    /// A DSACK arrived: a retransmission was spurious. `departures` counts transmissions so far.
    pub(crate) fn on_duplicate(&mut self, departures: u64) {
        self.has_reordered = true;
        // [rfc-8985] sec. 6.2 step 4: once per round trip.
        if self.newest.is_some_and(|(serial, _)| serial >= self.widened_at) {
            self.widened_at = departures;
            self.quarters = (self.quarters + 1).min(QUARTERS_MAX);
            self.recoveries_left = RECOVERIES;
        }
    }

    /// Forgets the latest arrival.
    pub(crate) fn forget(&mut self) {
        self.newest = None;
    }

    /// A recovery is over.
    pub(crate) fn on_recovered(&mut self) {
        self.recoveries_left = self.recoveries_left.saturating_sub(1);
        if self.recoveries_left == 0 {
            self.quarters = 1;
        }
    }

    /// The latest transmission that arrived. Later ones are not lost.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.newest.map(|(serial, _)| serial)
    }

    /// What is lost; `None` before the first arrival.
    pub(crate) fn verdict(&self, conditions: &Conditions) -> Option<Verdict> {
        let (serial, rtt) = self.newest?;
        Some(Verdict { serial, rtt_plus_reo_wnd: rtt.saturating_add(self.reordering_window(conditions)) })
    }

    /// [rfc-8985] sec. 6.2 step 4.
    fn reordering_window(&self, conditions: &Conditions) -> Span {
        let is_clear = conditions.is_repairing || conditions.delivered >= DUPLICATES;
        if !self.has_reordered && is_clear {
            return Span::ZERO;
        }
        let quarters = conditions.rtt_min.unwrap_or(Span::ZERO).saturating_mul(u64::from(self.quarters)) / 4;
        quarters.min(conditions.rtt_smoothed.unwrap_or(Span::MAX))
    }
}

/// [rfc-8985] sec. 6.2 step 4: a wider window lasts for 16 recoveries.
const RECOVERIES: u32 = 16;

/// The window never exceeds SRTT, which is rarely more than this many quarters of the minimum RTT.
const QUARTERS_MAX: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ms;

    fn rack() -> Rack {
        let mut rack = Rack::new();
        rack.on_delivered(Time::ZERO + ms(100), Departed { serial: 5, time: Time::ZERO });
        rack
    }

    fn rtt_plus_reo_wnd(rack: &Rack, is_repairing: bool, delivered: usize) -> Span {
        let conditions = Conditions { rtt_min: Some(ms(80)), rtt_smoothed: Some(ms(100)), is_repairing, delivered };
        rack.verdict(&conditions).expect("something has arrived").rtt_plus_reo_wnd
    }

    #[test]
    fn a_quarter_of_the_least_rtt_is_reordering() {
        assert_eq!(rtt_plus_reo_wnd(&rack(), false, 2), ms(120));
    }

    #[test]
    fn three_segments_above_a_hole_need_no_patience() {
        assert_eq!(rtt_plus_reo_wnd(&rack(), false, 3), ms(100));
        assert_eq!(rtt_plus_reo_wnd(&rack(), true, 1), ms(100));
    }

    #[test]
    fn a_network_that_reorders_is_given_time() {
        let mut rack = rack();
        rack.on_reordering();
        assert_eq!(rtt_plus_reo_wnd(&rack, true, 9), ms(120));
    }

    #[test]
    fn duplicates_widen_window_per_round_for_16_recoveries() {
        let mut rack = rack();
        rack.on_duplicate(20);
        rack.on_duplicate(20);
        assert_eq!(rtt_plus_reo_wnd(&rack, false, 0), ms(140));
        (0..15).for_each(|_| rack.on_recovered());
        assert_eq!(rtt_plus_reo_wnd(&rack, false, 0), ms(140));
        rack.on_recovered();
        assert_eq!(rtt_plus_reo_wnd(&rack, false, 0), ms(120));
    }
}
