//! Memory of chunks, used again: fresh memory costs a page fault for each 4 kB, a tenth of the time of a fast transfer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::hash::CHUNK;

/// Buffers of a chunk each that wait for the next one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool(Arc<Mutex<Vec<Vec<u8>>>>);

/// A chunk whose buffer goes back to its pool.
#[derive(Debug)]
struct Pooled {
    bytes: Vec<u8>,
    pool: Pool,
}

impl Pool {
    /// An empty buffer with room for a chunk.
    pub(crate) fn take(&self) -> Vec<u8> {
        let mut bytes = self.lock().pop().unwrap_or_else(|| Vec::with_capacity(CHUNK as usize));
        bytes.clear();
        bytes
    }

    /// Takes back a buffer that is not needed.
    pub(crate) fn give(&self, bytes: Vec<u8>) {
        let mut waiting = self.lock();
        if waiting.len() < WAITING_MAX {
            waiting.push(bytes);
        }
    }

    /// The content of a buffer, which comes back when nobody has any of it.
    pub(crate) fn share(&self, bytes: Vec<u8>) -> Bytes {
        Bytes::from_owner(Pooled { bytes, pool: self.clone() })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsRef<[u8]> for Pooled {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        self.pool.give(std::mem::take(&mut self.bytes));
    }
}

/// What a sender on loopback has in flight.
const WAITING_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_comes_back_when_its_last_part_goes() {
        let pool = Pool::default();
        let mut bytes = pool.take();
        bytes.extend([1, 2, 3]);
        let at = bytes.as_ptr();
        let shared = pool.share(bytes);
        let part = shared.slice(1..);
        drop(shared);
        let other = pool.take();
        assert!(other.as_ptr() != at && part[..] == [2, 3]);
        drop(part);
        let again = pool.take();
        assert!(again.as_ptr() == at && again.is_empty() && again.capacity() >= CHUNK as usize);
    }

    #[test]
    fn pool_has_a_limit() {
        let pool = Pool::default();
        let many: Vec<_> = (0..3 * WAITING_MAX).map(|_| pool.share(pool.take())).collect();
        drop(many);
        assert_eq!(pool.lock().len(), WAITING_MAX);
    }
}
