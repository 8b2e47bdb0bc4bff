//! The transport on simple networks, against closed forms.

use super::*;
use crate::report::Report;
use crate::testing::{self, parse, parsed, ran};

/// 10 Mbit/s and a round trip of 60 ms: 72 packets of 1040 B.
const CHAIN: &str = r#"
duration = "100s"
link = [{ id = "a", from = "n0", to = "n1", rate = "10Mbit/s", delay = "30ms", queue = { kind = "drop_tail", packets = 100 } }]
flow = [{ id = "f", from = "n0", to = "n1", transport = "anabranch", packet = "1040B" }]
"#;

/// The goodput of a full link: 996 of 1040 bytes are payload.
const FULL: f64 = 10e6 * 996.0 / 1040.0;

#[track_caller]
fn report(overrides: &[&str]) -> Report {
    testing::run(CHAIN, overrides)
}

#[track_caller]
fn assert_within<T: PartialOrd + std::fmt::Debug>(value: T, band: std::ops::RangeInclusive<T>) {
    assert!(band.contains(&value), "{value:?} is not within {band:?}");
}

/// fast-2006: the sender keeps alpha packets in the queue, of which one is in service.
#[test]
fn fast_keeps_alpha_packets_queued_and_the_link_full() {
    for alpha in [10.0, 30.0] {
        let report = report(&[&format!("flow.f.cc={{ name = \"fast\", alpha = {alpha} }}")]);
        assert_within(report.flows[0].goodput_bps / FULL, 0.98..=1.0);
        assert_within(report.links[0].queue_packets_mean - alpha, -1.0..=1.5);
        assert_eq!((report.flows[0].retransmitted_packets, report.links[0].dropped_packets), (0, 0));
    }
}

/// A sawtooth between half of the pipe and all of it carries three quarters; a buffer of one pipe fills the gap.
#[test]
fn reno_fills_three_quarters_of_a_link_without_a_buffer() {
    let goodput = |packets: u32| {
        let queue = format!("link.a.queue={{ kind = \"drop_tail\", packets = {packets} }}");
        report(&["flow.f.cc={ name = \"reno\" }", "duration=300s", &queue]).flows[0].goodput_bps / FULL
    };
    assert_within(goodput(4), 0.73..=0.85);
    assert_within(goodput(72), 0.97..=1.0);
}

/// rfc-9438 sec. 4.6: CUBIC keeps 0.7 of the window, so it needs less of a buffer than Reno.
#[test]
fn cubic_needs_less_of_a_buffer() {
    let goodput = |law: &str| {
        let queue = "link.a.queue={ kind = \"drop_tail\", packets = 24 }";
        report(&[&format!("flow.f.cc={{ name = \"{law}\" }}"), "duration=300s", queue]).flows[0].goodput_bps / FULL
    };
    let (cubic, reno) = (goodput("cubic"), goodput("reno"));
    assert!(cubic > reno && cubic > 0.94, "{cubic} against {reno}");
}

/// mathis-1997: sqrt(3/2p) segments a round trip, on a link that is never full.
#[test]
fn reno_with_random_loss_is_as_fast_as_the_square_root_says() {
    let loss: f64 = 0.002;
    let error = format!("link.a.error={{ kind = \"uniform\", rate = {loss} }}");
    let report = report(&["flow.f.cc={ name = \"reno\" }", "duration=1000s", "link.a.rate=1Gbit/s", &error]);
    let segments = report.flows[0].goodput_bps / (8.0 * 996.0) * 0.060;
    assert_within(segments / (1.5 / loss).sqrt(), 0.85..=1.15);
}

/// Every packet that arrived for the first time carried payload that was read; the rest is headers.
#[test]
fn streams_share_a_connection_and_cost_four_bytes_each_segment() {
    for streams in [0, 1, 5, 200] {
        let report = report(&["flow.f.cc={ name = \"fast\", alpha = 20 }", &format!("flow.f.streams={streams}")]);
        let flow = &report.flows[0];
        let payload = if streams == 0 { 1000.0 } else { 996.0 };
        assert_within(flow.goodput_bps * 100.0 / 8.0 / payload / flow.delivered_packets as f64, 0.99..=1.0);
        assert_within(flow.goodput_bps / 10e6 * 1040.0 / payload, 0.98..=1.0);
    }
}

