//! Reads the sockets of an endpoint, and gives each datagram to the shard of its connection.
//!
//! There is no task for that. Each driver reads in its turn, unless another is reading; what belongs to its own shard stays on its
//! core, the rest goes into the inboxes of the others. The driver that found the sockets empty last is woken when something arrives. So
//! one busy connection is served as if there were one shard.
//!
//! It is not one socket a shard (`SO_REUSEPORT`): the kernel would choose by addresses, so all connections of one client socket would share a
//! core, a path from elsewhere would come to the wrong one, and another program of the user could take a share of the port.
//!
//! Only the header of a datagram is looked at. An initiation goes to the shard with the fewest connections, and its copies after it, as
//! only that shard answers them again. When there are more initiations than are remembered, as in a flood, a secret hash chooses, which
//! finds the same shard again without memory. A copy that comes later still is a replay for all shards, whichever it comes to.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll};

use anabranch_proto::endpoint::{Destination, Endpoint as Engine};
use anabranch_proto::seal::Resets;
use anabranch_units::{Span, Time};
use bytes::BytesMut;

use crate::clock::Clock;
use crate::inbox::Inbox;
use crate::key::SecretKey;
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
    /// Limits the stateless resets that all shards look at.
    resets: Resets,
}

/// The shards of recent initiations.
#[derive(Debug, Default)]
struct Initiations {
    /// When each came, and its ephemeral key, the oldest first.
    recent: VecDeque<(Time, [u8; 32])>,
    shards: BTreeMap<[u8; 32], usize>,
    /// When there was last one too many.
    flooded: Option<Time>,
    hash: RandomState,
}

impl Intake {
    /// For `shards` shards with this key, each of which lets `bytes_max` bytes wait.
    pub(crate) fn new(sockets: Sockets, shards: usize, bytes_max: usize, key: &SecretKey) -> Self {
        let (received, initiations) = (vec![], Initiations::default());
        let state = Mutex::new(State { sockets, received, initiations, resets: Resets::new(&key.engine()) });
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
        let State { sockets, received, initiations, resets } = &mut *state;
        let lost = |address| lobby.lock().locals.retain(|local| *local != address);
        if let Err(error) = std::task::ready!(sockets.poll_receive(cx, clock, received, lost)) {
            return Poll::Ready(Err(error));
        }
        let bytes = received.iter().map(|batch| batch.datagrams.len()).sum();
        lobby.relayed.unwrap(received);
        if let Some(forwarder) = lobby.forwarder.get() {
            forwarder.forward(clock.now(), received, sockets);
        }
        if self.inboxes.len() == 1 {
            own.append(received);
            return Poll::Ready(Ok(bytes));
        }
        let now = clock.now();
        for (destination, run) in received.drain(..).flat_map(runs) {
            let shard = match destination {
                // A peer may name any shard, such as one that there was before a restart. Any engine can answer that with a reset.
                Some(Destination::Shard(shard)) => shard % self.inboxes.len(),
                Some(Destination::Initiation(ephemeral)) => {
                    initiations.shard(now, ephemeral, self.inboxes.len(), || {
                        let shard = lobby.lock().place(self.inboxes.iter().map(Inbox::load));
                        self.inboxes[shard].add_load();
                        shard
                    })
                }
                Some(Destination::All) if resets.may_check(now, run.arrival.tuple.remote) => {
                    let others = self.inboxes.iter().enumerate().filter(|(shard, _)| *shard != place);
                    others.for_each(|(_, inbox)| _ = inbox.put(run.copy()));
                    place
                }
                // The engine counts what is not of this protocol.
                Some(Destination::All) | None => place,
            };
            // A shard that has ended knows no connection. This one answers for it.
            own.extend(if shard == place { Some(run) } else { self.inboxes[shard].put(run) });
        }
        Poll::Ready(Ok(bytes))
    }

