//! The sending end of a transfer.

use std::collections::BTreeSet;
use std::io::Read;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use anabranch::units::Rate;
use anabranch::{Connection, SendStream, WriteError};
use bytes::{Bytes, BytesMut};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use crate::error::{Breach, SendError};
use crate::frame::{Frame, Incoming, Outcome, SMALL, Step, put_chunk, put_file, put_frame, write_chunk, write_piece};
use crate::hash::CHUNK;
use crate::manifest::Kind;
use crate::progress::Progress;
use crate::reader::{Piece, Reader, Source, There, ZEROS_AT_ONCE};
use crate::scan::Parcel;
use crate::site::locked;
use crate::{BEGUN_WITHIN, FAREWELL, Summary};

/// Data streams of a transfer. So many files are in flight at a time.
pub const STREAMS: usize = 16;

/// Sends files and folders to a [`crate::Receiver`], and waits for the result of each. If the receiver asks for a rate, it becomes the
/// connection's limit, unless that is lower. Afterwards it closes the connection, and
/// waits at most two seconds for the receiver's close.
///
/// # Errors
/// If nothing more can be sent. Failures of single files are in the summary instead.
pub async fn send(connection: &Connection, parcel: Arc<Parcel>, progress: Arc<Progress>) -> Result<Summary, SendError> {
    let sent = send_all(connection, parcel, progress).await;
    if !matches!(sent, Err(SendError::Lost(_))) {
        // The result is known. The receiver closes after this end has.
        let farewell = async {
            connection.close().await?;
            connection.closed().await
        };
        _ = timeout(FAREWELL, farewell).await;
    }
    sent
}

async fn send_all(connection: &Connection, parcel: Arc<Parcel>, progress: Arc<Progress>) -> Result<Summary, SendError> {
    progress.set_total(parcel.manifest.totals());
    let mut summary = parcel.summary.clone();
    let mut stream = connection.open_stream().await?;
    // If the receiver refuses the manifest, it stops that stream and gives the reason in its reply.
    let sent = async {
        stream.write_all_bytes(parcel.manifest.encoded()).await?;
        stream.finish()
    };
    if let Err(WriteError::Lost(lost)) = sent.await {
        return Err(SendError::Lost(lost));
    }
    let begun = async {
        let mut reply = Incoming::new(connection.accept_stream().await?);
        let rate = reply.rate().await?;
        Ok::<_, SendError>((reply, rate))
    };
    // A receiver says this before it reads the list.
    let (mut reply, rate) = timeout(BEGUN_WITHIN, begun).await.map_err(|_| SendError::Silent)??;
    keep_rate(connection, rate)?;
    let (files, streams) = plan(&parcel, &mut reply, &mut summary, &progress).await?;
    let todo = Arc::new(Todo {
        parcel,
        files,
        next: AtomicUsize::new(0),
        given_up: Mutex::default(),
        files_there: AtomicU64::new(0),
        bytes_there: AtomicU64::new(0),
        streamed: AtomicU64::new(0),
        progress,
    });
    let mut workers = JoinSet::new();
    for &index in &streams {
        workers.spawn(send_stream(connection.clone(), Arc::clone(&todo), index));
    }
    for _ in 0..STREAMS.min(todo.files.len()) {
        workers.spawn(work(connection.clone(), Arc::clone(&todo)));
    }
    let manifest = &todo.parcel.manifest;
    // Files and streams without a result.
    let mut open: BTreeSet<u32> = todo.files.iter().map(|wanted| wanted.index).chain(streams).collect();
    loop {
        match reply.outcome().await?.ok_or(SendError::Protocol(Breach::Ended))? {
            Outcome::Done(index) => {
                let entry = manifest.find(index).ok_or(SendError::Protocol(Breach::Unexpected))?;
                if manifest.asks.verifies || entry.has_content() && !open.remove(&index) {
                    return Err(SendError::Protocol(Breach::Unexpected));
                }
                match entry.kind {
                    Kind::Text => summary.texts_sent += 1,
                    Kind::File { .. } | Kind::Stream => summary.files += 1,
                    Kind::Folder | Kind::Link(_) | Kind::Name(_) => summary.links += 1,
                }
                if entry.has_content() {
                    summary.bytes += entry.size().unwrap_or(0);
                    todo.progress.add_file();
                }
            }
            Outcome::Failed(index, reason) => {
                manifest.find(index).ok_or(SendError::Protocol(Breach::Unexpected))?;
                open.remove(&index);
                locked(&todo.given_up).insert(index);
                summary.fail(manifest.path(index), reason);
            }
            Outcome::Remark(remark) if summary.remarks.len() < REMARKS_MAX => summary.remarks.push(remark),
            Outcome::Remark(_) => {}
            Outcome::Fatal(reason) => return Err(SendError::Receiver(reason)),
            Outcome::Over => break,
        }
    }
    // Of the others this end has said itself that they are there.
    if open.len() as u64 != todo.files_there.load(Ordering::Relaxed) {
        return Err(SendError::Protocol(Breach::Unexpected));
    }
    // The workers are done; their streams end with the connection.
    workers.shutdown().await;
    summary.files_there += todo.files_there.load(Ordering::Relaxed);
    summary.bytes_there += todo.bytes_there.load(Ordering::Relaxed);
    summary.bytes += todo.streamed.load(Ordering::Relaxed);
    Ok(summary)
}

