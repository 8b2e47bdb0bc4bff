//! Routes, interfaces, and worlds that cannot be built.

use anabranch_sim::{BuildError, Builder, Control, DropReason, Drops, LinkSpec, NodeId, QueueSpec, Workload};
use anabranch_sim::{LinkId, Port};
use anabranch_units::SimTime;

use super::standard::{millis, spec};
use super::support::{Burst, Log, Pair};

/// a - b - d with 10 ms a link, and a - c - d with 50 ms.
struct Diamond {
    net: Builder,
    nodes: [NodeId; 4],
    /// a>b, b>d, a>c, c>d.
    links: [LinkId; 4],
}

fn diamond() -> Diamond {
    let mut net = Builder::new(1);
    let nodes = ["a", "b", "c", "d"].map(|name| net.node(name));
    let [a, b, c, d] = nodes;
    let links = [(a, b, "10ms"), (b, d, "10ms"), (a, c, "50ms"), (c, d, "50ms")]
        .map(|(from, to, delay)| net.duplex(from, to, spec("8Gbit/s", delay)).unwrap().0);
    Diamond { net, nodes, links }
}

#[test]
fn a_route_changes_at_its_time_and_packets_in_flight_stay() {
    let Diamond { mut net, nodes: [a, _, _, d], links: [_, fast, slow, _] } = diamond();
    let (source, sink) = (net.host(a, Burst::new(1000, 1)).unwrap(), net.host(d, Log::default()).unwrap());
    net.flow(source, sink).unwrap();
    let to = net.address(d).unwrap();
    net.at(millis(15), Control::Route { node: a, to, via: Some(slow) }).unwrap();
    for start in [0, 14, 15, 16] {
        net.start(millis(start), source).unwrap();
    }
    let mut world = net.build().unwrap();
    world.run_until(millis(1000));
    let arrivals = &world.host::<Log>(sink).unwrap().arrivals;
    // 1 µs for each of two transmissions. The change is scheduled before the start at 15 ms.
    let arrivals: Vec<_> =
        arrivals.iter().map(|&(time, _, link)| (time.ticks() / 1_000_000_000, link == fast)).collect();
    assert_eq!(arrivals, [(20, true), (34, true), (115, false), (116, false)]);
}

/// Both routes from a to d have two hops. Of 400 flows about half take each route, and all packets of a flow take the same.
/// Without multipath all take the first.
#[test]
fn equal_ways_are_shared_by_flow() {
    for has_multipath in [false, true] {
        let Diamond { mut net, nodes: [a, _, _, d], links: [by_b, _, by_c, _] } = diamond();
        if has_multipath {
            net.multipath();
        }
        let flows: Vec<_> = (0..400)
            .map(|_| {
                let source = net.host(a, Burst::new(1000, 5)).unwrap();
                let sink = net.host(d, Log::default()).unwrap();
                net.start(SimTime::ZERO, source).unwrap();
                net.flow(source, sink).unwrap()
            })
            .collect();
        let mut world = net.build().unwrap();
        world.run_until(millis(1000));
        world.assert_conserved();
        let offered = |flow| [by_b, by_c].map(|link| world.link_flow(link, flow).offered);
        assert!(flows.iter().all(|&flow| [[5, 0], [0, 5]].contains(&offered(flow))));
        let first = flows.iter().filter(|&&flow| offered(flow)[0] == 5).count();
        // Binomial: the standard deviation is 10.
        let expected = if has_multipath { 150..250 } else { 400..401 };
        assert!(expected.contains(&first), "{first}");
    }
}

#[test]
fn a_route_that_is_taken_away_loses_packets() {
    let Diamond { mut net, nodes: [a, b, _, d], links } = diamond();
    let (source, sink) = (net.host(a, Burst::new(1000, 1)).unwrap(), net.host(d, Log::default()).unwrap());
    net.flow(source, sink).unwrap();
    let drops = net.observe(&links, Drops::default()).unwrap();
    net.start(SimTime::ZERO, source).unwrap();
    let to = net.address(d).unwrap();
    net.at(millis(5), Control::Route { node: b, to, via: None }).unwrap();
    let mut world = net.build().unwrap();
    world.run_until(millis(1000));
    world.assert_conserved();
    let records = &drops.borrow().records;
    assert_eq!((records.len(), records[0].reason, records[0].link), (1, DropReason::NoRoute, links[0]));
    assert_eq!((world.strays(), world.packets()), (1, 0));
}

