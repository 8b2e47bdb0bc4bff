//! What can be set of FAST and its parts, and the presets that differ in nothing but their defaults.

use anabranch_units::Span;

use super::base_rtt;
use super::drain;
use super::estimator::Weights;
use super::loss::Policy;
use super::noise;
use super::refill::{self, Flight, GapTest, Rtt};
use super::trial;
use super::window::Goal;
use crate::registry::{INITIAL_WINDOW, Kind, Parameter, Settings};

/// How many parameters there are.
pub(crate) const COUNT: usize = 34;

/// The defaults in which the rows of the family differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preset {
    pub(crate) base_rtt: &'static str,
    pub(crate) reroute_rule: &'static str,
    pub(crate) refill: &'static str,
    pub(crate) ipd_weight: f64,
    pub(crate) loss: &'static str,
    pub(crate) average_weight: f64,
    pub(crate) probe_queued_most: f64,
    pub(crate) probe_pace: f64,
    pub(crate) probe_known: bool,
    pub(crate) base_rise_most: f64,
    pub(crate) reroute_interval: Span,
    pub(crate) probe_in_refill: bool,
    pub(crate) random_loss_most: f64,
    pub(crate) drain_interval: Span,
    pub(crate) drain_unseen: bool,
    pub(crate) loss_memory: Span,
    pub(crate) noise_least: Span,
    pub(crate) base_window: Span,
}

impl Preset {
    /// The window law alone, without bounds that its papers do not have.
    pub(crate) const FAST: Self = Self {
        base_rtt: "min",
        reroute_rule: "not_near",
        refill: "per_rtt",
        ipd_weight: refill::Rule::RECOMMENDED.ipd_weight,
        loss: "halve",
        average_weight: Weights::NS2.most,
        probe_queued_most: UNBOUNDED,
        probe_pace: 0.0,
        probe_known: false,
        base_rise_most: UNBOUNDED,
        reroute_interval: Span::from_secs(0),
        probe_in_refill: false,
        random_loss_most: 1.0,
        drain_interval: Span::from_secs(0),
        drain_unseen: false,
        loss_memory: Span::from_secs(0),
        noise_least: Span::from_secs(0),
        base_window: Span::from_secs(0),
    };
}

/// So many times that it bounds nothing.
const UNBOUNDED: f64 = 1e6;

