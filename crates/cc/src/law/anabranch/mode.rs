//! The modes, and what leads from one to another: the policy.
//!
//! ```text
//! Grow     the known window, a queue that follows our growth, or losses          -> Cruise
//! Cruise   a drain is due, or the queue is longer than ours can be               -> Drain
//! Drain    the queue is ours, or empty, or too short to tell                     -> Cruise, at 0.85 if it became empty
//!          it is ours, but its floor is above the base: the route is longer      -> Cruise with that base
//!          it is empty, but since it last was we have lost half of our rate,
//!          and the last drain that could tell did not find our share large       -> Compete, from the window that carries that rate
//!          again the RTT stands still, no such route was a queue lately,
//!          and a drain has shown the base before                                 -> Grow with that base, to the rate of before: the route is longer
//!          it is not ours: for the first time, or the law yields                 -> Cruise, in doubt or not
//!                          again                                                 -> Compete, by doubling from our window to half of the sum of all
//! Cruise   losses have taken most of alpha from a window too small to judge by   -> Compete
//! Compete  a drain is due, the queue is long and does not fall by itself         -> Drain
//! Compete  others have drained the queue, as only our kind does                  -> Cruise
//! Drain    it is ours to the bottom, or twice in a row going and coming          -> Cruise
//!          the RTT stands still                                                  -> Grow with that base
//!          else                                                                  -> Compete
//! any      timeout                                                               -> Grow, to the rate of before if it is known; Compete stays
//! ```
//!
//! A loss else changes neither Cruise nor Compete: it says that a buffer is full, not whose it is.

use super::compete::Compete;
use super::cruise::Cruise;
use super::drain::{Before, Drain, Outcome, Shown};
use super::grow::Grow;
use super::{Core, Rival};
use crate::controller::{Ack, Limit};

/// The mode of the law; one owns the window.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mode {
    Grow(Grow),
    Cruise(Cruise),
    Drain(Drain),
    Compete(Compete),
}

impl Mode {
    /// The mode after an ACK.
    pub(super) fn after_ack(&mut self, core: &mut Core, ack: &Ack) -> Self {
        match self {
            Self::Grow(grow) => {
                if grow.on_ack(core, ack) {
                    return Self::Cruise(Cruise::enter(core, core.window));
                }
            }
            Self::Cruise(cruise) => {
                if let Some(part) = cruise.on_ack(core, ack) {
                    return Self::Drain(Drain::begin(core, Before::Cruise(*cruise), part));
                }
            }
            Self::Compete(compete) => {
                if ack.limit == Limit::Window && compete.have_others_drained(&core.model) {
                    core.clock.pass(core.model.now, core.model.mean);
                    let fits = core.window * core.model.base / core.model.mean + core.model.alpha();
                    return Self::Cruise(Cruise::enter_after_compete(core, fits, true));
                }
                if let Some(part) = compete.on_ack(core, ack) {
                    return Self::Drain(Drain::begin(core, Before::Compete(*compete), part));
                }
            }
            Self::Drain(drain) => {
                if let Some(outcome) = drain.on_ack(core) {
                    return match (drain.before, outcome) {
                        (Before::Cruise(cruise), Outcome::Shown(shown)) => after_cruise(core, drain, cruise, &shown),
                        (Before::Cruise(cruise), Outcome::Returned(_)) => Self::Cruise(cruise),
                        (Before::Compete(compete), Outcome::Shown(shown)) => {
                            after_compete(core, drain, compete, &shown)
                        }
                        (Before::Compete(compete), Outcome::Returned(is)) => after_return(core, drain, compete, is),
                    };
                }
            }
        }
        *self
    }

