//! Hosts: the ends of flows, sans I/O.
//!
//! A host is called in a fixed order: an event (`handle*`), then its packets (`poll_transmit`, until there are no more), then its
//! deadline (`poll_timeout`). It has no clock and starts nothing by itself, so an engine that runs here runs unchanged on a
//! network.

use std::any::Any;

use anabranch_ns2::random::Mrg32k3a;
use anabranch_proto::EcnCodepoint;
use anabranch_units::SimTime;

use crate::account::{Account, NoAccount};
use crate::id::{Address, FlowId, LinkId, Port};
use crate::packet::Body;

/// A sender and receiver of packets at a node.
pub trait Host: Any + Send {
    /// In a world with ns-2's clock: the current time in seconds, before any other call. `now` is this value, rounded.
    fn handle_clock(&mut self, _seconds: f64) {}

    /// A packet arrived.
    fn handle(&mut self, now: SimTime, arrival: Arrival<'_>);

    /// Handles the timeout that [`Host::poll_timeout`] announced. A host without timers needs neither.
    fn handle_timeout(&mut self, _now: SimTime) {}

    /// An input of the scenario: start, stop, send more. A host that only answers may ignore it.
    fn handle_input(&mut self, _now: SimTime, _input: Input) {}

    /// The next packet that the host sends now; none from a host that only receives.
    fn poll_transmit(&mut self, _now: SimTime) -> Option<Transmit> {
        None
    }

    /// When to call [`Host::handle_timeout`]; [`SimTime::NEVER`] if there is no deadline.
    fn poll_timeout(&self) -> SimTime {
        SimTime::NEVER
    }

    /// In a world with ns-2's clock: details of the deadline, from a host with several timers. For a host with a single timer,
    /// the world knows when the timer was set and computes the sum itself.
    fn poll_due(&self) -> Option<Due> {
        None
    }

    /// In a world with ns-2's default stream ([`Builder::ns2_random`](crate::Builder::ns2_random)): the host's random stream.
    /// During the host's turn it is swapped with the world's.
    fn random(&mut self) -> Option<&mut Mrg32k3a> {
        None
    }

    /// Its account for observers; empty by default.
    fn account(&self) -> &dyn Account {
        &NoAccount
    }
}

/// The data supply of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Supply {
    /// Endless data after the start.
    Endless,
    /// Data from offers.
    Offers,
}

/// A path as one end sees it: the outgoing interface, the peer's address, and the local address. An address belongs to one path,
/// so the address of an arrival identifies its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// The outgoing link, which starts at the host's node.
    pub via: LinkId,
    /// The peer's address ([`crate::Builder::address_through`]).
    pub to: Address,
    /// The local address of the path.
    pub here: Address,
}

impl Way {
    /// The path of an arrival. Without ways the routing tables decide, and there is one path.
    pub(crate) fn came_by(ways: &[Self], arrival: &Arrival<'_>) -> Option<usize> {
        if ways.is_empty() { Some(0) } else { ways.iter().position(|way| way.here == arrival.address) }
    }

    /// The packet on this path.
    pub(crate) fn sent_by(ways: &[Self], path: usize, transmit: Transmit) -> Transmit {
        let (via, to) = ways.get(path).map(|way| (way.via, way.to)).unzip();
        Transmit { via, to, ..transmit }
    }
}

/// A packet at its destination.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// The host's number of the flow.
    pub port: Port,
    /// The flow that it belongs to.
    pub flow: FlowId,
    /// Bytes on the wire.
    pub size: u32,
    /// The last link of the route, which identifies the incoming interface.
    pub link: LinkId,
    /// The destination address of the packet.
    pub address: Address,
    /// When it arrived. This is before the current time if a driver reads it later ([`crate::Driven`]).
    pub at: SimTime,
    /// The ECN codepoint of its header.
    pub ecn: Option<EcnCodepoint>,
    /// Its content. The slot is reused after this call, so a host may take the body.
    pub body: &'a mut Body,
}

/// A packet to send.
#[derive(Clone, Debug, PartialEq)]
pub struct Transmit {
    /// The flow, by the host's number.
    pub port: Port,
    /// Bytes on the wire.
    pub size: u32,
    /// The content of the packet.
    pub body: Body,
    /// The ECN codepoint of its header.
    pub ecn: Option<EcnCodepoint>,
    /// The outgoing interface, a link that starts at the host's node. With `None` the routing table decides.
    pub via: Option<LinkId>,
    /// The address of the peer. With `None` it is the address of the peer's node.
    pub to: Option<Address>,
}

/// The deadline of one of a host's timers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Due {
    /// In seconds by ns-2's clock: the time when the timer was set, plus the delay.
    pub seconds: f64,
    /// When the timer was set. Among equal deadlines, the timer that was set first comes first.
    pub set_at: SimTime,
}

/// An input of a scenario for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Start to send.
    Start,
    /// Send no new data from now on.
    Stop,
    /// There is more to send.
    Offer(Offer),
}

/// Data that an application passes to its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The flow, by the host's number.
    pub port: Port,
    /// The stream of the data; 0 if there is only one.
    pub stream: u32,
    /// The number of the message in its workload, from 0.
    pub message: u64,
    /// The number of bytes; `None` is endless.
    pub bytes: Option<u64>,
}

impl Transmit {
    /// A packet of the host's only flow, routed by the routing table.
    pub const fn new(size: u32, body: Body) -> Self {
        Self { port: Port::FIRST, size, body, ecn: None, via: None, to: None }
    }
}

impl From<anabranch_ns2::Packet> for Transmit {
    fn from(packet: anabranch_ns2::Packet) -> Self {
        Self::new(packet.size, Body::Ns2(packet))
    }
}

impl From<anabranch_proto::Segment<anabranch_proto::Virtual>> for Transmit {
    fn from(segment: anabranch_proto::Segment<anabranch_proto::Virtual>) -> Self {
        Self::new(segment.wire_size(), Body::Segment(Box::new(segment)))
    }
}

/// A host whose type is chosen at run time.
impl<H: Host + ?Sized> Host for Box<H> {
    fn handle_clock(&mut self, seconds: f64) {
        (**self).handle_clock(seconds);
    }

    fn handle(&mut self, now: SimTime, arrival: Arrival<'_>) {
        (**self).handle(now, arrival);
    }

    fn handle_timeout(&mut self, now: SimTime) {
        (**self).handle_timeout(now);
    }

    fn handle_input(&mut self, now: SimTime, input: Input) {
        (**self).handle_input(now, input);
    }

    fn poll_transmit(&mut self, now: SimTime) -> Option<Transmit> {
        (**self).poll_transmit(now)
    }

    fn poll_timeout(&self) -> SimTime {
        (**self).poll_timeout()
    }

    fn poll_due(&self) -> Option<Due> {
        (**self).poll_due()
    }

    fn random(&mut self) -> Option<&mut Mrg32k3a> {
        (**self).random()
    }

    fn account(&self) -> &dyn Account {
        (**self).account()
    }
}
