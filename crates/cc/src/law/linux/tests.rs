use super::*;
use crate::controller::Cause;
use crate::testing::{Flow, assert_near};

/// ns-2.35 on the path of ctcp-2019 Fig. 2 without errors: `cwnd_` each round after the threshold of 50, as the agent
/// prints it.
#[test]
fn congestion_avoidance_as_ns2_prints_it() {
    let mut flow = Flow::new("linux", &[("initial_window", "50"), ("initial_ssthresh", "50")]);
    let printed = [50.0, 51.0, 52.0, 53.0, 54.0];
    for window in printed {
        assert_near(flow.window(), window, 0.0);
        // 50 + 1/50 + ... needs one ACK more than a window's worth to pass the next whole number.
        flow.round();
        flow.ack(1.0);
    }
}

/// ctcp-2019 Table 2: 146302 is the highest packet sent without errors. In that run of ns-2.35 the last ACK is for packet
/// 145760, so 145761 ACKs have led to a window of 542. (A module such as ns-2's naive_reno would end at 24811.)
#[test]
fn the_window_at_the_end_of_table_2() {
    let mut flow = Flow::new("linux", &[("initial_window", "2"), ("initial_ssthresh", "50")]);
    for _ in 0..145_761 {
        flow.ack(1.0);
    }
    assert_near(flow.window(), 146_302.0 - 145_760.0, 0.0);
}

/// ns-2.35 at an error rate of 0.01: 27 → 13 (threshold 13), 7 → 3.5 (3), 5 → 2.5 (2).
#[test]
fn a_loss_halves_the_integer_part() {
    for (window, value, threshold) in [(27.8, 13.5, 13.0), (7.89, 3.5, 3.0), (5.16, 2.5, 2.0), (2.9, 1.0, 2.0)] {
        assert_near(halve(window), value, 0.0);
        assert_near(ssthresh(window), threshold, 0.0);
    }
}

/// Growth is by the ACK: one that covers ten segments opens the window by one.
#[test]
fn growth_is_by_the_ack() {
    let mut flow = Flow::new("linux", &[]);
    flow.ack(10.0);
    assert_near(flow.window(), 11.0, 0.0);
}

/// A window of three leads to 1.5, of which one segment is used. After the repair the window is the threshold of two.
#[test]
fn the_end_of_recovery_lifts_the_window_to_the_threshold() {
    let mut flow = Flow::new("linux", &[("initial_window", "3")]);
    flow.lose(Cause::Congestion);
    assert_near(flow.window(), 2.0, 0.0);
    assert_near(moderate(1.0, 10.0, 2.0), 5.0, 0.0);
}
