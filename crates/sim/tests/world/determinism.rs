//! One seed, one run: bit-identical, whatever else is in the world and wherever it runs.

use anabranch_sim::traffic::{Cbr, OnOff, OnOffParameters, Sink};
use anabranch_sim::{
    Builder, CoDelParameters, DelaySpec, DualPi2Parameters, ErrorSpec, FqCoDelParameters, HoldSpec, LinkSpec,
    PieParameters, QueueSpec, RateSpec, RedParameters, ReorderSpec, RunHash, ScatterSpec, StepParameters, Steps, World,
};
use anabranch_units::{SimSpan, SimTime};

use super::standard::{highspeed, millis, spec};

fn noisy(seed: u64) -> World {
    let mut net = Builder::new(seed);
    let (a, b) = (net.node("a"), net.node("b"));
    let link = spec("10Mbit/s", "5ms").queue(QueueSpec::packets(20)).error(ErrorSpec::PerPacket(0.01));
    net.duplex(a, b, link).unwrap();
    for flow in 0..4 {
        let span = SimSpan::from_millis(200);
        let parameters = OnOffParameters { on: span, off: span, rate: "6Mbit/s".parse().unwrap(), size: 1000 };
        let source = OnOff::new(parameters, net.stream(&format!("flow.{flow}.traffic")));
        let (source, sink) = (net.host(a, source).unwrap(), net.host(b, Sink::default()).unwrap());
        net.flow(source, sink).unwrap();
        net.start(SimTime::ZERO, source).unwrap();
    }
    net.build().unwrap()
}

/// A flow over a link of each kind, from a hub that all of them share. The links to the hub are equal, and so are the sources, two
/// of which start at a time: many events are due at once.
fn motley() -> World {
    let plain = || spec("2Mbit/s", "5ms").queue(QueueSpec::packets(20));
    let queued = |queue: QueueSpec| plain().queue(queue);
    let ms = SimSpan::from_millis;
    let steps = vec![(ms(40), "1Mbit/s".parse().unwrap()), (ms(70), "8Mbit/s".parse().unwrap())];
    let reorder = ReorderSpec { share: 0.1, extra: DelaySpec::Exponential(ms(5)) };
    let kinds = [
        plain(),
        queued(QueueSpec::unlimited()),
        queued(QueueSpec::bytes(9000)),
        queued(RedParameters::default().into()),
        queued(StepParameters { packets_max: 20, mark_packets: Some(9), ..Default::default() }.into()),
        queued(CoDelParameters::default().into()),
        queued(FqCoDelParameters::default().into()),
        queued(PieParameters::default().into()),
        queued(DualPi2Parameters::default().into()),
        plain().error(ErrorSpec::PerPacket(0.05)),
        plain().rates(RateSpec::Steps(Steps { steps, period: Some(ms(100)) })),
        plain().hold(HoldSpec::Grid(ms(7))),
        plain().scatter(ScatterSpec { delays: None, reorder: Some(reorder), duplicates: 0.1 }),
        LinkSpec { mtu: Some(999), ..plain() },
    ];
    let mut net = Builder::new(3);
    let hub = net.node("hub");
    for (number, kind) in (0..).zip(kinds) {
        let (from, to) = (net.node(format!("from{number}")), net.node(format!("to{number}")));
        net.duplex(from, hub, spec("10Mbit/s", "1ms")).unwrap();
        net.duplex(hub, to, kind).unwrap();
        let parameters = OnOffParameters { on: ms(200), off: ms(100), rate: "3Mbit/s".parse().unwrap(), size: 1000 };
        let bursts = OnOff::new(parameters, net.stream(&format!("flow.{number}.traffic")));
        let steady = Cbr::new("1Mbit/s".parse().unwrap(), 1000);
        for source in [net.host(from, bursts).unwrap(), net.host(from, steady).unwrap()] {
            let sink = net.host(to, Sink::default()).unwrap();
            net.flow(source, sink).unwrap();
            net.start(millis(number / 2), source).unwrap();
        }
    }
    net.build().unwrap()
}

fn hash(mut world: World) -> RunHash {
    world.run_until(millis(20_000));
    world.assert_conserved();
    world.hash()
}

#[test]
fn the_same_seed_gives_the_same_hash_and_another_does_not() {
    assert_eq!(hash(noisy(1)), hash(noisy(1)));
    assert_ne!(hash(noisy(1)), hash(noisy(2)));
}

#[test]
fn the_bits_are_the_same_on_every_machine() {
    // Recorded once. If it changes, published runs can no longer be replayed: say so in CHANGELOG.md.
    assert_eq!(hash(noisy(1)).to_string(), "2c415cfe102bddb8");
    assert_eq!(hash(motley()).to_string(), "5f4cd70e0d57f47c");
}

#[test]
fn threads_change_nothing() {
    let expected: Vec<_> = (0..8).map(|seed| hash(noisy(seed))).collect();
    let threads: Vec<_> = (0..8).map(|seed| std::thread::spawn(move || hash(noisy(seed)))).collect();
    let hashes: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(hashes, expected);
}

#[test]
fn a_new_flow_changes_no_other_flows_draws() {
    // Two lossy links that share nothing. A third link with its own flow is declared before them, or not.
    let losses = |extra: bool| {
        let mut net = Builder::new(1);
        let add = |net: &mut Builder, name: &str| {
            let (a, b) = (net.node(format!("{name}-a")), net.node(format!("{name}-b")));
            let link = spec("10Mbit/s", "5ms").error(ErrorSpec::PerPacket(0.02));
            let (link, _) = net.duplex(a, b, link).unwrap();
            let cbr = Cbr::new("1Mbit/s".parse().unwrap(), 1000);
            let (source, sink) = (net.host(a, cbr).unwrap(), net.host(b, Sink::default()).unwrap());
            net.flow(source, sink).unwrap();
            net.start(SimTime::ZERO, source).unwrap();
            link
        };
        if extra {
            add(&mut net, "extra");
        }
        let links = ["x", "y"].map(|name| add(&mut net, name));
        let mut world = net.build().unwrap();
        world.run_until(millis(60_000));
        links.map(|link| world.link(link).counts.errors)
    };
    assert_eq!(losses(false), losses(true));
}

#[test]
fn memory_does_not_grow_with_time() {
    let mut dumbbell = highspeed(1);
    dumbbell.world.run_until(millis(500));
    let early = dumbbell.world.packets();
    dumbbell.world.run_until(millis(3000));
    assert_eq!((early, dumbbell.world.packets()), (8800, 8800));
}
