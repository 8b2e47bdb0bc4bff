//! What the law knows of its path. Every ACK updates it in one order; it decides nothing.
//!
//! Windows and flights are in segments, times in seconds.

use anabranch_units::Time;

use super::AnabranchSettings;
use crate::controller::{Ack, PathView};
use crate::recent::{RecentMax, RecentMin};

/// The estimates of a path.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// The alpha at [`RATE_OF_ALPHA`].
    alpha: f64,
    /// The part of the rate of all paths of the connection that wait in this path's queue; one if there is no other.
    pub(super) share: f64,
    /// The time of the latest ACK or loss.
    pub(super) now: f64,
    /// The least RTT of the last millisecond or so: without the delay of a burst or of a held ACK.
    pub(super) rtt: f64,
    /// The propagation delay: the least RTT of the last 30 to 60 s.
    pub(super) base: f64,
    /// The mean RTT, with the weight of half a window.
    pub(super) mean: f64,
    /// The least RTT of the last three quarters of a round trip or more: what of the delay stands.
    pub(super) standing: f64,
    /// The largest standing RTT of four round trips.
    pub(super) peak: f64,
    /// The largest standing RTT of eight round trips.
    pub(super) peak_long: f64,
    /// The least RTT of a tenth of a round trip.
    pub(super) low: f64,
    /// The flight a round trip ago.
    pub(super) old: f64,
    /// The rate, in segments a second, and the largest of 5 s and of the last second.
    pub(super) rate: f64,
    pub(super) rate_most: f64,
    rate_lately: f64,
    /// What was carried, in segments a second, before a drain in Cruise last found the queue to be ours, or too short to tell; infinity if none has.
    pub(super) rate_shown: f64,
    /// Segments that the path carries in a propagation delay: the most of three round trips.
    pub(super) carried: f64,
    /// Delays below this are no queue.
    pub(super) tolerance: f64,
    /// The mean time that ACKs are held back before they come.
    pub(super) noise: f64,
    /// How much RTTs have varied for the last six tenths of a second, and three round trips.
    high: RecentMax,
    least: RecentMin,
    /// Segments lost and acknowledged.
    losses: Losses,
    /// What losses leave of alpha; infinity without losses.
    pub(super) alpha_most: f64,
    /// The queueing delay that a drain has shown to be ours; zero if none has.
    pub(super) own_delay: f64,
    /// The base that a drain or a route has shown; zero if none has, or if the base has fallen since: it may have been a queue.
    pub(super) shown: f64,
    /// Longer routes so far, for the gauges.
    pub(super) reroutes: u32,
    /// The base of the latest of them.
    route: f64,
    /// Another is not believed until then, as the base fell below that of the latest.
    doubted_until: f64,
    /// The time over which the noise is a mean, at most a second, and the latest sample.
    measured: f64,
    last: Option<Sample>,
    extrema: Extrema,
}

/// A sample of the RTT.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: f64,
    rtt: f64,
}

/// What the windowed estimates are made of.
#[derive(Clone, Copy, Debug)]
struct Extrema {
    rtt: RecentMin,
    base: RecentMin,
    standing: RecentMin,
    peak: RecentMax,
    peak_long: RecentMax,
    low: RecentMin,
    old: RecentMax,
    rate: RecentMax,
    rate_lately: RecentMax,
    carried: RecentMax,
}

/// Losses of the last round trips, and of the last windows.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    /// When the present round began.
    since: f64,
    round: Count,
    round_before: Count,
    /// Weighted: older segments count less.
    long: Count,
    /// The next ACK tells what was lost before a timeout.
    is_anew: bool,
}

/// Segments with a known fate.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    lost: f64,
    acked: f64,
}

impl Count {
    fn add(&mut self, lost: f64, acked: f64) {
        self.lost += lost;
        self.acked += acked;
    }

    fn scaled(self, by: f64) -> Self {
        Self { lost: self.lost * by, acked: self.acked * by }
    }

    /// The lost share of what was sent, or of `least` segments if that were fewer.
    fn share(self, least: f64) -> f64 {
        self.lost / (self.lost + self.acked).max(least)
    }
}

