use anabranch_units::{Bytes, Span, Time};

use crate::controller::{Ack, Cause, Departure, Limit, PathView, Restart};
use crate::law::fast::FastSettings;
use crate::registry::{self, Settings};
use crate::testing::assert_near;
use crate::testing::bottleneck::Bottleneck;

mod events;

/// [fast-2006] eq. 10: in equilibrium w (1 − baseRTT/RTT) = alpha on any path. On a link of c segments/s that is a window of
/// c · propagation + 1 on the link and alpha in the queue.
#[test]
fn alpha_segments_wait_at_rest() {
    for name in ["fast", "emfast", "rrfast"] {
        for (rate, propagation_millis, alpha) in [(1000.0, 100, 20.0), (5000.0, 40, 50.0), (200.0, 250, 8.0)] {
            let mut path = Bottleneck::new(rate);
            let flow = path.flow(name, &[("alpha", &alpha.to_string())], propagation_millis);
            path.run(60.0);
            let pipe = rate * propagation_millis as f64 / 1e3 + 1.0;
            assert_near(path.window(flow), pipe + alpha, 1e-4);
            // What is in flight is whole.
            assert!((path.gauge(flow, "backlog") - alpha).abs() <= 1.0, "{name}: {}", path.gauge(flow, "backlog"));
        }
    }
}

/// With the module's steps, a window that grows from below stops up to two segments short of alpha.
#[test]
fn module_steps_rest_short_of_alpha() {
    let mut path = Bottleneck::new(1000.0);
    let flow = path.flow("fast", &[("clockwork", "ns2_module")], 100);
    path.run(60.0);
    let resting = path.window(flow);
    assert!((119.0..=121.0).contains(&resting), "{resting} segments on a pipe of 101 with alpha 20");
    path.run(10.0);
    assert_near(path.window(flow), resting, 0.0);
}

/// The whole law with the module's steps and baseRTT in a golden run of the module (mfast-2019, alpha 8, beta 2), ACK by ACK from the
/// handshake until the window stands. The run prints microseconds, so an RTT needs two of slack to come after no less than itself.
#[test]
fn module_steps_are_those_of_the_module() {
    let pairs = [("alpha", "8"), ("beta", "2"), ("initial_window", "2")];
    let pairs = pairs.into_iter().chain([("clockwork", "ns2_module")]);
    let row = registry::find("fast").unwrap();
    let mut law = row.build(&Settings::parse(row, pairs).unwrap());
    let micros = |text: &str| Span::from_micros((text.parse::<f64>().unwrap() * 1e6).round() as u64);
    let run = include_str!("../../../tests/data/mfast-2019-start.csv");
    for (index, line) in run.lines().skip(1).enumerate() {
        let fields: Vec<&str> = line.split(',').collect();
        let (now, rtt) = (Time::ZERO + micros(fields[0]), micros(fields[2]) + Span::from_micros(2));
        // The acknowledged segment has left the network; the rest of the window is in flight.
        let flight = law.window().floor() - 1.0;
        let mss = Bytes::new(960);
        let view = PathView { now, flight, mss, rtt_smoothed: Some(rtt), rtt_min: Some(rtt), ..PathView::default() };
        if index == 0 {
            law.on_restart(&view, Restart::Established);
            continue;
        }
        let expected: f64 = fields[1].parse().unwrap();
        assert!((law.window() - expected).abs() < 1e-3, "at {now}: expected {expected}, got {}", law.window());
        let departure = Departure { time: now - rtt, ..Departure::default() };
        law.on_ack(
            &view,
            &Ack {
                newly_acked: 1.0,
                rtt: Some(rtt),
                size: mss,
                arrival: now,
                departure,
                limit: Limit::Window,
                ..Ack::default()
            },
        );
    }
    assert_near(law.window(), 51.0, 0.0);
}

/// Between alpha and beta the window stands still: alpha ≤ w − 101 < beta.
#[test]
fn the_dead_band_is_entered_and_not_left() {
    let mut path = Bottleneck::new(1000.0);
    let flow = path.flow("fast", &[("beta", "40"), ("initial_window", "300")], 100);
    path.run(30.0);
    let resting = path.window(flow);
    assert!((121.0..141.5).contains(&resting), "{resting}");
    path.run(10.0);
    assert_near(path.window(flow), resting, 0.0);
}

