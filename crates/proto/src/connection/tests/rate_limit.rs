//! [`Config::rate_max`], compared with the times that it leads to. A segment of 1000 bytes is a packet of 1040: 20 ms at 416 kbit/s.

use anabranch_units::Rate;

use super::*;
use crate::segment::StreamHeader;
use crate::{ConfigError, Limit, PathId, Scheduling};

fn limited() -> Config {
    Config { rate_max: Some(Rate::from_bits_per_second(416_000)), ..config() }
}

/// The payload of so many full segments.
fn segments(count: u64) -> u64 {
    count * u64::from(1000 - StreamHeader::LEN)
}

/// The first segment leaves at once, and the second a millisecond early: that is the pacer's credit after a pause. The path takes 50 ms.
#[test]
fn segments_leave_at_the_rate() {
    let mut pair = Pair::established(limited(), config());
    pair.run_for(ms(1000));
    let before = pair.client.connection.limits().until(pair.now);
    let sid = pair.send(segments(50));
    assert_eq!(pair.run_until_received(sid, segments(50)), ms(49 * 20 - 1 + 50));
    // Five segments are in flight: for a law that is no reason to let more than ten.
    assert!((pair.client.path().window - 10.0).abs() < 1e-9, "{}", pair.client.path().window);
    let limits = pair.client.connection.limits().until(pair.now).since(&before);
    assert_eq!(limits.span(Limit::Pacing), ms(49 * 20 - 1), "{limits:?}");
}

#[test]
fn retransmission_takes_its_time_of_the_limit() {
    let mut pair = Pair::established(limited(), config());
    pair.run_for(ms(1000));
    pair.lose(&[pair.up.count + 10]);
    let sid = pair.send(segments(50));
    assert_eq!(pair.run_until_received(sid, segments(50)), ms(50 * 20 - 1 + 50));
}

/// Twenty segments at 416 kbit/s, and those after them at twice the rate: 10 ms each. The one that has just left keeps its 20 ms.
#[test]
fn limit_set_later_counts_from_then_on() {
    let mut pair = Pair::established(limited(), config());
    pair.run_for(ms(1000));
    let begin = pair.now;
    let sid = pair.send(segments(50));
    pair.run_for(ms(20 * 20 - 2));
    let faster = Rate::from_bits_per_second(832_000);
    assert_eq!(pair.client.connection.set_rate_max(Some(faster)), Ok(()));
    assert_eq!(pair.client.connection.rate_max(), Some(faster));
    pair.run_until_received(sid, segments(50));
    // The 21st leaves after 20 × 20 − 1 ms, the 50th 29 × 10 ms later.
    assert_eq!(pair.now.since(begin), ms(20 * 20 - 1 + 29 * 10 + 50));
}

/// A limit that is taken away holds nothing back, and one that is too low changes nothing.
#[test]
fn limit_is_taken_away_or_stays() {
    let mut pair = Pair::established(limited(), config());
    pair.run_for(ms(1000));
    let before = pair.client.connection.rate_max();
    let low = Rate::from_bits_per_second(9_999);
    assert_eq!(pair.client.connection.set_rate_max(Some(low)), Err(ConfigError::RateTooSmall));
    assert_eq!(pair.client.connection.rate_max(), before);
    pair.client.connection.set_rate_max(None).unwrap();
    let sid = pair.send(segments(10));
    assert_eq!(pair.run_until_received(sid, segments(10)), ms(50), "the initial window leaves at once");
}

#[test]
fn limit_is_of_all_paths_together() {
    let several = |config| Config { paths_max: 2, scheduling: Scheduling::Weighted, ..config };
    let mut pair = Pair::established(several(limited()), several(config()));
    pair.join(ms(50));
    pair.run_for(ms(1000));
    let sid = pair.send(segments(50));
    assert_eq!(pair.run_until_received(sid, segments(50)), ms(49 * 20 - 1 + 50));
    let sent = [0, 1].map(|path| pair.client.connection.path(PathId::new(path)).unwrap().tally.sent);
    assert!(sent.iter().all(|&sent| sent > 0), "{sent:?}");
}

#[test]
fn rate_below_one_packet_in_a_timeout_is_refused() {
    let of = |bits| Config { rate_max: Some(Rate::from_bits_per_second(bits)), ..config() }.check();
    assert_eq!(of(9_999), Err(ConfigError::RateTooSmall));
    assert_eq!(of(0), Err(ConfigError::RateTooSmall));
    assert_eq!(of(10_000), Ok(()));
}
