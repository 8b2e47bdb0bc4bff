//! The simulator's world, with the bytes of real packets. It has no clock: time is an argument.
//!
//! A packet in the world carries the number of the slot that stores its bytes. When the packet arrives at a host or is lost, the
//! number comes back and the slot is freed. Its ECN codepoint is read where it enters, and written where it leaves.
//!
//! A packet to an address of a host travels over the link of that address's interface. Only a host's first address is the address
//! of its node: a packet to it that is sent from the interface of the initial route follows the scenario's route changes.

use std::collections::BTreeMap;

use anabranch_sim::{
    Address, Arrival, Body, Builder, DropReason, EcnCodepoint, Happening, Host, HostId, LinkId, NodeId, Observed,
    Observer, PacketEvent, Port, Raw, Topology, Transmit, World,
};
use anabranch_units::SimTime;

use crate::address::Interface;
use crate::interfaces::{Attachment, Refusal, attachments, is_connected};
use crate::packet::{self, destination};
use crate::status::LinkStatus;
use crate::too_big::too_big;

/// A network that carries real packets.
pub struct Emulation {
    world: World,
    names: Vec<WireNames>,
    links: Vec<LinkId>,
    hosts: Vec<End>,
    /// The interface at the end of each link.
    ends: Vec<Option<Interface>>,
    /// The MTU of each link from each time on.
    mtus: Vec<Vec<(SimTime, u32)>>,
    losses: Observed<Losses>,
    bytes: Store,
    /// Whether routers say nothing of packets that are longer than a link's MTU.
    is_silent: bool,
    /// Messages of routers to hosts, by the time when they arrive.
    messages: BTreeMap<(SimTime, u64), (Interface, Vec<u8>)>,
    /// The number of the next message.
    told: u64,
    strays: u64,
    overflowed: u64,
    /// Buffers that are empty between calls. They are kept to avoid allocations.
    arrived: Vec<Arrived>,
    lost: Vec<Lost>,
}

/// The limit on messages of routers that are on their way; a router limits them, too.
const MESSAGES_MAX: usize = 1000;

/// The limit on packets in flight. With packets of the usual size these are 1.5 GB, and half a minute at 400 Mbit/s. Only an
/// unlimited queue can reach it.
const PACKETS_MAX: usize = 1 << 20;

/// A packet without a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stray;

/// The names of a link in reports.
struct WireNames {
    id: String,
    from: String,
    to: String,
}

/// A host of the world.
struct End {
    node: NodeId,
    gateway: HostId,
    /// For each interface, the link on which it sends.
    outs: Vec<LinkId>,
    /// For each interface, the index of the link on which it receives.
    backs: Vec<usize>,
    /// For each interface, its address.
    addresses: Vec<Address>,
    /// For each host, the port for packets to it and, for each of its interfaces, the nearest local interface. `None` if there is
    /// no route in both directions.
    peers: Vec<Option<Peer>>,
}

struct Peer {
    port: Port,
    nearest: Vec<Option<usize>>,
}

/// Stores arrivals until they are taken.
#[derive(Default)]
struct Gateway(Vec<Arrived>);

#[derive(Clone, Copy)]
struct Arrived {
    at: SimTime,
    link: LinkId,
    place: u64,
    ecn: Option<EcnCodepoint>,
}

/// Stores the slots of lost packets until they are taken.
#[derive(Default)]
struct Losses(Vec<Lost>);

struct Lost {
    place: u64,
    sent_at: SimTime,
    at: SimTime,
    /// The link for which it was too long.
    narrow: Option<LinkId>,
}

impl Host for Gateway {
    fn handle(&mut self, now: SimTime, arrival: Arrival<'_>) {
        let Body::Raw(Raw { seq, .. }) = *arrival.body else { unreachable!("only an emulation sends here") };
        self.0.push(Arrived { at: now, link: arrival.link, place: seq, ecn: arrival.ecn });
    }
}

impl Observer for Losses {
    fn on_packet(&mut self, event: &PacketEvent<'_>) {
        if let (Happening::Dropped(_) | Happening::Discarded, Body::Raw(raw)) = (event.happening, event.body) {
            let narrow = (event.happening == Happening::Dropped(DropReason::TooLong)).then_some(event.link);
            self.0.push(Lost { place: raw.seq, sent_at: raw.sent_at, at: event.time, narrow });
        }
    }
}

/// The bytes of packets in flight. Slots keep their memory, so nothing is allocated after the peak use.
#[derive(Default)]
struct Store {
    places: Vec<Vec<u8>>,
    free: Vec<u64>,
}

impl Store {
    fn insert(&mut self, packet: &[u8]) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Vec::new());
            self.places.len() as u64 - 1
        });
        self.places[place as usize].extend_from_slice(packet);
        place
    }

    fn release(&mut self, place: u64) {
        self.places[place as usize].clear();
        self.free.push(place);
    }

    fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

