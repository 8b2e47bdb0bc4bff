//! Dialogues over a network that loses, repeats, reorders and forges.

use anabranch_cc::{Settings, registry};
use proptest::prelude::*;

use super::*;
use crate::{Address, Config, Connection, Content, Event, Header, Options, Read, SeqNumber, State as ConnectionState};

const CLIENT: Address = Address { address: 1, port: 1000 };
const SERVER: Address = Address { address: 2, port: 443 };
const PATH: FourTuple = FourTuple { local: CLIENT, remote: SERVER };

fn secret(number: u8) -> SecretKey {
    SecretKey::new([number; 32])
}

fn secs(count: u64) -> Time {
    Time::ZERO.saturating_add(Span::from_secs(count))
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

fn initiator(limits: Limits) -> Seal {
    Seal::initiator(secret(1), secret(2).public(), 7, limits, [11; 32])
}

fn listener(limits: ListenerLimits) -> Listener {
    Listener::new(Time::ZERO, secret(2), limits, [22; 32])
}

/// The datagram with this segment in it.
#[track_caller]
fn sealed(seal: &mut Seal, now: Time, path: FourTuple, segment: &Segment<Bytes>) -> Vec<u8> {
    let mut datagram = vec![];
    seal.seal(now, path, segment, &mut datagram).expect("it can be sent");
    datagram
}

fn opened(seal: &mut Seal, now: Time, path: FourTuple, datagram: &[u8]) -> Result<Option<Segment<Bytes>>, Refusal> {
    seal.open(now, path, datagram, &mut BytesMut::new())
}

/// What the seal itself sends.
fn own(seal: &mut Seal, now: Time) -> Option<Vec<u8>> {
    let mut datagram = vec![];
    seal.poll_transmit(now, &mut datagram).map(|_| datagram)
}

#[track_caller]
fn accepted(listener: &mut Listener, now: Time, datagram: &[u8], number: u32) -> (Seal, Segment<Bytes>) {
    match listener.handle(now, PATH.reversed(), datagram, number, &mut vec![]) {
        Ok(Answer::Accept { seal, segment }) => (*seal, segment),
        other => panic!("not accepted: {other:?}"),
    }
}

/// Two ends after the handshake; the client has confirmed it.
fn pair(limits: Limits) -> (Seal, Seal) {
    let now = Time::ZERO;
    let mut client = initiator(limits);
    let mut listener = listener(ListenerLimits { connection: limits, ..Default::default() });
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
    let (mut client, mut listener) = (initiator(Limits::default()), listener(ListenerLimits::default()));
    let initiation = sealed(&mut client, now, PATH, &syn());
    assert_eq!(Seal::recipient(&initiation), Some(Recipient::Listener));
    let (mut server, segment) = accepted(&mut listener, now, &initiation, 9);
    assert_eq!((segment, server.remote()), (syn(), secret(1).public()));
    let response = sealed(&mut server, now, PATH.reversed(), &syn_ack());
    assert_eq!(Seal::recipient(&response), Some(Recipient::Connection(7)));
    assert_eq!(opened(&mut client, now, PATH, &response), Ok(Some(syn_ack())));
    assert!(client.is_established() && !server.is_established(), "the client has still to show that it has the keys");
    assert_eq!(server.seal(now, PATH.reversed(), &data(1), &mut vec![]), Err(SealError::NotReady));
    let first = sealed(&mut client, now, PATH, &data(101));
    assert_eq!(Seal::recipient(&first), Some(Recipient::Connection(9)));
    assert_eq!(first.len() as u32, 20 + 9 + Seal::OVERHEAD);
    assert_eq!(opened(&mut server, now, PATH.reversed(), &first), Ok(Some(data(101))));
    exchange(&mut client, &mut server, now, 110);
}

#[test]
fn a_lost_initiation_is_sent_again_as_it_was() {
    let (mut client, mut listener) = (initiator(Limits::default()), listener(ListenerLimits::default()));
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
    let (mut client, mut listener) = (initiator(Limits::default()), listener(ListenerLimits::default()));
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
    let (mut client, mut listener) = (initiator(Limits::default()), listener(ListenerLimits::default()));
    let initiation = sealed(&mut client, secs(0), PATH, &syn());
    let (mut server, _) = accepted(&mut listener, secs(0), &initiation, 9);
    let early = segment(Flags::SYN | Flags::ACK, 200, b"early");
    for refused in [data(1), early] {
        assert_eq!(server.seal(secs(0), PATH.reversed(), &refused, &mut vec![]), Err(SealError::NotReady));
    }
    let refusal = segment(Flags::RST | Flags::ACK, 0, b"");
    let response = sealed(&mut server, secs(0), PATH.reversed(), &refusal);
    assert_eq!(opened(&mut client, secs(0), PATH, &response), Ok(Some(refusal)), "there is no connection to be had");
}

#[test]
fn a_forged_response_does_not_keep_the_true_one_out() {
    let (mut client, mut listener) = (initiator(Limits::default()), listener(ListenerLimits::default()));
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
    assert_eq!((own(&mut client, secs(120)), client.poll_timeout()), (None, secs(125)));
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
    assert_eq!(client.seal(secs(0), PATH, &data(2), &mut vec![]), Err(SealError::Exhausted));
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
    let limits = ListenerLimits { handshakes_per_second: 0, ..Default::default() };
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
    let limits = ListenerLimits { handshakes_per_second: 0, ..Default::default() };
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
    let limits = ListenerLimits { handshakes_per_second: 0, ..Default::default() };
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
    let limits = ListenerLimits { handshakes_per_second: 2, ..Default::default() };
    let mut listener = listener(limits);
    let mut outcome = |now: Time, number: u8| {
        let mut client = Seal::initiator(secret(3), secret(2).public(), 1, Limits::default(), [number; 32]);
        let initiation = sealed(&mut client, now, PATH, &syn());
        let answer = listener.handle(now, PATH.reversed(), &initiation, number.into(), &mut vec![]);
        matches!(answer, Ok(Answer::Accept { .. }))
    };
    assert_eq!([1, 2, 3].map(|number| outcome(secs(1), number)), [true, true, false]);
    assert_eq!([4, 5, 6].map(|number| outcome(secs(2), number)), [true, true, false]);
}

#[test]
fn half_open_connections_have_a_limit_and_an_end() {
    let limits = ListenerLimits { half_open: 4, ..Default::default() };
    let mut listener = listener(limits);
    let open = |listener: &mut Listener, now: Time, number: u8| {
        let mut client = Seal::initiator(secret(3), secret(2).public(), 1, Limits::default(), [number; 32]);
        let initiation = sealed(&mut client, now, PATH, &syn());
        let mut reply = vec![];
        match listener.handle(now, PATH.reversed(), &initiation, number.into(), &mut reply) {
            Ok(Answer::Reply) => {
                opened(&mut client, now, PATH, &reply).unwrap();
                let retry = own(&mut client, now).unwrap();
                listener.handle(now, PATH.reversed(), &retry, number.into(), &mut vec![]).map(|_| "with a cookie")
            }
            answer => answer.map(|_| "at once"),
        }
    };
    let all = [1, 2, 3, 4, 5].map(|number| open(&mut listener, secs(1), number));
    let full = Err(Refusal::TooMany);
    assert_eq!(all, [Ok("at once"), Ok("at once"), Ok("with a cookie"), Ok("with a cookie"), full]);
    listener.release(2);
    assert_eq!(open(&mut listener, secs(2), 6), Ok("with a cookie"));
    assert_eq!(open(&mut listener, secs(61), 7), Ok("at once"), "only the sixth is left");
}

#[test]
fn nobody_is_flooded_through_us() {
    let (mut client, mut listener) = (initiator(Limits::default()), listener(ListenerLimits::default()));
    let initiation = sealed(&mut client, secs(0), PATH, &syn());
    let (mut server, _) = accepted(&mut listener, secs(0), &initiation, 9);
    let mut sent = 0;
    let mut datagram = vec![];
    while server.seal(secs(0), PATH.reversed(), &syn_ack(), &mut datagram).is_ok() {
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
    let send = |server: &mut Seal, path| server.seal(secs(1), path, &data(5), &mut vec![]).is_ok();
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
    let mut client = Seal::initiator(secret(1), secret(3).public(), 7, Limits::default(), [11; 32]);
    let mut listener = listener(ListenerLimits::default());
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
    let mut other = Seal::initiator(secret(1), secret(3).public(), 7, Limits::default(), [12; 32]);
    let mut impostor = Listener::new(secs(0), secret(3), ListenerLimits::default(), [1; 32]);
    let asked = sealed(&mut other, secs(0), PATH, &syn());
    let (mut server, _) = accepted(&mut impostor, secs(0), &asked, 9);
    let response = sealed(&mut server, secs(0), PATH.reversed(), &syn_ack());
    assert_eq!(opened(&mut client, secs(0), PATH, &response), Err(Refusal::Forged));
    assert_eq!(sealed(&mut client, secs(1), PATH, &syn()), initiation, "it goes on asking");
}

#[test]
fn two_handshakes_at_once_do_not_touch_each_other() {
    let mut listener = listener(ListenerLimits::default());
    let mut clients = [5u8, 6].map(|number| {
        Seal::initiator(secret(number), secret(2).public(), number.into(), Limits::default(), [number; 32])
    });
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
    let mut here = Listener::new(secs(0), secret(1), ListenerLimits::default(), [4; 32]);
    let mut there = listener(ListenerLimits::default());
    let mut one = initiator(Limits::default());
    let mut other = Seal::initiator(secret(2), secret(1).public(), 3, Limits::default(), [5; 32]);
    let (first, second) = (sealed(&mut one, secs(0), PATH, &syn()), sealed(&mut other, secs(0), PATH, &syn()));
    for (listener, initiation, client) in [(&mut there, first, &mut one), (&mut here, second, &mut other)] {
        let (mut server, _) = accepted(listener, secs(0), &initiation, 9);
        let response = sealed(&mut server, secs(0), PATH.reversed(), &syn_ack());
        opened(client, secs(0), PATH, &response).unwrap();
        exchange(client, &mut server, secs(0), 101);
    }
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
        let limits = ListenerLimits { handshakes_per_second: 1, ..Default::default() };
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
        let mut another = Seal::initiator(secret(8), secret(2).public(), 1, Limits::default(), [8; 32]);
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
    ) {
        let (rekey_retry, keep_previous) = (Span::from_millis(20), Span::from_millis(400));
        let limits = Limits { rekey_after_messages, rekey_retry, keep_previous, ..Limits::default() };
        let limits = ListenerLimits { connection: limits, handshakes_per_second, ..Default::default() };
        let mut world = World::new(limits, fates);
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
    buffer: BytesMut,
    /// What came first.
    first: Option<Segment<Bytes>>,
}

struct World {
    now: Time,
    client: End,
    server: Option<End>,
    listener: Listener,
    config: Config,
    /// Datagrams on their way, by when they arrive.
    flying: std::collections::BTreeMap<(Time, u64), Flying>,
    count: u64,
    fates: Vec<Fate>,
}

impl World {
    fn new(limits: ListenerLimits, fates: Vec<Fate>) -> Self {
        let law = Settings::default_for(registry::find("reno").unwrap());
        let config = Config { user_timeout: None, ..Config::new(law) };
        let engine = Connection::connect(Time::ZERO, config.clone(), PATH, SeqNumber(5)).unwrap();
        let client =
            End { engine, seal: initiator(limits.connection), path: PATH, buffer: BytesMut::new(), first: None };
        let listener = listener(limits);
        Self { now: Time::ZERO, client, server: None, listener, config, flying: Default::default(), count: 0, fates }
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
                if end.seal.seal(now, transmit.tuple, &transmit.segment, &mut datagram).is_ok() {
                    out.push((to_server, datagram));
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
                    Ok(Answer::Accept { seal, segment }) => {
                        let path = PATH.reversed();
                        let mut engine = Connection::listen(now, self.config.clone(), path, SeqNumber(900)).unwrap();
                        engine.handle_segment(now, path, segment);
                        self.server = Some(End { engine, seal: *seal, path, buffer: BytesMut::new(), first: None });
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
        match self.seal.open(now, self.path, datagram, &mut self.buffer) {
            Err(_) => true,
            Ok(segment) => segment.is_some() && segment == self.first,
        }
    }

    fn arrive(&mut self, now: Time, datagram: &[u8]) {
        if let Ok(Some(segment)) = self.seal.open(now, self.path, datagram, &mut self.buffer) {
            self.first.get_or_insert_with(|| segment.clone());
            self.engine.handle_segment(now, self.path, segment);
        }
        while let Some(event) = self.engine.poll_event() {
            assert!(!matches!(event, Event::Closed(_)), "nothing ends it: {event:?}");
        }
    }
}
