use super::*;
use crate::testing::Route;
use crate::{AddPathError, Pacing, PathId, PathState, PathStatus, RemovePathError, Repair, Scheduling, StreamBuffer};

mod challenges;
mod moves;

fn several() -> Config {
    Config { paths_max: 4, ..config() }
}

fn steady() -> Config {
    let row = registry::find("reno").unwrap();
    Config { law: Settings::parse(row, [("initial_window", "20")]).unwrap(), ..several() }
}

/// Two paths with an RTT of 50 ms, the second one validated.
fn two(client: Config) -> (Pair, PathId) {
    let mut pair = Pair::established(client, several());
    let second = pair.join(ms(50));
    (pair, second)
}

/// Two full paths: a thousand segments a second on each.
fn busy() -> (Pair, PathId) {
    let law = Settings::parse(registry::find("fast").unwrap(), [("alpha", "10")]).unwrap();
    let (mut pair, second) = two(Config { law, ..several() });
    (pair.up.spacing, pair.routes[0].up.spacing) = (ms(1), ms(1));
    (pair, second)
}

#[test]
fn a_path_is_validated_by_both_before_it_carries_data() {
    let mut pair = Pair::established(several(), several());
    let tuple = pair.route(ms(50));
    let id = pair.client.connection.paths().add(pair.now, tuple).unwrap();
    let sid = pair.send(996 * 200);
    pair.run_for(ms(90));
    assert_eq!(pair.client.connection.path(id).unwrap().state, PathState::Validating);
    assert_eq!(pair.routes[0].up.data().count(), 0);
    pair.run_for(ms(20));
    assert_eq!(pair.client.connection.path(id).unwrap().state, PathState::Live);
    assert!(pair.client.events.contains(&Event::PathValidated(id)));
    assert_eq!(pair.client.connection.path(id).unwrap().rtt_smoothed, Some(ms(100)), "the challenge is a sample");
    pair.run_until_received(sid, 996 * 200);
    assert!(pair.routes[0].up.data().count() > 50);
}

#[test]
fn without_the_feature_there_is_one_path() {
    for (ours, theirs) in [(several(), config()), (config(), several())] {
        let mut pair = Pair::established(ours, theirs);
        let tuple = pair.route(ms(50));
        let now = pair.now;
        assert_eq!(pair.client.connection.paths().add(now, tuple), Err(AddPathError::NotNegotiated));
        assert_eq!(pair.server.connection.paths().add(now, tuple.reversed()), Err(AddPathError::NotNegotiated));
    }
}

#[test]
fn there_are_so_many_paths_and_no_more() {
    let mut pair = Pair::established(several(), several());
    let tuples: Vec<_> = (0..4).map(|_| pair.route(ms(50))).collect();
    let now = pair.now;
    let mut paths = pair.client.connection.paths();
    for tuple in &tuples[..3] {
        paths.add(now, *tuple).unwrap();
    }
    assert_eq!(paths.add(now, tuples[0]), Err(AddPathError::InUse));
    assert_eq!(paths.add(now, tuples[3]), Err(AddPathError::TooMany));
    assert_eq!(paths.ids().count(), 4);
}

#[test]
fn a_path_that_nobody_answers_is_gone_in_about_a_minute() {
    let mut pair = Pair::established(several(), several());
    let tuple = pair.route(ms(50));
    pair.routes[0].up.is_cut = true;
    let id = pair.client.connection.paths().add(pair.now, tuple).unwrap();
    pair.run_for(Span::from_secs(70));
    assert_eq!((pair.client.connection.path(id), pair.routes[0].up.count), (None, 6));
    assert_eq!(pair.client.events.last(), Some(&Event::PathGone(id)));
}

/// Two windows of 20 segments in the first round trip.
#[test]
fn two_paths_carry_twice_as_much() {
    let (mut pair, second) = two(steady());
    let sid = pair.send(996 * 40);
    assert_eq!(pair.run_until_received(sid, 996 * 40), ms(50));
    let sent = |id| pair.client.connection.path(id).unwrap().tally.sent;
    assert_eq!((sent(PathId::FIRST), sent(second)), (20, 20));
}

