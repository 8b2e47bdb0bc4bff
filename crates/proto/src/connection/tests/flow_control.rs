//! Flow control of streams: an unread stream does not block the others.

use super::*;
use crate::{Record, StreamBuffer};

/// A buffer of a megabyte for eight streams, on a path that takes a millisecond per segment: 100 segments are a round trip.
fn narrow(stream_buffer: StreamBuffer) -> Pair {
    let server = Config { receive_buffer: 1 << 20, stream_buffer, ..config() };
    let mut pair = Pair::established(config(), server);
    pair.up.spacing = ms(1);
    pair
}

/// Eight streams with endless data, of which the server does not read `neglected`. Returns the bytes of the others in the ten
/// seconds after the first thirty.
fn rate(pair: &mut Pair, neglected: &[u16], is_late: bool) -> u64 {
    let sids: Vec<Sid> = (0..8).map(|_| pair.client.open()).collect();
    sids.iter().for_each(|sid| pair.client.write(*sid, 1 << 40));
    let neglected: Vec<Sid> = neglected.iter().copied().map(Sid::new).collect();
    if is_late {
        pair.run_for(Span::from_secs(10));
    }
    pair.server.neglected.extend(&neglected);
    pair.run_for(Span::from_secs(20));
    let sum = |pair: &Pair| {
        sids.iter().filter(|sid| !neglected.contains(sid)).map(|sid| pair.server.received(*sid)).sum::<u64>()
    };
    let before = sum(pair);
    pair.run_for(Span::from_secs(10));
    sum(pair) - before
}

/// 10 000 segments in ten seconds. A record and more is returned for each 16 kB; here they cost nothing.
const FULL: u64 = 9900 * 996;

#[test]
fn a_stream_that_is_not_read_stops_nobody_else() {
    for (neglected, is_late) in [(&[1][..], false), (&[1], true), (&[8], true), (&[1, 2, 3], true)] {
        let mut pair = narrow(StreamBuffer::Shared);
        let rate = rate(&mut pair, neglected, is_late);
        assert!(rate >= FULL, "{rate} bytes beside {neglected:?}");
    }
}

/// Even if all but one are unread, that one has at least an eighth of a quarter, 32 kB rounded to a power of two, and what is
/// left of the pool.
#[test]
fn the_last_stream_that_is_read_goes_on() {
    let mut pair = narrow(StreamBuffer::Shared);
    let rate = rate(&mut pair, &[1, 2, 3, 4, 5, 6, 7], false);
    assert!(rate >= FULL, "{rate}");
    let mut pair = narrow(StreamBuffer::Shared);
    let rate = self::rate(&mut pair, &[1, 2, 3, 4, 5, 6, 7], true);
    assert!(rate >= 100 * 32_768, "{rate}: its part, once in 100 ms");
}

/// Without credit, the unread stream fills the buffer.
#[test]
fn without_credit_one_stream_stops_all() {
    let mut pair = narrow(StreamBuffer::Bytes(u64::MAX));
    assert_eq!(rate(&mut pair, &[1], false), 0);
}

/// The client reads nothing, but still receives credit for its own streams.
#[test]
fn credit_comes_through_a_buffer_that_nobody_reads() {
    let small = Config { receive_buffer: 40_000, ..config() };
    let mut pair = Pair::established(small.clone(), small);
    pair.client.is_reading = false;
    for sid in (0..8).map(|_| pair.server.open()).collect::<Vec<_>>() {
        pair.server.write(sid, 100_000);
    }
    pair.transfer(2_000_000);
    assert!(
        pair.client.connection.received() < 40_000 + 12 * 2000,
        "it has not read: {}",
        pair.client.connection.received()
    );
    pair.client.is_reading = true;
    pair.run_until(|pair| (1..=8).map(Sid::new).all(|sid| pair.client.received(sid) == 100_000));
}

