//! Several paths of one connection between two of ours (docs/wire.md 2.5): pairs of addresses, with the same ports.
//!
//! ```text
//! this end has opened it, and has more addresses      a path from each to the peer's address
//! path segment with unknown ends                      to the connections with these ports, until one takes it; if none does, to nobody
//! reset on a path that is not that of the handshake   ends that path, if its number is exact and there is another one
//! ```
//!
//! A challenge may overtake the end of the handshake on another path, and is repeated. A reset would end the connection; and one on such a path need not be
//! the peer's: a host on the way that knows nothing of the connection answers so.
//!
//! The engine proves that a path reaches the peer, and chooses what leaves where. A path that is gone keeps its ends here until the connection is gone:
//! what is late on it belongs to no one else.

use anabranch_proto::{EcnCodepoint, FourTuple, PathReport, Segment, SeqNumber};
use anabranch_units::Time;
use bytes::Bytes;

use super::{Socket, Stack};
use crate::socket::SocketId;

impl Stack {
    /// The handshake of a connection with streams is over: others may know its ports, and an opener with more addresses uses them.
    pub(super) fn open_paths(&mut self, now: Time, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        if self.settings.connection.paths_max <= 1 || socket.streams.is_none() {
            return;
        }
        let FourTuple { local, remote } = socket.tuple;
        self.by_ports.entry((local.port, remote.port)).or_default().push(id);
        if !socket.is_opener {
            return;
        }
        for &address in &self.addresses {
            let mut tuple = socket.tuple;
            tuple.local.address = address;
            let may_be = tuple.local.is_ipv4() == local.is_ipv4() && !self.by_tuple.contains_key(&tuple);
            if may_be && socket.connection.paths().add(now, tuple).is_ok() {
                socket.others.push(tuple);
                self.by_tuple.insert(tuple, id);
            }
        }
    }

    /// A path segment has come with unknown ends: it may begin a path of a connection.
    pub(super) fn begin_path(
        &mut self,
        now: Time,
        tuple: FourTuple,
        ecn: Option<EcnCodepoint>,
        segment: &Segment<Bytes>,
    ) {
        let Some(ids) = self.by_ports.get(&(tuple.local.port, tuple.remote.port)) else { return };
        for &id in ids.iter().rev().take(TRIED_MAX) {
            let Some(socket) = self.sockets.get_mut(&id).filter(|socket| socket.others.len() < OTHERS_MAX) else {
                continue;
            };
            socket.connection.handle_marked(now, tuple, ecn, segment.clone());
            if socket.connection.paths().find(&tuple).is_some() {
                socket.others.push(tuple);
                self.by_tuple.insert(tuple, id);
                return self.touch(id);
            }
        }
    }

    /// Forgets the ends of a socket.
    pub(super) fn unmap(&mut self, id: SocketId) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let FourTuple { local, remote } = socket.tuple;
        for tuple in std::mem::take(&mut socket.others).into_iter().chain([socket.tuple]) {
            if self.by_tuple.get(&tuple) == Some(&id) {
                self.by_tuple.remove(&tuple);
            }
        }
        if let Some(ids) = self.by_ports.get_mut(&(local.port, remote.port)) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_ports.remove(&(local.port, remote.port));
            }
        }
    }

    /// For tests: the number that is expected next.
    #[cfg(test)]
    pub(crate) fn expected(&self, id: SocketId) -> Option<SeqNumber> {
        self.sockets.get(&id)?.expected()
    }

    /// Snapshots of the paths of a connection.
    pub(crate) fn paths(&mut self, id: SocketId) -> Vec<PathReport> {
        let Some(socket) = self.sockets.get_mut(&id) else { return vec![] };
        let ids: Vec<_> = socket.connection.paths().ids().collect();
        ids.into_iter().filter_map(|id| socket.connection.path(id)).collect()
    }
}

impl Socket {
    /// A reset with this number has come on another path than that of the handshake. Leaves the path, if the number is the exact one that is expected, as
    /// a stranger does not know it ([rfc-5961] sec. 3.2). False if there is no other path, so that the reset is the connection's.
    pub(super) fn is_reset_of_path(&mut self, now: Time, tuple: &FourTuple, seq: SeqNumber) -> bool {
        let is_exact = self.expected() == Some(seq);
        let mut paths = self.connection.paths();
        match paths.find(tuple) {
            Some(path) if is_exact => paths.remove(now, path).is_ok(),
            Some(_) => paths.ids().count() > 1,
            None => true,
        }
    }
}

/// Connections with the same ports that a challenge is tried on, the latest first. Others wait in vain for their paths.
const TRIED_MAX: usize = 8;

/// Ends of a connection besides those of its handshake, over all its life.
const OTHERS_MAX: usize = 32;
