//! Tests of seals and listeners in dialogue.

mod addresses;
mod data;
mod decoder;
mod handshake;
mod listener;
mod rekeying;
mod world;

use anabranch_units::Span;

use super::*;
use crate::testing::secs;
use crate::{Address, Content, Flags, Header, Options, SeqNumber};

const CLIENT: Address = Address { address: 1, port: 1000 };
const SERVER: Address = Address { address: 2, port: 443 };
const PATH: FourTuple = FourTuple { local: CLIENT, remote: SERVER };

fn secret(number: u8) -> SecretKey {
    SecretKey::new([number; 32])
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

/// A unique timestamp.
fn stamp(number: u64) -> Timestamp {
    Timestamp::since_1970(Span::from_millis(number))
}

/// A client with this secret and connection number. A different seed makes a different client.
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

/// It requests a cookie from every initiator.
fn suspicious() -> ListenerConfig {
    ListenerConfig { unproven: NEVER, ..Default::default() }
}

const NEVER: Pace = Pace { per_second: 0, burst: 0 };

/// Sends a segment on this path, however long the segment is.
fn on(tuple: FourTuple) -> Outgoing {
    Outgoing { datagram_max: 65_535, ..Outgoing::new(tuple) }
}

/// The datagram that carries this segment.
#[track_caller]
fn sealed(seal: &mut Seal, now: Time, path: FourTuple, segment: &Segment<Bytes>) -> Vec<u8> {
    let mut datagram = vec![];
    seal.seal(now, &on(path), segment, &mut datagram).expect("it can be sent");
    datagram
}

fn opened(seal: &mut Seal, now: Time, path: FourTuple, datagram: &[u8]) -> Result<Option<Segment<Bytes>>, Refusal> {
    seal.open(now, path, datagram.into())
}

/// A datagram of the seal's own, if there is one.
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

/// A client that has sent its initiation, the server that has accepted it, and the initiation.
fn half_open() -> (Seal, Seal, Vec<u8>) {
    let (mut client, mut listener) = (initiator(Limits::default()), listener(ListenerConfig::default()));
    let initiation = sealed(&mut client, secs(0), PATH, &syn());
    let (server, _) = accepted(&mut listener, secs(0), &initiation, 9);
    (client, server, initiation)
}

/// Two ends after the handshake. The client has confirmed its keys.
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

/// Exchanges one segment in each direction.
#[track_caller]
fn exchange(client: &mut Seal, server: &mut Seal, now: Time, seq: u32) {
    let up = sealed(client, now, PATH, &data(seq));
    assert_eq!(opened(server, now, PATH.reversed(), &up), Ok(Some(data(seq))));
    let down = sealed(server, now, PATH.reversed(), &data(seq + 1));
    assert_eq!(opened(client, now, PATH, &down), Ok(Some(data(seq + 1))));
}

/// A datagram of the client with this plain text.
fn with_plain(seal: &mut Seal, plain: &[u8]) -> Vec<u8> {
    let mut datagram = [&[0; DataHeader::LEN], plain, &[0; TAG]].concat();
    seal.current.as_mut().unwrap().seal(0, &mut datagram);
    datagram
}

/// Replaces the keys at the client's request.
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

/// A request of the client for new keys with this ephemeral key, signed with the static key of `who`.
fn request(client: &mut Seal, who: u8, ephemeral: u16) -> Vec<u8> {
    let binding = client.current.as_ref().unwrap().binding;
    let mut plain = vec![0, 0, 0, 1, 0, 0, 7, 1];
    let mut bytes = [who; 32];
    bytes[1..3].copy_from_slice(&ephemeral.to_be_bytes());
    let prologue = [&b"anabranch rekey 2"[..], &binding].concat();
    noise::Handshake::initiate(&secret(who), &secret(2).public(), &prologue, bytes, &[], &mut plain).unwrap();
    with_plain(client, &plain)
}
