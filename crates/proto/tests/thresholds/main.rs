//! Requirements on the transport, seen from outside: how long a transfer may take on paths that are long, lose, jitter, reorder
//! or die. Each bound has a closed form and a margin. The value measured when the bound was set stands beside it.

mod dead_path;
mod grid;
mod multipath;
mod path;

use anabranch_proto::{Config, LossDetection, Pacing};
use anabranch_units::{Span, Time};
use path::{Outcome, Path, World, config, transfer};

fn ms(count: u64) -> Span {
    Span::from_millis(count)
}

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

#[track_caller]
fn expect_within(outcome: &Outcome, most: f64, what: &str) {
    let took = outcome.took.as_secs_f64();
    assert!(took <= most, "{what}: {took:.2} s, at most {most:.2} s are allowed; {:?}", outcome.path.tally);
}

fn satellite(loss: f64) -> Path {
    Path { loss, ..Path::new("250Mbit/s", ms(600)) }
}

/// The path holds 12,500 segments. From ten segments on that takes 11 doublings, in which 30 MB are sent. The other 70 MB are
/// sent at full rate. The handshake takes a round trip and the last byte half of one: 9.9 s.
fn satellite_ideal() -> f64 {
    12.5 * 0.6 + satellite(0.0).time_of(70_000_000).as_secs_f64()
}

/// A tenth more than the ideal is allowed, because multiplicative increase is paced, and so ends close to the window that fills
/// the path. No drain happens in the middle, while the window still grows. Measured: 10.3 s with drains and without.
#[test]
fn a_satellite_link_is_filled() {
    let path = satellite(0.0);
    let outcome = transfer(&path, &config("anabranch", &[]), 100_000_000);
    expect_within(&outcome, 1.1 * satellite_ideal(), "no loss");
    assert_eq!(outcome.path.tally.sent_again, 0, "{:?}", outcome.path.tally);
}

/// Random loss: from 0.1 % on there are several holes at any time, up to 400. A random-loss trial (not needed at 0.1 %) takes
/// four round trips without growth, and may happen again while the window grows; each keeps three quarters of the window for that
/// long. So twice the ideal is allowed. Measured: 10.9, 13.1 and 15.1 s; a law that halves its window takes 1060 s in the first
/// case. There is no timeout, and only lost segments are retransmitted.
#[test]
fn a_satellite_link_that_loses_is_not_given_up() {
    for loss in [0.001, 0.01, 0.03] {
        let (path, bytes) = (satellite(loss), 100_000_000);
        let outcome = transfer(&path, &config("anabranch", &[]), bytes);
        expect_within(&outcome, 2.0 * satellite_ideal(), &format!("{loss} lost"));
        let tally = outcome.path.tally;
        assert_eq!((tally.timeouts, tally.duplicates, tally.undone), (0, 0, 0), "{tally:?}");
    }
}

/// Once the path is full it stays full, except for losses, for drains (half a window for five round trips every ten seconds), and
/// for chance trials of three seconds: at least 0.75 of the rate. Measured: 98 and 94 %.
#[test]
fn a_satellite_link_that_loses_stays_full() {
    for loss in [0.001, 0.01] {
        let mut world = World::new(satellite(loss), &config("anabranch", &[]), 2_000_000_000);
        world.run_until(|world| world.now >= at(30_000));
        let (before, began) = (world.read, world.now);
        world.run_until(|world| world.now >= at(50_000));
        let mbits = (world.read - before) as f64 * 8e-6 / world.now.since(began).as_secs_f64();
        assert!(mbits > 0.75 * 250.0, "{loss} lost: {mbits:.0} of 250 Mbit/s");
    }
}

