//! DCTCP: reduces the window by half the share of marks, so that few marks reduce it little.
//!
//! ```text
//! once a round:       alpha ← (1 − g) alpha + g F,   F = marked/acknowledged of the round;   alpha is 1 at first
//! first mark a round: w ← w (1 − alpha/2)
//! else as Reno:       grows by a segment a round, halves on a loss
//! ```
//!
//! Citation: rfc-8257; dctcp-2010.
//!
//! Differs from rfc-8257 in:
//! * alpha is updated at the end of a round, the window at the first mark of one, as in Linux; sec. 3.3 does both at the end of a window of data.
//! * Marks are counted by the transport's own feedback, exactly; so the state machine of sec. 3.2 for delayed acknowledgements is not needed.

use crate::controller::{Ack, Controller, Gauges, Loss, PathView, Restart, Round, Signal};
use crate::law::reno::{self, Reno};
use crate::row::{Law, Row};
use crate::settings::{Fields, INITIAL_WINDOW, Table, WindowSettings};

pub(crate) const ROW: Row = Row {
    name: "dctcp",
    summary: "DCTCP: Reno that responds to marks in proportion; for networks that mark early",
    citation: "rfc-8257, dctcp-2010",
    loss_contract: reno::LOSS_CONTRACT,
    law: &Law { defaults: DctcpSettings::DEFAULT, make: |settings| Box::new(Dctcp::new(settings)) },
};

/// The settings of DCTCP.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DctcpSettings {
    /// The window before the first ACK, in segments.
    pub initial_window: f64,
    /// The weight of a round in alpha.
    pub g: f64,
}

impl DctcpSettings {
    /// rfc-8257 sec. 4.2: "an estimation gain of 1/16 is RECOMMENDED".
    pub const DEFAULT: Self = Self { initial_window: INITIAL_WINDOW, g: 1.0 / 16.0 };
}

impl Table for DctcpSettings {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.initial_window(&mut self.initial_window);
        fields.number("g", &mut self.g, 0.001..=1.0, "", "weight of a round in alpha, the smoothed share of marks");
    }
}

/// The smoothed share of marks; also Prague's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    /// Between 0 and 1.
    alpha: f64,
    g: f64,
    /// Acknowledged and marked segments of the current round.
    acked: f64,
    marked: f64,
}

impl Marks {
    /// [rfc-8257] sec. 3.3: "initialize DCTCP.Alpha to 1", so that the first mark is answered as a loss.
    pub(crate) fn new(g: f64) -> Self {
        Self { alpha: 1.0, g, acked: 0.0, marked: 0.0 }
    }

    pub(crate) fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Shrinks the window after a loss or the first mark of a round.
    pub(crate) fn reduce(&self, reno: &mut Reno, signal: Signal) {
        let ssthresh = match signal {
            // [rfc-8257] sec. 3.3 (9): cwnd = cwnd * (1 - DCTCP.Alpha / 2).
            Signal::Ecn => (reno.window * (1.0 - self.alpha / 2.0)).max(reno::SSTHRESH_MIN),
            Signal::DupAcks | Signal::Timeout => reno::halve(reno.window),
        };
        reno.reduce(ssthresh, signal);
    }

    pub(crate) fn count(&mut self, ack: &Ack) {
        self.acked += ack.newly_acked;
        self.marked += ack.newly_marked;
    }

    /// Handles the end of a round.
    pub(crate) fn end_round(&mut self) {
        if self.acked > 0.0 {
            // A marked segment counts as a whole one even if it is not full, so the quotient may exceed one.
            let share = (self.marked / self.acked).min(1.0);
            self.alpha = (1.0 - self.g) * self.alpha + self.g * share;
        }
        (self.acked, self.marked) = (0.0, 0.0);
    }
}

/// DCTCP's window for one path.
#[derive(Clone, Debug)]
pub struct Dctcp {
    reno: Reno,
    marks: Marks,
}

impl Dctcp {
    pub(crate) fn new(settings: &DctcpSettings) -> Self {
        let reno = Reno::new(&WindowSettings { initial_window: settings.initial_window });
        Self { reno, marks: Marks::new(settings.g) }
    }
}

impl Controller for Dctcp {
    fn hears_first(&self) -> bool {
        false
    }

    fn on_ack(&mut self, path: &PathView, ack: &Ack) {
        self.marks.count(ack);
        self.reno.on_ack(path, ack);
    }

    fn on_round(&mut self, _path: &PathView, _round: &Round) {
        self.marks.end_round();
    }

    fn on_loss(&mut self, _path: &PathView, loss: &Loss) {
        self.marks.reduce(&mut self.reno, loss.signal);
    }

    fn on_restart(&mut self, path: &PathView, restart: Restart) {
        self.reno.on_restart(path, restart);
        if restart == Restart::PathChanged {
            self.marks = Marks::new(self.marks.g);
        }
    }

    reno::as_reno!();

    fn gauges(&self, gauges: &mut Gauges) {
        self.reno.gauges(gauges);
        gauges.show("alpha", self.marks.alpha());
    }
}

#[cfg(test)]
mod tests;
