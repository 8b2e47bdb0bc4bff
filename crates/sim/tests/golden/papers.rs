//! Golden runs of mfast-2019 and emfast-2019: one flow over three links, with and without competitors.

use std::num::NonZeroU8;

use anabranch_cc::law::fast::refill::{self, Refill};
use anabranch_ns2::config::{Agent, FastOptions, NewRenoOptions, SenderConfig, SinkConfig};
use anabranch_ns2::random::Mrg32k3a;
use anabranch_ns2::{Sender, Sink, Streams, TICK};
use anabranch_sim::{Builder, DeliveryRow, ErrorSpec, HostId, LinkId, LinkSpec, Ns2Sink, Ns2Source, QueueSpec, World};
use anabranch_units::{Rate, SimSpan, SimTime};

use crate::series::{compare_windows, read, window_changes};

/// What varies between the golden runs.
struct Paper {
    /// The golden file, without its ending.
    name: &'static str,
    agent: Agent,
    /// The packet that is lost, and where: on the access link (emfast-2019) or before the bottleneck (mfast-2019).
    drop: Option<(u64, LossyLink)>,
    /// Whether halving keeps fractions of a packet; old ns-2 did not.
    precise_halving: bool,
    /// Streams of MFast; `None` is FAST.
    streams: Option<NonZeroU8>,
    /// The settings of four competing New Reno flows.
    competitors: Option<Competitors>,
    /// Packets received, counting the SYN and duplicates; then losses and retransmitted packets.
    received: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum LossyLink {
    Access,
    Bottleneck,
}

#[derive(Clone, Copy)]
struct Competitors {
    window: f64,
    entrance: u32,
    /// Delay of the link from R2 to the sink of the flow under study, in ms.
    exit_delay: u64,
}

const fn fast(alpha: f64, beta: f64, refill: Refill) -> Agent {
    Agent::Fast(FastOptions {
        alpha,
        beta,
        gamma: 0.5,
        mi_threshold: 0.00075,
        period: 0.01,
        base: anabranch_ns2::config::BaseRtt::Min,
        refill,
        loss: anabranch_ns2::config::LossPolicy::Halve,
    })
}

const OLD_NEWRENO: Agent = Agent::NewReno(NewRenoOptions { impatient: false });

fn run(paper: &Paper) -> (World, HostId, HostId, LinkId) {
    let mut builder = Builder::new(1);
    builder.ns2_clock();
    let nodes: Vec<_> = (0..6).map(|node| builder.node(format!("{node}"))).collect();
    let spec = |rate: u64, delay: u64, limit: u32| {
        LinkSpec::new(Rate::from_bits_per_second(rate), SimSpan::from_millis(delay)).queue(QueueSpec::packets(limit))
    };
    let lossy = |spec: LinkSpec, place: LossyLink| match paper.drop {
        Some((packet, at)) if at == place => spec.error(ErrorSpec::List(vec![packet])),
        _ => spec,
    };
    let competitors = paper.competitors.unwrap_or(Competitors { window: 0.0, entrance: 10, exit_delay: 10 });
    // Nodes 0 and 1 are the ends of the flow under study, 2 and 3 those of its competitors, 4 and 5 the routers.
    let mut duplex = |from: usize, to: usize, forward: LinkSpec, back: LinkSpec| {
        let link = builder.link(nodes[from], nodes[to], forward).unwrap();
        builder.link(nodes[to], nodes[from], back).unwrap();
        link
    };
    duplex(0, 4, lossy(spec(2_000_000, 10, 10), LossyLink::Access), spec(2_000_000, 10, 10));
    duplex(2, 4, spec(1_000_000, 10, competitors.entrance), spec(1_000_000, 10, 10));
    let bottleneck = duplex(4, 5, lossy(spec(1_500_000, 100, 10), LossyLink::Bottleneck), spec(1_500_000, 100, 10));
    duplex(5, 3, spec(1_000_000, 10, 10), spec(1_000_000, 10, 10));
    let exit = competitors.exit_delay;
    duplex(5, 1, spec(2_000_000, exit, 10), spec(2_000_000, exit, 10));

    let count = if paper.competitors.is_some() { 4 } else { 0 };
    let agents: Vec<Agent> = std::iter::once(paper.agent).chain(std::iter::repeat_n(OLD_NEWRENO, count)).collect();
    let mut stream = Mrg32k3a::new(1);
    for agent in &agents {
        (0..agent.draws_at_creation()).for_each(|_| _ = stream.uniform());
    }
    let mut ends = None;
    for (index, &agent) in agents.iter().enumerate() {
        let clock_phase = SimSpan::from_secs_f64(stream.uniform() * TICK.as_secs_f64());
        let (from, to, window) = if index == 0 { (0, 1, 1000.0) } else { (2, 3, competitors.window) };
        let precise_halving = index == 0 && paper.precise_halving;
        let config = SenderConfig { payload: 960, window, clock_phase, precise_halving, ..SenderConfig::new(agent) };
        let source = builder.host(nodes[from], Ns2Source::new(Sender::new(config)).traced()).unwrap();
        let sink = Ns2Sink::new(Sink::new(SinkConfig::for_agent(&agent)));
        let sink = match paper.streams.filter(|_| index == 0) {
            None => sink,
            Some(streams) => sink.with_streams(Streams::new(streams, window as u32)),
        };
        let sink = builder.host(nodes[to], sink.traced()).unwrap();
        builder.flow(source, sink).unwrap();
        builder.start(SimTime::ZERO + SimSpan::from_secs(1), source).unwrap();
        ends = ends.or(Some((source, sink)));
    }
    let (source, sink) = ends.unwrap();
    let mut world = builder.build().unwrap();
    world.run_until(SimTime::ZERO + SimSpan::from_secs(100) - SimSpan::from_ticks(1));
    world.assert_conserved();
    (world, source, sink, bottleneck)
}

#[track_caller]
fn check(paper: &Paper) -> (World, HostId) {
    let (world, source, _) = check_windows(paper);
    (world, source)
}

#[track_caller]
fn check_windows(paper: &Paper) -> (World, HostId, HostId) {
    let (world, source, sink, _) = run(paper);
    let golden: Vec<_> = read(&format!("papers/{}.window", paper.name)).iter().map(|row| (row[0], row[1])).collect();
    compare_windows(paper.name, &golden, &window_changes(world.host(source).unwrap()));
    let received = world.host::<Ns2Sink>(sink).unwrap().sink().received();
    assert_eq!(received.packets, paper.received, "{}: packets received", paper.name);
    (world, source, sink)
}

const SINGLE: Paper = Paper {
    name: "",
    agent: fast(8.0, 2.0, Refill::PerRtt),
    drop: None,
    precise_halving: true,
    streams: None,
    competitors: None,
    received: 0,
};

#[test]
fn mfast_alpha_5() {
    let (name, agent) = ("mfast_fast_a5b5", fast(5.0, 5.0, Refill::PerRtt));
    let (world, source) = check(&Paper { name, agent, received: 17619, ..SINGLE });
    compare_acks(name, world.host(source).unwrap());
}

#[test]
fn mfast_alpha_8() {
    let (world, source) = check(&Paper { name: "mfast_fast_a8b2", received: 18106, ..SINGLE });
    compare_acks("mfast_fast_a8b2", world.host(source).unwrap());
}

#[test]
fn mfast_with_a_drop() {
    let drop = Some((6682, LossyLink::Bottleneck));
    let (world, source) = check(&Paper { name: "mfast_fast_a8b2_drop6682", drop, received: 17906, ..SINGLE });
    compare_acks("mfast_fast_a8b2_drop6682", world.host(source).unwrap());
}

/// Packets delivered in each tenth of a second, by stream. At a hole FAST holds back all of them, MFast one stream.
#[test]
fn goodput_with_a_drop() {
    let golden = read("papers/mfast_fast_a8b2_drop6682.goodput");
    let packets = |kilobits: &f64| (kilobits / 76.8).round() as u32;
    let drop = Some((6682, LossyLink::Bottleneck));
    let fast = Paper { name: "mfast_fast_a8b2_drop6682", drop, received: 17906, ..SINGLE };
    let theirs: Vec<Vec<u32>> = golden.iter().map(|row| vec![packets(&row[1])]).collect();
    compare_bins(&theirs, &fast, |row| (row.packets > 0).then_some(0));
    let theirs: Vec<Vec<u32>> = golden.iter().map(|row| row[8..13].iter().map(packets).collect()).collect();
    let mfast = Paper { streams: NonZeroU8::new(5), ..fast };
    compare_bins(&theirs, &mfast, |row| usize::from(row.stream).checked_sub(1));
}

#[track_caller]
fn compare_bins(theirs: &[Vec<u32>], paper: &Paper, column: fn(&DeliveryRow) -> Option<usize>) {
    let (world, _, sink) = check_windows(paper);
    let mut ours = vec![vec![0; theirs[0].len()]; theirs.len()];
    for row in world.host::<Ns2Sink>(sink).unwrap().rows().unwrap() {
        if let Some(column) = column(row) {
            ours[(row.time.as_secs_f64() * 10.0) as usize][column] += row.packets;
        }
    }
    // The script counted the SYN, which arrives at 1.12 s, as if it had data.
    for (tenth, (ours, theirs)) in ours.iter().zip(theirs).enumerate().skip(12) {
        assert_eq!(ours, theirs, "{:?} streams, tenth of a second {tenth}", paper.streams);
    }
}

#[test]
fn emfast_with_a_drop() {
    let (drop, agent) = (Some((6682, LossyLink::Access)), fast(8.0, 2.0, Refill::Ccafr(refill::Rule::QUICK_IPD)));
    let name = "emfast_em_best_drop6682";
    let (world, source) = check(&Paper { name, agent, drop, received: 17998, ..SINGLE });
    compare_acks(name, world.host(source).unwrap());
}

#[test]
fn emfast_newreno_of_old_ns() {
    let name = "emfast_newreno_oldopts";
    check(&Paper { name, agent: OLD_NEWRENO, precise_halving: false, received: 15303, ..SINGLE });
}

#[test]
fn emfast_newreno_of_today() {
    let agent = Agent::NewReno(NewRenoOptions::default());
    check(&Paper { name: "emfast_newreno_defaults", agent, received: 14436, ..SINGLE });
}

/// As printed in the paper: windows of 1000 packets, queues of 10.
const PRINTED: Competitors = Competitors { window: 1000.0, entrance: 10, exit_delay: 10 };

/// A longer path, a deeper queue at the competitors' entrance, and a window of 20 packets for each of them.
const LONGER: Competitors = Competitors { window: 20.0, entrance: 50, exit_delay: 100 };

#[test]
fn emfast_with_competitors() {
    let (name, drop) = ("emfast4_A_fast_a8", Some((2050, LossyLink::Access)));
    let (world, source) = check(&Paper { name, drop, competitors: Some(PRINTED), received: 5895, ..SINGLE });
    compare_acks(name, world.host(source).unwrap());
}

#[test]
fn emfast_with_competitors_on_a_longer_way() {
    let (name, drop, agent) = ("emfast4_B2_fast_a4", Some((2050, LossyLink::Access)), fast(4.0, 4.0, Refill::PerRtt));
    let (world, source) = check(&Paper { name, drop, agent, competitors: Some(LONGER), received: 5311, ..SINGLE });
    compare_acks(name, world.host(source).unwrap());
}

#[test]
fn newreno_with_competitors() {
    let paper = Paper { agent: OLD_NEWRENO, precise_halving: false, ..SINGLE };
    check(&Paper { name: "emfast4_A_newreno", competitors: Some(PRINTED), received: 6264, ..paper });
}

#[test]
fn newreno_with_competitors_on_a_longer_way() {
    let paper = Paper { agent: OLD_NEWRENO, precise_halving: false, ..SINGLE };
    check(&Paper { name: "emfast4_B2_newreno", competitors: Some(LONGER), received: 5161, ..paper });
}

/// At each ACK of new data outside recovery: the window and the packets in flight before it, and baseRTT, avgRTT and the RTT
/// after it.
#[track_caller]
fn compare_acks(name: &str, source: &Ns2Source) {
    let rows = source.rows().unwrap();
    // The last row before the ACK, and the first one after it.
    let (mut before, mut after) = (0, 0);
    let mut acked_before = 0.0;
    for golden in read(&format!("papers/{name}.acks")) {
        let [time, window, rtt, base, average, _, acked, next, ..] = golden[..] else {
            panic!("{name}: a row has twelve fields")
        };
        while before + 1 < rows.len() && rows[before + 1].time.as_secs_f64() < time - 1e-6 {
            before += 1;
        }
        while after + 1 < rows.len() && rows[after + 1].time.as_secs_f64() <= time + 1e-6 {
            after += 1;
        }
        let gauges = rows[after].gauges;
        let ours = [gauges.rtt, gauges.rtt_base.unwrap(), gauges.rtt_smoothed].map(SimSpan::as_secs_f64);
        for (ours, theirs) in ours.into_iter().zip([rtt, base, average]) {
            assert!((ours - theirs).abs() <= 1.5e-6, "{name} at {time} s: {ours} instead of {theirs}");
        }
        // Between the ACKs of two consecutive packets nothing else changes the window.
        if (acked - acked_before - 1.0).abs() < 0.5 && acked > 1.5 {
            let gauges = rows[before].gauges;
            assert!(
                (gauges.window - window).abs() <= 1e-3,
                "{name} at {time} s: {} instead of {window}",
                gauges.window
            );
            let in_flight = (next - acked) as i32;
            assert_eq!(gauges.in_flight, in_flight, "{name} at {time} s: in flight");
        }
        acked_before = acked;
    }
}
