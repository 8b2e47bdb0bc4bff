//! Datagrams over TCP, for networks that block UDP: the carriers of an endpoint.
//!
//! A *carrier* is a WebSocket that carries datagrams between a relay and a member, one in each binary message (docs/wire.md, sec. 4.4).
//! The engine sees a path like any other. The local end of its four-tuple is an address that no network has, and names the carrier; the
//! remote end is the real address, by which all limits count.
//!
//! TCP delivers everything, however late. So that a slow carrier loses what is too much, as a network does, what waits for it is limited.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use anabranch_proto::{Address, FourTuple};
use bytes::Bytes;
use tokio::sync::{Notify, mpsc, watch};

use crate::address;
use crate::socket::Received;

/// All carriers of an endpoint.
#[derive(Debug)]
pub(crate) struct Carriers {
    /// Whether there was ever one. Most endpoints have none, and need no lock to know it.
    is_used: AtomicBool,
    state: Mutex<State>,
    arriving: mpsc::Sender<Received>,
    arrived: Mutex<mpsc::Receiver<Received>>,
}

#[derive(Debug, Default)]
struct State {
    outboxes: BTreeMap<u32, Arc<Outbox>>,
    made: u32,
}

/// A carrier. It is over when this is dropped.
#[derive(Debug)]
pub(crate) struct Carrier {
    carriers: Arc<Carriers>,
    number: u32,
    remote: SocketAddr,
    outbox: Arc<Outbox>,
}

/// What waits to leave by a carrier.
#[derive(Debug)]
pub(crate) struct Outbox {
    waiting: Mutex<Waiting>,
    bell: Notify,
    is_over: watch::Sender<bool>,
    /// Whether the other end is a member.
    is_settled: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    datagrams: VecDeque<Bytes>,
    bytes: usize,
}

impl Default for Carriers {
    fn default() -> Self {
        let (arriving, arrived) = mpsc::channel(ARRIVED_MAX);
        Self { is_used: AtomicBool::new(false), state: Mutex::default(), arriving, arrived: Mutex::new(arrived) }
    }
}

impl Carriers {
    /// A new carrier to this address. Afterwards the drivers of the endpoint need a turn.
    pub(crate) fn add(self: &Arc<Self>, remote: SocketAddr) -> Carrier {
        let outbox = Arc::new(Outbox::new());
        let mut state = self.lock();
        state.made = state.made.wrapping_add(1);
        let number = state.made;
        state.outboxes.insert(number, Arc::clone(&outbox));
        drop(state);
        self.is_used.store(true, Ordering::Relaxed);
        Carrier { carriers: Arc::clone(self), number, remote, outbox }
    }

    /// Sends datagrams of `size` bytes, the last of which may be shorter. Returns whether all of them have room; what has none is lost.
    pub(crate) fn send(&self, number: u32, size: usize, bytes: &[u8]) -> bool {
        let outbox = self.lock().outboxes.get(&number).cloned();
        outbox.is_some_and(|outbox| outbox.put(size, bytes))
    }

    /// Takes what has arrived by all carriers. Datagrams of one carrier and one size become a batch.
    pub(crate) fn poll_take(&self, cx: &mut Context<'_>, received: &mut Vec<Received>) -> Poll<()> {
        if !self.is_used.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        let before = received.len();
        for _ in 0..TAKEN_MAX {
            let Poll::Ready(Some(next)) = arrived.poll_recv(cx) else { break };
            match received.get_mut(before..).and_then(|new| new.last_mut()) {
                Some(last) if follows(last, &next) => last.datagrams.extend_from_slice(&next.datagrams),
                _ => received.push(next),
            }
        }
        if received.len() > before { Poll::Ready(()) } else { Poll::Pending }
    }

    /// The other end of the carrier with this local address is a member. Otherwise a relay ends it soon.
    pub(crate) fn settle(&self, local: Address) {
        if let Some(outbox) = self.find(local) {
            outbox.is_settled.store(true, Ordering::Relaxed);
        }
    }

    /// Ends the carrier with this local address, if it is one.
    pub(crate) fn end(&self, local: Address) {
        if let Some(outbox) = self.find(local) {
            outbox.end();
        }
    }

    /// Waits until the carrier with this local address is over; for ever if it is none.
    pub(crate) async fn over(&self, local: Address) {
        if number(local).is_none() {
            return std::future::pending().await;
        }
        if let Some(outbox) = self.find(local) {
            outbox.over().await;
        }
    }