impl Model {
    pub(super) fn new(settings: &AnabranchSettings) -> Self {
        Self {
            alpha: settings.alpha,
            share: 1.0,
            now: 0.0,
            rtt: 0.0,
            base: f64::INFINITY,
            mean: 0.0,
            standing: 0.0,
            peak: 0.0,
            peak_long: 0.0,
            low: 0.0,
            old: 0.0,
            rate: 0.0,
            rate_most: 0.0,
            rate_lately: 0.0,
            rate_shown: f64::INFINITY,
            carried: 0.0,
            tolerance: 0.0,
            noise: 0.0,
            high: RecentMax::NONE,
            least: RecentMin::NONE,
            losses: Losses::default(),
            alpha_most: f64::INFINITY,
            own_delay: 0.0,
            shown: 0.0,
            reroutes: 0,
            route: 0.0,
            doubted_until: f64::NEG_INFINITY,
            measured: 0.0,
            last: None,
            extrema: Extrema {
                rtt: RecentMin::NONE,
                base: RecentMin::NONE,
                standing: RecentMin::NONE,
                peak: RecentMax::NONE,
                peak_long: RecentMax::NONE,
                low: RecentMin::NONE,
                old: RecentMax::NONE,
                rate: RecentMax::NONE,
                rate_lately: RecentMax::NONE,
                carried: RecentMax::NONE,
            },
        }
    }

    /// Updates the estimates; false while there is no RTT.
    pub(super) fn on_ack(&mut self, path: &PathView, ack: &Ack, window: f64) -> bool {
        let passed = seconds(ack.arrival) - self.now;
        self.now = seconds(ack.arrival);
        let sample = ack.rtt.map(|rtt| rtt.as_secs_f64()).filter(|&rtt| rtt > 0.0);
        if let Some(rtt) = sample {
            self.hear_noise(rtt);
            // Small segments are faster on slow links.
            if ack.size.count() * 2 >= path.mss.count() {
                self.hear_rtt(rtt, ack.newly_acked, window);
            }
        }
        if self.mean == 0.0 {
            return false;
        }
        let Self { now, mean, base, .. } = *self;
        let at_once = (0.25 * mean).max(1.5 * self.noise);
        self.old = self.extrema.old.add(now, ack.departure.flight, at_once);
        let delivered = path.progress.delivered - ack.departure.progress.delivered;
        self.carried = self.extrema.carried.add(now, delivered * (base / self.rtt).min(1.0), 3.0 * mean);
        self.rate = self.old / mean;
        self.remember_rate(self.rate);
        self.tolerance = (1.0 / self.rate.max(1.0))
            .min(base / 20.0)
            .max(base / 50.0)
            .max(self.noise.max(TOLERANCE_S))
            .min(base / 4.0);
        let span = STEADY_S.max(3.0 * mean);
        self.high.add(now, self.standing, span);
        self.least.add(now, self.standing, span);
        self.count(ack, window);
        self.recover_alpha(passed);
        true
    }

    pub(super) fn remember_rate(&mut self, rate: f64) {
        self.rate_most = self.extrema.rate.add(self.now, rate, RATE_SPAN_S);
        self.rate_lately = self.extrema.rate_lately.add(self.now, rate, RATE_LATELY_S);
    }

    /// A time that ACKs are held back is one in which the RTT rises by as much as passes. A silence of the path counts as a short one.
    fn hear_noise(&mut self, rtt: f64) {
        if let Some(last) = self.last {
            let passed = (self.now - last.at).max(0.0);
            let jump = (rtt - last.rtt).clamp(0.0, passed);
            let held = if jump > 0.5 * passed { passed } else { jump }.min(HELD_MOST_S);
            self.measured = (self.measured + passed).min(1.0);
            if self.measured > 0.0 {
                self.noise = self.noise * (1.0 - passed / self.measured).max(0.0) + held * held / self.measured;
            }
        }
        self.last = Some(Sample { at: self.now, rtt });
    }

