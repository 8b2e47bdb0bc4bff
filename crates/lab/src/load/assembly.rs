//! Makes a scenario from the keys, and checks conditions on several keys.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anabranch_sim::{DriverSpec, ErrorSpec, LinkSpec, QueueSpec, Reads, RouteChange, Stamps, Wire};
use anabranch_units::{Rate, SimSpan, SimTime};

use super::changing::{self, Service};
use super::keys::{ClockKeys, FlowKeys, HostKeys, LinkKeys, ReadsKeys, RouteKeys, StampsKeys};
use super::link::{mtu, positive};
use super::outages::outages;
use super::part::PartKeys;
use super::transport::{Drive, Pair};
use super::values::Name;
use super::{Checked, classes};
use crate::diagnostic::{Diagnostic, Fault, suggestion};
use crate::document::{Document, Path, Plugins};
use crate::scenario::class::EmptyPath;
use crate::scenario::transport::Transport;
use crate::scenario::{Clock, Flow, Interfaces, LinkIndex, NodeIndex, Scenario};

/// The keys of a file that describe a scenario: its network and traffic.
pub(crate) struct ScenarioKeys<'a> {
    pub(crate) seed: u64,
    pub(crate) duration: SimSpan,
    pub(crate) clock: ClockKeys,
    pub(crate) resolution: SimSpan,
    pub(crate) is_multipath: bool,
    pub(crate) links: &'a [LinkKeys],
    pub(crate) flows: &'a [FlowKeys],
    pub(crate) hosts: &'a [HostKeys],
    pub(crate) routes: &'a [RouteKeys],
}

impl ScenarioKeys<'_> {
    /// Makes a scenario from the keys.
    ///
    /// # Errors
    /// The first mistake, with its place in `document` and its correction.
    pub(crate) fn check(&self, document: &Document) -> Result<Scenario, Diagnostic> {
        scenario(self, document.plugins()).map_err(|(path, fault)| document.diagnose(&path, fault))
    }
}

fn scenario(keys: &ScenarioKeys<'_>, plugins: &Plugins) -> Checked<Scenario> {
    let root = Path::default();
    if keys.duration.is_zero() {
        return Err((root.key("duration"), Fault::new("nothing happens in no time").remedy("use a duration above 0s")));
    }
    if keys.flows.is_empty() {
        return Err((root, Fault::new("there is no flow").remedy("add a [[flow]]")));
    }
    let mut network = Network::default();
    for (index, link) in keys.links.iter().enumerate() {
        network.add_link(link, keys.clock, &root.key("link").index(index))?;
    }
    let mut flows: Vec<Flow> = Vec::with_capacity(keys.flows.len());
    let mut taken = BTreeSet::new();
    for (index, flow) in keys.flows.iter().enumerate() {
        let path = root.key("flow").index(index);
        if !taken.insert(flow.id.0.as_str()) {
            let fault = Fault::new(format!("a second flow is called `{}`", flow.id.0));
            return Err((path.key("id"), fault.remedy("give each flow its own name")));
        }
        flows.push(network.flow(flow, plugins, &path)?);
    }
    classes::check(&flows, &root.key("flow"))?;
    let mut drivers = BTreeMap::new();
    for (index, host) in keys.hosts.iter().enumerate() {
        let path = root.key("host").index(index);
        let (node, driver) = network.driver(host, &path)?;
        if !flows.iter().any(|flow| flow.has_end(node) && matches!(flow.transport, Transport::Engine { .. })) {
            let fault = Fault::new(format!("no flow of `anabranch` begins or ends at node `{}`", host.node.0));
            return Err((path.key("node"), fault.remedy("remove the host, or name another node")));
        }
        if drivers.insert(node, driver).is_some() {
            let fault = Fault::new(format!("a second host stands at node `{}`", host.node.0));
            return Err((path.key("node"), fault.remedy("keep one of them")));
        }
    }
    let mut routes = Vec::with_capacity(keys.routes.len());
    for (index, route) in keys.routes.iter().enumerate() {
        routes.push(network.route(route, &root.key("route").index(index))?);
    }
    routes.sort_by_key(|route| route.at);
    let Network { nodes, links, .. } = network;
    let &ScenarioKeys { seed, duration, resolution, is_multipath, .. } = keys;
    let clock = match keys.clock {
        ClockKeys::Exact => Clock::Exact,
        ClockKeys::Ns2 => Clock::Ns2,
    };
    let scenario = Scenario { seed, duration, clock, resolution, is_multipath, nodes, links, flows, drivers, routes };
    let size = scenario.size().check();
    size.map_err(|error| (root, Fault::new(error.to_string()).remedy("make the scenario smaller")))?;
    Ok(scenario)
}

