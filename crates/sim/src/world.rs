//! The world: nodes, links, hosts, and the event loop.

mod build_error;
mod builder;
mod limits;
mod link_spec;

use std::any::Any;

use anabranch_units::SimTime;

pub use build_error::BuildError;
pub use builder::Builder;
pub use limits::WorldSize;
pub use link_spec::LinkSpec;

use crate::account::Account;
use crate::agenda::{Agenda, Control, Item};
use crate::distribution::QueueLengths;
use crate::driver::Driven;
use crate::event_queue::{Key, Next};
use crate::host::{Due, Host, Input, Transmit};
use crate::id::{Address, FlowId, HostId, LinkId, NodeId, Port};
use crate::link::{Counts, LinkReport};
use crate::moment::Moment;
use crate::network::{Attachment, Network};
use crate::packet::Leg;
use crate::probe::{Direction, QueueArea};
use crate::rng::Substreams;
use crate::route::{HERE, NO_WAY};
use crate::run_hash::RunHash;
use crate::turn::{Event, Landing, Turn};
use crate::workload::Schedule;

/// A simulated world. A [`Builder`] makes it, [`World::run_until`] advances it.
pub struct World {
    streams: Substreams,
    events: u64,
    network: Network,
    /// Slots: those of the network, then one per host for its deadline, then one for the agenda.
    slots: Slots,
    stations: Vec<Station>,
    /// The receiver of each leg.
    ends: Vec<End>,
    agenda: Agenda,
    workloads: Vec<(HostId, Schedule)>,
}

/// The first slot of each kind.
#[derive(Clone, Copy, Debug)]
struct Slots {
    transmitters: usize,
    hosts: usize,
    agenda: usize,
}

/// A host at its node.
struct Station {
    host: Box<dyn Turn>,
    attachment: Attachment,
    /// The host's deadline.
    deadline: Key,
    /// The entry in the event queue. It is never later than the deadline. If the deadline moves later, as a retransmission timer
    /// does with every ACK, the wake stays and checks the deadline when it is due.
    wake: Key,
}

/// The end of a leg.
#[derive(Clone, Copy, Debug)]
struct End {
    host: HostId,
    port: Port,
}

impl World {
    /// Runs all events up to and including `until`. Splitting a run into several calls changes nothing.
    pub fn run_until(&mut self, until: SimTime) {
        self.run_within(until, u64::MAX);
    }

    /// As [`World::run_until`], but ends after `most` events, so that hosts that send or wake for ever at one instant are found. Returns whether
    /// all events up to `until` were run.
    pub fn run_within(&mut self, until: SimTime, most: u64) -> bool {
        let last = self.events.saturating_add(most);
        loop {
            let Next { key: Key { time, seconds, inserted, order }, slot } = self.network.queue.next();
            if time > until || time == SimTime::NEVER {
                break;
            }
            if self.events == last {
                return false;
            }
            debug_assert!(time >= self.network.moment.now, "time does not go back");
            self.network.moment = Moment { now: time, seconds: f64::from_bits(seconds), inserted, order };
            self.events += 1;
            if slot < self.slots.transmitters {
                self.arrive(slot);
            } else if slot < self.slots.hosts {
                self.network.serve(slot - self.slots.transmitters);
            } else if slot < self.slots.agenda {
                self.wake(slot - self.slots.hosts);
            } else {
                self.act();
            }
        }
        if until != SimTime::NEVER {
            self.network.moment.now = self.network.moment.now.max(until);
        }
        true
    }

    /// Schedules an action. An action in the past runs at the next call of [`World::run_until`].
    ///
    /// # Panics
    /// If a route names a link that does not start at its node, or a host or node belongs to another world.
    pub fn schedule(&mut self, at: SimTime, control: Control) {
        match control {
            Control::Input { host, .. } => assert!(host.index() < self.stations.len(), "{host} is not in this world"),
            Control::Route { node, via, .. } => {
                let is_there =
                    via.is_none_or(|via| self.network.links.get(via.index()).is_some_and(|link| link.from == node));
                assert!(is_there, "{via:?} does not start at {node}");
            }
            Control::Mtu { link, .. } => {
                assert!(link.index() < self.network.links.len(), "{link} is not in this world")
            }
        }
        self.enter(at, Item::Control(control));
    }

