use anabranch_units::Span;

use super::*;
use crate::controller::Cause;
use crate::testing::{Flow, assert_near};

/// A path that empties `rate` segments a second and has a round trip of 100 ms when nothing is queued: RTT = max(100 ms,
/// w/rate), and w − rate · 100 ms segments are queued.
#[track_caller]
fn rounds_on(flow: &mut Flow, rate: f64, rounds: u32) {
    for _ in 0..rounds {
        let millis = (flow.window() / rate * 1e3).max(100.0);
        flow.rtt = Span::from_secs_f64(millis / 1e3);
        flow.round();
    }
}

/// A flow in congestion avoidance with a window of `window` and a least RTT of 100 ms.
fn settled(window: &str) -> Flow {
    let mut flow = Flow::new("vegas", &[("initial_window", window)]);
    flow.ack(0.001);
    flow.lose(Cause::Congestion);
    flow
}

/// brakmo-1995 sec. 3.2, by hand: 20 segments at 100 ms are 200/s expected; at 125 ms they are 160/s; the 40/s missing for
/// 100 ms are 4 segments.
#[test]
fn diff_of_a_worked_case() {
    assert_near(backlog(20.0, 0.1, 0.125), 4.0, 1e-12);
    assert_near(diff(200.0, 160.0, 0.1), 4.0, 1e-12);
}

/// Both ends of the dead band belong to it.
#[test]
fn the_window_holds_between_alpha_and_beta() {
    assert_eq!(
        [0.99, 1.0, 3.0, 3.01].map(|queued| step(queued, 1.0, 3.0)),
        [Step::Up, Step::Hold, Step::Hold, Step::Down]
    );
}

/// On 200 segments/s an empty round trip holds 20 segments. From below and from above the window comes to rest with alpha = 1
/// to beta = 3 of them queued, 21 to 23, and then does not move.
#[test]
fn the_resting_window_is_the_pipe_plus_alpha_to_beta() {
    for initial in ["20", "40"] {
        let mut flow = settled(initial);
        rounds_on(&mut flow, 200.0, 30);
        let resting = flow.window();
        assert!((21.0..=23.0).contains(&resting), "from {initial}: {resting}");
        rounds_on(&mut flow, 200.0, 10);
        assert_near(flow.window(), resting, 0.0);
    }
}

/// Without a queue: double, hold, double, hold.
#[test]
fn slow_start_doubles_every_second_round() {
    let mut flow = Flow::new("vegas", &[("initial_window", "4")]);
    let windows: Vec<_> = (0..5)
        .map(|_| {
            flow.round();
            flow.window() as u64
        })
        .collect();
    assert_eq!(windows, [8, 8, 16, 16, 32]);
}

/// 32 segments on a pipe of 20 are 12 queued, more than gamma: 32 − 32/8 = 28, and then one less a round.
#[test]
fn slow_start_ends_when_more_than_gamma_are_queued() {
    let mut flow = Flow::new("vegas", &[("initial_window", "4")]);
    rounds_on(&mut flow, 200.0, 6);
    assert_near(flow.window(), 28.0, 0.0);
    rounds_on(&mut flow, 200.0, 2);
    assert_near(flow.window(), 26.0, 0.0);
}

#[test]
fn a_loss_takes_a_quarter_and_a_timeout_leaves_two() {
    let mut flow = Flow::new("vegas", &[("initial_window", "40")]);
    flow.lose(Cause::Congestion);
    assert_near(flow.window(), 30.0, 0.0);
    flow.timeout();
    assert_near(flow.window(), 2.0, 0.0);
    assert_near(flow.gauge("ssthresh"), 15.0, 0.0);
}

/// Data that was not sent cannot queue: with 10 of 40 segments in use, 110 ms are 0.9 segments queued, not 3.6.
#[test]
fn an_unused_window_is_not_taken_for_a_queue() {
    let mut flow = settled("40");
    let before = flow.window();
    flow.limit = Limit::Application;
    flow.flight_cap = 10.0;
    flow.rtt = Span::from_millis(110);
    flow.round();
    assert_near(flow.window(), before, 0.0);
    assert_near(flow.gauge("backlog"), 10.0 / 11.0, 1e-9);
}
