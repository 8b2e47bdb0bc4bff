//! The receiving end.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch::{Connection, RecvStream, SendStream, StreamError};
use bytes::BytesMut;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, spawn_blocking};

use crate::Summary;
use crate::error::{Failed, ReceiveError};
use crate::frame::{Frame, Incoming, Outcome, Step, put_fatal};
use crate::hash::{CHUNK, Chunks};
use crate::manifest::{Entry, Kind, MANIFEST_MAX, Manifest};
use crate::part::{Part, PartError, Place};
use crate::progress::Progress;

/// A folder into which others send.
#[derive(Debug)]
pub struct Receiver {
    place: Place,
    active: Mutex<Vec<Active>>,
}

/// What becomes of files that are there already, and are others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// They stay, and what has their name is refused.
    #[default]
    Keep,
    /// What has their name takes their place.
    Overwrite,
}

/// A transfer that is going on.
#[derive(Debug)]
struct Active {
    /// The first parts of its names.
    roots: BTreeSet<String>,
    connection: Connection,
    /// Says when it is over: then nobody holds the other end.
    over: watch::Receiver<()>,
}

/// What all data streams of a transfer share.
struct Shared {
    place: Place,
    entries: Vec<Entry>,
    /// Of each entry what is wanted; nothing once it comes.
    wanted: Mutex<Vec<Option<Chunks>>>,
    outcomes: mpsc::Sender<Report>,
    progress: Arc<Progress>,
}

/// What a data stream has to tell.
enum Report {
    Outcome(Outcome),
    Broken(ReceiveError),
}

impl Receiver {
    /// One for this folder, which is made if it is not there.
    pub fn new(folder: impl Into<PathBuf>, existing: Existing) -> Self {
        Self { place: Place::new(folder.into(), existing), active: Mutex::new(vec![]) }
    }

