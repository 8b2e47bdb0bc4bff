//! The receiving end of a transfer.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch::units::Rate;
use anabranch::{Config, Connection, RecvStream, SendStream, StreamError};
use bytes::{Bytes, BytesMut};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use crate::error::{Breach, ReceiveError};
use crate::folder::Occupied;
use crate::frame::{Outcome, Step, put_fatal, put_rate};
use crate::incoming::receive_files;
use crate::manifest::{Kind, MANIFEST_MAX, Manifest, ManifestError};
use crate::plan::{Planned, Planner, Want};
use crate::progress::Progress;
use crate::shared::{FileResult, Kept, Report, Shared, Wanted, fatal, joined};
use crate::site::{Existing, Site, Trouble, locked};
use crate::write::{commit, write_small};
use crate::{BEGUN_WITHIN, FAREWELL, STREAMS, Summary};

/// A folder that receives transfers.
#[derive(Debug)]
pub struct Receiver {
    folder: PathBuf,
    existing: Existing,
    rate_max: Option<Rate>,
    active: Mutex<Vec<Active>>,
    /// Kilobytes that lists of files may still take.
    room: Arc<Semaphore>,
}

/// A running transfer.
#[derive(Debug)]
struct Active {
    /// Numbers of the names of what was sent, the same for names that differ only in case, and which of them are streams.
    roots: BTreeMap<u64, bool>,
    connection: Connection,
    /// Closes when the transfer has ended.
    over: watch::Receiver<()>,
}

impl Receiver {
    /// A receiver for this folder, which is created if necessary.
    pub fn new(folder: impl Into<PathBuf>, existing: Existing) -> Self {
        // The first use determines it, before other threads make files.
        crate::folder::mode_allowed();
        let room = Arc::new(Semaphore::new(LISTS_MAX / KILO));
        Self { folder: folder.into(), existing, rate_max: None, active: Mutex::new(vec![]), room }
    }

    /// The same receiver, which asks each sender to send at most at this rate, in bytes of IP packets. It is the sender that keeps it: [`send`](fn@crate::send)
    /// does, after its list of files. The rate is at least [`RATE_MIN`](anabranch::Config::RATE_MIN).
    #[must_use]
    pub fn ask_rate(self, rate: Rate) -> Self {
        Self { rate_max: Some(rate.max(Config::RATE_MIN)), ..self }
    }

    /// Receives a transfer until the result of every file was reported. It ends any other transfer into the folder that has names
    /// in common, so a sender can retry before the failure of its first connection is noticed here.
    ///
    /// # Errors
    /// If nothing more can be received. Failures of single files are in the summary instead.
    pub async fn receive(&self, connection: &Connection, progress: Arc<Progress>) -> Result<Summary, ReceiveError> {
        let mut reply = connection.open_stream().await?;
        let mut head = BytesMut::new();
        put_rate(self.rate_max, &mut head);
        reply.write_all_bytes(head.freeze()).await?;
        let list = timeout(BEGUN_WITHIN, connection.accept_stream()).await.map_err(|_| ReceiveError::Silent)??;
        let (manifest, _room) = match self.list(list).await {
            Ok(list) => list,
            Err(error @ (ReceiveError::Manifest(_) | ReceiveError::Busy)) => {
                return Err(refuse(connection, reply, error).await);
            }
            Err(error) => return Err(error),
        };
        progress.set_total(manifest.totals());
        let manifest = Arc::new(manifest);
        let Some(over) = self.take_turn(connection, &manifest).await else {
            return Err(refuse(connection, reply, ReceiveError::Taken).await);
        };
        let mut is_over = over.subscribe();
        let received = self.receive_all(connection, &mut reply, manifest, over, progress).await;
        // Writes in progress are completed, so nothing changes in the folder afterwards. The error means that no writer is left.
        while is_over.changed().await.is_ok() {}
        self.active().retain(|active| active.over.has_changed().is_ok());
        match received {
            Err(error @ (ReceiveError::Folder(..) | ReceiveError::Protocol(_))) => {
                Err(refuse(connection, reply, error).await)
            }
            Err(error) => Err(error),
            Ok(summary) => {
                // The sender closes first, after the final result. If it is gone, nothing changes.
                _ = reply.stopped().await;
                let farewell = async {
                    while connection.accept_stream().await.is_ok() {}
                    _ = connection.close().await;
                };
                _ = timeout(FAREWELL, farewell).await;
                Ok(summary)
            }
        }
    }

