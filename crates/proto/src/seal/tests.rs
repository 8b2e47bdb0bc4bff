//! Dialogues over a network that loses, repeats, reorders and forges.

use anabranch_cc::{Settings, registry};
use anabranch_units::Span;
use proptest::prelude::*;

use super::*;
use crate::{
    Address, Config, Connection, Content, Event, Flags, Header, Options, Read, SeqNumber, State as ConnectionState,
};

const CLIENT: Address = Address { address: 1, port: 1000 };
const SERVER: Address = Address { address: 2, port: 443 };
const PATH: FourTuple = FourTuple { local: CLIENT, remote: SERVER };

fn secret(number: u8) -> SecretKey {
    SecretKey::new([number; 32])
}

fn secs(count: u64) -> Time {
    Time::ZERO.saturating_add(Span::from_secs(count))
}

fn millis(count: u64) -> Time {
    Time::ZERO.saturating_add(Span::from_millis(count))
}

fn micros(count: u64) -> Time {
    Time::ZERO.saturating_add(Span::from_micros(count))
}

fn segment(flags: Flags, seq: u32, data: &'static [u8]) -> Segment<Bytes> {
    let header = Header { seq: SeqNumber(seq), flags, ..Header::default() };
    let content = if data.is_empty() { Content::Nothing } else { Content::Data(Bytes::from_static(data)) };
    let options = if flags.contains(Flags::SYN) { Options::Handshake(Default::default()) } else { Options::default() };
    Segment { header, options, stream_header: None, content }
}

fn syn() -> Segment<Bytes> {
    segment(Flags::SYN, 100, b"")
}

fn syn_ack() -> Segment<Bytes> {
    segment(Flags::SYN | Flags::ACK, 200, b"")
}

fn data(seq: u32) -> Segment<Bytes> {
    segment(Flags::ACK, seq, b"some data")
}

/// A timestamp of which there is no other.
fn stamp(number: u64) -> Timestamp {
    Timestamp::since_1970(Span::from_millis(number))
}

/// A client with this secret and connection number, other than all with other seeds.
fn client_of(secret_of: u8, number: u32, seed: u8) -> Seal {
    let config = SealConfig::default();
    Seal::initiator(secret(secret_of), secret(2).public(), number, config, stamp(seed.into()), [seed; 32])
}

fn with(limits: Limits) -> SealConfig {
    SealConfig { limits, ..SealConfig::default() }
}

fn initiator(limits: Limits) -> Seal {
    initiator_with(with(limits))
}

fn initiator_with(config: SealConfig) -> Seal {
    Seal::initiator(secret(1), secret(2).public(), 7, config, stamp(11), [11; 32])
}

fn listener(config: ListenerConfig) -> Listener {
    Listener::new(Time::ZERO, secret(2), config, [22; 32])
}

/// It asks everybody for a cookie.
fn suspicious() -> ListenerConfig {
    ListenerConfig { unproven: NEVER, ..Default::default() }
}

const NEVER: Pace = Pace { per_second: 0, burst: 0 };

/// How a segment leaves on this path, however long it is.
fn on(tuple: FourTuple) -> Outgoing {
    Outgoing { datagram_max: 65_535, ..Outgoing::new(tuple) }
}

/// The datagram with this segment in it.
#[track_caller]
fn sealed(seal: &mut Seal, now: Time, path: FourTuple, segment: &Segment<Bytes>) -> Vec<u8> {
    let mut datagram = vec![];
    seal.seal(now, &on(path), segment, &mut datagram).expect("it can be sent");
    datagram
}

fn opened(seal: &mut Seal, now: Time, path: FourTuple, datagram: &[u8]) -> Result<Option<Segment<Bytes>>, Refusal> {
    seal.open(now, path, datagram.into())
}

/// What the seal itself sends.
fn own(seal: &mut Seal, now: Time) -> Option<Vec<u8>> {
    let mut datagram = vec![];
    seal.poll_transmit(now, &mut datagram).map(|_| datagram)
}

#[track_caller]
fn accepted(listener: &mut Listener, now: Time, datagram: &[u8], number: u32) -> (Seal, Segment<Bytes>) {
    match listener.handle(now, PATH.reversed(), datagram, number, &mut vec![]) {
        Ok(Answer::Accept { seal, segment, .. }) => (*seal, segment),
        other => panic!("not accepted: {other:?}"),
    }
}

/// Two ends after the handshake; the client has confirmed it.
fn pair(limits: Limits) -> (Seal, Seal) {
    pair_of(with(limits), with(limits))
}

fn pair_of(ours: SealConfig, theirs: SealConfig) -> (Seal, Seal) {
    let now = Time::ZERO;
    let mut client = initiator_with(ours);
    let mut listener = listener(ListenerConfig { connection: theirs, ..Default::default() });
    let initiation = sealed(&mut client, now, PATH, &syn());
    let (mut server, _) = accepted(&mut listener, now, &initiation, 9);
    let response = sealed(&mut server, now, PATH.reversed(), &syn_ack());
    opened(&mut client, now, PATH, &response).unwrap();
    let first = sealed(&mut client, now, PATH, &data(101));
    opened(&mut server, now, PATH.reversed(), &first).unwrap();
    assert!(client.is_established() && server.is_established());
    (client, server)
}

/// One segment there and one back.
#[track_caller]
fn exchange(client: &mut Seal, server: &mut Seal, now: Time, seq: u32) {
    let up = sealed(client, now, PATH, &data(seq));
    assert_eq!(opened(server, now, PATH.reversed(), &up), Ok(Some(data(seq))));
    let down = sealed(server, now, PATH.reversed(), &data(seq + 1));
    assert_eq!(opened(client, now, PATH, &down), Ok(Some(data(seq + 1))));
}

#[test]
fn the_handshake_rides_on_syn_and_syn_ack() {
    let now = Time::ZERO;
    let (mut client, mut listener) = (initiator(Limits::default()), listener(ListenerConfig::default()));
    let initiation = sealed(&mut client, now, PATH, &syn());
    assert_eq!(Seal::recipient(&initiation), Some(Recipient::Listener));
    let (mut server, segment) = accepted(&mut listener, now, &initiation, 9);
    assert_eq!((segment, server.remote()), (syn(), secret(1).public()));
    let response = sealed(&mut server, now, PATH.reversed(), &syn_ack());
    assert_eq!(Seal::recipient(&response), Some(Recipient::Connection(7)));
    assert_eq!(opened(&mut client, now, PATH, &response), Ok(Some(syn_ack())));
    assert!(client.is_established() && !server.is_established(), "the client has still to show that it has the keys");
    assert_eq!(server.seal(now, &on(PATH.reversed()), &data(1), &mut vec![]), Err(SealError::NotReady));
    let first = sealed(&mut client, now, PATH, &data(101));
    assert_eq!(Seal::recipient(&first), Some(Recipient::Connection(9)));
    assert_eq!(first.len() as u32, 20 + 9 + Seal::OVERHEAD);
    assert_eq!(opened(&mut server, now, PATH.reversed(), &first), Ok(Some(data(101))));
    exchange(&mut client, &mut server, now, 110);
}