impl Emulation {
    /// The network at time zero.
    ///
    /// # Errors
    /// If the network cannot be emulated.
    pub fn new(network: &Topology) -> Result<Self, Refusal> {
        let attachments = attachments(network)?;
        let mut builder = Builder::new(network.seed);
        let (nodes, links) = builder.network(&network.nodes, &network.wires)?;
        let mut hosts = vec![];
        for (&node, interfaces) in network.hosts.iter().zip(&attachments) {
            let gateway = builder.host(nodes[node], Gateway::default())?;
            let is_routed = network.routes.iter().any(|route| route.to == node);
            let mut addresses = vec![];
            for (number, interface) in interfaces.iter().enumerate() {
                let own = number == 0 && (is_routed || interfaces.len() == 1);
                addresses.push(match own {
                    true => builder.address(nodes[node])?,
                    false => builder.address_through(links[interface.back])?,
                });
            }
            let outs = interfaces.iter().map(|interface| links[interface.out]).collect();
            let backs = interfaces.iter().map(|interface| interface.back).collect();
            hosts.push(End { node: nodes[node], gateway, outs, backs, addresses, peers: vec![] });
        }
        let ports = ports(network, &hosts, &mut builder)?;
        builder.changes((&nodes, &links), &network.routes, &network.wires)?;
        let losses = builder.observe(&links, Losses::default())?;
        let mut world = builder.build()?;
        // Applies the route changes at time zero.
        world.run_until(SimTime::ZERO);
        for (host, ports) in ports.into_iter().enumerate() {
            let peers = hosts.iter().zip(ports).map(|(peer, port)| {
                let End { node, outs, .. } = &hosts[host];
                let way = |&to: &Address| world.way(*node, to).and_then(|way| outs.iter().position(|&out| out == way));
                port.map(|port| Peer { port, nearest: peer.addresses.iter().map(way).collect() })
            });
            hosts[host].peers = peers.collect();
        }
        let names = network.wires.iter().map(|wire| WireNames {
            id: wire.id.clone(),
            from: network.nodes[wire.from].clone(),
            to: network.nodes[wire.to].clone(),
        });
        let mtus = network.wires.iter().map(|wire| {
            let first = wire.spec.mtu.map(|mtu| (SimTime::ZERO, mtu));
            first.into_iter().chain(wire.mtu_changes.clone()).collect()
        });
        Ok(Self {
            names: names.collect(),
            mtus: mtus.collect(),
            ends: ends(network, &attachments),
            world,
            links,
            hosts,
            losses,
            bytes: Store::default(),
            is_silent: false,
            messages: BTreeMap::new(),
            told: 0,
            strays: 0,
            overflowed: 0,
            arrived: vec![],
            lost: vec![],
        })
    }

    /// The same network, whose routers say nothing of packets that are longer than a link's MTU.
    #[must_use]
    pub fn silent(self, is_silent: bool) -> Self {
        Self { is_silent, ..self }
    }

    /// The interface with which a host reaches another host's interface, if it can reach it.
    pub(crate) fn nearest(&self, host: usize, to: Interface) -> Option<usize> {
        *self.hosts[host].peers.get(to.host)?.as_ref()?.nearest.get(to.number)?
    }

    /// The time of the next event; [`SimTime::NEVER`] if there is none.
    pub fn next_at(&self) -> SimTime {
        let message = self.messages.first_key_value().map_or(SimTime::NEVER, |(&(at, _), _)| at);
        self.world.next_at().min(message)
    }

    /// A host sends a packet from one of its interfaces. Time must not decrease: `now` is at least the latest time so far.
    ///
    /// # Errors
    /// If the destination has no route.
    pub fn enter(&mut self, now: SimTime, from: Interface, packet: &[u8]) -> Result<(), Stray> {
        self.world.run_until(now);
        let Some(transmit) = self.transmit(from, packet) else {
            self.strays += 1;
            return Err(Stray);
        };
        if self.bytes.len() >= PACKETS_MAX {
            self.overflowed += 1;
            return Ok(());
        }
        let place = self.bytes.insert(packet);
        let body = Body::Raw(Raw { seq: place, sent_at: now });
        self.world.send(self.hosts[from.host].gateway, Transmit { body, ..transmit });
        self.forget_losses();
        Ok(())
    }

