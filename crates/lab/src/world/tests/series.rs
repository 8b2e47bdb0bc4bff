//! Series of runs.

use anabranch_sim::QueueArea;

use super::*;

/// The last row of a trace has the simulator's counts, and the mean of its queue is the simulator's plus the packet in service: the link
/// is busy for the transmission time of its packets.
#[track_caller]
fn assert_traced(queue: &str) {
    assert_trace(&scenario(&[queue]).unwrap(), queue);
}

#[track_caller]
fn assert_trace(scenario: &Scenario, queue: &str) {
    let simulation = ran(scenario, Recording::Trace);
    let (end, link) = (simulation.end(), simulation.links[0]);
    let rows: Vec<_> = simulation.traces[0].as_ref().unwrap().borrow().rows(end).unwrap().collect();
    let report = simulation.world.link(link);
    let last = rows.last().unwrap();
    assert_eq!((last.forwarded, last.dropped), (report.delivered, report.counts.drops), "{queue}");
    assert!(last.dropped > 0 && last.queue.abs_diff(report.waiting) <= 1, "{queue}: {last:?} {report:?}");
    let ends = rows.iter().skip(1).map(|row| row.time).chain([end]);
    let area: f64 =
        rows.iter().zip(ends).map(|(row, next)| row.queue as f64 * next.since(row.time).as_secs_f64()).sum();
    let sent = report.delivered_bytes as f64 * 8.0 / 1e6;
    let expected = simulation.world.queue_area(link).mean_since(QueueArea::START) * end.as_secs_f64() + sent;
    // Packets on the wire at the end were in service but are not delivered: at most 12 ms of them.
    assert!((0.0..0.02).contains(&(area - expected)), "{queue}: {area} packet seconds, expected {expected}");
}

#[test]
fn traces_of_queues_agree_with_the_simulator() {
    assert_traced("link.a.queue={ kind = \"drop_tail\", packets = 10 }");
    assert_traced("link.a.queue={ kind = \"red\", packets = 20 }");
    assert_traced("link.a.queue={ kind = \"codel\" }");
    assert_traced("link.a.queue={ kind = \"codel\", packets = 8, target = \"20ms\" }");
}

/// A queue that serves flows in turn lets packets out in another order than it has taken them, and throws away those of the longest one.
#[test]
fn trace_of_fair_queue_agrees_with_simulator() {
    let source = |id: usize, rate: &str| {
        format!(
            "[[flow]]\nid = \"f{id}\"\nfrom = \"x\"\nto = \"y\"\ntransport = \"cbr\"\npacket = \"{}B\"\nrate = \"{rate}\"\n",
            1500 - id
        )
    };
    let text = format!(
        "duration = \"5s\"\n[[link]]\nid = \"a\"\nfrom = \"x\"\nto = \"y\"\nrate = \"1Mbit/s\"\ndelay = \"5ms\"\n\
         queue = {{ kind = \"fq_codel\", packets = 12 }}\n{}{}{}",
        source(0, "900kbit/s"),
        source(1, "300kbit/s"),
        source(2, "100kbit/s")
    );
    let scenario = parsed(&text, &[]);
    assert_trace(&scenario, "fq_codel");
}

/// The sum of the goodput is the delivered data. A hole holds later data back, which is released at once when the lost packet
/// arrives.
#[test]
fn goodput_is_in_order() {
    let scenario = scenario(&["link.a.error={ kind = \"list\", packets = [30] }"]).unwrap();
    let simulation = ran(&scenario, Recording::Trace);
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

/// FAST and MFast send the same packets; they differ in the data that the application gets while packet 300 is missing.
#[test]
fn streams_do_not_wait_for_each_other() {
    let lost = "link.a.error={ kind = \"list\", packets = [300] }";
    let run = |transport: &str| {
        let scenario = scenario(&[transport, lost, "flow.f.cc={ name = \"fast\", alpha = 4 }"]).unwrap();
        let simulation = ran(&scenario, Recording::Trace);
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

/// At 1 Mbit/s packets of 1040 B come 8.32 ms apart, and so do their acknowledgements once the link is busy.
#[test]
fn inter_packet_delays_are_those_of_the_bottleneck() {
    let scenario = scenario(&[]).unwrap();
    let simulation = ran(&scenario, Recording::Trace);
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

/// Only the last change within a second is kept; only the times are lost.
#[test]
fn a_coarse_trace_counts_the_same() {
    let traced = |overrides: &[&str]| {
        let scenario = scenario(overrides).unwrap();
        let simulation = ran(&scenario, Recording::Trace);
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

/// Only the requested series are recorded; `*` is the sum.
#[test]
fn series_are_recorded_on_request() {
    let scenario = scenario(&[]).unwrap();
    let asked = ["flow.*.throughput".to_owned(), "link.*.forwarded".to_owned()];
    let simulation = ran(&scenario, Recording::Series(&asked));
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

/// Packet 22, after one to three packets of a handshake, is lost and retransmitted. Each ACK covers one packet, with SCTP two, except the ACK for the
/// retransmission: it covers all packets since the hole, which lasted for a round trip of 60 ms and the time of the loss detection.
#[test]
fn acknowledged_series_rests_at_hole() {
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
        let scenario = parsed(&text, &[]);
        let simulation = ran(&scenario, Recording::Trace);
        let acked = simulation.series("flow.f.acked_seq").unwrap().points;
        let jumps: Vec<_> = acked.windows(2).filter(|pair| pair[1].1 - pair[0].1 > most).collect();
        let [[before, after]] = jumps[..] else { panic!("{transport}: {jumps:?}") };
        assert!((19.0..=21.0).contains(&before.1) && after.1 - before.1 > 3.0, "{transport}: {before:?} to {after:?}");
        assert!((0.06..0.2).contains(&(after.0 - before.0)), "{transport}: {before:?} to {after:?}");
        let last = acked.last().map(|&(_, seq)| seq as i64);
        assert_eq!(last, simulation.report().flows[0].acked_seq, "{transport}");
    }
}

/// The gauges of a queue agree with its series for every kind of queue and both clocks; they are computed independently. A link sends as
/// long as its queue is not empty.
#[test]
fn a_queue_is_one_thing_in_gauges_and_series() {
    let kinds = [
        ("drop_tail", "link.a.queue={ kind = \"drop_tail\", packets = 12 }"),
        ("bytes", "link.a.queue={ kind = \"drop_tail\", bytes = \"9kB\" }"),
        ("red", "link.a.queue={ kind = \"red\", packets = 30 }"),
        ("codel", "link.a.queue={ kind = \"codel\" }"),
        ("ns2 clock", "clock=ns2"),
        ("a hold", "link.a.hold={ kind = \"grid\", every = \"7ms\" }"),
        ("a longer delay", "link.a.delay_changes=[{ at = \"3s\", delay = \"70ms\" }]"),
        ("a lower rate", "link.a.rate_changes=[{ at = \"3s\", rate = \"700kbit/s\" }]"),
        ("reordering", "link.a.reorder={ share = 0.05, extra = { kind = \"constant\", span = \"20ms\" } }"),
    ];
    for (kind, change) in kinds {
        let scenario = scenario(&[change, "flow.f.transport=ns2/newreno", "flow.f.window=60", "duration=30s"]).unwrap();
        let simulation = ran(&scenario, Recording::Trace);
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
