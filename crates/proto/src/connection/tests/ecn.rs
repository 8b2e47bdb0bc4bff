//! ECN marks of routers ([rfc-3168]), counted by the receiver.

use super::*;
use crate::{EcnCodepoint, EcnCounts, Form, PathId};

fn sealed() -> Config {
    Config { form: Form::Sealed, paths_max: 4, ..config() }
}

fn counts(pair: &Pair) -> EcnCounts {
    let told = pair.down.log.iter().rev().find_map(|(_, segment)| segment.options.acknowledgement().counts());
    told.expect("something was counted")
}

fn marked(ecn: Option<EcnCodepoint>) -> Option<EcnCodepoint> {
    ecn.map(|_| EcnCodepoint::Ce)
}

/// Reno halves its window for a mark as for a loss, but nothing is retransmitted.
#[test]
fn a_mark_is_a_loss_that_is_none() {
    let mut pair = Pair::established(sealed(), sealed());
    let sid = pair.transfer(996 * 100);
    pair.run_for(ms(200));
    assert!(pair.client.path().has_ecn);
    let window = pair.client.path().window;
    pair.up.count = 0;
    pair.up.router = |number, ecn| if number == 3 { marked(ecn) } else { ecn };
    pair.client.write(sid, 996 * 30);
    pair.run_until_received(sid, 996 * 130);
    pair.run_for(ms(200));
    let path = pair.client.path();
    assert_eq!((path.tally.marked, path.tally.lost, path.tally.sent_again), (1, 0, 0));
    assert!(path.window < 0.75 * window && path.window > 0.45 * window, "{} of {window}", path.window);
    let EcnCounts { ce, ect0, ect1 } = counts(&pair);
    assert!((ce, ect1) == (1, 0) && (129 - 16..=129).contains(&ect0), "{ect0}");
    assert!(path.has_ecn);
}

/// However many segments are marked, the sender responds once per round trip ([rfc-3168] sec. 6.1.2).
#[test]
fn marks_of_one_round_trip_are_one_signal() {
    let windows = [1, 20].map(|marks| {
        let mut pair = Pair::established(sealed(), sealed());
        let sid = pair.transfer(996 * 60);
        pair.run_for(ms(200));
        pair.up.count = 0;
        pair.up.router = if marks == 1 {
            |number, ecn| if number == 0 { marked(ecn) } else { ecn }
        } else {
            |number, ecn| if number < 20 { marked(ecn) } else { ecn }
        };
        pair.client.write(sid, 996 * 20);
        pair.run_until_received(sid, 996 * 80);
        pair.run_for(ms(200));
        assert_eq!(counts(&pair).ce, marks);
        pair.client.path().window
    });
    assert!((windows[0] - windows[1]).abs() <= 1.0, "{windows:?}");
}

/// A mark is reported at once, however rarely a receiver acknowledges ([rfc-9000] sec. 13.2.1).
#[test]
fn a_mark_does_not_wait() {
    let acks = crate::AckPolicy { every: 100, delay: ms(400) };
    let mut pair = Pair::established(sealed(), Config { acks, ..sealed() });
    pair.up.router = |number, ecn| if number == 4 { marked(ecn) } else { ecn };
    pair.send(996 * 8);
    let begin = pair.now;
    pair.run_until(|pair| pair.client.path().tally.marked > 0);
    assert_eq!(pair.now - begin, ms(100));
}

/// A path that changes or clears codepoints: the connection continues without ECN ([rfc-9000] sec. 13.4.2).
#[test]
fn a_path_that_keeps_no_marks_is_used_without() {
    for turns in [false, true] {
        let mut pair = Pair::established(sealed(), sealed());
        pair.up.router = if turns { |_, ecn| ecn.map(|_| EcnCodepoint::Ect1) } else { |_, _| None };
        pair.transfer(996 * 200);
        pair.run_for(ms(200));
        let path = pair.client.path();
        assert_eq!((path.has_ecn, path.tally.marked, path.tally.lost), (false, 0, 0));
        assert!(path.window > 100.0, "{}", path.window);
    }
}

/// Each path has its own counts.
#[test]
fn marks_are_their_paths_own() {
    let mut pair = Pair::established(sealed(), sealed());
    let second = pair.join(ms(50));
    pair.routes[0].up.router = |_, ecn| marked(ecn);
    pair.transfer(996 * 300);
    pair.run_for(ms(200));
    let report = |id| pair.client.connection.path(id).unwrap();
    assert_eq!((report(PathId::FIRST).tally.marked, report(PathId::FIRST).has_ecn), (0, true));
    assert!(report(second).tally.marked > 2 && report(second).has_ecn);
    assert!(report(second).window < report(PathId::FIRST).window / 2.0);
}

/// In the TCP form segments are not ECN-capable, and in the sealed form there is a setting.
#[test]
fn law_without_ecn_gets_no_marks() {
    for ours in [config(), Config { ecn: false, ..sealed() }] {
        let mut pair = Pair::established(ours.clone(), ours);
        pair.up.router = |_, ecn| {
            assert_eq!(ecn, None);
            ecn
        };
        pair.transfer(996 * 20);
        assert!(!pair.client.path().has_ecn);
    }
}

