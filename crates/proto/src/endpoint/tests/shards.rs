//! Several endpoints at one socket.

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
