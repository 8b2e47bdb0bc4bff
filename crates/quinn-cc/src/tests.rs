//! What a law hears of quinn's events, and what quinn sees of the law.

use anabranch_cc::{Limit, Progress, Round, Supply, own};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

use super::*;

const MTU: u16 = 1000;

/// A call of the controller, with what it was told of the path.
#[derive(Clone, Debug, PartialEq)]
enum Heard {
    Sent(PathView, Sent),
    Ack(PathView, Ack),
    Round(PathView, Round),
    Loss(PathView, Loss),
    Recovered(PathView),
    Restart(PathView, Restart),
}

impl Heard {
    fn tell(&self, law: &mut dyn Controller) {
        match self {
            Self::Sent(view, sent) => law.on_sent(view, sent),
            Self::Ack(view, ack) => law.on_ack(view, ack),
            Self::Round(view, round) => law.on_round(view, round),
            Self::Loss(view, loss) => law.on_loss(view, loss),
            Self::Recovered(view) => law.on_recovered(view),
            Self::Restart(view, restart) => law.on_restart(view, *restart),
        }
    }
}

/// A law that records its calls. It has one or none to ask for the window.
#[derive(Debug)]
struct Ear {
    law: Option<Box<dyn Controller>>,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl Ear {
    fn hear(&mut self, heard: Heard) {
        if let Some(law) = &mut self.law {
            heard.tell(&mut **law);
        }
        self.heard.lock().unwrap().push(heard);
    }
}

impl Controller for Ear {
    fn on_sent(&mut self, path: &PathView, sent: &Sent) {
        self.hear(Heard::Sent(*path, *sent));
    }

    fn on_ack(&mut self, path: &PathView, ack: &Ack) {
        self.hear(Heard::Ack(*path, *ack));
    }

    fn on_round(&mut self, path: &PathView, round: &Round) {
        self.hear(Heard::Round(*path, *round));
    }

    fn on_loss(&mut self, path: &PathView, loss: &Loss) {
        self.hear(Heard::Loss(*path, *loss));
    }

    fn on_recovered(&mut self, path: &PathView) {
        self.hear(Heard::Recovered(*path));
    }

    fn on_undo(&mut self, _: &PathView) {
        unreachable!("quinn tells of no spurious loss");
    }

    fn on_restart(&mut self, path: &PathView, restart: Restart) {
        self.hear(Heard::Restart(*path, restart));
    }

    fn on_group(&mut self, _: &PathView, _: &[anabranch_cc::PathSummary]) {
        unreachable!("there is one path");
    }

    fn window(&self) -> f64 {
        self.law.as_ref().map_or(10.0, |law| law.window())
    }

    fn ect(&self) -> Option<anabranch_cc::Ect> {
        self.law.as_ref().map_or(Some(anabranch_cc::Ect::Zero), |law| law.ect())
    }
}

/// A path of quinn with packets of any size.
struct Quinn {
    controller: Box<dyn congestion::Controller>,
    heard: Arc<Mutex<Vec<Heard>>>,
    epoch: Instant,
    /// Milliseconds since then.
    now: u64,
    in_flight: u64,
}

impl Quinn {
    /// A law that only listens, with a window of ten segments.
    fn new() -> Self {
        Self::with(|| None)
    }

    fn with(law: impl Fn() -> Option<Box<dyn Controller>> + Send + Sync + 'static) -> Self {
        let heard = Arc::new(Mutex::new(vec![]));
        let ear = Arc::clone(&heard);
        let settings = own::settings(move || Box::new(Ear { law: law(), heard: Arc::clone(&ear) }));
        let epoch = Instant::now();
        let controller = Arc::new(LawConfig::from(settings)).build(epoch, MTU);
        Self { controller, heard, epoch, now: 0, in_flight: 0 }
    }

    /// `now` is `ms` milliseconds.
    fn at(&mut self, ms: u64) -> &mut Self {
        self.now = ms;
        self
    }

    fn instant(&self, ms: u64) -> Instant {
        self.epoch + Duration::from_millis(ms)
    }

    fn send(&mut self, bytes: u64) {
        self.in_flight += bytes;
        self.controller.on_sent(self.instant(self.now), bytes, 0);
    }