/// Four flows that all know the path keep 4 alpha queued and get a quarter each.
#[test]
fn flows_that_begin_together_share() {
    let mut path = Bottleneck::new(10_000.0);
    (0..4).for_each(|_| _ = path.flow("fast", &[("initial_window", "1")], 100));
    path.run(60.0);
    let (queue, rates) = path.means(20.0);
    assert_near(queue, 80.0, 0.02);
    for rate in rates {
        assert_near(rate, 2500.0, 0.04);
    }
}

/// A late comer takes the alpha segments of the first flow for propagation delay. With shares x and y of the link and a queue q:
/// x q = alpha and y (q − alpha) = alpha, x + y = 1, so q = alpha (3 + √5)/2 and y/x = (1 + √5)/2, the golden ratio.
#[test]
fn a_late_comer_gets_the_golden_ratio() {
    let mut path = Bottleneck::new(2000.0);
    path.flow("fast", &[], 100);
    path.run(60.0);
    path.flow("fast", &[("initial_window", "1")], 100);
    path.run(120.0);
    let (queue, rates) = path.means(60.0);
    assert_near(queue, 20.0 * (3.0 + 5.0_f64.sqrt()) / 2.0, 0.02);
    assert_near(rates[1] / rates[0], f64::midpoint(1.0, 5.0_f64.sqrt()), 0.02);
}

/// A flow with alpha = 4 on 1250 segments/s, whose route grows from 125 to 376 ms after 30 s.
fn rerouted(name: &str, pairs: &[(&str, &str)], seconds: f64) -> (Bottleneck, usize) {
    let pairs: Vec<_> = [("alpha", "4")].iter().chain(pairs).copied().collect();
    let mut path = Bottleneck::new(1250.0);
    let flow = path.flow(name, &pairs, 125);
    path.run(30.0);
    if name != "fast" {
        assert_near(path.gauge(flow, "reroutes") + 1.0, 1.0, 0.0);
    }
    path.reroute(flow, 376);
    path.run(seconds);
    (path, flow)
}

/// rrfast-2017 scenario 1, closed form: the law still keeps alpha segments queued, w (1 − 125/376) = 4, and takes the longer
/// route for a queue: w = 6.0, and 4 segments in 251 ms are 15.9 segments/s of 1250.
#[test]
fn without_the_reroute_rule_a_longer_route_starves() {
    let (mut path, flow) = rerouted("fast", &[], 60.0);
    assert_near(path.window(flow), 4.0 / (1.0 - 125.0 / 376.0), 0.01);
    let (_, rates) = path.means(30.0);
    assert_near(rates[0], 4.0 / 0.251, 0.03);
}

/// With the rule the path is full again; the pipe is 1250 · 0.376 + 1 = 471 segments.
#[test]
fn with_the_reroute_rule_a_longer_route_is_filled() {
    for (name, pairs) in
        [("rrfast", &[][..]), ("rrfast", &[("base_rtt.reading", "no_fall")]), ("rrfast", &[("average_weight", "0.25")])]
    {
        let (mut path, flow) = rerouted(name, pairs, 30.0);
        assert_near(path.gauge(flow, "rtt_base_s"), 0.3768, 1e-6);
        let (_, rates) = path.means(30.0);
        assert!(rates[0] > 0.95 * 1250.0, "{name} {pairs:?}: {} of 1250 segments/s", rates[0]);
    }
}

/// A reroute starts avgRTT anew. Kept, as the paper leaves it, it is that of the shorter route, and less than the new baseRTT.
#[test]
fn reroute_restarts_the_average_or_keeps_it() {
    for (average, is_below) in [("restart", false), ("keep", true)] {
        let (mut path, flow) = rerouted("rrfast", &[("base_rtt.average", average)], 0.0);
        while path.gauge(flow, "reroutes") < 1.0 {
            path.run(0.01);
            assert!(path.now.as_secs_f64() < 60.0, "no reroute with {average}");
        }
        let (base, mean) = (path.gauge(flow, "rtt_base_s"), path.gauge(flow, "rtt_average_s"));
        assert_eq!(mean < base, is_below, "{average}: {mean} s over {base} s");
    }
}

/// Twenty segments at 200/s are 100 ms of queue on a route of 50 ms: the RTT is never near baseRTT, and `not_near` detects a reroute in
/// that, and another one later.
#[test]
fn a_long_queue_on_a_short_path_looks_like_a_route() {
    let mut path = Bottleneck::new(200.0);
    let flow = path.flow("rrfast", &[], 50);
    path.run(60.0);
    let (count, queue) = (path.gauge(flow, "reroutes"), path.queue());
    assert!(count > 0.0 && queue > 30.0, "{count} reroutes, {queue} queued");
}

