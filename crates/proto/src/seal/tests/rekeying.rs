//! Rekeying: the replacement of keys.

use super::*;

#[test]
fn keys_are_replaced_while_data_flows_both_ways() {
    let limits = Limits::default();
    let (mut client, mut server) = pair(limits);
    let late = sealed(&mut client, secs(119), PATH, &data(1));
    assert_eq!(own(&mut client, secs(119)), None);
    exchange(&mut client, &mut server, secs(120), 10);
    let lost = own(&mut client, secs(120)).expect("the keys are old");
    assert_eq!((own(&mut client, secs(120)), client.poll_timeout()), (None, millis(120_250)));
    exchange(&mut client, &mut server, secs(121), 20);
    let ask = own(&mut client, secs(125)).expect("the first was lost");
    assert_ne!(lost, ask);
    assert_eq!(opened(&mut server, secs(125), PATH.reversed(), &ask), Ok(None));
    let answer = own(&mut server, secs(125)).expect("there is an answer");
    exchange(&mut client, &mut server, secs(125), 30);
    assert_eq!(opened(&mut client, secs(125), PATH, &answer), Ok(None));
    // The server seals with the old keys until it has seen a datagram under the new ones.
    let old = sealed(&mut server, secs(126), PATH.reversed(), &data(40));
    let new = sealed(&mut client, secs(126), PATH, &data(41));
    assert_eq!(opened(&mut client, secs(126), PATH, &old), Ok(Some(data(40))));
    assert_eq!(opened(&mut server, secs(126), PATH.reversed(), &new), Ok(Some(data(41))));
    exchange(&mut client, &mut server, secs(126), 50);
    assert_eq!((client.tally().rekeyed, server.tally().rekeyed), (1, 1));
    // Datagrams under the old keys are accepted for ten seconds.
    assert_eq!(opened(&mut server, secs(127), PATH.reversed(), &late), Ok(Some(data(1))));
    let very_late = lost;
    server.handle_timeout(secs(136));
    assert_eq!(opened(&mut server, secs(136), PATH.reversed(), &very_late), Err(Refusal::UnknownSession));
    assert_eq!(server.poll_timeout(), Time::NEVER);
}

#[test]
fn an_answer_to_rekeying_that_is_lost_is_given_again() {
    let (mut client, mut server) = pair(Limits { rekey_after_messages: 3, ..Limits::default() });
    exchange(&mut client, &mut server, secs(1), 10);
    exchange(&mut client, &mut server, secs(1), 20);
    let first = own(&mut client, secs(1)).expect("three were sealed");
    opened(&mut server, secs(1), PATH.reversed(), &first).unwrap();
    let lost = own(&mut server, secs(1)).expect("there is an answer");
    let second = own(&mut client, secs(6)).expect("no answer came");
    opened(&mut server, secs(6), PATH.reversed(), &second).unwrap();
    let answer = own(&mut server, secs(6)).expect("there is an answer again");
    opened(&mut client, secs(6), PATH, &answer).unwrap();
    assert_eq!(opened(&mut client, secs(6), PATH, &lost), Err(Refusal::Unexpected), "the keys are there");
    exchange(&mut client, &mut server, secs(6), 30);
    assert_eq!((client.tally().rekeyed, server.tally().rekeyed), (1, 1));
}

/// Hours of traffic in both directions over a network that loses a third of the datagrams: keys are replaced again and again, and
/// every datagram that arrives can be opened.
#[test]
fn keys_change_on_and_on_over_a_bad_network() {
    let (mut client, mut server) = pair(Limits::default());
    let mut lot = 1u64;
    let mut is_lost = || {
        lot = lot.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (lot >> 33).is_multiple_of(3)
    };
    for second in 1..7200 {
        let now = secs(second);
        client.handle_timeout(now);
        server.handle_timeout(now);
        let up = sealed(&mut client, now, PATH, &data(second as u32));
        if !is_lost() {
            assert_eq!(opened(&mut server, now, PATH.reversed(), &up), Ok(Some(data(second as u32))));
        }
        if let Some(datagram) = own(&mut client, now)
            && !is_lost()
        {
            let _ = opened(&mut server, now, PATH.reversed(), &datagram);
        }
        let down = sealed(&mut server, now, PATH.reversed(), &data(second as u32));
        if !is_lost() {
            assert_eq!(opened(&mut client, now, PATH, &down), Ok(Some(data(second as u32))));
        }
        if let Some(datagram) = own(&mut server, now)
            && !is_lost()
        {
            let _ = opened(&mut client, now, PATH, &datagram);
        }
    }
    // Every two minutes, plus some seconds for losses and for the old keys.
    let rekeyed = client.tally().rekeyed;
    assert!((50..=60).contains(&rekeyed), "{rekeyed}");
    assert!(server.tally().rekeyed + 1 >= rekeyed);
}

