//! Anabranch: the default law. Alone and among its own it keeps a short queue; beside rivals that fill the queue it takes a fair part, whoever began first.
//!
//! ```text
//! model    what is known of the path: propagation delay, standing delay, rate, what it carries, losses; decides nothing        model
//! modes    Grow, Cruise, Drain, Compete; one of them owns the window                                                         mode
//! cruise   FAST with alpha(x) = 20 √(x/6250 s⁻¹) at x segments a second, so n flows queue for 20 √(n/(6250 c))                cruise
//! drains   every 5 s, all flows of a queue at the same time: the queue becomes empty, everyone sees the path                  clock
//! rivals   a drain measures our share of the link; twice not ours: CUBIC's window, until the queue is ours or others drain     drain, compete
//! paths    of one connection that wait in one queue share alpha and the steps into free room: together they take one flow's part  coupled, model
//! routes   an RTT that a drain does not change, and that does not vary, is a longer route                                    mode
//! losses   reduce alpha; the window only where the queue is longer than alpha explains, or many are lost                       cruise
//! ```
//!
//! Limits. A transfer of a few seconds beside a rival ends before the rival is known. Flows with less than a dozen segments each cannot measure a share: when
//! losses press them they compete with each other as CUBIC flows do. BBR, which drains the queue from time to time as we do, is taken for our kind. Beside a
//! rival each path of a connection has CUBIC's window of its own.
//! `docs/law.md` has the analysis and the measured figures.
//!
//! Citation: fast-2006 for the window; bbr-draft for drains on a common grid; rfc-9438 beside rivals.
//!
//! Differs from fast-2006 in:
//! * alpha follows the rate, so the queue of n flows grows with the root of n, not with n.
//! * The window moves a quarter of the way in a round trip, and into free room by doubling steps.
//! * Drains, as a flow that joins a standing queue takes it for propagation delay, and nothing in FAST ever shows it the path.
//! * A loss does not halve the window: delay limits it, and losses on a path without a queue are random.

mod clock;
mod compete;
mod cruise;
mod drain;
mod grow;
mod mode;
mod model;

use anabranch_units::{Rate, Span};

use self::clock::DrainClock;
use self::grow::Grow;
use self::mode::Mode;
use self::model::Model;
use crate::controller::{Ack, Controller, Gauges, Limit, Loss, PathSummary, PathView, Restart, Signal, WINDOW_MIN};
use crate::law::coupled::Coupled;
use crate::row::{Law, LossContract, LossResponse, Row};
use crate::settings::{Choice, Fields, INITIAL_WINDOW, Table};

pub(crate) const ROW: Row = Row {
    name: "anabranch",
    summary: "FAST with alpha by the rate and common drains, which tell a rival's queue from our own",
    citation: "fast-2006, bbr-draft, rfc-9438",
    loss_contract: LossContract {
        shrinks_above: WINDOW_MIN,
        timeout_window_max: 1.0,
        loss: LossResponse::MayHold { citation: "fast-2006 sec. III" },
    },
    law: &Law { defaults: AnabranchSettings::DEFAULT, make: |settings| Box::new(Anabranch::new(*settings)) },
};

/// The settings of the law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AnabranchSettings {
    /// The window before the first ACK, in segments.
    pub initial_window: f64,
    /// Segments to keep queued at 6250 segments a second, 75 Mbit/s; in proportion to the root of the rate.
    pub alpha: f64,
    /// The interval of drains in seconds. Flows that share a queue need the same.
    pub drain_interval: f64,
    /// The part of the propagation delay that a drain leaves in flight, as a part of what is in flight without a queue.
    pub drain_part: f64,
    /// What a flow gives up after a common drain, so that all take the room anew by equal steps.
    pub decrease: f64,
    /// The share of the link from which on a drain shows that the queue is ours.
    pub ours: f64,
    /// The behaviour beside a rival that fills the queue.
    pub rival: Rival,
}

/// The behaviour beside a rival that fills the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// The window of CUBIC.
    Cubic,
    /// The window of FAST, which leaves the link to the rival.
    Yield,
}

impl Choice for Rival {
    const KINDS: &'static [(&'static str, Self)] = &[("cubic", Self::Cubic), ("yield", Self::Yield)];
}

impl AnabranchSettings {
    /// What `docs/law.md` discusses.
    pub const DEFAULT: Self = Self {
        initial_window: INITIAL_WINDOW,
        alpha: 20.0,
        drain_interval: 5.0,
        drain_part: 0.75,
        decrease: 0.15,
        ours: 0.8,
        rival: Rival::Cubic,
    };
}

impl Table for AnabranchSettings {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.initial_window(&mut self.initial_window);
        let help =
            "segments to keep queued at 6250 segments a second, 75 Mbit/s; in proportion to the root of the rate";
        fields.number("alpha", &mut self.alpha, 1.0..=100_000.0, "segments", help);
        let help =
            "time between two drains, the same for all flows of a queue; up to twelve round trips more beside rivals";
        fields.seconds("drain_interval", &mut self.drain_interval, Span::from_secs(1)..=Span::from_secs(60), help);
        let help = "the flight of a drain in parts of what the path holds without a queue";
        fields.number("drain_part", &mut self.drain_part, 0.3..=1.0, "", help);
        let help = "the part of the window that a flow gives up after a drain that emptied the queue; then all grow by equal steps";
        fields.number("decrease", &mut self.decrease, 0.0..=0.5, "", help);
        let help = "the share of the link from which on a drain shows that the queue is ours";
        fields.number("ours", &mut self.ours, 0.5..=1.0, "", help);
        let help = "beside a rival that fills the queue, which drains show: the window of CUBIC, or yield to it";
        fields.choice("rival", &mut self.rival, help);
    }
}