/// A window of 36 packets, half of the pipe.
#[test]
fn a_receive_buffer_limits_the_rate() {
    let report = report(&["flow.f.rbuf=36kB"]);
    let bound = 36_000.0 * 8.0 / 0.0608 * 0.996;
    assert_within(report.flows[0].goodput_bps / bound, 0.93..=1.01);
}

/// 40 messages of 20 kB over 4 streams: all bytes arrive, and no more.
#[test]
fn messages_arrive_whole() {
    let workload = "flow.f.workload={ kind = \"messages\", bytes = \"20kB\", count = 40, every = \"100ms\" }";
    let error = "link.a.error={ kind = \"uniform\", rate = 0.02 }";
    let report = report(&[workload, error, "flow.f.streams=4", "duration=20s"]);
    assert_within(report.flows[0].goodput_bps * 20.0 / 8.0, 800_000.0..=800_000.0);
}

/// A message of one full segment takes 30 ms and the transmission of 1040 B at 10 Mbit/s: 30.832 ms. One segment is lost: the next message
/// on its stream waits for the retransmission, messages on other streams do not.
#[test]
fn a_message_is_delayed_until_it_is_whole() {
    let delays = |streams: u8| {
        let workload = "flow.f.workload={ kind = \"messages\", bytes = \"996B\", count = 50, every = \"20ms\" }";
        // The handshake has two packets in this direction.
        let error = "link.a.error={ kind = \"list\", packets = [22] }";
        let streams = format!("flow.f.streams={streams}");
        let scenario = parsed(CHAIN, &[workload, error, &streams, "duration=3s"]);
        let wanted = ["flow.f.delay".to_owned()];
        let simulation = ran(&scenario, Recording::Series(&wanted));
        simulation.series("flow.f.delay").unwrap()
    };
    // After the timeout the window is one segment, which holds one more message back.
    for (streams, late) in [(1, 3..=10), (2, 1..=3)] {
        let delays = delays(streams);
        // The first messages wait for the handshake.
        let count = delays.count(None, 0.25, 3.0) as i32;
        assert_within(delays.quantile(0.5, 0.25, 3.0).unwrap(), 0.03083..=0.03084);
        let most = delays.quantile(1.0, 0.25, 3.0).unwrap();
        assert_within(most, 0.09..=0.2);
        let above = delays.points.iter().filter(|&&(at, delay)| at > 0.25 && delay > 0.032).count() as i32;
        assert!(count > 35 && late.contains(&above), "{streams} streams: {above} of {count} messages are late");
    }
}

/// A setting without a meaning is refused.
#[test]
fn keys_unknown_to_engine_are_refused() {
    let refused = |argument: &str| parse(CHAIN, &[argument]).unwrap_err().to_string();
    assert!(refused("flow.f.window=20").contains("`anabranch` has no key `window`"), "{}", refused("flow.f.window=20"));
    assert!(refused("flow.f.packet=90B").contains("a packet of 90B is impossible"));
    assert!(refused("flow.f.rbuf=900B").contains("a receive buffer of 900B is impossible"));
    assert!(refused("flow.f.delayed_acks=500ms").contains("an acknowledgement cannot wait for 500ms"));
    assert!(refused("flow.f.delayed_acks=0s").contains("above 0s and below 500ms"));
    assert!(refused("flow.f.keep_alive=0s").contains("use a time above 0s"));
    assert!(refused("flow.f.loss_detection=fack").contains("rack"));
    assert!(refused("flow.f.repair=any_path").contains("retransmits there"));
    assert!(refused("flow.f.failover=never").contains("no other path to take over"));
    assert!(refused("flow.f.cc={ name = \"fsat\" }").contains("fast"));
    assert!(refused("flow.f.cc={ name = \"fast\", alpa = 3 }").contains("alpha"));
}

/// Two paths: 50 Mbit/s with a round trip of 20 ms, and 10 Mbit/s with 200 ms.
const TWO: &str = r#"
duration = "30s"
link = [
    { id = "a0", from = "s", to = "x0", rate = "1Gbit/s", delay = "1ms", queue = { kind = "unlimited" } },
    { id = "a1", from = "s", to = "x1", rate = "1Gbit/s", delay = "1ms", queue = { kind = "unlimited" } },
    { id = "b0", from = "x0", to = "d", rate = "50Mbit/s", delay = "9ms", queue = { kind = "drop_tail", packets = 200 } },
    { id = "b1", from = "x1", to = "d", rate = "10Mbit/s", delay = "99ms", queue = { kind = "drop_tail", packets = 200 } },
]

