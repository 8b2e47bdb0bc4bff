use std::iter;

use anabranch_units::SimSpan;

use super::*;
use crate::diagnostic::Diagnostic;
use crate::report::FlowReport;
use crate::run;
use crate::series::{Extreme, Series};
use crate::testing::{self, parse, parsed, ran};

mod classes;
mod sctp;
mod series;
mod tables;

/// A chain whose link takes 8 ms for a packet of 1000 B and holds two packets.
const CHAIN: &str = r#"
duration = "20s"
link = [{ id = "a", from = "n0", to = "n1", rate = "1Mbit/s", delay = "10ms" }]
flow = [{ id = "f", from = "n0", to = "n1", transport = "ns2/sack", packet = "1040B", window = 40 }]
"#;

fn scenario(overrides: &[&str]) -> Result<Scenario, Diagnostic> {
    parse(CHAIN, overrides)
}

/// The size of a scenario is the one that the simulator counts: two nodes, an address at each end of the flow, and four more with two
/// paths.
#[test]
fn a_scenario_knows_how_large_its_world_is() {
    let size = |overrides: &[&str]| {
        let scenario = scenario(overrides).unwrap();
        let parts = Parts::assemble(&scenario, Recording::Counters, Vec::new()).unwrap();
        (scenario.size(), parts.builder.size())
    };
    let (said, counted) = size(&[]);
    assert_eq!((said, said.nodes, said.addresses, said.links, said.hosts), (counted, 2, 2, 2, 2));
    let path = "{ first = \"a\", last = \"a\" }";
    let paths = format!("flow.f.paths=[{path}, {path}]");
    let (said, counted) =
        size(&["flow.f={ id = \"f\", from = \"n0\", to = \"n1\", transport = \"ns2/sctp\" }", &paths]);
    assert_eq!((said, said.addresses), (counted, 6));
}

#[track_caller]
fn flow(overrides: &[&str]) -> FlowReport {
    run::run(&scenario(overrides).unwrap()).unwrap().flows.remove(0)
}

/// The SYN carries nothing, and 9,001 bytes are ten packets of 1000, the last one padded.
#[test]
fn a_fixed_workload_is_sent_and_no_more() {
    let flow = flow(&["flow.f.workload={ kind = \"fixed\", bytes = \"9001B\" }"]);
    assert_eq!((flow.delivered_packets, flow.max_seq), (11, Some(10)));
}

/// Three messages of two packets, one a second: the last is offered at 2 s.
#[test]
fn messages_come_one_after_the_other() {
    let messages = "flow.f.workload={ kind = \"messages\", bytes = \"2kB\", count = 3, every = \"1s\" }";
    assert_eq!(flow(&[messages]).delivered_packets, 7);
    assert_eq!(flow(&[messages, "duration=1.5s"]).delivered_packets, 5);
}

/// 20 ms there and back by the link `direct`; 20 ms by way of `m`, and 10 ms back.
const DETOUR: &str = r#"
duration = "5s"
link = [
    { id = "direct", from = "a", to = "b", rate = "1Gbit/s", delay = "10ms" },
    { id = "out", from = "a", to = "m", rate = "1Gbit/s", delay = "10ms" },
    { id = "in", from = "m", to = "b", rate = "1Gbit/s", delay = "10ms" },
]
route = [{ node = "a", to = "b", via = "out" }]
flow = [{ id = "f", from = "a", to = "b", transport = "ns2/fast" }]
"#;

/// The packets that a flow sends by `direct` if flow and route both start at `at`, and the least RTT that it has measured in the
/// end.
fn detour(at: &str) -> (u64, f64) {
    let scenario = parsed(DETOUR, &[&format!("flow.f.start={at}"), &format!("route.0.at={at}")]);
    let series = vec!["flow.f.base_rtt".to_owned()];
    let (run::Run { report, .. }, trace) =
        run::run_recorded(&scenario, &series, iter::empty()).expect("no law of somebody else");
    let found = trace.lookup(&series[0]).unwrap();
    (report.links[0].forwarded_packets, found.series.unwrap().value_at(found.end).unwrap())
}

/// 8.32 µs for a packet of 1040 bytes on each of two links, and 0.32 µs for the acknowledgement.
#[test]
fn a_route_holds_for_what_is_sent_when_it_begins() {
    for at in ["0s", "2s"] {
        let (direct, base_rtt) = detour(at);
        assert_eq!(direct, 0, "packets by the direct link, at {at}");
        assert!((0.030..0.030_02).contains(&base_rtt), "at {at}: {base_rtt} s");
    }
}

