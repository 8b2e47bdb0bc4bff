//! Whose queue is it? What a drain shows, and what to do beside a rival that fills the queue.
//!
//! ```text
//! share:      s = (1 − RTT after/RTT before)/(1 − window after/window before)
//! a look:     a drain, also when the queue has been 2.25 times what alpha makes at the rate of late for a round trip
//! it shows:   s ≥ 3/4, or an empty queue                       own: it was ours, or of flows of our kind, which drain with us
//!             else, if no RTT of late differs from another     route: it is longer; baseRTT ← the RTT
//!             else, again 3 s later, and the queue has grown
//!             or is longer than 30 ms                          rival: compete
//! overflow:   a loss while the queue has been 1.75 times that for a round trip: compete, too
//! compete:    the window of CUBIC; without a loss it begins with slow start, up to half of what the path carries
//! a pause:    after a loss the window stays. RTTs that have not risen for 4 s, or an empty queue: back to delay
//!             it overflows again: somebody filled it; CUBIC goes on for three losses without a pause
//!             where the queue overflows beyond 60 ms there is no pause
//! a probe:    every `interval`, and eight RTTs, or when the RTT falls by itself: a quarter of the window, or half of what the queue is of the RTT, is
//!             left out for two round trips. s ≥ 3/4 twice in a row: back to delay, by a drain
//! ```
//!
//! Why: beside one that fills the queue, a law that goes by delay starves: at rest its rate is alpha over the delay. All windows together are c · RTT, and
//! those of others stay as they are for a round trip. So the RTT falls by what one window gives up over c, and s is the share of the link that this window
//! has. A queue that grows while we hold still, and overflows, is filled by somebody else. On a longer route without a queue the window has nothing to do
//! with the RTT.
//!
//! Citation: rfc-9438 for what is done. copa-2018 sec. 2.2 switches by whether the queue is ever empty, nimbus-2022 by how others respond to pulses.
//!
//! Limits. Many flows of our kind whose queue overflows while they begin see each other as rivals, and compete until pauses or probes meet; those whose window
//! has fallen below eight segments yield meanwhile. A rival whose queue rests for 4 s, as CUBIC's does near its plateau on links of Gbit/s, is believed to have
//! gone, until its queue grows. Who has three quarters of the link gives it back.

mod competition;
mod look;

use anabranch_units::Span;

pub use self::competition::{Competition, Facts, Turn};
pub use self::look::{Bottom, Look, Verdict};
use crate::settings::{Choice, Fields};

/// How to compete.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// Seconds from one probe to the next; more than zero.
    pub interval: f64,
    /// What is left of the window in a probe, at the least; more than the 0.7 that a loss leaves, less than one.
    pub share: f64,
}

impl Rule {
    /// Two probes and a drain fit into five seconds. A quarter of the window is seen where eight share the queue, and costs a quarter of the rate in
    /// two of some twenty round trips.
    pub const DEFAULT: Self = Self { interval: 2.0, share: 0.75 };
}

impl Choice for Option<Rule> {
    const KINDS: &'static [(&'static str, Self)] = &[("yield", None), ("cubic", Some(Rule::DEFAULT))];

    fn visit(&mut self, fields: &mut Fields<'_>) {
        let Some(Rule { interval, share }) = self else { return };
        let help = "while it competes, from one probe whether the rival is still there to the next";
        fields.seconds("interval", interval, Span::from_millis(1)..=Span::from_secs(3600), help);
        // No less than a loss leaves, which may come in the middle of a probe.
        fields.number("share", share, 0.75..=0.95, "", "what is left of the window in a probe, at the least");
    }
}

/// A window of fewer segments tells nothing of a queue by what a part of it leaves there, nor do many such fill one for long: they answer losses.
pub const SMALL: f64 = 8.0;

/// The share of the link above which a queue is ours. One rival that has a quarter is no reason to compete, and more than one and a half times a fair
/// share is not ours to take.
const ALONE: f64 = 0.75;

/// An RTT has risen by more than so many times what one sample may differ from the next by.
const RISEN: f64 = 2.0;

#[cfg(test)]
mod tests;