#[test]
fn the_handshake_says_the_credit_of_each_stream() {
    let client = Config { stream_buffer: StreamBuffer::Bytes(5000), ..config() };
    // 2^20 bytes: a quarter of it, for eight streams.
    let server = Config { receive_buffer: 1 << 20, ..config() };
    let mut pair = Pair::with(client, server);
    pair.run_for(ms(150));
    let credit = |wire: &crate::testing::Wire| wire.log[0].1.options.handshake().multistream.unwrap().credit;
    assert_eq!((credit(&pair.up), credit(&pair.down)), (12, 15));
    pair.server.is_reading = false;
    pair.client.is_reading = false;
    let (up, down) = (pair.client.open(), pair.server.open());
    pair.client.write(up, 1_000_000);
    pair.server.write(down, 1_000_000);
    pair.run_for(Span::from_secs(5));
    let read_all = |end: &mut crate::testing::End, sid| while end.read_some(sid, u32::MAX) {};
    let arrived = |pair: &Pair| {
        (
            pair.server.connection.receiver.inbound.unread().payload,
            pair.client.connection.receiver.inbound.unread().payload,
        )
    };
    assert_eq!(arrived(&pair), (1 << 15, 1 << 12));
    // What is not a power of two follows with the first record.
    read_all(&mut pair.client, down);
    pair.run_for(Span::from_secs(5));
    assert_eq!(arrived(&pair), (1 << 15, 5000));
}

/// A sender without credit probes the peer at growing intervals, and continues when the lost record was retransmitted.
#[test]
fn a_stream_without_credit_waits_for_a_record_that_was_lost() {
    let server = Config { stream_buffer: StreamBuffer::Bytes(4096), ..config() };
    let mut pair = Pair::established(config(), server);
    pair.server.is_reading = false;
    let sid = pair.send(20_000);
    pair.run_for(ms(500));
    let (sent, segments) = (pair.client.connection.sent(), pair.up.count);
    pair.run_for(Span::from_secs(200));
    assert_eq!(pair.client.connection.sent(), sent);
    let probes = pair.up.count - segments;
    assert!((6..14).contains(&probes), "{probes} probes");
    pair.down.faults.extend((0..3).map(|ahead| (pair.down.count + ahead, Fault::Lose)));
    pair.server.is_reading = true;
    pair.drain();
    pair.run_until_received(sid, 20_000);
}

/// The application finishes a stream that waits for credit, and closes the connection.
#[test]
fn data_waiting_for_credit_is_sent_before_fin() {
    let server = Config { stream_buffer: StreamBuffer::Bytes(4096), time_wait: ms(100), ..config() };
    let mut pair = Pair::established(config(), server);
    pair.server.is_reading = false;
    let sid = pair.send(20_000);
    pair.client.connection.close();
    pair.run_for(Span::from_secs(5));
    assert_eq!(pair.states(), (State::Established, State::Established));
    pair.server.is_reading = true;
    pair.run_until(|pair| pair.states() == (State::FinWait2, State::CloseWait));
    assert_eq!((pair.server.received(sid), pair.server.ended(sid)), (20_000, 1));
}

/// No record can follow a FIN, so an end that has closed accepts all data within its window.
#[test]
fn after_the_close_of_its_receiver_a_stream_needs_no_credit() {
    let server = Config { stream_buffer: StreamBuffer::Bytes(4096), ..config() };
    let mut pair = Pair::established(config(), server);
    pair.server.is_reading = false;
    let sid = pair.send(1_000_000);
    pair.run_for(ms(500));
    pair.server.connection.close();
    pair.run_for(ms(500));
    assert_eq!(pair.states(), (State::CloseWait, State::FinWait2));
    pair.server.is_reading = true;
    pair.drain();
    pair.run_until_received(sid, 1_000_000);
}

#[test]
fn a_stream_that_waits_for_credit_can_be_reset_and_stopped() {
    let one = Config { streams: 1, stream_buffer: StreamBuffer::Bytes(4096), ..config() };
    for is_reset in [true, false] {
        let mut pair = Pair::established(one.clone(), one.clone());
        pair.server.is_reading = false;
        let sid = pair.send(20_000);
        pair.run_for(ms(500));
        if is_reset {
            pair.client.reset(sid, 4).unwrap();
        } else {
            pair.server.stop(sid, 4).unwrap();
        }
        pair.server.is_reading = true;
        pair.run_until(|pair| pair.client.events.contains(&Event::Finished(sid)));
        assert_eq!(pair.server.resets.len(), usize::from(is_reset));
        // The dropped data returned its credit: the SID can be used again.
        pair.transfer(20_000);
    }
}

