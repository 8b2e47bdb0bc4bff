//! The description of a world.

use std::collections::BTreeSet;
use std::fmt;

use anabranch_ns2::random::Mrg32k3a;
use anabranch_units::SimTime;
use anabranch_units::settings::Part;

use super::build_error::BuildError;
use super::limits::WorldSize;
use super::link_spec::LinkSpec;
use super::{End, Slots, Station, World};
use crate::agenda::{Agenda, Control, Item};
use crate::error_model::{ErrorModel, ErrorSpec};
use crate::event_queue::{EventQueue, Key, Order};
use crate::hold::Hold;
use crate::host::{Host, Input};
use crate::id::{Address, FlowId, HostId, LinkId, NodeId, Port};
use crate::link::Link;
use crate::network::{Attachment, Network, Outlet, Parts};
use crate::probe::{HeldObserver, Observed, Observer};
use crate::queue::Site;
use crate::rng::{Stream, Substreams};
use crate::route::{Edge, HERE, NO_WAY, Routes, Target};
use crate::run_hash::RunHash;
use crate::turn::Turn;
use crate::workload::{Schedule, Workload};

/// Collects the parts of a world. Every method reports its errors at once; [`Builder::build`] checks the whole.
pub struct Builder {
    streams: Substreams,
    order: Order,
    /// The name of each node, and its address if one was requested. Routes exist to these addresses only.
    nodes: Vec<(String, Option<Address>)>,
    edges: Vec<Edge>,
    targets: Vec<Target>,
    links: Vec<Link>,
    /// Names of links, and `workload.` names of workloads.
    names: BTreeSet<String>,
    routes: Vec<(NodeId, Address, LinkId)>,
    stations: Vec<Station>,
    ends: Vec<End>,
    agenda: Agenda,
    workloads: Vec<(HostId, Schedule)>,
    observers: Vec<HeldObserver>,
    has_float_clock: bool,
    has_multipath: bool,
    random: Option<Mrg32k3a>,
}

impl Builder {
    /// An empty world with this seed.
    pub fn new(seed: u64) -> Self {
        Self {
            streams: Substreams::new(seed),
            order: Order::default(),
            nodes: Vec::new(),
            edges: Vec::new(),
            targets: Vec::new(),
            links: Vec::new(),
            names: BTreeSet::new(),
            routes: Vec::new(),
            stations: Vec::new(),
            ends: Vec::new(),
            agenda: Agenda::default(),
            workloads: Vec::new(),
            observers: Vec::new(),
            has_float_clock: false,
            has_multipath: false,
            random: None,
        }
    }

    /// Keeps time as ns-2 does, in doubles, for exact comparisons with it. The world runs slower.
    pub fn ns2_clock(&mut self) {
        self.has_float_clock = true;
    }

    /// Where several links are equally good, flows are spread over them by a hash (ECMP). Without this call all flows take the
    /// first.
    pub fn multipath(&mut self) {
        self.has_multipath = true;
    }

    /// All hosts that can draw from ns-2's default stream share this stream, in the order of events. Without this call each has
    /// its own.
    pub fn ns2_random(&mut self, stream: Mrg32k3a) {
        self.random = Some(stream);
    }

    /// The random stream called `name`, for a host that needs random numbers.
    pub fn stream(&self, name: &str) -> Stream {
        self.streams.stream(name)
    }

    /// Adds a node. Its name appears in reports and in the names of links.
    pub fn node(&mut self, name: impl Into<String>) -> NodeId {
        // More nodes than an identifier can number exceed the limit: `build` reports it.
        let id = NodeId(self.nodes.len().min(WorldSize::NODES_MAX) as u16);
        self.nodes.push((name.into(), None));
        id
    }

    /// The address of a node.
    pub fn address(&mut self, node: NodeId) -> Result<Address, BuildError> {
        let (_, known) = self.nodes.get(node.index()).ok_or_else(|| unknown(node))?;
        if let &Some(address) = known {
            return Ok(address);
        }
        let address = self.target(node, None);
        self.nodes[node.index()].1 = Some(address);
        Ok(address)
    }

