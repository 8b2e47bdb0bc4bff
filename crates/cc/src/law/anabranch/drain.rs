//! A drain: the window is reduced, to see whose queue it is, and how long the path is without one.
//!
//! The sum of all windows on a link of c segments a second is c times the RTT, and the windows of the others do not change within a round trip. So if a flow
//! reduces its window, the RTT falls by the reduction over c, and
//!
//! ```text
//! s = (1 − RTT after/RTT before)/(1 − window after/window before)
//! ```
//!
//! is the flow's share of the link, unless the queue becomes empty first. Flows of our kind drain together: then s is one or more.
//!
//! ```text
//! begin      the window is reduced for a round trip and two fifths, at least a tenth of a second longer than one
//! deeper     the queue is ours so far and not empty, or nobody has shown the base: the window is reduced again to 0.65, up to six steps
//! floor      a step after which the RTT hardly falls: that is the propagation delay
//! return     beside a rival: the window comes back, and the RTT must, too. A rival that lost during the drain looks like our share otherwise
//! ```

use super::Core;
use super::compete::Compete;
use super::cruise::Cruise;

/// A drain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    pub(super) before: Before,
    /// The window and the RTT before, and when the drain began.
    pub(super) window: f64,
    pub(super) rtt: f64,
    pub(super) began: f64,
    /// Before it began.
    pub(super) is_rate_taken: bool,
    /// What was carried before, in segments a second.
    pub(super) rate: f64,
    /// The base before: a lower one is not shown yet.
    base: f64,
    step: Step,
    /// The RTT at the bottom and the share, while the window is back.
    returning: Option<Return>,
}

/// The mode before a drain.
#[derive(Clone, Copy, Debug)]
pub(super) enum Before {
    Cruise(Cruise),
    Compete(Compete),
}

/// A step of a drain: the window and the RTT before it.
#[derive(Clone, Copy, Debug)]
struct Step {
    number: u32,
    at: f64,
    window: f64,
    rtt: f64,
    /// The least RTT that shows the reduction; infinity before that.
    least: f64,
}

#[derive(Clone, Copy, Debug)]
struct Return {
    bottom: f64,
    most: f64,
}

impl Drain {
    /// Reduces the window to `part`.
    pub(super) fn begin(core: &mut Core, before: Before, part: f64) -> Self {
        let Core { model, clock, window, .. } = core;
        clock.begin(model.now);
        let step = Step { number: 1, at: model.now, window: *window, rtt: model.standing, least: f64::INFINITY };
        let drain = Self {
            before,
            window: *window,
            rtt: model.standing,
            began: model.now,
            is_rate_taken: model.is_rate_taken(),
            rate: model.carried / model.base,
            base: model.base,
            step,
            returning: None,
        };
        *window = (part * *window).max(2.0);
        drain
    }

    /// Returns how the drain ended, if it did.
    pub(super) fn on_ack(&mut self, core: &mut Core) -> Option<Outcome> {
        if self.returning.is_some() {
            return self.watch_return(core);
        }
        let Core { model, window, settings, .. } = core;
        let Step { at, rtt, .. } = self.step;
        let passed = model.now - at;
        let part = *window / self.step.window;
        // One segment leaves for each that arrives until the flight is below the window; then it takes a round trip to see it.
        let visible = (1.9 - part) * rtt;
        if passed < visible {
            return None;
        }
        self.step.least = self.step.least.min(model.rtt);
        let enough = visible + 0.4 * rtt;
        if passed < if self.step.number == 1 { enough.max(rtt + HOLD_S) } else { enough } {
            return None;
        }
        let shown = self.shown(core.model.base, core.model.tolerance, core.window, settings.ours);
        if self.goes_deeper(core, &shown) {
            let step = Step {
                number: self.step.number + 1,
                at: core.model.now,
                window: core.window,
                rtt: shown.bottom,
                least: f64::INFINITY,
            };
            self.step = step;
            core.window = (DEEPER * core.window).max(2.0);
            return None;
        }
        if shown.is_floor && shown.is_empty {
            core.model.show_base();
        }
        if self.returns(core, &shown) {
            return None;
        }
        Some(Outcome::Shown(shown))
    }

    /// What the drain has shown so far.
    fn shown(&self, base: f64, tolerance: f64, window: f64, ours: f64) -> Shown {
        let bottom = self.step.least;
        let share = |rtt: f64, before: f64| {
            let reduced = 1.0 - window / before;
            if reduced > 0.0 { (1.0 - bottom / rtt) / reduced } else { 0.0 }
        };
        let Step { number, window: step_window, rtt: step_rtt, .. } = self.step;
        let (delay, left) = (self.rtt - base, bottom - base);
        // The share that all earlier steps found.
        let earlier = (1.0 - step_rtt / self.rtt) / (1.0 - step_window / self.window).max(1e-9);
        let share_all = share(self.rtt, self.window);
        Shown {
            bottom,
            delay,
            share: share_all,
            is_known: delay > 2.0 * tolerance,
            is_empty: left <= (0.2 * delay).max(tolerance),
            is_floor: number > 1 && share(step_rtt, step_window) < 0.3,
            is_lower: base < self.base - tolerance,
            is_share_ours: share_all >= ours,
            was_share_ours: earlier >= ours,
            steps: number,
            reduced: 1.0 - window / self.window,
        }
    }

