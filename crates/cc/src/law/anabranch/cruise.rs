//! The queue is ours: FAST's window, with a drain every 5 s.
//!
//! ```text
//! window    w ← w + (old base/mean + alpha − w)/4 each round trip
//! room      while the path is empty the window grows by 1, 2, 4 .. segments each 50 ms: after a common drain, which leaves 0.85 to each, all flows take
//!           equal steps. So drains are what losses are for Reno, and the shares become equal
//! losses    reduce alpha; they reduce the window, too, if the queue of this window is longer than alpha explains or too many are lost; after too many it
//!           grows by single segments, as there may be no queue that would tell where to stop
//! join      the base falls without a drain of ours: others have drained a queue that we had taken for a part of the path. We drain with them, late
//! policer   too many losses show what the path carries: the window stays below that for 2 s, and then grows by single segments
//! drain     on time, or if the queue is more than twice as long as expected
//! doubt     a drain found that the queue is not ours: the window is held, as only then does the next drain show anything
//! ```

use super::Core;
use super::model::Model;
use crate::controller::{Ack, Limit, Phase};

/// The state while the queue is ours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cruise {
    /// Drains in a row that found the queue not to be ours.
    pub(super) doubts: u32,
    /// Whether our share of the link was found to be large, or others to be of our kind, and no later one that we have lost half of our rate.
    pub(super) is_share_shown: bool,
    /// Drains in a row that were left out, as the queue was empty.
    passes: u32,
    /// The base that the window was made for, in seconds.
    base: f64,
    joined: Joined,
    /// The next step into free room, in segments.
    step: f64,
    /// When a loss last reduced the window, and the end of growth by single segments after too many; in seconds.
    reduced_at: f64,
    slow_until: f64,
    /// Too many losses have shown what the path carries: the window does not grow above that, until then.
    ceiling: f64,
    held_until: f64,
}

/// A drain of others that we joined: the time until which it lasts, and the window and the RTT before.
#[derive(Clone, Copy, Debug)]
struct Joined {
    until: f64,
    window: f64,
    rtt: f64,
}

impl Joined {
    const NONE: Self = Self { until: f64::NEG_INFINITY, window: 0.0, rtt: 0.0 };
}

impl Cruise {
    /// Begins with a window of `window`.
    pub(super) fn enter(core: &mut Core, window: f64) -> Self {
        core.window = window.max(WINDOW_LEAST);
        Self {
            doubts: 0,
            is_share_shown: false,
            passes: 0,
            base: core.model.base,
            joined: Joined::NONE,
            step: 1.0,
            reduced_at: f64::NEG_INFINITY,
            slow_until: f64::NEG_INFINITY,
            ceiling: f64::INFINITY,
            held_until: f64::NEG_INFINITY,
        }
    }

    /// Begins after a competition. `is_share_shown`: our share is large, or the others are of our kind; a fall of our rate, which then is theirs to take, is
    /// forgiven once.
    pub(super) fn enter_after_compete(core: &mut Core, window: f64, is_share_shown: bool) -> Self {
        Self { is_share_shown, ..Self::enter(core, window) }
    }

    /// Goes on after a drain.
    pub(super) fn resume(mut self, core: &mut Core, window: f64) -> Self {
        core.window = window.max(WINDOW_LEAST);
        self.base = core.model.base;
        self
    }