    /// The mode after a loss or a mark.
    pub(super) fn after_loss(&mut self, core: &mut Core) -> Self {
        match self {
            Self::Grow(_) => {
                if Grow::on_loss(core) {
                    return Self::Cruise(Cruise::enter(core, core.window));
                }
            }
            Self::Cruise(cruise) => {
                let left = cruise.on_loss(core, core.window);
                core.model.lose(cruise.alpha_least(core.model.now));
                core.window = left.unwrap_or(core.window);
                if core.settings.rival == Rival::Cubic && core.window < WINDOW_JUDGED && core.model.is_pressed() {
                    core.clock.end(core.model.now, core.clock.interval_beside_rival(core.model.mean), false);
                    return Self::Compete(Compete::enter(core, core.window));
                }
            }
            Self::Compete(compete) => _ = compete.on_loss(core, core.window),
            Self::Drain(drain) => match &mut drain.before {
                Before::Cruise(cruise) => {
                    if let Some(left) = cruise.on_loss(core, drain.window) {
                        drain.window = left;
                        core.window = core.window.min(left);
                    }
                }
                Before::Compete(compete) => {
                    if compete.on_loss(core, drain.window) {
                        let interval = core.clock.interval_beside_rival(core.model.mean);
                        core.clock.skip(core.model.now, interval);
                        return Self::Compete(*compete);
                    }
                }
            },
        }
        *self
    }

    /// The mode after a timeout.
    pub(super) fn after_timeout(&self, core: &mut Core) -> Self {
        core.model.forget_losses();
        match *self {
            Self::Compete(mut compete) | Self::Drain(Drain { before: Before::Compete(mut compete), .. }) => {
                compete.on_timeout(core);
                Self::Compete(compete)
            }
            Self::Grow(_) | Self::Cruise(_) | Self::Drain(_) => {
                core.window = 1.0;
                Self::Grow(Grow::after_timeout(&core.model, core.window))
            }
        }
    }
}

/// After a drain in Cruise.
fn after_cruise(core: &mut Core, drain: &Drain, mut cruise: Cruise, shown: &Shown) -> Mode {
    let Drain { window, rtt, .. } = *drain;
    let (now, interval) = (core.model.now, core.clock.interval_of_own(core.model.mean));
    let is_in_phase = core.clock.is_in_phase();
    if shown.is_floor && !shown.is_empty && shown.was_share_ours {
        core.model.set_base(shown.bottom);
        core.clock.end(now, interval, is_in_phase);
        cruise.doubts = 0;
        let fits = window * core.model.base / rtt + core.model.alpha();
        return Mode::Cruise(cruise.resume(core, fits));
    }
    let is_ours = shown.is_known && (shown.is_share_ours || shown.was_share_ours);
    // Without a queue the application may have sent less.
    let is_pushed_aside = shown.is_known && shown.is_empty && !is_ours && drain.is_rate_taken;
    let is_ours_lately = cruise.is_share_shown;
    cruise.is_share_shown = is_ours || is_ours_lately && !is_pushed_aside;
    if is_pushed_aside && !is_ours_lately {
        core.clock.end(now, core.clock.interval_beside_rival(core.model.mean), false);
        return Mode::Compete(Compete::enter(core, core.model.window_most()));
    }
    if shown.is_ours(core) || !shown.is_known {
        // On a long path alpha is a queue too short to tell, and drains begin only while the window limits.
        core.model.rate_shown = drain.rate;
        core.model.own_delay = if shown.is_known { shown.delay } else { 0.5 * core.model.own_delay };
        core.clock.end(now, interval, true);
        cruise.doubts = 0;
        let fits = (window * core.model.base / rtt + 0.5 * core.model.alpha()) * (1.0 - core.settings.decrease);
        return Mode::Cruise(cruise.resume(core, if shown.is_empty { window.min(fits) } else { window }));
    }
    if cruise.doubts > 0 && shown.is_route(core, 0.15) {
        core.clock.end(now, interval, is_in_phase);
        return on_route(core, window, shown);
    }
    if core.settings.rival == Rival::Yield {
        // Known now: the window is not held for the sake of another look.
        core.model.own_delay = shown.delay;
        core.clock.end(now, interval, false);
        return Mode::Cruise(cruise.resume(core, window));
    }
    cruise.doubts += 1;
    if cruise.doubts >= DOUBTS {
        core.clock.end(now, core.clock.interval_beside_rival(core.model.mean), false);
        return Mode::Compete(Compete::enter_late(core, window, shown.fair(window)));
    }
    let again = core.confirms_after();
    core.clock.end(now, again, false);
    Mode::Cruise(cruise.resume(core, window))
}

