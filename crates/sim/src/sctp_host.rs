//! An endpoint of ns-2's SCTP as a host, with one interface or several.
//!
//! ns-2 has a node for each interface and a core node that only selects among them. Here the interfaces are the links that start
//! at the host's node. A destination is reached by one of them, and its address is an address of the peer through one of the
//! peer's links.

mod account;

use anabranch_ns2::random::Mrg32k3a;
use anabranch_ns2::sctp::{Delivery, Endpoint, Gauges};
use anabranch_units::SimTime;

use crate::account::Account;
use crate::gauges::GaugeListener;
use crate::history::{Detail, Entry, History, remember, remember_count};
use crate::host::{Arrival, Due, Host, Input, Supply, Transmit, Way};
use crate::packet::Body;

/// An endpoint of ns-2's SCTP. After the start it has endless data, unless it is fed by offers.
#[derive(Clone, Debug)]
pub struct Ns2Sctp {
    endpoint: Endpoint,
    /// By destination. If empty, the routing tables decide.
    ways: Vec<Way>,
    supply: Supply,
    record: Option<Record>,
    listener: Option<GaugeListener>,
}

#[derive(Clone, Debug)]
struct Record {
    /// The variables of each destination.
    rows: Vec<History<SctpRow>>,
    deliveries: History<SctpDelivery>,
    held: History<(SimTime, u32)>,
    peer_windows: History<(SimTime, u32)>,
    acked: History<(SimTime, i64)>,
}

/// The variables of a destination from some time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SctpRow {
    /// The time of the change.
    pub time: SimTime,
    /// The variables from then on.
    pub gauges: Gauges,
}

impl Entry for SctpRow {
    fn time(&self) -> SimTime {
        self.time
    }
}

/// A chunk that reached the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SctpDelivery {
    /// When it was delivered.
    pub time: SimTime,
    /// The delivered chunk.
    pub delivery: Delivery,
}

/// Deliveries to one stream add up.
impl Entry for SctpDelivery {
    fn time(&self) -> SimTime {
        self.time
    }

    fn joins(&self, later: &Self) -> bool {
        self.delivery.stream == later.delivery.stream
    }

    fn joined(&self, later: &Self) -> Self {
        let bytes = self.delivery.bytes + later.delivery.bytes;
        Self { time: later.time, delivery: Delivery { bytes, ..later.delivery } }
    }
}

impl Ns2Sctp {
    /// A host with one interface that has not started.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, ways: Vec::new(), supply: Supply::Endless, record: None, listener: None }
    }

    /// The same host with several interfaces. Each destination has a link that starts at the host's node, and the address of the
    /// peer through one of the peer's links.
    ///
    /// # Panics
    /// If there are not as many entries as destinations.
    #[must_use]
    pub fn multihomed(self, ways: Vec<Way>) -> Self {
        assert_eq!(ways.len(), self.endpoint.destinations(), "one way for each destination");
        Self { ways, ..self }
    }

    /// The same host, with data from offers only.
    #[must_use]
    pub fn fed(self) -> Self {
        Self { supply: Supply::Offers, ..self }
    }

    /// The same host, recording its variables at each change, and deliveries.
    #[must_use]
    pub fn traced(self) -> Self {
        self.traced_in(Detail::WHOLE)
    }

    /// The same host, recording in this detail.
    #[must_use]
    pub fn traced_in(self, detail: Detail) -> Self {
        let record = Record {
            rows: vec![History::new(detail); self.endpoint.destinations()],
            deliveries: History::new(detail),
            held: History::new(detail),
            peer_windows: History::new(detail),
            acked: History::new(detail),
        };
        Self { record: Some(record), ..self }
    }

    /// The same host, telling its variables at each change.
    #[must_use]
    pub fn heard_by(self, listener: GaugeListener) -> Self {
        Self { listener: Some(listener), ..self }
    }

    /// The agent of the host.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The variables of a destination at each change, if recorded.
    pub fn rows(&self, destination: usize) -> Option<&[SctpRow]> {
        self.record.as_ref()?.rows.get(destination).map(History::entries)
    }

    /// The deliveries to the application, if recorded.
    pub fn deliveries(&self) -> Option<&[SctpDelivery]> {
        self.record.as_ref().map(|record| record.deliveries.entries())
    }

    /// The number of held chunks over time, if recorded.
    pub fn held(&self) -> Option<&[(SimTime, u32)]> {
        self.record.as_ref().map(|record| record.held.entries())
    }

    /// The sender's estimate of the receive window in bytes over time, if recorded.
    pub fn peer_windows(&self) -> Option<&[(SimTime, u32)]> {
        self.record.as_ref().map(|record| record.peer_windows.entries())
    }

    /// The highest cumulatively acknowledged chunk over time, if recorded.
    pub fn acked(&self) -> Option<&[(SimTime, i64)]> {
        self.record.as_ref().map(|record| record.acked.entries())
    }

    /// Called after all changes of an event.
    fn note(&mut self, now: SimTime) {
        let Self { endpoint, record, listener, .. } = self;
        if let Some(listener) = listener {
            listener.hear(now, account::summed(endpoint));
        }
        while let Some(delivery) = endpoint.poll_delivery() {
            if let Some(record) = record {
                record.deliveries.push(SctpDelivery { time: now, delivery });
            }
        }
        let Some(record) = record else { return };
        remember_count(&mut record.held, now, endpoint.held_chunks());
        remember_count(&mut record.peer_windows, now, endpoint.peer_window());
        remember(&mut record.acked, now, endpoint.acked_tsn().into());
        for (destination, rows) in record.rows.iter_mut().enumerate() {
            let gauges = endpoint.gauges(destination);
            if rows.last().is_none_or(|last| last.gauges != gauges) {
                rows.push(SctpRow { time: now, gauges });
            }
        }
    }
}

impl Host for Ns2Sctp {
    fn handle_clock(&mut self, seconds: f64) {
        self.endpoint.handle_clock(seconds);
    }

    fn handle(&mut self, now: SimTime, arrival: Arrival<'_>) {
        if let Body::Sctp(packet) = arrival.body {
            self.endpoint.handle(now, packet, arrival.size);
        }
    }

    fn handle_timeout(&mut self, now: SimTime) {
        self.endpoint.handle_timeout(now);
    }

    fn handle_input(&mut self, now: SimTime, input: Input) {
        match input {
            Input::Start if self.supply == Supply::Endless => self.endpoint.produce_endlessly(now),
            Input::Start => {}
            Input::Stop => self.endpoint.stop(),
            Input::Offer(offer) => match offer.bytes {
                Some(bytes) => {
                    let streams = u32::from(self.endpoint.config().streams);
                    self.endpoint.produce(now, (offer.stream % streams) as u16, bytes);
                }
                None => self.endpoint.produce_endlessly(now),
            },
        }
    }

    fn poll_transmit(&mut self, now: SimTime) -> Option<Transmit> {
        let Some(departure) = self.endpoint.poll_transmit() else {
            self.note(now);
            return None;
        };
        let transmit = Transmit::new(departure.packet.size(), Body::Sctp(Box::new(departure.packet)));
        Some(Way::sent_by(&self.ways, departure.destination, transmit))
    }

    fn poll_timeout(&self) -> SimTime {
        self.endpoint.poll_timeout()
    }

    fn poll_due(&self) -> Option<Due> {
        self.endpoint.poll_due().map(|(seconds, set_at)| Due { seconds, set_at })
    }

    fn random(&mut self) -> Option<&mut Mrg32k3a> {
        Some(self.endpoint.random())
    }

    fn account(&self) -> &dyn Account {
        self
    }
}
