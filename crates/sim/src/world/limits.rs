//! What a world cannot be, in functions that build nothing: a [`Builder`](super::Builder) asks them, and so can who checks a description before.

use super::build_error::BuildError;
use super::link_spec::LinkSpec;
use crate::event_queue::EventQueue;
use crate::route::Routes;

/// How much there is in a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorldSize {
    /// The number of nodes.
    pub nodes: usize,
    /// Addresses: those of nodes to which a flow or a changed route leads, and each that was asked for besides.
    pub addresses: usize,
    /// Links, each direction counted.
    pub links: usize,
    /// The number of hosts: two for each flow of a scenario.
    pub hosts: usize,
    /// The number of flows.
    pub flows: usize,
}

impl WorldSize {
    /// Nodes, and addresses, that 16 bits can tell apart, one less.
    pub const NODES_MAX: usize = u16::MAX as usize;
    /// A managed link takes two slots of the event queue; together with the hosts and the agenda they stay below its limit.
    pub const LINKS_MAX: usize = EventQueue::SLOTS_MAX / 4;
    /// A host takes one slot.
    pub const HOSTS_MAX: usize = EventQueue::SLOTS_MAX / 4;
    /// The direction of a flow is its number and a bit.
    pub const FLOWS_MAX: usize = 1 << 24;

    /// Whether a world can be so large.
    ///
    /// # Errors
    /// [`BuildError::TooMany`], of what there are too many.
    pub fn check(self) -> Result<(), BuildError> {
        let Self { nodes, addresses, links, hosts, flows } = self;
        let limits = [
            ("nodes", nodes, Self::NODES_MAX),
            ("addresses", addresses, Self::NODES_MAX),
            ("links", links, Self::LINKS_MAX),
            ("hosts", hosts, Self::HOSTS_MAX),
            ("flows", flows, Self::FLOWS_MAX),
            ("entries of routing tables", nodes.saturating_mul(addresses), Routes::ENTRIES_MAX),
        ];
        match limits.into_iter().find(|&(_, count, limit)| count > limit) {
            Some((what, _, limit)) => Err(BuildError::TooMany { what, limit }),
            None => Ok(()),
        }
    }
}

impl LinkSpec {
    /// Whether a link can be so; `link` is what it is called in the answer.
    ///
    /// # Errors
    /// What it cannot be: [`BuildError::NoRate`], [`BuildError::BadQueue`], [`BuildError::BadRates`], [`BuildError::BadScatter`],
    /// [`BuildError::BadHold`] or [`BuildError::BadErrorModel`].
    pub fn check(&self, link: &str) -> Result<(), BuildError> {
        let link = || link.to_owned();
        if self.rate.bits_per_second() == 0 {
            Err(BuildError::NoRate { link: link() })
        } else if !self.queue.is_valid() {
            Err(BuildError::BadQueue { link: link() })
        } else if self.rates.as_ref().is_some_and(|rates| !rates.is_valid(self.rate)) {
            Err(BuildError::BadRates { link: link() })
        } else if !self.scatter.is_valid() || (self.hold.is_some() && !self.scatter.is_nothing()) {
            Err(BuildError::BadScatter { link: link() })
        } else if self.hold.is_some_and(|hold| !hold.is_valid()) {
            Err(BuildError::BadHold { link: link() })
        } else if self.errors.iter().any(|error| !error.is_valid()) {
            Err(BuildError::BadErrorModel { link: link() })
        } else {
            Ok(())
        }
    }

    /// The same in a world that keeps ns-2's time ([`Builder::ns2_clock`](super::Builder::ns2_clock)).
    ///
    /// # Errors
    /// [`BuildError::NoFloatClock`] if it keeps exact time only.
    pub fn check_ns2_clock(&self, link: &str) -> Result<(), BuildError> {
        let is_plain =
            !self.queue.decides_at_head() && self.hold.is_none() && self.rates.is_none() && self.scatter.is_nothing();
        if is_plain { Ok(()) } else { Err(BuildError::NoFloatClock { link: link.to_owned() }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At each limit a world can be, and one above it it cannot.
    #[test]
    fn a_world_can_be_as_large_as_its_limits() {
        let refused = |size: WorldSize| match size.check() {
            Err(BuildError::TooMany { what, .. }) => Some(what),
            _ => None,
        };
        let at = |nodes, addresses| WorldSize { nodes, addresses, ..WorldSize::default() };
        assert_eq!((refused(at(65_535, 1)), refused(at(65_536, 1))), (None, Some("nodes")));
        assert_eq!(refused(at(1, 65_536)), Some("addresses"));
        // 2^27 entries: 4096 addresses in tables of 32768 nodes.
        assert_eq!((refused(at(32_768, 4096)), refused(at(32_768, 4097))), (None, Some("entries of routing tables")));
        let links = |links| refused(WorldSize { links, ..WorldSize::default() });
        assert_eq!((links(1 << 18), links((1 << 18) + 1)), (None, Some("links")));
        let hosts = |hosts| refused(WorldSize { hosts, ..WorldSize::default() });
        assert_eq!((hosts(1 << 18), hosts((1 << 18) + 1)), (None, Some("hosts")));
        let flows = |flows| refused(WorldSize { flows, ..WorldSize::default() });
        assert_eq!((flows(1 << 24), flows((1 << 24) + 1)), (None, Some("flows")));
    }
}
