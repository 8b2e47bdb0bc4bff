//! The test of every law: plays random but legal events, and checks invariants.
//!
//! [`play`] is a transport that keeps the contract of [`Controller`]. After each event it checks:
//!
//! * the window is finite and at least one segment; a pacing rate is positive; gauges have unique names and are never NaN;
//! * a departure changes neither window nor rate;
//! * a copy goes on as its original does;
//! * the undo of a spurious loss leaves a window at least as large as before the loss;
//! * a loss by duplicate ACKs with the cause congestion never enlarges the window, and shrinks it as the [`LossContract`] says; a
//!   timeout leads to the window that it says.
//!
//! [`check`] draws the events, plays each story twice (equal events give equal bits), shrinks a failing story, and checks that the
//! law grows at all. `tests/conformance.rs` draws stories for the registered laws under random settings.

use std::fmt;
use std::mem;

use anabranch_units::{Bytes, Rate, Span, Time};

use crate::controller::{
    Ack, Cause, Controller, Departure, Gauges, Limit, Loss, PathSummary, PathView, Phase, Progress, Restart, Round,
    Sent, Signal, Supply, Transmission, WINDOW_MIN,
};
use crate::row::{LossContract, LossResponse};

/// The payload of a full segment, in bytes.
pub const MSS: u64 = 1448;

/// An event on a path.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// The clock advances.
    Wait {
        /// The time in microseconds.
        micros: u64,
    },
    /// An ACK for part of the window, or for much more than one segment.
    Ack {
        /// Segments acknowledged, above zero.
        segments: f64,
        /// The RTT sample in microseconds; a coarse clock gives zero.
        rtt_micros: Option<u64>,
        /// Bytes of the segment, at most [`MSS`].
        size: u64,
        /// What limits the sender.
        limit: Limit,
    },
    /// A round ends, if something was acknowledged in it.
    EndRound,
    /// Duplicate ACKs reveal a loss: a new episode, or another classification of a loss that seemed random.
    Lose {
        /// The classified cause.
        cause: Cause,
    },
    /// An ECN mark.
    Mark,
    /// The timer expires.
    TimeOut,
    /// Fast recovery ends, or everything outstanding at a timeout is acknowledged.
    Recover,
    /// The latest loss proves spurious.
    Undo,
    /// Nothing was sent for a while.
    Idle {
        /// The idle time in microseconds.
        micros: u64,
    },
    /// The path changes.
    ChangePath,
    /// The summaries of all paths arrive.
    Group {
        /// Their windows in segments.
        windows: Vec<f64>,
    },
}

