//! When the window of FAST is updated and how it grows, as ns-2.35's FAST module has it.
//!
//! ```text
//! round trip:  over when more than one RTT has passed; every second one is open, as is the first, which begins with the connection
//! increase:    whole segments, one every  (ACKs of the last round trip) · period / avgRTT / (segments of the increase)  ACKs
//! ```
//!
//! Citation: ns-2.35's FAST module v1.1.3, with which mfast-2019 and emfast-2019 were computed.

use super::window::WINDOW_SMALL;

/// Every second round trip, by the clock. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    began: f64,
    is_open: bool,
    acks: u32,
    acks_before: u32,
}

impl Round {
    /// The first one, which began at `began` seconds.
    pub const fn new(began: f64) -> Self {
        Self { began, is_open: true, acks: 0, acks_before: 0 }
    }

    /// An ACK with an RTT of `rtt` seconds arrived: begins the next round trip if it is time.
    pub fn on_ack(&mut self, now: f64, rtt: f64) {
        if self.began + rtt < now {
            self.began = now;
            self.acks_before = self.acks;
            self.acks = 0;
            self.is_open = !self.is_open;
        }
        self.acks += 1;
    }

    /// Whether the window may be updated in it.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// How many ACKs come in `period` seconds, by those of the round trip before and avgRTT.
    pub fn acks_in(&self, period: f64, average: f64) -> f64 {
        f64::from(self.acks_before) * period / average
    }
}

/// The way up to a target: whole segments, spread over the ACKs of an update period (`fast_pace`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Steps {
    pending: f64,
    /// ACKs from one step to the next, and since the last one.
    spacing: u16,
    since: u16,
}

impl Steps {
    /// Nothing to hand out.
    pub const fn new() -> Self {
        Self { pending: 0.0, spacing: 0, since: 0 }
    }

    /// Takes an increase of whole segments, and hands out what this ACK allows.
    pub fn on_ack(&mut self, window: f64, increase: i32, acks_per_period: f64) -> f64 {
        if increase >= 1 {
            self.pending += f64::from(increase);
            // The module counts in unsigned 16-bit numbers.
            self.spacing = (acks_per_period / self.pending) as u32 as u16;
            self.since = 1;
        } else {
            self.since = self.since.wrapping_add(1);
        }
        if self.pending <= 0.0 {
            return window;
        }
        if window <= WINDOW_SMALL {
            // At most a doubling.
            let step = if window < self.pending { window } else { self.pending };
            self.pending -= if window < self.pending { window.trunc() } else { self.pending };
            if self.pending <= 0.0 {
                self.spacing = 0;
            }
            self.since = 0;
            return window + step;
        }
        if self.since >= self.spacing {
            self.pending -= 1.0;
            self.since = 0;
            return window + 1.0;
        }
        window
    }

    /// Drops what is still to be handed out.
    pub fn clear(&mut self) {
        self.pending = 0.0;
    }
}
