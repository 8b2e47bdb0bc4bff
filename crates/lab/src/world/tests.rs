use anabranch_sim::QueueArea;

use super::*;
use crate::diagnostic::Diagnostic;
use crate::document::Document;
use crate::report::FlowReport;
use crate::run;
use crate::series::{Extreme, Series};

/// 1000 B in 8 ms over a link that two packets fill.
const CHAIN: &str = r#"
duration = "20s"

[[link]]
id = "a"
from = "n0"
to = "n1"
rate = "1Mbit/s"
delay = "10ms"

[[flow]]
id = "f"
from = "n0"
to = "n1"
transport = "ns2/sack"
packet = "1040B"
window = 40
"#;

fn scenario(overrides: &[&str]) -> Result<Scenario, Diagnostic> {
    let mut document = Document::parse("chain.toml", CHAIN)?;
    overrides.iter().try_for_each(|argument| document.set(argument))?;
    Scenario::parse(&document)
}

/// What a scenario says of its size is what the simulator counts: two nodes, an address at each end of the flow, and with two
/// paths four more.
#[test]
fn a_scenario_knows_how_large_its_world_is() {
    let size = |overrides: &[&str]| {
        let scenario = scenario(overrides).unwrap();
        let parts = Simulation::assemble(&scenario, Recording::Counters).unwrap();
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
    run::run(&scenario(overrides).unwrap()).flows.remove(0)
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

[[link]]
id = "direct"
from = "a"
to = "b"
rate = "1Gbit/s"
delay = "10ms"

[[link]]
id = "out"
from = "a"
to = "m"
rate = "1Gbit/s"
delay = "10ms"

[[link]]
id = "in"
from = "m"
to = "b"
rate = "1Gbit/s"
delay = "10ms"

[[route]]
node = "a"
to = "b"
via = "out"

[[flow]]
id = "f"
from = "a"
to = "b"
transport = "ns2/fast"
"#;

/// What a flow that starts at `at` sends by `direct`, and the least round trip that it knows of in the end. The route is there
/// from then on, too.
fn detour(at: &str) -> (u64, f64) {
    let mut document = Document::parse("detour.toml", DETOUR).unwrap();
    for key in ["flow.f.start", "route.0.at"] {
        document.set(&format!("{key}={at}")).unwrap();
    }
    let scenario = Scenario::parse(&document).unwrap();
    let series = vec!["flow.f.base_rtt".to_owned()];
    let (report, trace) = run::run_recorded(&scenario, &series);
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
    let backward = |sink: &str| run::run(&scenario(&[sink]).unwrap()).links[1].forwarded_packets;
    let (each, delayed) = (backward("flow.f.sink=sack1"), backward("flow.f.sink=sack1_delayed"));
    assert!((0.45..0.6).contains(&(delayed as f64 / each as f64)), "{delayed} of {each}");
}

#[test]
fn lost_acknowledgements_are_no_dropped_packets() {
    let lossy = "link.a.reverse={ error = { kind = \"list\", packets = [3, 5] } }";
    let report = run::run(&scenario(&[lossy]).unwrap());
    assert_eq!((report.flows[0].dropped_packets, report.links[1].dropped_packets), (0, 2));
    let report = run::run(&scenario(&["link.a.error={ kind = \"list\", packets = [3, 5] }"]).unwrap());
    assert_eq!((report.flows[0].dropped_packets, report.links[1].dropped_packets), (2, 0));
}

/// A trace's last row is what the simulator itself says at the end, and the mean of its queue is the simulator's, with the
/// packet in service added: the link is busy for as long as its packets take to send.
#[track_caller]
fn assert_traced(queue: &str) {
    let scenario = scenario(&[queue]).unwrap();
    let mut simulation = Simulation::build(&scenario, Recording::Trace).unwrap();
    simulation.run();
    let (end, link) = (simulation.end(), simulation.links[0]);
    let (_, trace) = simulation.link_traces().next().unwrap();
    let rows = trace.rows(end);
    let report = simulation.world.link(link);
    let last = rows.last().unwrap();
    assert_eq!((last.forwarded, last.dropped), (report.delivered, report.counts.drops), "{queue}");
    assert!(last.dropped > 0 && last.queue.abs_diff(report.waiting) <= 1, "{queue}: {last:?} {report:?}");
    let ends = rows.iter().skip(1).map(|row| row.time).chain([end]);
    let area: f64 =
        rows.iter().zip(ends).map(|(row, next)| row.queue as f64 * next.since(row.time).as_secs_f64()).sum();
    let sent = report.delivered_bytes as f64 * 8.0 / 1e6;
    let expected = simulation.world.queue_area(link).mean_since(QueueArea::START) * end.as_secs_f64() + sent;
    // What is on the wire at the end has been in service and has not been delivered: at most 12 ms of it.
    assert!((0.0..0.02).contains(&(area - expected)), "{queue}: {area} packet seconds, expected {expected}");
}

#[test]
fn traces_of_queues_agree_with_the_simulator() {
    assert_traced("link.a.queue={ kind = \"drop_tail\", packets = 10 }");
    assert_traced("link.a.queue={ kind = \"red\", packets = 20 }");
    assert_traced("link.a.queue={ kind = \"codel\" }");
    assert_traced("link.a.queue={ kind = \"codel\", packets = 8, target = \"20ms\" }");
}

/// What is delivered in order is what was delivered, and a hole holds back what lies above it: what
/// had come in the meantime is released at once when a lost packet comes again.
#[test]
fn goodput_is_in_order() {
    let scenario = scenario(&["link.a.error={ kind = \"list\", packets = [30] }"]).unwrap();
    let mut simulation = Simulation::build(&scenario, Recording::Trace).unwrap();
    simulation.run();
    let (goodput, throughput) =
        (simulation.series("flow.f.goodput").unwrap(), simulation.series("flow.f.throughput").unwrap());
    let report = simulation.report();
    let seconds = scenario.duration.as_secs_f64();
    assert!((goodput.sum(0.0, seconds) / seconds - report.flows[0].goodput_bps).abs() < 1.0);
    assert!((throughput.sum(0.0, seconds) / seconds - report.flows[0].throughput_bps).abs() < 1.0);
    let most = goodput.points.iter().map(|&(_, bits)| bits).fold(0.0, f64::max);
    assert!(most > 5.0 * 8000.0, "{most} bits at once");
    assert_eq!(simulation.series("link.a.drops").unwrap().points.len(), 1);
    let forwarded = simulation.series("link.a.forwarded").unwrap();
    assert_eq!(forwarded.points.len() as u64, report.links[0].forwarded_packets);
}

/// FAST and MFast on the same wire: what differs is what the application has while packet 300 is missing.
#[test]
fn streams_do_not_wait_for_each_other() {
    let lost = "link.a.error={ kind = \"list\", packets = [300] }";
    let run = |transport: &str| {
        let scenario = scenario(&[transport, lost, "flow.f.cc={ name = \"fast\", alpha = 4 }"]).unwrap();
        let mut simulation = Simulation::build(&scenario, Recording::Trace).unwrap();
        simulation.run();
        let series = |name: &str| simulation.series(name);
        let held = series("flow.f.held").unwrap().extreme(Extreme::Most, 0.0, 20.0).unwrap().1;
        let window = series("flow.f.window").unwrap().points;
        let streams: Vec<Result<Series, String>> =
            (1..=6).map(|stream| series(&format!("flow.f.stream.{stream}.goodput"))).collect();
        let goodput = series("flow.f.goodput").unwrap();
        (held, window, streams, goodput, simulation.report())
    };
    let (fast_held, fast_window, ..) = run("flow.f.transport=ns2/fast");
    let (held, window, streams, goodput, report) = run("flow.f.transport=ns2/mfast");
    assert_eq!(window, fast_window);
    assert!(held > 0.0 && held * 3.0 < fast_held, "MFast held {held} packets, FAST {fast_held}");
    assert_eq!(report.flows[0].held_packets_max, Some(held as u64));
    let bits = |series: &Series| series.sum(0.0, 20.1);
    let sum: f64 = streams[..5].iter().map(|stream| bits(stream.as_ref().unwrap())).sum();
    assert_eq!((sum / bits(&goodput), bits(&goodput) % (8.0 * 996.0)), (1.0, 0.0));
    assert_eq!(streams[5], Err("`flow.f.stream.6.goodput` was not measured: there is no such stream".to_owned()));
}

/// Packets 300 to 302 and 310 are lost, and five that follow the last of them come before they are sent again: four come late.
#[test]
fn losses_in_a_row_and_late_packets_are_counted() {
    let lost = "link.a.error={ kind = \"list\", packets = [300, 301, 302, 310] }";
    let report = run::run(&scenario(&[lost]).unwrap());
    let (flow, link) = (&report.flows[0], &report.links[0]);
    assert_eq!((flow.dropped_packets, flow.dropped_in_row_max, flow.reordered_packets), (4, 3, Some(4)));
    assert_eq!((link.dropped_packets, link.error_packets), (4, 4));
    // The queue of one packet refuses others: they are no errors.
    let report = run::run(&scenario(&[lost, "link.a.queue={ kind = \"drop_tail\", packets = 5 }"]).unwrap());
    let link = &report.links[0];
    assert!(link.error_packets == 4 && link.dropped_packets > 4, "{link:?}");
}

/// What was lost and sent again comes late, whoever sends it; here nothing else does.
#[test]
fn what_was_sent_again_comes_late() {
    let late = |transport: &str| {
        let text = CHAIN.replace("ns2/sack", transport).replace("window = 40\n", "");
        let mut document = Document::parse("chain.toml", &text).unwrap();
        document.set("link.a.error={ kind = \"list\", packets = [300, 301, 302, 310] }").unwrap();
        let flow = run::run(&Scenario::parse(&document).unwrap()).flows.remove(0);
        (flow.reordered_packets.unwrap(), flow.dropped_packets)
    };
    assert_eq!(late("anabranch"), (4, 4));
    let (late, lost) = late("ns2/sctp");
    assert!(late == lost && lost >= 4, "{late} late of {lost} that were lost");
}

/// ctcp-2019, section 3: one hole is a random loss; of two in one window, seen at the third duplicate, the cause is congestion.
#[test]
fn random_losses_are_counted() {
    for transport in
        ["transport = \"ns2/composite\"", "transport = \"anabranch\"\ncc = { name = \"composite\" }\nrbuf = \"40kB\""]
    {
        let random = |packets: &str| {
            let text = CHAIN.replace("transport = \"ns2/sack\"", transport);
            let text = if transport.contains("anabranch") { text.replace("window = 40\n", "") } else { text };
            let mut document = Document::parse("chain.toml", &text).unwrap();
            document.set("link.a.rate=100Mbit/s").unwrap();
            document.set(&format!("link.a.error={{ kind = \"list\", packets = {packets} }}")).unwrap();
            run::run(&Scenario::parse(&document).unwrap()).flows.remove(0).random_losses
        };
        assert_eq!(random("[300]"), Some(1), "{transport}");
        assert_eq!(random("[300, 302]"), Some(0), "{transport}");
        assert_eq!(random("[300, 1300]"), Some(2), "{transport}");
    }
}

/// The two packets that begin an association's data are lost, and so is what is sent again: nothing else was acknowledged, so all timeouts are
/// in one row. A hundred packets that are lost later, with thousands acknowledged before, are another row.
#[test]
fn timeouts_in_a_row_are_counted() {
    let flow = |packets: &str| {
        let text = CHAIN.replace("ns2/sack", "ns2/sctp").replace("window = 40\n", "").replace("20s", "100s");
        let mut document = Document::parse("chain.toml", &text).unwrap();
        document.set(&format!("link.a.error={{ kind = \"list\", packets = {packets} }}")).unwrap();
        let flow = run::run(&Scenario::parse(&document).unwrap()).flows.remove(0);
        (flow.timeouts.unwrap(), flow.timeouts_in_row_max.unwrap())
    };
    let later = (3000..3100).map(|packet| packet.to_string()).collect::<Vec<_>>().join(", ");
    assert_eq!(flow("[]"), (0, 0));
    assert_eq!(flow("[2, 3, 4, 5]"), (4, 4));
    let (all, in_row) = flow(&format!("[2, 3, 4, 5, {later}]"));
    assert!(in_row >= 4 && all > in_row, "{in_row} of {all} in a row");
}

/// At 1 Mbit/s packets of 1040 B come 8.32 ms apart, and so do their acknowledgements once the link is busy.
#[test]
fn inter_packet_delays_are_those_of_the_bottleneck() {
    let scenario = scenario(&[]).unwrap();
    let mut simulation = Simulation::build(&scenario, Recording::Trace).unwrap();
    simulation.run();
    let ipd = simulation.series("flow.f.ipd").unwrap();
    assert!((ipd.mean(5.0, 15.0).unwrap() - 0.00832).abs() < 1e-9, "{:?}", ipd.mean(5.0, 15.0));
}

#[test]
fn series_of_nothing_are_refused() {
    let scenario = scenario(&[]).unwrap();
    let message = |name: &str| scenario.check_series(name).unwrap_err().to_string();
    assert_eq!(message("flow.g.window"), "no flow is called `g`; there are f");
    assert_eq!(message("link.b.reverse.queue"), "no link is called `b.reverse`; did you mean `a.reverse`?");
    assert!(scenario.check_series("link.a.reverse.queue").is_ok());
}

/// Within a second only the last change is kept; nothing is lost but the times.
#[test]
fn a_coarse_trace_counts_the_same() {
    let traced = |overrides: &[&str]| {
        let scenario = scenario(overrides).unwrap();
        let mut simulation = Simulation::build(&scenario, Recording::Trace).unwrap();
        simulation.run();
        ["link.a.forwarded", "flow.f.throughput", "flow.f.window", "link.a.queue"].map(|name| {
            let series = simulation.series(name).unwrap();
            (series.points.len(), series.points.iter().map(|point| point.1).sum::<f64>(), series.points.last().copied())
        })
    };
    let (fine, coarse) = (traced(&[]), traced(&["resolution=1s"]));
    assert!((fine[0].1 - coarse[0].1).abs() < 0.5 && (fine[1].1 - coarse[1].1).abs() < 0.5, "{fine:?} {coarse:?}");
    assert!(coarse[1].0 <= 21 && coarse[2].0 <= 21 && coarse[3].0 <= 21, "{coarse:?}");
    assert_eq!((fine[2].2, fine[3].2), (coarse[2].2, coarse[3].2));
}

/// What is recorded is what was asked for, and `*` adds up.
#[test]
fn series_are_recorded_on_request() {
    let scenario = scenario(&[]).unwrap();
    let asked = ["flow.*.throughput".to_owned(), "link.*.forwarded".to_owned()];
    let mut simulation = Simulation::build(&scenario, Recording::Series(&asked)).unwrap();
    simulation.run();
    let report = simulation.report();
    let both = simulation.series("link.*.forwarded").unwrap().points;
    assert_eq!(both.len() as u64, report.links[0].forwarded_packets + report.links[1].forwarded_packets);
    assert!(both.is_sorted_by_key(|point| point.0));
    let forwarded = report.gauge("link.*.forwarded_packets").unwrap();
    assert!((forwarded - both.len() as f64).abs() < 0.5, "{forwarded}");
    assert!(simulation.series("flow.*.throughput").is_ok() && simulation.series("flow.f.window").is_err());
    assert_eq!(
        scenario.check_series("flow.*.window").unwrap_err().to_string(),
        "`flow.*.window` would add up variables: `*` is for events, such as flow.*.throughput"
    );
}

/// Starts lie within the jitter, and each flow's is its own.
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

/// Two flows that meet nowhere: whether the second is there makes no difference to the first, whose coarse clock decides which
/// losses it takes for random. With ns-2's clock it does, as in ns-2.
#[test]
fn a_flow_keeps_its_draws_when_another_is_added() {
    let both = r#"
        duration = "60s"
        [[link]]
        id = "a"
        from = "x"
        to = "y"
        rate = "10Mbit/s"
        delay = "20ms"
        error = { kind = "uniform", rate = 0.03 }
        [[link]]
        id = "b"
        from = "v"
        to = "w"
        rate = "10Mbit/s"
        delay = "20ms"
        [[flow]]
        id = "second"
        from = "v"
        to = "w"
        transport = "ns2/sack"
        [[flow]]
        id = "first"
        from = "x"
        to = "y"
        transport = "ns2/composite"
    "#;
    let (head, flows) = both.split_once("[[flow]]").unwrap();
    let (_, first) = flows.split_once("[[flow]]").unwrap();
    let alone = format!("{head}[[flow]]{first}");
    let max_seq = |text: &str, clock: &str| {
        let text = format!("clock = \"{clock}\"\n{text}");
        let scenario = Scenario::parse(&Document::parse("test.toml", &text).unwrap()).unwrap();
        run::run(&scenario).gauge("flow.first.max_seq").unwrap()
    };
    assert_eq!(max_seq(&alone, "exact").to_bits(), max_seq(both, "exact").to_bits());
    assert_ne!(max_seq(&alone, "ns2").to_bits(), max_seq(both, "ns2").to_bits());
}

/// The chain of mfast-2019.
const SCTP: &str = r#"
duration = "100s"

[[link]]
id = "a"
from = "n0"
to = "n1"
rate = "2Mbit/s"
delay = "10ms"
queue = { kind = "drop_tail", packets = 10 }

[[link]]
id = "b"
from = "n1"
to = "n2"
rate = "1.5Mbit/s"
delay = "100ms"
queue = { kind = "drop_tail", packets = 10 }

[[link]]
id = "c"
from = "n2"
to = "n3"
rate = "2Mbit/s"
delay = "10ms"
queue = { kind = "drop_tail", packets = 10 }

[[flow]]
id = "f"
from = "n0"
to = "n3"
start = "1s"
transport = "ns2/sctp"
packet = "1000B"
options = { streams = 5 }
"#;

/// mfast-2019, Table 2, and its golden run: with ns-2's clock, ties fall as they fell there.
#[test]
fn sctp_of_mfast_2019() {
    let scenario = format!("clock = \"ns2\"\n{SCTP}");
    let scenario = Scenario::parse(&Document::parse("mfast.toml", &scenario).unwrap()).unwrap();
    let flow = run::run(&scenario).flows.remove(0);
    assert_eq!(format!("{:.2} {:.2}", flow.throughput_bps / 1e3, flow.goodput_bps / 1e3), "1096.48 1043.85");
    assert_eq!((flow.dropped_packets, flow.retransmitted_packets), (30, 30));
}

/// The other end's 65536 bytes are 67 chunks in packets of 1000: more than the 47 that fill the path, and the 20 beyond fit
/// its queue. After slow start the bottleneck is full, and 952 of 1000 bytes are payload.
#[test]
fn sctp_fills_a_path() {
    let scenario = SCTP.replacen("queue = { kind = \"drop_tail\", packets = 10 }", "", 3);
    let scenario = Scenario::parse(&Document::parse("chain.toml", &scenario).unwrap()).unwrap();
    let flow = run::run(&scenario).flows.remove(0);
    assert_eq!((flow.dropped_packets, flow.retransmitted_packets), (0, 0));
    // Handshake, heartbeat and slow start take two of the 99 s.
    assert!((1.46e6..1.5e6).contains(&flow.throughput_bps), "{} bit/s", flow.throughput_bps);
    assert!((flow.goodput_bps / flow.throughput_bps - 0.952).abs() < 1e-9);
    // 67 packets at 1.5 Mbit/s take 0.357 s, of which the way back is 0.12 s.
    assert!((0.2..0.24).contains(&flow.one_way_delay_mean_s.unwrap()), "{:?} s", flow.one_way_delay_mean_s);
}

/// Two paths of 1 Mbit/s: both are full with CMT, one without.
#[test]
fn sctp_has_several_paths() {
    let two = r#"
duration = "30s"
link = [
    { id = "a0", from = "s", to = "x0", rate = "10Mbit/s", delay = "1ms" },
    { id = "a1", from = "s", to = "x1", rate = "10Mbit/s", delay = "1ms" },
    { id = "b0", from = "x0", to = "d", rate = "1Mbit/s", delay = "20ms" },
    { id = "b1", from = "x1", to = "d", rate = "1Mbit/s", delay = "20ms" },
]
[[flow]]
id = "f"
from = "s"
to = "d"
transport = "ns2/sctp"
packet = "1500B"
paths = [{ first = "a0", last = "b0" }, { first = "a1", last = "b1" }]
"#;
    let rate = |text: &str| {
        let scenario = Scenario::parse(&Document::parse("two.toml", text).unwrap()).unwrap();
        run::run(&scenario).flows[0].throughput_bps / 1e6
    };
    let cmt = two.replace("ns2/sctp", "ns2/sctp-cmt");
    let (plain, both) = (rate(two), rate(&cmt));
    assert!((0.9..=1.0).contains(&plain) && (1.8..=2.0).contains(&both), "{plain} and {both} Mbit/s");

    let scenario = Scenario::parse(&Document::parse("two.toml", &cmt).unwrap()).unwrap();
    let mut simulation = Simulation::build(&scenario, Recording::Trace).unwrap();
    simulation.run();
    let at = |series: &str| simulation.series(&format!("flow.f.{series}")).unwrap().value_at(20.0).unwrap();
    assert!((at("path.1.window") + at("path.2.window") - at("window")).abs() < 1e-9);
    // A chunk of 1452 bytes with its header.
    let offered = simulation.series("flow.f.peer_window").unwrap().extreme(Extreme::Most, 0.0, 30.0).unwrap().1;
    assert!((offered - 65536.0 / 1468.0).abs() < 1e-9, "{offered} packets");
    let refused = ["flow.f.path.3.window", "flow.f.path.2.ssthresh"].map(|name| simulation.series(name).is_err());
    assert_eq!(refused, [true, false]);
}

/// ns-2.35's `Application/Traffic/Exponential` with its default seed: how many packets of two sources come to the other end,
/// and when the first and the last do. Both draw from one stream, so each depends on the other.
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
    let scenario = Scenario::parse(&Document::parse("bursts.toml", text).unwrap()).unwrap();
    let mut simulation = Simulation::build(&scenario, Recording::Trace).unwrap();
    simulation.run();
    let summary = |name: &str| {
        let points = simulation.series(name).unwrap().points;
        let (first, last) = (points[0].0, points[points.len() - 1].0);
        format!("{} packets from {first:.6} s to {last:.6} s", points.len())
    };
    assert_eq!(summary("flow.u0.throughput"), "66 packets from 0.394602 s to 11.093388 s");
    assert_eq!(summary("flow.u1.throughput"), "45 packets from 1.415514 s to 11.527913 s");
}

/// So many `ns` sends from 1 s on, every 8/3 ms and every 1 ms, until it stops on the 3000th and on the 8000th interval after that:
/// its sum of 3000 doubles is a little less than 9, and so one packet more leaves; that of 8000 is a little more.
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
        run::run(&Scenario::parse(&Document::parse("cbr.toml", &text).unwrap()).unwrap()).flows[0].sent_packets
    };
    assert_eq!((sent("ns2", "3Mbit/s"), sent("exact", "3Mbit/s")), (3001, 3000));
    assert_eq!((sent("ns2", "8Mbit/s"), sent("exact", "8Mbit/s")), (8000, 8000));
}