/// A violation of the contract, and the events that led to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The violated rule.
    pub message: String,
    /// The events; the last one shows the violation. An event that is illegal at its turn does nothing.
    pub story: Vec<Operation>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        if self.story.is_empty() {
            return Ok(());
        }
        write!(f, "; after")?;
        for (index, operation) in self.story.iter().enumerate() {
            write!(f, "{} {operation:?}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl std::error::Error for Violation {}

/// Makes a controller.
pub type Make<'a> = dyn Fn() -> Box<dyn Controller> + 'a;

/// Plays `cases` stories of up to 300 events, the same on every call, and checks that the law grows.
///
/// # Errors
/// The first violation, with a short story that leads to it.
pub fn check(make: &Make<'_>, contract: &LossContract, cases: u32) -> Result<(), Violation> {
    let mut draws = Draws(SEED);
    for _ in 0..cases {
        let length = draws.below(STORY_MAX + 1);
        let story: Vec<Operation> = (0..length).map(|_| draws.operation()).collect();
        play_twice(make, contract, &story).map_err(|violation| shortened(make, contract, violation))?;
    }
    grows(make).map_err(|message| Violation { message, story: Vec::new() })
}

/// Plays a story twice, and once more with a copy in place of the controller after each event, if the law can be copied.
///
/// # Errors
/// A violation, or a difference between the runs.
pub fn play_twice(make: &Make<'_>, contract: &LossContract, story: &[Operation]) -> Result<(), Violation> {
    let (first, second) = (play(make, contract, story)?, play(make, contract, story)?);
    let differs = |message: &str| Err(Violation { message: message.to_owned(), story: story.to_vec() });
    if first != second {
        return differs("the same events gave different bits");
    }
    let mut transport = Transport::new(make());
    if !transport.replace_by_copy() {
        return Ok(());
    }
    match transport.tell(contract, story, |transport| _ = transport.replace_by_copy())? == first {
        true => Ok(()),
        false => differs("copies of the controller gave different bits"),
    }
}

/// Plays a story and returns everything that the law showed, as bits.
///
/// # Errors
/// The first violation.
pub fn play(make: &Make<'_>, contract: &LossContract, story: &[Operation]) -> Result<Vec<u64>, Violation> {
    Transport::new(make()).tell(contract, story, |_| {})
}

/// Checks that the window at least doubles in fifty rounds on an empty path without loss. A law that never grows would pass all other
/// checks.
///
/// # Errors
/// If the window does not double.
pub fn grows(make: &Make<'_>) -> Result<(), String> {
    let mut transport = Transport::new(make());
    let began = transport.controller.window();
    for _ in 0..50 {
        for _ in 0..(transport.controller.window() as u64).min(1000) {
            transport.ack(1.0, (Some(100_000), MSS), Limit::Window)?;
        }
        transport.now += Span::from_millis(100);
        transport.end_round();
    }
    let grown = transport.controller.window();
    match grown >= 2.0 * began {
        true => Ok(()),
        false => Err(format!(
            "on an empty path fifty rounds lead from {began} to {grown} segments, which is not twice as much"
        )),
    }
}

/// Shrinks a failing story by leaving out events while it still fails.
fn shortened(make: &Make<'_>, contract: &LossContract, violation: Violation) -> Violation {
    let mut shortest = violation;
    let mut width = shortest.story.len() / 2;
    while width > 0 {
        let mut from = 0;
        while from < shortest.story.len() {
            let mut story = shortest.story.clone();
            story.drain(from..(from + width).min(story.len()));
            match play_twice(make, contract, &story) {
                Err(shorter) => shortest = shorter,
                Ok(()) => from += width,
            }
        }
        width /= 2;
    }
    shortest
}

/// Events in a story, at most.
const STORY_MAX: u64 = 300;

/// The seed of the stories. SplitMix64 allows any number but zero.
const SEED: u64 = 0x0a6a_b4a6_c41e_7a2d;

/// Random events, by SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn between(&mut self, least: f64, most: f64) -> f64 {
        // 53 bits are exact in a float.
        least + (most - least) * ((self.next() >> 11) as f64 / (1_u64 << 53) as f64)
    }

    /// In the shares of `tests/conformance.rs`.
    fn operation(&mut self) -> Operation {
        match self.below(46) {
            0..6 => Operation::Wait { micros: self.below(1_000_000) },
            6..26 => self.ack(),
            26..32 => Operation::EndRound,
            32..35 => {
                let causes = [Cause::Congestion, Cause::Random, Cause::Unknown];
                Operation::Lose { cause: causes[self.below(3) as usize] }
            }
            35 => Operation::Mark,
            36 => Operation::TimeOut,
            37..40 => Operation::Recover,
            40..42 => Operation::Undo,
            42 => Operation::Idle { micros: self.below(100_000_000) },
            43 => Operation::ChangePath,
            _ => Operation::Group { windows: (0..=self.below(3)).map(|_| self.between(1.0, 1000.0)).collect() },
        }
    }

    fn ack(&mut self) -> Operation {
        let segments = match self.below(7) {
            0..4 => 1.0,
            4..6 => self.between(0.001, 3.0),
            _ => self.between(3.0, 500.0),
        };
        let rtt_micros = match self.below(20) {
            0..2 => None,
            2 => Some(0),
            _ => Some(1 + self.below(5_000_000)),
        };
        let size = if self.below(4) < 3 { MSS } else { 1 + self.below(MSS - 1) };
        let limit = if self.below(5) < 4 { Limit::Window } else { Limit::Application };
        Operation::Ack { segments, rtt_micros, size, limit }
    }
}

