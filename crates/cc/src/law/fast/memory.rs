//! What a loss tells where delay told nothing: alpha does not fit, and multiplicative increase goes too far.
//!
//! ```text
//! loss with less than 3/4 alpha queued:  alpha ← max(half of what was queued, 2)
//! every `span` without such a loss:      alpha ← min(2 alpha, alpha as set)
//! any loss:                              no multiplicative increase above half of the window that lost for a `span`, and
//!                                        for another one not above that window
//! ```
//!
//! but only while more than a share of all segments is lost, or under [`super::trial`] while a loss is congestion: on a link that loses
//! at random, alpha has nothing to do with it.
//!
//! Why: where the buffer holds less than alpha, or a policer has none, no delay ever tells FAST to stop. It fills an empty
//! queue by doubling, or by alpha/4 segments a round trip, and loses at each turn.
//!
//! Citation: none; the sum of what [rfc-5681] sec. 3.1 does with ssthresh and of fast-2006 sec. III-A, where alpha has to fit
//! the buffers.

use anabranch_units::Span;

use crate::number::is_known;
use crate::settings::{Choice, Fields};

/// What the part is set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// How long a loss is kept in mind, in seconds; more than zero.
    pub span: f64,
}

impl Choice for Option<Rule> {
    const KINDS: &'static [(&'static str, Self)] = &[("off", None), ("on", Some(Rule { span: 10.0 }))];

    fn visit(&mut self, fields: &mut Fields<'_>) {
        if let Some(Rule { span }) = self {
            let help = "how long a loss without a queue makes alpha fit, and ends multiplicative increase";
            fields.seconds("span", span, Span::from_millis(1)..=Span::from_secs(3600), help);
        }
    }
}

/// The least alpha that a loss leaves: at the default gamma, growth of half a segment a round trip, no faster than Reno's.
const ALPHA_MIN: f64 = 2.0;

/// The share of alpha below which a queue is none of FAST's. Beside a rival that fills the queue, a flow has about alpha in it
/// when something is lost, now more, now less: that is no reason to give way.
const FITTING: f64 = 0.75;

/// The share of segments that may be lost before a loss is kept in mind, where no trial tells what it is: more than links lose at random
/// that are worth using, and less than a policer takes.
pub(crate) const ABOVE: f64 = 0.02;

/// What is kept in mind of losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// Segments to keep queued; at most as set.
    alpha: f64,
    /// Where multiplicative increase and a refill end, in segments; infinite without a loss in mind.
    most: f64,
    /// Where it ends after a time without a loss, in segments; infinite without a loss in mind.
    again: f64,
    /// When the last loss was, in seconds.
    lost: f64,
    /// When alpha changed last, in seconds.
    changed: f64,
    share: Share,
}

impl Memory {
    /// No loss in mind; `alpha` as set, in segments.
    pub const fn new(alpha: f64) -> Self {
        let (most, again) = (f64::INFINITY, f64::INFINITY);
        Self { alpha, most, again, lost: f64::NEG_INFINITY, changed: f64::NEG_INFINITY, share: Share::new() }
    }

    /// So many segments were acknowledged, and so many sent again.
    pub fn count(&mut self, acked: f64, resent: f64) {
        self.share.acked += acked;
        self.share.resent += resent;
    }

    /// A loss at `now` seconds, with `queued` segments of the flow in the queue, that leaves `halved` segments of its window.
    /// It is kept in mind if more than the share `above` is lost.
    pub fn on_loss(&mut self, now: f64, halved: f64, queued: f64, above: f64) {
        if self.share.on_loss() <= above {
            return;
        }
        if queued < FITTING * self.alpha {
            (self.alpha, self.changed) = (self.alpha.min((0.5 * queued).max(ALPHA_MIN)), now);
        }
        (self.most, self.again, self.lost) = (halved, 2.0 * halved, now);
    }

    /// Time passes: after `span` seconds without a loss something is given back; `alpha` is as set.
    pub fn on_ack(&mut self, now: f64, alpha: f64, span: f64) {
        // Up to the window that lost first, then as far as it goes.
        if is_known(self.most) {
            if now - self.lost >= 2.0 * span {
                (self.most, self.again) = (f64::INFINITY, f64::INFINITY);
            } else if now - self.lost >= span {
                self.most = self.again;
            }
        }
        if self.alpha < alpha && now - self.changed >= span {
            (self.alpha, self.changed) = (alpha.min(2.0 * self.alpha), now);
        }
    }

