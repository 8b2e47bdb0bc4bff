//! Bursts and idle times, as ns-2.35's `Application/Traffic/Exponential`.
//!
//! ```text
//!   idle time      exponential with mean `off`
//!   burst          n packets at the peak rate, n = ⌊x + 1/2⌋ but at least 1, x exponential with mean on · rate / size
//! ```
//!
//! It begins with an idle time. The first packet of a burst is sent one packet interval after the idle time, as in ns-2, which
//! adds the idle time to the interval after the last packet. The burst is drawn first, then the idle time before it.
//!
//! In a world with ns-2's random stream it draws from that stream, as all others do, and sums its times in doubles.

use anabranch_ns2::random::Mrg32k3a;
use anabranch_units::{Bytes, Rate, SimSpan, SimTime};

use crate::account::{Account, HostReport, SentReport};
use crate::float_clock;
use crate::host::{Arrival, Due, Host, Input, Transmit};
use crate::packet::{Body, Raw};
use crate::rng::Stream;

/// The parameters of an [`OnOff`] source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnOffParameters {
    /// Mean length of a burst (`burst_time_`).
    pub on: SimSpan,
    /// Mean length of an idle time (`idle_time_`).
    pub off: SimSpan,
    /// Rate within a burst (`rate_`).
    pub rate: Rate,
    /// Bytes of a packet on the wire.
    pub size: u32,
}

/// Sends bursts of exponential length, separated by exponential idle times.
#[derive(Clone, Debug)]
pub struct OnOff {
    parameters: OnOffParameters,
    /// How long a packet takes at the peak rate.
    packet: SimSpan,
    /// The same in seconds, as ns-2 computes it.
    packet_s: f64,
    draws: Draws,
    /// Packets left in the burst.
    left: u64,
    next_at: SimTime,
    /// As `next_at` by ns-2's clock, with the time when it was set; `None` in other worlds.
    due: Option<Due>,
    /// The current time by ns-2's clock, in a world that has it.
    clock: Option<f64>,
    sent: u64,
}

/// The source of its random numbers.
#[derive(Clone, Debug)]
enum Draws {
    Own(Stream),
    Lent(Mrg32k3a),
}

impl Draws {
    /// Exponential with this mean.
    fn exponential(&mut self, mean: f64) -> f64 {
        match self {
            Self::Own(stream) => stream.exponential(mean),
            Self::Lent(stream) => mean * -libm::log(stream.uniform()),
        }
    }
}

impl OnOff {
    /// A source that has not started.
    pub fn new(parameters: OnOffParameters, stream: Stream) -> Self {
        Self::drawing(parameters, Draws::Own(stream))
    }

    /// The same source, drawing from the world's stream if that is ns-2's, and from `stream` otherwise.
    pub fn ns2(parameters: OnOffParameters, stream: Mrg32k3a) -> Self {
        Self::drawing(parameters, Draws::Lent(stream))
    }

    fn drawing(parameters: OnOffParameters, draws: Draws) -> Self {
        let OnOffParameters { rate, size, .. } = parameters;
        let packet = rate.transmission(Bytes::new(u64::from(size)));
        let packet_s = 8.0 * f64::from(size) / rate.bits_per_second() as f64;
        Self { parameters, packet, packet_s, draws, left: 0, next_at: SimTime::NEVER, due: None, clock: None, sent: 0 }
    }

    /// Packets sent so far.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Seconds of idle time before the next packet.
    fn silence(&mut self) -> f64 {
        let mut silence = 0.0;
        if self.left == 0 {
            let OnOffParameters { on, off, .. } = self.parameters;
            let packet_s = match self.clock {
                Some(_) => self.packet_s,
                None => self.packet.as_secs_f64(),
            };
            // The cast rounds towards zero.
            self.left = ((self.draws.exponential(on.as_secs_f64() / packet_s) + 0.5) as u64).max(1);
            silence = self.draws.exponential(off.as_secs_f64());
        }
        self.left -= 1;
        silence
    }

    /// Sets the time of the next packet, counted from `from`.
    fn schedule(&mut self, from: SimTime, now: SimTime) {
        let silence = self.silence();
        if let Some(clock) = self.clock {
            let seconds = clock + (self.packet_s + silence);
            self.due = Some(Due { seconds, set_at: now });
            self.next_at = float_clock::ticks(seconds);
        } else {
            // Most packets follow without an idle time, which is not worth a conversion then.
            let silence = if silence > 0.0 { SimSpan::from_secs_f64(silence) } else { SimSpan::ZERO };
            self.next_at = from.saturating_add(self.packet.saturating_add(silence));
        }
    }
}

impl Account for OnOff {
    fn report(&self) -> HostReport<'_> {
        HostReport { sent: SentReport { packets: self.sent, ..SentReport::default() }, ..HostReport::default() }
    }
}

impl Host for OnOff {
    fn handle_clock(&mut self, seconds: f64) {
        self.clock = Some(seconds);
    }

    fn handle(&mut self, _now: SimTime, _arrival: Arrival<'_>) {}

    fn handle_input(&mut self, now: SimTime, input: Input) {
        match input {
            Input::Start => {
                self.left = 0;
                self.schedule(now, now);
            }
            Input::Stop => (self.next_at, self.due) = (SimTime::NEVER, None),
            Input::Offer(_) => {}
        }
    }

    fn poll_transmit(&mut self, now: SimTime) -> Option<Transmit> {
        if self.next_at > now {
            return None;
        }
        self.schedule(self.next_at, now);
        self.sent += 1;
        Some(Transmit::new(self.parameters.size, Body::Raw(Raw { seq: self.sent - 1, sent_at: now })))
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

    fn random(&mut self) -> Option<&mut Mrg32k3a> {
        match &mut self.draws {
            Draws::Own(_) => None,
            Draws::Lent(stream) => Some(stream),
        }
    }
}
