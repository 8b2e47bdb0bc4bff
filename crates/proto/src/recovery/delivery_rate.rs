//! The delivery rate of a path: the maximum of recent rounds, in bytes per second.
//!
//! A window divided by an RTT estimates the capacity of a path, but is wrong by up to a fifth while the RTT oscillates with a
//! queue that the path itself fills. The bytes delivered in a round cannot exceed the capacity. The maximum over the last rounds
//! ignores rounds in which little was sent.
//!
//! Citation: [bbr-2016], whose bottleneck bandwidth is such a maximum over ten round trips. Differs from it in: a sample is a
//! round, not an ACK; the maximum is taken over two generations of eight rounds, so that only two numbers are stored.

use anabranch_units::Span;

/// The largest recent delivery rate of one path.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeliveryRate {
    /// The maximum over the rounds of this generation, and of the one before.
    best: f64,
    best_before: f64,
    /// Rounds so far in this generation.
    rounds: u32,
}

impl DeliveryRate {
    /// A round ended in which `bytes` bytes were delivered.
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

    /// Bytes per second; `None` before the end of the first round.
    pub(crate) fn best(&self) -> Option<f64> {
        let best = self.best.max(self.best_before);
        (best > 0.0).then_some(best)
    }
}

/// Rounds of a generation: the maximum covers eight to sixteen rounds, around the ten of [bbr-2016].
const GENERATION: u32 = 8;