/// Data beyond its credit is dropped, and the connection continues.
#[test]
fn a_segment_beyond_its_credit_is_as_good_as_lost() {
    let server = Config { stream_buffer: StreamBuffer::Bytes(600), ..config() };
    let mut pair = Pair::established(config(), server);
    pair.server.is_reading = false;
    let sid = pair.client.open();
    pair.client.write(sid, 512);
    pair.drain();
    let (_, segment) = *pair.up.log.last().unwrap();
    let Content::Data(payload) = segment.content else { panic!("it is data: {segment:?}") };
    let long = Segment { content: Content::Data(Marked { len: 513, ..payload }), ..segment };
    let (now, tuple) = (pair.now, pair.server.tuple);
    pair.server.connection.handle_segment(now, tuple, long);
    assert_eq!(pair.server.connection.received(), 1);
    assert!(pair.server.connection.poll_transmit(now).is_some_and(|ack| ack.segment.content.is_empty()));
    pair.run_for(ms(200));
    assert_eq!(pair.server.connection.received(), 1 + 4 + 512);
}

/// The sender is wrong about its limit. Data beyond the limit takes no room, however often it arrives, and later data of other
/// streams is delivered. When there is more credit, the data is accepted.
#[test]
fn stream_without_credit_delays_no_other() {
    let server = Config { stream_buffer: StreamBuffer::Bytes(512), ..config() };
    let mut pair = Pair::established(config(), server);
    pair.server.neglected.insert(Sid::new(1));
    let sid = pair.send(512);
    pair.run_for(ms(200));
    let last = *pair.up.data().last().unwrap();
    let segment = |sid: Sid, ssn, seq, start, len| Segment {
        header: crate::Header { seq, ..last.1.header },
        stream_header: Some(crate::StreamHeader { sid, ssn: crate::Ssn::of(ssn) }),
        content: Content::Data(Marked { tag: u32::from(sid.number()), start, len }),
        ..last.1
    };
    let (now, tuple, seq) = (pair.now, pair.server.tuple, pair.client_seq());
    let beyond = segment(sid, 1, seq, 512, 300);
    let connection = &mut pair.server.connection;
    let mut deliver = |segment: Segment<Marked>| {
        connection.handle_segment(now, tuple, segment);
        let answers: Vec<_> = std::iter::from_fn(|| connection.poll_transmit(now)).collect();
        assert!(
            matches!(&answers[..], [answer] if answer.segment.content.is_empty() && answer.segment.header.ack == seq)
        );
        connection.check();
    };
    (0..100).for_each(|_| deliver(beyond));
    deliver(segment(Sid::new(2), 0, seq.plus(304), 0, 400));
    deliver(beyond);
    let mut read = |sid| connection.streams().read(sid, u32::MAX).unwrap();
    assert!(matches!(read(Sid::new(2)), crate::Read::Data(data) if data.len == 400));
    assert!(matches!(read(sid), crate::Read::Data(data) if data.len == 512));
    connection.handle_segment(now, tuple, beyond);
    assert_eq!(connection.received(), 1 + (4 + 512) + (4 + 300) + (4 + 400));
}

/// One record for at least eight segments of 1000 B, which is more than a sixteenth of the buffer: so for nine segments of 996 B.
#[test]
fn credit_is_given_in_steps() {
    let server = Config { stream_buffer: StreamBuffer::Bytes(1 << 16), ..config() };
    let mut pair = Pair::established(config(), server);
    pair.transfer(1 << 20);
    let records = pair.down.records().filter(|record| matches!(record, Record::MaxStreamData { .. }));
    assert_eq!(records.count(), (1 << 20) / (9 * 996) + 1);
}

/// All SIDs in both directions at once; each direction has its own.
#[test]
fn there_are_255_streams_in_each_direction() {
    let all = Config { streams: 255, ..config() };
    let mut pair = Pair::established(all.clone(), all);
    let sids: Vec<Sid> = (1..=255).map(Sid::new).collect();
    for &sid in &sids {
        assert_eq!((pair.client.open(), pair.server.open()), (sid, sid));
        pair.client.write(sid, 10_000 + u64::from(sid.number()));
        pair.server.write(sid, 20_000 + u64::from(sid.number()));
    }
    assert_eq!(pair.client.try_open(), Err(OpenError::NoneLeft));
    pair.run_for(Span::from_secs(10));
    for &sid in &sids {
        let number = u64::from(sid.number());
        assert_eq!((pair.server.received(sid), pair.client.received(sid)), (10_000 + number, 20_000 + number));
    }
}
