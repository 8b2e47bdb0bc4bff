//! Yielding: FAST with all its parts, and with limits where a part could grow without end. It yields to a rival that fills the queue;
//! [`super::anabranch`] does not.
//!
//! ```text
//! window:    FAST, with the averaging of fast-2006
//! base_rtt:  reroute if the RTT after a decrease neither falls nor comes near baseRTT; baseRTT at most 10 times the least RTT of the path;
//!            10 s between two reroutes
//! refill:    CCaFR, but multiplicative increase as soon as the queue is empty
//! loss:      a trial at a lower rate finds out whether losses are random; up to 5 % count as random
//! increase:  the multiplicative one ends when half of alpha is queued, for any threshold, and is paced; beyond the known size of the path
//!            it begins with alpha
//! memory:    for 10 s after a loss by congestion, alpha is half of what was queued
//! noise:     the least RTT of a batch of ACKs counts, and avgRTT excludes the delay of stalls; alpha is at least the segments that
//!            pass while ACKs are held back, or in 1 ms; baseRTT is the least RTT of the last one to two minutes
//! drains:    every 10 s, or together with other flows: half of the window for two round trips; none if the path was seen without a queue
//! ```
//!
//! Citation: fast-2006, rrfast-2017, emfast-2019; ctcp-2019 for the distinction of random losses.
//!
//! Differs from the papers in:
//! * The papers do not combine their parts. The parts hardly interact: a random loss starts no fast recovery and so no refill; and the
//!   reroute rule does not watch decreases by a loss or a refill.
//! * avgRTT has the weight of fast-2006, a round trip, not that of ns-2's module, so it shows a queue without a lag. CCaFR
//!   then ends sooner, as avgRTT equals the RTT of an empty path at once; multiplicative increase follows.
//! * Multiplicative increase. Where alpha segments are less than its threshold, beyond 320 Mbit/s for the defaults, FAST doubles whenever the
//!   queue gets short, also in equilibrium: on 50,000 segments/s and 20 ms the queue oscillates between 0 and 1300 segments.
//!   With the bound it stays at alpha.
//! * Returns. When the queue shows that the path is full, a doubling window is too large by the size of the path. At the start the size is unknown.
//!   Later it is known: the most that the path carried recently, once there was a standing queue for a round trip. After a drain, or whenever less than
//!   half of alpha waits, the window doubles up to this size, and beyond it the excess doubles, from alpha on. Without this bound a drain at 100 Mbit/s
//!   and 100 ms may end with twice the window that fits, and with a random loss of 0.1 % two minutes carry 49 Mbit/s instead of 95. The price: if the
//!   capacity doubles, it is filled in six or seven round trips instead of one.
//! * Pacing. Multiplicative increase sends two segments for each acknowledged one, so half of them queue at the bottleneck and look like alpha long
//!   before the pipe is full. Spread over the round trip they do not queue: 100 MB over 250 Mbit/s and 600 ms take 10.3 s instead of 18.9.
//!   fast-2006 has a separate part for bursts, too.
//! * Bursts. The initial window leaves in a burst, also after idle time, and its segments queue behind each other: for these segments avgRTT takes
//!   baseRTT. With their own delay, growth would stop for most of the next round trip on links of 10 Mbit/s and slower.
//! * Reroutes. Where alpha segments take longer than half of baseRTT, the RTT is never near baseRTT; so the window must have
//!   fallen by a tenth, and the RTT not by a fiftieth. A rival that fills the queue still looks like a longer route: it can
//!   raise baseRTT to ten times the least RTT, one step every 10 s. The price: a route that is more than ten
//!   times longer is not filled, nor is one whose added delay hides behind the flow's own queue.
//!   For 16 round trips after a drain, by this flow or another, no decrease is watched: flows with too large a share shrink then in favour of the
//!   others, and the RTT stays.
//! * Late comers. A flow that joins a standing queue takes it for propagation delay, and nothing in FAST ever shows it the path. The interval of 10 s
//!   is BBR's; on a path of 100 ms the drains cost 1.2 % of the rate.
//! * Random loss. Composite asks for one hole and no delay. With 10,000 segments in flight and 0.1 % lost there are ten holes, and
//!   at larger windows Composite halves each round trip. Here delay limits the window, so a loss does not change it until more than
//!   a quarter of a percent is lost; then a trial decides ([`crate::law::fast::trial`]). 250 Mbit/s over 600 ms with a loss of 1 % carry
//!   200 Mbit/s, with Composite's rule 2. After a trial has shown congestion, random losses go on. So a loss at a much smaller window
//!   than the one at the congestion, or with much less delay, halves the window only if more than the bearable share is lost.
//! * Losses without a queue. Behind a policer, and where the buffer holds less than alpha, no delay tells FAST to stop. CCaFR
//!   and multiplicative increase then have losses each time: a seventh of all segments. The trial detects this, and the memory of losses limits it.
//! * Noise. Wi-Fi, network cards and programs that read in batches hold ACKs back, and FAST takes that for a queue
//!   ([`crate::law::fast::noise`]): with ACKs every 4 ms, FAST carries 10 Mbit/s over a link of 1 Gbit/s and 20 ms.
//! * Losses above 5 % are never random: no usable link loses that much at random.

use crate::law::fast::base_rtt::{self, Reading};
use crate::law::fast::estimator::Weights;
use crate::law::fast::loss::Policy;
use crate::law::fast::{FastSettings, LOSS_CONTRACT, MultiplicativeIncrease, drain, make, memory, noise, refill};
use crate::row::{Law, Row};

pub(super) const SETTINGS: FastSettings = FastSettings {
    increase: MultiplicativeIncrease {
        queued_most: 0.5,
        // Each ACK adds as much as it acknowledges, so two windows leave in a round trip while the window doubles. A pace of 4/3 would just be
        // enough; an eighth more allows for growing RTTs.
        pace: 1.5,
        is_known: true,
        ..FastSettings::FAST.increase
    },
    weights: Weights::PAPER,
    base_rise_most: 10.0,
    base_rtt: Some(base_rtt::Settings { reading: Reading::Both, interval: 10.0, ..base_rtt::Settings::NOT_NEAR }),
    // The weight of TCP's SRTT, because avgRTT has a large weight here, too.
    refill: Some(refill::Settings { rule: refill::Rule::QUICK_IPD, multiplicative_increase: true }),
    loss: Policy::Trial { random_most: 0.05 },
    memory: Some(memory::Rule { span: 10.0 }),
    noise: Some(noise::Rule { least: 0.001 }),
    drain: Some(drain::Rule::DEFAULT),
    ..FastSettings::FAST
};

pub(crate) const ROW: Row = Row {
    name: "yielding",
    summary: "FAST with all parts and bounds, a fixed alpha; yields to rivals that fill the queue",
    citation: "fast-2006, rrfast-2017, emfast-2019, ctcp-2019",
    loss_contract: LOSS_CONTRACT,
    law: &Law { defaults: SETTINGS, make },
};