    fn hear_rtt(&mut self, sample: f64, acked: f64, window: f64) {
        let now = self.now;
        self.rtt = self.extrema.rtt.add(now, sample, (1.5 * self.noise).max(BURST_S));
        self.base = self.extrema.base.add(now, self.rtt, BASE_SPAN_S);
        if self.base < self.shown - self.tolerance {
            self.shown = 0.0;
        }
        if self.base < self.route - self.tolerance {
            // It was a queue.
            self.route = 0.0;
            self.doubted_until = now + DOUBTED_S;
        }
        if self.mean > 0.0 {
            self.mean += (self.rtt - self.mean) * (2.0 * acked / window.max(2.0)).min(1.0);
        } else {
            self.mean = self.rtt;
        }
        self.standing = self.extrema.standing.add(now, self.rtt, 0.75 * self.mean);
        self.low = self.extrema.low.add(now, self.rtt, 0.1 * self.mean);
        self.peak = self.extrema.peak.add(now, self.standing, 4.0 * self.mean);
        self.peak_long = self.extrema.peak_long.add(now, self.standing, 8.0 * self.mean);
    }

    /// Counts the segments whose fate an ACK tells.
    pub(super) fn count(&mut self, ack: &Ack, window: f64) {
        let Losses { since, round, round_before, long, is_anew } = &mut self.losses;
        let (lost, acked) = (if std::mem::take(is_anew) { 0.0 } else { ack.newly_lost }, ack.newly_acked);
        round.add(lost, acked);
        *long = long.scaled(1.0 - ((lost + acked) / window.max(LOSSES_LONG)).min(1.0));
        long.add(lost, acked);
        if self.now - *since > self.mean {
            *since = self.now;
            *round_before = *round;
            *round = Count::default();
        }
    }

    /// What was lost until a timeout is its reason, and says nothing of the losses after it.
    pub(super) fn forget_losses(&mut self) {
        self.losses = Losses { is_anew: true, ..Losses::default() };
    }

    /// The lost share of the last one to two round trips.
    pub(super) fn loss_share(&self) -> f64 {
        let Losses { round, round_before, .. } = self.losses;
        Count { lost: round.lost + round_before.lost, acked: round.acked + round_before.acked }.share(60.0)
    }

    /// The lost share of the last window or more.
    pub(super) fn loss_share_long(&self) -> f64 {
        self.losses.long.share(50.0)
    }

    /// Whether a round with an ACK is over.
    pub(super) fn has_round(&self) -> bool {
        self.losses.round_before.acked > 0.0
    }

    /// The alpha at a rate, without losses: in proportion to the root of the rate, but at least what passes while ACKs are held back. Paths that share a queue
    /// have one alpha, that of the sum of their rates, and each its share of it: s alpha(x/s) = √s alpha(x).
    fn alpha_at(&self, rate: f64) -> f64 {
        let by_rate = self.alpha * (self.share * rate.max(1.0) / RATE_OF_ALPHA).sqrt();
        let by_noise = rate * self.noise.max(BURST_S);
        (by_rate * by_rate + by_noise * by_noise).sqrt().max(1.0)
    }

    /// Alpha without losses.
    pub(super) fn alpha_full(&self) -> f64 {
        self.alpha_at(self.rate)
    }

    /// Segments to keep queued.
    pub(super) fn alpha(&self) -> f64 {
        // What passes while ACKs are held back does not queue, so losses say nothing of it.
        self.alpha_full().min(self.alpha_most.hypot(self.rate * self.noise))
    }

    /// The standing queueing delay.
    pub(super) fn queue(&self) -> f64 {
        self.standing - self.base
    }

    /// The largest standing queueing delay of four round trips.
    pub(super) fn queue_most(&self) -> f64 {
        self.peak - self.base
    }

    /// The queueing delay of alpha at the recent rate.
    pub(super) fn queue_expected(&self) -> f64 {
        self.alpha_at(self.rate_most) / self.rate_most.max(1.0)
    }

    /// Whether others have taken half of the rate of the last 5 to 10 s, and go on taking it. A flow of our kind that begins takes its part once; a rival takes
    /// more each time that it looks for room.
    pub(super) fn is_rate_taken(&self) -> bool {
        self.rate < RATE_TAKEN * self.rate_most && self.rate < RATE_FALLING * self.rate_lately
    }

    /// The window that carries the largest rate of 5 s without a queue.
    pub(super) fn window_most(&self) -> f64 {
        self.rate_most * self.base
    }

    /// Our segments in the queue, if its delay is `delay`.
    pub(super) fn queued(&self, delay: f64) -> f64 {
        self.old * delay / (self.base + delay)
    }

    /// Whether the queue becomes shorter.
    pub(super) fn is_falling(&self) -> bool {
        self.rtt < self.standing + 0.01 * self.queue()
    }

