//! ns-2's agents as hosts.

use anabranch_ns2::{Gauges, MfastSink, Packet, STREAM_HEADER, Sender, Sink};
use anabranch_units::SimTime;

use crate::host::{Arrival, Host, Input, Transmit};
use crate::packet::Body;

/// A sender of ns-2. Told to start it has data for ever, unless it is fed by offers.
#[derive(Clone, Debug)]
pub struct Ns2Source {
    sender: Sender,
    payload: u32,
    supply: Supply,
    rows: Option<Vec<GaugeRow>>,
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

/// A sink of ns-2, or MFast's receiver on top of one.
#[derive(Clone, Debug)]
pub struct Ns2Sink {
    receiver: Receiver,
    rows: Option<Vec<DeliveryRow>>,
}

#[derive(Clone, Debug)]
enum Receiver {
    Plain(Sink),
    Mfast(MfastSink),
}

/// What an arrival changed for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryRow {
    /// When.
    pub time: SimTime,
    /// The stream, from 1; 0 of a connection without streams.
    pub stream: u8,
    /// Packets with data that the application can have now and could not before.
    pub packets: u32,
    /// Packets that wait for one before them from now on.
    pub held: u32,
}

impl Ns2Source {
    /// A source that has not started.
    pub fn new(sender: Sender) -> Self {
        let payload = sender.config().payload;
        Self { sender, payload, supply: Supply::Endless, rows: None }
    }

    /// The same, with no data but what it is offered.
    #[must_use]
    pub fn fed(self) -> Self {
        Self { supply: Supply::Offers, ..self }
    }

    /// The same with a stream header in the payload of each packet, as [`MfastSink`] wants.
    #[must_use]
    pub fn with_stream_headers(self) -> Self {
        Self { payload: self.payload.saturating_sub(STREAM_HEADER), ..self }
    }

    /// The same, remembering its variables at each change.
    #[must_use]
    pub fn traced(self) -> Self {
        Self { rows: Some(Vec::new()), ..self }
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
        Self { receiver: Receiver::Plain(sink), rows: None }
    }

    /// A receiver with streams that has received nothing.
    pub fn mfast(sink: MfastSink) -> Self {
        Self { receiver: Receiver::Mfast(sink), rows: None }
    }

    /// The same, remembering what the application can have when.
    #[must_use]
    pub fn traced(self) -> Self {
        Self { rows: Some(Vec::new()), ..self }
    }

    /// The agent, below the streams if there are any.
    pub fn sink(&self) -> &Sink {
        match &self.receiver {
            Receiver::Plain(sink) => sink,
            Receiver::Mfast(mfast) => mfast.sink(),
        }
    }

    /// The most packets that waited at one time for one before them: in their stream, or on a connection without streams.
    pub fn held_packets_max(&self) -> u32 {
        match &self.receiver {
            Receiver::Plain(sink) => sink.held_packets_max(),
            Receiver::Mfast(mfast) => mfast.held_packets_max(),
        }
    }

    /// What each arrival changed for the application, if the sink was told to remember it.
    pub fn rows(&self) -> Option<&[DeliveryRow]> {
        self.rows.as_deref()
    }
}

impl Receiver {
    /// Hands a packet to the receiver, and tells what that changed.
    fn handle_traced(&mut self, time: SimTime, packet: &Packet) -> DeliveryRow {
        match self {
            Self::Plain(sink) => {
                let delivered = |sink: &Sink| sink.delivered_packets().saturating_sub(SYN_PACKETS);
                let before = delivered(sink);
                sink.handle(time, packet);
                // A packet releases fewer than a window, which is counted in 32 bits.
                let packets = (delivered(sink) - before) as u32;
                DeliveryRow { time, stream: 0, packets, held: sink.held_packets() }
            }
            Self::Mfast(mfast) => {
                mfast.handle(time, packet);
                let held = mfast.held_packets();
                mfast.poll_delivery().map_or(DeliveryRow { time, stream: 0, packets: 0, held }, |delivery| {
                    DeliveryRow { time, stream: delivery.stream, packets: delivery.packets, held }
                })
            }
        }
    }
}

/// The SYN is packet 0 and has no data.
const SYN_PACKETS: u64 = 1;

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
            if rows.last().is_none_or(|last| last.gauges != gauges) {
                rows.push(GaugeRow { time: now, gauges });
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
        let Body::Ns2(packet) = arrival.body else { return };
        match (&mut self.rows, &mut self.receiver) {
            (None, Receiver::Plain(sink)) => sink.handle(now, packet),
            (None, Receiver::Mfast(mfast)) => mfast.handle(now, packet),
            (Some(rows), receiver) => {
                let row = receiver.handle_traced(now, packet);
                let held = rows.last().map_or(0, |last| last.held);
                rows.extend((row.packets > 0 || row.held != held).then_some(row));
            }
        }
    }

    fn handle_timeout(&mut self, now: SimTime) {
        match &mut self.receiver {
            Receiver::Plain(sink) => sink.handle_timeout(now),
            Receiver::Mfast(mfast) => mfast.handle_timeout(now),
        }
    }

    fn poll_transmit(&mut self, _now: SimTime) -> Option<Transmit> {
        let ack = match &mut self.receiver {
            Receiver::Plain(sink) => sink.poll_transmit(),
            Receiver::Mfast(mfast) => mfast.poll_transmit(),
        };
        ack.map(Transmit::from)
    }

    fn poll_timeout(&self) -> SimTime {
        match &self.receiver {
            Receiver::Plain(sink) => sink.poll_timeout(),
            Receiver::Mfast(mfast) => mfast.poll_timeout(),
        }
    }
}
