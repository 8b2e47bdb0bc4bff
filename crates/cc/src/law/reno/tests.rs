use super::*;
use crate::controller::Cause;
use crate::testing::{Flow, assert_near};

/// Slow start doubles the window each round: 10, 20, 40, 80.
#[test]
fn slow_start_doubles() {
    let mut flow = Flow::new("reno", &[]);
    flow.rounds(3);
    assert_near(flow.window(), 80.0, 0.0);
}

/// rfc-5681 sec. 3.1: congestion avoidance adds about one segment a round. With w' = w + 1/w the square grows by
/// 2 + 1/w² an ACK, so ten ACKs from 10 give √(100 + 20.1...) = 10.96, and 100 rounds from 10 lead to 109 to 110.
#[test]
fn congestion_avoidance_adds_a_segment_a_round() {
    let mut flow = Flow::new("reno", &[("initial_window", "20")]);
    flow.lose(Cause::Congestion);
    assert_near(flow.window(), 10.0, 0.0);
    flow.round();
    assert_near(flow.window(), 120.09_f64.sqrt(), 1e-4);
    flow.rounds(99);
    assert!((105.0..=110.0).contains(&flow.window()), "{}", flow.window());
}

/// The sawtooth of a flow that loses one segment whenever the window reaches W carries 3/8 W² segments a cycle (mathis-1997):
/// W = 80 gives 2400, within the rounding of one round.
#[test]
fn the_sawtooth_carries_three_eighths_of_w_squared() {
    let mut flow = Flow::new("reno", &[("initial_window", "80")]);
    flow.lose(Cause::Congestion);
    let mut carried = 0.0;
    while flow.window() < 80.0 {
        flow.ack(1.0);
        carried += 1.0;
    }
    assert_near(carried, 2400.0, 80.0 / 2400.0);
}

#[test]
fn a_timeout_starts_over_and_slow_start_ends_at_half() {
    let mut flow = Flow::new("reno", &[("initial_window", "32")]);
    flow.timeout();
    assert_near(flow.window(), 1.0, 0.0);
    flow.rounds(4);
    assert_near(flow.window(), 16.0, 0.0);
    flow.round();
    assert!(flow.window() < 17.0);
}

/// One ACK that crosses the threshold is split: from 15 with the threshold at 16, six segments are one of slow start and
/// five of congestion avoidance: 16 + 5/16.
#[test]
fn an_ack_across_the_threshold_is_split() {
    assert_near(advance(15.0, 16.0, 6.0), 16.3125, 0.0);
}

#[test]
fn reno_window_constant_in_recovery_or_unused() {
    let mut flow = Flow::new("reno", &[]);
    flow.phase = Phase::Recovery;
    flow.ack(3.0);
    (flow.phase, flow.limit) = (Phase::Open, Limit::Application);
    flow.ack(3.0);
    assert_near(flow.window(), 10.0, 0.0);
}

/// rfc-5681 eq. 4: never below two segments, and never up.
#[test]
fn the_least_window_after_a_loss_is_two_segments() {
    let mut flow = Flow::new("reno", &[("initial_window", "3")]);
    flow.lose(Cause::Congestion);
    assert_near(flow.window(), 2.0, 0.0);
    flow.timeout();
    flow.lose(Cause::Congestion);
    assert_near(flow.window(), 1.0, 0.0);
}

#[test]
fn idle_keeps_at_most_the_initial_window_and_a_new_path_forgets() {
    let mut flow = Flow::new("reno", &[]);
    flow.rounds(2);
    flow.restart(Restart::Idle);
    assert_near(flow.window(), 10.0, 0.0);
    flow.lose(Cause::Congestion);
    flow.restart(Restart::PathChanged);
    flow.rounds(1);
    assert_near(flow.window(), 20.0, 0.0);
}
