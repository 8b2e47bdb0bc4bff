//! The links and nodes of a scenario, without its traffic, for an emulator in which real programs send.

use std::collections::BTreeSet;

use anabranch_sim::LinkSpec;
use anabranch_units::SimTime;

use crate::scenario::{Clock, Scenario};

/// A network without traffic. Nodes and links are named by their positions.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// The seed of all random numbers.
    pub seed: u64,
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// Directions of links; a duplex link is two.
    pub links: Vec<TopologyLink>,
    /// In the order of their times.
    pub routes: Vec<TopologyRoute>,
    /// Nodes at which flows begin or end, in the order of the nodes.
    pub ends: Vec<usize>,
    /// The keys of the scenario that are left out, a sentence each.
    pub left_out: Vec<String>,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct TopologyLink {
    /// `LINK` or `LINK.reverse`.
    pub id: String,
    /// Where it begins.
    pub from: usize,
    /// Where it ends.
    pub to: usize,
    /// Its rate, delay, queue and errors.
    pub spec: LinkSpec,
    /// The changes of its MTU in bytes.
    pub mtu_changes: Vec<(SimTime, u32)>,
}

/// A change of a route: from `at` on, packets for `to` leave `node` by `via`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopologyRoute {
    /// The time since the start.
    pub at: SimTime,
    /// The node that they leave.
    pub node: usize,
    /// The node that they are for.
    pub to: usize,
    /// The position of the link.
    pub via: usize,
}

impl Scenario {
    /// Its links and nodes.
    pub fn topology(&self) -> Topology {
        let ends: BTreeSet<usize> = self.flows.iter().flat_map(|flow| [flow.from, flow.to]).collect();
        let link = |link: &super::scenario::Link| TopologyLink {
            id: link.id.clone(),
            from: link.from,
            to: link.to,
            spec: link.spec(),
            mtu_changes: link.mtu_changes.clone(),
        };
        let routes = self.routes.iter();
        Topology {
            seed: self.seed,
            nodes: self.nodes.clone(),
            links: self.links.iter().map(link).collect(),
            routes: routes
                .map(|route| TopologyRoute { at: route.at, node: route.node, to: route.to, via: route.via })
                .collect(),
            ends: ends.into_iter().collect(),
            left_out: self.left_out(),
        }
    }

    fn left_out(&self) -> Vec<String> {
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
mod tests {
    use super::*;
    use crate::document::Document;
    use anabranch_sim::{ErrorSpec, QueueSpec};

    #[test]
    fn a_topology_has_the_links_and_says_what_it_leaves_out() {
        let text = "duration = \"1s\"\nclock = \"ns2\"\n[[link]]\nid = \"a\"\nfrom = \"n0\"\nto = \"r\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n\
            outages = [{ from = \"1s\", until = \"2s\" }]\n[[link]]\nid = \"b\"\nfrom = \"r\"\nto = \"n1\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n\
            duplex = false\nqueue = { kind = \"drop_tail\", bytes = \"9kB\" }\n[[link]]\nid = \"c\"\nfrom = \"n1\"\nto = \"r\"\nrate = \"2Mbit/s\"\n\
            delay = \"1ms\"\nduplex = false\n[[flow]]\nid = \"f0\"\nfrom = \"n0\"\nto = \"n1\"\ntransport = \"ns2/sack\"\nwindow = 9\n[[route]]\nat = \"3s\"\n\
            node = \"r\"\nto = \"n1\"\nvia = \"b\"\n";
        let scenario = Scenario::parse(&Document::parse("test.toml", text).expect("TOML")).expect("a scenario");
        let topology = scenario.topology();
        assert_eq!(topology.nodes, ["n0", "r", "n1"]);
        let links: Vec<_> = topology.links.iter().map(|link| (link.id.as_str(), link.from, link.to)).collect();
        assert_eq!(links, [("a", 0, 1), ("a.reverse", 1, 0), ("b", 1, 2), ("c", 2, 1)]);
        assert_eq!(topology.links[2].spec.queue, QueueSpec::bytes(9000));
        let [from, until] = [1, 2].map(|secs| SimTime::from_ticks(secs * 1_000_000_000_000));
        assert_eq!(topology.links[1].spec.errors, [ErrorSpec::Outage { from, until }]);
        assert_eq!(topology.ends, [0, 2]);
        let at = SimTime::from_ticks(3_000_000_000_000);
        assert_eq!(topology.routes, [TopologyRoute { at, node: 1, to: 2, via: 2 }]);
        assert_eq!(
            topology.left_out,
            [
                "flows send nothing here and only tell which nodes are hosts: f0",
                "clock = \"ns2\" is left out: time is counted in whole picoseconds"
            ]
        );
    }
}