    /// An ACK for packets that left at these milliseconds, with these bytes.
    fn ack(&mut self, packets: &[(u64, u64)], app_limited: bool) {
        for &(left, bytes) in packets {
            self.in_flight -= bytes;
            // The estimator is quinn's own, and no other crate can make one.
            let left = self.instant(left);
            self.own(|law| law.acked(left, bytes));
        }
        self.controller.on_end_acks(self.instant(self.now), self.in_flight, app_limited, None);
    }

    fn lose(&mut self, left: u64, bytes: u64, is_persistent: bool) {
        self.in_flight -= bytes;
        self.controller.on_congestion_event(self.instant(self.now), self.instant(left), is_persistent, bytes);
    }

    fn mark(&mut self, left: u64) {
        self.controller.on_congestion_event(self.instant(self.now), self.instant(left), false, 0);
    }

    /// Changes the type behind quinn's trait.
    fn own(&mut self, what: impl FnOnce(&mut LawController)) {
        let dummy: Box<dyn congestion::Controller> = Arc::new(LawConfig::default()).build(self.epoch, MTU);
        let mut own = mem::replace(&mut self.controller, dummy).into_any().downcast::<LawController>().unwrap();
        what(&mut own);
        self.controller = own;
    }

    /// What was heard since the last call, but for departures.
    fn heard(&self) -> Vec<Heard> {
        let mut heard = mem::take(&mut *self.heard.lock().unwrap());
        heard.retain(|heard| !matches!(heard, Heard::Sent(..)));
        heard
    }

    /// The names of what was heard.
    fn names(&self) -> Vec<&'static str> {
        let name = |heard: &Heard| match heard {
            Heard::Sent(..) => "sent",
            Heard::Ack(..) => "ack",
            Heard::Round(..) => "round",
            Heard::Loss(_, Loss { signal: Signal::DupAcks, cause: Cause::Random, .. }) => "random loss",
            Heard::Loss(_, Loss { signal: Signal::DupAcks, .. }) => "loss",
            Heard::Loss(_, Loss { signal: Signal::Timeout, .. }) => "timeout",
            Heard::Loss(_, Loss { signal: Signal::Ecn, .. }) => "mark",
            Heard::Recovered(_) => "recovered",
            Heard::Restart(_, Restart::Established) => "established",
            Heard::Restart(_, Restart::Idle) => "idle",
            Heard::Restart(_, Restart::AfterTimeout) => "after timeout",
            Heard::Restart(_, Restart::PathChanged) => "changed",
        };
        self.heard().iter().map(name).collect()
    }
}

fn ms(count: u64) -> Span {
    Span::from_millis(count)
}

fn at(count: u64) -> Time {
    Time::ZERO + ms(count)
}

/// Three segments leave at 10 ms, two at 20 ms; at 70 ms the first four of them are acknowledged.
#[test]
fn ack_has_raw_rtt_and_record_of_its_newest_packet() {
    let mut quinn = Quinn::new();
    assert_eq!(quinn.names(), ["established"]);
    quinn.at(10).send(3000);
    quinn.at(20).send(2000);
    quinn.at(70).ack(&[(10, 1000), (10, 1000), (10, 1000), (20, 1000)], false);
    let heard = quinn.heard();
    let progress = Progress { delivered: 4.0, lost: 0.0, delivered_at: at(70), departed: at(20) };
    let view = PathView { now: at(70), flight: 1.0, mss: Bytes::new(1000), progress, ..PathView::default() };
    let view = PathView { rtt_smoothed: Some(ms(50)), rtt_min: Some(ms(50)), ..view };
    let departure = Departure {
        time: at(20),
        window: 10.0,
        flight: 5.0,
        progress: Progress { delivered_at: at(10), departed: at(10), ..Progress::default() },
        supply: Supply::Enough,
    };
    let ack = Ack {
        newly_acked: 4.0,
        rtt: Some(ms(50)),
        size: Bytes::new(1000),
        arrival: at(70),
        departure,
        limit: Limit::Window,
        ..Ack::default()
    };
    // The first round began with the path, so it ends with the first ACK.
    let round = Round { count: 0, elapsed: ms(70), acked: 4.0, rtt_min: Some(ms(50)), rtt_mean: Some(ms(50)) };
    assert_eq!(heard, [Heard::Ack(view, ack), Heard::Round(view, round)]);
}

