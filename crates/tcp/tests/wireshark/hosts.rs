//! What two hosts of ours send, as the script shows it: each stream's segments, by their numbers, are what was written.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use anabranch_cc::{Settings as Law, registry};
use anabranch_proto::{Address, Config, Read};
use anabranch_tcp::{Mux, Settings, SocketId};
use anabranch_units::{Span, Time};
use bytes::Bytes;

use crate::tool::{Frame, fields, is_there};

const ENDS: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];
const PORT: u16 = 80;
const DELAY: Span = Span::from_millis(10);

fn address(end: [u8; 4], port: u16) -> Address {
    Address { address: std::net::Ipv4Addr::from(end).to_ipv6_mapped().to_bits(), port }
}

fn host(at: usize, streams: u16) -> Mux {
    let law = Law::default_for(registry::find("reno").unwrap());
    let connection = Config { streams, timestamps: true, ..Config::new(law) };
    let settings = Settings { addresses: vec![IpAddr::from(ENDS[at])], connection, sockets_max: 100, backlog: 10 };
    Mux::new(settings, [at as u8 + 1; 32]).unwrap()
}

/// What connection `at` writes.
fn content(at: usize) -> Bytes {
    (0..4000 + 100 * at).map(|place| (place % 251) as u8 ^ (17 * at) as u8).collect()
}

/// Opens connections from the first host to the second, each of which writes its content. Every packet that is sent is captured; the network loses each `loses`-th.
fn exchange(connections: usize, streams: [u16; 2], loses: usize) -> Vec<Frame> {
    let mut hosts = [host(0, streams[0]), host(1, streams[1])];
    let (mut now, mut frames, mut flying) = (Time::ZERO + Span::from_secs(1), vec![], VecDeque::new());
    hosts[1].listen(PORT).unwrap();
    let (here, there) = (address(ENDS[0], 0), address(ENDS[1], PORT));
    let mut writers: Vec<(SocketId, Bytes)> =
        (0..connections).map(|at| (hosts[0].connect(now, here, there).unwrap(), content(at))).collect();
    let mut readers: Vec<(SocketId, Vec<u8>, bool)> = vec![];
    let end = now + Span::from_secs(60);
    while now < end && !(readers.len() == connections && readers.iter().all(|reader| reader.2)) {
        for (id, rest) in &mut writers {
            if !rest.is_empty() && !hosts[0].is_opening(*id) {
                hosts[0].write(*id, rest).unwrap();
                if rest.is_empty() {
                    hosts[0].close(*id);
                }
            }
        }
        readers.extend(hosts[1].accept(PORT).map(|id| (id, vec![], false)));
        for (id, got, is_over) in readers.iter_mut().filter(|reader| !reader.2) {
            match hosts[1].read(*id, 10_000).unwrap() {
                Read::Data(data) => got.extend_from_slice(&data),
                Read::End => *is_over = true,
                Read::Nothing => {}
                Read::Reset(code) => panic!("reset, {code}"),
            }
        }
        for (from, host) in hosts.iter_mut().enumerate() {
            let mut packet = vec![];
            while host.poll_transmit(now, &mut packet) {
                let packet = std::mem::take(&mut packet);
                frames.push(packet.clone().into());
                if loses == 0 || frames.len() % loses != 0 {
                    flying.push_back((now + DELAY, 1 - from, Bytes::from(packet)));
                }
            }
            while host.poll_event().is_some() {}
        }
        let timer = hosts.iter().map(Mux::poll_timeout).min().unwrap();
        let arrival = flying.front().map_or(Time::NEVER, |packet| packet.0);
        now = timer.min(arrival).min(now + Span::from_millis(1)).max(now);
        while flying.front().is_some_and(|packet| packet.0 <= now) {
            let (_, to, packet) = flying.pop_front().unwrap();
            hosts[to].handle_packet(now, &packet);
        }
        hosts.iter_mut().for_each(|host| host.handle_timeout(now));
    }
    let mut got: Vec<_> = readers.into_iter().map(|reader| reader.1).collect();
    let mut expected: Vec<_> = (0..connections).map(|at| content(at).to_vec()).collect();
    got.sort();
    expected.sort();
    assert!(got == expected, "what arrived is not what was written");
    frames
}

