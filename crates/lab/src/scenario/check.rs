//! From keys to a scenario: what no single key can tell.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anabranch_sim::{
    CoDelParameters, DelaySpec, DriverSpec, ErrorSpec, GilbertElliott, HoldSpec, QueueSpec, Reads, RedParameters,
    Stamps, Unit,
};
use anabranch_units::{Bytes, Rate, SimSpan, SimTime};

use super::keys::{
    ClockKeys, DelayKeys, ErrorKeys, FlowKeys, HoldKeys, HostKeys, LinkKeys, PathKeys, QueueKeys, RATE_MAX, ReadsKeys,
    RouteKeys, StampsKeys,
};
use super::values::{Count, Name, Text};
use super::{Flow, Interfaces, Link, LinkIndex, NodeIndex, RouteChange, Scenario};
use crate::diagnostic::{Diagnostic, Fault, suggestion};
use crate::document::{Document, Path};
use crate::transport::Transport;

/// What a file says of the network and its traffic.
pub(crate) struct NetworkKeys<'a> {
    pub(crate) seed: u64,
    pub(crate) duration: SimSpan,
    pub(crate) clock: ClockKeys,
    pub(crate) resolution: SimSpan,
    pub(crate) links: &'a [LinkKeys],
    pub(crate) flows: &'a [FlowKeys],
    pub(crate) hosts: &'a [HostKeys],
    pub(crate) routes: &'a [RouteKeys],
}

impl NetworkKeys<'_> {
    /// Makes a scenario of them.
    ///
    /// # Errors
    /// The first mistake in them, with its place in `document` and what to do about it.
    pub(crate) fn check(&self, document: &Document) -> Result<Scenario, Diagnostic> {
        scenario(self).map_err(|(path, fault)| document.diagnose(&path, fault))
    }
}

fn scenario(keys: &NetworkKeys<'_>) -> Checked<Scenario> {
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
        flows.push(network.flow(flow, &path)?);
    }
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
    let &NetworkKeys { seed, duration, clock, resolution, .. } = keys;
    let scenario = Scenario { seed, duration, clock, resolution, nodes, links, flows, drivers, routes };
    let size = scenario.size().check();
    size.map_err(|error| (root, Fault::new(error.to_string()).remedy("make the scenario smaller")))?;
    Ok(scenario)
}

type Checked<T> = Result<T, (Path, Fault)>;

