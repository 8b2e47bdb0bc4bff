//! The clockwork of the window law: when the window is updated, how it gets to its target, and what was in flight a round trip ago.
//! There are two, the law's own ([`super::window`]) and that of ns-2's module ([`super::module`]).

use super::module::{self, Flights, Round};
use super::refill::Ccafr;
use super::window::{Goal, PERIOD, Schedule, Steps};
use crate::controller::Ack;
use crate::number::seconds;
use crate::settings::Choice;

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The law's own.
    Own,
    /// That of ns-2's module, to which the handshake counts for baseRTT, though it is shorter than data.
    Module,
}

impl Choice for Which {
    const KINDS: &'static [(&'static str, Self)] = &[("own", Self::Own), ("ns2_module", Self::Module)];
}

/// One of the two. Times in seconds.
#[derive(Clone, Debug)]
pub(crate) enum Clockwork {
    /// The law's own.
    Own {
        /// `None` before the first ACK.
        schedule: Option<Schedule>,
        steps: Steps,
    },
    /// That of ns-2's module.
    Module {
        /// `None` before the handshake, or the first ACK if there is none.
        round: Option<Round>,
        steps: module::Steps,
        flights: Flights,
        /// When the window was last updated, or not to be.
        updated: f64,
    },
}

/// What is known of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rtts {
    pub(crate) base: f64,
    pub(crate) average: f64,
}

impl Clockwork {
    pub(crate) fn new(which: Which) -> Self {
        match which {
            Which::Own => Self::Own { schedule: None, steps: Steps::new() },
            Which::Module => {
                let (steps, flights) = (module::Steps::new(), Flights::new());
                Self::Module { round: None, steps, flights, updated: f64::NEG_INFINITY }
            }
        }
    }

    /// The handshake, which took `rtt`, is over: the module's first round trip begins with it.
    pub(crate) fn on_established(&mut self, now: f64, rtt: f64) {
        if let Self::Module { round, .. } = self {
            *round = Some(Round::new(now - rtt));
        }
    }

    /// The RTT of an ACK. Where there is no sample the module takes `average` for one, if that is known; and it takes the difference
    /// of two times, so that what left with the first ACK of a round trip comes back after exactly one RTT.
    pub(crate) fn sample(&self, now: f64, ack: &Ack, average: f64) -> Option<f64> {
        let sample = ack.rtt.filter(|rtt| !rtt.is_zero());
        match self {
            Self::Own { .. } => sample.map(seconds),
            Self::Module { .. } if sample.is_some() => Some(now - ack.departure.time.as_secs_f64()),
            Self::Module { .. } => Some(average).filter(|rtt| rtt.is_finite()),
        }
    }

    /// What was in flight when the acknowledged segment left; `flight` is in flight now, after this ACK outside recovery.
    pub(crate) fn old(&mut self, now: f64, ack: &Ack, flight: f64) -> f64 {
        match self {
            Self::Own { .. } => ack.departure.flight,
            Self::Module { flights, .. } => {
                flights.on_ack(now, flight + 1.0);
                flights.take(ack.departure.time.as_secs_f64())
            }
        }
    }

    /// An ACK with an RTT of `rtt` outside recovery.
    pub(crate) fn on_ack(&mut self, now: f64, rtt: f64) {
        match self {
            Self::Own { schedule, .. } => schedule.get_or_insert(Schedule::new(now)).on_ack(now, rtt),
            Self::Module { round, .. } => round.get_or_insert(Round::new(now - rtt)).on_ack(now, rtt),
        }
    }

    /// The window increases multiplicatively.
    pub(crate) fn on_multiplicative_increase(&mut self, now: f64) {
        match self {
            Self::Own { steps, .. } => steps.clear(),
            Self::Module { updated, .. } => *updated = now,
        }
    }

    /// An ACK in recovery.
    pub(crate) fn on_recovery(&mut self, now: f64) {
        if let Self::Module { updated, .. } = self {
            *updated = now;
        }
    }

    /// Something else than the law of the window moves it. The module goes on with its steps afterwards.
    pub(crate) fn interrupt(&mut self) {
        if let Self::Own { steps, .. } = self {
            steps.clear();
        }
    }

    /// The target, if the window is to be updated. To the module the window that it has is one.
    pub(crate) fn target(&mut self, now: f64, (window, old): (f64, f64), rtts: &Rtts, goal: &Goal) -> Option<f64> {
        let Rtts { base, average } = *rtts;
        let is_missed = goal.is_missed(old, base, average);
        match self {
            Self::Own { schedule, .. } => {
                let schedule = schedule.as_mut().filter(|it| is_missed && it.is_due(now))?;
                schedule.on_update(now);
                Some(goal.target(window, old, base, average))
            }
            Self::Module { round, updated, .. } => {
                let is_open = round.is_some_and(|round| round.is_open());
                if !is_open || now < *updated + PERIOD {
                    return None;
                }
                *updated = now;
                Some(if is_missed { module::target(window, old, base, average, goal) } else { window })
            }
        }
    }

    /// Turns to `target` and returns the window.
    pub(crate) fn turn_to(&mut self, window: f64, target: f64, rtts: &Rtts) -> f64 {
        match self {
            Self::Own { steps, .. } => steps.turn_to(window, target),
            Self::Module { round, steps, .. } => {
                let acks = round.map_or(0.0, |round| round.acks_in(PERIOD, rtts.average));
                steps.turn_to(window, target, rtts.base, acks)
            }
        }
    }

    /// Hands out what an ACK for `acked` segments allows and returns the window.
    pub(crate) fn hand_out(&mut self, window: f64, acked: f64) -> f64 {
        match self {
            Self::Own { steps, .. } => steps.on_ack(window, acked),
            Self::Module { steps, .. } => steps.on_ack(window),
        }
    }

    /// Segments still to be handed out.
    pub(crate) fn pending(&self) -> f64 {
        match self {
            Self::Own { steps, .. } => steps.pending(),
            Self::Module { steps, .. } => steps.pending(),
        }
    }

    /// Fast recovery is over.
    pub(crate) fn begin_refill(&self, ccafr: &mut Ccafr) {
        match self {
            Self::Own { .. } => ccafr.begin(),
            Self::Module { .. } => ccafr.begin_in_silence(),
        }
    }

    /// Whether round trips are counted while CCaFR waits for its first gap. Those of the golden prototype, a part of the module, are
    /// not.
    pub(crate) fn counts_first_series(&self) -> bool {
        matches!(self, Self::Own { .. })
    }
}
