//! Anabranch: FAST with all its parts, and bounds where a part could run away.
//!
//! ```text
//! window:    FAST, with the averaging of fast-2006
//! base_rtt:  reroute; baseRTT at most 4 times the least RTT of the path, 10 s between two reroutes
//! refill:    CCaFR
//! loss:      composite, as long as no more than 5 % of the segments are lost at random
//! probing:   ends when alpha segments are queued, however little delay they are
//! ```
//!
//! Citation: fast-2006, rrfast-2017, emfast-2019, ctcp-2019.
//!
//! Differs from the papers in:
//! * They were never put together. The parts do not meet: a random loss is no fast recovery and so no refill; a refill is no
//!   decrease that the reroute rule would watch.
//! * avgRTT has the weight of fast-2006, a round trip's, not that of ns-2's module: a queue is seen when it is there.
//! * The bounds. A rival that fills the queue looks like a longer route: four times the least RTT is as far as it can drive
//!   baseRTT, and 10 s slow that down. Where alpha segments are less than `mi_threshold`, beyond 320 Mbit/s for the defaults,
//!   FAST would probe until the threshold is queued. A policer drops singly without delay, which the classifier calls random:
//!   no link worth using loses 5 %.

use anabranch_units::Span;

use crate::law::fast::parameters::{self, COUNT, Preset};
use crate::law::fast::{CONDUCT, make};
use crate::registry::{Parameter, Row};

const PARAMETERS: [Parameter; COUNT] = parameters::table(&Preset {
    base_rtt: "reroute",
    reroute_rule: "both",
    reroute_count: 1.0,
    refill: "ccafr",
    loss: "composite",
    average_weight: crate::law::fast::estimator::Weights::PAPER.most,
    probe_queued_most: 0.5,
    base_rise_most: 10.0,
    reroute_interval: Span::from_secs(10),
    probe_in_refill: true,
    random_loss_most: 0.05,
});

pub(crate) const ROW: Row = Row {
    name: "anabranch",
    summary: "FAST with all parts and bounds: reroute, CCaFR, composite",
    citation: "fast-2006, rrfast-2017, emfast-2019, ctcp-2019",
    parameters: &PARAMETERS,
    conduct: CONDUCT,
    make,
};
