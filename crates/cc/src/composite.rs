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
//! * [`Composite::believing`] limits the share of losses that count as random.

use anabranch_units::Rate;

use crate::controller::{
    Ack, Cause, Controller, Ect, Gauges, Loss, PathSummary, PathView, Phase, Restart, Round, Sent, Signal, Transmission,
};

/// A law that is not told of random losses.
#[derive(Debug)]
pub struct Composite {
    base: Box<dyn Controller>,
    repair: Repair,
    belief: Belief,
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
    /// The base law does not know of it; `interval` is the smoothed interval before it.
    Kept { interval: f64 },
    /// The base law has been told of it.
    Told,
}

impl Composite {
    /// `base` under the loss policy of ctcp-2019.
    pub fn new(base: Box<dyn Controller>) -> Self {
        Self::believing(base, 1.0)
    }

    /// `base` under the loss policy of ctcp-2019 while at most the share `loss_most` of the segments is lost at random. Beyond it
    /// the base law is told of these losses, too. A policer drops single packets without delay: by the rule of the paper alone, the window would
    /// never shrink.
    pub fn believing(base: Box<dyn Controller>, loss_most: f64) -> Self {
        Self { base, repair: Repair::None, belief: Belief::new(loss_most), latest: Latest::None, randoms: 0 }
    }
}

/// The limit of random losses.
#[derive(Clone, Copy, Debug)]
struct Belief {
    /// The largest share of segments that may be lost at random; more than zero.
    loss_most: f64,
    /// Segments acknowledged since the last random loss.
    acked: f64,
    /// Segments retransmitted since the last random loss. They are counted because a driver reports an episode once, with one loss or many.
    resent: f64,
    /// Segments acknowledged for each segment lost at random, smoothed.
    interval: f64,
}

impl Belief {
    /// The weight of one interval. At 1 % random loss the smoothed interval then stays far from 19, which is a loss of 5 %; and a
    /// policer that begins to take a tenth is recognised within thirty episodes.
    const WEIGHT: f64 = 0.125;

    /// The limit of an interval, in multiples of the interval at `loss_most`, so that a long time without loss does not outweigh the present.
    const CLEAN_MOST: f64 = 4.0;

    fn new(loss_most: f64) -> Self {
        Self { loss_most, acked: 0.0, resent: 0.0, interval: Self::CLEAN_MOST / loss_most }
    }

    /// Handles a loss of `lost` segments that the rule classifies as random. Returns whether it still counts as random.
    fn on_random(&mut self, lost: f64) -> bool {
        let interval = (self.acked / self.resent.max(lost).max(1.0)).min(Self::CLEAN_MOST / self.loss_most);
        self.interval += (interval - self.interval) * Self::WEIGHT;
        (self.acked, self.resent) = (0.0, 0.0);
        // The share lost is 1/(interval + 1).
        (self.interval + 1.0) * self.loss_most >= 1.0
    }
}

impl Controller for Composite {
    fn on_sent(&mut self, path: &PathView, sent: &Sent) {
        if sent.transmission == Transmission::Again {
            self.belief.resent += sent.segments;
        }
        self.base.on_sent(path, sent);
    }

    fn hears_first(&self) -> bool {
        self.base.hears_first()
    }

    fn on_ack(&mut self, path: &PathView, ack: &Ack) {
        self.belief.acked += ack.newly_acked;
        // [ctcp-2019] sec. 3: "cwnd reduction is shunned and the fast recovery phase is ignored": for the base law there is none.
        let phase = if self.repair == Repair::Random { Phase::Open } else { ack.phase };
        self.base.on_ack(path, &Ack { phase, ..*ack });
    }

    fn on_round(&mut self, path: &PathView, round: &Round) {
        self.base.on_round(path, round);
    }

    fn on_loss(&mut self, path: &PathView, loss: &Loss) {
        let seems_random = loss.signal == Signal::DupAcks && loss.cause == Cause::Random;
        let interval = self.belief.interval;
        self.latest = Latest::Told;
        let cause = if seems_random && !self.belief.on_random(loss.lost) { Cause::Unknown } else { loss.cause };
        let loss = &Loss { cause, ..*loss };
        match (loss.signal, loss.cause) {
            (Signal::DupAcks, Cause::Random) => {
                self.randoms += 1;
                self.latest = Latest::Kept { interval };
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
        match std::mem::replace(&mut self.latest, Latest::None) {
            Latest::None => {}
            Latest::Kept { interval } => self.belief.interval = interval,
            Latest::Told => self.base.on_undo(path),
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