    /// Reads the list of files. It holds room for twice its size, which is more than what is made of it.
    async fn list(&self, mut stream: RecvStream) -> Result<(Manifest, OwnedSemaphorePermit), ReceiveError> {
        let busy = |_| ReceiveError::Busy;
        let mut bytes: Vec<u8> = vec![];
        let mut room = Arc::clone(&self.room).try_acquire_many_owned(0).map_err(busy)?;
        while let Some(piece) = stream.read_chunk(PIECE).await? {
            let len = bytes.len() + piece.len();
            if len > MANIFEST_MAX {
                return Err(ReceiveError::Manifest(ManifestError::TooMany));
            }
            let needed = (2 * len).div_ceil(KILO).saturating_sub(room.num_permits());
            room.merge(Arc::clone(&self.room).try_acquire_many_owned(needed as u32).map_err(busy)?);
            if len > bytes.capacity() {
                bytes.reserve_exact(piece.len().max(bytes.len() / 4));
            }
            bytes.extend_from_slice(&piece);
        }
        let read = move || Manifest::read(Bytes::from(bytes));
        let manifest = joined(spawn_blocking(read).await)?.map_err(ReceiveError::Manifest)?;
        Ok((manifest, room))
    }

    /// Ends other transfers with names in common, and waits until they have stopped writing. `None` if a stream is among them that another
    /// sender sends: nobody could send it again.
    async fn take_turn(&self, connection: &Connection, manifest: &Manifest) -> Option<Arc<watch::Sender<()>>> {
        // A text needs no name.
        let roots = manifest.entries().filter(|(_, entry)| entry.parent.is_none() && entry.kind != Kind::Text);
        let roots = roots.map(|(_, entry)| (entry.name.folded(), entry.kind == Kind::Stream));
        let roots: BTreeMap<u64, bool> = roots.collect();
        let (over, is_over) = watch::channel(());
        let rivals: Vec<_> = {
            let mut active = self.active();
            let common = |other: &Active| {
                let streams = other.roots.iter().filter_map(|(root, is_stream)| Some(*roots.get(root)? | is_stream));
                streams.reduce(|one, other| one | other)
            };
            let mut rivals = vec![];
            for other in active.iter().filter(|other| other.over.has_changed().is_ok()) {
                let Some(is_stream) = common(other) else { continue };
                if is_stream && other.connection.remote_key() != connection.remote_key() {
                    return None;
                }
                rivals.push((other.connection.clone(), other.over.clone()));
            }
            active.push(Active { roots, connection: connection.clone(), over: is_over });
            rivals
        };
        for (rival, mut is_over) in rivals {
            rival.abort();
            // The error means that the transfer has ended.
            while is_over.changed().await.is_ok() {}
        }
        Some(Arc::new(over))
    }

