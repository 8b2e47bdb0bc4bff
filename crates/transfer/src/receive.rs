//! The receiving end of a transfer.

use std::collections::BTreeSet;
use std::iter;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch::{Connection, RecvStream, SendStream, StreamError};
use bytes::BytesMut;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use crate::error::{Failed, ReceiveError};
use crate::frame::{Frame, Incoming, Outcome, SMALL, Step, put_fatal};
use crate::hash::{CHUNK, Chunks};
use crate::manifest::{Entry, Kind, MANIFEST_MAX, Manifest};
use crate::part::{Existing, Part, PartError, Place};
use crate::progress::Progress;
use crate::{FAREWELL, Summary};

/// A folder that receives transfers.
#[derive(Debug)]
pub struct Receiver {
    place: Place,
    active: Mutex<Vec<Active>>,
}

/// A running transfer.
#[derive(Debug)]
struct Active {
    /// The first parts of its file names.
    roots: BTreeSet<String>,
    connection: Connection,
    /// Closes when the transfer has ended.
    over: watch::Receiver<()>,
}

/// The state shared by the data streams of a transfer.
struct Shared {
    place: Place,
    entries: Vec<Entry>,
    /// For each wanted entry the chunks that are present; `None` once the entry arrives.
    wanted: Mutex<Vec<Option<Chunks>>>,
    outcomes: mpsc::Sender<Report>,
    progress: Arc<Progress>,
}

/// A report of a data stream: the result of a file, or a fatal error.
type Report = Result<Outcome, ReceiveError>;

/// What a data stream delivered.
enum Arrived {
    /// The end of the stream.
    Nothing,
    Small(Small),
    /// A large file was written, or a file was not sent.
    Done(Outcome),
}

/// A small file to be written.
struct Small {
    index: u32,
    bytes: Vec<u8>,
    hash: [u8; 32],
}

impl Receiver {
    /// A receiver for this folder, which is created if necessary.
    pub fn new(folder: impl Into<PathBuf>, existing: Existing) -> Self {
        Self { place: Place::new(folder.into(), existing), active: Mutex::new(vec![]) }
    }

