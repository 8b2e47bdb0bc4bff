use anabranch_units::{Span, Time};
use proptest::prelude::*;

use super::*;
use crate::testing::at;

const FIRST: PathId = PathId::FIRST;
const SECOND: PathId = PathId::new(1);

fn departure(ms: u64) -> impl Fn(u64) -> Departure {
    move |flight| Departure { time: at(ms), flight: flight as f64, ..Departure::default() }
}

/// Segments of 100 bytes, one a millisecond, on the first path; each is also owed on the second, and leaves there at once.
fn board(count: u64) -> Scoreboard<u64> {
    let mut board = Scoreboard::new(0, 2);
    for number in 0..count {
        board.send(number, (100, 7), FIRST, departure(number));
        board.owe(number, SECOND);
        let index = board.lowest_owed(SECOND).expect("it is owed");
        assert_eq!((board.nonce(index), board.resend(index, SECOND, departure(number))), (7, 100));
    }
    board.check();
    board
}

/// An ACK of everything below segment `upto`, `ms` milliseconds after the start, on a path whose least RTT is 20 ms.
fn ack(board: &mut Scoreboard<u64>, upto: u64, (via, ms): (PathId, u64), is_answer: bool) -> Vec<u64> {
    let mut done = vec![];
    let rtt_min = Some(Span::from_millis(20));
    let context = AckContext { now: at(ms), via, rtt_min, echo: None, is_answer };
    board.acknowledge(100 * upto, &context, |number| done.push(number));
    board.confirm(via, 100 * upto, &[]);
    board.check();
    done
}

fn flights(board: &Scoreboard<u64>) -> [u64; 2] {
    [FIRST, SECOND].map(|path| board.flight(path))
}

/// The segment is done once. What is in flight on the other path stays so until its duplicate is reported, which gives the RTT.
#[test]
fn twin_stays_in_flight_until_it_answers() {
    let mut board = board(3);
    assert_eq!(flights(&board), [300, 300]);
    assert_eq!(ack(&mut board, 1, (FIRST, 24), true), [0]);
    assert_eq!(board.take_newly_acked(FIRST).bytes, 100);
    assert_eq!(ack(&mut board, 2, (FIRST, 25), true), [1]);
    let newly_acked = board.take_newly_acked(FIRST);
    let newest = newly_acked.newest.expect("it has arrived");
    assert_eq!((newly_acked.bytes, newest.departure.time, newest.transmissions), (100, at(1), 1));
    assert_eq!((flights(&board), board.has_newly_acked(SECOND)), ([100, 300], false));
    board.confirm_copy(SECOND, 100);
    let newly_acked = board.take_newly_acked(SECOND);
    assert_eq!(newly_acked.newest.map(|newest| (newest.departure.time, newest.transmissions)), Some((at(0), 1)));
    assert_eq!(flights(&board), [100, 200]);
    board.check();
}

/// Of an ACK with content it is not known which of the two has arrived. The duplicate on
/// the second path tells: that one has come now, and the first one before.
#[test]
fn doubtful_ack_waits_for_the_duplicate() {
    for ms in [19, 40] {
        let mut board = board(1);
        ack(&mut board, 1, (FIRST, ms), false);
        assert_eq!((flights(&board), board.take_newly_acked(FIRST).newest), ([100, 100], None));
        board.confirm_copy(SECOND, 100);
        let newest = board.take_newly_acked(SECOND).newest.expect("it has arrived");
        assert_eq!((newest.transmissions, flights(&board)), (1, [100, 0]));
        board.check();
        // The next ACK on its own path that covers it gives its RTT.
        board.confirm(FIRST, 100, &[]);
        let newest = board.take_newly_acked(FIRST).newest.expect("it has arrived");
        assert_eq!((newest.transmissions, flights(&board)), (1, [0, 0]));
        board.check();
    }
}

/// Answers 19 ms after the departure on a path that never was faster than 20 ms: the eighth is believed, if no duplicate says that
/// the other path was faster.
#[test]
fn shorter_path_is_believed_after_eight_answers() {
    for has_duplicate in [false, true] {
        let mut board = board(8);
        let mut samples = vec![];
        for number in 0..8 {
            ack(&mut board, number + 1, (FIRST, number + 19), true);
            samples.push(board.take_newly_acked(FIRST).newest.map(|newest| newest.transmissions));
            if has_duplicate && number == 3 {
                board.confirm_copy(FIRST, 100);
            }
        }
        let mut expected = [Some(2); 8];
        expected[7] = Some(if has_duplicate { 2 } else { 1 });
        assert_eq!(samples, expected);
    }
}