    /// Segments to keep queued.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Whether a window may increase multiplicatively.
    pub fn has_room(&self, window: f64) -> bool {
        window < self.most
    }

    /// What a refill from `window` to `wanted` may come to, and whether there is more to come.
    pub fn bound(&self, window: f64, wanted: f64) -> (f64, bool) {
        let most = self.most.max(window);
        if wanted > most { (most, false) } else { (wanted, true) }
    }
}

/// The share of segments that is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Share {
    /// Segments acknowledged since the last loss.
    acked: f64,
    /// Segments sent again since the last loss: one loss may be of many.
    resent: f64,
    /// Segments acknowledged for each that is lost, smoothed.
    interval: f64,
}

impl Share {
    /// As in [`mod@crate::composite`]: fifteen losses or so show a change.
    const WEIGHT: f64 = 0.125;

    /// No interval counts for more: a long clean time does not outweigh the present.
    const INTERVAL_MOST: f64 = 200.0;

    const fn new() -> Self {
        Self { acked: 0.0, resent: 0.0, interval: Self::INTERVAL_MOST }
    }

    /// A loss ends an interval: the share lost.
    fn on_loss(&mut self) -> f64 {
        let interval = (self.acked / self.resent.max(1.0)).min(Self::INTERVAL_MOST);
        self.interval += (interval - self.interval) * Self::WEIGHT;
        (self.acked, self.resent) = (0.0, 0.0);
        1.0 / (self.interval + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_near;

    /// Fourteen segments were queued where twenty were wanted: seven fit. Ten seconds later fourteen are tried, then twenty.
    #[test]
    fn alpha_fits_after_a_loss_and_comes_back() {
        let mut memory = Memory::new(20.0);
        memory.on_loss(100.0, 30.0, 14.0, 0.0);
        assert_near(memory.alpha(), 7.0, 0.0);
        assert!(memory.has_room(29.0) && !memory.has_room(30.0));
        assert_eq!(memory.bound(29.0, 29.5), (29.5, true));
        assert_eq!((memory.bound(29.0, 31.0), memory.bound(40.0, 41.0)), ((30.0, false), (40.0, false)));
        memory.on_ack(109.9, 20.0, 10.0);
        assert_near(memory.alpha(), 7.0, 0.0);
        memory.on_ack(110.0, 20.0, 10.0);
        assert_near(memory.alpha(), 14.0, 0.0);
        assert!(memory.has_room(59.0) && !memory.has_room(60.0));
        memory.on_ack(120.0, 20.0, 10.0);
        assert_near(memory.alpha(), 20.0, 0.0);
        assert!(memory.has_room(1000.0));
        memory.on_ack(990.0, 20.0, 10.0);
        assert_near(memory.alpha(), 20.0, 0.0);
    }

    /// A full queue is no reason to keep less in it: a rival may have filled it.
    #[test]
    fn a_loss_with_a_queue_leaves_alpha() {
        let mut memory = Memory::new(20.0);
        memory.on_loss(100.0, 30.0, 15.5, 0.0);
        assert_near(memory.alpha(), 20.0, 0.0);
        memory.on_loss(101.0, 15.0, 0.3, 0.0);
        assert_near(memory.alpha(), ALPHA_MIN, 0.0);
    }

    /// One of 100 segments lost is random; one of ten is not, once that is seen.
    #[test]
    fn few_losses_are_not_kept_in_mind() {
        let mut memory = Memory::new(20.0);
        for _ in 0..100 {
            memory.count(99.0, 1.0);
            memory.on_loss(5.0, 30.0, 0.0, 0.02);
        }
        assert_near(memory.alpha(), 20.0, 0.0);
        for _ in 0..20 {
            memory.count(18.0, 2.0);
            memory.on_loss(5.0, 30.0, 0.0, 0.02);
        }
        assert_near(memory.alpha(), ALPHA_MIN, 0.0);
    }

    /// An alpha that is less as set stays.
    #[test]
    fn a_small_alpha_is_not_raised() {
        let mut memory = Memory::new(1.0);
        memory.on_loss(0.0, 10.0, 0.0, 0.0);
        assert_near(memory.alpha(), 1.0, 0.0);
    }
}
