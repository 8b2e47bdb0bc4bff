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
//! The shards of a socket ([`super::numbers`]) count together, in a [`Census`], and a connection of any shard can give way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_units::{Span, Time};
use bytes::Bytes;

use super::{ConnectionId, SHARDS_MAX};
use crate::connection::{Connection, State};
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

/// The connections of all shards of a socket. Clones count together.
#[derive(Clone, Debug, Default)]
struct Census {
    counts: Arc<Mutex<Counts>>,
    /// Shards in which a connection gives way to one of another: a bit for each.
    called: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Connections that are not half open.
    settled: usize,
    /// Established incoming ones, in three orders.
    guests: BTreeMap<Guest, (Owner, Activity)>,
    by_key: BTreeMap<PublicKey, BTreeSet<Guest>>,
    by_network: BTreeMap<Network, BTreeSet<Guest>>,
    /// Connections that give way to one of another shard, until theirs looks.
    leaving: VecDeque<Guest>,
}

/// An established incoming connection, with the number of its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Guest {
    pub(super) shard: usize,
    pub(super) id: ConnectionId,
}

/// When a connection last had data, as its shard tells the others.
#[derive(Clone, Debug, Default)]
pub(super) struct Activity(Arc<AtomicU64>);

/// An endpoint's view of all connections of its socket.
#[derive(Debug, Default)]
pub(super) struct Held {
    shard: usize,
    census: Census,
    /// Shards that must have a turn.
    neighbours: VecDeque<usize>,
}

/// What happens to a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// There is room.
    Free,
    /// There is room if this connection ends.
    Instead(Guest),
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

impl Activity {
    pub(super) fn of(connection: &Connection<Bytes>) -> Self {
        let activity = Self::default();
        activity.note(connection);
        activity
    }

    /// The connection had an input.
    pub(super) fn note(&self, connection: &Connection<Bytes>) {
        let at = match connection.state() {
            State::TimeWait | State::Closed => OVER,
            _ => connection.worked_at().ticks(),
        };
        self.0.store(at, Ordering::Relaxed);
    }

    fn idle(&self, now: Time) -> Span {
        match self.0.load(Ordering::Relaxed) {
            OVER => Span::MAX,
            at => now.since(Time::from_ticks(at)),
        }
    }
}

/// Of a connection that is over.
const OVER: u64 = u64::MAX;

impl Census {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        // Nothing panics while it is locked.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Counts together with those of another shard from now on, as the shard with this number.
    pub(super) fn join(&mut self, shard: usize, first: &Self) {
        debug_assert_eq!(self.settled(), 0, "an endpoint joins before its first connection");
        (self.shard, self.census) = (shard, first.census.clone());
    }

    /// The connections that are not half open, in both directions.
    pub(super) fn settled(&self) -> usize {
        self.census.lock().settled
    }

    /// Counts a connection that this end opens. Returns whether there is room for it among `most`.
    pub(super) fn settle(&mut self, most: usize) -> bool {
        let mut counts = self.census.lock();
        let has_room = counts.settled < most;
        counts.settled += usize::from(has_room);
        has_room
    }

    /// A connection that was not half open is gone.
    pub(super) fn leave(&mut self) {
        self.census.lock().settled -= 1;
    }

    /// The room for another connection of this owner, of at most `most` connections.
    pub(super) fn room(&self, now: Time, owner: Owner, shares: &Shares, most: usize) -> Room {
        self.census.lock().room(now, owner, shares, most)
    }

    /// Counts an incoming connection that is established, if there is room for it. If another gives way, that one counts for its
    /// owner no more, and if it is in another shard, that shard is told.
    pub(super) fn enter(
        &mut self,
        now: Time,
        id: ConnectionId,
        owner: Owner,
        activity: Activity,
        shares: &Shares,
        most: usize,
    ) -> Room {
        let mut counts = self.census.lock();
        let room = counts.room(now, owner, shares, most);
        match room {
            Room::Free => {}
            Room::Instead(other) => {
                counts.remove(other);
                if !self.is_here(other) {
                    counts.leaving.push_back(other);
                    self.census.called.fetch_or(1 << other.shard, Ordering::Relaxed);
                    self.neighbours.push_back(other.shard);
                }
            }
            Room::Full(_) => return room,
        }
        counts.settled += 1;
        counts.insert(Guest { shard: self.shard, id }, owner, activity);
        room
    }

