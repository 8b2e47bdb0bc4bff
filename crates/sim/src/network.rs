//! The network between hosts: links, routes, the bodies of packets, and the event queue.

use anabranch_ns2::random::Mrg32k3a;
use anabranch_units::SimTime;

use crate::event_queue::{EventQueue, Order};
use crate::host::Transmit;
use crate::id::{Address, FlowId, LinkId, NodeId};
use crate::link::{DropReason, Link, LinkReport, Offered, Service};
use crate::moment::Moment;
use crate::packet::{Body, Flight, Leg, Slab};
use crate::probe::{Direction, Happening, HeldObserver, PacketEvent};
use crate::route::{HERE, Hop, NO_WAY, Routes, UNUSUAL};
use crate::run_hash::RunHash;

/// The limit on links that a packet may pass: IP's usual TTL. A packet that exceeds it is in a routing loop.
pub const HOPS_MAX: u16 = 64;

pub(crate) struct Network {
    pub(crate) moment: Moment,
    pub(crate) hash: RunHash,
    /// Slots: the next arrival of each link, then the managed transmitters, then the slots of the world.
    pub(crate) queue: EventQueue,
    pub(crate) order: Order,
    pub(crate) links: Vec<Link>,
    /// Links whose queue decides at its head, in the order of their slots.
    managed: Vec<LinkId>,
    pub(crate) routes: Routes,
    slab: Slab,
    pub(crate) observers: Vec<HeldObserver>,
    /// Packets dropped between links, because of a missing route or a loop. Indexed by leg, up to the highest leg with any.
    strays: Vec<u64>,
    /// Whether time is kept as ns-2 does.
    pub(crate) has_float_clock: bool,
    /// ns-2's default stream, if hosts share it.
    pub(crate) random: Option<Mrg32k3a>,
    /// Whether ns-2's clock or stream is used, so that hosts need one test only.
    pub(crate) is_like_ns2: bool,
    /// A buffer that is empty between events; it is kept to avoid allocations.
    dropped: Vec<Flight>,
}

/// How a host is attached to the network.
#[derive(Clone, Debug)]
pub(crate) struct Attachment {
    pub(crate) node: NodeId,
    /// The outlet of each of its flows.
    pub(crate) ports: Vec<Outlet>,
}

/// The outlet of a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlet {
    pub(crate) leg: Leg,
    pub(crate) to: Address,
}

/// The parts of a network.
pub(crate) struct Parts {
    pub(crate) hash: RunHash,
    pub(crate) queue: EventQueue,
    pub(crate) order: Order,
    pub(crate) links: Vec<Link>,
    pub(crate) managed: Vec<LinkId>,
    pub(crate) routes: Routes,
    pub(crate) observers: Vec<HeldObserver>,
    pub(crate) has_float_clock: bool,
    pub(crate) random: Option<Mrg32k3a>,
}

