//! The transport on links with a small MTU or with ECN marks.

use anabranch_sim::EngineSource;
use anabranch_units::SimSpan;

use super::*;
use crate::testing::{parsed, ran};

/// 10 Mbit/s and a round trip of 40 ms; the MTU is smaller from 10 s on.
const CHAIN: &str = r#"
duration = "30s"

[[link]]
id = "a"
from = "n0"
to = "m"
rate = "10Mbit/s"
delay = "10ms"
queue = { kind = "drop_tail", packets = 50 }

[[link]]
id = "b"
from = "m"
to = "n1"
rate = "100Mbit/s"
delay = "10ms"

[[flow]]
id = "f"
from = "n0"
to = "n1"
transport = "anabranch"
form = "sealed"
packet = "1500B"
"#;

/// A second path with the rate and the initial MTU of the first.
const SECOND: &str = r#"
[[link]]
id = "c"
from = "n0"
to = "m2"
rate = "10Mbit/s"
delay = "10ms"
queue = { kind = "drop_tail", packets = 50 }

[[link]]
id = "d"
from = "m2"
to = "n1"
rate = "100Mbit/s"
delay = "10ms"
"#;

/// The MTU of the link: `before` bytes, and from 10 s on `after`.
fn narrows(before: u64, after: u64) -> [String; 2] {
    [format!("link.b.mtu={before}B"), format!("link.b.mtu_changes=[{{ at = \"10s\", mtu = \"{after}B\" }}]")]
}

/// Bytes that were read in each second.
fn seconds(simulation: &mut Simulation<'_>) -> Vec<u64> {
    let mut before = 0;
    let mut second = |end: u64| {
        simulation.run_until(SimTime::ZERO + SimSpan::from_secs(end));
        simulation.conservation().unwrap();
        let read = simulation.read(0);
        read - std::mem::replace(&mut before, read)
    };
    (1..=30).map(&mut second).collect()
}

/// The bytes that a link carries in a second.
const FULL: u64 = 10_000_000 / 8;

/// The least goodput with packets of `mtu` bytes: less a thirty-second, the resolution of the search, 100 bytes of headers, and 7 % for
/// the drains of the law.
fn least(mtu: u64) -> u64 {
    FULL * (mtu - mtu / 32 - 100) / mtu * 93 / 100
}

/// Bytes a second, each over the 5 s from one drain of the law to the next: a drain takes up to a tenth of its second, and 2 % of this time.
fn means(read: &[u64]) -> impl Iterator<Item = u64> {
    read.chunks_exact(5).map(|span| span.iter().sum::<u64>() / 5)
}

/// The MTU of the path falls in the middle of a transfer. A window is lost, and probes: three of each length that is tried, and in the
/// first second three of the length found before. Three seconds later the link is as full as with shorter packets. It takes this
/// time because lengths are found by timeouts, after which the window begins with one segment.
#[test]
fn a_path_that_narrows_carries_on() {
    for (before, after) in [(1500, 1280), (1500, 1400), (1400, 1280)] {
        let [first, then] = narrows(before, after);
        let scenario = parsed(CHAIN, &[&first, &then]);
        let mut simulation = Simulation::build(&scenario, Recording::Counters).unwrap();
        let read = seconds(&mut simulation);
        let (report, source) = (simulation.report(), simulation.flows[0].source);
        let source = simulation.world.host::<EngineSource>(source).unwrap();
        assert!(read[5..10].iter().all(|bytes| *bytes > least(before)), "{before} to {after}: {read:?}");
        assert!(means(&read[13..]).all(|bytes| bytes > least(after) * 96 / 93), "{before} to {after}: {read:?}");
        let too_long = report.links[2].too_long_packets;
        // 10 Mbit/s and 60 ms, with the queue: 50 packets.
        assert!((50..=50 + 30).contains(&too_long), "{before} to {after}: {too_long}");
        assert!(source.fragmented() > 0, "{before} to {after}");
        assert!(report.flows[0].timeouts <= Some(1), "{:?}", report.flows[0].timeouts);
    }
}

