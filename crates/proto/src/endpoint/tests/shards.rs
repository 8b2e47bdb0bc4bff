//! Several endpoints at one socket.

use super::super::shares::{Guest, Room};
use super::*;

/// The datagram that opens a connection from end 1 to end 0, and its sender.
fn initiation(number: u8) -> (Endpoint, Vec<u8>) {
    let (mut client, mut datagram) = (Endpoint::new(Time::ZERO, secret(1), config(None), [number; 32]), vec![]);
    let stamp = Timestamp::since_1970(Span::from_secs(number.into()));
    client.connect(Time::ZERO, stamp, secret(0).public(), tuple(1, 0), connection()).unwrap();
    client.poll_transmit(Time::ZERO, 1, &mut datagram).unwrap();
    (client, datagram)
}

/// Delivers a datagram, and returns the answer.
fn answer(endpoint: &mut Endpoint, now: Time, from: usize, to: usize, datagram: &[u8]) -> Vec<u8> {
    let arrival = Arrival { at: now, tuple: tuple(to, from), size: datagram.len(), ecn: None };
    let mut out = vec![];
    endpoint.handle_datagrams(now, &arrival, BytesMut::from(datagram));
    endpoint.poll_transmit(now, 1, &mut out);
    out
}

/// An initiation that one shard has accepted is a replay for the others, however late it comes. The same shard takes it for a copy,
/// as long as the connection is half open.
#[test]
fn initiation_replayed_to_another_shard_opens_nothing() {
    let mut shards = divided(0, 3, config(Some(server())));
    let (mut client, datagram) = initiation(1);
    let response = answer(&mut shards[1], Time::ZERO, 1, 0, &datagram);
    let second = answer(&mut shards[1], Time::ZERO, 1, 0, &datagram);
    assert_eq!((response.len(), shards[1].len()), (second.len(), 1), "a copy gets the response again");
    let replay = |shards: &mut [Endpoint], seconds, shard: usize| {
        let before = shards[shard].listener_tally().refused(Refusal::Replayed);
        let answered = answer(&mut shards[shard], Time::ZERO + Span::from_secs(seconds), 1, 0, &datagram);
        (answered.len(), shards[shard].listener_tally().refused(Refusal::Replayed) - before)
    };
    assert_eq!([0, 2].map(|shard| replay(&mut shards, 1, shard)), [(0, 1); 2], "while it is half open");
    let first = answer(&mut client, Time::ZERO, 0, 1, &response);
    answer(&mut shards[1], Time::ZERO, 1, 0, &first);
    assert_eq!([0, 1, 2].map(|shard| replay(&mut shards, 2, shard)), [(0, 1); 3]);
    assert_eq!([0, 2].map(|shard| shards[shard].len()), [0, 0]);
}

/// A retry with a cookie may come to another shard, as when the first copies came in a flood.
#[test]
fn cookie_of_a_shard_is_good_for_all() {
    let listener = ListenerConfig { unproven: Pace { per_second: 0, burst: 0 }, ..ListenerConfig::default() };
    let mut shards = divided(0, 2, config(Some(ServerConfig { listener, ..server() })));
    let (mut client, datagram) = initiation(1);
    let cookie = answer(&mut shards[0], Time::ZERO, 1, 0, &datagram);
    assert_eq!((shards[0].len(), cookie.is_empty()), (0, false));
    let retry = answer(&mut client, Time::ZERO, 0, 1, &cookie);
    answer(&mut shards[1], Time::ZERO, 1, 0, &retry);
    assert_eq!(shards[1].len(), 1);
}

/// A network gets a burst of 50 handshakes without a cookie, all in one shard or some in each. The rest get cookies.
#[test]
fn shards_compute_no_more_handshakes_than_one() {
    let datagrams: Vec<_> = (0..100).map(|number| initiation(number).1).collect();
    for spread in [1, 4] {
        let mut shards = divided(0, 4, config(Some(server())));
        for (place, datagram) in datagrams.iter().enumerate() {
            assert!(!answer(&mut shards[place % spread], Time::ZERO, 1, 0, datagram).is_empty());
        }
        assert_eq!(shards.iter().map(Endpoint::len).sum::<usize>(), 50, "spread over {spread}");
    }
}