/// After a drain in Compete that needs no return.
fn after_compete(core: &mut Core, drain: &Drain, mut compete: Compete, shown: &Shown) -> Mode {
    let Drain { window, rtt, began, .. } = *drain;
    let now = core.model.now;
    if shown.is_known && shown.is_ours(core) {
        core.clock.end(now, core.clock.interval(), true);
        core.model.own_delay = shown.delay;
        core.model.show_base();
        let fits = window * core.model.base / rtt + core.model.alpha();
        return Mode::Cruise(Cruise::enter_after_compete(core, fits, shown.is_share_ours));
    }
    let interval = core.clock.interval_beside_rival(core.model.mean);
    core.clock.end(now, interval, core.clock.is_in_phase());
    if shown.is_known {
        compete.ours = 0;
        if shown.is_route(core, 0.1) {
            return on_route(core, window, shown);
        }
    }
    Mode::Compete(compete.resume(core, window, began))
}

/// After a drain that found a longer route.
fn on_route(core: &mut Core, window: f64, shown: &Shown) -> Mode {
    let before = core.model.base;
    core.model.set_base(shown.bottom);
    core.window = window;
    Mode::Grow(Grow::on_route(&core.model, before, window))
}

/// After the window has come back from a drain in Compete that found the queue to be ours; `has_returned`: so did the queue.
fn after_return(core: &mut Core, drain: &Drain, mut compete: Compete, has_returned: bool) -> Mode {
    let Drain { window, rtt, began, .. } = *drain;
    compete.ours = if has_returned { compete.ours + 1 } else { 0 };
    if compete.ours >= RETURNS {
        core.model.own_delay = rtt - core.model.base;
        core.model.show_base();
        let fits = window * (core.model.base / rtt).min(1.0) + core.model.alpha();
        return Mode::Cruise(Cruise::enter_after_compete(core, fits, true));
    }
    if has_returned {
        let again = core.confirms_after();
        core.clock.set(core.model.now + again);
    }
    Mode::Compete(compete.resume(core, window, began))
}

/// A rival needs so many drains as proof: one may meet a flow of our kind that begins, or a rival's loss.
const DOUBTS: u32 = 2;

/// A drain of fewer segments shortens the RTT by less than others do.
const WINDOW_JUDGED: f64 = 12.0;

/// The end of a rival, too.
const RETURNS: u32 = 2;

#[cfg(test)]
mod tests {
    use super::super::AnabranchSettings;
    use super::super::clock::DrainClock;
    use super::super::model::Model;
    use super::*;
    use crate::testing::{Flow, assert_near};

    /// A queue that was empty after a drain although our share of it was a half. Whoever kept its rate takes it for one of our kind; whoever has lost
    /// more than half of the 1000 segments a second that it had when the queue was last empty competes, with the window of that rate at 50 ms. It does
    /// not if the share was large before the last step, nor if there was no queue, as then the application may have sent less.
    #[test]
    fn empty_queue_after_fall_of_rate_is_rivals() {
        for (rate, shown, competes) in [
            (600.0, EMPTY, false),
            (400.0, EMPTY, true),
            (400.0, Shown { was_share_ours: true, ..EMPTY }, false),
            (400.0, Shown { is_known: false, ..EMPTY }, false),
        ] {
            let (mut core, drain, cruise) = drained(rate);
            let mode = after_cruise(&mut core, &drain, cruise, &shown);
            assert_eq!(matches!(mode, Mode::Compete(_)), competes, "{rate} {shown:?}");
            if competes {
                assert_near(core.window, 50.0, 1e-9);
            }
        }
    }

    /// After a drain that found a large share the link may have become slower: one fall of the rate is forgiven, the next is not.
    #[test]
    fn one_fall_of_rate_after_large_share_is_forgiven() {
        let (mut core, drain, cruise) = drained(400.0);
        let Mode::Cruise(cruise) = after_cruise(&mut core, &drain, cruise, &Shown { is_share_ours: true, ..EMPTY })
        else {
            panic!("the queue was ours");
        };
        let Mode::Cruise(cruise) = after_cruise(&mut core, &drain, cruise, &EMPTY) else { panic!("forgiven") };
        assert!(matches!(after_cruise(&mut core, &drain, cruise, &EMPTY), Mode::Compete(_)));
    }

