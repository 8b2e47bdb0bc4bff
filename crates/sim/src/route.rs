//! Routes: one table for each node, with the next link for each address. Only addresses in use have an entry.
//!
//! The tables are computed once, by fewest hops; among equal links, the one declared first is taken. Routes can be overridden at
//! the start and later. Packets in flight keep their route.
//!
//! With equal-cost multipath (ECMP), all equally good links form a group, and a node sends each direction of a flow over one of
//! them. A hash of flow, direction and group chooses it (RFC 2992, section 2; modulo the number of links). So the packets of a
//! flow keep their order.
//!
//! A node has one address and may have more. An address *through* a link is reached over that last link only. With it, a
//! multihomed host selects the interface on which packets arrive.

use std::collections::BTreeMap;

use crate::id::{Address, LinkId, NodeId};
use crate::packet::Leg;

/// The next hop of every node towards every address.
#[derive(Clone, Debug)]
pub(crate) struct Routes {
    addresses: usize,
    /// One row per node, one column per address.
    next: Vec<Hop>,
    /// Groups of equally good links, each at one node.
    groups: Vec<Vec<Hop>>,
    /// A perturbation of the hash, so that flows are spread differently with another seed.
    perturbation: u64,
}

/// What a node does with a packet: the index of a link, or a value from [`UNUSUAL`] on, which is a group of links or one of the
/// two constants.
pub(crate) type Hop = u32;

/// The first value that is not a link; there are fewer links.
pub(crate) const UNUSUAL: Hop = 1 << 31;

/// The packet is at its destination.
pub(crate) const HERE: Hop = Hop::MAX;
/// There is no route.
pub(crate) const NO_WAY: Hop = Hop::MAX - 1;

/// The ends of a link, as routing sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
}

/// The owner of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) node: NodeId,
    pub(crate) through: Option<LinkId>,
}

impl Routes {
    /// The limit of entries in all tables: half a gigabyte, eleven thousand nodes.
    pub(crate) const ENTRIES_MAX: usize = 1 << 27;

    /// The tables by fewest hops.
    pub(crate) fn shortest(nodes: usize, edges: &[Edge], targets: &[Target]) -> Self {
        Self::find(nodes, edges, targets, |_, _| {})
    }

    /// The tables with all equally good links.
    pub(crate) fn multipath(nodes: usize, edges: &[Edge], targets: &[Target], perturbation: u64) -> Self {
        // The links besides the first, by table entry, in order.
        let mut others: BTreeMap<usize, Vec<Hop>> = BTreeMap::new();
        let mut routes = Self::find(nodes, edges, targets, |entry, link| others.entry(entry).or_default().push(link));
        let mut known: BTreeMap<Vec<Hop>, Hop> = BTreeMap::new();
        for (entry, mut links) in others {
            links.insert(0, routes.next[entry]);
            routes.next[entry] = *known.entry(links).or_insert_with_key(|links| {
                routes.groups.push(links.clone());
                UNUSUAL + routes.groups.len() as Hop - 1
            });
        }
        routes.perturbation = perturbation;
        routes
    }

    /// Finds the first of the shortest routes; `on_other` is called for each further one, with entry and link.
    fn find(nodes: usize, edges: &[Edge], targets: &[Target], mut on_other: impl FnMut(usize, Hop)) -> Self {
        let mut incoming = vec![Vec::new(); nodes];
        for edge in edges {
            incoming[edge.to.index()].push(edge.from);
        }
        let next = vec![NO_WAY; nodes * targets.len()];
        let mut routes = Self { addresses: targets.len(), next, groups: Vec::new(), perturbation: 0 };
        for (column, target) in targets.iter().enumerate() {
            let distance = distances(&incoming, edges, *target);
            for (index, edge) in edges.iter().enumerate() {
                let (from, to) = (distance[edge.from.index()], distance[edge.to.index()]);
                let fits = target.through.is_none_or(|link| edge.to != target.node || link.index() == index);
                if !fits || from == UNREACHED || to == UNREACHED || to + 1 != from {
                    continue;
                }
                let entry = edge.from.index() * targets.len() + column;
                if routes.next[entry] == NO_WAY {
                    routes.next[entry] = index as Hop;
                } else if edge.from != target.node {
                    on_other(entry, index as Hop);
                }
            }
            routes.next[target.node.index() * targets.len() + column] = HERE;
        }
        routes
    }

    /// Where the row of `node` starts. Links store it for the node at their end.
    pub(crate) fn row(&self, node: NodeId) -> usize {
        node.index() * self.addresses
    }

    pub(crate) fn next(&self, row: usize, to: Address) -> Hop {
        self.next[row + to.index()]
    }