/// Every other packet is acknowledged, so about half as many acknowledgements pass the link back.
#[test]
fn a_delaying_sink_with_sack_sends_half_of_the_acknowledgements() {
    let backward = |sink: &str| run::run(&scenario(&[sink]).unwrap()).unwrap().links[1].forwarded_packets;
    let (each, delayed) = (backward("flow.f.sink=sack1"), backward("flow.f.sink=sack1_delayed"));
    assert!((0.45..0.6).contains(&(delayed as f64 / each as f64)), "{delayed} of {each}");
}

#[test]
fn lost_acknowledgements_are_no_dropped_packets() {
    let lossy = "link.a.reverse={ error = { kind = \"list\", packets = [3, 5] } }";
    let report = run::run(&scenario(&[lossy]).unwrap()).unwrap();
    assert_eq!((report.flows[0].dropped_packets, report.links[1].dropped_packets), (0, 2));
    let report = run::run(&scenario(&["link.a.error={ kind = \"list\", packets = [3, 5] }"]).unwrap()).unwrap();
    assert_eq!((report.flows[0].dropped_packets, report.links[1].dropped_packets), (2, 0));
}

/// Packets 300 to 302 and 310 are lost and arrive late, after later packets: four are reordered.
#[test]
fn losses_in_a_row_and_late_packets_are_counted() {
    let lost = "link.a.error={ kind = \"list\", packets = [300, 301, 302, 310] }";
    let report = run::run(&scenario(&[lost]).unwrap()).unwrap();
    let (flow, link) = (&report.flows[0], &report.links[0]);
    assert_eq!((flow.dropped_packets, flow.dropped_in_row_max, flow.reordered_packets), (4, 3, Some(4)));
    assert_eq!((link.dropped_packets, link.error_packets), (4, 4));
    // Drops of a full queue are no errors.
    let report = run::run(&scenario(&[lost, "link.a.queue={ kind = \"drop_tail\", packets = 5 }"]).unwrap()).unwrap();
    let link = &report.links[0];
    assert!(link.error_packets == 4 && link.dropped_packets > 4, "{link:?}");
}

/// With every agent, exactly the retransmitted packets are reordered.
#[test]
fn retransmitted_packets_are_reordered() {
    let late = |transport: &str| {
        let text = CHAIN.replace("ns2/sack", transport).replace(", window = 40", "");
        let lost = "link.a.error={ kind = \"list\", packets = [300, 301, 302, 310] }";
        let flow = testing::run(&text, &[lost]).flows.remove(0);
        (flow.reordered_packets.unwrap(), flow.dropped_packets)
    };
    assert_eq!(late("anabranch"), (4, 4));
    let (late, lost) = late("ns2/sctp");
    assert!(late == lost && lost >= 4, "{late} late of {lost} that were lost");
}

/// ctcp-2019, section 3: one hole is a random loss; two holes in one window at the third duplicate ACK are congestion.
#[test]
fn random_losses_are_counted() {
    for transport in
        ["transport = \"ns2/composite\"", "transport = \"anabranch\", cc = { name = \"composite\" }, rbuf = \"40kB\""]
    {
        let random = |packets: &str| {
            let text = CHAIN.replace("transport = \"ns2/sack\"", transport);
            let text = if transport.contains("anabranch") { text.replace(", window = 40", "") } else { text };
            let lost = format!("link.a.error={{ kind = \"list\", packets = {packets} }}");
            testing::run(&text, &["link.a.rate=100Mbit/s", &lost]).flows.remove(0).random_losses
        };
        assert_eq!(random("[300]"), Some(1), "{transport}");
        assert_eq!(random("[300, 302]"), Some(0), "{transport}");
        assert_eq!(random("[300, 1300]"), Some(2), "{transport}");
    }
}

/// The first two data packets of an association are lost, and so are their retransmissions. Nothing else was acknowledged, so all timeouts are
/// consecutive. A hundred losses later, after thousands of ACKs, begin a new count.
#[test]
fn timeouts_in_a_row_are_counted() {
    let flow = |packets: &str| {
        let text = CHAIN.replace("ns2/sack", "ns2/sctp").replace(", window = 40", "").replace("20s", "100s");
        let lost = format!("link.a.error={{ kind = \"list\", packets = {packets} }}");
        let flow = testing::run(&text, &[&lost]).flows.remove(0);
        (flow.timeouts.unwrap(), flow.timeouts_in_row_max.unwrap())
    };
    let later = (3000..3100).map(|packet| packet.to_string()).collect::<Vec<_>>().join(", ");
    assert_eq!(flow("[]"), (0, 0));
    assert_eq!(flow("[2, 3, 4, 5]"), (4, 4));
    let (all, in_row) = flow(&format!("[2, 3, 4, 5, {later}]"));
    assert!(in_row >= 4 && all > in_row, "{in_row} of {all} in a row");
}

