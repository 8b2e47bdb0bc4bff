//! How far a transfer is, for who looks at it meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of a transfer that is going on.
#[derive(Debug, Default)]
pub struct Progress {
    files: AtomicU64,
    files_done: AtomicU64,
    bytes: AtomicU64,
    bytes_done: AtomicU64,
    bytes_there: AtomicU64,
}

impl Progress {
    /// Files and bytes of all that is sent; 0 until that is known.
    pub fn total(&self) -> (u64, u64) {
        (self.files.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    /// Files that have arrived or been there, and bytes that have been handed on or been there.
    pub fn done(&self) -> (u64, u64) {
        let bytes = self.bytes_done.load(Ordering::Relaxed) + self.bytes_there.load(Ordering::Relaxed);
        (self.files_done.load(Ordering::Relaxed), bytes)
    }

    /// Bytes that had been there before.
    pub fn there(&self) -> u64 {
        self.bytes_there.load(Ordering::Relaxed)
    }

    pub(crate) fn set_total(&self, (files, bytes): (u64, u64)) {
        self.files.store(files, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_file(&self) {
        self.files_done.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.bytes_done.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_there(&self, bytes: u64) {
        self.bytes_there.fetch_add(bytes, Ordering::Relaxed);
    }
}
