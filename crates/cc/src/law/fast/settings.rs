//! The settings of FAST. Each part has its settings in its own module.

use anabranch_units::Span;

use super::base_rtt;
use super::clockwork::Which;
use super::estimator::Weights;
use super::loss::Policy;
use super::refill::Refill;
use super::window::Goal;
use crate::settings::{Fields, INITIAL_WINDOW, Table};

/// The settings of FAST and its parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FastSettings {
    /// The window before the first ACK, in segments.
    pub initial_window: f64,
    /// The goal of the window law.
    pub goal: Goal,
    /// The growth of the window while the queue is short.
    pub increase: MultiplicativeIncrease,
    /// The weight of samples in avgRTT.
    pub weights: Weights,
    /// The clockwork of round trips and steps.
    pub clockwork: Which,
    /// When baseRTT is forgotten.
    pub base_rtt: base_rtt::Reset,
    /// What refills the pipe after fast recovery.
    pub refill: Refill,
    /// The loss policy.
    pub loss: Policy,
}

/// Multiplicative increase: while the queue is short, the window grows by one segment for each acknowledged segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MultiplicativeIncrease {
    /// The queueing delay in seconds below which the window increases multiplicatively.
    pub threshold: f64,
}

impl FastSettings {
    /// The window law alone.
    pub const FAST: Self = Self {
        initial_window: INITIAL_WINDOW,
        // FAST's alpha for 100 Mbit/s: 2.4 ms of queue there, 24 ms at 10 Mbit/s.
        goal: Goal { alpha: 20.0, beta: 0.0, gamma: 0.5 },
        increase: MultiplicativeIncrease { threshold: 0.00075 },
        weights: Weights::NS2,
        clockwork: Which::Own,
        base_rtt: base_rtt::Reset::Never,
        refill: Refill::PerRtt,
        loss: Policy::Halve,
    };
}

impl Table for FastSettings {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.initial_window(&mut self.initial_window);
        let Goal { alpha, beta, gamma } = &mut self.goal;
        let help = "segments to keep queued; has to fit the buffer, and as long as it takes less than about 4 \
                    multiplicative_increase.threshold (3 ms) to send so many at the bottleneck's rate, the window swings and never rests: at \
                    100 Mbit/s and 1040 B at least 36";
        fields.number("alpha", alpha, 1.0..=100_000.0, "segments", help);
        let help = "the window shrinks above this many queued segments; up to alpha there is no dead band";
        fields.number("beta", beta, 0.0..=100_000.0, "segments", help);
        fields.number("gamma", gamma, 0.001..=1.0, "", "share of the way to the target in one update");
        fields.table("multiplicative_increase", &mut self.increase);
        let help = "largest weight of a sample in avgRTT; 0.25 in fast-2006";
        fields.number("average_weight", &mut self.weights.most, 1e-6..=1.0, "", help);
        let help = "round trips, steps, what was in flight and whether the handshake counts for baseRTT: the law's own, or as ns-2's module has \
                    them";
        fields.choice("clockwork", &mut self.clockwork, help);
        let help = "when baseRTT is reset: never, or when the rule of rrfast-2017 detects a longer route";
        fields.choice("base_rtt", &mut self.base_rtt, help);
        let help = "after fast recovery: the window law, or CCaFR of emfast-2019";
        fields.choice("refill", &mut self.refill, help);
        fields.choice(
            "loss",
            &mut self.loss,
            "the losses that halve the window: all, or all but random ones (ctcp-2019)",
        );
    }
}

impl Table for MultiplicativeIncrease {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        let help = "the queueing delay below which the window increases multiplicatively";
        fields.seconds("threshold", &mut self.threshold, Span::ZERO..=Span::from_secs(1), help);
    }
}
