//! Which calls a controller gets, and in which order.

use std::sync::{Arc, Mutex};

use anabranch_cc::{
    Cause, Departure, Limit, Loss, Phase, Progress, Round, Sent, Settings, Supply, Transmission, registry,
};

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::*;
use crate::recovery::pacer::Pacing;
use crate::testing::ms;

mod doubts;
mod supply;

/// A call to the controller.
#[derive(Clone, Debug, PartialEq)]
enum Heard {
    Sent(f64),
    Ack(Ack, f64),
    Round(Round),
    Loss(Loss),
    Recovered,
    Undone,
    Restart(Restart),
}

/// A controller with a window of ten segments that records its calls.
#[derive(Debug)]
struct Ear(Arc<Mutex<Vec<Heard>>>);

impl Ear {
    fn hear(&self, heard: Heard) {
        self.0.lock().unwrap().push(heard);
    }
}

impl Controller for Ear {
    fn on_sent(&mut self, path: &PathView, _sent: &Sent) {
        self.hear(Heard::Sent(path.flight));
    }

    fn on_ack(&mut self, path: &PathView, ack: &Ack) {
        self.hear(Heard::Ack(*ack, path.flight));
    }

    fn on_round(&mut self, _path: &PathView, round: &Round) {
        self.hear(Heard::Round(*round));
    }

    fn on_loss(&mut self, _path: &PathView, loss: &Loss) {
        self.hear(Heard::Loss(*loss));
    }

    fn on_recovered(&mut self, _path: &PathView) {
        self.hear(Heard::Recovered);
    }

    fn on_undo(&mut self, _path: &PathView) {
        self.hear(Heard::Undone);
    }

    fn on_restart(&mut self, _path: &PathView, restart: Restart) {
        self.hear(Heard::Restart(restart));
    }

    fn window(&self) -> f64 {
        10.0
    }
}

/// One path with segments of 1000 bytes, and its scoreboard.
struct Bench {
    now: Time,
    board: Scoreboard<()>,
    control: PathControl,
    heard: Arc<Mutex<Vec<Heard>>>,
}

const PATH: PathId = PathId::FIRST;

impl Bench {
    fn new() -> Self {
        let heard = Arc::new(Mutex::new(vec![]));
        Self::of(Box::new(Ear(heard.clone())), heard)
    }

    fn of(controller: Box<dyn Controller>, heard: Arc<Mutex<Vec<Heard>>>) -> Self {
        let now = Time::ZERO + ms(1000);
        let timing = Timing { rto_min: ms(200), pacing: Pacing::ByLaw, timer: Span::ZERO };
        let mut control = PathControl::new(now, PATH, controller, 1000, timing);
        control.establish(now, 1000, Some(ms(90)));
        Self { now, board: Scoreboard::new(0, 1), control, heard }
    }

    /// A law with a window of `window` segments; losses are detected by counting.
    fn under(law: &str, window: &str) -> Self {
        let row = registry::find(law).expect("a law");
        let law = Settings::parse(row, [("initial_window", window)]).expect("it has this");
        let mut bench = Self::of(row.build(&law), Arc::new(Mutex::new(vec![])));
        bench.control.detect_by(Detection::Overtaken);
        bench
    }

    /// Sends whatever may be sent, lost segments first. Returns the number of retransmissions and of new segments.
    fn fill(&mut self) -> (u64, u64) {
        let (mut again, mut first) = (0, 0);
        loop {
            if self.board.lowest_lost(PATH).is_some() {
                if !self.control.admit_again(&self.board, 1000) {
                    return (again, first);
                }
                self.resend();
                again += 1;
            } else if self.control.admit(&self.board, 1000) {
                self.send(1);
                first += 1;
            } else {
                return (again, first);
            }
        }
    }

    fn send(&mut self, count: u64) {
        for _ in 0..count {
            self.board.send((), (1000, 0), PATH, self.control.departure(self.now));
            self.control.on_sent(self.now, &self.board, (self.board.next(), 1000), 1000, Transmission::First);
        }
    }

    /// The next timer fires.
    fn time_out(&mut self) {
        self.now = self.control.deadline();
        self.control.handle_timeout(self.now, &mut self.board);
    }

