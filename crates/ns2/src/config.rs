//! The settings that an ns-2 script makes on a sender and its sink before the start.

pub use anabranch_cc::law::fast::base_rtt::Average;
use anabranch_cc::law::fast::loss::Policy;
use anabranch_cc::law::fast::refill::Refill;
use anabranch_cc::law::fast::window::{Goal, PERIOD};
use anabranch_cc::law::fast::{FastSettings, base_rtt};
use anabranch_units::SimSpan;

/// The senders of ns-2.35 that the papers used, and Composite TCP on top of SACK.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Agent {
    /// The agent `Agent/TCP/Reno`.
    Reno,
    /// The agent `Agent/TCP/Newreno`.
    NewReno(NewRenoOptions),
    /// The agent `Agent/TCP/Sack1`.
    Sack,
    /// The agent `Agent/TCP/Fack`.
    Fack,
    /// The agent `Agent/TCP/Vegas`.
    Vegas(VegasOptions),
    /// `Agent/TCP/FS`: Tahoe with fast start.
    FastStart,
    /// `Agent/TCP/Linux` without `select_ca`.
    Linux,
    /// `Agent/TCP/Sack1` with the loss policy of ctcp-2019.
    Composite(CompositeOptions),
    /// `Agent/TCP/Fast`, the CUBIN module v1.1.3, with the parts that the papers add.
    Fast(FastOptions),
}

/// The module's variables, and the papers' parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FastOptions {
    /// Packets to keep queued. If fewer are queued, the window is updated (`alpha_`).
    pub alpha: f64,
    /// If this many or more are queued, the window is updated, too (`beta_`). With `beta` at or below `alpha` it is always
    /// updated.
    pub beta: f64,
    /// Share of the distance to the target that one update covers (`gamma_`).
    pub gamma: f64,
    /// Queueing delay in seconds below which the window increases multiplicatively (`mi_threshold_`).
    pub mi_threshold: f64,
    /// Least time in seconds between two updates (`cwnd_update_period_`).
    pub period: f64,
    /// When baseRTT is reset.
    pub base: BaseRtt,
    /// The growth of the window after a recovery.
    pub refill: Refill,
    /// The reaction of the window to a loss.
    pub loss: LossPolicy,
}

impl Default for FastOptions {
    fn default() -> Self {
        Self {
            alpha: 100.0,
            beta: 100.0,
            gamma: 0.5,
            mi_threshold: 0.00075,
            period: PERIOD,
            base: BaseRtt::Min,
            refill: Refill::PerRtt,
            loss: LossPolicy::Halve,
        }
    }
}

impl FastOptions {
    /// The settings of a law of the FAST family that the agent supports.
    pub const PARAMETERS: [&str; 16] = [
        "alpha",
        "beta",
        "gamma",
        "multiplicative_increase.threshold",
        "base_rtt",
        "base_rtt.reading",
        "base_rtt.wait",
        "base_rtt.average",
        "refill",
        "refill.gapflag",
        "refill.ipd_weight",
        "refill.ipd_tolerance",
        "refill.rtt_tolerance",
        "refill.flight",
        "refill.rtt",
        "loss",
    ];

    /// The options for the settings of a law of the FAST family. Settings outside [`Self::PARAMETERS`] are ignored.
    pub fn from_settings(settings: &FastSettings) -> Self {
        let Goal { alpha, beta, gamma } = settings.goal;
        Self {
            alpha,
            beta,
            gamma,
            mi_threshold: settings.increase.threshold,
            period: PERIOD,
            base: settings.base_rtt.settings().map_or(BaseRtt::Min, |it| BaseRtt::Reroute(it.rule(), it.average)),
            refill: settings.refill,
            loss: match settings.loss {
                Policy::Halve => LossPolicy::Halve,
                Policy::Composite => LossPolicy::Composite(CompositeOptions::default()),
            },
        }
    }
}

/// When baseRTT is reset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BaseRtt {
    /// Never: the minimum of all samples.
    Min,
    /// When a longer route is detected (rrfast-2017). The second value says what happens to avgRTT then.
    Reroute(base_rtt::Rule, Average),
}

/// The response of the window to a loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossPolicy {
    /// The window is halved.
    Halve,
    /// No response if the loss is random (ctcp-2019).
    Composite(CompositeOptions),
}

/// Options of New Reno in which versions of ns-2 differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewRenoOptions {
    /// Restart the retransmission timer only for the first partial ACK of an episode (ns-2's `newreno_changes1_`, the
    /// "impatient" variant of RFC 6582). On in 2.35, off in old ns.
    pub impatient: bool,
}

impl Default for NewRenoOptions {
    fn default() -> Self {
        Self { impatient: true }
    }
}

/// Vegas' bounds on the packets that it keeps queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VegasOptions {
    /// Below this many queued packets the window grows (`v_alpha_`).
    pub alpha: i32,
    /// Above this many it shrinks (`v_beta_`).
    pub beta: i32,
    /// Above this many slow start ends (`v_gamma_`).
    pub gamma: i32,
}

