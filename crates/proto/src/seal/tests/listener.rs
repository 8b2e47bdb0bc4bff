//! Who can make a listener compute handshakes, and how often.

use super::*;

#[test]
fn a_listener_under_load_asks_for_a_cookie_and_keeps_nothing() {
    let limits = suspicious();
    let (mut client, mut listener) = (initiator(Limits::default()), listener(limits));
    let initiation = sealed(&mut client, secs(0), PATH, &syn());
    let mut reply = vec![];
    for _ in 0..2 {
        reply.clear();
        let answer = listener.handle(secs(0), PATH.reversed(), &initiation, 9, &mut reply);
        assert!(matches!(answer, Ok(Answer::Reply)), "the second time it is as unknown as the first: {answer:?}");
    }
    assert!(reply.len() < initiation.len(), "it is no amplifier");
    assert_eq!(Seal::recipient(&reply), Some(Recipient::Connection(7)));
    assert_eq!(opened(&mut client, secs(0), PATH, &reply), Ok(None));
    let retry = own(&mut client, secs(0)).expect("it goes out at once");
    let (mut server, _) = accepted(&mut listener, secs(0), &retry, 9);
    // The address is proved, so nothing limits the response.
    for _ in 0..20 {
        sealed(&mut server, secs(0), PATH.reversed(), &syn_ack());
    }
}

#[test]
fn a_cookie_is_good_for_its_address_and_its_time() {
    let limits = suspicious();
    let (mut client, mut listener) = (initiator(Limits::default()), listener(limits));
    let initiation = sealed(&mut client, secs(0), PATH, &syn());
    let mut reply = vec![];
    listener.handle(secs(0), PATH.reversed(), &initiation, 9, &mut reply).unwrap();
    opened(&mut client, secs(0), PATH, &reply).unwrap();
    let retry = own(&mut client, secs(0)).unwrap();
    let elsewhere = FourTuple { remote: Address { address: 99, port: 1000 }, ..PATH.reversed() };
    let answer = listener.handle(secs(0), elsewhere, &retry, 9, &mut vec![]);
    assert!(matches!(answer, Ok(Answer::Reply)), "somebody else's cookie: {answer:?}");
    let answer = listener.handle(secs(240), PATH.reversed(), &retry, 9, &mut vec![]);
    assert!(matches!(answer, Ok(Answer::Reply)), "two lifetimes later: {answer:?}");
    // The initiator does not use a cookie for so long.
    let without = sealed(&mut client, secs(120), PATH, &syn());
    assert_eq!(without, initiation);
}

#[test]
fn a_forged_cookie_is_not_taken_and_a_true_one_hurries_once() {
    let limits = suspicious();
    let (mut client, mut listener) = (initiator(Limits::default()), listener(limits));
    let initiation = sealed(&mut client, secs(0), PATH, &syn());
    let mut reply = vec![];
    listener.handle(secs(0), PATH.reversed(), &initiation, 9, &mut reply).unwrap();
    let mut forged = reply.clone();
    forged[10] ^= 1;
    assert_eq!(opened(&mut client, secs(0), PATH, &forged), Err(Refusal::Forged));
    assert_eq!(own(&mut client, secs(0)), None);
    for _ in 0..10 {
        opened(&mut client, secs(0), PATH, &reply).unwrap();
    }
    assert!(own(&mut client, secs(0)).is_some());
    opened(&mut client, secs(0), PATH, &reply).unwrap();
    assert_eq!(own(&mut client, secs(0)), None);
}

#[test]
fn handshakes_come_back_with_time() {
    let limits = ListenerConfig { unproven: Pace { per_second: 2, burst: 2 }, ..Default::default() };
    let mut listener = listener(limits);
    let mut outcome = |now: Time, number: u8| {
        let mut client = client_of(3, 1, number);
        let initiation = sealed(&mut client, now, PATH, &syn());
        let answer = listener.handle(now, PATH.reversed(), &initiation, number.into(), &mut vec![]);
        matches!(answer, Ok(Answer::Accept { .. }))
    };
    assert_eq!([1, 2, 3].map(|number| outcome(secs(1), number)), [true, true, false]);
    assert_eq!([4, 5, 6].map(|number| outcome(secs(2), number)), [true, true, false]);
}

