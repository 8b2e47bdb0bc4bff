//! The vectors of docs/wire.md: the fields have what the page's words say of each.

use std::collections::BTreeMap;

use crate::hostile::segment;
use crate::tool::{Frame, Way, fields, is_there, named, text, tshark, udp, v4, v6};
use Way::{Back, There};

/// All fields of the script, in the order in which rows below have them.
pub(crate) const FIELDS: &[&str] = &[
    "mse",
    "plain",
    "multistream.version",
    "multistream.streams",
    "multistream.features",
    "multistream.paths",
    "multistream.nonces",
    "multistream.many",
    "multistream.extents",
    "multistream.credit",
    "stream.id",
    "stream.ssn",
    "stream.len",
    "stream.data",
    "expected.id",
    "expected.ssn",
    "expected.delay",
    "expected.ce",
    "expected.ect0",
    "expected.ect1",
    "path.kind",
    "path.token",
    "extent.start",
    "extent.len",
    "extent.part",
    "record.kind",
    "record.id",
    "record.ssn",
    "record.code",
    "record.over",
    "record.limit",
    "record.segments",
    "record.delay",
    "datagram",
    "sender",
    "receiver",
    "answers",
    "noise.ephemeral",
    "noise.static",
    "noise.payload",
    "mac1",
    "mac2",
    "has_cookie",
    "cookie",
    "cookie.mac",
    "data.path",
    "data.grease",
    "data.counter",
    "data.len",
    "data.sealed",
    "tag",
    "reset.token",
];

/// The vectors of the page.
pub(crate) fn vectors() -> BTreeMap<String, Vec<u8>> {
    let page = text("wire.md");
    let blocks = page.split("```vector ").skip(1).map(|block| {
        let (name, rest) = block.split_once('\n').unwrap();
        let digits: Vec<u8> = rest.split_once("```").unwrap().0.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        (name.to_owned(), digits.chunks(2).map(byte).collect())
    });
    blocks.collect()
}

/// The segments of the page with streams over IPv4, in its order, as a connection.
pub(crate) const SEGMENTS: [(&str, Way, &str); 15] = [
    (
        "syn",
        There,
        "mse=1 multistream.version=2 multistream.streams=16 multistream.features=0x01 multistream.paths=1 multistream.nonces=0 \
         multistream.many=0 multistream.extents=0 multistream.credit=20",
    ),
    (
        "syn-ack",
        Back,
        "mse=1 multistream.version=2 multistream.streams=8 multistream.features=0x00 multistream.paths=0 multistream.nonces=0 \
         multistream.many=0 multistream.extents=0 multistream.credit=20",
    ),
    ("data", There, "mse=1 stream.id=3 stream.ssn=258 stream.len=5 stream.data=68656c6c6f"),
    ("acknowledgement", There, "mse=1 expected.id=3 expected.ssn=259"),
    ("late-acknowledgement", There, "mse=1 expected.id=3 expected.ssn=259 expected.delay=1000"),
    (
        "counting-acknowledgement",
        There,
        "mse=1 expected.id=3 expected.ssn=259 expected.delay=0 expected.ce=1 expected.ect0=65535 expected.ect1=0",
    ),
    ("finish", There, "mse=1 stream.id=0 stream.ssn=0 stream.len=8 record.kind=1 record.id=3 record.ssn=260"),
    (
        "reset",
        There,
        "mse=1 stream.id=0 stream.ssn=1 stream.len=8 record.kind=2 record.id=4 record.ssn=16777215 record.code=7",
    ),
    (
        "stop",
        There,
        "mse=1 stream.id=0 stream.ssn=2 stream.len=8 record.kind=3 record.id=5 record.ssn=9 record.code=65535",
    ),
    (
        "credit",
        There,
        "mse=1 stream.id=0 stream.ssn=3 stream.len=8 record.kind=4 record.id=255 record.over=2 record.limit=4294967040",
    ),
    (
        "acknowledge-each",
        There,
        "mse=1 stream.id=0 stream.ssn=4 stream.len=8 record.kind=5 record.segments=16 record.delay=25000",
    ),
    (
        "finish-and-credit",
        There,
        "mse=1 stream.id=0 stream.ssn=4 stream.len=16 record.kind=1,4 record.id=3,255 record.ssn=260 record.over=2 \
         record.limit=4294967040",
    ),
    ("challenge", There, "mse=1 path.kind=1 path.token=0102030405060708"),
    ("response", There, "mse=1 path.kind=2 path.token=0102030405060708"),
    ("leave", There, "mse=1 path.kind=3 path.token=0102030405060708"),
];

#[track_caller]
fn holds(frames: &[Frame], names: &[&str], expected: &[&str]) {
    for (at, (found, expected)) in fields(frames, names).iter().zip(expected).enumerate() {
        assert_eq!(found, expected, "packet {at}");
    }
}

