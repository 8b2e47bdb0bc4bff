//! A network without its traffic: what the laboratory reads from a file, and the emulator runs in real time.

use anabranch_units::SimTime;

use crate::agenda::Control;
use crate::id::{LinkId, NodeId};
use crate::world::{BuildError, Builder, LinkSpec};

/// Nodes, directions of links, and changes of routes. Nodes and links are identified by their index.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// The seed of the links' random numbers.
    pub seed: u64,
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// The directions of the links; a duplex link is two.
    pub wires: Vec<Wire>,
    /// The changes of routes, in the order of their times.
    pub routes: Vec<RouteChange>,
    /// The nodes at which flows begin or end, in the order of the nodes.
    pub hosts: Vec<usize>,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Wire {
    /// `LINK`, or `LINK.reverse` for the opposite direction. It names the link in the world.
    pub id: String,
    /// The node where it begins.
    pub from: usize,
    /// The node where it ends.
    pub to: usize,
    /// Its properties, without a name.
    pub spec: LinkSpec,
    /// Changes of its MTU: the time, and the new MTU in bytes.
    pub mtu_changes: Vec<(SimTime, u32)>,
}

/// A change of a route: from `at` on, `node` sends packets for `to` over `via`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteChange {
    /// The time since the start.
    pub at: SimTime,
    /// The node whose route changes.
    pub node: usize,
    /// The index of the destination node.
    pub to: usize,
    /// The index of the link over which packets are sent.
    pub via: usize,
}

impl Builder {
    /// Adds nodes and links in their order.
    ///
    /// # Errors
    /// If a link is not possible.
    pub fn network(&mut self, nodes: &[String], wires: &[Wire]) -> Result<(Vec<NodeId>, Vec<LinkId>), BuildError> {
        let nodes: Vec<NodeId> = nodes.iter().map(|name| self.node(name)).collect();
        let link = |wire: &Wire| self.link(nodes[wire.from], nodes[wire.to], wire.spec.clone().named(&wire.id));
        let links = wires.iter().map(link).collect::<Result<_, _>>()?;
        Ok((nodes, links))
    }

    /// Schedules the changes of a network that [`Builder::network`] has added. At equal times a route changes before what is scheduled later, so
    /// that it holds for packets that are sent at that time.
    ///
    /// # Errors
    /// If there are too many events or addresses.
    pub fn changes(
        &mut self,
        (nodes, links): (&[NodeId], &[LinkId]),
        routes: &[RouteChange],
        wires: &[Wire],
    ) -> Result<(), BuildError> {
        for route in routes {
            let to = self.address(nodes[route.to])?;
            self.at(route.at, Control::Route { node: nodes[route.node], to, via: Some(links[route.via]) })?;
        }
        for (wire, &link) in wires.iter().zip(links) {
            for &(at, mtu) in &wire.mtu_changes {
                self.at(at, Control::Mtu { link, mtu })?;
            }
        }
        Ok(())
    }
}
