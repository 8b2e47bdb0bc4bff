//! The own address goes away.

use super::*;
use crate::Address;

/// The address of the client goes away in the middle of a transfer in both directions: nothing that it sends from there leaves,
/// and nothing arrives. Returns the pair, the old four-tuple and one from another address, with a one-way delay of 50 ms.
fn left(config: Config) -> (Pair, crate::FourTuple, crate::FourTuple, [Sid; 2]) {
    let mut pair = Pair::established(config.clone(), config);
    let sid = pair.send(996 * 1000);
    let back = pair.server.open();
    pair.server.write(back, 996 * 1000);
    pair.run_for(ms(300));
    let (old, other) = (pair.client.tuple, pair.route(ms(50)));
    // The same server, seen from another address.
    pair.routes[0].client.remote = old.remote;
    pair.routes[0].server.local = old.remote;
    (pair.up.is_cut, pair.down.is_cut) = (true, true);
    (pair, old, crate::FourTuple { remote: old.remote, ..other }, [sid, back])
}

/// [rfc-9000] sec. 9: the new path is used when the peer has answered on it, a round trip after the move.
#[test]
fn lost_own_address_is_replaced_in_a_round_trip() {
    let (mut pair, old, new, [sid, back]) = left(several());
    let (now, begin) = (pair.now, pair.server.received(sid));
    pair.client.connection.paths().on_unreachable(now, old, Some(new.local));
    pair.run_for(ms(101));
    let id = pair.client.connection.paths().find(&new).unwrap();
    assert_eq!(pair.client.connection.path(id).unwrap().state, PathState::Live);
    assert_eq!(pair.client.connection.paths().find(&old), None, "the path of the old address is dropped");
    pair.run_for(ms(60));
    assert!(pair.server.received(sid) > begin, "data leaves as soon as the peer has answered");
    let begin = now;
    pair.run_until(|pair| pair.server.received(sid) == 996 * 1000 && pair.client.received(back) == 996 * 1000);
    assert!(pair.now - begin < ms(3000), "{}", pair.now - begin);
    let paths = pair.server.connection.paths();
    let (there, gone) = (paths.find(&new.reversed()).unwrap(), paths.find(&old.reversed()).unwrap());
    assert_eq!(pair.server.connection.path(there).unwrap().state, PathState::Live);
    assert_eq!(pair.server.connection.path(gone).unwrap().state, PathState::Suspect);
}

/// Ten minutes later the old address is back. The peer's challenge there is answered with a leave, so one path remains.
#[test]
fn an_old_address_that_comes_back_makes_no_second_path() {
    let (mut pair, old, new, _) = left(several());
    let now = pair.now;
    pair.client.connection.paths().on_unreachable(now, old, Some(new.local));
    pair.run_for(Span::from_secs(600));
    (pair.up.is_cut, pair.down.is_cut) = (false, false);
    pair.run_for(Span::from_secs(10));
    let reports =
        |end: &crate::testing::End| end.connection.path_reports().map(|(_, path)| path.tuple).collect::<Vec<_>>();
    assert_eq!((reports(&pair.client), reports(&pair.server)), (vec![new], vec![new.reversed()]));
}

/// There is no other address: the path waits, and is tried at once when the network is back, whatever the backoff is by then.
#[test]
fn a_network_that_comes_back_is_used_at_once() {
    for told in [false, true] {
        let (mut pair, old, _, [sid, _]) = left(several());
        let now = pair.now;
        pair.client.connection.paths().on_unreachable(now, old, None);
        pair.run_for(ms(8000));
        (pair.up.is_cut, pair.down.is_cut) = (false, false);
        let (back_at, before) = (pair.now, pair.server.received(sid));
        if told {
            pair.client.connection.paths().on_reachable(back_at, old);
        }
        pair.run_until(|pair| pair.server.received(sid) > before);
        // The first segment may have arrived before, so it takes a round trip more. Without word, the timeouts have doubled.
        let took = pair.now - back_at;
        assert_eq!(took <= ms(150), told, "{took}");
    }
}

/// With several paths the others take over at once, without waiting for silence.
#[test]
fn a_path_whose_address_is_gone_is_suspected_at_once() {
    let (mut pair, second) = busy();
    let sid = pair.send(996 * 8000);
    pair.run_for(ms(2000));
    let tuple = pair.routes[0].client;
    (pair.routes[0].up.is_cut, pair.routes[0].down.is_cut) = (true, true);
    let now = pair.now;
    pair.client.connection.paths().on_unreachable(now, tuple, None);
    assert_eq!(pair.client.connection.path(second).unwrap().state, PathState::Suspect);
    pair.run_until_received(sid, 996 * 8000);
    assert_eq!(pair.client.connection.paths().ids().count(), 2);
}

/// The host pauses: both paths are silent, the first is suspected. The system would send from another address, but the second path was added for its
/// own, so it stays; the first, and a path alone, move.
#[test]
fn silent_path_beside_others_keeps_its_address() {
    let (mut pair, second) = busy();
    pair.send(996 * 8000);
    pair.run_for(ms(1000));
    let route = &mut pair.routes[0];
    (route.up.is_cut, route.down.is_cut, pair.up.is_cut, pair.down.is_cut) = (true, true, true, true);
    pair.run_for(ms(3000));
    let (now, first, own) = (pair.now, pair.client.tuple, pair.routes[0].client);
    let new = crate::FourTuple { remote: first.remote, ..pair.route(ms(50)) };
    (pair.routes[1].client, pair.routes[1].server) = (new, new.reversed());
    let tuples = |pair: &Pair| pair.client.connection.path_reports().map(|(_, path)| path.tuple).collect::<Vec<_>>();
    pair.client.connection.paths().on_other_route(now, own, new.local);
    assert_eq!(tuples(&pair), [first, own]);
    pair.client.connection.paths().on_other_route(now, first, new.local);
    assert_eq!(tuples(&pair), [first, own, new]);
    pair.heal();
    pair.run_for(Span::from_secs(10));
    assert_eq!(tuples(&pair), [own, new]);
    assert_eq!(pair.client.connection.path(second).unwrap().state, PathState::Live);
}

/// Twenty moves, one after the other, between addresses that the peer never sees again.
#[test]
fn a_client_that_moves_often_keeps_few_paths() {
    let (mut pair, old, _, [sid, _]) = left(several());
    let mut from = old;
    for _ in 0..20 {
        let route = pair.route(ms(50));
        let new = crate::FourTuple { local: Address { port: 70, ..route.local }, remote: old.remote };
        let last = pair.routes.len() - 1;
        (pair.routes[last].client, pair.routes[last].server) = (new, new.reversed());
        let now = pair.now;
        pair.client.connection.paths().on_unreachable(now, from, Some(new.local));
        pair.run_for(ms(500));
        (pair.routes[last].up.is_cut, pair.routes[last].down.is_cut) = (true, true);
        from = new;
        let counts = [&pair.client, &pair.server].map(|end| end.connection.path_reports().count());
        assert!(counts[0] <= 2 && counts[1] <= 4 + 2, "four, and two that are not validated: {counts:?}");
    }
    assert!(pair.server.received(sid) > 0);
}
