//! The vectors of `docs/wire.md`, in both directions: the code encodes and decodes them as the page states.

use std::collections::BTreeMap;

use anabranch_units::{Span, Time};
use bytes::Bytes;

use crate::seal::{
    Answer, Cipher, CipherPreference, Listener, ListenerConfig, Outgoing, Resets, Seal, SealConfig, SecretKey,
    Timestamp, testing,
};
use crate::wire::{Checksum, Ports, decode, encode};
use crate::{
    AcknowledgementOptions, Address, Content, EcnCounts, Features, Flags, FourTuple, HandshakeOptions, Header,
    Multistream, Options, PathId, PathOption, Record, RecordList, SackBlocks, Segment, SeqNumber, Sid, Ssn,
    StreamHeader, Timestamps,
};

/// The bytes on the page, by name.
fn page() -> BTreeMap<&'static str, Vec<u8>> {
    let page = include_str!("../../../docs/wire.md");
    let blocks = page.split("```vector ").skip(1).map(|block| block.split_once("\n```").expect("a block ends"));
    let parse = |(block, _): (&'static str, &str)| {
        let (name, text) = block.split_once('\n').unwrap_or((block, ""));
        let digits: Vec<_> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
        (name, digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
    };
    blocks.map(parse).collect()
}

fn header(seq: u32, ack: u32, flags: Flags, window: u16) -> Header {
    Header { seq: SeqNumber(seq), ack: SeqNumber(ack), flags, window, ..Header::default() }
}

fn hello(header: Header, stream_header: Option<StreamHeader>) -> Segment<Bytes> {
    let content = Content::Data(Bytes::from_static(b"hello"));
    Segment { header, options: Options::default(), stream_header, content }
}

fn bare(header: Header, options: Options) -> Segment<Bytes> {
    Segment { header, options, stream_header: None, content: Content::Nothing }
}