    /// Receives the files according to the plan.
    async fn receive_all(
        &self,
        connection: &Connection,
        reply: &mut SendStream,
        manifest: Arc<Manifest>,
        holder: Arc<watch::Sender<()>>,
        progress: Arc<Progress>,
    ) -> Result<Summary, ReceiveError> {
        let (folder, existing) = (self.folder.clone(), self.existing);
        let prepare = move || Site::prepare(&folder, existing, manifest, holder);
        let site = Arc::new(joined(spawn_blocking(prepare).await)?.map_err(fatal)?);
        let (wanted, mut summary) = plan(Arc::clone(&site), reply, &progress).await?;
        let links = wanted.without_content(&site.manifest);
        let open = wanted.wants.iter().filter(|want| **want != Want::Nothing).count() - links.len();
        // If the sender does not read results, results wait, and then writing waits, too.
        let (reports, mut told) = mpsc::channel(REPORTS);
        let shared = Arc::new(Shared {
            site: Arc::clone(&site),
            wanted: Mutex::new(wanted),
            open: AtomicUsize::new(open),
            reports,
            progress,
            streamed: AtomicU64::new(0),
        });
        let mut tasks = JoinSet::new();
        let (ready, to_commit) = mpsc::channel(READY);
        tasks.spawn(commit(Arc::clone(&shared), to_commit));
        let (small, queue) = mpsc::channel(SMALL_WAITING);
        let queue = Arc::new(tokio::sync::Mutex::new(queue));
        for _ in 0..WRITERS {
            tasks.spawn(write_small(Arc::clone(&shared), Arc::clone(&queue), ready.clone()));
        }
        // Kept until all streams have been accepted.
        let mut to_write = Some((small, ready));
        let mut out = BytesMut::new();
        let turns = Arc::new(Semaphore::new(DATA_STREAMS_MAX));
        while shared.open() > 0 {
            tokio::select! {
                biased;
                report = told.recv() => match report {
                    Some(first) => {
                        for told in all_there(first, &mut told)? {
                            shared.open.fetch_sub(summary.count(&told, &shared).into(), Ordering::Relaxed);
                            match told {
                                FileResult::Outcome(outcome) => outcome.put(&mut out),
                                FileResult::Text(index, text) => {
                                    Outcome::Done(index).put(&mut out);
                                    summary.texts.push(text);
                                }
                                FileResult::There(_) | FileResult::Kept(_) => {}
                            }
                        }
                        reply.write_all_bytes(out.split().freeze()).await?;
                    }
                    None => return Err(ReceiveError::Protocol(Breach::Unexpected)),
                },
                (stream, turn) = next_stream(connection, &turns), if to_write.is_some() => match (stream, &to_write) {
                    (Ok(stream), Some((small, ready))) => {
                        let received = receive_files(Arc::clone(&shared), stream, small.clone(), ready.clone());
                        tasks.spawn(async move {
                            received.await;
                            drop(turn);
                        });
                    }
                    (Err(StreamError::Lost(lost)), _) => return Err(ReceiveError::Lost(lost)),
                    (Err(StreamError::Closed), _) | (_, None) => to_write = None,
                },
                // All announced files arrive on these streams, or not at all. The writers end after the streams.
                ended = tasks.join_next(), if to_write.is_none() => {
                    if ended.is_none() && told.is_empty() {
                        return Err(ReceiveError::Protocol(Breach::Missing));
                    }
                }
            }
        }
        summary.bytes += shared.streamed.load(Ordering::Relaxed);
        // A file that was there may be one of a process that was killed before its sync.
        let is_durable = links.is_empty() && summary.files_there == 0;
        let failed = std::mem::take(&mut locked(&shared.wanted).failed);
        for told in joined(spawn_blocking(move || close(&site, &links, &failed, is_durable)).await)?? {
            summary.count(&told, &shared);
            if let FileResult::Outcome(outcome) = told {
                outcome.put(&mut out);
            }
        }
        Outcome::Over.put(&mut out);
        reply.write_all_bytes(out.freeze()).await?;
        // A sender that has read that all is over may have stopped reading already.
        _ = reply.finish();
        Ok(summary)
    }

