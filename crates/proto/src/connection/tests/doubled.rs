//! Segments that are sent on two paths. A full segment has 996 bytes of data, and the payload of each write its own segment.

use super::*;
use crate::{Form, Pacing, PathId, PathReport, PathState, Scheduling, Tally};

/// Two paths with these one-way delays in milliseconds.
fn pair(scheduling: Scheduling, delays_ms: [u64; 2]) -> (Pair, PathId) {
    let ours = Config { form: Form::Sealed, paths_max: 4, scheduling, receive_buffer: 16 << 20, ..config() };
    let mut pair = Pair::with(ours.clone(), ours);
    (pair.up.delay, pair.down.delay) = (ms(delays_ms[0]), ms(delays_ms[0]));
    pair.run_for(ms(300));
    let second = pair.join(ms(delays_ms[1]));
    messages(&mut pair, 100);
    (pair, second)
}

/// A message of 100 bytes every 10 ms. Returns how long each took.
#[track_caller]
fn messages(pair: &mut Pair, count: u64) -> Vec<Span> {
    // The first story is that of plain TCP.
    let sid = pair.client.stories.get(1).map(|story| story.sid);
    let sid = sid.unwrap_or_else(|| pair.client.open());
    let mut times = vec![];
    for _ in 0..count {
        let (begin, before) = (pair.now, pair.server.received(sid));
        pair.client.write(sid, 100);
        pair.drain();
        pair.run_until(|pair| pair.server.received(sid) > before);
        times.push(pair.now - begin);
        pair.run_for(ms(10));
    }
    pair.run_for(ms(500));
    times
}

fn tally(pair: &Pair, id: PathId) -> Tally {
    pair.client.connection.path(id).unwrap().tally
}

fn reports(pair: &Pair) -> [PathReport; 2] {
    [0, 1].map(|index| pair.client.connection.path(PathId::new(index)).expect("both paths are there"))
}

/// Nothing is owed or in flight, on either path, and nothing was sent again.
#[track_caller]
fn is_quiet(pair: &Pair) {
    let connection = &pair.client.connection;
    assert_eq!(connection.acked(), connection.sent());
    for report in reports(pair) {
        assert_eq!((report.flight, report.tally.sent_again), (0.0, 0), "{report:?}");
    }
}

/// The faster path delivers, whichever it is; each message is sent once on each.
#[test]
fn each_message_takes_the_shorter_of_two_paths() {
    for delays_ms in [[20, 60], [60, 20]] {
        let (mut pair, second) = pair(Scheduling::Redundant, delays_ms);
        let before = [PathId::FIRST, second].map(|id| tally(&pair, id).sent);
        assert_eq!(messages(&mut pair, 50), [ms(20); 50]);
        let after = [PathId::FIRST, second].map(|id| tally(&pair, id).sent);
        assert_eq!([after[0] - before[0], after[1] - before[1]], [50, 50]);
        is_quiet(&pair);
    }
}

/// A message every 10 ms keeps eight of a window of ten segments in flight on the near path, for which a copy on the far one is no reason to grow.
#[test]
fn window_with_room_does_not_grow_by_copies_elsewhere() {
    for scheduling in [Scheduling::MinRtt, Scheduling::Latency, Scheduling::Redundant] {
        let ours = Config { form: Form::Sealed, paths_max: 4, scheduling, pacing: Pacing::Always, ..config() };
        let mut pair = Pair::with(ours.clone(), ours);
        (pair.up.delay, pair.down.delay) = (ms(40), ms(40));
        pair.run_for(ms(500));
        pair.join(ms(120));
        let sid = pair.client.open();
        for _ in 0..200 {
            pair.client.write(sid, 900);
            pair.run_for(ms(10));
        }
        assert_eq!(pair.client.path().window.to_bits(), 10.0_f64.to_bits(), "{scheduling:?}");
    }
}

/// The near path stalls six times, and a segment is sent again as a probe. Both arrive there, and the copy on the far path as well: nothing
/// was lost, and the window does not fall. Stalls of 120 ms and more count as failures of the path.
#[test]
fn probe_of_stalled_path_is_no_loss_although_a_copy_arrives() {
    for scheduling in [Scheduling::MinRtt, Scheduling::Latency, Scheduling::Redundant] {
        let ours = Config { form: Form::Sealed, paths_max: 4, scheduling, ack_requests: 1, ..config() };
        let mut pair = Pair::with(ours.clone(), ours);
        (pair.up.delay, pair.down.delay) = (ms(40), ms(40));
        pair.run_for(ms(500));
        pair.join(ms(120));
        let sid = pair.client.open();
        pair.up.spacing = Span::from_micros(160);
        let write = |pair: &mut Pair| {
            for _ in 0..200 {
                pair.client.write(sid, 900);
                pair.run_for(ms(10));
            }
            pair.client.path()
        };
        let mut before = write(&mut pair).window;
        for stall in [90, 95, 100, 105, 110, 115] {
            pair.up.free_at = pair.now + ms(stall);
            let after = write(&mut pair);
            assert_eq!(after.tally.lost, 0, "{scheduling:?}, {stall} ms");
            assert!(after.window >= before, "{scheduling:?}, {stall} ms: {} after {before}", after.window);
            before = after.window;
        }
        assert!(pair.client.path().tally.sent_again >= 5, "{scheduling:?}: there were probes");
    }
}

