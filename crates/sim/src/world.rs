//! The world: nodes, links, hosts and the loop that moves them.

mod builder;

use std::any::Any;

use anabranch_units::SimTime;

pub use builder::{BuildError, Builder, LinkSpec};

use crate::agenda::{Agenda, Control, Item};
use crate::event_queue::{EventQueue, Key, Order};
use crate::host::{Event, Host, Input, Landing, Outbox, Sent, Turn};
use crate::id::{Address, FlowId, HostId, LinkId, NodeId, Port};
use crate::link::{Counts, DropReason, Link, LinkReport, Offered};
use crate::packet::{Flight, Leg, Slab};
use crate::probe::{Direction, Happening, Observer, ObserverId, PacketEvent, QueueArea, QueueSamples};
use crate::rng::Substreams;
use crate::route::{HERE, NO_WAY, Routes};
use crate::run_hash::RunHash;
use crate::workload::Schedule;

/// Links that a packet may pass: IP's usual time to live. More is a loop in the routes.
pub const HOPS_MAX: u8 = 64;

/// Everything that is simulated. Made by a [`Builder`], moved by [`World::run_until`], and asked for what happened.
pub struct World {
    streams: Substreams,
    now: SimTime,
    /// When the present event was inserted.
    inserted: SimTime,
    events: u64,
    hash: RunHash,
    /// Slots: a link's next arrival each, then the managed transmitters, then the hosts' deadlines, then the agenda.
    queue: EventQueue,
    order: Order,
    slots: Slots,
    links: Vec<Link>,
    /// Links whose queue decides at the transmitter, in the order of their slots.
    managed: Vec<LinkId>,
    routes: Routes,
    slab: Slab,
    stations: Vec<Station>,
    /// Who gets what goes on a leg.
    ends: Vec<End>,
    agenda: Agenda,
    workloads: Vec<(HostId, Schedule)>,
    samples: Vec<QueueSamples>,
    observers: Vec<Box<dyn Observer>>,
    /// Packets lost between links, for want of a route or in a loop.
    strays: u64,
    /// Lists that are empty between events, kept for their room.
    sent: Vec<Sent>,
    dropped: Vec<Flight>,
}

/// Where each kind of slot begins.
#[derive(Clone, Copy, Debug)]
struct Slots {
    transmitters: usize,
    hosts: usize,
    agenda: usize,
}

/// A host at its node.
struct Station {
    host: Box<dyn Turn>,
    node: NodeId,
    /// Where each of its flows goes.
    ports: Vec<Outlet>,
    /// What the host wants.
    deadline: Key,
    /// What stands in the event queue. Never later than the deadline: where a deadline moves away, as a retransmission timer
    /// does with every ACK, the wake stays where it is and looks again when its time comes.
    wake: Key,
}

/// The way out of a port.
#[derive(Clone, Copy, Debug)]
struct Outlet {
    leg: Leg,
    to: Address,
}

/// The end of a leg.
#[derive(Clone, Copy, Debug)]
struct End {
    host: HostId,
    port: Port,
}

impl World {
    /// Does everything that happens until `until`, and what happens exactly then. Running in several steps changes nothing.
    pub fn run_until(&mut self, until: SimTime) {
        loop {
            let (time, slot) = self.queue.next();
            if time > until || time == SimTime::NEVER {
                break;
            }
            debug_assert!(time >= self.now, "time does not go back");
            self.now = time;
            self.inserted = self.queue.inserted(slot);
            self.events += 1;
            if slot < self.slots.transmitters {
                self.arrive(slot);
            } else if slot < self.slots.hosts {
                let link = self.managed[slot - self.slots.transmitters];
                self.queue.clear(slot);
                self.serve(link.index(), slot);
            } else if slot < self.slots.agenda {
                self.wake(slot - self.slots.hosts);
            } else {
                self.act();
            }
        }
        if until != SimTime::NEVER {
            self.now = self.now.max(until);
        }
    }

    /// Puts something on the agenda; what lies in the past is done at once when the world runs.
    ///
    /// # Panics
    /// If a route names a link that does not start at its node, or a host or node is another world's.
    pub fn schedule(&mut self, at: SimTime, control: Control) {
        match control {
            Control::Input { host, .. } => assert!(host.index() < self.stations.len(), "{host} is not in this world"),
            Control::Route { node, via, .. } => {
                let is_there = via.is_none_or(|via| self.links.get(via.index()).is_some_and(|link| link.from == node));
                assert!(is_there, "{via:?} does not start at {node}");
            }
        }
        self.enter(at, Item::Control(control));
    }

    /// The present.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// The seed of all randomness.
    pub fn seed(&self) -> u64 {
        self.streams.seed()
    }

    /// The fingerprint of what has happened so far.
    pub fn hash(&self) -> RunHash {
        self.hash
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Packets lost at nodes, for want of a route or in a loop.
    pub fn strays(&self) -> u64 {
        self.strays
    }

    /// Packets that are somewhere.
    pub fn packets(&self) -> usize {
        self.slab.len()
    }

    /// All links.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.links.len() as u32).map(LinkId)
    }