/// The error model of a link, if it loses anything, and its outages.
fn errors(error: &PartKeys<ErrorSpec>, outages: &[ErrorSpec], path: &Path) -> Checked<Vec<ErrorSpec>> {
    let error = Some(error.check(&path.key("error"))?).filter(|error| *error != ErrorSpec::Nothing);
    Ok(error.into_iter().chain(outages.iter().cloned()).collect())
}

#[derive(Default)]
struct Network {
    nodes: Vec<String>,
    links: Vec<Wire>,
    /// The position of each name in these two lists.
    node_indices: BTreeMap<String, NodeIndex>,
    link_indices: BTreeMap<String, LinkIndex>,
    neighbours: Vec<Vec<NodeIndex>>,
}

impl Network {
    fn add_link(&mut self, keys: &LinkKeys, clock: ClockKeys, path: &Path) -> Checked<()> {
        let id = &keys.id.0;
        if self.link_indices.contains_key(id) {
            let fault = Fault::new(format!("a second link is called `{id}`"));
            return Err((path.key("id"), fault.remedy("give each link its own name")));
        }
        if keys.from == keys.to {
            let fault = Fault::new(format!("link `{id}` ends where it begins, at node `{}`", keys.to.0));
            return Err((path.key("to"), fault.remedy("name two nodes")));
        }
        if !keys.duplex && keys.reverse.is_some() {
            let fault = Fault::new(format!("link `{id}` has no way back that could be different"));
            return Err((path.key("reverse"), fault.remedy("remove `reverse`, or `duplex = false`")));
        }
        let (from, to) = (self.node_or_new(&keys.from.0), self.node_or_new(&keys.to.0));
        let outages =
            outages(&keys.outages).map_err(|(index, key, fault)| (path.key("outages").index(index).key(key), fault))?;
        let mut mtu_changes = vec![];
        for (index, change) in keys.mtu_changes.iter().enumerate() {
            let most = mtu(change.mtu, &path.key("mtu_changes").index(index))?;
            mtu_changes.push((SimTime::ZERO.saturating_add(change.at.0), most));
        }
        let rate = keys.rate.map(|rate| positive(rate.0, &path.key("rate"))).transpose()?;
        let service =
            Service { rate, changes: &keys.rate_changes, period: keys.rate_period, trace: keys.trace.as_ref() };
        let (rate, rates) = service.check(path)?;
        let delays = changing::delays(&keys.delay_changes, keys.delay_period, path)?;
        let spec = LinkSpec {
            name: None,
            rate,
            rates,
            scatter: changing::scatter(keys.reorder.as_ref(), keys.duplicate, delays.clone(), path)?,
            delay: keys.delay.0,
            queue: keys.queue.check(&path.key("queue"))?,
            errors: errors(&keys.error, &outages, path)?,
            hold: keys.hold.as_ref().map(|hold| hold.check(&path.key("hold"))).transpose()?,
            mtu: keys.mtu.map(|most| mtu(most, path)).transpose()?,
            clears_ecn: keys.clear_ecn,
        };
        let back_spec = LinkSpec {
            queue: QueueSpec::default(),
            errors: outages.clone(),
            hold: None,
            clears_ecn: false,
            rates: None,
            scatter: changing::scatter(None, None, delays.clone(), path)?,
            ..spec.clone()
        };
        let link = Wire { id: id.clone(), from, to, spec, mtu_changes };
        let back = Wire { id: format!("{id}.reverse"), from: to, to: from, spec: back_spec, ..link.clone() };
        self.neighbours[from].push(to);
        if keys.duplex {
            self.neighbours[to].push(from);
        }
        self.push(link, clock, path)?;
        if let Some(reverse) = &keys.reverse {
            let at = path.key("reverse");
            let own = reverse.rate.map(|rate| positive(rate.0, &at.key("rate"))).transpose()?;
            // A direction with a trace has no other rate.
            let rate = if reverse.trace.is_some() { own } else { own.or(Some(back.spec.rate)) };
            let (changes, period, trace) = (&reverse.rate_changes, reverse.rate_period, reverse.trace.as_ref());
            let (rate, rates) = Service { rate, changes, period, trace }.check(&at)?;
            let scatter = changing::scatter(reverse.reorder.as_ref(), reverse.duplicate, delays, &at)?;
            let delay = reverse.delay.map_or(back.spec.delay, |delay| delay.0);
            let queue = reverse.queue.check(&at.key("queue"))?;
            let errors = errors(&reverse.error, &outages, &at)?;
            let hold = reverse.hold.as_ref().map(|hold| hold.check(&at.key("hold"))).transpose()?;
            let most = reverse.mtu.map(|most| mtu(most, &path.key("reverse"))).transpose()?;
            let mtu = most.or(back.spec.mtu);
            let clears_ecn = reverse.clear_ecn;
            let spec = LinkSpec { name: None, rate, rates, scatter, delay, queue, errors, hold, mtu, clears_ecn };
            self.push(Wire { spec, ..back }, clock, &at)?;
        } else if keys.duplex {
            self.push(back, clock, path)?;
        }
        Ok(())
    }