/// A packet that was sent before another one may be acknowledged after it: the newest of each ACK counts, in any order.
#[test]
fn newest_packet_of_an_ack_gives_the_sample() {
    let mut quinn = Quinn::new();
    quinn.at(10).send(1000);
    quinn.at(20).send(500);
    quinn.at(70).ack(&[(20, 500), (10, 1000)], false);
    let heard = quinn.heard();
    let Some(Heard::Ack(_, ack)) = heard.get(1) else { panic!("{heard:?}") };
    assert_eq!((ack.rtt, ack.size, ack.departure.time), (Some(ms(50)), Bytes::new(500), at(20)));
}

/// A round takes from the ACK that begins it to that of what left next.
#[test]
fn round_ends_with_what_left_after_its_begin() {
    let mut quinn = Quinn::new();
    quinn.at(10).send(1000);
    quinn.at(20).send(1000);
    quinn.at(60).ack(&[(10, 1000)], false);
    assert_eq!(quinn.names(), ["established", "ack", "round"]);
    quinn.at(65).send(1000);
    quinn.at(70).ack(&[(20, 1000)], false);
    assert_eq!(quinn.names(), ["ack"]);
    quinn.at(115).ack(&[(65, 1000)], false);
    assert_eq!(quinn.names(), ["ack", "round"]);
}

/// A flight of ten segments, of which two are lost, and later two more; then what left before the loss comes, and at last what left after it.
#[test]
fn losses_of_a_flight_are_one_episode() {
    let mut quinn = Quinn::new();
    for left in 10..20 {
        quinn.at(left).send(1000);
    }
    quinn.at(65).ack(&[(12, 1000), (13, 1000), (14, 1000), (15, 1000)], false);
    quinn.lose(11, 2000, false);
    let Heard::Loss(view, loss) = quinn.heard().pop().unwrap() else { panic!("a loss") };
    assert_eq!((loss.signal, loss.cause, loss.lost as u32), (Signal::DupAcks, Cause::Congestion, 2));
    assert_eq!((loss.departure.time, loss.departure.flight as u32), (at(11), 2));
    assert_eq!((view.flight as u32, view.progress.lost as u32), (4, 2));
    quinn.at(66).send(1000);
    quinn.at(69).ack(&[(19, 1000)], false);
    quinn.lose(17, 2000, false);
    assert_eq!(quinn.names(), ["ack"]);
    quinn.at(70).ack(&[(18, 1000)], false);
    let heard = quinn.heard();
    let Heard::Ack(_, ack) = &heard[0] else { panic!("{heard:?}") };
    assert_eq!((ack.phase, ack.newly_lost as u32), (Phase::Recovery, 2));
    // In quinn a loss follows its ACK: this one belongs to the episode that has just ended.
    quinn.at(116).ack(&[(66, 1000)], false);
    assert_eq!(quinn.names(), ["ack", "recovered", "round"]);
    quinn.at(117).send(2000);
    quinn.at(167).ack(&[(117, 1000)], false);
    quinn.lose(117, 1000, false);
    assert_eq!(quinn.names(), ["ack", "round", "random loss"]);
}

/// [ctcp-2019] sec. 3: one hole without delay is a random loss; the second one shows congestion.
#[test]
fn lone_loss_without_delay_is_random_until_more_is_lost() {
    let mut quinn = Quinn::new();
    for left in 10..20 {
        quinn.at(left).send(1000);
    }
    quinn.at(63).ack(&[(11, 1000), (12, 1000), (13, 1000)], false);
    quinn.lose(10, 1000, false);
    assert_eq!(quinn.names(), ["established", "ack", "round", "random loss"]);
    quinn.at(67).ack(&[(15, 1000), (16, 1000), (17, 1000)], false);
    quinn.lose(14, 1000, false);
    quinn.at(69).ack(&[(19, 1000)], false);
    quinn.lose(18, 1000, false);
    assert_eq!(quinn.names(), ["ack", "loss", "ack"]);
}

