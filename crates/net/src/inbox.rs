//! What another driver has read for a shard. Its lock is held for a few instructions, so a reader never waits for an engine.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::socket::Received;
use crate::waiting::only;

/// The arrivals of a shard.
#[derive(Debug)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    /// Bytes that may wait. Like a full socket buffer, a full inbox drops what arrives.
    bytes_max: usize,
    /// Connections of the shard, as of its driver's last turn, and those that came since.
    load: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    batches: VecDeque<Received>,
    bytes: usize,
    /// The driver, while it waits.
    driver: Option<Waker>,
    /// Whether the driver has ended.
    is_closed: bool,
}

impl Inbox {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { state: Mutex::default(), bytes_max, load: AtomicUsize::new(0) }
    }

    /// Adds a batch, and wakes the driver. If that has ended, the batch is returned.
    pub(crate) fn put(&self, batch: Received) -> Option<Received> {
        let mut state = self.lock();
        // An empty one takes a batch of any size, or a small socket buffer would let nothing through.
        let is_full = !state.batches.is_empty() && state.bytes + weight(&batch) > self.bytes_max;
        if state.is_closed || is_full {
            return Some(batch).filter(|_| state.is_closed);
        }
        state.bytes += weight(&batch);
        state.batches.push_back(batch);
        drop(state);
        self.wake();
        None
    }

    /// Takes some batches, or waits for one.
    pub(crate) fn poll_take(&self, cx: &Context<'_>, into: &mut Vec<Received>) -> Poll<()> {
        let mut state = self.lock();
        let count = state.batches.len().min(BATCHES_MAX);
        if count == 0 {
            only(&mut state.driver, cx);
            return Poll::Pending;
        }
        let State { batches, bytes, .. } = &mut *state;
        into.extend(batches.drain(..count).inspect(|batch| *bytes -= weight(batch)));
        Poll::Ready(())
    }

    /// The driver has ended: what arrives is dropped.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        *state = State { is_closed: true, ..State::default() };
    }

    /// Gives the driver a turn, if it waits.
    pub(crate) fn wake(&self) {
        let driver = self.lock().driver.take();
        driver.into_iter().for_each(Waker::wake);
    }

    /// Whether the driver has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// The number of connections of the shard, those that are about to come included; `None` if the driver has ended.
    pub(crate) fn load(&self) -> Option<usize> {
        (!self.is_closed()).then(|| self.load.load(Ordering::Relaxed))
    }

    /// A connection comes to the shard.
    pub(crate) fn add_load(&self) {
        self.load.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn set_load(&self, load: usize) {
        self.load.store(load, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes of memory that a batch takes.
fn weight(batch: &Received) -> usize {
    BATCH + batch.datagrams.len()
}

/// What a batch takes besides its datagrams: 144 bytes in the queue, and an allocation. So a flood of the smallest datagrams takes no
/// more memory than one of large ones.
const BATCH: usize = 256;

/// Batches taken at once, as many as a socket gives.
const BATCHES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use anabranch_proto::FourTuple;
    use anabranch_proto::endpoint::Arrival;
    use anabranch_units::Time;
    use bytes::BytesMut;

    use super::*;

    fn batch(len: usize) -> Received {
        let arrival = Arrival { at: Time::ZERO, tuple: FourTuple::default(), size: len, ecn: None };
        Received { arrival, datagrams: BytesMut::zeroed(len), has_time: false }
    }

    fn lens(taken: &[Received]) -> Vec<usize> {
        taken.iter().map(|batch| batch.datagrams.len()).collect()
    }

    #[test]
    fn full_inbox_drops_what_arrives() {
        let (inbox, mut taken) = (Inbox::new(10_000), vec![]);
        let cx = Context::from_waker(Waker::noop());
        [6_000, 6_000, 3_000, 1_000].into_iter().for_each(|len| _ = inbox.put(batch(len)));
        assert!(inbox.poll_take(&cx, &mut taken).is_ready());
        assert_eq!(lens(&taken), [6_000, 3_000]);
        assert!(inbox.put(batch(9_000)).is_none());
        assert!(inbox.poll_take(&cx, &mut taken).is_ready() && taken.len() == 3, "there is room again");
        assert!(inbox.poll_take(&cx, &mut taken).is_pending());
    }

    /// What a flood of single bytes takes is limited, too.
    #[test]
    fn small_datagrams_take_no_more_memory_than_large_ones() {
        let (inbox, mut taken) = (Inbox::new(1 << 20), vec![]);
        (0..100_000).for_each(|_| _ = inbox.put(batch(1)));
        let cx = Context::from_waker(Waker::noop());
        while inbox.poll_take(&cx, &mut taken).is_ready() {}
        let each = size_of::<Received>() + 32;
        assert!(taken.len() > 2_000 && taken.len() * each <= 1 << 20, "{} of {each} bytes", taken.len());
    }

    #[test]
    fn inbox_smaller_than_a_batch_lets_one_wait() {
        let (inbox, mut taken) = (Inbox::new(0), vec![]);
        let cx = Context::from_waker(Waker::noop());
        [65_000, 1, 1].into_iter().for_each(|len| _ = inbox.put(batch(len)));
        assert!(inbox.poll_take(&cx, &mut taken).is_ready());
        assert!(inbox.put(batch(1_200)).is_none());
        assert!(inbox.poll_take(&cx, &mut taken).is_ready());
        assert_eq!(lens(&taken), [65_000, 1_200]);
    }

    #[test]
    fn closed_inbox_returns_what_comes() {
        let (inbox, mut taken) = (Inbox::new(10_000), vec![]);
        assert!(inbox.put(batch(10)).is_none());
        inbox.close();
        assert_eq!(inbox.put(batch(20)).map(|batch| batch.datagrams.len()), Some(20));
        assert_eq!((inbox.load(), inbox.is_closed()), (None, true));
        assert!(inbox.poll_take(&Context::from_waker(Waker::noop()), &mut taken).is_pending());
    }
}