/// A transport that keeps the contract of [`Controller`].
struct Transport {
    controller: Box<dyn Controller>,
    now: Time,
    phase: Phase,
    /// The cause that the controller was told of the loss in recovery.
    repairing: Option<Cause>,
    timed_out: bool,
    /// The least window that an undo of the latest loss must lead to, while it is legal.
    before_loss: Option<f64>,
    rtts: Vec<Span>,
    rtt_min: Option<Span>,
    round_began: Time,
    round_acked: f64,
    rounds: u64,
    progress: Progress,
    /// Lost segments, and marked ones, that the controller has not been told of.
    lost: f64,
    marked: f64,
    /// Everything the controller has shown, as bits.
    shown: Vec<u64>,
}

impl Transport {
    fn new(controller: Box<dyn Controller>) -> Self {
        let now = Time::from_ticks(5_000_000_000);
        let mut transport = Self {
            controller,
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
            progress: Progress::default(),
            lost: 0.0,
            marked: 0.0,
            shown: Vec::new(),
        };
        transport.controller.on_restart(&transport.view(), Restart::Established);
        transport
    }

    fn view(&self) -> PathView {
        let (flight, mss) = (self.controller.window(), Bytes::new(MSS));
        let view = PathView { now: self.now, flight, mss, progress: self.progress, ..PathView::default() };
        PathView { rtt_smoothed: self.rtts.last().copied(), rtt_min: self.rtt_min, ..view }
    }

    fn departure(&self) -> Departure {
        let window = self.controller.window();
        let rtt = self.rtts.last().copied().unwrap_or_default();
        let ago = |span: Span| Time::ZERO + self.now.since(Time::ZERO).saturating_sub(span);
        let (delivered, lost) = ((self.progress.delivered - window).max(0.0), (self.progress.lost - 1.0).max(0.0));
        let progress = Progress { delivered, lost, delivered_at: ago(rtt), departed: ago(rtt.saturating_mul(2)) };
        let supply = if self.rounds % 8 == 7 { Supply::Short } else { Supply::Enough };
        Departure { time: ago(rtt), window, flight: window, progress, supply }
    }

    /// Whether the law can be copied; a copy goes on then.
    fn replace_by_copy(&mut self) -> bool {
        let copy = self.controller.copy();
        let is_copy = copy.is_some();
        if let Some(copy) = copy {
            self.controller = copy;
        }
        is_copy
    }

    /// Plays a story, with `after` after each operation.
    fn tell(
        mut self,
        contract: &LossContract,
        story: &[Operation],
        after: impl Fn(&mut Self),
    ) -> Result<Vec<u64>, Violation> {
        let fail = |told: usize| move |message: String| Violation { message, story: story[..told].to_vec() };
        self.check().map_err(fail(0))?;
        for (index, operation) in story.iter().enumerate() {
            self.step(contract, operation).map_err(fail(index + 1))?;
            after(&mut self);
        }
        Ok(self.shown)
    }

    /// Plays an operation and checks what it led to.
    fn step(&mut self, contract: &LossContract, operation: &Operation) -> Result<(), String> {
        let (before, was) = (self.controller.window(), (self.phase, self.repairing));
        self.play(operation)?;
        self.check()?;
        let after = self.controller.window();
        match *operation {
            // An illegal operation does nothing: recovery did not begin.
            Operation::Lose { cause } if was != (self.phase, self.repairing) => {
                check_loss(contract, cause, before, after)
            }
            Operation::TimeOut => {
                let most = contract.timeout_window_max;
                held(after <= most, || format!("a timeout leads from {before} to {after}, more than {most}"))
            }
            Operation::Undo => {
                let least = self.before_loss.take().unwrap_or(before).max(before);
                let message = || format!("the undo of a loss leads from {before} to {after}, less than {least}");
                held(after >= least, message)
            }
            _ => Ok(()),
        }
    }

