//! How much memory a hostile peer can make us use.

use super::*;
use crate::{Header, Options, Ssn, StreamBuffer, StreamHeader};

/// A sender with endless data, whose window has grown for `grown`. The peer then acknowledges everything by SACK, except one
/// segment. Returns the bytes kept for this peer, and the window in segments when the loss is detected.
fn kept_for_a_peer_that_misses_one(mss: u16, send_memory: u64, grown: Span) -> (u64, usize, f64) {
    let generous = Config { mss, receive_buffer: 1 << 30, send_memory, ..config() };
    let mut pair = Pair::established(generous.clone(), generous);
    let sid = pair.client.open();
    pair.client.write(sid, 4 << 30);
    pair.run_for(grown);
    // All retransmissions of this segment are lost, too.
    pair.up.lost_at = Some(pair.client_seq());
    pair.run_for(ms(200));
    let window = pair.client.path().window;
    pair.run_for(Span::from_secs(8));
    let client = &pair.client.connection;
    (client.sent() - client.acked(), client.sender.board.len(), window)
}

/// The peer's window is a gigabyte, and the application has more data than that: the sender keeps the lost segment, and four
/// windows after it. Without this limit there are two windows in flight when it is lost (the window was twice as large), and one
/// more is sent for each lost retransmission.
#[test]
fn unacknowledged_data_is_bounded_by_paths() {
    let (bytes, segments, window) = kept_for_a_peer_that_misses_one(1000, 256 << 20, ms(550));
    let most = 5.0 * 1000.0 * window;
    assert!(most > f64::from(1 << 20), "below a megabyte there is no limit: {window}");
    assert!(bytes as f64 <= most, "{bytes} bytes in {segments} segments, {most} are five windows");
}

/// The same with less memory than the paths carry: memory is the limit before the number of retransmissions is.
#[test]
fn unacknowledged_data_is_bounded_by_memory() {
    let (bytes, segments, _) = kept_for_a_peer_that_misses_one(1000, 2 << 20, ms(650));
    assert!(bytes <= 3 << 19, "{bytes} bytes in {segments} segments");
}

/// Data that waits to be sent on all streams together takes at most a quarter of the memory, however much each stream may have.
#[test]
fn waiting_data_of_streams_is_quarter_of_memory() {
    let small = Config { send_memory: 1 << 20, ..config() };
    let mut pair = Pair::established(small.clone(), small);
    let taken = (0..8).map(|_| {
        let mut streams = pair.client.connection.streams();
        let sid = streams.open().expect("there are eight");
        streams.write(sid, &mut Marked { tag: 0, start: 0, len: 1 << 20 }).expect("it is open")
    });
    assert_eq!(taken.sum::<u32>(), 1 << 18);
}

/// The bookkeeping of a small segment takes more memory than its data.
#[test]
fn segment_overhead_counts_as_memory() {
    let (bytes, segments, _) = kept_for_a_peer_that_misses_one(64, 1 << 20, ms(650));
    // Three quarters of the memory, if an entry took only as much memory as its segment's data.
    assert!(segments < (3 << 18) / (2 * 64), "{bytes} bytes in {segments} segments");
}

