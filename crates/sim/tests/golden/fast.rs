//! Golden runs of FAST in ns-2.35 (CUBIN module v1.1.3): ten dumbbells with one to four flows. Each change of the window must
//! happen at the same time (the file has five decimals) with the same value (three), and the counters must be equal.

use anabranch_ns2::config::{Agent, FastOptions, SenderConfig, SinkConfig};
use anabranch_ns2::random::Mrg32k3a;
use anabranch_ns2::{Sender, Sink, TICK};
use anabranch_sim::traffic::{self, Cbr};
use anabranch_sim::{Builder, ErrorSpec, LinkSpec, Ns2Sink, Ns2Source, QueueSpec};
use anabranch_units::{Rate, SimSpan, SimTime};

use crate::series::{compare_windows, read, window_changes};

/// A run of the golden script, with the script's defaults.
struct Dumbbell {
    name: &'static str,
    rate: &'static str,
    delay: &'static str,
    limit: u32,
    access: &'static str,
    /// Start in s, alpha, beta, delay of the access links in ms.
    flows: &'static [(f64, f64, f64, u64)],
    stop: u64,
    payload: u32,
    window: f64,
    syn: bool,
    drop: &'static [u64],
    /// Start and stop in s, and rate, of a constant-rate flow through the bottleneck.
    cbr: Option<(u64, u64, &'static str)>,
    /// Per flow, the highest packet sent and the packets resent; then the packets that the queue dropped.
    expected: (&'static [(i32, u64)], u64),
}

const DEFAULT: Dumbbell = Dumbbell {
    name: "",
    rate: "10Mbit/s",
    delay: "20ms",
    limit: 100,
    access: "100Mbit/s",
    flows: &[(0.0, 20.0, 20.0, 1)],
    stop: 60,
    payload: 960,
    window: 5000.0,
    syn: true,
    drop: &[],
    cbr: None,
    expected: (&[], 0),
};

#[track_caller]
fn check(dumbbell: &Dumbbell) {
    let mut builder = Builder::new(1);
    builder.ns2_clock();
    let rate = |text: &str| text.parse::<Rate>().unwrap();
    let (left, right) = (builder.node("r1"), builder.node("r2"));
    let spec = LinkSpec::new(rate(dumbbell.rate), dumbbell.delay.parse().unwrap());
    let spec = spec.queue(QueueSpec::packets(dumbbell.limit));
    let bottleneck = builder.link(left, right, spec.clone().error(ErrorSpec::List(dumbbell.drop.to_vec()))).unwrap();
    builder.link(right, left, spec).unwrap();
    let agents: Vec<_> = dumbbell
        .flows
        .iter()
        .map(|&(_, alpha, beta, _)| Agent::Fast(FastOptions { alpha, beta, ..FastOptions::default() }))
        .collect();
    let mut stream = Mrg32k3a::new(Mrg32k3a::DEFAULT_SEED);
    for agent in &agents {
        (0..agent.draws_at_creation()).for_each(|_| _ = stream.uniform());
    }
    let mut sources = vec![];
    for (index, (&(start, _, _, delay), agent)) in dumbbell.flows.iter().zip(agents).enumerate() {
        let (source, sink) = (builder.node(format!("s{index}")), builder.node(format!("d{index}")));
        let access =
            LinkSpec::new(rate(dumbbell.access), SimSpan::from_millis(delay)).queue(QueueSpec::packets(10_000));
        builder.duplex(source, left, access.clone()).unwrap();
        builder.duplex(right, sink, access).unwrap();
        let clock_phase = SimSpan::from_secs_f64(stream.uniform() * TICK.as_secs_f64());
        let config = SenderConfig {
            payload: dumbbell.payload,
            window: dumbbell.window,
            syn: dumbbell.syn,
            clock_phase,
            ..SenderConfig::new(agent)
        };
        let source = builder.host(source, Ns2Source::new(Sender::new(config)).traced()).unwrap();
        let sink = builder.host(sink, Ns2Sink::new(Sink::new(SinkConfig::for_agent(&agent)))).unwrap();
        builder.flow(source, sink).unwrap();
        builder.start(SimTime::ZERO + SimSpan::from_secs_f64(start), source).unwrap();
        sources.push(source);
    }
    if let Some((start, stop, cbr)) = dumbbell.cbr {
        let source = builder.host(left, Cbr::new(rate(cbr), 1000)).unwrap();
        let sink = builder.host(right, traffic::Sink::default()).unwrap();
        builder.flow(source, sink).unwrap();
        builder.start(SimTime::ZERO + SimSpan::from_secs(start), source).unwrap();
        builder.stop(SimTime::ZERO + SimSpan::from_secs(stop), source).unwrap();
    }
    let mut world = builder.build().unwrap();
    // ns-2 last counted the drops a tenth of a second before the end.
    world.run_until(SimTime::ZERO + SimSpan::from_secs(dumbbell.stop) - SimSpan::from_millis(100));
    let counts = world.link(bottleneck).counts;
    world.run_until(SimTime::ZERO + SimSpan::from_secs(dumbbell.stop));
    world.assert_conserved();

    for (flow, golden) in windows(dumbbell.name, sources.len()).iter().enumerate() {
        let ours = window_changes(world.host(sources[flow]).unwrap());
        compare_windows(&format!("{}, flow {flow}", dumbbell.name), golden, &ours);
    }
    let counters: Vec<_> = sources
        .iter()
        .map(|&source| {
            let sender = world.host::<Ns2Source>(source).unwrap().sender();
            (sender.max_seq(), sender.counters().retransmitted_packets)
        })
        .collect();
    let drops = counts.drops + counts.errors;
    assert_eq!((counters.as_slice(), drops), dumbbell.expected, "{}", dumbbell.name);
}

/// Per flow, the time and the value of each change of the window.
fn windows(name: &str, flows: usize) -> Vec<Vec<(f64, f64)>> {
    let mut windows = vec![vec![]; flows];
    for row in read(&format!("fast/{name}.window")) {
        windows[row[0] as usize].push((row[1], row[2]));
    }
    windows
}

#[test]
fn single() {
    check(&Dumbbell { name: "fast_single", expected: (&[(74737, 0)], 0), ..DEFAULT });
}

#[test]
fn single_without_syn() {
    check(&Dumbbell { name: "fast_single_nosyn", syn: false, expected: (&[(74775, 0)], 0), ..DEFAULT });
}

#[test]
fn late_joiner() {
    let flows = &[(0.0, 20.0, 20.0, 1), (20.0, 20.0, 20.0, 1)];
    let expected = (&[(54939, 0), (44828, 0)][..], 0);
    check(&Dumbbell { name: "fast_late_joiner", flows, stop: 80, expected, ..DEFAULT });
}

#[test]
fn three_rtts() {
    let flows = &[(0.0, 20.0, 20.0, 1), (5.0, 20.0, 20.0, 10), (10.0, 20.0, 20.0, 40)];
    let expected = (&[(31035, 0), (31974, 0), (36814, 0)][..], 0);
    check(&Dumbbell { name: "fast_three_rtts", flows, stop: 80, limit: 200, expected, ..DEFAULT });
}

#[test]
fn drops() {
    let drop = &[3000, 3001, 9000, 20000, 20002, 20004, 20006];
    check(&Dumbbell { name: "fast_drops", drop, expected: (&[(74487, 10)], 7), ..DEFAULT });
}

#[test]
fn shallow_buffer() {
    let flows = &[(0.0, 30.0, 30.0, 1)];
    let expected = (&[(38471, 1593)][..], 1357);
    check(&Dumbbell { name: "fast_shallow_buffer", limit: 20, flows, stop: 40, expected, ..DEFAULT });
}

#[test]
fn dead_band() {
    let flows = &[(0.0, 10.0, 30.0, 5), (15.0, 10.0, 30.0, 5)];
    let expected = (&[(54612, 0), (19916, 0)][..], 0);
    check(&Dumbbell { name: "fast_deadband", flows, expected, ..DEFAULT });
}

#[test]
fn beside_a_constant_rate() {
    let (flows, cbr) = (&[(0.0, 20.0, 20.0, 5)], Some((20, 40, "4Mbit/s")));
    check(&Dumbbell { name: "fast_cbr", flows, cbr, expected: (&[(64522, 0)], 0), ..DEFAULT });
}

#[test]
fn high_speed() {
    let flows = &[(0.0, 200.0, 200.0, 1), (0.5, 200.0, 200.0, 1), (1.0, 200.0, 200.0, 1), (1.5, 200.0, 200.0, 1)];
    check(&Dumbbell {
        name: "fast_highspeed",
        rate: "800Mbit/s",
        delay: "48ms",
        access: "1Gbit/s",
        limit: 3000,
        payload: 1460,
        window: 20_000.0,
        flows,
        stop: 20,
        expected: (&[(327_971, 0), (301_812, 0), (285_812, 0), (275_330, 0)], 0),
        ..DEFAULT
    });
}

#[test]
fn tiny_alpha() {
    let flows = &[(0.0, 3.0, 3.0, 2)];
    let expected = (&[(12724, 0)][..], 0);
    check(&Dumbbell { name: "fast_tiny_alpha", rate: "2Mbit/s", delay: "80ms", limit: 30, flows, expected, ..DEFAULT });
}