    /// A further address of the node at the end of `link`: packets to it arrive by this link.
    pub fn address_through(&mut self, link: LinkId) -> Result<Address, BuildError> {
        let to = self.edges.get(link.index()).ok_or_else(|| unknown(link))?.to;
        Ok(self.target(to, Some(link)))
    }

    /// Adds a link in one direction.
    pub fn link(&mut self, from: NodeId, to: NodeId, spec: LinkSpec) -> Result<LinkId, BuildError> {
        let ends = (self.node_name(from)?, self.node_name(to)?);
        let name = spec.name.clone().unwrap_or_else(|| {
            // Parallel links are numbered among themselves: a link elsewhere must not change their names, and so their draws.
            let plain = format!("{}>{}", ends.0, ends.1);
            let numbered = (2..).map(|number| format!("{plain}#{number}"));
            std::iter::once(plain.clone()).chain(numbered).find(|name| !self.names.contains(name)).unwrap_or(plain)
        });
        if from == to {
            return Err(BuildError::Loop { link: name });
        }
        spec.check(&name)?;
        WorldSize { links: self.links.len() + 1, ..WorldSize::default() }.check()?;
        let stream = |what: &str| self.streams.stream(&format!("link.{name}.{what}"));
        let queue = spec.queue.build(&Site { rate: spec.rate, delay: spec.delay, stream: &stream });
        if !self.names.insert(name.clone()) {
            return Err(BuildError::NameTaken { name });
        }
        let id = LinkId(self.links.len() as u32);
        self.edges.push(Edge { from, to });
        let hold = spec.hold.map(|hold| Hold::new(hold, self.streams.stream(&format!("link.{name}.hold"))));
        let mut link = Link::new(name, (from, to), spec.rate, spec.delay, queue);
        if let Some(hold) = hold {
            link.hold(hold);
        }
        if let Some(rates) = spec.rates {
            link.vary(rates);
        }
        if !spec.scatter.is_nothing() {
            let [reorder, duplicate] =
                ["reorder", "duplicate"].map(|what| self.streams.stream(&format!("link.{}.{what}", link.name)));
            link.scatter(spec.scatter, reorder, duplicate);
        }
        if let Some(mtu) = spec.mtu {
            link.limit(mtu);
        }
        if spec.clears_ecn {
            link.clear_ecn();
        }
        self.links.push(link);
        for error in spec.errors {
            self.error(id, error)?;
        }
        Ok(id)
    }

    /// Adds links in both directions, the one from `a` to `b` first. The name of the opposite direction has a suffix.
    pub fn duplex(&mut self, a: NodeId, b: NodeId, spec: LinkSpec) -> Result<(LinkId, LinkId), BuildError> {
        let back = LinkSpec { name: spec.name.as_ref().map(|name| format!("{name}.back")), ..spec.clone() };
        Ok((self.link(a, b, spec)?, self.link(b, a, back)?))
    }

    /// Adds an error model before the queue of `link`, after its existing models.
    pub fn error(&mut self, link: LinkId, spec: ErrorSpec) -> Result<(), BuildError> {
        let link = self.links.get_mut(link.index()).ok_or_else(|| unknown(link))?;
        if spec.flaw().is_some() {
            return Err(BuildError::BadErrorModel { link: link.name.clone() });
        }
        let stream = self.streams.stream(&format!("link.{}.error.{}", link.name, link.errors()));
        link.add_error(ErrorModel::new(spec, stream));
        Ok(())
    }

    /// Overrides a route from the start: `node` sends packets for `to` by the link `via`.
    pub fn route(&mut self, node: NodeId, to: Address, via: LinkId) -> Result<(), BuildError> {
        self.check_route(node, to, Some(via))?;
        self.routes.push((node, to, via));
        Ok(())
    }

    /// Adds a host at a node.
    pub fn host(&mut self, node: NodeId, host: impl Host) -> Result<HostId, BuildError> {
        self.node_name(node)?;
        WorldSize { hosts: self.stations.len() + 1, ..WorldSize::default() }.check()?;
        let host: Box<dyn Turn> = Box::new(host);
        self.stations.push(Station {
            host,
            attachment: Attachment { node, ports: Vec::new() },
            deadline: Key::NONE,
            wake: Key::NONE,
        });
        Ok(HostId(self.stations.len() as u32 - 1))
    }

