//! Writes small files, and makes all files durable.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::commit::{Disk, turn};
use crate::error::ReceiveError;
use crate::frame::Outcome;
use crate::hash::Value;
use crate::part::{Ready, WriteFailed};
use crate::plan::Want;
use crate::shared::{FileResult, Kept, Report, Shared, fatal, joined};
use crate::site::{PartName, Site, Trouble};

/// A small file to be written.
pub(crate) struct Small {
    pub(crate) index: u32,
    pub(crate) want: Want,
    pub(crate) bytes: Bytes,
    pub(crate) hash: Value,
}

/// Writes small files as long as data streams deliver some: all waiting files at once.
pub(crate) async fn write_small(
    shared: Arc<Shared>,
    queue: Arc<tokio::sync::Mutex<mpsc::Receiver<Small>>>,
    ready: mpsc::Sender<Ready>,
) {
    loop {
        let mut batch = vec![];
        if queue.lock().await.recv_many(&mut batch, BATCH).await == 0 {
            return;
        }
        let site = Arc::clone(&shared.site);
        let write = move || batch.iter().map(|small| site.write(small).map_err(|error| (small.index, error))).collect();
        let written: Vec<_> = match joined(spawn_blocking(write).await) {
            Ok(written) => written,
            Err(error) => {
                // Without a receiver of reports the transfer has ended anyway.
                _ = shared.report(Err(error)).await;
                return;
            }
        };
        for written in written {
            let is_wanted = match written {
                Ok(file) => ready.send(file).await.is_ok(),
                Err((index, trouble)) => shared.report(report(index, trouble)).await.is_ok(),
            };
            if !is_wanted {
                return;
            }
        }
    }
}

/// Gives the ready files their names, and reports them once they are durable.
pub(crate) async fn commit(shared: Arc<Shared>, mut ready: mpsc::Receiver<Ready>) {
    let mut placed: Vec<Ready> = vec![];
    let mut took = Duration::ZERO;
    loop {
        let mut batch = vec![];
        // A disk that is busy with syncs writes less. The last files are not waited for.
        if shared.open() > placed.len() {
            tokio::time::sleep(took.min(BETWEEN)).await;
        }
        if placed.is_empty() {
            if ready.recv_many(&mut batch, COMMITTED).await == 0 {
                return;
            }
        } else {
            // The names of the last turn do not wait for more files.
            while batch.len() < COMMITTED
                && let Ok(file) = ready.try_recv()
            {
                batch.push(file);
            }
        }
        let (site, begin) = (Arc::clone(&shared.site), Instant::now());
        let reports;
        (reports, placed) = match joined(spawn_blocking(move || turn(&mut Committing(&site), batch, placed)).await) {
            Ok(turned) => turned,
            Err(error) => {
                // Without a receiver of reports the transfer has ended anyway.
                _ = shared.report(Err(error)).await;
                return;
            }
        };
        took = begin.elapsed();
        for report in reports {
            if shared.report(report).await.is_err() {
                return;
            }
        }
    }
}

impl Site {
    /// Writes a complete small file.
    fn write(&self, Small { index, want, bytes, hash }: &Small) -> Result<Ready, Trouble> {
        let mut part = self.begin(*index, Kept::default())?;
        if !bytes.is_empty() {
            part.write(bytes).map_err(|failed| match failed {
                WriteFailed::Protocol => Trouble::Entry("its size is wrong".into()),
                WriteFailed::Io(error) => self.trouble("it cannot be written", error),
            })?;
        }
        self.finish(*index, *want, part, hash)
    }
}

/// The report of a file that was not received.
fn report(index: u32, trouble: Trouble) -> Report {
    match trouble {
        Trouble::Entry(reason) => Ok(FileResult::Outcome(Outcome::Failed(index, reason))),
        trouble => Err(fatal(trouble)),
    }
}

/// The disk of a transfer.
struct Committing<'a>(&'a Site);

impl Disk for Committing<'_> {
    type File = Ready;
    type Report = Result<FileResult, ReceiveError>;
    type Error = io::Error;

    fn sync(&mut self, ready: &[Ready], placed: &[Ready]) -> Result<(), io::Error> {
        let site = self.0;
        for shop in site.shops() {
            let here = |file: &&Ready| file.shop.is_same(&shop);
            let loose: Vec<_> = ready.iter().filter(here).filter(|file| !file.is_synced).collect();
            let mut parents: Vec<_> =
                placed.iter().filter(here).map(|file| site.manifest.entry(file.index).parent).collect();
            parents.sort_unstable();
            parents.dedup();
            let count = loose.len() + parents.len();
            if shop.syncs_all && count > FEW || shop.is_due() && count > 0 {
                shop.sync_all()?;
                continue;
            }
            for file in loose {
                shop.folder.open(PartName::of(&site.manifest, file.index).leaf())?.sync_all()?;
            }
            for parent in parents {
                // Files were placed in it, so it was open.
                if let Ok(spot) = site.spot(parent) {
                    spot.folder.sync()?;
                }
            }
        }
        Ok(())
    }

    fn place(&mut self, file: &Ready) -> Result<(), Self::Report> {
        self.0.place(file).map_err(|trouble| report(file.index, trouble))
    }

    fn confirm(&mut self, file: Ready) -> Self::Report {
        Ok(FileResult::Outcome(Outcome::Done(file.index)))
    }

    fn fail(&mut self, file: Ready, why: &io::Error) -> Self::Report {
        let why = why
            .raw_os_error()
            .map_or_else(|| io::Error::new(why.kind(), why.to_string()), io::Error::from_raw_os_error);
        report(file.index, self.0.trouble("it cannot be made durable", why))
    }
}

/// Small files written at once: a megabyte per writer.
const BATCH: usize = 64;

/// Files that a sync is for. They hold some hundred bytes each.
const COMMITTED: usize = 4096;

/// Up to so many files and folders are made durable one by one, so that a few files do not wait for what other programs have written.
const FEW: usize = 4;

/// The longest time between two syncs, so that results are not late.
const BETWEEN: Duration = Duration::from_millis(100);
