//! Yielding: FAST with all its parts, and bounds where a part could run away. Beside a rival that fills the queue it yields; [`super::anabranch`] does not.
//!
//! ```text
//! window:    FAST, with the averaging of fast-2006
//! base_rtt:  reroute when RTT neither falls nor comes near; baseRTT at most 10 least RTTs of the path, 10 s between two
//! refill:    CCaFR, but multiplicative increase as soon as the queue is empty
//! loss:      whether it is random is tried, by sending less for a while; up to 5 % may be
//! increase:  the multiplicative one ends when half of alpha is queued, however little delay that is, and is paced; beyond what is known to fit the
//!            path it begins with alpha
//! memory:    for 10 s after a loss that is congestion, alpha is half of what was queued
//! noise:     the least RTT of a batch of ACKs counts, and in avgRTT none that a stall held back; alpha is at least what
//!            passes in the time for which ACKs are held back, or in 1 ms; baseRTT is the least RTT of the last one to two minutes
//! drains:    every 10 s, or with those of others, half of the window for two round trips; not while the path shows itself
//! ```
//!
//! Citation: fast-2006, rrfast-2017, emfast-2019; ctcp-2019 for the question whether a loss is random.
//!
//! Differs from the papers in:
//! * They were never put together. The parts hardly meet: a random loss is no fast recovery and so no refill; what a loss or
//!   a refill takes from the window is no decrease that the reroute rule watches.
//! * avgRTT has the weight of fast-2006, a round trip's, not that of ns-2's module: a queue is seen when it is there. CCaFR
//!   then ends sooner, as avgRTT equals the RTT of an empty path at once; multiplicative increase does the rest.
//! * Multiplicative increase. Where alpha segments are less than its threshold, beyond 320 Mbit/s for the defaults, FAST doubles whenever the
//!   queue gets short, at rest too: on 50,000 segments/s and 20 ms the queue goes back and forth between 0 and 1300 segments.
//!   With the bound it stands at alpha.
//! * Returns. A window that doubles is a whole path too large before the queue has shown that it is full. At the start nothing is known;
//!   after a drain, or whenever less than half of alpha waits, it is: the most that was carried of late, once a queue has stood for a round trip.
//!   Up to that the window doubles, and beyond it what is beyond doubles, from alpha on. Without it a drain at 100 Mbit/s and 100 ms
//!   may end with twice the window that fits, and with 0.1 % lost at random two minutes carry 49 Mbit/s instead of 95. The price: where twice as much has
//!   become free, six or seven round trips instead of one.
//! * Pacing. Multiplicative increase sends two segments for one, so half of what leaves queues at the bottleneck and looks like alpha long before
//!   the pipe is full. Spread over the round trip it does not: 100 MB over 250 Mbit/s and 600 ms take 10.3 s instead of 18.9. fast-2006
//!   has a part for bursts beside that for windows, too.
//! * Bursts. The initial window leaves at once, also after a rest, and queues behind itself: for these segments avgRTT has baseRTT. With their own delay
//!   growth ends for most of the next round trip, on a link of 10 Mbit/s as on any slower one.
//! * Reroutes. Where alpha segments take longer than half of baseRTT, the RTT is never near baseRTT; so the window must have
//!   fallen by a tenth, and the RTT not by a fiftieth. A rival that fills the queue still looks like a longer route: ten
//!   times the least RTT is as far as it can drive baseRTT, and 10 s slow that down. The price: a route that is more than ten
//!   times longer is not filled, nor is one whose added delay hides behind the flow's own queue.
//!   For 16 round trips after a drain, one's own or another's, no decrease is watched: who has too much then gives way to who has too little,
//!   and RTT stays where it is.
//! * Late comers. A flow that comes to a standing queue takes it for propagation, and nothing in FAST ever shows it the path. 10 s
//!   are as long as BBR waits; on a path of 100 ms the drains cost 1.2 % of the rate.
//! * Random loss. Composite asks for one hole and no delay. With 10,000 segments in flight and 0.1 % lost there are ten holes, and
//!   beyond that the window halves each round trip. Here a loss leaves the window alone, as delay bounds it, until more is lost
//!   than a quarter of a percent; then a trial tells ([`crate::law::fast::trial`]). 250 Mbit/s over 600 ms with 1 % lost carry
//!   200 Mbit/s, with Composite's rule 2. When a trial has shown congestion, chance goes on losing: a loss well below the window that
//!   lost, or with much less delay than there was then, halves only if more is lost with it than is bearable.
//! * Losses without a queue. Behind a policer, and where the buffer holds less than alpha, no delay tells FAST to stop, and CCaFR
//!   and multiplicative increase lose at each turn: a seventh of all segments. The trial finds that, the memory of losses bounds it.
//! * Noise. Wi-Fi, network cards and programs that read in batches hold ACKs back, and FAST takes that for a queue
//!   ([`crate::law::fast::noise`]): with ACKs every 4 ms, 1 Gbit/s over 20 ms carries 10 Mbit/s in FAST's hands.
//! * No link worth using loses 5 % at random.

use crate::law::fast::base_rtt::{self, Reading};
use crate::law::fast::estimator::Weights;
use crate::law::fast::loss::Policy;
use crate::law::fast::{FastSettings, LOSS_CONTRACT, MultiplicativeIncrease, drain, make, memory, noise, refill};
use crate::row::{Law, Row};

pub(super) const SETTINGS: FastSettings = FastSettings {
    increase: MultiplicativeIncrease {
        queued_most: 0.5,
        // Each ACK adds as much as it acknowledges, so in a round trip twice a window leaves while the window goes from one to two: 4/3 would
        // just do, and an eighth more makes up for RTTs that grow.
        pace: 1.5,
        is_known: true,
        ..FastSettings::FAST.increase
    },
    weights: Weights::PAPER,
    base_rise_most: 10.0,
    base_rtt: Some(base_rtt::Settings { reading: Reading::Both, interval: 10.0, ..base_rtt::Settings::NOT_NEAR }),
    // TCP's own weight, as avgRTT has a quick one here, too.
    refill: Some(refill::Settings { rule: refill::Rule::QUICK_IPD, multiplicative_increase: true }),
    loss: Policy::Trial { random_most: 0.05, fades: false },
    memory: Some(memory::Rule { span: 10.0 }),
    noise: Some(noise::Rule { least: 0.001 }),
    drain: Some(drain::Rule::DEFAULT),
    ..FastSettings::FAST
};

pub(crate) const ROW: Row = Row {
    name: "yielding",
    summary: "FAST with all parts and bounds, a fixed alpha; yields to who fills the queue",
    citation: "fast-2006, rrfast-2017, emfast-2019, ctcp-2019",
    loss_contract: LOSS_CONTRACT,
    law: &Law { defaults: SETTINGS, make },
};
