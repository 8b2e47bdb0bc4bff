//! Who holds an endpoint's incoming connections, and who gives way if there are too many.
//!
//! Each connection counts for its public key and for its network. A peer may have any number of keys, so keys alone are no limit;
//! many peers may share an address, so addresses alone are none for one peer.
//!
//! * At the limit of a key or a network, its idlest connection gives way to the new one, if it has been idle long enough. Otherwise
//!   the new one is refused, and told why.
//! * At the limit of all connections, whoever holds most gives up its idlest connection, idle or not. So a peer that has none always
//!   gets one, as long as another has several.
//!
//! The shards of a socket ([`super::numbers`]) count together, in a [`Census`]. Only a connection of the same shard can give way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// How many connections there are, and how many incoming ones each owner has. Clones count together.
#[derive(Clone, Debug, Default)]
struct Census(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    /// Connections that are not half open.
    settled: usize,
    by_key: BTreeMap<PublicKey, usize>,
    by_network: BTreeMap<Network, usize>,
}

/// Established incoming connections of one endpoint by owner.
#[derive(Debug, Default)]
pub(super) struct Held {
    by_key: BTreeMap<PublicKey, BTreeSet<u32>>,
    by_network: BTreeMap<Network, BTreeSet<u32>>,
    census: Census,
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

impl Census {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        // Nothing panics while it is locked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Counts together with those of another shard from now on. No connection was counted before.
    pub(super) fn join(&mut self, first: &Self) {
        debug_assert_eq!(self.settled(), 0, "an endpoint joins before its first connection");
        self.census = first.census.clone();
    }

    /// The connections that are not half open, in both directions.
    pub(super) fn settled(&self) -> usize {
        self.census.lock().settled
    }

    /// A connection is not half open, or no longer.
    pub(super) fn settle(&mut self) {
        self.census.lock().settled += 1;
    }

    /// A connection that was not half open is gone.
    pub(super) fn leave(&mut self) {
        self.census.lock().settled -= 1;
    }

    pub(super) fn insert(&mut self, owner: Owner, number: u32) {
        let mut counts = self.census.lock();
        if self.by_key.entry(owner.key).or_default().insert(number) {
            *counts.by_key.entry(owner.key).or_default() += 1;
        }
        if self.by_network.entry(owner.network).or_default().insert(number) {
            *counts.by_network.entry(owner.network).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, owner: Owner, number: u32) {
        let mut counts = self.census.lock();
        remove(&mut self.by_key, &mut counts.by_key, owner.key, number);
        remove(&mut self.by_network, &mut counts.by_network, owner.network, number);
    }

    /// The room for another connection of this owner, of at most `most` connections. `idle` tells for how long a connection of this
    /// endpoint has been idle.
    pub(super) fn room(&self, owner: Owner, shares: &Shares, most: usize, idle: impl Fn(u32) -> Span) -> Room {
        let (none, counts) = (BTreeSet::new(), self.census.lock());
        let held_by = |network: &Network| counts.by_network.get(network).copied().unwrap_or(0);
        let of_key = counts.by_key.get(&owner.key).copied().unwrap_or(0);
        let of_network = held_by(&owner.network);
        let own = self.by_network.get(&owner.network).unwrap_or(&none);
        let idlest = |held: &BTreeSet<u32>| held.iter().map(|&number| (idle(number), number)).max();
        let or_full = |held: &BTreeSet<u32>, full: Full| {
            let gives_way = idlest(held).filter(|(idle, _)| *idle >= shares.idle);
            gives_way.map_or(Room::Full(full), |(_, number)| Room::Instead(number))
        };
        if of_key >= shares.key_max {
            return or_full(self.by_key.get(&owner.key).unwrap_or(&none), Full::Key(of_key as u32));
        }
        if of_network >= shares.network_max {
            return or_full(own, Full::Network(of_network as u32));
        }
        if counts.settled < most {
            return Room::Free;
        }
        // Keys cost nothing, so an owner is a network here. It must hold more than the new one's would.
        let greatest = self.by_network.iter().max_by_key(|(network, _)| held_by(network));
        match greatest.and_then(|(network, held)| Some((held_by(network), idlest(held)?))) {
            Some((count, (_, number))) if count > of_network + 1 => Room::Instead(number),
            _ => or_full(own, Full::Everybody(counts.settled as u32)),
        }
    }
}

fn remove<T: Ord>(all: &mut BTreeMap<T, BTreeSet<u32>>, counts: &mut BTreeMap<T, usize>, owner: T, number: u32) {
    let Some(held) = all.get_mut(&owner).filter(|held| held.contains(&number)) else { return };
    held.remove(&number);
    if let Some(count) = counts.get_mut(&owner) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&owner);
        }
    }
    if held.is_empty() {
        all.remove(&owner);
    }
}
