//! Hosts and topologies for tests.

use anabranch_sim::{
    Address, Arrival, Body, Builder, FlowId, Host, HostId, Input, LinkId, LinkSpec, Port, Raw, Transmit, World,
};
use anabranch_units::SimTime;

/// Sends a burst of packets of one size at each start.
pub(crate) struct Burst {
    size: u32,
    packets: u64,
    via: Option<LinkId>,
    to: Option<Address>,
    left: u64,
    sent: u64,
}

impl Burst {
    pub(crate) fn new(size: u32, packets: u64) -> Self {
        Self { size, packets, via: None, to: None, left: 0, sent: 0 }
    }

    pub(crate) fn via(self, link: LinkId) -> Self {
        Self { via: Some(link), ..self }
    }

    pub(crate) fn to(self, address: Address) -> Self {
        Self { to: Some(address), ..self }
    }
}

impl Host for Burst {
    fn handle(&mut self, _now: SimTime, _arrival: Arrival<'_>) {}

    fn handle_input(&mut self, _now: SimTime, input: Input) {
        if input == Input::Start {
            self.left = self.packets;
        }
    }

    fn poll_transmit(&mut self, now: SimTime) -> Option<Transmit> {
        self.left = self.left.checked_sub(1)?;
        self.sent += 1;
        let body = Body::Raw(Raw { seq: self.sent - 1, sent_at: now });
        Some(Transmit { port: Port::FIRST, size: self.size, body, ecn: None, via: self.via, to: self.to })
    }
}

/// Records the arrivals.
#[derive(Default)]
pub(crate) struct Log {
    /// Time, number and link of each arrival.
    pub(crate) arrivals: Vec<(SimTime, u64, LinkId)>,
}

impl Log {
    pub(crate) fn times(&self) -> Vec<SimTime> {
        self.arrivals.iter().map(|&(time, ..)| time).collect()
    }
}

impl Host for Log {
    fn handle(&mut self, now: SimTime, arrival: Arrival<'_>) {
        self.arrivals.push((now, arrival.body.seq() as u64, arrival.link));
    }
}

/// A source and a sink with a chain of links between them, the first flow of its world.
pub(crate) struct Pair {
    pub(crate) net: Builder,
    pub(crate) links: Vec<LinkId>,
    pub(crate) back: Vec<LinkId>,
    pub(crate) source: HostId,
    pub(crate) sink: HostId,
    pub(crate) flow: FlowId,
}

impl Pair {
    pub(crate) fn new(source: impl Host, sink: impl Host, specs: impl IntoIterator<Item = LinkSpec>) -> Self {
        let mut net = Builder::new(1);
        let first = net.node("n0");
        let (mut last, mut links, mut back) = (first, Vec::new(), Vec::new());
        for (spec, number) in specs.into_iter().zip(1..) {
            let next = net.node(format!("n{number}"));
            let (there, here) = net.duplex(last, next, spec).unwrap();
            links.push(there);
            back.push(here);
            last = next;
        }
        let (source, sink) = (net.host(first, source).unwrap(), net.host(last, sink).unwrap());
        let flow = net.flow(source, sink).unwrap();
        Self { net, links, back, source, sink, flow }
    }

    /// Starts the source at time zero and runs to the end.
    pub(crate) fn run(mut self) -> World {
        self.net.start(SimTime::ZERO, self.source).unwrap();
        let mut world = self.net.build().unwrap();
        world.run_until(SimTime::NEVER);
        world.assert_conserved();
        world
    }
}
