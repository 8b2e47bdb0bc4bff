//! What the tasks of a receiving transfer share, and what they report.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;

use crate::error::ReceiveError;
use crate::frame::Outcome;
use crate::hash::Value;
use crate::plan::Want;
use crate::progress::Progress;
use crate::site::{Site, Trouble, locked};

/// The state shared by the data streams of a transfer.
pub(crate) struct Shared {
    pub(crate) site: Arc<Site>,
    pub(crate) wanted: Mutex<Wanted>,
    /// Files without a result.
    pub(crate) open: AtomicUsize,
    pub(crate) reports: mpsc::Sender<Report>,
    pub(crate) progress: Arc<Progress>,
    /// Bytes of streams that have arrived.
    pub(crate) streamed: AtomicU64,
}

/// What the receiver does with each entry.
#[derive(Default)]
pub(crate) struct Wanted {
    pub(crate) wants: Vec<Want>,
    /// The chunks that are there.
    pub(crate) kept: BTreeMap<u32, Kept>,
    /// Entries that were refused or did not arrive.
    pub(crate) failed: BTreeSet<u32>,
}

/// The chunks of a file that need not be sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Their hashes, from the first one on.
    pub(crate) values: Vec<Value>,
    /// So many of them are in the incomplete file, which an earlier transfer has left; the others in the file that is replaced.
    pub(crate) own: usize,
}

/// A report of a data stream: the result of a file, or a fatal error.
pub(crate) type Report = Result<FileResult, ReceiveError>;

#[derive(Debug)]
pub(crate) enum FileResult {
    /// For the sender, too.
    Outcome(Outcome),
    /// The file that is there is the same, says the sender.
    There(u32),
    /// A text has arrived.
    Text(u32, String),
    /// So many bytes did not have to be sent.
    Kept(u64),
}

impl Shared {
    /// What is wanted of an entry, once.
    pub(crate) fn take(&self, index: u32) -> Option<(Want, Kept)> {
        let has_content = self.site.manifest.find(index)?.has_content();
        let mut wanted = locked(&self.wanted);
        let want = std::mem::replace(wanted.wants.get_mut(index as usize)?, Want::Nothing);
        let kept = wanted.kept.remove(&index).unwrap_or_default();
        (want != Want::Nothing && has_content).then_some((want, kept))
    }

    /// The number of files without a result.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Sends a report. The error means that no more reports are wanted.
    pub(crate) async fn report(&self, report: Report) -> Result<(), ()> {
        let is_broken = report.is_err();
        match self.reports.send(report).await {
            Ok(()) if !is_broken => Ok(()),
            _ => Err(()),
        }
    }
}

/// What a task has returned. One that has not been completed is a fault of this end.
pub(crate) fn joined<T>(result: Result<T, tokio::task::JoinError>) -> Result<T, ReceiveError> {
    result.map_err(|error| ReceiveError::Fault(error.to_string()))
}

/// What ends the transfer.
pub(crate) fn fatal(trouble: Trouble) -> ReceiveError {
    match trouble {
        Trouble::Disk(path, error) => ReceiveError::Folder(path, error),
        Trouble::Entry(reason) => ReceiveError::Folder(PathBuf::new(), std::io::Error::other(reason)),
    }
}
