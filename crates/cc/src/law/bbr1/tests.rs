//! Expectations are from the draft's numbers and from closed forms of an empty FIFO link.

use anabranch_units::Rate;

use crate::controller::{Cause, Restart, Signal};
use crate::testing::bottleneck::Bottleneck;
use crate::testing::{Flow, assert_near};

/// A link of 1000 segments a second and 100 ms.
fn link() -> (Bottleneck, usize) {
    let mut path = Bottleneck::new(1000.0);
    path.paced = true;
    let flow = path.flow("bbr1", &[], 100);
    (path, flow)
}

/// 2/ln 2 of ten segments of 1000 bytes in 100 ms.
#[test]
fn the_first_pace_is_that_of_the_handshake() {
    let mut flow = Flow::new("bbr1", &[("initial_window", "10")]);
    flow.restart(Restart::Established);
    assert_eq!(flow.controller.pacing_rate(), Some(Rate::from_bits_per_second(2_308_312)));
}

/// The mean of the gains is one, and the queue of a probe is drained in the step after it.
#[test]
fn it_fills_the_link_and_keeps_it_empty() {
    let (mut path, flow) = link();
    path.run(4.0);
    assert_near(path.gauge(flow, "bw_segments_per_s"), 1000.0, 0.01);
    let (queue, rates) = path.means(20.0);
    assert!(rates[0] > 940.0 && queue < 10.0, "rate {}, queue {queue}", rates[0]);
}

/// [bbr-2016]: no more than two bandwidth-delay products, here of 101 segments, and three quanta of two segments.
#[test]
fn two_bandwidth_delay_products_are_the_most() {
    let (mut path, flow) = link();
    path.run(4.0);
    let most = (0..500).fold(0.0_f64, |most, _| {
        path.run(0.01);
        most.max(path.window(flow))
    });
    assert_near(most, 208.0, 0.01);
}

/// The route becomes 50 ms longer after 4 s. Ten seconds after the least RTT was measured, ProbeRTT sends four segments for 200 ms and a round.
#[test]
fn ten_seconds_after_the_least_rtt_it_looks_for_it() {
    let (mut path, flow) = link();
    path.run(4.0);
    path.reroute(flow, 150);
    let looks = |path: &mut Bottleneck, seconds: u32| {
        let mut steps = 0;
        for _ in 0..100 * seconds {
            path.run(0.01);
            if path.gauge(flow, "state") as u32 == 3 {
                assert!(path.window(flow) <= 4.0, "the window is {}", path.window(flow));
                steps += 1;
            }
        }
        steps
    };
    assert_eq!(looks(&mut path, 9), 0);
    let steps = looks(&mut path, 3);
    assert!((20..80).contains(&steps), "{steps}");
    assert_near(path.gauge(flow, "rtt_min_s"), 0.151, 0.001);
}

/// [bbr-2016]: the rate is the largest of ten rounds, so losses below a fifth do not change it.
#[test]
fn random_losses_do_not_slow_it() {
    for (damage, least) in [(0.01, 0.93), (0.05, 0.85)] {
        let (mut path, _) = link();
        path.damage = damage;
        path.run(5.0);
        let (_, rates) = path.means(30.0);
        assert!(rates[0] > 1000.0 * least * (1.0 - damage), "{damage}: {}", rates[0]);
    }
}

#[test]
fn a_recovery_conserves_packets_and_then_gives_back_the_window() {
    let mut flow = Flow::new("bbr1", &[("initial_window", "40")]);
    flow.restart(Restart::Established);
    flow.flight_cap = 30.0;
    flow.loss(Signal::DupAcks, Cause::Congestion);
    assert_near(flow.window(), 31.0, 1e-12);
    flow.controller.on_recovered(&flow.view());
    assert_near(flow.window(), 40.0, 1e-12);
    flow.loss(Signal::Timeout, Cause::Unknown);
    assert_near(flow.window(), 1.0, 1e-12);
    flow.restart(Restart::AfterTimeout);
    assert_near(flow.window(), 40.0, 1e-12);
}