#[test]
fn segments_are_shown_as_the_page_describes_them() {
    if !is_there() {
        return;
    }
    let vectors = vectors();
    let expected = SEGMENTS.map(|(_, _, row)| row);
    holds(&SEGMENTS.map(|(name, way, _)| v4(way, &vectors[name]).into()), FIELDS, &expected);
    // The handshake of the page over IPv6, and its segment there.
    let v6 = [("syn", There), ("syn-ack", Back), ("data-v6", There)].map(|(name, way)| v6(way, &vectors[name]).into());
    holds(&v6, FIELDS, &expected[..3]);
}

/// Sec. 2.7, worked by hand: the page's segment of nine bytes begins at 1001, and its SYN has 1000. Its second part begins with the third of them.
#[test]
fn extent_says_which_part_of_a_segment_came() {
    if !is_there() {
        return;
    }
    let vectors = vectors();
    let extent = [253, 9, 0x4d, 0x53, 4, 0, 1, 0, 9, 1, 1, 1];
    let content = &vectors["data"][20..];
    let first = segment(&extent, &content[..6]);
    let mut second = segment(&extent, &content[6..]);
    second[7] += 6;
    let sent = [segment(&extent, content), first, second].map(|segment| v4(There, &segment));
    let handshake = ["syn", "syn-ack"].map(|name| v4(if name == "syn" { There } else { Back }, &vectors[name]));
    let frames: Vec<Frame> = handshake.into_iter().chain(sent).map(Frame::from).collect();
    assert_eq!(
        fields(&frames, FIELDS)[2..],
        [
            "mse=1 stream.id=3 stream.ssn=258 stream.len=5 stream.data=68656c6c6f extent.start=1 extent.len=9",
            "mse=1 stream.id=3 stream.ssn=258 stream.len=2 stream.data=6865 extent.start=1 extent.len=9 extent.part=1",
            "mse=1 extent.start=1 extent.len=9 extent.part=1",
        ]
    );
}

/// A capture that begins later shows the connection from the first option of ours on.
#[test]
fn connection_without_handshake_is_recognised_by_option() {
    if !is_there() {
        return;
    }
    let vectors = vectors();
    let frames = ["data", "acknowledgement", "data"].map(|name| v4(There, &vectors[name]).into());
    holds(&frames, FIELDS, &["", SEGMENTS[3].2, SEGMENTS[2].2]);
}

/// The page: if the answer lacks flag or option, or the segment that acknowledges it the flag, the connection is plain TCP.
#[test]
fn plain_tcp_has_no_streams() {
    if !is_there() {
        return;
    }
    let vectors = vectors();
    let plain = &vectors["plain"];
    holds(&[v4(There, plain).into()], FIELDS, &[""]);
    let mut refusal = vectors["syn-ack"].clone();
    refusal[12] &= !2;
    let begin = |answer: &[u8]| vec![v4(There, &vectors["syn"]).into(), v4(Back, answer).into()];
    let after = |answer: &[u8]| {
        let mut frames: Vec<Frame> = begin(answer);
        frames.extend([v4(There, plain).into(), v4(There, plain).into()]);
        fields(&frames, &["mse", "plain", "stream.id", "half_request"])
    };
    let granted = after(&vectors["syn-ack"]);
    assert_eq!(granted, ["mse=1", "mse=1", "mse=0 plain=1", ""]);
    let refused = after(&refusal);
    assert_eq!((refused[0].as_str(), refused[2].as_str(), refused[3].as_str()), ("mse=1", "", ""));
    assert!(refused[1].contains("half_request"), "{}", refused[1]);
}

const STATIC: usize = 48;
const TAG: usize = 16;

/// The row of a datagram, from its bytes where the page gives positions (sec. 3.1).
fn row(name: &str, datagram: &[u8]) -> String {
    let hex = |from: usize, to: usize| datagram[from..to].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let end = datagram.len();
    let answers = |frame: usize| format!("answers={frame}");
    match name {
        "initiation" | "initiation-with-cookie" => format!(
            "datagram=1 sender=0x00000701 noise.ephemeral={} noise.static={} noise.payload={} mac1={} mac2={} has_cookie={}",
            hex(8, 40),
            hex(40, 40 + STATIC),
            hex(88, end - 2 * TAG),
            hex(end - 2 * TAG, end - TAG),
            hex(end - TAG, end),
            u8::from(name != "initiation"),
        ),
        "cookie" => format!(
            "datagram=3 receiver=0x00000701 {} cookie={} cookie.mac={}",
            answers(1),
            "aa".repeat(16),
            hex(24, 40)
        ),
        "sealed-response" => format!(
            "datagram=2 receiver=0x00000701 {} noise.ephemeral={} noise.payload={}",
            answers(1),
            hex(8, 40),
            hex(40, end)
        ),
        "stateless-reset" => format!("datagram=5 sender=0x00000901 reset.token={}", hex(8, 24)),
        _ => {
            // The page says path, counter and the receiver's index of each; the padded one has 112 bytes, of which 32 are around the plain text.
            let (receiver, path, counter) = match name {
                "sealed-data" => ("900", 0, 0),
                "sealed-data-back" => ("701", 0, 0),
                "padded" => ("900", 1, 0),
                "fragment-1" => ("900", 1, 1),
                "fragment-2" => ("900", 1, 2),
                "request" => ("900", 15, 0),
                "answer" => ("701", 15, 0),
                "sealed-data-rekeyed" => ("901", 0, 0),
                "token" => ("702", 15, 0),
                name => panic!("{name}"),
            };
            format!(
                "datagram=4 receiver=0x00000{receiver} data.path={path} data.grease=0x{} data.counter={counter} data.len={} \
                 data.sealed={} tag={}",
                hex(2, 4),
                end - 2 * TAG,
                hex(16, end - TAG),
                hex(end - TAG, end),
            )
        }
    }
}

