//! Fewer acknowledgements, if a round trip has many segments.

use super::*;
use crate::{Form, PathId, Record};

fn sealed() -> Config {
    Config { form: Form::Sealed, paths_max: 4, ack_requests: 16, ..config() }
}

/// Ten thousand segments a second over an RTT of 100 ms, and a law that keeps more segments queued than one ACK acknowledges.
fn busy(config: Config) -> Pair {
    let law = Settings::parse(registry::find("fast").unwrap(), [("alpha", "200")]).unwrap();
    let mut pair = Pair::established(Config { law, ..config.clone() }, config);
    pair.up.spacing = Span::from_micros(100);
    pair
}

/// The number of segments with content sent, and of acknowledgements returned, within a second on a full path.
fn counts(mut pair: Pair) -> (usize, usize, Pair) {
    pair.send(1 << 40);
    pair.run_for(Span::from_secs(3));
    pair.up.log.clear();
    pair.down.log.clear();
    pair.run_for(Span::from_secs(1));
    let (segments, acks) = (pair.up.data().count(), pair.down.log.len());
    (segments, acks, pair)
}

/// A window of 1200 segments: one ACK for 16 segments carries as much information as one for each.
#[test]
fn a_sixteenth_of_all_acknowledgements_will_do() {
    let (each, acks, _) = counts(busy(Config { ack_requests: 1, ..sealed() }));
    assert!(acks >= each - 10 && each > 9900, "{acks} for {each}");
    let (segments, acks, pair) = counts(busy(sealed()));
    assert!(segments > 9900, "{segments} of {each}");
    assert!((14..=17).contains(&(segments / acks)), "{acks} for {segments}");
    let path = pair.client.path();
    assert_eq!((path.tally.sent_again, path.tally.timeouts), (0, 0));
    // [multihoming-2010] uses the RTT without the peer's delay.
    let queue = path.rtt_smoothed.unwrap().saturating_sub(ms(100));
    assert!((ms(18)..ms(22)).contains(&queue), "{queue}");
}

/// By default one ACK for two segments is requested, as in TCP ([rfc-9293] sec. 3.8.6.3).
#[test]
fn each_second_segment_is_answered_by_default() {
    let law = Settings::default_for(registry::find("anabranch").unwrap());
    let (segments, acks, pair) = counts(busy(Config { ack_requests: Config::new(law).ack_requests, ..sealed() }));
    assert!(segments > 9900 && (segments / 2..segments / 2 + 200).contains(&acks), "{acks} for {segments}");
    assert_eq!(pair.client.path().tally.sent_again, 0);
}

/// Ten thousand segments a second: ten arrive in 1 ms, 100 in 10 ms, of which 32 share an ACK. A request that differs by less than half is
/// not sent.
#[test]
fn segments_within_the_interval_share_an_ack() {
    for (interval, expected) in [(1, 10.0), (10, 32.0)] {
        let (segments, acks, pair) = counts(busy(Config { ack_requests: 2, ack_interval: ms(interval), ..sealed() }));
        assert!(segments > 9800, "{segments}");
        let shared = segments as f64 / acks as f64;
        assert!((0.66 * expected..=1.05 * expected).contains(&shared), "{interval} ms: an ACK for {shared} segments");
        assert_eq!(pair.client.path().tally.sent_again, 0);
    }
}

/// Nothing is requested in the TCP form, nor if a round trip has few segments.
#[test]
fn receiver_of_little_data_answers_each_segment() {
    let (segments, acks, _) = counts(busy(config()));
    assert!(acks >= segments - 10);
    let law = Settings::parse(registry::find("fast").unwrap(), [("alpha", "20")]).unwrap();
    let mut pair = Pair::established(Config { law, ..sealed() }, sealed());
    pair.up.spacing = ms(10);
    let (segments, acks, _) = counts(pair);
    assert!(acks >= segments - 10, "{acks} for {segments}");
}

/// A hole is acknowledged at once. The end of a burst waits for a quarter of a round trip.
#[test]
fn a_hole_and_an_end_are_not_waited_for() {
    let mut pair = busy(sealed());
    let sid = pair.transfer(996 * 20_000);
    pair.run_for(ms(300));
    pair.up.spacing = Span::ZERO;
    assert!(pair.up.records().any(|record| matches!(record, Record::AcknowledgeEach { every: 2.., .. })));
    (pair.up.count, pair.down.count) = (0, 0);
    pair.down.log.clear();
    pair.client.write(sid, 996 * 40);
    pair.run_until_received(sid, 996 * 20_040);
    // Later requests for acknowledgements are acknowledged later.
    let (begin, sent) = (pair.now, pair.client.connection.sent());
    pair.run_until(|pair| pair.client.connection.acked() >= sent);
    assert!(pair.now - begin <= ms(75), "{}", pair.now - begin);
    assert!(pair.down.log.len() < 40);
    assert_eq!(pair.client.path().tally.sent_again, 0);
    pair.lose(&[pair.up.count + 2]);
    pair.client.write(sid, 996 * 40);
    pair.run_for(ms(400));
    let path = pair.client.path();
    assert_eq!((path.tally.sent_again, path.tally.timeouts, path.tally.lost), (1, 0, 1));
}

/// Two paths with rare acknowledgements are not suspected because of that.
#[test]
fn no_path_is_suspected_because_its_answers_wait() {
    let mut pair = busy(sealed());
    let second = pair.join(ms(30));
    pair.routes[0].up.spacing = Span::from_micros(100);
    let sid = pair.client.open();
    for round in 0..40u64 {
        // A few segments more than are acknowledged at once, then nothing for a while.
        pair.client.write(sid, 996 * if round < 10 { 3000 } else { 20 + round % 7 });
        pair.run_for(ms(500));
    }
    let failed = pair.client.events.iter().filter(|event| matches!(event, Event::PathFailed(_))).count();
    let again = [PathId::FIRST, second].map(|id| pair.client.connection.path(id).unwrap().tally.sent_again);
    assert_eq!((failed, again), (0, [0, 0]));
}

/// While the window doubles in each round trip, eight ACKs in a round trip are enough, and the growth is the same: 640 segments after six
/// round trips from ten.
#[test]
fn growing_sender_is_answered_eight_times_a_round_trip() {
    let grown = |ack_requests| {
        let mut pair = Pair::established(Config { ack_requests, ..sealed() }, sealed());
        pair.up.spacing = Span::from_micros(100);
        pair.send(1 << 20);
        pair.run_for(ms(550));
        pair.down.log.clear();
        pair.run_for(ms(100));
        (pair.client.path().window, pair.down.log.len())
    };
    let ((window_each, acks_each), (window, acks)) = (grown(1), grown(2));
    assert!(window_each > 500.0 && window > 0.95 * window_each, "{window} of {window_each}");
    assert!((8..=acks_each / 6).contains(&acks), "{acks} of {acks_each}");
}
