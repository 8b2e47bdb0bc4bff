//! Scenarios: a network, its flows, and changes of its routes.
//!
//! A [`Scenario`] is made once from a file (`load`) and is valid from then on: names are indices, every flow has a route to its
//! destination and back, every window is at least one packet.

pub mod change;
pub(crate) mod class;
mod outside;
pub(crate) mod transport;

use std::collections::{BTreeMap, BTreeSet};

use anabranch_sim::{DriverSpec, ErrorSpec, HoldSpec, LinkSpec, QueueSpec, RateSpec, ScatterSpec, Spacing, WorldSize};
use anabranch_units::{Rate, SimSpan, SimTime};

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
    pub(crate) links: Vec<Link>,
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

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Link {
    /// `LINK` or `LINK.reverse`.
    pub(crate) id: String,
    pub(crate) from: NodeIndex,
    pub(crate) to: NodeIndex,
    /// The rate; above zero.
    pub(crate) rate: Rate,
    pub(crate) delay: SimSpan,
    pub(crate) queue: QueueSpec,
    /// The error models before its queue, in order.
    pub(crate) errors: Vec<ErrorSpec>,
    pub(crate) hold: Option<HoldSpec>,
    /// The variation of its rate; below, reordering and duplication.
    pub(crate) rates: Option<RateSpec>,
    pub(crate) scatter: ScatterSpec,
    /// The MTU in bytes; below, its changes.
    pub(crate) mtu: Option<u32>,
    pub(crate) mtu_changes: Vec<(SimTime, u32)>,
    /// Whether packets lose their ECN codepoint.
    pub(crate) clears_ecn: bool,
}

impl Link {
    /// The same for the simulator.
    pub(crate) fn spec(&self) -> LinkSpec {
        let spec = LinkSpec::new(self.rate, self.delay).named(&self.id).queue(self.queue.clone());
        let spec = self.errors.iter().cloned().fold(spec, LinkSpec::error);
        let spec = self.hold.into_iter().fold(spec, LinkSpec::hold);
        let spec = self.rates.clone().into_iter().fold(spec, LinkSpec::rates).scatter(self.scatter.clone());
        let spec = spec.clears_ecn(self.clears_ecn);
        self.mtu.into_iter().fold(spec, LinkSpec::mtu)
    }
}

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

/// A change of a route: from `at` on, packets for `to` leave `node` by `via`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RouteChange {
    pub(crate) at: SimTime,
    pub(crate) node: NodeIndex,
    pub(crate) to: NodeIndex,
    pub(crate) via: LinkIndex,
}

impl Scenario {
    /// The size of its world.
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

    /// Names of the tables that a traced run of it writes: one for each flow with variables and each link.
    pub fn trace_files(&self) -> Vec<String> {
        let flows = self.flows.iter().filter(|flow| flow.transport.has_variables());
        let flows = flows.map(|flow| format!("flow.{}.csv", flow.id));
        flows.chain(self.links.iter().map(|link| format!("link.{}.csv", link.id))).collect()
    }

    /// Whether another seed gives another run, because losses, data or starts of flows are random. The seed also sets the phases of ns-2's
    /// clocks; this does not count, as every paper leaves them at ns-2's default.
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
        let is_held = |link: &Link| {
            link.hold.is_some_and(HoldSpec::is_random)
                || link.scatter.reorder.is_some()
                || is_open(link.scatter.duplicates)
        };
        self.links.iter().any(|link| link.errors.iter().any(loses) || link.queue.is_random() || is_held(link))
            || self.drivers.values().any(|driver| driver.is_random())
            || self.flows.iter().any(|flow| {
                let arrives = flow.class.as_ref().is_some_and(|class| matches!(class.spacing, Spacing::Exponential(_)));
                flow.transport.is_random() || !flow.start_jitter.is_zero() || arrives
            })
    }
}
