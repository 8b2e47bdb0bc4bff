//! Streams that are reset by their sender or stopped by their receiver.

use super::*;
use crate::{ReadError, Record, WriteError};

/// A pair with one stream in each direction, so that its SID is reused at once.
fn pair() -> Pair {
    let one = Config { streams: 1, ..config() };
    Pair::established(one.clone(), one)
}

#[track_caller]
fn run_until_finished(pair: &mut Pair, sid: Sid) {
    pair.run_until(|pair| pair.client.events.contains(&Event::Finished(sid)));
    pair.client.events.clear();
}

/// Unread data is dropped, even if it had arrived. The SID is reused, and the connection's buffer is whole again.
#[test]
fn a_reset_drops_what_was_not_read() {
    let small = Config { streams: 1, receive_buffer: 30_000, ..config() };
    let mut pair = Pair::established(config(), small);
    pair.server.is_reading = false;
    let sid = pair.send(20_000);
    pair.run_for(ms(500));
    pair.server.read_some(sid, 4000);
    pair.client.reset(sid, 77).unwrap();
    pair.run_for(ms(60));
    pair.server.read_some(sid, 4000);
    assert_eq!((pair.server.received(sid), &pair.server.resets[..]), (4000, &[(sid, 77)][..]));
    run_until_finished(&mut pair, sid);
    pair.server.is_reading = true;
    let again = pair.send(100_000);
    pair.client.finish(again).unwrap();
    pair.run_until(|pair| pair.server.ended(sid) == 1);
    assert_eq!((again, pair.server.received(sid)), (sid, 4000 + 100_000));
}

#[test]
fn a_reset_overtakes_what_was_lost() {
    let mut pair = pair();
    pair.lose(&[0, 1]);
    let sid = pair.send(996 * 2);
    pair.client.reset(sid, 5).unwrap();
    pair.run_for(ms(60));
    assert_eq!((pair.server.received(sid), &pair.server.resets[..]), (0, &[(sid, 5)][..]));
    // The holes are filled nevertheless: the segments keep their sequence space.
    run_until_finished(&mut pair, sid);
    assert_eq!(pair.server.connection.received(), 1 + 2 * 1000 + 12);
    assert_eq!(pair.server.received(sid), 0);
}

#[test]
fn a_stream_on_which_nothing_was_sent_can_be_reset() {
    let mut pair = pair();
    for code in 1..4 {
        let sid = pair.client.open();
        pair.client.reset(sid, code).unwrap();
        run_until_finished(&mut pair, sid);
        assert_eq!(pair.server.resets.last(), Some(&(sid, code)));
    }
    assert_eq!(pair.client.reset(Sid::new(1), 0), Err(WriteError::NotOpen));
    assert_eq!(pair.client.reset(Sid::CONTROL, 0), Err(WriteError::NotOpen));
}

/// A Finish and a Reset of one stream, in any order with each other and with its data: the stream has exactly one end.
#[test]
fn a_finished_stream_is_reset_as_long_as_it_is_not_acknowledged() {
    // Segment 0 is the data, 1 the Finish record, 2 the Reset record.
    let delays: [&[(u64, u64)]; 5] = [&[], &[(0, 300)], &[(1, 300)], &[(0, 300), (1, 400)], &[(0, 400), (1, 300)]];
    for delays in delays {
        let mut pair = pair();
        pair.up.faults.extend(delays.iter().map(|&(number, span)| (number, Fault::Delay(ms(span)))));
        let sid = pair.send(500);
        pair.client.finish(sid).unwrap();
        pair.drain();
        pair.client.reset(sid, 9).unwrap();
        assert_eq!(pair.client.reset(sid, 9), Err(WriteError::NotOpen));
        run_until_finished(&mut pair, sid);
        let (ended, resets) = (pair.server.ended(sid) as usize, pair.server.resets.len());
        // All of the stream and its end arrive before the Reset only if nothing was delayed.
        assert_eq!((ended, resets), if delays.is_empty() { (1, 0) } else { (0, 1) }, "{delays:?}");
        let again = pair.send(700);
        pair.client.finish(again).unwrap();
        pair.run_until(|pair| pair.server.ended(sid) as usize == ended + 1);
        assert_eq!(pair.server.resets.len(), resets);
    }
}