/// The segments that the page describes in words.
fn segments() -> Vec<(&'static str, Segment<Bytes>)> {
    let streams = Flags::ACK | Flags::MSE;
    let multistream = Multistream { version: 2, streams: 16, features: Features::PATHS, credit: 20 };
    let syn = HandshakeOptions {
        mss: Some(1460),
        window_scale: Some(10),
        sack_permitted: true,
        multistream: Some(multistream),
        timestamps: None,
    };
    let syn_ack = HandshakeOptions {
        multistream: Some(Multistream { streams: 8, features: Features(0), ..multistream }),
        timestamps: Some(Timestamps { value: 16_909_060, echo: 84_281_096 }),
        ..syn
    };
    let stream = StreamHeader { sid: Sid::new(3), ssn: Ssn::of(258) };
    let mut sack = SackBlocks::default();
    sack.push(SeqNumber(3000), SeqNumber(4000));
    sack.push(SeqNumber(5000), SeqNumber(6000));
    let acknowledgement = AcknowledgementOptions::new(sack, Some(StreamHeader { ssn: Ssn::of(259), ..stream }))
        .with_timestamps(Timestamps { value: 1, echo: 2 });
    let expected = Some(StreamHeader { ssn: Ssn::of(259), ..stream });
    let late = AcknowledgementOptions::new(SackBlocks::default(), expected).with_delay(Span::from_millis(1));
    let counted = AcknowledgementOptions::new(sack, expected).with_counts(EcnCounts { ce: 1, ect0: 65_535, ect1: 0 });
    let data = hello(header(1001, 0, streams, 512), Some(stream));
    let with_nonces = |header, nonce, nonce_sum| Header { nonce, nonce_sum, ..header };
    let usual = header(1010, 2000, streams, 512);
    let records = [
        Record::Finish { sid: Sid::new(3), end: Ssn::of(260) },
        Record::Reset { sid: Sid::new(4), end: Ssn::of(16_777_215), code: 7 },
        Record::Stop { sid: Sid::new(5), expected: Ssn::of(9), code: 65_535 },
        Record::MaxStreamData { sid: Sid::new(255), limit: 4_294_967_040, over: 2 },
        Record::AcknowledgeEach { every: 16, delay: 3125 },
    ];
    let record = |ssn: usize| {
        let stream_header = Some(StreamHeader { sid: Sid::CONTROL, ssn: Ssn::of(ssn as u64) });
        Segment { stream_header, content: Content::Control(records[ssn].into()), ..bare(usual, Options::default()) }
    };
    let mut several = RecordList::from(records[0]);
    several.push(records[3]).unwrap();
    let several = {
        let stream_header = Some(StreamHeader { sid: Sid::CONTROL, ssn: Ssn::of(4) });
        Segment { stream_header, content: Content::Control(several), ..bare(usual, Options::default()) }
    };
    let far = Some(StreamHeader { sid: Sid::new(300), ssn: Ssn::of(258) });
    let far_expected = AcknowledgementOptions::new(SackBlocks::default(), far);
    let mut far_records = RecordList::from(Record::Finish { sid: Sid::new(300), end: Ssn::of(260) });
    far_records.push(Record::MaxStreamData { sid: Sid::new(4080), limit: 4_294_967_040, over: 255 }).unwrap();
    let far_records = {
        let stream_header = Some(StreamHeader { sid: Sid::CONTROL, ssn: Ssn::of(5) });
        Segment { stream_header, content: Content::Control(far_records), ..bare(usual, Options::default()) }
    };
    let features = Features::PATHS.or(Features::NONCES).or(Features::MANY_STREAMS);
    let many = HandshakeOptions { multistream: Some(Multistream { streams: 255, features, ..multistream }), ..syn };
    let with_datagrams = features.or(Features::DATAGRAMS);
    let datagrams = HandshakeOptions {
        multistream: Some(Multistream { streams: 255, features: with_datagrams, ..multistream }),
        ..syn
    };
    let datagram = Some(StreamHeader { sid: Sid::DATAGRAM, ssn: Ssn::of(0) });
    let void = Some(StreamHeader { sid: Sid::VOID, ssn: Ssn::of(5) });
    let unsent = header(1001, 0, streams, 512);
    let datagram_expected = AcknowledgementOptions::new(SackBlocks::default(), datagram);
    let path = |option| bare(usual, Options::Path(option));
    let token = [1, 2, 3, 4, 5, 6, 7, 8];
    vec![
        ("syn", bare(header(1000, 0, Flags::SYN | Flags::MSE, 65_535), Options::Handshake(syn))),
        (
            "syn-ack",
            bare(
                header(4_294_967_295, 1001, Flags::SYN | Flags::ACK | Flags::MSE, 65_535),
                Options::Handshake(syn_ack),
            ),
        ),
        ("data", data.clone()),
        ("data-v6", data.clone()),
        ("plain", hello(header(1001, 0, Flags::ACK, 512), None)),
        ("acknowledgement", bare(usual, Options::Acknowledgement(acknowledgement))),
        ("nonce", Segment { header: with_nonces(data.header, 43_981, 4660), ..data.clone() }),
        ("sums", bare(with_nonces(usual, 65_535, 1), Options::Acknowledgement(acknowledgement))),
        ("many-streams", bare(header(1000, 0, Flags::SYN | Flags::MSE, 65_535), Options::Handshake(many))),
        ("far-data", hello(header(1001, 0, streams, 512), far)),
        ("far-acknowledgement", bare(usual, Options::Acknowledgement(far_expected))),
        ("far-records", far_records),
        ("datagrams", bare(header(1000, 0, Flags::SYN | Flags::MSE, 65_535), Options::Handshake(datagrams))),
        ("datagram", hello(with_nonces(unsent, 43_981, 4660), datagram)),
        ("void", Segment { stream_header: void, ..bare(with_nonces(unsent, 43_981, 4660), Options::default()) }),
        (
            "empty-datagram",
            Segment {
                stream_header: datagram,
                content: Content::Data(Bytes::new()),
                ..bare(unsent, Options::default())
            },
        ),
        ("datagram-acknowledgement", bare(usual, Options::Acknowledgement(datagram_expected))),
        ("late-acknowledgement", bare(usual, Options::Acknowledgement(late))),
        ("counting-acknowledgement", bare(usual, Options::Acknowledgement(counted))),
        ("finish", record(0)),
        ("reset", record(1)),
        ("stop", record(2)),
        ("credit", record(3)),
        ("acknowledge-each", record(4)),
        ("finish-and-credit", several),
        ("challenge", path(PathOption::Challenge(token))),
        ("response", path(PathOption::Response(token))),
        ("leave", path(PathOption::Leave(token))),
    ]
}