/// A task that has not been completed.
fn fault(error: tokio::task::JoinError) -> SendError {
    SendError::Fault(error.to_string())
}

/// Sends no faster than the receiver asks, nor than this end's own limit.
fn keep_rate(connection: &Connection, asked: Option<Rate>) -> Result<(), SendError> {
    let Some(asked) = asked else { return Ok(()) };
    let least = connection.rate_max().map_or(asked, |own| own.min(asked));
    connection.set_rate_max(Some(least)).map_err(|_| SendError::Protocol(Breach::Unexpected))
}

/// The files to send.
struct Todo {
    parcel: Arc<Parcel>,
    files: Vec<Wanted>,
    /// The first file that no worker has begun.
    next: AtomicUsize,
    /// Files that the receiver does not want any more.
    given_up: Mutex<BTreeSet<u32>>,
    /// Files and bytes of which the comparison has shown that the receiver has them.
    files_there: AtomicU64,
    bytes_there: AtomicU64,
    /// Bytes of streams that were sent to their end.
    streamed: AtomicU64,
    progress: Arc<Progress>,
}

/// A file that the receiver wants.
struct Wanted {
    index: u32,
    size: u64,
    there: There,
}

/// Reads the receiver's plan: the files and the streams that it wants.
async fn plan(
    parcel: &Parcel,
    reply: &mut Incoming,
    summary: &mut Summary,
    progress: &Progress,
) -> Result<(Vec<Wanted>, Vec<u32>), SendError> {
    let (mut wanted, mut streams) = (vec![], vec![]);
    for (index, entry) in parcel.manifest.entries() {
        let step = reply.step(entry.size()).await?.ok_or(SendError::Protocol(Breach::Unexpected))?;
        // A receiver that was asked to compare neither gets content nor is believed without a hash.
        let compares = match step {
            Step::SayIfDiffers(_) | Step::Refused(_) | Step::Fatal(_) => true,
            Step::Nothing => !entry.has_content() || entry.size() == Some(0),
            Step::All | Step::From(_) | Step::SendIfDiffers(..) | Step::SendIfBegins(..) => false,
        };
        if parcel.manifest.asks.verifies && !compares {
            return Err(SendError::Protocol(Breach::Unexpected));
        }
        let there = match step {
            Step::All => There::Nothing,
            Step::From(kept) => There::Chunks(kept),
            Step::SendIfDiffers(hash, kept) => There::File(hash, kept),
            Step::SayIfDiffers(hash) => There::FileThatStays(hash),
            Step::SendIfBegins(size, hash) => There::Begin(size, hash),
            Step::Nothing => {
                if let Some(size) = entry.size() {
                    summary.files_there += 1;
                    summary.bytes_there += size;
                    progress.add_there(size);
                    progress.add_file();
                }
                continue;
            }
            Step::Refused(reason) => {
                summary.fail(parcel.manifest.path(index), reason);
                continue;
            }
            Step::Fatal(reason) => return Err(SendError::Receiver(reason)),
        };
        match entry.size() {
            Some(size) => wanted.push(Wanted { index, size, there }),
            None if entry.has_content() => streams.push(index),
            None => {}
        }
    }
    Ok((wanted, streams))
}