/// Starts are within the jitter, and each flow has its own.
#[test]
fn flows_start_at_random_within_their_jitter() {
    let start = |seed: &str| {
        let scenario = scenario(&["flow.f.start_jitter=500ms", seed]).unwrap();
        Simulation::build(&scenario, Recording::Counters).unwrap().flows[0].start
    };
    let starts = ["seed=1", "seed=2", "seed=1"].map(start);
    assert!(starts[0] == starts[2] && starts[0] != starts[1], "{starts:?}");
    assert!(starts.iter().all(|start| start.since(SimTime::ZERO) < SimSpan::from_millis(500)), "{starts:?}");
}

/// Two flows without a common link: a second flow does not change the first, whose coarse clock decides which losses count as random.
/// With ns-2's clock it does, as in ns-2.
#[test]
fn a_flow_keeps_its_draws_when_another_is_added() {
    let both = r#"
duration = "60s"
link = [
    { id = "a", from = "x", to = "y", rate = "10Mbit/s", delay = "20ms", error = { kind = "uniform", rate = 0.03 } },
    { id = "b", from = "v", to = "w", rate = "10Mbit/s", delay = "20ms" },
]
flow = [
    { id = "second", from = "v", to = "w", transport = "ns2/sack" },
    { id = "first", from = "x", to = "y", transport = "ns2/composite" },
]"#;
    let second = "    { id = \"second\", from = \"v\", to = \"w\", transport = \"ns2/sack\" },\n";
    assert!(both.contains(second));
    let alone = both.replace(second, "");
    let max_seq = |text: &str, clock: &str| {
        let text = format!("clock = \"{clock}\"\n{text}");
        testing::run(&text, &[]).gauge("flow.first.max_seq").unwrap()
    };
    assert_eq!(max_seq(&alone, "exact").to_bits(), max_seq(both, "exact").to_bits());
    assert_ne!(max_seq(&alone, "ns2").to_bits(), max_seq(both, "ns2").to_bits());
}

/// ns-2.35's `Application/Traffic/Exponential` with its default seed: the number of packets of two sources that arrive, and the
/// times of the first and the last. Both sources draw from one stream, so each depends on the other.
#[test]
fn bursts_with_ns2s_clock_are_those_of_ns2() {
    let text = r#"
duration = "12s"
clock = "ns2"
link = [{ id = "a", from = "n0", to = "n1", rate = "8Gbit/s", delay = "1ms" }]
[[flow]]
id = "u#"
count = 2
from = "n0"
to = "n1"
transport = "on_off"
packet = "1000B"
rate = "80kbit/s"
on = "300ms"
off = "500ms"
start = ["0s", "100ms"]
"#;
    let scenario = parsed(text, &[]);
    let simulation = ran(&scenario, Recording::Trace);
    let summary = |name: &str| {
        let points = simulation.series(name).unwrap().points;
        let (first, last) = (points[0].0, points[points.len() - 1].0);
        format!("{} packets from {first:.6} s to {last:.6} s", points.len())
    };
    assert_eq!(summary("flow.u0.throughput"), "66 packets from 0.394602 s to 11.093388 s");
    assert_eq!(summary("flow.u1.throughput"), "45 packets from 1.415514 s to 11.527913 s");
}

/// The packets that `ns` sends from 1 s on, every 8/3 ms and every 1 ms, until a stop at the 3000th and the 8000th interval: its sum of 3000
/// doubles is a little less than 9, so one packet more leaves; the sum of 8000 is a little more.
#[test]
fn a_source_with_ns2s_clock_stops_as_that_of_ns2() {
    let sent = |clock: &str, rate: &str| {
        let text = format!(
            r#"
duration = "10s"
clock = "{clock}"
link = [{{ id = "a", from = "n0", to = "n1", rate = "100Mbit/s", delay = "5ms" }}]
[[flow]]
id = "u"
from = "n0"
to = "n1"
transport = "cbr"
packet = "1000B"
rate = "{rate}"
start = "1s"
stop = "9s"
"#
        );
        testing::run(&text, &[]).flows[0].sent_packets
    };
    assert_eq!((sent("ns2", "3Mbit/s"), sent("exact", "3Mbit/s")), (3001, 3000));
    assert_eq!((sent("ns2", "8Mbit/s"), sent("exact", "8Mbit/s")), (8000, 8000));
}

