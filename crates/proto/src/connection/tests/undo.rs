//! Spurious losses: a segment that seemed lost was only late.

use super::*;

/// A constant window of 20 segments, on a link that takes a millisecond per segment.
fn pair() -> Pair {
    steady(false)
}

/// The same with timestamps, which take 12 bytes of each segment.
fn timed() -> Pair {
    steady(true)
}

fn steady(timestamps: bool) -> Pair {
    let row = registry::find("reno").unwrap();
    let law = Settings::parse(row, [("initial_window", "20")]).unwrap();
    let mut pair = Pair::established(Config { law, timestamps, ..config() }, Config { timestamps, ..config() });
    pair.up.spacing = ms(1);
    pair
}

fn window(pair: &Pair) -> f64 {
    pair.client.path().window
}

/// Four segments overtake another, which arrives 4 ms late. It is retransmitted, and then its original is acknowledged with the
/// original's timestamp ([rfc-3522]).
#[test]
fn a_loss_that_was_a_reordering_is_taken_back_at_once() {
    let mut pair = timed();
    pair.up.faults.insert(5, Fault::Delay(ms(4)));
    let sid = pair.send(984 * 20);
    // The third segment above it arrives after 58 ms, it itself after 60 ms.
    pair.run_for(ms(109));
    assert_eq!((pair.client.path().tally.sent_again, window(&pair)), (1, 10.0), "it seemed lost");
    pair.run_for(ms(2));
    let tally = pair.client.path().tally;
    assert_eq!((tally.undone, tally.sent_again), (1, 1));
    assert!(window(&pair) >= 20.0, "{}", window(&pair));
    pair.run_until_received(sid, 984 * 20);
}

/// [rfc-3708] sec. 3: the original is so late that its ACK could be one of the retransmission, but the receiver got both.
#[test]
fn a_duplicate_report_takes_a_loss_back() {
    let mut pair = pair();
    // It arrives after 121 ms; it is retransmitted at 109 ms, acknowledged at 171 ms, and reported as a duplicate at 209 ms.
    pair.up.faults.insert(5, Fault::Delay(ms(65)));
    pair.send(996 * 20);
    pair.run_for(ms(200));
    assert_eq!((pair.client.path().tally.undone, window(&pair)), (0, 10.0));
    pair.run_for(ms(20));
    let tally = pair.client.path().tally;
    assert_eq!((tally.undone, tally.duplicates, tally.sent_again), (1, 1, 1));
    assert!(window(&pair) >= 20.0, "{}", window(&pair));
}

/// A DSACK that comes a timeout after the recovery is about something else: the loss is not undone.
#[test]
fn a_report_that_comes_much_later_takes_nothing_back() {
    let mut pair = pair();
    // It arrives after 856 ms; recovery ends at 171 ms.
    pair.up.faults.insert(5, Fault::Delay(ms(800)));
    let sid = pair.send(996 * 20);
    pair.run_for(ms(300));
    // An acknowledgement in between ends the recovery.
    pair.client.write(sid, 996);
    pair.run_for(ms(800));
    let tally = pair.client.path().tally;
    assert_eq!((tally.undone, tally.duplicates, tally.sent_again), (0, 1, 1));
    assert!(window(&pair) < 15.0, "{}", window(&pair));
}

/// The queue may be gone: an ACK that is faster than any before is not therefore one of the original.
#[test]
fn an_answer_that_comes_early_takes_nothing_back() {
    let mut pair = Pair::established(config(), config());
    let sid = pair.transfer(996 * 30);
    // The queue that caused the RTT of 100 ms is gone, and ten segments with it.
    (pair.up.delay, pair.down.delay) = (ms(5), ms(5));
    let next = pair.up.count;
    pair.lose(&(next..next + 10).collect::<Vec<_>>());
    pair.client.write(sid, 996 * 10);
    let took = pair.run_until_received(sid, 996 * 40);
    assert!(took < Span::from_secs(2), "{took}");
    assert_eq!(pair.client.path().tally.undone, 0);
}