    fn resend(&mut self) {
        let index = self.board.lowest_lost(PATH).expect("something is lost");
        let added = self.board.resend(index, PATH, self.control.departure(self.now));
        let (offset, ..) = self.board.segment(index);
        self.control.on_sent(self.now, &self.board, (offset + 1000, 1000), added, Transmission::Again);
    }

    /// After `span`, handles an ACK for everything below segment `upto` and for `blocks` above.
    fn ack(&mut self, span: Span, upto: u64, blocks: &[(u64, u64)]) {
        self.now += span;
        let context = self.control.ack_context(self.now);
        self.board.acknowledge(1000 * upto, &context, |()| ());
        for &(left, right) in blocks {
            self.board.acknowledge_selectively(1000 * left, 1000 * right, &context);
        }
        let via = Via::Own { delay: Span::ZERO, late: Span::ZERO, ecn: EcnReport::Silent };
        self.control.on_ack(self.now, &mut self.board, via);
    }

    fn heard(&mut self) -> Vec<Heard> {
        std::mem::take(&mut self.heard.lock().unwrap())
    }
}

/// The names of the calls.
fn names(heard: &[Heard]) -> Vec<&'static str> {
    let name = |heard: &Heard| match heard {
        Heard::Sent(_) => "sent",
        Heard::Ack(..) => "ack",
        Heard::Round(_) => "round",
        Heard::Loss(_) => "loss",
        Heard::Recovered => "recovered",
        Heard::Undone => "undone",
        Heard::Restart(_) => "restart",
    };
    heard.iter().map(name).collect()
}

#[test]
fn flight_counts_the_segment_that_leaves() {
    let mut bench = Bench::new();
    bench.send(3);
    assert_eq!(
        bench.heard(),
        [Heard::Restart(Restart::Established), Heard::Sent(1.0), Heard::Sent(2.0), Heard::Sent(3.0)]
    );
}

/// Three segments are sent, and a fourth 20 ms later. The fourth's ACK reports the RTT, window and flight of when the fourth was
/// sent.
#[test]
fn an_ack_tells_how_things_stood_at_departure() {
    let mut bench = Bench::new();
    bench.send(3);
    bench.now += ms(20);
    bench.send(1);
    let left = bench.now;
    bench.send(2);
    bench.heard();
    bench.ack(ms(100), 4, &[]);
    // Nothing had been delivered; the flight began when the first three were sent.
    let began = left - ms(20);
    let progress = Progress { delivered: 0.0, lost: 0.0, delivered_at: began, departed: began };
    let departure = Departure { time: left, window: 10.0, flight: 4.0, progress, supply: Supply::Enough };
    let expected = Ack {
        newly_acked: 4.0,
        rtt: Some(ms(100)),
        size: Bytes::new(1000),
        arrival: bench.now,
        departure,
        limit: Limit::Application,
        ..Ack::default()
    };
    assert_eq!(bench.heard()[0], Heard::Ack(expected, 2.0));
    assert_eq!((bench.control.rtt_min(), bench.control.tally.rtt_samples), (Some(ms(100)), 1));
}

#[test]
fn the_window_is_the_limit_if_it_held_something_back() {
    let mut bench = Bench::new();
    bench.send(10);
    assert!(!bench.control.admit(&bench.board, 1000));
    bench.heard();
    bench.ack(ms(100), 1, &[]);
    assert!(matches!(bench.heard()[0], Heard::Ack(Ack { limit: Limit::Window, .. }, _)));
}

/// [rfc-7661] sec. 4.2: the pacer spreads the 49 segments that the peer's credit allows, of a window of 100. It is the limit from half of the
/// window on.
#[test]
fn pacer_is_no_limit_below_half_of_the_window() {
    let mut bench = Bench::under("reno", "100");
    bench.control.release.pacing = Pacing::Always;
    bench.send(49);
    assert!(bench.control.release(bench.now) > bench.now);
    assert_eq!(bench.control.rounds.limit(), Limit::Application);
    bench.send(1);
    assert!(bench.control.release(bench.now) > bench.now);
    assert_eq!(bench.control.rounds.limit(), Limit::Window);
}

