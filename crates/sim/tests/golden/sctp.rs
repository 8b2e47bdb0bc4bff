//! Golden runs of ns-2's SCTP: the chain of mfast-2019, emfast-2019's dumbbell with New Reno beside it, and the two paths of
//! multihoming-2010.

use anabranch_ns2::config::{Agent, NewRenoOptions, SenderConfig, SinkConfig};
use anabranch_ns2::random::Mrg32k3a;
use anabranch_ns2::sctp::{CmtOptions, DestinationConfig, Endpoint, EndpointConfig, RetransmissionPolicy, Variant};
use anabranch_ns2::{Sender, Sink, TICK};
use anabranch_sim::{
    BuildError, Builder, ErrorSpec, HostId, LinkId, LinkSpec, Ns2Sctp, Ns2Sink, Ns2Source, QueueSpec, Way, World,
};
use anabranch_units::{Rate, SimSpan, SimTime};

use crate::series::{compare_windows, read};

/// The papers' settings: packets of 1000 bytes with 952 of payload, five streams.
const CONFIG: EndpointConfig =
    EndpointConfig { mtu: 1000, chunk: 968, streams: 5, ..EndpointConfig::new(Variant::Plain) };

struct Run {
    world: World,
    source: HostId,
    sink: HostId,
    links: Vec<LinkId>,
}

fn spec(rate: u64, delay: u64, limit: u32) -> LinkSpec {
    LinkSpec::new(Rate::from_bits_per_second(rate), SimSpan::from_millis(delay)).queue(QueueSpec::packets(limit))
}

fn endpoint() -> Ns2Sctp {
    // Their random numbers come from the world's stream.
    let random = Mrg32k3a::new(Mrg32k3a::DEFAULT_SEED);
    Ns2Sctp::new(Endpoint::new(CONFIG, &[DestinationConfig::default()], random)).traced()
}

/// mfast-2019: three links in a row. If `drop` is set, that packet is lost before the second link.
fn chain(drop: Option<u64>) -> Result<Run, BuildError> {
    let mut builder = Builder::new(1);
    builder.ns2_clock();
    builder.ns2_random(Mrg32k3a::new(1));
    let nodes: Vec<_> = (0..4).map(|node| builder.node(format!("{node}"))).collect();
    let mut links = vec![];
    for (place, spec) in
        [spec(2_000_000, 10, 10), spec(1_500_000, 100, 10), spec(2_000_000, 10, 10)].into_iter().enumerate()
    {
        let forward = match drop {
            Some(packet) if place == 1 => spec.clone().error(ErrorSpec::List(vec![packet])),
            _ => spec.clone(),
        };
        links.push(builder.link(nodes[place], nodes[place + 1], forward)?);
        builder.link(nodes[place + 1], nodes[place], spec)?;
    }
    let (source, sink) = (builder.host(nodes[0], endpoint())?, builder.host(nodes[3], endpoint())?);
    builder.flow(source, sink)?;
    builder.start(SimTime::ZERO + SimSpan::from_secs(1), source)?;
    let mut world = builder.build()?;
    world.run_until(SimTime::ZERO + SimSpan::from_secs(100) - SimSpan::from_ticks(1));
    world.assert_conserved();
    Ok(Run { world, source, sink, links })
}