    fn find(&self, local: Address) -> Option<Arc<Outbox>> {
        self.lock().outboxes.get(&number(local)?).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Carrier {
    pub(crate) fn tuple(&self) -> FourTuple {
        FourTuple { local: local(self.number), remote: address::of(self.remote) }
    }

    /// What leaves by it.
    pub(crate) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Ends it: nothing leaves any more.
    pub(crate) fn end(&self) {
        self.outbox.end();
    }

    /// A datagram has arrived. Waits while the endpoint is busy, so that TCP slows the other end down.
    pub(crate) async fn take(&self, received: Received) {
        // The receiver is as old as the sender.
        _ = self.carriers.arriving.send(received).await;
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.outbox.end();
        self.carriers.lock().outboxes.remove(&self.number);
    }
}

impl Outbox {
    fn new() -> Self {
        Self {
            waiting: Mutex::default(),
            bell: Notify::new(),
            is_over: watch::Sender::new(false),
            is_settled: AtomicBool::new(false),
        }
    }

    fn put(&self, size: usize, bytes: &[u8]) -> bool {
        let mut waiting = self.lock();
        let room = WAITING_MAX.saturating_sub(waiting.bytes);
        let size = size.max(1);
        let fits = if bytes.len() <= room { bytes.len() } else { room - room % size };
        if fits > 0 && !*self.is_over.borrow() {
            let all = Bytes::copy_from_slice(&bytes[..fits]);
            let each = (0..fits).step_by(size).map(|from| all.slice(from..fits.min(from + size)));
            waiting.datagrams.extend(each);
            waiting.bytes += fits;
            drop(waiting);
            self.bell.notify_one();
        }
        fits == bytes.len()
    }

    /// Waits for datagrams to send, and takes as many as go well at once. `false` if the carrier is over.
    pub(crate) async fn next(&self, out: &mut Vec<Bytes>) -> bool {
        loop {
            if *self.is_over.borrow() {
                return false;
            }
            {
                let mut waiting = self.lock();
                let (mut bytes, mut count) = (0, 0);
                while count < waiting.datagrams.len() && bytes < AT_ONCE {
                    bytes += waiting.datagrams[count].len();
                    count += 1;
                }
                out.extend(waiting.datagrams.drain(..count));
                waiting.bytes -= bytes;
            }
            if !out.is_empty() {
                return true;
            }
            self.bell.notified().await;
        }
    }

    /// Whether the other end is a member.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_settled.load(Ordering::Relaxed)
    }

    /// Waits until the carrier is over.
    pub(crate) async fn over(&self) {
        // The sender is here.
        _ = self.is_over.subscribe().wait_for(|is_over| *is_over).await;
    }

    fn end(&self) {
        self.is_over.send_replace(true);
        self.bell.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing panics while it is locked.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether what has arrived can be appended to a batch.
fn follows(batch: &Received, next: &Received) -> bool {
    let (size, len) = (batch.arrival.size, next.datagrams.len());
    batch.arrival.tuple == next.arrival.tuple
        && batch.datagrams.len().is_multiple_of(size)
        && len <= size
        && batch.datagrams.len() + len <= BATCH_MAX
}

/// The number of the carrier with this local address; `None` for an address of a network.
pub(crate) fn number(local: Address) -> Option<u32> {
    (local.address >> PREFIX_AT == PREFIX).then_some((local.address >> NUMBER_AT) as u32)
}

/// Whether a datagram comes from the end to which this four-tuple leads. Its own address does not count, as that of a socket may change.
pub(crate) fn is_from(known: &FourTuple, came: &FourTuple) -> bool {
    known.remote == came.remote && number(known.local) == number(came.local)
}

fn local(number: u32) -> Address {
    Address { address: PREFIX << PREFIX_AT | u128::from(number) << NUMBER_AT | 1, port: 1 }
}

/// In the same unused part of the addresses as the peers behind relays (`frame`), and beside them.
const PREFIX: u128 = 0x0100_0ab1;
const PREFIX_AT: u32 = 96;
const NUMBER_AT: u32 = 64;

/// Bytes that wait for a carrier: 20 ms at 100 Mbit/s, and some batches of the kernel's size. More is lost.
const WAITING_MAX: usize = 1 << 18;

/// Bytes that leave at once: four records of TLS.
const AT_ONCE: usize = 1 << 16;

/// Datagrams that wait for the endpoint, of all carriers, and those that it takes in a turn.
const ARRIVED_MAX: usize = 512;
const TAKEN_MAX: usize = 128;

/// A batch is no longer than what the kernel makes of datagrams.
const BATCH_MAX: usize = 60_000;

#[cfg(test)]
mod tests {
    use anabranch_proto::endpoint::Arrival;
    use anabranch_units::Time;
    use bytes::BytesMut;

    use super::*;
    use crate::frame;

    fn remote() -> SocketAddr {
        "192.0.2.1:443".parse().unwrap()
    }

    fn received(carrier: &Carrier, bytes: &[u8]) -> Received {
        let arrival = Arrival { at: Time::ZERO, tuple: carrier.tuple(), size: bytes.len(), ecn: None };
        Received { arrival, datagrams: BytesMut::from(bytes), has_time: false }
    }

    #[test]
    fn carrier_has_an_address_of_no_network_and_the_remote_one() {
        let carriers = Arc::new(Carriers::default());
        let (one, two) = (carriers.add(remote()), carriers.add(remote()));
        assert_eq!((number(one.tuple().local), number(two.tuple().local)), (Some(1), Some(2)));
        assert_eq!(address::plain(one.tuple().remote), remote());
        assert!(frame::number(one.tuple().local).is_none() && number(frame::tuple(1).local).is_none());
        for text in ["10.0.0.1:7", "[::]:1", "[2001:db8::1]:1", "[100::1]:1"] {
            assert_eq!(number(address::of(text.parse().unwrap())), None, "{text}");
        }
    }

    #[tokio::test]
    async fn batch_leaves_as_datagrams() {
        let carriers = Arc::new(Carriers::default());
        let carrier = carriers.add(remote());
        assert!(carriers.send(1, 1_000, &[7; 2_500]));
        let mut out = vec![];
        assert!(carrier.outbox().next(&mut out).await);
        assert_eq!(out.iter().map(Bytes::len).collect::<Vec<_>>(), [1_000, 1_000, 500]);
    }

    /// What TCP does not take is lost, in whole datagrams, and what there was room for still leaves.
    #[tokio::test]
    async fn full_outbox_loses_what_is_too_much() {
        let carriers = Arc::new(Carriers::default());
        let carrier = carriers.add(remote());
        let batch = vec![7; 60_000];
        let taken: Vec<_> = (0..6).map(|_| carriers.send(1, 1_000, &batch)).collect();
        assert_eq!(taken, [true, true, true, true, false, false]);
        let (mut out, mut all) = (vec![], 0);
        while all < 262 {
            assert!(carrier.outbox().next(&mut out).await);
            assert!(out.iter().all(|datagram| datagram.len() == 1_000) && out.len() <= 66);
            all += out.drain(..).len();
        }
        assert_eq!((all, carrier.outbox().lock().bytes), (262, 0));
        assert!(carriers.send(1, 1_000, &batch), "there is room again");
    }

    #[tokio::test]
    async fn carrier_that_is_dropped_is_over() {
        let carriers = Arc::new(Carriers::default());
        let carrier = carriers.add(remote());
        let local = carrier.tuple().local;
        carriers.end(local);
        carriers.over(local).await;
        assert!(!carrier.outbox().next(&mut vec![]).await);
        drop(carrier);
        carriers.over(local).await;
        assert!(!carriers.send(1, 9, &[1; 9]) && carriers.lock().outboxes.is_empty());
    }

    #[tokio::test]
    async fn arrivals_of_one_carrier_are_a_batch() {
        let carriers = Arc::new(Carriers::default());
        let (one, two) = (carriers.add(remote()), carriers.add(remote()));
        for (carrier, len) in [(&one, 100), (&one, 100), (&one, 40), (&one, 100), (&two, 100), (&two, 101)] {
            carrier.take(received(carrier, &vec![9; len])).await;
        }
        let mut all = vec![];
        std::future::poll_fn(|cx| carriers.poll_take(cx, &mut all)).await;
        let lens: Vec<_> = all.iter().map(|batch| (batch.arrival.size, batch.datagrams.len())).collect();
        assert_eq!(lens, [(100, 240), (100, 100), (100, 100), (101, 101)]);
    }
}
