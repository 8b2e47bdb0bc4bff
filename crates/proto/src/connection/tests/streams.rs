use super::*;

/// No part of the connection's window is reserved for other streams.
fn uncredited() -> Config {
    Config { stream_buffer: crate::StreamBuffer::Bytes(u64::MAX), ..config() }
}

/// [mfast-2019] sec. IV.D: a segment of one stream is lost; the others are delivered.
#[test]
fn a_loss_blocks_its_own_stream_only() {
    let mut pair = Pair::established(config(), config());
    let sids: Vec<Sid> = (0..5).map(|_| pair.client.open()).collect();
    sids.iter().for_each(|sid| pair.client.write(*sid, 996 * 2));
    // Round robin: segment 1 is the first segment of the second stream.
    pair.lose(&[1]);
    pair.run_for(ms(60));
    let received: Vec<u64> = sids.iter().map(|sid| pair.server.received(*sid) / 996).collect();
    assert_eq!(received, [2, 0, 2, 2, 2]);
    pair.run_for(ms(150));
    assert_eq!(pair.server.received(sids[1]), 996 * 2);
}

/// [mfast-2019] Procedure 1, lines 4 to 21: the ACK names the stream and its ESSN, even above a hole.
#[test]
fn an_acknowledgement_names_the_stream_and_what_it_expects() {
    let mut pair = Pair::established(config(), config());
    let sids: Vec<Sid> = (0..2).map(|_| pair.client.open()).collect();
    sids.iter().for_each(|sid| pair.client.write(*sid, 996 * 3));
    pair.lose(&[0]);
    pair.run_for(ms(60));
    let answers: Vec<_> =
        pair.down.log.iter().filter_map(|(_, ack)| ack.options.acknowledgement().expected()).collect();
    let answers: Vec<_> = answers.iter().map(|answer| (answer.sid.number(), answer.ssn.bits())).collect();
    // Stream 1 lacks its first segment; stream 2 has one, two, three.
    assert_eq!(answers, [(2, 1), (1, 0), (2, 2), (1, 0), (2, 3)]);
    pair.run_for(ms(200));
    assert_eq!(pair.client.connection.streams().delivered(sids[0]), 3);
    assert_eq!(pair.client.connection.streams().delivered(sids[1]), 3);
}

/// The right edge moves when data above the hole is read: with a buffer of ten segments, nine other streams continue.
#[test]
fn delivery_above_hole_frees_buffer() {
    let small = Config { receive_buffer: 10_000, ..uncredited() };
    let law = Settings::parse(registry::find("reno").unwrap(), [("initial_window", "100")]).unwrap();
    let mut pair = Pair::established(Config { law, ..config() }, small);
    let blocked = pair.client.open();
    pair.client.write(blocked, 996);
    let other = pair.client.open();
    pair.client.write(other, 996 * 40);
    // Its retransmission arrives at 150 ms.
    pair.lose(&[0]);
    pair.run_for(ms(149));
    assert_eq!(pair.server.received(blocked), 0);
    // Nothing is acknowledged cumulatively, but more than the buffer has been sent.
    assert_eq!((pair.client.connection.acked(), pair.server.received(other)), (1, 9 * 996));
    assert!(pair.client.connection.sent() > 15_000, "{}", pair.client.connection.sent());
    pair.run_until_received(other, 996 * 40);
}

#[test]
fn a_slow_reader_is_not_overrun_and_the_edge_never_shrinks() {
    let small = Config { receive_buffer: 20_000, ..uncredited() };
    let mut pair = Pair::established(config(), small);
    pair.server.is_reading = false;
    let sid = pair.send(200_000);
    pair.run_for(Span::from_secs(2));
    assert!(pair.client.connection.sent() <= 20_001, "{}", pair.client.connection.sent());
    let mut time = 0;
    while pair.server.received(sid) < 200_000 {
        pair.server.read_some(sid, 700);
        pair.run_for(ms(20));
        time += 1;
        assert!(time < 2000, "{} received", pair.server.received(sid));
    }
    let edge = |segment: &Segment<Marked>| {
        let ack = segment.header.ack.offset_from(SeqNumber(u32::MAX - 5000), 0).unwrap();
        ack + (u64::from(segment.header.window) << 1)
    };
    // 80 000 B of buffer need a window scale of one: units of two bytes.
    let edges: Vec<u64> = pair.down.log.iter().map(|(_, segment)| edge(segment)).collect();
    let mut largest = 0;
    for edge in edges {
        assert!(edge + 1 >= largest, "{edge} after {largest}");
        largest = largest.max(edge);
    }
    assert_eq!(pair.client.path().tally.sent_again, 0);
}

/// [rfc-9293] sec. 3.8.6.1: the update that opens the window is lost, and only a zero-window probe reveals it.
#[test]
fn a_lost_window_update_is_found_by_a_probe() {
    let small = Config { receive_buffer: 10_000, ..uncredited() };
    let mut pair = Pair::established(config(), small);
    pair.server.is_reading = false;
    let sid = pair.send(30_000);
    pair.run_for(ms(500));
    pair.down.is_cut = true;
    pair.server.is_reading = true;
    pair.run_for(ms(10));
    pair.down.is_cut = false;
    pair.run_until_received(sid, 30_000 - 30_000 / 996);
}