    /// Sends a packet from `host` now. A driver with a real clock calls [`World::run_until`] up to the current time, sends what
    /// has arrived, and comes back at [`World::next_at`].
    ///
    /// # Panics
    /// If the host is not in this world, or the packet leaves by a link that does not start at its node.
    pub fn send(&mut self, host: HostId, transmit: Transmit) {
        let now = self.network.moment.now;
        self.network.moment = Moment { now, seconds: now.as_secs_f64(), inserted: now, order: u64::MAX };
        self.network.depart(&self.stations[host.index()].attachment, transmit);
    }

    /// The time of the next event; [`SimTime::NEVER`] if there is none.
    pub fn next_at(&self) -> SimTime {
        self.network.queue.next().key.time
    }

    /// The link by which `node` now sends packets for `to`, if there is one; the first of several equally good links.
    pub fn way(&self, node: NodeId, to: Address) -> Option<LinkId> {
        let routes = &self.network.routes;
        let hop = routes.first(routes.next(routes.row(node), to));
        (hop != NO_WAY && hop != HERE).then_some(LinkId(hop))
    }

    /// The current simulated time.
    pub fn now(&self) -> SimTime {
        self.network.moment.now
    }

    /// The seed of all randomness.
    pub fn seed(&self) -> u64 {
        self.streams.seed()
    }

    /// The fingerprint of the run so far.
    pub fn hash(&self) -> RunHash {
        self.network.hash
    }

    /// The number of events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Packets dropped at nodes, because of a missing route or a loop.
    pub fn strays(&self) -> u64 {
        self.network.all_strays()
    }

    /// Packets of one flow in one direction that were dropped at nodes.
    pub fn flow_strays(&self, flow: FlowId, direction: Direction) -> u64 {
        self.network.strays(2 * flow.0 + Leg::from(direction == Direction::Backward))
    }

    /// The number of existing packets.
    pub fn packets(&self) -> usize {
        self.network.packets()
    }

