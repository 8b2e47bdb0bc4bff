//! The way back of a path: how rarely the peer must acknowledge so that its ACKs neither queue nor are lost.
//!
//! [rfc-3449] names the case: a path carries 50 Mbit/s one way and 1 Mbit/s the other. An ACK takes about a hundred bytes, so one
//! for each second segment needs 1.7 Mbit/s: ACKs queue, which a delay-based law takes for a queue of its own, and are lost.
//!
//! The peer's datagrams are numbered, so their losses are known exactly. Whether ACKs queue is not visible in RTTs, so it is tried
//! out: if there is a queue and the rate is steady, fewer ACKs are requested.
//!
//! ```text
//! a tenth of the datagrams is lost      so few ACKs that the rest passes, with a quarter to spare   kept if fewer are lost,
//!                                                                                                   or the rate rises by a seventh
//! a queue, and a rate that stands       an eighth of the ACKs                                       kept if the rate rises by a seventh,
//!                                                                                                   or half of the queue goes
//! neither for long                      twice as many ACKs                                          kept unless it harms, taken
//!                                                                                                   back at once if a queue grows
//! ```
//!
//! The start asks for few ACKs, as there is no time to try anything out. Its request stays until long after it twice as many are tried, until
//! all pass that are wanted, or a queue shows that they do not.
//!
//! What is not kept is tried again ever more rarely.
//!
//! Citation: [rfc-3449] sec. 5.2.1 (ACK congestion control). Differs from it in: the sender of data decides, by the numbers of
//! arriving datagrams and by its own rate, where the RFC's receiver learns of losses by marks.

use anabranch_units::{Span, Time};

/// The ACKs of the peer on one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct WayBack {
    /// Datagrams sent by the peer and arrived, since `since`.
    sent: u64,
    arrived: u64,
    /// When the present look began, and the bytes delivered until then.
    since: Time,
    delivered: u64,
    /// Rounds of the present look; negative ones pass until a request shows.
    rounds: i32,
    /// The rate at the last look, in bytes per second, and the segments lost until then.
    rate: f64,
    lost: u64,
    /// Looks in a row that were left out because segments were lost.
    disturbed: u32,
    /// The least number of segments for one ACK.
    every: u32,
    /// Whether the start, in which few ACKs are requested, is over.
    has_started: bool,
    /// What is being tried.
    trial: Option<Trial>,
    /// Looks until the next attempt to request fewer ACKs, and how many there will be after it if it fails. Likewise for more.
    fewer: Attempts,
    more: Attempts,
}

/// What a path has done since the connection began, at the end of a round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    pub(super) now: Time,
    /// Bytes delivered, and segments lost.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// The smoothed and the minimum RTT.
    pub(super) rtt: Option<(Span, Span)>,
    /// The requested segments for one ACK.
    pub(super) asked: u32,
    /// Whether the window grows fast, so that the rate says nothing.
    pub(super) is_growing: bool,
}

impl Round {
    /// The delay of whatever queues.
    fn queue(&self) -> Span {
        self.rtt.map_or(Span::ZERO, |(rtt, least)| rtt.saturating_sub(least))
    }
}

/// A request until it is known whether it helps.
#[derive(Clone, Copy, Debug)]
struct Trial {
    kind: Kind,
    /// What was requested before, and what came of it.
    every: u32,
    lost: f64,
    rate: f64,
    queue: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Fewer ACKs, because many were lost.
    Losses,
    /// Fewer ACKs, because something queues.
    Queue,
    /// More ACKs.
    More,
}

/// Attempts that become rarer with each failure.
#[derive(Clone, Copy, Debug)]
struct Attempts {
    looks: u32,
    pause: u32,
}

impl WayBack {
    pub(super) const NEW: Self = Self {
        sent: 0,
        arrived: 0,
        since: Time::ZERO,
        delivered: 0,
        rounds: 0,
        rate: 0.0,
        lost: 0,
        disturbed: 0,
        every: 1,
        has_started: false,
        trial: None,
        fewer: Attempts { looks: 0, pause: PAUSE_LEAST },
        more: Attempts { looks: LONG, pause: LONG },
    };

