//! The interfaces of the hosts of an emulated network.

use std::fmt;

use anabranch_sim::{BuildError, Topology, Wire};

use crate::name::InvalidName;

/// An interface of a host: the link on which it sends, and the link on which it receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    pub(crate) out: usize,
    pub(crate) back: usize,
}

/// Why a network cannot be emulated.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// There are more than [`HOSTS_MAX`] hosts.
    TooManyHosts(usize),
    /// A host has a link without a counterpart in the other direction.
    OneWay {
        /// The name of the host.
        node: String,
        /// The name of the link.
        link: String,
    },
    /// A host has more interfaces than addresses.
    TooManyInterfaces {
        /// The name of the host.
        node: String,
    },
    /// A link duplicates packets, but the bytes of a packet are stored only once.
    Duplicates {
        /// The name of the link.
        link: String,
    },
    /// The name of a host cannot be a part of a namespace's name.
    HostName(InvalidName),
    /// A limit of the simulator was exceeded.
    Simulator(BuildError),
}

/// Each host has a route to every other host, and setting up a host starts several processes: more hosts would take minutes.
pub const HOSTS_MAX: usize = 64;

/// The last byte of an address is the number of the interface, from 1.
const INTERFACES_MAX: usize = 254;

/// The interfaces of each host, in the order of their sending links. A link is paired with its reverse, else with the first
/// link from the same neighbour, else with the first link that arrives.
///
/// # Errors
/// If a link of a host has no counterpart or duplicates packets, or if there are too many hosts or interfaces.
pub(crate) fn attachments(network: &Topology) -> Result<Vec<Vec<Attachment>>, Refusal> {
    if network.hosts.len() > HOSTS_MAX {
        return Err(Refusal::TooManyHosts(network.hosts.len()));
    }
    if let Some(wire) = network.wires.iter().find(|wire| wire.spec.scatter.duplicates > 0.0) {
        return Err(Refusal::Duplicates { link: wire.id.clone() });
    }
    network.hosts.iter().map(|&node| attachments_of(network, node)).collect()
}

fn attachments_of(network: &Topology, node: usize) -> Result<Vec<Attachment>, Refusal> {
    let wires = || network.wires.iter().enumerate();
    let outs: Vec<usize> = wires().filter(|(_, wire)| wire.from == node).map(|(index, _)| index).collect();
    let mut backs: Vec<usize> = wires().filter(|(_, wire)| wire.to == node).map(|(index, _)| index).collect();
    let mut found = vec![None; outs.len()];
    for fit in [is_pair, is_neighbour, |_: &Wire, _: &Wire| true] {
        for (&out, found) in outs.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
            let place = backs.iter().position(|&back| fit(&network.wires[out], &network.wires[back]));
            *found = place.map(|place| backs.remove(place));
        }
    }
    let one_way =
        |index: usize| Refusal::OneWay { node: network.nodes[node].clone(), link: network.wires[index].id.clone() };
    if let Some(&back) = backs.first() {
        return Err(one_way(back));
    }
    if outs.len() > INTERFACES_MAX {
        return Err(Refusal::TooManyInterfaces { node: network.nodes[node].clone() });
    }
    let both = outs.into_iter().zip(found);
    both.map(|(out, back)| back.map(|back| Attachment { out, back }).ok_or_else(|| one_way(out))).collect()
}

/// Whether links lead from one node to the other.
pub(crate) fn is_connected(network: &Topology, from: usize, to: usize) -> bool {
    let (mut seen, mut next) = (vec![false; network.nodes.len()], vec![from]);
    while let Some(node) = next.pop() {
        if node == to {
            return true;
        }
        if !std::mem::replace(&mut seen[node], true) {
            next.extend(network.wires.iter().filter(|wire| wire.from == node).map(|wire| wire.to));
        }
    }
    false
}

/// Whether these are the two directions of a duplex link.
fn is_pair(out: &Wire, back: &Wire) -> bool {
    let is_reverse = |one: &str, other: &str| one.strip_suffix(".reverse") == Some(other);
    is_reverse(&out.id, &back.id) || is_reverse(&back.id, &out.id)
}

fn is_neighbour(out: &Wire, back: &Wire) -> bool {
    out.to == back.from
}

impl From<BuildError> for Refusal {
    fn from(error: BuildError) -> Self {
        Self::Simulator(error)
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyHosts(count) => {
                write!(f, "{count} nodes are ends of flows, and at most {HOSTS_MAX} hosts are emulated: remove flows")
            }
            Self::OneWay { node, link } => {
                write!(
                    f,
                    "host `{node}` has link `{link}` for one way only: add a link for the other way, or make it duplex"
                )
            }
            Self::TooManyInterfaces { node } => {
                write!(f, "host `{node}` has more than {INTERFACES_MAX} links: remove some")
            }
            Self::Duplicates { link } => {
                write!(f, "link {link} doubles packets, which an emulated link cannot: remove its `duplicate`")
            }
            Self::HostName(name) => {
                write!(f, "the host `{}` cannot have a namespace: its name is too long, or no name", name.0)
            }
            Self::Simulator(error) => write!(f, "{error}: make the network smaller"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_sim::LinkSpec;
    use anabranch_units::{Rate, SimSpan};

    pub(crate) fn wire(id: &str, from: usize, to: usize) -> Wire {
        let spec = LinkSpec::new(Rate::from_bits_per_second(1_000_000), SimSpan::from_millis(1));
        Wire { id: id.to_owned(), from, to, spec, mtu_changes: vec![] }
    }

    fn network(wires: Vec<Wire>) -> Topology {
        let nodes = ["a", "b", "c"].map(str::to_owned).to_vec();
        Topology { seed: 1, nodes, wires, routes: vec![], hosts: vec![0, 1] }
    }

    #[track_caller]
    fn assert_attached(wires: Vec<Wire>, expected: &[(usize, usize)]) {
        let expected: Vec<_> = expected.iter().map(|&(out, back)| Attachment { out, back }).collect();
        assert_eq!(attachments_of(&network(wires), 0), Ok(expected));
    }

    #[test]
    fn a_link_belongs_to_its_way_back() {
        let [p, q] = ["p", "q"].map(|id| wire(id, 0, 1));
        let [back_q, back_p] = ["q.reverse", "p.reverse"].map(|id| wire(id, 1, 0));
        assert_attached(vec![p, q, back_q, back_p], &[(0, 3), (1, 2)]);
    }

    #[test]
    fn simplex_links_belong_together_by_neighbour_and_then_by_order() {
        assert_attached(vec![wire("p", 0, 1), wire("r", 2, 0), wire("q", 1, 0), wire("s", 0, 2)], &[(0, 2), (3, 1)]);
        // Sends to one neighbour, and receives from another.
        assert_attached(vec![wire("up", 0, 1), wire("down", 2, 0), wire("on", 1, 2), wire("no", 2, 1)], &[(0, 1)]);
    }

    #[test]
    fn a_host_that_only_sends_is_refused_with_its_link() {
        let refusal = attachments(&network(vec![wire("p", 0, 1)])).map(|_| ());
        let Err(refusal) = refusal else { panic!("a simplex link was taken") };
        assert_eq!(
            refusal.to_string(),
            "host `a` has link `p` for one way only: add a link for the other way, or make it duplex"
        );
    }

    #[test]
    fn links_lead_one_way() {
        let network = network(vec![wire("p", 0, 2), wire("q", 2, 1)]);
        assert!(is_connected(&network, 0, 1));
        assert!(!is_connected(&network, 1, 0));
    }
}