/// Half-open connections have a limit together: the oldest of a shard is evicted at its part.
#[test]
fn shards_hold_no_more_half_open_connections_than_one() {
    // Each initiator proves its address, as without a cookie a shard takes half of its part only.
    let unproven = Pace { per_second: 0, burst: 0 };
    let listener = ListenerConfig { half_open: 6, unproven, ..ListenerConfig::default() };
    let mut shards = divided(0, 3, config(Some(ServerConfig { listener, ..server() })));
    for number in 0..12 {
        let ((mut client, datagram), shard) = (initiation(number), &mut shards[usize::from(number) % 3]);
        let cookie = answer(shard, Time::ZERO, 1, 0, &datagram);
        let retry = answer(&mut client, Time::ZERO, 0, 1, &cookie);
        answer(shard, Time::ZERO, 1, 0, &retry);
    }
    assert_eq!(shards.iter().map(Endpoint::len).collect::<Vec<_>>(), [2; 3]);
}

/// Datagrams of unknown connections come to all shards, as after a restart: a peer gets a burst of 50 resets, not one from each.
#[test]
fn shards_send_no_more_resets_than_one() {
    let mut shards = divided(0, 4, config(Some(server())));
    let mut datagram = vec![0; 100];
    datagram[0] = 4;
    for number in 0..400_u32 {
        datagram[4..8].copy_from_slice(&number.to_be_bytes());
        answer(&mut shards[number as usize % 4], Time::ZERO, 1, 0, &datagram);
    }
    assert_eq!(shards.iter().map(|shard| shard.tally().resets_sent).sum::<u64>(), 50);
}

/// Each datagram tells the shard of its recipient; the initiation only tells which others are its copies.
#[test]
fn datagram_tells_the_shard_of_its_recipient() {
    let mut shards = [divided(0, 64, config(Some(server()))), divided(1, 6, config(None))];
    let mut room = super::Room::new(shards.iter_mut().filter_map(Vec::pop).collect());
    let destinations =
        |room: &super::Room| room.flying.values().map(|(_, bytes)| Endpoint::destination(bytes)).collect::<Vec<_>>();
    let id = room.call(1, 0, 1);
    let [Some(Destination::Initiation(key))] = destinations(&room)[..] else { panic!("{:?}", destinations(&room)) };
    room.run_for(Span::from_millis(10));
    assert_eq!(destinations(&room), [Some(Destination::Shard(5))], "the response");
    room.run_for(Span::from_millis(1_000));
    room.write(1, id, 10);
    assert!(destinations(&room).contains(&Some(Destination::Shard(63))), "{:?}", destinations(&room));
    let again = room.call(1, 0, 2);
    let Some(Some(Destination::Initiation(other))) = destinations(&room).last().copied() else { panic!("{again:?}") };
    assert_ne!(key, other);
}

/// Connections of two shards, and their room. All had data at the beginning.
#[test]
fn limits_hold_for_all_shards_together() {
    let shares = Shares { key_max: 2, ..Shares::default() };
    let owner = |key| Owner { key: PublicKey([key; 32]), network: Network::of(u128::from(key) << 64) };
    let id = |number: u32| ConnectionId { serial: number.into(), number };
    let [mut one, mut other] = [Held::default(), Held::default()];
    other.join(1, &one);
    let at = |seconds| Time::ZERO + Span::from_secs(seconds);
    let add = |held: &mut Held, seconds, key, number| {
        held.enter(at(seconds), id(number), owner(key), Activity::default(), &shares, 4)
    };
    assert_eq!([add(&mut one, 0, 1, 1), add(&mut other, 0, 1, 1)], [Room::Free; 2], "numbers are those of a shard");
    assert_eq!([add(&mut one, 0, 1, 2), add(&mut other, 29, 1, 2)], [Room::Full(Full::Key(2)); 2]);
    let instead = Room::Instead(Guest { shard: 1, id: id(1) });
    assert_eq!((one.room(at(30), owner(1), &shares, 4), one.is_called(), other.is_called()), (instead, false, false));
    assert_eq!(add(&mut one, 30, 1, 3), instead);
    assert_eq!((one.poll_neighbour(), one.is_called(), other.is_called()), (Some(1), false, true));
    assert_eq!((other.poll_leaving(), other.poll_leaving(), other.is_called()), (Some(id(1)), None, false));
    // It counts among all until it is gone. So these are four, and the first key has two of them.
    assert_eq!((one.settled(), add(&mut other, 30, 2, 4)), (3, Room::Free));
    assert_eq!(add(&mut other, 30, 3, 5), Room::Instead(Guest { shard: 0, id: id(3) }));
    assert_eq!((other.poll_neighbour(), one.poll_leaving()), (Some(0), Some(id(3))));
    one.leave();
    other.leave();
    assert_eq!(add(&mut one, 30, 4, 6), Room::Free);
    assert_eq!(add(&mut other, 0, 5, 7), Room::Full(Full::Everybody(4)), "nobody holds two more");
    one.remove(id(6));
    one.leave();
    assert_eq!((add(&mut other, 0, 5, 7), one.poll_neighbour(), other.poll_neighbour()), (Room::Free, None, None));
}

