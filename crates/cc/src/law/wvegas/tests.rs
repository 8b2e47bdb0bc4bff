use anabranch_units::Span;

use crate::testing::bottleneck::Bottleneck;
use crate::testing::{Flow, assert_near, summary};

/// On one path wVegas keeps ten segments queued, within the one by which it moves.
#[test]
fn alone_it_keeps_ten_segments_queued() {
    let mut path = Bottleneck::new(1000.0);
    path.paced = true;
    let flow = path.flow("wvegas", &[], 100);
    path.run(30.0);
    let (queue, rates) = path.means(30.0);
    assert!((8.0..13.0).contains(&queue), "{queue}");
    assert_near(rates[0], 1000.0, 0.005);
    assert_near(path.gauge(flow, "alpha"), 10.0, 1e-12);
}

/// [wvegas-2012]: with a third of what both carry a path may queue a third of ten. Slow start ends at 80 with 125 ms, of which
/// the path holds 64, and one. Then 65/5 = 13 are queued, too many for both. With 110 ms it is 64 · 10/110 = 5.8: alone it
/// grows, with a third it gives way.
#[test]
fn a_path_may_queue_its_share() {
    for (other, alpha, expected) in [(None, 10.0, 65.0), (Some(80.0), 10.0 / 3.0, 63.0)] {
        let mut flow = Flow::new("wvegas", &[("initial_window", "10")]);
        flow.rounds(2);
        flow.rtt = Span::from_millis(125);
        flow.round();
        if let Some(other) = other {
            flow.controller.on_group(&flow.view(), &[summary(0, 40.0, 125), summary(1, other, 125)]);
        }
        flow.round();
        assert_near(flow.window(), 64.0, 1e-12);
        flow.rtt = Span::from_millis(110);
        flow.round();
        assert_near(flow.gauge("alpha"), alpha, 1e-12);
        assert_near(flow.window(), expected, 1e-12);
    }
}

/// [wvegas-2012] sec. IV: a queueing delay of twice the least since it last did makes it back off to half of what the path holds.
#[test]
fn it_backs_off_from_a_queue_that_has_doubled() {
    let mut flow = Flow::new("wvegas", &[("initial_window", "10")]);
    flow.rounds(2);
    flow.rtt = Span::from_millis(120);
    flow.rounds(2);
    let before = flow.window();
    flow.rtt = Span::from_millis(140);
    flow.round();
    assert_near(flow.window(), (before - 1.0) * 100.0 / 280.0, 1e-9);
    // Slow start reaches the size of the last reduction, and the window grows by a segment a round from there: 67 and 30 more. A back-off
    // at that size would regain three quarters of it.
    flow.rtt = Span::from_millis(100);
    flow.rounds(2);
    assert_near(flow.gauge("ssthresh"), before - 1.0, 1e-9);
    assert_near(flow.window(), before, 1e-9);
    flow.rounds(30);
    assert_near(flow.window(), before + 30.0, 1e-9);
    assert_near(flow.gauge("ssthresh"), 0.75 * (before + 30.0), 1e-9);
}
