//! What can be switched on: timestamps and Nagle's algorithm.

use super::*;
use crate::{Options, Timestamps};

fn timed() -> Config {
    let row = registry::find("reno").unwrap();
    let law = Settings::parse(row, [("initial_window", "20")]).unwrap();
    Config { timestamps: true, law, ..config() }
}

fn pair() -> Pair {
    Pair::established(timed(), timed())
}

/// [rfc-7323] sec. 3.2: in the SYN, in the SYN-ACK if the SYN had them, then in every segment.
#[test]
fn both_must_want_timestamps() {
    for (client, server) in [(timed(), timed()), (timed(), config()), (config(), timed())] {
        let is_on = client.timestamps && server.timestamps;
        let wants = client.timestamps;
        let mut pair = Pair::with(client, server);
        pair.run_for(ms(150));
        assert_eq!(pair.up.log[0].1.timestamps().is_some(), wants);
        assert_eq!(pair.down.log[0].1.timestamps().is_some(), is_on);
        pair.transfer(10_000);
        let all = pair.up.log[1..].iter().chain(&pair.down.log[1..]);
        assert!(all.into_iter().all(|(_, segment)| segment.timestamps().is_some() == is_on));
    }
}

/// [rfc-9293] sec. 3.7.1: a segment has twelve bytes less of data, so that no packet becomes larger.
#[test]
fn timestamps_take_their_room_from_the_data() {
    let mut pair = pair();
    pair.transfer(984 * 20);
    let sizes: Vec<u32> = pair.up.data().map(|(_, segment)| segment.wire_size()).collect();
    assert_eq!(sizes, vec![40 + 1000; 20]);
    assert_eq!(pair.up.data().next().map(|(_, segment)| segment.content.len()), Some(984));
}

/// [rfc-7323] sec. 3.2: "the 40 bytes of options" have room for timestamps and two SACK blocks.
#[test]
fn two_blocks_are_reported_beside_timestamps() {
    let mut pair = pair();
    pair.lose(&[1, 3, 5, 7]);
    pair.transfer(984 * 20);
    let most = pair.down.log.iter().map(|(_, ack)| ack.options.acknowledgement().sack().as_slice().len()).max();
    assert_eq!(most, Some(2));
    assert!(pair.down.log.iter().all(|(_, ack)| ack.options.len() <= 40));
    assert_eq!(pair.client.path().tally.timeouts, 0);
}

/// The echo is the timestamp of the acknowledged segment, in milliseconds.
#[test]
fn a_peer_echoes_what_it_answers() {
    let mut pair = pair();
    pair.send(984);
    pair.run_for(ms(200));
    let value = pair.up.log[0].1.timestamps().map(|timestamps| timestamps.value);
    assert_eq!(pair.down.log[0].1.timestamps().map(|timestamps| timestamps.echo), value);
}

/// [rfc-7323] sec. 4.1: where Karn's rule forbids a sample, timestamps give one: after a timeout behind half a second of queue,
/// the RTT is known.
#[test]
fn a_segment_that_was_sent_again_has_an_rtt() {
    let smoothed = |config: Config| {
        let mut pair = Pair::established(config.clone(), config);
        pair.lose(&[0]);
        pair.up.delay = ms(150);
        pair.send(100);
        pair.run_for(ms(1000));
        assert_eq!(pair.client.path().tally.sent_again, 1);
        assert_eq!(
            (pair.client.path().rtt_min, pair.client.path().tally.rtt_samples),
            (None, 0),
            "too coarse for that"
        );
        pair.client.path().rtt_smoothed.unwrap()
    };
    // The RTT was 100 ms in the handshake and 200 ms for the segment: 7/8 of the one and 1/8 of the other, to within two ticks.
    assert_eq!(smoothed(Config { timestamps: false, ..timed() }), ms(100));
    let with = smoothed(timed());
    assert!(with >= Span::from_micros(112_500) && with <= Span::from_micros(112_750), "{with}");
}

