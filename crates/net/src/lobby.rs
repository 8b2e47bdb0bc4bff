//! What all shards of an endpoint share. Whoever holds the lock of a shard may take this one, but not the other way round.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use anabranch_proto::ArrivalBuffer;
use anabranch_proto::endpoint::ConnectionId;
use anabranch_units::Span;

use crate::carriers::Carriers;
use crate::forward::Forwarder;
use crate::key::PublicKey;
use crate::membership::Membership;
use crate::relayed::Relayed;
use crate::waiting::Waiting;

/// The endpoint's state that belongs to no shard.
#[derive(Debug)]
pub(crate) struct Lobby {
    /// The bound addresses of the sockets.
    pub(crate) locals: Vec<SocketAddr>,
    /// Incoming connections to accept, with their shards.
    pub(crate) incoming: VecDeque<(usize, ConnectionId)>,
    pub(crate) accepting: Waiting,
    /// Tasks that wait until the last connection is over.
    pub(crate) idling: Waiting,
    /// Handles of the endpoint.
    pub(crate) handles: usize,
    pub(crate) is_gone: bool,
    /// The timestamp of the last handshake, by the system clock. It is unique for the key, so for all shards.
    pub(crate) stamp: Span,
    /// Connections made so far.
    #[cfg(feature = "prometheus")]
    pub(crate) numbered: u64,
    /// The shard that gets the next connection, if all have the same number.
    turn: usize,
    /// The relays of which the endpoint is a member.
    pub(crate) memberships: Vec<Arc<Membership>>,
    /// Relays that have lately answered over TCP alone.
    pub(crate) silent_over_udp: Vec<PublicKey>,
}

/// The lobby behind its lock, and what has locks of its own.
#[derive(Debug)]
pub(crate) struct SharedLobby {
    lobby: Mutex<Lobby>,
    /// What the first socket holds for the engines.
    pub(crate) arrival_buffer: ArrivalBuffer,
    /// What carries datagrams over TCP.
    pub(crate) carriers: Arc<Carriers>,
    /// Peers that are reached through relays.
    pub(crate) relayed: Relayed,
    /// What is forwarded, if this endpoint is a relay.
    pub(crate) forwarder: OnceLock<Arc<Forwarder>>,
}

impl SharedLobby {
    pub(crate) fn new(first: SocketAddr, holds: u64) -> Self {
        let lobby = Mutex::new(Lobby {
            locals: vec![first],
            incoming: VecDeque::new(),
            accepting: Waiting::default(),
            idling: Waiting::default(),
            handles: 1,
            is_gone: false,
            stamp: Span::ZERO,
            #[cfg(feature = "prometheus")]
            numbered: 0,
            turn: 0,
            memberships: vec![],
            silent_over_udp: vec![],
        });
        Self {
            lobby,
            arrival_buffer: ArrivalBuffer::new(holds),
            carriers: Arc::default(),
            relayed: Relayed::default(),
            forwarder: OnceLock::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Lobby> {
        // Nothing panics while it is locked.
        self.lobby.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lobby {
    /// A relay has answered over TCP, and not over UDP.
    pub(crate) fn note_silent(&mut self, relay: PublicKey) {
        self.silent_over_udp.retain(|known| *known != relay);
        self.silent_over_udp.push(relay);
        if self.silent_over_udp.len() > SILENT_MAX {
            self.silent_over_udp.remove(0);
        }
    }

    /// Whether that was noted of this relay. It is forgotten.
    pub(crate) fn take_silent(&mut self, relay: PublicKey) -> bool {
        let before = self.silent_over_udp.len();
        self.silent_over_udp.retain(|known| *known != relay);
        self.silent_over_udp.len() < before
    }

    /// The shard for a new connection: the one with the fewest; of several the next in turn. Those that have ended get none, as long as
    /// there is another.
    pub(crate) fn place(&mut self, loads: impl ExactSizeIterator<Item = Option<usize>>) -> usize {
        let (count, turn) = (loads.len().max(1), self.turn);
        self.turn = (turn + 1) % count;
        let in_turn = |place: usize| (place + count - turn % count) % count;
        let least = loads.enumerate().min_by_key(|(place, load)| (load.is_none(), *load, in_turn(*place)));
        least.map_or(0, |(place, _)| place)
    }
}

/// Relays that are noted.
const SILENT_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shard_with_fewest_connections_gets_the_next_one() {
        let lobby = SharedLobby::new(([127, 0, 0, 1], 7).into(), u64::MAX);
        let mut lobby = lobby.lock();
        let mut place = |loads: [usize; 3]| lobby.place(loads.into_iter().map(Some));
        assert_eq!([place([0; 3]), place([0; 3]), place([0; 3]), place([0; 3])], [0, 1, 2, 0], "in turns");
        assert_eq!([place([5, 4, 3]), place([2, 4, 3])], [2, 0]);
        assert_eq!(lobby.place([None, Some(9), None].into_iter()), 1, "the others have ended");
    }
}