/// Design: loss detection and classification come before `on_loss`, then `on_ack`, then `on_round`.
#[test]
fn inside_one_ack_loss_comes_before_ack_and_round_last() {
    let mut bench = Bench::new();
    bench.send(10);
    bench.heard();
    bench.ack(ms(100), 1, &[(2, 5)]);
    let heard = bench.heard();
    assert_eq!(names(&heard), ["loss", "ack", "round"]);
    let Heard::Loss(loss) = &heard[0] else { unreachable!("it is a loss") };
    // A single hole, and the sample of this very ACK is above SRTT (91.25 ms after it): not a random loss.
    assert_eq!(
        (loss.signal, loss.cause, loss.departure.flight.to_bits()),
        (Signal::DupAcks, Cause::Congestion, 2f64.to_bits())
    );
    let Heard::Ack(ack, flight) = &heard[1] else { unreachable!("it is an ACK") };
    assert_eq!(
        (ack.phase, ack.newly_acked.to_bits(), flight.to_bits()),
        (Phase::Recovery, 4f64.to_bits(), 5f64.to_bits())
    );
}

/// The ACK that ends a recovery still belongs to it.
#[test]
fn recovery_ends_after_its_last_ack() {
    let mut bench = Bench::new();
    bench.send(10);
    bench.ack(ms(100), 1, &[(2, 10)]);
    bench.resend();
    bench.heard();
    bench.ack(ms(100), 10, &[]);
    let heard = bench.heard();
    assert_eq!(names(&heard), ["ack", "recovered", "round"]);
    let Heard::Ack(ack, _) = &heard[0] else { unreachable!("it is an ACK") };
    // Karn's rule: it is unknown which of the two transmissions this ACK belongs to.
    assert_eq!((ack.phase, ack.rtt), (Phase::Recovery, None));
}

/// A single hole without queueing delay looks random. A second hole later shows congestion. The window was unchanged, so the
/// controller gets another call.
#[test]
fn a_loss_that_turns_out_to_be_congestion_is_told_again() {
    let mut bench = Bench::new();
    bench.send(10);
    bench.ack(ms(80), 1, &[(2, 5)]);
    let causes = |heard: Vec<Heard>| -> Vec<Cause> {
        heard.iter().filter_map(|heard| if let Heard::Loss(loss) = heard { Some(loss.cause) } else { None }).collect()
    };
    assert_eq!(causes(bench.heard()), [Cause::Random]);
    bench.ack(ms(1), 1, &[(2, 5), (6, 9)]);
    assert_eq!(causes(bench.heard()), [Cause::Congestion]);
    bench.ack(ms(1), 1, &[(2, 5), (6, 10)]);
    assert_eq!(causes(bench.heard()), []);
}

/// A series of timeouts is one congestion signal, then slow start outside of recovery, then the restart.
#[test]
fn a_series_of_timeouts_is_one_episode() {
    let mut bench = Bench::new();
    bench.send(3);
    bench.heard();
    let mut timeouts = 0;
    while timeouts < 3 {
        bench.time_out();
        timeouts = bench.control.tally.timeouts;
        if bench.board.lowest_lost(PATH).is_some() {
            bench.resend();
        } else if bench.control.is_probe_due() {
            let last = bench.board.last(PATH).expect("three are out");
            let added = bench.board.resend(last, PATH, bench.control.departure(bench.now));
            bench.control.on_sent(bench.now, &bench.board, (3000, 1000), added, Transmission::Again);
        }
    }
    let heard = bench.heard();
    let losses: Vec<_> = heard.iter().filter(|heard| matches!(heard, Heard::Loss(_))).collect();
    assert!(matches!(losses[..], [Heard::Loss(Loss { signal: Signal::Timeout, .. })]), "{losses:?}");
    bench.ack(ms(100), 3, &[]);
    assert_eq!(names(&bench.heard()), ["ack", "restart", "round"]);
}

/// A hole is filled 5 ms after it was detected as a loss, before its retransmission. The controller is informed of the spurious
/// loss before any other call, and there is no recovery to end.
#[test]
fn a_loss_that_was_none_is_told_before_the_ack() {
    let mut bench = Bench::new();
    bench.send(10);
    bench.ack(ms(100), 1, &[(2, 5)]);
    bench.heard();
    bench.ack(ms(5), 5, &[]);
    let heard = bench.heard();
    assert_eq!(names(&heard), ["undone", "ack"]);
    let Heard::Ack(ack, _) = &heard[1] else { unreachable!("it is an ACK") };
    assert_eq!((ack.phase, bench.control.tally.undone), (Phase::Open, 1));
}