/// [rfc-3522] sec. 3.2: the original was so late that its ACK could be one of the retransmission, but the echo distinguishes
/// them.
#[test]
fn an_echo_takes_a_loss_back_at_once() {
    let mut pair = pair();
    pair.up.spacing = ms(1);
    // It arrives after 121 ms; it is retransmitted at 109 ms, acknowledged at 171 ms, and reported as a duplicate only at 209 ms.
    pair.up.faults.insert(5, Fault::Delay(ms(65)));
    pair.send(984 * 20);
    pair.run_for(ms(175));
    let path = pair.client.path();
    assert_eq!((path.tally.sent_again, path.tally.undone, path.tally.duplicates), (1, 1, 0));
    assert!(path.window >= 20.0, "{}", path.window);
}

/// [rfc-4015]: a single segment behind a queue of a second is not lost. With timestamps its ACK shows it; without, only a DSACK
/// would.
#[test]
fn an_echo_takes_a_timeout_back() {
    let mut pair = pair();
    let sid = pair.send(984 * 20);
    pair.run_for(ms(500));
    let before = pair.client.path().window;
    (pair.up.spacing, pair.up.free_at) = (ms(1), pair.now + ms(1000));
    pair.client.write(sid, 984);
    pair.run_for(ms(1101));
    let path = pair.client.path();
    assert!(path.tally.timeouts >= 1, "{:?}", path.tally);
    assert_eq!((path.tally.undone, path.tally.duplicates), (1, 0));
    assert!(path.window >= before, "{}", path.window);
}

/// [rfc-7323] sec. 5: a segment from a previous wrap of sequence numbers is within the window, but older than the latest segment.
#[test]
fn an_old_duplicate_is_dropped() {
    let mut pair = pair();
    let sid = pair.transfer(984 * 3);
    let received = pair.server.connection.received();
    let last = pair.up.log.last().unwrap().1;
    let forged = |pair: &Pair, ago: u32| {
        let value = last.timestamps().unwrap().value.wrapping_sub(ago);
        let options = crate::AcknowledgementOptions::default().with_timestamps(Timestamps { value, echo: 0 });
        let seq = pair.client_seq();
        let ssn = crate::Ssn::of(3);
        Segment {
            header: crate::Header { seq, ..last.header },
            options: Options::Acknowledgement(options),
            stream_header: Some(crate::StreamHeader { sid, ssn }),
            content: Content::Data(Marked { tag: sid.number().into(), start: 984 * 3, len: 10 }),
        }
    };
    for (ago, taken) in [(1, 0), (1 << 30, 0), (0, 14)] {
        let (segment, answers) = (forged(&pair, ago), pair.down.log.len());
        pair.server.connection.handle_segment(pair.now, pair.server.tuple, segment);
        pair.drain();
        assert_eq!(pair.server.connection.received(), received + taken, "{ago} ms older");
        assert_eq!(pair.down.log.len(), answers + 1, "and answered");
    }
}

/// [rfc-7323] sec. 3.2: a segment without timestamps is dropped, unless it is a reset.
#[test]
fn a_segment_without_a_clock_is_dropped() {
    let mut pair = pair();
    pair.send(984);
    pair.run_for(ms(200));
    let bare = |pair: &Pair, flags: Flags| {
        let header = crate::Header {
            seq: pair.client_seq(),
            ack: pair.server_seq(),
            flags,
            window: 10,
            ..crate::Header::default()
        };
        Segment { header, options: Options::default(), stream_header: None, content: Content::Nothing }
    };
    let (fin, reset) = (bare(&pair, Flags::FIN | Flags::ACK), bare(&pair, Flags::RST));
    pair.server.connection.handle_segment(pair.now, pair.server.tuple, fin);
    assert_eq!(pair.server.connection.state(), State::Established);
    pair.server.connection.handle_segment(pair.now, pair.server.tuple, reset);
    assert_eq!(pair.server.connection.state(), State::Closed);
}

/// [rfc-9293] sec. 3.7.4: the first of many small writes is sent at once, the others together when it is acknowledged.
#[test]
fn nagle_gathers_small_writes() {
    let segments = |nagle: bool| {
        let mut pair = Pair::established(Config { nagle, ..config() }, config());
        let sid = pair.client.open();
        for _ in 0..5 {
            pair.client.write(sid, 50);
            pair.drain();
            pair.run_for(ms(10));
        }
        pair.run_until_received(sid, 250);
        pair.up.data().map(|(_, segment)| segment.content.len()).collect::<Vec<_>>()
    };
    assert_eq!(segments(true), [50, 200]);
    assert_eq!(segments(false), [50; 5], "off by default");
    assert!(!config().nagle);
}