/// The RTT of each path is its own, to the nanosecond, although ACKs of the faster one report what is in flight on the other.
#[test]
fn rtt_samples_are_of_the_path_that_answers() {
    for delays_ms in [[20, 60], [60, 20], [30, 31], [40, 40]] {
        let (mut pair, second) = pair(Scheduling::Redundant, delays_ms);
        messages(&mut pair, 100);
        for (id, delay) in [(PathId::FIRST, delays_ms[0]), (second, delays_ms[1])] {
            let report = pair.client.connection.path(id).unwrap();
            assert_eq!(report.tally.rtt_latest, Some(ms(2 * delay)), "{id:?} of {delays_ms:?}");
            let smoothed = report.rtt_smoothed.unwrap();
            assert!(smoothed >= ms(2 * delay) && smoothed < ms(2 * delay + 1), "{smoothed} on {id:?} of {delays_ms:?}");
            assert!(tally(&pair, id).rtt_samples > 150, "{id:?} of {delays_ms:?}");
            assert_eq!(tally(&pair, id).lost, 0);
        }
    }
}

/// A path that loses everything delays nothing, whichever it is, and nothing is sent again.
#[test]
fn loss_on_one_path_is_no_retransmission() {
    for is_first_lossy in [true, false] {
        let (mut pair, second) = pair(Scheduling::Redundant, [20, 60]);
        let lossy = if is_first_lossy { PathId::FIRST } else { second };
        let wire = if is_first_lossy { &mut pair.up } else { &mut pair.routes[0].up };
        // Each fifth segment from now on.
        wire.faults.extend((0..20).map(|number| (wire.count + 5 * number, Fault::Lose)));
        let times = messages(&mut pair, 100);
        let slow = times.iter().filter(|time| **time == ms(60)).count();
        assert_eq!(slow, if is_first_lossy { 20 } else { 0 }, "{times:?}");
        assert!(times.iter().all(|time| [ms(20), ms(60)].contains(time)), "{times:?}");
        is_quiet(&pair);
        // The controller of that path is told of all but the last three, which nothing overtakes.
        let lost = tally(&pair, lossy).lost;
        assert!((17..=20).contains(&lost), "{lost} on {lossy:?}");
        assert_eq!(tally(&pair, if is_first_lossy { second } else { PathId::FIRST }).lost, 0);
    }
}

/// What both paths lose is sent again, once.
#[test]
fn loss_on_both_paths_is_one_retransmission() {
    let (mut pair, second) = pair(Scheduling::Redundant, [20, 60]);
    let (first_count, second_count) = (pair.up.count, pair.routes[0].up.count);
    pair.up.faults.insert(first_count + 3, Fault::Lose);
    pair.routes[0].up.faults.insert(second_count + 3, Fault::Lose);
    messages(&mut pair, 50);
    let again: u64 = [PathId::FIRST, second].iter().map(|id| tally(&pair, *id).sent_again).sum();
    assert_eq!(again, 1);
    assert_eq!(pair.client.connection.acked(), pair.client.connection.sent());
}

/// A path that is cut from one moment on delays nothing, neither before it is suspected nor after.
#[test]
fn cut_path_delays_no_message() {
    for is_first_cut in [true, false] {
        let (mut pair, _) = pair(Scheduling::Redundant, [20, 60]);
        let route = &mut pair.routes[0];
        let (up, down) = if is_first_cut { (&mut pair.up, &mut pair.down) } else { (&mut route.up, &mut route.down) };
        (up.is_cut, down.is_cut) = (true, true);
        let times = messages(&mut pair, 300);
        let expected = if is_first_cut { ms(60) } else { ms(20) };
        assert!(times.iter().all(|time| *time == expected), "{times:?}");
        let states = reports(&pair).map(|report| report.state);
        assert_eq!(states.map(|state| state == PathState::Suspect), [is_first_cut, !is_first_cut], "it is noticed");
        pair.heal();
        pair.run_for(Span::from_secs(10));
        let times = messages(&mut pair, 50);
        assert!(times.iter().all(|time| *time == ms(20)), "{times:?}");
        assert!(reports(&pair).iter().all(|report| report.state == PathState::Live));
    }
}