/// The same after a timeout: segments that had not been retransmitted are in flight again, and the RTO is at least what it was.
#[test]
fn a_timeout_that_was_not_needed_puts_everything_back_in_flight() {
    let mut bench = Bench::new();
    bench.send(10);
    bench.ack(ms(100), 1, &[]);
    while bench.control.tally.timeouts == 0 {
        bench.time_out();
        if bench.control.is_probe_due() {
            let last = bench.board.last(PATH).expect("nine are out");
            let added = bench.board.resend(last, PATH, bench.control.departure(bench.now));
            bench.control.on_sent(bench.now, &bench.board, (10_000, 1000), added, Transmission::Again);
        }
    }
    // The probe was sent less than an SRTT ago, or it was declared lost, too.
    assert!(bench.board.flight(PATH) <= 1000);
    bench.resend();
    bench.heard();
    // Segment 2 was sent once, and nothing shows that the retransmissions have arrived.
    bench.ack(ms(1), 1, &[(2, 3)]);
    assert_eq!(names(&bench.heard()), ["undone", "ack"]);
    assert_eq!((bench.board.flight(PATH), bench.board.lowest_lost(PATH)), (8000, None));
    bench.board.check();
    assert!(bench.control.rto() < ms(5000), "{}", bench.control.rto());
}

/// During the recovery from a timeout two more segments are lost, one after the other. The controller gets no call for the first
/// of them, so its response to the second covers both. If the second proves spurious, nothing is undone.
#[test]
fn a_loss_beside_another_one_stays() {
    let mut bench = Bench::new();
    bench.control.detect_by(Detection::Overtaken);
    bench.send(1);
    bench.time_out();
    bench.send(12);
    bench.resend();
    bench.ack(ms(100), 0, &[(2, 5)]);
    bench.resend();
    bench.ack(ms(10), 1, &[(2, 5)]);
    assert!(bench.control.episode.is_open() && bench.board.damaged(PATH) == 1, "segment 1 is on its way again");
    bench.heard();
    bench.ack(ms(10), 1, &[(2, 5), (6, 9)]);
    assert_eq!(names(&bench.heard()), ["loss", "ack"], "segment 5 was overtaken by three");
    bench.ack(ms(1), 1, &[(2, 9)]);
    bench.ack(ms(100), 13, &[]);
    assert!(!names(&bench.heard()).contains(&"undone"));
    assert_eq!(bench.control.tally.undone, 0);
}

/// [rfc-7765]: after any ACK, a path is suspected only after one and a half ACK timeouts of silence, however old the data in
/// flight is. The ACK may give an RTT sample, acknowledge a retransmission, or report a duplicate.
#[test]
fn any_answer_delays_suspicion_of_path() {
    // SRTT is 90 ms and RTTVAR 45 ms after the handshake: an ACK timeout of 270 ms. After another sample of 90 ms: 225 ms.
    let begin = || {
        let mut bench = Bench::new();
        bench.control.detect_by(Detection::Overtaken);
        bench.control.set_others(true, &bench.board);
        bench.send(1);
        bench.now += ms(160);
        bench.send(2);
        bench
    };
    let mut bench = begin();
    assert_eq!(bench.control.suspect_at(), bench.now + ms(540 - 160), "two after the oldest left");
    bench.ack(ms(90), 0, &[(1, 2)]);
    assert_eq!(bench.control.suspect_at(), bench.now + ms(225) * 3 / 2);

    let mut bench = begin();
    bench.now += ms(90);
    bench.control.on_duplicate(bench.now, &mut bench.board, 500);
    assert_eq!(bench.control.suspect_at(), bench.now + ms(270) * 3 / 2);

    let mut bench = begin();
    let last = bench.board.last(PATH).expect("three are out");
    let added = bench.board.resend(last, PATH, bench.control.departure(bench.now));
    bench.control.on_sent(bench.now, &bench.board, (3000, 1000), added, Transmission::Again);
    bench.ack(ms(90), 0, &[(2, 3)]);
    assert_eq!(bench.control.tally.rtt_samples, 0);
    assert_eq!(bench.control.suspect_at(), bench.now + ms(270) * 3 / 2);
}