    fn goes_deeper(&self, core: &Core, shown: &Shown) -> bool {
        let may = shown.steps < STEPS_MOST && core.window > 2.5 && !shown.is_floor;
        let unknown = shown.is_empty && !core.model.is_base_shown() || shown.is_lower && shown.is_share_ours;
        may && (unknown || shown.is_share_ours && !shown.is_empty)
    }

    /// Beside a rival: lets the window return if the queue seems to be ours.
    fn returns(&mut self, core: &mut Core, shown: &Shown) -> bool {
        let beside_rival = matches!(self.before, Before::Compete(_));
        if !(beside_rival && shown.is_known && shown.is_ours(core)) || shown.is_decisive() {
            return false;
        }
        self.returning = Some(Return { bottom: shown.bottom, most: 0.0 });
        self.step.at = core.model.now;
        core.window = self.window;
        let interval = core.clock.interval_beside_rival(core.model.mean);
        core.clock.end(core.model.now, interval, core.clock.is_in_phase());
        true
    }

    /// The window is back: is the queue?
    fn watch_return(&mut self, core: &Core) -> Option<Outcome> {
        let returning = self.returning.as_mut()?;
        returning.most = returning.most.max(core.model.rtt);
        if core.model.now - self.step.at < 2.2 * self.rtt {
            return None;
        }
        let share = (returning.most - returning.bottom) / (self.rtt - returning.bottom).max(1e-9);
        Some(Outcome::Returned((0.65..1.6).contains(&share)))
    }
}

/// What a drain has shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    /// The RTT at the bottom in seconds.
    pub(super) bottom: f64,
    /// The queueing delay before, in seconds.
    pub(super) delay: f64,
    /// The share of the link.
    pub(super) share: f64,
    /// Whether there was enough of a queue to tell.
    pub(super) is_known: bool,
    pub(super) is_empty: bool,
    /// Whether the last step no longer made the RTT shorter.
    pub(super) is_floor: bool,
    /// Whether the base has become lower meanwhile.
    pub(super) is_lower: bool,
    /// Whether the share is that of a queue of ours.
    pub(super) is_share_ours: bool,
    /// Whether it was in the steps before the last.
    pub(super) was_share_ours: bool,
    pub(super) steps: u32,
    /// The part of the window that was taken away.
    pub(super) reduced: f64,
}

impl Shown {
    /// Whether the queue is ours, or of flows that drain with us.
    pub(super) fn is_ours(&self, core: &Core) -> bool {
        self.is_share_ours || (self.is_empty && core.model.is_base_shown())
    }

    /// The window to reach beside one rival: half of the sum of all windows, which is `window` over the share. Flows of our kind that take each other for
    /// rivals have more than half of that: they keep what they have.
    pub(super) fn fair(&self, window: f64) -> f64 {
        if self.share < ASIDE { FAIR * window / self.share.max(SHARE_LEAST) } else { window }
    }

    /// Whether one drain is enough beside a rival: three steps, to the bottom or through three fifths of the window.
    fn is_decisive(&self) -> bool {
        self.steps >= 3 && (self.is_empty || self.is_share_ours && self.reduced >= 0.6)
    }

    /// Whether the RTT is that of a longer route: it did not fall with our window, and does not vary, as a queue with rivals would.
    pub(super) fn is_route(&self, core: &Core, share_most: f64) -> bool {
        self.share < share_most && core.model.may_be_route()
    }
}

/// The end of a drain.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    Shown(Shown),
    /// The window is back, and whether the queue is.
    Returned(bool),
}

/// In the first step the window stays reduced for so much longer than a round trip, so that flows that drain a little later meet it.
const HOLD_S: f64 = 0.1;

/// Further steps leave this of the window.
const DEEPER: f64 = 0.65;

/// A fair share beside one rival, and half of it: who has less has been pushed aside, or has come second.
const FAIR: f64 = 0.5;
const ASIDE: f64 = 0.25;

/// Smaller shares are not measured: a drain that takes a third of such a window moves the RTT by a sixtieth, and so do others.
const SHARE_LEAST: f64 = 0.05;

/// Six steps leave a tenth of the window.
const STEPS_MOST: u32 = 6;
