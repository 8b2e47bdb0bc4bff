//! Tests of single events.

use anabranch_units::{Bytes, Span};

use crate::controller::{Cause, Limit, Phase, Restart};
use crate::testing::{Flow, MSS, assert_near};

#[test]
fn a_loss_halves_and_a_timeout_leaves_two() {
    let mut flow = Flow::new("fast", &[("initial_window", "40")]);
    flow.lose(Cause::Random);
    assert_near(flow.window(), 20.0, 0.0);
    flow.timeout();
    assert_near(flow.window(), 2.0, 0.0);
}

/// On an empty queue the window increases multiplicatively, as in slow start: 10, 20, 40.
#[test]
fn an_empty_queue_is_filled_as_in_slow_start() {
    let mut flow = Flow::new("fast", &[]);
    flow.rounds(2);
    assert_near(flow.window(), 40.0, 0.0);
}

#[test]
fn recovery_keeps_window_and_rtt_average() {
    let mut flow = Flow::new("fast", &[]);
    flow.round();
    flow.phase = Phase::Recovery;
    flow.rtt = Span::from_millis(150);
    flow.round();
    assert_near(flow.window(), 20.0, 0.0);
    assert_near(flow.gauge("rtt_average_s"), 0.1, 1e-12);
}

/// Data that was not sent cannot queue: with 10 of 40 segments in use, the window neither grows nor shrinks, until these 10 keep more
/// than alpha queued.
#[test]
fn an_unused_window_stays() {
    let mut flow = Flow::new("fast", &[("initial_window", "40"), ("alpha", "4"), ("average_weight", "1")]);
    flow.round();
    let full = flow.window();
    (flow.limit, flow.flight_cap) = (Limit::Application, 10.0);
    flow.rtt = Span::from_millis(160);
    flow.round();
    assert_near(flow.window(), full, 0.0);
    flow.rtt = Span::from_millis(200);
    flow.rounds(4);
    assert!(flow.window() < full, "{}", flow.window());
}

#[test]
fn a_new_path_is_unknown() {
    let mut flow = Flow::new("fast", &[]);
    flow.rounds(3);
    flow.restart(Restart::PathChanged);
    assert_near(flow.window(), 10.0, 0.0);
    assert!(flow.gauge("rtt_base_s").is_infinite());
}

/// At 10 Mbit/s a short segment is a millisecond faster than a full one. The difference does not count as queue, neither before the first full segment
/// nor later. After two full windows of ten and twenty the window has doubled twice, as without the short segment.
#[test]
fn a_short_segment_is_no_shorter_path() {
    let mut flow = Flow::new("fast", &[("initial_window", "10")]);
    let (short, full) = (Span::from_micros(299_000), Span::from_millis(300));
    for sizes in [[100, 1000], [1000, 100]] {
        for size in sizes {
            (flow.size, flow.rtt) = (Bytes::new(size), if size < 500 { short } else { full });
            flow.now += Span::from_millis(10);
            flow.ack(1.0);
        }
    }
    assert_near(flow.gauge("rtt_base_s"), 0.3, 1e-9);
    (flow.size, flow.rtt) = (MSS, full);
    let before = flow.window();
    flow.round();
    assert_near(flow.window(), 2.0 * before, 0.05);
}
