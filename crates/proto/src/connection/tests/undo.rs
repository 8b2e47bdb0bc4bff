//! Losses that were none: what seemed lost was late.

use super::*;

/// A window of 20 segments that stays, on a wire that takes a millisecond for each.
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

/// A segment that is overtaken by four others and comes 4 ms late: it is sent again, and its original is acknowledged with
/// its own clock ([rfc-3522]).
#[test]
fn a_loss_that_was_a_reordering_is_taken_back_at_once() {
    let mut pair = timed();
    pair.up.faults.insert(5, Fault::Delay(ms(4)));
    let sid = pair.send(984 * 20);
    // The third above it arrives after 58 ms, it itself after 60.
    pair.run_for(ms(109));
    assert_eq!((pair.client.path().tally.sent_again, window(&pair)), (1, 10.0), "it seemed lost");
    pair.run_for(ms(2));
    let tally = pair.client.path().tally;
    assert_eq!((tally.undone, tally.sent_again), (1, 1));
    assert!(window(&pair) >= 20.0, "{}", window(&pair));
    pair.run_until_received(sid, 984 * 20);
}

/// [rfc-3708] sec. 3: the original came so late that it could have been the retransmission, but the receiver got both.
#[test]
fn a_duplicate_report_takes_a_loss_back() {
    let mut pair = pair();
    // Arrives after 121 ms; sent again at 109 ms, acknowledged at 171 ms, and as a duplicate at 209 ms.
    pair.up.faults.insert(5, Fault::Delay(ms(65)));
    pair.send(996 * 20);
    pair.run_for(ms(200));
    assert_eq!((pair.client.path().tally.undone, window(&pair)), (0, 10.0));
    pair.run_for(ms(20));
    let tally = pair.client.path().tally;
    assert_eq!((tally.undone, tally.duplicates, tally.sent_again), (1, 1, 1));
    assert!(window(&pair) >= 20.0, "{}", window(&pair));
}

/// A report of a duplicate that comes a timeout after the repair is about something else: the loss stays one.
#[test]
fn a_report_that_comes_much_later_takes_nothing_back() {
    let mut pair = pair();
    // Arrives after 856 ms; the repair is over at 171 ms.
    pair.up.faults.insert(5, Fault::Delay(ms(800)));
    let sid = pair.send(996 * 20);
    pair.run_for(ms(300));
    // What is acknowledged in between says that the repair is over.
    pair.client.write(sid, 996);
    pair.run_for(ms(800));
    let tally = pair.client.path().tally;
    assert_eq!((tally.undone, tally.duplicates, tally.sent_again), (0, 1, 1));
    assert!(window(&pair) < 15.0, "{}", window(&pair));
}

/// The queue may be gone: an ACK that comes earlier than any before it is none of the original for that.
#[test]
fn an_answer_that_comes_early_takes_nothing_back() {
    let mut pair = Pair::established(config(), config());
    let sid = pair.send(996 * 30);
    pair.run_until_received(sid, 996 * 30);
    // The queue that the RTT of 100 ms came from is gone, and with it ten segments.
    (pair.up.delay, pair.down.delay) = (ms(5), ms(5));
    let next = pair.up.count;
    pair.lose(&(next..next + 10).collect::<Vec<_>>());
    pair.client.write(sid, 996 * 10);
    let took = pair.run_until_received(sid, 996 * 40);
    assert!(took < Span::from_secs(2), "{took}");
    assert_eq!(pair.client.path().tally.undone, 0);
}

/// One of two was late, the other is gone: the loss was one.
#[test]
fn a_loss_that_was_half_a_reordering_stays() {
    let mut pair = pair();
    pair.up.faults.insert(5, Fault::Delay(ms(4)));
    pair.lose(&[7]);
    let sid = pair.send(996 * 20);
    pair.run_until_received(sid, 996 * 20);
    pair.run_for(ms(500));
    assert_eq!((pair.client.path().tally.undone, window(&pair)), (0, 10.0));
}

/// A second of silence, in which nothing is lost: one segment or the other is sent again, and then the ACKs of all originals
/// come, with their clocks. The window is what it was, the rest is not sent again, and the RTO is not backed off.
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

/// The tail of the window arrives, and with it nothing that says that the head was not lost: it was.
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

/// Only the way back was cut: everything had arrived. The receiver says so of each segment that comes again ([rfc-3708]).
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

/// Every law: a segment that is late by a few others costs nothing that lasts.
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

/// Whatever is lost, retransmissions included: what is gone is not late. Nothing is taken back, and hardly anything comes twice.
#[test]
fn real_losses_stay() {
    for loss_detection in [crate::LossDetection::Rack, crate::LossDetection::DupAcks] {
        for every in 5..40 {
            let mut pair = Pair::established(Config { loss_detection, ..config() }, config());
            pair.up.spacing = ms(1);
            pair.lose(&(0..2000).filter(|number| number % every == every / 2).collect::<Vec<_>>());
            let sid = pair.send(996 * 600);
            pair.run_until_received(sid, 996 * 600);
            let tally = pair.client.path().tally;
            assert_eq!(tally.undone, 0, "each {every}th: {tally:?}");
        }
    }
}
