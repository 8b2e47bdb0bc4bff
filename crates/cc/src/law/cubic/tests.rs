use anabranch_units::Span;

use super::*;
use crate::controller::Cause;
use crate::testing::{Flow, assert_near};

/// A flow that lost at a window of 100 on a path of 100 ms.
fn lost_at_a_hundred(pairs: &[(&str, &str)]) -> Flow {
    let mut flow = Flow::new("cubic", &[&[("initial_window", "100")], pairs].concat());
    flow.lose(Cause::Congestion);
    flow
}

/// rfc-9438 eq. 2 by hand: W_max = 100 and beta = 0.7 leave 30 segments to regain, 30/0.4 = 75, and 4.217³ = 75.0: K is
/// 4.217 s. Then the window is 100 again and hardly moves; K seconds later it is 130.
#[test]
fn the_window_is_back_where_it_was_after_k_seconds() {
    let mut flow = lost_at_a_hundred(&[]);
    assert_near(flow.window(), 70.0, 0.0);
    let lost = flow.now;
    while flow.now.since(lost) < Span::from_millis(4217) {
        flow.round();
    }
    assert_near(flow.gauge("k_s"), 4.217, 1e-4);
    assert_near(flow.window(), 100.0, 0.002);
    while flow.now.since(lost) < Span::from_millis(8434) {
        flow.round();
    }
    assert_near(flow.window(), 130.0, 0.02);
}

/// Half way to the plateau seven eighths of the loss are regained: 70 + 30 · 7/8 = 96.25, as (1/2)³ = 1/8 is still missing.
#[test]
fn the_curve_is_a_cubic() {
    let mut flow = lost_at_a_hundred(&[]);
    let lost = flow.now;
    while flow.now.since(lost) < Span::from_millis(2109) {
        flow.round();
    }
    assert_near(flow.window(), 96.25, 0.01);
}

/// On a short path Reno grows faster: with beta = 0.7 alpha is 0.9/1.7 = 9/17 segments a round, so 34 rounds of 1 ms lead
/// from 70 to about 88. The cubic alone would be at 70.7 after 34 ms.
#[test]
fn short_paths_get_what_reno_would() {
    let mut flow = lost_at_a_hundred(&[]);
    flow.rtt = Span::from_millis(1);
    flow.rounds(34);
    assert_near(flow.window(), 88.0, 0.01);
}

/// Once the old window is regained, the growth is Reno's own: one segment a round.
#[test]
fn the_friendly_pace_is_one_segment_beyond_the_old_window() {
    let mut flow = lost_at_a_hundred(&[]);
    flow.rtt = Span::from_millis(1);
    while flow.window() < 101.0 {
        flow.round();
    }
    let before = flow.window();
    flow.rounds(20);
    assert_near(flow.window() - before, 20.0, 0.02);
}

/// rfc-9438 sec. 4.7: a second loss at 70, below the plateau at 100, puts the plateau at 70 · 0.85 = 59.5.
#[test]
fn fast_convergence_lowers_the_plateau() {
    for (switch, plateau) in [("true", 59.5), ("false", 70.0)] {
        let mut flow = lost_at_a_hundred(&[("fast_convergence", switch)]);
        flow.lose(Cause::Congestion);
        assert_near(flow.gauge("window_max"), plateau, 1e-12);
    }
}

/// A timeout starts over: slow start to 70, then a curve that begins flat at 70 (K = 0).
#[test]
fn after_a_timeout_the_curve_begins_flat() {
    let mut flow = Flow::new("cubic", &[("initial_window", "100")]);
    flow.timeout();
    assert_near(flow.window(), 1.0, 0.0);
    flow.rounds(8);
    assert!((70.0..72.0).contains(&flow.window()), "{}", flow.window());
    assert_near(flow.gauge("k_s") + 1.0, 1.0, 0.0);
}

/// Time without enough data does not count: after ten such seconds the window grows as it would have without them.
#[test]
fn idle_time_does_not_move_along_the_curve() {
    let mut busy = lost_at_a_hundred(&[]);
    let mut idle = lost_at_a_hundred(&[]);
    busy.rounds(10);
    idle.rounds(10);
    idle.limit = Limit::Application;
    idle.rounds(100);
    idle.limit = Limit::Window;
    busy.rounds(10);
    idle.rounds(10);
    assert_near(idle.window(), busy.window(), 1e-6);
}

