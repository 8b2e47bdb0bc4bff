//! Reads the sockets of an endpoint, and gives each datagram to the shard of its connection.
//!
//! There is no task for that. Each driver reads in its turn, unless another is reading; what belongs to its own shard stays on its
//! core, the rest goes into the inboxes of the others. The driver that found the sockets empty last is woken when something arrives. So
//! one busy connection is served as if there were one shard.
//!
//! Only the header of a datagram is looked at. An initiation goes to the shard with the fewest connections, and its copies after it, as
//! only that shard knows them. When there are more initiations than are remembered, as in a flood, a secret hash chooses, which
//! finds the same shard again without memory. A copy that comes later still may open another half-open connection, at most once a
//! shard; without the initiator's keys nothing becomes of it.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll};

use anabranch_proto::endpoint::{Destination, Endpoint as Engine};
use anabranch_units::{Span, Time};

use crate::clock::Clock;
use crate::inbox::Inbox;
use crate::lobby::SharedLobby;
use crate::socket::{Received, Socket};
use crate::sockets::Sockets;

/// The receiving side of an endpoint's sockets, for one driver at a time.
#[derive(Debug)]
pub(crate) struct Intake {
    state: Mutex<State>,
    /// What arrives for each shard.
    pub(crate) inboxes: Vec<Inbox>,
}

#[derive(Debug)]
struct State {
    sockets: Sockets,
    received: Vec<Received>,
    initiations: Initiations,
}

/// The shards of recent initiations.
#[derive(Debug, Default)]
struct Initiations {
    /// When it came, its ephemeral key, its shard; the oldest first.
    recent: VecDeque<(Time, [u8; 32], usize)>,
    hash: RandomState,
}

impl Intake {
    /// For `shards` shards, each of which lets `bytes_max` bytes wait.
    pub(crate) fn new(socket: Socket, shards: usize, bytes_max: usize) -> Self {
        let (sockets, received, initiations) = (Sockets::new(socket), vec![], Initiations::default());
        let state = Mutex::new(State { sockets, received, initiations });
        Self { state, inboxes: (0..shards).map(|_| Inbox::new(bytes_max)).collect() }
    }

    /// Reads one more socket from now on. A driver must have a turn.
    pub(crate) fn push(&self, socket: Socket) {
        self.lock().sockets.push(socket);
    }

    /// Reads a batch from each socket, unless another driver does. Appends what is for the shard at `place` to `own`, and returns the
    /// number of bytes read for any shard.
    pub(crate) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        clock: &Clock,
        lobby: &SharedLobby,
        place: usize,
        own: &mut Vec<Received>,
    ) -> Poll<io::Result<usize>> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            // The other driver reads to the end, or has another turn, and wakes this one if there is something for it.
            Err(TryLockError::WouldBlock) => return Poll::Pending,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        };
        let State { sockets, received, initiations } = &mut *state;
        let lost = |address| lobby.lock().locals.retain(|local| *local != address);
        if let Err(error) = std::task::ready!(sockets.poll_receive(cx, clock, received, lost)) {
            return Poll::Ready(Err(error));
        }
        let bytes = received.iter().map(|batch| batch.datagrams.len()).sum();
        if self.inboxes.len() == 1 {
            own.append(received);
            return Poll::Ready(Ok(bytes));
        }
        let now = clock.now();
        let mut put = |shard: usize, run| match shard % self.inboxes.len() {
            shard if shard == place => own.push(run),
            shard => self.inboxes[shard].put(run),
        };
        for batch in received.drain(..) {
            let choose = |ephemeral| {
                let least = || lobby.lock().place(self.inboxes.iter().map(Inbox::load));
                let shard = initiations.shard(now, ephemeral, self.inboxes.len(), least);
                // Of an endpoint without handles some shards have ended. This one refuses.
                if self.inboxes[shard].is_closed() { place } else { shard }
            };
            route(batch, self.inboxes.len(), choose, &mut put);
        }
        Poll::Ready(Ok(bytes))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives a batch to the shards of its datagrams. Mostly there is one.
fn route(
    batch: Received,
    shards: usize,
    mut choose: impl FnMut([u8; 32]) -> usize,
    put: &mut impl FnMut(usize, Received),
) {
    let Received { arrival, mut datagrams, has_time } = batch;
    let size = arrival.size.max(1);
    while !datagrams.is_empty() {
        let mut all = datagrams.chunks(size);
        let destination = all.next().and_then(Engine::destination);
        let mut len = size.min(datagrams.len());
        if matches!(destination, Some(Destination::Shard(_))) {
            len += all.take_while(|next| Engine::destination(next) == destination).map(<[u8]>::len).sum::<usize>();
        }
        let run = Received { arrival, datagrams: datagrams.split_to(len), has_time };
        match destination {
            // The engine counts datagrams of unknown connections and those of other protocols.
            Some(Destination::Shard(shard)) => put(shard, run),
            None => put(0, run),
            Some(Destination::Initiation(ephemeral)) => put(choose(ephemeral), run),
            Some(Destination::All) => {
                let Received { arrival, datagrams, has_time } = run;
                (0..shards).for_each(|shard| put(shard, Received { arrival, datagrams: datagrams.clone(), has_time }));
            }
        }
    }
}

impl Initiations {
    fn shard(&mut self, now: Time, ephemeral: [u8; 32], count: usize, place: impl FnOnce() -> usize) -> usize {
        while self.recent.pop_front_if(|(at, ..)| now.since(*at) >= REMEMBERED_FOR).is_some() {}
        if let Some((.., shard)) = self.recent.iter().find(|(_, key, _)| *key == ephemeral) {
            return *shard;
        }
        if self.recent.len() >= REMEMBERED_MAX {
            return (self.hash.hash_one(ephemeral) % count as u64) as usize;
        }
        let shard = place();
        self.recent.push_back((now, ephemeral, shard));
        shard
    }
}

/// Initiations whose shards are remembered, and for how long: an initiation is repeated after 1, 3, 7, 15 and 31 s.
const REMEMBERED_MAX: usize = 1024;
const REMEMBERED_FOR: Span = Span::from_secs(32);

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> [u8; 32] {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&number.to_le_bytes());
        key
    }

    fn at(secs: u64) -> Time {
        Time::ZERO + Span::from_secs(secs)
    }

    #[test]
    fn copies_of_an_initiation_go_to_one_shard() {
        let mut initiations = Initiations::default();
        assert_eq!(initiations.shard(at(0), key(1), 8, || 5), 5);
        assert_eq!(initiations.shard(at(1), key(2), 8, || 6), 6);
        assert_eq!(initiations.shard(at(31), key(1), 8, || panic!("it is known")), 5);
        assert_eq!(initiations.shard(at(32), key(1), 8, || 7), 7, "it was forgotten");
    }

    #[test]
    fn a_flood_of_initiations_takes_no_memory_and_spreads() {
        let mut initiations = Initiations::default();
        assert_eq!(initiations.shard(at(0), key(0), 8, || 3), 3);
        let mut counts = [0; 8];
        for number in 1..100_000 {
            let shard = initiations.shard(at(0), key(number), 8, || 0);
            counts[shard] += usize::from(number >= 2000);
            assert_eq!(shard, initiations.shard(at(1), key(number), 8, || panic!("it is known")));
        }
        assert_eq!((initiations.recent.len(), initiations.shard(at(1), key(0), 8, || 0)), (REMEMBERED_MAX, 3));
        // A binomial count of 98,000 draws with 1/8: 12,250, standard deviation 104.
        assert!(counts.iter().all(|count| (11_700..12_800).contains(count)), "{counts:?}");
    }
}
