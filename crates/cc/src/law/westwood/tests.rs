use anabranch_units::Span;

use super::*;
use crate::controller::Cause;
use crate::testing::{Flow, assert_near};

/// A path of 200 segments/s and 100 ms holds 20 segments. A window of 40 that has filled a queue of 20 (RTT 200 ms) comes down to
/// those 20 after a loss: the queue empties and the path stays full.
#[test]
fn a_loss_leaves_the_pipe_full() {
    let mut flow = Flow::new("westwood", &[("initial_window", "20")]);
    flow.ack(0.001);
    flow.lose(Cause::Congestion);
    for _ in 0..60 {
        flow.rtt = Span::from_secs_f64((flow.window() / 200.0).max(0.1));
        flow.round();
    }
    assert!(flow.window() > 40.0, "{}", flow.window());
    flow.lose(Cause::Congestion);
    assert_near(flow.window(), 20.0, 0.03);
}

/// Without a queue the window is not the cause of a loss: 10 segments a round on an empty path are what the path has delivered.
#[test]
fn a_random_loss_on_an_empty_path_costs_next_to_nothing() {
    let mut flow = Flow::new("westwood", &[("initial_window", "20")]);
    flow.lose(Cause::Unknown);
    assert_near(flow.window(), 10.0, 0.0);
    flow.rounds(20);
    let before = flow.window();
    flow.lose(Cause::Random);
    assert!(flow.window() > 0.7 * before, "from {before} to {}", flow.window());
}

/// By hand: a round at 100/s after an estimate of 20/s moves it by an eighth of the difference.
#[test]
fn the_filter_takes_an_eighth() {
    assert_near(filter(20.0, 100.0), 30.0, 1e-12);
}

#[test]
fn a_timeout_starts_over_towards_the_pipe() {
    let mut flow = Flow::new("westwood", &[("initial_window", "16")]);
    flow.limit = Limit::Window;
    flow.round();
    let delivered = flow.gauge("bandwidth_segments_per_s");
    assert_near(delivered, 160.0, 1e-9);
    flow.timeout();
    assert_near(flow.window(), 1.0, 0.0);
    assert_near(flow.gauge("ssthresh"), 16.0, 1e-9);
}

/// While the application limits the sender, the delivery rate says nothing about the path.
#[test]
fn an_idle_application_gives_no_sample() {
    let mut flow = Flow::new("westwood", &[]);
    flow.limit = Limit::Application;
    flow.round();
    assert!(flow.gauge("bandwidth_segments_per_s").abs() < f64::MIN_POSITIVE);
}