/// emfast-2019 with four New Reno flows of the given window, a queue at their entrance, and the delay in ms of the last link of
/// the flow under study.
fn dumbbell(window: f64, entrance: u32, exit: u64) -> Result<Run, BuildError> {
    let mut builder = Builder::new(1);
    builder.ns2_clock();
    let nodes: Vec<_> = (0..6).map(|node| builder.node(format!("{node}"))).collect();
    let mut links = vec![];
    let mut duplex = |builder: &mut Builder, from: usize, to: usize, forward: LinkSpec, back: LinkSpec| {
        links.push(builder.link(nodes[from], nodes[to], forward)?);
        builder.link(nodes[to], nodes[from], back).map(|_| ())
    };
    duplex(&mut builder, 0, 4, spec(2_000_000, 10, 10), spec(2_000_000, 10, 10))?;
    duplex(&mut builder, 2, 4, spec(1_000_000, 10, entrance), spec(1_000_000, 10, 10))?;
    duplex(&mut builder, 4, 5, spec(1_500_000, 100, 10), spec(1_500_000, 100, 10))?;
    duplex(&mut builder, 5, 3, spec(1_000_000, 10, 10), spec(1_000_000, 10, 10))?;
    duplex(&mut builder, 5, 1, spec(2_000_000, exit, 10), spec(2_000_000, exit, 10))?;
    let start = SimTime::ZERO + SimSpan::from_secs(1);
    let (source, sink) = (builder.host(nodes[0], endpoint())?, builder.host(nodes[1], endpoint())?);
    builder.flow(source, sink)?;
    builder.start(start, source)?;
    // Four agents draw when they are created and when the simulation starts, before the heartbeats draw.
    let mut stream = Mrg32k3a::new(1);
    (0..4).for_each(|_| _ = stream.uniform());
    for _ in 0..4 {
        let agent = Agent::NewReno(NewRenoOptions { impatient: false });
        let clock_phase = SimSpan::from_secs_f64(stream.uniform() * TICK.as_secs_f64());
        let config =
            SenderConfig { payload: 960, window, clock_phase, precise_halving: false, ..SenderConfig::new(agent) };
        let source = builder.host(nodes[2], Ns2Source::new(Sender::new(config)))?;
        let sink = builder.host(nodes[3], Ns2Sink::new(Sink::new(SinkConfig::for_agent(&agent))))?;
        builder.flow(source, sink)?;
        builder.start(start, source)?;
    }
    builder.ns2_random(stream);
    let mut world = builder.build()?;
    world.run_until(SimTime::ZERO + SimSpan::from_secs(100) - SimSpan::from_ticks(1));
    world.assert_conserved();
    Ok(Run { world, source, sink, links })
}

/// multihoming-2010: two paths of 100 Mbit/s and 60 ms, without losses, for 30 s. Each end has one interface per path.
fn two_paths(variant: Variant) -> Result<Run, BuildError> {
    let config = EndpointConfig { receive_buffer: 150_000, ..EndpointConfig::new(variant) };
    let mut builder = Builder::new(1);
    builder.ns2_clock();
    builder.ns2_random(Mrg32k3a::new(1));
    let [near, far] = ["s", "d"].map(|name| builder.node(name));
    let (mut cores, mut there, mut back) = (vec![], vec![], vec![]);
    for path in 0..2 {
        let [x, y] = ["x", "y"].map(|name| builder.node(format!("{name}{path}")));
        cores.push(builder.link(x, y, spec(100_000_000, 50, 100))?);
        builder.link(y, x, spec(100_000_000, 50, 10_000))?;
        let leave = builder.link(near, x, spec(1_000_000_000, 5, 100_000))?;
        let arrive = builder.link(x, near, spec(1_000_000_000, 5, 50))?;
        let reach = builder.link(y, far, spec(1_000_000_000, 5, 100_000))?;
        let answer = builder.link(far, y, spec(1_000_000_000, 5, 50))?;
        let (sink, source) = (builder.address_through(reach)?, builder.address_through(arrive)?);
        there.push(Way { via: leave, to: sink, here: source });
        back.push(Way { via: answer, to: source, here: sink });
    }
    let destinations = [0, 1].map(|interface| DestinationConfig { interface, loss_rate: 0.0 });
    let endpoint = || Endpoint::new(config, &destinations, Mrg32k3a::new(1));
    let source = builder.host(near, Ns2Sctp::new(endpoint()).multihomed(there))?;
    // ns-2 takes the last destination as the primary one unless the script sets it.
    let mut answering = endpoint();
    answering.set_primary(1);
    let sink = builder.host(far, Ns2Sctp::new(answering).multihomed(back))?;
    builder.flow(source, sink)?;
    builder.start(SimTime::ZERO + SimSpan::from_millis(500), source)?;
    let mut world = builder.build()?;
    world.run_until(SimTime::ZERO + SimSpan::from_secs(30) - SimSpan::from_ticks(1));
    world.assert_conserved();
    Ok(Run { world, source, sink, links: cores })
}

impl Run {
    fn source(&self) -> &Ns2Sctp {
        self.world.host(self.source).unwrap()
    }

    fn sink(&self) -> &Ns2Sctp {
        self.world.host(self.sink).unwrap()
    }

