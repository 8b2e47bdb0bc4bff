//! Golden runs of rrfast-2017: ten FAST flows whose route changes at 30 s, with and without the rule that detects it. Every tenth
//! of a second, the variables of the first flow, the delivered packets and the queue must equal what ns-2 printed, to the last
//! digit.

use anabranch_cc::law::fast::base_rtt::Rule;
use anabranch_ns2::config::{Agent, Average, BaseRtt, FastOptions, SenderConfig, SinkConfig};
use anabranch_ns2::random::Mrg32k3a;
use anabranch_ns2::{Sender, Sink, TICK};
use anabranch_sim::{Builder, Control, HostId, LinkId, LinkSpec, Ns2Sink, Ns2Source, QueueSpec, World};
use anabranch_units::{Rate, SimSpan, SimTime};

use crate::series::read;

const FLOWS: usize = 10;

/// Bytes of a data packet and of a SYN.
const PACKET: f64 = 1040.0;
const HEADER: f64 = 40.0;

/// Which route comes first.
#[derive(Clone, Copy, PartialEq)]
enum Route {
    /// A round trip of 125 ms, then of 376 ms.
    Longer,
    /// A round trip of 376 ms, then of 125 ms.
    Shorter,
}

struct ReroutedFlows {
    world: World,
    sources: Vec<HostId>,
    sinks: Vec<HostId>,
    /// The links from R1 to the middle routers, where queues form.
    cores: Vec<LinkId>,
}

fn build(route: Route, base: BaseRtt) -> ReroutedFlows {
    let mut builder = Builder::new(1);
    builder.ns2_clock();
    let spec = |rate: &str, delay: &str| LinkSpec::new(rate.parse::<Rate>().unwrap(), delay.parse().unwrap());
    let core = |delay: &str| spec("10Mbit/s", delay).queue(QueueSpec::packets(50));
    let access = || spec("1Gbit/s", "1ms").queue(QueueSpec::packets(1000));
    let [r1, r2] = ["R1", "R2"].map(|name| builder.node(name));
    // A quarter of 125 and of 376 ms, minus the delay of the access links. By index: the forward and the backward link of the
    // short route, then those of the long one.
    let ways = [("Ra", "30.25ms"), ("Rb", "93ms")].map(|(name, delay)| {
        let middle = builder.node(name);
        let there = builder.duplex(r1, middle, core(delay)).unwrap().0;
        let back = builder.duplex(middle, r2, core(delay)).unwrap().1;
        (there, back)
    });
    let options = FastOptions { alpha: 4.0, beta: 4.0, base, ..FastOptions::default() };
    let agent = Agent::Fast(options);
    let mut phases = Mrg32k3a::new(1);
    (0..FLOWS * agent.draws_at_creation()).for_each(|_| _ = phases.uniform());
    // `new RNG; seed 1` is a second stream that begins as the default one does.
    let mut starts = Mrg32k3a::new(1);
    let (first, second) = if route == Route::Longer { (ways[0], ways[1]) } else { (ways[1], ways[0]) };
    let (mut sources, mut sinks) = (vec![], vec![]);
    for index in 0..FLOWS {
        let (from, to) = (builder.node(format!("S{index}")), builder.node(format!("D{index}")));
        builder.duplex(from, r1, access()).unwrap();
        builder.duplex(r2, to, access()).unwrap();
        let clock_phase = SimSpan::from_secs_f64(phases.uniform() * TICK.as_secs_f64());
        let rto_min = SimSpan::from_secs(1);
        let config = SenderConfig { window: 2000.0, rto_min, clock_phase, ..SenderConfig::new(agent) };
        let source = builder.host(from, Ns2Source::new(Sender::new(config))).unwrap();
        let sink = builder.host(to, Ns2Sink::new(Sink::new(SinkConfig::for_agent(&agent)))).unwrap();
        builder.flow(source, sink).unwrap();
        for (at, way) in [(0, first), (30, second)] {
            for (node, end, via) in [(r1, to, way.0), (r2, from, way.1)] {
                let to = builder.address(end).unwrap();
                builder
                    .at(SimTime::ZERO + SimSpan::from_secs(at), Control::Route { node, to, via: Some(via) })
                    .unwrap();
            }
        }
        builder.start(SimTime::ZERO + SimSpan::from_secs_f64(0.5 * starts.uniform()), source).unwrap();
        sources.push(source);
        sinks.push(sink);
    }
    ReroutedFlows { world: builder.build().unwrap(), sources, sinks, cores: ways.map(|way| way.0).to_vec() }
}

