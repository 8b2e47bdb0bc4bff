//! A rival fills the queue: the window of CUBIC (RFC 9438).
//!
//! ```text
//! start    what a drain has shown of our share tells the sum of all windows. The window doubles up to half of that: a flow that comes second has less
//! drain    on time, while the queue is long and does not fall by itself; or after a loss, if the drain is near: every flow of the queue has seen that loss, so
//!          flows of our kind drain together whatever their phases were
//! end      two drains in a row that find the queue to be ours, going and coming, or one that reaches the bottom in three steps; or others drain a short queue
//! base     is kept: such a queue hides it
//! ```

use super::Core;
use super::model::Model;
use crate::controller::{Ack, Limit, Phase};
use crate::law::cubic::{alpha_friendly, curve, time_to_plateau};

/// The state beside a rival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compete {
    cubic: Cubic,
    /// Drains in a row that found the queue to be ours.
    pub(super) ours: u32,
    /// The queueing delay at losses: that of a full buffer.
    full: f64,
    /// There was a queue at a loss: what was the least RTT then is none of a full buffer.
    has_varied: bool,
    /// When the window was last reduced, and by a loss.
    reduced_at: f64,
    lost_at: f64,
    /// Whether a drain follows that loss.
    drains_after_loss: bool,
}

/// CUBIC's variables; windows in segments, times in seconds.
#[derive(Clone, Copy, Debug)]
struct Cubic {
    window_max: f64,
    threshold: f64,
    /// Begins with the first ACK after a loss.
    epoch: Option<Epoch>,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    began: f64,
    plateau: f64,
    k: f64,
    /// The window of Reno.
    friendly: f64,
}

impl Compete {
    /// Begins with a window of `window`, which holds the share of the link that the flow has.
    pub(super) fn enter(core: &mut Core, window: f64) -> Self {
        core.window = window.max(2.0);
        let cubic = Cubic { window_max: window, threshold: window, epoch: None };
        let now = core.model.now;
        let full = core.model.queue_most().max(0.0);
        Self { cubic, ours: 0, full, has_varied: false, reduced_at: now, lost_at: now, drains_after_loss: false }
    }

    /// Begins beside a rival that was there first: the window doubles up to `fair` or the first loss, as that of a new CUBIC flow does.
    pub(super) fn enter_late(core: &mut Core, window: f64, fair: f64) -> Self {
        let mut compete = Self::enter(core, window);
        let Cubic { window_max, threshold, .. } = &mut compete.cubic;
        (*window_max, *threshold) = (window_max.max(fair), threshold.max(fair));
        compete
    }

    /// Goes on after a drain, during which the curve of CUBIC stood still.
    pub(super) fn resume(mut self, core: &mut Core, window: f64, drain_began: f64) -> Self {
        core.window = window;
        if let Some(epoch) = &mut self.cubic.epoch {
            epoch.began += core.model.now - drain_began;
        }
        self.reduced_at = core.model.now;
        self
    }

    /// Returns the part of the window that a drain leaves, if one begins.
    pub(super) fn on_ack(&mut self, core: &mut Core, ack: &Ack) -> Option<f64> {
        let interval = core.clock.interval_beside_rival(core.model.mean);
        let Core { model, clock, .. } = core;
        let now = model.now;
        model.keep_base();
        if self.drains_after_loss && now >= self.lost_at + model.mean && !model.is_falling() {
            self.drains_after_loss = false;
            if model.queue() > 2.0 * model.tolerance && model.standing > QUEUE_AFTER_LOSS * model.base {
                clock.set(now);
                return Some(AFTER_LOSS);
            }
        }
        if clock.is_due(now) && clock.moves(model, interval) {
            return None;
        }
        if clock.is_due(now) && ack.limit == Limit::Window && !self.drains_after_loss {
            // A queue that falls by itself would look like one that falls with our window.
            let is_rising = model.standing > 0.97 * model.peak && model.rtt >= model.standing;
            if model.queue() > 2.0 * model.tolerance && is_rising && now - self.reduced_at > 2.0 * model.mean {
                return Some(if model.is_base_shown() { (model.base / model.standing).clamp(0.7, 0.9) } else { 0.7 });
            }
            clock.skip_if_late(now, interval);
        }
        if ack.phase != Phase::Recovery && ack.limit == Limit::Window {
            core.window = self.cubic.grown(now, core.model.mean, core.window, ack.newly_acked);
        }
        None
    }

    /// A loss at a window of `window`; whether it reduces the window.
    pub(super) fn on_loss(&mut self, core: &mut Core, window: f64) -> bool {
        let delay = core.model.queue_most();
        let tolerance = core.model.tolerance;
        self.has_varied |= self.full > 2.0 * tolerance;
        if !(core.model.is_base_shown() || self.has_varied) || delay >= (0.3 * self.full).max(tolerance) {
            self.full = delay.max(0.8 * self.full);
        } else if core.model.loss_share_long() <= LOSSES_MOST {
            // Without a queue: a random one.
            return false;
        }
        self.cubic.lose(window);
        core.window = self.cubic.threshold;
        self.reduced_at = core.model.now;
        self.lost_at = core.model.now;
        let Core { model, clock, .. } = core;
        self.drains_after_loss = model.peak_long > DRAINS_FROM * model.base
            && clock.is_near(model.now, clock.interval_beside_rival(model.mean));
        true
    }

    /// Whether others have drained: a queue that is far from a full buffer has become empty, and neither a loss nor a drain of ours has done it.
    pub(super) fn have_others_drained(&self, model: &Model) -> bool {
        let queue = model.queue_most();
        model.queue() <= (EMPTY * queue).max(model.tolerance)
            && queue > 2.0 * model.tolerance
            && queue < SHORT * self.full
            && model.now - self.lost_at.max(self.reduced_at) > QUIET_ROUNDS * model.mean
    }