    /// The name of a link, unique in its world.
    pub fn link_name(&self, link: LinkId) -> &str {
        &self.links[link.index()].name
    }

    /// What happened on a link.
    pub fn link(&self, link: LinkId) -> LinkReport {
        self.links[link.index()].report(self.now)
    }

    /// What happened on a link to one flow.
    pub fn link_flow(&self, link: LinkId, flow: FlowId) -> Counts {
        self.links[link.index()].flow(flow)
    }

    /// Packets that wait for a link's transmitter now.
    pub fn waiting(&self, link: LinkId) -> u64 {
        self.links[link.index()].waiting(self.now)
    }

    /// How much waiting a link's queue has seen until now.
    pub fn queue_area(&self, link: LinkId) -> QueueArea {
        QueueArea { time: self.now, area: self.links[link.index()].occupancy(self.now) }
    }

    /// The samples of a queue that [`Builder::sample_queue`] asked for, in the order of asking.
    pub fn queue_samples(&self) -> &[QueueSamples] {
        &self.samples
    }

    /// A host, if it is one of these.
    pub fn host<H: Host>(&self, host: HostId) -> Option<&H> {
        let host: &dyn Any = self.stations[host.index()].host.as_ref();
        match host.downcast_ref::<Box<dyn Host>>() {
            Some(boxed) => (boxed.as_ref() as &dyn Any).downcast_ref(),
            None => host.downcast_ref(),
        }
    }

    /// An observer.
    ///
    /// # Panics
    /// If it is another world's.
    pub fn observer<T: Observer>(&self, id: ObserverId<T>) -> &T {
        let observer: &dyn Any = self.observers[id.index].as_ref();
        observer.downcast_ref().expect("an id comes from the world that it is used with")
    }

    /// Checks that on every link packets in = out + dropped + waiting + flying, and that each of them has a body.
    ///
    /// # Panics
    /// If a packet has appeared or vanished, which is a mistake in this crate.
    pub fn assert_conserved(&self) {
        let mut inside = 0;
        for link in &self.links {
            let LinkReport { counts, delivered, waiting, flying, .. } = link.report(self.now);
            let gone = counts.errors + counts.drops + delivered;
            assert_eq!(counts.offered, gone + waiting + flying, "{}: offered = lost + delivered + inside", link.name);
            inside += waiting + flying;
        }
        assert_eq!(self.slab.len() as u64, inside, "bodies = packets on links");
    }

    /// A packet reaches the far end of a link.
    #[inline]
    fn arrive(&mut self, index: usize) {
        let link = &mut self.links[index];
        let (mut flight, next) = link.arrive();
        self.queue.set(index, next);
        let hop = self.routes.next(link.row, Address(flight.to));
        if !link.observers.is_empty() {
            self.observe(index, Happening::Received, flight);
        }
        if hop == HERE {
            self.land(index, flight);
            return;
        }
        flight.hops += 1;
        if hop == NO_WAY || flight.hops >= HOPS_MAX {
            let reason = if hop == NO_WAY { DropReason::NoRoute } else { DropReason::HopLimit };
            self.strays += 1;
            self.lose(index, reason, flight);
            return;
        }
        self.forward(hop as usize, flight);
    }

    /// A packet goes to the entrance of a link.
    #[inline]
    fn forward(&mut self, index: usize, flight: Flight) {
        let link = &mut self.links[index];
        let offered = link.offer(self.now, self.inserted, flight, &mut self.order);
        if !link.observers.is_empty() {
            let happening = match offered {
                Offered::Dropped(reason) => Happening::Dropped(reason),
                _ => Happening::Enqueued,
            };
            self.observe(index, happening, flight);
        }
        match offered {
            Offered::Behind => {}
            Offered::First(key) => self.queue.set(index, key),
            Offered::Stored { is_free: false } => {}
            Offered::Stored { is_free: true } => {
                // Few links are managed, and few of their packets find the transmitter free.
                let place = self.managed.binary_search(&LinkId(index as u32)).expect("the builder lists managed links");
                self.serve(index, self.slots.transmitters + place);
            }
            Offered::Dropped(reason) => self.forget(index, reason, flight),
        }
    }

    /// The transmitter of a managed link takes its next packet.
    fn serve(&mut self, index: usize, slot: usize) {
        let mut dropped = std::mem::take(&mut self.dropped);
        let served = self.links[index].serve(self.now, &mut self.order, &mut dropped);
        if let Some(key) = served.arrival {
            self.queue.set(index, key);
        }
        if let Some(key) = served.free {
            self.queue.set(slot, key);
        }
        for flight in dropped.drain(..) {
            self.lose(index, DropReason::Queue, flight);
        }
        self.dropped = dropped;
    }

    /// A packet is where it was sent to.
    #[inline]
    fn land(&mut self, index: usize, flight: Flight) {
        let Flight { handle, size, leg, to, .. } = flight;
        self.hash.fold(self.now.ticks());
        self.hash.fold(u64::from(leg) << 32 | u64::from(size));
        self.hash.fold(self.slab.body(handle).seq() as u64);
        let End { host, port } = self.ends[leg as usize];
        let (flow, link, address) = (FlowId(leg >> 1), LinkId(index as u32), Address(to));
        let event = Event::Arrival(Landing { handle, size, port, flow, link, address });
        self.turn(host.index(), event);
    }

