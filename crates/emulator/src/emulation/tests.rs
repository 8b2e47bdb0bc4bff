use std::net::{Ipv4Addr, Ipv6Addr};

use anabranch_sim::{ErrorSpec, LinkSpec, QueueSpec, RateSpec, RouteChange, StepParameters, Steps, Wire};
use anabranch_units::{Rate, SimSpan};

use super::*;
use crate::packet::tests::ipv4;

const H0: Interface = Interface { host: 0, number: 0 };
const H1: Interface = Interface { host: 1, number: 0 };

fn millis(ms: u64) -> SimTime {
    SimTime::ZERO.saturating_add(SimSpan::from_millis(ms))
}

/// 8 Mbit/s, so a byte takes a microsecond.
fn spec(delay_ms: u64) -> LinkSpec {
    LinkSpec::new(Rate::from_bits_per_second(8_000_000), SimSpan::from_millis(delay_ms))
}

fn wire(id: &str, from: usize, to: usize, spec: LinkSpec) -> Wire {
    Wire { id: id.to_owned(), from, to, spec, mtu_changes: vec![] }
}

fn network(nodes: &[&str], hosts: &[usize], wires: Vec<Wire>) -> Topology {
    let nodes = nodes.iter().map(|&name| name.to_owned()).collect();
    Topology { seed: 1, nodes, wires, routes: vec![], hosts: hosts.to_vec() }
}

/// Hosts h0 and h1 with a link in each direction; `there` is the forward one.
fn pair(there: LinkSpec) -> Emulation {
    let wires = vec![wire("a", 0, 1, there), wire("a.reverse", 1, 0, spec(10))];
    Emulation::new(&network(&["h0", "h1"], &[0, 1], wires)).unwrap()
}

/// What arrives up to a time: the interface, the time in microseconds, and the bytes.
fn delivered(emulation: &mut Emulation, until: SimTime) -> Vec<(Interface, u64, Vec<u8>)> {
    let mut all = vec![];
    emulation.deliver(until, |to, _, due, packet| all.push((to, due.ticks() / 1_000_000, packet.to_owned())));
    all
}

#[test]
fn a_packet_comes_out_as_it_went_in_when_rate_and_delay_say() {
    let mut emulation = pair(spec(10));
    let mut packet = ipv4(H1.ipv4(), 1000);
    packet[999] = 0xab;
    assert_eq!(emulation.next_at(), SimTime::NEVER);
    emulation.enter(millis(5), H0, &packet).unwrap();
    // 1000 us of transmission and 10 ms of delay.
    assert_eq!(emulation.next_at(), millis(16));
    assert_eq!(delivered(&mut emulation, millis(15)), []);
    assert_eq!(delivered(&mut emulation, millis(100)), [(H1, 16_000, packet)]);
    assert_eq!((emulation.packets(), emulation.strays()), (0, 0));
}

#[test]
fn both_families_reach_the_same_host() {
    let mut emulation = pair(spec(10));
    let mut packet = vec![0x60; 200];
    packet[24..40].copy_from_slice(&H0.ipv6().octets());
    emulation.enter(millis(0), H1, &packet).unwrap();
    assert_eq!(delivered(&mut emulation, millis(100)), [(H0, 10_200, packet)]);
}

#[test]
fn a_full_queue_drops_and_its_places_are_used_again() {
    // A queue of three packets: two wait while one is in transmission.
    let mut emulation = pair(spec(10).queue(QueueSpec::packets(3)));
    for _ in 0..2 {
        let now = emulation.world.now();
        for _ in 0..10 {
            emulation.enter(now, H0, &ipv4(H1.ipv4(), 1000)).unwrap();
        }
        assert_eq!(emulation.packets(), 3);
        assert_eq!(delivered(&mut emulation, now.saturating_add(SimSpan::from_millis(50))).len(), 3);
    }
    let link = &emulation.links()[0];
    assert_eq!((link.sent_packets, link.dropped_packets, link.delivered_packets), (20, 14, 6));
    assert_eq!((link.sent_bytes, link.delivered_bytes), (20_000, 6000));
    assert_eq!(emulation.bytes.places.len(), 4);
}

#[test]
fn lost_packets_are_forgotten() {
    let outage = ErrorSpec::Outage { from: millis(20), until: millis(30) };
    let mut emulation = pair(spec(10).error(ErrorSpec::List(vec![1])).error(outage));
    for ms in [0, 1, 2, 25, 31] {
        emulation.enter(millis(ms), H0, &ipv4(H1.ipv4(), 100)).unwrap();
    }
    let times: Vec<u64> = delivered(&mut emulation, millis(100)).into_iter().map(|(_, at, _)| at).collect();
    assert_eq!(times, [10_100, 12_100, 41_100]);
    assert_eq!((emulation.links()[0].lost_packets, emulation.packets()), (2, 0));
}

