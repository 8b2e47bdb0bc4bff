//! Rounds of about an RTT, counted by acknowledgements.

use anabranch_units::{Span, Time};

use crate::controller::{Limit, Round};

/// The rounds of one path.
#[derive(Clone, Debug)]
pub struct Rounds {
    count: u64,
    /// When the current round began.
    since: Time,
    /// The number of transmissions on the path when the round began. The round ends with the ACK of a later one.
    departures: u64,
    /// Segments acknowledged in it.
    acked: f64,
    rtt_min: Option<Span>,
    rtt_sum: Span,
    rtt_count: u64,
    /// Whether the window was full in this round, and in the one before.
    was_full: bool,
    was_full_before: bool,
}

impl Rounds {
    /// The first round begins at `now`.
    pub fn new(now: Time) -> Self {
        Self {
            count: 0,
            since: now,
            departures: 0,
            acked: 0.0,
            rtt_min: None,
            rtt_sum: Span::ZERO,
            rtt_count: 0,
            was_full: false,
            was_full_before: false,
        }
    }

    /// The congestion window, or the pacing rate derived from it, held a segment back.
    pub fn on_window_full(&mut self) {
        self.was_full = true;
    }

    /// What limited the sender in this round and the last one.
    pub fn limit(&self) -> Limit {
        if self.was_full || self.was_full_before { Limit::Window } else { Limit::Application }
    }

    /// `acked` segments were acknowledged, of which `serial` was sent last; `departures` is the number of transmissions so far.
    /// Returns the round that ends with this ACK.
    pub fn on_ack(&mut self, now: Time, acked: f64, rtt: Option<Span>, serial: u64, departures: u64) -> Option<Round> {
        self.acked += acked;
        if let Some(rtt) = rtt {
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |least| least.min(rtt)));
            self.rtt_sum = self.rtt_sum.saturating_add(rtt);
            self.rtt_count += 1;
        }
        if serial < self.departures {
            return None;
        }
        let round = Round {
            count: self.count,
            elapsed: now.since(self.since),
            acked: self.acked,
            rtt_min: self.rtt_min,
            rtt_mean: (self.rtt_count > 0).then(|| self.rtt_sum / self.rtt_count.max(1)),
        };
        let (count, was_full_before) = (self.count + 1, self.was_full);
        *self = Self { count, departures, was_full_before, ..Self::new(now) };
        Some(round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    /// Ten segments per round: 0 to 9 are sent first, then each ACK releases one more.
    #[test]
    fn a_round_ends_with_what_left_after_it_began() {
        let mut rounds = Rounds::new(at(0));
        let sample = Some(Span::from_millis(100));
        let first =
            rounds.on_ack(at(100), 1.0, sample, 0, 10).expect("the first ACK ends the round of the first flight");
        assert_eq!((first.count, first.elapsed), (0, Span::from_millis(100)));
        for serial in 1..10 {
            assert_eq!(rounds.on_ack(at(100 + serial), 1.0, sample, serial, 10 + serial), None);
        }
        let second = rounds.on_ack(at(200), 1.0, None, 10, 20).expect("number 10 left when the round began");
        assert_eq!((second.count, second.elapsed), (1, Span::from_millis(100)));
        assert!((second.acked - 10.0).abs() < 1e-9 && second.rtt_mean == sample && second.rtt_min == sample);
    }

    #[test]
    fn the_limit_is_remembered_for_a_round() {
        let mut rounds = Rounds::new(at(0));
        assert_eq!(rounds.limit(), Limit::Application);
        rounds.on_window_full();
        rounds.on_ack(at(1), 1.0, None, 0, 1);
        assert_eq!(rounds.limit(), Limit::Window);
        rounds.on_ack(at(2), 1.0, None, 1, 2);
        assert_eq!(rounds.limit(), Limit::Application);
    }
}
