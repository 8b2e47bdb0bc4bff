//! Later streams use the flow-control credit that earlier streams leave to their SIDs.

use super::*;
use crate::{Form, Record};

/// A path of 100 ms and 12.5 MB/s, that is 1.25 MB per round trip, and a buffer of three times that. A megabyte may wait on each
/// stream, even without credit.
fn wide(streams: u16) -> Pair {
    let buffers = Config { receive_buffer: 4 << 20, send_memory: 4 << 30, ..config() };
    let each = Config { streams, form: Form::Sealed, ..buffers };
    let mut pair = Pair::established(each.clone(), each);
    pair.up.spacing = Span::from_micros(80);
    pair
}

/// Opens a stream, writes `bytes` to it and finishes it.
fn give(pair: &mut Pair, bytes: u64) -> Sid {
    let sid = pair.send(bytes);
    pair.client.finish(sid).unwrap();
    sid
}

/// `count` streams of a megabyte, each opened `pause` after the previous one was read. Returns how long each took until it was
/// read.
fn one_after_another(pair: &mut Pair, count: usize, pause: Span) -> Vec<Span> {
    let one = |_| {
        let (before, begin) = (pair.server.whole.len(), pair.now);
        give(pair, 1_000_000);
        pair.run_until(|pair| pair.server.whole.len() > before);
        let took = pair.now - begin;
        pair.run_for(pause);
        took
    };
    (0..count).map(one).collect()
}

/// The transmission time of a megabyte, and half a round trip.
fn least() -> Span {
    Span::from_micros(80) * 1_004 + ms(50)
}

/// The first streams open the congestion window. If no credit were kept, the twentieth would take 26 s. A stream that is opened
/// when the previous one was read (half a round trip before the sender knows it) has another SID, so two or three SIDs take
/// turns.
#[test]
fn long_streams_one_after_another_take_as_long_as_the_path_does() {
    for (streams, pause) in [(255, Span::ZERO), (255, ms(200)), (300, Span::ZERO)] {
        let mut pair = wide(streams);
        let took = one_after_another(&mut pair, 20, pause);
        assert!(took[6..].iter().all(|took| *took >= least() && *took <= least() * 3 / 2), "{streams}: {took:?}");
        assert!(pair.client.stories.iter().all(|story| story.sid.number() <= 3));
    }
}

fn credits(pair: &Pair) -> usize {
    pair.down.records().filter_map(over).count()
}

/// A SID has 4 kB of initial credit, which is not refilled here. After a long stream it has more, and the next stream with this
/// SID costs a record.
#[test]
fn stream_within_default_credit_costs_no_record() {
    let mut pair = wide(255);
    for _ in 0..10 {
        give(&mut pair, 1000);
        pair.run_for(ms(300));
    }
    assert_eq!((credits(&pair), pair.client.stories.last().unwrap().sid), (0, Sid::new(10)));
    let long = give(&mut pair, 1_000_000);
    pair.run_for(Span::from_secs(3));
    let before = credits(&pair);
    for _ in 0..10 {
        assert_eq!(give(&mut pair, 1000), long);
        pair.run_for(ms(300));
    }
    assert_eq!(credits(&pair) - before, 10);
}

/// No stream waits behind one that the peer's application has not read to its end, however much credit its SID has.
#[test]
fn a_name_whose_stream_is_not_read_is_used_last() {
    let mut pair = wide(3);
    let rich = give(&mut pair, 1_000_000);
    pair.run_for(Span::from_secs(2));
    pair.server.neglected.insert(rich);
    assert_eq!(give(&mut pair, 10_000), rich, "what it had was read");
    pair.run_for(ms(300));
    let others = [give(&mut pair, 100), give(&mut pair, 100)];
    assert!(!others.contains(&rich));
    pair.run_for(ms(300));
    assert_eq!(pair.server.whole.len(), 3);
    assert_eq!(give(&mut pair, 100), rich, "the others ended later");
    pair.server.neglected.clear();
    pair.run_for(ms(300));
    assert_eq!(pair.server.whole.len(), 5);
    assert_eq!(give(&mut pair, 100), rich, "all of it has been read");
}

/// The same for a stream that was reset or stopped.
#[test]
fn a_stream_that_is_given_up_leaves_its_credit_to_the_next() {
    for is_reset in [true, false] {
        let mut pair = wide(255);
        let sid = pair.client.open();
        pair.client.write_now(sid, 1_000_000);
        pair.run_until_received(sid, 300_000);
        if is_reset {
            pair.client.reset(sid, 4).unwrap();
        } else {
            pair.server.stop(sid, 4).unwrap();
        }
        pair.run_for(Span::from_secs(1));
        assert_eq!(give(&mut pair, 1000), sid, "{is_reset}");
        pair.run_for(ms(300));
        assert_eq!(give(&mut pair, 1000), sid, "{is_reset}");
    }
}

/// Credit for its SID could not be used any more.
#[test]
fn the_end_of_the_last_stream_before_a_close_costs_no_record() {
    for is_closed in [false, true] {
        let mut pair = wide(255);
        let sid = give(&mut pair, 1_000_000);
        pair.run_for(Span::from_secs(2));
        pair.server.is_reading = false;
        assert_eq!(give(&mut pair, 1000), sid);
        if is_closed {
            pair.client.connection.close();
        }
        pair.run_for(ms(300));
        pair.server.is_reading = true;
        pair.run_for(ms(300));
        assert_eq!(pair.server.whole.len(), 2);
        assert_eq!(pair.down.records().filter_map(over).max(), Some(if is_closed { 1 } else { 2 }));
    }
}

fn over(record: Record) -> Option<u8> {
    match record {
        Record::MaxStreamData { over, .. } => Some(over),
        _ => None,
    }
}

/// Twenty streams at a time, with 6 MB in total. Each round takes at most a third longer than the path needs, except the first.
/// The credit granted never exceeds the buffer.
#[test]
fn credit_of_parallel_streams_serves_as_many_again() {
    let mut pair = wide(255);
    let mut took = vec![];
    for round in 1..=5 {
        let begin = pair.now;
        (0..20).for_each(|_| _ = give(&mut pair, 300_000));
        pair.run_until(|pair| pair.server.whole.len() == 20 * round);
        took.push(pair.now - begin);
        pair.run_for(ms(200));
        let (promised, _) = pair.server.connection.flow_control.totals().unwrap();
        assert!(promised <= 4 << 20, "{promised}");
    }
    let least = Span::from_micros(80) * 6024 + ms(50);
    assert!(took[1..].iter().all(|took| *took <= least * 4 / 3), "{took:?}");
}

/// 60 concurrent streams of 50 kB leave their credit to their SIDs, where it cannot be revoked. A long stream after them has its
/// own credit nevertheless. It begins with 8 kB or more and may double it each round trip: a megabyte takes at most six round
/// trips and its transmission time. With only what the 60 streams left of the buffer, it took 0.96 s.
#[test]
fn long_stream_after_parallel_ones_has_own_credit() {
    let buffers =
        Config { receive_buffer: 2_000_000, receive_buffer_max: 32_000_000, send_memory: 4 << 30, ..config() };
    let each = Config { streams: 64, form: Form::Sealed, ..buffers };
    let mut pair = Pair::established(each.clone(), each);
    pair.up.spacing = Span::from_micros(80);
    (0..60).for_each(|_| _ = give(&mut pair, 50_000));
    pair.run_until(|pair| pair.server.whole.len() == 60);
    pair.run_for(ms(300));
    let took = one_after_another(&mut pair, 3, ms(300));
    assert!(took.iter().all(|took| *took <= least() + ms(600)), "{took:?}");
}