[[flow]]
id = "f"
from = "s"
to = "d"
transport = "anabranch"
packet = "1500B"
rbuf = "3MB"
cc = { name = "fast" }
paths = [{ first = "a0", last = "b0" }, { first = "a1", last = "b1" }]
"#;

const BETTER_ALONE: &str = "flow.f.paths=[{ first = \"a0\", last = \"b0\" }]";

/// The receive buffer is twice the product of the summed rates and the longer RTT, as RFC 6182 sec. 5.3 advises. About 2 of the 30 s pass before
/// the slow path is full.
#[test]
fn two_unequal_paths_are_full_whoever_chooses_between_them() {
    let payload = 1456.0 / 1500.0;
    let alone = testing::run(TWO, &[BETTER_ALONE]).flows[0].goodput_bps;
    for scheduler in ["min_rtt", "window"] {
        let report = testing::run(TWO, &[&format!("flow.f.scheduler={scheduler}")]);
        let flow = &report.flows[0];
        assert_within(flow.goodput_bps / (60e6 * payload), 0.95..=1.0);
        assert!(flow.goodput_bps > alone);
        assert_eq!((flow.paths.len(), flow.retransmitted_packets, flow.dropped_packets), (2, 0, 0), "{scheduler}");
        assert_within(flow.paths[1].rtt_mean_s.unwrap(), 0.2..=0.25);
        assert_within(flow.paths[0].rtt_mean_s.unwrap(), 0.02..=0.03);
    }
}

/// Loss-based laws fill buffers and cause losses; both paths are still used, and the sum is never less than the better path.
#[test]
fn every_law_uses_both_paths() {
    for law in ["reno", "cubic", "vegas", "anabranch"] {
        let law = format!("flow.f.cc={{ name = \"{law}\" }}");
        let goodput =
            |overrides: &[&str]| testing::run(TWO, &[overrides, &[&law, "duration=60s"]].concat()).flows[0].goodput_bps;
        let (both, alone) = (goodput(&[]), goodput(&[BETTER_ALONE]));
        assert!(both > 1.05 * alone, "{law}: {both} and {alone}");
        assert_within(both / (60e6 * 1456.0 / 1500.0), 0.85..=1.0);
    }
}

/// The receive buffer is too small for the data that the slow path blocks: the slow path is not used, and the fast one is hardly slower.
#[test]
fn a_small_buffer_costs_the_slow_path_and_not_the_fast_one() {
    for rbuf in ["flow.f.rbuf=300kB", "flow.f.rbuf=500kB", "flow.f.rbuf=750kB"] {
        let goodput =
            |overrides: &[&str]| testing::run(TWO, &[overrides, &[rbuf, "duration=60s"]].concat()).flows[0].goodput_bps;
        assert!(
            goodput(&[]) > 0.97 * goodput(&[BETTER_ALONE]),
            "{rbuf}: {} and {}",
            goodput(&[]),
            goodput(&[BETTER_ALONE])
        );
    }
}

/// Two paths of 20 Mbit/s, 40 and 60 ms; the second one is cut for ever after 10 s. The reader gets no data until this is detected
/// and the lost data is retransmitted; before and after that, the links are full.
#[test]
fn a_path_that_dies_costs_less_than_300_ms() {
    let text = TWO
        .replace("rate = \"50Mbit/s\", delay = \"9ms\"", "rate = \"20Mbit/s\", delay = \"19ms\"")
        .replace("rate = \"10Mbit/s\", delay = \"99ms\"", "rate = \"20Mbit/s\", delay = \"29ms\"")
        .replace("packets = 200", "packets = 60")
        .replace("name = \"fast\"", "name = \"LAW\"");
    for law in ["fast", "reno", "cubic", "anabranch"] {
        let outage = "link.b1.outages=[{ from = \"10s\", until = \"100s\" }]";
        let scenario = parsed(&text.replace("LAW", law), &[outage]);
        let simulation = ran(&scenario, Recording::Trace);
        let events = simulation.series("flow.f.goodput").unwrap().points;
        let after = |start: f64| events.iter().filter(move |(at, _)| *at > start);
        let gap = after(9.9).zip(after(9.9).skip(1)).map(|(a, b)| b.0 - a.0).fold(0.0, f64::max);
        assert!(gap <= 0.3, "{law}: nothing for {gap} s");
        // The data that the better path carries alone in the 20 s after the cut, less 300 ms.
        let carried: f64 = after(10.0).map(|(_, bits)| bits).sum();
        let full = 20e6 * 1456.0 / 1500.0;
        assert!(
            carried >= full * (20.0 - 0.3) * if law == "fast" { 1.0 } else { 0.95 },
            "{law}: {} s of it",
            carried / full
        );
        let report = simulation.report();
        assert_eq!(
            (report.flows[0].paths[0].state.as_deref(), report.flows[0].paths[1].state.as_deref()),
            (Some("live"), Some("suspect")),
            "{law}"
        );
    }
}

