//! An endpoint of ns-2's SCTP as a host, with one interface or several.
//!
//! ns-2 has a node for each interface and a core node that only chooses between them. Here the interfaces are the links that
//! start at the host's node: a destination is reached by one of them, and has an address through one of the other end's.

use anabranch_ns2::random::Mrg32k3a;
use anabranch_ns2::sctp::{Delivery, Endpoint, Gauges};
use anabranch_units::{SimSpan, SimTime};

use crate::host::{Arrival, Due, Host, Input, Transmit};
use crate::id::{Address, LinkId, Port};
use crate::packet::Body;
use crate::probe::{is_same_bin, remember, remember_count};

/// An endpoint of ns-2's SCTP. Told to start it has data for ever, unless it is fed by offers.
#[derive(Clone, Debug)]
pub struct Ns2Sctp {
    endpoint: Endpoint,
    /// By destination: the interface and the address; by whatever way the routing tables say if there is none.
    ways: Vec<(LinkId, Address)>,
    is_fed: bool,
    record: Option<Record>,
}

#[derive(Clone, Debug)]
struct Record {
    /// By destination.
    rows: Vec<Vec<SctpRow>>,
    deliveries: Vec<SctpDelivery>,
    held: Vec<(SimTime, u32)>,
    peer_windows: Vec<(SimTime, u32)>,
    acked: Vec<(SimTime, i64)>,
    /// Of several changes of a variable within one of these only the last is kept; zero keeps all.
    resolution: SimSpan,
}

/// A destination's variables from some time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SctpRow {
    /// From when on.
    pub time: SimTime,
    /// The variables.
    pub gauges: Gauges,
}

/// A chunk that reached the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SctpDelivery {
    /// When.
    pub time: SimTime,
    /// Which.
    pub delivery: Delivery,
}

impl Ns2Sctp {
    /// A host of one interface that has not started.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, ways: Vec::new(), is_fed: false, record: None }
    }

    /// The same with several interfaces: for each destination a link that starts at the host's node, and the address of the
    /// other end through one of its links.
    ///
    /// # Panics
    /// If there are not as many as destinations.
    #[must_use]
    pub fn multihomed(self, ways: Vec<(LinkId, Address)>) -> Self {
        assert_eq!(ways.len(), self.endpoint.destinations(), "one way for each destination");
        Self { ways, ..self }
    }

    /// The same, with no data but what it is offered.
    #[must_use]
    pub fn fed(self) -> Self {
        Self { is_fed: true, ..self }
    }

    /// The same, remembering its variables at each change and what reaches the application.
    #[must_use]
    pub fn traced(self) -> Self {
        self.traced_every(SimSpan::ZERO)
    }

    /// The same, remembering of the changes of a variable within one `resolution`, counted from the start of time, the last.
    #[must_use]
    pub fn traced_every(self, resolution: SimSpan) -> Self {
        let rows = vec![Vec::new(); self.endpoint.destinations()];
        Self { record: Some(Record::new(rows, resolution)), ..self }
    }

    /// The agent.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The variables of a destination at each change, if the host was told to remember them.
    pub fn rows(&self, destination: usize) -> Option<&[SctpRow]> {
        self.record.as_ref()?.rows.get(destination).map(Vec::as_slice)
    }

    /// What has reached the application, if the host was told to remember it.
    pub fn deliveries(&self) -> Option<&[SctpDelivery]> {
        self.record.as_ref().map(|record| record.deliveries.as_slice())
    }

    /// How many chunks wait for one before them in their stream, and from when on, if the host was told to remember it.
    pub fn held(&self) -> Option<&[(SimTime, u32)]> {
        self.record.as_ref().map(|record| record.held.as_slice())
    }

    /// What the receive window is taken for in bytes, from when on, if the host was told to remember it.
    pub fn peer_windows(&self) -> Option<&[(SimTime, u32)]> {
        self.record.as_ref().map(|record| record.peer_windows.as_slice())
    }

    /// Up to which chunk all are acknowledged, from when on, if the host was told to remember it.
    pub fn acked(&self) -> Option<&[(SimTime, i64)]> {
        self.record.as_ref().map(|record| record.acked.as_slice())
    }

    /// After everything that an event changes has changed.
    fn note(&mut self, now: SimTime) {
        let Self { endpoint, record, .. } = self;
        while let Some(delivery) = endpoint.poll_delivery() {
            if let Some(record) = record {
                record.deliveries.push(SctpDelivery { time: now, delivery });
            }
        }
        let Some(record) = record else { return };
        remember_count(&mut record.held, now, endpoint.held_chunks(), record.resolution);
        remember_count(&mut record.peer_windows, now, endpoint.peer_window(), record.resolution);
        remember(&mut record.acked, now, endpoint.acked_tsn().into(), record.resolution);
        for (destination, rows) in record.rows.iter_mut().enumerate() {
            let gauges = endpoint.gauges(destination);
            match rows.last_mut() {
                Some(last) if last.gauges == gauges => {}
                Some(last) if is_same_bin(last.time, now, record.resolution) => *last = SctpRow { time: now, gauges },
                _ => rows.push(SctpRow { time: now, gauges }),
            }
        }
    }
}

impl Record {
    fn new(rows: Vec<Vec<SctpRow>>, resolution: SimSpan) -> Self {
        let (deliveries, held, peer_windows, acked) = Default::default();
        Self { rows, deliveries, held, peer_windows, acked, resolution }
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
            Input::Start if !self.is_fed => self.endpoint.produce_endlessly(now),
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
        let (via, to) = self.ways.get(departure.destination).copied().unzip();
        let size = departure.packet.size();
        Some(Transmit { port: Port::FIRST, size, body: Body::Sctp(Box::new(departure.packet)), via, to })
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
}
