//! A server that was restarted resets the connections that it no longer knows, and nobody else can.

use super::*;

/// The server, restarted with the same static key and another seed.
fn restart(room: &mut Room) {
    let endpoint = Endpoint::new(room.now, secret(0), config(Some(server())), [77; 32]);
    room.ends[0] = End { endpoint, events: vec![] };
}

fn closed(room: &Room) -> Option<Event> {
    room.ends[1].events.last().map(|told| told.event).filter(|event| matches!(event, Event::Closed(_)))
}

/// The first datagram after the restart is answered: the client knows within a round trip, and can connect again at once, also
/// if another client was first, and has the slot that the lost connection had.
#[test]
fn restarted_server_ends_connection_in_a_round_trip() {
    for is_first in [true, false] {
        let (mut room, client, _) = Room::pair();
        restart(&mut room);
        if !is_first {
            room.call(1, 0, 2);
            room.run_for(ms(100));
        }
        room.write(1, client, 10);
        room.run_for(ms(21));
        assert_eq!(closed(&room), Some(Event::Closed(CloseReason::Reset)));
        room.call(1, 0, 3);
        room.run_for(ms(100));
        assert_eq!(room.ends[0].endpoint.len(), if is_first { 1 } else { 2 });
    }
}

/// A NAT gives the client another address, of which the client does not know. The server gives it the token of that address, with
/// later datagrams again: after a restart the client knows within a round trip, also if the first token was lost.
#[test]
fn restarted_server_resets_a_client_whose_address_has_changed() {
    for loses_first in [false, true] {
        let (mut room, client, _) = Room::pair();
        room.nat = Some(address(11));
        room.write(1, client, 10);
        // The challenge of the address arrives after 20 ms, and its answer after 30.
        room.run_for(ms(30));
        room.lost = loses_first.then_some(address(11));
        room.write(1, client, 10);
        room.run_for(ms(500));
        room.lost = None;
        room.run_for(ms(1500));
        room.write(1, client, 10);
        room.run_for(ms(500));
        restart(&mut room);
        room.write(1, client, 10);
        room.run_for(ms(21));
        assert_eq!(closed(&room), Some(Event::Closed(CloseReason::Reset)), "{loses_first}");
    }
}

/// Resets with a wrong token, with the right token of another index, or from another address change nothing.
#[test]
fn forged_reset_any_part_wrong_is_ignored() {
    let (mut room, client, _) = Room::pair();
    let mut restarted = Endpoint::new(room.now, secret(0), config(Some(server())), [77; 32]);
    // What the client sends, and the reset that a restarted server would answer.
    let mut data = vec![];
    let mut streams = room.end(1, client).streams();
    let sid = streams.open().unwrap();
    streams.write(sid, &mut Bytes::from_static(b"x")).unwrap();
    let batch = room.ends[1].endpoint.poll_transmit(room.now, 1, &mut data).unwrap();
    let size = batch.len();
    let arrival = |from, to| Arrival { at: Time::ZERO, tuple: tuple(to, from), size, ecn: None };
    restarted.handle_datagrams(room.now, &arrival(1, 0), BytesMut::from(&data[..]));
    let mut reset = vec![];
    restarted.poll_transmit(room.now, 1, &mut reset).unwrap();
    assert_eq!((reset.len(), restarted.tally().resets_sent), (24, 1));
    for place in 0..24 {
        let mut forged = reset.clone();
        forged[place] ^= 1;
        room.deliver(&arrival(0, 1), &forged);
    }
    // A reset for another address: its token is another one; and the right one, from elsewhere.
    let mut other = vec![];
    restarted.handle_datagrams(room.now, &arrival(2, 0), BytesMut::from(&data[..]));
    restarted.poll_transmit(room.now, 1, &mut other).unwrap();
    assert_ne!(other, reset);
    room.deliver(&arrival(0, 1), &other);
    room.deliver(&arrival(2, 1), &reset);
    room.run_for(ms(100));
    assert_eq!(closed(&room), None);
    room.deliver(&arrival(0, 1), &reset);
    room.run_for(ms(1));
    assert_eq!(closed(&room), Some(Event::Closed(CloseReason::Reset)));
}

