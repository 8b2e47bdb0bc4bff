//! The start: the window doubles each round trip, paced, until a queue shows that it is ours.
//!
//! ```text
//! growth:   a segment for each acknowledged one, at a pace of two windows a round trip
//! ends:     half of alpha is queued, and a round trip later the delay has followed the growth of the window
//!           or 15 % are lost, or there is a loss at a queue
//! known:    on a longer route, and after a timeout, the path carries the rate of before, so the window that it needs is known if a drain has shown that
//!           rate: growth ends there, and the pace is that rate at most
//! late:     a queue that does not follow our growth is another's: the window goes on to double, six times at most
//! ```

use anabranch_units::Rate;

use super::Core;
use super::model::Model;
use crate::controller::{Ack, Limit, PathView};

/// The state of the start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grow {
    /// The window stands still: has the delay followed its growth?
    check: Option<Check>,
    checked_at: f64,
    /// Checks that found another's queue.
    foreign: u32,
    /// The window that the path is known to carry; infinity if nothing is known.
    pub(super) known: f64,
}

impl Default for Grow {
    fn default() -> Self {
        Self { check: None, checked_at: 0.0, foreign: 0, known: f64::INFINITY }
    }
}

/// The state when the window stopped.
#[derive(Clone, Copy, Debug)]
struct Check {
    at: f64,
    rtt: f64,
    flight: f64,
}

impl Grow {
    /// The start on a path that carries `rate`, with a window of `window`, which it does not reduce.
    fn to(rate: f64, model: &Model, window: f64) -> Self {
        Self { known: (rate * model.base).max(window), ..Self::default() }
    }

    /// The start on a longer route, which carries what drains have shown.
    pub(super) fn on_route(model: &Model, base_before: f64, window: f64) -> Self {
        match model.base > ROUTE_KNOWN * base_before {
            true => Self::to(model.rate_shown, model, window),
            false => Self::default(),
        }
    }

    /// The start after a timeout, on a path that carries what it did before, if a drain has shown that once.
    pub(super) fn after_timeout(model: &Model, window: f64) -> Self {
        Self::to(model.rate_shown.max(model.rate_most), model, window)
    }

    /// The timeout was spurious, and the window is `window` again.
    pub(super) fn undo(&mut self, window: f64) {
        self.known = self.known.max(window);
    }

    /// The pace while the window doubles: without it half of the segments would queue behind each other at the bottleneck.
    pub(super) fn pace(&self, core: &Core, path: &PathView) -> Option<Rate> {
        let rate = (PACE * core.window / core.model.rtt).min(self.known / core.model.base);
        let bits = rate * 8.0 * path.mss.count() as f64;
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
            if core.window >= self.known {
                Self::end_at(core, self.known);
                // The mean may hold the silence before a timeout.
                core.clock.set(now + core.clock.interval_of_own(core.model.base));
                return true;
            }
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
        Self::end_at(core, fits);
    }

    fn end_at(core: &mut Core, fits: f64) {
        core.clock.restart(core.model.now);
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

/// A route that is longer by less needs hardly more window, so growth without an end costs little, and finds a rival whose queue looked like a route.
const ROUTE_KNOWN: f64 = 1.1;

/// The window after a loss, as CUBIC's.
const AFTER_LOSS: f64 = 0.7;

#[cfg(test)]
mod tests {
    use super::super::AnabranchSettings;
    use super::super::clock::DrainClock;
    use super::*;
    use crate::testing::{Flow, assert_near};

    /// 1000 segments a second were carried before the route became 400 ms long: from 60 the window doubles to 400. The next drain is twenty seconds later, as 26
    /// round trips are more than ten. Where no drain has shown a rate, or the route is longer by less than a tenth, the window goes on to double.
    #[test]
    fn start_on_longer_route_ends_at_the_known_window() {
        for (rate, before, window, is_over) in
            [(1000.0, 0.3, 400.0, true), (1000.0, 0.37, 420.0, false), (f64::INFINITY, 0.3, 420.0, false)]
        {
            let (mut core, mut grow) = on_route(rate, before);
            let mut flow = Flow::new("anabranch", &[]);
            let ends = (1..=36).map(|_| grow.on_ack(&mut core, &flow.next_ack(10.0))).position(|ends| ends);
            assert_eq!(ends, is_over.then_some(33));
            assert_near(core.window, window, 1e-9);
            assert_eq!((core.clock.is_due(39.9), core.clock.is_due(40.1)), (false, is_over));
        }
    }

    /// Two windows a round trip of 400 ms, but no more than the 1000 segments a second that are known.
    #[test]
    fn pace_on_longer_route_is_the_known_rate_at_most() {
        for (rate, window, pace) in [(1000.0, 60.0, 300.0), (1000.0, 390.0, 1000.0), (f64::INFINITY, 390.0, 1950.0)] {
            let (mut core, grow) = on_route(rate, 0.3);
            core.window = window;
            let path = Flow::new("anabranch", &[]).view();
            let bits = grow.pace(&core, &path).unwrap().bits_per_second() as f64;
            assert_near(bits / (8.0 * path.mss.count() as f64), pace, 1e-3);
        }
    }

    /// A rate that the present window exceeds does not reduce it.
    #[test]
    fn start_on_longer_route_keeps_a_window_above_the_known() {
        let mut model = Model::new(&AnabranchSettings::DEFAULT);
        (model.now, model.rate_shown) = (20.0, 10.0);
        model.set_base(0.4);
        assert_near(Grow::on_route(&model, 0.3, 60.0).known, 60.0, 1e-9);
    }
    /// A start with 60 segments on a route of 400 ms, after one of `before` on which `rate` segments a second were shown.
    fn on_route(rate: f64, before: f64) -> (Core, Grow) {
        let settings = AnabranchSettings::DEFAULT;
        let mut core = Core { settings, window: 60.0, model: Model::new(&settings), clock: DrainClock::new(5.0) };
        let model = &mut core.model;
        (model.now, model.rate_shown, model.tolerance) = (20.0, rate, 0.01);
        model.set_base(0.4);
        (model.rtt, model.mean, model.standing) = (0.4, 0.4, 0.4);
        let grow = Grow::on_route(&core.model, before, core.window);
        (core, grow)
    }
}