    /// The least number of segments that the peer should acknowledge at once.
    pub(super) fn every(&self) -> u32 {
        self.every
    }

    /// A datagram arrived whose number is by `ahead` above the highest one before.
    pub(super) fn on_datagram(&mut self, ahead: u64) {
        self.sent += ahead;
        self.arrived += 1;
    }

    /// A round trip is over.
    pub(super) fn on_round(&mut self, round: &Round) {
        let is_start_over = !self.has_started && !round.is_growing && self.arrived > 0;
        if is_start_over && round.asked >= START_LEAST && round.asked > self.every {
            // So few ACKs were enough until now, and the start has left a queue of data: a trial of fewer would find it to go in any case.
            self.has_started = true;
            (self.every, self.more.looks, self.fewer.looks) = (round.asked, LONG, PAUSE_LEAST);
            self.rounds = 0;
            return self.begin_look(round);
        }
        let least = round.rtt.map_or(Span::ZERO, |(_, least)| least);
        let is_longer = |before: Span| round.queue() >= before * 2 + (least / QUEUED_AGAIN).max(QUEUE_LEAST);
        if let Some(trial) = self.trial.take_if(|trial| trial.kind == Kind::More && is_longer(trial.queue)) {
            return self.take_back(&trial, round.queue());
        }
        self.rounds += 1;
        if self.rounds == 0 {
            self.begin_look(round);
        }
        if self.rounds < LOOK || self.sent < SAMPLE {
            return;
        }
        // A loss is reported at once, and so is each segment until it is repaired: more ACKs than were requested, which are lost
        // themselves.
        let has_lost = round.lost > self.lost;
        self.lost = round.lost;
        if has_lost && self.disturbed < DISTURBED_MAX {
            self.disturbed += 1;
            self.rounds = 0;
            return self.begin_look(round);
        }
        self.disturbed = 0;
        let lost = self.sent.saturating_sub(self.arrived) as f64 / self.sent as f64;
        let seconds = round.now.since(self.since).as_secs_f64().max(1e-9);
        let rate = round.delivered.saturating_sub(self.delivered) as f64 / seconds;
        let before = std::mem::replace(&mut self.rate, rate);
        self.begin_look(round);
        self.rounds = 0;
        if let Some(trial) = self.trial.take() {
            return self.conclude(&trial, lost, rate, round.queue());
        }
        self.fewer.looks = self.fewer.looks.saturating_sub(1);
        if self.fewer.looks == 0 && lost > MUCH {
            let asked = f64::from(round.asked.max(self.every));
            let every = asked * SPARE / (1.0 - lost).max(f64::EPSILON);
            return self.attempt(Kind::Losses, every, lost, round.queue());
        }
        let is_queued = round.rtt.is_some_and(|(_, least)| round.queue() >= (least / QUEUE_PART).max(QUEUE_LEAST));
        let is_steady = !round.is_growing && rate <= STEADY * before;
        // A law that fills queues until they overflow sees more of them than of ACKs.
        if self.fewer.looks == 0 && is_queued && is_steady && !has_lost {
            return self.attempt(Kind::Queue, f64::from(round.asked.max(self.every)) * FEWER, lost, round.queue());
        }
        self.more.looks = self.more.looks.saturating_sub(u32::from(lost <= MUCH / 4.0));
        if self.more.looks == 0 && self.every > 1 {
            self.attempt(Kind::More, f64::from(self.every) / 2.0, lost, round.queue());
        }
    }

    fn attempt(&mut self, kind: Kind, every: f64, lost: f64, queue: Span) {
        let before = self.every;
        self.request(every.min(EVERY_MAX.into()) as u32);
        if self.every != before {
            self.trial = Some(Trial { kind, every: before, lost, rate: self.rate, queue });
        }
    }