/// [multihoming-2010] Table 1: "SACKs return over the same path".
#[test]
fn each_path_answers_what_came_on_it() {
    let (mut pair, _) = two(steady());
    let counts = |pair: &Pair| {
        let is_pure = |segment: &Segment<Marked>| segment.space() == 0;
        [&pair.down, &pair.routes[0].down].map(|link| link.log.iter().filter(|(_, segment)| is_pure(segment)).count())
    };
    let before = counts(&pair);
    pair.transfer(996 * 40);
    pair.run_for(ms(100));
    let after = counts(&pair);
    assert_eq!((after[0] - before[0], after[1] - before[1]), (20, 20));
}

/// Reports over the fast path come earlier. Nevertheless the slow path's RTT estimate is its own, and so is each path's minimum
/// RTT.
#[test]
fn each_path_has_an_rtt_of_its_own() {
    let mut pair = Pair::established(steady(), several());
    let slow = pair.join(ms(200));
    pair.transfer(996 * 500);
    pair.run_for(ms(400));
    let report = |id| pair.client.connection.path(id).unwrap();
    assert_eq!((report(PathId::FIRST).rtt_min, report(slow).rtt_min), (Some(ms(100)), Some(ms(400))));
    assert_eq!((report(PathId::FIRST).rtt_smoothed, report(slow).rtt_smoothed), (Some(ms(100)), Some(ms(400))));
    let (tally, sampled) = (report(slow).tally, report(slow).tally.rtt_samples);
    assert!(sampled >= 20 && tally.sent_again == 0 && tally.lost == 0, "{tally:?}");
    assert_eq!(report(PathId::FIRST).tally.sent_again, 0);
}

/// [multihoming-2010] Fig. 9 (b): a path's losses are detected from the arrivals of the same path only, however far ahead another
/// path is.
#[test]
fn a_slow_path_is_no_loss_for_a_fast_one() {
    let mut pair = Pair::established(steady(), several());
    let fast = pair.join(ms(5));
    pair.transfer(996 * 2000);
    for id in [PathId::FIRST, fast] {
        let report = pair.client.connection.path(id).unwrap();
        assert_eq!((report.tally.lost, report.tally.sent_again), (0, 0), "{id:?}");
        assert!(report.window >= 20.0, "{id:?}: {}", report.window);
    }
}

/// A hole on one path: only this path sees the loss and retransmits.
#[test]
fn a_loss_is_the_business_of_its_path() {
    let (mut pair, second) = two(steady());
    let count = pair.routes[0].up.count;
    pair.routes[0].up.faults.insert(count + 3, Fault::Lose);
    pair.transfer(996 * 400);
    let report = |id| pair.client.connection.path(id).unwrap();
    assert_eq!((report(PathId::FIRST).tally.lost, report(second).tally.lost), (0, 1));
    assert_eq!((report(PathId::FIRST).tally.sent_again, report(second).tally.sent_again), (0, 1));
    assert!(report(PathId::FIRST).window > 2.0 * report(second).window);
}

/// The slow path loses a segment; with `AnyPath` the fast path retransmits it.
#[test]
fn a_repair_may_take_a_faster_path() {
    let run = |repair| {
        let mut pair = Pair::established(Config { repair, ..steady() }, several());
        let slow = pair.join(ms(200));
        let count = pair.routes[0].up.count;
        pair.routes[0].up.faults.insert(count + 3, Fault::Lose);
        pair.transfer(996 * 400);
        pair.client.connection.path(slow).unwrap().tally.sent_again
    };
    assert_eq!((run(Repair::SamePath), run(Repair::AnyPath)), (1, 0));
}

