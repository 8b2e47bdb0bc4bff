//! Loss detection by counting duplicate ACKs: with SACK if so configured, without SACK always.

use super::*;
use crate::{Failover, LossDetection};

fn config_of(window: &str, loss_detection: LossDetection) -> Config {
    let row = registry::find("reno").unwrap();
    let law = Settings::parse(row, [("initial_window", window)]).unwrap();
    Config { law, loss_detection, ..config() }
}

/// Counting with SACK, and a window of `window` segments.
fn counting(window: &str) -> Pair {
    Pair::established(config_of(window, LossDetection::DupAcks), config())
}

fn without_sack(window: &str) -> Pair {
    let mut pair = Pair::with(config_of(window, LossDetection::Rack), config());
    (pair.up.middlebox, pair.down.middlebox) = (removes_sack, removes_sack);
    pair.run_for(ms(150));
    (pair.up.count, pair.down.count) = (0, 0);
    pair.up.log.clear();
    pair.down.log.clear();
    pair
}

/// [rfc-5681] sec. 3.2 and [rfc-6675] sec. 2: two overtaking segments are a reordering, three are a loss. Time does not count.
#[test]
fn three_that_overtake_are_a_loss_and_two_are_none() {
    for (late, again) in [(2, 0), (3, 1)] {
        let mut pair = counting("20");
        pair.up.spacing = ms(1);
        pair.up.faults.insert(5, Fault::Delay(ms(late) + Span::from_micros(500)));
        pair.transfer(996 * 20);
        pair.run_for(ms(300));
        assert_eq!(pair.client.path().tally.sent_again, again, "{late} ms late");
    }
}

/// With SACK, several losses are repaired within one round trip, and the window is halved once.
#[test]
fn counting_repairs_a_window_in_a_round_trip() {
    let mut pair = counting("20");
    pair.lose(&[3, 4, 8, 15]);
    let sid = pair.send(996 * 20);
    assert_eq!(pair.run_until_received(sid, 996 * 20), ms(150));
    let tally = pair.client.path().tally;
    assert_eq!((tally.sent_again, tally.timeouts), (4, 0));
}

/// The same at the end of a window on an added path: its losses are found as on the first path.
#[test]
fn a_path_that_is_added_counts_if_the_first_one_does() {
    for (loss_detection, timeouts) in [(LossDetection::DupAcks, 1), (LossDetection::Rack, 0)] {
        // Otherwise the other path would retransmit it before the timer.
        let client = Config { paths_max: 2, failover: Failover::Never, ..config_of("20", loss_detection) };
        let mut pair = Pair::established(client, Config { paths_max: 2, ..config() });
        let second = pair.join(ms(50));
        let up = &mut pair.routes[0].up;
        up.faults.extend([18, 19].map(|number| (up.count + number, Fault::Lose)));
        pair.transfer(996 * 40);
        let tally = pair.client.connection.path(second).unwrap().tally;
        assert_eq!((tally.sent - tally.sent_again, tally.timeouts), (20, timeouts), "{loss_detection:?}");
    }
}

/// There is no tail loss probe. No segment overtakes the last ones, so only the timer finds their loss.
#[test]
fn a_lost_tail_waits_for_the_timer() {
    let mut pair = counting("20");
    pair.lose(&[18, 19]);
    pair.transfer(996 * 20);
    assert_eq!(pair.client.path().tally.timeouts, 1);
}

/// [rfc-3042]: the first segment of a window of three is lost. The two duplicate ACKs each send a new segment. These bring the
/// third and fourth duplicate ACK, so no timer is needed, with SACK or without.
#[test]
fn two_duplicates_let_two_new_segments_out() {
    for (mut pair, most) in [(without_sack("3"), 5), (counting("3"), 7)] {
        pair.lose(&[0]);
        let sid = pair.send(996 * 10);
        pair.run_for(ms(100));
        // With SACK the new segments also count for slow start.
        assert!((5..=most).contains(&pair.up.data().count()), "{}", pair.up.data().count());
        pair.run_for(ms(100));
        let first = pair.up.log[0].1.header.seq;
        assert_eq!(pair.up.data().filter(|(_, segment)| segment.header.seq == first).count(), 2);
        pair.run_until_received(sid, 996 * 10);
        assert_eq!(pair.client.path().tally.timeouts, 0);
    }
}

/// [rfc-6582] sec. 1: one lost segment is retransmitted per round trip. The first is retransmitted at 100 ms, each of the others
/// with a partial ACK.
#[test]
fn without_sack_a_segment_is_repaired_a_round_trip() {
    for (lost, trips) in [(&[3][..], 1), (&[3, 9], 2), (&[3, 4, 5], 3), (&[3, 7, 11, 15], 4)] {
        let mut pair = without_sack("20");
        pair.lose(lost);
        let sid = pair.send(996 * 20);
        assert_eq!(pair.run_until_received(sid, 996 * 20), ms(50 + 100 * trips), "{lost:?}");
        let tally = pair.client.path().tally;
        assert_eq!((tally.sent_again, tally.timeouts), (trips, 0), "{lost:?}");
    }
}