    /// Adds a flow between two hosts. Each host numbers it with its next free port: a host's only flow has [`Port::FIRST`].
    pub fn flow(&mut self, source: HostId, sink: HostId) -> Result<FlowId, BuildError> {
        let (from, to) = (self.station(source)?.attachment.node, self.station(sink)?.attachment.node);
        if from == to {
            return Err(BuildError::SameNode { node: self.node_name(from)? });
        }
        let flow = self.ends.len() as u32 / 2;
        WorldSize { flows: flow as usize + 1, ..WorldSize::default() }.check()?;
        // A leg ends where the other one starts.
        let (forward, backward) = (self.address(to)?, self.address(from)?);
        for (leg, here, there, address) in [(2 * flow, source, sink, forward), (2 * flow + 1, sink, source, backward)] {
            let ports = &mut self.stations[here.index()].attachment.ports;
            let port = u16::try_from(ports.len());
            let port = port.map_err(|_| BuildError::TooMany { what: "flows of one host", limit: 1 << 16 })?;
            ports.push(Outlet { leg, to: address });
            self.ends.push(End { host: there, port: Port(port) });
        }
        let [.., forward, backward] = self.ends.as_mut_slice() else { unreachable!("two legs were added") };
        std::mem::swap(&mut forward.port, &mut backward.port);
        Ok(FlowId(flow))
    }

    /// Schedules an action.
    pub fn at(&mut self, time: SimTime, control: Control) -> Result<(), BuildError> {
        match control {
            Control::Input { host, .. } => _ = self.station(host)?,
            Control::Route { node, to, via } => self.check_route(node, to, via)?,
            Control::Mtu { link, .. } => _ = self.links.get(link.index()).ok_or_else(|| unknown(link))?,
        }
        self.enter(time, Item::Control(control));
        Ok(())
    }

    /// Schedules the start of a host.
    pub fn start(&mut self, time: SimTime, host: HostId) -> Result<(), BuildError> {
        self.at(time, Control::Input { host, input: Input::Start })
    }

    /// Schedules the stop of a host.
    pub fn stop(&mut self, time: SimTime, host: HostId) -> Result<(), BuildError> {
        self.at(time, Control::Input { host, input: Input::Stop })
    }

    /// Starts a host at `time` and offers it a workload for its flow `port` from then on. The name must be unique among
    /// workloads; its random stream is named after it.
    pub fn workload(
        &mut self,
        name: &str,
        time: SimTime,
        (host, port): (HostId, Port),
        workload: Workload,
    ) -> Result<(), BuildError> {
        let name = format!("workload.{name}");
        if self.station(host)?.attachment.ports.get(port.index()).is_none() {
            return Err(unknown(port));
        }
        if !workload.is_offered() {
            return Err(BuildError::BadWorkload { host });
        }
        if !self.names.insert(name.clone()) {
            return Err(BuildError::NameTaken { name });
        }
        let stream = self.streams.stream(&name);
        self.start(time, host)?;
        self.enter(time, Item::Workload(self.workloads.len()));
        let sizes = self.streams.stream(&sizes_of(&name));
        self.workloads.push((host, Schedule::new(workload, port, stream, sizes)));
        Ok(())
    }

    /// The message sizes that [`Builder::workload`] offers for the workload with this name, if their number is finite.
    pub fn amounts(&self, name: &str, workload: Workload) -> Option<Vec<u64>> {
        workload.amounts(self.streams.stream(&sizes_of(&format!("workload.{name}"))))
    }

    /// Adds an observer of some links, and returns a handle to ask it by.
    pub fn observe<T: Observer>(&mut self, links: &[LinkId], observer: T) -> Result<Observed<T>, BuildError> {
        let index = self.observers.len();
        let observed = Observed::new(observer);
        let told = observed.told();
        for &link in links {
            let link = self.links.get_mut(link.index()).ok_or_else(|| unknown(link))?;
            if !link.observers.contains(&index) {
                link.observers.push(index);
                link.interest = link.interest.or(told.interest);
            }
        }
        self.observers.push(told);
        Ok(observed)
    }