#[test]
fn packet_without_receiver_is_counted_not_kept() {
    let mut emulation = pair(spec(10));
    let nobody = [Ipv4Addr::new(224, 0, 0, 22), Ipv4Addr::new(10, 77, 3, 1), Ipv4Addr::new(10, 77, 2, 2), H0.ipv4()];
    for to in nobody {
        assert_eq!(emulation.enter(millis(0), H0, &ipv4(to, 40)), Err(Stray), "{to}");
    }
    assert_eq!(emulation.enter(millis(0), H0, &[0; 40]), Err(Stray));
    assert_eq!((emulation.strays(), emulation.packets(), emulation.links()[0].sent_packets), (5, 0, 0));
}

/// A queue that marks what finds more than two packets waiting, and drops it if it is not ECN-capable.
#[test]
fn mark_of_a_queue_is_written_into_the_packet() {
    let step = StepParameters { packets_max: 10, mark_packets: Some(2), ..StepParameters::default() };
    for sent in [0b00, 0b01, 0b10, 0b11] {
        let mut emulation = pair(spec(10).queue(step.into()));
        let mut packet = ipv4(H1.ipv4(), 1000);
        packet[1] = 0b1011_1000 | sent;
        (0..6).for_each(|_| emulation.enter(millis(0), H0, &packet).unwrap());
        let came = delivered(&mut emulation, millis(100));
        let classes: Vec<u8> = came.iter().map(|(_, _, packet)| packet[1]).collect();
        // One is in transmission and three may wait: the last of those finds two.
        let mut expected = vec![0b1011_1000 | sent; 4];
        if sent != 0b00 {
            expected.extend([0b1011_1011; 2]);
        }
        assert_eq!(classes, expected);
        let link = &emulation.links()[0];
        assert_eq!((link.marked_packets, link.dropped_packets), if sent == 0b00 { (0, 2) } else { (2, 0) });
    }
}

#[test]
fn link_that_clears_ecn_clears_it_in_the_packet() {
    let mut emulation = pair(spec(10).clears_ecn(true));
    let mut packet = ipv4(H1.ipv4(), 100);
    packet[1] = 0b1011_1010;
    emulation.enter(millis(0), H0, &packet).unwrap();
    assert_eq!(delivered(&mut emulation, millis(100))[0].2[1], 0b1011_1000);
}

/// h0 - r - h1, where the second link takes 1000 bytes, later 600: the message of the router comes when the packet has reached it, and as
/// long again.
#[test]
fn packet_longer_than_a_links_mtu_is_answered() {
    let mut narrow = wire("out", 2, 1, spec(10).mtu(1000));
    narrow.mtu_changes = vec![(millis(500), 600)];
    let wires = vec![
        wire("in", 0, 2, spec(10)),
        wire("in.reverse", 2, 0, spec(10)),
        narrow,
        wire("out.reverse", 1, 2, spec(10)),
    ];
    let network = network(&["h0", "h1", "r"], &[0, 1], wires);
    let mut packet = ipv4(H1.ipv4(), 1001);
    packet[6] = 0x40;
    for is_silent in [false, true] {
        let mut emulation = Emulation::new(&network).unwrap().silent(is_silent);
        emulation.enter(millis(0), H0, &packet[..1000]).unwrap();
        emulation.enter(millis(100), H0, &packet).unwrap();
        assert_eq!(delivered(&mut emulation, millis(120)).len(), 1);
        // Whoever waits for the next event is woken for the message, or else for the change of the MTU.
        let message = SimTime::ZERO.saturating_add(SimSpan::from_micros(122_002));
        assert_eq!(emulation.next_at(), if is_silent { millis(500) } else { message });
        emulation.enter(millis(500), H0, &packet).unwrap();
        let mut came = delivered(&mut emulation, millis(520));
        came.extend(delivered(&mut emulation, millis(1000)));
        let told: Vec<_> =
            came.iter().map(|(to, at, bytes)| (*to, *at, u16::from_be_bytes([bytes[26], bytes[27]]))).collect();
        // Twice 1001 us and 10 ms.
        let expected = [(H0, 122_002, 1000), (H0, 522_002, 600)];
        assert_eq!(told, expected[..if is_silent { 0 } else { 2 }]);
        assert_eq!((emulation.packets(), emulation.links()[2].dropped_packets), (0, 2));
        assert_eq!(emulation.next_at(), SimTime::NEVER);
    }
}

/// The source of a packet is what its sender writes.
#[test]
fn message_for_nobody_is_not_sent() {
    let mut emulation = pair(spec(10).mtu(1000));
    let mut packet = ipv4(H1.ipv4(), 1500);
    packet[6] = 0x40;
    for source in [[10, 77, 9, 1], [10, 77, 1, 9], [192, 0, 2, 1], [10, 77, 0, 1]] {
        packet[12..16].copy_from_slice(&source);
        emulation.enter(millis(0), H0, &packet).unwrap();
    }
    assert_eq!(delivered(&mut emulation, millis(100)), []);
    packet[12..16].copy_from_slice(&H0.ipv4().octets());
    (0..3 * MESSAGES_MAX).for_each(|_| emulation.enter(millis(100), H0, &packet).unwrap());
    assert_eq!(delivered(&mut emulation, millis(200)).len(), MESSAGES_MAX);
}

