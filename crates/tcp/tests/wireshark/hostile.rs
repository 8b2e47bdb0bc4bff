//! Packets that nobody should send: the script says what is wrong with them, and never fails.

use crate::tool::{Frame, Way, fields, is_there, named, text, tshark, udp, v4};
use crate::vectors::{DATAGRAMS, SEGMENTS, vectors};
use Way::{Back, There};

/// The segment with this change.
fn changed(segment: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut segment = segment.to_vec();
    change(&mut segment);
    segment
}

/// A segment of stream 3 with these options, and this content with its stream header.
pub(crate) fn segment(options: &[u8], content: &[u8]) -> Vec<u8> {
    let mut segment = vectors()["data"][..20].to_vec();
    segment[12] = (20 + options.len() as u8) / 4 * 16 + 2;
    segment.extend(options);
    segment.extend(content);
    segment
}

/// Where the page's SYN and its answer have the version: after the header, MSS, window scale, SACK permitted, and kind, length and identifier of the option.
const VERSION: usize = 20 + 4 + 3 + 2 + 4;

/// The packet of a segment from the client's port `port`, or to it.
fn at(port: u16, way: Way, segment: &[u8]) -> Frame {
    let mut segment = segment.to_vec();
    let place = if way == There { 0 } else { 2 };
    segment[place..place + 2].copy_from_slice(&port.to_be_bytes());
    v4(way, &segment).into()
}

fn marks(row: &str) -> Vec<&str> {
    row.split(' ').filter_map(|word| word.split('=').next().filter(|name| !name.is_empty())).collect()
}

#[test]
fn malformed_segments_are_marked() {
    if !is_there() {
        return;
    }
    let vectors = vectors();
    let (syn, answer) = (&vectors["syn"], &vectors["syn-ack"]);
    let record = |kind: u8| [&[0, 0, 0, 9, kind, 3, 0, 0], &[0; 4][..]].concat();
    // Sec. 1.3, 1.4: what a receiver drops; sec. 1.2: options; sec. 2.1, 2.5: what an end should not send.
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("short_content", segment(&[], &[3])),
        ("short_content", segment(&[], &[3, 0, 1, 2])),
        ("bad_records", segment(&[], &[0, 0, 0, 9, 1, 3, 0, 0, 0])),
        ("bad_records", segment(&[], &[&[0, 0, 0, 9][..], &[1, 3, 0, 0, 0, 0, 1, 4].repeat(5)].concat())),
        ("bad_record", segment(&[], &record(0))),
        ("bad_record", segment(&[], &record(6))),
        ("bad_stream", segment(&[], &[9, 0, 0, 0, 1])),
        ("bad_option", segment(&[8, 9, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1], &[3, 0, 0, 0, 1])),
        ("bad_option", segment(&[5, 2, 1, 1], &[3, 0, 0, 0, 1])),
        ("bad_option", segment(&[253, 1, 1, 1], &[3, 0, 0, 0, 1])),
        ("bad_option", segment(&[1, 1, 253, 8], &[3, 0, 0, 0, 1])),
        ("bad_option", segment(&[1, 1, 1, 253], &[3, 0, 0, 0, 1])),
        ("unknown_option", segment(&[253, 7, 0x4d, 0x53, 0, 0, 0, 1], &[3, 0, 0, 0, 1])),
        ("unknown_option", segment(&[253, 13, 0x4d, 0x53, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1], &[])),
        ("no_mse", changed(&vectors["data"], |segment| segment[12] &= !2)),
        ("bad_path_segment", [&vectors["challenge"][..], &[3, 0, 0, 0, 1]].concat()),
        ("bad_extent", segment(&[253, 9, 0x4d, 0x53, 4, 0, 1, 0, 8, 1, 1, 1], &[3, 0, 1, 2, 1, 2, 3, 4, 5])),
    ];
    // Each on a connection of its own. The first segment after the handshake decides that there are streams.
    let data = &vectors["data"];
    let connections = cases.iter().zip(50_000..).flat_map(|((_, bad), port)| {
        [(There, syn), (Back, answer), (There, data), (There, bad)].map(|(way, segment)| at(port, way, segment))
    });
    let found = fields(&connections.collect::<Vec<_>>(), &experts());
    for (rows, (name, bad)) in found.chunks(4).zip(&cases) {
        assert_eq!(rows[..3], ["", "", ""]);
        assert_eq!(marks(&rows[3]), [*name], "{bad:02x?}");
    }
    // Handshakes: the SYN, or its answer.
    let handshakes: Vec<(&str, usize, [Vec<u8>; 2])> = vec![
        ("bad_version", 0, [changed(syn, |syn| syn[VERSION] = 3), answer.clone()]),
        ("half_request", 0, [changed(syn, |syn| syn[12] &= !2), answer.clone()]),
        ("half_request", 0, [changed(syn, |syn| syn[VERSION + 1] = 0), answer.clone()]),
        ("bad_grant", 1, [syn.clone(), changed(answer, |answer| answer[VERSION + 1] = 17)]),
        ("bad_grant", 1, [changed(syn, |syn| syn[12] &= !2), answer.clone()]),
    ];
    let connections = handshakes
        .iter()
        .zip(50_000..)
        .flat_map(|((_, _, [syn, answer]), port)| [at(port, There, syn), at(port, Back, answer)]);
    let found = fields(&connections.collect::<Vec<_>>(), &experts());
    for (rows, (name, row, _)) in found.chunks(2).zip(&handshakes) {
        assert!(marks(&rows[*row]).contains(name), "{name}: {rows:?}");
    }
    // An answer that grants nothing, and then the flag; extents that both ends have, and a segment without.
    let refused = changed(answer, |answer| answer[12] &= !2);
    let frames = [syn, &refused, &vectors["data"]];
    let found =
        fields(&[v4(There, frames[0]).into(), v4(Back, frames[1]).into(), v4(There, frames[2]).into()], &experts());
    assert!(found[2].starts_with("stray_mse="), "{found:?}");
    let [asks, grants] = [syn, answer].map(|segment| changed(segment, |segment| segment[VERSION + 2] = 8));
    let frames = [v4(There, &asks).into(), v4(Back, &grants).into(), v4(There, &vectors["data"]).into()];
    let found = fields(&frames, &experts());
    assert!(found[2].starts_with("no_extent="), "{found:?}");
}

