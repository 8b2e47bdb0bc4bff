//! Path challenges: who can cause how many answers, and where they go.

use super::*;

/// An attacker with forged source addresses cannot make us flood their owners: each challenge gets at most one response, which is
/// no longer than the challenge.
#[test]
fn there_are_no_more_answers_than_questions() {
    let (mut pair, _) = two(steady());
    pair.send(996 * 10);
    pair.run_for(ms(300));
    let (_, last) = *pair.up.log.last().unwrap();
    let question = |token: u8| Segment {
        options: crate::Options::Path(crate::PathOption::Challenge([token; 8])),
        stream_header: None,
        content: Content::Nothing,
        ..last
    };
    let answers = |pair: &mut Pair| -> Vec<_> {
        std::iter::from_fn(|| pair.server.connection.poll_transmit(pair.now)).map(|transmit| transmit.segment).collect()
    };
    let tuple = pair.server.tuple;
    // Of several challenges at once, only the last is answered.
    (0..100).for_each(|token| pair.server.connection.handle_segment(pair.now, tuple, question(token)));
    let said = answers(&mut pair);
    assert_eq!(said.iter().map(|segment| segment.options).collect::<Vec<_>>(), [response(99)]);
    assert!(said[0].wire_size() <= question(99).wire_size());
    for token in 0..100 {
        pair.server.connection.handle_segment(pair.now, tuple, question(token));
        let said = answers(&mut pair);
        assert_eq!(said.iter().map(|segment| segment.options).collect::<Vec<_>>(), [response(token)]);
    }
}

fn response(token: u8) -> crate::Options {
    crate::Options::Path(crate::PathOption::Response([token; 8]))
}

/// Challenges come from a hundred forged addresses, where nothing answers. Two of them get a response and are challenged six
/// times, in about a minute. The others get nothing. The existing paths remain.
#[test]
fn forged_addresses_hear_next_to_nothing() {
    let (mut pair, _) = two(steady());
    pair.send(996 * 10);
    pair.run_for(ms(300));
    let (_, last) = *pair.up.log.last().unwrap();
    let options = crate::Options::Path(crate::PathOption::Challenge([1; 8]));
    let question = Segment { options, stream_header: None, content: Content::Nothing, ..last };
    let mut heard = std::collections::BTreeMap::new();
    let (begin, mut stranger) = (pair.now, pair.server.tuple);
    let connection = &mut pair.server.connection;
    for port in 100..200 {
        stranger.remote.port = port;
        connection.handle_segment(begin, stranger, question);
    }
    let mut now = begin;
    while now < begin + Span::from_secs(70) {
        while let Some(transmit) = connection.poll_transmit(now) {
            *heard.entry(transmit.tuple.remote.port).or_insert(0) += 1;
        }
        now = connection.poll_timeout().max(now);
        connection.handle_timeout(now);
    }
    assert_eq!(heard.into_iter().collect::<Vec<_>>(), [(100, 7), (101, 7)]);
    assert_eq!(connection.paths().ids().count(), 2);
}

/// The tokens of the challenges that were sent on a wire.
fn challenges(wire: &crate::testing::Wire) -> Vec<[u8; 8]> {
    let token = |options| match options {
        crate::Options::Path(crate::PathOption::Challenge(token)) => Some(token),
        _ => None,
    };
    wire.log.iter().filter_map(|(_, segment)| token(segment.options)).collect()
}

/// Every peer with a path gets tokens. With a generator that can be inverted, such as splitmix64, one token would reveal all the
/// others.
#[test]
fn a_token_does_not_give_away_the_next() {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |word: u64| {
        let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    };
    let unmix = |word: u64| {
        let word = (word ^ (word >> 31) ^ (word >> 62)).wrapping_mul(0x3196_42b2_d24d_8ec3);
        let word = (word ^ (word >> 27) ^ (word >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
        word ^ (word >> 30) ^ (word >> 60)
    };
    assert_eq!(unmix(mix(0x0123_4567_89ab_cdef)), 0x0123_4567_89ab_cdef);
    let (mut pair, _) = two(steady());
    pair.join(ms(50));
    let (one, other) = (challenges(&pair.routes[0].down)[0], challenges(&pair.routes[1].down)[0]);
    let next = mix(unmix(u64::from_be_bytes(one)).wrapping_add(STEP));
    assert_ne!(next.to_be_bytes(), other);
}

/// Whatever its numbers, a leave counts only with a token of its path: that of a challenge there, or the two initial sequence
/// numbers.
#[test]
fn unseen_path_is_not_given_up() {
    for is_first in [true, false] {
        let (mut pair, _) = two(steady());
        pair.transfer(996 * 10);
        let numbers = [pair.server_at(0), pair.client_at(0)].map(|number| number.0.to_be_bytes());
        let (tuple, token) = if is_first {
            (pair.server.tuple, numbers.concat().try_into().unwrap())
        } else {
            (pair.routes[0].server, challenges(&pair.routes[0].down)[0])
        };
        let (_, last) = *pair.up.log.last().unwrap();
        let leave = |token| Segment {
            options: crate::Options::Path(crate::PathOption::Leave(token)),
            stream_header: None,
            content: Content::Nothing,
            ..last
        };
        let Pair { server, now, .. } = &mut pair;
        let mut random = crate::random::Random::new(&crate::Secret::new([3; 32]), crate::random::Role::Opens);
        for _ in 0..10_000 {
            server.connection.handle_segment(*now, tuple, leave(random.draw()));
        }
        assert_eq!(server.connection.paths().ids().count(), 2);
        server.connection.handle_segment(*now, tuple, leave(token));
        assert_eq!(server.connection.paths().find(&tuple), None, "is first: {is_first}");
    }
}

/// The response to the first challenge arrives after the second challenge was sent. It counts, and gives an RTT sample.
#[test]
fn an_answer_may_be_late() {
    let mut pair = Pair::established(several(), several());
    let tuple = pair.route(ms(150));
    pair.routes[0].down.delay = ms(1000);
    let id = pair.client.connection.paths().add(pair.now, tuple).unwrap();
    pair.run_for(ms(1140));
    assert_eq!(challenges(&pair.routes[0].up).len(), 2, "the first timeout is a second");
    pair.run_for(ms(20));
    let path = pair.client.connection.path(id).unwrap();
    assert_eq!((path.state, path.rtt_smoothed), (PathState::Live, Some(ms(1150))));
}