#[test]
fn half_open_connections_have_a_limit_and_an_end() {
    let config = ListenerConfig { half_open: 4, ..Default::default() };
    let mut listener = listener(config);
    let all =
        [1, 2, 3, 4, 5].map(|number| knock(&mut listener, secs(1), PATH, &mut client_of(3, 1, number), number.into()));
    let [first, second, third, fourth, fifth] = all;
    assert_eq!([first, second], [Knock::In(None); 2], "at once");
    assert_eq!([third, fourth], [Knock::WithCookie(None); 2], "half of the places are taken");
    assert_eq!(fifth, Knock::WithCookie(Some(1)), "the oldest gives way");
    listener.release(2);
    assert_eq!(knock(&mut listener, secs(2), PATH, &mut client_of(3, 1, 6), 6), Knock::WithCookie(None));
    assert_eq!(
        knock(&mut listener, secs(61), PATH, &mut client_of(3, 1, 7), 7),
        Knock::In(None),
        "only the sixth is left"
    );
}

/// How a listener responds to a client that uses its cookies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Knock {
    In(Option<u32>),
    WithCookie(Option<u32>),
    Refused(Refusal),
}

fn knock(listener: &mut Listener, now: Time, path: FourTuple, client: &mut Seal, number: u32) -> Knock {
    let initiation = sealed(client, now, path, &syn());
    let mut reply = vec![];
    match listener.handle(now, path.reversed(), &initiation, number, &mut reply) {
        Ok(Answer::Accept { evicted, .. }) => Knock::In(evicted),
        Ok(Answer::Again { number }) => panic!("{number} is there"),
        Err(refusal) => Knock::Refused(refusal),
        Ok(Answer::Reply) => {
            opened(client, now, path, &reply).unwrap();
            let retry = own(client, now).unwrap();
            match listener.handle(now, path.reversed(), &retry, number, &mut vec![]) {
                Ok(Answer::Accept { evicted, .. }) => Knock::WithCookie(evicted),
                Err(refusal) => Knock::Refused(refusal),
                other => panic!("with a cookie: {other:?}"),
            }
        }
    }
}

/// A path with this remote address.
fn from(address: u128) -> FourTuple {
    FourTuple { local: Address { address, port: 1000 }, remote: SERVER }
}

/// Ten thousand handshakes in a millisecond, by one address that uses its cookies.
#[test]
fn one_address_takes_neither_all_places_nor_all_time() {
    let mut listener = listener(ListenerConfig::default());
    let mut in_all = 0;
    for number in 0..10_000u32 {
        let [_, _, a, b] = number.to_be_bytes();
        let mut seed = [0; 32];
        (seed[0], seed[1]) = (a, b);
        let config = SealConfig::default();
        let mut one = Seal::initiator(secret(3), secret(2).public(), 1, config, stamp(number.into()), seed);
        match knock(&mut listener, micros(number as u64 / 10), PATH, &mut one, number) {
            Knock::In(evicted) | Knock::WithCookie(evicted) => {
                assert_eq!(evicted, None);
                in_all += 1;
            }
            Knock::Refused(refusal) => assert_eq!(refusal, Refusal::TooMany),
        }
    }
    assert_eq!(in_all, 100, "50 without a cookie, 50 with one");
    assert_eq!(knock(&mut listener, micros(1000), from(77), &mut client_of(4, 1, 4), 20_000), Knock::In(None));
    assert_eq!(
        knock(&mut listener, secs(1), PATH, &mut client_of(4, 1, 5), 20_001),
        Knock::In(None),
        "some time later"
    );
}