#[test]
fn keys_that_have_sealed_enough_seal_no_more() {
    let (mut client, _) = pair(Limits { messages: 2, ..Limits::default() });
    sealed(&mut client, secs(0), PATH, &data(1));
    assert_eq!(client.seal(secs(0), &on(PATH), &data(2), &mut vec![]), Err(SealError::Exhausted));
}

/// [rfc-9001] sec. 6.6: 2^23 with AES-GCM, on all paths together.
#[test]
fn a_key_is_replaced_long_before_it_is_used_up() {
    let config = SealConfig { ciphers: CipherPreference::fast_aes(), ..Default::default() };
    let (mut client, mut server) = pair_of(config, config);
    let now = secs(2);
    client.current.as_mut().unwrap().sealed = (1 << 22) - 2;
    let mut send = |path: usize| {
        let outgoing = Outgoing { path: PathId::new(path), ..on(PATH) };
        client.seal(now, &outgoing, &data(1), &mut vec![]).map(|_| ())
    };
    assert_eq!(send(0), Ok(()));
    assert_eq!(send(1), Ok(()));
    let request = own(&mut client, now).expect("it is time");
    client.current.as_mut().unwrap().sealed = (1 << 23) - 1;
    sealed(&mut client, now, PATH, &data(1));
    assert_eq!(client.seal(now, &on(PATH), &data(1), &mut vec![]), Err(SealError::Exhausted));
    opened(&mut server, now, PATH.reversed(), &request).unwrap();
    let answer = own(&mut server, now).unwrap();
    opened(&mut client, now, PATH, &answer).unwrap();
    exchange(&mut client, &mut server, now, 7);
}

/// If the responder sends nearly everything, its counters show how much a key was used.
#[test]
fn a_key_that_the_peer_has_worn_is_replaced() {
    let limits = Limits { rekey_after_messages: 100, ..Default::default() };
    let (mut client, mut server) = pair(limits);
    let mut last = vec![];
    for number in 0..100 {
        last = sealed(&mut server, secs(2), PATH.reversed(), &data(number));
    }
    opened(&mut client, secs(2), PATH, &last).unwrap();
    assert!(own(&mut client, secs(2)).is_some(), "99 were lost, but they were sealed");
}

/// At a million datagrams a second, AES-GCM's keys last for four seconds. The next keys are not delayed by the previous ones,
/// which still open late datagrams.
#[test]
fn new_keys_leave_old_ones_for_late_datagrams() {
    let (mut client, mut server) = pair(Limits { rekey_after_messages: 2, ..Default::default() });
    for second in [1, 2, 3, 4] {
        rekey(&mut client, &mut server, secs(second));
    }
    exchange(&mut client, &mut server, millis(4_900), 3);
    assert_eq!(own(&mut client, millis(4_900)), None, "it does not ask more often than once a second");
}

#[test]
fn unanswered_request_backs_off() {
    let (mut client, _) = pair(Limits::default());
    sealed(&mut client, secs(120), PATH, &data(1));
    let mut waits = vec![];
    let mut now = secs(120);
    for _ in 0..8 {
        own(&mut client, now).expect("it asks");
        waits.push(client.poll_timeout().since(now));
        now = client.poll_timeout();
    }
    assert_eq!(waits, [250, 500, 1000, 2000, 4000, 5000, 5000, 5000].map(Span::from_millis));
}

/// Each handshake would take at least a fifth of a millisecond.
#[test]
fn a_thousand_requests_for_keys_at_once_cost_one_handshake() {
    let (mut client, mut server) = pair(Limits::default());
    let requests: Vec<_> = (0..1000).map(|number| request(&mut client, 1, number)).collect();
    let answers =
        requests.iter().filter(|request| opened(&mut server, secs(5), PATH.reversed(), request).is_ok()).count();
    assert_eq!((answers, server.tally().refused(Refusal::TooMany)), (1, 999));
    assert!(own(&mut server, secs(5)).is_some());
    assert_eq!(own(&mut server, secs(5)), None);
    let early = request(&mut client, 1, 1000);
    assert_eq!(opened(&mut server, millis(5_999), PATH.reversed(), &early), Err(Refusal::TooMany));
    let later = request(&mut client, 1, 1001);
    assert_eq!(opened(&mut server, secs(6), PATH.reversed(), &later), Ok(None));
}

/// An attacker has the keys of a session, but not the client's static secret key: this gives no new session.
#[test]
fn rekeying_without_static_key_is_forged() {
    let (mut client, mut server) = pair(Limits::default());
    let stolen = request(&mut client, 5, 1);
    assert_eq!(opened(&mut server, secs(5), PATH.reversed(), &stolen), Err(Refusal::Forged));
    assert_eq!(own(&mut server, secs(5)), None, "there is no answer");
}
