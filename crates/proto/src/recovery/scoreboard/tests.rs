use anabranch_units::Time;
use proptest::prelude::*;

use super::*;

const PATH: PathId = PathId::FIRST;
const DOUBT: AckContext = AckContext { now: Time::ZERO, via: PATH, rtt_min: None, echo: None, is_answer: true };

/// A scoreboard with `count` segments of 100 bytes from offset 0 on, sent one per millisecond.
fn board(count: u64) -> Scoreboard<u64> {
    let mut board = Scoreboard::new(0, 1);
    (0..count).for_each(|number| send(&mut board, number));
    board
}

fn send(board: &mut Scoreboard<u64>, number: u64) {
    let time = Time::from_ticks(number * 1_000_000);
    board.send(number, (100, number as u16), PATH, |flight| Departure {
        time,
        flight: flight as f64,
        ..Departure::default()
    });
}

/// What decides when something is sent is the same for a payload of 8 bytes and one of 256. Only the memory differs, by 248 bytes
/// for each of ten segments.
#[test]
fn an_entry_weighs_the_same_whatever_it_holds() {
    let mut wide: Scoreboard<[u64; 32]> = Scoreboard::new(0, 1);
    for number in 0..10 {
        wide.send([number; 32], (100, number as u16), PATH, |_| Departure::default());
    }
    let (narrow, wide) = (board(10).kept(), wide.kept());
    assert_eq!((wide.weight - narrow.weight, wide.memory - narrow.memory), (0, 10 * 248));
    // Ten segments: 100 bytes of data and 96 for the entry each.
    assert_eq!(narrow.weight, 10 * (100 + 96));
}

fn sack(board: &mut Scoreboard<u64>, left: u64, right: u64) -> NewlyAcked {
    board.acknowledge_selectively(100 * left, 100 * right, &DOUBT);
    board.check();
    board.take_newly_acked(PATH)
}

fn ack(board: &mut Scoreboard<u64>, upto: u64) -> Vec<u64> {
    let mut done = vec![];
    board.acknowledge(100 * upto, &DOUBT, |number| done.push(number));
    board.check();
    done
}

#[test]
fn a_block_counts_once_however_often_it_comes() {
    let mut board = board(10);
    assert_eq!(sack(&mut board, 3, 5).bytes, 200);
    assert_eq!(sack(&mut board, 3, 5).bytes, 0);
    assert_eq!(sack(&mut board, 2, 7).bytes, 300);
    assert_eq!((board.flight(PATH), board.holes(PATH), board.delivered(PATH)), (500, 1, 5));
}

#[test]
fn parts_of_segments_do_not_count() {
    let mut board = board(4);
    board.acknowledge_selectively(150, 399, &DOUBT);
    assert_eq!((board.take_newly_acked(PATH).bytes, board.delivered(PATH)), (100, 1));
    board.acknowledge(150, &DOUBT, |_| ());
    assert_eq!((board.acked(), board.len(), board.flight(PATH)), (150, 3, 200));
}

#[test]
fn holes_are_counted_as_they_open_and_close() {
    let mut board = board(10);
    sack(&mut board, 2, 3);
    sack(&mut board, 4, 5);
    sack(&mut board, 8, 9);
    assert_eq!(board.holes(PATH), 3);
    sack(&mut board, 3, 4);
    assert_eq!(board.holes(PATH), 2);
    assert_eq!(ack(&mut board, 5), [0, 1, 2, 3, 4]);
    assert_eq!((board.holes(PATH), board.flight(PATH)), (1, 400));
}

#[test]
fn the_lowest_lost_segment_comes_first_even_if_lost_later() {
    let mut board = board(6);
    let (found, spared) = board.lose_until(PATH, 4, Time::from_ticks(2_000_000));
    assert_eq!((found.count, found.end, spared), (3, 300, Some(Time::from_ticks(3_000_000))));
    assert_eq!(board.lowest_lost(PATH), Some(0));
    board.resend(0, PATH, |_| Departure { time: Time::NEVER, ..Departure::default() });
    assert_eq!(board.lowest_lost(PATH), Some(1));
    assert_eq!((board.flight(PATH), board.damaged(PATH)), (400, 3));
    // A segment that arrives late is not retransmitted.
    sack(&mut board, 1, 2);
    assert_eq!((board.lowest_lost(PATH), board.damaged(PATH)), (Some(2), 2));
    ack(&mut board, 6);
    assert_eq!((board.lowest_lost(PATH), board.damaged(PATH), board.is_empty()), (None, 0, true));
}