/// The path dies with a window of data on it. The other path carries that data within one and a half ACK timeouts, and no data
/// waits longer than that plus a one-way delay.
#[test]
fn a_dead_path_costs_one_and_a_half_ack_timeouts() {
    let (mut pair, second) = busy();
    let sid = pair.send(996 * 8000);
    pair.run_for(ms(2000));
    (pair.routes[0].up.is_cut, pair.routes[0].down.is_cut) = (true, true);
    let cut = pair.now;
    let mut longest = Span::ZERO;
    let (mut last, mut since) = (pair.server.received(sid), pair.now);
    pair.run_until_each(|pair| {
        if pair.server.received(sid) > last {
            longest = longest.max(pair.now - since);
            (last, since) = (pair.server.received(sid), pair.now);
        }
        last >= 996 * 8000
    });
    assert!(longest <= ms(300), "{longest}");
    let failed = pair.client.event_times.iter().find(|(_, event)| *event == Event::PathFailed(second)).unwrap().0;
    // ACKs that were in flight arrive for 50 ms more. Of an RTT of 112 ms, 12 ms are queueing.
    assert!(failed - cut <= ms(50 + 117 * 3 / 2), "{}", failed - cut);
    assert_eq!(pair.client.connection.path(second).unwrap().state, PathState::Suspect);
}

#[test]
fn a_path_that_comes_back_is_used_again() {
    let (mut pair, second) = busy();
    let sid = pair.send(996 * 100_000);
    pair.run_for(ms(2000));
    pair.routes[0].up.is_cut = true;
    pair.run_for(ms(1000));
    assert_eq!(pair.client.connection.path(second).unwrap().state, PathState::Suspect);
    pair.routes[0].up.is_cut = false;
    pair.run_for(ms(4500));
    assert!(pair.client.events.contains(&Event::PathRestored(second)));
    let before = pair.client.connection.path(second).unwrap().tally.delivered;
    pair.run_for(ms(1000));
    assert!(pair.client.connection.path(second).unwrap().tally.delivered > before + 20_000);
    assert!(pair.server.received(sid) > 0);
}

/// However long it is silent, there is no better path.
#[test]
fn an_only_path_is_never_suspected() {
    let mut pair = Pair::established(several(), several());
    pair.send(996 * 1000);
    pair.run_for(ms(200));
    (pair.up.is_cut, pair.down.is_cut) = (true, true);
    pair.run_for(Span::from_secs(20));
    assert_eq!(pair.client.path().state, PathState::Live);
    let (mut pair, second) = busy();
    pair.send(996 * 100_000);
    pair.run_for(ms(2000));
    (pair.up.is_cut, pair.routes[0].up.is_cut) = (true, true);
    pair.run_for(Span::from_secs(20));
    let states = [PathId::FIRST, second].map(|id| pair.client.connection.path(id).unwrap().state);
    assert!(states.contains(&PathState::Live) && states.contains(&PathState::Suspect), "{states:?}");
}

#[test]
fn a_path_that_is_given_up_leaves_nothing_behind() {
    let (mut pair, second) = two(steady());
    let sid = pair.send(996 * 2000);
    pair.run_for(ms(170));
    let now = pair.now;
    pair.client.connection.paths().remove(now, second).unwrap();
    assert_eq!(pair.client.connection.paths().remove(now, PathId::FIRST), Err(RemovePathError::OnlyPath));
    assert_eq!(pair.client.connection.paths().remove(now, second), Err(RemovePathError::Unknown));
    pair.run_until_received(sid, 996 * 2000);
    assert_eq!(pair.server.connection.paths().ids().count(), 1, "the server has been told");
    assert!(
        pair.client.events.contains(&Event::PathGone(second)) && pair.server.events.contains(&Event::PathGone(second))
    );
}

/// The leave is lost. A peer that continues to use the path is sent another one.
#[test]
fn a_leave_that_is_lost_is_said_again() {
    let (mut pair, second) = two(steady());
    let tuple = pair.routes[0].client;
    let count = pair.routes[0].up.count;
    pair.routes[0].up.faults.insert(count, Fault::Lose);
    let now = pair.now;
    pair.client.connection.paths().remove(now, second).unwrap();
    pair.run_for(ms(200));
    assert_eq!(pair.server.connection.paths().ids().count(), 2);
    let sid = pair.server.open();
    pair.server.write(sid, 996 * 100);
    pair.run_until(|pair| pair.client.received(sid) == 996 * 100);
    assert_eq!(pair.server.connection.paths().ids().count(), 1);
    // The path can be set up again.
    let now = pair.now;
    let again = pair.client.connection.paths().add(now, tuple).unwrap();
    pair.run_for(ms(300));
    assert_eq!(pair.client.connection.path(again).unwrap().state, PathState::Live);
}