/// One of two segments was late, the other is lost: the loss is not undone.
#[test]
fn a_loss_that_was_half_a_reordering_stays() {
    let mut pair = pair();
    pair.up.faults.insert(5, Fault::Delay(ms(4)));
    pair.lose(&[7]);
    pair.transfer(996 * 20);
    pair.run_for(ms(500));
    assert_eq!((pair.client.path().tally.undone, window(&pair)), (0, 10.0));
}

/// A delay of one second, in which nothing is lost: a segment or two are retransmitted, then the ACKs of all originals arrive,
/// with their timestamps. The window is restored, the rest is not retransmitted, and the RTO is not backed off.
#[test]
fn a_timeout_that_a_delay_caused_is_taken_back() {
    let mut pair = timed();
    let sid = pair.send(984 * 20);
    pair.run_for(ms(500));
    let before = window(&pair);
    pair.up.free_at = pair.now + ms(1000);
    pair.client.write(sid, 984 * 20);
    pair.run_until_received(sid, 984 * 40);
    pair.run_for(ms(50));
    let tally = pair.client.path().tally;
    assert!(tally.timeouts >= 1 && tally.undone == 1, "{tally:?}");
    assert!(tally.sent_again <= 6, "the probe and what left before the second ACK: {tally:?}");
    assert!(window(&pair) >= before, "{} after {before}", window(&pair));
}

/// The tail of the window arrives, but nothing shows that the head was not lost: it was lost.
#[test]
fn a_timeout_for_a_path_that_was_dead_stays() {
    let mut pair = pair();
    let sid = pair.send(996 * 20);
    pair.run_for(ms(500));
    pair.up.is_cut = true;
    pair.client.write(sid, 996 * 20);
    pair.run_for(ms(3000));
    pair.up.is_cut = false;
    pair.run_until_received(sid, 996 * 40);
    pair.run_for(ms(500));
    let tally = pair.client.path().tally;
    assert_eq!((tally.undone, tally.duplicates), (0, 0), "{tally:?}");
}

/// Only the return path was cut, and all segments had arrived. The receiver reports each retransmission as a duplicate
/// ([rfc-3708]).
#[test]
fn a_timeout_for_lost_acknowledgements_is_taken_back() {
    let mut pair = pair();
    let sid = pair.send(996 * 20);
    pair.run_for(ms(500));
    let before = window(&pair);
    pair.down.is_cut = true;
    pair.client.write(sid, 996 * 20);
    pair.run_until(|pair| pair.client.path().tally.timeouts == 1);
    pair.down.is_cut = false;
    assert!(window(&pair) < 2.0);
    pair.run_for(ms(2000));
    let tally = pair.client.path().tally;
    assert_eq!((tally.timeouts, tally.undone), (1, 1), "{tally:?}");
    assert!(window(&pair) >= before, "{} after {before}: {tally:?}", window(&pair));
    assert_eq!(pair.client.connection.acked(), pair.client.connection.sent());
}

/// With every law, a segment that is overtaken by a few others has no lasting effect.
#[test]
fn every_law_forgives_a_reordering() {
    for row in registry::rows() {
        let law = Settings::parse(row, [("initial_window", "20")]).unwrap();
        let mut pair = Pair::established(Config { law, ..config() }, config());
        pair.up.spacing = ms(1);
        pair.up.faults.insert(5, Fault::Delay(ms(4)));
        pair.send(996 * 20);
        pair.run_for(ms(400));
        let path = pair.client.path();
        assert_eq!((path.tally.undone, path.tally.timeouts), (1, 0), "{}", row.name);
        assert!(path.window >= 20.0, "{}: {}", row.name, path.window);
    }
}

/// Whatever is lost, retransmissions included: a lost segment is not late. Nothing is undone, and hardly any segment arrives
/// twice.
#[test]
fn real_losses_stay() {
    for loss_detection in [crate::LossDetection::Rack, crate::LossDetection::DupAcks] {
        for every in 5..40 {
            let mut pair = Pair::established(Config { loss_detection, ..config() }, config());
            pair.up.spacing = ms(1);
            pair.lose(&(0..2000).filter(|number| number % every == every / 2).collect::<Vec<_>>());
            pair.transfer(996 * 600);
            let tally = pair.client.path().tally;
            assert_eq!(tally.undone, 0, "each {every}th: {tally:?}");
        }
    }
}
