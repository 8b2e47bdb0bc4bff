//! Composite TCP as a decorator of any law: a random loss is repaired, and the law is not told.
//!
//! ```text
//! duplicate ACKs, cause random:    retransmit; the base law is told neither of the loss nor of fast recovery
//! duplicate ACKs, any other cause: the base law's response
//! timeout, ECN:                    the base law's response
//! all else:                        the base law
//! ```
//!
//! Citation: ctcp-2019 sec. 3. [`mod@crate::classify`] decides which loss is random.
//!
//! Differs from the paper in:
//! * It works on any law, not on SACK TCP alone.
//! * A second loss during the recovery from a random one goes to the base law as soon as the driver reports it: the paper's "second
//!   gap in the same window". The driver decides whether to look again.

use anabranch_units::Rate;

use crate::controller::{
    Ack, Cause, Controller, Ect, Gauges, Loss, PathSummary, PathView, Phase, Restart, Round, Sent, Signal,
};

/// A law that is not told of random losses.
#[derive(Debug)]
pub struct Composite {
    base: Box<dyn Controller>,
    repair: Repair,
    /// The latest loss, until it is undone.
    latest: Latest,
    /// Random losses so far, for the gauges.
    randoms: u64,
}

/// The loss that is being repaired, and whether the base law has been told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    /// No loss.
    None,
    /// A loss that the base law has not been told of.
    Random,
    /// A loss that the base law has been told of.
    Congestion,
}

/// The fate of the latest loss.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Latest {
    /// There is none, or it was undone.
    None,
    /// The base law does not know of it.
    Kept,
    /// The base law has been told of it.
    Told,
}

impl Composite {
    /// `base` under the loss policy of ctcp-2019.
    pub fn new(base: Box<dyn Controller>) -> Self {
        Self { base, repair: Repair::None, latest: Latest::None, randoms: 0 }
    }
}

impl Controller for Composite {
    fn on_sent(&mut self, path: &PathView, sent: &Sent) {
        self.base.on_sent(path, sent);
    }

    fn hears_first(&self) -> bool {
        self.base.hears_first()
    }

    fn on_ack(&mut self, path: &PathView, ack: &Ack) {
        // [ctcp-2019] sec. 3: "cwnd reduction is shunned and the fast recovery phase is ignored": for the base law there is none.
        let phase = if self.repair == Repair::Random { Phase::Open } else { ack.phase };
        self.base.on_ack(path, &Ack { phase, ..*ack });
    }

    fn on_round(&mut self, path: &PathView, round: &Round) {
        self.base.on_round(path, round);
    }

    fn on_loss(&mut self, path: &PathView, loss: &Loss) {
        self.latest = Latest::Told;
        match (loss.signal, loss.cause) {
            (Signal::DupAcks, Cause::Random) => {
                self.randoms += 1;
                self.latest = Latest::Kept;
                if self.repair == Repair::None {
                    self.repair = Repair::Random;
                }
            }
            // [ctcp-2019] sec. 3: "Timeout leads to slow start at any point of time during data transfer."
            (Signal::Timeout, _) => {
                self.repair = Repair::None;
                self.base.on_loss(path, loss);
            }
            (Signal::DupAcks, Cause::Congestion | Cause::Unknown) => {
                self.repair = Repair::Congestion;
                self.base.on_loss(path, loss);
            }
            (Signal::Ecn, _) => self.base.on_loss(path, loss),
        }
    }

    fn on_recovered(&mut self, path: &PathView) {
        if self.repair != Repair::Random {
            self.base.on_recovered(path);
        }
        self.repair = Repair::None;
    }

    fn on_undo(&mut self, path: &PathView) {
        if std::mem::replace(&mut self.latest, Latest::None) == Latest::Told {
            self.base.on_undo(path);
        }
        self.repair = Repair::None;
    }

    fn on_restart(&mut self, path: &PathView, restart: Restart) {
        if restart == Restart::PathChanged {
            self.repair = Repair::None;
        }
        self.base.on_restart(path, restart);
    }

    fn on_group(&mut self, path: &PathView, group: &[PathSummary]) {
        self.base.on_group(path, group);
    }

    fn window(&self) -> f64 {
        self.base.window()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.base.pacing_rate()
    }

    fn ect(&self) -> Option<Ect> {
        self.base.ect()
    }

    fn copy(&self) -> Option<Box<dyn Controller>> {
        self.base.copy().map(|base| -> Box<dyn Controller> { Box::new(Self { base, ..*self }) })
    }

    fn gauges(&self, gauges: &mut Gauges) {
        self.base.gauges(gauges);
        gauges.show("losses_random", self.randoms as f64);
    }
}