impl Todo {
    /// Claims the next files: one large file, or several small ones. Empty if none is left.
    fn claim(&self) -> Range<usize> {
        let end = |begin: usize| {
            let rest = self.files.get(begin..).unwrap_or_default();
            let small = rest.iter().take(READ_AT_ONCE).take_while(|wanted| wanted.size <= SMALL).count();
            begin + small.max(1).min(rest.len())
        };
        let mut begin = self.next.load(Ordering::Relaxed);
        loop {
            let end = end(begin);
            match self.next.compare_exchange_weak(begin, end, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return begin..end,
                Err(other) => begin = other,
            }
        }
    }

    fn reader(&self, wanted: &Wanted) -> Reader {
        let entry = self.parcel.manifest.entry(wanted.index);
        let (path, is_named) = self.parcel.path(wanted.index);
        let is_sparse = matches!(entry.kind, Kind::File { is_sparse: true, .. });
        let source = Source { path, is_named, size: wanted.size, modified: entry.modified, is_sparse };
        Reader::new(source, wanted.there.clone())
    }

    /// Appends a small file.
    fn put(&self, wanted: &Wanted, out: &mut BytesMut) {
        put_file(wanted.index, out);
        let mut reader = self.reader(wanted);
        let end = match reader.compare() {
            Ok(None) => loop {
                match reader.read() {
                    Ok(Some(Piece::Data(bytes))) => {
                        put_chunk(&bytes, out);
                        self.progress.add_bytes(bytes.len() as u64);
                    }
                    // A small file has no hole, and no incomplete chunk is kept of it.
                    Ok(Some(Piece::Kept | Piece::Zeros)) => break Frame::Failed("it cannot be sent".into()),
                    Ok(None) => break reader.hash().map_or_else(Frame::Failed, Frame::End),
                    Err(reason) => break Frame::Failed(reason),
                }
            },
            Ok(Some(frame)) => frame,
            Err(reason) => Frame::Failed(reason),
        };
        self.put_end(wanted, &end, out);
    }

    /// Appends the last frame of a file.
    fn put_end(&self, wanted: &Wanted, end: &Frame, out: &mut BytesMut) {
        if *end == Frame::Same {
            self.files_there.fetch_add(1, Ordering::Relaxed);
            self.add_there(wanted.size);
            self.progress.add_file();
        }
        put_frame(end, out);
    }

    fn add_there(&self, bytes: u64) {
        self.bytes_there.fetch_add(bytes, Ordering::Relaxed);
        self.progress.add_there(bytes);
    }
}

/// Sends files on a stream until none is left. After an error the stream ends, and the receiver reports the reason.
async fn work(connection: Connection, todo: Arc<Todo>) -> Result<(), SendError> {
    let mut stream = connection.open_stream().await?;
    let mut out = BytesMut::new();
    loop {
        let claimed = todo.claim();
        match &todo.files[claimed.clone()] {
            [] => break,
            [large] if large.size > SMALL => send_large(&todo, large, &mut stream, &mut out).await?,
            _ => {
                let todo = Arc::clone(&todo);
                let read = move || {
                    todo.files[claimed].iter().for_each(|wanted| todo.put(wanted, &mut out));
                    out
                };
                out = spawn_blocking(read).await.map_err(fault)?;
            }
        }
        // Small files are gathered, so that they fill segments.
        if out.len() >= GATHERED {
            stream.write_all_bytes(out.split().freeze()).await?;
        }
    }
    stream.write_all_bytes(out.freeze()).await?;
    stream.finish()?;
    Ok(())
}

