use anabranch_units::Span;

use crate::controller::{Cause, Signal};
use crate::testing::bottleneck::Bottleneck;
use crate::testing::{Flow, assert_near};

/// [rfc-6817] sec. 2.4.2 with gain 1: on an empty path the window grows by a segment a round; at the target it stays; at twice the target it shrinks as
/// fast.
#[test]
fn growth_is_in_proportion_to_what_is_off_target() {
    let mut flow = Flow::new("ledbat", &[("initial_window", "20"), ("target", "100ms")]);
    flow.rounds(10);
    assert_near(flow.window(), 30.0, 0.02);
    for (queued, change) in [(100, 0.0), (150, -0.5), (50, 0.5), (200, -1.0)] {
        flow.rtt = Span::from_millis(100 + queued);
        // The filter takes the least of four.
        flow.round();
        let before = flow.window();
        flow.round();
        assert!((flow.window() - before - change).abs() < 0.03, "{queued} ms: {}", flow.window() - before);
    }
}

/// LEDBAT keeps a queue of 100 ms: 100 segments at 1000 segments a second.
#[test]
fn the_queue_is_the_target() {
    let mut path = Bottleneck::new(1000.0);
    path.flow("ledbat", &[("initial_window", "50")], 100);
    path.run(300.0);
    let (queue, rates) = path.means(20.0);
    assert_near(queue, 100.0, 0.05);
    assert_near(rates[0], 1000.0, 0.01);
}

/// [rfc-6817] sec. 2.1: LEDBAT gives way to a TCP that fills the queue beyond the target.
#[test]
fn it_gives_way_to_reno() {
    let mut path = Bottleneck::new(1000.0);
    path.buffer = 300.0;
    path.flow("ledbat", &[], 100);
    path.run(60.0);
    path.flow("reno", &[], 100);
    path.run(60.0);
    let (_, rates) = path.means(60.0);
    assert!(rates[0] < 100.0 && rates[1] > 900.0, "{rates:?}");
}

#[test]
fn a_loss_halves_it_and_two_segments_stay() {
    let mut flow = Flow::new("ledbat", &[("initial_window", "20")]);
    flow.loss(Signal::DupAcks, Cause::Congestion);
    assert_near(flow.window(), 10.0, 1e-12);
    for _ in 0..5 {
        flow.lose(Cause::Congestion);
    }
    assert_near(flow.window(), 2.0, 1e-12);
    flow.timeout();
    assert_near(flow.window(), 1.0, 1e-12);
}

/// [rfc-6817] sec. 2.4.2: ALLOWED_INCREASE.
#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut flow = Flow::new("ledbat", &[("initial_window", "20")]);
    flow.flight_cap = 5.0;
    flow.rounds(10);
    assert_near(flow.window(), 20.0, 1e-12);
}