/// Each end abandons the path that the other one keeps: the last path is challenged until it works again.
#[test]
fn leaves_that_cross_end_in_a_path() {
    let (mut pair, second) = two(steady());
    let now = pair.now;
    pair.client.connection.paths().remove(now, PathId::FIRST).unwrap();
    pair.server.connection.paths().remove(now, second).unwrap();
    pair.transfer(996 * 50);
    assert_eq!(pair.client.connection.path(second).map(|path| path.state), Some(PathState::Live));
}

/// The network changes the client's address. What the server sends reaches the client at the new address, and the old address is
/// not used.
#[test]
fn a_peer_whose_address_changes_is_found_again() {
    let mut pair = Pair::established(several(), several());
    let sid = pair.send(996 * 1000);
    let back = pair.server.open();
    pair.server.write(back, 996 * 1000);
    pair.run_for(ms(300));
    let old = pair.server.tuple;
    pair.server.has_moved = true;
    pair.server.tuple.remote.port = 99;
    pair.run_until(|pair| pair.server.received(sid) == 996 * 1000 && pair.client.received(back) == 996 * 1000);
    let now_at = pair.server.tuple;
    let paths = pair.server.connection.paths();
    let (new, old) = (paths.find(&now_at).unwrap(), paths.find(&old).unwrap());
    assert_eq!(pair.server.connection.path(new).unwrap().state, PathState::Live);
    assert_eq!(pair.server.connection.path(old).unwrap().state, PathState::Suspect);
}

/// The maximum number of paths exists, and all their addresses change: segments from the new addresses replace the old paths.
#[test]
fn all_paths_may_move_at_once() {
    let two_at_most = Config { paths_max: 2, ..config() };
    let mut pair = Pair::established(two_at_most.clone(), two_at_most);
    pair.join(ms(50));
    pair.server.has_moved = true;
    pair.server.tuple.remote.port = 99;
    pair.routes[0].server.remote.port = 99;
    let sid = pair.send(996 * 300);
    let back = pair.server.open();
    pair.server.write(back, 996 * 300);
    pair.run_until(|pair| pair.server.received(sid) == 996 * 300 && pair.client.received(back) == 996 * 300);
    let reports: Vec<_> = pair.server.connection.path_reports().collect();
    assert!(reports.len() == 2 && reports.iter().any(|(_, path)| path.tuple.remote.port == 99), "{reports:?}");
}

#[test]
fn strangers_make_no_paths() {
    let mut pair = Pair::established(config(), config());
    let mut tuple = pair.server.tuple;
    pair.send(996 * 10);
    pair.run_for(ms(300));
    let (_, segment) = pair.up.log[0];
    tuple.remote.port = 99;
    let now = pair.now;
    pair.server.connection.handle_segment(now, tuple, segment);
    assert_eq!((pair.server.connection.paths().ids().count(), pair.server.connection.poll_transmit(now)), (1, None));
    // Nor do many strangers, if there are already paths.
    let (mut pair, _) = two(steady());
    let mut tuple = pair.server.tuple;
    pair.send(996 * 10);
    pair.run_for(ms(300));
    let (_, segment) = *pair.up.log.last().unwrap();
    for port in 100..200 {
        tuple.remote.port = port;
        let now = pair.now;
        pair.server.connection.handle_segment(now, tuple, segment);
        let mut far = segment;
        far.header.ack = far.header.ack.plus(1 << 30);
        tuple.remote.port = port + 1000;
        pair.server.connection.handle_segment(now, tuple, far);
    }
    // Each of the two paths was validated before it counted.
    assert!(pair.server.connection.paths().ids().count() <= 4);
}

#[test]
fn a_standby_path_waits_for_the_others_to_fail() {
    let (mut pair, second) = two(steady());
    pair.client.connection.paths().set_status(second, PathStatus::Standby);
    let sid = pair.send(996 * 300);
    pair.run_until_received(sid, 996 * 100);
    assert_eq!(pair.client.connection.path(second).unwrap().tally.sent, 0);
    (pair.up.is_cut, pair.down.is_cut) = (true, true);
    pair.run_until_received(sid, 996 * 300);
    assert!(pair.client.connection.path(second).unwrap().tally.sent > 100);
}