#[test]
fn whoever_has_a_network_of_addresses_is_one() {
    let each_network = Pace { per_second: 1, burst: 2 };
    let mut listener = listener(ListenerConfig { each_network, ..suspicious() });
    let v6 = 0x2001_0db8_0000_0001_u128 << 64;
    let mut come =
        |address: u128, seed: u8| knock(&mut listener, secs(1), from(address), &mut client_of(3, 1, seed), seed.into());
    let many = [1, 2, 3].map(|host| come(v6 | u128::from(host), host));
    assert_eq!(many, [Knock::WithCookie(None), Knock::WithCookie(None), Knock::Refused(Refusal::TooMany)]);
    assert_eq!(come(v6 + (1 << 64), 4), Knock::WithCookie(None), "the next network");
    let v4 = 0xffff_c000_0200_u128;
    assert_eq!([5, 6, 7].map(|host| come(v4 | u128::from(host), host)), [Knock::WithCookie(None); 3]);
}

#[test]
fn all_handshakes_together_have_a_limit() {
    let proven = Pace { per_second: 1, burst: 3 };
    let mut listener = listener(ListenerConfig { proven, ..suspicious() });
    let all = [1, 2, 3, 4]
        .map(|seed| knock(&mut listener, secs(1), from(seed.into()), &mut client_of(3, 1, seed), seed.into()));
    assert_eq!(all[..3], [Knock::WithCookie(None); 3]);
    assert_eq!(all[3], Knock::Refused(Refusal::TooMany));
}

/// A peer that does not know the listener's public key cannot cause a handshake computation. Its datagrams cost a hash, and take
/// no tokens of others.
#[test]
fn initiation_without_server_key_costs_no_handshake() {
    let mut listener = listener(ListenerConfig { unproven: Pace { per_second: 1, burst: 1 }, ..Default::default() });
    let mut one = initiator(Limits::default());
    let initiation = sealed(&mut one, secs(1), PATH, &syn());
    let mac1 = initiation.len() - 32;
    for place in 0..32 {
        // All of it except mac2, which is zero if no cookie was requested.
        let mut forged = initiation.clone();
        forged[if place < 16 { mac1 + place } else { 8 + place }] ^= 1;
        let answer = listener.handle(secs(1), PATH.reversed(), &forged, 9, &mut vec![]);
        assert!(matches!(answer, Err(Refusal::Forged)), "{answer:?}");
    }
    accepted(&mut listener, secs(1), &initiation, 9);
}

/// An attacker has recorded an initiation and replays it after the connection's end, from an own address for which there is a
/// cookie.
#[test]
fn an_initiation_that_is_played_again_opens_nothing() {
    let mut listener = listener(ListenerConfig::default());
    let mut one = initiator(Limits::default());
    let initiation = sealed(&mut one, secs(0), PATH, &syn());
    accepted(&mut listener, secs(0), &initiation, 9);
    listener.release(9);
    for second in 1..100 {
        let again = listener.handle(secs(second), from(66).reversed(), &initiation, 10, &mut vec![]);
        assert!(matches!(again, Err(Refusal::Replayed)), "{again:?}");
    }
    // The client's next connection is accepted as usual.
    let config = SealConfig::default();
    let mut next = Seal::initiator(secret(1), secret(2).public(), 8, config, stamp(12), [12; 32]);
    assert_eq!(knock(&mut listener, secs(100), PATH, &mut next, 10), Knock::In(None));
}

#[test]
fn initiator_that_gave_way_may_try_again() {
    let mut listener = listener(ListenerConfig { half_open: 1, ..Default::default() });
    let mut first = initiator(Limits::default());
    assert_eq!(knock(&mut listener, secs(0), PATH, &mut first, 1), Knock::WithCookie(None));
    assert_eq!(knock(&mut listener, secs(0), PATH, &mut client_of(3, 1, 3), 2), Knock::WithCookie(Some(1)));
    let again = sealed(&mut first, secs(1), PATH, &syn());
    let answer = listener.handle(secs(1), PATH.reversed(), &again, 3, &mut vec![]);
    assert!(matches!(answer, Ok(Answer::Accept { evicted: Some(2), .. })), "{answer:?}");
}
