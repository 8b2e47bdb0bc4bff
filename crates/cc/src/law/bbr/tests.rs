//! Expectations are from the draft's numbers and from closed forms of an empty FIFO link.

use anabranch_units::Rate;

use crate::controller::{Cause, Restart, Signal, Supply};
use crate::law::bbr::State;
use crate::testing::bottleneck::Bottleneck;
use crate::testing::{Flow, assert_near};

fn state(path: &Bottleneck, flow: usize) -> u32 {
    path.gauge(flow, "state") as u32
}

fn number(state: State) -> u32 {
    state as u32
}

/// A link of 1000 segments a second and 100 ms.
fn link() -> (Bottleneck, usize) {
    let mut path = Bottleneck::new(1000.0);
    path.paced = true;
    let flow = path.flow("bbr", &[], 100);
    (path, flow)
}

/// [bbr-draft] sec. 5.6.2: 2.77 initial windows in an RTT, here of 100 ms and segments of 1000 bytes.
#[test]
fn the_first_pace_is_that_of_the_handshake() {
    let mut flow = Flow::new("bbr", &[("initial_window", "10")]);
    assert_eq!(flow.controller.pacing_rate(), None);
    flow.restart(Restart::Established);
    assert_eq!(flow.controller.pacing_rate(), Some(Rate::from_bits_per_second(2_216_000)));
}

/// The bandwidth-delay product is 1000/s · 101 ms = 101 segments. Only probes build a queue: a quarter of the product each round, for some rounds
/// of each cycle.
#[test]
fn it_fills_the_link_and_keeps_it_empty() {
    let (mut path, flow) = link();
    path.run(4.0);
    assert_near(path.gauge(flow, "bw_max_segments_per_s"), 1000.0, 0.01);
    assert_near(path.gauge(flow, "rtt_min_s"), 0.101, 0.001);
    let (queue, rates) = path.means(20.0);
    assert!(rates[0] > 950.0 && queue < 20.0, "rate {}, queue {queue}", rates[0]);
}

/// [bbr-draft] sec. 5.6.4.2: two bandwidth-delay products and the aggregation of ACKs, which is zero here; 2.25 products and two segments in a
/// probe.
#[test]
fn no_more_than_two_bandwidth_delay_products_are_in_flight() {
    let (mut path, flow) = link();
    path.run(4.0);
    let mut most = 0.0_f64;
    for _ in 0..2000 {
        path.run(0.01);
        let extra = path.gauge(flow, "extra_acked");
        most = most.max(path.window(flow) - extra);
    }
    assert!((201.0..=232.0).contains(&most), "{most}");
}

/// [bbr-draft] sec. 5.3.4: every 5 s, for at least 200 ms and a round.
#[test]
fn every_five_seconds_it_looks_for_the_rtt() {
    let (mut path, flow) = link();
    let (mut entries, mut was) = (vec![], false);
    let mut lasted = vec![];
    for step in 0..3000 {
        path.run(0.01);
        let is = state(&path, flow) == number(State::ProbeRtt);
        let now = f64::from(step) * 0.01;
        if is && !was {
            entries.push(now);
        }
        if was && !is {
            lasted.push(now - entries.last().unwrap());
        }
        was = is;
    }
    assert!(entries.len() >= 4, "{entries:?}");
    for pair in entries.windows(2) {
        // From the end of one to the next: 5 s, if none of the probes showed a lower RTT.
        assert!((5.0..6.0).contains(&(pair[1] - pair[0])), "{entries:?}");
    }
    assert!(lasted.iter().all(|lasted| (0.2..0.5).contains(lasted)), "{lasted:?}");
}

/// From Down to the next probe it is 2 to 3 s, as 63 rounds of 101 ms are longer; Up takes three rounds to see that there is no more. ProbeRTT, each
/// 5 s, begins the wait anew.
#[test]
fn a_cycle_probes_after_two_to_three_seconds() {
    let (mut path, flow) = link();
    let (mut ups, mut was) = (vec![], 0);
    for step in 0..4000 {
        path.run(0.005);
        let is = state(&path, flow);
        if is == number(State::Up) && was == number(State::Refill) {
            ups.push(f64::from(step) * 0.005);
        }
        was = is;
    }
    assert!(ups.len() >= 4, "{ups:?}");
    let gaps: Vec<f64> = ups.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| (2.4..7.0).contains(gap)), "{gaps:?}");
    assert!(gaps.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 0.05), "they are drawn: {gaps:?}");
}