/// The weights decide, although both paths could carry more.
#[test]
fn weights_and_backups_are_heeded() {
    let shares = |overrides: &[&str]| {
        let flow = testing::run(TWO, overrides).flows.remove(0);
        let sum: f64 = flow.paths.iter().filter_map(|path| path.delivered_bps).sum();
        flow.paths[0].delivered_bps.unwrap() / sum
    };
    let weights = "flow.f.paths=[{ first = \"a0\", last = \"b0\", weight = 3 }, { first = \"a1\", last = \"b1\" }]";
    assert_within(shares(&["flow.f.scheduler=weighted", weights]), 0.745..=0.755);
    assert_within(shares(&["flow.f.scheduler=backup"]), 1.0..=1.0);
}

/// Two paths from a host with two interfaces to a host with one.
#[test]
fn one_end_may_have_a_single_interface() {
    let report = testing::run(
        r#"
duration = "20s"
link = [
    { id = "a0", from = "s", to = "x", rate = "10Mbit/s", delay = "5ms" },
    { id = "a1", from = "s", to = "x", rate = "5Mbit/s", delay = "20ms" },
    { id = "b", from = "x", to = "d", rate = "1Gbit/s", delay = "5ms" },
]
[[flow]]
id = "f"
from = "s"
to = "d"
transport = "anabranch"
paths = [{ first = "a0", last = "b" }, { first = "a1", last = "b" }]
"#,
        &[],
    );
    assert_within(report.flows[0].throughput_bps / 15e6, 0.9..=1.0);
}

/// A setting of paths without a meaning is refused, too.
#[test]
fn keys_unknown_to_paths_are_refused() {
    let refused = |argument: &str| parse(TWO, &[argument]).unwrap_err().to_string();
    let path = |key: &str| format!("flow.f.paths=[{{ first = \"a0\", last = \"b0\", {key} }}]");
    assert!(refused(&path("weight = 3")).contains("no `weight`"), "{}", refused(&path("weight = 3")));
    assert!(refused(&path("loss_rate = 0.1")).contains("unknown key `loss_rate`"));
    assert!(refused("flow.f.streams=0").contains("plain TCP has one path"));
    assert!(refused("flow.f.scheduler=fastest").contains("window"), "{}", refused("flow.f.scheduler=fastest"));
    assert!(refused("flow.f.failover=soon").contains("never"), "{}", refused("flow.f.failover=soon"));
    let backup = parse(TWO, &["flow.f.scheduler=backup", "flow.f.failover=never"]).unwrap_err().to_string();
    assert!(backup.contains("failover is off"), "{backup}");
    let single = parse(CHAIN, &["flow.f.scheduler=window"]).unwrap_err().to_string();
    assert!(single.contains("one path needs no scheduler"), "{single}");
}

/// One segment of 1040 B takes 0.832 ms to send and 30 ms to arrive. One of 50 separate segments is lost and arrives later; its delay
/// counts from its first departure, and the others have the same delay as before.
#[test]
fn a_delay_counts_from_the_first_departure() {
    let workload = "flow.f.workload={ kind = \"messages\", bytes = \"996B\", count = 50, every = \"300ms\" }";
    let clean = report(&[workload]).flows[0].one_way_delay_mean_s.unwrap();
    assert_within(clean, 0.030_831..=0.030_833);
    let error = "link.a.error={ kind = \"list\", packets = [22] }";
    let lossy = &report(&[workload, error]).flows[0];
    assert_eq!((lossy.retransmitted_packets, lossy.max_seq, lossy.acked_seq), (1, Some(50), Some(50)));
    // Nothing follows it for 300 ms, so a probe or the timer retransmits it: after a round trip, and within a second.
    let late = (lossy.one_way_delay_mean_s.unwrap() - clean) * 50.0;
    assert_within(late, 0.06..=1.0);
}

