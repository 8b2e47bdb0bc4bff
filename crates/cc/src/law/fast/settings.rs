//! What can be set of FAST and its parts. What a part is set to, the part says.

use anabranch_units::Span;

use super::clockwork::Which;
use super::estimator::Weights;
use super::loss::Policy;
use super::window::Goal;
use super::{base_rtt, drain, memory, noise, refill, rival, share};
use crate::settings::{Fields, INITIAL_WINDOW, Table};

/// What FAST is set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FastSettings {
    /// The window before the first ACK, in segments.
    pub initial_window: f64,
    /// What the window law aims at.
    pub goal: Goal,
    /// `None`: alpha is the same at any rate.
    pub share: Option<share::Rule>,
    /// How the window grows where the queue is short.
    pub increase: MultiplicativeIncrease,
    /// Of samples in avgRTT.
    pub weights: Weights,
    /// Whose round trips and steps.
    pub clockwork: Which,
    /// baseRTT in least RTTs of the path at the most.
    pub base_rise_most: f64,
    /// `None`: baseRTT is never forgotten.
    pub base_rtt: Option<base_rtt::Settings>,
    /// `None`: the window law refills.
    pub refill: Option<refill::Settings>,
    /// What a loss does.
    pub loss: Policy,
    /// `None`: losses are forgotten at once.
    pub memory: Option<memory::Rule>,
    /// `None`: all delay is a queue.
    pub noise: Option<noise::Rule>,
    /// `None`: the window never falls to look at the path.
    pub drain: Option<drain::Rule>,
    /// `None`: who fills the queue gets it. Else drains tell.
    pub rival: Option<rival::Rule>,
}

/// Multiplicative increase: while the queue is short the window grows by each segment that is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MultiplicativeIncrease {
    /// Queueing delay in seconds below which there is one.
    pub threshold: f64,
    /// It ends when so many alpha are queued.
    pub queued_most: f64,
    /// How many windows leave in a round trip, evenly, above one; zero leaves them to the ACKs.
    pub pace: f64,
    /// Whether it doubles the window up to what last filled the path, and beyond that no more than what is beyond.
    pub is_known: bool,
}

impl FastSettings {
    /// The window law alone, without bounds that its papers do not have.
    pub const FAST: Self = Self {
        initial_window: INITIAL_WINDOW,
        // FAST's alpha for 100 Mbit/s: 2.4 ms of queue there, 24 ms at 10 Mbit/s.
        goal: Goal { alpha: 20.0, beta: 0.0, gamma: 0.5 },
        share: None,
        increase: MultiplicativeIncrease { threshold: 0.00075, queued_most: UNBOUNDED, pace: 0.0, is_known: false },
        weights: Weights::NS2,
        clockwork: Which::Own,
        base_rise_most: UNBOUNDED,
        base_rtt: None,
        refill: None,
        loss: Policy::Halve,
        memory: None,
        noise: None,
        drain: None,
        rival: None,
    };
}

/// So many times that it bounds nothing.
const UNBOUNDED: f64 = 1e6;

impl Table for FastSettings {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        fields.initial_window(&mut self.initial_window);
        let Goal { alpha, beta, gamma } = &mut self.goal;
        let help = "segments to keep queued; has to fit the buffer, and as long as it takes less than about 4 \
                    multiplicative_increase.threshold (3 ms) to send so many at the bottleneck's rate, the window swings and never rests: at \
                    100 Mbit/s and 1040 B at least 36";
        fields.number("alpha", alpha, 1.0..=100_000.0, "segments", help);
        let help = "more queued segments shrink the window; no dead band unless above alpha";
        fields.number("beta", beta, 0.0..=100_000.0, "segments", help);
        fields.number("gamma", gamma, 0.001..=1.0, "", "how much of the way to the target one update goes");
        let help = "whether alpha is the same at any rate, or goes with its root";
        fields.choice("alpha_by_rate", &mut self.share, help);
        fields.table("multiplicative_increase", &mut self.increase);
        let help = "largest weight of a sample in avgRTT; 0.25 in fast-2006";
        fields.number("average_weight", &mut self.weights.most, 1e-6..=1.0, "", help);
        let help = "round trips, steps, what was in flight and whether the handshake counts for baseRTT: the law's own, or as ns-2's module has \
                    them; that not with drains";
        fields.choice("clockwork", &mut self.clockwork, help);
        let help = "bound: baseRTT in least RTTs of the path; 1000000 is none";
        fields.number("base_rise_most", &mut self.base_rise_most, 1.0..=UNBOUNDED, "", help);
        let help = "when baseRTT is forgotten: never, or when rrfast-2017 sees a longer route";
        fields.choice("base_rtt", &mut self.base_rtt, help);
        let help = "after fast recovery: the window law, or CCaFR of emfast-2019";
        fields.choice("refill", &mut self.refill, help);
        let help = "what halves the window: every loss, all but a random one (ctcp-2019), or what a trial shows to be congestion";
        fields.choice("loss", &mut self.loss, help);
        let help = "whether a loss without a queue is kept in mind";
        fields.choice("memory", &mut self.memory, help);
        let help = "whether delay that is no queue is told from one that is";
        fields.choice("noise", &mut self.noise, help);
        let help = "whether the window falls from time to time, so that the path shows itself without the queue";
        fields.choice("drain", &mut self.drain, help);
        let help = "beside a rival that fills the queue, which drains show: yield, or the window of CUBIC; a longer route is told from it";
        fields.choice("rival", &mut self.rival, help);
    }
}

impl Table for MultiplicativeIncrease {
    fn visit(&mut self, fields: &mut Fields<'_>) {
        let help = "there is one below this queueing delay";
        fields.seconds("threshold", &mut self.threshold, Span::ZERO..=Span::from_secs(1), help);
        let help = "bound: it ends when so many alpha are queued; 1000000 is none";
        fields.number("queued_most", &mut self.queued_most, 0.0..=UNBOUNDED, "", help);
        let help = "how many windows leave in a round trip, evenly, above 1; 0 leaves them to the ACKs";
        fields.number("pace", &mut self.pace, 0.0..=1000.0, "", help);
        let help =
            "bound: it doubles the window up to what last filled the path, and beyond that no more than what is beyond";
        fields.switch("known", &mut self.is_known, help);
    }
}