    pub(super) fn on_timeout(&mut self, core: &mut Core) {
        self.cubic.time_out(core.window);
        core.window = 1.0;
        self.reduced_at = core.model.now;
        self.lost_at = core.model.now;
    }
}

impl Cubic {
    /// The window after `acked` more segments (RFC 9438 sec. 4.2 to 4.4).
    fn grown(&mut self, now: f64, rtt: f64, window: f64, acked: f64) -> f64 {
        if window < self.threshold {
            return window + acked;
        }
        let window_max = self.window_max;
        let epoch = self.epoch.get_or_insert_with(|| {
            let plateau = window_max.max(window);
            Epoch { began: now, plateau, k: time_to_plateau(C, window, plateau), friendly: window }
        });
        let gain = if epoch.friendly < window_max { alpha_friendly(BETA) } else { 1.0 };
        epoch.friendly += gain * acked / window;
        let at = |time: f64| curve(C, epoch.k, epoch.plateau, time);
        let time = now - epoch.began;
        if at(time) < epoch.friendly {
            return window.max(epoch.friendly);
        }
        let target = at(time + rtt).clamp(window, 1.5 * window);
        window + acked * (target - window) / window
    }

    fn lose(&mut self, window: f64) {
        // RFC 9438 sec. 4.7: fast convergence.
        self.window_max = if window < self.window_max { 0.5 * (1.0 + BETA) * window } else { window };
        self.threshold = (BETA * window).max(2.0);
        self.epoch = None;
    }

    fn time_out(&mut self, window: f64) {
        self.window_max = window;
        self.threshold = (BETA * window).max(2.0);
        self.epoch = None;
    }
}

/// Losses of the last window or 150 segments that are too many to be random: a rival suffers from them, so they are fewer than in Cruise.
const LOSSES_MOST: f64 = 0.05;

/// A loss of all flows leaves 0.7 of a queue and a path: a drain after it is worth while behind a buffer of 0.6 products or more, if a fifth of one stands.
const DRAINS_FROM: f64 = 1.6;
const QUEUE_AFTER_LOSS: f64 = 1.2;

/// The window of a drain after a loss.
const AFTER_LOSS: f64 = 0.65;

/// A queue of so much of what it was is empty, and one of so much of a full buffer is none that a rival fills: at half of it a CUBIC or a BBR in a shallow buffer
/// counted as our kind. What happened so many round trips ago has no part in it.
const EMPTY: f64 = 0.2;
const SHORT: f64 = 0.2;
const QUIET_ROUNDS: f64 = 8.0;

/// RFC 9438: the constants of the curve and of the reduction.
const C: f64 = 0.4;
const BETA: f64 = 0.7;

#[cfg(test)]
mod tests {
    use super::super::AnabranchSettings;
    use super::super::clock::DrainClock;
    use super::*;
    use crate::controller::Ack;
    use crate::testing::Flow;

    /// A path of 50 ms, which no drain has shown. Where a queue of 20 ms was there when the competition began, a loss behind less than 6 ms is random. Where none was,
    /// the 50 ms may be those of a full buffer, and each loss counts; as does one of more than 5 in 100.
    #[test]
    fn loss_without_the_queue_of_before_is_random() {
        for (full, delay, lost, reduces) in [
            (0.02, 0.001, 0.0, false),
            (0.02, 0.005, 4.0, false),
            (0.02, 0.007, 0.0, true),
            (0.0, 0.0, 0.0, true),
            (0.02, 0.001, 6.0, true),
        ] {
            let settings = AnabranchSettings::DEFAULT;
            let mut core = Core { settings, window: 20.0, model: Model::new(&settings), clock: DrainClock::new(5.0) };
            (core.model.base, core.model.peak, core.model.tolerance) = (0.05, 0.05 + full, 0.002);
            let mut compete = Compete::enter(&mut core, 20.0);
            core.model.peak = 0.05 + delay;
            let ack = Flow::new("anabranch", &[]).next_ack(100.0 - lost);
            core.model.count(&Ack { newly_lost: lost, ..ack }, 20.0);
            assert_eq!(compete.on_loss(&mut core, 20.0), reduces, "{full} {delay} {lost}");
        }
    }

    /// A full buffer is a queue of 100 ms, and one of 15 ms becomes empty on a path of 50 ms: others have drained. Not if 25 ms stood, which a rival may have filled,
    /// or 3 ms, which are hardly a queue; nor if 4 ms are left of it, nor eight round trips after a loss or a drain.
    #[test]
    fn short_queue_that_empties_by_itself_was_drained_by_others() {
        for (was, left, lost_at, reduced_at, have_drained) in [
            (0.015, 0.002, 0.0, 0.0, true),
            (0.025, 0.002, 0.0, 0.0, false),
            (0.003, 0.0, 0.0, 0.0, false),
            (0.015, 0.004, 0.0, 0.0, false),
            (0.015, 0.002, 9.7, 0.0, false),
            (0.015, 0.002, 0.0, 9.7, false),
        ] {
            let settings = AnabranchSettings::DEFAULT;
            let mut core = Core { settings, window: 20.0, model: Model::new(&settings), clock: DrainClock::new(5.0) };
            (core.model.base, core.model.peak, core.model.tolerance) = (0.05, 0.15, 0.002);
            let compete = Compete { lost_at, reduced_at, ..Compete::enter(&mut core, 20.0) };
            (core.model.now, core.model.mean) = (10.0, 0.05);
            (core.model.standing, core.model.peak) = (0.05 + left, 0.05 + was);
            assert_eq!(compete.have_others_drained(&core.model), have_drained, "{was} {left} {lost_at} {reduced_at}");
        }
    }
}