/// The law for one path.
#[derive(Clone, Debug)]
pub struct Anabranch {
    core: Core,
    mode: Mode,
    coupled: Coupled,
    pace: Option<Rate>,
    /// The window before the latest loss, for an undo.
    before_loss: f64,
}

/// What all modes share.
#[derive(Clone, Debug)]
struct Core {
    settings: AnabranchSettings,
    /// Segments; only the present mode changes it.
    window: f64,
    model: Model,
    clock: DrainClock,
}

impl Core {
    /// The time after which a drain that found a rival is repeated.
    fn confirms_after(&self) -> f64 {
        CONFIRM_S.max(10.0 * self.model.mean)
    }
}

impl Anabranch {
    /// The law at the begin of a path.
    pub fn new(settings: AnabranchSettings) -> Self {
        let core = Core {
            settings,
            window: settings.initial_window,
            model: Model::new(&settings),
            clock: DrainClock::new(settings.drain_interval),
        };
        Self { core, mode: Mode::Grow(Grow::default()), coupled: Coupled::default(), pace: None, before_loss: 0.0 }
    }
}

impl Controller for Anabranch {
    fn hears_first(&self) -> bool {
        false
    }

    fn on_ack(&mut self, path: &PathView, ack: &Ack) {
        self.pace = None;
        let core = &mut self.core;
        if !core.model.on_ack(path, ack, core.window) {
            return;
        }
        core.clock.on_ack(&core.model, matches!(self.mode, Mode::Drain(_)));
        if let Mode::Grow(grow) = &self.mode
            && ack.limit == Limit::Window
        {
            self.pace = grow.pace(core, path);
        }
        self.mode = self.mode.after_ack(core, ack);
    }

    fn on_loss(&mut self, path: &PathView, loss: &Loss) {
        self.before_loss = self.core.window;
        self.core.model.now = model::seconds(path.now);
        self.mode = match loss.signal {
            Signal::Timeout => self.mode.after_timeout(&mut self.core),
            Signal::DupAcks | Signal::Ecn => self.mode.after_loss(&mut self.core),
        };
        self.core.window = self.core.window.min(self.before_loss);
    }

    fn on_undo(&mut self, _: &PathView) {
        self.core.window = self.core.window.max(self.before_loss);
        if let Mode::Grow(grow) = &mut self.mode {
            grow.undo(self.core.window);
        }
    }

    fn on_restart(&mut self, path: &PathView, restart: Restart) {
        match restart {
            Restart::Idle => {
                let core = &mut self.core;
                // What the path has carried without a queue; its sender is paced.
                let is_known = core.model.mean > 0.0 && model::seconds(path.now) - core.model.now < KNOWN_S;
                let carried = if is_known { core.model.window_most() } else { 0.0 };
                core.window = core.window.min(carried.max(core.settings.initial_window));
            }
            Restart::PathChanged => *self = Self::new(self.core.settings),
            Restart::Established | Restart::AfterTimeout => {}
        }
    }

    fn on_group(&mut self, _: &PathView, group: &[PathSummary]) {
        if let Some(share) = self.coupled.share(group) {
            self.core.model.share = share;
        }
    }

    fn window(&self) -> f64 {
        self.core.window.max(WINDOW_MIN)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.pace
    }

    fn copy(&self) -> Option<Box<dyn Controller>> {
        Some(Box::new(self.clone()))
    }

    fn gauges(&self, gauges: &mut Gauges) {
        let Core { window, model, .. } = &self.core;
        gauges.show("window", *window);
        gauges.show("rtt_base_s", model.base);
        gauges.show("rtt_average_s", model.mean);
        let is_known = model.mean > 0.0;
        gauges.show("backlog", if is_known { model.queued(model.mean - model.base) } else { 0.0 });
        gauges.show("queue_s", if is_known { model.queue() } else { 0.0 });
        gauges.show("reroutes", f64::from(model.reroutes));
        gauges.show("alpha", model.alpha());
        gauges.show("share", model.share);
        gauges.show("noise_s", model.noise);
        gauges.show("rate", model.rate);
        gauges.show("loss_share", model.loss_share());
        // 0 grow, 1 cruise, 2 drain, 3 compete.
        let (number, doubts) = match &self.mode {
            Mode::Grow(_) => (0, 0),
            Mode::Cruise(cruise) => (1, cruise.doubts),
            Mode::Drain(_) => (2, 0),
            Mode::Compete(_) => (3, 0),
        };
        gauges.show("mode", f64::from(number));
        gauges.show("doubts", f64::from(doubts));
    }
}

/// A rival is confirmed so much later, or ten round trips: the queue has returned by then.
const CONFIRM_S: f64 = 1.25;

/// After so long without an ACK the path is unknown: five minutes, as in RFC 7661 sec. 4.4.3.
const KNOWN_S: f64 = 300.0;

#[cfg(test)]
mod tests;
