use super::*;
use crate::law::fast::estimator::{Estimator, Weights};
use crate::law::fast::window::increases_multiplicatively;
use crate::testing::assert_near;

const GOAL: Goal = Goal { alpha: 8.0, beta: 2.0, gamma: 0.5 };

/// The first round trip begins with the SYN, so at the first ACK of data it is over. Binary fractions are exact: one RTT is not yet more
/// than one RTT.
#[test]
fn the_second_round_trip_begins_with_the_first_data() {
    let mut round = Round::new(1.0);
    round.on_ack(1.25, 0.25);
    assert!(round.is_open());
    round.on_ack(1.5, 0.25);
    assert!(!round.is_open());
    round.on_ack(1.75, 0.25);
    assert!(!round.is_open());
    round.on_ack(1.78125, 0.25);
    assert!(round.is_open());
    // Two ACKs in the round trip before this one: one in 0.125 s of 0.25.
    assert_near(round.acks_in(0.125, 0.25), 1.0, 0.0);
}

/// 40 ACKs in a round trip of 0.25 s are 1.6 in 10 ms. An increase of 0.9 becomes none, one of 1.9 becomes one segment.
#[test]
fn an_increase_is_whole() {
    for (target, expected) in [(20.9, 20.0), (21.9, 21.0), (22.9, 22.0)] {
        let mut steps = Steps::new();
        let mut window = steps.turn_to(20.0, target, 0.1, 1.6);
        (0..10).for_each(|_| window = steps.on_ack(window));
        assert_near(window, expected, 0.0);
    }
}

/// Twelve ACKs a period for three segments: a step with each fourth ACK.
#[test]
fn an_increase_is_spread_over_a_period() {
    let mut steps = Steps::new();
    let mut window = steps.turn_to(20.0, 23.5, 0.1, 12.0);
    let grown: Vec<u32> = (1..=20)
        .filter(|_| {
            let before = window;
            window = steps.on_ack(window);
            window > before
        })
        .collect();
    assert_eq!(grown, [4, 8, 12]);
}

/// An increase is not spread if baseRTT is below 4 ms, or the window is four segments, which at most doubles.
#[test]
fn short_rtt_or_window_is_not_spread() {
    let mut steps = Steps::new();
    assert_near(steps.turn_to(20.0, 23.5, 0.003_9, 12.0), 23.5, 0.0);
    assert_near(steps.on_ack(23.5), 23.5, 0.0);
    steps.turn_to(3.0, 10.0, 0.1, 12.0);
    assert_near(steps.on_ack(3.0), 6.0, 0.0);
}

#[test]
fn a_decrease_comes_at_once_and_drops_what_is_pending() {
    let mut steps = Steps::new();
    steps.turn_to(20.0, 23.5, 0.1, 12.0);
    assert_near(steps.turn_to(20.0, 18.25, 0.1, 12.0), 18.25, 0.0);
    assert!(steps.pending() <= 0.0);
}

/// For a segment that left in recovery, `old` is the flight at the last ACK before the recovery.
#[test]
fn flights_in_recovery_are_the_last_before_it() {
    let mut flights = Flights::new();
    flights.on_ack(1.0, 50.0);
    flights.on_ack(1.1, 51.0);
    flights.on_ack(1.2, 51.0);
    flights.on_ack(2.0, 27.0);
    for (departure, old) in [(0.5, 1.0), (1.0, 50.0), (1.05, 50.0), (1.1, 51.0), (1.9, 51.0), (2.0, 27.0)] {
        assert_near(flights.take(departure), old, 0.0);
    }
}

/// The module, ACK by ACK from the SYN's: multiplicative increase to 12, then steps in every second round trip until the window stands.
/// `tests/data/mfast-2019-start.csv` is a golden run (mfast-2019, alpha 8, beta 2), a row for each ACK. The code under test sees only its
/// times and RTTs. Each ACK removes what it acknowledges from the network, and the sender fills the window again. The run prints
/// microseconds, so the end of a round trip of exactly one RTT has this tolerance.
#[test]
fn the_pieces_reproduce_the_start_of_mfast() {
    let (mut round, mut steps, mut flights) = (Round::new(1.0), Steps::new(), Flights::new());
    let mut estimator = Estimator::new();
    let (mut window, mut flight, mut updated) = (1.0_f64, 1.0, 0.0);
    let run = include_str!("../../../../tests/data/mfast-2019-start.csv");
    for (index, line) in run.lines().skip(1).enumerate() {
        let row: Vec<f64> = line.split(',').map(|field| field.parse().unwrap()).collect();
        let [now, expected, rtt, base, average, old] = row[..] else { panic!("six fields in {line}") };
        assert!((window - expected).abs() < 1e-3, "at {now} s: expected {expected}, got {window}");
        estimator.on_rtt(rtt, window, &Weights::NS2);
        assert!((estimator.base() - base).abs() < 1e-6, "baseRTT at {now} s");
        assert!((estimator.average() - average).abs() < 1e-5, "avgRTT at {now} s: {}", estimator.average());
        // Before the first packet left nothing was in flight.
        if index > 0 {
            assert_near(flights.take(now - rtt + 1e-6), old, 0.0);
        }
        flights.on_ack(now, flight);
        round.on_ack(now, rtt + 2e-6);
        if increases_multiplicatively(base, average, 0.75e-3) {
            (window, updated) = (window + 1.0, now);
        } else {
            if round.is_open() && now >= updated + 0.01 && GOAL.is_missed(old, base, average) {
                let target = target(window, old, base, average, &GOAL);
                window = steps.turn_to(window, target, base, round.acks_in(0.01, average));
                updated = now;
            }
            window = steps.on_ack(window);
        }
        flight = window.floor();
    }
    assert_near(window, 51.0, 0.0);
}