#[test]
fn a_loop_ends_at_the_hop_limit() {
    let mut pair = Pair::new(Burst::new(1000, 1), Log::default(), [spec("1Gbit/s", "1ms"), spec("1Gbit/s", "1ms")]);
    let far = pair.net.node("far");
    let to = pair.net.address(far).unwrap();
    // No route leads to `far`; n0 and n1 send its packets to each other.
    let (n0, n1) = {
        let mut names = Builder::new(1);
        (names.node("n0"), names.node("n1"))
    };
    pair.net.route(n0, to, pair.links[0]).unwrap();
    pair.net.route(n1, to, pair.back[0]).unwrap();
    let source = pair.net.host(n0, Burst::new(1000, 1).to(to)).unwrap();
    pair.net.flow(source, pair.sink).unwrap();
    pair.net.start(SimTime::ZERO, source).unwrap();
    let mut world = pair.net.build().unwrap();
    world.run_until(SimTime::NEVER);
    assert_eq!(world.strays(), 1);
    assert_eq!(world.link(pair.links[0]).delivered + world.link(pair.back[0]).delivered, 64);
}

#[test]
fn a_host_chooses_its_interface_and_the_others() {
    let Diamond { mut net, nodes: [a, _, _, d], links: [_, fast, slow, through] } = diamond();
    let address = net.address_through(through).unwrap();
    let sinks: Vec<_> = [Burst::new(1000, 1), Burst::new(1000, 1).via(slow), Burst::new(1000, 1).to(address)]
        .into_iter()
        .map(|burst| {
            let (source, sink) = (net.host(a, burst).unwrap(), net.host(d, Log::default()).unwrap());
            net.flow(source, sink).unwrap();
            net.start(SimTime::ZERO, source).unwrap();
            sink
        })
        .collect();
    let mut world = net.build().unwrap();
    world.run_until(SimTime::NEVER);
    let last: Vec<_> = sinks.iter().map(|&sink| world.host::<Log>(sink).unwrap().arrivals[0].2).collect();
    assert_eq!(last, [fast, through, through]);
}

#[test]
fn mistakes_are_named() {
    let mut net = Builder::new(1);
    let (a, b) = (net.node("a"), net.node("b"));
    let good = || spec("1Mbit/s", "1ms");
    let zero = LinkSpec::new(anabranch_units::Rate::default(), "1ms".parse().unwrap());
    assert_eq!(net.link(a, b, zero), Err(BuildError::NoRate { link: "a>b".into() }));
    assert_eq!(net.link(a, a, good()), Err(BuildError::Loop { link: "a>a".into() }));
    assert_eq!(net.link(a, b, good().queue(QueueSpec::packets(0))), Err(BuildError::BadQueue { link: "a>b".into() }));
    let there = net.link(a, b, good().named("there")).unwrap();
    assert_eq!(net.link(b, a, good().named("there")), Err(BuildError::NameTaken { name: "there".into() }));
    let (source, sink) = (net.host(a, Burst::new(1, 1)).unwrap(), net.host(b, Log::default()).unwrap());
    assert_eq!(net.flow(source, source), Err(BuildError::SameNode { node: "a".into() }));
    assert!(matches!(
        net.workload("bulk", SimTime::ZERO, (source, Port::FIRST), Workload::Bulk),
        Err(BuildError::Unknown { .. })
    ));
    let to = net.address(a).unwrap();
    assert_eq!(net.route(b, to, there), Err(BuildError::NotThere { link: "there".into(), node: "b".into() }));
    let flow = net.flow(source, sink).unwrap();
    // There is no route back.
    let Err(error) = net.build() else { panic!("a flow needs both directions") };
    assert_eq!(error, BuildError::NoRoute { flow, from: "b".into(), to: "a".into() });
    assert_eq!(error.to_string(), "flow f0 has no way from node b to node a");
}
