//! What every registered law must do, whatever it is: random but legal events under random settings, then invariants.
//!
//! The model draws operations, plays a transport that keeps the seam's contract, and checks after each event:
//!
//! * the window is finite and at least one segment; a pacing rate is positive; gauges have one name each and are no NaN;
//! * a loss that is taken back leaves no less of the window than there was before it;
//! * a loss by duplicate ACKs whose cause is congestion never enlarges the window, and shrinks it as the row's
//!   [`LossContract`](anabranch_cc::registry::LossContract) says; a timeout leads to the window that it says;
//! * the same events give the same bits.
//!
//! The draws are the same on every run. `PROPTEST_CASES=100000` looks further.

use anabranch_cc::registry::{Kind, LossResponse, Row, Settings, Value, rows};
use anabranch_cc::{
    Ack, Cause, Controller, Departure, Gauges, Limit, Loss, PathSummary, PathView, Phase, Restart, Round, Sent, Signal,
    Transmission, WINDOW_MIN,
};
use anabranch_units::{Bytes, Rate, Span, Time};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};

/// Bytes.
const MSS: u64 = 1448;

#[derive(Clone, Debug)]
enum Operation {
    /// Time passes.
    Wait { micros: u64 },
    /// An ACK for part of the window, or for much more than one segment.
    Ack { segments: f64, rtt_micros: Option<u64>, size: u64, limit: Limit },
    /// A round ends, if something was acknowledged in it.
    EndRound,
    /// Duplicate ACKs show a loss: a new episode, or the second thoughts about a random one.
    Lose { cause: Cause },
    /// ECN.
    Mark,
    /// The timer expires.
    TimeOut,
    /// Fast recovery ends, or everything outstanding at a timeout is acknowledged.
    Recover,
    /// The latest loss turns out to be none.
    Undo,
    /// Nothing was sent for a while.
    Idle { micros: u64 },
    /// The path changes.
    ChangePath,
    /// The other paths are heard of.
    Group { windows: Vec<f64> },
}

fn operation() -> impl Strategy<Value = Operation> {
    // A coarse clock gives samples of zero.
    let rtt_micros = prop_oneof![2 => Just(None), 1 => Just(Some(0)), 17 => (1_u64..5_000_000).prop_map(Some)];
    let limit = prop_oneof![4 => Just(Limit::Window), 1 => Just(Limit::Application)];
    let cause = prop_oneof![Just(Cause::Congestion), Just(Cause::Random), Just(Cause::Unknown)];
    let segments = prop_oneof![4 => Just(1.0), 2 => 0.001..3.0_f64, 1 => 3.0..500.0_f64];
    prop_oneof![
        6 => (0_u64..1_000_000).prop_map(|micros| Operation::Wait { micros }),
        20 => (segments, rtt_micros, prop_oneof![3 => Just(MSS), 1 => 1..MSS], limit)
            .prop_map(|(segments, rtt_micros, size, limit)| Operation::Ack { segments, rtt_micros, size, limit }),
        6 => Just(Operation::EndRound),
        3 => cause.prop_map(|cause| Operation::Lose { cause }),
        1 => Just(Operation::Mark),
        1 => Just(Operation::TimeOut),
        3 => Just(Operation::Recover),
        2 => Just(Operation::Undo),
        1 => (0_u64..100_000_000).prop_map(|micros| Operation::Idle { micros }),
        1 => Just(Operation::ChangePath),
        1 => prop::collection::vec(1.0..1000.0_f64, 1..4).prop_map(|windows| Operation::Group { windows }),
    ]
}

/// One value for each parameter: `None` leaves it at its default, else how far up its range it lies.
type Draws = Vec<Option<f64>>;

