use super::*;
use crate::testing::assert_near;

const GOAL: Goal = Goal { alpha: 8.0, beta: 2.0, gamma: 0.5 };

/// By hand: 40 segments at 100 ms over a base of 80 ms are 8 queued. With an alpha of 10, half way from 40 to 32 + 10 is 41.
#[test]
fn a_worked_target() {
    let goal = Goal { alpha: 10.0, ..GOAL };
    assert_near(Goal::backlog(40.0, 0.08, 0.1), 8.0, 1e-12);
    assert_near(goal.target(40.0, 40.0, 0.08, 0.1), 41.0, 1e-12);
    assert_near(goal.target(2.0, 0.0, 0.08, 0.1), 6.0, 1e-12);
    assert_near(Goal { alpha: 0.0, ..GOAL }.target(2.0, 0.0, 0.08, 0.1), WINDOW_MIN, 0.0);
}

/// 50 segments, a base of 3/4 s (binary fractions are exact): the band from 4 to 8 queued includes alpha and excludes beta.
#[test]
fn the_dead_band_holds_alpha_and_leaves_out_beta() {
    let goal = Goal { alpha: 4.0, beta: 8.0, gamma: 0.5 };
    let is_missed = [3.0, 4.0, 7.0, 8.0].map(|queued| goal.is_missed(16.0 * queued, 0.9375, 1.0));
    assert_eq!(is_missed, [true, false, false, true]);
    // Without a band the window always has to change.
    assert!([3.0, 4.0, 8.0, 9.0].iter().all(|queued| GOAL.is_missed(16.0 * queued, 0.9375, 1.0)));
}

/// Exactly one RTT is not yet a new round trip.
#[test]
fn a_round_trip_is_more_than_one_rtt() {
    let mut schedule = Schedule::new(0.0);
    schedule.on_ack(0.5, 0.5);
    assert!(schedule.is_open());
    schedule.on_ack(0.5 + f64::EPSILON, 0.5);
    assert!(!schedule.is_open());
    assert!(!schedule.is_due(0.6));
    schedule.on_ack(1.1, 0.5);
    assert!(schedule.is_due(1.1));
}

#[test]
fn a_period_passes_between_two_updates() {
    let mut schedule = Schedule::new(0.0);
    assert!(schedule.is_due(0.0));
    schedule.on_update(0.0);
    // 10 ms, as in ns-2's module.
    assert!(!schedule.is_due(0.0099) && schedule.is_due(0.01));
}

#[test]
fn an_increase_comes_with_the_acks_and_a_decrease_at_once() {
    let mut steps = Steps::new();
    assert_near(steps.turn_to(20.0, 22.75), 20.0, 0.0);
    let mut window = 20.0;
    for expected in [21.0, 22.0, 22.75, 22.75] {
        window = steps.on_ack(window, 1.0);
        assert_near(window, expected, 0.0);
    }
    steps.turn_to(20.0, 22.75);
    assert_near(steps.turn_to(20.0, 18.25), 18.25, 0.0);
    assert!(steps.pending() <= 0.0);
}

/// At four segments an increase comes at once, but never more than a doubling.
#[test]
fn a_small_window_at_most_doubles_at_once() {
    let mut steps = Steps::new();
    steps.turn_to(3.0, 10.0);
    assert_near(steps.on_ack(3.0, 1.0), 6.0, 0.0);
    steps.turn_to(4.0, 6.0);
    assert_near(steps.on_ack(4.0, 1.0), 6.0, 0.0);
}
