//! EMFast: FAST that refills the pipe by the ACK after fast recovery.
//!
//! ```text
//! fast recovery ends:  w ← w + 1/w each ACK until the first gap between ACKs,
//!                      then w ← min(2w, (1 − gamma) w + gamma (baseRTT/RTT · old + alpha)) each ACK
//! ACKs come evenly:    the law of fast again
//! ```
//!
//! Citation: emfast-2019; fast-2006 for the law under it.
//!
//! Differs from the paper in: what [`super::fast::refill`] says. Streams are the transport's business.

use crate::law::fast::{FastSettings, LOSS_CONTRACT, make, refill};
use crate::row::{Law, Row};

const SETTINGS: FastSettings = FastSettings {
    refill: Some(refill::Settings { rule: refill::Rule::RECOMMENDED, multiplicative_increase: false }),
    ..FastSettings::FAST
};

pub(crate) const ROW: Row = Row {
    name: "emfast",
    summary: "EMFast TCP: FAST that refills the pipe after fast recovery by the ACK (CCaFR)",
    citation: "emfast-2019, fast-2006",
    loss_contract: LOSS_CONTRACT,
    law: &Law { defaults: SETTINGS, make },
};
