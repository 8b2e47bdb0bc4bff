//! Anabranch: the default law. It is delay-based and keeps a short queue, and it competes with rivals that fill the queue.
//!
//! ```text
//! alone:      FAST with alpha(x) = 20 √(x/6250 s⁻¹) at x segments a second: n flows queue for 20 √(n/(6250 c)) on a link of c   share
//! drains:     every 10 s, but at least 80 round trips apart, half of the window for two round trips; other flows see it and join   drain
//! rivals:     a queue that a drain does not empty, or that is not ours at a loss, is a rival's: the window of CUBIC, until the queue
//!             does not grow for 4 s after a loss, or three quarters of it are ours                                        rival
//! routes:     a longer RTT that does not vary, also not in a drain, is a longer route: baseRTT is forgotten                   rival
//! loss:       without a queue a trial of three quarters of the window shows whether it is random; up to 5 % may be        trial
//!             many losses at once are a fade, and forgotten; behind a policer four fifths of its rate remain                      trial, answer
//! noise:      a short delay of ACKs is no queue, and alpha is at least the number of segments that pass meanwhile         noise
//! start, and after a drain: the window doubles, paced, until half of alpha is queued                                      fast
//! ```
//!
//! Limits. A short transfer beside a rival is slow until the rival is recognised, which takes some seconds. A rival is not recognised if its queue overflows
//! before it is 1.75 times as long as ours may be. If the queue overflows while many flows begin, they take each other for rivals. A flow that has three
//! quarters of a link beside a weak rival gives them back. `docs/law.md` has the analysis and the measured figures.
//!
//! Citation: fast-2006, rrfast-2017, emfast-2019; ctcp-2019 for the question whether a loss is random; rfc-9438 beside rivals.
//!
//! Differs from the papers in: all that [`super::yielding`] lists, which has all parts except rival, alpha(x) and fades. In addition, baseRTT is not forgotten
//! by the rule of rrfast-2017, which takes a rival's queue for a longer route.

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
    summary: "FAST with all parts, alpha by the rate; competes with rivals that fill the queue",
    citation: "fast-2006, rrfast-2017, emfast-2019, ctcp-2019, rfc-9438",
    loss_contract: LOSS_CONTRACT,
    law: &Law { defaults: SETTINGS, make },
};