#[test]
fn flight_at_departure_counts_the_segment_itself() {
    let mut board = board(3);
    board.acknowledge(300, &DOUBT, |_| ());
    let newest = board.take_newly_acked(PATH).newest.expect("three arrived");
    assert_eq!((newest.serial, newest.departure.flight.to_bits()), (2, 300_f64.to_bits()));
}

#[test]
fn a_retransmission_is_doubted_if_its_ack_comes_too_early() {
    let mut board = board(2);
    board.lose_until(PATH, 1, Time::NEVER);
    let time = Time::from_ticks(10);
    board.resend(0, PATH, |_| Departure { time, ..Departure::default() });
    let context = AckContext {
        now: Time::from_ticks(15),
        via: PATH,
        rtt_min: Some(Span::from_ticks(6)),
        echo: None,
        is_answer: true,
    };
    board.acknowledge(100, &context, |_| ());
    let newly_acked = board.take_newly_acked(PATH);
    assert!(newly_acked.newest.is_some_and(|newest| newest.transmissions == 2) && newly_acked.newest_certain.is_none());
}

#[test]
fn reneged_segment_is_lost() {
    let mut board = board(4);
    sack(&mut board, 1, 3);
    board.distrust();
    assert_eq!(board.delivered(PATH), 2, "the receiver still asks for what is missing");
    // The peer acknowledges up to 1 and asks for 1, which it had reported.
    board.acknowledge(100, &DOUBT, |_| ());
    board.distrust();
    board.check();
    assert_eq!((board.delivered(PATH), board.lowest_lost(PATH), board.flight(PATH)), (0, Some(1), 100));
}

/// Segments in flight on an abandoned path have no path. One of them arrives late, and then the peer reneges. Found by corrupting
/// segments at random.
#[test]
fn segment_without_path_can_be_reneged() {
    let mut board = board(3);
    board.orphan(PATH);
    sack(&mut board, 0, 2);
    assert_eq!(board.lowest_lost(PathId::NOWHERE), Some(2));
    board.distrust();
    board.check();
    assert_eq!((board.delivered(PATH), board.lowest_lost(PathId::NOWHERE), board.damaged(PATH)), (0, Some(0), 1));
}

/// Segments that had arrived on an abandoned path are reneged. They have no path, and a new path with the same identifier has
/// none of them.
#[test]
fn segment_of_abandoned_path_can_be_reneged() {
    let mut board = Scoreboard::new(0, 2);
    let gone = PathId::new(1);
    for number in 0..4 {
        let path = if number < 3 { gone } else { PATH };
        board.send(number, (100, number as u16), path, |flight| Departure {
            flight: flight as f64,
            ..Departure::default()
        });
    }
    sack(&mut board, 0, 3);
    // As when a path is abandoned.
    board.release_held(gone, u64::MAX);
    board.take_newly_acked(gone);
    board.orphan(gone);
    board.check();
    board.distrust();
    board.check();
    assert_eq!((board.lowest_lost(gone), board.lowest_lost(PathId::NOWHERE)), (None, Some(0)));
    board.open_lane(gone);
    board.check();
    assert_eq!(ack(&mut board, 2), [0, 1]);
    assert_eq!((board.lowest_lost(gone), board.lowest_lost(PathId::NOWHERE)), (None, Some(2)));
}

#[derive(Clone, Debug)]
enum Operation {
    Send,
    Acknowledge(u64),
    Selective(u64, u64),
    Lose(u64),
    Resend,
    Restore,
    ResendLast,
    Distrust,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => Just(Operation::Send),
        1 => (0..6u64).prop_map(Operation::Acknowledge),
        3 => (0..40u64, 1..6u64).prop_map(|(left, len)| Operation::Selective(left, len)),
        1 => (0..12u64).prop_map(Operation::Lose),
        2 => Just(Operation::Resend),
        1 => Just(Operation::Restore),
        1 => Just(Operation::ResendLast),
        1 => Just(Operation::Distrust),
    ]
}