    /// What to do with a packet of this leg whose next hop is not a link: a link of the group, or one of the two constants.
    pub(crate) fn choose(&self, hop: Hop, leg: Leg) -> Hop {
        if hop >= NO_WAY {
            return hop;
        }
        let group = &self.groups[(hop - UNUSUAL) as usize];
        // The groups of different nodes have different numbers, so flows that share a link may split again later. SplitMix64's
        // mixing.
        let mut hash = (u64::from(hop) << 32 | u64::from(leg)) ^ self.perturbation;
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        group[((hash ^ (hash >> 31)) % group.len() as u64) as usize]
    }

    /// The first link of a group; any other value is returned unchanged.
    pub(crate) fn first(&self, hop: Hop) -> Hop {
        if (UNUSUAL..NO_WAY).contains(&hop) { self.groups[(hop - UNUSUAL) as usize][0] } else { hop }
    }

    pub(crate) fn set(&mut self, node: NodeId, to: Address, hop: Hop) {
        let row = self.row(node);
        self.next[row + to.index()] = hop;
    }
}

const UNREACHED: u32 = u32::MAX;

/// Hops from every node to the target. Packets pass through nodes, but not through their target.
fn distances(incoming: &[Vec<NodeId>], edges: &[Edge], target: Target) -> Vec<u32> {
    let mut distance = vec![UNREACHED; incoming.len()];
    distance[target.node.index()] = 0;
    let mut frontier = match target.through {
        None => vec![target.node],
        Some(link) => {
            let last = edges[link.index()].from;
            distance[last.index()] = 1;
            vec![last]
        }
    };
    while !frontier.is_empty() {
        let mut beyond = Vec::new();
        for node in frontier {
            for &from in &incoming[node.index()] {
                if distance[from.index()] == UNREACHED {
                    distance[from.index()] = distance[node.index()] + 1;
                    beyond.push(from);
                }
            }
        }
        frontier = beyond;
    }
    distance
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn edge(from: u16, to: u16) -> Edge {
        Edge { from: NodeId(from), to: NodeId(to) }
    }

    fn node(index: u16) -> Target {
        Target { node: NodeId(index), through: None }
    }

    #[track_caller]
    fn assert_next(routes: &Routes, from: u16, to: u16, expected: Hop) {
        assert_eq!(routes.next(routes.row(NodeId(from)), Address(to)), expected, "from n{from} to a{to}");
    }

    /// 0 -> 1 -> 3 and 0 -> 2 -> 3, declared in this order, and no routes back.
    const DIAMOND: [Edge; 4] = [edge(0, 2), edge(0, 1), edge(1, 3), edge(2, 3)];

    #[test]
    fn of_equal_ways_the_first_declared_is_taken() {
        let routes = Routes::shortest(4, &DIAMOND, &[node(0), node(1), node(2), node(3)]);
        assert_next(&routes, 0, 3, 0);
        assert_next(&routes, 0, 1, 1);
        assert_next(&routes, 3, 3, HERE);
        assert_next(&routes, 3, 0, NO_WAY);
    }

    #[test]
    fn an_address_through_a_link_is_reached_over_it() {
        let target = Target { node: NodeId(3), through: Some(LinkId(2)) };
        let routes = Routes::shortest(4, &DIAMOND, &[target]);
        assert_next(&routes, 0, 0, 1);
        assert_next(&routes, 1, 0, 2);
        assert_next(&routes, 2, 0, NO_WAY);
    }

    #[test]
    fn fewer_hops_win() {
        let edges = [edge(0, 1), edge(1, 2), edge(0, 2)];
        assert_next(&Routes::shortest(3, &edges, &[node(2)]), 0, 0, 2);
    }

    /// From 0 to 3 both routes are equally good. About half of the flows take each, in either direction, and each flow always the
    /// same. With one route there is nothing to choose.
    #[test]
    fn equal_ways_share_the_flows() {
        let targets = [node(0), node(1), node(2), node(3)];
        let routes = Routes::multipath(4, &DIAMOND, &targets, 7);
        let hop = routes.next(0, Address(3));
        assert!((UNUSUAL..NO_WAY).contains(&hop) && routes.first(hop) == 0);
        let first = (0..10_000).filter(|&leg| routes.choose(hop, leg) == 0).count();
        // Binomial: the standard deviation is 50.
        assert!(first.abs_diff(5000) < 250, "{first}");
        assert_next(&routes, 0, 1, 1);
        assert_next(&routes, 3, 0, NO_WAY);
        assert_eq!([routes.choose(HERE, 5), routes.choose(NO_WAY, 5)], [HERE, NO_WAY]);
    }
}
