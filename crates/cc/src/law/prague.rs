//! Prague: DCTCP for the Internet, with ECT(1), for queues that mark early and in proportion.
//!
//! ```text
//! once a round:            alpha ← (1 − 1/16) alpha + F/16,   F = marked/acknowledged of the round
//! first mark a round:      w ← w (1 − alpha/2)
//! each acknowledged segment without a mark, also after a mark:         w ← w + s/w
//!     s = (SRTT/25 ms)² below 25 ms, from 500 rounds after slow start on: a short RTT then gives no more than the rate at 25 ms; else 1
//! loss:                    w ← w/2                             timeout: w ← 1
//! pace:                    w/SRTT; twice this rate if w is far below ssthresh
//! ```
//!
//! Citation: prague-draft; rfc-9331 sec. 4.3.
//!
//! Differs from prague-draft in:
//! * It does not detect a classic ECN queue and does not fall back to a classic response. So it is only for paths whose queues are known to be L4S.
//! * alpha is updated once a round of the path, not of the virtual RTT.
//! * A loss halves as Reno does; the draft lets CUBIC's beta be used.

use anabranch_units::{Rate, Span};

use crate::controller::{Ack, Controller, Ect, Gauges, Limit, Loss, PathView, Phase, Restart, Round};
use crate::law::dctcp::Marks;
use crate::law::reno::{self, Reno};
use crate::row::{Law, Row};
use crate::settings::WindowSettings;

pub(crate) const ROW: Row = Row {
    name: "prague",
    summary: "Prague: DCTCP with ECT(1) for L4S queues; a short RTT gives no larger share",
    citation: "prague-draft, rfc-9331, rfc-8257",
    loss_contract: reno::LOSS_CONTRACT,
    law: &Law { defaults: WindowSettings::DEFAULT, make: |settings| Box::new(Prague::new(settings)) },
};

/// The growth of the window in segments a round at this RTT: flows with an RTT below `RTT_VIRTUAL` get the rate that they would have at
/// `RTT_VIRTUAL`.
pub fn growth(rtt: Span) -> f64 {
    let share = rtt.as_secs_f64() / RTT_VIRTUAL.as_secs_f64();
    if rtt.is_zero() || share >= 1.0 { 1.0 } else { share * share }
}

/// Prague's window for one path.
#[derive(Clone, Debug)]
pub struct Prague {
    reno: Reno,
    marks: Marks,
    /// Rounds since slow start.
    rounds: u32,
    rtt: Option<Span>,
    /// Bits of a full segment.
    segment_bits: f64,
    settings: WindowSettings,
}

impl Prague {
    pub(crate) fn new(settings: &WindowSettings) -> Self {
        let (reno, marks) = (Reno::new(settings), Marks::new(G));
        Self { reno, marks, rounds: 0, rtt: None, segment_bits: 0.0, settings: *settings }
    }

    fn growth(&self) -> f64 {
        if self.rounds < TRANSITION { 1.0 } else { self.rtt.map_or(1.0, growth) }
    }
}

impl Controller for Prague {
    fn hears_first(&self) -> bool {
        false
    }

    fn on_ack(&mut self, path: &PathView, ack: &Ack) {
        (self.rtt, self.segment_bits) = (path.rtt_smoothed, path.mss.count() as f64 * 8.0);
        self.marks.count(ack);
        // While lost segments are retransmitted the window does not grow.
        if ack.limit != Limit::Window || ack.phase == Phase::Recovery {
            return;
        }
        let unmarked = (ack.newly_acked - ack.newly_marked).max(0.0);
        let below = (self.reno.ssthresh - self.reno.window).clamp(0.0, unmarked);
        self.reno.window += below;
        self.reno.window += self.growth() * (unmarked - below) / self.reno.window;
    }

    fn on_round(&mut self, _path: &PathView, _round: &Round) {
        // [prague-draft] sec. 2.3.2: before the first mark alpha is not averaged.
        if self.reno.ssthresh.is_finite() {
            self.marks.end_round();
            self.rounds = self.rounds.saturating_add(1);
        }
    }

    fn on_loss(&mut self, _path: &PathView, loss: &Loss) {
        self.marks.reduce(&mut self.reno, loss.signal);
    }

    fn on_restart(&mut self, path: &PathView, restart: Restart) {
        self.reno.on_restart(path, restart);
        if restart == Restart::PathChanged {
            *self = Self::new(&self.settings);
        }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let rtt = self.rtt.filter(|rtt| !rtt.is_zero())?.as_secs_f64();
        let gain = if self.reno.window < self.reno.ssthresh / 2.0 { 2.0 } else { 1.0 };
        let bits = gain * self.reno.window * self.segment_bits / rtt;
        (bits.is_finite() && bits >= 1.0).then(|| Rate::from_bits_per_second(bits as u64))
    }

    fn ect(&self) -> Option<Ect> {
        Some(Ect::One)
    }

    reno::as_reno!();

    fn gauges(&self, gauges: &mut Gauges) {
        self.reno.gauges(gauges);
        gauges.show("alpha", self.marks.alpha());
        gauges.show("growth", self.growth());
    }
}

/// [prague-draft] sec. 2.3.2: as DCTCP's.
const G: f64 = 1.0 / 16.0;

/// [prague-draft] sec. 2.4.4: flows with a shorter RTT get the rate of this RTT.
const RTT_VIRTUAL: Span = Span::from_millis(25);

/// [prague-draft] sec. 2.4.4: the rounds in which a flow still grows by its own RTT.
const TRANSITION: u32 = 500;

#[cfg(test)]
mod tests;
