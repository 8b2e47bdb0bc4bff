//! ns-2's SCTP in a scenario.

use anabranch_ns2::sctp::{Alternate, CmtOptions, Dormant, EndpointConfig, RetransmissionPolicy, Variant};

use super::*;
use crate::scenario::transport::Transport;

/// The chain of mfast-2019.
const SCTP: &str = r#"
duration = "100s"
link = [
    { id = "a", from = "n0", to = "n1", rate = "2Mbit/s", delay = "10ms", queue = { kind = "drop_tail", packets = 10 } },
    { id = "b", from = "n1", to = "n2", rate = "1.5Mbit/s", delay = "100ms", queue = { kind = "drop_tail", packets = 10 } },
    { id = "c", from = "n2", to = "n3", rate = "2Mbit/s", delay = "10ms", queue = { kind = "drop_tail", packets = 10 } },
]
flow = [{ id = "f", from = "n0", to = "n3", start = "1s", transport = "ns2/sctp", packet = "1000B", options = { streams = 5 } }]
"#;

/// mfast-2019, Table 2, and its golden run: ns-2's clock orders equal times as ns-2 does.
#[test]
fn sctp_of_mfast_2019() {
    let scenario = format!("clock = \"ns2\"\n{SCTP}");
    let flow = testing::run(&scenario, &[]).flows.remove(0);
    assert_eq!(format!("{:.2} {:.2}", flow.throughput_bps / 1e3, flow.goodput_bps / 1e3), "1096.48 1043.85");
    assert_eq!((flow.dropped_packets, flow.retransmitted_packets), (30, 30));
}

/// The receive buffer of 65536 bytes holds 67 chunks of packets of 1000 bytes: more than the 47 that fill the path, and the other 20 fit
/// into its queue. After slow start the bottleneck is full, and 952 of 1000 bytes are payload.
#[test]
fn sctp_fills_a_path() {
    let scenario = SCTP.replace(", queue = { kind = \"drop_tail\", packets = 10 }", "");
    let flow = testing::run(&scenario, &[]).flows.remove(0);
    assert_eq!((flow.dropped_packets, flow.retransmitted_packets), (0, 0));
    // Handshake, heartbeat and slow start take two of the 99 s.
    assert!((1.46e6..1.5e6).contains(&flow.throughput_bps), "{} bit/s", flow.throughput_bps);
    assert!((flow.goodput_bps / flow.throughput_bps - 0.952).abs() < 1e-9);
    // 67 packets at 1.5 Mbit/s take 0.357 s, of which the reverse direction takes 0.12 s.
    assert!((0.2..0.24).contains(&flow.one_way_delay_mean_s.unwrap()), "{:?} s", flow.one_way_delay_mean_s);
}

/// Every option of an endpoint is set from its own key.
#[test]
fn options_of_sctp_are_set() {
    let config = |agent: &str, options: &str| {
        let text = SCTP.replacen("ns2/sctp", agent, 1).replacen("streams = 5", options, 1);
        match parsed(&text, &[]).flows.remove(0).transport {
            Transport::Sctp { config, .. } => *config,
            other => panic!("{other:?}"),
        }
    };
    // A packet of 1000 bytes has 32 of headers.
    let absent = EndpointConfig { mtu: 1000, chunk: 968, ..EndpointConfig::new(Variant::Plain) };
    assert_eq!(config("ns2/sctp", ""), absent, "as ns-2.35 sets them");
    let options = "chunk = 500, streams = 7, receive_buffer = 90000, ssthresh = 30000, window_floor = 4, sack_delay = \"50ms\", \
                   burst_limit = false, missing_reports = 5, unordered = true, dormant = \"last\", path_errors_max = 2, \
                   association_errors_max = 3, heartbeat = 9, alternate = \"timeouts\"";
    let set = EndpointConfig {
        chunk: 500,
        streams: 7,
        receive_buffer: 90_000,
        ssthresh: 30_000,
        window_floor: 4,
        sack_delay: Some(SimSpan::from_millis(50)),
        limits_bursts: false,
        missing_reports: 5,
        unordered: true,
        dormant: Dormant::Last,
        path_errors_max: 2,
        association_errors_max: 3,
        heartbeat_s: Some(9),
        alternate: Alternate::Timeouts,
        ..absent
    };
    assert_eq!(config("ns2/sctp", options), set);
    let none = config("ns2/sctp", "delayed_sack = false, heartbeat = 0");
    assert_eq!((none.sack_delay, none.heartbeat_s), (None, None));
    let policy = "split_fast_retransmit = false, window_update = false, delayed_ack = false, policy = \"loss_rate\"";
    let cmt = Variant::Cmt(CmtOptions {
        split_fast_retransmit: false,
        window_update: false,
        delayed_ack: false,
        policy: RetransmissionPolicy::LossRate,
    });
    assert_eq!(config("ns2/sctp-cmt", policy), EndpointConfig { variant: cmt, ..absent });
}