    /// Every link, in the order of declaration.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.network.links.len() as u32).map(LinkId)
    }

    /// The counters of a link.
    pub fn link(&self, link: LinkId) -> LinkReport {
        self.network.links[link.index()].report(self.network.moment.now)
    }

    /// The counters of one flow on a link, in both directions.
    pub fn link_flow(&self, link: LinkId, flow: FlowId) -> Counts {
        self.link_leg(link, flow, Direction::Forward).plus(self.link_leg(link, flow, Direction::Backward))
    }

    /// The counters of one direction of a flow on a link.
    pub fn link_leg(&self, link: LinkId, flow: FlowId, direction: Direction) -> Counts {
        let backward = Leg::from(direction == Direction::Backward);
        self.network.links[link.index()].leg(2 * flow.0 + backward)
    }

    /// Packets that wait for a link's transmitter now.
    pub fn waiting(&self, link: LinkId) -> u64 {
        self.network.links[link.index()].waiting(self.network.moment.now)
    }

    /// The integral of a link's queue length up to now.
    pub fn queue_area(&self, link: LinkId) -> QueueArea {
        QueueArea { time: self.network.moment.now, area: self.queue_lengths(link).waiting_area() }
    }

    /// How long a link's queue had each length, up to now.
    pub fn queue_lengths(&self, link: LinkId) -> QueueLengths {
        self.network.links[link.index()].queue_lengths(self.network.moment.now)
    }

    /// The account of a host. The caller need not know the host's type.
    pub fn account(&self, host: HostId) -> &dyn Account {
        self.stations[host.index()].host.account()
    }

    /// The host, if it has the type `H`, with or without a driver around it. For callers that know the type and need more than
    /// [`World::account`].
    pub fn host<H: Host>(&self, host: HostId) -> Option<&H> {
        let host: &dyn Any = self.stations[host.index()].host.as_ref();
        match host.downcast_ref::<Box<dyn Host>>() {
            Some(boxed) => (boxed.as_ref() as &dyn Any).downcast_ref(),
            None => host.downcast_ref().or_else(|| host.downcast_ref::<Driven<H>>().map(|driven| &driven.host)),
        }
    }

    /// A mutable host of this type, without a driver around it.
    pub fn host_mut<H: Host>(&mut self, host: HostId) -> Option<&mut H> {
        let host: &mut dyn Any = self.stations[host.index()].host.as_mut();
        host.downcast_mut()
    }

    /// Checks on every link that packets in = out + dropped + waiting + flying, and that each packet has a body.
    ///
    /// # Errors
    /// Where packets are not conserved, which is a defect of this crate.
    pub fn conservation(&self) -> Result<(), String> {
        self.network.conservation()
    }

    /// Checks what [`Self::conservation`] checks, for tests.
    ///
    /// # Panics
    /// If packets are not conserved.
    pub fn assert_conserved(&self) {
        self.conservation().expect("packets are conserved");
    }

    /// A packet reaches the far end of a link, which may be its destination.
    fn arrive(&mut self, link: usize) {
        if let Some(flight) = self.network.arrive(link) {
            let End { host, port } = self.ends[flight.leg() as usize];
            self.turn(host.index(), Event::Arrival(Landing { flight, link: LinkId(link as u32), port }));
        }
    }

    /// The wake of a host is due; its deadline may be later.
    fn wake(&mut self, station: usize) {
        let Station { deadline, wake, .. } = &mut self.stations[station];
        if deadline > wake {
            *wake = *deadline;
            self.network.queue.set(self.slots.hosts + station, *deadline);
            return;
        }
        *wake = Key::NONE;
        *deadline = Key::NONE;
        self.turn(station, Event::Timeout);
        // Until here the entry is that of this event, so that one with a next deadline is changed once.
        if self.stations[station].wake == Key::NONE {
            self.network.queue.clear(self.slots.hosts + station);
        }
    }

    /// Passes an event to a host, takes its packets, and sets its timer.
    fn turn(&mut self, index: usize, event: Event) {
        let Self { network, stations, slots, .. } = self;
        let Station { host, attachment, deadline, wake } = &mut stations[index];
        let asked = host.turn(network.moment.now, event, network, attachment);
        if asked != deadline.time {
            // A deadline counts as inserted when it is set, even if the queue is updated later. It is stored when it is complete: copies of
            // it then come from registers, and wait for no memory.
            let now = network.moment.now;
            let mut key = Key::new(asked.max(now), now, network.order.draw());
            if network.is_like_ns2 && asked != SimTime::NEVER {
                let due = host.due();
                if let Some(Due { set_at, .. }) = due {
                    key.inserted = set_at;
                }
                if network.has_float_clock {
                    // ns-2 adds the span to its float clock.
                    let seconds = network.moment.seconds + asked.since(now).as_secs_f64();
                    key = key.at_seconds(due.map_or(seconds, |due| due.seconds));
                }
            }
            *deadline = key;
            if key < *wake {
                *wake = key;
                network.queue.set(slots.hosts + index, key);
            }
        }
    }

    /// The next item of the agenda is due.
    fn act(&mut self) {
        let item = self.agenda.pop();
        self.network.queue.set(self.slots.agenda, self.agenda.next());
        match item {
            None => {}
            Some(Item::Control(Control::Input { host, input })) => self.turn(host.index(), Event::Input(input)),
            Some(Item::Control(Control::Route { node, to, via })) => {
                self.network.routes.set(node, to, via.map_or(NO_WAY, |link| link.0));
            }
            Some(Item::Control(Control::Mtu { link, mtu })) => self.network.links[link.index()].limit(mtu),
            Some(Item::Workload(index)) => {
                let (host, schedule) = &mut self.workloads[index];
                let (host, (offer, next)) = (*host, schedule.next());
                if let Some(span) = next {
                    self.enter(self.network.moment.now.saturating_add(span), Item::Workload(index));
                }
                if let Some(offer) = offer {
                    self.turn(host.index(), Event::Input(Input::Offer(offer)));
                }
            }
        }
    }

    fn enter(&mut self, at: SimTime, item: Item) {
        let Network { moment: Moment { now, .. }, order, has_float_clock, .. } = &mut self.network;
        let at = at.max(*now);
        let key = Key::new(at, *now, order.draw());
        self.agenda.insert(if *has_float_clock { key.at_seconds(at.as_secs_f64()) } else { key }, item);
        self.network.queue.set(self.slots.agenda, self.agenda.next());
    }
}