    /// All links so far, in the order of declaration.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<> {
        (0..self.links.len() as u32).map(LinkId)
    }

    /// The size of the world so far.
    pub fn size(&self) -> WorldSize {
        WorldSize {
            nodes: self.nodes.len(),
            addresses: self.targets.len(),
            links: self.links.len(),
            hosts: self.stations.len(),
            flows: self.ends.len() / 2,
        }
    }

    /// Computes the routes and builds the world.
    pub fn build(self) -> Result<World, BuildError> {
        self.size().check()?;
        let Self { streams, order, nodes, edges, targets, mut links, stations, ends, mut agenda, workloads, .. } = self;
        let mut routes = if self.has_multipath {
            let perturbation = (streams.stream("routes.multipath").uniform() * (1_u64 << 53) as f64) as u64;
            Routes::multipath(nodes.len(), &edges, &targets, perturbation)
        } else {
            Routes::shortest(nodes.len(), &edges, &targets)
        };
        for (node, to, via) in self.routes {
            routes.set(node, to, via.0);
        }
        for station in &stations {
            let Attachment { node, ports } = &station.attachment;
            for outlet in ports {
                let hop = routes.next(routes.row(*node), outlet.to);
                if hop == NO_WAY || hop == HERE {
                    let name = |node: NodeId| nodes[node.index()].0.clone();
                    let (from, to) = (name(*node), name(targets[outlet.to.index()].node));
                    return Err(BuildError::NoRoute { flow: FlowId(outlet.leg / 2), from, to });
                }
            }
        }
        for link in &mut links {
            link.row = routes.row(link.to);
        }
        if self.has_float_clock {
            if let Some(link) = links.iter().find(|link| !link.is_plain()) {
                return Err(BuildError::NoFloatClock { link: link.name.clone() });
            }
            links.iter_mut().for_each(Link::use_float_clock);
            agenda.use_float_clock();
        }
        let managed: Vec<_> =
            (0..).map(LinkId).zip(&links).filter(|(_, link)| link.is_managed()).map(|(id, _)| id).collect();
        let transmitters = links.len();
        let hosts = transmitters + managed.len();
        let slots = Slots { transmitters, hosts, agenda: hosts + stations.len() };
        let mut queue = EventQueue::new(slots.agenda + 1);
        queue.set(slots.agenda, agenda.next());
        let (hash, observers) = (RunHash::new(streams.seed()), self.observers);
        let (has_float_clock, random) = (self.has_float_clock, self.random);
        let parts = Parts { hash, queue, order, links, managed, routes, observers, has_float_clock, random };
        let network = Network::new(parts);
        Ok(World { streams, events: 0, network, slots, stations, ends, agenda, workloads })
    }

    fn enter(&mut self, at: SimTime, item: Item) {
        self.agenda.insert(Key::new(at, SimTime::ZERO, self.order.draw()), item);
    }

    fn target(&mut self, node: NodeId, through: Option<LinkId>) -> Address {
        self.targets.push(Target { node, through });
        Address((self.targets.len() - 1).min(WorldSize::NODES_MAX) as u16)
    }

    fn check_route(&self, node: NodeId, to: Address, via: Option<LinkId>) -> Result<(), BuildError> {
        let name = self.node_name(node)?;
        if to.index() >= self.targets.len() {
            return Err(unknown(to));
        }
        let Some(via) = via else { return Ok(()) };
        let link = self.links.get(via.index()).ok_or_else(|| unknown(via))?;
        if link.from != node {
            return Err(BuildError::NotThere { link: link.name.clone(), node: name });
        }
        Ok(())
    }

    fn station(&self, host: HostId) -> Result<&Station, BuildError> {
        self.stations.get(host.index()).ok_or_else(|| unknown(host))
    }

    fn node_name(&self, node: NodeId) -> Result<String, BuildError> {
        self.nodes.get(node.index()).map(|(name, _)| name.clone()).ok_or_else(|| unknown(node))
    }
}

/// A world may be built on one thread and run on another.
const _: () = {
    const fn assert_send<T: Send>() {}
    assert_send::<World>();
};

/// The stream from which the sizes of a workload's messages are drawn.
fn sizes_of(workload: &str) -> String {
    format!("{workload}.sizes")
}

fn unknown(id: impl fmt::Display) -> BuildError {
    BuildError::Unknown { what: id.to_string() }
}