    /// Compares every change of the window. The file has it in packets of 952 bytes of payload.
    #[track_caller]
    fn compare_window(&self, name: &str) {
        let golden: Vec<_> = read(&format!("papers/{name}.window")).iter().map(|row| (row[0], row[1])).collect();
        let mut ours: Vec<(f64, f64)> = vec![];
        for row in self.source().rows(0).unwrap() {
            let window = f64::from(row.gauges.window) / 952.0;
            if ours.last().is_none_or(|last| last.1.to_bits() != window.to_bits()) {
                ours.push((row.time.as_secs_f64(), window));
            }
        }
        compare_windows(name, &golden, &ours);
    }

    /// Data packets that arrived; kbit/s on the wire and of unique payload over the 99 s of the flow; mean delay.
    #[track_caller]
    fn compare_totals(&self, packets: u64, throughput: f64, goodput: f64, delay: f64) {
        let received = self.sink().endpoint().received();
        assert_eq!(received.packets, packets);
        let kbps = |bytes: u64| bytes as f64 * 8.0 / 99.0 / 1000.0;
        let ours = [
            kbps(received.bytes),
            kbps(received.unique_bytes),
            received.delay_sum.as_secs_f64() / received.unique_chunks as f64,
        ];
        for ((ours, theirs), digits) in ours.into_iter().zip([throughput, goodput, delay]).zip([0.005, 0.005, 0.000_01])
        {
            assert!((ours - theirs).abs() <= digits, "{ours} instead of {theirs}");
        }
    }

    /// Packets that left each queue.
    fn departures(&self) -> Vec<u64> {
        let reports = self.links.iter().map(|&link| self.world.link(link));
        reports.map(|report| report.delivered + report.flying).collect()
    }

    fn drops(&self) -> u64 {
        let counts = self.links.iter().map(|&link| self.world.link(link).counts);
        counts.map(|counts| counts.errors + counts.drops).sum()
    }
}

#[test]
fn mfast() {
    let run = chain(None).unwrap();
    run.compare_totals(13569, 1096.48, 1043.85, 0.14857);
    assert_eq!(run.drops(), 30);
    run.compare_window("mfast_sctp");
}

/// Packet 5133 is lost before the bottleneck: four streams continue.
#[test]
fn mfast_with_a_drop() {
    let run = chain(Some(5133)).unwrap();
    run.compare_totals(13516, 1092.2, 1039.78, 0.14763);
    run.compare_window("mfast_sctp_drop5133");

    let mut bins = vec![[0_u32; 6]; 1000];
    for it in run.sink().deliveries().unwrap() {
        // ns-2's trace has microseconds.
        let bin = &mut bins[(it.time.as_secs_f64() * 1e6).round() as usize / 100_000];
        bin[0] += it.delivery.bytes;
        bin[1 + usize::from(it.delivery.stream)] += it.delivery.bytes;
    }
    for (golden, ours) in read("papers/mfast_sctp_drop5133.goodput").iter().zip(&bins) {
        // From bytes in 0.1 s to kbit/s.
        let ours = ours.map(|bytes| f64::from(bytes) * 8.0 / 0.1 / 1000.0);
        for (theirs, ours) in golden[1..].iter().zip(ours) {
            assert!((theirs - ours).abs() <= 0.006, "at {} s: {ours} kbit/s instead of {theirs}", golden[0]);
        }
    }
}

#[test]
fn emfast_among_new_reno() {
    dumbbell(1000.0, 10, 10).unwrap().compare_window("emfast4_A_sctp");
}

#[test]
fn emfast_among_new_reno_with_small_windows() {
    dumbbell(20.0, 50, 100).unwrap().compare_window("emfast4_B2_sctp");
}

/// The buffer of 150 kB limits the association; the paths do not.
#[test]
fn concurrent_transfer_over_two_paths() {
    let policy = RetransmissionPolicy::Same;
    let run = two_paths(Variant::Cmt(CmtOptions { policy, ..CmtOptions::default() })).unwrap();
    assert_eq!((run.departures(), run.drops()), (vec![12144, 12286], 0));
}

/// The second path carries heartbeats only.
#[test]
fn two_paths_of_which_one_is_used() {
    let run = two_paths(Variant::Plain).unwrap();
    assert_eq!((run.departures(), run.drops()), (vec![22442, 1], 0));
}