#[test]
fn copy_is_cancelled_when_its_original_is_acknowledged() {
    let mut board: Scoreboard<u64> = Scoreboard::new(0, 2);
    for number in 0..3 {
        board.send(number, (100, 7), FIRST, departure(number));
        board.owe(number, SECOND);
    }
    assert!(board.has_lost() && board.has_only_owed() && !board.is_doubled(0));
    assert_eq!(ack(&mut board, 2, (FIRST, 25), false), [0, 1]);
    let newest = board.take_newly_acked(FIRST).newest.expect("two have arrived");
    assert_eq!(newest.transmissions, 1, "nothing else was sent, so there is no doubt");
    assert_eq!(board.lowest_owed(SECOND), Some(5));
    assert_eq!(ack(&mut board, 3, (FIRST, 25), true), [2]);
    assert_eq!((board.lowest_owed(SECOND), board.has_lost(), flights(&board)), (None, false, [0, 0]));
}

/// Lost on one path, it is not sent again; lost on the second one, too, the original is, on any path.
#[test]
fn segment_is_lost_when_both_are() {
    for order in [[FIRST, SECOND], [SECOND, FIRST]] {
        let mut board = board(1);
        let mut found = Found::default();
        board.lose_oldest(order[0], &mut found);
        board.check();
        assert!(found.count == 1 && found.is_doubled && !board.has_lost());
        board.lose_oldest(order[1], &mut found);
        board.check();
        assert!(board.has_lost() && !board.has_only_owed());
        let lost = board.lowest_lost(PathId::NOWHERE).or_else(|| board.lowest_lost(FIRST));
        assert_eq!(lost, Some(0), "the original");
        board.resend(0, SECOND, departure(9));
        assert_eq!(ack(&mut board, 1, (SECOND, 99), true), [0]);
        assert_eq!((flights(&board), board.damaged(FIRST), board.damaged(SECOND)), ([0, 0], 0, 0));
    }
}

/// If the copy has not left, a loss of the original is repaired by a retransmission, and the copy is cancelled.
#[test]
fn loss_before_the_copy_leaves_is_repaired() {
    let mut board: Scoreboard<u64> = Scoreboard::new(0, 2);
    board.send(0, (100, 7), FIRST, departure(0));
    board.owe(0, SECOND);
    let mut found = Found::default();
    board.lose_oldest(FIRST, &mut found);
    board.check();
    assert!(!found.is_doubled);
    assert_eq!((board.lowest_lost(FIRST), board.lowest_owed(SECOND)), (Some(0), None));
}

/// Three that left later have arrived on the path, each by a duplicate of its own.
#[test]
fn copy_that_three_overtake_is_lost() {
    let mut board = board(5);
    for number in 1..=5 {
        ack(&mut board, number, (FIRST, 24 + number), true);
        board.take_newly_acked(FIRST);
    }
    for (end, lost) in [(200, 0), (300, 0), (400, 1)] {
        board.confirm_copy(SECOND, end);
        board.take_newly_acked(SECOND);
        assert_eq!(board.has_overtaken_copies(SECOND), lost > 0);
        assert_eq!(board.lose_copies(SECOND).count, lost, "after {end}");
        board.check();
    }
    assert_eq!(flights(&board), [0, 100], "the last one is on its way");
    board.release_copies(SECOND, u64::MAX);
    board.take_newly_acked(SECOND);
    board.check();
}

/// A path that is abandoned owes nothing any more, and the other one carries what both did.
#[test]
fn abandoned_path_owes_nothing() {
    let mut board = board(2);
    board.send(2, (100, 7), FIRST, departure(2));
    board.owe(2, SECOND);
    board.orphan(SECOND);
    board.check();
    assert_eq!((flights(&board), board.has_lost(), board.lowest_owed(SECOND)), ([300, 0], false, None));
    board.orphan(FIRST);
    board.check();
    assert_eq!((flights(&board), board.lowest_lost(PathId::NOWHERE)), ([0, 0], Some(0)));
}