#[test]
fn a_shut_window_is_probed_ever_more_rarely() {
    let small = Config { receive_buffer: 10_000, ..uncredited() };
    let mut pair = Pair::established(config(), small);
    pair.server.is_reading = false;
    pair.send(30_000);
    pair.run_for(Span::from_secs(200));
    let probes = pair.up.log.iter().filter(|(time, s)| s.content.is_empty() && *time > Time::ZERO + ms(400)).count();
    assert!((6..14).contains(&probes), "{probes} probes");
    assert_eq!(pair.states(), (State::Established, State::Established), "the peer answers, so it lives");
}

#[test]
fn a_finished_stream_ends_and_its_name_is_used_again() {
    let one = Config { streams: 1, ..config() };
    let mut pair = Pair::established(one, config());
    for round in 1..=3 {
        let sid = pair.send(5000);
        assert_eq!(sid, Sid::new(1));
        // All of the write is taken at once.
        pair.client.connection.streams().finish(sid).unwrap();
        pair.run_until(|pair| pair.client.events.last() == Some(&Event::Finished(sid)));
        pair.client.events.clear();
        assert_eq!((pair.server.received(sid), pair.server.ended(sid)), (5000 * u64::from(round), round));
    }
    assert_eq!(pair.client.connection.streams().open(), Ok(Sid::new(1)));
    assert_eq!(pair.client.connection.streams().open(), Err(OpenError::NoneLeft));
}

#[test]
fn an_end_that_overtakes_its_data_waits_for_it() {
    let mut pair = Pair::established(config(), config());
    pair.lose(&[0]);
    let sid = pair.send(996);
    pair.client.connection.streams().finish(sid).unwrap();
    pair.run_for(ms(60));
    assert_eq!((pair.server.received(sid), pair.server.ended(sid)), (0, 0));
    pair.run_until(|pair| pair.server.ended(sid) == 1);
    assert_eq!(pair.server.received(sid), 996);
}

#[test]
fn delayed_acknowledgements_are_fewer() {
    let delayed = Config { acks: crate::AckPolicy { every: 2, delay: ms(40) }, ..config() };
    let mut pair = Pair::established(config(), delayed);
    pair.transfer(996 * 101);
    pair.run_for(ms(200));
    assert_eq!(pair.client.connection.acked(), 1 + 1000 * 101);
    assert!(pair.down.log.len() <= 60, "{} ACKs for 101 segments", pair.down.log.len());
}

/// More urgent data that is written later waits only for data in flight.
#[test]
fn an_urgent_stream_overtakes() {
    let mut pair = Pair::established(config(), config());
    pair.up.spacing = ms(1);
    let bulk = pair.send(10_000_000);
    pair.run_for(ms(300));
    let urgent = pair.client.open();
    pair.client.connection.streams().set_priority(urgent, Priority { level: 0, weight: 1 }).unwrap();
    pair.client.write(urgent, 996 * 30);
    let before = pair.server.received(bulk);
    let flight = pair.client.path().flight as u64;
    pair.run_until_received(urgent, 996 * 30);
    let meanwhile = (pair.server.received(bulk) - before) / 996;
    assert!(meanwhile <= flight + 1, "{meanwhile} segments came of the other, {flight} were in flight");
}

#[test]
fn a_heavier_stream_gets_as_many_times_the_bytes() {
    // No stream waits for credit, however long the queue gets.
    let server = Config { stream_buffer: crate::StreamBuffer::Bytes(1 << 30), ..config() };
    let mut pair = Pair::established(config(), server);
    pair.up.spacing = ms(1);
    let sids = [1, 2, 5].map(|weight| {
        let sid = pair.client.open();
        pair.client.connection.streams().set_priority(sid, Priority { weight, ..Priority::USUAL }).unwrap();
        pair.client.write(sid, 100_000_000);
        sid
    });
    pair.run_for(Span::from_secs(8));
    let received = sids.map(|sid| pair.server.received(sid) / 996);
    assert!(received[0] > 900, "{received:?}");
    // A turn of at most five segments is in progress.
    assert!(received[1].abs_diff(2 * received[0]) <= 8 && received[2].abs_diff(5 * received[0]) <= 8, "{received:?}");
}

/// Seven ends at once take two segments of records: one with four and one with three. All are read, and every SID can be reused.
#[test]
fn streams_that_end_together_share_segments() {
    let mut pair = Pair::new();
    pair.run_for(ms(150));
    let sids = [0; 7].map(|_| pair.client.open());
    sids.into_iter().for_each(|sid| pair.client.write_now(sid, 10));
    pair.run_for(ms(150));
    sids.into_iter().for_each(|sid| pair.client.finish(sid).unwrap());
    pair.run_for(ms(150));
    let sizes = pair.up.log.iter().filter_map(|(_, segment)| match segment.content {
        Content::Control(records) => Some((segment.content.len(), records.len())),
        Content::Nothing | Content::Data(_) => None,
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [(32, 4), (24, 3)]);
    for sid in sids {
        assert_eq!((pair.server.received(sid), pair.server.ended(sid)), (10, 1));
        assert!(pair.client.events.contains(&Event::Finished(sid)));
    }
}