/// The last two of twenty packets are lost. Two round trips after the last ACK a probe leaves, and its ACK reveals the loss of the other packet. The
/// probe meets a shorter queue than all data before, so it takes 60 ms to be sure that the ACK is for the probe. All data arrives within 350 ms.
#[test]
fn the_answer_to_a_probe_that_meets_no_queue_counts() {
    let probed = |detection: &str| {
        // The handshake has two packets in this direction.
        let error = "link.a.error={ kind = \"list\", packets = [20, 21] }";
        let law = "flow.f.cc={ name = \"reno\", initial_window = 20 }";
        let workload = "flow.f.workload={ kind = \"fixed\", bytes = \"20000B\" }";
        let scenario = parsed(CHAIN, &[error, law, workload, "flow.f.streams=0", "duration=3s", detection]);
        let wanted = ["flow.f.goodput".to_owned()];
        let simulation = ran(&scenario, Recording::Series(&wanted));
        simulation.series("flow.f.goodput").unwrap().points.last().unwrap().0
    };
    assert_within(probed("flow.f.loss_detection=rack"), 0.2..=0.4);
}

/// A transfer with one lost packet: later packets wait for the retransmission. With five streams only those of the lost packet's stream
/// wait, a fifth of them.
#[test]
fn packets_after_hole_are_held() {
    let held = |streams: u8| {
        let error = "link.a.error={ kind = \"at\", times = [\"5s\"] }";
        let shared = format!("flow.f.streams={streams}");
        let scenario = parsed(CHAIN, &[error, &shared, "flow.f.cc={ name = \"fast\" }", "duration=10s"]);
        let wanted = ["flow.f.held".to_owned(), "flow.f.stream.1.goodput".to_owned()];
        let simulation = ran(&scenario, Recording::Series(&wanted[..]));
        let series = simulation.series("flow.f.held").unwrap();
        let first = series.points.iter().find(|(_, held)| *held > 0.0).unwrap().0;
        assert_within(first, 5.03..=5.07);
        let stream = simulation.series("flow.f.stream.1.goodput").unwrap();
        let bits: f64 = stream.points.iter().map(|(_, bits)| bits).sum();
        assert_within(bits / 10.0 * f64::from(streams) / FULL, 0.95..=1.0);
        let report = simulation.report();
        let most = series.points.iter().map(|(_, held)| *held).fold(0.0, f64::max);
        assert_eq!(report.flows[0].held_packets_max, Some(most as u64));
        most
    };
    let (one, five) = (held(1), held(5));
    assert_within(one / five, 4.0..=6.0);
}

/// 12 of 1040 bytes are the timestamp option.
#[test]
fn timestamps_cost_12_bytes_of_each_packet() {
    for (timestamps, payload) in [(false, 996.0), (true, 984.0)] {
        let law = "flow.f.cc={ name = \"fast\", alpha = 20 }";
        let flow = report(&[law, &format!("flow.f.timestamps={timestamps}")]).flows.remove(0);
        assert_within(flow.goodput_bps * 100.0 / 8.0 / payload / flow.delivered_packets as f64, 0.999..=1.0);
        assert_within(flow.goodput_bps / 10e6 * 1040.0 / payload, 0.98..=1.0);
    }
}

/// A hundred messages of 100 B, one every 10 ms, so several in a round trip of 60 ms: without Nagle each has a packet, with Nagle those of a round
/// trip share one.
#[test]
fn nagle_puts_the_messages_of_a_round_trip_into_a_packet() {
    let sent = |nagle: bool| {
        let workload = "flow.f.workload={ kind = \"messages\", bytes = \"100B\", count = 100, every = \"10ms\" }";
        let flow = report(&[workload, &format!("flow.f.nagle={nagle}"), "duration=10s"]).flows.remove(0);
        assert_within(flow.goodput_bps * 10.0 / 8.0, 9999.9..=10_000.1);
        flow.sent_packets
    };
    // The messages of the first 60 ms wait for the handshake.
    assert_within(sent(false), 90..=100);
    assert_within(sent(true), 16..=18);
}

/// A connection that is idle from the first second of 100 on: each end sends eleven keep-alive probes, and gets an answer to each.
#[test]
fn an_idle_connection_is_kept_alive() {
    let packets = |more: &[&str]| {
        let workload = "flow.f.workload={ kind = \"fixed\", bytes = \"10kB\" }";
        let report = report(&[&[workload], more].concat());
        [0, 1].map(|link| report.links[link].forwarded_packets)
    };
    let (silent, asking) = (packets(&[]), packets(&["flow.f.keep_alive=9s"]));
    assert_eq!(asking, silent.map(|packets| packets + 22));
}

