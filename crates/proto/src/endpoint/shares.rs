//! Who holds an endpoint's incoming connections, and who gives way if there are too many.
//!
//! Each connection counts for its public key and for its network. A peer may have any number of keys, so keys alone are no limit;
//! many peers may share an address, so addresses alone are none for one peer.
//!
//! * At the limit of a key or a network, its idlest connection gives way to the new one, if it has been idle long enough. Otherwise
//!   the new one is refused, and told why.
//! * At the limit of all connections, whoever holds most gives up its idlest connection, idle or not. So a peer that has none always
//!   gets one, as long as another has several.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_units::Span;

use crate::seal::{Full, Network, PublicKey};

/// The limits on incoming connections of one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// Connections of a public key.
    pub key_max: usize,
    /// Connections of a network: an IPv4 address, or the first 64 bits of an IPv6 address.
    pub network_max: usize,
    /// A connection without data for so long gives way to a new one of its owner.
    pub idle: Span,
}

/// The owner of a connection: its public key and its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) key: PublicKey,
    pub(super) network: Network,
}

/// Established incoming connections by owner.
#[derive(Debug, Default)]
pub(super) struct Held {
    by_key: BTreeMap<PublicKey, BTreeSet<u32>>,
    by_network: BTreeMap<Network, BTreeSet<u32>>,
}

/// What happens to a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// There is room.
    Free,
    /// There is room if this connection ends.
    Instead(u32),
    /// There is none.
    Full(Full),
}

impl Default for Shares {
    fn default() -> Self {
        Self {
            // A browser opens six connections to a server; a tunnel or a transfer needs one.
            key_max: 64,
            // Of a quarter of the default limit of connections: behind an address may be an office.
            network_max: 256,
            // Three keep-alive probes of the library.
            idle: Span::from_secs(30),
        }
    }
}

impl Held {
    pub(super) fn insert(&mut self, owner: Owner, number: u32) {
        self.by_key.entry(owner.key).or_default().insert(number);
        self.by_network.entry(owner.network).or_default().insert(number);
    }

    pub(super) fn remove(&mut self, owner: Owner, number: u32) {
        remove(&mut self.by_key, owner.key, number);
        remove(&mut self.by_network, owner.network, number);
    }

    /// The room for another connection of this owner, if the endpoint has `count` of at most `most` connections. `idle` tells for
    /// how long a connection has been idle.
    pub(super) fn room(
        &self,
        owner: Owner,
        shares: &Shares,
        (count, most): (usize, usize),
        idle: impl Fn(u32) -> Span,
    ) -> Room {
        let none = BTreeSet::new();
        let of_key = self.by_key.get(&owner.key).unwrap_or(&none);
        let of_network = self.by_network.get(&owner.network).unwrap_or(&none);
        let idlest = |held: &BTreeSet<u32>| held.iter().map(|&number| (idle(number), number)).max();
        let or_full = |held: &BTreeSet<u32>, full: Full| {
            let gives_way = idlest(held).filter(|(idle, _)| *idle >= shares.idle);
            gives_way.map_or(Room::Full(full), |(_, number)| Room::Instead(number))
        };
        if of_key.len() >= shares.key_max {
            return or_full(of_key, Full::Key(of_key.len() as u32));
        }
        if of_network.len() >= shares.network_max {
            return or_full(of_network, Full::Network(of_network.len() as u32));
        }
        if count < most {
            return Room::Free;
        }
        // Keys cost nothing, so an owner is a network here. It must hold more than the new one's would.
        let greatest = self.by_network.values().max_by_key(|held| held.len()).unwrap_or(&none);
        match idlest(greatest) {
            Some((_, number)) if greatest.len() > of_network.len() + 1 => Room::Instead(number),
            _ => or_full(of_network, Full::Everybody(count as u32)),
        }
    }
}

fn remove<T: Ord>(all: &mut BTreeMap<T, BTreeSet<u32>>, owner: T, number: u32) {
    let Some(held) = all.get_mut(&owner) else { return };
    held.remove(&number);
    if held.is_empty() {
        all.remove(&owner);
    }
}