impl Network {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { hash, queue, order, links, managed, routes, observers, has_float_clock, random } = parts;
        Self {
            moment: Moment { now: SimTime::ZERO, seconds: 0.0, inserted: SimTime::ZERO, order: 0 },
            hash,
            queue,
            order,
            links,
            managed,
            routes,
            slab: Slab::default(),
            observers,
            strays: Vec::new(),
            has_float_clock,
            is_like_ns2: has_float_clock || random.is_some(),
            random,
            dropped: Vec::new(),
        }
    }

    /// A packet reaches the far end of a link. If it is returned, it is at its destination, and the caller must release it.
    pub(crate) fn arrive(&mut self, index: usize) -> Option<Flight> {
        let link = &mut self.links[index];
        let flight = if link.has_exit() {
            self.leave(index)?
        } else {
            let (flight, next) = link.arrive();
            self.queue.replace(index, next);
            flight
        };
        self.pass(index, flight)
    }

    /// As [`Self::arrive`], for a link whose far end holds, reorders or duplicates; none if the packet is still to come.
    // Kept apart, it takes 1.7 % fewer instructions of `highspeed`.
    #[inline(never)]
    fn leave(&mut self, index: usize) -> Option<Flight> {
        let (link, now) = (&mut self.links[index], self.moment.now);
        let (flight, fate) = link.leave(now);
        let is_late = !fate.extra.is_zero();
        if is_late {
            link.wait(now, fate, flight, &mut self.order);
        }
        if fate.is_twofold {
            let body = self.slab.body(flight.handle()).clone();
            let copy = flight.with_handle(self.slab.insert(body));
            link.wait(now, fate, copy, &mut self.order);
        }
        self.queue.set(index, link.next_event());
        (!is_late).then_some(flight)
    }

    /// A packet is at the node at the far end of a link.
    fn pass(&mut self, index: usize, flight: Flight) -> Option<Flight> {
        let link = &self.links[index];
        let hop = self.routes.next(link.row, flight.to());
        if link.interest.received {
            self.observe(index, Happening::Received, flight);
        }
        if hop == HERE {
            // The next one will most likely end here, too.
            if let Some(next) = self.links[index].next_flight() {
                self.slab.touch(next.handle());
            }
            self.hash.fold(self.moment.now.ticks());
            self.hash.fold(u64::from(flight.leg()) << 32 | u64::from(flight.size()));
            self.hash.fold(self.slab.body(flight.handle()).seq() as u64);
            return Some(flight);
        }
        let flight = flight.hop();
        if hop >= UNUSUAL || flight.hops() >= HOPS_MAX {
            self.turn_off(index, hop, flight);
        } else {
            self.forward(hop as usize, flight);
        }
        None
    }

    /// Sends a packet over its first hop.
    // Inlined, it takes 2.0 % fewer instructions of `highspeed`.
    #[inline]
    pub(crate) fn depart(&mut self, attachment: &Attachment, transmit: Transmit) {
        let Transmit { port, size, body, ecn, via, to } = transmit;
        let Attachment { node, ports } = attachment;
        let outlet = ports.get(port.index()).expect("a host sends to flows that it is an end of");
        let to = to.unwrap_or(outlet.to);
        let hop = match via {
            Some(via) => {
                assert!(self.links[via.index()].from == *node, "a host sends by links that start at its node");
                via.0
            }
            None => self.routes.next(self.routes.row(*node), to),
        };
        let hop = if hop < UNUSUAL { hop } else { self.routes.choose(hop, outlet.leg) };
        if hop >= UNUSUAL {
            self.count_stray(outlet.leg);
            return;
        }
        let flight = Flight::new(self.slab.insert(body), size, outlet.leg, to).with_ecn(ecn);
        self.forward(hop as usize, flight);
    }

    /// A managed transmitter is free.
    pub(crate) fn serve(&mut self, place: usize) {
        let index = self.managed[place].index();
        let slot = self.links.len() + place;
        let mut dropped = std::mem::take(&mut self.dropped);
        let served = self.links[index].serve(&self.moment, &mut self.order, &mut dropped);
        if let Some(key) = served.arrival {
            self.queue.set(index, key);
        }
        match served.free {
            Some(key) => self.queue.set(slot, key),
            None => self.queue.clear(slot),
        }
        if let Some(at) = served.departs_at
            && self.links[index].interest.departures
        {
            self.observe_departure(index, at);
        }
        self.discard(index, dropped);
    }

    pub(crate) fn body_mut(&mut self, flight: Flight) -> &mut Body {
        self.slab.body_mut(flight.handle())
    }

    pub(crate) fn release(&mut self, flight: Flight) {
        self.slab.release(flight.handle());
    }

    /// The number of existing packets.
    pub(crate) fn packets(&self) -> usize {
        self.slab.len()
    }

    /// Checks that packets are conserved. The error says where they are not.
    pub(crate) fn conservation(&self) -> Result<(), String> {
        let mut inside = 0;
        for link in &self.links {
            let LinkReport { counts, duplicates, delivered, waiting, flying, .. } = link.report(self.moment.now);
            let gone = counts.errors + counts.drops + delivered;
            let offered = counts.offered + duplicates;
            if offered != gone + waiting + flying {
                return Err(format!(
                    "link {}: {offered} offered, {gone} gone, {waiting} waiting, {flying} flying",
                    link.name
                ));
            }
            inside += waiting + flying;
        }
        let bodies = self.slab.len() as u64;
        if bodies == inside { Ok(()) } else { Err(format!("{bodies} packets exist, {inside} are on links")) }
    }

    /// Offers a packet to a link.
    fn forward(&mut self, index: usize, flight: Flight) {
        let link = &mut self.links[index];
        let offered = link.offer(&self.moment, flight, &mut self.order);
        if link.interest.is_in_entrance() {
            self.observe_entrance(index, &offered, flight);
        }
        match offered {
            Offered::Behind => {}
            Offered::First => self.queue.set(index, self.links[index].next_event()),
            Offered::Stored(service) => self.stored(index, service),
            Offered::Dropped(reason) => self.lose(index, reason, flight),
        }
    }

    /// A packet waits in a managed queue.
    fn stored(&mut self, index: usize, service: Service) {
        let mut dropped = std::mem::take(&mut self.dropped);
        self.links[index].overflow(&mut dropped);
        self.discard(index, dropped);
        match service {
            Service::Now => self.serve(self.place(index)),
            Service::WhenFree => self.queue.set(self.links.len() + self.place(index), self.links[index].free()),
            Service::Known => {}
        }
    }

    /// The place of a managed link among those.
    fn place(&self, index: usize) -> usize {
        match self.has_float_clock {
            // Every link is managed.
            true => index,
            // Few links are, and few of their packets find the transmitter free, so a search is cheap enough.
            false => self.managed.binary_search(&LinkId(index as u32)).expect("the builder lists managed links"),
        }
    }

    /// Releases the packets that a queue dropped, and empties their list.
    fn discard(&mut self, index: usize, mut dropped: Vec<Flight>) {
        for flight in dropped.drain(..) {
            self.observe(index, Happening::Discarded, flight);
            self.forget(index, DropReason::Queue, flight);
        }
        self.dropped = dropped;
    }

    /// A packet is at a node that has several links for it, or none.
    fn turn_off(&mut self, index: usize, hop: Hop, flight: Flight) {
        let chosen = if hop < UNUSUAL { hop } else { self.routes.choose(hop, flight.leg()) };
        if chosen >= UNUSUAL || flight.hops() >= HOPS_MAX {
            self.stray(index, chosen, flight);
        } else {
            self.forward(chosen as usize, flight);
        }
    }

    /// Drops a packet that has no route at a node.
    fn stray(&mut self, index: usize, hop: Hop, flight: Flight) {
        let reason = if hop == NO_WAY { DropReason::NoRoute } else { DropReason::HopLimit };
        self.count_stray(flight.leg());
        self.lose(index, reason, flight);
    }

    fn count_stray(&mut self, leg: Leg) {
        let leg = leg as usize;
        if self.strays.len() <= leg {
            self.strays.resize(leg + 1, 0);
        }
        self.strays[leg] += 1;
    }

    /// Packets of a leg that were dropped without a route, or beyond the hop limit.
    pub(crate) fn strays(&self, leg: Leg) -> u64 {
        self.strays.get(leg as usize).copied().unwrap_or(0)
    }

    /// As [`Self::strays`], summed over all legs.
    pub(crate) fn all_strays(&self) -> u64 {
        self.strays.iter().sum()
    }

    /// A packet was lost: informs the observers of the link, and releases the packet.
    fn lose(&mut self, index: usize, reason: DropReason, flight: Flight) {
        self.observe(index, Happening::Dropped(reason), flight);
        self.forget(index, reason, flight);
    }

    /// Releases a lost packet.
    fn forget(&mut self, index: usize, reason: DropReason, flight: Flight) {
        self.hash.fold(self.moment.now.ticks() ^ 1 << 63);
        // A link's number has 20 bits, and the reason is above it.
        let reason = reason as u64;
        self.hash.fold(u64::from(flight.leg()) << 32 | (index as u64) << 2 | reason & 0b11 | (reason >> 2) << 31);
        self.hash.fold(self.slab.body(flight.handle()).seq() as u64);
        self.slab.release(flight.handle());
    }

    /// Tells the observers of a link of a packet that it accepts.
    fn observe_entrance(&mut self, index: usize, offered: &Offered, flight: Flight) {
        let interest = self.links[index].interest;
        if interest.enqueued && !matches!(offered, Offered::Dropped(_)) {
            self.observe(index, Happening::Enqueued, flight);
        }
        if interest.departures && matches!(offered, Offered::First | Offered::Behind) {
            self.observe_departure(index, self.links[index].departs_at());
        }
    }

    fn observe_departure(&self, index: usize, at: SimTime) {
        for &observer in &self.links[index].observers {
            self.observers[observer].tell_departure(LinkId(index as u32), at);
        }
    }

    fn observe(&mut self, index: usize, happening: Happening, flight: Flight) {
        let event = PacketEvent {
            time: self.moment.now,
            happening,
            link: LinkId(index as u32),
            flow: FlowId(flight.flow()),
            direction: if flight.leg().is_multiple_of(2) { Direction::Forward } else { Direction::Backward },
            size: flight.size(),
            body: self.slab.body(flight.handle()),
        };
        for &observer in &self.links[index].observers {
            self.observers[observer].tell(&event);
        }
    }
}