/// A hundred messages of 100 kB at once, as one transfer: 1.6 s are seven doublings from ten segments to 833, in 0.7 s, and the
/// rest at full rate. A tenth more is allowed, and a fourth more with a trial. Measured: 1.52 s and 1.63 s.
#[test]
fn a_short_transfer_does_not_wait_for_its_losses() {
    for loss in [0.0, 0.01] {
        let path = Path { loss, ..Path::new("100Mbit/s", ms(100)) };
        let bytes = 10_000_000;
        let ideal = 0.15 + 0.7 + path.time_of(bytes - 1_200_000).as_secs_f64();
        let outcome = transfer(&path, &config("anabranch", &[]), bytes);
        expect_within(&outcome, if loss > 0.0 { 1.25 } else { 1.1 } * ideal, &format!("{loss} lost"));
    }
}

/// 50 Mbit/s, 20 ms, and up to 10 ms of additional delay per frame, which also delays the frames behind it. Twice the time at
/// full rate is allowed, as jitter looks like a queue, so the path is not quite full. **With losses the law gives up most of the path**:
/// each takes a part of alpha, and what is left is too little for a delay that never goes (docs/law.md, "Jitter with losses"). 3.3 s are
/// ideal; measured: at most 6.6 s, and 24 to 60 s with losses.
#[test]
fn wifi_that_loses_and_jitters_is_used() {
    let bytes = 20_000_000;
    for (loss, times) in [(0.0, 2.0), (0.01, 8.0), (0.03, 14.0), (0.045, 20.0)] {
        let path = Path { loss, jitter: ms(10), ..Path::new("50Mbit/s", ms(20)) };
        let outcome = transfer(&path, &config("anabranch", &[]), bytes);
        expect_within(&outcome, times * path.time_of(bytes).as_secs_f64(), &format!("{loss} lost"));
        let tally = outcome.path.tally;
        assert_eq!((tally.timeouts, tally.duplicates), (0, 0), "jitter is no loss: {tally:?}");
    }
}

/// After an outage of D the next retransmission is sent at most D later, as each timeout is twice the one before; the first is a
/// probe and a timeout of SRTT + 200 ms. The whole transfer takes no longer than that and a fourth more than at full rate.
/// Measured from the beginning of the outage to the first new byte: 2.0, 4.0, 8.1, 16.3, 32.6 s.
#[test]
fn a_black_hole_is_left_in_time() {
    for seconds in [1, 2, 5, 10, 20] {
        let (from, until) = (at(2000), at(2000 + 1000 * seconds));
        let path = Path { outages: vec![(from, until)], ..Path::new("50Mbit/s", ms(50)) };
        let (bytes, ideal) = (100_000_000, path.time_of(100_000_000));
        let mut world = World::new(path, &config("anabranch", &[]), bytes);
        world.run_until(|world| world.now >= until);
        let before = world.read;
        world.run_until(|world| world.read > before);
        let silence = world.now - from;
        let most = Span::from_secs(2 * seconds) + ms(2 * (50 + 200)) + ms(50);
        assert!(silence <= most, "{seconds} s of outage cost {silence}, at most {most} are allowed");
        world.run_until(|world| world.read == bytes);
        let (took, most) = (world.now.since(Time::ZERO), most + ideal + ideal / 4);
        assert!(took <= most, "{seconds} s of outage: {took} in all, at most {most} are allowed");
        let tally = world.report().tally;
        assert!(tally.duplicates <= 4, "a path that was dead lost what it had: {tally:?}");
    }
}