/// The segments of the client by stream and number, as the script shows them. What comes again is the same.
fn streams(frames: &[Frame], rows: &[String]) -> BTreeMap<u64, BTreeMap<u64, String>> {
    let mut streams = BTreeMap::<_, BTreeMap<_, _>>::new();
    for (frame, row) in frames.iter().zip(rows) {
        let words: BTreeMap<_, _> = row.split(' ').filter_map(|word| word.split_once('=')).collect();
        if let Some(id) = words.get("stream.id")
            && frame.bytes[12..16] == ENDS[0]
            && *id != "0"
        {
            let (stream, number) = (id.parse().unwrap(), words["stream.ssn"].parse().unwrap());
            let before = streams.entry(stream).or_default().insert(number, words["stream.data"].to_owned());
            assert!(
                before.is_none_or(|before| before == words["stream.data"]),
                "stream {stream}, {number}: other data"
            );
        }
    }
    streams
}

const NAMES: [&str; 9] = [
    "mse",
    "plain",
    "stream.id",
    "stream.ssn",
    "stream.len",
    "stream.data",
    "extent.len",
    "extent.part",
    "expected.id",
];

fn hex(data: &[u8]) -> String {
    data.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[track_caller]
fn has_all(streams: &BTreeMap<u64, BTreeMap<u64, String>>, connections: usize) {
    // Sec. 2.2: consecutive numbers from 0 on. Each stream begins with the number of its connection, which is the host's own matter.
    let mut whole: Vec<String> = vec![];
    for (stream, segments) in streams {
        assert!(segments.keys().copied().eq(0..segments.len() as u64), "stream {stream}: {:?}", segments.keys());
        whole.push(segments.values().map(String::as_str).collect());
    }
    assert_eq!(whole.len(), connections);
    for at in 0..connections {
        let written = hex(&content(at));
        assert_eq!(whole.iter().filter(|text| text.ends_with(&written)).count(), 1, "connection {at}");
    }
}

#[test]
fn streams_of_two_hosts_are_what_was_written() {
    if !is_there() {
        return;
    }
    for loses in [0, 9] {
        let frames = exchange(4, [255, 255], loses);
        let rows = fields(&frames, &NAMES);
        has_all(&streams(&frames, &rows), 4);
        // All but resets have the flag, and what acknowledges data names its stream.
        assert!(rows.iter().all(|row| row.starts_with("mse=1")), "{rows:?}");
        assert!(rows.iter().any(|row| row.contains("expected.id=")), "{rows:?}");
        assert!(!rows.iter().any(|row| row.contains("extent.part")), "{rows:?}");
    }
}

#[test]
fn plain_connections_of_two_hosts_have_no_streams() {
    if !is_there() {
        return;
    }
    // One asks and the other has none; nobody asks.
    for streams in [[255, 0], [0, 255], [0, 0]] {
        let rows = fields(&exchange(3, streams, 0), &NAMES);
        assert!(rows.iter().all(|row| !row.contains("stream.id")), "{rows:?}");
        assert_eq!(rows.iter().filter(|row| row.contains("mse=1")).count(), usize::from(streams[0] > 0), "{rows:?}");
    }
}

/// A middlebox splits segments (sec. 2.7): all parts have the options, and only the first one has the stream header.
#[test]
fn split_segments_are_shown_as_parts() {
    if !is_there() {
        return;
    }
    let sent = exchange(1, [255, 255], 0);
    let mut frames = vec![];
    for frame in &sent {
        let content = 20 + usize::from(frame.bytes[32] >> 4) * 4;
        if frame.bytes.len() - content < 500 {
            frames.push(frame.clone());
            continue;
        }
        let at = content + 200;
        let mut second = [&frame.bytes[..content], &frame.bytes[at..]].concat();
        let seq = u32::from_be_bytes(second[24..28].try_into().unwrap()).wrapping_add(200);
        second[24..28].copy_from_slice(&seq.to_be_bytes());
        for mut part in [frame.bytes[..at].to_vec(), second] {
            let len = (part.len() as u16).to_be_bytes();
            part[2..4].copy_from_slice(&len);
            frames.push(part.into());
        }
    }
    let split = frames.len() - sent.len();
    assert!(split > 1, "{split}");
    let rows = fields(&frames, &NAMES);
    let parts: Vec<_> = rows.iter().filter(|row| row.contains("extent.part=1")).collect();
    assert_eq!(parts.len(), 2 * split);
    for pair in parts.chunks(2) {
        assert!(pair[0].contains("stream.len=196 ") && !pair[1].contains("stream."), "{pair:?}");
    }
}