    /// Two drains found a fifth of the link to be ours, with a window of 40: all windows are 200, and the flow doubles until it has 100. Less than a twentieth
    /// counts as a twentieth; and with a quarter or more the window stays.
    #[test]
    fn late_comer_doubles_to_half_of_all_windows() {
        for (share, fair) in [(0.2, 100.0), (0.01, 400.0), (0.25, 40.0), (0.7, 40.0)] {
            let (mut core, drain, mut cruise) = drained(800.0);
            core.model.shown = 0.0;
            cruise.doubts = 1;
            let shown = Shown { share, is_empty: false, ..EMPTY };
            let mut mode = after_cruise(&mut core, &drain, cruise, &shown);
            assert!(matches!(mode, Mode::Compete(_)), "{share}");
            assert_near(core.window, 40.0, 1e-9);
            let mut flow = Flow::new("anabranch", &[]);
            let mut acked = 0.0;
            while core.window < fair {
                core.model.now += 0.01;
                mode = mode.after_ack(&mut core, &flow.next_ack(10.0));
                acked += 10.0;
                assert_near(core.window, 40.0 + acked, 1e-9);
            }
            core.model.now += 0.01;
            mode.after_ack(&mut core, &flow.next_ack(10.0));
            assert!(core.window < fair + 11.0, "{} of {fair}", core.window);
        }
    }

    /// Drains have shown 800 or 1200 segments a second, and the largest rate of the last 5 s was 1000: after a timeout the window doubles to the 50 or 60 that the larger
    /// one is at 50 ms. The mean still holds a silence of 3 s, but the next drain is 5 s later. Without a drain nothing is known.
    #[test]
    fn start_after_timeout_ends_at_the_known_window() {
        for (shown, window) in [(800.0, Some(50.0)), (1200.0, Some(60.0)), (f64::INFINITY, None)] {
            let (mut core, _, cruise) = drained(800.0);
            let model = &mut core.model;
            (model.rate_shown, model.rtt, model.mean, model.standing) = (shown, 0.05, 3.0, 0.05);
            let Mode::Grow(mut grow) = Mode::Cruise(cruise).after_timeout(&mut core) else { panic!("no start") };
            let mut flow = Flow::new("anabranch", &[]);
            let ends = (0..100).any(|_| grow.on_ack(&mut core, &flow.next_ack(1.0)));
            assert_eq!(ends, window.is_some());
            assert_near(core.window, window.unwrap_or(101.0), 1e-9);
            if ends {
                assert_eq!((core.clock.is_due(14.9), core.clock.is_due(15.1)), (false, true));
            }
        }
    }

    /// The RTT stands still, and the share is small: a longer route, but only for whom a drain has shown the base before. Who has not seen the queue
    /// empty has come second. Its 600 segments a second are a window of 60 on the route of 100 ms.
    #[test]
    fn route_is_believed_if_the_base_was_shown() {
        for is_base_shown in [true, false] {
            let (mut core, drain, mut cruise) = drained(800.0);
            core.model.shown = if is_base_shown { core.model.base } else { 0.0 };
            cruise.doubts = 1;
            core.model.rate_shown = 600.0;
            let shown = Shown { share: 0.1, bottom: 0.1, is_empty: false, ..EMPTY };
            let mode = after_cruise(&mut core, &drain, cruise, &shown);
            assert_eq!(
                matches!(mode, Mode::Grow(grow) if (grow.known - 60.0).abs() < 1e-9),
                is_base_shown,
                "{is_base_shown}"
            );
            assert_eq!(matches!(mode, Mode::Compete(_)), !is_base_shown, "{is_base_shown}");
        }
    }

    /// A drain beside a rival found the queue to be ours, going and coming: the next look is ten round trips of 70 ms later, but not before 1.25 s.
    #[test]
    fn second_look_at_the_end_of_competition_is_early() {
        for has_returned in [true, false] {
            let (mut core, drain, _) = drained(800.0);
            core.model.mean = 0.07;
            core.clock.end(core.model.now, 5.0, true);
            let compete = Compete::enter(&mut core, 40.0);
            let mode = after_return(&mut core, &drain, compete, has_returned);
            assert!(matches!(mode, Mode::Compete(_)));
            let is_due = |after: f64| core.clock.is_due(10.0 + after);
            assert_eq!((is_due(1.24), is_due(1.26)), (false, has_returned));
        }
    }