/// A copy that waits for the window of its path is cancelled when its original is acknowledged: over 100 segments a second, a
/// path sends no more of a thousand than it has time for.
#[test]
fn copies_that_are_late_never_leave() {
    let (mut pair, second) = pair(Scheduling::Redundant, [20, 60]);
    pair.up.spacing = ms(1);
    pair.routes[0].up.spacing = ms(10);
    let before = tally(&pair, second).sent;
    let sid = pair.send(996 * 1000);
    let span = pair.run_until_received(sid, 996 * 1000);
    // The first path alone needs a second, and some round trips of slow start.
    assert!(span < ms(1500), "{span}");
    let copies = tally(&pair, second).sent - before;
    assert!(copies > 50 && copies < 250, "{copies}");
    pair.run_for(Span::from_secs(2));
    let connection = &pair.client.connection;
    assert_eq!(connection.acked(), connection.sent());
    assert!(reports(&pair).iter().all(|report| report.flight == 0.0));
}

/// A message of five segments is copied as a whole. Of a thousand segments at most the last ten are, as far as the windows have
/// room.
#[test]
fn latency_copies_the_tail_of_a_transfer() {
    for (segments, least, most) in [(5, 5, 5), (1000, 1, 10)] {
        let (mut pair, second) = pair(Scheduling::Latency, [20, 60]);
        let before = tally(&pair, PathId::FIRST).sent + tally(&pair, second).sent;
        pair.transfer(996 * segments);
        pair.run_for(ms(500));
        let sent = tally(&pair, PathId::FIRST).sent + tally(&pair, second).sent - before;
        assert!((segments + least..=segments + most).contains(&sent), "{sent} for {segments}");
        is_quiet(&pair);
    }
}

#[test]
fn datagram_is_copied_and_arrives_once() {
    for scheduling in [Scheduling::Redundant, Scheduling::Latency] {
        let (mut pair, _) = pair(scheduling, [20, 60]);
        for number in 0..10 {
            // Each second one is lost on the first path.
            pair.up.is_cut = number % 2 == 1;
            pair.client.send_datagram(pair.now, 100, Time::NEVER).unwrap();
            pair.drain();
            pair.up.is_cut = false;
            pair.run_for(ms(80));
        }
        pair.run_for(ms(500));
        assert_eq!(pair.server.datagram_numbers(), (0..10).collect::<Vec<_>>());
        let stats = pair.client.connection.datagram_stats();
        assert_eq!((stats.sent, stats.delivered, stats.lost), (10, 10, 0));
        is_quiet(&pair);
    }
}

/// With one path, or against a peer that wants one, there is no copy.
#[test]
fn one_path_has_no_copies() {
    let config = Config { scheduling: Scheduling::Redundant, ..config() };
    let mut pair = Pair::established(config.clone(), config);
    pair.transfer(996 * 100);
    assert_eq!(pair.up.data().count(), 100);
}

/// Messages of one to ten segments over two paths that lose up to a quarter of what they carry, both ways, and are cut for a while: all
/// arrive, and no timer expires for ever at one instant.
#[test]
fn messages_arrive_over_paths_that_lose() {
    for seed in 0..60 {
        let mut state: u64 = seed;
        let mut below = |most: u64| {
            state = (state ^ (state >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x2545_f491);
            (state >> 33) % most
        };
        let scheduling = [Scheduling::Redundant, Scheduling::Latency][below(2) as usize];
        let (mut pair, _) = pair(scheduling, [5 + below(100), 5 + below(100)]);
        let crate::testing::Route { up, down, .. } = &mut pair.routes[0];
        for wire in [&mut pair.up, &mut pair.down, up, down] {
            let each = 4 + below(30);
            wire.faults.extend((0..500).filter(|_| below(each) == 0).map(|number| (wire.count + number, Fault::Lose)));
        }
        let sid = pair.client.open();
        let mut bytes = 0;
        for _ in 0..60 {
            let cut = below(12);
            (pair.up.is_cut, pair.routes[0].up.is_cut) = (cut == 0, cut == 1);
            let len = 996 * (1 + below(10));
            pair.client.write(sid, len);
            bytes += len;
            pair.drain();
            pair.run_for(ms(below(400)));
        }
        pair.heal();
        pair.run_until_received(sid, bytes);
        pair.run_for(Span::from_secs(5));
        assert_eq!(pair.client.connection.acked(), pair.client.connection.sent(), "seed {seed}");
        assert!(reports(&pair).iter().all(|report| report.flight == 0.0), "seed {seed}: {}", pair.describe());
    }
}
