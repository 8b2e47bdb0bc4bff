use crate::controller::{Cause, PathSummary};
use crate::testing::{self, Flow, assert_near};

fn summary(path: u32, window: f64, delivered: f64, lost: f64) -> PathSummary {
    PathSummary { delivered, lost, ..testing::summary(path, window, 100) }
}

/// A flow in congestion avoidance with a window of 20.
fn flow() -> Flow {
    let mut flow = Flow::new("olia", &[("initial_window", "40")]);
    flow.lose(Cause::Congestion);
    flow
}

/// [olia-2012] eq. 5 with two equal paths: (w/rtt²)/(2w/rtt)² = 1/(4w) an ACK, a quarter of a segment a round.
#[test]
fn equal_paths_grow_by_a_quarter_each() {
    let mut flow = flow();
    let group = [summary(0, 20.0, 100.0, 1.0), summary(1, 20.0, 100.0, 1.0)];
    flow.controller.on_group(&flow.view(), &group);
    assert!(flow.gauge("alpha").abs() < 1e-12);
    flow.round();
    assert_near(flow.window(), 20.25, 1e-3);
}

/// [olia-2012] eq. 6: path 0 is the better one, path 1 the wider one: 1/(2 · 1) for the first, the same taken from the second.
#[test]
fn olia_moves_window_from_wider_to_better_path() {
    let mut better = flow();
    let group = [summary(0, 20.0, 500.0, 0.0), summary(1, 30.0, 100.0, 0.0)];
    better.controller.on_group(&better.view(), &group);
    assert_near(better.gauge("alpha"), 0.5, 1e-12);
    let mut wider = flow();
    let group = [summary(0, 30.0, 100.0, 0.0), summary(1, 20.0, 500.0, 0.0)];
    wider.controller.on_group(&wider.view(), &group);
    assert_near(wider.gauge("alpha"), -0.5, 1e-12);
    // (30/rtt²)/(50/rtt)² · 20 ACKs = 0.16 of growth by its own window of 20, less one half.
    wider.round();
    assert_near(wider.window(), 20.0 + 20.0 * 20.0 / 2500.0 - 0.5, 2e-3);
}

/// Between the last two losses 400 were delivered, 10 since: 400 is what counts.
#[test]
fn a_path_is_as_good_as_its_better_interval() {
    let mut flow = flow();
    let told = |own: f64, lost: f64| [summary(0, 20.0, own, lost), summary(1, 30.0, 300.0, 0.0)];
    for group in [told(100.0, 1.0), told(500.0, 2.0), told(510.0, 2.0)] {
        flow.controller.on_group(&flow.view(), &group);
    }
    assert_near(flow.gauge("alpha"), 0.5, 1e-12);
    // After two losses in a row it is the worse path.
    for group in [told(520.0, 3.0), told(530.0, 4.0)] {
        flow.controller.on_group(&flow.view(), &group);
    }
    assert!(flow.gauge("alpha").abs() < 1e-12);
}

#[test]
fn alone_it_is_reno() {
    let mut flow = flow();
    flow.round();
    assert_near(flow.window(), 21.0, 0.03);
}