/// With 10 % loss, one segment in a million is sent a seventh time. It is worth waiting for: while it is missing, no new data is
/// sent, although windows and memory have room. When it arrives, the transfer continues.
#[test]
fn new_data_waits_after_seventh_transmission() {
    let law = Settings::parse(registry::find("reno").unwrap(), [("initial_window", "1000")]).unwrap();
    let generous = Config { receive_buffer: 1 << 30, law, ..config() };
    let mut pair = Pair::established(generous.clone(), generous);
    let front = pair.client_seq();
    pair.up.lost_at = Some(front);
    let sid = pair.send(100 << 20);
    pair.run_for(Span::from_secs(4));
    let is_front = |(_, segment): &&(Time, Segment<Marked>)| segment.header.seq == front;
    let sent: Vec<Time> = pair.up.data().filter(is_front).map(|(time, _)| *time).collect();
    assert!(sent.len() > 7, "it is tried again and again: {sent:?}");
    // A segment that is sent once appears once in the log, and later segments appear later.
    let mut highest = pair.client_at(0);
    let mut new: Vec<Time> = vec![];
    for (time, segment) in pair.up.data() {
        if highest.is_before(segment.header.seq) {
            highest = segment.header.seq;
            new.push(*time);
        }
    }
    let count = |from, to| new.iter().filter(|&&time| sent[from] < time && time <= to).count();
    assert!(count(5, sent[6]) > 0, "after the sixth: {sent:?}");
    assert_eq!(count(6, Time::NEVER), 0, "after the seventh: {sent:?}");
    pair.up.lost_at = None;
    let received = pair.client.connection.sent();
    pair.run_until_received(sid, received);
}

/// A peer sends single bytes above a hole. Each costs a dozen times the memory that the window counts.
#[test]
fn tiny_segments_above_hole_are_bounded_by_buffer() {
    let small = Config { receive_buffer: 1 << 20, stream_buffer: StreamBuffer::Bytes(1 << 20), ..config() };
    let mut pair = Pair::established(config(), small);
    let (tuple, now) = (pair.server.tuple, pair.now);
    let byte = bytes_one_by_one(&pair);
    let server = &mut pair.server.connection;
    for number in 1..200_000 {
        server.handle_segment(now, tuple, byte(number));
        // The window of the handshake has only 16 bits.
        while server.poll_transmit(now).is_some() {}
    }
    let buffered = server.buffered();
    // A word for the key and an allocation are the least that a byte can cost.
    assert!((10_000..=(2 << 20) / (8 + 32)).contains(&buffered), "{buffered} bytes are held");
    // The segment that fills the hole is accepted, and then the one that was refused.
    server.handle_segment(now, tuple, byte(0));
    assert_eq!(server.buffered(), buffered + 1);
    server.handle_segment(now, tuple, byte(buffered + 1));
    assert_eq!(server.buffered(), buffered + 2);
}

/// Each hole costs memory, however large the buffer is. Of 250,000 holes no more than the limit are made, and a segment next to
/// received data is accepted.
#[test]
fn a_buffer_that_has_room_has_no_room_for_more_holes() {
    let large = Config { receive_buffer: 1 << 30, stream_buffer: StreamBuffer::Bytes(1 << 30), ..config() };
    let mut pair = Pair::established(config(), large);
    let (tuple, now) = (pair.server.tuple, pair.now);
    let byte = bytes_one_by_one(&pair);
    let server = &mut pair.server.connection;
    // Every other segment, so that none touches another.
    for number in (1..=250_000).map(|number| 2 * number) {
        server.handle_segment(now, tuple, byte(number));
        // The window of the handshake has only 16 bits.
        while server.poll_transmit(now).is_some() {}
    }
    assert_eq!(server.buffered(), 250_000);
    server.handle_segment(now, tuple, byte(500_002));
    assert_eq!(server.buffered(), 250_000, "one hole too many");
    server.handle_segment(now, tuple, byte(500_001));
    assert_eq!(server.buffered(), 250_001, "it makes no hole");
}

/// A stream of the client in which each segment has one byte; the argument is the segment's number.
fn bytes_one_by_one(pair: &Pair) -> impl Fn(u64) -> Segment<Marked> + use<> {
    let header = Header {
        seq: pair.client_at(1),
        ack: pair.server_seq(),
        flags: Flags::ACK | Flags::MSE,
        window: 1000,
        ..Header::default()
    };
    move |number: u64| {
        let content = Content::Data(Marked { tag: 0, start: number, len: 1 });
        let stream_header = Some(StreamHeader { sid: Sid::new(1), ssn: Ssn::of(number) });
        let header = Header { seq: header.seq.plus(5 * number), ..header };
        Segment { header, options: Options::default(), stream_header, content }
    }
}
