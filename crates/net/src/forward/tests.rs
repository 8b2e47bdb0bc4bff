use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use anabranch_proto::endpoint::Arrival;
use bytes::BytesMut;

use super::*;
use crate::address;
use crate::carriers::Carriers;
use crate::socket::Socket;

const RATE: Rate = Rate::from_bits_per_second(8_000_000);

/// A relay with two members, who have sockets.
struct World {
    forwarder: Forwarder,
    sockets: Sockets,
    members: [(UdpSocket, MemberId); 2],
}

impl World {
    fn new() -> Self {
        let forwarder = Forwarder::new([9; 32], RATE, 4);
        let socket = Socket::new(UdpSocket::bind("127.0.0.1:0").unwrap(), 1 << 20).unwrap();
        let sockets = Sockets::new(socket, Arc::default());
        let members = [(); 2].map(|()| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            let tuple = tuple(&sockets, &socket);
            let id = forwarder.add_member(Time::ZERO, tuple);
            (socket, id)
        });
        Self { forwarder, sockets, members }
    }

    fn route(&self, caller: u64, called: u64) -> bool {
        self.forwarder.add_route(self.members[0].1, self.members[1].1, RouteEnds { caller, called })
    }

    /// Frames come to the relay at this time from this member. Returns what is left for its engine.
    fn arrive(&self, at: Time, from: usize, size: usize, datagrams: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let tuple = tuple(&self.sockets, &self.members[from].0);
        let arrival = Arrival { at, tuple, size, ecn: None };
        let mut received =
            vec![Received { arrival, datagrams: BytesMut::from(&datagrams.concat()[..]), has_time: false }];
        self.forwarder.forward(at, &mut received, &self.sockets);
        received.into_iter().map(|batch| batch.datagrams.to_vec()).collect()
    }

    /// What this member gets.
    fn got(&self, member: usize) -> Vec<Vec<u8>> {
        let mut buffer = [0; 2000];
        std::iter::from_fn(|| self.members[member].0.recv(&mut buffer).ok().map(|len| buffer[..len].to_vec())).collect()
    }
}

fn tuple(sockets: &Sockets, remote: &UdpSocket) -> FourTuple {
    FourTuple { local: address::of(sockets.addresses()[0]), remote: address::of(remote.local_addr().unwrap()) }
}

