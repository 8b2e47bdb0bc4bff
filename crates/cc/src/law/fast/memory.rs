//! The memory of losses that came without delay: alpha does not fit into the buffer, or multiplicative increase went too far.
//!
//! ```text
//! loss with less than 3/4 alpha queued:  alpha ← max(half of the queued segments, 2)
//! every `span` without such a loss:      alpha ← min(2 alpha, alpha as set)
//! any loss at window v:                  no multiplicative increase above v/2 for one `span`,
//!                                        and none above v for another `span`
//! ```
//!
//! Both hold only while more than a certain share of all segments is lost, or under [`super::trial`] while a loss is congestion: on a link
//! with random losses, alpha is not the cause.
//!
//! Why: if the buffer holds less than alpha, or a policer has no buffer, no delay ever tells FAST to stop. It fills the empty
//! queue by doubling, or by alpha/4 segments a round trip, and has losses each time.
//!
//! Citation: none. It combines the use of ssthresh in [rfc-5681] sec. 3.1 with fast-2006 sec. III-A, by which alpha has to fit
//! into the buffers.

use anabranch_units::Span;

use crate::number::is_known;
use crate::settings::{Choice, Fields};

/// The settings of this part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The time for which a loss is remembered, in seconds; more than zero.
    pub span: f64,
}

impl Choice for Option<Rule> {
    const KINDS: &'static [(&'static str, Self)] = &[("off", None), ("on", Some(Rule { span: 10.0 }))];

    fn visit(&mut self, fields: &mut Fields<'_>) {
        if let Some(Rule { span }) = self {
            let help = "time for which a loss without a queue limits alpha and multiplicative increase";
            fields.seconds("span", span, Span::from_millis(1)..=Span::from_secs(3600), help);
        }
    }
}

/// The least alpha that a loss leaves: at the default gamma, growth of half a segment a round trip, no faster than Reno's.
const ALPHA_MIN: f64 = 2.0;

/// A loss lowers alpha only if less than this share of alpha is queued. Beside a rival that fills the queue, a flow has about alpha in it
/// at a loss, sometimes more, sometimes less: that is no reason to give way.
const FITTING: f64 = 0.75;

/// The share of lost segments above which a loss is remembered, where no trial shows its cause: more than usable links lose at random,
/// and less than a policer drops.
pub(crate) const ABOVE: f64 = 0.02;

/// What is remembered of losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// Segments to keep queued; at most the alpha that is set.
    alpha: f64,
    /// The window at which multiplicative increase and a refill end, in segments; infinite if no loss is remembered.
    most: f64,
    /// The window at which they end after a `span` without a loss, in segments; infinite if no loss is remembered.
    again: f64,
    /// When the last loss was, in seconds.
    lost: f64,
    /// When alpha changed last, in seconds.
    changed: f64,
    share: Share,
}

impl Memory {
    /// A memory without a loss; `alpha` is the one that is set, in segments.
    pub const fn new(alpha: f64) -> Self {
        let (most, again) = (f64::INFINITY, f64::INFINITY);
        Self { alpha, most, again, lost: f64::NEG_INFINITY, changed: f64::NEG_INFINITY, share: Share::new() }
    }

    /// Counts acknowledged and retransmitted segments.
    pub fn count(&mut self, acked: f64, resent: f64) {
        self.share.acked += acked;
        self.share.resent += resent;
    }

    /// Handles a loss at `now` seconds, with `queued` segments of the flow in the queue, which leaves a window of `halved` segments.
    /// It is remembered if more than the share `above` of the segments is lost.
    pub fn on_loss(&mut self, now: f64, halved: f64, queued: f64, above: f64) {
        if self.share.on_loss() <= above {
            return;
        }
        if queued < FITTING * self.alpha {
            (self.alpha, self.changed) = (self.alpha.min((0.5 * queued).max(ALPHA_MIN)), now);
        }
        (self.most, self.again, self.lost) = (halved, 2.0 * halved, now);
    }

    /// Raises the limits again after `span` seconds without a loss; `alpha` is the one that is set.
    pub fn on_ack(&mut self, now: f64, alpha: f64, span: f64) {
        // First up to the window at the loss, then without a limit.
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

    /// Whether `window` may increase multiplicatively.
    pub fn has_room(&self, window: f64) -> bool {
        window < self.most
    }

    /// The window that a refill from `window` to `wanted` may reach, and whether that is less than `wanted`.
    pub fn bound(&self, window: f64, wanted: f64) -> (f64, bool) {
        let most = self.most.max(window);
        if wanted > most { (most, false) } else { (wanted, true) }
    }
}

/// The share of lost segments.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Share {
    /// Segments acknowledged since the last loss.
    acked: f64,
    /// Segments retransmitted since the last loss: one loss may hold many.
    resent: f64,
    /// Segments acknowledged for each lost one, smoothed.
    interval: f64,
}

impl Share {
    /// As in [`mod@crate::composite`]: about fifteen losses show a change.
    const WEIGHT: f64 = 0.125;

    /// The limit of an interval, so that a long time without loss does not outweigh the present.
    const INTERVAL_MOST: f64 = 200.0;

    const fn new() -> Self {
        Self { acked: 0.0, resent: 0.0, interval: Self::INTERVAL_MOST }
    }

    /// Ends an interval with a loss. Returns the share of lost segments.
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

    /// Fourteen segments were queued and twenty were wanted: alpha becomes seven. Ten seconds later it becomes fourteen, then twenty.
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

    /// One lost of 100 segments is random. One of ten is not, once the share is known.
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

    /// An alpha that is set below the least one stays.
    #[test]
    fn a_small_alpha_is_not_raised() {
        let mut memory = Memory::new(1.0);
        memory.on_loss(0.0, 10.0, 0.0, 0.0);
        assert_near(memory.alpha(), 1.0, 0.0);
    }
}
