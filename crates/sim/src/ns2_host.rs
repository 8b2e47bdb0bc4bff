//! ns-2's agents as hosts.

pub(crate) mod account;

use anabranch_ns2::{Packet, STREAM_HEADER, Sender, Sink, Streams, Taken};
use anabranch_units::SimTime;

use crate::account::Account;
use crate::distribution::Spans;
use crate::gauges::{GaugeListener, GaugeRow, Record};
use crate::history::{Detail, Entry, History, remember};
use crate::host::{Arrival, Host, Input, Supply, Transmit};
use crate::packet::Body;

/// A sender of ns-2. After the start it has endless data, unless it is fed by offers.
#[derive(Clone, Debug)]
pub struct Ns2Source {
    sender: Sender,
    payload: u32,
    supply: Supply,
    record: Option<Record>,
    listener: Option<GaugeListener>,
    rtts: Spans,
}

/// A sink of ns-2, or MFast's receiver: one with streams.
#[derive(Clone, Debug)]
pub struct Ns2Sink {
    sink: Sink,
    /// Bytes of payload in a packet.
    payload: u32,
    /// State that only a sink with streams or records needs.
    extras: Option<Box<Extras>>,
}

#[derive(Clone, Debug, Default)]
struct Extras {
    streams: Option<Streams>,
    rows: Option<History<DeliveryRow>>,
}

/// The effect of an arrival for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryRow {
    /// The time of the arrival.
    pub time: SimTime,
    /// The stream, from 1; 0 for a connection without streams.
    pub stream: u8,
    /// Data packets that are newly deliverable.
    pub packets: u32,
    /// Packets held after the arrival.
    pub held: u32,
}

/// Deliveries to one stream add up.
impl Entry for DeliveryRow {
    fn time(&self) -> SimTime {
        self.time
    }

    fn joins(&self, later: &Self) -> bool {
        self.stream == later.stream
    }

    fn joined(&self, later: &Self) -> Self {
        Self { packets: self.packets + later.packets, ..*later }
    }
}

impl Ns2Source {
    /// A source that has not started.
    pub fn new(sender: Sender) -> Self {
        let payload = sender.config().payload;
        Self { sender, payload, supply: Supply::Endless, record: None, listener: None, rtts: Spans::default() }
    }

    /// The same source, with data from offers only.
    #[must_use]
    pub fn fed(self) -> Self {
        Self { supply: Supply::Offers, ..self }
    }

    /// The same source, with a stream header in the payload of each packet, as [`Streams`] expects.
    #[must_use]
    pub fn with_stream_headers(self) -> Self {
        Self { payload: self.payload.saturating_sub(STREAM_HEADER), ..self }
    }

    /// The same source, recording its variables at each change.
    #[must_use]
    pub fn traced(self) -> Self {
        self.traced_in(Detail::WHOLE)
    }

    /// The same source, recording in this detail: a long run has millions of changes.
    #[must_use]
    pub fn traced_in(self, detail: Detail) -> Self {
        Self { record: Some(Record::new(detail, 1)), ..self }
    }

    /// The same source, telling its variables at each change.
    #[must_use]
    pub fn heard_by(self, listener: GaugeListener) -> Self {
        Self { listener: Some(listener), ..self }
    }

    /// The agent that sends.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// The distribution of RTT samples.
    pub fn rtts(&self) -> &Spans {
        &self.rtts
    }

    /// The variables at each change, if recorded.
    pub fn rows(&self) -> Option<&[GaugeRow]> {
        self.record.as_ref()?.rows(0)
    }

    /// The highest cumulatively acknowledged packet over time, if recorded; -1 before the first.
    pub fn acked(&self) -> Option<&[(SimTime, i64)]> {
        self.record.as_ref().map(|record| record.acked.entries())
    }
}

impl Ns2Sink {
    /// A sink that has received nothing.
    pub fn new(sink: Sink) -> Self {
        Self { sink, payload: 0, extras: None }
    }