/// As the first, but the RTT has grown from 50 to 80 ms.
#[test]
fn lone_loss_with_delay_is_congestion() {
    let mut quinn = Quinn::new();
    quinn.at(10).send(2000);
    quinn.at(60).ack(&[(10, 1000)], false);
    quinn.at(61).send(2000);
    quinn.at(141).ack(&[(61, 1000)], false);
    quinn.lose(10, 1000, false);
    assert_eq!(quinn.names(), ["established", "ack", "round", "ack", "round", "loss"]);
}

#[test]
fn persistent_congestion_is_timeout_until_later_packet_arrives() {
    let mut quinn = Quinn::new();
    quinn.at(10).send(1000);
    quinn.at(60).ack(&[(10, 1000)], false);
    for left in [61, 200, 500, 900] {
        quinn.at(left).send(1000);
    }
    quinn.at(950).ack(&[(900, 1000)], false);
    quinn.lose(500, 2000, true);
    quinn.at(951).send(2000);
    // The rest of the same flight.
    quinn.at(952).lose(61, 1000, true);
    quinn.at(1001).ack(&[(951, 1000)], false);
    // Nobody has told of what left at 61 ms: at 500 ms quinn could as well have been idle.
    let expected =
        ["established", "ack", "round", "idle", "idle", "ack", "round", "timeout", "ack", "after timeout", "round"];
    assert_eq!(quinn.names(), expected);
}

/// A mark counts once a round trip, and the segments of its ACK count as marked.
#[test]
fn marks_are_one_signal_in_a_round_trip() {
    let mut quinn = Quinn::new();
    for left in [10, 11, 12] {
        quinn.at(left).send(2000);
    }
    quinn.at(60).ack(&[(10, 1000), (10, 1000)], false);
    quinn.mark(10);
    quinn.at(61).ack(&[(11, 1000), (11, 1000)], false);
    quinn.mark(11);
    quinn.at(62).ack(&[(12, 2000)], false);
    let heard = quinn.heard();
    let marked: Vec<u32> = heard
        .iter()
        .filter_map(|heard| if let Heard::Ack(_, ack) = heard { Some(ack.newly_marked as u32) } else { None })
        .collect();
    assert_eq!(marked, [0, 2, 2]);
    let losses = heard.iter().filter(|heard| matches!(heard, Heard::Loss(_, loss) if loss.lost.to_bits() == 0));
    assert_eq!(losses.count(), 1);
    assert!(heard.iter().all(|heard| !matches!(heard, Heard::Recovered(_))));
}

/// [rfc-3168] sec. 5: a router that marks would drop otherwise. quinn asks for marks even if the law does not respond to them.
#[test]
fn mark_is_a_loss_for_a_law_without_ecn() {
    let bbr = || {
        let row = registry::find("bbr").unwrap();
        Some(row.build(&Settings::default_for(row)))
    };
    let mut quinn = Quinn::with(bbr);
    quinn.at(10).send(2000);
    quinn.at(60).ack(&[(10, 2000)], false);
    quinn.mark(10);
    let Heard::Loss(view, loss) = quinn.heard().pop().unwrap() else { panic!("a loss") };
    assert_eq!((loss.signal, loss.cause, view.progress.lost as u32), (Signal::DupAcks, Cause::Congestion, 2));
}

/// RTO = 50 + max(200, 4 · 25) ms: nothing was in flight from 60 ms on. ACKs alone, which the peer does not acknowledge, do not prevent it.
#[test]
fn window_restarts_after_idle_time() {
    let mut quinn = Quinn::new();
    quinn.at(10).send(1000);
    quinn.at(60).ack(&[(10, 1000)], true);
    quinn.at(310).send(40);
    quinn.in_flight = 0;
    assert_eq!(quinn.names(), ["established", "ack", "round"]);
    quinn.at(311).send(1000);
    let Heard::Restart(view, restart) = quinn.heard().pop().unwrap() else { panic!("a restart") };
    assert_eq!((restart, view.flight as u32, view.now), (Restart::Idle, 0, at(311)));
    quinn.at(361).ack(&[(311, 1000)], true);
    let Heard::Ack(_, ack) = &quinn.heard()[0] else { panic!("an ACK") };
    assert!((ack.departure.flight - 1.0).abs() < 1e-12, "{}", ack.departure.flight);
}