    fn conclude(&mut self, trial: &Trial, lost: f64, rate: f64, queue: Span) {
        let has_helped = match trial.kind {
            Kind::Losses => lost <= HELPED * trial.lost || rate >= GAIN * trial.rate,
            Kind::Queue => rate >= GAIN * trial.rate || queue <= trial.queue / 2 && rate * STEADY >= trial.rate,
            Kind::More => lost <= MUCH && rate * STEADY >= trial.rate,
        };
        if !has_helped {
            return self.take_back(trial, queue);
        }
        let (attempts, pause) = self.attempts(trial.kind);
        // If the rate has risen by less than the ACKs allow, something else limits it by now.
        let is_enough = trial.kind == Kind::Queue && rate < 0.75 * FEWER * trial.rate;
        *attempts = Attempts { looks: if is_enough { pause } else { 2 }, pause };
    }

    fn take_back(&mut self, trial: &Trial, queue: Span) {
        let (attempts, least) = self.attempts(trial.kind);
        // The law may have reduced its own queue during the trial: then the rate had to fall, and says nothing.
        let is_unclear = trial.kind == Kind::Queue && queue <= trial.queue / 2 && attempts.pause == least;
        attempts.looks = if is_unclear { 1 } else { attempts.pause };
        attempts.pause = (2 * attempts.pause).min(PAUSE_MAX);
        self.request(trial.every);
    }

    /// The attempts of a kind, and their least pause.
    fn attempts(&mut self, kind: Kind) -> (&mut Attempts, u32) {
        if kind == Kind::More { (&mut self.more, LONG) } else { (&mut self.fewer, PAUSE_LEAST) }
    }

    fn request(&mut self, every: u32) {
        self.every = every.max(1);
        self.rounds = -SHOW;
    }

    fn begin_look(&mut self, round: &Round) {
        (self.sent, self.arrived, self.since, self.delivered) = (0, 0, round.now, round.delivered);
    }
}

/// A loss of a tenth costs little information, and a random loss of less is common.
const MUCH: f64 = 0.1;

/// A request helps if less than three quarters as many datagrams are lost.
const HELPED: f64 = 0.75;

/// A quarter to spare, for the data of the other direction and for a rate that grows by fewer losses.
const SPARE: f64 = 1.25;

/// An eighth of the ACKs makes room for eight times the rate; the law needs a few round trips to use a part of it. One with little room
/// for growth needs more, but its queue goes at once if it was one of ACKs. A wide step costs less time than three narrow ones, and what
/// was too much is taken back by steps of two.
const FEWER: f64 = 8.0;
const GAIN: f64 = 1.15;

/// A rate stands if it rises by less than a tenth from one look to the next.
const STEADY: f64 = 1.1;

/// There is a queue if the smoothed RTT exceeds the minimum by a twentieth, and by more than the noise of hosts: a delay-based law is held
/// back by that much.
const QUEUE_PART: u64 = 20;
const QUEUE_LEAST: Span = Span::from_millis(2);

/// A start that asks for more has a window below 32 segments, each of which may be acknowledged.
const START_LEAST: u32 = 4;

/// More ACKs have made a queue of their own if it grows by this fraction of the minimum RTT: they are taken back before the trial ends.
const QUEUED_AGAIN: u64 = 4;

/// The round trips of a look, and the least number of datagrams.
const LOOK: i32 = 3;
const SAMPLE: u64 = 32;

/// Where some segments are always lost, such looks count, too.
const DISTURBED_MAX: u32 = 4;

/// The request travels for a round trip, the ACKs in flight arrive in another one, and the window grows in the others.
const SHOW: i32 = 6;

/// Looks before another attempt: at first 8, about a second, as hosts that stall disturb one trial in two. They double with each failure.
const PAUSE_LEAST: u32 = 8;
const PAUSE_MAX: u32 = 2048;

/// Looks before more ACKs are tried. If they do not pass, that costs half of the rate for nine round trips of some 400.
const LONG: u32 = 128;