    /// A drain of our queue, or of one too short to tell, has shown the rate of before it, which is 20 segments in 50 ms; one of another's queue has not.
    #[test]
    fn rate_is_shown_by_drain_of_own_queue() {
        for (shown, rate) in [
            (Shown { is_share_ours: true, ..EMPTY }, 400.0),
            (Shown { is_known: false, ..EMPTY }, 400.0),
            (Shown { is_empty: false, ..EMPTY }, 1000.0),
        ] {
            let (mut core, _, cruise) = drained(800.0);
            (core.model.carried, core.model.rate_shown) = (20.0, 1000.0);
            let drain = Drain::begin(&mut core, Before::Cruise(cruise), 0.75);
            after_cruise(&mut core, &drain, cruise, &shown);
            assert_near(core.model.rate_shown, rate, 1e-9);
        }
    }

    /// The queue of a competition was ours, by one drain or by two that returned: what others take then is theirs, once.
    #[test]
    fn one_fall_of_rate_after_competition_is_forgiven() {
        let after = |core: &mut Core, drain: &Drain, ours| match ours {
            0 => {
                let compete = Compete::enter(core, 40.0);
                after_compete(core, drain, compete, &Shown { is_share_ours: true, ..EMPTY })
            }
            ours => {
                let mut compete = Compete::enter(core, 40.0);
                compete.ours = ours;
                after_return(core, drain, compete, true)
            }
        };
        for ours in [0, 1] {
            let (mut core, drain, _) = drained(400.0);
            let Mode::Cruise(cruise) = after(&mut core, &drain, ours) else { panic!("the queue was ours") };
            let Mode::Cruise(cruise) = after_cruise(&mut core, &drain, cruise, &EMPTY) else { panic!("forgiven") };
            assert!(matches!(after_cruise(&mut core, &drain, cruise, &EMPTY), Mode::Compete(_)));
        }
    }

    /// Others drain a short queue of 15 ms on a path of 50 ms while we compete with 40 segments: 40 50/60 and an alpha of √(20² 800/6250 + 0.8²) are left, and the next
    /// drain is 5 s later, less a round trip and a half. A flow that its application limits has let the queue become empty itself.
    #[test]
    fn competition_ends_where_others_drain() {
        for (limit, is_over) in [(Limit::Window, true), (Limit::Application, false)] {
            let (mut core, _, _) = drained(800.0);
            (core.model.peak, core.model.tolerance) = (0.15, 0.002);
            let compete = Compete::enter(&mut core, 40.0);
            (core.model.now, core.model.rtt, core.model.mean) = (20.0, 0.05, 0.06);
            (core.model.standing, core.model.peak) = (0.05, 0.065);
            let ack = Ack { limit, ..Flow::new("anabranch", &[]).next_ack(1.0) };
            let mode = Mode::Compete(compete).after_ack(&mut core, &ack);
            assert_eq!(matches!(mode, Mode::Cruise(cruise) if cruise.is_share_shown), is_over);
            if is_over {
                assert_near(core.window, 40.0 / 1.2 + (400.0 * 0.128_f64 + 0.64).sqrt(), 1e-9);
                assert_eq!((core.clock.is_due(24.90), core.clock.is_due(24.92)), (false, true));
            }
        }
    }

    /// A flow at `rate` segments a second, which had 1000, with a drain of its queue of 10 ms behind it.
    fn drained(rate: f64) -> (Core, Drain, Cruise) {
        let settings = AnabranchSettings::DEFAULT;
        let mut core = Core { settings, window: 40.0, model: Model::new(&settings), clock: DrainClock::new(5.0) };
        (core.model.base, core.model.standing, core.model.rate) = (0.05, 0.06, rate);
        (core.model.shown, core.model.now) = (core.model.base, 10.0);
        core.model.remember_rate(1000.0);
        let cruise = Cruise::enter(&mut core, 40.0);
        let drain = Drain::begin(&mut core, Before::Cruise(cruise), 0.75);
        (core, drain, cruise)
    }

    /// A drain that emptied the queue in one step.
    const EMPTY: Shown = Shown {
        bottom: 0.05,
        delay: 0.01,
        share: 0.5,
        is_known: true,
        is_empty: true,
        is_floor: false,
        is_lower: false,
        is_share_ours: false,
        was_share_ours: false,
        steps: 1,
        reduced: 0.25,
    };
}