    /// Calls `take` for each arrival up to `now`, with the interface, the link, the due time, and the packet.
    pub fn deliver(&mut self, now: SimTime, mut take: impl FnMut(Interface, usize, SimTime, &[u8])) {
        self.world.run_until(now);
        self.forget_losses();
        for host in &self.hosts {
            let gateway: &mut Gateway = self.world.host_mut(host.gateway).expect("it was put there");
            std::mem::swap(&mut gateway.0, &mut self.arrived);
            for Arrived { at, link, place, ecn } in self.arrived.drain(..) {
                let to = self.ends[link.index()].expect("a host is reached by the links of its interfaces");
                let packet = &mut self.bytes.places[place as usize];
                if packet::ecn(packet) != ecn {
                    packet::set_ecn(packet, ecn);
                }
                take(to, link.index(), at, packet);
                self.bytes.release(place);
            }
        }
        while let Some(entry) = self.messages.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((at, _), (to, message)) = entry.remove_entry();
            take(to, self.hosts[to.host].backs[to.number], at, &message);
        }
    }

    /// Counters of each link. The lateness is not included.
    pub fn links(&self) -> Vec<LinkStatus> {
        let status = |(names, &link): (&WireNames, &LinkId)| {
            let report = self.world.link(link);
            LinkStatus {
                id: names.id.clone(),
                from: names.from.clone(),
                to: names.to.clone(),
                sent_packets: report.counts.offered,
                sent_bytes: report.counts.offered_bytes,
                lost_packets: report.counts.errors,
                dropped_packets: report.counts.drops,
                marked_packets: report.counts.marks,
                delivered_packets: report.delivered,
                delivered_bytes: report.delivered_bytes,
                waiting_packets: report.waiting,
                flying_packets: report.flying,
                late: None,
            }
        };
        self.names.iter().zip(&self.links).map(status).collect()
    }

    /// Packets that no host or link accepted.
    pub fn strays(&self) -> u64 {
        self.strays + self.world.strays()
    }

    /// Packets dropped at the limit of packets in flight.
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }

    /// Packets whose bytes are stored.
    pub fn packets(&self) -> usize {
        self.bytes.len()
    }

    /// The packet as the world sees it, without its bytes.
    fn transmit(&self, from: Interface, packet: &[u8]) -> Option<Transmit> {
        let to = Interface::of(destination(packet)?)?;
        let End { outs, peers, .. } = &self.hosts[from.host];
        let Peer { port, nearest } = peers.get(to.host)?.as_ref()?;
        let nearest = *nearest.get(to.number)?;
        // A packet sent from an interface other than the route's leaves over that interface.
        let via = (nearest != Some(from.number)).then_some(outs[from.number]);
        let address = self.hosts[to.host].addresses[to.number];
        let size = u32::try_from(packet.len()).ok()?;
        let body = Body::Raw(Raw::default());
        Some(Transmit { port: *port, size, body, ecn: packet::ecn(packet), via, to: Some(address) })
    }

    fn forget_losses(&mut self) {
        std::mem::swap(&mut self.losses.borrow().0, &mut self.lost);
        let mut lost = std::mem::take(&mut self.lost);
        for loss in lost.drain(..) {
            if let Some(link) = loss.narrow.filter(|_| !self.is_silent) {
                self.answer(&loss, link);
            }
            self.bytes.release(loss.place);
        }
        self.lost = lost;
    }

    /// A router answers a packet that is too long for its next link. The answer takes as long as the packet took to that router.
    fn answer(&mut self, loss: &Lost, link: LinkId) {
        let packet = &self.bytes.places[loss.place as usize];
        let mtu = self.mtus[link.index()].iter().rfind(|(from, _)| *from <= loss.at).map(|&(_, mtu)| mtu);
        let to = packet::source(packet).and_then(Interface::of);
        let to = to.filter(|to| self.hosts.get(to.host).is_some_and(|host| to.number < host.outs.len()));
        let (Some(mtu), Some(to)) = (mtu, to) else { return };
        if self.messages.len() < MESSAGES_MAX
            && let Some(message) = too_big(packet, link.index(), mtu)
        {
            let arrives = loss.at.saturating_add(loss.at.since(loss.sent_at));
            self.messages.insert((arrives, self.told), (to, message));
            self.told += 1;
        }
    }
}

/// The port for each pair of hosts. Their packets are one flow of the world, if there is a route in both directions.
fn ports(network: &Topology, hosts: &[End], builder: &mut Builder) -> Result<Vec<Vec<Option<Port>>>, Refusal> {
    let mut ports = vec![vec![None; hosts.len()]; hosts.len()];
    let mut used = vec![0; hosts.len()];
    for (left, right) in (0..hosts.len()).flat_map(|left| (left + 1..hosts.len()).map(move |right| (left, right))) {
        let (here, there) = (network.hosts[left], network.hosts[right]);
        if !is_connected(network, here, there) || !is_connected(network, there, here) {
            continue;
        }
        builder.flow(hosts[left].gateway, hosts[right].gateway)?;
        for (one, other) in [(left, right), (right, left)] {
            ports[one][other] = Some(Port::new(used[one]));
            used[one] += 1;
        }
    }
    Ok(ports)
}

/// The interface at the end of each link.
fn ends(network: &Topology, attachments: &[Vec<Attachment>]) -> Vec<Option<Interface>> {
    let mut ends = vec![None; network.wires.len()];
    for (host, interfaces) in attachments.iter().enumerate() {
        for (number, interface) in interfaces.iter().enumerate() {
            ends[interface.back] = Some(Interface { host, number });
        }
    }
    ends
}

#[cfg(test)]
mod tests;
