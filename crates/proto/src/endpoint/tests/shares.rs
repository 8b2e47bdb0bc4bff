//! How many connections a peer gets, who gives way, and what a refused one is told.

use super::*;

/// A server with these limits of a key and of all, and clients with a key and an address each.
fn room(key_max: usize, connections_max: usize, clients: usize) -> Room {
    let server = ServerConfig { shares: Shares { key_max, ..Shares::default() }, ..server() };
    let mut ends = vec![endpoint(0, EndpointConfig { connections_max, ..config(Some(server)) })];
    ends.extend((1..=clients).map(|end| endpoint(end, config(None))));
    Room::new(ends)
}

/// Opens `count` connections one after the other, and returns the reasons of those that are refused.
fn call(room: &mut Room, end: usize, count: u64, refused: &mut Vec<Full>) {
    for _ in 0..count {
        let stamp = 1 + room.ends.iter().map(|end| end.events.len() as u64).sum::<u64>();
        let id = room.call(end, 0, 1000 * end as u64 + stamp);
        let mut closed = false;
        for _ in 0..10 {
            room.run_for(ms(5));
            // The reason is there as long as the event waits.
            closed |= room.ends[end].endpoint.view(id).is_none();
        }
        if closed {
            refused.push(room.refusals.remove(&id).expect("it is told why"));
        }
    }
}

fn established(room: &Room, end: usize) -> usize {
    let events = &room.ends[end].events;
    let opened = events.iter().filter(|told| matches!(told.event, Event::Established { .. })).count();
    opened - events.iter().filter(|told| matches!(told.event, Event::Closed(_)) && is_opened(events, told)).count()
}

fn is_opened(events: &[EndpointEvent], of: &EndpointEvent) -> bool {
    let same = |told: &&EndpointEvent| told.connection == of.connection;
    events.iter().filter(same).any(|told| matches!(told.event, Event::Established { .. }))
}

#[test]
fn key_at_its_limit_refuses_and_says_how_many_there_are() {
    let (mut room, mut refused) = (room(3, 100, 2), vec![]);
    call(&mut room, 1, 5, &mut refused);
    assert_eq!(refused, [Full::Key(3), Full::Key(3)]);
    assert_eq!((established(&room, 1), room.ends[0].endpoint.len()), (3, 3), "what was refused takes no memory");
    call(&mut room, 2, 1, &mut refused);
    assert_eq!((refused.len(), established(&room, 2)), (2, 1), "another key has its own part");
    assert_eq!(room.ends[0].endpoint.tally().too_many, 2);
}

/// After 30 s without data the first one gives way; the second, which had data meanwhile, stays.
#[test]
fn idle_connection_gives_way_to_a_new_one_of_its_key() {
    let (mut room, mut refused) = (room(2, 100, 1), vec![]);
    let (first, second) = (room.call(1, 0, 1), room.call(1, 0, 2));
    room.run_for(Span::from_secs(20));
    room.write(1, second, 10);
    room.run_for(Span::from_millis(9_800));
    call(&mut room, 1, 1, &mut refused);
    assert_eq!(refused, [Full::Key(2)], "before 30 s");
    room.run_for(ms(300));
    call(&mut room, 1, 1, &mut refused);
    assert_eq!((refused.len(), room.ends[0].endpoint.tally().gave_way), (1, 1));
    room.run_for(ms(100));
    let lives = [first, second].map(|id| room.ends[1].endpoint.view(id).is_some());
    assert_eq!((lives, established(&room, 1)), ([false, true], 2));
    let why = EndpointEvent { connection: first, event: Event::Closed(CloseReason::GaveWay) };
    assert!(room.ends[1].events.contains(&why), "it learns why");
}

/// One client takes all eight connections. Others get in, until all have the same number.
#[test]
fn full_server_takes_from_who_holds_most() {
    let (mut room, mut refused) = (room(100, 8, 3), vec![]);
    call(&mut room, 1, 8, &mut refused);
    call(&mut room, 1, 1, &mut refused);
    assert_eq!(refused, [Full::Everybody(8)], "it holds most itself");
    for end in [2, 2, 2, 3, 3] {
        call(&mut room, end, 1, &mut refused);
    }
    room.run_for(ms(100));
    let each = [1, 2, 3].map(|end| established(&room, end));
    assert_eq!((each, refused.len()), ([3, 3, 2], 1));
    call(&mut room, 3, 1, &mut refused);
    assert_eq!(refused.last(), Some(&Full::Everybody(8)), "nobody holds two more");
}

/// The initiations of many half-open connections all find room. Those that are confirmed too late are reset, and the application
/// never hears of them.
#[test]
fn half_open_crowd_beyond_the_limit_is_reset_unheard() {
    let mut room = room(3, 100, 1);
    let ids: Vec<_> = (0..8).map(|stamp| room.call(1, 0, stamp)).collect();
    room.run_for(ms(200));
    let alive = ids.iter().filter(|id| room.ends[1].endpoint.view(**id).is_some()).count();
    let heard = room.ends[0].events.iter().filter(|told| matches!(told.event, Event::Established { .. })).count();
    assert_eq!((alive, heard, room.ends[0].endpoint.len()), (3, 3, 3));
}

/// Half-open connections of an owner of many addresses leave the room of the established ones alone.
#[test]
fn half_open_connections_take_no_room_of_others() {
    let mut room = room(100, 4, 2);
    room.lost = Some(address(1));
    for stamp in 0..10 {
        room.call(1, 0, stamp);
    }
    room.run_for(ms(100));
    assert_eq!(room.ends[0].endpoint.len(), 10);
    let mut refused = vec![];
    call(&mut room, 2, 4, &mut refused);
    assert_eq!((established(&room, 2), refused), (4, vec![]));
}

/// A connection that counts, and that had data at the beginning.
fn enter(held: &mut Held, owner: Owner, number: u32) {
    let id = ConnectionId { serial: number.into(), number };
    let shares = Shares { key_max: 100, ..Shares::default() };
    let room = held.enter(Time::ZERO, id, owner, Activity::default(), &shares, 100);
    assert_eq!(room, super::super::shares::Room::Free);
}

/// IPv4 addresses count one by one, those of an IPv6 /64 together, whatever the keys.
#[test]
fn network_at_its_limit_refuses_whatever_the_key() {
    use super::super::shares::Room;

    let shares = Shares { network_max: 2, ..Shares::default() };
    let owner = |key, address| Owner { key: PublicKey([key; 32]), network: Network::of(address) };
    let mut held = Held::default();
    let v6 = 0x2001_0db8_0000_0001_u128 << 64;
    enter(&mut held, owner(1, v6 + 5), 1);
    enter(&mut held, owner(2, v6 + (1 << 63)), 2);
    enter(&mut held, owner(3, 0x0a00_0001), 3);
    let room = |held: &Held, owner| held.room(Time::ZERO, owner, &shares, 100);
    assert_eq!(room(&held, owner(4, v6 + 77)), Room::Full(Full::Network(2)));
    assert_eq!(room(&held, owner(4, v6 + (1 << 64))), Room::Free);
    enter(&mut held, owner(3, 0x0a00_0001), 4);
    assert_eq!(room(&held, owner(4, 0x0a00_0002)), Room::Free);
    assert_eq!(room(&held, owner(4, 0xffff_0a00_0001)), Room::Free, "not the same number of the network");
}
