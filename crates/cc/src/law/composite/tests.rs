use crate::controller::{Cause, Phase, Signal};
use crate::testing::{Flow, assert_near};

fn flow() -> Flow {
    Flow::new("composite", &[("initial_window", "40")])
}

/// ctcp-2019 sec. 3: after a random loss "cwnd reduction can be avoided".
#[test]
fn a_random_loss_leaves_the_window_alone() {
    let mut flow = flow();
    flow.lose(Cause::Random);
    assert_near(flow.window(), 40.0, 0.0);
    assert_near(flow.gauge("losses_random"), 1.0, 0.0);
}

/// "Conservative at the slightest signal of congestion."
#[test]
fn every_other_loss_is_the_base_laws() {
    for cause in [Cause::Congestion, Cause::Unknown] {
        let mut flow = flow();
        flow.lose(cause);
        assert_near(flow.window(), 20.0, 0.0);
    }
}

/// "Timeout leads to slow start at any point of time", whatever the driver thinks of its cause.
#[test]
fn a_timeout_is_never_random() {
    let mut flow = flow();
    flow.loss(Signal::Timeout, Cause::Random);
    assert_near(flow.window(), 1.0, 0.0);
}

/// "The fast recovery phase is ignored": while a random loss is repaired the window grows on.
#[test]
fn the_window_grows_while_a_random_loss_is_repaired() {
    let mut flow = flow();
    flow.loss(Signal::DupAcks, Cause::Random);
    flow.phase = Phase::Recovery;
    flow.ack(1.0);
    assert_near(flow.window(), 41.0, 0.0);
}

/// "If there are multiple losses in the same window, congestion can not be ruled out": a second gap halves after all, and
/// then the window stands still until it is repaired.
#[test]
fn a_second_gap_means_congestion() {
    let mut flow = flow();
    flow.loss(Signal::DupAcks, Cause::Random);
    flow.loss(Signal::DupAcks, Cause::Congestion);
    flow.phase = Phase::Recovery;
    flow.ack(1.0);
    assert_near(flow.window(), 20.0, 0.0);
}

/// Without losses it is its base to the bit, and what both can set reaches the base.
#[test]
fn without_losses_it_is_its_base() {
    for base in ["reno", "linux", "cubic"] {
        let mut bare = Flow::new(base, &[("initial_window", "7")]);
        let mut wrapped = Flow::new("composite", &[("base", base), ("initial_window", "7")]);
        for _ in 0..5 {
            bare.round();
            wrapped.round();
            assert_eq!(bare.window().to_bits(), wrapped.window().to_bits(), "{base}");
        }
    }
}

/// The base law cannot undo a loss that it was not told of; an earlier loss that it was told of stays.
#[test]
fn a_random_loss_that_was_none_is_not_told() {
    let mut flow = flow();
    flow.lose(Cause::Congestion);
    assert_near(flow.window(), 20.0, 0.0);
    flow.loss(Signal::DupAcks, Cause::Random);
    flow.undo();
    assert_near(flow.window(), 20.0, 0.0);
}
