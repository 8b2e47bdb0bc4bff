use anabranch_units::Span;

use crate::controller::{Cause, Signal};
use crate::testing::bottleneck::Bottleneck;
use crate::testing::{Flow, assert_near};

/// A link of 1000 segments a second and 100 ms.
fn link() -> Bottleneck {
    let mut path = Bottleneck::new(1000.0);
    path.paced = true;
    path
}

/// [copa-2018] sec. 3: the queue of a flow with delta 0.5 varies between 0 and 2.5/delta = 5 segments; its mean is half of that.
#[test]
fn the_queue_is_one_and_a_quarter_over_delta() {
    let mut path = link();
    path.flow("copa", &[], 100);
    path.run(20.0);
    let (queue, rates) = path.means(30.0);
    assert!((1.0..4.5).contains(&queue), "{queue}");
    assert!(rates[0] > 950.0, "{}", rates[0]);
}

/// [copa-2018] sec. 2.1: flows with equal delta have equal rates. The slow start of the second one lets both compete, until losses end that.
#[test]
fn two_flows_share_the_link() {
    let mut path = link();
    path.buffer = 100.0;
    path.flow("copa", &[], 100);
    path.run(10.0);
    path.flow("copa", &[], 100);
    path.run(30.0);
    let (queue, rates) = path.means(60.0);
    assert_near(rates[0] / rates[1], 1.0, 0.25);
    assert!(rates[0] + rates[1] > 950.0 && queue < 20.0, "{rates:?}, queue {queue}");
}

/// Copa detects that Reno never lets the queue empty, and competes; without that mode it gives way.
#[test]
fn it_competes_with_reno() {
    let share = |competitive| {
        let mut path = link();
        path.buffer = 100.0;
        path.flow("copa", &[("competitive", competitive)], 100);
        path.flow("reno", &[], 100);
        path.run(60.0);
        path.means(120.0).1[0] / 1000.0
    };
    let (with, without) = (share("true"), share("false"));
    assert!((0.25..0.75).contains(&with) && without < 0.25, "{with} with, {without} without");
}

/// [copa-2018] sec. 5.3: losses are no signal in the default mode.
#[test]
fn random_losses_do_not_slow_it() {
    let mut path = link();
    path.damage = 0.02;
    path.flow("copa", &[], 100);
    path.run(10.0);
    let (_, rates) = path.means(30.0);
    assert!(rates[0] > 900.0, "{}", rates[0]);
}

/// With an empty queue the target is infinite: slow start doubles. With 50 ms of queue the target is 1/(0.5 · 0.05 s) = 40 a second: the window is
/// above it, and shrinks by 1/(delta w) an ACK.
#[test]
fn the_window_goes_to_the_target() {
    let mut flow = Flow::new("copa", &[]);
    flow.rounds(2);
    assert_near(flow.window(), 40.0, 1e-9);
    flow.rtt = Span::from_millis(150);
    flow.now += Span::from_millis(200);
    flow.ack(1.0);
    assert_near(flow.window(), 40.0 - 1.0 / (0.5 * 40.0), 1e-9);
}

#[test]
fn only_a_timeout_shrinks_the_window() {
    let mut flow = Flow::new("copa", &[]);
    flow.rounds(2);
    flow.lose(Cause::Congestion);
    assert_near(flow.window(), 40.0, 1e-9);
    flow.loss(Signal::Timeout, Cause::Unknown);
    assert_near(flow.window(), 1.0, 1e-9);
    flow.undo();
    assert_near(flow.window(), 40.0, 1e-9);
}