    /// Returns the part of the window that a drain leaves, if one begins.
    pub(super) fn on_ack(&mut self, core: &mut Core, ack: &Ack) -> Option<f64> {
        let decrease = core.settings.decrease;
        let Core { model, clock, window, .. } = core;
        if self.doubts == 0 {
            clock.join(model);
        }
        self.join(model, window, decrease);
        let (now, mean, alpha) = (model.now, model.mean, model.alpha());
        let is_limited = ack.limit == Limit::Application;
        if is_limited && model.queued(mean - model.base) <= alpha {
            return None;
        }
        let is_suspicious = model.queue() > SUSPICIOUS * model.queue_expected().max(model.own_delay) + model.tolerance;
        if clock.is_due(now) && self.doubts == 0 && self.is_drained(model) {
            clock.pass(now, mean);
            self.passes += 1;
            model.own_delay *= 0.5;
        }
        let again = core.confirms_after();
        let Core { model, clock, .. } = core;
        if clock.is_due(now) && clock.moves(model, if self.doubts == 0 { clock.interval() } else { again }) {
            return None;
        }
        let is_early = is_suspicious && clock.is_in_phase() && clock.since_end(now) > again;
        if !is_limited && (clock.is_due(now) || (is_early && now - self.reduced_at > 3.0 * mean)) {
            let part = (core.settings.drain_part * model.base / model.standing).clamp(0.35, 0.75);
            self.passes = 0;
            return Some(part);
        }
        // A long recovery tells of its first loss only, however much is lost after it.
        let is_after_start = clock.since_end(now) > ROUNDS_OF_LOSSES * mean;
        if ack.newly_lost > 0.0
            && is_after_start
            && model.loss_share() > LOSSES_MOST
            && let Some(left) = self.on_loss(core, core.window)
        {
            core.window = left;
            return None;
        }
        if ack.phase == Phase::Recovery && now - self.reduced_at < 2.0 * mean {
            return None;
        }
        let step = self.step(core, ack);
        let model = &core.model;
        let is_held = is_suspicious || self.doubts > 0;
        let is_above = now < self.held_until && core.window >= self.ceiling
            || core.window > ABOVE_CARRIED * model.carried + alpha.max(4.0);
        if !(step < 0.0 && is_held || step > 0.0 && is_above) {
            core.window = (core.window + step).max(WINDOW_LEAST);
        }
        None
    }

    /// Whether there is nothing to drain: the queue is short, because it has just fallen or for not too long.
    fn is_drained(&self, model: &Model) -> bool {
        let has_fallen = model.queue() < EMPTY * (model.peak_long - model.base);
        model.queue() < EMPTY * model.queue_expected() && (has_fallen || self.passes < PASSES_MOST)
    }

    /// The base has fallen without a drain of ours: takes part in that of the others, with the window of before it.
    fn join(&mut self, model: &mut Model, window: &mut f64, decrease: f64) {
        if model.base >= self.base - model.tolerance {
            return;
        }
        if model.now > self.joined.until {
            self.joined = Joined { until: model.now + 2.0 * model.mean, window: *window, rtt: model.peak };
        }
        let Joined { window: before, rtt, .. } = self.joined;
        let fits = (before * model.base / rtt + 0.5 * model.alpha()) * (1.0 - decrease);
        *window = window.min(fits).max(WINDOW_LEAST);
        model.own_delay = model.own_delay.max(rtt - model.base);
        self.base = model.base;
        self.doubts = 0;
    }

    /// The change of the window by an ACK.
    fn step(&mut self, core: &Core, ack: &Ack) -> f64 {
        let Core { model, window, .. } = core;
        let (acked, alpha) = (ack.newly_acked, model.alpha());
        let goal = model.old * model.base / model.mean + alpha;
        let law = GAMMA * (goal - window) * acked / window;
        let empty = (0.5 * alpha.max(2.0) / model.rate.max(1.0)).min(0.03 * model.base + 0.001);
        let is_room = model.low - model.base < model.noise.max(empty) && ack.limit == Limit::Window;
        if !is_room {
            self.step = (self.step * (1.0 - 4.0 * acked / window)).max(0.05 * alpha).max(1.0);
            return law;
        }
        // In proportion to the RTT, so that the steps of all flows are equal in rate and time; within what feedback allows.
        let pace = (model.mean / STEP_S).clamp(0.25, 2.0);
        // Paths that share a queue take one flow's steps together.
        let grown = law.max(acked * (pace * model.share * self.step / window).min(1.0));
        self.step = match model.now < self.slow_until {
            true => 1.0,
            false => (self.step * (1.0 + pace.min(1.0) * acked / window)).min(*window),
        };
        grown
    }