#[test]
fn a_lost_initiation_is_sent_again_as_it_was() {
    let (mut client, mut listener) = (initiator(Limits::default()), listener(ListenerConfig::default()));
    let first = sealed(&mut client, secs(0), PATH, &syn());
    let second = sealed(&mut client, secs(1), PATH, &syn());
    assert_eq!(first, second);
    let (mut server, _) = accepted(&mut listener, secs(1), &second, 9);
    // The first was only late: it belongs to the connection that there is.
    let again = listener.handle(secs(1), PATH.reversed(), &first, 10, &mut vec![]);
    assert!(matches!(again, Ok(Answer::Again { number: 9 })), "{again:?}");
    assert_eq!(opened(&mut server, secs(1), PATH.reversed(), &first), Ok(Some(syn())));
}

#[test]
fn a_lost_response_is_sent_again_as_it_was() {
    let (mut client, mut listener) = (initiator(Limits::default()), listener(ListenerConfig::default()));
    let initiation = sealed(&mut client, secs(0), PATH, &syn());
    let (mut server, _) = accepted(&mut listener, secs(0), &initiation, 9);
    let first = sealed(&mut server, secs(0), PATH.reversed(), &syn_ack());
    let second = sealed(&mut server, secs(1), PATH.reversed(), &syn_ack());
    assert_eq!(first, second);
    assert_eq!(opened(&mut client, secs(1), PATH, &second), Ok(Some(syn_ack())));
    // It comes twice, and the connection acknowledges it twice.
    assert_eq!(opened(&mut client, secs(1), PATH, &first), Ok(Some(syn_ack())));
    exchange(&mut client, &mut server, secs(1), 101);
    assert_eq!(opened(&mut client, secs(2), PATH, &first), Err(Refusal::Unexpected), "both have the keys by now");
}

/// The response may come again, and nothing in it may count twice.
#[test]
fn no_data_ride_on_a_response() {
    let (mut client, mut listener) = (initiator(Limits::default()), listener(ListenerConfig::default()));
    let initiation = sealed(&mut client, secs(0), PATH, &syn());
    let (mut server, _) = accepted(&mut listener, secs(0), &initiation, 9);
    let early = segment(Flags::SYN | Flags::ACK, 200, b"early");
    for refused in [data(1), early] {
        assert_eq!(server.seal(secs(0), &on(PATH.reversed()), &refused, &mut vec![]), Err(SealError::NotReady));
    }
    let refusal = segment(Flags::RST | Flags::ACK, 0, b"");
    let response = sealed(&mut server, secs(0), PATH.reversed(), &refusal);
    assert_eq!(opened(&mut client, secs(0), PATH, &response), Ok(Some(refusal)), "there is no connection to be had");
}

#[test]
fn a_forged_response_does_not_keep_the_true_one_out() {
    let (mut client, mut listener) = (initiator(Limits::default()), listener(ListenerConfig::default()));
    let initiation = sealed(&mut client, secs(0), PATH, &syn());
    let (mut server, _) = accepted(&mut listener, secs(0), &initiation, 9);
    let response = sealed(&mut server, secs(0), PATH.reversed(), &syn_ack());
    for at in [12, 50, response.len() - 1] {
        let mut forged = response.clone();
        forged[at] ^= 1;
        assert_eq!(opened(&mut client, secs(0), PATH, &forged), Err(Refusal::Forged), "byte {at}");
    }
    assert_eq!(opened(&mut client, secs(0), PATH, &response), Ok(Some(syn_ack())));
}

#[test]
fn a_datagram_counts_once_in_whatever_order() {
    let (mut client, mut server) = pair(Limits::default());
    let mut datagrams: Vec<_> = (0..500).map(|seq| (seq, sealed(&mut client, secs(0), PATH, &data(seq)))).collect();
    datagrams.reverse();
    for (seq, datagram) in &datagrams {
        assert_eq!(opened(&mut server, secs(0), PATH.reversed(), datagram), Ok(Some(data(*seq))));
    }
    for (_, datagram) in &datagrams {
        assert_eq!(opened(&mut server, secs(0), PATH.reversed(), datagram), Err(Refusal::Replayed));
    }
    assert_eq!(server.tally().refused(Refusal::Replayed), 500);
}

#[test]
fn a_mirror_opens_nothing() {
    let (mut client, _) = pair(Limits::default());
    let mut datagram = sealed(&mut client, secs(0), PATH, &data(1));
    assert_eq!(opened(&mut client, secs(0), PATH, &datagram), Err(Refusal::UnknownSession));
    let index = client.index().to_be_bytes();
    datagram[4..8].copy_from_slice(&index);
    assert_eq!(opened(&mut client, secs(0), PATH, &datagram), Err(Refusal::Forged));
}

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
    // The server seals with the old keys until it has seen the new ones.
    let old = sealed(&mut server, secs(126), PATH.reversed(), &data(40));
    let new = sealed(&mut client, secs(126), PATH, &data(41));
    assert_eq!(opened(&mut client, secs(126), PATH, &old), Ok(Some(data(40))));
    assert_eq!(opened(&mut server, secs(126), PATH.reversed(), &new), Ok(Some(data(41))));
    exchange(&mut client, &mut server, secs(126), 50);
    assert_eq!((client.tally().rekeyed, server.tally().rekeyed), (1, 1));
    // What was sealed with the old ones is good for ten seconds.
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

/// Hours of traffic in both directions over a network that loses a third: keys change on and on, and all that gets through is
/// understood.
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
    // Every two minutes, and some seconds for what is lost and for the old keys.
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

#[test]
fn forgeries_without_end_end_a_session() {
    let (mut client, mut server) = pair(Limits { forgeries: 3, ..Limits::default() });
    let good = sealed(&mut client, secs(0), PATH, &data(1));
    let mut bad = good.clone();
    bad[20] ^= 4;
    for _ in 0..3 {
        assert_eq!(opened(&mut server, secs(0), PATH.reversed(), &bad), Err(Refusal::Forged));
    }
    assert_eq!(opened(&mut server, secs(0), PATH.reversed(), &good), Err(Refusal::Exhausted));
}

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
    // The address has been shown: nothing holds the answer back.
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
    // The initiator does not use it so long.
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

