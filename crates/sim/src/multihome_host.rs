//! The ends of FAST multihoming as hosts, with one interface or several.
//!
//! As with SCTP, the interfaces are the links at the host's node. A path is an outgoing link and a destination address. The
//! destination address of an arrival identifies its path.

mod account;

use anabranch_ns2::Packet;
use anabranch_ns2::multihome::{Departure, Sender, Sink};
use anabranch_units::SimTime;

use crate::account::Account;
use crate::distribution::Spans;
use crate::gauges::{GaugeListener, GaugeRow, Record};
use crate::history::{Detail, History, remember};
use crate::host::{Arrival, Host, Input, Supply, Transmit, Way};
use crate::ns2_host::DeliveryRow;
use crate::packet::Body;

/// The sender of FAST multihoming. After the start it has endless data, unless it is fed by offers.
#[derive(Clone, Debug)]
pub struct MultihomedSource {
    sender: Sender,
    ways: Vec<Way>,
    supply: Supply,
    record: Option<Record>,
    listener: Option<GaugeListener>,
    rtts: Spans,
}

/// The receiver of FAST multihoming.
#[derive(Clone, Debug)]
pub struct MultihomedSink {
    sink: Sink,
    ways: Vec<Way>,
    paths: u64,
    /// Bytes of payload in a packet.
    payload: u32,
    rows: Option<History<DeliveryRow>>,
}

impl MultihomedSource {
    /// A source with one interface that has not started.
    pub fn new(sender: Sender) -> Self {
        Self { sender, ways: Vec::new(), supply: Supply::Endless, record: None, listener: None, rtts: Spans::default() }
    }

    /// The same source with several interfaces. Each path has a link that starts at the host's node, the address of the peer, and
    /// the local address.
    ///
    /// # Panics
    /// If there are not as many entries as paths.
    #[must_use]
    pub fn multihomed(self, ways: Vec<Way>) -> Self {
        assert_eq!(ways.len(), self.sender.config().paths, "one way for each path");
        Self { ways, ..self }
    }

    /// The same source, with data from offers only.
    #[must_use]
    pub fn fed(self) -> Self {
        Self { supply: Supply::Offers, ..self }
    }

    /// The same source, recording each path's variables in this detail.
    #[must_use]
    pub fn traced_in(self, detail: Detail) -> Self {
        Self { record: Some(Record::new(detail, self.sender.config().paths)), ..self }
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

    /// The distribution of RTT samples, on all paths.
    pub fn rtts(&self) -> &Spans {
        &self.rtts
    }

    /// The variables of a path at each change, if they were recorded and the path exists.
    pub fn rows(&self, path: usize) -> Option<&[GaugeRow]> {
        self.record.as_ref()?.rows(path)
    }

    /// The highest cumulatively acknowledged packet over time, if recorded; -1 before the first.
    pub fn acked(&self) -> Option<&[(SimTime, i64)]> {
        self.record.as_ref().map(|record| record.acked.entries())
    }

    /// Called after all changes of an event.
    fn note(&mut self, now: SimTime) {
        if let Some(listener) = &mut self.listener {
            listener.hear_paths(now, (0..self.sender.config().paths).map(|path| (path, self.sender.gauges(path))));
        }
        let Some(record) = &mut self.record else { return };
        for (path, rows) in record.rows.iter_mut().enumerate() {
            GaugeRow { time: now, gauges: self.sender.gauges(path) }.remember(rows);
        }
        remember(&mut record.acked, now, self.sender.acked_seq().into());
    }
}

impl MultihomedSink {
    /// A sink with one interface that has received nothing.
    pub fn new(paths: usize) -> Self {
        let sink = Sink::new(paths);
        Self { sink, ways: Vec::new(), paths: paths as u64, payload: 0, rows: None }
    }

    /// The same sink, with `payload` bytes of payload per packet. Without this call it counts no bytes.
    #[must_use]
    pub fn carrying(self, payload: u32) -> Self {
        Self { payload, ..self }
    }

    /// Several interfaces, as in [`MultihomedSource::multihomed`].
    ///
    /// # Panics
    /// If there are not as many entries as paths.
    #[must_use]
    pub fn multihomed(self, ways: Vec<Way>) -> Self {
        assert_eq!(ways.len() as u64, self.paths, "one way for each path");
        Self { ways, ..self }
    }

    /// The same sink, recording deliveries in this detail.
    #[must_use]
    pub fn traced_in(self, detail: Detail) -> Self {
        Self { rows: Some(History::new(detail)), ..self }
    }

    /// The agent that receives.
    pub fn sink(&self) -> &Sink {
        &self.sink
    }

    /// Data packets delivered to the application. Each path begins with a packet without data, which does not count.
    pub fn delivered_data_packets(&self) -> u64 {
        self.sink.delivered_packets().saturating_sub(self.paths)
    }

    /// The effect of each arrival for the application, if recorded.
    pub fn rows(&self) -> Option<&[DeliveryRow]> {
        self.rows.as_ref().map(History::entries)
    }

    fn take(&mut self, now: SimTime, path: usize, packet: &Packet) {
        let before = self.delivered_data_packets();
        self.sink.handle(now, path, packet);
        // An arrival releases fewer packets than fit in the receiver's buffer, which is less than 2^32.
        let packets = (self.delivered_data_packets() - before) as u32;
        let held = self.sink.held_packets();
        let Some(rows) = &mut self.rows else { return };
        if packets > 0 || held != rows.last().map_or(0, |last| last.held) {
            rows.push(DeliveryRow { time: now, stream: 0, packets, held });
        }
    }
}

fn transmit(ways: &[Way], Departure { path, packet }: Departure) -> Transmit {
    Way::sent_by(ways, path, Transmit::from(packet))
}

impl Host for MultihomedSource {
    fn handle_clock(&mut self, seconds: f64) {
        self.sender.handle_clock(seconds);
    }

    fn handle(&mut self, now: SimTime, arrival: Arrival<'_>) {
        if let (Some(path), Body::Ns2(packet)) = (Way::came_by(&self.ways, &arrival), &*arrival.body) {
            let before = self.sender.path_counters(path).rtt_sum;
            self.sender.handle(now, path, packet);
            // A SACK gives at most one sample, on the path on which it arrived.
            self.rtts.add_growth(before, self.sender.path_counters(path).rtt_sum);
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
                // Packets have one size: the last packet of an offer may be padded.
                let payload = u64::from(self.sender.config().agent.payload.max(1));
                let packets = offer.bytes.map(|bytes| bytes.div_ceil(payload));
                self.sender.produce(now, packets.map(|packets| u32::try_from(packets).unwrap_or(u32::MAX)));
            }
        }
    }

    fn poll_transmit(&mut self, now: SimTime) -> Option<Transmit> {
        let departure = self.sender.poll_transmit();
        if departure.is_none() {
            self.note(now);
        }
        departure.map(|departure| transmit(&self.ways, departure))
    }

    fn poll_timeout(&self) -> SimTime {
        self.sender.poll_timeout()
    }

    fn account(&self) -> &dyn Account {
        self
    }
}

impl Host for MultihomedSink {
    fn handle(&mut self, now: SimTime, arrival: Arrival<'_>) {
        if let (Some(path), &Body::Ns2(packet)) = (Way::came_by(&self.ways, &arrival), &*arrival.body) {
            self.take(now, path, &packet);
        }
    }

    fn poll_transmit(&mut self, _now: SimTime) -> Option<Transmit> {
        self.sink.poll_transmit().map(|departure| transmit(&self.ways, departure))
    }

    fn account(&self) -> &dyn Account {
        self
    }
}