    /// Receives what the other end of a connection sends, until it has all been said what has become of it. Another transfer into the folder that has
    /// names in common is ended: who sends again after something has gone wrong need not wait until that is noticed here.
    ///
    /// # Errors
    /// If nothing more can be received. That single files do not arrive is no error: the summary has them.
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
        let place = self.place.clone().held_by(self.take_turn(connection, &manifest).await);
        let received = receive_all(place, connection, &mut reply, manifest, progress).await;
        self.active().retain(|active| active.over.has_changed().is_ok());
        match received {
            Err(error @ (ReceiveError::Folder(..) | ReceiveError::Protocol)) => {
                Err(refuse(connection, reply, error).await)
            }
            Err(error) => Err(error),
            Ok(summary) => {
                // The sender closes first, when it has heard that all is over. If it is gone by now, that changes nothing.
                while connection.accept_stream().await.is_ok() {}
                _ = connection.close().await;
                Ok(summary)
            }
        }
    }

    /// Ends other transfers that have names in common, and waits until nothing of them is written any more.
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
            // An error says that it is over.
            while is_over.changed().await.is_ok() {}
        }
        Arc::new(over)
    }

    fn active(&self) -> MutexGuard<'_, Vec<Active>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Receives, after what is there has been looked at.
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
            // A plan of ours has no end before its end.
            (_, Kind::Folder) | (Step::Fatal(_), _) => None,
        });
    }
    progress.add_there(summary.bytes_there);
    let mut open = wanted.iter().flatten().count();
    // Results wait for the sender to read them, and then writing waits, too.
    let (outcomes, mut reports) = mpsc::channel(REPORTS);
    let shared = Arc::new(Shared { place: place.clone(), entries, wanted: Mutex::new(wanted), outcomes, progress });
    let (mut streams, mut have_all_come) = (JoinSet::new(), false);
    reply.write_all_bytes(out.split().freeze()).await?;
    while open > 0 {
        tokio::select! {
            biased;
            report = reports.recv() => match report {
                Some(Report::Outcome(outcome)) => {
                    open -= 1;
                    summary.count(&outcome, &shared.entries);
                    outcome.put(&mut out);
                    // What is there is sent together.
                    while let Ok(Report::Outcome(outcome)) = reports.try_recv() {
                        open -= 1;
                        summary.count(&outcome, &shared.entries);
                        outcome.put(&mut out);
                    }
                    reply.write_all_bytes(out.split().freeze()).await?;
                }
                Some(Report::Broken(error)) => return Err(error),
                None => return Err(ReceiveError::Protocol),
            },
            stream = connection.accept_stream(), if !have_all_come => match stream {
                Ok(stream) => drop(streams.spawn(receive_files(Arc::clone(&shared), stream))),
                Err(StreamError::Lost(lost)) => return Err(ReceiveError::Lost(lost)),
                Err(StreamError::Closed) => have_all_come = true,
            },
            // What is open comes on these streams, or not at all.
            ended = streams.join_next(), if have_all_come => {
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

/// Looks what is there of all entries.
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

/// Tells the sender why nothing more is taken.
async fn refuse(connection: &Connection, mut reply: SendStream, error: ReceiveError) -> ReceiveError {
    let mut out = BytesMut::new();
    put_fatal(&error.to_string(), &mut out);
    let told = async {
        reply.write_all_bytes(out.freeze()).await?;
        reply.finish()
    };
    // A sender that is gone need not know.
    if told.await.is_ok() {
        _ = connection.close().await;
    }
    error
}

/// Receives the files of a data stream, one after the other.
async fn receive_files(shared: Arc<Shared>, stream: RecvStream) {
    let mut stream = Incoming::new(stream);
    loop {
        let report = match receive_file(&shared, &mut stream).await {
            Ok(Some(outcome)) => Report::Outcome(outcome),
            Ok(None) => return,
            Err(error) => Report::Broken(error),
        };
        let is_broken = matches!(report, Report::Broken(_));
        // If nobody listens the transfer is over.
        if shared.outcomes.send(report).await.is_err() || is_broken {
            return;
        }
    }
}

async fn receive_file(shared: &Shared, stream: &mut Incoming) -> Result<Option<Outcome>, ReceiveError> {
    let Some((index, from)) = stream.file().await? else { return Ok(None) };
    let wanted =
        shared.wanted.lock().unwrap_or_else(PoisonError::into_inner).get_mut(index as usize).and_then(Option::take);
    let kept = wanted.filter(|kept| kept.0.len() as u64 * CHUNK == from).ok_or(ReceiveError::Protocol)?;
    let entry = &shared.entries[index as usize];
    let size = entry.size().ok_or(ReceiveError::Protocol)?;
    // Small files are written at once; what follows a chunk is read while that is written.
    let mut part = None;
    let mut writing: Option<tokio::task::JoinHandle<Result<Part, PartError>>> = None;
    let mut kept = Some(kept);
    let mut arrived = from;
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
                return match joined(spawn_blocking(finish).await)? {
                    Ok(()) => {
                        shared.progress.add_file();
                        Ok(Some(Outcome::Done(index)))
                    }
                    Err(PartError::Refused(reason)) => Ok(Some(Outcome::Failed(index, reason))),
                    Err(error) => Err(fatal(error)),
                };
            }
            Frame::Failed(reason) => {
                drop(begun);
                joined(spawn_blocking(move || place.discard(&entry)).await)?;
                return Ok(Some(Outcome::Failed(index, reason)));
            }
        }
    }
}

fn joined<T>(result: Result<T, tokio::task::JoinError>) -> Result<T, ReceiveError> {
    result.map_err(|_| ReceiveError::Protocol)
}

/// What cannot be written now will hardly be written for the next file.
fn fatal(error: PartError) -> ReceiveError {
    match error {
        PartError::Io(path, error) => ReceiveError::Folder(path, error),
        PartError::Refused(reason) => ReceiveError::Folder(PathBuf::new(), std::io::Error::other(reason)),
    }
}

/// Results that wait to be sent.
const REPORTS: usize = 256;