/// The rate of a link and its delay change as in the simulator.
#[test]
fn rate_of_a_link_changes_at_its_time() {
    let slower = Rate::from_bits_per_second(800_000);
    let steps = Steps { steps: vec![(SimSpan::from_millis(50), slower)], period: None };
    let mut emulation = pair(spec(10).rates(RateSpec::Steps(steps)));
    emulation.enter(millis(0), H0, &ipv4(H1.ipv4(), 1000)).unwrap();
    emulation.enter(millis(60), H0, &ipv4(H1.ipv4(), 1000)).unwrap();
    let times: Vec<u64> = delivered(&mut emulation, millis(1000)).into_iter().map(|(_, at, _)| at).collect();
    assert_eq!(times, [11_000, 80_000]);
}

/// Two links between two hosts: each address uses its own link, in both directions. A packet sent from the second interface uses
/// the second link.
#[test]
fn two_links_are_two_paths() {
    let wires = vec![
        wire("a", 0, 1, spec(10)),
        wire("a.reverse", 1, 0, spec(10)),
        wire("b", 0, 1, spec(50)),
        wire("b.reverse", 1, 0, spec(50)),
    ];
    let mut emulation = Emulation::new(&network(&["h0", "h1"], &[0, 1], wires)).unwrap();
    let [second_h0, second_h1] = [0, 1].map(|host| Interface { host, number: 1 });
    assert_eq!([H1, second_h1].map(|to| emulation.nearest(0, to)), [Some(0), Some(1)]);
    emulation.enter(millis(0), H0, &ipv4(H1.ipv4(), 100)).unwrap();
    emulation.enter(millis(0), second_h0, &ipv4(second_h1.ipv4(), 100)).unwrap();
    emulation.enter(millis(0), second_h1, &ipv4(second_h0.ipv4(), 100)).unwrap();
    // Sent from the second address to the other host's first address: it leaves over the second link.
    emulation.enter(millis(1), second_h0, &ipv4(H1.ipv4(), 100)).unwrap();
    let came: Vec<_> = delivered(&mut emulation, millis(100)).into_iter().map(|(to, at, _)| (to, at)).collect();
    assert_eq!(came, [(second_h0, 50_100), (H1, 10_100), (second_h1, 50_100), (second_h1, 51_100)]);
}

/// h0 - r0 = r1 - h1: r0 changes to the longer one of two routes.
#[test]
fn a_router_forwards_and_changes_its_route() {
    let wires = vec![
        wire("in", 0, 2, spec(1)),
        wire("in.reverse", 2, 0, spec(1)),
        wire("near", 2, 3, spec(10)),
        wire("near.reverse", 3, 2, spec(10)),
        wire("far", 2, 3, spec(100)),
        wire("far.reverse", 3, 2, spec(100)),
        wire("out", 3, 1, spec(1)),
        wire("out.reverse", 1, 3, spec(1)),
    ];
    let route = RouteChange { at: millis(500), node: 2, to: 1, via: 4 };
    let network = Topology { routes: vec![route], ..network(&["h0", "h1", "r0", "r1"], &[0, 1], wires) };
    let mut emulation = Emulation::new(&network).unwrap();
    emulation.enter(millis(0), H0, &ipv4(H1.ipv4(), 1000)).unwrap();
    emulation.enter(millis(600), H0, &ipv4(H1.ipv4(), 1000)).unwrap();
    let times: Vec<u64> = delivered(&mut emulation, millis(1000)).into_iter().map(|(_, at, _)| at).collect();
    // Three transmissions of 1 ms each and 12 or 102 ms of delay.
    assert_eq!(times, [15_000, 705_000]);
}

/// A host that is not a neighbour, and one to which no links lead.
#[test]
fn hosts_without_a_way_do_not_keep_others_from_theirs() {
    let wires = vec![
        wire("a", 0, 1, spec(10)),
        wire("a.reverse", 1, 0, spec(10)),
        wire("b", 2, 3, spec(10)),
        wire("b.reverse", 3, 2, spec(10)),
    ];
    let mut emulation = Emulation::new(&network(&["h0", "h1", "h2", "h3"], &[0, 1, 2, 3], wires)).unwrap();
    let h2 = Interface { host: 2, number: 0 };
    assert_eq!(emulation.nearest(0, h2), None);
    assert_eq!(emulation.enter(millis(0), H0, &ipv4(h2.ipv4(), 100)), Err(Stray));
    let mut packet = vec![0x60; 100];
    packet[24..40].copy_from_slice(&Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 4, 1).octets());
    emulation.enter(millis(0), h2, &packet).unwrap();
    assert_eq!(delivered(&mut emulation, millis(100)).len(), 1);
}