    /// Whether a longer route is likely: a drain has shown the base, and no such route turned out to be a queue in the last minute. A flow that
    /// has never seen an empty queue has come second, and a CUBIC whose window stands still does not vary the RTT either.
    pub(super) fn may_be_route(&self) -> bool {
        self.is_base_shown() && self.now > self.doubted_until && self.is_steady()
    }

    /// Whether the RTT stands still.
    fn is_steady(&self) -> bool {
        self.high.value() - self.least.value() <= 2.0 * self.tolerance
    }

    /// A loss: alpha becomes less, as the buffer may not hold it, but `least` of what it is without losses is left.
    pub(super) fn lose(&mut self, least: f64) {
        let full = self.alpha_full();
        let own = self.queued(self.queue_most()).max(ALPHA_LEAST);
        self.alpha_most = (ALPHA_AFTER_LOSS * full.min(self.alpha_most).min(own)).max(least * full).max(ALPHA_LEAST);
    }

    fn recover_alpha(&mut self, passed: f64) {
        if self.alpha_most.is_finite() {
            self.alpha_most *= 1.0 + ALPHA_GROWTH * passed.max(0.0);
            if self.alpha_most > 3.0 * self.alpha_full() {
                self.alpha_most = f64::INFINITY;
            }
        }
    }

    /// The base stays what it is: a queue that does not become empty hides it.
    pub(super) fn keep_base(&mut self) {
        self.extrema.base.add(self.now, self.base, BASE_SPAN_S);
    }

    /// Whether losses at a queue have taken most of alpha.
    pub(super) fn is_pressed(&self) -> bool {
        self.alpha() < PRESSED * self.alpha_full() && self.queue_most() > self.tolerance
    }

    /// A drain has shown the base.
    pub(super) fn show_base(&mut self) {
        self.shown = self.base;
    }

    pub(super) fn is_base_shown(&self) -> bool {
        self.shown > 0.0
    }

    /// The route is longer: `rtt` is its propagation delay.
    pub(super) fn set_base(&mut self, rtt: f64) {
        self.extrema.base = RecentMin::NONE;
        self.base = self.extrema.base.add(self.now, rtt, BASE_SPAN_S);
        self.route = rtt;
        self.show_base();
        self.reroutes = self.reroutes.saturating_add(1);
        self.extrema.peak = RecentMax::NONE;
        self.own_delay = 0.0;
    }
}

pub(super) fn seconds(time: Time) -> f64 {
    time.since(Time::ZERO).as_secs_f64()
}

/// Segments a second at 75 Mbit/s; alpha is that of the settings at this rate.
const RATE_OF_ALPHA: f64 = 6250.0;

/// As long as BBR keeps its least RTT, and three times more: drains measure it every 5 s.
const BASE_SPAN_S: f64 = 30.0;

/// The span of the largest rate: one interval of drains.
const RATE_SPAN_S: f64 = 5.0;

/// BBR looks for room every eight round trips: at least once in this time, up to an RTT of 125 ms.
const RATE_LATELY_S: f64 = 1.0;

/// Our kind takes a part of 0.15 at a drain, and each new flow less than a half.
const RATE_TAKEN: f64 = 0.5;

/// A rate that does not fall varies by a few parts in a hundred.
const RATE_FALLING: f64 = 0.97;

/// Bursts of this length are no queue.
const BURST_S: f64 = 0.001;

/// Longer is a silence of the path. Without a limit one of three seconds was a noise of nine, for which alpha made up: half of what was sent was lost. The price: on
/// 50 Mbit/s a link that holds everything for 0.15 or 0.3 s each time, which no setting fills, carries 2.5 and 0.4 in place of 3.3 and 1.6.
const HELD_MOST_S: f64 = 0.1;

/// The least tolerance: what clocks and other packets may do.
const TOLERANCE_S: f64 = 0.0005;

/// The span in which an RTT that does not vary is that of a route.
const STEADY_S: f64 = 0.6;

/// After a longer route that was a queue none is believed for so long: there is a rival.
const DOUBTED_S: f64 = 60.0;

/// The span of the long share of losses, in segments.
const LOSSES_LONG: f64 = 150.0;