/// [multihoming-2010] sec. III: over two paths of which one carries a packet in 8 ms and the other in 4 ms, a connection of FAST
/// sends 375 packets a second, each path its own; with a receive buffer for 30 packets, a path has its part of them.
#[test]
fn fast_uses_all_paths_and_one_receive_buffer() {
    let file = r#"
        duration = "20s"
        [[link]]
        id = "slow"
        from = "a"
        to = "b"
        rate = "1Mbit/s"
        delay = "20ms"
        [[link]]
        id = "fast"
        from = "a"
        to = "b"
        rate = "2Mbit/s"
        delay = "20ms"
        [[flow]]
        id = "f"
        from = "a"
        to = "b"
        transport = "ns2/fast-mh"
        cc = { name = "fast", alpha = 10, beta = 10 }
        packet = "1000B"
        paths = [{ first = "slow", last = "slow" }, { first = "fast", last = "fast" }]
    "#;
    let run = |file: &str| {
        let scenario = parsed(file, &[]);
        let simulation = ran(&scenario, Recording::Trace);
        let mean = |name: &str| simulation.series(name).unwrap().mean(10.0, 20.0).unwrap();
        [
            mean("link.slow.forwarded"),
            mean("link.fast.forwarded"),
            mean("flow.f.path.1.in_flight") + mean("flow.f.path.2.in_flight"),
            mean("flow.f.goodput") / (8.0 * 960.0),
        ]
    };
    let [slow, fast, _, goodput] = run(file);
    assert!((slow - 125.0).abs() < 1.0 && (fast - 250.0).abs() < 1.0, "{slow} and {fast} packets a second");
    assert!((goodput - 375.0).abs() < 2.0, "{goodput} packets a second in order");
    let small = file.replace("packet = \"1000B\"", "packet = \"1000B\"\nrbuf = \"28800B\"");
    let [.., in_flight, _] = run(&small);
    assert!((10.0..=30.0).contains(&in_flight), "{in_flight} packets in flight");
}

/// A window of four packets of 8.32 ms each: all RTTs but the first few are 4 · 8.32 = 33.28 ms.
#[test]
fn percentiles_of_the_rtt_are_those_of_its_samples() {
    let flow = flow(&["flow.f.window=4"]);
    for percentile in [flow.rtt_p50_s, flow.rtt_p95_s, flow.rtt_p99_s] {
        assert!((percentile.unwrap() / 0.033_28 - 1.0).abs() < 0.004, "{flow:?}");
    }
}

/// FAST is in equilibrium with alpha segments queued if their transmission takes 4 thresholds of multiplicative increase, 3 ms. With alpha 10 at
/// 40 Mbit/s and 50 ms it oscillates: ns-2's module has 60.9 segments queued on average. With 15, 3.1 ms, it is in equilibrium; with 3, below the
/// threshold, there is none.
#[test]
fn fast_rests_if_alpha_is_worth_three_milliseconds() {
    let queue = |alpha: u32| {
        let [alpha, beta] = ["alpha", "beta"].map(|key| format!("flow.f.cc.{key}={alpha}"));
        let keys = [
            "flow.f.transport=ns2/fast",
            "flow.f.cc={ name = \"fast\" }",
            &alpha,
            &beta,
            "flow.f.window=5000",
            "link.a.rate=40Mbit/s",
            "link.a.delay=25ms",
            "link.a.queue={ kind = \"unlimited\" }",
            "clock=ns2",
            "duration=100s",
        ];
        let names = ["link.a.queue".to_owned()];
        let scenario = scenario(&keys).unwrap();
        let simulation = ran(&scenario, Recording::Series(&names));
        let queue = simulation.series(&names[0]).unwrap();
        let swing = queue.quantile(0.95, 50.0, 100.0).unwrap() - queue.quantile(0.05, 50.0, 100.0).unwrap();
        (queue.mean(50.0, 100.0).unwrap(), swing)
    };
    let (mean, swing) = queue(15);
    assert!((mean - 15.0).abs() < 2.0 && swing <= 2.0, "alpha 15: {mean}, {swing}");
    for alpha in [3, 10] {
        let (mean, swing) = queue(alpha);
        assert!((40.0..90.0).contains(&mean) && swing > 100.0, "alpha {alpha}: {mean}, {swing}");
    }
}