/// Sends a large file chunk by chunk. Its end is gathered with what follows.
async fn send_large(
    todo: &Todo,
    wanted: &Wanted,
    stream: &mut SendStream,
    out: &mut BytesMut,
) -> Result<(), SendError> {
    put_file(wanted.index, out);
    let mut reader = todo.reader(wanted);
    let compared = spawn_blocking(|| {
        let end = reader.compare();
        (reader, end)
    });
    let (reader, compared) = compared.await.map_err(fault)?;
    match compared {
        Ok(None) => {}
        Ok(Some(frame)) => {
            todo.put_end(wanted, &frame, out);
            return Ok(());
        }
        Err(reason) => {
            todo.put_end(wanted, &Frame::Failed(reason), out);
            return Ok(());
        }
    }
    let mut reading = spawn_blocking(|| reader.next());
    // Chunks that are not sent, and are told together.
    let (mut kept, mut zeros) = (0, 0);
    let end = loop {
        let (reader, piece) = reading.await.map_err(fault)?;
        if locked(&todo.given_up).contains(&wanted.index) {
            break Frame::Failed("the receiver has given it up".into());
        }
        let is_kept = matches!(piece, Ok(Some(Piece::Kept)));
        let is_zeros = matches!(piece, Ok(Some(Piece::Zeros)));
        if kept > 0 && (!is_kept || kept == u32::MAX) {
            put_frame(&Frame::Kept(std::mem::take(&mut kept)), out);
        }
        if zeros > 0 && (!is_zeros || zeros >= ZEROS_AT_ONCE) {
            put_frame(&Frame::Zeros(std::mem::take(&mut zeros)), out);
            stream.write_all_bytes(out.split().freeze()).await?;
        }
        let len = reader.len_before();
        match piece {
            Ok(None) => break reader.hash().map_or_else(Frame::Failed, Frame::End),
            Err(reason) => break Frame::Failed(reason),
            Ok(Some(piece)) => {
                // The next chunk is read while this one is sent.
                reading = spawn_blocking(|| reader.next());
                match piece {
                    Piece::Data(chunk) => {
                        write_chunk(stream, out, chunk).await?;
                        todo.progress.add_bytes(len);
                    }
                    Piece::Kept => {
                        kept += 1;
                        todo.add_there(len);
                    }
                    Piece::Zeros => {
                        zeros += 1;
                        todo.progress.add_bytes(len);
                    }
                }
            }
        }
    };
    todo.put_end(wanted, &end, out);
    Ok(())
}

/// Sends what can be read, as it comes, on a stream of its own.
async fn send_stream(connection: Connection, todo: Arc<Todo>, index: u32) -> Result<(), SendError> {
    let mut stream = connection.open_stream().await?;
    let mut out = BytesMut::new();
    put_file(index, &mut out);
    let end = match todo.parcel.input(index) {
        None => Frame::Failed("it was read for another receiver".into()),
        Some(mut input) => {
            let mut hasher = blake3::Hasher::new();
            let mut bytes = 0;
            loop {
                let read = spawn_blocking(move || {
                    let piece = read_some(&mut *input);
                    (input, piece)
                });
                let piece;
                (input, piece) = read.await.map_err(fault)?;
                if locked(&todo.given_up).contains(&index) {
                    break Frame::Failed("the receiver has given it up".into());
                }
                match piece {
                    Ok(piece) if piece.is_empty() => {
                        todo.streamed.fetch_add(bytes, Ordering::Relaxed);
                        break Frame::End(*hasher.finalize().as_bytes());
                    }
                    Ok(piece) => {
                        hasher.update(&piece);
                        bytes += piece.len() as u64;
                        todo.progress.add_bytes(piece.len() as u64);
                        write_piece(&mut stream, &mut out, piece).await?;
                    }
                    Err(error) => break Frame::Failed(format!("it cannot be read: {error}")),
                }
            }
        }
    };
    put_frame(&end, &mut out);
    stream.write_all_bytes(out.freeze()).await?;
    stream.finish()?;
    Ok(())
}

/// What can be read at once; empty at the end.
fn read_some(input: &mut dyn Read) -> std::io::Result<Bytes> {
    let mut room = vec![0; PIECE];
    loop {
        match input.read(&mut room) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            read => {
                room.truncate(read?);
                return Ok(room.into());
            }
        }
    }
}

/// The most that is read of a stream at once: what a pipe holds, or more.
const PIECE: usize = 256 << 10;
const _: () = assert!(PIECE as u64 <= CHUNK);

/// The bytes of small files gathered before a write.
const GATHERED: usize = 32 << 10;

/// Small files read at once, at most 256 kB, so that even a short list is divided among the streams.
const READ_AT_ONCE: usize = 16;

/// Remarks of a receiver: it has a few kinds of them.
const REMARKS_MAX: usize = 20;