/// Losses, retransmissions and SACK blocks do not disturb the counts.
#[test]
fn counts_hold_where_much_is_lost() {
    let mut pair = Pair::established(sealed(), sealed());
    let second = pair.join(ms(30));
    for number in (5..4000).step_by(23) {
        pair.lose(&[number]);
        pair.routes[0].up.faults.insert(number + 7, Fault::Lose);
        pair.down.faults.insert(number + 3, Fault::Lose);
    }
    pair.up.router = |number, ecn| if number % 50 == 9 { marked(ecn) } else { ecn };
    pair.transfer(996 * 5000);
    pair.run_for(ms(500));
    for id in [PathId::FIRST, second] {
        assert!(pair.client.connection.path(id).unwrap().has_ecn, "{id:?}");
    }
    assert!(pair.client.path().tally.marked > 10);
}

/// [rfc-9000] sec. 13.4.2: the first flight is lost, the tail loss probe leaves without a codepoint and arrives. Three challenges
/// with the codepoint are lost, too, and ECN is off.
#[test]
fn ecn_black_hole_from_the_start_costs_one_probe_timeout() {
    let mut pair = Pair::established(sealed(), sealed());
    pair.up.loses_ecn = true;
    let sid = pair.send(996 * 200);
    // The probe timeout is two round trips of 100 ms; then the probe takes a round trip, and the repair half of one.
    assert_eq!(pair.run_until_received(sid, 1), ms(200 + 100 + 50));
    pair.run_until_received(sid, 996 * 200);
    pair.run_for(Span::from_secs(3));
    let path = pair.client.path();
    assert_eq!((path.has_ecn, path.tally.timeouts, path.tally.undone), (false, 0, 1));
    // Slow start went on.
    pair.client.write(sid, 996 * 200);
    pair.run_until_received(sid, 996 * 400);
    pair.run_for(ms(100));
    assert!(pair.client.path().window > 100.0, "{}", pair.client.path().window);
    let probes = pair.up.log.iter().filter(|(_, segment)| matches!(segment.options, crate::Options::Path(_))).count();
    assert_eq!(probes, 3);
}

/// A server whose streams never lack credit, however long the queue gets.
fn roomy() -> Config {
    Config { stream_buffer: crate::StreamBuffer::Bytes(1 << 30), ..sealed() }
}

/// The route changes in the middle: after one retransmission timeout the transfer goes on without codepoints.
#[test]
fn ecn_black_hole_in_the_middle_costs_one_timeout() {
    let mut pair = Pair::established(sealed(), roomy());
    pair.up.spacing = ms(1);
    let sid = pair.send(996 * 5000);
    pair.run_for(ms(1000));
    assert!(pair.client.path().has_ecn);
    pair.up.loses_ecn = true;
    let (before, window) = (pair.server.received(sid), pair.client.path().window);
    pair.run_for(ms(1500));
    let arrived = pair.server.received(sid) - before;
    assert!((996 * 200..996 * 1500).contains(&arrived), "{arrived} bytes");
    pair.run_until(|pair| pair.client.path().tally.undone > 0);
    let path = pair.client.path();
    assert!(path.window >= window, "{} after {window}", path.window);
    pair.run_until_received(sid, 996 * 5000);
    let path = pair.client.path();
    assert_eq!((path.has_ecn, path.tally.timeouts, path.tally.undone), (false, 1, 1));
}

/// As before, but one of the segments without a codepoint is lost while the codepoint is in doubt: that is congestion, and its
/// reduction stays.
#[test]
fn loss_during_the_doubt_is_congestion() {
    let mut pair = Pair::established(sealed(), roomy());
    pair.up.spacing = ms(1);
    let sid = pair.send(996 * 5000);
    pair.run_for(ms(1000));
    pair.up.loses_ecn = true;
    pair.run_until(|pair| pair.client.path().tally.timeouts > 0);
    let sent = pair.client.path().tally.sent;
    pair.run_until(|pair| pair.client.path().tally.sent > sent + 50);
    pair.lose(&[pair.up.count + 1]);
    pair.run_until_received(sid, 996 * 5000);
    let path = pair.client.path();
    assert_eq!((path.has_ecn, path.tally.timeouts, path.tally.undone), (false, 1, 0));
}

/// The network is dead for a while, for all packets. Afterwards the first probe is answered, and segments are ECN-capable again.
#[test]
fn outage_switches_ecn_off_for_a_round_trip_only() {
    let mut pair = Pair::established(sealed(), roomy());
    pair.up.spacing = ms(1);
    let sid = pair.send(996 * 5000);
    pair.run_for(ms(1000));
    pair.up.is_cut = true;
    pair.run_for(ms(3000));
    assert!(!pair.client.path().has_ecn);
    pair.up.is_cut = false;
    pair.run_until(|pair| pair.client.path().has_ecn);
    pair.run_until_received(sid, 996 * 5000);
    pair.run_for(ms(2000));
    assert!(pair.client.path().has_ecn, "counts hold across the doubt");
}