    /// The wake of a host is due. Its deadline need not be.
    fn wake(&mut self, station: usize) {
        let Station { deadline, wake, .. } = &mut self.stations[station];
        if deadline > wake {
            *wake = *deadline;
            self.queue.set(self.slots.hosts + station, *deadline);
            return;
        }
        *wake = Key::NONE;
        *deadline = Key::NONE;
        self.queue.clear(self.slots.hosts + station);
        self.turn(station, Event::Timeout);
    }

    /// Tells a host something, sends what it sends, and sets its timer.
    #[inline]
    fn turn(&mut self, index: usize, event: Event) {
        let station = &mut self.stations[index];
        let mut outbox = Outbox { slab: &mut self.slab, sent: &mut self.sent };
        let deadline = station.host.turn(self.now, event, &mut outbox);
        if deadline != station.deadline.time() {
            // A deadline gets its place in the order when it is set, whenever the queue hears of it: laziness changes nothing.
            station.deadline = Key::new(deadline.max(self.now), self.now, self.order.draw());
            if station.deadline < station.wake {
                station.wake = station.deadline;
                self.queue.set(self.slots.hosts + index, station.deadline);
            }
        }
        for sent in 0..self.sent.len() {
            self.depart(index, sent);
        }
        self.sent.clear();
    }

    /// The first hop of a packet.
    #[inline]
    fn depart(&mut self, station: usize, sent: usize) {
        let Sent { handle, size, port, via, to } = self.sent[sent];
        let Station { node, ports, .. } = &self.stations[station];
        let outlet = ports.get(port.index()).expect("a host sends to flows that it is an end of");
        let to = to.unwrap_or(outlet.to);
        let flight = Flight { handle, size, leg: outlet.leg, to: to.0, hops: 0 };
        let hop = match via {
            Some(via) => {
                assert!(self.links[via.index()].from == *node, "a host sends by links that start at its node");
                via.0
            }
            None => self.routes.next(self.routes.row(*node), to),
        };
        if hop == NO_WAY || hop == HERE {
            self.strays += 1;
            self.slab.release(handle);
            return;
        }
        self.forward(hop as usize, flight);
    }

    /// The next item of the agenda is due.
    fn act(&mut self) {
        let item = self.agenda.pop();
        self.queue.set(self.slots.agenda, self.agenda.next());
        match item {
            None => {}
            Some(Item::Control(Control::Input { host, input })) => self.turn(host.index(), Event::Input(input)),
            Some(Item::Control(Control::Route { node, to, via })) => {
                self.routes.set(node, to, via.map_or(NO_WAY, |link| link.0));
            }
            Some(Item::Workload(index)) => {
                let (host, schedule) = &mut self.workloads[index];
                let (host, (offer, next)) = (*host, schedule.next());
                if let Some(span) = next {
                    self.enter(self.now.saturating_add(span), Item::Workload(index));
                }
                if let Some(offer) = offer {
                    self.turn(host.index(), Event::Input(Input::Offer(offer)));
                }
            }
            Some(Item::Sample(index)) => {
                let samples = &mut self.samples[index];
                let waiting = self.links[samples.link.index()].waiting(self.now);
                samples.lengths.push(waiting as u32);
                if samples.lengths.len() < QueueSamples::SAMPLES_MAX {
                    let next = self.now.saturating_add(samples.every);
                    self.enter(next, Item::Sample(index));
                }
            }
        }
    }

    fn enter(&mut self, at: SimTime, item: Item) {
        self.agenda.insert(Key::new(at.max(self.now), self.now, self.order.draw()), item);
        self.queue.set(self.slots.agenda, self.agenda.next());
    }

    /// A packet was lost, and whoever looks at the link must hear of it.
    #[cold]
    fn lose(&mut self, index: usize, reason: DropReason, flight: Flight) {
        self.observe(index, Happening::Dropped(reason), flight);
        self.forget(index, reason, flight);
    }

    /// A packet is no more.
    fn forget(&mut self, index: usize, reason: DropReason, flight: Flight) {
        self.hash.fold(self.now.ticks() ^ 1 << 63);
        self.hash.fold(u64::from(flight.leg) << 32 | (index as u64) << 2 | reason as u64);
        self.hash.fold(self.slab.body(flight.handle).seq() as u64);
        self.slab.release(flight.handle);
    }

    #[cold]
    fn observe(&mut self, index: usize, happening: Happening, flight: Flight) {
        let direction = if flight.leg.is_multiple_of(2) { Direction::Forward } else { Direction::Backward };
        let event = PacketEvent {
            time: self.now,
            happening,
            link: LinkId(index as u32),
            flow: FlowId(flight.leg >> 1),
            direction,
            size: flight.size,
            body: self.slab.body(flight.handle),
        };
        for &observer in &self.links[index].observers {
            self.observers[observer].on_packet(&event);
        }
    }
}