/// Shards on several threads never let in more than one would.
#[test]
fn shards_that_admit_at_once_keep_the_limit() {
    let shares = Shares { key_max: 100, ..Shares::default() };
    let owner = Owner { key: PublicKey([1; 32]), network: Network::of(1) };
    let first = Held::default();
    let start = std::sync::Barrier::new(4);
    let admit = |shard| {
        let mut held = Held::default();
        held.join(shard, &first);
        start.wait();
        let rooms = (0..1000).map(|number| {
            let id = ConnectionId { serial: number, number: number as u32 };
            held.enter(Time::ZERO, id, owner, Activity::default(), &shares, 1000)
        });
        rooms.filter(|room| *room == Room::Free).count()
    };
    let admit = &admit;
    let counts = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|shard| scope.spawn(move || admit(shard))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
    });
    assert_eq!((counts, first.settled()), (100, 100));
}

/// A key of which one connection may be open connects anew, and comes to another shard. Its idle connection in the first gives way, and
/// the peer learns why.
#[test]
fn idle_connection_gives_way_to_one_of_another_shard() {
    let shares = Shares { key_max: 1, ..Shares::default() };
    let mut shards = divided(0, 2, config(Some(ServerConfig { shares, ..server() })));
    let late = Time::ZERO + Span::from_secs(30);
    let connect = |shards: &mut [Endpoint], number: u8, shard: usize, now: Time| {
        let (mut client, datagram) = initiation(number);
        let response = answer(&mut shards[shard], now, 1, 0, &datagram);
        let confirmation = answer(&mut client, now, 0, 1, &response);
        answer(&mut shards[shard], now, 1, 0, &confirmation);
        client
    };
    let mut first = connect(&mut shards, 1, 0, Time::ZERO);
    let next = |shard: &mut Endpoint| shard.poll_event().map(|told| told.event);
    assert_eq!(next(&mut shards[0]), Some(Event::Established { streams: Some(8) }));
    let _second = connect(&mut shards, 2, 1, late);
    assert_eq!(next(&mut shards[1]), Some(Event::Established { streams: Some(8) }));
    assert_eq!((shards[1].poll_neighbour(), shards[0].poll_timeout()), (Some(0), Time::ZERO));
    shards[0].handle_timeout(late);
    let mut farewell = vec![];
    shards[0].poll_transmit(late, 10, &mut farewell).expect("a reset");
    assert_eq!([(); 2].map(|()| next(&mut shards[0])), [Some(Event::Closed(CloseReason::Aborted)), None]);
    answer(&mut first, late, 0, 1, &farewell);
    let told = std::iter::from_fn(|| first.poll_event()).last().map(|told| told.event);
    assert_eq!((told, shards[0].len(), shards[1].len()), (Some(Event::Closed(CloseReason::GaveWay)), 0, 1));
    assert_ne!(shards[0].poll_timeout(), Time::ZERO, "it was done");
}

/// The indices of a shard end where those of the next begin, however many connections may be open.
#[test]
fn shard_gives_no_number_of_another() {
    let many = EndpointConfig { connections_max: usize::MAX, ..config(Some(server())) };
    let shards = divided(0, 3, many.clone());
    assert!(shards.iter().all(|shard| shard.numbers_max == 1 << 18));
    assert_eq!([0, 1, 2].map(|place| shards[place].mask >> 18), [0, 1, 2]);
    assert_eq!(divided(0, 1, many)[0].numbers_max, 1 << 24);
}

/// An endpoint that lets nobody in any more says so in its answer, and keeps nothing. The connections that it has go on.
#[test]
fn endpoint_that_refuses_all_answers_initiations() {
    let (mut room, client, server) = super::Room::pair();
    room.ends[0].endpoint.refuse_all();
    let refused = room.call(1, 0, 2);
    room.run_for(ms(100));
    let closed = EndpointEvent { connection: refused, event: Event::Closed(CloseReason::Refused) };
    assert!(room.ends[1].events.contains(&closed), "{:?}", room.ends[1].events);
    assert_eq!((room.ends[0].endpoint.len(), room.ends[0].events.len(), room.refusals.len()), (1, 1, 0));
    let sid = room.write(1, client, 10);
    room.run_for(ms(100));
    assert_eq!(room.read(0, server, sid), (10, true));
}