fn settings(row: &'static Row, draws: &Draws) -> Settings {
    let mut settings = Settings::default_for(row);
    for (parameter, draw) in row.parameters().into_iter().zip(draws) {
        let Some(draw) = *draw else { continue };
        // A part comes before what its kinds can be set to.
        let is_of = |kind| parameter.name.split_once('.').map(|(part, _)| settings.value(part)) == Some(Some(kind));
        if parameter.only.is_some_and(|kind| !is_of(Value::Choice(kind))) {
            continue;
        }
        let text = match parameter.kind {
            Kind::Number { least, most } => (least + draw * (most - least)).min(most).to_string(),
            Kind::Span { least, most } => {
                let above = (draw * (most - least).ticks() as f64) as u64;
                (least + Span::from_ticks(above)).min(most).to_string()
            }
            Kind::Switch => (draw < 0.5).to_string(),
            Kind::Choice { options } => options[(draw * options.len() as f64) as usize % options.len()].to_owned(),
        };
        settings.set(&parameter.name, &text).expect("a draw lies within its parameter's range");
    }
    settings
}

/// A transport that keeps the contract of the seam.
struct Transport {
    controller: Box<dyn Controller>,
    now: Time,
    phase: Phase,
    /// What the controller was told of the loss under repair.
    repairing: Option<Cause>,
    timed_out: bool,
    /// What taking back the latest loss must at least lead to, as long as that is legal.
    before_loss: Option<f64>,
    rtts: Vec<Span>,
    rtt_min: Option<Span>,
    round_began: Time,
    round_acked: f64,
    rounds: u64,
    delivered: f64,
    /// Segments lost of which the controller has not been told.
    lost: f64,
    /// Everything the controller has shown, as bits.
    shown: Vec<u64>,
}

impl Transport {
    fn new(row: &'static Row, draws: &Draws) -> Self {
        let now = Time::from_ticks(5_000_000_000);
        let mut transport = Self {
            controller: row.build(&settings(row, draws)),
            now,
            phase: Phase::Open,
            repairing: None,
            timed_out: false,
            before_loss: None,
            rtts: Vec::new(),
            rtt_min: None,
            round_began: now,
            round_acked: 0.0,
            rounds: 0,
            delivered: 0.0,
            lost: 0.0,
            shown: Vec::new(),
        };
        transport.controller.on_restart(&transport.view(), Restart::Established);
        transport
    }

    fn view(&self) -> PathView {
        PathView {
            now: self.now,
            flight: self.controller.window(),
            mss: Bytes::new(MSS),
            rtt_smoothed: self.rtts.last().copied(),
            rtt_min: self.rtt_min,
        }
    }

    fn departure(&self) -> Departure {
        let window = self.controller.window();
        let rtt = self.rtts.last().copied().unwrap_or_default();
        Departure { time: Time::ZERO + self.now.since(Time::ZERO).saturating_sub(rtt), window, flight: window }
    }

    fn play(&mut self, operation: &Operation) {
        match *operation {
            Operation::Wait { micros } => self.now += Span::from_micros(micros),
            Operation::Ack { segments, rtt_micros, size, limit } => self.ack(segments, (rtt_micros, size), limit),
            Operation::EndRound if self.round_acked > 0.0 => self.end_round(),
            Operation::Lose { cause } => {
                let is_new = self.phase == Phase::Open;
                let is_second_thought = self.repairing == Some(Cause::Random) && cause != Cause::Random;
                if is_new || is_second_thought {
                    (self.phase, self.repairing) = (Phase::Recovery, Some(cause));
                    self.lose(Signal::DupAcks, cause);
                }
            }
            Operation::Mark if self.phase == Phase::Open => self.lose(Signal::Ecn, Cause::Congestion),
            Operation::TimeOut => {
                (self.phase, self.repairing, self.timed_out) = (Phase::Open, None, true);
                self.lose(Signal::Timeout, Cause::Unknown);
            }
            Operation::Recover if self.phase == Phase::Recovery => {
                (self.phase, self.repairing) = (Phase::Open, None);
                self.controller.on_recovered(&self.view());
            }
            Operation::Recover if self.timed_out => {
                self.timed_out = false;
                self.controller.on_restart(&self.view(), Restart::AfterTimeout);
            }
            Operation::Undo if self.before_loss.is_some() => {
                (self.phase, self.repairing, self.timed_out) = (Phase::Open, None, false);
                self.controller.on_undo(&self.view());
            }
            Operation::Idle { micros } if self.phase == Phase::Open => {
                self.before_loss = None;
                self.now += Span::from_micros(micros);
                self.controller.on_restart(&PathView { flight: 0.0, ..self.view() }, Restart::Idle);
            }
            Operation::ChangePath => {
                (self.phase, self.repairing, self.timed_out) = (Phase::Open, None, false);
                (self.rtts, self.rtt_min, self.before_loss) = (Vec::new(), None, None);
                self.controller.on_restart(&self.view(), Restart::PathChanged);
            }
            Operation::Group { ref windows } => self.group(windows),
            Operation::EndRound | Operation::Mark | Operation::Recover | Operation::Undo | Operation::Idle { .. } => {}
        }
    }

