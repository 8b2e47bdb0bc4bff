//! RRFast: FAST that recognises a longer route, and then resets baseRTT.
//!
//! ```text
//! the law shrinks the window:             watch the RTT
//! it never comes close to baseRTT again:  the route is longer, reset baseRTT and avgRTT
//! all else:                               the law of fast
//! ```
//!
//! Citation: rrfast-2017; fast-2006 for the base law.
//!
//! Differs from the paper in: see [`super::fast::base_rtt`].

use crate::law::fast::{FastSettings, LOSS_CONTRACT, base_rtt, make};
use crate::row::{Law, Row};

const SETTINGS: FastSettings =
    FastSettings { base_rtt: base_rtt::Reset::Reroute(base_rtt::Settings::NOT_NEAR), ..FastSettings::FAST };

pub(crate) const ROW: Row = Row {
    name: "rrfast",
    summary: "RRFast: FAST that recognises a longer route",
    citation: "rrfast-2017, fast-2006",
    loss_contract: LOSS_CONTRACT,
    law: &Law { defaults: SETTINGS, make },
};