proptest! {
    /// Whatever happens, the counters equal those of the entries, and each segment arrives once.
    #[test]
    fn counts_agree_with_entries(operations in prop::collection::vec(operation(), 1..200)) {
        let mut board = board(0);
        let (mut sent, mut arrived, mut taken_back, mut done) = (0, 0, 0, vec![]);
        for operation in operations {
            let first = board.acked() / 100;
            let departure = |flight: u64| Departure { flight: flight as f64, ..Departure::default() };
            match operation {
                Operation::Send => {
                    send(&mut board, sent);
                    sent += 1;
                }
                Operation::Acknowledge(count) => {
                    board.acknowledge(100 * (first + count).min(sent), &DOUBT, |number| done.push(number));
                }
                Operation::Selective(left, len) => {
                    // Some receivers report a segment and ask for it.
                    let (left, right) = ((first + left).min(sent), (first + left + len).min(sent));
                    board.acknowledge_selectively(100 * left, 100 * right, &DOUBT);
                }
                Operation::Lose(serial) => {
                    let oldest = board.departures(PATH).saturating_sub(serial);
                    board.lose_until(PATH, oldest, Time::NEVER);
                }
                Operation::Resend => {
                    if let Some(index) = board.lowest_lost(PATH) {
                        board.resend(index, PATH, departure);
                    }
                }
                Operation::Restore => {
                    board.open_log(PATH);
                    board.restore(PATH);
                    prop_assert_eq!(board.lowest_lost(PATH), None);
                }
                Operation::Distrust => {
                    // Segments that arrive again afterwards count again.
                    let delivered = board.delivered(PATH);
                    board.distrust();
                    taken_back += 100 * (delivered - board.delivered(PATH)) as u64;
                }
                Operation::ResendLast => {
                    if let Some(index) = board.last(PATH) {
                        board.resend(index, PATH, departure);
                    }
                }
            }
            board.check();
            arrived += board.take_newly_acked(PATH).bytes;
        }
        board.acknowledge(board.next(), &DOUBT, |number| done.push(number));
        arrived += board.take_newly_acked(PATH).bytes;
        prop_assert_eq!(arrived, 100 * sent + taken_back);
        prop_assert_eq!(done, (0..sent).collect::<Vec<_>>());
    }
}

/// Of 100,000 segments in flight, the three oldest are declared lost again and again: the others are not visited.
#[test]
fn undo_visits_only_lost_segments() {
    let mut board = board(100_000);
    for _ in 0..100 {
        board.lose_until(PATH, 3, Time::NEVER);
        assert_eq!(board.flight(PATH), 100 * 99_997);
        assert_eq!(board.restore(PATH), 300);
    }
    assert_eq!(board.walked, 0);
    board.check();
}

const OTHER: PathId = PathId::new(1);

/// Two paths on which `count` segments each are sent, in turn.
fn two_paths(count: u64) -> Scoreboard<u64> {
    let mut board = Scoreboard::new(0, 2);
    (0..2 * count).for_each(|number| send_on(&mut board, number, [PATH, OTHER][number as usize % 2]));
    board
}

fn send_on(board: &mut Scoreboard<u64>, number: u64, path: PathId) {
    board
        .send(number, (100, number as u16), path, |flight| Departure { flight: flight as f64, ..Departure::default() });
}

/// Handles a report of `left..right` that arrived on `via`. Returns the holes on that path.
fn sack_on(board: &mut Scoreboard<u64>, via: PathId, left: u64, right: u64) -> usize {
    board.acknowledge_selectively(100 * left, 100 * right, &AckContext { via, ..DOUBT });
    board.release_held(via, u64::MAX);
    board.take_newly_acked(via);
    board.path_una(via);
    board.holes(via)
}

/// The lowest missing segment of a path from its cursor on, and the holes below what was delivered above: visits each entry.
fn look_at_all(board: &Scoreboard<u64>, path: PathId) -> (Offset, usize) {
    let lane = &board.lanes[path.index()];
    let from = (lane.cursor.max(board.first) - board.first) as usize;
    let of_path: Vec<_> =
        board.entries.iter().skip(from).filter(|entry| entry.path == path && lane.has(entry)).collect();
    let is_missing = |entry: &&&Entry<u64>| entry.fate != Fate::Delivered;
    let una = of_path.iter().find(is_missing).map_or(board.next, |entry| entry.offset.max(board.acked));
    let is_end = |pair: &&[&Entry<u64>]| pair[0].fate != Fate::Delivered && pair[1].fate == Fate::Delivered;
    (una, of_path.windows(2).filter(is_end).count().min(2))
}