/// What a listener does with a client that answers a cookie.
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

/// A path from this address.
fn from(address: u128) -> FourTuple {
    FourTuple { local: Address { address, port: 1000 }, remote: SERVER }
}

/// Ten thousand handshakes in a millisecond by one who answers cookies.
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

/// Somebody has recorded an initiation, and plays it again when its connection is over, from an address of his own for which he has a cookie.
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
    // The client's next connection is as good as any.
    let config = SealConfig::default();
    let mut next = Seal::initiator(secret(1), secret(2).public(), 8, config, stamp(12), [12; 32]);
    assert_eq!(knock(&mut listener, secs(100), PATH, &mut next, 10), Knock::In(None));
}

#[test]
fn who_has_given_way_may_come_again() {
    let mut listener = listener(ListenerConfig { half_open: 1, ..Default::default() });
    let mut first = initiator(Limits::default());
    assert_eq!(knock(&mut listener, secs(0), PATH, &mut first, 1), Knock::WithCookie(None));
    assert_eq!(knock(&mut listener, secs(0), PATH, &mut client_of(3, 1, 3), 2), Knock::WithCookie(Some(1)));
    let again = sealed(&mut first, secs(1), PATH, &syn());
    let answer = listener.handle(secs(1), PATH.reversed(), &again, 3, &mut vec![]);
    assert!(matches!(answer, Ok(Answer::Accept { evicted: Some(2), .. })), "{answer:?}");
}

/// With the zero key every secret one makes zero, which everybody knows.
#[test]
fn a_key_that_is_none_is_refused() {
    let nobody = PublicKey([0; 32]);
    let mut one = Seal::initiator(secret(1), nobody, 7, SealConfig::default(), stamp(1), [1; 32]);
    assert_eq!(one.seal(secs(0), &on(PATH), &syn(), &mut vec![]), Err(SealError::NoKey));
    // 2^255 - 18 is 1, of order 4.
    let mut small = [0xff; 32];
    (small[0], small[31]) = (0xee, 0x7f);
    let mut one = Seal::initiator(secret(1), PublicKey(small), 7, SealConfig::default(), stamp(1), [1; 32]);
    assert_eq!(one.seal(secs(0), &on(PATH), &syn(), &mut vec![]), Err(SealError::NoKey));
    // The same from the other side: an ephemeral key of zero.
    let mut listener = listener(ListenerConfig::default());
    let mut forged = sealed(&mut initiator(Limits::default()), secs(0), PATH, &syn());
    forged[8..40].fill(0);
    let end = forged.len() - 32;
    let mac1 = cookie::mac1(&secret(2).public(), &forged[..end]);
    forged[end..end + 16].copy_from_slice(&mac1);
    let answer = listener.handle(secs(0), PATH.reversed(), &forged, 9, &mut vec![]);
    assert!(matches!(answer, Err(Refusal::Forged)), "{answer:?}");
}

/// Whatever holds a secret of ours wipes it out when it goes. It is the compiler that tests it.
#[test]
fn secrets_are_wiped_out() {
    fn is_wiped<T: zeroize::ZeroizeOnDrop>() {}
    is_wiped::<SecretKey>();
    is_wiped::<Entropy>();
    is_wiped::<cookie::Secret>();
}

#[test]
fn nobody_is_flooded_through_us() {
    let (mut client, mut listener) = (initiator(Limits::default()), listener(ListenerConfig::default()));
    let initiation = sealed(&mut client, secs(0), PATH, &syn());
    let (mut server, _) = accepted(&mut listener, secs(0), &initiation, 9);
    let mut sent = 0;
    let mut datagram = vec![];
    while server.seal(secs(0), &on(PATH.reversed()), &syn_ack(), &mut datagram).is_ok() {
        sent += datagram.len();
        assert!(sent <= 3 * initiation.len(), "{sent} for {}", initiation.len());
        datagram.clear();
    }
    assert!(sent + 12 + 48 + 20 > 3 * initiation.len(), "one more would have been too much, {sent}");
}

#[test]
fn a_new_address_gets_three_times_what_came_from_it_until_it_is_validated() {
    let (mut client, mut server) = pair(Limits::default());
    let moved = FourTuple { remote: Address { address: 77, port: 5 }, ..PATH.reversed() };
    let send = |server: &mut Seal, path| server.seal(secs(1), &on(path), &data(5), &mut vec![]).is_ok();
    assert!(!send(&mut server, moved), "nothing came from there");
    let datagram = sealed(&mut client, secs(1), PATH, &data(1));
    assert_eq!(opened(&mut server, secs(1), moved, &datagram), Ok(Some(data(1))));
    assert_eq!((0..10).filter(|_| send(&mut server, moved)).count(), 3, "as long as what came");
    assert!(send(&mut server, PATH.reversed()), "the old address is as good as before");
    assert_eq!(opened(&mut server, secs(1), moved, &datagram), Err(Refusal::Replayed));
    assert!(!send(&mut server, moved), "a replay is worth nothing");
    server.validate(moved);
    assert!((0..100).all(|_| send(&mut server, moved)));
}

#[test]
fn a_wrong_key_is_not_answered() {
    let mut client = Seal::initiator(secret(1), secret(3).public(), 7, SealConfig::default(), stamp(11), [11; 32]);
    let mut listener = listener(ListenerConfig::default());
    let initiation = sealed(&mut client, secs(0), PATH, &syn());
    let mut reply = vec![];
    let answer = listener.handle(secs(0), PATH.reversed(), &initiation, 9, &mut reply);
    assert!(matches!(answer, Err(Refusal::Forged)) && reply.is_empty(), "{answer:?}");
}

#[test]
fn a_responder_without_the_key_is_not_believed() {
    let mut client = initiator(Limits::default());
    let initiation = sealed(&mut client, secs(0), PATH, &syn());
    // It answers another client's initiation under our index.
    let mut other = Seal::initiator(secret(1), secret(3).public(), 7, SealConfig::default(), stamp(12), [12; 32]);
    let mut impostor = Listener::new(secs(0), secret(3), ListenerConfig::default(), [1; 32]);
    let asked = sealed(&mut other, secs(0), PATH, &syn());
    let (mut server, _) = accepted(&mut impostor, secs(0), &asked, 9);
    let response = sealed(&mut server, secs(0), PATH.reversed(), &syn_ack());
    assert_eq!(opened(&mut client, secs(0), PATH, &response), Err(Refusal::Forged));
    assert_eq!(sealed(&mut client, secs(1), PATH, &syn()), initiation, "it goes on asking");
}