/// [rfc-5681] sec. 4.1: after an idle time longer than the retransmission timeout the window restarts; not earlier, and not while
/// data is in flight.
#[test]
fn a_long_silence_is_told() {
    let mut bench = Bench::new();
    bench.send(2);
    bench.ack(ms(100), 1, &[]);
    let restarts =
        |bench: &mut Bench| bench.heard().iter().filter(|heard| **heard == Heard::Restart(Restart::Idle)).count();
    let timeout = bench.control.rto();
    let silent_since = bench.now - ms(100);
    bench.control.on_demand(silent_since + timeout + ms(1), &bench.board);
    assert_eq!(restarts(&mut bench), 0, "a segment is in flight");
    bench.ack(Span::ZERO, 2, &[]);
    let timeout = bench.control.rto();
    bench.control.on_demand(silent_since + timeout, &bench.board);
    assert_eq!(restarts(&mut bench), 0, "it is just as long");
    bench.control.on_demand(silent_since + timeout + Span::from_ticks(1), &bench.board);
    bench.control.on_demand(silent_since + timeout + Span::from_ticks(2), &bench.board);
    assert_eq!(restarts(&mut bench), 1, "it is told once");
}

/// [rfc-2018] sec. 8: a receiver may renege. If the retransmission timer expires and the first missing segment had been reported,
/// all reports are discarded.
#[test]
fn reneged_segment_is_retransmitted_after_timeout() {
    let mut bench = Bench::new();
    bench.send(4);
    bench.ack(ms(100), 0, &[(1, 3)]);
    // The hole is filled, and the receiver asks for a segment that it had reported.
    bench.ack(ms(100), 1, &[]);
    assert_eq!(bench.board.lowest_lost(PATH), None);
    while bench.control.tally.timeouts == 0 {
        bench.now = bench.control.deadline();
        assert_ne!(bench.now, Time::NEVER, "something is missing");
        bench.control.handle_timeout(bench.now, &mut bench.board);
    }
    let mut again = vec![];
    while let Some(index) = bench.board.lowest_lost(PATH) {
        again.push(index);
        bench.resend();
    }
    assert_eq!(again, [1, 2, 3]);
}

/// Three timeouts happen while the window is zero, so the fourth would come after eight times the RTO. When the window opens,
/// everything is retransmitted at once, and the timeout is at most doubled.
#[test]
fn a_window_that_opens_again_is_not_waited_for() {
    let mut bench = Bench::new();
    bench.send(4);
    for _ in 0..3 {
        bench.time_out();
        if bench.board.lowest_lost(PATH).is_none() {
            // A tail loss probe comes first.
            bench.time_out();
        }
        bench.resend();
    }
    let patient = bench.control.deadline() - bench.now;
    assert_eq!(patient, bench.control.rto());
    bench.now += ms(10);
    bench.control.on_reopened(bench.now, &mut bench.board);
    assert_eq!(bench.board.lowest_lost(PATH), Some(0));
    assert_eq!(bench.control.rto(), patient / 4);
    // For a path that answers, the timer is not restarted.
    let mut bench = Bench::new();
    bench.send(4);
    bench.control.on_reopened(bench.now, &mut bench.board);
    assert_eq!(bench.board.lowest_lost(PATH), None);
}

/// Acknowledges `segments` one by one. All before `holes` are lost. Returns the retransmissions and new segments for each ACK.
fn acknowledge(bench: &mut Bench, segments: std::ops::Range<u64>, holes: u64) -> Vec<(u64, u64)> {
    let mut left = vec![];
    for segment in segments {
        bench.ack(ms(if left.is_empty() { 90 } else { 1 }), 0, &[(holes, segment + 1)]);
        left.push(bench.fill());
    }
    left
}

