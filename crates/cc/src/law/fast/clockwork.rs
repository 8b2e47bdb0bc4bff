//! The clockwork of the window law: the times of updates, the steps to a target, and the flight of a round trip ago (`old`).
//! There are two: the law's own ([`super::window`]), and that of ns-2's module ([`super::module`]).

use super::module::{self, Flights, Round};
use super::refill::Ccafr;
use super::window::{Goal, PERIOD, Schedule, Steps};
use crate::controller::Ack;
use crate::number::seconds;
use crate::settings::Choice;

/// The choice of the clockwork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The law's own.
    Own,
    /// That of ns-2's module. For the module the RTT of the handshake counts for baseRTT, although its segments are shorter than data.
    Module,
}

impl Choice for Which {
    const KINDS: &'static [(&'static str, Self)] = &[("own", Self::Own), ("ns2_module", Self::Module)];
}

/// The state of a clockwork; times in seconds.
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
        /// When the window was last updated or increased multiplicatively, or the last ACK in recovery.
        updated: f64,
    },
}

/// The estimates of the path's RTT, in seconds.
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

    /// Handles the end of the handshake, which took `rtt` seconds: the module's first round trip begins with it.
    pub(crate) fn on_established(&mut self, now: f64, rtt: f64) {
        if let Self::Module { round, .. } = self {
            *round = Some(Round::new(now - rtt));
        }
    }

    /// The RTT of an ACK in seconds. Without a sample the module uses `average`, if that is known. It computes the RTT as the difference
    /// of two times, so that a segment that left with the first ACK of a round trip returns after exactly one RTT.
    pub(crate) fn sample(&self, now: f64, ack: &Ack, average: f64) -> Option<f64> {
        let sample = ack.rtt.filter(|rtt| !rtt.is_zero());
        match self {
            Self::Own { .. } => sample.map(seconds),
            Self::Module { .. } if sample.is_some() => Some(now - ack.departure.time.as_secs_f64()),
            Self::Module { .. } => Some(average).filter(|rtt| rtt.is_finite()),
        }
    }

    /// `old`: the flight when the acknowledged segment left. `flight` is the present flight, after this ACK outside recovery.
    pub(crate) fn old(&mut self, now: f64, ack: &Ack, flight: f64) -> f64 {
        match self {
            Self::Own { .. } => ack.departure.flight,
            Self::Module { flights, .. } => {
                flights.on_ack(now, flight + 1.0);
                flights.take(ack.departure.time.as_secs_f64())
            }
        }
    }

    /// Handles an ACK outside recovery with an RTT of `rtt` seconds.
    pub(crate) fn on_ack(&mut self, now: f64, rtt: f64) {
        match self {
            Self::Own { schedule, .. } => schedule.get_or_insert(Schedule::new(now)).on_ack(now, rtt),
            Self::Module { round, .. } => round.get_or_insert(Round::new(now - rtt)).on_ack(now, rtt),
        }
    }

    /// Handles a step of multiplicative increase.
    pub(crate) fn on_multiplicative_increase(&mut self, now: f64) {
        match self {
            Self::Own { steps, .. } => steps.clear(),
            Self::Module { updated, .. } => *updated = now,
        }
    }

    /// Handles an ACK in recovery.
    pub(crate) fn on_recovery(&mut self, now: f64) {
        if let Self::Module { updated, .. } = self {
            *updated = now;
        }
    }

    /// Handles a change of the window by something other than the window law. The module goes on with its steps afterwards.
    pub(crate) fn interrupt(&mut self) {
        if let Self::Own { steps, .. } = self {
            steps.clear();
        }
    }

    /// The target, if the window is due for an update. For the module, the present window may be the target.
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

    /// Takes a new `target` and returns the window.
    pub(crate) fn turn_to(&mut self, window: f64, target: f64, rtts: &Rtts) -> f64 {
        match self {
            Self::Own { steps, .. } => steps.turn_to(window, target),
            Self::Module { round, steps, .. } => {
                let acks = round.map_or(0.0, |round| round.acks_in(PERIOD, rtts.average));
                steps.turn_to(window, target, rtts.base, acks)
            }
        }
    }

    /// Grows the window by the part of the increase that an ACK for `acked` segments allows, and returns it.
    pub(crate) fn hand_out(&mut self, window: f64, acked: f64) -> f64 {
        match self {
            Self::Own { steps, .. } => steps.on_ack(window, acked),
            Self::Module { steps, .. } => steps.on_ack(window),
        }
    }

    /// The part of the increase that is still to come, in segments.
    pub(crate) fn pending(&self) -> f64 {
        match self {
            Self::Own { steps, .. } => steps.pending(),
            Self::Module { steps, .. } => steps.pending(),
        }
    }

    /// Begins the refill after fast recovery.
    pub(crate) fn begin_refill(&self, ccafr: &mut Ccafr) {
        match self {
            Self::Own { .. } => ccafr.begin(),
            Self::Module { .. } => ccafr.begin_in_silence(),
        }
    }

    /// Whether round trips are counted while CCaFR waits for its first gap. The prototype behind the golden run, a part of the module, does not
    /// count them.
    pub(crate) fn counts_first_series(&self) -> bool {
        matches!(self, Self::Own { .. })
    }
}
