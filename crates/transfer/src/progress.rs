//! The progress of a transfer, for display.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a running transfer.
#[derive(Debug, Default)]
pub struct Progress {
    files: AtomicU64,
    files_done: AtomicU64,
    bytes: AtomicU64,
    bytes_done: AtomicU64,
    bytes_there: AtomicU64,
}

impl Progress {
    /// The number of files and their total bytes; 0 until they are known.
    pub fn total(&self) -> (u64, u64) {
        (self.files.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }

    /// Complete files, and bytes sent or written, including those already present.
    pub fn done(&self) -> (u64, u64) {
        let bytes = self.bytes_done.load(Ordering::Relaxed) + self.bytes_there.load(Ordering::Relaxed);
        (self.files_done.load(Ordering::Relaxed), bytes)
    }

    /// Bytes that were already present.
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