/// [rfc-9937]: twenty segments are in flight and the first is lost. Slow start grows for the two ACKs before the third reveals
/// the loss, so 11 of 22 are to be in flight: ⌈n · 11/22⌉ are sent for n ACKs, the retransmission first.
#[test]
fn one_loss_is_repaired_at_half_the_rate() {
    let mut bench = Bench::under("reno", "20");
    assert_eq!(bench.fill(), (0, 20));
    let left = acknowledge(&mut bench, 1..20, 1);
    assert_eq!(left[..3], [(0, 2), (0, 2), (1, 0)]);
    for (index, &(again, first)) in left[3..].iter().enumerate() {
        assert_eq!((again, first), (0, (index as u64) % 2), "ACK {}", index + 4);
    }
    // All ACKs of earlier segments have arrived; the rest is limited by the law's window.
    bench.ack(ms(70), 0, &[(1, 24)]);
    bench.fill();
    assert_eq!((bench.control.window(), bench.board.flight(PATH)), (11.0, 11_000));
    bench.ack(ms(20), 24, &[]);
    assert_eq!(bench.fill().1, 1, "the window is full but for what came");
}

/// [rfc-9937]: the first fifteen of twenty segments are lost, and five ACKs arrive. Each allows one segment, although the window
/// would allow seven at the third ACK. The retransmissions are acknowledged, and each such ACK allows two segments.
#[test]
fn a_burst_that_is_lost_is_no_burst_that_is_sent() {
    let mut bench = Bench::under("reno", "20");
    bench.fill();
    assert_eq!(acknowledge(&mut bench, 15..20, 15), [(0, 2), (0, 2), (1, 0), (1, 0), (1, 0)]);
    // The four segments of slow start.
    assert_eq!(acknowledge(&mut bench, 20..24, 15), [(1, 0), (1, 0), (1, 0), (1, 0)]);
    let mut left = vec![];
    for segment in 1..=3 {
        bench.ack(ms(10), segment, &[(15, 24)]);
        left.push(bench.fill());
    }
    assert_eq!(left, [(2, 0), (2, 0), (2, 0)]);
    // When eleven segments are in flight, there is no room for more.
    for segment in 4..=24 {
        bench.ack(ms(10), segment, &[(15, 24)]);
        bench.fill();
        assert!(bench.board.flight(PATH) <= 11_000, "{segment}: {}", bench.board.flight(PATH));
    }
}

/// Whatever is lost and whenever ACKs arrive, [rfc-9937] sec. 7 allows no more segments than have arrived since, plus one per ACK
/// that advances, of which one is the retransmission. In the end the flight is at most the law's window.
#[test]
fn no_more_leaves_than_arrives_and_a_segment_an_ack() {
    let mut runner = TestRunner::new_with_rng(
        proptest::test_runner::Config { failure_persistence: None, ..Default::default() },
        TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    );
    let fates = proptest::collection::vec((0_u32..10, any::<bool>()), 60..200);
    let strategy = (prop_oneof![Just("reno"), Just("cubic"), Just("westwood")], 4_u64..60, 1_u32..9, fates);
    let play = |(law, window, lossy, fates): (&str, u64, u32, Vec<(u32, bool)>)| {
        let mut bench = Bench::under(law, &window.to_string());
        bench.fill();
        let (mut arrived, mut next, mut acks) = (std::collections::BTreeSet::new(), 0_u64, 0);
        let (mut out, mut came, mut safe) = (0, 0, 0);
        for (fate, waits) in fates {
            // In sequence order. A segment lost at first arrives when it is retransmitted.
            let end = bench.board.next() / 1000;
            let Some(segment) = (next..end).find(|segment| !arrived.contains(segment)) else { break };
            next = segment + 1;
            if next >= end {
                next = 0;
            }
            if fate < lossy && bench.control.tally.sent_again == 0 {
                continue;
            }
            arrived.insert(segment);
            acks += 1;
            let una = (0..).find(|segment| !arrived.contains(segment)).expect("some have not");
            let before = bench.board.acked();
            let blocks: Vec<_> = arrived.iter().filter(|&&one| one >= una).map(|&one| (one, one + 1)).collect();
            bench.ack(ms(if waits { 2 } else { 0 } + if acks == 1 { 90 } else { 0 }), una, &blocks);
            if bench.control.episode.phase() != Phase::Recovery {
                (out, came, safe) = (0, 0, 0);
                bench.fill();
                continue;
            }
            came += 1;
            safe += u64::from(bench.board.acked() > before);
            let (again, first) = bench.fill();
            out += again + first;
            prop_assert!(out <= came + safe + 1, "{law}: {out} left for {came} of which {safe} were safe");
        }
        Ok(())
    };
    runner.run(&strategy, |(law, window, lossy, fates)| play((law, window, lossy, fates))).unwrap();
}