/// A loss leaves this of alpha, as in CUBIC of the window.
const ALPHA_AFTER_LOSS: f64 = 0.7;

/// Growth of alpha in a second after a loss: from 0.7 back in 3.6 s.
const ALPHA_GROWTH: f64 = 0.1;

/// Three losses in a second or two leave less of alpha.
const PRESSED: f64 = 0.4;

/// The least alpha in segments.
const ALPHA_LEAST: f64 = 0.25;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_near;

    /// ACKs that come each 20 ms are held for 20 ms; a silence of 0.08 to 8 s is one of 0.08 or 0.1 s.
    #[test]
    fn noise_is_what_acks_are_held_and_no_silence() {
        for (silence, noise) in [(0.02, 0.02), (0.08, 0.08 * 0.08 + 0.92 * 0.02), (0.5, 0.01 + 0.5 * 0.02), (8.0, 0.01)]
        {
            let mut model = Model::new(&AnabranchSettings::DEFAULT);
            for _ in 0..100 {
                model.now += 0.02;
                model.hear_noise(0.1);
                model.hear_noise(0.08);
            }
            model.now += silence;
            model.hear_noise(0.08 + silence);
            assert_near(model.noise, noise, 1e-9);
        }
    }

    /// A flow that had 1000 segments a second has 400 of them three seconds later. Whoever took them goes on if there were more than 412 in the last second.
    #[test]
    fn rate_is_taken_while_it_falls() {
        for (lately, is) in [(400.0, false), (410.0, false), (415.0, true), (1000.0, true)] {
            let mut model = Model::new(&AnabranchSettings::DEFAULT);
            for (now, rate) in [(0.0, 1000.0), (2.0, lately), (3.0, 400.0)] {
                (model.now, model.rate) = (now, rate);
                model.remember_rate(rate);
            }
            assert_eq!(model.is_rate_taken(), is, "{lately}");
        }
    }

    /// At 6250 segments a second alpha is √(20² + 6.25²): a loss leaves 0.7 of it behind a queue that holds it, the least where there is no queue.
    #[test]
    fn loss_leaves_part_of_alpha_that_the_queue_held() {
        let full = (400.0_f64 + 39.0625).sqrt();
        for (peak, left) in [(0.1, 0.7 * full), (0.052, 0.7 * 312.5 * 0.002 / 0.052), (0.05, 0.35 * full)] {
            let mut model = Model::new(&AnabranchSettings::DEFAULT);
            (model.base, model.peak, model.old, model.rate) = (0.05, peak, 312.5, 6250.0);
            model.lose(0.35);
            assert_near(model.alpha(), left, 1e-9);
            model.recover_alpha(1.0);
            assert_near(model.alpha(), 1.1 * left, 1e-9);
        }
    }

    /// Two paths carry a quarter and three quarters of 6250 segments a second: they keep a quarter and three quarters of one flow's √(20² + 6.25²) queued.
    #[test]
    fn paths_of_one_queue_have_one_alpha_together() {
        let whole = (400.0_f64 + 39.0625).sqrt();
        for share in [0.25, 0.75] {
            let mut model = Model::new(&AnabranchSettings::DEFAULT);
            (model.share, model.rate) = (share, 6250.0 * share);
            assert_near(model.alpha(), whole * share, 1e-12);
        }
    }

    /// A route of 100 ms cannot become shorter by a rival's loss: what fell by 20 ms was a queue, and none is believed for a minute, nor before a drain has shown
    /// the base again.
    #[test]
    fn route_that_was_a_queue_casts_doubt_on_others() {
        let mut model = Model::new(&AnabranchSettings::DEFAULT);
        (model.now, model.tolerance) = (10.0, 0.002);
        model.set_base(0.1);
        for (at, rtt, is_shown, may) in
            [(11.0, 0.1, true, true), (12.0, 0.099, true, true), (13.0, 0.08, false, false), (73.1, 0.1, false, false)]
        {
            model.now = at;
            model.hear_rtt(rtt, 1.0, 10.0);
            assert_eq!((model.is_base_shown(), model.may_be_route()), (is_shown, may), "at {at}");
        }
        model.show_base();
        for (at, may) in [(40.0, false), (72.9, false), (73.1, true)] {
            model.now = at;
            assert_eq!(model.may_be_route(), may, "at {at}");
        }
    }
}