/// The table of one row.
pub(crate) const fn table(preset: &Preset) -> [Parameter; COUNT] {
    [
        INITIAL_WINDOW,
        // FAST's value for 100 Mbit/s: 2.4 ms of queue there, 24 ms at 10 Mbit/s.
        number(
            "alpha",
            "segments to keep queued; has to fit the buffer, and as long as it takes less than about 4 mi_threshold (3 ms) to send so \
             many at the bottleneck's rate, the window swings and never rests: at 100 Mbit/s and 1040 B at least 36",
            "segments",
            20.0,
            1.0,
            100_000.0,
        ),
        number(
            "beta",
            "more queued segments shrink the window; no dead band unless above alpha",
            "segments",
            0.0,
            0.0,
            100_000.0,
        ),
        number("gamma", "how much of the way to the target one update goes", "", 0.5, 0.001, 1.0),
        span(
            "mi_threshold",
            "below this queueing delay the window grows by the ACK",
            Span::from_micros(750),
            Span::from_secs(1),
        ),
        number(
            "probe_queued_most",
            "bound: growth by the ACK ends when so many alpha are queued; 1000000 is none",
            "",
            preset.probe_queued_most,
            0.0,
            UNBOUNDED,
        ),
        number(
            "probe_pace",
            "growth by the ACK: how many windows leave in a round trip, evenly, above 1; 0 leaves them to the ACKs",
            "",
            preset.probe_pace,
            0.0,
            1000.0,
        ),
        switch(
            "probe_known",
            "bound: growth by the ACK doubles the window up to what last filled the path, and beyond that no more than what is beyond",
            preset.probe_known,
        ),
        span(
            "loss_memory",
            "bound: how long a loss without a queue makes alpha fit, and ends growth by the ACK; 0s is none",
            preset.loss_memory,
            Span::from_secs(3600),
        ),
        span(
            "noise_least",
            "noise: alpha is at least what passes in the time for which ACKs are held back without a queue, or in this; 0s takes all delay for a queue",
            preset.noise_least,
            Span::from_secs(1),
        ),
        span(
            "base_window",
            "drain: how long a least RTT is kept in mind at the least, twice as long at the most; 0s is for ever",
            preset.base_window,
            Span::from_secs(3600),
        ),
        switch(
            "module_steps",
            "round trips, whole steps and what was in flight as ns-2's module has them; not with drains",
            false,
        ),
        switch(
            "handshake_rtt",
            "the handshake counts for baseRTT, though it is shorter than data, as in ns-2's module",
            false,
        ),
        number(
            "average_weight",
            "largest weight of a sample in avgRTT; 0.25 in fast-2006",
            "",
            preset.average_weight,
            1e-6,
            1.0,
        ),
        choice(
            "base_rtt",
            "when baseRTT is forgotten: never, or when rrfast-2017 sees a longer route",
            preset.base_rtt,
            &["min", "reroute"],
        ),
        choice(
            "reroute_rule",
            "reroute: what makes a decrease futile; the last is the paper's words",
            preset.reroute_rule,
            &["not_near", "no_fall", "both", "literal"],
        ),
        number("reroute_wait", "reroute: how long a decrease is watched", "RTT", 2.0, 0.0, 1000.0),
        choice("reroute_average", "reroute: what becomes of avgRTT", "restart", &["restart", "keep"]),
        span(
            "reroute_interval",
            "bound: least time between two reroutes",
            preset.reroute_interval,
            Span::from_secs(3600),
        ),
        number(
            "base_rise_most",
            "bound: baseRTT in least RTTs of the path; 1000000 is none",
            "",
            preset.base_rise_most,
            1.0,
            UNBOUNDED,
        ),
        choice(
            "refill",
            "after fast recovery: the window law, or CCaFR of emfast-2019",
            preset.refill,
            &["per_rtt", "ccafr"],
        ),
        choice(
            "ccafr_gapflag",
            "ccafr: what sets gapflag, a gap (the prose) or an even IPD (the listing)",
            "gap",
            &["gap", "even"],
        ),
        number("ccafr_ipd_weight", "ccafr: weight of one IPD in avgIPD", "", preset.ipd_weight, 1e-6, 1.0),
        number(
            "ccafr_ipd_tolerance",
            "ccafr: how far IPD may be from avgIPD, as a share of it, to be equal",
            "",
            0.1,
            0.0,
            1.0,
        ),
        number(
            "ccafr_rtt_tolerance",
            "ccafr: how far RTT may be from avgRTT, as a share of it, to be equal",
            "",
            0.003,
            0.0,
            1.0,
        ),
        choice(
            "ccafr_flight",
            "ccafr: the window of one RTT ago, or the current one (unstable)",
            "departure",
            &["departure", "window"],
        ),
        choice("ccafr_rtt", "ccafr: the RTT of the formula", "sample", &["sample", "average"]),
        switch(
            "probe_in_refill",
            "bound: where the queue is empty the window grows by the ACK in ccafr too",
            preset.probe_in_refill,
        ),
        choice(
            "loss",
            "what halves the window: every loss, all but a random one (ctcp-2019), or what a trial shows to be congestion",
            preset.loss,
            &["halve", "composite", "trial"],
        ),
        number(
            "random_loss_most",
            "bound: composite and trial believe in random losses up to this share",
            "",
            preset.random_loss_most,
            0.001,
            1.0,
        ),
        span(
            "drain_interval",
            "bound: from one drain, which shows the path without its queue, to the next; 0s is never",
            preset.drain_interval,
            Span::from_secs(3600),
        ),
        switch(
            "drain_unseen",
            "drain: only a path that has not shown itself without a queue for eight round trips",
            preset.drain_unseen,
        ),
        number("drain_share", "drain: what is left of the window", "", 0.5, 0.001, 1.0),
        number(
            "drain_join",
            "drain: a queue below this share of its average is the drain of another",
            "",
            0.75,
            0.0,
            1.0,
        ),
    ]
}

/// What the papers' parts are set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// What the window law aims at.
    pub goal: Goal,
    /// Queueing delay in seconds below which the window grows by the ACK.
    pub mi_threshold: f64,
    /// When baseRTT is forgotten; `None`: never.
    pub reroute: Option<base_rtt::Rule>,
    /// Whether avgRTT outlives baseRTT.
    pub reroute_keeps_average: bool,
    /// How the window grows after fast recovery; `None`: by the window law.
    pub ccafr: Option<refill::Rule>,
    /// What a loss does.
    pub loss: Policy,
}

/// What the parts of one controller are set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) goal: Goal,
    /// Seconds.
    pub(crate) mi_threshold: f64,
    pub(crate) probe_queued_most: f64,
    pub(crate) probe_pace: f64,
    pub(crate) probe_known: bool,
    pub(crate) is_module: bool,
    pub(crate) handshake_rtt: bool,
    pub(crate) weights: Weights,
    /// `None`: baseRTT is never forgotten.
    pub(crate) reroute: Option<base_rtt::Rule>,
    pub(crate) reroute_keeps_average: bool,
    /// Seconds.
    pub(crate) reroute_interval: f64,
    pub(crate) base_rise_most: f64,
    /// `None`: the window law refills.
    pub(crate) ccafr: Option<refill::Rule>,
    pub(crate) probe_in_refill: bool,
    pub(crate) loss: Policy,
    pub(crate) random_loss_most: f64,
    pub(crate) trial: trial::Rule,
    /// `None`: the window never falls to look at the path.
    pub(crate) drain: Option<drain::Rule>,
    /// Seconds; zero: losses are forgotten at once.
    pub(crate) loss_memory: f64,
    /// `None`: all delay is a queue.
    pub(crate) noise: Option<noise::Rule>,
    /// Seconds; zero: for ever. Without drains a queue that never empties would become a part of the path.
    pub(crate) base_window: f64,
}