/// The ports and the pseudo header of a vector.
fn network(name: &str) -> (Ports, Checksum) {
    let ports = Ports { source: 50_000, target: 443 };
    let v4 = [[192, 0, 2, 1], [198, 51, 100, 2]];
    match name {
        "nonce"
        | "sums"
        | "many-streams"
        | "far-data"
        | "far-acknowledgement"
        | "far-records"
        | "datagrams"
        | "datagram"
        | "void"
        | "empty-datagram"
        | "datagram-acknowledgement" => (Ports::default(), Checksum::None),
        "syn-ack" => (Ports { source: 443, target: 50_000 }, Checksum::V4([v4[1], v4[0]])),
        "data-v6" => {
            let v6 = |last| [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
            (ports, Checksum::V6([v6(1), v6(2)]))
        }
        _ => (ports, Checksum::V4(v4)),
    }
}

const CLIENT_SEED: [u8; 32] = [0x11; 32];
const SERVER_SEED: [u8; 32] = [0x22; 32];

/// The path of the client.
fn path() -> FourTuple {
    let end = |address, port| Address { address, port };
    FourTuple { local: end(1, 1), remote: end(2, 2) }
}

fn inner_syn() -> Segment<Bytes> {
    let options = HandshakeOptions { sack_permitted: true, ..HandshakeOptions::default() };
    bare(header(100, 0, Flags::SYN, 65_535), Options::Handshake(options))
}

fn inner_syn_ack() -> Segment<Bytes> {
    Segment { header: header(200, 101, Flags::SYN | Flags::ACK, 65_535), ..inner_syn() }
}

fn inner_data() -> Segment<Bytes> {
    hello(header(101, 201, Flags::ACK, 512), None)
}

fn send(seal: &mut Seal, now: Time, outgoing: &Outgoing, segment: &Segment<Bytes>) -> Vec<u8> {
    let mut datagram = vec![];
    seal.seal(now, outgoing, segment, &mut datagram).unwrap();
    datagram
}

/// Two ends with these ciphers, the client's initiation, and the response.
fn handshake(ciphers: CipherPreference, with_cookie: bool) -> (Seal, Seal, Vec<Vec<u8>>) {
    let (client_key, server_key) = (SecretKey::new([1; 32]), SecretKey::new([2; 32]));
    let responder = server_key.public();
    let (now, there) = (Time::ZERO, Outgoing::new(path()));
    let timestamp = Timestamp::since_1970(Span::from_millis(1_700_000_000_250));
    let config = SealConfig { ciphers, ..SealConfig::default() };
    let mut client = Seal::initiator(client_key, responder, 7, config, timestamp, CLIENT_SEED);
    let initiation = send(&mut client, now, &there, &inner_syn());
    let mut datagrams = vec![initiation.clone()];
    if with_cookie {
        let cookie = testing::cookie(&responder, &initiation, [0xaa; 16]);
        client.open(now, path(), cookie[..].into()).unwrap();
        datagrams.extend([cookie, send(&mut client, now, &there, &inner_syn())]);
    }
    let listening = ListenerConfig { connection: config, ..ListenerConfig::default() };
    let mut listener = Listener::new(now, server_key, listening, SERVER_SEED);
    let Ok(Answer::Accept { seal: mut server, segment, .. }) =
        listener.handle(now, path().reversed(), &initiation, 9, &mut vec![])
    else {
        panic!("it is not accepted")
    };
    assert_eq!(segment, inner_syn());
    let response = send(&mut server, now, &Outgoing::new(path().reversed()), &inner_syn_ack());
    assert_eq!(client.open(now, path(), response[..].into()), Ok(Some(inner_syn_ack())));
    datagrams.push(response);
    (client, *server, datagrams)
}

/// The exchange of sealed datagrams that the page describes.
fn sealed() -> Vec<(&'static str, Vec<u8>)> {
    let publics = [[1; 32], [2; 32]].map(|secret| SecretKey::new(secret).public().0).concat();
    let mut page =
        vec![("public-keys", publics), ("ephemeral-keys", testing::ephemerals(CLIENT_SEED, SERVER_SEED).concat())];
    let (mut client, mut server, datagrams) = handshake(CipherPreference::default(), true);
    page.extend(["initiation", "cookie", "initiation-with-cookie", "sealed-response"].into_iter().zip(datagrams));
    let (now, later) = (Time::ZERO, Time::ZERO.saturating_add(Span::from_secs(120)));
    let (there, home) = (Outgoing::new(path()), Outgoing::new(path().reversed()));
    let (data, back) = (inner_data(), hello(header(201, 101, Flags::ACK, 512), None));
    let datagram = send(&mut client, now, &there, &data);
    assert_eq!(server.open(now, home.tuple, datagram[..].into()), Ok(Some(data.clone())));
    page.push(("sealed-data", datagram));
    let datagram = send(&mut server, now, &home, &back);
    // It arrives when the keys are old.
    assert_eq!(client.open(later, path(), datagram[..].into()), Ok(Some(back)));
    page.push(("sealed-data-back", datagram));
    let second = Outgoing { path: PathId::new(1), ..there };
    let datagram = send(&mut client, later, &Outgoing { pad_to: 112, ..second }, &data);
    assert_eq!(server.open(later, home.tuple, datagram[..].into()), Ok(Some(data.clone())));
    page.push(("padded", datagram));
    let text = "hello, fragments! ".repeat(5)[..80].to_owned();
    let long = Segment { content: Content::Data(text.into()), ..data.clone() };
    let both = send(&mut client, later, &Outgoing { datagram_max: 108, ..second }, &long);
    for (name, datagram) in ["fragment-1", "fragment-2"].into_iter().zip(both.chunks(108)) {
        let opened = server.open(later, home.tuple, datagram.into());
        assert_eq!(opened, Ok((name == "fragment-2").then(|| long.clone())));
        page.push((name, datagram.to_vec()));
    }
    let (mut request, mut answer) = (vec![], vec![]);
    client.poll_transmit(later, &mut request).unwrap();
    server.open(later, home.tuple, request[..].into()).unwrap();
    server.poll_transmit(later, &mut answer).unwrap();
    client.open(later, path(), answer[..].into()).unwrap();
    let rekeyed = send(&mut client, later, &there, &data);
    assert_eq!(server.open(later, home.tuple, rekeyed[..].into()), Ok(Some(data.clone())));
    let mut reset = vec![];
    assert!(Resets::new(&SecretKey::new([2; 32])).answer(later, path().local, &rekeyed, &mut reset));
    assert!(client.is_reset(&reset));
    page.extend([("request", request), ("answer", answer), ("sealed-data-rekeyed", rekeyed)]);
    page.push(("stateless-reset", reset));
    // A NAT gives the client another address: the server gives the token of that, too.
    let elsewhere = Address { address: 3, port: 3 };
    server.validate(FourTuple { remote: elsewhere, ..home.tuple });
    let datagram = send(&mut client, later, &there, &data);
    let opened = server.open(later, FourTuple { remote: elsewhere, ..home.tuple }, datagram[..].into());
    assert_eq!(opened, Ok(Some(data.clone())));
    let (mut token, mut reset) = (vec![], vec![]);
    server.poll_transmit(later, &mut token).unwrap();
    assert!(Resets::new(&SecretKey::new([2; 32])).answer(later, elsewhere, &datagram, &mut reset));
    assert!(!client.is_reset(&reset), "it has no token of that address");
    assert_eq!(client.open(later, path(), token[..].into()), Ok(None));
    assert!(client.is_reset(&reset));
    page.extend([("token", token), ("stateless-reset-elsewhere", reset)]);
    for (cipher, names) in [
        (Cipher::Aes128Gcm, ["aes-128-initiation", "aes-128-response", "aes-128-data"]),
        (Cipher::Aes256Gcm, ["aes-256-initiation", "aes-256-response", "aes-256-data"]),
        (Cipher::Aegis128L, ["aegis-initiation", "aegis-response", "aegis-data"]),
    ] {
        let (mut client, mut server, mut datagrams) = handshake(CipherPreference::new(&[cipher]), false);
        let datagram = send(&mut client, now, &there, &data);
        assert_eq!(server.open(now, home.tuple, datagram[..].into()), Ok(Some(data.clone())));
        datagrams.push(datagram);
        page.extend(names.into_iter().zip(datagrams));
    }
    page
}

#[test]
fn the_page_has_the_bytes_that_are_sent() {
    let mut page = page();
    let mut wrong = String::new();
    let encoded = segments().into_iter().map(|(name, segment)| {
        let (ports, checksum) = network(name);
        let mut bytes = vec![];
        encode(&segment, ports, checksum, &mut bytes);
        (name, bytes)
    });
    for (name, bytes) in encoded.chain(sealed()) {
        if page.remove(name).is_none_or(|on_page| on_page != bytes) {
            wrong += &block(name, &bytes);
        }
    }
    assert!(wrong.is_empty(), "the page should have\n{wrong}");
    assert!(page.is_empty(), "nobody makes these: {:?}", page.keys());
}

#[test]
fn the_page_is_understood() {
    let page = page();
    for (name, segment) in segments() {
        let (ports, checksum) = network(name);
        assert_eq!(decode(page[name].clone().into(), checksum), Ok((ports, segment)), "{name}");
    }
}

/// The block as printed on the page.
fn block(name: &str, bytes: &[u8]) -> String {
    let line = |bytes: &[u8]| {
        let words = bytes.chunks(4).map(|word| word.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        words.collect::<Vec<_>>().join(" ")
    };
    let lines: Vec<_> = bytes.chunks(32).map(line).collect();
    format!("```vector {name}\n{}\n```\n", lines.join("\n"))
}