    /// Receives a transfer until the result of every file was reported. It ends any other transfer into the folder that has names
    /// in common, so a sender can retry before the failure of its first connection is noticed here.
    ///
    /// # Errors
    /// If nothing more can be received. Failures of single files are in the summary instead.
    pub async fn receive(&self, connection: &Connection, progress: Arc<Progress>) -> Result<Summary, ReceiveError> {
        let list = connection.accept_stream().await?.read_to_end(MANIFEST_MAX).await;
        let mut reply = connection.open_stream().await?;
        let manifest = match Manifest::read(list?) {
            Ok(manifest) => manifest,
            Err(error) => {
                return Err(refuse(connection, reply, ReceiveError::Manifest(error)).await);
            }
        };
        progress.set_total(manifest.totals());
        let over = self.take_turn(connection, &manifest).await;
        let mut is_over = over.subscribe();
        let place = self.place.clone().held_by(over);
        let received = receive_all(place, connection, &mut reply, manifest, progress).await;
        // Writes in progress are completed, so nothing changes in the folder afterwards. The error means that no writer is left.
        while is_over.changed().await.is_ok() {}
        self.active().retain(|active| active.over.has_changed().is_ok());
        match received {
            Err(error @ (ReceiveError::Folder(..) | ReceiveError::Protocol)) => {
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

    /// Ends other transfers with names in common, and waits until they have stopped writing.
    async fn take_turn(&self, connection: &Connection, manifest: &Manifest) -> Arc<watch::Sender<()>> {
        let roots: BTreeSet<String> = manifest.entries.iter().map(|entry| entry.name.parts()[0].clone()).collect();
        let (over, is_over) = watch::channel(());
        let rivals: Vec<_> = {
            let mut active = self.active();
            let rivals = active.iter().filter(|other| !other.roots.is_disjoint(&roots));
            let rivals: Vec<_> = rivals.map(|other| (other.connection.clone(), other.over.clone())).collect();
            active.push(Active { roots, connection: connection.clone(), over: is_over });
            rivals
        };
        for (rival, mut is_over) in rivals {
            rival.abort();
            // The error means that the transfer has ended.
            while is_over.changed().await.is_ok() {}
        }
        Arc::new(over)
    }

    fn active(&self) -> MutexGuard<'_, Vec<Active>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Receives the files according to the plan.
async fn receive_all(
    place: Place,
    connection: &Connection,
    reply: &mut SendStream,
    manifest: Manifest,
    progress: Arc<Progress>,
) -> Result<Summary, ReceiveError> {
    let mut summary = Summary::default();
    let (entries, steps) = plan(place.clone(), manifest).await?;
    let mut out = BytesMut::new();
    steps.iter().for_each(|step| step.put(&mut out));
    let mut wanted = vec![];
    for (entry, step) in entries.iter().zip(steps) {
        wanted.push(match (step, entry.kind) {
            (Step::All, Kind::File { .. }) => Some(Chunks::default()),
            (Step::From(chunks), Kind::File { .. }) => {
                summary.bytes_there += chunks.0.len() as u64 * CHUNK;
                Some(chunks)
            }
            (Step::Nothing, Kind::File { size }) => {
                summary.files_there += 1;
                summary.bytes_there += size;
                progress.add_file();
                None
            }
            (Step::Refused(reason), _) => {
                summary.failed.push(Failed { name: entry.name.to_string(), reason });
                None
            }
            // A plan of our own has no fatal step.
            (_, Kind::Folder) | (Step::Fatal(_), _) => None,
        });
    }
    progress.add_there(summary.bytes_there);
    let mut open = wanted.iter().flatten().count();
    // If the sender does not read results, results wait, and then writing waits, too.
    let (outcomes, mut reports) = mpsc::channel(REPORTS);
    let shared = Arc::new(Shared { place: place.clone(), entries, wanted: Mutex::new(wanted), outcomes, progress });
    let mut streams = JoinSet::new();
    let (small, queue) = mpsc::channel(SMALL_WAITING);
    let queue = Arc::new(tokio::sync::Mutex::new(queue));
    (0..WRITERS).for_each(|_| drop(streams.spawn(write_small(Arc::clone(&shared), Arc::clone(&queue)))));
    // Kept until all streams have been accepted.
    let mut small = Some(small);
    reply.write_all_bytes(out.split().freeze()).await?;
    while open > 0 {
        tokio::select! {
            biased;
            report = reports.recv() => match report {
                Some(first) => {
                    for outcome in all_there(first, &mut reports)? {
                        open -= 1;
                        summary.count(&outcome, &shared.entries);
                        outcome.put(&mut out);
                    }
                    reply.write_all_bytes(out.split().freeze()).await?;
                }
                None => return Err(ReceiveError::Protocol),
            },
            stream = connection.accept_stream(), if small.is_some() => match (stream, &small) {
                (Ok(stream), Some(small)) => drop(streams.spawn(receive_files(Arc::clone(&shared), stream, small.clone()))),
                (Err(StreamError::Lost(lost)), _) => return Err(ReceiveError::Lost(lost)),
                (Err(StreamError::Closed), _) | (_, None) => small = None,
            },
            // All announced files arrive on these streams, or not at all. The writers of small files end after the streams.
            ended = streams.join_next(), if small.is_none() => {
                if ended.is_none() && reports.is_empty() {
                    return Err(ReceiveError::Protocol);
                }
            }
        }
    }
    let folders = Arc::clone(&shared);
    let close = move || place.close(folders.entries.iter().filter(|entry| entry.kind == Kind::Folder));
    spawn_blocking(close).await.map_err(|_| ReceiveError::Protocol)?;
    Outcome::Over.put(&mut out);
    reply.write_all_bytes(out.freeze()).await?;
    reply.finish()?;
    Ok(summary)
}

/// A report together with all others that are available, to be sent in one write. A fatal error replaces them all.
fn all_there(first: Report, more: &mut mpsc::Receiver<Report>) -> Result<Vec<Outcome>, ReceiveError> {
    iter::once(first).chain(iter::from_fn(|| more.try_recv().ok())).collect()
}

/// Plans each entry according to what is present.
async fn plan(place: Place, manifest: Manifest) -> Result<(Vec<Entry>, Vec<Step>), ReceiveError> {
    let plan = move || {
        let steps = place.prepare().and_then(|()| manifest.entries.iter().map(|entry| place.step(entry)).collect());
        match steps {
            Ok(steps) => Ok((manifest.entries, steps)),
            Err(error) => Err(fatal(error)),
        }
    };
    spawn_blocking(plan).await.map_err(|_| ReceiveError::Protocol)?
}

impl Summary {
    fn count(&mut self, outcome: &Outcome, entries: &[Entry]) {
        match outcome {
            Outcome::Done(index) => {
                self.files += 1;
                self.bytes += entries[*index as usize].size().unwrap_or(0);
            }
            Outcome::Failed(index, reason) => {
                let name = entries[*index as usize].name.to_string();
                self.failed.push(Failed { name, reason: reason.clone() });
            }
            Outcome::Fatal(_) | Outcome::Over => {}
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

/// Receives the files of a data stream, one after the other.
async fn receive_files(shared: Arc<Shared>, stream: RecvStream, small: mpsc::Sender<Small>) {
    let mut stream = Incoming::new(stream);
    loop {
        let done = match receive_file(&shared, &mut stream).await {
            Ok(Arrived::Nothing) => return,
            Ok(Arrived::Small(file)) => match small.send(file).await {
                Ok(()) => continue,
                Err(_) => return,
            },
            Ok(Arrived::Done(outcome)) => Ok(outcome),
            Err(error) => Err(error),
        };
        if shared.report(done).await.is_err() {
            return;
        }
    }
}

async fn receive_file(shared: &Shared, stream: &mut Incoming) -> Result<Arrived, ReceiveError> {
    let Some((index, from)) = stream.file().await? else { return Ok(Arrived::Nothing) };
    let wanted =
        shared.wanted.lock().unwrap_or_else(PoisonError::into_inner).get_mut(index as usize).and_then(Option::take);
    let kept = wanted.filter(|kept| kept.0.len() as u64 * CHUNK == from).ok_or(ReceiveError::Protocol)?;
    let size = shared.entries[index as usize].size().ok_or(ReceiveError::Protocol)?;
    if size <= SMALL {
        receive_small(shared, stream, index, size).await
    } else {
        receive_large(shared, stream, index, size, kept).await.map(Arrived::Done)
    }
}

/// Receives a small file, and queues it for a writer.
async fn receive_small(shared: &Shared, stream: &mut Incoming, index: u32, size: u64) -> Result<Arrived, ReceiveError> {
    let mut bytes = vec![];
    loop {
        match stream.frame().await?.ok_or(ReceiveError::Protocol)? {
            Frame::Chunk(chunk) => {
                if !bytes.is_empty() || chunk.len() as u64 != size {
                    return Err(ReceiveError::Protocol);
                }
                shared.progress.add_bytes(size);
                bytes = chunk;
            }
            Frame::End(hash) => return Ok(Arrived::Small(Small { index, bytes, hash })),
            Frame::Failed(reason) => return not_sent(shared, index, reason).await.map(Arrived::Done),
        }
    }
}

async fn receive_large(
    shared: &Shared,
    stream: &mut Incoming,
    index: u32,
    size: u64,
    kept: Chunks,
) -> Result<Outcome, ReceiveError> {
    let entry = &shared.entries[index as usize];
    // The next chunk is read while the previous one is written.
    let mut part = None;
    let mut writing: Option<tokio::task::JoinHandle<Result<Part, PartError>>> = None;
    let mut arrived = kept.0.len() as u64 * CHUNK;
    let mut kept = Some(kept);
    loop {
        let frame = stream.frame().await?.ok_or(ReceiveError::Protocol)?;
        if let Some(writing) = writing.take() {
            part = Some(joined(writing.await)?.map_err(fatal)?);
        }
        let (place, entry) = (shared.place.clone(), entry.clone());
        let mut begun = part.take();
        let begin = kept.take();
        let open = move |begun: &mut Option<Part>, place: &Place, entry: &Entry| match (begun.take(), begin) {
            (Some(part), _) => Ok(part),
            (None, kept) => place.open(entry, size, kept.unwrap_or_default()),
        };
        match frame {
            Frame::Chunk(bytes) => {
                let len = bytes.len() as u64;
                let is_last = arrived + len == size;
                if arrived + len > size || len != CHUNK && !is_last {
                    return Err(ReceiveError::Protocol);
                }
                arrived += len;
                shared.progress.add_bytes(len);
                writing = Some(spawn_blocking(move || {
                    let mut part = open(&mut begun, &place, &entry)?;
                    part.write(&bytes)?;
                    Ok(part)
                }));
            }
            Frame::End(hash) => {
                let finish = move || {
                    let part = open(&mut begun, &place, &entry)?;
                    debug_assert!(part.written() <= size);
                    place.finish(&entry, part, &hash)
                };
                let finished = joined(spawn_blocking(finish).await)?;
                return outcome(shared, index, finished);
            }
            Frame::Failed(reason) => {
                drop(begun);
                return not_sent(shared, index, reason).await;
            }
        }
    }
}

/// The sender reports that it cannot send a file.
async fn not_sent(shared: &Shared, index: u32, reason: String) -> Result<Outcome, ReceiveError> {
    let (place, entry) = (shared.place.clone(), shared.entries[index as usize].clone());
    joined(spawn_blocking(move || place.discard(&entry)).await)?;
    Ok(Outcome::Failed(index, reason))
}

/// The result of a file that was received completely.
fn outcome(shared: &Shared, index: u32, finished: Result<(), PartError>) -> Result<Outcome, ReceiveError> {
    match finished {
        Ok(()) => {
            shared.progress.add_file();
            Ok(Outcome::Done(index))
        }
        Err(PartError::Refused(reason)) => Ok(Outcome::Failed(index, reason)),
        Err(error) => Err(fatal(error)),
    }
}

/// Writes small files as long as data streams deliver some: all waiting files at once.
async fn write_small(shared: Arc<Shared>, queue: Arc<tokio::sync::Mutex<mpsc::Receiver<Small>>>) {
    loop {
        let mut batch = vec![];
        if queue.lock().await.recv_many(&mut batch, BATCH).await == 0 {
            return;
        }
        let writer = Arc::clone(&shared);
        let write = move || batch.into_iter().map(|small| writer.write(&small)).collect::<Vec<_>>();
        let reports = match joined(spawn_blocking(write).await) {
            Ok(reports) => reports,
            Err(error) => vec![Err(error)],
        };
        for report in reports {
            // Without a receiver of reports the transfer has ended.
            if shared.report(report).await.is_err() {
                return;
            }
        }
    }
}

impl Shared {
    /// Writes a complete small file.
    fn write(&self, Small { index, bytes, hash }: &Small) -> Result<Outcome, ReceiveError> {
        let entry = &self.entries[*index as usize];
        let write = || {
            let mut part = self.place.open(entry, bytes.len() as u64, Chunks::default())?;
            if !bytes.is_empty() {
                part.write(bytes)?;
            }
            self.place.finish(entry, part, hash)
        };
        outcome(self, *index, write())
    }

    /// Sends a report. The error means that no more reports are wanted.
    async fn report(&self, report: Report) -> Result<(), ()> {
        let is_broken = report.is_err();
        match self.outcomes.send(report).await {
            Ok(()) if !is_broken => Ok(()),
            _ => Err(()),
        }
    }
}

fn joined<T>(result: Result<T, tokio::task::JoinError>) -> Result<T, ReceiveError> {
    result.map_err(|_| ReceiveError::Protocol)
}

/// After an I/O error the next file would hardly succeed.
fn fatal(error: PartError) -> ReceiveError {
    match error {
        PartError::Io(path, error) => ReceiveError::Folder(path, error),
        PartError::Refused(reason) => ReceiveError::Folder(PathBuf::new(), std::io::Error::other(reason)),
    }
}

/// The number of small files that wait to be written, which is 4 MB; and the number written at once, a megabyte per writer.
const SMALL_WAITING: usize = 256;
const BATCH: usize = 64;

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
    fn that_nothing_more_can_be_received_is_heard_behind_other_reports() {
        let (reports, mut waiting) = mpsc::channel(9);
        reports.try_send(Ok(Outcome::Done(1))).unwrap();
        assert!(matches!(
            all_there(Ok(Outcome::Done(0)), &mut waiting).as_deref(),
            Ok([Outcome::Done(0), Outcome::Done(1)])
        ));
        reports.try_send(Err(ReceiveError::Protocol)).unwrap();
        reports.try_send(Ok(Outcome::Done(3))).unwrap();
        assert!(matches!(all_there(Ok(Outcome::Done(2)), &mut waiting), Err(ReceiveError::Protocol)));
    }
}