#[derive(Clone, Debug)]
enum Step {
    Send(bool),
    Acknowledge(u64),
    Selective(bool, u64, u64),
    Lose(bool, u64),
    Resend(bool, bool),
    Distrust,
    GiveUp,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => any::<bool>().prop_map(Step::Send),
        1 => (0..6u64).prop_map(Step::Acknowledge),
        5 => (any::<bool>(), 0..40u64, 1..6u64).prop_map(|(via, left, len)| Step::Selective(via, left, len)),
        1 => (any::<bool>(), 0..12u64).prop_map(|(path, serial)| Step::Lose(path, serial)),
        2 => (any::<bool>(), any::<bool>()).prop_map(|(from, to)| Step::Resend(from, to)),
        1 => Just(Step::Distrust),
        1 => Just(Step::GiveUp),
    ]
}

proptest! {
    /// The stored holes equal those found by visiting all entries.
    #[test]
    fn holes_of_paths_are_those_that_there_are(steps in prop::collection::vec(step(), 1..300)) {
        let (mut board, mut sent) = (two_paths(0), 0);
        let path = |is_other: bool| if is_other { OTHER } else { PATH };
        for step in steps {
            let first = board.acked() / 100;
            match step {
                Step::Send(on) => {
                    send_on(&mut board, sent, path(on));
                    sent += 1;
                }
                Step::Acknowledge(count) => board.acknowledge(100 * (first + count).min(sent), &DOUBT, |_| ()),
                Step::Selective(via, left, len) => {
                    let (left, right) = ((first + left).min(sent), (first + left + len).min(sent));
                    board.acknowledge_selectively(100 * left, 100 * right, &AckContext { via: path(via), ..DOUBT });
                }
                Step::Lose(on, serial) => {
                    let oldest = board.departures(path(on)).saturating_sub(serial);
                    board.lose_until(path(on), oldest, Time::NEVER);
                }
                Step::Resend(from, to) => {
                    let lost = board.lowest_lost(path(from)).or_else(|| board.lowest_lost(PathId::NOWHERE));
                    if let Some(index) = lost {
                        board.resend(index, path(to), |flight| Departure { flight: flight as f64, ..Departure::default() });
                    }
                }
                Step::Distrust => board.distrust(),
                Step::GiveUp => {
                    board.release_held(OTHER, u64::MAX);
                    board.release_copies(OTHER, u64::MAX);
                    board.take_newly_acked(OTHER);
                    board.orphan(OTHER);
                }
            }
            for on in [PATH, OTHER] {
                let una = board.path_una(on);
                prop_assert_eq!((una, board.holes(on)), look_at_all(&board, on), "{:?}", on);
            }
            board.check();
        }
    }
}

/// The first segment of a path is missing, and each ACK reports one more arrival; everything is in flight on the other path. The
/// cost of an ACK does not depend on how much that is.
#[test]
fn holes_cost_no_more_where_more_is_in_flight() {
    let walked = |count: u64| {
        let mut board = two_paths(count);
        for number in 1..count {
            assert_eq!(sack_on(&mut board, PATH, 2 * number, 2 * number + 1), 1);
        }
        board.check();
        board.walked as f64 / count as f64
    };
    let (few, many) = (walked(2_000), walked(4_000));
    assert!(many < 1.05 * few && many < 4.0, "{few} entries an ACK and {many}");
}

/// A peer that reports arrivals in the worst order: from the top down, with one left out each time, and fills the holes later.
#[test]
fn holes_cost_little_in_whatever_order_they_are_filled() {
    let mut board = two_paths(20_000);
    let mut before = 0;
    let mut look = |board: &Scoreboard<u64>| {
        let walked = board.walked - before;
        before = board.walked;
        assert!(walked <= WALK_MAX, "{walked}");
    };
    sack_on(&mut board, PATH, 20_000, 39_999);
    look(&board);
    for number in (1..5_000).rev() {
        let place = 4 * number;
        for place in [place - 2, place] {
            sack_on(&mut board, PATH, place, place + 1);
            look(&board);
        }
    }
}

/// A peer that reneges again and again costs as much as it had reported, not as much as is in flight.
#[test]
fn distrust_costs_what_is_distrusted() {
    let mut board = two_paths(10_000);
    for round in 1..=100 {
        sack_on(&mut board, PATH, 0, 3);
        board.distrust();
        assert_eq!((board.walked, board.delivered(PATH), board.lowest_lost(PATH)), (3 * round, 0, Some(0)));
    }
    board.check();
}