#[test]
fn malformed_datagrams_are_marked() {
    if !is_there() {
        return;
    }
    let vectors = vectors();
    let cases = [
        ("bad_length", vectors["cookie"][..39].to_vec()),
        ("bad_length", [&vectors["cookie"][..], &[0]].concat()),
        ("bad_length", [&vectors["stateless-reset"][..], &[0]].concat()),
        ("bad_length", vectors["sealed-data"][..35].to_vec()),
        ("bad_length", vectors["sealed-response"][..82].to_vec()),
        ("bad_length", vectors["initiation"][..171].to_vec()),
        ("bad_header", changed(&vectors["cookie"], |datagram| datagram[1] = 1)),
        ("bad_header", changed(&vectors["stateless-reset"], |datagram| datagram[3] = 1)),
        ("bad_path", changed(&vectors["sealed-data"], |datagram| datagram[1] = 16)),
        ("later_version", changed(&vectors["sealed-data"], |datagram| datagram[0] = 6)),
        ("later_version", vec![15]),
    ];
    let conversations = cases.iter().zip(50_000..).flat_map(|((_, bad), port)| {
        [&vectors["initiation"], bad].map(|datagram| Frame::from(udp(There, [port, 4433], datagram)))
    });
    let found = fields(&conversations.collect::<Vec<_>>(), &experts());
    for (rows, (name, bad)) in found.chunks(2).zip(&cases) {
        assert_eq!((rows[0].as_str(), &marks(&rows[1])[..]), ("", &[*name][..]), "{bad:02x?}");
    }
}

/// Each mark that the script can make is made by a test above, and README.md has it.
#[test]
fn marks_are_tested_and_described() {
    let source = include_str!("hostile.rs");
    let readme = text("wireshark/README.md");
    for name in experts() {
        // `cut` is tested below.
        assert!(source.contains(&format!("\"{name}")), "no test has {name}");
        assert!(readme.contains(&format!("`{name}`")), "docs/wireshark/README.md says nothing of {name}");
    }
}

