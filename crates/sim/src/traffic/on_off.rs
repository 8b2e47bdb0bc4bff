//! Bursts and silences, as ns-2.35's `Application/Traffic/Exponential`.
//!
//! ```text
//!   silence        exponential with mean `off`
//!   burst          n packets at the peak rate, n = ⌊x + 1/2⌋ but at least 1, x exponential with mean on · rate / size
//! ```
//!
//! It begins with a silence. The first packet of a burst leaves one packet interval after the silence ends, as in ns-2, where
//! the silence is added to the interval that follows the last packet. Draws: the burst, then the silence before it.

use anabranch_units::{Bytes, Rate, SimSpan, SimTime};

use crate::host::{Arrival, Host, Input, Transmit};
use crate::packet::{Body, Raw};
use crate::rng::Stream;

/// What an [`OnOff`] source is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnOffParameters {
    /// Mean length of a burst (`burst_time_`).
    pub on: SimSpan,
    /// Mean length of a silence (`idle_time_`).
    pub off: SimSpan,
    /// Rate within a burst (`rate_`).
    pub rate: Rate,
    /// Bytes of a packet on the wire.
    pub size: u32,
}

/// Sends exponential bursts between exponential silences.
#[derive(Clone, Debug)]
pub struct OnOff {
    parameters: OnOffParameters,
    stream: Stream,
    /// Packets left in the burst.
    left: u64,
    next_at: SimTime,
    sent: u64,
}

impl OnOff {
    /// A source that waits for its start.
    pub const fn new(parameters: OnOffParameters, stream: Stream) -> Self {
        Self { parameters, stream, left: 0, next_at: SimTime::NEVER, sent: 0 }
    }

    /// Packets sent so far.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// The time from one packet to the next; between bursts with a silence.
    fn interval(&mut self) -> SimSpan {
        let OnOffParameters { on, off, rate, size } = self.parameters;
        let mut interval: SimSpan = rate.transmission(Bytes::new(u64::from(size)));
        if self.left == 0 {
            let mean = on.as_secs_f64() / interval.as_secs_f64();
            // A cast rounds towards zero.
            self.left = ((self.stream.exponential(mean) + 0.5) as u64).max(1);
            interval = interval.saturating_add(self.stream.exponential_span(off));
        }
        self.left -= 1;
        interval
    }
}

impl Host for OnOff {
    fn handle(&mut self, _now: SimTime, _arrival: Arrival<'_>) {}

    fn handle_timeout(&mut self, _now: SimTime) {}

    fn handle_input(&mut self, now: SimTime, input: Input) {
        match input {
            Input::Start => {
                self.left = 0;
                self.next_at = now.saturating_add(self.interval());
            }
            Input::Stop => self.next_at = SimTime::NEVER,
            Input::Offer(_) => {}
        }
    }

    fn poll_transmit(&mut self, now: SimTime) -> Option<Transmit> {
        if self.next_at > now {
            return None;
        }
        self.next_at = self.next_at.saturating_add(self.interval());
        self.sent += 1;
        Some(Transmit::new(self.parameters.size, Body::Raw(Raw { seq: self.sent - 1, sent_at: now })))
    }

    fn poll_timeout(&self) -> SimTime {
        self.next_at
    }
}