#[test]
fn a_stopped_stream_is_reset_by_its_sender() {
    let mut pair = pair();
    let sid = pair.send(200_000);
    pair.run_for(ms(170));
    let received = pair.server.received(sid);
    assert!(received > 0);
    pair.server.stop(sid, 31).unwrap();
    assert_eq!(pair.server.stop(sid, 32), Err(ReadError::NoSuchStream));
    run_until_stopped(&mut pair, sid, 31);
    assert_eq!(
        pair.client.connection.streams().write(sid, &mut Marked { tag: 0, start: 0, len: 1 }),
        Err(WriteError::NotOpen)
    );
    run_until_finished(&mut pair, sid);
    assert_eq!((pair.server.received(sid), pair.server.resets.len()), (received, 0), "nobody wants to hear of it");
    let again = pair.send(3000);
    pair.client.finish(again).unwrap();
    pair.run_until(|pair| pair.server.ended(sid) == 1);
    assert_eq!(pair.server.received(sid), received + 3000);
}

#[track_caller]
fn run_until_stopped(pair: &mut Pair, sid: Sid, code: u16) {
    pair.run_until(|pair| pair.client.events.contains(&Event::Stopped { sid, code }));
}

/// The Stop is lost and retransmitted when the SID belongs to another stream. It does not affect that stream.
#[test]
fn a_late_stop_does_not_stop_the_next_stream() {
    let mut pair = pair();
    pair.server.is_reading = false;
    // Data, then the Finish, which is delayed: the receiver does not know that there is nothing more to stop.
    pair.up.faults.insert(1, Fault::Delay(ms(60)));
    let sid = pair.send(500);
    pair.client.finish(sid).unwrap();
    pair.run_for(ms(70));
    pair.down.faults.insert(pair.down.count, Fault::Lose);
    pair.server.stop(sid, 3).unwrap();
    pair.server.is_reading = true;
    run_until_finished(&mut pair, sid);
    let again = pair.send(996 * 50);
    pair.run_for(Span::from_secs(2));
    let stops = pair.down.records().filter(|record| matches!(record, Record::Stop { .. }));
    assert_eq!(stops.count(), 2, "it was sent again");
    assert_eq!((again, pair.server.received(sid)), (sid, 996 * 50));
    assert!(!pair.client.events.contains(&Event::Stopped { sid, code: 3 }));
}

/// If a stream has arrived completely, stopping it drops it without informing the peer.
#[test]
fn stopping_what_has_come_whole_is_the_receivers_business() {
    let mut pair = pair();
    pair.server.is_reading = false;
    let sid = pair.send(500);
    pair.client.finish(sid).unwrap();
    run_until_finished(&mut pair, sid);
    pair.send(700);
    pair.run_for(ms(200));
    pair.server.stop(sid, 3).unwrap();
    pair.server.read_some(sid, 9999);
    assert_eq!((pair.server.received(sid), pair.server.ended(sid)), (700, 0));
    assert_eq!(pair.down.data().count(), 0);
}

#[test]
fn plain_tcp_can_neither_reset_nor_stop() {
    let plain = Config { streams: 0, ..config() };
    let mut pair = Pair::established(plain.clone(), plain);
    assert_eq!(pair.client.reset(Sid::PLAIN, 0), Err(WriteError::Plain));
    assert_eq!(pair.server.stop(Sid::PLAIN, 0), Err(ReadError::Plain));
}

/// If the application does not read the ends of streams, only as many are accepted as fit its buffer.
#[test]
fn ends_that_are_not_read_take_room() {
    let small = Config { receive_buffer: 1200, streams: 1, ..config() };
    let mut pair = Pair::established(config(), small);
    pair.server.is_reading = false;
    for _ in 0..200 {
        if let Ok(sid) = pair.client.try_open() {
            pair.client.finish(sid).unwrap();
        }
        pair.run_for(ms(200));
    }
    pair.server.is_reading = true;
    pair.drain();
    assert_eq!(pair.server.ended(Sid::new(1)), 100, "of twelve bytes each");
    pair.run_for(ms(5000));
    assert!(pair.client.try_open().is_ok(), "and then it goes on");
}