/// A capture that stores the first bytes of each packet shows what is there.
#[test]
fn packets_cut_by_capture_show_what_is_there() {
    if !is_there() {
        return;
    }
    let vectors = vectors();
    let cut = |packet: Vec<u8>, most: usize| Frame { len: packet.len(), bytes: packet[..most].to_vec() };
    let data = v4(There, &vectors["data"]);
    let begin = [v4(There, &vectors["syn"]).into(), v4(Back, &vectors["syn-ack"]).into()];
    let frames = [&begin[..], &[cut(data.clone(), 44), cut(data.clone(), 43), cut(data, 40)]].concat();
    let found = fields(&frames, &["stream.id", "stream.ssn", "stream.len", "stream.data", "cut"]);
    assert_eq!(found[2], "stream.id=3 stream.ssn=258 stream.len=5");
    assert!(found[3].starts_with("cut=") && found[4].starts_with("cut="), "{found:?}");
}

/// Every vector cut at every byte, by the capture and by its sender; and thousands of packets with bytes changed, in all ways through the script.
#[test]
fn no_packet_makes_the_script_fail() {
    if !is_there() {
        return;
    }
    let vectors = vectors();
    let mut packets: Vec<Vec<u8>> = SEGMENTS.iter().map(|(name, way, _)| v4(*way, &vectors[*name])).collect();
    packets.extend(DATAGRAMS.iter().map(|(name, way)| udp(*way, [50_000, 4433], &vectors[*name])));
    packets.push(v4(There, &segment(&[253, 9, 0x4d, 0x53, 4, 0, 1, 0, 9, 1, 1, 1], &[3, 0, 1, 2, 1, 2, 3, 4, 5])));
    let mut frames: Vec<Frame> = packets.iter().cloned().map(Frame::from).collect();
    for packet in &packets {
        frames.extend((0..packet.len()).map(|most| Frame { len: packet.len(), bytes: packet[..most].to_vec() }));
        frames.extend((20..packet.len()).map(|most| resized(packet[..most].to_vec()).into()));
    }
    let mut state = 7u64;
    let mut draw = |below: usize| {
        // Any generator will do, so long as a failure comes again.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    for _ in 0..6000 {
        let mut packet = packets[draw(packets.len())].clone();
        for _ in 0..1 + draw(4) {
            let at = 20 + draw(packet.len() - 20);
            packet[at] = [0, 1, 2, 4, 253, 255, draw(256) as u8][draw(7)];
        }
        if draw(3) == 0 {
            let more = draw(40);
            packet.extend((0..more).map(|at| at as u8));
        }
        if draw(3) == 0 {
            packet.truncate(20 + draw(packet.len() - 20));
        }
        let packet = resized(packet);
        let most = if draw(4) == 0 { draw(packet.len() + 1) } else { packet.len() };
        frames.push(Frame { len: packet.len(), bytes: packet[..most].to_vec() });
    }
    assert!(tshark(&frames, &["-V"]).matches("Anabranch, ").count() > 3000);
    // Each on a connection of its own, too, because one packet of another may have made it plain.
    for (at, frame) in frames.iter_mut().enumerate() {
        if let Some(port) = frame.bytes.get_mut(20..22) {
            port.copy_from_slice(&(at as u16).to_be_bytes());
        }
    }
    tshark(&frames, &["-2", "-Y", "anabranch"]);
}

/// An IPv4 packet that says its length, and so does the UDP header in it.
fn resized(mut packet: Vec<u8>) -> Vec<u8> {
    let len = packet.len() as u16;
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    if packet[9] == 17 && packet.len() >= 28 {
        packet[24..26].copy_from_slice(&(len - 20).to_be_bytes());
    }
    packet
}

/// The names of the script's marks.
fn experts() -> Vec<&'static str> {
    named("ProtoExpert.new(").into_iter().map(|name| &*name.leak()).collect()
}