/// Two paths of 1 Mbit/s: CMT fills both, plain SCTP one.
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
    let rate = |text: &str| testing::run(text, &[]).flows[0].throughput_bps / 1e6;
    let cmt = two.replace("ns2/sctp", "ns2/sctp-cmt");
    let (plain, both) = (rate(two), rate(&cmt));
    assert!((0.9..=1.0).contains(&plain) && (1.8..=2.0).contains(&both), "{plain} and {both} Mbit/s");

    let scenario = parsed(&cmt, &[]);
    let simulation = ran(&scenario, Recording::Trace);
    let at = |series: &str| simulation.series(&format!("flow.f.{series}")).unwrap().value_at(20.0).unwrap();
    assert!((at("path.1.window") + at("path.2.window") - at("window")).abs() < 1e-9);
    // A chunk of 1452 bytes with its header.
    let offered = simulation.series("flow.f.peer_window").unwrap().extreme(Extreme::Most, 0.0, 30.0).unwrap().1;
    assert!((offered - 65536.0 / 1468.0).abs() < 1e-9, "{offered} packets");
    let refused = ["flow.f.path.3.window", "flow.f.path.2.ssthresh"].map(|name| simulation.series(name).is_err());
    assert_eq!(refused, [true, false]);
}

#[track_caller]
fn assert_sctp_refused(from: &str, to: &str, expected: &str) {
    let text = SCTP.replacen(from, to, 1);
    assert_ne!(text, SCTP);
    let error = parse(&text, &[]).unwrap_err();
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn keys_unknown_to_sctp_are_refused() {
    assert_sctp_refused("streams = 5", "policy = \"same\"", "chain.toml:8:113: unknown key `policy`; there are chunk");
    assert_sctp_refused("streams = 5", "stream = 5", ":8:113: unknown key `stream`; did you mean `streams`?");
    assert_sctp_refused("streams = 5", "streams = 0", "found integer `0`, expected a whole number from 1 to 65535");
    assert_sctp_refused("streams = 5", "window_floor = 1001", "found `1001`, expected a whole number from 1 to 1000");
    assert_sctp_refused("streams = 5", "dormant = \"hopp\"", "unknown kind `hopp`; did you mean `hop`?");
    assert_sctp_refused("streams = 5", "primary = 2", "`primary` cannot be `2`; use 1 to 1");
    let idle = "delayed_sack = false, sack_delay = \"100ms\"";
    assert_sctp_refused("streams = 5", idle, "no SACK of this endpoint is delayed; remove it");
    assert_sctp_refused("streams = 5", "chunk = 1000", "a chunk of 1000 does not fit a packet of 1000; use 17 to 968");
    assert_sctp_refused(
        "packet =",
        "window = 20, packet =",
        "`ns2/sctp` has no key `window`; there are rto_min, paths, workload, options",
    );
    assert_sctp_refused(
        "packet =",
        "workload = { kind = \"messages\", bytes = \"1kB\", every = \"1s\" }, packet =",
        "does not send what is offered while it is idle",
    );
    assert_sctp_refused(
        "packet =",
        "paths = [{ first = \"b\", last = \"c\" }], packet =",
        "`b` is no duplex link that leaves node `n0`",
    );
}
