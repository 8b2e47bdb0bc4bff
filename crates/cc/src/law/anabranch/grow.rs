//! The start: the window doubles each round trip, paced, until a queue shows that it is ours.
//!
//! ```text
//! growth:   a segment for each acknowledged one, at a pace of two windows a round trip
//! ends:     half of alpha is queued, and a round trip later the delay has followed the growth of the window
//!           or 15 % are lost, or there is a loss at a queue
//! late:     a queue that does not follow our growth is another's: the window goes on to double, six times at most
//! ```

use anabranch_units::Rate;

use super::Core;
use crate::controller::{Ack, Limit, PathView};

/// The state of the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Grow {
    /// The window stands still: has the delay followed its growth?
    check: Option<Check>,
    checked_at: f64,
    /// Checks that found another's queue.
    foreign: u32,
}

/// The state when the window stopped.
#[derive(Clone, Copy, Debug)]
struct Check {
    at: f64,
    rtt: f64,
    flight: f64,
}

impl Grow {
    /// The pace while the window doubles: without it half of the segments would queue behind each other at the bottleneck.
    pub(super) fn pace(&self, core: &Core, path: &PathView) -> Option<Rate> {
        let bits = PACE * core.window / core.model.rtt * 8.0 * path.mss.count() as f64;
        self.check.is_none().then(|| Rate::from_bits_per_second(bits.max(1.0) as u64))
    }

    /// Segments that are to be queued at the end of the start.
    fn alpha(core: &Core) -> f64 {
        core.model.alpha_full().max(ALPHA_LEAST).min(core.model.alpha_most)
    }

    /// Returns whether the start is over.
    pub(super) fn on_ack(&mut self, core: &mut Core, ack: &Ack) -> bool {
        if ack.limit == Limit::Application {
            return false;
        }
        let model = &core.model;
        if model.has_round() && model.loss_share() > LOSSES_MOST {
            Self::lose(core);
            return true;
        }
        let now = model.now;
        if let Some(check) = self.check {
            if now - check.at < 1.25 * model.mean {
                return false;
            }
            self.check = None;
            let followed = (model.rtt / check.rtt - 1.0) / (core.window / check.flight - 1.0).max(0.05);
            if followed >= FOLLOWED || self.foreign >= FOREIGN_MOST {
                Self::end(core);
                return true;
            }
            self.foreign += 1;
            return false;
        }
        let enough = (0.5 * Self::alpha(core)).max(4.0);
        let queued = |rtt: f64| model.old * (rtt - model.base - model.noise) / rtt;
        let is_queue = queued(model.rtt) >= enough && model.rtt - model.base > model.tolerance;
        if !is_queue || self.foreign > 0 {
            core.window += ack.newly_acked;
        }
        let model = &core.model;
        let stands = model.old * (model.standing - model.base - model.noise) / model.standing >= enough;
        if stands && model.queue() > model.tolerance {
            let has_grown = now - self.checked_at >= model.mean && core.window >= 1.25 * model.old;
            if self.foreign == 0 || has_grown {
                self.checked_at = now;
                self.check = Some(Check { at: now, rtt: model.standing, flight: model.old.min(core.window) });
            }
        }
        false
    }

    /// Returns whether the start is over: by a loss at a queue, or too many.
    pub(super) fn on_loss(core: &mut Core) -> bool {
        let is_full = core.model.queue_most() > core.model.tolerance || core.model.loss_share() > LOSSES_MOST;
        if is_full {
            Self::lose(core);
        }
        is_full
    }

    fn lose(core: &mut Core) {
        core.window *= AFTER_LOSS;
        Self::end(core);
    }

    /// The size of the path is known: what is in flight without the queue, and alpha.
    fn end(core: &mut Core) {
        let model = &core.model;
        let fits = model.old * model.base / model.rtt + Self::alpha(core);
        core.clock.restart(model.now);
        core.model.own_delay = 0.0;
        core.window = core.window.min(fits);
    }
}

/// Windows a round trip: a window and what it grows by.
const PACE: f64 = 2.0;

/// The start ends with at least so many segments queued, as on slow paths a burst is a queue.
const ALPHA_LEAST: f64 = 10.0;

/// The delay has followed if it grew by this part of the growth of the window: all of it where the queue is ours alone.
const FOLLOWED: f64 = 0.4;

/// After so many doublings at another's queue the start is over.
const FOREIGN_MOST: u32 = 6;

/// More losses are not random.
const LOSSES_MOST: f64 = 0.15;

/// The window after a loss, as CUBIC's.
const AFTER_LOSS: f64 = 0.7;