/// [rfc-6582] sec. 3.2 step 3: once half of the window has left the network, each further duplicate ACK sends a new segment, so
/// the path does not run empty.
#[test]
fn without_sack_a_recovery_keeps_sending() {
    let mut pair = without_sack("20");
    pair.lose(&[0]);
    let sid = pair.send(996 * 100);
    pair.run_for(ms(100));
    // The first two of 19 duplicate ACKs send a segment each, the third retransmits the lost one, and from the 13th on each sends
    // one: 22 − 13 are in flight.
    assert_eq!(pair.up.data().count() as u64, 20 + 2 + 1 + 7);
    pair.run_until_received(sid, 996 * 100);
    let tally = pair.client.path().tally;
    assert_eq!((tally.sent_again, tally.timeouts), (1, 0));
}

/// A window update acknowledges no segment.
#[test]
fn window_updates_are_no_duplicates() {
    let small = Config { receive_buffer: 8000, ..config() };
    let mut pair = Pair::with(config_of("20", LossDetection::Rack), small);
    (pair.up.middlebox, pair.down.middlebox) = (removes_sack, removes_sack);
    pair.run_for(ms(150));
    pair.server.is_reading = false;
    let sid = pair.send(996 * 40);
    for _ in 0..200 {
        pair.run_for(ms(20));
        pair.server.read_some(sid, 500);
    }
    pair.server.is_reading = true;
    pair.run_until_received(sid, 996 * 40);
    assert_eq!(pair.client.path().tally.sent_again, 0);
}

/// [rfc-6582] sec. 3.2 step 2: spurious retransmissions bring duplicate ACKs, which are no new loss.
#[test]
fn duplicates_of_a_timeout_begin_no_recovery() {
    let mut pair = without_sack("20");
    let sid = pair.send(996 * 20);
    pair.run_for(ms(500));
    pair.down.is_cut = true;
    pair.client.write(sid, 996 * 20);
    pair.run_for(ms(700));
    pair.down.is_cut = false;
    pair.run_until(|pair| pair.client.connection.acked() == pair.client.connection.sent());
    pair.run_for(ms(500));
    let tally = pair.client.path().tally;
    assert!(tally.timeouts > 0 && tally.sent_again <= tally.timeouts + 3, "{tally:?}");
}

/// A forged ACK of everything below `acked`, with this window.
fn ack(pair: &mut Pair, acked: u64, window: u16) {
    let header = crate::Header {
        seq: pair.server_seq(),
        ack: pair.client_at(acked),
        flags: Flags::ACK,
        window,
        ..crate::Header::default()
    };
    let options = crate::Options::default();
    let segment = Segment { header, options, stream_header: None, content: Content::Nothing };
    pair.client.connection.handle_segment(pair.now, pair.client.tuple, segment);
    pair.drain();
}

/// Three ACKs without any news are a loss; three ACKs that open the window are not ([rfc-5681] sec. 2).
#[test]
fn an_ack_that_opens_the_window_is_no_duplicate() {
    for (step, again) in [(0, 1), (1, 0)] {
        let mut pair = without_sack("20");
        (pair.up.is_cut, pair.down.is_cut) = (true, true);
        pair.send(996 * 20);
        for number in 0..5 {
            ack(&mut pair, 1, 60_000 + step * number);
        }
        assert_eq!(pair.client.path().tally.sent_again, again);
    }
}

/// [rfc-6582] sec. 3.2 step 2: duplicate ACKs at the end of what a timeout retransmitted are caused by these retransmissions; one
/// segment further they are not.
#[test]
fn a_recovery_needs_an_ack_beyond_the_last_one() {
    let mut pair = without_sack("20");
    (pair.up.is_cut, pair.down.is_cut) = (true, true);
    let sid = pair.send(996 * 20);
    pair.run_until(|pair| pair.client.path().tally.timeouts == 1);
    ack(&mut pair, 20_001, 60_000);
    pair.client.write(sid, 996 * 20);
    pair.drain();
    let again = pair.client.path().tally.sent_again;
    (0..4).for_each(|_| ack(&mut pair, 20_001, 60_000));
    assert_eq!(pair.client.path().tally.sent_again, again);
    ack(&mut pair, 21_001, 59_000);
    (0..4).for_each(|_| ack(&mut pair, 21_001, 59_000));
    assert_eq!(pair.client.path().tally.sent_again, again + 1);
}

/// [rfc-6582] sec. 3.2 step 3: "deflate the congestion window by the amount of new data acknowledged". The first and the eleventh
/// of twenty segments are lost. 18 duplicate ACKs have sent two, the first one again, and six more. After the partial ACK, all of
/// the window but the eleventh is known to have arrived, and eight new segments are in flight. With the eleventh again these are
/// nine, so a window of ten has room for one more.
#[test]
fn a_partial_ack_takes_back_what_duplicates_stood_for() {
    let mut pair = without_sack("20");
    (pair.up.is_cut, pair.down.is_cut) = (true, true);
    pair.send(996 * 100);
    (0..=18).for_each(|_| ack(&mut pair, 1, 60_000));
    assert_eq!(pair.up.data().count(), 20 + 2 + 1 + 6);
    ack(&mut pair, 10_001, 60_000);
    let left: Vec<_> = pair.up.data().skip(29).map(|(_, segment)| segment.header.seq).collect();
    assert_eq!(left, [pair.client_at(10_001), pair.client_at(28_001)]);
}