/// Two servers, each of which gets the other's resets: none is answered. Of 10,000 datagrams in a second, 70 are.
#[test]
fn resets_are_rare_and_never_answered() {
    let both = || vec![endpoint(0, config(Some(server()))), endpoint(1, config(Some(server())))];
    let mut room = Room::new(both());
    let mut datagram = vec![0; 100];
    datagram[0] = 4;
    for number in 0..10_000u32 {
        room.now = Time::ZERO + Span::from_micros(100) * u64::from(number);
        datagram[4..8].copy_from_slice(&number.to_be_bytes());
        room.deliver(&Arrival { at: room.now, tuple: tuple(0, 1), size: 100, ecn: None }, &datagram);
        room.drain();
    }
    room.run_for(ms(1000));
    let sent = [0, 1].map(|end| room.ends[end].endpoint.tally().resets_sent);
    assert!((60..=70).contains(&sent[0]) && sent[1] == 0, "{sent:?}");
    assert_eq!(room.ends[1].endpoint.tally().unknown, sent[0]);
}

/// A sealed reset needs no challenge, so it ends a connection also behind lost data.
#[test]
fn reset_behind_lost_data_ends_the_connection() {
    let (mut room, client, _) = Room::pair();
    room.lost = Some(address(0));
    room.write(1, client, 1000);
    room.lost = None;
    room.end(1, client).abort();
    room.run_for(ms(11));
    let last = room.ends[0].events.last().map(|told| told.event);
    assert_eq!(last, Some(Event::Closed(CloseReason::Reset)));
}

/// The only reset is lost. What the peer sends next is answered by the same reset, from an initiator as well.
#[test]
fn lost_reset_is_repeated_for_what_comes() {
    for aborts in [0, 1] {
        let (mut room, client, server) = Room::pair();
        let ids = [server, client];
        let other = 1 - aborts;
        room.lost = Some(address(other));
        room.end(aborts, ids[aborts]).abort();
        room.run_for(ms(20));
        room.lost = None;
        assert!(room.ends[aborts].endpoint.is_empty());
        room.write(other, ids[other], 10);
        room.run_for(ms(21));
        let last = room.ends[other].events.last().map(|told| told.event);
        assert_eq!(last, Some(Event::Closed(CloseReason::Reset)), "{aborts}");
    }
}

/// Without data on either side, the keep-alive probe is answered.
#[test]
fn lost_reset_is_repeated_for_a_keep_alive_probe() {
    let mut room = Room::new(vec![endpoint(0, config(Some(server()))), endpoint(1, config(None))]);
    let keep_alive = Some(crate::KeepAlive { idle: ms(10_000), ..crate::KeepAlive::USUAL });
    if let Some(server) = &mut room.ends[0].endpoint.config.server {
        server.connection.keep_alive = keep_alive;
    }
    let client = room.call(1, 0, 1);
    room.run_for(ms(100));
    room.lost = Some(address(0));
    room.end(1, client).abort();
    room.run_for(ms(20));
    room.lost = None;
    room.run_for(ms(10_100));
    let last = room.ends[0].events.last().map(|told| told.event);
    assert_eq!(last, Some(Event::Closed(CloseReason::Reset)));
}

/// Somebody sends 10,000 datagrams in a second to an index that has ended. Pauses of 20, 40, 80 ... ms lie between farewells, so they leave
/// after 0, 20, 60, 140, 300 and 620 ms. There is none for short datagrams, and none after 30 s.
#[test]
fn farewells_are_few_and_amplify_nothing() {
    let (mut room, client, _) = Room::pair();
    let number = client.number ^ room.ends[1].endpoint.mask;
    room.end(1, client).abort();
    room.run_for(ms(100));
    let sent = room.sent[1];
    let flood = |room: &mut Room, len: usize| {
        let mut datagram = vec![0; len];
        datagram[0] = 4;
        datagram[4..8].copy_from_slice(&(number << 8 | 1).to_be_bytes());
        for _ in 0..10_000u32 {
            room.now += Span::from_micros(100);
            room.deliver(&Arrival { at: room.now, tuple: tuple(1, 0), size: len, ecn: None }, &datagram);
            room.drain();
        }
    };
    flood(&mut room, 40);
    assert_eq!(room.sent[1], sent);
    flood(&mut room, 100);
    assert_eq!(room.sent[1] - sent, 6);
    room.run_for(Span::from_secs(30));
    flood(&mut room, 100);
    assert_eq!(room.sent[1] - sent, 6);
}