/// The path of emfast-2019 (187.5 segments/s, 253 ms, alpha 8) with one loss in equilibrium: the seconds from the loss until the window
/// is within a twentieth of its size before.
fn refill_seconds(name: &str) -> f64 {
    let mut path = Bottleneck::new(187.5);
    let flow = path.flow(name, &[("alpha", "8")], 248);
    path.run(60.0);
    let before = path.window(flow);
    path.doom(flow, Cause::Congestion);
    let began = path.now;
    path.run(0.6);
    assert!(path.window(flow) < 0.6 * before, "{name}: the loss halves");
    while path.window(flow) < 0.95 * before {
        path.run(0.01);
    }
    path.now.since(began).as_secs_f64()
}

/// Line 2 of emfast-2019's algorithm compares the latest IPD and RTT with averages of the same weight.
#[test]
fn both_averages_of_emfast_are_as_slow() {
    let settings = Settings::default_for(registry::find("emfast").unwrap());
    let settings: &FastSettings = settings.table().expect("it is of the family");
    assert_near(settings.refill.rule().expect("it has CCaFR").ipd_weight, settings.weights.most, 0.0);
}

/// emfast-2019: 3.87 s instead of 5.43 s, 29 % less. Here the path is the same, but the SYN does not count for baseRTT and steps are not
/// whole; a quarter less is still more than a step of two round trips.
#[test]
fn ccafr_refills_faster() {
    let [plain, refill] = ["fast", "emfast"].map(refill_seconds);
    assert!(refill < 0.75 * plain, "per_rtt takes {plain} s, ccafr {refill} s");
}

/// The mean rate and the least window of a flow on 1000 segments/s and 100 ms, with the random loss rate `damage`.
fn damaged(pairs: &[(&str, &str)], damage: f64) -> (f64, f64) {
    let mut path = Bottleneck::new(1000.0);
    let flow = path.flow("fast", pairs, 100);
    path.run(20.0);
    path.damage = damage;
    let began = path.delivered(flow);
    let mut least = f64::INFINITY;
    for _ in 0..300 {
        path.run(0.1);
        least = least.min(path.window(flow));
    }
    assert!(path.losses(flow) > 0);
    ((path.delivered(flow) - began) / 30.0, least)
}

/// A random loss of 1 %: under composite the window stays at 121 segments, and the rate is lower only by the lost segments. Halving
/// costs more than half of the rate.
#[test]
fn composite_holds_the_window_on_random_loss() {
    let (rate, least) = damaged(&[("loss", "composite")], 0.01);
    assert!(least > 118.0 && rate > 985.0, "{rate} segments/s, at least {least}");
    let (rate, _) = damaged(&[], 0.01);
    assert!(rate < 500.0, "{rate} segments/s");
}

/// Where alpha segments are less than the threshold (20 in 50,000/s are 0.4 ms of 0.75), FAST increases until the threshold
/// is queued, 37 segments and more.
#[test]
fn multiplicative_increase_goes_on_to_its_threshold() {
    let mut path = Bottleneck::new(50_000.0);
    path.flow("fast", &[], 20);
    path.run(10.0);
    let (queue, _) = path.means(2.0);
    assert!(queue > 30.0, "{queue}");
}

/// A shallow buffer has losses under any window law; the flow keeps going.
#[test]
fn a_shallow_buffer_does_not_starve() {
    for name in ["fast", "emfast", "rrfast"] {
        let mut path = Bottleneck::new(1000.0);
        path.buffer = 10.0;
        path.flow(name, &[], 50);
        path.run(20.0);
        let (_, rates) = path.means(20.0);
        assert!(rates[0] > 300.0, "{name}: {} segments/s", rates[0]);
    }
}

/// A preset is nothing but defaults.
#[test]
fn presets_are_settings_of_fast() {
    let windows = |name, pairs: &[(&str, &str)]| {
        let mut path = Bottleneck::new(1000.0);
        let flow = path.flow(name, pairs, 50);
        path.damage = 0.002;
        (0..200).for_each(|_| path.run(0.1));
        path.window(flow).to_bits()
    };
    assert_eq!(windows("emfast", &[]), windows("fast", &[("refill", "ccafr")]));
    assert_eq!(windows("rrfast", &[]), windows("fast", &[("base_rtt", "reroute")]));
}