/// At 1 Gbit/s, an ACK for 64 segments takes 1 Mbit/s.
const EVERY_MAX: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// A path that carries at most 1000 segments a round trip of 100 ms, and `room` datagrams back.
    struct Model {
        way: WayBack,
        now: Time,
        delivered: u64,
        segments: u64,
        asked: [u32; 2],
    }

    /// What happens to ACKs for which there is no room.
    #[derive(Clone, Copy, PartialEq)]
    enum Excess {
        /// They are lost.
        Lost,
        /// They queue, and the law sends so much less.
        Queued,
        /// As before; with room, the law grows by a hundredth a round trip.
        QueuedSlowly,
    }

    impl Model {
        fn new() -> Self {
            Self { way: WayBack::NEW, now: Time::ZERO, delivered: 0, segments: 100, asked: [1; 2] }
        }

        /// Returns the segments for one ACK after each of `rounds` round trips.
        fn run(&mut self, room: u64, excess: Excess, rounds: u32) -> Vec<u32> {
            let round = |_| {
                // The request of the round trip before the last one shows.
                let every = u64::from(self.asked[0]);
                self.asked = [self.asked[1], self.way.every()];
                let most = if excess == Excess::Lost { 1000 } else { 1000.min(room * every) };
                let segments = if excess == Excess::QueuedSlowly { most.min(self.segments * 101 / 100) } else { most };
                self.segments = segments;
                let sent = segments / every;
                let arrived = sent.min(room);
                (0..arrived).for_each(|number| self.way.on_datagram(if number == 0 { sent - arrived + 1 } else { 1 }));
                self.now += Span::from_millis(100);
                self.delivered += segments * 1000;
                let is_queued = excess != Excess::Lost && segments < 1000 && segments == most;
                let queue = Span::from_millis(if is_queued { 20 } else { 1 });
                let least = Span::from_millis(100);
                let (now, delivered, rtt, asked) =
                    (self.now, self.delivered, Some((least + queue, least)), self.asked[1]);
                self.way.on_round(&Round { now, delivered, lost: 0, rtt, asked, is_growing: false });
                self.way.every()
            };
            (0..rounds).map(round).collect()
        }
    }

    /// Of 1000 ACKs, 100 pass: nine tenths are lost. A quarter to spare of ten is 12.5, so one for 12 segments: 83 of them.
    #[test]
    fn way_back_losing_nine_tenths_is_fitted_after_one_look() {
        let asked = Model::new().run(100, Excess::Lost, 30);
        assert_eq!((asked[1], &asked[2..]), (1, &[12; 28][..]));
    }

    /// 100 ACKs pass and the others queue: the law sends a tenth. Two steps of eight make room for all.
    #[test]
    fn way_back_on_which_acks_queue_is_found_by_trial() {
        let asked = Model::new().run(100, Excess::Queued, 60);
        assert_eq!(asked.last(), Some(&64));
        assert!(asked.iter().position(|&every| every == 64) < Some(25), "{asked:?}");
    }

    /// As before, for a law that grows by 9 per cent during a trial: the queue goes, and the request is kept.
    #[test]
    fn way_back_with_ack_queue_is_found_with_slow_law() {
        let asked = Model::new().run(100, Excess::QueuedSlowly, 30);
        assert_eq!(asked[5..], [8; 25]);
    }

    #[test]
    fn way_back_that_carries_all_is_left_alone() {
        assert_eq!(Model::new().run(1000, Excess::Lost, 500), vec![1; 500]);
        assert_eq!(Model::new().run(901, Excess::Lost, 100), [1; 100], "a loss of less than a tenth");
    }

    /// A queue that is not one of ACKs: a trial does not help, and is made again ever more rarely.
    #[test]
    fn queue_unaffected_by_acks_keeps_ack_rate() {
        let (mut model, mut tried) = (Model::new(), 0);
        for _ in 0..10_000 {
            let way = &mut model.way;
            (0..200).for_each(|_| way.on_datagram(1));
            model.now += Span::from_millis(100);
            model.delivered += 1_000_000;
            let rtt = Some((Span::from_millis(150), Span::from_millis(100)));
            way.on_round(&Round {
                now: model.now,
                delivered: model.delivered,
                lost: 0,
                rtt,
                asked: way.every(),
                is_growing: false,
            });
            tried += u32::from(way.every() > 1);
        }
        // After 0, 8, 16 ... 2048 looks of three rounds, each for nine rounds.
        assert!(tried <= 10 * 9, "{tried} of 10,000 rounds");
    }

    /// A law that has overshot halves its rate while fewer ACKs are tried, and its own queue goes. The next queue is one of ACKs: it is tried
    /// in the first look, after six round trips until the earlier request has ended, and three more.
    #[test]
    fn queue_that_the_law_drained_itself_is_tried_again_at_once() {
        let (mut model, mut asked) = (Model::new(), vec![]);
        for round in 1..=30 {
            let (segments, queue) = if round <= 6 { (1000, 20) } else { (500, if round <= 15 { 1 } else { 20 }) };
            (0..40).for_each(|_| model.way.on_datagram(1));
            model.now += Span::from_millis(100);
            model.delivered += segments * 1000;
            let least = Span::from_millis(100);
            model.way.on_round(&Round {
                now: model.now,
                delivered: model.delivered,
                lost: 0,
                rtt: Some((least + Span::from_millis(queue), least)),
                asked: model.way.every(),
                is_growing: false,
            });
            asked.push(model.way.every());
        }
        let changes: Vec<_> = (1..30).filter(|&at| asked[at] != asked[at - 1]).map(|at| (at + 1, asked[at])).collect();
        assert_eq!(changes, [(6, 8), (15, 1), (24, 8)]);
    }

    /// The requests after a start in which one ACK for eight segments was requested, by round, on a way back with room for so many datagrams.
    fn after_start(room: u64) -> Vec<(u32, u32)> {
        let (mut model, mut asked, mut changes) = (Model::new(), 8, vec![]);
        for round in 1..=430 {
            let sent = 1000 / u64::from(asked);
            (0..sent).for_each(|_| model.way.on_datagram(1));
            model.now += Span::from_millis(100);
            model.delivered += 1_000_000;
            let least = Span::from_millis(100);
            let queue = Span::from_millis(if sent > room { 40 } else { 2 });
            let (now, delivered, is_growing) = (model.now, model.delivered, round < 10);
            model.way.on_round(&Round {
                now,
                delivered,
                lost: 0,
                rtt: Some((least + queue, least)),
                asked,
                is_growing,
            });
            let before = std::mem::replace(&mut asked, if is_growing { 8 } else { model.way.every() });
            if asked != before {
                changes.push((round, asked));
            }
        }
        changes
    }

    /// The start is over in round 10. After 128 looks of three rounds, twice as many ACKs are tried, for six rounds until they show and a look.
    /// Two looks later follow twice as many again.
    #[test]
    fn start_over_a_wide_way_back_is_followed_by_more_acks() {
        assert_eq!(after_start(1000), [(394, 4), (394 + 15, 2), (394 + 30, 1)]);
    }

    /// 130 ACKs pass, one for each eight of 1000 segments: twice as many queue, and are taken back in the round trip in which they do.
    #[test]
    fn start_over_a_narrow_way_back_keeps_its_request() {
        assert_eq!(after_start(130), [(394, 4), (395, 8)]);
    }

    /// A loss of a third at random, as many with fewer ACKs.
    #[test]
    fn random_loss_is_no_reason_to_ask_for_less() {
        let (mut model, mut tried) = (Model::new(), 0);
        for _ in 0..10_000 {
            let way = &mut model.way;
            let sent = 1000 / way.every();
            (0..sent)
                .filter(|number| number % 3 > 0)
                .for_each(|number| way.on_datagram(1 + u64::from(number % 3 == 1)));
            model.now += Span::from_millis(100);
            model.delivered += 1_000_000;
            way.on_round(&Round {
                now: model.now,
                delivered: model.delivered,
                lost: 0,
                rtt: None,
                asked: way.every(),
                is_growing: false,
            });
            tried += u32::from(way.every() > 1);
        }
        assert!(tried <= 10 * 9, "{tried} of 10,000 rounds");
    }

    /// The way back becomes as wide as ever: within some hundred round trips each segment may be acknowledged again.
    #[test]
    fn way_back_that_widens_is_used_again() {
        let mut model = Model::new();
        model.run(100, Excess::Lost, 30);
        let asked = model.run(1000, Excess::Lost, 2000);
        assert_eq!((asked[0], asked[300], asked.last()), (12, 12, Some(&1)));
    }
}