    fn active(&self) -> MutexGuard<'_, Vec<Active>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Accepts a data stream when one of those before it has ended, if there are many: each holds chunks in memory.
async fn next_stream(
    connection: &Connection,
    turns: &Arc<Semaphore>,
) -> (Result<RecvStream, StreamError>, Option<OwnedSemaphorePermit>) {
    let turn = Arc::clone(turns).acquire_owned().await.ok();
    (connection.accept_stream().await, turn)
}

/// A report together with all others that are available, to be sent in one write. A fatal error replaces them all.
fn all_there(first: Report, more: &mut mpsc::Receiver<Report>) -> Result<Vec<FileResult>, ReceiveError> {
    iter::once(first).chain(iter::from_fn(|| more.try_recv().ok())).collect()
}

/// Plans each entry according to what is present, and sends the steps as they come.
async fn plan(
    site: Arc<Site>,
    reply: &mut SendStream,
    progress: &Arc<Progress>,
) -> Result<(Wanted, Summary), ReceiveError> {
    let (pieces, mut planned) = mpsc::channel(PLANNED);
    let progress = Arc::clone(progress);
    let plan = move || {
        let mut planner = Planner::new(&site);
        let (mut wanted, mut out) = (Wanted::default(), BytesMut::new());
        let mut summary = Summary { verified: site.manifest.asks.verifies, ..Summary::default() };
        for (index, entry) in site.manifest.entries() {
            let Planned { step, want, own } = planner.step(index, &wanted.wants).map_err(fatal)?;
            step.put(&mut out);
            wanted.wants.push(want);
            match (step, entry.size()) {
                (Step::From(values) | Step::SendIfDiffers(_, values), _) if !values.is_empty() => {
                    wanted.kept.insert(index, Kept { values, own });
                }
                (Step::Refused(reason), _) => {
                    wanted.failed.insert(index);
                    summary.fail(site.manifest.path(index), reason);
                }
                (Step::Nothing, Some(size)) => {
                    summary.files_there += 1;
                    summary.bytes_there += size;
                    progress.add_there(size);
                    progress.add_file();
                }
                _ => {}
            }
            if out.len() >= PIECE {
                // Without a receiver the transfer has ended.
                pieces.blocking_send(out.split().freeze()).map_err(|_| ReceiveError::Protocol(Breach::Unexpected))?;
            }
        }
        site.sync_folders().map_err(fatal)?;
        pieces.blocking_send(out.freeze()).map_err(|_| ReceiveError::Protocol(Breach::Unexpected))?;
        Ok((wanted, summary))
    };
    let planning = spawn_blocking(plan);
    while let Some(piece) = planned.recv().await {
        reply.write_all_bytes(piece).await?;
    }
    joined(planning.await)?
}

/// Makes the links and further names, and ends the work in the folder. `failed` are files that did not arrive.
fn close(
    site: &Site,
    links: &[(u32, Occupied)],
    failed: &BTreeSet<u32>,
    is_durable: bool,
) -> Result<Vec<FileResult>, ReceiveError> {
    let mut told = vec![];
    for (index, occupied) in links {
        let made = match site.manifest.entry(*index).kind {
            Kind::Name(original) if failed.contains(&original) => {
                Err(Trouble::Entry(format!("{}, whose other name it is, did not arrive", site.manifest.path(original))))
            }
            Kind::Name(original) => site.make_name(*index, original, *occupied),
            _ => site.make_link(*index, *occupied),
        };
        told.push(FileResult::Outcome(match made {
            Ok(()) => Outcome::Done(*index),
            Err(Trouble::Entry(reason)) => Outcome::Failed(*index, reason),
            Err(error) => return Err(fatal(error)),
        }));
    }
    site.close(is_durable).map_err(fatal)?;
    told.extend(site.remarks().into_iter().map(|remark| FileResult::Outcome(Outcome::Remark(remark))));
    Ok(told)
}

impl Wanted {
    /// The symbolic links and further names to make.
    fn without_content(&self, manifest: &Manifest) -> Vec<(u32, Occupied)> {
        let wanted = manifest.entries().zip(&self.wants).filter(|(_, want)| **want != Want::Nothing);
        let links = wanted.filter(|((_, entry), _)| !entry.has_content());
        links.map(|((index, _), want)| (index, want.occupied())).collect()
    }
}

impl Summary {
    /// Counts a result. Returns whether it ends a file.
    fn count(&mut self, told: &FileResult, shared: &Shared) -> bool {
        let manifest = &shared.site.manifest;
        match told {
            FileResult::Outcome(Outcome::Done(index)) => {
                let entry = manifest.entry(*index);
                if entry.has_content() {
                    self.files += 1;
                    self.bytes += entry.size().unwrap_or(0);
                    shared.progress.add_file();
                } else {
                    self.links += 1;
                }
                true
            }
            FileResult::Text(..) => {
                shared.progress.add_file();
                true
            }
            FileResult::Outcome(Outcome::Failed(index, reason)) => {
                locked(&shared.wanted).failed.insert(*index);
                self.fail(manifest.path(*index), reason.clone());
                true
            }
            FileResult::There(index) => {
                let size = manifest.entry(*index).size().unwrap_or(0);
                self.files_there += 1;
                self.bytes_there += size;
                shared.progress.add_there(size);
                shared.progress.add_file();
                true
            }
            FileResult::Kept(bytes) => {
                self.bytes_there += bytes;
                shared.progress.add_there(*bytes);
                false
            }
            FileResult::Outcome(Outcome::Remark(remark)) => {
                self.remarks.push(remark.clone());
                false
            }
            FileResult::Outcome(Outcome::Fatal(_) | Outcome::Over) => false,
        }
    }
}

/// Reports a fatal error to the sender.
async fn refuse(connection: &Connection, mut reply: SendStream, error: ReceiveError) -> ReceiveError {
    let mut out = BytesMut::new();
    put_fatal(&error.to_string(), &mut out);
    let told = async {
        reply.write_all_bytes(out.freeze()).await?;
        reply.finish()
    };
    // If the sender is gone, it cannot be informed.
    if told.await.is_ok() && reply.stopped().await.is_ok() {
        _ = timeout(FAREWELL, connection.close()).await;
    }
    error
}

/// The memory for lists of files of all transfers together, in bytes. One list of the greatest size fits.
const LISTS_MAX: usize = 200_000_000;
const KILO: usize = 1000;

/// Data streams at a time: those of [`send`](fn@crate::send), with a stream and a text.
const DATA_STREAMS_MAX: usize = STREAMS + 2;

/// Bytes of a list or a plan that are read or written at once.
const PIECE: usize = 64 << 10;

/// Pieces of the plan that wait to be sent.
const PLANNED: usize = 4;

/// The number of small files that wait to be written, which is 4 MB.
const SMALL_WAITING: usize = 256;

/// Files that wait for the next sync.
const READY: usize = 4096;

/// Writers of small files. On a network file system each step of a file is a round trip. On a disk, more writers would only wait
/// for the lock of the folder.
const WRITERS: usize = 4;

/// Results that wait to be sent.
const REPORTS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    /// A regression: a fatal report after another one was dropped, and both ends waited for ever.
    #[test]
    fn fatal_report_behind_others_ends_the_transfer() {
        let done = |index| Ok(FileResult::Outcome(Outcome::Done(index)));
        let (reports, mut waiting) = mpsc::channel(9);
        reports.try_send(done(1)).unwrap();
        let all = all_there(done(0), &mut waiting).unwrap();
        assert!(matches!(all[..], [FileResult::Outcome(Outcome::Done(0)), FileResult::Outcome(Outcome::Done(1))]));
        reports.try_send(Err(ReceiveError::Protocol(Breach::Unexpected))).unwrap();
        reports.try_send(done(3)).unwrap();
        assert!(matches!(all_there(done(2), &mut waiting), Err(ReceiveError::Protocol(_))));
    }
}