    /// Adds the direction of a link at `path`, if the simulator supports it.
    fn push(&mut self, link: Wire, clock: ClockKeys, path: &Path) -> Checked<()> {
        if clock == ClockKeys::Ns2 {
            link.spec.check_ns2_clock(&link.id).map_err(|_| match link.spec.queue.decides_at_head() {
                true => {
                    let fault = Fault::new("a queue that decides at its head keeps exact time and not ns-2's");
                    (path.key("queue"), fault.remedy("remove clock = \"ns2\""))
                }
                false if link.spec.hold.is_none() => {
                    let fault = Fault::new(
                        "a link whose rate, delay or order of packets changes keeps exact time and not ns-2's",
                    );
                    (path.clone(), fault.remedy("remove what changes, or clock = \"ns2\""))
                }
                false => {
                    let fault = Fault::new("what holds packets keeps exact time and not ns-2's");
                    (path.clone(), fault.remedy("remove `hold` or clock = \"ns2\""))
                }
            })?;
        }
        let possible = link.spec.check(&link.id);
        possible.map_err(|error| (path.clone(), Fault::new(error.to_string()).remedy("change this link")))?;
        self.link_indices.insert(link.id.clone(), self.links.len());
        self.links.push(link);
        Ok(())
    }

    fn flow(&self, keys: &FlowKeys, plugins: &Plugins, path: &Path) -> Checked<Flow> {
        let id = &keys.id.0;
        let (from, to) = (self.node(&keys.from.0, &path.key("from"))?, self.node(&keys.to.0, &path.key("to"))?);
        if from == to {
            let fault = Fault::new(format!("flow `{id}` goes nowhere: it begins and ends at node `{}`", keys.to.0));
            return Err((path.key("to"), fault.remedy("name two nodes")));
        }
        let Drive { transport, law_name, own, is_window_default, paths: pairs } = Drive::of(keys, plugins, path)?;
        for (start, end) in [(from, to), (to, from)] {
            if !self.is_connected(start, end) {
                let (start, end) = (&self.nodes[start], &self.nodes[end]);
                let fault =
                    Fault::new(format!("flow `{id}` has no route: no links lead from node `{start}` to node `{end}`"));
                return Err((path.clone(), fault.remedy("add the link that is missing, or make a simplex one duplex")));
            }
        }
        let start = SimTime::ZERO.saturating_add(keys.start.0);
        let stop = keys.stop.map(|stop| SimTime::ZERO.saturating_add(stop.0));
        let start_jitter = keys.start_jitter.0;
        if stop.is_some_and(|stop| stop <= start.saturating_add(start_jitter)) {
            let fault = Fault::new(format!("flow `{id}` stops before it starts"));
            return Err((path.key("stop"), fault.remedy("make `stop` later than `start`")));
        }
        let mut paths = vec![];
        for (index, pair) in pairs.iter().enumerate() {
            paths.push(self.interfaces(pair, (from, to), &path.key("paths").index(index))?);
        }
        let class = keys.class.as_ref().map(|class| {
            let path = path.key("class");
            if paths.len() > 1 {
                let fault = Fault::new("a class is for flows of one path");
                return Err((path, fault.remedy("remove `class` or `paths`")));
            }
            classes::class(class, &transport, self.empty_path(from, to), &path)
        });
        Ok(Flow {
            id: id.clone(),
            from,
            to,
            start,
            start_jitter,
            stop,
            transport_name: keys.transport.name().to_owned(),
            law_name,
            own,
            transport,
            packet: keys.packet.0.count(),
            is_window_default,
            paths,
            class: class.transpose()?,
        })
    }