impl Rules {
    pub(crate) fn new(settings: &Settings) -> Self {
        let number = |name| settings.number(name);
        let seconds = |name| settings.span(name).as_secs_f64();
        let Parts { goal, mi_threshold, reroute, reroute_keeps_average, ccafr, loss } = Parts::of(settings);
        Self {
            goal,
            mi_threshold,
            probe_queued_most: number("probe_queued_most"),
            probe_pace: number("probe_pace"),
            probe_known: settings.switch("probe_known"),
            is_module: settings.switch("module_steps"),
            handshake_rtt: settings.switch("handshake_rtt"),
            weights: Weights { most: number("average_weight") },
            reroute,
            reroute_keeps_average,
            reroute_interval: seconds("reroute_interval"),
            base_rise_most: number("base_rise_most"),
            ccafr,
            probe_in_refill: settings.switch("probe_in_refill"),
            loss,
            random_loss_most: number("random_loss_most"),
            trial: trial::Rule { most: number("random_loss_most"), span: seconds("loss_memory") },
            loss_memory: seconds("loss_memory"),
            noise: Some(noise::Rule { least: seconds("noise_least") }).filter(|rule| rule.least > 0.0),
            base_window: if seconds("drain_interval") > 0.0 { seconds("base_window") } else { 0.0 },
            drain: Some(drain::Rule {
                interval: seconds("drain_interval"),
                share: number("drain_share"),
                join: number("drain_join"),
                is_unseen: settings.switch("drain_unseen"),
            })
            .filter(|rule| rule.interval > 0.0),
        }
    }
}

impl Parts {
    /// The parameters that these are made from: those of the papers, without bounds and other choices of the law's own.
    pub const PARAMETERS: [&str; 16] = [
        "alpha",
        "beta",
        "gamma",
        "mi_threshold",
        "base_rtt",
        "reroute_rule",
        "reroute_wait",
        "reroute_average",
        "refill",
        "ccafr_gapflag",
        "ccafr_ipd_weight",
        "ccafr_ipd_tolerance",
        "ccafr_rtt_tolerance",
        "ccafr_flight",
        "ccafr_rtt",
        "loss",
    ];

    /// The parts that some settings ask for.
    ///
    /// # Panics
    /// If they are for a law outside the family.
    pub fn of(settings: &Settings) -> Self {
        let number = |name| settings.number(name);
        let seconds = |name| settings.span(name).as_secs_f64();
        Self {
            goal: Goal { alpha: number("alpha"), beta: number("beta"), gamma: number("gamma") },
            mi_threshold: seconds("mi_threshold"),
            reroute: (settings.choice("base_rtt") == "reroute").then(|| reroute(settings)),
            reroute_keeps_average: settings.choice("reroute_average") == "keep",
            ccafr: (settings.choice("refill") == "ccafr").then(|| ccafr(settings)),
            loss: match settings.choice("loss") {
                "halve" => Policy::Halve,
                "composite" => Policy::Composite,
                _ => Policy::Trial,
            },
        }
    }
}

fn reroute(settings: &Settings) -> base_rtt::Rule {
    let reading = match settings.choice("reroute_rule") {
        "not_near" => base_rtt::Rule::NOT_NEAR,
        "no_fall" => base_rtt::Rule::NO_FALL,
        "both" => base_rtt::Rule::BOTH,
        _ => base_rtt::Rule::LITERAL,
    };
    base_rtt::Rule { wait: settings.number("reroute_wait"), ..reading }
}

fn ccafr(settings: &Settings) -> refill::Rule {
    let number = |name| settings.number(name);
    refill::Rule {
        gap_test: if settings.choice("ccafr_gapflag") == "gap" { GapTest::Gap } else { GapTest::Even },
        ipd_weight: number("ccafr_ipd_weight"),
        ipd_tolerance: number("ccafr_ipd_tolerance"),
        rtt_tolerance: number("ccafr_rtt_tolerance"),
        flight: if settings.choice("ccafr_flight") == "departure" { Flight::Departure } else { Flight::Window },
        rtt: if settings.choice("ccafr_rtt") == "sample" { Rtt::Sample } else { Rtt::Average },
    }
}

const fn number(
    name: &'static str,
    help: &'static str,
    unit: &'static str,
    default: f64,
    least: f64,
    most: f64,
) -> Parameter {
    Parameter { name, help, unit, kind: Kind::Number { default, least, most } }
}

/// From nothing to `most`.
const fn span(name: &'static str, help: &'static str, default: Span, most: Span) -> Parameter {
    Parameter { name, help, unit: "", kind: Kind::Span { default, least: Span::from_secs(0), most } }
}

const fn switch(name: &'static str, help: &'static str, default: bool) -> Parameter {
    Parameter { name, help, unit: "", kind: Kind::Switch { default } }
}

const fn choice(
    name: &'static str,
    help: &'static str,
    default: &'static str,
    options: &'static [&'static str],
) -> Parameter {
    Parameter { name, help, unit: "", kind: Kind::Choice { default, options } }
}