/// The last two of 20 packets are lost. Two round trips after the last ACK a probe repeats one of them: they arrive three and four round trips
/// late. Without probes the timer does, 200 ms and a round trip after the last ACK.
#[test]
fn losses_are_found_as_the_scenario_says() {
    let mean = |more: &[&str]| {
        let workload = "flow.f.workload={ kind = \"fixed\", bytes = \"20kB\" }";
        let law = "flow.f.cc={ name = \"reno\", initial_window = 10 }";
        let flow = report(&[&[workload, law, "flow.f.streams=0"], more].concat()).flows.remove(0);
        assert_eq!(flow.delivered_packets, 20);
        flow.one_way_delay_mean_s.unwrap()
    };
    let lost = "link.a.error={ kind = \"list\", packets = [20, 21] }";
    let late = |detection: &str| (mean(&[lost, &format!("flow.f.loss_detection={detection}")]) - mean(&[])) * 20.0;
    let rtt = 0.062;
    assert_within(late("rack"), 6.5 * rtt..=7.5 * rtt);
    assert_within(late("dup_acks"), 0.4 + 4.5 * rtt..=0.4 + 5.5 * rtt);
}

/// Every other packet is acknowledged; at the end of a burst an ACK waits no longer than 40 ms.
#[test]
fn acknowledgements_are_delayed_as_the_scenario_says() {
    let packets = |more: &[&str]| {
        let workload = "flow.f.workload={ kind = \"fixed\", bytes = \"996kB\" }";
        report(&[&[workload], more].concat()).links[1].forwarded_packets as f64
    };
    assert_within(packets(&["flow.f.delayed_acks=40ms"]) / packets(&[]), 0.5..=0.6);
}

/// A packet is lost on the slow path, while the fast one has room.
#[test]
fn a_repair_takes_the_path_that_the_scenario_says() {
    let again = |repair: &str| {
        let lost = "link.b1.error={ kind = \"at\", times = [\"15s\"] }";
        let workload = "flow.f.workload={ kind = \"messages\", bytes = \"14560B\", every = \"100ms\" }";
        let repair = format!("flow.f.repair={repair}");
        let flow = testing::run(TWO, &["flow.f.scheduler=weighted", workload, lost, &repair]).flows.remove(0);
        (flow.paths[0].retransmitted_packets, flow.paths[1].retransmitted_packets)
    };
    assert_eq!((again("same_path"), again("any_path")), ((0, 1), (1, 0)));
}

/// The slow path is cut for five seconds while it carries data. With failover the other path retransmits the data; without it, later data is
/// not read before the path is back.
#[test]
fn a_silent_path_is_waited_for_if_the_scenario_says_so() {
    let read = |failover: &str| {
        let failover = format!("flow.f.failover={failover}");
        let outage = "link.b1.outages=[{ from = \"10s\", until = \"15s\" }]";
        let scenario = parsed(TWO, &["duration=20s", "flow.f.scheduler=window", outage, &failover]);
        let simulation = ran(&scenario, Recording::Trace);
        let goodput = simulation.series("flow.f.goodput").unwrap();
        (goodput.count(None, 11.0, 15.0), goodput.mean(18.0, 20.0).unwrap() / 1e6)
    };
    let ((while_cut, afterwards), (taken_over, _)) = (read("never"), read("on_silence"));
    assert!(while_cut < 1.0 && taken_over > 1000.0, "read {while_cut} and {taken_over} times");
    // A timeout of about 0.4 s has doubled to 3.2 s: the path is probed again after six seconds, and then data moves again.
    assert_within(afterwards, 30.0..=60.0);
}

/// A link of 10 Mbit/s with drivers at both ends that read every 4 ms: Reno still fills it, as it does not measure delay.
#[test]
fn programs_with_drivers_move_data_and_lose_nothing() {
    let batch = "arrivals = { kind = \"grid\", every = \"4ms\" }, reads = \"batch\", timer = \"1ms\"";
    let hosts = format!("host=[{{ node = \"n0\", {batch} }}, {{ node = \"n1\", {batch} }}]");
    let report = report(&[&hosts, "flow.f.cc={ name = \"reno\" }", "duration=30s"]);
    assert_within(report.flows[0].goodput_bps / FULL, 0.97..=1.0);
    // With reads in batches, an RTT is up to 8 ms longer.
    assert_within(report.flows[0].rtt_p50_s.unwrap(), 0.064..=0.16);
}
