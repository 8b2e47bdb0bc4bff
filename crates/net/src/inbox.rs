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
    /// Connections of the shard, as of its driver's last turn.
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

    /// Adds a batch, and wakes the driver.
    pub(crate) fn put(&self, batch: Received) {
        let mut state = self.lock();
        if state.is_closed || state.bytes + batch.datagrams.len() > self.bytes_max {
            return;
        }
        state.bytes += batch.datagrams.len();
        state.batches.push_back(batch);
        drop(state);
        self.wake();
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
        into.extend(batches.drain(..count).inspect(|batch| *bytes -= batch.datagrams.len()));
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

    /// The number of connections of the shard, as of the last turn of its driver.
    pub(crate) fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    pub(crate) fn set_load(&self, load: usize) {
        self.load.store(load, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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

    #[test]
    fn full_inbox_drops_what_arrives() {
        let (inbox, mut taken) = (Inbox::new(1000), vec![]);
        let cx = Context::from_waker(Waker::noop());
        [600, 600, 400].into_iter().for_each(|len| inbox.put(batch(len)));
        assert!(inbox.poll_take(&cx, &mut taken).is_ready());
        assert_eq!(taken.iter().map(|batch| batch.datagrams.len()).collect::<Vec<_>>(), [600, 400]);
        inbox.put(batch(1000));
        assert!(inbox.poll_take(&cx, &mut taken).is_ready() && taken.len() == 3, "there is room again");
        assert!(inbox.poll_take(&cx, &mut taken).is_pending());
    }
}