/// The sealed datagrams of the page, in its order.
pub(crate) const DATAGRAMS: [(&str, Way); 14] = [
    ("initiation", There),
    ("cookie", Back),
    ("initiation-with-cookie", There),
    ("sealed-response", Back),
    ("sealed-data", There),
    ("sealed-data-back", Back),
    ("padded", There),
    ("fragment-1", There),
    ("fragment-2", There),
    ("request", There),
    ("answer", Back),
    ("sealed-data-rekeyed", There),
    ("stateless-reset", Back),
    ("token", Back),
];

#[test]
fn datagrams_show_what_is_not_encrypted() {
    if !is_there() {
        return;
    }
    let vectors = vectors();
    let frames = DATAGRAMS.map(|(name, way)| udp(way, [50_000, 4433], &vectors[name]).into());
    let expected = DATAGRAMS.map(|(name, _)| row(name, &vectors[name]));
    holds(&frames, FIELDS, &expected.each_ref().map(String::as_str));
}

/// Data with a known index comes from another address of the connection; others' datagrams are not taken, on the same port or another one.
#[test]
fn datagrams_are_recognised_by_index_and_others_are_not() {
    if !is_there() {
        return;
    }
    let vectors = vectors();
    let ports = [50_000, 4433];
    // [rfc-8489]: a binding request; it may share the port.
    let stun = [&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], &[7; 12]].concat();
    // WireGuard's initiation has 148 bytes, and the same first four.
    let wireguard = [&[1, 0, 0, 0, 0, 0, 7, 1][..], &[9; 124], &[0; 16]].concat();
    let frames = [
        udp(There, [50_001, 4433], &vectors["sealed-data"]).into(),
        udp(There, [50_002, 51_820], &wireguard).into(),
        udp(There, ports, &vectors["initiation"]).into(),
        udp(Back, ports, &vectors["sealed-response"]).into(),
        udp(There, ports, &vectors["sealed-data"]).into(),
        udp(There, ports, &stun).into(),
        udp(There, [50_003, 4433], &vectors["sealed-data"]).into(),
        udp(There, [50_004, 4433], &[7; 100]).into(),
    ];
    assert_eq!(
        fields(&frames, &["datagram"]),
        ["", "", "datagram=1", "datagram=2", "datagram=4", "", "datagram=4", ""]
    );
    let protocols = tshark(&frames, &["-T", "fields", "-e", "_ws.col.Protocol"]);
    assert_eq!(protocols.lines().nth(5), Some("STUN"), "{protocols}");
}

/// Filters and columns as README.md shows them.
#[test]
fn filters_and_columns_work() {
    if !is_there() {
        return;
    }
    let vectors = vectors();
    let frames = SEGMENTS.map(|(name, way, _)| v4(way, &vectors[name]).into());
    let found = tshark(&frames, &["-Y", "anabranch.stream.id == 3", "-T", "fields", "-e", "frame.number"]);
    assert_eq!(found, "3\n");
    let found = tshark(&frames, &["-Y", "anabranch.record.kind == \"finish\"", "-T", "fields", "-e", "frame.number"]);
    assert_eq!(found, "7\n12\n");
    // A summary builds no tree of fields for others, so this is another way through the script; and so are two passes.
    for passes in [&[][..], &["-2"]] {
        let summary = tshark(&frames, passes);
        let line = summary.lines().nth(2).unwrap();
        assert!(line.contains(" MFast ") && line.ends_with("| stream 3 #258, 5 bytes"), "{line}");
        assert!(summary.lines().all(|line| line.contains(" MFast ")), "{summary}");
    }
}

/// The fields are those of the script, and README.md has each.
#[test]
fn fields_are_tested_and_described() {
    let (mut named, mut tested) = (named("ProtoField."), FIELDS.to_vec());
    named.sort();
    tested.sort_unstable();
    assert_eq!(named, tested);
    let readme = text("wireshark/README.md");
    let missing: Vec<_> = named.iter().filter(|name| !readme.contains(&format!("`anabranch.{name}`"))).collect();
    assert!(missing.is_empty(), "docs/wireshark/README.md says nothing of {missing:?}");
}