/// rfc-9438 sec. 4.9: after a spurious loss the curve goes on from where it was. The second of repair counts, so the window is that
/// of a flow without the loss.
#[test]
fn a_loss_that_was_none_leaves_the_curve_as_it_was() {
    let (mut flow, mut undisturbed) = (lost_at_a_hundred(&[]), lost_at_a_hundred(&[]));
    for flow in [&mut flow, &mut undisturbed] {
        (0..20).for_each(|_| flow.round());
    }
    let window = flow.window();
    flow.loss(Signal::DupAcks, Cause::Congestion);
    assert!(flow.window() < window);
    flow.undo();
    assert_near(flow.window(), window, 0.0);
    for flow in [&mut flow, &mut undisturbed] {
        (0..40).for_each(|_| flow.round());
    }
    assert_near(flow.window(), undisturbed.window(), 1e-9);
}

/// rfc-9438 sec. 4.9.2: a window that has grown beyond the one before the loss stays.
#[test]
fn a_window_that_has_outgrown_its_loss_stays() {
    let mut flow = lost_at_a_hundred(&[]);
    (0..100).for_each(|_| flow.round());
    let window = flow.window();
    assert!(window > 100.0);
    flow.undo();
    assert_near(flow.window(), window, 0.0);
}

/// [rfc-9406] by hand: 40 segments when the RTT rises from 100 to 115 ms. Eight ACKs add one each, of which the eighth sees the rise;
/// from there on each adds a quarter: 56, 70, 87.5, 109.25, 136.5 at the end of five rounds. Without it the window doubles on.
#[test]
fn the_first_slow_start_ends_when_the_rtt_rises() {
    let play = |slow_start| {
        let mut flow = Flow::new("cubic", &[("initial_window", "10"), ("slow_start", slow_start)]);
        flow.rounds(2);
        flow.rtt = Span::from_millis(115);
        flow.rounds(6);
        flow
    };
    let flow = play("hystart");
    assert_near(flow.gauge("ssthresh"), 136.5, 1e-12);
    assert_near(flow.window(), 136.5, 0.02);
    let flow = play("standard");
    assert_near(flow.window(), 2560.0, 1e-12);
    assert!(flow.gauge("ssthresh").is_infinite());
}

/// The undo of a spurious loss restores the slow start: the window goes on doubling.
#[test]
fn a_spurious_loss_ends_no_slow_start() {
    let mut flow = Flow::new("cubic", &[("initial_window", "10"), ("slow_start", "hystart")]);
    flow.rounds(2);
    flow.lose(Cause::Congestion);
    flow.undo();
    flow.round();
    assert_near(flow.window(), 80.0, 1e-12);
}

/// Linux' `hystart_update` by hand, on a path of 100 ms. 40 ACKs in a round come 2.5 ms apart: no train. At 80 it is 1.25 ms, and the 42nd ACK is the first that
/// comes more than 50 ms after the first one; 41 have added one each.
#[test]
fn linux_train_of_half_a_round_trip_ends_slow_start() {
    let mut flow = Flow::new("cubic", &[("initial_window", "10"), ("slow_start", "linux")]);
    flow.rounds(3);
    assert_near(flow.window(), 80.0, 0.0);
    flow.round();
    assert_near(flow.gauge("ssthresh"), 121.0, 0.0);
}

/// 100 ms and an eighth of it are 112.5. Eight samples of 115 say nothing; the ninth ends slow start, after eight ACKs that added one each.
#[test]
fn linux_delay_ends_slow_start_with_the_ninth_sample() {
    let play = |rtt| {
        let mut flow = Flow::new("cubic", &[("initial_window", "10"), ("slow_start", "linux")]);
        flow.rounds(2);
        flow.rtt = Span::from_millis(rtt);
        flow.round();
        flow
    };
    assert_near(play(115).gauge("ssthresh"), 48.0, 0.0);
    assert!(play(112).gauge("ssthresh").is_infinite());
}
