//! Losses found by counting: with SACK as an option, without it always.

use super::*;
use crate::{Failover, LossDetection};

fn config_of(window: &str, loss_detection: LossDetection) -> Config {
    let row = registry::find("reno").unwrap();
    let law = Settings::parse(row, [("initial_window", window)]).unwrap();
    Config { law, loss_detection, ..config() }
}

/// Counting with SACK, and a window of so many segments.
fn counting(window: &str) -> Pair {
    Pair::established(config_of(window, LossDetection::DupAcks), config())
}

/// A pair that has no SACK.
fn without_sack(window: &str) -> Pair {
    let mut pair = Pair::with(config_of(window, LossDetection::Rack), config());
    (pair.up.is_without_sack, pair.down.is_without_sack) = (true, true);
    pair.run_for(ms(150));
    (pair.up.count, pair.down.count) = (0, 0);
    pair.up.log.clear();
    pair.down.log.clear();
    pair
}

/// [rfc-5681] sec. 3.2 and [rfc-6675] sec. 2: two that overtake are a reordering, three are a loss; time does not count.
#[test]
fn three_that_overtake_are_a_loss_and_two_are_none() {
    for (late, again) in [(2, 0), (3, 1)] {
        let mut pair = counting("20");
        pair.up.spacing = ms(1);
        pair.up.faults.insert(5, Fault::Delay(ms(late) + Span::from_micros(500)));
        let sid = pair.send(996 * 20);
        pair.run_until_received(sid, 996 * 20);
        pair.run_for(ms(300));
        assert_eq!(pair.client.path().tally.sent_again, again, "{late} ms late");
    }
}

/// With SACK several losses are repaired within one round trip, and the window is halved once.
#[test]
fn counting_repairs_a_window_in_a_round_trip() {
    let mut pair = counting("20");
    pair.lose(&[3, 4, 8, 15]);
    let sid = pair.send(996 * 20);
    assert_eq!(pair.run_until_received(sid, 996 * 20), ms(150));
    let tally = pair.client.path().tally;
    assert_eq!((tally.sent_again, tally.timeouts), (4, 0));
}

/// The same tail on a path that was added: its losses are found as those of the first one are.
#[test]
fn a_path_that_is_added_counts_if_the_first_one_does() {
    for (loss_detection, timeouts) in [(LossDetection::DupAcks, 1), (LossDetection::Rack, 0)] {
        // Else the other path would have it before the timer.
        let client = Config { paths_max: 2, failover: Failover::Never, ..config_of("20", loss_detection) };
        let mut pair = Pair::established(client, Config { paths_max: 2, ..config() });
        let second = pair.join(ms(50));
        let up = &mut pair.routes[0].up;
        up.faults.extend([18, 19].map(|number| (up.count + number, Fault::Lose)));
        let sid = pair.send(996 * 40);
        pair.run_until_received(sid, 996 * 40);
        let tally = pair.client.connection.path(second).unwrap().tally;
        assert_eq!((tally.sent - tally.sent_again, tally.timeouts), (20, timeouts), "{loss_detection:?}");
    }
}

/// No tail loss probe: nothing overtakes the last ones, so the timer is what finds them.
#[test]
fn a_lost_tail_waits_for_the_timer() {
    let mut pair = counting("20");
    pair.lose(&[18, 19]);
    let sid = pair.send(996 * 20);
    pair.run_until_received(sid, 996 * 20);
    assert_eq!(pair.client.path().tally.timeouts, 1);
}

/// [rfc-3042]: of a window of three the first is lost. Two duplicates let a fourth and a fifth segment out, these bring the third
/// and fourth duplicate, and no timer is needed: with SACK or without.
#[test]
fn two_duplicates_let_two_new_segments_out() {
    for (mut pair, most) in [(without_sack("3"), 5), (counting("3"), 7)] {
        pair.lose(&[0]);
        let sid = pair.send(996 * 10);
        pair.run_for(ms(100));
        // With SACK they count for slow start, too.
        assert!((5..=most).contains(&pair.up.data().count()), "{}", pair.up.data().count());
        pair.run_for(ms(100));
        let first = pair.up.log[0].1.header.seq;
        assert_eq!(pair.up.data().filter(|(_, segment)| segment.header.seq == first).count(), 2);
        pair.run_until_received(sid, 996 * 10);
        assert_eq!(pair.client.path().tally.timeouts, 0);
    }
}

/// [rfc-6582] sec. 1: one lost segment a round trip. The first is sent again at 100 ms, the others each with a partial ACK.
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

/// [rfc-6582] sec. 3.2 step 3: each further duplicate lets a new segment out once half of the window has left, so the pipe does
/// not run empty.
#[test]
fn without_sack_a_recovery_keeps_sending() {
    let mut pair = without_sack("20");
    pair.lose(&[0]);
    let sid = pair.send(996 * 100);
    pair.run_for(ms(100));
    // Two for the first two of 19 duplicates, the lost one again with the third, and one each from the 13th on: 22 − 13 are out.
    assert_eq!(pair.up.data().count() as u64, 20 + 2 + 1 + 7);
    pair.run_until_received(sid, 996 * 100);
    let tally = pair.client.path().tally;
    assert_eq!((tally.sent_again, tally.timeouts), (1, 0));
}

/// An update of the window answers nothing.
#[test]
fn window_updates_are_no_duplicates() {
    let small = Config { receive_buffer: 8000, ..config() };
    let mut pair = Pair::with(config_of("20", LossDetection::Rack), small);
    (pair.up.is_without_sack, pair.down.is_without_sack) = (true, true);
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

/// [rfc-6582] sec. 3.2 step 2: what was sent again for nothing brings duplicates, which are no new loss.
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

/// An ACK from nowhere, for so many bytes, that lets so many come.
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

/// Three ACKs that say nothing new are a loss, three that open the window are none ([rfc-5681] sec. 2).
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

/// [rfc-6582] sec. 3.2 step 2: duplicates at the end of what a timeout repaired are its echo; one segment further they are not.
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

/// [rfc-6582] sec. 3.2 step 3: "deflate the congestion window by the amount of new data acknowledged". Of twenty the first and the eleventh
/// are lost. 18 duplicates have let two, the first again and six more out; then all but the eleventh of the window and the eight are known
/// to have arrived or are on their way: eight and the eleventh again are nine, so there is room for one more in a window of ten.
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
