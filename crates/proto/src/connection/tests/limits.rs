//! What limits a sender, compared with the limit that each scenario has.

use super::*;
use crate::{Limit, Limits, Pacing, PathId, StreamBuffer};

/// The limits of the client from `before` up to now.
fn account(pair: &Pair, before: &Limits) -> Limits {
    pair.client.connection.limits().until(pair.now).since(before)
}

/// A pair that has been idle for a while, and the limits up to here.
fn begin(config: Config) -> (Pair, Limits) {
    let mut pair = Pair::established(config.clone(), config);
    pair.run_for(ms(1000));
    let before = pair.client.connection.limits().until(pair.now);
    (pair, before)
}

#[track_caller]
fn assert_share(limits: &Limits, limit: Limit, expected: f64, tolerance: f64) {
    let share = limits.share(limit);
    assert!((share - expected).abs() <= tolerance, "{limit:?}: {share}, expected {expected}; {limits:?}");
}

/// Every nanosecond since the connection was established counts for one limit.
#[test]
fn the_spans_add_up_to_the_time() {
    let (mut pair, before) = begin(config());
    assert_eq!(before.span(Limit::Application), before.total(), "{before:?}");
    pair.send(300_000);
    pair.run_for(ms(3000));
    let limits = account(&pair, &before);
    assert_eq!(limits.total(), ms(3000));
    assert_eq!(limits.span(Limit::Host), Span::ZERO, "simulated time does not pass while something leaves");
    let path = pair.client.path().limits.until(pair.now);
    assert_eq!(path, pair.client.connection.limits().until(pair.now), "there is one path");
}

/// The window is never full: the application is the limit.
#[test]
fn an_application_that_writes_little_is_the_limit() {
    let (mut pair, before) = begin(config());
    let sid = pair.client.open();
    for _ in 0..50 {
        pair.client.write(sid, 1000);
        pair.run_for(ms(20));
    }
    let limits = account(&pair, &before);
    assert_eq!(limits.span(Limit::Application), ms(1000), "{limits:?}");
}

/// In each round trip the application writes what takes the pacer half of it. So little is in flight that the window is never
/// full.
#[test]
fn application_at_half_rate_limits_half_of_time() {
    let (mut pair, _) = begin(Config { pacing: Pacing::Always, ..config() });
    // A loss ends slow start. From then on the window, and with it the pacing rate, grows by one segment per round trip.
    pair.lose(&[pair.up.count + 30]);
    let sid = pair.send(200_000);
    pair.run_for(ms(2000));
    let before = pair.client.connection.limits().until(pair.now);
    for _ in 0..50 {
        let pace = pair.client.path().pacing_rate.unwrap();
        pair.client.write(sid, pace.bits_per_second() / 8 / 20);
        pair.drain();
        pair.run_for(ms(100));
    }
    let limits = account(&pair, &before);
    // The pacer makes up for a millisecond of each pause. The first part has a burst of ten segments.
    assert_share(&limits, Limit::Application, 0.5, 0.03);
    assert_share(&limits, Limit::Pacing, 0.5, 0.03);
}

/// Ten segments are in flight, and the application has more data: the window is the limit until the first ACK, a round trip
/// later.
#[test]
fn a_window_is_the_limit_of_a_long_transfer() {
    let (mut pair, before) = begin(config());
    pair.send(100_000_000);
    pair.run_for(ms(99));
    let limits = account(&pair, &before);
    assert_eq!(limits.span(Limit::CongestionWindow), ms(99), "{limits:?}");
    assert_eq!(limits.current(), Some(Limit::CongestionWindow));
}

/// The server does not read, so its window closes, and the peer's buffer is the only limit afterwards.
#[test]
fn a_shut_window_is_the_peers() {
    let small = Config { receive_buffer: 20_000, ..config() };
    let (mut pair, _) = begin(small);
    pair.server.is_reading = false;
    pair.send(1_000_000);
    pair.run_for(ms(2000));
    let before = pair.client.connection.limits().until(pair.now);
    pair.run_for(ms(5000));
    let limits = account(&pair, &before);
    assert_eq!(limits.span(Limit::PeerBuffer), ms(5000), "{limits:?}");
    // The window opens, and the remaining data arrives.
    pair.server.is_reading = true;
    pair.run_for(ms(30_000));
    assert_eq!(pair.client.connection.limits().current(), Some(Limit::Application));
}