fn data(route: u64, bytes: &[u8]) -> Vec<u8> {
    [&frame::header(Kind::Data, route)[..], bytes].concat()
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

#[tokio::test]
async fn frames_reach_the_other_end_of_their_route() {
    let world = World::new();
    assert!(world.route(5, 6));
    let own = vec![4; 22];
    let left = world.arrive(at(1), 0, 22, &[data(5, &[1; 10]), data(5, &[2; 10]), own.clone(), data(5, &[3; 9])]);
    assert_eq!(left, [own], "what is no frame is the engine's");
    assert_eq!(world.got(1), [data(6, &[1; 10]), data(6, &[2; 10]), data(6, &[3; 9])]);
    world.arrive(at(1), 1, 22, &[data(6, &[7; 10])]);
    assert_eq!(world.got(0), [data(5, &[7; 10])]);
    let expected = Forwarded { datagrams: 4, bytes: 39, ..Forwarded::default() };
    assert_eq!(world.forwarder.forwarded(), expected);
}

/// The number of a route alone is no right to use it: frames from another address, of the other end, or of a route that is gone, vanish.
#[tokio::test]
async fn frame_that_is_not_its_members_is_dropped() {
    let world = World::new();
    assert!(world.route(5, 6));
    world.arrive(at(1), 1, 22, &[data(5, &[1; 10])]);
    world.arrive(at(1), 0, 22, &[data(6, &[1; 10])]);
    world.arrive(at(1), 0, 22, &[data(77, &[1; 10])]);
    assert!(world.got(0).is_empty() && world.got(1).is_empty());
    // The member moves, and has the route at its new address only.
    world.forwarder.move_member(world.members[0].1, tuple(&world.sockets, &world.members[1].0));
    world.arrive(at(1), 0, 22, &[data(5, &[1; 10])]);
    assert!(world.got(1).is_empty());
    world.forwarder.remove_member(world.members[1].1);
    world.arrive(at(1), 1, 22, &[data(5, &[1; 10])]);
    assert!(world.got(0).is_empty() && world.got(1).is_empty());
    assert_eq!(world.forwarder.forwarded(), Forwarded { unknown: 5, ..Forwarded::default() });
}

/// 8 Mbit/s are 1000 bytes a millisecond; a quarter of a second, 250 kB, may come at once. A datagram of one byte counts as 100.
#[tokio::test]
async fn member_has_its_rate_and_no_more() {
    let world = World::new();
    assert!(world.route(5, 6));
    let large = vec![data(5, &[1; 988]); 50];
    (0..10).for_each(|_| _ = world.arrive(at(0), 0, 1_000, &large));
    assert_eq!(world.forwarder.forwarded().datagrams, 250);
    world.arrive(at(10), 0, 1_000, &large);
    assert_eq!(world.forwarder.forwarded().datagrams, 260);
    let small = vec![data(5, &[1]); 50];
    world.arrive(at(11), 0, 13, &small);
    let forwarded = world.forwarder.forwarded();
    assert_eq!((forwarded.datagrams, forwarded.too_fast), (270, 500 - 250 + 40 + 40));
    // The other end has its own.
    world.arrive(at(11), 1, 1_000, &[data(6, &[1; 988])]);
    assert_eq!(world.got(0).len(), 1);
}

#[tokio::test]
async fn oldest_route_ends_at_the_limit_of_either_end() {
    let world = World::new();
    assert!((0..6).all(|route| world.route(10 + route, 20 + route)));
    assert!(!world.route(15, 99) && !world.route(99, 25) && !world.route(98, 98), "numbers are unique");
    for route in 0..6 {
        world.arrive(at(1), 0, 22, &[data(10 + route, &[1; 10])]);
        assert_eq!(world.got(1).len(), usize::from(route >= 2), "{route}");
    }
    let state = world.forwarder.lock();
    assert_eq!((state.routes.len(), state.members.values().map(|member| member.routes.len()).sum::<usize>()), (8, 8));
}

/// A question gets one answer, shorter than itself; a short one, or an answer, gets none; a flood gets 1000 a second.
#[tokio::test]
async fn questions_are_answered_by_less() {
    let world = World::new();
    world.arrive(at(1), 0, frame::QUESTION, &[frame::question(7).to_vec(), frame::question(7).to_vec()]);
    assert_eq!(world.got(0), [frame::answer(7, &[9; 32], None).to_vec()]);
    world.arrive(at(1), 0, 63, &[frame::question(7)[..63].to_vec()]);
    world.arrive(at(1), 0, frame::ANSWER, &[frame::answer(7, &[9; 32], None).to_vec()]);
    assert!(world.got(0).is_empty());
    let mut state = world.forwarder.lock();
    assert_eq!((0..5_000).filter(|_| state.may_answer(at(1_001))).count(), 1_000);
    assert!(!state.may_answer(at(2_000)) && state.may_answer(at(2_001)));
}

/// Two members over TCP may have one address, that of a proxy, and have carriers of their own.
#[tokio::test]
async fn frame_from_another_carrier_of_the_address_is_dropped() {
    let world = World::new();
    let carriers = Arc::new(Carriers::default());
    let remote = "192.0.2.1:443".parse().unwrap();
    let (own, other) = (carriers.add(remote), carriers.add(remote));
    let member = world.forwarder.add_member(Time::ZERO, own.tuple());
    assert_eq!(world.forwarder.members(), (2, 1));
    assert!(world.forwarder.add_route(member, world.members[1].1, RouteEnds { caller: 1, called: 2 }));
    let udp = FourTuple { local: address::of(world.sockets.addresses()[0]), remote: own.tuple().remote };
    for (tuple, passed) in [(own.tuple(), 1), (other.tuple(), 0), (udp, 0)] {
        let arrival = Arrival { at: at(1), tuple, size: 22, ecn: None };
        let datagrams = BytesMut::from(&data(1, &[7; 10])[..]);
        world.forwarder.forward(at(1), &mut vec![Received { arrival, datagrams, has_time: false }], &world.sockets);
        assert_eq!(world.got(1).len(), passed);
    }
    assert_eq!(world.forwarder.forwarded().unknown, 2);
}

/// A member over TCP that takes nothing loses what its queue has no room for, and that is counted.
#[tokio::test]
async fn datagrams_beyond_the_queue_of_a_carrier_are_counted() {
    let carriers = Arc::new(Carriers::default());
    let socket = Socket::new(UdpSocket::bind("127.0.0.1:0").unwrap(), 1 << 20).unwrap();
    let sockets = Sockets::new(socket, Arc::clone(&carriers));
    let forwarder = Forwarder::new([9; 32], Rate::from_bits_per_second(1_000_000_000), 4);
    let (one, two) = ["192.0.2.1:443", "192.0.2.2:443"].map(|text| carriers.add(text.parse().unwrap())).into();
    let [from, to] = [&one, &two].map(|carrier| forwarder.add_member(Time::ZERO, carrier.tuple()));
    assert!(forwarder.add_route(from, to, RouteEnds { caller: 1, called: 2 }));
    let arrival = Arrival { at: at(1), tuple: one.tuple(), size: 1_000, ecn: None };
    for _ in 0..300 {
        let datagrams = BytesMut::from(&data(1, &[7; 988])[..]);
        forwarder.forward(at(1), &mut vec![Received { arrival, datagrams, has_time: false }], &sockets);
    }
    let forwarded = forwarder.forwarded();
    assert_eq!((forwarded.congested, forwarded.too_fast), (300 - 262, 0));
}