#[track_caller]
fn assert_sctp_refused(from: &str, to: &str, expected: &str) {
    let text = SCTP.replacen(from, to, 1);
    assert_ne!(text, SCTP);
    let error = Document::parse("mfast.toml", &text).and_then(|document| Scenario::parse(&document)).unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn what_sctp_would_ignore_or_cannot_do_is_refused() {
    assert_sctp_refused("streams = 5", "policy = \"same\"", "`policy` is not an option of this agent");
    assert_sctp_refused("streams = 5", "streams = 0", "`streams` cannot be `0`; use 1 to 65535");
    assert_sctp_refused("streams = 5", "chunk = 1000", "a chunk of 1000 does not fit a packet of 1000; use 17 to 968");
    assert_sctp_refused("packet =", "window = 20\npacket =", "a ns2/sctp has no `window`; remove it");
    assert_sctp_refused(
        "packet =",
        "workload = { kind = \"messages\", bytes = \"1kB\", every = \"1s\" }\npacket =",
        "does not send what is offered while it is idle",
    );
    assert_sctp_refused(
        "packet =",
        "paths = [{ first = \"b\", last = \"c\" }]\npacket =",
        "`b` is no duplex link that leaves node `n0`",
    );
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
        let scenario = Scenario::parse(&Document::parse("test.toml", file).unwrap()).unwrap();
        let mut simulation = Simulation::build(&scenario, Recording::Trace).unwrap();
        simulation.run();
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

/// Packet 22, after one to three of a handshake, is lost and comes again. Each answer is about one packet, at SCTP about two, until the one that fills the hole: it is about all
/// that came in the meantime, and the hole has been there for a round trip of 60 ms and for what it took to see it.
#[test]
fn what_is_acknowledged_rests_while_one_is_missing() {
    let text = r#"
duration = "2s"
link = [{ id = "a", from = "n0", to = "n1", rate = "10Mbit/s", delay = "30ms", queue = { kind = "drop_tail", packets = 1000 }, error = { kind = "list", packets = [22] } }]
[[flow]]
id = "f"
from = "n0"
to = "n1"
transport = "TRANSPORT"
"#;
    for (transport, most) in [("ns2/sack", 1.0), ("ns2/fast-mh", 1.0), ("ns2/sctp", 2.0), ("anabranch", 1.0)] {
        let text = text.replace("TRANSPORT", transport);
        let scenario = Scenario::parse(&Document::parse("hole.toml", &text).unwrap()).unwrap();
        let mut simulation = Simulation::build(&scenario, Recording::Trace).unwrap();
        simulation.run();
        let acked = simulation.series("flow.f.acked_seq").unwrap().points;
        let jumps: Vec<_> = acked.windows(2).filter(|pair| pair[1].1 - pair[0].1 > most).collect();
        let [[before, after]] = jumps[..] else { panic!("{transport}: {jumps:?}") };
        assert!((19.0..=21.0).contains(&before.1) && after.1 - before.1 > 3.0, "{transport}: {before:?} to {after:?}");
        assert!((0.06..0.2).contains(&(after.0 - before.0)), "{transport}: {before:?} to {after:?}");
        let last = acked.last().map(|&(_, seq)| seq as i64);
        assert_eq!(last, simulation.report().flows[0].acked_seq, "{transport}");
    }
}

/// The gauges of a queue are what its series says, whatever kind of queue it is and whichever clock: two accounts that know nothing
/// of each other. A link sends for as long as its queue is not empty.
#[test]
fn a_queue_is_one_thing_in_gauges_and_series() {
    let kinds = [
        ("drop_tail", "link.a.queue={ kind = \"drop_tail\", packets = 12 }"),
        ("bytes", "link.a.queue={ kind = \"drop_tail\", bytes = \"9kB\" }"),
        ("red", "link.a.queue={ kind = \"red\", packets = 30 }"),
        ("codel", "link.a.queue={ kind = \"codel\" }"),
        ("ns2 clock", "clock=ns2"),
        ("a hold", "link.a.hold={ kind = \"grid\", every = \"7ms\" }"),
    ];
    for (kind, change) in kinds {
        let scenario = scenario(&[change, "flow.f.transport=ns2/newreno", "flow.f.window=60", "duration=30s"]).unwrap();
        let mut simulation = Simulation::build(&scenario, Recording::Trace).unwrap();
        simulation.run();
        let (report, queue) = (simulation.report(), simulation.series("link.a.queue").unwrap());
        let link = &report.links[0];
        for (share, gauge) in
            [(0.5, link.queue_packets_p50), (0.95, link.queue_packets_p95), (0.99, link.queue_packets_p99)]
        {
            assert_eq!(queue.quantile(share, 0.0, 30.0), Ok(gauge as f64), "{kind}, {share}");
        }
        let most = queue.extreme(Extreme::Most, 0.0, 30.0).unwrap().1;
        assert!((most - link.queue_packets_max as f64).abs() < 0.1, "{kind}");
        let mean = queue.mean(0.0, 30.0).unwrap();
        assert!((link.queue_packets_mean / mean - 1.0).abs() < 1e-6, "{kind}: {} and {mean}", link.queue_packets_mean);
        let busy = Series::variable(queue.points.iter().map(|&(at, packets)| (at, packets.min(1.0)))).mean(0.0, 30.0);
        assert!((link.utilisation - busy.unwrap()).abs() < 1e-6, "{kind}: {}", link.utilisation);
        assert!(link.queue_packets_p99 > 2 && link.utilisation > 0.5, "{kind} had nothing to do");
    }
}

/// Four packets of 8.32 ms each go round one behind the other: all RTTs but the first few are 4 · 8.32 = 33.28 ms.
#[test]
fn percentiles_of_the_rtt_are_those_of_its_samples() {
    let flow = flow(&["flow.f.window=4"]);
    for percentile in [flow.rtt_p50_s, flow.rtt_p95_s, flow.rtt_p99_s] {
        assert!((percentile.unwrap() / 0.033_28 - 1.0).abs() < 0.004, "{flow:?}");
    }
}

/// FAST rests with alpha segments queued if they take 4 `mi_threshold`, 3 ms, to send. With alpha 10 at 40 Mbit/s and 50 ms it swings:
/// ns-2's module has 60.9 segments queued on average. With 15, 3.1 ms, it rests, and with 3, less than the threshold, it cannot.
#[test]
fn fast_rests_if_alpha_is_worth_three_milliseconds() {
    let queue = |alpha: u32| {
        let [alpha, beta] = ["alpha", "beta"].map(|key| format!("flow.f.cc.{key}={alpha}"));
        let scenario = scenario(&[
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
        ]);
        let names = ["link.a.queue".to_owned()];
        let scenario = scenario.unwrap();
        let mut simulation = Simulation::build(&scenario, Recording::Series(&names)).unwrap();
        simulation.run();
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