/// Whenever the MTU falls, the start after the timeout is not ended by the losses before it, although retransmissions give no RTT.
#[test]
fn window_grows_after_mtu_falls_at_any_time() {
    for number in 0..30 {
        let change = format!("link.b.mtu_changes=[{{ at = \"{}ms\", mtu = \"1400B\" }}]", 5000 + 137 * number);
        let more = ["link.a.delay=40ms", "link.b.mtu=1500B", "flow.f.streams=4", "flow.f.pacing=always", &change];
        let scenario = parsed(CHAIN, &more);
        let mut simulation = Simulation::build(&scenario, Recording::Counters).unwrap();
        let read = seconds(&mut simulation);
        assert!(read[13..].iter().all(|&bytes| bytes > least(1400) / 2), "{number}: {read:?}");
    }
}

/// The same on one of two paths: the other one is not slower, and the first one carries its share again. The path fails at most once,
/// when nothing gets through.
#[test]
fn one_of_two_paths_that_narrows_carries_on() {
    for after in [1280, 1400] {
        let text = format!("{CHAIN}{SECOND}");
        let paths = "flow.f.paths=[{ first = \"a\", last = \"b\" }, { first = \"c\", last = \"d\" }]";
        let [first, then] = narrows(1500, after);
        let scenario = parsed(&text, &[paths, &first, &then]);
        let mut simulation = Simulation::build(&scenario, Recording::Counters).unwrap();
        let read = seconds(&mut simulation);
        let report = simulation.report();
        assert!(read[5..10].iter().all(|bytes| *bytes > 2 * least(1500)), "{after}: {read:?}");
        assert!(read[10] > least(1500), "the other one: {after}: {read:?}");
        assert!(read[12..].iter().all(|bytes| *bytes > least(1500) + least(after)), "{after}: {read:?}");
        let too_long = report.links[2].too_long_packets;
        assert!((50..=50 + 30).contains(&too_long), "{after}: {too_long}");
    }
}

/// [rfc-3168] sec. 5: if routers mark, nothing is lost, and a law that halves for marks as for losses is as fast.
#[test]
fn marked_packet_is_delivered_and_reduces_window() {
    for (queue, marked) in [
        ("kind = \"red\", packets = 1000, threshold_min = 20, threshold_max = 300", 30..=300),
        ("kind = \"codel\"", 30..=300),
    ] {
        let run = |ecn: bool| {
            let queue = format!("link.a.queue={{ {queue}, ecn = {ecn} }}");
            let scenario = parsed(CHAIN, &["duration=120s", "flow.f.cc={ name = \"reno\" }", &queue]);
            let simulation = ran(&scenario, Recording::Counters);
            simulation.conservation().unwrap();
            simulation.report()
        };
        let (marks, drops) = (run(true), run(false));
        assert_eq!((marks.links[0].dropped_packets, marks.flows[0].retransmitted_packets), (0, 0));
        assert!(marked.contains(&marks.links[0].marked_packets), "{}", marks.links[0].marked_packets);
        assert_eq!(drops.links[0].marked_packets, 0);
        let ratio = marks.flows[0].goodput_bps / drops.flows[0].goodput_bps;
        assert!((0.98..=1.03).contains(&ratio), "{ratio}");
    }
}

/// A law that reacts to the share of marks keeps the queue at the threshold: 20 packets of 1.2 ms each for DCTCP ([rfc-8257]
/// sec. 3.1 asks for more than a seventh of the 33 that the path holds), 1.2 ms for Prague in the short queue of DualPI2.
/// Neither loses a packet, and both fill the link.
#[test]
fn scalable_laws_keep_the_queue_where_it_is_marked() {
    for (law, queue, delay_ms_max) in
        [("dctcp", "kind = \"step\", packets = 200, mark_packets = 20", 25.0), ("prague", "kind = \"dualpi2\"", 4.0)]
    {
        let queue = format!("link.a.queue={{ {queue} }}");
        let law = format!("flow.f.cc={{ name = \"{law}\" }}");
        let scenario = parsed(CHAIN, &["duration=60s", "flow.f.pacing=always", &law, &queue]);
        let report = crate::run::run(&scenario).unwrap();
        let (flow, link) = (&report.flows[0], &report.links[0]);
        assert_eq!((link.dropped_packets, flow.retransmitted_packets), (0, 0), "{law}");
        assert!(link.marked_packets > 100, "{law}: {}", link.marked_packets);
        assert!(link.utilisation > 0.9, "{law}: {}", link.utilisation);
        let queueing_ms = flow.rtt_mean_s.unwrap() * 1e3 - 40.0 - 1.4;
        assert!((0.0..delay_ms_max).contains(&queueing_ms), "{law}: {queueing_ms} ms");
    }
}