/// Weights 3 to 1 on two equal paths.
#[test]
fn weights_divide_what_is_sent() {
    let (mut pair, second) = two(Config { scheduling: Scheduling::Weighted, ..steady() });
    pair.client.connection.paths().set_weight(PathId::FIRST, 3);
    pair.transfer(996 * 4000);
    let sent = |id| pair.client.connection.path(id).unwrap().tally.sent;
    assert!(sent(PathId::FIRST).abs_diff(3 * sent(second)) <= 8, "{} {}", sent(PathId::FIRST), sent(second));
}

/// 800 and 200 segments a second, over 100 and 400 ms: each scheduler that uses both paths fills them.
#[test]
fn schedulers_fill_unequal_paths() {
    for scheduling in [Scheduling::Window, Scheduling::MinRtt] {
        let law = Settings::parse(registry::find("fast").unwrap(), [("alpha", "10")]).unwrap();
        let mut pair = Pair::established(Config { law, scheduling, ..several() }, several());
        pair.up.spacing = Span::from_micros(1250);
        pair.join(ms(200));
        pair.routes[0].up.spacing = ms(5);
        let sid = pair.send(996 * 20_000);
        pair.run_for(ms(3000));
        let before = pair.server.received(sid);
        pair.run_for(Span::from_secs(10));
        let share = (pair.server.received(sid) - before) as f64 / (996.0 * 10_000.0);
        assert!((0.95..=1.01).contains(&share), "{scheduling:?}: {share}");
    }
}

#[test]
fn both_sides_send_on_both_paths() {
    let mut pair = Pair::established(steady(), steady());
    pair.join(ms(150));
    let sid = pair.send(996 * 1000);
    let back = pair.server.open();
    pair.server.write(back, 996 * 1000);
    pair.run_until(|pair| pair.server.received(sid) == 996 * 1000 && pair.client.received(back) == 996 * 1000);
    let count = |route: &Route| (route.up.data().count(), route.down.data().count());
    let (up, down) = count(&pair.routes[0]);
    assert!(up > 20 && down > 20, "{up} {down}");
    // An overtaken ACK is not answered.
    assert!(pair.up.log.len() + pair.routes[0].up.log.len() < 2300);
    pair.client.connection.close();
    pair.run_for(ms(1000));
    pair.server.connection.close();
    pair.run_for(Span::from_secs(100));
    assert_eq!(pair.states(), (State::Closed, State::Closed));
}

/// The window is zero, and the window update is lost on a path that is dead.
#[test]
fn a_shut_window_is_probed_on_any_path() {
    let mut pair = Pair::established(
        steady(),
        Config { receive_buffer: 4000, stream_buffer: StreamBuffer::Bytes(u64::MAX), ..several() },
    );
    pair.join(ms(10));
    pair.server.is_reading = false;
    let sid = pair.send(996 * 10);
    pair.run_for(ms(2000));
    assert_eq!(pair.server.connection.received(), 4001);
    pair.routes[0].down.is_cut = true;
    pair.server.is_reading = true;
    pair.run_until_received(sid, 996 * 10);
}