/// A full segment does not wait, nor does the end of a stream, nor data that other streams have data behind.
#[test]
fn nagle_holds_only_what_may_grow() {
    let mut pair = Pair::established(Config { nagle: true, ..config() }, config());
    let (one, two) = (pair.client.open(), pair.client.open());
    pair.client.write(one, 996 + 100);
    pair.drain();
    assert_eq!(pair.up.data().count(), 1, "the rest waits");
    pair.client.write(two, 10);
    pair.drain();
    assert_eq!(pair.up.data().count(), 2, "the rest of the first waits no more, the second does");
    pair.client.connection.streams().finish(two).unwrap();
    pair.drain();
    assert_eq!(pair.up.data().count(), 4, "its data and its end");
}

/// A full segment has the size that the configuration states: 1000 bytes of sequence space, with a stream header of 4 bytes and
/// timestamps of 12.
#[test]
fn a_full_segment_has_as_much_content_as_its_configuration_says() {
    for (streams, timestamps, content) in [(0, false, 1000), (8, false, 996), (0, true, 988), (8, true, 984)] {
        let config = Config { streams, timestamps, ..config() };
        assert_eq!(config.payload(), content);
        let mut pair = Pair::established(config.clone(), config);
        let sid = if streams == 0 { Sid::PLAIN } else { pair.client.open() };
        pair.client.write(sid, 20_000);
        pair.run_for(ms(500));
        assert_eq!(pair.up.data().map(|(_, segment)| segment.content.len()).max(), Some(content));
    }
}

/// [rfc-7323] sec. 5.4: a clock that started at a publicly known value would reveal how long the host has been running.
#[test]
fn a_clock_tells_nothing_of_its_age() {
    let mut pair = Pair::with(timed(), timed());
    pair.run_for(ms(150));
    for (_, segment) in [&pair.up.log[0], &pair.down.log[0]] {
        let age = segment.timestamps().unwrap().value.wrapping_sub(segment.header.seq.0);
        assert!(age > 1_000_000, "it says that it is {age} ms old");
    }
}

/// [rfc-9002] sec. 5.3: the ACK of a single segment waits for a second segment for 40 ms. The ACK reports this delay, so the
/// sender sees no queue. ACKs that are sent at once report no delay.
#[test]
fn an_acknowledgement_that_was_held_back_looks_like_no_queue() {
    let acks = crate::AckPolicy { every: 2, delay: ms(40) };
    let mut pair = Pair::established(config(), Config { acks, ..config() });
    let sid = pair.transfer(996 * 2);
    pair.run_for(ms(100));
    assert_eq!(pair.client.path().tally.rtt_latest, Some(ms(100)));
    pair.client.write(sid, 500);
    pair.run_for(ms(300));
    assert_eq!(pair.client.path().tally.rtt_latest, Some(ms(100)));
    let answers: Vec<_> = pair.down.log.iter().map(|(_, ack)| ack.options).collect();
    let delays: Vec<_> = answers.iter().map(|options| options.acknowledgement().delay()).collect();
    assert_eq!(delays, [ms(0), ms(40), ms(40)]);
    assert_eq!(answers.iter().map(Options::len).collect::<Vec<_>>(), [8, 12, 12]);
}

/// A peer that reports too long a delay cannot lower the RTT below the minimum RTT ever seen.
#[test]
fn a_delay_that_is_too_long_to_be_true_gives_the_least_rtt() {
    let mut pair = Pair::established(config(), config());
    let sid = pair.transfer(996 * 2);
    pair.run_for(ms(100));
    pair.up.delay = ms(80);
    pair.client.write(sid, 996);
    pair.run_for(ms(120));
    let (_, ack) = *pair.down.log.last().unwrap();
    let options = Options::Acknowledgement(ack.options.acknowledgement().with_delay(ms(500)));
    pair.client.connection.handle_segment(pair.now, pair.client.tuple, Segment { options, ..ack });
    assert_eq!(pair.client.path().tally.rtt_latest, Some(ms(100)), "of 120");
}
