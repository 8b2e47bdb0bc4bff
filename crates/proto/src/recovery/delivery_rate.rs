//! The delivery rate of a path: what it has delivered at best of late, in bytes a second.
//!
//! A window over an RTT says what a path could carry if nothing else held it back, and is wrong by a fifth either way while the RTT
//! swings with a queue that the path itself fills. What came of it in a round cannot exceed what the path carries. The best of the
//! last rounds stands for all of them, so that a round in which there was nothing to send counts for nothing.
//!
//! Citation: [bbr-2016], whose bottleneck bandwidth is such a maximum over ten round trips. Differs from it in: a sample is a
//! round and not an ACK, and the maximum is that of two generations of eight rounds: no more than two numbers are kept.

use anabranch_units::Span;

/// What one path delivers at best.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeliveryRate {
    /// The best of the rounds of this generation, and of the one before.
    best: f64,
    best_before: f64,
    /// Rounds of this generation.
    rounds: u32,
}

impl DeliveryRate {
    /// A round in which so many bytes arrived is over.
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

    /// Bytes a second; none before the first round is over.
    pub(crate) fn best(&self) -> Option<f64> {
        let best = self.best.max(self.best_before);
        (best > 0.0).then_some(best)
    }
}

/// Rounds of a generation: what is remembered is eight to sixteen of them, around the ten of [bbr-2016].
const GENERATION: u32 = 8;
