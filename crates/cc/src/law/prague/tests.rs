use anabranch_units::Span;

use crate::controller::{Cause, Ect, Signal};
use crate::law::prague::growth;
use crate::testing::{Flow, assert_near};

/// [rfc-9331] sec. 4.1.
#[test]
fn its_segments_leave_with_ect_1() {
    assert_eq!(Flow::new("prague", &[]).controller.ect(), Some(Ect::One));
    assert_eq!(Flow::new("dctcp", &[]).controller.ect(), Some(Ect::Zero));
    assert_eq!(Flow::new("bbr", &[]).controller.ect(), None);
}

/// A rate of w/rtt that grows by s/rtt² a second: with s = (rtt/25 ms)² that is the same for all.
#[test]
fn short_rtts_grow_as_25_milliseconds_do() {
    for (ms, expected) in [(5, 0.04), (12, 0.2304), (25, 1.0), (100, 1.0), (0, 1.0)] {
        assert_near(growth(Span::from_millis(ms)), expected, 1e-12);
    }
    let mut flow = Flow::new("prague", &[("initial_window", "20")]);
    flow.rtt = Span::from_millis(5);
    flow.loss(Signal::Ecn, Cause::Congestion);
    let before = flow.window();
    flow.round();
    assert_near(flow.window(), before + 1.0, 0.01);
    flow.rounds(499);
    let before = flow.window();
    flow.round();
    assert_near(flow.window() - before, 0.04, 0.02);
}

/// Marked segments add nothing. Segments without a mark add to the window also in the round of a reduction.
#[test]
fn marked_segments_do_not_grow_the_window() {
    let mut flow = Flow::new("prague", &[("initial_window", "40")]);
    flow.loss(Signal::Ecn, Cause::Congestion);
    assert_near(flow.window(), 20.0, 1e-12);
    flow.newly_marked = 1.0;
    flow.ack(1.0);
    assert_near(flow.window(), 20.0, 1e-12);
    flow.ack(1.0);
    assert_near(flow.window(), 20.05, 1e-12);
}
