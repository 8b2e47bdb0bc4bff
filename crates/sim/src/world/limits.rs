//! The limits of a world, as functions that build nothing. Both a [`Builder`](super::Builder) and a check of a description call
//! them.

use anabranch_units::settings::Part;

use super::build_error::BuildError;
use super::link_spec::LinkSpec;
use crate::event_queue::EventQueue;
use crate::route::Routes;

/// The size of a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorldSize {
    /// The number of nodes.
    pub nodes: usize,
    /// The number of addresses: one for each node that is a destination of a flow or of a changed route, and each address
    /// requested in addition.
    pub addresses: usize,
    /// The number of links, counting each direction.
    pub links: usize,
    /// The number of hosts: two for each flow of a scenario.
    pub hosts: usize,
    /// The number of flows.
    pub flows: usize,
}

impl WorldSize {
    /// The limit on nodes and on addresses: the largest 16-bit number.
    pub const NODES_MAX: usize = u16::MAX as usize;
    /// The limit on links. A managed link takes two slots of the event queue. With hosts and agenda, all stay below the limit of
    /// the queue.
    pub const LINKS_MAX: usize = EventQueue::SLOTS_MAX / 4;
    /// The limit on hosts. A host takes one slot of the event queue.
    pub const HOSTS_MAX: usize = EventQueue::SLOTS_MAX / 4;
    /// The limit on flows. A leg is the number of the flow and one bit.
    pub const FLOWS_MAX: usize = 1 << 24;

    /// Checks the size of a world.
    ///
    /// # Errors
    /// [`BuildError::TooMany`] names the quantity above its limit.
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
    /// Checks the link. Errors name it `link`.
    ///
    /// # Errors
    /// [`BuildError::NoRate`], [`BuildError::BadQueue`], [`BuildError::BadRates`], [`BuildError::BadScatter`],
    /// [`BuildError::BadHold`] or [`BuildError::BadErrorModel`].
    pub fn check(&self, link: &str) -> Result<(), BuildError> {
        let link = || link.to_owned();
        if self.rate.bits_per_second() == 0 {
            Err(BuildError::NoRate { link: link() })
        } else if self.queue.flaw().is_some() {
            Err(BuildError::BadQueue { link: link() })
        } else if self.rates.as_ref().is_some_and(|rates| !rates.is_valid(self.rate)) {
            Err(BuildError::BadRates { link: link() })
        } else if !self.scatter.is_valid() || (self.hold.is_some() && !self.scatter.is_nothing()) {
            Err(BuildError::BadScatter { link: link() })
        } else if self.hold.is_some_and(|hold| hold.flaw().is_some()) {
            Err(BuildError::BadHold { link: link() })
        } else if self.errors.iter().any(|error| error.flaw().is_some()) {
            Err(BuildError::BadErrorModel { link: link() })
        } else {
            Ok(())
        }
    }

    /// Checks the link for a world with ns-2's clock ([`Builder::ns2_clock`](super::Builder::ns2_clock)).
    ///
    /// # Errors
    /// [`BuildError::NoFloatClock`] if a part of the link does not support that clock.
    pub fn check_ns2_clock(&self, link: &str) -> Result<(), BuildError> {
        let is_plain =
            !self.queue.decides_at_head() && self.hold.is_none() && self.rates.is_none() && self.scatter.is_nothing();
        if is_plain { Ok(()) } else { Err(BuildError::NoFloatClock { link: link.to_owned() }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A world of the maximum size can be built, a larger one cannot.
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