/// A stream has no credit, while the connection's window is open.
#[test]
fn a_stream_without_credit_is_the_peers() {
    let credit = Config { stream_buffer: StreamBuffer::Bytes(5000), ..config() };
    let (mut pair, _) = begin(credit);
    pair.server.is_reading = false;
    pair.send(1_000_000);
    pair.run_for(ms(2000));
    let before = pair.client.connection.limits().until(pair.now);
    pair.run_for(ms(3000));
    assert_eq!(account(&pair, &before).span(Limit::PeerBuffer), ms(3000));
}

/// The peer accepts a gigabyte, and nothing is lost: the window grows until it exceeds this end's memory limit.
#[test]
fn memory_is_this_ends_own_limit() {
    let (mut pair, _) = begin(Config { receive_buffer: 1 << 30, send_memory: 400_000, ..config() });
    pair.send(1 << 30);
    pair.run_for(ms(3000));
    let before = pair.client.connection.limits().until(pair.now);
    pair.run_for(ms(1000));
    assert_eq!(account(&pair, &before).span(Limit::Memory), ms(1000));
    let path = pair.client.path();
    assert!(path.flight + 1.0 < path.window, "{} segments of {}", path.flight, path.window);
}

/// The driver is late to send: that time counts for the host.
#[test]
fn a_busy_computer_has_the_time_that_it_takes() {
    let (mut pair, before) = begin(config());
    let sid = pair.client.open();
    pair.client.write_now(sid, 5000);
    let connection = &mut pair.client.connection;
    // A millisecond per segment.
    let mut count = 0;
    while connection.poll_transmit(pair.now + ms(count)).is_some() {
        count += 1;
        assert_eq!(connection.limits().current(), Some(Limit::Host));
    }
    assert!(count >= 5, "{count} segments of a thousand bytes");
    pair.now += ms(20);
    let limits = account(&pair, &before);
    assert_eq!((limits.span(Limit::Host), limits.span(Limit::Application)), (ms(count), ms(20 - count)));
}

/// Nothing arrives any more. Each of two paths is limited by its own window; a backup path has no limit.
#[test]
fn each_path_has_its_own_limit() {
    let several = Config { paths_max: 2, ..config() };
    let mut pair = Pair::established(several.clone(), several);
    let second = pair.join(ms(20));
    pair.send(100_000_000);
    pair.run_for(ms(10));
    let limit = |pair: &Pair, path: PathId| pair.client.connection.path(path).unwrap().limits.current();
    for path in [PathId::FIRST, second] {
        assert_eq!(limit(&pair, path), Some(Limit::CongestionWindow), "{path:?}");
    }
    pair.client.connection.paths().set_status(second, crate::PathStatus::Standby);
    pair.run_for(ms(1));
    assert_eq!((limit(&pair, PathId::FIRST), limit(&pair, second)), (Some(Limit::CongestionWindow), None));
}

/// The first of ten segments is lost, and later segments reveal it. Then all are lost, and only a timeout reveals it.
#[test]
fn losses_are_told_apart_by_who_told() {
    let (mut pair, _) = begin(config());
    let first = pair.up.count;
    pair.lose(&[first]);
    pair.send(10_000);
    pair.run_for(ms(2000));
    let tally = pair.client.path().tally;
    assert_eq!((tally.lost, tally.lost_by_timeout), (1, 0));
    pair.up.is_cut = true;
    pair.send(1000);
    pair.run_for(ms(5000));
    let tally = pair.client.path().tally;
    assert!(tally.timeouts > 0 && tally.lost - 1 == tally.lost_by_timeout, "{tally:?}");
}