#[derive(Default)]
struct Network {
    nodes: Vec<String>,
    links: Vec<Link>,
    /// Where each name stands in these two.
    node_indices: BTreeMap<String, NodeIndex>,
    link_indices: BTreeMap<String, LinkIndex>,
    /// Where links lead from each node.
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
        let mut outages = vec![];
        for (index, outage) in keys.outages.iter().enumerate() {
            let [from, until] = [outage.from, outage.until].map(|at| SimTime::ZERO.saturating_add(at.0));
            if until <= from {
                let fault = Fault::new("an outage ends before it begins");
                let path = path.key("outages").index(index).key("until");
                return Err((path, fault.remedy("make `until` later than `from`")));
            }
            outages.push(ErrorSpec::Outage { from, until });
        }
        let mut mtu_changes = vec![];
        for (index, change) in keys.mtu_changes.iter().enumerate() {
            let most = mtu(change.mtu, &path.key("mtu_changes").index(index))?;
            mtu_changes.push((SimTime::ZERO.saturating_add(change.at.0), most));
        }
        let link = Link {
            id: id.clone(),
            from,
            to,
            rate: positive(keys.rate.0, &path.key("rate"))?,
            delay: keys.delay.0,
            queue: queue(&keys.queue, &path.key("queue"))?,
            errors: error(&keys.error, &path.key("error"))?.into_iter().chain(outages.clone()).collect(),
            hold: hold(keys.hold, &keys.queue, path)?,
            mtu: keys.mtu.map(|most| mtu(most, path)).transpose()?,
            mtu_changes,
        };
        let back = Link {
            id: format!("{id}.reverse"),
            from: to,
            to: from,
            queue: queue(&QueueKeys::default(), path)?,
            errors: outages.clone(),
            hold: None,
            ..link.clone()
        };
        self.neighbours[from].push(to);
        if keys.duplex {
            self.neighbours[to].push(from);
        }
        self.push(link, clock, path)?;
        if let Some(reverse) = &keys.reverse {
            let rate = match reverse.rate {
                Some(rate) => positive(rate.0, &path.key("reverse").key("rate"))?,
                None => back.rate,
            };
            let delay = reverse.delay.map_or(back.delay, |delay| delay.0);
            let queue = queue(&reverse.queue, &path.key("reverse").key("queue"))?;
            let error = error(&reverse.error, &path.key("reverse").key("error"))?;
            let errors = error.into_iter().chain(outages).collect();
            let hold = hold(reverse.hold, &reverse.queue, &path.key("reverse"))?;
            let most = reverse.mtu.map(|most| mtu(most, &path.key("reverse"))).transpose()?;
            let mtu = most.or(back.mtu);
            self.push(Link { rate, delay, queue, errors, hold, mtu, ..back }, clock, &path.key("reverse"))?;
        } else if keys.duplex {
            self.push(back, clock, path)?;
        }
        Ok(())
    }

    /// A direction that stands at `path`, if the simulator can have one like it.
    fn push(&mut self, link: Link, clock: ClockKeys, path: &Path) -> Checked<()> {
        if clock == ClockKeys::Ns2 {
            link.spec().check_ns2_clock(&link.id).map_err(|_| match link.queue.decides_at_head() {
                true => {
                    let fault = Fault::new("a queue that decides at its head keeps exact time and not ns-2's");
                    (path.key("queue"), fault.remedy("remove clock = \"ns2\""))
                }
                false => {
                    let fault = Fault::new("what holds packets keeps exact time and not ns-2's");
                    (path.clone(), fault.remedy("remove `hold` or clock = \"ns2\""))
                }
            })?;
        }
        let possible = link.spec().check(&link.id);
        possible.map_err(|error| (path.clone(), Fault::new(error.to_string()).remedy("change this link")))?;
        self.link_indices.insert(link.id.clone(), self.links.len());
        self.links.push(link);
        Ok(())
    }

    fn flow(&self, keys: &FlowKeys, path: &Path) -> Checked<Flow> {
        let id = &keys.id.0;
        let (from, to) = (self.node(&keys.from.0, &path.key("from"))?, self.node(&keys.to.0, &path.key("to"))?);
        if from == to {
            let fault = Fault::new(format!("flow `{id}` goes nowhere: it begins and ends at node `{}`", keys.to.0));
            return Err((path.key("to"), fault.remedy("name two nodes")));
        }
        let (transport, law_name) = Transport::from_keys(keys, path)?;
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
        for (index, it) in keys.paths.iter().flatten().enumerate() {
            paths.push(self.interfaces(it, (from, to), &path.key("paths").index(index))?);
        }
        Ok(Flow {
            id: id.clone(),
            from,
            to,
            start,
            start_jitter,
            stop,
            transport_name: keys.transport.clone(),
            law_name,
            transport,
            packet: keys.packet.0.count(),
            is_window_default: keys.window.is_none(),
            paths,
        })
    }

    fn driver(&self, keys: &HostKeys, path: &Path) -> Checked<(NodeIndex, DriverSpec)> {
        let driver = DriverSpec {
            timer: keys.timer.0,
            arrivals: keys.arrivals.map(|arrivals| hold_spec(arrivals, &path.key("arrivals"))).transpose()?,
            delay: keys.delay.map(|delay| match delay {
                DelayKeys::Constant { span } => DelaySpec::Constant(span.0),
                DelayKeys::Exponential { mean } => DelaySpec::Exponential(mean.0),
                DelayKeys::Uniform { most } => DelaySpec::Uniform(most.0),
            }),
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

    fn interfaces(&self, keys: &PathKeys, (from, to): (NodeIndex, NodeIndex), path: &Path) -> Checked<Interfaces> {
        // A direction of a link by its name, and the other one.
        let both = |name: &Name, key: &str, fits: &dyn Fn(&Link) -> bool, what: String| {
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
        let leaves = |link: &Link| link.from == from;
        let arrives = |link: &Link| link.to == to;
        let (first, back_last) = both(&keys.first, "first", &leaves, format!("leaves node `{}`", self.nodes[from]))?;
        let (last, back_first) = both(&keys.last, "last", &arrives, format!("leads to node `{}`", self.nodes[to]))?;
        for (start, end) in [(first, last), (back_first, back_last)] {
            if start != end && !self.is_connected(self.links[start].to, self.links[end].from) {
                let fault = Fault::new(format!("link `{}` does not lead to link `{}`", keys.first.0, keys.last.0));
                return Err((path.clone(), fault.remedy("name two links between which there is a way and back")));
            }
        }
        let loss_rate = keys.loss_rate.map_or(0.0, |loss_rate| loss_rate.0 as f32);
        let weight = keys.weight.map_or(1, |weight| weight.0);
        Ok(Interfaces { first, last, back_first, back_last, loss_rate, weight })
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
        let mut seen = vec![false; self.nodes.len()];
        let mut next = VecDeque::from([from]);
        while let Some(node) = next.pop_front() {
            if node == to {
                return true;
            }
            for &far in &self.neighbours[node] {
                if !std::mem::replace(&mut seen[far], true) {
                    next.push_back(far);
                }
            }
        }
        false
    }
}

fn mtu(Text(mtu): Text<Bytes>, path: &Path) -> Checked<u32> {
    let bytes = u32::try_from(mtu.count()).unwrap_or(u32::MAX);
    if bytes < MTU_MIN {
        let fault = Fault::new(format!("no link takes packets of {mtu} at most"));
        return Err((path.key("mtu"), fault.remedy(format!("use {MTU_MIN}B or more"))));
    }
    Ok(bytes)
}

/// [rfc-791] sec. 3.2: "Every internet module must be able to forward a datagram of 68 octets without further fragmentation."
const MTU_MIN: u32 = 68;

fn hold(keys: Option<HoldKeys>, queue: &QueueKeys, path: &Path) -> Checked<Option<HoldSpec>> {
    let Some(keys) = keys else { return Ok(None) };
    let path = path.key("hold");
    if let QueueKeys::CoDel { .. } = queue {
        let fault = Fault::new("a link with a codel queue cannot hold packets");
        return Err((path, fault.remedy("remove `hold`, or choose another queue")));
    }
    hold_spec(keys, &path).map(Some)
}

fn hold_spec(keys: HoldKeys, path: &Path) -> Checked<HoldSpec> {
    let (key, span, spec) = match keys {
        HoldKeys::Grid { every } => ("every", every.0, HoldSpec::Grid(every.0)),
        HoldKeys::Gather { span } => ("span", span.0, HoldSpec::Gather(span.0)),
        HoldKeys::Exponential { mean } => ("mean", mean.0, HoldSpec::Exponential(mean.0)),
        HoldKeys::Uniform { most } => ("most", most.0, HoldSpec::Uniform(most.0)),
        HoldKeys::Stalls { every, most } => {
            // Nothing comes through if each follows upon the last.
            let (key, span) = if every.0.is_zero() { ("every", every.0) } else { ("most", most.0) };
            (key, span, HoldSpec::Stalls { every: every.0, most: most.0 })
        }
    };
    if span.is_zero() {
        let fault = Fault::new("what is held for no time is not held");
        return Err((path.key(key), fault.remedy("use a time above 0s, or remove it")));
    }
    Ok(spec)
}

fn positive(rate: Rate, path: &Path) -> Checked<Rate> {
    match rate.bits_per_second() {
        0 => Err((path.clone(), Fault::new("nothing passes a link of 0 bit/s").remedy("use a rate above 0bit/s"))),
        1..=RATE_MAX => Ok(rate),
        _ => Err((path.clone(), Fault::new(format!("no link sends {rate}")).remedy("use a rate up to 1Tbit/s"))),
    }
}

fn queue(keys: &QueueKeys, path: &Path) -> Checked<QueueSpec> {
    match keys {
        QueueKeys::DropTail { packets: Some(Count(1)), .. } => {
            let fault = Fault::new("a queue of 1 packet drops everything: ns-2 counts the one in service");
            Err((path.key("packets"), fault.remedy("use 2 packets or more")))
        }
        QueueKeys::DropTail { packets: Some(packets), bytes: None } => Ok(QueueSpec::Packets(packets.0)),
        QueueKeys::DropTail { packets: None, bytes: Some(bytes) } if bytes.0.count() > 0 => {
            Ok(QueueSpec::Bytes(bytes.0.count()))
        }
        QueueKeys::DropTail { .. } => {
            let fault = Fault::new("a drop_tail queue needs one limit, above nothing");
            Err((path.clone(), fault.remedy("write packets = 50 or bytes = \"75kB\"")))
        }
        QueueKeys::Unlimited => Ok(QueueSpec::Unlimited),
        QueueKeys::Red { packets, threshold_min, threshold_max, probability_max, ecn } => {
            let default = RedParameters::default();
            let parameters = RedParameters {
                limit: packets.0,
                threshold_min: threshold_min.unwrap_or(default.threshold_min),
                threshold_max: threshold_max.unwrap_or(default.threshold_max),
                probability_max: probability_max.map_or(default.probability_max, |p| p.0),
                unit: Unit::Packets,
                ecn: *ecn,
                ..default
            };
            if !(0.0 < parameters.threshold_min && parameters.threshold_min < parameters.threshold_max) {
                let fault = Fault::new("the thresholds of a red queue are in the wrong order");
                return Err((path.clone(), fault.remedy("use 0 < threshold_min < threshold_max")));
            }
            Ok(QueueSpec::Red(parameters))
        }
        QueueKeys::CoDel { packets, target, interval, ecn } => {
            let default = CoDelParameters::default();
            let parameters = CoDelParameters {
                target: target.map_or(default.target, |target| target.0),
                interval: interval.map_or(default.interval, |interval| interval.0),
                packets_max: packets.map_or(default.packets_max, |packets| packets.0),
                ecn: *ecn,
                ..default
            };
            if parameters.interval.is_zero() {
                let fault = Fault::new("a codel queue cannot look again after no time");
                return Err((path.key("interval"), fault.remedy("use an interval above 0s, such as \"100ms\"")));
            }
            Ok(QueueSpec::CoDel(parameters))
        }
    }
}

fn error(keys: &ErrorKeys, path: &Path) -> Checked<Option<ErrorSpec>> {
    let spec = match keys {
        ErrorKeys::None => return Ok(None),
        ErrorKeys::List { packets } => {
            let mut packets = packets.clone();
            packets.sort_unstable();
            packets.dedup();
            ErrorSpec::List(packets)
        }
        ErrorKeys::At { times } => {
            ErrorSpec::At(times.iter().map(|time| SimTime::ZERO.saturating_add(time.0)).collect())
        }
        ErrorKeys::Uniform { rate } => ErrorSpec::PerPacket(rate.0),
        ErrorKeys::PerByte { rate } => ErrorSpec::PerByte(rate.0),
        ErrorKeys::GilbertElliott { to_bad, to_good, loss_good, loss_bad } => {
            ErrorSpec::GilbertElliott(GilbertElliott {
                to_bad: to_bad.0,
                to_good: to_good.0,
                loss_good: loss_good.map_or(0.0, |p| p.0),
                loss_bad: loss_bad.map_or(1.0, |p| p.0),
            })
        }
        ErrorKeys::Periodic { period, offset, burst } => {
            let (period, burst) = (u64::from(period.0), u64::from(burst.map_or(1, |burst| burst.0)));
            if burst > period {
                let fault = Fault::new(format!("{burst} losses do not fit a period of {period} packets"));
                return Err((path.key("burst"), fault.remedy("make `burst` at most `period`")));
            }
            ErrorSpec::Periodic { period, offset: *offset, burst }
        }
        ErrorKeys::Policer { rate, burst } => {
            ErrorSpec::Policer { rate: positive(rate.0, &path.key("rate"))?, burst: burst.0 }
        }
    };
    Ok(Some(spec))
}