    /// Too many losses: where there is no queue they show what the path carries, and the window stays below that for a while. `window` is that of the losses.
    fn hold(&mut self, model: &Model, window: f64) {
        if model.queue_most() > model.tolerance {
            return;
        }
        let fits = model.carried.min(window * (1.0 - model.loss_share()));
        // Many losses below the ceiling are random: it was none.
        let was_none = model.now < self.held_until && window <= ABOVE_CEILING * self.ceiling;
        self.ceiling = if was_none { f64::INFINITY } else { CEILING * fits };
        self.held_until = model.now + HELD_S;
    }

    /// The part of alpha that losses leave at least.
    pub(super) fn alpha_least(&self, now: f64) -> f64 {
        if now < self.slow_until { ALPHA_AFTER_MANY } else { ALPHA_AFTER_LOSSES }
    }

    /// A loss while the window is `window`. Returns the window that it leaves, if it reduces it.
    pub(super) fn on_loss(&mut self, core: &Core, window: f64) -> Option<f64> {
        let model = &core.model;
        let explained = (model.alpha_full() / model.rate.max(1.0)).max(model.tolerance);
        let is_long = model.queue_most() > 1.75 * explained;
        let are_many = model.loss_share() > LOSSES_MOST || model.loss_share_long() > LOSSES_MOST_LONG;
        let rounds = (model.now - self.reduced_at) / model.mean;
        if !(is_long && rounds > ROUNDS_OF_QUEUE || are_many && rounds > ROUNDS_OF_LOSSES) {
            return None;
        }
        self.reduced_at = model.now;
        self.step = 1.0;
        if are_many {
            self.hold(model, window);
            self.slow_until = self.held_until.max(model.now) + core.clock.interval();
        }
        // What was carried is known to fit.
        Some((AFTER_LOSS * window.min(model.carried.max(1.0))).max(1.0))
    }
}

/// The part of the way to the goal in a round trip. Half of it, as in fast-2006, swings where the bottleneck's own round trip is longer.
const GAMMA: f64 = 0.25;

/// Below two segments in flight there is no RTT to compare.
pub(super) const WINDOW_LEAST: f64 = 2.0;

/// A queue that is so many times longer than expected may be another's.
const SUSPICIOUS: f64 = 2.25;

/// A queue of so much of its usual length is empty.
const EMPTY: f64 = 0.3;

/// After so many drains left out in a row one takes place: behind a short buffer that others keep full the queue seems to be empty, and the base is wrong.
const PASSES_MOST: u32 = 4;

/// The window is at most this much larger than what the path carries, so that random losses do not stop it and a full buffer does.
const ABOVE_CARRIED: f64 = 1.25;

/// Flows of unequal RTTs take steps of equal time.
const STEP_S: f64 = 0.05;

/// Losses of one to two round trips, and of the last window or 150 segments, that are too many to be random.
const LOSSES_MOST: f64 = 0.12;
const LOSSES_MOST_LONG: f64 = 0.08;

/// Behind a policer the window stays at this part of what it has carried for two seconds before it grows by single segments. Losses at more than this part
/// above that are of a window that was too large, others are random.
const CEILING: f64 = 0.95;
const HELD_S: f64 = 2.0;
const ABOVE_CEILING: f64 = 1.05;

/// So many round trips after a reduction the longest queue of four round trips, and the losses, are those of the reduced window. Judged too early a queue
/// that is gone reduces the window again.
const ROUNDS_OF_QUEUE: f64 = 6.0;
const ROUNDS_OF_LOSSES: f64 = 3.0;

/// Losses leave so much of alpha at least: what a host that wakes up 0.6 ms late sends at once waits as long as a fifth does, and a window by that is too small.
/// After too many losses they leave less, as behind a policer each step above its rate is lost.
const ALPHA_AFTER_LOSSES: f64 = 0.35;
const ALPHA_AFTER_MANY: f64 = 0.2;