    fn ack(&mut self, newly_acked: f64, (rtt_micros, size): (Option<u64>, u64), limit: Limit) {
        let (rtt, size) = (rtt_micros.map(Span::from_micros), Bytes::new(size));
        self.rtts.extend(rtt);
        self.rtt_min = self.rtt_min.into_iter().chain(rtt).min();
        self.round_acked += newly_acked;
        let newly_lost = std::mem::take(&mut self.lost);
        self.delivered += newly_acked;
        let (arrival, departure, phase) = (self.now, self.departure(), self.phase);
        self.controller
            .on_ack(&self.view(), &Ack { newly_acked, newly_lost, rtt, size, arrival, departure, limit, phase });
        let (window, rate) = (self.controller.window().to_bits(), self.controller.pacing_rate());
        for transmission in [Transmission::First, Transmission::Again] {
            self.controller.on_sent(&self.view(), &Sent { segments: 1.0, transmission });
            let after = (self.controller.window().to_bits(), self.controller.pacing_rate());
            assert_eq!(after, (window, rate), "what leaves moves neither");
        }
    }

    fn end_round(&mut self) {
        let rtts = std::mem::take(&mut self.rtts);
        let mean =
            |rtts: &[Span]| Span::from_ticks(rtts.iter().map(|rtt| rtt.ticks()).sum::<u64>() / rtts.len() as u64);
        let round = Round {
            count: self.rounds,
            elapsed: self.now.since(self.round_began),
            acked: self.round_acked,
            rtt_min: rtts.iter().copied().min(),
            rtt_mean: (!rtts.is_empty()).then(|| mean(&rtts)),
        };
        (self.rounds, self.round_began, self.round_acked) = (self.rounds + 1, self.now, 0.0);
        self.controller.on_round(&self.view(), &round);
    }

    fn lose(&mut self, signal: Signal, cause: Cause) {
        let before = self.controller.window();
        let lost = if signal == Signal::Ecn { 0.0 } else { 1.0 };
        self.lost += lost;
        self.controller.on_loss(&self.view(), &Loss { signal, cause, lost, departure: self.departure() });
        // A loss that leaves the window alone has nothing to give back.
        let is_taken = self.controller.window() < before;
        self.before_loss = Some(if is_taken { before } else { WINDOW_MIN });
    }

    fn group(&mut self, windows: &[f64]) {
        let own = PathSummary {
            path: 0,
            own: true,
            window: self.controller.window(),
            flight: self.controller.window(),
            rtt_smoothed: self.rtts.last().copied(),
            rtt_min: self.rtt_min,
            delivered: self.delivered,
            lost: 0.0,
        };
        let mut group = vec![own];
        for (&window, path) in windows.iter().zip(1..) {
            group.push(PathSummary { path, own: false, window, ..own });
        }
        self.controller.on_group(&self.view(), &group);
    }

    /// Checks what holds after any event.
    fn check(&mut self) -> Result<(), TestCaseError> {
        let window = self.controller.window();
        prop_assert!(window.is_finite() && window >= WINDOW_MIN, "the window is {window}");
        let rate = self.controller.pacing_rate();
        prop_assert!(rate.is_none_or(|rate| rate > Rate::from_bits_per_second(0)), "the pacing rate is {rate:?}");
        let mut gauges = Gauges::default();
        self.controller.gauges(&mut gauges);
        for (name, value) in gauges.iter() {
            prop_assert!(!value.is_nan(), "the gauge `{name}` is NaN");
            self.shown.push(value.to_bits());
        }
        self.shown.extend([window.to_bits(), rate.map_or(0, Rate::bits_per_second)]);
        Ok(())
    }
}

