use anabranch_units::Span;

use crate::controller::PathSummary;
use crate::testing::{self, Flow, assert_near};

fn summary(path: u32, window: f64, queueing_ms: u64) -> PathSummary {
    PathSummary { rtt_min: Some(Span::from_millis(100)), ..testing::summary(path, window, 100 + queueing_ms) }
}

fn told(flow: &mut Flow, rounds: u32, group: &[PathSummary]) -> f64 {
    for _ in 0..rounds {
        flow.controller.on_group(&flow.view(), group);
    }
    flow.gauge("alpha_path")
}

/// Both queues have 20 ms, and the other path carries three times as much: after eight rounds this path has a quarter of 20 segments. It has
/// all 20 again after eight rounds in which the queueing delays differ.
#[test]
fn paths_that_wait_equally_long_share_alpha() {
    let mut flow = Flow::new("mpfast", &[("alpha", "20")]);
    let (alike, apart) =
        ([summary(0, 100.0, 20), summary(1, 300.0, 20)], [summary(0, 100.0, 20), summary(1, 300.0, 40)]);
    assert_near(told(&mut flow, 7, &alike), 20.0, 1e-12);
    assert_near(told(&mut flow, 1, &alike), 5.0, 1e-12);
    // 20 · (100/0.12) / (100/0.12 + 300/0.14).
    assert_near(told(&mut flow, 7, &apart), 5.6, 1e-12);
    assert_near(told(&mut flow, 1, &apart), 20.0, 1e-12);
}

/// A third path through another queue does not count.
#[test]
fn paths_that_wait_otherwise_have_alpha_for_themselves() {
    let mut flow = Flow::new("mpfast", &[("alpha", "20")]);
    let group = [summary(0, 100.0, 20), summary(1, 100.0, 21), summary(2, 900.0, 60)];
    assert_near(told(&mut flow, 20, &group), 10.0, 0.01);
    let mut alone = Flow::new("mpfast", &[("alpha", "20")]);
    assert_near(told(&mut alone, 20, &[summary(0, 100.0, 20)]), 20.0, 1e-12);
}

/// A path with a very small rate keeps two segments.
#[test]
fn no_path_has_less_than_two() {
    let mut flow = Flow::new("mpfast", &[("alpha", "20")]);
    assert_near(told(&mut flow, 20, &[summary(0, 1.0, 20), summary(1, 999.0, 20)]), 2.0, 1e-12);
}
