//! What stands at the ends: hosts without I/O.
//!
//! A host is told what happened (`handle*`), asked what it wants to send (`poll_transmit`, until there is nothing more) and
//! when it wants to be woken (`poll_timeout`), always in this order. It has no clock and starts nothing by itself, so an
//! engine that runs here runs unchanged on a network.

use std::any::Any;

use anabranch_ns2::random::Mrg32k3a;
use anabranch_proto::EcnCodepoint;
use anabranch_units::SimTime;

use crate::account::{Account, NoAccount};
use crate::id::{Address, FlowId, LinkId, Port};
use crate::packet::Body;

/// Anything that sends and receives packets at a node.
pub trait Host: Any + Send {
    /// In a world with ns-2's clock: the present in seconds, before everything else that is told. `now` is this, rounded.
    fn handle_clock(&mut self, _seconds: f64) {}

    /// A packet arrived.
    fn handle(&mut self, now: SimTime, arrival: Arrival<'_>);

    /// The deadline of [`Host::poll_timeout`] has come.
    fn handle_timeout(&mut self, now: SimTime);

    /// The scenario wants something: start, stop, send more. A host that only answers need not listen.
    fn handle_input(&mut self, _now: SimTime, _input: Input) {}

    /// The next packet that the host sends now.
    fn poll_transmit(&mut self, now: SimTime) -> Option<Transmit>;

    /// When [`Host::handle_timeout`] is to be called; [`SimTime::NEVER`] if not at all.
    fn poll_timeout(&self) -> SimTime;

    /// In a world that is like ns-2: more about this deadline, from a host that has several timers. Of a single one the world
    /// knows when it was set, and does the sum itself.
    fn poll_due(&self) -> Option<Due> {
        None
    }

    /// In a world with ns-2's default stream ([`Builder::ns2_random`](crate::Builder::ns2_random)): where the host keeps the
    /// stream that it draws from, to be exchanged for the world's as long as the host has its turn.
    fn random(&mut self) -> Option<&mut Mrg32k3a> {
        None
    }

    /// What it says of itself to those who look on; nothing if it has nothing to say.
    fn account(&self) -> &dyn Account {
        &NoAccount
    }
}

/// A packet at the end of its way.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// The host's own name for the flow.
    pub port: Port,
    /// The flow.
    pub flow: FlowId,
    /// Bytes on the wire.
    pub size: u32,
    /// The last link: by which interface the packet came in.
    pub link: LinkId,
    /// The address that it was sent to.
    pub address: Address,
    /// When it came. Earlier than the present where a driver reads later ([`crate::Driven`]).
    pub at: SimTime,
    /// What its header says of ECN.
    pub ecn: Option<EcnCodepoint>,
    /// What it says. The place is used again after this call, so a host that keeps the body may take it.
    pub body: &'a mut Body,
}

/// A packet that a host sends.
#[derive(Clone, Debug, PartialEq)]
pub struct Transmit {
    /// To the other end of this flow of the host.
    pub port: Port,
    /// Bytes on the wire.
    pub size: u32,
    /// What it says.
    pub body: Body,
    /// What its header says of ECN.
    pub ecn: Option<EcnCodepoint>,
    /// The interface by which it leaves, a link that starts at the host's node; the routing table decides if none is named.
    pub via: Option<LinkId>,
    /// Which address of the other end; its node's own if none is named.
    pub to: Option<Address>,
}

/// When one of several timers of a host is due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Due {
    /// In seconds, by ns-2's clock: what it was when the timer was set, and the delay.
    pub seconds: f64,
    /// When it was set: of equal times the one set first is the first.
    pub set_at: SimTime,
}

/// What a scenario tells a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Begin.
    Start,
    /// Send nothing new from now on.
    Stop,
    /// There is more to send.
    Offer(Offer),
}

/// Data that an application hands to its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The flow, as the host calls it.
    pub port: Port,
    /// The stream on which it goes; 0 where there is only one.
    pub stream: u32,
    /// The message that it is, counted from 0 in its workload.
    pub message: u64,
    /// How many bytes; none for as many as can be sent.
    pub bytes: Option<u64>,
}

impl Transmit {
    /// A packet of the host's only flow, by whatever way the routing table says.
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

/// A host that was chosen at run time.
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