    fn driver(&self, keys: &HostKeys, path: &Path) -> Checked<(NodeIndex, DriverSpec)> {
        let driver = DriverSpec {
            timer: keys.timer.0,
            arrivals: keys.arrivals.as_ref().map(|arrivals| arrivals.check(&path.key("arrivals"))).transpose()?,
            delay: keys.delay.as_ref().map(|delay| delay.0),
            reads: match keys.reads {
                None | Some(ReadsKeys::Each) => Reads::Each,
                Some(ReadsKeys::Batch) => Reads::Batch,
            },
            stamps: match keys.stamps {
                None | Some(StampsKeys::Kernel) => Stamps::Kernel,
                Some(StampsKeys::Program) => Stamps::Program,
            },
        };
        Ok((self.node(&keys.node.0, &path.key("node"))?, driver))
    }

    fn interfaces(&self, pair: &Pair<'_>, (from, to): (NodeIndex, NodeIndex), path: &Path) -> Checked<Interfaces> {
        // One direction of a link by its name, and the other direction.
        let both = |name: &Name, key: &str, fits: &dyn Fn(&Wire) -> bool, what: String| {
            let reverse = format!("{}.reverse", name.0);
            let find = |id: &str| self.link_indices.get(id).copied();
            match (find(&name.0), find(&reverse)) {
                (Some(there), Some(back)) if fits(&self.links[there]) => Ok((there, back)),
                (Some(there), Some(back)) if fits(&self.links[back]) => Ok((back, there)),
                _ => {
                    let fault = Fault::new(format!("`{}` is no duplex link that {what}", name.0));
                    let known = self.links.iter().filter(|link| fits(link));
                    let known = known.map(|link| link.id.trim_end_matches(".reverse"));
                    Err((path.key(key), fault.remedy(suggestion(&name.0, known))))
                }
            }
        };
        let leaves = |link: &Wire| link.from == from;
        let arrives = |link: &Wire| link.to == to;
        let (first, back_last) = both(pair.first, "first", &leaves, format!("leaves node `{}`", self.nodes[from]))?;
        let (last, back_first) = both(pair.last, "last", &arrives, format!("leads to node `{}`", self.nodes[to]))?;
        for (start, end) in [(first, last), (back_first, back_last)] {
            if start != end && !self.is_connected(self.links[start].to, self.links[end].from) {
                let fault = Fault::new(format!("link `{}` does not lead to link `{}`", pair.first.0, pair.last.0));
                return Err((path.clone(), fault.remedy("name two links between which there is a way and back")));
            }
        }
        Ok(Interfaces { first, last, back_first, back_last, loss_rate: pair.loss_rate, weight: pair.weight })
    }