/// Plays `operations` and returns all that was shown on the way.
fn run(row: &'static Row, draws: &Draws, operations: &[Operation]) -> Result<Vec<u64>, TestCaseError> {
    let mut transport = Transport::new(row, draws);
    transport.check()?;
    for operation in operations {
        let (before, was) = (transport.controller.window(), (transport.phase, transport.repairing));
        transport.play(operation);
        transport.check()?;
        let after = transport.controller.window();
        match *operation {
            // Nothing happens if the operation was not legal, which shows in that recovery did not begin.
            Operation::Lose { cause } if was != (transport.phase, transport.repairing) => {
                check_loss(row, cause, before, after)?;
            }
            Operation::TimeOut => {
                let most = row.loss_contract.timeout_window_max;
                prop_assert!(after <= most, "a timeout leads from {before} to {after}, more than {most}");
            }
            Operation::Undo => {
                let least = transport.before_loss.take().unwrap_or(before).max(before);
                prop_assert!(after >= least, "a loss that was none leads from {before} to {after}, less than {least}");
            }
            _ => {}
        }
    }
    Ok(transport.shown)
}

fn check_loss(row: &Row, cause: Cause, before: f64, after: f64) -> Result<(), TestCaseError> {
    let shrinks = match row.loss_contract.loss {
        LossResponse::Shrinks => true,
        LossResponse::ShrinksUnlessRandom { .. } if cause == Cause::Random => {
            prop_assert_eq!(before.to_bits(), after.to_bits(), "a random loss moves the window");
            return Ok(());
        }
        LossResponse::ShrinksUnlessRandom { .. } => true,
        LossResponse::MayHold { .. } | LossResponse::Holds { .. } => false,
    };
    prop_assert!(after <= before, "a loss ({cause:?}) enlarges the window from {before} to {after}");
    if shrinks && before > row.loss_contract.shrinks_above {
        prop_assert!(after < before, "a loss ({cause:?}) leaves the window at {before}");
    }
    Ok(())
}

#[test]
fn every_law_conforms() {
    for row in rows() {
        let config = Config { failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let draws = prop::collection::vec(prop::option::of(0.0..=1.0_f64), row.parameters().len());
        let operations = prop::collection::vec(operation(), 0..300);
        let outcome = runner.run(&(draws, operations), |(draws, operations)| {
            let first = run(row, &draws, &operations)?;
            let second = run(row, &draws, &operations)?;
            prop_assert!(first == second, "the same events gave different bits");
            Ok(())
        });
        if let Err(error) = outcome {
            panic!("{}: {error}", row.name);
        }
    }
}

/// A law that never grows would pass all of the above. On an empty path without loss each at least doubles in fifty rounds.
#[test]
fn every_law_grows_on_an_empty_path() {
    for row in rows() {
        let mut transport = Transport::new(row, &vec![None; row.parameters().len()]);
        let began = transport.controller.window();
        for _ in 0..50 {
            for _ in 0..(transport.controller.window() as u64).min(1000) {
                transport.ack(1.0, (Some(100_000), MSS), Limit::Window);
            }
            transport.now += Span::from_millis(100);
            transport.end_round();
        }
        let grown = transport.controller.window();
        assert!(grown >= 2.0 * began, "{}: from {began} to {grown} segments", row.name);
    }
}

/// Keys without an entry lead nowhere.
#[test]
fn every_citation_is_in_the_bibliography() {
    let bibliography = include_str!("../../../docs/bibliography.md");
    for row in rows() {
        for key in row.citation.split(", ") {
            assert!(bibliography.contains(&format!("**{key}**")), "{} cites {key}", row.name);
        }
    }
}
