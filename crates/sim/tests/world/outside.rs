//! A world driven from outside, in step with an external clock.

use anabranch_sim::{Body, Builder, Control, LinkSpec, Port, QueueSpec, Raw, Transmit};
use anabranch_units::SimTime;

use super::standard::{millis, spec};
use super::support::Log;

fn packet(size: u32) -> Transmit {
    Transmit { port: Port::FIRST, size, body: Body::Raw(Raw::default()), ecn: None, via: None, to: None }
}

/// 8 Mbit/s: 1000 bytes take a millisecond.
#[test]
fn a_packet_from_outside_travels_as_any_other() {
    let mut net = Builder::new(1);
    let (a, b) = (net.node("a"), net.node("b"));
    let link: LinkSpec = spec("8Mbit/s", "10ms").queue(QueueSpec::packets(3));
    let (link, _) = net.duplex(a, b, link).unwrap();
    let (here, there) = (net.host(a, Log::default()).unwrap(), net.host(b, Log::default()).unwrap());
    net.flow(here, there).unwrap();
    let mut world = net.build().unwrap();
    assert_eq!(world.next_at(), SimTime::NEVER);
    world.run_until(millis(5));
    // The queue holds two waiting packets and one in transmission.
    (0..5).for_each(|_| world.send(here, packet(1000)));
    assert_eq!((world.next_at(), world.waiting(link), world.link(link).counts.drops), (millis(16), 2, 2));
    world.run_until(millis(7));
    world.send(here, packet(500));
    world.run_until(millis(100));
    world.assert_conserved();
    let log = world.host_mut::<Log>(there).unwrap();
    let times: Vec<u64> = log.arrivals.drain(..).map(|(time, ..)| time.ticks() / 1_000_000).collect();
    assert_eq!(times, [16_000, 17_000, 18_000, 18_500]);
    assert_eq!(world.next_at(), SimTime::NEVER);
}

#[test]
fn a_world_says_by_which_link_a_node_sends_now() {
    let mut net = Builder::new(1);
    let (a, b) = (net.node("a"), net.node("b"));
    let (first, back) = net.duplex(a, b, spec("8Mbit/s", "10ms")).unwrap();
    let (second, _) = net.duplex(a, b, spec("8Mbit/s", "10ms")).unwrap();
    let (to_a, to_b) = (net.address(a).unwrap(), net.address(b).unwrap());
    let through = net.address_through(second).unwrap();
    net.at(millis(5), Control::Route { node: a, to: to_b, via: None }).unwrap();
    let mut world = net.build().unwrap();
    assert_eq!([to_b, through].map(|to| world.way(a, to)), [Some(first), Some(second)]);
    assert_eq!((world.way(b, to_a), world.way(a, to_a)), (Some(back), None));
    world.run_until(millis(5));
    assert_eq!(world.way(a, to_b), None);
}
