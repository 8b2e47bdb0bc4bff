//! What a hostile peer can have us keep.

use super::*;
use crate::{Header, Options, Ssn, StreamBuffer, StreamHeader};

/// A sender with all that its window takes to send, which has grown for a while; and a peer that then acknowledges everything by SACK but
/// one segment. What is kept for it.
fn kept_for_a_peer_that_misses_one(mss: u16, send_memory: u64) -> (u64, usize) {
    let generous = Config { mss, receive_buffer: 1 << 30, send_memory, ..config() };
    let mut pair = Pair::established(generous.clone(), generous);
    let sid = pair.client.open();
    pair.client.write(sid, 4 << 30);
    pair.run_for(ms(650));
    // Whatever is sent again of it is lost as well.
    pair.up.lost_at = Some(pair.client_seq());
    pair.run_for(Span::from_secs(8));
    (pair.client.connection.sent() - pair.client.connection.acked(), pair.client.connection.board.len())
}

/// The peer's window is a gigabyte, and the application has more than that to send.
#[test]
fn what_a_peer_does_not_acknowledge_is_bounded_by_its_paths() {
    let (bytes, segments) = kept_for_a_peer_that_misses_one(1000, 256 << 20);
    assert!(bytes <= 8 << 20, "{bytes} bytes in {segments} segments");
}

/// The same with memory for less than its paths carry: before its repairs are given up, that is the limit.
#[test]
fn what_a_peer_does_not_acknowledge_is_bounded_by_memory() {
    let (bytes, segments) = kept_for_a_peer_that_misses_one(1000, 2 << 20);
    assert!(bytes <= 3 << 19, "{bytes} bytes in {segments} segments");
}

/// Of what waits on all streams together there is a quarter of the memory, however much each of them may have.
#[test]
fn what_waits_on_all_streams_is_a_quarter_of_the_memory() {
    let small = Config { send_memory: 1 << 20, ..config() };
    let mut pair = Pair::established(small.clone(), small);
    let taken = (0..8).map(|_| {
        let mut streams = pair.client.connection.streams();
        let sid = streams.open().expect("there are eight");
        streams.write(sid, &mut Marked { tag: 0, start: 0, len: 1 << 20 }).expect("it is open")
    });
    assert_eq!(taken.sum::<u32>(), 1 << 18);
}

/// Small segments cost more to keep than they carry.
#[test]
fn what_it_costs_to_keep_a_segment_counts() {
    let (bytes, segments) = kept_for_a_peer_that_misses_one(64, 1 << 20);
    // Three quarters of the memory, were an entry only as large as what it stands for.
    assert!(segments < (3 << 18) / (2 * 64), "{bytes} bytes in {segments} segments");
}

/// A peer that sends bytes one by one, with a hole before them: each costs a hundred times what the window counts.
#[test]
fn tiny_segments_above_a_hole_are_taken_as_long_as_they_cost_no_more_than_the_buffer() {
    let small = Config { receive_buffer: 1 << 20, stream_buffer: StreamBuffer::Bytes(1 << 20), ..config() };
    let mut pair = Pair::established(config(), small);
    let (tuple, now) = (pair.server.tuple, pair.now);
    let header = Header {
        seq: pair.client_at(1),
        ack: pair.server_seq(),
        flags: Flags::ACK | Flags::MSE,
        window: 1000,
        ..Header::default()
    };
    let byte = |number: u64| {
        let content = Content::Data(Marked { tag: 0, start: number, len: 1 });
        let stream_header = Some(StreamHeader { sid: Sid::new(1), ssn: Ssn::of(number) });
        let header = Header { seq: header.seq.plus(5 * number), ..header };
        Segment { header, options: Options::default(), stream_header, content }
    };
    let server = &mut pair.server.connection;
    for number in 1..200_000 {
        server.handle_segment(now, tuple, byte(number));
    }
    let buffered = server.buffered();
    assert!((1000..=(1 << 20) / 100 + (1 << 16)).contains(&buffered), "{buffered} bytes are held");
    // What fills the hole is taken, and then what was not.
    server.handle_segment(now, tuple, byte(0));
    assert_eq!(server.buffered(), buffered + 1);
    server.handle_segment(now, tuple, byte(buffered + 1));
    assert_eq!(server.buffered(), buffered + 2);
}