/// [rfc-5961] sec. 5.2, extended for slow paths: the acknowledgement and the offset of a segment may be 2^28 behind, but not a
/// byte more. Nothing may be ahead of what was sent, or of the receive window. This holds on a path, and for a segment that may
/// begin one.
#[test]
fn on_several_paths_a_segment_may_be_so_old_and_no_older() {
    const AGE: u64 = 1 << 28;
    let wide = Config { mss: 60_000, send_buffer: 8 << 20, ..several() };
    let mut pair = Pair::established(wide.clone(), wide);
    let (sid, back) = (pair.client.open(), pair.server.open());
    pair.client.write(sid, AGE + 100_000);
    pair.server.write(back, AGE + 100_000);
    pair.run_until(|pair| pair.server.received(sid).min(pair.client.received(back)) == AGE + 100_000);
    pair.run_for(ms(300));
    let (acked, expected) = (pair.server.connection.acked(), pair.server.connection.received());
    assert_eq!(acked, pair.server.connection.sent());
    let segment = |pair: &Pair, seq: u64, ack: u64, options| Segment {
        header: crate::Header {
            seq: pair.client_at(seq),
            ack: pair.server_at(ack),
            flags: Flags::ACK,
            window: 1000,
            ..crate::Header::default()
        },
        options,
        stream_header: None,
        content: Content::Nothing,
    };
    let question = crate::Options::Path(crate::PathOption::Challenge([7; 8]));
    for (seq, ack, is_plausible) in [
        (expected, acked, true),
        (expected, acked - AGE, true),
        (expected, acked - AGE - 1, false),
        (expected, acked + 1, false),
        (expected - AGE, acked, true),
        (expected - AGE - 1, acked, false),
        (expected + (32 << 20), acked, false),
    ] {
        let mut stranger = pair.server.tuple;
        stranger.remote.port = 99;
        let (now, segment) = (pair.now, segment(&pair, seq, ack, question));
        pair.server.connection.handle_segment(now, stranger, segment);
        let found = pair.server.connection.paths().find(&stranger);
        assert_eq!(found.is_some(), is_plausible, "{seq} of {expected}, {ack} of {acked}");
        // Nothing answers from that address.
        if found.is_some() {
            while pair.server.connection.poll_transmit(now).is_some() {}
            pair.server.has_moved = true;
            pair.run_for(Span::from_secs(70));
        }
        // On an existing path, only a plausible challenge is answered.
        let tuple = pair.server.tuple;
        let now = pair.now;
        pair.server.connection.handle_segment(now, tuple, segment);
        assert_eq!(pair.server.connection.poll_transmit(now).is_some(), is_plausible);
    }
    // The acknowledgement number of a segment within the window is checked in the same way: if it is plausible, there is no
    // answer.
    for (behind, answers) in [(0, 0), (AGE, 0), (AGE + 1, 1)] {
        let segment = segment(&pair, expected, acked - behind, crate::Options::default());
        let (before, tuple) = (pair.down.log.len(), pair.server.tuple);
        pair.server.connection.handle_segment(pair.now, tuple, segment);
        pair.drain();
        assert_eq!(pair.down.log.len(), before + answers, "{behind} behind");
    }
}

/// A full path may be silent for a while and then deliver many ACKs at once. It is suspected one and a half ACK timeouts after
/// its last ACK: 176 ms with an RTT of 112 ms, of which 12 ms are queueing. The oldest segment in flight was sent about an RTT
/// before that ACK.
#[test]
fn a_path_that_has_just_answered_is_not_suspected() {
    for (silence, is_suspect) in [(150, false), (200, true)] {
        let (mut pair, second) = busy();
        pair.send(996 * 8000);
        pair.run_for(ms(2000));
        pair.routes[0].down.free_at = pair.now + ms(silence);
        pair.run_for(ms(500));
        assert_eq!(pair.client.events.contains(&Event::PathFailed(second)), is_suspect, "{silence} ms");
    }
}

/// One stream of 255 has the initial credit that all streams have, 32 kB. At first it stops the fast path when little is in
/// flight, but that says nothing about how much the stream may have in flight later. Both paths carry 5,000 segments a second.
#[test]
fn a_credit_that_was_small_at_first_keeps_no_slow_path_out() {
    for law in ["fast", "anabranch"] {
        let law = Settings::parse(registry::find(law).unwrap(), [("alpha", "20")]).unwrap();
        let config = Config { law, streams: 255, receive_buffer: 32 << 20, pacing: Pacing::Always, ..several() };
        let mut pair = Pair::established(config.clone(), config);
        (pair.up.delay, pair.down.delay) = (ms(10), ms(10));
        pair.join(ms(30));
        (pair.up.spacing, pair.routes[0].up.spacing) = (Span::from_micros(200), Span::from_micros(200));
        let sid = pair.send(996 * 200_000);
        pair.run_for(ms(2000));
        let before = pair.server.received(sid);
        pair.run_for(ms(2000));
        let share = (pair.server.received(sid) - before) as f64 / (996.0 * 20_000.0);
        assert!((0.95..=1.01).contains(&share), "{share}");
    }
}
