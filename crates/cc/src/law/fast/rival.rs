//! Rivals: a drain shows whether the queue is ours, and beside a rival that fills the queue the flow competes.
//!
//! ```text
//! share:      s = (1 − RTT after/RTT before)/(1 − window after/window before)
//! a look:     a drain, also when the queueing delay was for a round trip 2.25 times that of alpha at the recent rate
//! it shows:   s ≥ 3/4, or an empty queue                       own: the queue was ours, or of flows of our kind, which drain with us
//!             else, if the recent RTTs are equal               route: the route is longer; baseRTT ← the RTT
//!             else, again 3 s later, and the queue has grown
//!             or is longer than 30 ms                          rival: compete
//! overflow:   a loss, and the queueing delay was for a round trip 1.75 times that of alpha, at the largest recent rate and noise: compete, too
//! compete:    the window of CUBIC; without a loss it begins with slow start, up to half of the rate of the path
//! a pause:    after a loss the window stays. If the RTT does not rise for 4 s, or the queue is empty: back to delay
//!             If the queue overflows again, a rival filled it: this loss and the next two have no pause
//!             There is no pause if the queueing delay at the loss is above 60 ms
//! a probe:    every `interval`, but at least eight RTTs apart, or when the RTT falls by itself: the window is reduced for two round trips, by a quarter or by
//!             half of the queue's share of the RTT, whichever is less. s ≥ 3/4 twice in a row: back to delay, by a drain
//! ```
//!
//! Why: beside a flow that fills the queue, a delay-based law starves: in equilibrium its rate is alpha over the queueing delay. The sum of all windows
//! on a link of rate c is c · RTT, and the windows of the others do not change for a round trip. So the RTT falls by the reduction of our window over c,
//! and s is our share of the link. If the queue grows and overflows while our window stays, another flow fills it. On a longer route without a queue the
//! RTT does not depend on the window.
//!
//! Citation: rfc-9438 for the window beside a rival. copa-2018 sec. 2.2 switches by whether the queue is ever empty, nimbus-2022 by the response of others to
//! pulses.
//!
//! Limits. If the queue overflows while many flows of our kind begin, they take each other for rivals, and compete until their pauses or probes coincide.
//! Flows with a window below eight segments yield meanwhile. If a rival's queue does not grow for 4 s, as CUBIC's near its plateau on links of Gbit/s, the
//! flow assumes that the rival has gone, until the queue grows. A flow with three quarters of the link gives them back.

mod competition;
mod look;

use anabranch_units::Span;

pub use self::competition::{Competition, Facts, Turn};
pub use self::look::{Bottom, Look, Verdict};
use crate::settings::{Choice, Fields};

/// The settings of the competition with a rival.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Seconds from one probe to the next; more than zero.
    pub interval: f64,
    /// The least share of the window that a probe leaves; more than the 0.7 that a loss leaves, less than one.
    pub share: f64,
}

impl Rule {
    /// Two probes and a drain fit into five seconds. The effect of a quarter of the window is visible if eight flows share the queue. It costs a quarter of
    /// the rate in two of about twenty round trips.
    pub const DEFAULT: Self = Self { interval: 2.0, share: 0.75 };
}

impl Choice for Option<Rule> {
    const KINDS: &'static [(&'static str, Self)] = &[("yield", None), ("cubic", Some(Rule::DEFAULT))];

    fn visit(&mut self, fields: &mut Fields<'_>) {
        let Some(Rule { interval, share }) = self else { return };
        let help = "time from one probe, which shows whether the rival is still there, to the next";
        fields.seconds("interval", interval, Span::from_millis(1)..=Span::from_secs(3600), help);
        // More than a loss leaves, as a loss may come in the middle of a probe.
        fields.number("share", share, 0.75..=0.95, "", "least share of the window that a probe leaves");
    }
}

/// A smaller window, in segments, is not used to judge a queue: a part of it has too little effect there. Even many such windows do not fill a queue for
/// long, as they respond to losses.
pub const SMALL: f64 = 8.0;

/// The share of the link above which a queue is ours. A rival with only a quarter is no reason to compete: beside one rival, three quarters are one and a
/// half times the fair share.
const ALONE: f64 = 0.75;

/// An RTT has risen if it is larger by more than this many times the difference that two samples may have without a meaning.
const RISEN: f64 = 2.0;

#[cfg(test)]
mod tests;
