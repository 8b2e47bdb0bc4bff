//! A path that is silent or slow, with and without failover to other paths.

use std::collections::BTreeSet;

use super::*;
use crate::{Failover, PathId, PathState, Scheduling, StreamBuffer};

/// Two full paths with an RTT of 50 ms: a thousand segments a second on each.
fn busy(failover: Failover) -> (Pair, PathId) {
    let law = Settings::parse(registry::find("fast").unwrap(), [("alpha", "10")]).unwrap();
    let config = Config { law, paths_max: 4, user_timeout: Some(Span::from_secs(30)), failover, ..config() };
    let mut pair = Pair::established(config.clone(), config);
    let second = pair.join(ms(50));
    (pair.up.spacing, pair.routes[0].up.spacing) = (ms(1), ms(1));
    (pair, second)
}

fn cut(pair: &mut Pair, is_cut: bool) {
    (pair.routes[0].up.is_cut, pair.routes[0].down.is_cut) = (is_cut, is_cut);
}

/// The number of segments that were sent on both paths.
fn reinjected(pair: &Pair) -> usize {
    let places = |log: &[(Time, Segment<Marked>)]| {
        let content = log.iter().filter(|(_, segment)| segment.space() > 0);
        content.map(|(_, segment)| segment.header.seq.0).collect::<BTreeSet<_>>()
    };
    places(&pair.up.log).intersection(&places(&pair.routes[0].up.log)).count()
}

/// The second path is dead for five seconds. Without failover it keeps its data in flight and continues to try alone, and the
/// other path sees no loss. With failover the other path takes over everything at once.
#[test]
fn without_failover_what_left_on_a_path_waits_for_it() {
    for failover in [Failover::Never, Failover::OnSilence] {
        let (mut pair, second) = busy(failover);
        let sid = pair.send(996 * 20_000);
        pair.run_for(ms(2000));
        cut(&mut pair, true);
        pair.run_for(ms(1000));
        let received = pair.server.received(sid);
        pair.run_for(ms(4000));
        let (arrived, state) =
            (pair.server.received(sid) - received, pair.client.connection.path(second).unwrap().state);
        let has_failed = pair.client.events.contains(&Event::PathFailed(second));
        if failover == Failover::Never {
            assert_eq!((arrived, state, has_failed, reinjected(&pair)), (0, PathState::Live, false, 0));
        } else {
            assert_eq!((state, has_failed), (PathState::Suspect, true));
            // A thousand segments in each of four seconds.
            assert!(arrived > 996 * 3900 && reinjected(&pair) > 30, "{arrived} bytes, {} segments", reinjected(&pair));
        }
        cut(&mut pair, false);
        pair.run_until_received(sid, 996 * 20_000);
        let report = |id| pair.client.connection.path(id).unwrap();
        if failover == Failover::Never {
            assert_eq!((reinjected(&pair), report(PathId::FIRST).tally.lost), (0, 0));
            let tally = report(second).tally;
            assert!(tally.timeouts >= 2 && tally.sent_again > 0, "{tally:?}");
        }
        assert_eq!(pair.states(), (State::Established, State::Established));
    }
}

/// Of two paths with an RTT of 50 ms and a segment per millisecond each, the second dies for good. The peer's buffer has room for
/// 200 segments.
fn dying() -> (Pair, Sid) {
    let base = Config { paths_max: 4, scheduling: Scheduling::Window, failover: Failover::Never, ..config() };
    let client = Config { user_timeout: Some(Span::from_secs(30)), ..base.clone() };
    let server = Config { receive_buffer: 200_000, stream_buffer: StreamBuffer::Bytes(u64::MAX), ..base };
    let mut pair = Pair::established(client, server);
    pair.join(ms(50));
    (pair.up.spacing, pair.routes[0].up.spacing) = (ms(1), ms(1));
    let sid = pair.send(996 * 10_000);
    pair.run_for(ms(1000));
    cut(&mut pair, true);
    (pair, sid)
}

/// The first path delivers what fits into the peer's buffer beside the missing segments, within a second. Then nothing moves, and
/// half a minute later the connection is given up.
#[test]
fn dead_path_without_failover_ends_connection() {
    let (mut pair, sid) = dying();
    let died = pair.now;
    pair.run_for(Span::from_secs(40));
    let (time, event) = *pair.client.event_times.last().unwrap();
    assert_eq!(event, Event::Closed(CloseReason::TimedOut));
    assert!((Span::from_secs(30)..Span::from_secs(31)).contains(&(time - died)), "{}", time - died);
    assert!(pair.server.received(sid) < 996 * 10_000);
}

/// The application removes the path, and no data that was in flight there is missing.
#[test]
fn a_path_that_is_removed_hands_over_without_failover_too() {
    let (mut pair, sid) = dying();
    pair.run_for(Span::from_secs(10));
    let tuple = pair.routes[0].client;
    let (now, mut paths) = (pair.now, pair.client.connection.paths());
    let second = paths.find(&tuple).unwrap();
    paths.remove(now, second).unwrap();
    pair.run_until_received(sid, 996 * 10_000);
}

/// A slow path blocks a window of twenty segments. A path that is ten times as fast would unblock it by a copy, but without
/// failover no segment is sent on another path.
#[test]
fn without_failover_a_slow_path_keeps_what_it_has() {
    for failover in [Failover::Never, Failover::OnSilence] {
        let config = Config { paths_max: 4, scheduling: Scheduling::Window, failover, ..config() };
        let server = Config { receive_buffer: 20_000, stream_buffer: StreamBuffer::Bytes(u64::MAX), ..config.clone() };
        let mut pair = Pair::established(config, server);
        pair.join(ms(500));
        pair.transfer(996 * 200);
        assert_eq!(reinjected(&pair) == 0, failover == Failover::Never, "{failover:?}: {} segments", reinjected(&pair));
        assert!(pair.routes[0].up.data().count() > 1);
    }
}