    fn play(&mut self, operation: &Operation) -> Result<(), String> {
        match *operation {
            Operation::Wait { micros } => self.now += Span::from_micros(micros),
            Operation::Ack { segments, rtt_micros, size, limit } => self.ack(segments, (rtt_micros, size), limit)?,
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
        Ok(())
    }

    fn ack(&mut self, newly_acked: f64, (rtt_micros, size): (Option<u64>, u64), limit: Limit) -> Result<(), String> {
        let (rtt, size) = (rtt_micros.map(Span::from_micros), Bytes::new(size));
        self.rtts.extend(rtt);
        self.rtt_min = self.rtt_min.into_iter().chain(rtt).min();
        self.round_acked += newly_acked;
        let (newly_lost, newly_marked) = (mem::take(&mut self.lost), mem::take(&mut self.marked));
        let (arrival, departure, phase) = (self.now, self.departure(), self.phase);
        self.progress.delivered += newly_acked;
        (self.progress.delivered_at, self.progress.departed) = (arrival, departure.time);
        let ack = Ack { newly_acked, rtt, size, arrival, departure, limit, ..Ack::default() };
        let ack = Ack { newly_lost, newly_marked, phase, ..ack };
        self.controller.on_ack(&self.view(), &ack);
        let (window, rate) = (self.controller.window().to_bits(), self.controller.pacing_rate());
        for transmission in [Transmission::First, Transmission::Again] {
            self.controller.on_sent(&self.view(), &Sent { segments: 1.0, transmission });
            let after = (self.controller.window().to_bits(), self.controller.pacing_rate());
            held(after == (window, rate), || "a departure changes the window or the rate".to_owned())?;
        }
        Ok(())
    }

    fn end_round(&mut self) {
        let rtts = mem::take(&mut self.rtts);
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
        self.progress.lost += lost;
        self.marked += 1.0 - lost;
        self.controller.on_loss(&self.view(), &Loss { signal, cause, lost, departure: self.departure() });
        // A loss that leaves the window alone cannot be undone.
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
            delivered: self.progress.delivered,
            ..PathSummary::default()
        };
        let mut group = vec![own];
        for (&window, path) in windows.iter().zip(1..) {
            group.push(PathSummary { path, own: false, window, ..own });
        }
        self.controller.on_group(&self.view(), &group);
    }

    /// Checks what holds after any event.
    fn check(&mut self) -> Result<(), String> {
        let window = self.controller.window();
        held(window.is_finite() && window >= WINDOW_MIN, || format!("the window is {window}"))?;
        let rate = self.controller.pacing_rate();
        let is_positive = rate.is_none_or(|rate| rate > Rate::from_bits_per_second(0));
        held(is_positive, || format!("the pacing rate is {rate:?}"))?;
        let mut gauges = Gauges::default();
        self.controller.gauges(&mut gauges);
        for (name, value) in gauges.iter() {
            held(!value.is_nan(), || format!("the gauge `{name}` is NaN"))?;
            self.shown.push(value.to_bits());
        }
        self.shown.extend([window.to_bits(), rate.map_or(0, Rate::bits_per_second)]);
        Ok(())
    }
}

fn held(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}

fn check_loss(contract: &LossContract, cause: Cause, before: f64, after: f64) -> Result<(), String> {
    let shrinks = match contract.loss {
        LossResponse::Shrinks => true,
        LossResponse::ShrinksUnlessRandom { .. } if cause == Cause::Random => {
            let is_same = before.to_bits() == after.to_bits();
            return held(is_same, || format!("a random loss moves the window from {before} to {after}"));
        }
        LossResponse::ShrinksUnlessRandom { .. } => true,
        LossResponse::MayHold { .. } | LossResponse::Holds { .. } => false,
    };
    held(after <= before, || format!("a loss ({cause:?}) enlarges the window from {before} to {after}"))?;
    let must_shrink = shrinks && before > contract.shrinks_above;
    held(!must_shrink || after < before, || format!("a loss ({cause:?}) leaves the window at {before}"))
}

#[cfg(test)]
mod tests;
