//! Anabranch: the law to be left on. It keeps a short queue by delay, and holds its own where somebody else fills the queue.
//!
//! ```text
//! alone:      FAST with alpha(x) = 20 √(x/6250 s⁻¹) at x segments a second: n flows queue for 20 √(n/(6250 c)) on a link of c   share
//! drains:     every 10 s, or 80 round trips, half of the window for two round trips; others see that and join              drain
//! a queue that a drain does not empty, or a loss behind a queue that is not ours, is a rival's: CUBIC, until
//!             it has not grown for 4 s after a loss, or is ours to three quarters                                         rival
//! a longer RTT that moves with nothing is a longer route: baseRTT forgotten                                               rival
//! loss:       without a queue it is tried: three quarters of the window for a while; up to 5 % may be random              trial
//!             many at once are a fade, and forgotten; a policer leaves four fifths of what it lets pass                   trial, answer
//! noise:      what is held back for a moment is no queue, and alpha is what passes meanwhile                              noise
//! start, and after a drain: the window doubles, paced, until half of alpha is queued                                      fast
//! ```
//!
//! So: short transfers beside a rival wait until the rival is recognised, some seconds; where the queue of a rival overflows before it is 1.75 times ours it
//! is not recognised; many flows whose queue overflows while they begin take each other for rivals; and three quarters of a link beside a weak
//! rival are given back. `docs/law.md` has the analysis and what each case gives.
//!
//! Citation: fast-2006, rrfast-2017, emfast-2019; ctcp-2019 for the question whether a loss is random; rfc-9438 beside rivals.
//!
//! Differs from the papers in: what [`super::yielding`] differs in, which has all of it but the rival, alpha(x) and fades; and baseRTT is not forgotten by the
//! rule of rrfast-2017, which a rival's queue looks like.

use crate::law::fast::loss::Policy;
use crate::law::fast::{FastSettings, LOSS_CONTRACT, make, rival, share};
use crate::law::yielding;
use crate::row::{Law, Row};

const SETTINGS: FastSettings = FastSettings {
    share: Some(share::Rule::DEFAULT),
    base_rise_most: FastSettings::FAST.base_rise_most,
    base_rtt: None,
    loss: Policy::Trial { random_most: 0.05, fades: true },
    rival: Some(rival::Rule::DEFAULT),
    ..yielding::SETTINGS
};

pub(crate) const ROW: Row = Row {
    name: "anabranch",
    summary: "FAST with all parts, alpha by the rate; competes with who fills the queue",
    citation: "fast-2006, rrfast-2017, emfast-2019, ctcp-2019, rfc-9438",
    loss_contract: LOSS_CONTRACT,
    law: &Law { defaults: SETTINGS, make },
};