    /// The same sink, with `payload` bytes of payload per packet. Without this call it counts no bytes.
    #[must_use]
    pub fn carrying(self, payload: u32) -> Self {
        Self { payload, ..self }
    }

    /// The same sink with streams.
    #[must_use]
    pub fn with_streams(mut self, streams: Streams) -> Self {
        self.extras.get_or_insert_default().streams = Some(streams);
        self
    }

    /// The same sink, recording deliveries.
    #[must_use]
    pub fn traced(self) -> Self {
        self.traced_in(Detail::WHOLE)
    }

    /// The same sink, recording in this detail.
    #[must_use]
    pub fn traced_in(mut self, detail: Detail) -> Self {
        self.extras.get_or_insert_default().rows = Some(History::new(detail));
        self
    }

    /// The agent that receives.
    pub fn sink(&self) -> &Sink {
        &self.sink
    }

    /// The largest number of held packets: above a hole in their stream, or on a connection without streams.
    pub fn held_packets_max(&self) -> u32 {
        let streams = self.extras.as_ref().and_then(|extras| extras.streams.as_ref());
        streams.map_or_else(|| self.sink.held_packets_max(), Streams::held_packets_max)
    }

    /// The effect of each arrival for the application, if recorded.
    pub fn rows(&self) -> Option<&[DeliveryRow]> {
        self.extras.as_ref()?.rows.as_ref().map(History::entries)
    }
}

impl Extras {
    fn handle(&mut self, sink: &mut Sink, time: SimTime, packet: &Packet) {
        let data_packets = |sink: &Sink| sink.delivered_packets().saturating_sub(SYN_PACKETS);
        let taken = self.streams.as_mut().map(|streams| streams.take(packet.seq));
        let before = data_packets(sink);
        if taken != Some(Taken::NoRoom) {
            sink.handle(time, packet);
        }
        let (stream, packets) = match taken {
            // One packet releases fewer packets than a window has, which is less than 2^32.
            None => (0, (data_packets(sink) - before) as u32),
            Some(Taken::Data(delivery)) => (delivery.stream, delivery.packets),
            Some(Taken::Syn | Taken::NoRoom) => (0, 0),
        };
        let held = self.streams.as_ref().map_or_else(|| sink.held_packets(), Streams::held_packets);
        debug_assert!(held <= sink.held_packets(), "what is in order on the connection is in order on its stream");
        if let Some(rows) = &mut self.rows
            && (packets > 0 || held != rows.last().map_or(0, |last| last.held))
        {
            rows.push(DeliveryRow { time, stream, packets, held });
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
            let before = self.sender.counters().rtt_sum;
            self.sender.handle(now, packet);
            // An ACK gives at most one sample.
            self.rtts.add_growth(before, self.sender.counters().rtt_sum);
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
        // When there is nothing more to send, all changes of the event are done.
        if packet.is_none() {
            if let Some(record) = &mut self.record {
                GaugeRow { time: now, gauges: self.sender.gauges() }.remember(&mut record.rows[0]);
                remember(&mut record.acked, now, self.sender.acked_seq().into());
            }
            if let Some(listener) = &mut self.listener {
                listener.hear(now, self.sender.gauges());
            }
        }
        packet.map(Transmit::from)
    }

    fn poll_timeout(&self) -> SimTime {
        self.sender.poll_timeout()
    }

    fn account(&self) -> &dyn Account {
        self
    }
}

impl Host for Ns2Sink {
    fn handle(&mut self, now: SimTime, arrival: Arrival<'_>) {
        if let Body::Ns2(packet) = arrival.body {
            match &mut self.extras {
                None => self.sink.handle(now, packet),
                Some(extras) => extras.handle(&mut self.sink, now, packet),
            }
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

    fn account(&self) -> &dyn Account {
        self
    }
}