/// Compares row by row. A value may differ by a little more than half of the last printed digit.
#[track_caller]
fn check(name: &str, route: Route, base: BaseRtt) {
    let ReroutedFlows { mut world, sources, sinks, cores } = build(route, base);
    let (mut all_before, mut first_before) = (0.0, 0.0);
    for (index, golden) in read(&format!("rrfast/{name}")).iter().enumerate() {
        // The script sampled 0.1 ms after each tenth of a second.
        world.run_until(SimTime::ZERO + SimSpan::from_micros(100) + SimSpan::from_millis(100) * index as u64);
        // A sink of ns-2 counts the bytes that it delivers to its application; the SYN counts as a header.
        let delivered = |sink: &HostId| match world.host::<Ns2Sink>(*sink).unwrap().sink().delivered_packets() {
            0 => 0.0,
            packets => HEADER / PACKET + (packets - 1) as f64,
        };
        let (all, first): (f64, f64) = (sinks.iter().map(delivered).sum(), delivered(&sinks[0]));
        let sender = world.host::<Ns2Source>(sources[0]).unwrap().sender();
        let gauges = sender.gauges();
        // Before the first sample the script printed zeros.
        let rtts =
            gauges.rtt_base.map_or([0.0; 3], |base| [gauges.rtt, gauges.rtt_smoothed, base].map(SimSpan::as_secs_f64));
        let resets: u64 = sources.iter().map(|&host| world.host::<Ns2Source>(host).unwrap().sender().reroutes()).sum();
        let ours = [
            ("window", gauges.window, 1e-3),
            ("rtt", rtts[0], 1e-5),
            ("avgRTT", rtts[1], 1e-5),
            ("baseRTT", rtts[2], 1e-5),
            ("delivered, flow 0", (first - first_before) / 0.1, 0.1),
            ("delivered", (all - all_before) / 0.1, 0.1),
            ("queue", cores.iter().map(|&core| world.waiting(core)).sum::<u64>() as f64, 0.0),
            ("drops", cores.iter().map(|&core| world.link(core).counts.drops).sum::<u64>() as f64, 0.0),
            ("resets", resets as f64, 0.0),
        ];
        for ((variable, ours, digit), theirs) in ours.into_iter().zip(&golden[1..]) {
            let near = (ours - theirs).abs() <= digit * 0.6;
            assert!(near, "{name}, {variable} at {} s: ns-2 has {theirs}, we have {ours}", golden[0]);
        }
        (all_before, first_before) = (all, first);
    }
    world.assert_conserved();
}

const RESTARTED: Average = Average::Restarted;

#[test]
fn fast_on_a_longer_route() {
    check("fast_longer", Route::Longer, BaseRtt::Min);
}

#[test]
fn rtts_that_do_not_fall() {
    check("no_fall_longer", Route::Longer, BaseRtt::Reroute(Rule::NO_FALL, RESTARTED));
}

#[test]
fn rtts_that_do_not_come_near() {
    check("not_near_longer", Route::Longer, BaseRtt::Reroute(Rule::NOT_NEAR, RESTARTED));
}

#[test]
fn fast_on_a_shorter_route() {
    check("fast_shorter", Route::Shorter, BaseRtt::Min);
}

/// ns-2 printed the same for both, to the last digit.
#[test]
fn on_a_shorter_route_the_rule_changes_nothing() {
    check("fast_shorter", Route::Shorter, BaseRtt::Reroute(Rule::NOT_NEAR, RESTARTED));
}