#[test]
fn two_handshakes_at_once_do_not_touch_each_other() {
    let mut listener = listener(ListenerConfig::default());
    let mut clients = [5u8, 6].map(|number| client_of(number, number.into(), number));
    let initiations = clients.each_mut().map(|client| sealed(client, secs(0), PATH, &syn()));
    let mut servers = [(1, 8), (0, 9)].map(|(at, number)| accepted(&mut listener, secs(0), &initiations[at], number).0);
    assert_eq!(servers[0].remote(), secret(6).public());
    let responses = servers.each_mut().map(|server| sealed(server, secs(0), PATH.reversed(), &syn_ack()));
    assert_eq!(opened(&mut clients[0], secs(0), PATH, &responses[0]), Err(Refusal::UnknownSession));
    for (client, at) in clients.iter_mut().zip([1, 0]) {
        assert_eq!(opened(client, secs(0), PATH, &responses[at]), Ok(Some(syn_ack())));
        exchange(client, &mut servers[at], secs(0), 101);
    }
}

/// Each calls the other: these are two connections, each with a caller.
#[test]
fn two_ends_may_call_each_other() {
    let mut here = Listener::new(secs(0), secret(1), ListenerConfig::default(), [4; 32]);
    let mut there = listener(ListenerConfig::default());
    let mut one = initiator(Limits::default());
    let mut other = Seal::initiator(secret(2), secret(1).public(), 3, SealConfig::default(), stamp(5), [5; 32]);
    let (first, second) = (sealed(&mut one, secs(0), PATH, &syn()), sealed(&mut other, secs(0), PATH, &syn()));
    for (listener, initiation, client) in [(&mut there, first, &mut one), (&mut here, second, &mut other)] {
        let (mut server, _) = accepted(listener, secs(0), &initiation, 9);
        let response = sealed(&mut server, secs(0), PATH.reversed(), &syn_ack());
        opened(client, secs(0), PATH, &response).unwrap();
        exchange(client, &mut server, secs(0), 101);
    }
}

/// Two paths, the slower of which takes 75 ms longer, with 12 Gbit/s between them: a million datagrams a second.
#[test]
fn what_takes_a_slower_path_is_not_too_old() {
    let (mut client, mut server) = pair(Limits::default());
    let slow_path = PathId::new(1);
    let (fast, slow): (Vec<_>, Vec<_>) = (0..78_750)
        .map(|number| {
            let path = if number % 7 < 2 { slow_path } else { PathId::FIRST };
            let mut datagram = vec![];
            client.seal(secs(0), &Outgoing { path, ..on(PATH) }, &data(number), &mut datagram).unwrap();
            (path, datagram)
        })
        .partition(|(path, _)| *path == PathId::FIRST);
    assert_eq!(slow.len(), 22_500);
    for (_, datagram) in fast.iter().chain(&slow) {
        assert!(opened(&mut server, secs(0), PATH.reversed(), datagram).is_ok());
    }
    for (_, datagram) in [&fast[56_000], &slow[22_000]] {
        assert_eq!(opened(&mut server, secs(0), PATH.reversed(), datagram), Err(Refusal::Replayed));
    }
}

#[test]
fn nothing_of_a_header_can_be_changed() {
    let (mut client, mut server) = pair(Limits::default());
    let good = sealed(&mut client, secs(0), PATH, &data(1));
    for (at, expected) in [(1, Refusal::Forged), (2, Refusal::Forged), (3, Refusal::Forged), (15, Refusal::Forged)] {
        let mut bad = good.clone();
        bad[at] ^= 8;
        assert_eq!(opened(&mut server, secs(0), PATH.reversed(), &bad), Err(expected), "byte {at}");
    }
    let mut no_path = good.clone();
    no_path[1] = 16;
    assert_eq!(opened(&mut server, secs(0), PATH.reversed(), &no_path), Err(Refusal::Malformed));
    assert_eq!(opened(&mut server, secs(0), PATH.reversed(), &good), Ok(Some(data(1))));
}

/// Those of later versions, and those by which others on the same port are known.
#[test]
fn a_datagram_of_another_kind_is_nobodys() {
    let (mut client, _) = pair(Limits::default());
    let mut datagram = sealed(&mut client, secs(0), PATH, &data(1));
    for kind in (0..=255).filter(|kind| !(1..=4).contains(kind)) {
        datagram[0] = kind;
        assert_eq!(Seal::recipient(&datagram), None, "{kind:#x}");
    }
}

/// A datagram of the client's with this in it.
fn with_plain(seal: &mut Seal, plain: &[u8]) -> Vec<u8> {
    let mut datagram = [&[0; DataHeader::LEN], plain, &[0; TAG]].concat();
    seal.current.as_mut().unwrap().seal(0, &mut datagram);
    datagram
}

#[test]
fn words_that_nobody_knows_are_ignored() {
    let (mut client, mut server) = pair(Limits::default());
    for word in [[0x0a, 0x1a, 0xfa, 0x0a], [0, 0, 0, 5], [0xff; 4]] {
        let datagram = with_plain(&mut client, &word);
        assert_eq!(opened(&mut server, secs(0), PATH.reversed(), &datagram), Ok(None), "{word:?}");
    }
    assert_eq!(server.tally().ignored, 3);
    for bad in [&[0, 0, 0][..], &[0, 0, 0, 0, 1], &[0, 0, 0, 3, 0, 9, 0, 0, 1], &[0, 0, 0, 4, 1]] {
        let datagram = with_plain(&mut client, bad);
        assert_eq!(opened(&mut server, secs(0), PATH.reversed(), &datagram), Err(Refusal::NoSegment), "{bad:?}");
    }
}

/// Who only ever gets what he knows forgets that he may get something else.
#[test]
fn now_and_then_a_datagram_says_nothing() {
    let (mut client, mut server) = pair(Limits::default());
    let mut words = std::collections::BTreeSet::new();
    let mut greases = std::collections::BTreeSet::new();
    for number in 0..200_000 {
        let datagram = sealed(&mut client, secs(0), PATH, &data(number));
        greases.insert([datagram[2], datagram[3]]);
        if let Some(datagram) = own(&mut client, secs(0)) {
            words.insert(number);
            assert_eq!(opened(&mut server, secs(0), PATH.reversed(), &datagram), Ok(None));
        }
    }
    assert_eq!(words.first(), Some(&14), "the sixteenth datagram");
    assert!((3..=200).contains(&words.len()), "{}", words.len());
    assert_eq!(server.tally().ignored, words.len() as u64);
    assert!(greases.len() > 50_000, "two bytes of each that look random: {}", greases.len());
}