/// The part of what was carried that a loss leaves.
const AFTER_LOSS: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::super::AnabranchSettings;
    use super::super::clock::DrainClock;
    use super::*;
    use crate::testing::{Flow, assert_near};

    /// At 6250 segments a second a queue of 20 segments, 3.2 ms, (and a bit for noise) are expected. One of 0.5 ms is empty; but if nobody has seen it fall, only four times in a row.
    #[test]
    fn drain_of_short_queue_is_left_out_four_times() {
        let (mut core, _) = steady();
        let mut cruise = Cruise::enter(&mut core, 300.0);
        for (standing, peak, passes, is_drained) in [
            (0.0505, 0.0505, 0, true),
            (0.0505, 0.0505, 3, true),
            (0.0505, 0.0505, 4, false),
            (0.0505, 0.0530, 4, true),
            (0.0515, 0.0600, 0, false),
        ] {
            (core.model.base, core.model.standing, core.model.peak_long) = (0.05, standing, peak);
            cruise.passes = passes;
            assert_eq!(cruise.is_drained(&core.model), is_drained, "{standing} {peak} {passes}");
        }
    }

    /// The queue is empty at each of ten drains that are due: the fifth and the tenth take place.
    #[test]
    fn every_fifth_drain_of_empty_queue_takes_place() {
        let (mut core, ack) = steady();
        let mut cruise = Cruise::enter(&mut core, 300.0);
        for number in 1..=10 {
            core.clock.set(core.model.now);
            assert_eq!(cruise.on_ack(&mut core, &ack).is_some(), number % 5 == 0, "{number}");
        }
    }

    /// A queue that empties by itself gives the phase of the next drain, but not of a second look, which is due in half a second.
    #[test]
    fn second_look_is_not_put_off_by_empty_queue() {
        for (doubts, is_due) in [(0, false), (1, true)] {
            let (mut core, ack) = steady();
            let mut cruise = Cruise::enter(&mut core, 300.0);
            cruise.doubts = doubts;
            core.model.rtt = 0.08;
            core.clock.on_ack(&core.model, false);
            core.model.rtt = core.model.base;
            core.clock.set(core.model.now + 0.5);
            assert_eq!(cruise.on_ack(&mut core, &ack), None);
            assert_eq!(core.clock.is_due(core.model.now + 0.5), is_due, "{doubts} doubts");
        }
    }

    /// A loss at a queue of 20 ms leaves 0.8 of the window, which then takes free room as before; 20 of 100 segments without a queue leave as much, and
    /// growth by single segments for 7 s.
    #[test]
    fn growth_is_slow_after_many_losses_only() {
        for (peak, lost, slow_until) in [(0.07, 1.0, f64::NEG_INFINITY), (0.05, 20.0, 17.0)] {
            let (mut core, mut ack) = steady();
            (core.model.peak, core.model.carried) = (peak, 312.0);
            (ack.newly_lost, ack.newly_acked) = (lost, 100.0 - lost);
            core.model.count(&ack, 300.0);
            let mut cruise = Cruise::enter(&mut core, 300.0);
            assert_eq!((cruise.on_loss(&core, 300.0), cruise.slow_until), (Some(240.0), slow_until), "{lost} lost");
        }
    }

    /// A fifth of 300 segments is lost: 240 fit, so the window stays below 228 for 2 s. As much lost below that is random: nothing holds the window then. Above
    /// it the ceiling was too high.
    #[test]
    fn window_is_held_below_what_losses_left() {
        for (window, ceiling) in [(200.0, f64::INFINITY), (300.0, 228.0)] {
            let (mut core, mut ack) = steady();
            core.model.carried = 312.0;
            (ack.newly_lost, ack.newly_acked) = (20.0, 80.0);
            core.model.count(&ack, 300.0);
            let mut cruise = Cruise::enter(&mut core, 300.0);
            cruise.on_loss(&core, 300.0);
            assert_near(cruise.ceiling, 228.0, 1e-9);
            (core.window, ack.newly_lost, ack.newly_acked) = (228.0, 0.0, 1.0);
            core.model.now = 11.99;
            assert_eq!((cruise.on_ack(&mut core, &ack), core.window), (None, 228.0));
            core.model.now = 12.0;
            assert_eq!(cruise.on_ack(&mut core, &ack), None);
            assert!(core.window > 228.0);
            core.model.now = 11.0;
            cruise.on_loss(&core, window);
            assert!(cruise.ceiling.total_cmp(&ceiling).is_eq(), "{window}");
        }
    }

    /// A recovery has told of its first loss; a fifth is lost for three round trips of 50 ms after it.
    #[test]
    fn losses_of_long_recovery_reduce_the_window_again() {
        let (mut core, mut ack) = steady();
        core.model.carried = 312.0;
        core.clock.restart(9.0);
        (ack.newly_lost, ack.newly_acked, ack.phase) = (20.0, 80.0, Phase::Recovery);
        core.model.count(&ack, 300.0);
        let mut cruise = Cruise::enter(&mut core, 300.0);
        core.window = cruise.on_loss(&core, 300.0).unwrap();
        for (now, window) in [(10.05, 240.0), (10.149, 240.0), (10.151, 192.0), (10.2, 192.0)] {
            core.model.now = now;
            assert_eq!(cruise.on_ack(&mut core, &ack), None);
            assert_near(core.window, window, 1e-9);
        }
    }

    /// For five round trips after a reduction the longest queue of four is that of the window before. Losses without a queue are known a round trip after
    /// they left.
    #[test]
    fn window_is_reduced_again_by_its_own_queue_only() {
        for (peak, lost, rounds) in [(0.07, 1.0, 6), (0.05, 20.0, 3)] {
            let (mut core, mut ack) = steady();
            let mut cruise = Cruise::enter(&mut core, 300.0);
            (core.model.peak, core.model.carried) = (peak, 312.0);
            (ack.newly_lost, ack.newly_acked) = (lost, 100.0 - lost);
            core.model.count(&ack, 300.0);
            let mut reduced = Vec::new();
            for round in 1..=20 {
                core.model.now += 0.05 * 1.001;
                if cruise.on_loss(&core, 300.0).is_some() {
                    reduced.push(round);
                }
            }
            assert_eq!(reduced, (1..=20).step_by(rounds).collect::<Vec<_>>(), "{lost} lost");
        }
    }

    /// Into free room, by steps of 100 segments in each 50 ms: an ACK for one of 300 segments grows the window by a third. Two paths of one queue with a quarter
    /// and three quarters of the rate grow by a quarter and three quarters of that.
    #[test]
    fn paths_of_one_queue_take_one_step_together() {
        for (share, grown) in [(1.0, 1.0 / 3.0), (0.25, 0.25 / 3.0), (0.75, 0.75 / 3.0)] {
            let (mut core, ack) = steady();
            let mut cruise = Cruise::enter(&mut core, 300.0);
            core.model.share = share;
            cruise.step = 100.0;
            assert_near(cruise.step(&core, &ack), grown, 1e-12);
        }
    }

    /// A flow without a queue at 6250 segments a second and 50 ms, and an ACK.
    fn steady() -> (Core, Ack) {
        let settings = AnabranchSettings::DEFAULT;
        let mut core = Core { settings, window: 300.0, model: Model::new(&settings), clock: DrainClock::new(5.0) };
        let model = &mut core.model;
        (model.now, model.old, model.rate, model.tolerance) = (10.0, 312.0, 6250.0, 0.001);
        (model.base, model.rtt, model.mean, model.low) = (0.05, 0.05, 0.05, 0.05);
        (model.standing, model.peak, model.peak_long) = (0.05, 0.05, 0.05);
        model.remember_rate(6250.0);
        (core, Flow::new("anabranch", &[]).next_ack(1.0))
    }
}
