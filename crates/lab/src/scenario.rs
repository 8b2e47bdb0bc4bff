//! Scenarios: a network, its flows, and changes of its routes.
//!
//! A [`Scenario`] is made once from a file (`load`) and is valid from then on: names are indices, every flow has a route to its
//! destination and back, every window is at least one packet.

pub mod change;
pub(crate) mod class;
mod outside;
pub(crate) mod transport;

use std::collections::{BTreeMap, BTreeSet};

use anabranch_sim::{DriverSpec, ErrorSpec, HoldSpec, LinkSpec, RouteChange, Topology, Wire, WorldSize};
use anabranch_units::{SimSpan, SimTime};

use self::class::Class;
use self::transport::Transport;
use crate::own::OwnLaw;

/// A network with its flows, ready to run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The seed of all random numbers.
    pub seed: u64,
    /// The simulated time.
    pub duration: SimSpan,
    pub(crate) clock: Clock,
    /// The resolution: changes within it are one point of a series.
    pub(crate) resolution: SimSpan,
    /// Whether flows are spread over equally good routes (ECMP).
    pub(crate) is_multipath: bool,
    /// The names of the nodes, by [`NodeIndex`].
    pub(crate) nodes: Vec<String>,
    /// Directions of links; a duplex link is two.
    pub(crate) links: Vec<Wire>,
    pub(crate) flows: Vec<Flow>,
    /// The drivers of programs at nodes, where there are delays.
    pub(crate) drivers: BTreeMap<NodeIndex, DriverSpec>,
    /// The changes of routes, in the order of their times.
    pub(crate) routes: Vec<RouteChange>,
}

/// The arithmetic of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// In whole picoseconds.
    Exact,
    /// As ns-2 does, in floating-point seconds.
    Ns2,
}

/// Position of a node in [`Scenario::nodes`].
pub(crate) type NodeIndex = usize;
/// Position of a link in [`Scenario::links`].
pub(crate) type LinkIndex = usize;

/// A source and its destination.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) id: String,
    pub(crate) from: NodeIndex,
    pub(crate) to: NodeIndex,
    pub(crate) start: SimTime,
    /// The largest random delay of its start.
    pub(crate) start_jitter: SimSpan,
    pub(crate) stop: Option<SimTime>,
    /// The name in the file, for reports.
    pub(crate) transport_name: String,
    /// Name of the congestion law, for reports.
    pub(crate) law_name: Option<String>,
    /// The law, if the registry does not have it: each run has its controllers made anew.
    pub(crate) own: Option<OwnLaw>,
    pub(crate) transport: Transport,
    /// Bytes of a data packet on the wire.
    pub(crate) packet: u64,
    /// Whether the receiver's window of an agent of ns-2 is the default.
    pub(crate) is_window_default: bool,
    /// The interfaces of an association or a connection; empty if packets take the shortest route.
    pub(crate) paths: Vec<Interfaces>,
    pub(crate) class: Option<Class>,
}

impl Flow {
    /// Whether it begins or ends at a node.
    pub(crate) fn has_end(&self, node: NodeIndex) -> bool {
        [self.from, self.to].contains(&node)
    }
}

/// The links by which an association or a connection leaves its source and reaches its destination, and those of the reverse direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interfaces {
    pub(crate) first: LinkIndex,
    pub(crate) last: LinkIndex,
    pub(crate) back_first: LinkIndex,
    pub(crate) back_last: LinkIndex,
    pub(crate) loss_rate: f32,
    pub(crate) weight: u32,
}

impl Scenario {
    pub(crate) fn size(&self) -> WorldSize {
        let ends = self.flows.iter().flat_map(|flow| [flow.from, flow.to]);
        let reached: BTreeSet<NodeIndex> = ends.chain(self.routes.iter().map(|route| route.to)).collect();
        // A path has one address at each end.
        let paths: usize = self.flows.iter().map(|flow| flow.paths.len()).sum();
        WorldSize {
            nodes: self.nodes.len(),
            addresses: reached.len() + 2 * paths,
            links: self.links.len(),
            hosts: 2 * self.flows.len(),
            flows: self.flows.len(),
        }
    }

    /// Its network, for an emulator in which real programs send.
    pub fn topology(&self) -> Topology {
        let hosts: BTreeSet<NodeIndex> = self.flows.iter().flat_map(|flow| [flow.from, flow.to]).collect();
        Topology {
            seed: self.seed,
            nodes: self.nodes.clone(),
            wires: self.links.clone(),
            routes: self.routes.clone(),
            hosts: hosts.into_iter().collect(),
        }
    }

    /// Names of the tables that a traced run of it writes: one for each flow with variables and each link.
    pub fn trace_files(&self) -> Vec<String> {
        let flows = self.flows.iter().filter(|flow| flow.transport.has_variables());
        let flows = flows.map(|flow| format!("flow.{}.csv", flow.id));
        flows.chain(self.links.iter().map(|link| format!("link.{}.csv", link.id))).collect()
    }

    /// Whether another seed gives another run, because losses, data or starts of flows are random. The seed also sets the phases of ns-2's
    /// clocks; this does not count, as every paper leaves them at ns-2's default. Nor does a flow that would start after the end.
    pub fn is_random(&self) -> bool {
        let is_open = |p: f64| 0.0 < p && p < 1.0;
        let loses = |error: &ErrorSpec| match error {
            ErrorSpec::Nothing
            | ErrorSpec::List(_)
            | ErrorSpec::At(_)
            | ErrorSpec::Periodic { .. }
            | ErrorSpec::Policer { .. }
            | ErrorSpec::Outage { .. }
            | ErrorSpec::Outages { .. } => false,
            &ErrorSpec::PerPacket(p) | &ErrorSpec::PerByte(p) => is_open(p),
            ErrorSpec::GilbertElliott(_) => true,
        };
        let is_held = |link: &LinkSpec| {
            link.hold.is_some_and(HoldSpec::is_random)
                || link.scatter.reorder.is_some()
                || is_open(link.scatter.duplicates)
        };
        let mut links = self.links.iter().map(|link| &link.spec);
        links.any(|link| link.errors.iter().any(loses) || link.queue.is_random() || is_held(link))
            || self.drivers.values().any(|driver| driver.is_random())
            || self.flows.iter().filter(|flow| flow.start.since(SimTime::ZERO) <= self.duration).any(|flow| {
                let arrives = flow.class.as_ref().is_some_and(|class| class.spacing.every_mean.is_some());
                flow.transport.is_random() || !flow.start_jitter.is_zero() || arrives
            })
    }

    /// What its topology leaves out, a sentence each.
    pub fn left_out(&self) -> Vec<String> {
        let mut said = vec![];
        let flows: Vec<&str> = self.flows.iter().map(|flow| flow.id.as_str()).collect();
        let (shown, more) = flows.split_at(flows.len().min(FLOWS_SHOWN));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        said.push(format!("flows send nothing here and only tell which nodes are hosts: {}{more}", shown.join(", ")));
        if !self.drivers.is_empty() {
            said.push("[[host]] is left out: programs are woken up by the machine that they run on".to_owned());
        }
        if self.clock == Clock::Ns2 {
            said.push("clock = \"ns2\" is left out: time is counted in whole picoseconds".to_owned());
        }
        said
    }
}

/// The limit of names in a line.
const FLOWS_SHOWN: usize = 5;

#[cfg(test)]
mod tests;