#[derive(Clone, Debug)]
enum Step {
    Send { on: bool, is_doubled: bool },
    SendOwed(bool),
    Acknowledge { via: bool, count: u64, is_answer: bool },
    Selective { via: bool, left: u64, len: u64 },
    Duplicate { via: bool, end: u64 },
    Lose { on: bool, serial: u64 },
    LoseCopies(bool),
    Repair(bool),
    Probe(bool),
    Abandon(bool),
    Release(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let flag = any::<bool>;
    prop_oneof![
        8 => (flag(), flag()).prop_map(|(on, is_doubled)| Step::Send { on, is_doubled }),
        6 => flag().prop_map(Step::SendOwed),
        2 => (flag(), 0..6u64, flag()).prop_map(|(via, count, is_answer)| Step::Acknowledge { via, count, is_answer }),
        5 => (flag(), 0..40u64, 1..6u64).prop_map(|(via, left, len)| Step::Selective { via, left, len }),
        4 => (flag(), 0..20u64).prop_map(|(via, end)| Step::Duplicate { via, end }),
        2 => (flag(), 0..12u64).prop_map(|(on, serial)| Step::Lose { on, serial }),
        2 => flag().prop_map(Step::LoseCopies),
        4 => flag().prop_map(Step::Repair),
        1 => flag().prop_map(Step::Probe),
        1 => flag().prop_map(Step::Abandon),
        1 => flag().prop_map(Step::Release),
    ]
}

proptest! {
    /// Whatever happens, each count is that of the entries, each segment is done once and in order, and in the end nothing is in
    /// flight, owed or lost.
    #[test]
    fn doubled_segments_are_done_once(steps in prop::collection::vec(step(), 1..300)) {
        let mut board: Scoreboard<u64> = Scoreboard::new(0, 2);
        let (mut sent, mut done, mut clock) = (0, 0, 0);
        let path = |is_second: bool| if is_second { SECOND } else { FIRST };
        let context = |via, clock, is_answer| AckContext {
            now: at(clock),
            via,
            rtt_min: Some(Span::from_millis(20)),
            echo: None,
            is_answer,
        };
        for step in steps {
            clock += 3;
            let first = board.acked() / 100;
            match step {
                Step::Send { on, is_doubled } => {
                    board.send(sent, (100, sent as u16), path(on), departure(clock));
                    sent += 1;
                    if is_doubled {
                        board.owe(sent - 1, path(!on));
                    }
                }
                Step::SendOwed(on) => {
                    if let Some(index) = board.lowest_owed(path(on)) {
                        prop_assert_eq!(u64::from(board.nonce(index)), board.segment(index).0 / 100);
                        board.resend(index, path(on), departure(clock));
                    }
                }
                Step::Acknowledge { via, count, is_answer } => {
                    let upto = (first + count).min(sent);
                    board.acknowledge(100 * upto, &context(path(via), clock, is_answer), |number| {
                        assert_eq!(number, done);
                        done += 1;
                    });
                }
                Step::Selective { via, left, len } => {
                    // The segment at the edge is not reported, as by a receiver that has not got it.
                    let (left, right) = ((first + 1 + left).min(sent), (first + 1 + left + len).min(sent));
                    board.acknowledge_selectively(100 * left, 100 * right, &context(path(via), clock, true));
                }
                Step::Duplicate { via, end } => {
                    board.confirm_copy(path(via), 100 * sent.saturating_sub(end));
                }
                Step::Lose { on, serial } => {
                    let oldest = board.departures(path(on)).saturating_sub(serial);
                    board.lose_until(path(on), oldest, Time::NEVER);
                }
                Step::LoseCopies(on) => drop(board.lose_copies(path(on))),
                Step::Repair(on) => {
                    let lost = board.lowest_lost(path(on)).or_else(|| board.lowest_lost(PathId::NOWHERE));
                    if let Some(index) = lost {
                        board.resend(index, path(on), departure(clock));
                    }
                }
                Step::Probe(on) => {
                    if let Some(index) = board.last(path(on)) {
                        board.resend(index, path(on), departure(clock));
                    }
                }
                Step::Abandon(on) => {
                    board.release_held(path(on), u64::MAX);
                    board.release_copies(path(on), u64::MAX);
                    board.orphan(path(on));
                    board.take_newly_acked(path(on));
                }
                Step::Release(on) => {
                    board.release_held(path(on), u64::MAX);
                    board.release_copies(path(on), u64::MAX);
                }
            }
            board.check();
            for path in [FIRST, SECOND] {
                board.path_una(path);
            }
            board.check();
        }
        board.acknowledge(100 * sent, &context(FIRST, clock, false), |number| {
            assert_eq!(number, done);
            done += 1;
        });
        for path in [FIRST, SECOND] {
            board.release_held(path, u64::MAX);
            board.release_copies(path, u64::MAX);
            board.take_newly_acked(path);
            prop_assert_eq!((board.flight(path), board.damaged(path), board.lowest_owed(path)), (0, 0, None));
        }
        board.check();
        prop_assert!(done == sent && !board.has_lost() && board.is_empty());
    }
}