    /// The sockets for another task, which sends over them.
    pub(crate) fn share_sockets(&self) -> io::Result<Sockets> {
        self.lock().sockets.share()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Divides a batch by the destinations of its datagrams. Mostly there is one. An initiation or a reset is always alone.
fn runs(batch: Received) -> impl Iterator<Item = (Option<Destination>, Received)> {
    let Received { arrival, mut datagrams, has_time } = batch;
    let (size, whole) = (arrival.size.max(1), datagrams.len());
    std::iter::from_fn(move || {
        let mut all = datagrams.chunks(size);
        let first = all.next()?;
        let (destination, mut len) = (Engine::destination(first), first.len());
        if matches!(destination, Some(Destination::Shard(_)) | None) {
            len += all.take_while(|next| Engine::destination(next) == destination).map(<[u8]>::len).sum::<usize>();
        }
        let mut run = datagrams.split_to(len);
        if len < whole.min(PART_COPIED_MAX) {
            // A small part that waits would keep the buffer of all.
            run = BytesMut::from(&run[..]);
        }
        Some((destination, Received { arrival, datagrams: run, has_time }))
    })
}

impl Initiations {
    fn shard(&mut self, now: Time, ephemeral: [u8; 32], count: usize, place: impl FnOnce() -> usize) -> usize {
        while let Some((_, key)) = self.recent.pop_front_if(|(at, _)| now.since(*at) >= REMEMBERED_FOR) {
            self.shards.remove(&key);
        }
        if let Some(shard) = self.shards.get(&ephemeral) {
            return *shard;
        }
        let has_room = self.recent.len() < REMEMBERED_MAX;
        if !has_room {
            self.flooded = Some(now);
        }
        // A copy of one that was not remembered may come as long after it, when there is room again.
        let is_flooded = self.flooded.is_some_and(|at| now.since(at) < REMEMBERED_FOR);
        let shard = if is_flooded { (self.hash.hash_one(ephemeral) % count as u64) as usize } else { place() };
        if has_room {
            self.recent.push_back((now, ephemeral));
            self.shards.insert(ephemeral, shard);
        }
        shard
    }
}

/// Initiations whose shards are remembered, and for how long: an initiation is repeated after 1, 3, 7, 15 and 31 s.
const REMEMBERED_MAX: usize = 1024;
const REMEMBERED_FOR: Span = Span::from_secs(32);

/// Parts of a batch up to this size are copied, as [`crate::socket`] does with messages.
const PART_COPIED_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::sync::Arc;
    use std::task::Waker;

    use anabranch_proto::FourTuple;
    use anabranch_proto::endpoint::Arrival;

    use super::*;

    /// A data datagram for a connection of this shard.
    fn data(shard: u8, len: usize) -> Vec<u8> {
        let mut datagram = vec![0; len];
        (datagram[0], datagram[4]) = (4, shard << 2);
        datagram
    }

    fn batch(size: usize, datagrams: &[Vec<u8>]) -> Received {
        let arrival = Arrival { at: Time::ZERO, tuple: FourTuple::default(), size, ecn: None };
        Received { arrival, datagrams: BytesMut::from(&datagrams.concat()[..]), has_time: false }
    }

    #[test]
    fn batch_is_divided_by_the_shards_of_its_datagrams() {
        let all = [data(0, 40), data(0, 40), data(63, 40), vec![9; 40], vec![8; 40], data(1, 40), data(1, 33)];
        let parts = runs(batch(40, &all));
        let parts: Vec<_> = parts.map(|(destination, part)| (destination, part.datagrams.to_vec())).collect();
        let shard = |shard| Some(Destination::Shard(shard));
        let expected = [
            (shard(0), all[..2].concat()),
            (shard(63), all[2].clone()),
            (None, all[3..5].concat()),
            (shard(1), all[5..].concat()),
        ];
        assert_eq!(parts, expected);
        // Too short for any kind of datagram.
        assert!(
            runs(batch(4, &[vec![4; 11]]))
                .map(|(destination, part)| (destination, part.datagrams.len()))
                .eq([(None, 11)])
        );
        assert_eq!(runs(batch(0, &[])).count(), 0);
    }

    /// What waits for another shard keeps no buffer of 64 kB for a few bytes.
    #[test]
    fn small_part_of_a_batch_is_copied() {
        let whole = batch(1_000, &[data(1, 1_000), data(2, 1_000), data(3, 1_000)]);
        let room = whole.datagrams.as_ptr_range();
        let parts: Vec<_> = runs(whole).map(|(_, part)| part.datagrams).collect();
        assert!(parts.len() == 3 && parts.iter().all(|part| !room.contains(&part.as_ptr())));
        let single = batch(1_000, &[data(1, 1_000), data(1, 1_000)]);
        let start = single.datagrams.as_ptr();
        assert!(runs(single).all(|(_, part)| part.datagrams.as_ptr() == start), "a whole batch is not");
    }

    /// What arrives at a socket for two shards, of which the first reads.
    async fn arrived(datagrams: &[Vec<u8>]) -> [Vec<Vec<u8>>; 2] {
        arrived_at([0; 2], datagrams).await
    }

    /// The same for shards with these numbers of connections.
    async fn arrived_at(loads: [usize; 2], datagrams: &[Vec<u8>]) -> [Vec<Vec<u8>>; 2] {
        let socket = Socket::new(UdpSocket::bind("127.0.0.1:0").unwrap(), 1 << 20).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        datagrams.iter().for_each(|datagram| _ = sender.send_to(datagram, socket.local()).unwrap());
        let (clock, lobby) = (Clock::new(), SharedLobby::new(socket.local(), socket.holds()));
        let sockets = Sockets::new(socket, Arc::clone(&lobby.carriers));
        let intake = Intake::new(sockets, 2, 1 << 20, &SecretKey::generate().unwrap());
        intake.inboxes.iter().zip(loads).for_each(|(inbox, load)| inbox.set_load(load));
        let (mut own, mut other) = (vec![], vec![]);
        while own.len() + other.len() < datagrams.len() {
            let read = std::future::poll_fn(|cx| intake.poll_receive(cx, &clock, &lobby, 0, &mut own));
            assert!(tokio::time::timeout(std::time::Duration::from_secs(5), read).await.unwrap().is_ok());
            while intake.inboxes[1].poll_take(&Context::from_waker(Waker::noop()), &mut other).is_ready() {}
        }
        [own, other].map(|all| all.into_iter().map(|batch| batch.datagrams.to_vec()).collect())
    }

    /// There are two shards. A peer that names another gets an answer of one of them.
    #[tokio::test]
    async fn datagram_for_a_shard_that_is_not_there_comes_to_another() {
        let all = [data(1, 40), data(0, 50), data(62, 60), data(63, 70), vec![9; 20]];
        let [own, other] = arrived(&all).await;
        assert_eq!(
            [own, other],
            [[&all[1], &all[2], &all[4]].map(Clone::clone).into(), [&all[0], &all[3]].map(Clone::clone).to_vec()]
        );
    }

    /// The emptiest shard gets new connections until it has as many as the other, also if they come at once. A copy follows the first.
    #[tokio::test]
    async fn initiations_at_once_are_spread() {
        let initiation = |number: u8| [&[1, 0, 0, 0, 9, 9, 9, 9][..], &[number; 300]].concat();
        let all: Vec<_> = [1, 2, 3, 1, 4, 5].map(initiation).into();
        let [own, other] = arrived_at([3, 0], &all).await;
        assert_eq!(other[..4], all[..4]);
        assert_eq!((own.len(), other.len()), (1, 5));
    }

    /// A stateless reset is for all shards, but a flood of them takes the time of one.
    #[tokio::test]
    async fn resets_come_to_all_shards_up_to_a_limit() {
        let reset = |number: u8| [&[5, 0, 0, 0, 0, 0, 0, number], &[7; 16][..]].concat();
        let resets: Vec<_> = (0..200).map(reset).collect();
        let [own, other] = arrived(&resets).await;
        // Further ones are checked at 20 a second.
        assert!(own[..50] == resets[..50] && other[..50] == resets[..50] && other.len() < 100, "{}", other.len());
    }

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
        assert_eq!(initiations.shards.len(), REMEMBERED_MAX);
        // A binomial count of 98,000 draws with 1/8: 12,250, standard deviation 104.
        assert!(counts.iter().all(|count| (11_700..12_800).contains(count)), "{counts:?}");
    }

    /// A copy of an initiation that came in a flood finds its shard when the flood is over and there is room again.
    #[test]
    fn copies_find_their_shard_after_a_flood() {
        let mut initiations = Initiations::default();
        (0..REMEMBERED_MAX as u64).for_each(|number| _ = initiations.shard(at(0), key(number), 8, || 0));
        let late: Vec<_> = (5_000..5_100).map(|number| initiations.shard(at(20), key(number), 8, || 8)).collect();
        let again = |initiations: &mut Initiations, secs| {
            (5_000..5_100).map(|number| initiations.shard(at(secs), key(number), 8, || 8)).collect::<Vec<_>>()
        };
        assert_eq!(again(&mut initiations, 35), late);
        assert_eq!(again(&mut initiations, 51), late);
        assert_eq!((initiations.shard(at(52), key(9_000), 8, || 8), initiations.recent.len()), (8, 101), "it is over");
    }
}