/// An application that writes less than the window admits limits the sender; what leaves before all that was in flight then has arrived is short supply.
#[test]
fn application_limits_the_sender() {
    let mut quinn = Quinn::new();
    quinn.at(10).send(1000);
    quinn.at(11).send(1000);
    quinn.at(60).ack(&[(10, 1000)], true);
    quinn.at(62).send(1000);
    quinn.at(63).ack(&[(11, 1000)], false);
    quinn.at(112).ack(&[(62, 1000)], false);
    let heard = quinn.heard();
    let acks: Vec<_> = heard
        .iter()
        .filter_map(|heard| if let Heard::Ack(_, ack) = heard { Some((ack.limit, ack.departure.supply)) } else { None })
        .collect();
    let expected =
        [(Limit::Application, Supply::Enough), (Limit::Window, Supply::Enough), (Limit::Window, Supply::Short)];
    assert_eq!(acks, expected);
}

/// The unit is the first MTU. quinn sends only while a datagram more stays below the window: it needs two at least.
#[test]
fn window_holds_two_datagrams_of_the_present_mtu() {
    let reno = Arc::new(LawConfig::named("reno", [("initial_window", "1")]).unwrap());
    let mut controller = reno.build(Instant::now(), 1200);
    assert_eq!((controller.window(), controller.initial_window()), (2400, 2400));
    controller.on_mtu_update(1452);
    assert_eq!((controller.window(), controller.initial_window()), (2904, 2400));
    controller.on_mtu_update(0);
    assert_eq!(controller.window(), 1200);
    let mut controller = Arc::new(LawConfig::default()).build(Instant::now(), 1200);
    assert_eq!((controller.window(), controller.initial_window()), (12_000, 12_000));
    controller.on_mtu_update(1452);
    assert_eq!(controller.window(), 12_000);
    assert_eq!(Arc::new(LawConfig::default()).build(Instant::now(), 0).window(), 10);
}

/// An end that only receives sends ACKs for ever, of which none is acknowledged.
#[test]
fn records_are_limited() {
    let mut quinn = Quinn::new();
    for left in 0..10_000 {
        quinn.at(left).send(40);
    }
    quinn.own(|law| {
        assert!(law.path.records.len() <= RECORDS_MAX && law.path.records.capacity() <= 2 * RECORDS_MAX);
        // The time is exact; the rest is of a departure at most 1/128 of all before.
        let record = law.path.record_of(at(8000));
        assert_eq!(record.departure.time, at(8000));
        assert_eq!(record.serial, 8000 / 64 * 64, "256 records of 10,000 are each 64th");
    });
    // What is a round trip old is forgotten, and then each departure has a record again.
    quinn.in_flight = 80;
    quinn.at(10_000).ack(&[(9_999, 40)], false);
    quinn.at(10_100).send(40);
    quinn.at(10_101).send(40);
    quinn.own(|law| assert_eq!(law.path.record_of(at(10_100)).serial, 10_000));
    assert_eq!(size_of::<Record>() * RECORDS_MAX, 18_432);
}

#[test]
fn wrong_names_are_refused_with_the_right_ones() {
    let error = LawConfig::named("cubik", []).unwrap_err().to_string();
    assert!(error.contains("cubic"), "{error}");
    let error = LawConfig::named("cubic", [("alpha", "1")]).unwrap_err().to_string();
    assert!(error.contains("initial_window"), "{error}");
    assert!(LawConfig::named("fast", [("alpha", "-1")]).is_err());
}

/// A law of the caller's own that cannot be copied begins anew.
#[test]
fn law_that_cannot_be_copied_begins_anew() {
    let quinn = Quinn::with(|| {
        let row = registry::find("reno").unwrap();
        Some(row.build(&Settings::default_for(row)))
    });
    assert_eq!(quinn.names(), ["established"]);
    let copy = quinn.controller.clone_box();
    assert_eq!((copy.window(), copy.initial_window()), (10_000, 10_000));
    assert_eq!(quinn.names(), ["established"]);
}