impl Default for VegasOptions {
    fn default() -> Self {
        Self { alpha: 1, beta: 3, gamma: 1 }
    }
}

/// The readings of ctcp-2019, whose text leaves three choices open. `experiments/ctcp-2019/readings.toml` has the results of
/// each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompositeOptions {
    /// Which SACK pattern says "random".
    pub holes: HoleTest,
    /// Which RTT confirms that the loss is random.
    pub rtt: RttTest,
    /// The reaction to duplicate ACKs after a loss classified as random.
    pub send: SendRule,
}

impl Default for CompositeOptions {
    fn default() -> Self {
        Self { holes: HoleTest::AtThirdDuplicate, rtt: RttTest::Coarse, send: SendRule::OnePerDuplicate }
    }
}

/// Which SACK pattern classifies a loss as random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoleTest {
    /// No pattern is tested: every loss may be random.
    Ignored,
    /// Exactly one packet is missing at the third duplicate ACK.
    AtThirdDuplicate,
    /// As `AtThirdDuplicate`, but a second hole later in the same window revokes it: the sender halves its window and recovers as
    /// SACK does.
    WholeWindow,
}

/// Which RTT confirms that a loss is random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttTest {
    /// No RTT is tested: every loss may be random.
    Ignored,
    /// The last sample of the coarse clock is at most the smoothed one, in whole ticks.
    Coarse,
    /// The fine-grained RTT of the last ACK of new data is at most its mean with weight 1/8.
    Fine,
}

/// The effect of duplicate ACKs after a random loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendRule {
    /// No packet is sent until the hole is filled.
    Nothing,
    /// Each packet that was delivered is replaced by a new one, even beyond the receiver's window.
    ReplaceDelivered,
    /// Each further duplicate ACK sends one new packet, if the receiver's window has room for it.
    OnePerDuplicate,
}

/// Everything about a sender that a script can set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderConfig {
    /// The ns-2 agent to model.
    pub agent: Agent,
    /// Bytes of payload in a packet (`packetSize_`). All agents but Vegas add 40 bytes of headers.
    pub payload: u32,
    /// Receiver's window in packets (`window_`): the bound on the congestion window and the first `ssthresh`.
    pub window: f64,
    /// Congestion window after the ACK of the SYN (`windowInit_`).
    pub window_initial: f64,
    /// Lower bound of the retransmission timeout (`minrto_`).
    pub rto_min: SimSpan,
    /// Packets that may leave back to back on one ACK (`maxburst_`); 0 is no limit.
    pub burst_max: u32,
    /// Whether halving keeps fractions of a packet (`precisionReduce_`). On in 2.35, off in old ns.
    pub precise_halving: bool,
    /// Whether the first packet is a bare SYN (`syn_`). If not, it carries data like the others.
    pub syn: bool,
    /// Phase of the coarse clock, below one tick (`boot_time_`).
    pub clock_phase: SimSpan,
}

impl SenderConfig {
    /// The defaults of ns-2.35, with the clock at phase zero.
    pub fn new(agent: Agent) -> Self {
        Self {
            agent,
            payload: 1000,
            window: 20.0,
            window_initial: 2.0,
            rto_min: SimSpan::from_millis(200),
            burst_max: 0,
            precise_halving: true,
            syn: true,
            clock_phase: SimSpan::ZERO,
        }
    }

    /// Bytes on the wire of a data packet, headers included.
    pub fn packet_size(&self) -> u32 {
        match self.agent {
            Agent::Vegas(_) => self.payload,
            _ => self.payload + crate::HEADER,
        }
    }
}

impl Agent {
    /// How many numbers the creation of this agent draws from ns-2's default random stream. Each agent draws the phase of its
    /// clock once, Vegas and FAST twice. The start of the simulation draws each phase once more.
    pub fn draws_at_creation(&self) -> usize {
        if matches!(self, Self::Vegas(_) | Self::Fast(_)) { 2 } else { 1 }
    }

    /// Whether the papers' scripts use a sink with SACK blocks for this agent.
    pub fn wants_sack(&self) -> bool {
        matches!(self, Self::Sack | Self::Fack | Self::Linux | Self::Composite(_) | Self::Fast(_))
    }
}

/// The sinks of ns-2.35.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkConfig {
    /// Whether ACKs carry SACK blocks (`Agent/TCPSink/Sack1`).
    pub sack: bool,
    /// How long the ACK of a packet may wait for a second packet (`interval_` of the `DelAck` sinks). `None` acknowledges each
    /// packet at once.
    pub delay: Option<SimSpan>,
}

impl SinkConfig {
    /// `interval_` of ns-2's delayed-ACK sinks.
    pub const DELAY: SimSpan = SimSpan::from_millis(100);

    /// The sink that acknowledges each packet at once, with SACK blocks if `agent` reads them.
    pub fn for_agent(agent: &Agent) -> Self {
        Self { sack: agent.wants_sack(), delay: None }
    }
}
