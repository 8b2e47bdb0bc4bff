//! The delivery rate of a path: the largest of recent rounds, in bytes a second.
//!
//! A window over an RTT estimates the capacity of a path, but is wrong by a fifth either way while the RTT swings with a queue that
//! the path itself fills. The bytes delivered in a round cannot exceed the capacity. The maximum over the last rounds ignores
//! rounds with little to send.
//!
//! Citation: [bbr-2016], whose bottleneck bandwidth is such a maximum over ten round trips. Differs from it in: a sample is a
//! round, not an ACK; the maximum is of two generations of eight rounds, so only two numbers are stored.

use anabranch_units::Span;

/// The largest recent delivery rate of one path.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeliveryRate {
    /// The maximum over the rounds of this generation, and of the one before.
    best: f64,
    best_before: f64,
    /// Rounds of this generation.
    rounds: u32,
}

impl DeliveryRate {
    /// A round in which `bytes` bytes were delivered is over.
    pub(crate) fn on_round(&mut self, bytes: f64, elapsed: Span) {
        if elapsed == Span::ZERO {
            return;
        }
        self.best = self.best.max(bytes / elapsed.as_secs_f64());
        self.rounds += 1;
        if self.rounds == GENERATION {
            *self = Self { best: 0.0, best_before: self.best, rounds: 0 };
        }
    }

    /// Bytes a second; `None` before the end of the first round.
    pub(crate) fn best(&self) -> Option<f64> {
        let best = self.best.max(self.best_before);
        (best > 0.0).then_some(best)
    }
}

/// Rounds of a generation: the maximum covers eight to sixteen rounds, around the ten of [bbr-2016].
const GENERATION: u32 = 8;
