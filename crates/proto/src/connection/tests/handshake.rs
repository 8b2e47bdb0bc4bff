use super::*;

fn plain() -> Config {
    Config { streams: 0, ..config() }
}

#[test]
fn three_segments_open_a_connection() {
    let mut pair = Pair::new();
    pair.run_for(ms(150));
    assert_eq!(pair.states(), (State::Established, State::Established));
    let flags = |segment: &Segment<Marked>| segment.header.flags;
    assert_eq!(
        pair.up.log.iter().map(|(_, segment)| flags(segment)).collect::<Vec<_>>(),
        [Flags::SYN | Flags::MSE, Flags::ACK | Flags::MSE]
    );
    assert_eq!(flags(&pair.down.log[0].1), Flags::SYN | Flags::ACK | Flags::MSE);
    assert_eq!(pair.client.events, [Event::Established { streams: Some(8) }]);
    assert_eq!(pair.server.events, [Event::Established { streams: Some(8) }]);
}

#[test]
fn the_fewer_streams_are_granted() {
    let mut pair = Pair::with(Config { streams: 200, ..config() }, Config { streams: 3, ..config() });
    pair.run_for(ms(150));
    assert_eq!(pair.client.events, [Event::Established { streams: Some(3) }]);
    assert_eq!(pair.server.events, [Event::Established { streams: Some(3) }]);
}

#[track_caller]
fn expect_plain(client: Config, server: Config) {
    let mut pair = Pair::with(client, server);
    pair.run_for(ms(150));
    assert_eq!(pair.client.events, [Event::Established { streams: None }]);
    assert_eq!(pair.server.events, [Event::Established { streams: None }]);
    pair.client.write(Sid::PLAIN, 30_000);
    pair.server.write(Sid::PLAIN, 20_000);
    pair.run_until(|pair| pair.server.received(Sid::PLAIN) == 30_000 && pair.client.received(Sid::PLAIN) == 20_000);
    assert!(pair.up.data().all(|(_, segment)| segment.stream_header.is_none() && !segment.has(Flags::MSE)));
}

#[test]
fn one_side_without_streams_makes_it_plain_tcp() {
    expect_plain(plain(), config());
    expect_plain(config(), plain());
    expect_plain(plain(), plain());
}

#[test]
fn a_lost_syn_comes_again_after_a_second() {
    let mut pair = Pair::new();
    pair.lose(&[0]);
    pair.run_until(|pair| pair.states() == (State::Established, State::Established));
    assert_eq!(pair.now, Time::ZERO + ms(1150));
    assert_eq!(pair.client.path().rtt_smoothed, None, "Karn: whose answer was it?");
}

#[test]
fn a_lost_answer_comes_again() {
    let mut pair = Pair::new();
    pair.down.faults.insert(0, Fault::Lose);
    pair.run_until(|pair| pair.states() == (State::Established, State::Established));
}

/// The first data segment carries the acknowledgement that was lost.
#[test]
fn a_lost_third_segment_does_no_harm() {
    let mut pair = Pair::new();
    pair.lose(&[1]);
    pair.run_for(ms(110));
    assert_eq!(pair.states(), (State::Established, State::SynReceived));
    let sid = pair.send(5000);
    assert_eq!(pair.run_until_received(sid, 5000), ms(50));
}

/// [rfc-9293] sec. 3.5, figure 8.
#[test]
fn both_sides_may_open_at_once() {
    let mut pair = Pair::new();
    let tuple = pair.server.tuple;
    pair.server.connection =
        crate::Connection::connect(Time::ZERO, config(), tuple, crate::Secret::predictable(SeqNumber(99)))
            .expect("it is a good configuration");
    pair.run_for(ms(200));
    assert_eq!(pair.states(), (State::Established, State::Established));
    pair.transfer(5000);
}

#[test]
fn connection_without_listener_is_refused() {
    let mut pair = Pair::new();
    pair.server.connection.close();
    pair.run_for(ms(150));
    assert_eq!(pair.client.events, [Event::Closed(CloseReason::Refused)]);
}

#[test]
fn stream_opens_only_after_handshake() {
    let mut pair = Pair::new();
    assert_eq!(pair.client.connection.streams().open(), Err(OpenError::NotEstablished));
}

/// Ten segments, then twenty, then forty: [rfc-6928] and slow start, without losses.
#[test]
fn a_window_doubles_every_round_trip() {
    let mut pair = Pair::established(config(), config());
    let sid = pair.send(996 * 70);
    assert_eq!(pair.run_until_received(sid, 996 * 70), ms(250));
    assert_eq!(pair.client.path().tally.sent_again, 0);
    let departures: Vec<_> = [0, 100, 200]
        .map(|begin| pair.up.data().filter(|(time, _)| *time == Time::ZERO + ms(150 + begin)).count())
        .into();
    assert_eq!(departures, [10, 20, 40]);
}

/// 5 MB at an RTT of 600 ms need a window of more than 64 kB.
#[test]
fn a_scaled_window_is_larger_than_its_field() {
    let mut pair = Pair::with(config(), config());
    pair.up.delay = ms(550);
    pair.run_for(ms(1150));
    let sid = pair.send(996 * 1270);
    // 10 + 20 + ... + 640 segments are 1270: seven round trips, of which the last takes half.
    assert_eq!(pair.run_until_received(sid, 996 * 1270), ms(6 * 600 + 550));
}

#[test]
fn data_flows_both_ways() {
    let mut pair = Pair::established(config(), config());
    let (up, down) = (pair.client.open(), pair.server.open());
    pair.client.write(up, 400_000);
    pair.server.write(down, 300_000);
    pair.run_until(|pair| pair.server.received(up) == 400_000 && pair.client.received(down) == 300_000);
    assert_eq!((pair.client.path().tally.sent_again, pair.server.path().tally.sent_again), (0, 0));
}

#[test]
fn a_segment_from_elsewhere_changes_nothing() {
    let mut pair = Pair::established(config(), config());
    let header = crate::Header {
        seq: SeqNumber(0),
        ack: SeqNumber(0),
        flags: Flags::RST,
        window: 0,
        ..crate::Header::default()
    };
    let options = crate::Options::default();
    let segment = Segment { header, options, stream_header: None, content: Content::Nothing };
    let tuple = crate::FourTuple::default();
    pair.client.connection.handle_segment(pair.now, tuple, segment);
    assert_eq!(pair.client.connection.poll_transmit(pair.now), None);
}

/// The window of a SYN is not scaled. A retransmitted SYN after the handshake must not change the window.
#[test]
fn a_syn_that_comes_again_says_nothing_about_the_window() {
    let small = Config { receive_buffer: 16_384, ..config() };
    let mut pair = Pair::with(config(), small);
    pair.drain();
    // The third segment is lost, so the SYN-ACK is retransmitted.
    pair.lose(&[1]);
    pair.run_for(ms(1000));
    pair.server.is_reading = false;
    let sid = pair.send(30_000);
    pair.run_for(ms(1000));
    assert!(pair.client.connection.sent() <= 16_385, "{}", pair.client.connection.sent());
    pair.server.is_reading = true;
    pair.run_until_received(sid, 30_000);
}