/// [bbr-draft] sec. 5.3.1.2: three rounds in which the rate grows by less than a quarter although the application had enough data.
#[test]
fn startup_ends_after_three_rounds_without_growth() {
    for (supply, rounds) in [(Supply::Enough, 6), (Supply::Short, 10)] {
        let mut flow = Flow::new("bbr", &[("initial_window", "10")]);
        flow.restart(Restart::Established);
        flow.supply = supply;
        flow.flight_cap = 10.0;
        let mut startup = 0;
        while flow.gauge("state") as u32 == number(State::Startup) && startup < 10 {
            flow.round();
            startup += 1;
        }
        assert!(startup <= rounds && (supply == Supply::Enough || startup == 10), "{supply:?}: {startup} rounds");
    }
}

/// Random losses below 2 % reduce the rate little: the short-term bounds are never below what is delivered.
#[test]
fn one_per_cent_of_random_losses_takes_little() {
    let (mut path, flow) = link();
    path.damage = 0.01;
    path.run(5.0);
    let (_, rates) = path.means(60.0);
    assert!(rates[0] > 700.0, "{}", rates[0]);
    assert!(path.gauge(flow, "bw_max_segments_per_s") > 900.0);
}

/// [bbr-draft] sec. 5.5.10.3: a loss in a round of Cruise sets the short-term bounds, to 0.7 of the model or to what was delivered.
#[test]
fn losses_outside_probes_lower_the_bounds_for_a_while() {
    let (mut path, flow) = link();
    path.run(4.0);
    let mut was = number(State::Cruise);
    let is_there = (0..1000).any(|_| {
        path.run(0.01);
        let before = std::mem::replace(&mut was, state(&path, flow));
        was == number(State::Cruise) && before == number(State::Down)
    });
    assert!(is_there, "it never cruises");
    assert!(path.gauge(flow, "inflight_shortterm").is_infinite());
    path.doom(flow, Cause::Random);
    path.run(0.35);
    let bound = path.gauge(flow, "inflight_shortterm");
    assert!(bound.is_finite() && bound >= 90.0, "{bound}");
    path.run(3.5);
    assert!(path.gauge(flow, "inflight_shortterm").is_infinite(), "a probe forgets them");
}

/// [bbr-draft] sec. 5.6.4.4.
#[test]
fn a_timeout_leaves_what_is_in_flight_and_one_more() {
    let mut flow = Flow::new("bbr", &[("initial_window", "40")]);
    flow.restart(Restart::Established);
    flow.flight_cap = 0.0;
    flow.loss(Signal::Timeout, Cause::Unknown);
    assert_near(flow.window(), 1.0, 1e-12);
    flow.undo();
    assert_near(flow.window(), 40.0, 1e-12);
    flow.loss(Signal::DupAcks, Cause::Congestion);
    assert_near(flow.window(), 40.0, 1e-12);
}

/// Two flows that meet share the link; BBR's convergence is slow, so within a factor of two after a minute.
#[test]
fn two_flows_share_the_link() {
    let (mut path, _) = link();
    path.buffer = 200.0;
    path.run(10.0);
    path.flow("bbr", &[], 100);
    path.run(40.0);
    let (_, rates) = path.means(60.0);
    let (least, most) = (rates[0].min(rates[1]), rates[0].max(rates[1]));
    assert!(most < 2.0 * least && least + most > 900.0, "{rates:?}");
}

/// Nothing of the old route's model is left on a new route.
#[test]
fn a_new_path_begins_anew() {
    let mut flow = Flow::new("bbr", &[]);
    flow.restart(Restart::Established);
    flow.rounds(10);
    assert!(flow.window() > 10.0);
    flow.restart(Restart::PathChanged);
    assert_near(flow.window(), 10.0, 1e-12);
    assert!(flow.gauge("bw_max_segments_per_s") < 1e-9);
}