    /// Whether this connection is in this shard.
    pub(super) fn is_here(&self, guest: Guest) -> bool {
        guest.shard == self.shard
    }

    /// A connection of this shard counts for its owner no more.
    pub(super) fn remove(&mut self, id: ConnectionId) {
        self.census.lock().remove(Guest { shard: self.shard, id });
    }

    /// Whether a connection of this shard must give way to one of another.
    pub(super) fn is_called(&self) -> bool {
        self.census.called.load(Ordering::Relaxed) & 1 << self.shard != 0
    }

    /// A connection of this shard that must give way to one of another.
    pub(super) fn poll_leaving(&mut self) -> Option<ConnectionId> {
        if !self.is_called() {
            return None;
        }
        let mut counts = self.census.lock();
        let place = counts.leaving.iter().position(|guest| guest.shard == self.shard);
        if place.is_none() {
            self.census.called.fetch_and(!(1 << self.shard), Ordering::Relaxed);
        }
        counts.leaving.remove(place?).map(|guest| guest.id)
    }

    /// Another shard that must have a turn, in which one of its connections gives way.
    pub(super) fn poll_neighbour(&mut self) -> Option<usize> {
        self.neighbours.pop_front()
    }
}

impl Counts {
    fn insert(&mut self, guest: Guest, owner: Owner, activity: Activity) {
        self.guests.insert(guest, (owner, activity));
        self.by_key.entry(owner.key).or_default().insert(guest);
        self.by_network.entry(owner.network).or_default().insert(guest);
    }

    fn remove(&mut self, guest: Guest) {
        if let Some((owner, _)) = self.guests.remove(&guest) {
            remove(&mut self.by_key, owner.key, guest);
            remove(&mut self.by_network, owner.network, guest);
        }
    }

    fn room(&self, now: Time, owner: Owner, shares: &Shares, most: usize) -> Room {
        let none = BTreeSet::new();
        let of_key = self.by_key.get(&owner.key).unwrap_or(&none);
        let of_network = self.by_network.get(&owner.network).unwrap_or(&none);
        let idle = |guest: &Guest| self.guests.get(guest).map_or(Span::ZERO, |(_, activity)| activity.idle(now));
        let idlest = |held: &BTreeSet<Guest>| held.iter().map(|guest| (idle(guest), *guest)).max();
        let or_full = |held: &BTreeSet<Guest>, full: Full| {
            let gives_way = idlest(held).filter(|(idle, _)| *idle >= shares.idle);
            gives_way.map_or(Room::Full(full), |(_, guest)| Room::Instead(guest))
        };
        if of_key.len() >= shares.key_max {
            return or_full(of_key, Full::Key(of_key.len() as u32));
        }
        if of_network.len() >= shares.network_max {
            return or_full(of_network, Full::Network(of_network.len() as u32));
        }
        if self.settled < most {
            return Room::Free;
        }
        // Keys cost nothing, so an owner is a network here. It must hold more than the new one's would.
        let greatest = self.by_network.values().max_by_key(|held| held.len());
        match greatest.and_then(|held| Some((held.len(), idlest(held)?))) {
            Some((count, (_, guest))) if count > of_network.len() + 1 => Room::Instead(guest),
            _ => or_full(of_network, Full::Everybody(self.settled as u32)),
        }
    }
}

fn remove<T: Ord>(all: &mut BTreeMap<T, BTreeSet<Guest>>, owner: T, guest: Guest) {
    let Some(held) = all.get_mut(&owner) else { return };
    held.remove(&guest);
    if held.is_empty() {
        all.remove(&owner);
    }
}

const _: () = assert!(SHARDS_MAX <= 64, "each shard has a bit");