#[test]
fn both_ends_settle_on_a_cipher_that_both_like() {
    use Cipher::{Aes128Gcm, Aes256Gcm, ChaCha20Poly1305};
    let cases = [
        (CipherPreference::fast_aes(), CipherPreference::fast_aes(), Aes128Gcm),
        (CipherPreference::fast_aes(), CipherPreference::default(), ChaCha20Poly1305),
        (CipherPreference::default(), CipherPreference::fast_aes(), ChaCha20Poly1305),
        (CipherPreference::new(&[Aes256Gcm]), CipherPreference::fast_aes(), Aes256Gcm),
    ];
    for (ours, theirs, expected) in cases {
        let (mut client, mut server) = pair_of(
            SealConfig { ciphers: ours, ..Default::default() },
            SealConfig { ciphers: theirs, ..Default::default() },
        );
        assert_eq!((client.cipher(), server.cipher()), (Some(expected), Some(expected)));
        exchange(&mut client, &mut server, secs(1), 10);
        rekey(&mut client, &mut server, secs(130));
        assert_eq!((client.cipher(), server.cipher()), (Some(expected), Some(expected)), "new keys, no other cipher");
    }
}

/// The responder names a cipher that was not offered.
#[test]
fn a_cipher_that_was_not_offered_is_not_used() {
    let (mut client, mut listener) = (initiator(Limits::default()), listener(ListenerConfig::default()));
    let initiation = sealed(&mut client, secs(0), PATH, &syn());
    let (mut server, _) = accepted(&mut listener, secs(0), &initiation, 9);
    let State::Responding(responding) = &mut server.state else { panic!("it has not answered") };
    responding.cipher = Cipher::Aes128Gcm;
    let response = sealed(&mut server, secs(0), PATH.reversed(), &syn_ack());
    assert_eq!(opened(&mut client, secs(0), PATH, &response), Err(Refusal::NoCipher));
}

#[test]
fn a_datagram_is_padded_as_it_is_asked_for() {
    let (mut client, mut server) = pair(Limits::default());
    for pad_to in [0, 60, 69, 100, 1200, 5000] {
        let mut datagram = vec![];
        let outgoing = Outgoing { pad_to, datagram_max: 1452, ..on(PATH) };
        let sealed = client.seal(secs(0), &outgoing, &data(1), &mut datagram);
        // A bare one takes 61, a padded one 69.
        let size = if pad_to < 69 { 61 } else { pad_to.min(1452) as usize };
        assert_eq!((sealed, datagram.len()), (Ok(Sealed { size, count: 1 }), size), "{pad_to}");
        assert_eq!(opened(&mut server, secs(0), PATH.reversed(), &datagram), Ok(Some(data(1))));
    }
}

#[test]
fn lengths_can_be_hidden() {
    let text = Bytes::from(vec![7; 1000]);
    for (padding, lengths) in [(Padding::Full, vec![1200]), (Padding::Multiple(256), vec![256, 512, 768, 1024, 1200])] {
        let config = SealConfig { padding, ..Default::default() };
        let (mut client, mut server) = pair_of(config, config);
        let mut seen = std::collections::BTreeSet::new();
        for len in 1..1000 {
            let segment = Segment { content: Content::Data(text.slice(..len)), ..data(1) };
            let mut datagram = vec![];
            client.seal(secs(0), &Outgoing::new(PATH), &segment, &mut datagram).unwrap();
            seen.insert(datagram.len());
            assert_eq!(opened(&mut server, secs(0), PATH.reversed(), &datagram), Ok(Some(segment)));
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), lengths);
        sealed(&mut client, secs(120), PATH, &data(1));
        assert!(lengths.contains(&own(&mut client, secs(120)).unwrap().len()), "nor is it seen when keys are replaced");
    }
}

#[test]
fn a_segment_that_is_too_long_for_its_path_goes_in_fragments() {
    let (mut client, mut server) = pair(Limits::default());
    let text: Vec<u8> = (0..1400u32).map(|at| at as u8).collect();
    let long = Segment { content: Content::Data(text.into()), ..data(1) };
    let mut datagrams = vec![];
    let outgoing = Outgoing { datagram_max: 600, ..on(PATH) };
    let sealed = client.seal(secs(0), &outgoing, &long, &mut datagrams);
    assert_eq!((sealed, datagrams.len()), (Ok(Sealed { size: 600, count: 3 }), 1420 + 3 * 44));
    let parts: Vec<_> = datagrams.chunks(600).collect();
    for order in [[0, 1, 2], [2, 0, 1]] {
        let (mut client, mut server) = pair(Limits::default());
        let mut datagrams = vec![];
        client.seal(secs(0), &outgoing, &long, &mut datagrams).unwrap();
        let parts: Vec<_> = datagrams.chunks(600).collect();
        let came = order.map(|at| opened(&mut server, secs(0), PATH.reversed(), parts[at]).unwrap());
        assert_eq!(came, [None, None, Some(long.clone())]);
    }
    // One is lost: it comes again as another segment, and the rest of the first is of no use.
    opened(&mut server, secs(0), PATH.reversed(), parts[0]).unwrap();
    let mut again = vec![];
    client.seal(secs(1), &outgoing, &long, &mut again).unwrap();
    let came: Vec<_> = again.chunks(600).map(|part| opened(&mut server, secs(1), PATH.reversed(), part)).collect();
    assert_eq!(came, [Ok(None), Ok(None), Ok(Some(long.clone()))]);
    assert_eq!(opened(&mut server, secs(1), PATH.reversed(), parts[0]), Err(Refusal::Replayed));
    assert_eq!(server.poll_timeout(), secs(10));
    server.handle_timeout(secs(10));
    assert_eq!(server.poll_timeout(), Time::NEVER);
    let narrow = Outgoing { datagram_max: 100, ..on(PATH) };
    assert_eq!(client.seal(secs(1), &narrow, &long, &mut vec![]), Err(SealError::TooLong));
}