/// An event of quinn's. Numbers choose among what is in flight.
#[derive(Clone, Debug)]
enum Event {
    Wait(u64),
    Send(u64),
    Ack {
        first: usize,
        count: usize,
        app_limited: bool,
    },
    /// Packets are lost: the oldest.
    Lose {
        count: usize,
        is_persistent: bool,
    },
    Mark(usize),
    Mtu(u16),
    /// An ACK of what was never sent, or left before the path was there.
    Unknown {
        ago: u64,
        bytes: u64,
    },
    /// All packets of a packet number space are forgotten.
    Forget,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0_u64..100).prop_map(Event::Wait),
        1 => (0_u64..100_000).prop_map(Event::Wait),
        1 => Just(Event::Wait(400_000)),
        12 => (1_u64..20_000).prop_map(Event::Send),
        2 => (1_u64..60).prop_map(Event::Send),
        12 => (0_usize..8, 0_usize..6, any::<bool>())
            .prop_map(|(first, count, app_limited)| Event::Ack { first, count, app_limited }),
        3 => (1_usize..5, prop::bool::weighted(0.2))
            .prop_map(|(count, is_persistent)| Event::Lose { count, is_persistent }),
        1 => (0_usize..5).prop_map(Event::Mark),
        1 => any::<u16>().prop_map(Event::Mtu),
        1 => (0_u64..1_000_000, 0_u64..100_000).prop_map(|(ago, bytes)| Event::Unknown { ago, bytes }),
        1 => Just(Event::Forget),
    ]
}

/// Plays events, and calls `check` after each. `flight` has the packets in flight: when they left, and their bytes.
fn play(
    quinn: &mut Quinn,
    events: &[Event],
    mut check: impl FnMut(&mut Quinn, u64) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let (mut flight, mut mtu): (VecDeque<(u64, u64)>, u64) = (VecDeque::new(), MTU.into());
    check(quinn, mtu)?;
    for event in events {
        match *event {
            Event::Wait(ms) => quinn.now += ms,
            Event::Send(bytes) => {
                flight.push_back((quinn.now, bytes));
                quinn.send(bytes);
            }
            Event::Ack { first, count, app_limited } => {
                let first = first.min(flight.len());
                let packets: Vec<_> = flight.drain(first..(first + count).min(flight.len())).collect();
                quinn.ack(&packets, app_limited);
            }
            Event::Lose { count, is_persistent } => {
                let packets: Vec<_> = flight.drain(..count.min(flight.len())).collect();
                if let Some(&(left, _)) = packets.last() {
                    quinn.lose(left, packets.iter().map(|packet| packet.1).sum(), is_persistent);
                }
            }
            Event::Mark(ago) => quinn.mark(quinn.now.saturating_sub(ago as u64 * 20)),
            Event::Mtu(new) => {
                mtu = new.max(1).into();
                quinn.controller.on_mtu_update(new);
            }
            Event::Unknown { ago, bytes } => {
                let left = quinn.epoch.checked_sub(Duration::from_millis(ago)).unwrap_or(quinn.epoch);
                quinn.own(|law| law.acked(left, bytes));
                quinn.controller.on_end_acks(quinn.instant(quinn.now), quinn.in_flight, false, Some(u64::MAX));
            }
            Event::Forget => {
                flight.clear();
                quinn.in_flight = 0;
            }
        }
        check(quinn, mtu)?;
    }
    Ok(())
}

fn run(laws: &[&'static str], test: impl Fn(&'static str, Vec<Event>) -> Result<(), TestCaseError>) {
    for &name in laws {
        let config = Config { failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let events = prop::collection::vec(event(), 0..200);
        let outcome = runner.run(&events, |events| test(name, events));
        if let Err(error) = outcome {
            panic!("{name}: {error}");
        }
    }
}

fn names() -> Vec<&'static str> {
    registry::rows().iter().map(|row| row.name).collect()
}

fn law(name: &str) -> Box<dyn Controller> {
    let row = registry::find(name).unwrap();
    row.build(&Settings::default_for(row))
}

