//! Constant bit rate, as ns-2's `Application/Traffic/CBR`: the first packet is sent at the start, then one every `size / rate`.
//! The remainder of an interval in picoseconds is carried over, so the rate is exact.
//!
//! In a world with ns-2's clock, the intervals are summed in doubles, as in ns-2. If a sum equals the time of a stop, its last
//! bit decides whether one more packet is sent.

use anabranch_units::{PICO, Rate, SimTime};

use crate::account::{Account, HostReport, SentReport};
use crate::float_clock;
use crate::host::{Arrival, Due, Host, Input, Transmit};
use crate::packet::{Body, Raw};

/// Sends packets of one size at one rate.
#[derive(Clone, Debug)]
pub struct Cbr {
    rate: u64,
    size: u32,
    /// Packets sent.
    sent: u64,
    next_at: SimTime,
    /// The remainder that was rounded off `next_at`, in 1/rate ps.
    rest: u64,
    /// `next_at` by ns-2's clock, and when it was set; `None` in other worlds.
    due: Option<Due>,
    /// The current time by ns-2's clock, in a world that has it.
    clock: Option<f64>,
}

impl Cbr {
    /// A source that has not started. With a rate of zero it never sends.
    pub const fn new(rate: Rate, size: u32) -> Self {
        Self { rate: rate.bits_per_second(), size, sent: 0, next_at: SimTime::NEVER, rest: 0, due: None, clock: None }
    }

    /// Packets sent so far.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Sets the time of the next packet.
    fn schedule(&mut self, now: SimTime) {
        if let Some(clock) = self.clock {
            let seconds = clock + 8.0 * f64::from(self.size) / self.rate as f64;
            self.due = Some(Due { seconds, set_at: now });
            self.next_at = float_clock::ticks(seconds);
        } else {
            let ahead = u128::from(self.size) * 8 * u128::from(PICO) + u128::from(self.rest);
            let ticks = u64::try_from(ahead / u128::from(self.rate)).unwrap_or(u64::MAX);
            self.rest = (ahead % u128::from(self.rate)) as u64;
            self.next_at = SimTime::from_ticks(self.next_at.ticks().saturating_add(ticks));
        }
    }
}

impl Account for Cbr {
    fn report(&self) -> HostReport<'_> {
        HostReport { sent: SentReport { packets: self.sent, ..SentReport::default() }, ..HostReport::default() }
    }
}

impl Host for Cbr {
    fn handle_clock(&mut self, seconds: f64) {
        self.clock = Some(seconds);
    }

    fn handle(&mut self, _now: SimTime, _arrival: Arrival<'_>) {}

    fn handle_input(&mut self, now: SimTime, input: Input) {
        match input {
            Input::Start if self.rate > 0 && self.size > 0 => (self.next_at, self.rest) = (now, 0),
            Input::Start | Input::Offer(_) => {}
            Input::Stop => (self.next_at, self.due) = (SimTime::NEVER, None),
        }
    }

    fn poll_transmit(&mut self, now: SimTime) -> Option<Transmit> {
        if self.next_at > now {
            return None;
        }
        self.schedule(now);
        self.sent += 1;
        Some(Transmit::new(self.size, Body::Raw(Raw { seq: self.sent - 1, sent_at: now })))
    }

    fn poll_timeout(&self) -> SimTime {
        self.next_at
    }

    fn account(&self) -> &dyn Account {
        self
    }

    fn poll_due(&self) -> Option<Due> {
        self.due
    }
}