/// All of them count against what may be sent to an address, or none is sent.
#[test]
fn fragments_are_allowed_together_or_not_at_all() {
    let (mut client, mut server) = pair(Limits::default());
    let moved = FourTuple { remote: Address { address: 77, port: 5 }, ..PATH.reversed() };
    let datagram = sealed(&mut client, secs(1), PATH, &data(1));
    opened(&mut server, secs(1), moved, &datagram).unwrap();
    let long = Segment { content: Content::Data(Bytes::from(vec![1; 150])), ..data(1) };
    let mut out = vec![];
    let outgoing = Outgoing { datagram_max: 150, ..on(moved) };
    assert_eq!(server.seal(secs(1), &outgoing, &long, &mut out), Err(SealError::NotAllowed), "258 bytes for 61");
    assert_eq!((out.len(), server.seal(secs(1), &on(moved), &data(1), &mut out).is_ok()), (0, true));
}

#[test]
fn the_data_of_a_segment_stays_where_the_datagram_was() {
    let (mut client, mut server) = pair(Limits::default());
    let datagram = BytesMut::from(&sealed(&mut client, secs(0), PATH, &data(1))[..]);
    let memory = datagram.as_ptr_range();
    let Ok(Some(Segment { content: Content::Data(data), .. })) = server.open(secs(0), PATH.reversed(), datagram) else {
        panic!("it is good")
    };
    assert_eq!(data.as_ptr(), memory.start.wrapping_add(16 + 20));
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

/// Where the responder sends nearly everything, it is its counters that show how much a key has done.
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

/// New keys, asked for by the client.
#[track_caller]
fn rekey(client: &mut Seal, server: &mut Seal, now: Time) {
    let rekeyed = client.tally().rekeyed;
    exchange(client, server, now, 1);
    let request = own(client, now).expect("the keys are worn");
    opened(server, now, PATH.reversed(), &request).unwrap();
    let answer = own(server, now).expect("there is an answer");
    opened(client, now, PATH, &answer).unwrap();
    exchange(client, server, now, 3);
    assert_eq!(client.tally().rekeyed, rekeyed + 1);
}

/// At a million datagrams a second AES-GCM's keys last for four seconds: those before the last ones do not hold the next ones up.
#[test]
fn keys_may_be_replaced_while_those_before_them_still_open_what_is_late() {
    let (mut client, mut server) = pair(Limits { rekey_after_messages: 2, ..Default::default() });
    for second in [1, 2, 3, 4] {
        rekey(&mut client, &mut server, secs(second));
    }
    exchange(&mut client, &mut server, millis(4_900), 3);
    assert_eq!(own(&mut client, millis(4_900)), None, "it does not ask more often than once a second");
}

#[test]
fn a_request_without_an_answer_comes_again_and_again_and_less_and_less() {
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

/// A request of the client for new keys with this ephemeral key, in the name of `who`.
fn request(client: &mut Seal, who: u8, ephemeral: u16) -> Vec<u8> {
    let binding = client.current.as_ref().unwrap().binding;
    let mut plain = vec![0, 0, 0, 1, 0, 0, 7, 1];
    let mut bytes = [who; 32];
    bytes[1..3].copy_from_slice(&ephemeral.to_be_bytes());
    let prologue = [&b"anabranch rekey 2"[..], &binding].concat();
    noise::Handshake::initiate(&secret(who), &secret(2).public(), &prologue, bytes, &[], &mut plain).unwrap();
    with_plain(client, &plain)
}

/// Each would take a fifth of a millisecond and more.
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

/// Somebody has got hold of a session, but not of the secret key of the client: no new session comes of it.
#[test]
fn nobody_takes_a_connection_over_by_asking_for_keys() {
    let (mut client, mut server) = pair(Limits::default());
    let stolen = request(&mut client, 5, 1);
    assert_eq!(opened(&mut server, secs(5), PATH.reversed(), &stolen), Err(Refusal::Forged));
    assert_eq!(own(&mut server, secs(5)), None, "there is no answer");
}

/// The seal's own datagrams go to where the newest ones came from, if somebody is there.
#[test]
fn neither_late_datagrams_nor_strangers_move_what_the_seal_sends() {
    let (mut client, mut server) = pair(Limits::default());
    let (old, new) = (PATH.reversed(), FourTuple { remote: Address { address: 55, port: 5 }, ..PATH.reversed() });
    let late = sealed(&mut client, secs(1), PATH, &data(1));
    let first = sealed(&mut client, secs(1), PATH, &data(2));
    assert_eq!(server.path, old);
    opened(&mut server, secs(1), new, &first).unwrap();
    assert_eq!(server.path, old, "nobody has shown to be there");
    server.validate(new);
    let second = sealed(&mut client, secs(1), PATH, &data(3));
    opened(&mut server, secs(1), new, &second).unwrap();
    assert_eq!(server.path, new);
    opened(&mut server, secs(1), old, &late).unwrap();
    assert_eq!(server.path, new, "it was late");
    let replayed = opened(&mut server, secs(1), old, &second);
    assert_eq!((replayed, server.path), (Err(Refusal::Replayed), new));
    let request = request(&mut client, 1, 1);
    opened(&mut server, secs(1), new, &request).unwrap();
    assert_eq!(server.poll_transmit(secs(1), &mut vec![]), Some(new));
}

/// What is sealed with keys that are replaced is late, however high its counter.
#[test]
fn datagrams_of_the_keys_before_move_nothing() {
    let (mut client, mut server) = pair(Limits { rekey_after_messages: 2, ..Default::default() });
    let other = FourTuple { remote: Address { address: 55, port: 5 }, ..PATH.reversed() };
    server.validate(other);
    exchange(&mut client, &mut server, secs(1), 1);
    let request = own(&mut client, secs(1)).unwrap();
    opened(&mut server, secs(1), PATH.reversed(), &request).unwrap();
    let answer = own(&mut server, secs(1)).unwrap();
    let late = sealed(&mut client, secs(1), PATH, &data(5));
    opened(&mut client, secs(1), PATH, &answer).unwrap();
    exchange(&mut client, &mut server, secs(1), 7);
    assert_eq!(opened(&mut server, secs(1), other, &late), Ok(Some(data(5))));
    assert_eq!(server.path, PATH.reversed());
}

/// Somebody sees the response on its way to the client's address, and the client's data come from another one: that the client has the keys shows
/// nothing about that other address, nor about the one where it was.
#[test]
fn only_the_address_that_got_the_response_is_validated_by_data() {
    let (mut client, mut listener) = (initiator(Limits::default()), listener(ListenerConfig::default()));
    let initiation = sealed(&mut client, secs(0), PATH, &syn());
    let (mut server, _) = accepted(&mut listener, secs(0), &initiation, 9);
    let response = sealed(&mut server, secs(0), PATH.reversed(), &syn_ack());
    opened(&mut client, secs(0), PATH, &response).unwrap();
    let elsewhere = FourTuple { remote: Address { address: 66, port: 6 }, ..PATH.reversed() };
    let datagram = sealed(&mut client, secs(0), PATH, &data(1));
    opened(&mut server, secs(0), elsewhere, &datagram).unwrap();
    assert!(server.is_established());
    assert!(!server.addresses.is_validated(elsewhere.remote) && !server.addresses.is_validated(CLIENT));
    let sent = (0..100).filter(|_| server.seal(secs(0), &on(elsewhere), &data(2), &mut vec![]).is_ok()).count();
    assert_eq!(sent, 3, "three times one datagram");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever is done to a datagram on its way, it is not accepted.
    #[test]
    fn a_datagram_that_was_changed_is_refused(
        kind in 0..4usize,
        change in prop_oneof![Just(0u8), 1u8..],
        at in any::<prop::sample::Index>(),
    ) {
        let limits = ListenerConfig { unproven: Pace { per_second: 1, burst: 1 }, ..Default::default() };
        let (mut client, mut listener) = (initiator(Limits::default()), listener(limits));
        let mangle = |which: usize, datagram: &[u8]| {
            let mut mangled = datagram.to_vec();
            let at = at.index(mangled.len());
            if which != kind {
                return None;
            }
            if change == 0 { mangled.truncate(at) } else { mangled[at] ^= change }
            Some(mangled)
        };
        let initiation = sealed(&mut client, secs(0), PATH, &syn());
        if let Some(bad) = mangle(0, &initiation) {
            let answer = listener.handle(secs(0), PATH.reversed(), &bad, 9, &mut vec![]);
            // mac2 is not looked at without load.
            let is_mac2 = bad.len() == initiation.len() && bad[..bad.len() - 16] == initiation[..bad.len() - 16];
            prop_assert!(answer.is_err() || is_mac2);
            return Ok(());
        }
        let (mut server, _) = accepted(&mut listener, secs(0), &initiation, 9);
        let response = sealed(&mut server, secs(0), PATH.reversed(), &syn_ack());
        if let Some(bad) = mangle(1, &response) {
            prop_assert!(opened(&mut client, secs(0), PATH, &bad).is_err());
        }
        opened(&mut client, secs(0), PATH, &response).unwrap();
        let good = sealed(&mut client, secs(0), PATH, &data(1));
        if let Some(bad) = mangle(2, &good) {
            prop_assert!(opened(&mut server, secs(0), PATH.reversed(), &bad).is_err());
        }
        let mut another = client_of(8, 1, 8);
        let asked = sealed(&mut another, secs(0), PATH, &syn());
        let mut cookie = vec![];
        listener.handle(secs(0), PATH.reversed(), &asked, 10, &mut cookie).unwrap();
        if let Some(bad) = mangle(3, &cookie) {
            prop_assert!(opened(&mut another, secs(0), PATH, &bad).is_err());
        }
    }

    /// Two engines over sealed datagrams, some of which are lost, repeated, late or changed: none of the latter is accepted, and all that is
    /// written arrives.
    #[test]
    fn engines_talk_through_seals(
        fates in prop::collection::vec(fate(), 1..60),
        rekey_after_messages in 5..50u64,
        handshakes_per_second in 0..2u32,
        ciphers in prop_oneof![Just(CipherPreference::default()), Just(CipherPreference::fast_aes())],
        datagram_max in prop_oneof![Just(65_535u32), 500..1600u32],
        padding in prop_oneof![Just(Padding::None), Just(Padding::Multiple(64)), Just(Padding::Full)],
    ) {
        let (rekey_retry, keep_previous) = (Span::from_millis(20), Span::from_millis(400));
        let rekey_interval = Span::ZERO;
        let limits = Limits { rekey_after_messages, rekey_retry, keep_previous, rekey_interval, ..Limits::default() };
        let unproven = Pace { per_second: handshakes_per_second, burst: 1 };
        let limits = ListenerConfig { connection: SealConfig { ciphers, padding, ..with(limits) }, unproven, ..Default::default() };
        let mut world = World::new(limits, datagram_max, fates);
        let text: Vec<u8> = (0..300_000u32).map(|at| (at % 251) as u8).collect();
        let received = world.transfer(Bytes::from(text.clone()));
        prop_assert!(received == text, "{} of {} bytes", received.len(), text.len());
        prop_assert!(world.client.seal.tally().rekeyed > 0);
    }
}

/// What happens to a datagram on its way.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrive,
    Lose,
    Repeat,
    Delay,
    /// A byte at this place is changed by this, which is not zero.
    Corrupt(prop::sample::Index, u8),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => Just(Fate::Arrive),
        2 => Just(Fate::Lose),
        1 => Just(Fate::Repeat),
        1 => Just(Fate::Delay),
        2 => (any::<prop::sample::Index>(), 1..=255u8).prop_map(|(at, change)| Fate::Corrupt(at, change)),
    ]
}

