//! EMFast: FAST that updates the window with each ACK after fast recovery, to refill the pipe.
//!
//! ```text
//! fast recovery ends:  w ← w + 1/w each ACK until the first gap between ACKs,
//!                      then w ← min(2w, (1 − gamma) w + gamma (baseRTT/RTT · old + alpha)) each ACK
//! ACKs are even:       the law of fast again
//! ```
//!
//! Citation: emfast-2019; fast-2006 for the base law.
//!
//! Differs from the paper in: see [`super::fast::refill`]. The streams are a part of the transport.

use crate::law::fast::refill::{Refill, Rule};
use crate::law::fast::{FastSettings, LOSS_CONTRACT, make};
use crate::row::{Law, Row};

const SETTINGS: FastSettings = FastSettings { refill: Refill::Ccafr(Rule::RECOMMENDED), ..FastSettings::FAST };

pub(crate) const ROW: Row = Row {
    name: "emfast",
    summary: "EMFast TCP: FAST that refills the pipe with each ACK after fast recovery (CCaFR)",
    citation: "emfast-2019, fast-2006",
    loss_contract: LOSS_CONTRACT,
    law: &Law { defaults: SETTINGS, make },
};
