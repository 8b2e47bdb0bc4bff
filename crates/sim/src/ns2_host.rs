//! ns-2's agents as hosts.

use anabranch_ns2::{Gauges, Sender, Sink};
use anabranch_units::{SimSpan, SimTime};

use crate::host::{Arrival, Host, Input, Transmit};
use crate::packet::Body;
use crate::probe::is_same_bin;

/// A sender of ns-2. Told to start it has data for ever, unless it is fed by offers.
#[derive(Clone, Debug)]
pub struct Ns2Source {
    sender: Sender,
    payload: u32,
    supply: Supply,
    rows: Option<Vec<GaugeRow>>,
    /// Of several rows within one of these only the last is kept; zero keeps all.
    resolution: SimSpan,
}

/// Where a source has its data from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Supply {
    /// It has data for ever once it is told to start.
    Endless,
    /// It has what it is offered.
    Offers,
}

/// A sender's variables from some time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaugeRow {
    /// From when on.
    pub time: SimTime,
    /// The variables.
    pub gauges: Gauges,
}

/// A sink of ns-2.
#[derive(Clone, Debug)]
pub struct Ns2Sink {
    sink: Sink,
}

impl Ns2Source {
    /// A source that has not started.
    pub fn new(sender: Sender) -> Self {
        let payload = sender.config().payload;
        Self { sender, payload, supply: Supply::Endless, rows: None, resolution: SimSpan::ZERO }
    }

    /// The same, with no data but what it is offered.
    #[must_use]
    pub fn fed(self) -> Self {
        Self { supply: Supply::Offers, ..self }
    }

    /// The same, remembering its variables at each change.
    #[must_use]
    pub fn traced(self) -> Self {
        self.traced_every(SimSpan::ZERO)
    }

    /// The same, remembering of several changes within one `resolution`, counted from the start of time, only the last: a long
    /// run of many packets has millions.
    #[must_use]
    pub fn traced_every(self, resolution: SimSpan) -> Self {
        Self { rows: Some(Vec::new()), resolution, ..self }
    }

    /// The agent.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The variables at each change, if the source was told to remember them.
    pub fn rows(&self) -> Option<&[GaugeRow]> {
        self.rows.as_deref()
    }
}

impl Ns2Sink {
    /// A sink that has received nothing.
    pub fn new(sink: Sink) -> Self {
        Self { sink }
    }

    /// The agent.
    pub fn sink(&self) -> &Sink {
        &self.sink
    }
}

impl Host for Ns2Source {
    fn handle_clock(&mut self, seconds: f64) {
        self.sender.handle_clock(seconds);
    }

    fn handle(&mut self, now: SimTime, arrival: Arrival<'_>) {
        if let Body::Ns2(packet) = arrival.body {
            self.sender.handle(now, packet);
        }
    }

    fn handle_timeout(&mut self, now: SimTime) {
        self.sender.handle_timeout(now);
    }

    fn handle_input(&mut self, now: SimTime, input: Input) {
        match input {
            Input::Start if self.supply == Supply::Endless => self.sender.produce(now, None),
            Input::Start => {}
            Input::Stop => self.sender.stop(now),
            Input::Offer(offer) => {
                // ns-2 counts packets: the last one of an offer may be padded.
                let packets = offer.bytes.map(|bytes| bytes.div_ceil(u64::from(self.payload.max(1))));
                self.sender.produce(now, packets.map(|packets| u32::try_from(packets).unwrap_or(u32::MAX)));
            }
        }
    }

    fn poll_transmit(&mut self, now: SimTime) -> Option<Transmit> {
        let packet = self.sender.poll_transmit();
        // Everything that an event changes has changed when there is nothing more to send.
        if let (None, Some(rows)) = (packet, &mut self.rows) {
            let gauges = self.sender.gauges();
            let row = GaugeRow { time: now, gauges };
            match rows.last_mut() {
                Some(last) if last.gauges == gauges => {}
                Some(last) if is_same_bin(last.time, now, self.resolution) => *last = row,
                _ => rows.push(row),
            }
        }
        packet.map(Transmit::from)
    }

    fn poll_timeout(&self) -> SimTime {
        self.sender.poll_timeout()
    }
}

impl Host for Ns2Sink {
    fn handle(&mut self, now: SimTime, arrival: Arrival<'_>) {
        if let Body::Ns2(packet) = arrival.body {
            self.sink.handle(now, packet);
        }
    }

    fn handle_timeout(&mut self, now: SimTime) {
        self.sink.handle_timeout(now);
    }

    fn poll_transmit(&mut self, _now: SimTime) -> Option<Transmit> {
        self.sink.poll_transmit().map(Transmit::from)
    }

    fn poll_timeout(&self) -> SimTime {
        self.sink.poll_timeout()
    }
}