/// A datagram on its way.
struct Flying {
    to_server: bool,
    datagram: Vec<u8>,
    is_corrupt: bool,
}

/// One end over the network.
struct End {
    engine: Connection<Bytes>,
    seal: Seal,
    path: FourTuple,
    /// What came first.
    first: Option<Segment<Bytes>>,
}

struct World {
    now: Time,
    client: End,
    server: Option<End>,
    listener: Listener,
    config: Config,
    /// What the path takes: segments are cut for 1460 bytes.
    datagram_max: u32,
    /// Datagrams on their way, by when they arrive.
    flying: std::collections::BTreeMap<(Time, u64), Flying>,
    count: u64,
    fates: Vec<Fate>,
}

impl World {
    fn new(limits: ListenerConfig, datagram_max: u32, fates: Vec<Fate>) -> Self {
        let law = Settings::default_for(registry::find("reno").unwrap());
        let config = Config { user_timeout: None, ..Config::new(law) };
        let engine =
            Connection::connect(Time::ZERO, config.clone(), PATH, crate::Secret::predictable(SeqNumber(5))).unwrap();
        let client = End { engine, seal: initiator_with(limits.connection), path: PATH, first: None };
        let listener = listener(limits);
        Self {
            now: Time::ZERO,
            client,
            server: None,
            listener,
            config,
            datagram_max,
            flying: Default::default(),
            count: 0,
            fates,
        }
    }