/// Every hundredth segment is overtaken by 1 to 50 others, on a path of 12 Mbit/s and 100 ms, where that takes as many
/// milliseconds. Two overtaking segments are no loss. From three on the first case teaches RACK, for half of a round trip a
/// second one: [rfc-8985] sec. 6.2 step 4 widens the window by a quarter of the minimum RTT each time. This costs a hundredth of
/// the time. The law's response to the spurious loss is undone, if the law took it for congestion at all. Measured: 7.27 s
/// always, and at most 3 spurious retransmissions, one of which had a response.
#[test]
fn reordering_is_learnt_and_costs_nothing() {
    let path = |late| Path { late, ..Path::new("12Mbit/s", ms(100)) };
    let bytes = 10_000_000;
    let before = transfer(&path(None), &config("anabranch", &[]), bytes);
    for (overtaken_by, again) in [(1, 0), (2, 0), (3, 2), (5, 2), (10, 2), (20, 3), (50, 3)] {
        let late = Span::from_micros(1000 * overtaken_by + 500);
        let outcome = transfer(&path(Some((100, late))), &config("anabranch", &[]), bytes);
        expect_within(&outcome, 1.01 * before.took.as_secs_f64(), &format!("{overtaken_by} overtake"));
        let tally = outcome.path.tally;
        assert!(tally.sent_again <= again, "{overtaken_by} overtake: {tally:?}");
        assert_eq!((tally.duplicates, tally.timeouts), (tally.sent_again, 0), "{overtaken_by} overtake: {tally:?}");
        // A spurious loss that was classified as random may be undone as well.
        assert!(tally.undone + tally.random >= tally.sent_again, "{overtaken_by} overtake: {tally:?}");
    }
}

/// Duplicate ACK counting does not adapt: each segment overtaken by three others is retransmitted; with timestamps no other
/// segments are. The window reduction is undone: with timestamps when the original is acknowledged, without when the receiver has
/// reported the duplicate, a round trip later. So the transfer takes at most twice as long. Measured, where 7.5 s are ideal: 12.1
/// s without timestamps, 11.5 s with them.
#[test]
fn reordering_is_no_storm_where_losses_are_counted() {
    let bytes = 10_000_000;
    let counting = LossDetection::DupAcks;
    let path = |late| Path { late, ..Path::new("12Mbit/s", ms(100)) };
    let cases = [true, false].into_iter().flat_map(|clocks| [2, 3, 10, 50].map(|by| (clocks, by)));
    for (timestamps, overtaken_by) in cases {
        let config = Config { loss_detection: counting, timestamps, ..config("anabranch", &[]) };
        let before = transfer(&path(None), &config, bytes);
        let late = Span::from_micros(1000 * overtaken_by + 500);
        let outcome = transfer(&path(Some((100, late))), &config, bytes);
        let tally = outcome.path.tally;
        let payload = if timestamps { Path::PAYLOAD - 12 } else { Path::PAYLOAD };
        let rare = if overtaken_by < 3 { 0 } else { bytes / payload / 100 + 1 };
        // A spurious retransmission may be overtaken itself, which only timestamps reveal.
        let most = if timestamps { rare } else { 2 * rare };
        assert!(tally.sent_again <= most && tally.timeouts == 0, "{overtaken_by} overtake: {tally:?}");
        expect_within(&outcome, 2.0 * before.took.as_secs_f64(), &format!("{overtaken_by} overtake"));
    }
}

/// 10 Gbit/s and 200 ms: the path and a queue of the same size hold 333,000 segments. Slow start from a thousand segments gets
/// there in nine rounds, in which a gigabyte is sent, and overshoots: half of the next window is lost, every second segment. The
/// other gigabyte takes 0.8 s, the handshake one round trip and the recovery two, each up to twice as long with the queue: 3.8 s.
/// Half as much again is allowed. There is no timeout, and no segment is sent twice without need. Measured: 3.8 s with 166,000
/// lost segments.
#[test]
fn a_hundred_thousand_holes_are_mended() {
    let path = Path::new("10Gbit/s", ms(200));
    // Only bursts lose so many segments: a paced window overshoots by less.
    let config = Config { pacing: Pacing::ByLaw, ..config("reno", &[("initial_window", "1000")]) };
    let outcome = transfer(&path, &config, 2_000_000_000);
    let tally = outcome.path.tally;
    assert!(tally.lost > 100_000, "{tally:?}");
    assert_eq!((tally.timeouts, tally.duplicates, tally.sent_again), (0, 0, tally.lost), "{tally:?}");
    expect_within(
        &outcome,
        1.5 * (0.2 + 9.0 * 0.2 + 2.0 * 0.4 + path.time_of(1_000_000_000).as_secs_f64()),
        "10 Gbit/s",
    );
}