    fn route(&self, keys: &RouteKeys, path: &Path) -> Checked<RouteChange> {
        let node = self.node(&keys.node.0, &path.key("node"))?;
        let to = self.node(&keys.to.0, &path.key("to"))?;
        let via = &keys.via.0;
        let reverse = format!("{via}.reverse");
        let directions: Vec<LinkIndex> =
            [via, &reverse].into_iter().filter_map(|id| self.link_indices.get(id).copied()).collect();
        if directions.is_empty() {
            let known = self.links.iter().map(|link| link.id.as_str()).filter(|id| !id.contains('.'));
            return Err((
                path.key("via"),
                Fault::new(format!("there is no link `{via}`")).remedy(suggestion(via, known)),
            ));
        }
        let Some(&via_index) = directions.iter().find(|&&link| self.links[link].from == node) else {
            let fault = Fault::new(format!("link `{via}` does not leave node `{}`", keys.node.0));
            let leaving = self.links.iter().filter(|link| link.from == node);
            let names = leaving.map(|link| link.id.trim_end_matches(".reverse")).collect::<Vec<_>>().join(", ");
            return Err((path.key("via"), fault.remedy(format!("what leaves it: {names}"))));
        };
        let next = self.links[via_index].to;
        if next != to && !self.is_connected(next, to) {
            let fault = Fault::new(format!("link `{via}` does not lead to node `{}`", keys.to.0));
            return Err((path.key("via"), fault.remedy("use a link from whose end there is a way there")));
        }
        Ok(RouteChange { at: SimTime::ZERO.saturating_add(keys.at.0), node, to, via: via_index })
    }

    fn node_or_new(&mut self, name: &str) -> NodeIndex {
        if let Some(&known) = self.node_indices.get(name) {
            return known;
        }
        let index = self.nodes.len();
        self.node_indices.insert(name.to_owned(), index);
        self.nodes.push(name.to_owned());
        self.neighbours.push(Vec::new());
        index
    }

    fn node(&self, name: &str, path: &Path) -> Checked<NodeIndex> {
        self.node_indices.get(name).copied().ok_or_else(|| {
            let fault = Fault::new(format!("no link touches a node `{name}`"));
            (path.clone(), fault.remedy(suggestion(name, self.nodes.iter().map(String::as_str))))
        })
    }

    fn is_connected(&self, from: NodeIndex, to: NodeIndex) -> bool {
        self.route_back(from, to).is_some()
    }

    /// The nodes of a route with the fewest links, from `to` back to `from`.
    fn route_back(&self, from: NodeIndex, to: NodeIndex) -> Option<Vec<NodeIndex>> {
        let mut before = vec![None; self.nodes.len()];
        before[from] = Some(from);
        let mut next = VecDeque::from([from]);
        while let Some(node) = next.pop_front() {
            if node == to {
                let mut route = vec![to];
                while let Some(node) = before[route[route.len() - 1]].filter(|node| *node != route[route.len() - 1]) {
                    route.push(node);
                }
                return Some(route);
            }
            for &far in &self.neighbours[node] {
                if before[far].is_none() {
                    before[far] = Some(node);
                    next.push_back(far);
                }
            }
        }
        None
    }

    /// The shortest route between two connected nodes, without traffic.
    fn empty_path(&self, from: NodeIndex, to: NodeIndex) -> EmptyPath {
        let links = |from, to| {
            let route = self.route_back(from, to).unwrap_or_default();
            let pairs: Vec<_> = route.windows(2).map(|pair| (pair[1], pair[0])).collect();
            pairs.into_iter().filter_map(|ends| self.links.iter().find(|link| (link.from, link.to) == ends))
        };
        let delay = |from, to| links(from, to).fold(SimSpan::ZERO, |sum, link| sum.saturating_add(link.spec.delay));
        let rate = links(from, to).map(|link| link.spec.rate).min().unwrap_or(Rate::from_bits_per_second(1));
        EmptyPath { delay: delay(from, to), delay_back: delay(to, from), rate }
    }
}