    fn send(&mut self, to_server: bool, mut datagram: Vec<u8>) {
        let fate = self.fates.get(self.count as usize).copied().unwrap_or(Fate::Arrive);
        self.count += 1;
        let (late, copies) = match fate {
            Fate::Lose => return,
            Fate::Repeat => (20, 2),
            Fate::Delay => (300, 1),
            Fate::Arrive | Fate::Corrupt(..) => (20, 1),
        };
        let is_corrupt = if let Fate::Corrupt(at, change) = fate {
            // The last field of an initiation, mac2, is not looked at without load.
            let is_initiation = Seal::recipient(&datagram) == Some(Recipient::Listener);
            let len = datagram.len() - if is_initiation { 16 } else { 0 };
            datagram[at.index(len)] ^= change;
            true
        } else {
            false
        };
        for copy in 0..copies {
            let at = self.now.saturating_add(Span::from_millis(late));
            let flying = Flying { to_server, datagram: datagram.clone(), is_corrupt };
            self.flying.insert((at, self.count * 2 + copy), flying);
        }
    }

    /// What was changed on its way: whoever gets it refuses it.
    fn refuse(&mut self, to_server: bool, datagram: &[u8]) {
        let now = self.now;
        // A changed number is that of another connection, or of none.
        let is_refused = match Seal::recipient(datagram) {
            Some(Recipient::Listener) if to_server => {
                self.listener.handle(now, PATH.reversed(), datagram, 9, &mut vec![]).is_err()
            }
            Some(Recipient::Connection(9)) if to_server => self.server.as_mut().unwrap().refuses(now, datagram),
            Some(_) if !to_server => self.client.refuses(now, datagram),
            Some(_) | None => true,
        };
        assert!(is_refused, "{datagram:?}");
    }

    /// What both ends have to send.
    fn drain(&mut self) {
        let mut out = vec![];
        let now = self.now;
        for (to_server, end) in [(true, Some(&mut self.client)), (false, self.server.as_mut())] {
            let Some(end) = end else { continue };
            while let Some(transmit) = end.engine.poll_transmit(now) {
                let mut datagram = vec![];
                let outgoing = Outgoing { path: transmit.path, datagram_max: self.datagram_max, ..on(transmit.tuple) };
                if let Ok(sealed) = end.seal.seal(now, &outgoing, &transmit.segment, &mut datagram) {
                    out.extend(datagram.chunks(sealed.size).map(|datagram| (to_server, datagram.to_vec())));
                }
            }
            let mut datagram = vec![];
            while end.seal.poll_transmit(now, &mut datagram).is_some() {
                out.push((to_server, std::mem::take(&mut datagram)));
            }
        }
        out.into_iter().for_each(|(to_server, datagram)| self.send(to_server, datagram));
    }

    fn arrive(&mut self, to_server: bool, datagram: &[u8]) {
        let now = self.now;
        if !to_server {
            return self.client.arrive(now, datagram);
        }
        match Seal::recipient(datagram) {
            Some(Recipient::Listener) => {
                let mut reply = vec![];
                match self.listener.handle(now, PATH.reversed(), datagram, 9, &mut reply) {
                    Ok(Answer::Accept { seal, segment, .. }) => {
                        let path = PATH.reversed();
                        let mut engine = Connection::listen(
                            now,
                            self.config.clone(),
                            path,
                            crate::Secret::predictable(SeqNumber(900)),
                        )
                        .unwrap();
                        engine.handle_segment(now, path, segment);
                        self.server = Some(End { engine, seal: *seal, path, first: None });
                    }
                    Ok(Answer::Again { .. }) => self.server.as_mut().unwrap().arrive(now, datagram),
                    Ok(Answer::Reply) => self.send(false, reply),
                    Err(_) => {}
                }
            }
            Some(Recipient::Connection(number)) => {
                assert_eq!(number, 9);
                self.server.as_mut().unwrap().arrive(now, datagram);
            }
            None => panic!("only our datagrams are here"),
        }
    }

    /// Writes all of it at the client and reads all that comes at the server.
    fn transfer(&mut self, mut text: Bytes) -> Vec<u8> {
        let (mut sid, mut received, whole) = (None, vec![], text.len());
        self.drain();
        while received.len() < whole {
            let flying = self.flying.keys().next().map_or(Time::NEVER, |key| key.0);
            let timers = [Some(&self.client), self.server.as_ref()].into_iter().flatten();
            let next = timers.map(|end| end.engine.poll_timeout().min(end.seal.poll_timeout())).min().unwrap();
            let next = next.min(flying);
            // Sixty that are lost in a row are sent again once a minute in the end.
            if next > secs(3600) {
                break;
            }
            self.now = self.now.max(next);
            if flying <= self.now {
                let (_, Flying { to_server, datagram, is_corrupt }) = self.flying.pop_first().unwrap();
                if is_corrupt { self.refuse(to_server, &datagram) } else { self.arrive(to_server, &datagram) }
            }
            for end in [Some(&mut self.client), self.server.as_mut()].into_iter().flatten() {
                end.engine.handle_timeout(self.now);
                end.seal.handle_timeout(self.now);
            }
            if sid.is_none() && self.client.engine.state() == ConnectionState::Established {
                sid = self.client.engine.streams().open().ok();
            }
            if let Some(sid) = sid {
                self.client.engine.streams().write(sid, &mut text).unwrap();
                if let Some(server) = &mut self.server {
                    while let Ok(Read::Data(part)) = server.engine.streams().read(sid, u32::MAX) {
                        received.extend_from_slice(&part);
                    }
                }
            }
            self.drain();
        }
        received
    }
}

impl End {
    /// Whether nothing of a datagram is believed. An answer to a handshake that comes again is known by its tag: whatever else is in it,
    /// it stands for the segment that came with it first.
    fn refuses(&mut self, now: Time, datagram: &[u8]) -> bool {
        match self.seal.open(now, self.path, datagram.into()) {
            Err(_) => true,
            Ok(segment) => segment.is_some() && segment == self.first,
        }
    }

    fn arrive(&mut self, now: Time, datagram: &[u8]) {
        if let Ok(Some(segment)) = self.seal.open(now, self.path, datagram.into()) {
            self.first.get_or_insert_with(|| segment.clone());
            self.engine.handle_segment(now, self.path, segment);
        }
        while let Some(event) = self.engine.poll_event() {
            assert!(!matches!(event, Event::Closed(_)), "nothing ends it: {event:?}");
        }
    }
}