/// A second law hears what the first has been told, and has the window that quinn sees: in units of the first MTU, and two datagrams at least. What is told
/// keeps the contract of [`Controller`], and the window is never zero.
#[test]
fn quinn_sees_the_window_of_the_law() {
    run(&names(), |name, events| {
        let mut quinn = Quinn::with(move || Some(law(name)));
        let mut second = law(name);
        let mut told = Contract::default();
        let initial = quinn.controller.window();
        play(&mut quinn, &events, |quinn, mtu| {
            for heard in mem::take(&mut *quinn.heard.lock().unwrap()) {
                told.check(&heard)?;
                heard.tell(&mut *second);
            }
            let bytes = (second.window() * f64::from(MTU)).floor() as u64;
            let window = quinn.controller.window();
            prop_assert_eq!(window, bytes.max(2 * mtu));
            prop_assert!(window >= 2);
            prop_assert_eq!(quinn.controller.initial_window(), initial);
            prop_assert_eq!(quinn.controller.metrics().congestion_window, window);
            Ok(())
        })
    });
}

/// What the contract of [`Controller`] says of the order of its calls.
#[derive(Default)]
struct Contract {
    now: Time,
    delivered: f64,
    /// The cause of the loss in recovery.
    repairing: Option<Cause>,
    timed_out: bool,
}

impl Contract {
    fn check(&mut self, heard: &Heard) -> Result<(), TestCaseError> {
        let (Heard::Sent(view, _)
        | Heard::Ack(view, _)
        | Heard::Round(view, _)
        | Heard::Loss(view, _)
        | Heard::Recovered(view)
        | Heard::Restart(view, _)) = heard;
        prop_assert!(view.now >= self.now && view.mss == Bytes::new(MTU.into()), "{:?}", heard);
        prop_assert!(view.flight >= 0.0 && view.flight.is_finite(), "{:?}", heard);
        prop_assert!(view.progress.delivered >= self.delivered, "{:?}", heard);
        (self.now, self.delivered) = (view.now, view.progress.delivered);
        match heard {
            Heard::Ack(_, ack) => {
                prop_assert!(ack.newly_acked >= 0.0 && ack.departure.time <= view.now, "{:?}", ack);
                prop_assert_eq!(ack.rtt, Some(view.now.since(ack.departure.time)));
                prop_assert_eq!(ack.phase == Phase::Recovery, self.repairing.is_some());
            }
            Heard::Loss(_, Loss { signal: Signal::DupAcks, cause, .. }) => {
                prop_assert!(self.repairing.is_none_or(|before| before == Cause::Random && *cause != before));
                prop_assert!(!self.timed_out);
                self.repairing = Some(*cause);
            }
            Heard::Loss(_, Loss { signal: Signal::Timeout, .. }) => (self.repairing, self.timed_out) = (None, true),
            Heard::Loss(_, Loss { signal: Signal::Ecn, .. }) => prop_assert!(self.repairing.is_none()),
            Heard::Recovered(_) => prop_assert!(self.repairing.take().is_some()),
            Heard::Restart(_, Restart::AfterTimeout) => prop_assert!(mem::take(&mut self.timed_out)),
            Heard::Sent(..) | Heard::Round(..) | Heard::Restart(..) => {}
        }
        Ok(())
    }
}

/// A copy has its original's window, and goes on as its original does.
#[test]
fn copy_goes_on_as_the_original() {
    run(&names(), |name, events| {
        let begin = |epoch| Quinn {
            controller: Arc::new(LawConfig::named(name, []).unwrap()).build(epoch, MTU),
            heard: Arc::default(),
            epoch,
            now: 0,
            in_flight: 0,
        };
        let epoch = Instant::now();
        let (mut first, mut second) = (begin(epoch), begin(epoch));
        let (mut windows, mut copied) = (vec![], vec![]);
        play(&mut first, &events, |quinn, _| {
            windows.push(quinn.controller.window());
            Ok(())
        })?;
        play(&mut second, &events, |quinn, _| {
            quinn.controller = quinn.controller.clone_box();
            copied.push(quinn.controller.window());
            Ok(())
        })?;
        prop_assert_eq!(windows, copied);
        Ok(())
    });
}
