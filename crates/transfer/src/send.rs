//! The sending end of a transfer.

use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anabranch::{Connection, SendStream, WriteError};
use bytes::{Bytes, BytesMut};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use crate::error::{Failed, SendError};
use crate::frame::{Incoming, Outcome, SMALL, Step, put_chunk, put_end, put_file, write_chunk};
use crate::hash::{CHUNK, Chunks};
use crate::manifest::{Entry, MANIFEST_MAX, Manifest};
use crate::progress::Progress;
use crate::scan::{self, Found, scan};
use crate::{FAREWELL, Summary};

/// Data streams of a transfer. So many files are in flight at a time.
pub const STREAMS: usize = 16;

/// Sends files and folders to a [`crate::Receiver`], and waits for the result of each. Afterwards it closes the connection, and
/// waits at most two seconds for the receiver's close.
///
/// # Errors
/// If nothing more can be sent. Failures of single files are in the summary instead.
pub async fn send(connection: &Connection, paths: Vec<PathBuf>, progress: Arc<Progress>) -> Result<Summary, SendError> {
    let sent = send_all(connection, paths, progress).await;
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

async fn send_all(connection: &Connection, paths: Vec<PathBuf>, progress: Arc<Progress>) -> Result<Summary, SendError> {
    let found = spawn_blocking(move || scan(&paths)).await.map_err(|_| SendError::Protocol)??;
    let Found { manifest, sources, failed } = found;
    progress.set_total(manifest.totals());
    let list = manifest.write();
    if list.len() > MANIFEST_MAX {
        return Err(SendError::TooMany);
    }
    let mut stream = connection.open_stream().await?;
    // If the receiver refuses the manifest, it stops that stream and gives the reason in its reply.
    let sent = async {
        stream.write_all_bytes(list).await?;
        stream.finish()
    };
    if let Err(WriteError::Lost(lost)) = sent.await {
        return Err(SendError::Lost(lost));
    }
    let mut reply = Incoming::new(connection.accept_stream().await?);
    let mut summary = Summary { failed, ..Summary::default() };
    let todo = plan(&manifest, sources, &mut reply, &mut summary, &progress).await?;
    let mut workers = JoinSet::new();
    let todo = Arc::new(Todo { files: todo, next: AtomicUsize::new(0) });
    for _ in 0..STREAMS.min(todo.files.len()) {
        workers.spawn(work(connection.clone(), Arc::clone(&todo), Arc::clone(&progress)));
    }
    loop {
        match reply.outcome().await?.ok_or(SendError::Protocol)? {
            Outcome::Done(index) => {
                let entry = manifest.entries.get(index as usize).ok_or(SendError::Protocol)?;
                summary.files += 1;
                summary.bytes += entry.size().unwrap_or(0);
                progress.add_file();
            }
            Outcome::Failed(index, reason) => {
                let entry = manifest.entries.get(index as usize).ok_or(SendError::Protocol)?;
                summary.failed.push(Failed { name: entry.name.to_string(), reason });
            }
            Outcome::Fatal(reason) => return Err(SendError::Receiver(reason)),
            Outcome::Over => break,
        }
    }
    // The workers are done; their streams end with the connection.
    workers.shutdown().await;
    Ok(summary)
}

/// The files to send.
struct Todo {
    files: Vec<Source>,
    /// The first file that no worker has begun.
    next: AtomicUsize,
}

struct Source {
    index: u32,
    path: PathBuf,
    entry: Entry,
    /// The chunks that the receiver already has.
    kept: Chunks,
}

/// Reads the receiver's plan.
async fn plan(
    manifest: &Manifest,
    sources: Vec<PathBuf>,
    reply: &mut Incoming,
    summary: &mut Summary,
    progress: &Progress,
) -> Result<Vec<Source>, SendError> {
    let mut todo = vec![];
    for (index, (entry, path)) in manifest.entries.iter().zip(sources).enumerate() {
        let step = reply.step(entry.size()).await?.ok_or(SendError::Protocol)?;
        let kept = match (step, entry.size()) {
            (Step::All, Some(_)) => Chunks::default(),
            (Step::From(kept), Some(_)) => {
                let bytes = kept.0.len() as u64 * CHUNK;
                summary.bytes_there += bytes;
                progress.add_there(bytes);
                kept
            }
            (Step::Nothing, Some(size)) => {
                summary.files_there += 1;
                summary.bytes_there += size;
                progress.add_there(size);
                progress.add_file();
                continue;
            }
            (Step::Refused(reason), _) => {
                summary.failed.push(Failed { name: entry.name.to_string(), reason });
                continue;
            }
            (Step::Fatal(reason), _) => return Err(SendError::Receiver(reason)),
            (_, None) => continue,
        };
        todo.push(Source { index: index as u32, path, entry: entry.clone(), kept });
    }
    Ok(todo)
}

impl Todo {
    /// Claims the next files: one large file, or several small ones. Empty if none is left.
    fn claim(&self) -> Range<usize> {
        let end = |begin: usize| {
            let rest = self.files.get(begin..).unwrap_or_default();
            let small = rest.iter().take(READ_AT_ONCE).take_while(|source| source.is_small()).count();
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
}

impl Source {
    fn is_small(&self) -> bool {
        self.entry.size().is_some_and(|size| size <= SMALL)
    }

    /// Appends a small file.
    fn put(&self, out: &mut BytesMut, progress: &Progress) {
        put_file(self.index, 0, out);
        let mut reader = Reader::new(self);
        let end = loop {
            match reader.read() {
                Ok(Some(chunk)) => {
                    put_chunk(&chunk, out);
                    progress.add_bytes(chunk.len() as u64);
                }
                Ok(None) => break Ok(reader.hash()),
                Err(reason) => break Err(reason),
            }
        };
        put_end(&end, out);
    }
}

/// Sends files on a stream until none is left. After an error the stream ends, and the receiver reports the reason.
async fn work(connection: Connection, todo: Arc<Todo>, progress: Arc<Progress>) -> Result<(), SendError> {
    let mut stream = connection.open_stream().await?;
    let mut out = BytesMut::new();
    loop {
        let claimed = todo.claim();
        match &todo.files[claimed.clone()] {
            [] => break,
            [large] if !large.is_small() => send_large(large, &mut stream, &mut out, &progress).await?,
            _ => {
                let (todo, progress) = (Arc::clone(&todo), Arc::clone(&progress));
                let read = move || {
                    todo.files[claimed].iter().for_each(|source| source.put(&mut out, &progress));
                    out
                };
                out = spawn_blocking(read).await.map_err(|_| SendError::Protocol)?;
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
    source: &Source,
    stream: &mut SendStream,
    out: &mut BytesMut,
    progress: &Progress,
) -> Result<(), SendError> {
    put_file(source.index, source.kept.0.len() as u64 * CHUNK, out);
    let reader = Reader::new(source);
    let mut reading = spawn_blocking(|| reader.next());
    let end = loop {
        let (reader, chunk) = reading.await.map_err(|_| SendError::Protocol)?;
        match chunk {
            Ok(Some(chunk)) => {
                // The next chunk is read while this one is sent.
                reading = spawn_blocking(|| reader.next());
                let len = chunk.len() as u64;
                write_chunk(stream, out, chunk).await?;
                progress.add_bytes(len);
            }
            Ok(None) => break Ok(reader.hash()),
            Err(reason) => break Err(reason),
        }
    };
    put_end(&end, out);
    Ok(())
}

/// Reads a file chunk by chunk.
struct Reader {
    path: PathBuf,
    entry: Entry,
    size: u64,
    file: Option<File>,
    at: u64,
    chunks: Chunks,
    /// The hash of a file of one chunk.
    small: Option<blake3::Hash>,
    has_ended: bool,
}

impl Reader {
    fn new(source: &Source) -> Self {
        Self {
            path: source.path.clone(),
            entry: source.entry.clone(),
            size: source.entry.size().unwrap_or(0),
            file: None,
            at: source.kept.0.len() as u64 * CHUNK,
            chunks: source.kept.clone(),
            small: None,
            has_ended: false,
        }
    }

    /// The next chunk; `None` at the end.
    fn next(mut self) -> (Self, Result<Option<Bytes>, String>) {
        let chunk = self.read();
        (self, chunk)
    }

    fn read(&mut self) -> Result<Option<Bytes>, String> {
        let unreadable = |error: std::io::Error| format!("it cannot be read: {error}");
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.open().map_err(unreadable)?,
        };
        let len = self.size.saturating_sub(self.at).min(CHUNK);
        // Reads one byte more than expected, to detect growth.
        let mut bytes = Vec::with_capacity(len as usize);
        (&mut file).take(len).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 != len {
            return Err(CHANGED.into());
        }
        self.at += len;
        if self.at >= self.size && !std::mem::replace(&mut self.has_ended, true) {
            let metadata = file.metadata().map_err(unreadable)?;
            if metadata.len() != self.size || scan::modified(&metadata) != self.entry.modified {
                return Err(CHANGED.into());
            }
        }
        if len == 0 {
            return Ok(None);
        }
        if self.size <= CHUNK {
            self.small = Some(blake3::hash(&bytes));
        } else {
            self.chunks.0.push(Chunks::of(self.chunks.0.len() as u64, &bytes));
        }
        self.file = Some(file);
        Ok(Some(bytes.into()))
    }

    /// Opens the file, and checks that it has not changed.
    fn open(&self) -> std::io::Result<File> {
        use std::io::Seek as _;
        let mut file = File::open(&self.path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(std::io::Error::other("it is no file any more"));
        }
        if metadata.len() != self.size || scan::modified(&metadata) != self.entry.modified {
            return Err(std::io::Error::other(CHANGED));
        }
        file.seek(std::io::SeekFrom::Start(self.at))?;
        Ok(file)
    }

    fn hash(&self) -> [u8; 32] {
        let hash = match self.small {
            Some(hash) => hash,
            None if self.chunks.0.len() > 1 => self.chunks.root(),
            None => blake3::hash(&[]),
        };
        *hash.as_bytes()
    }
}

const CHANGED: &str = "it has changed since the start of the transfer; send it again";

/// The bytes of small files gathered before a write.
const GATHERED: usize = 32 << 10;

/// Small files read at once, at most 256 kB, so that even a short list is divided among the streams.
const READ_AT_ONCE: usize = 16;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use super::*;

    /// The error reported for a small file that `change` modifies after the scan; `None` if the file is sent.
    fn end_after(change: fn(&Path)) -> Option<String> {
        let folder = std::env::temp_dir().join(format!("anabranch-small-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("small");
        fs::write(&path, "0123456789").unwrap();
        let Found { manifest, sources, .. } = scan(std::slice::from_ref(&path)).unwrap();
        change(&path);
        let source =
            Source { index: 0, path: sources[0].clone(), entry: manifest.entries[0].clone(), kept: Chunks::default() };
        assert!(source.is_small());
        let mut out = BytesMut::new();
        source.put(&mut out, &Progress::default());
        fs::remove_dir_all(&folder).unwrap();
        let mut good = BytesMut::new();
        put_end(&Ok(*blake3::hash(b"0123456789").as_bytes()), &mut good);
        if out.ends_with(&good) {
            return None;
        }
        // A failure consists of its code, the length of the reason, and the reason.
        let text = String::from_utf8_lossy(&out[..]).into_owned();
        let reason = text[text.find("it ").expect("a reason")..].to_owned();
        let mut bad = BytesMut::new();
        put_end(&Err(reason.clone()), &mut bad);
        assert!(out.ends_with(&bad), "{out:?}");
        Some(reason)
    }

    #[test]
    fn a_small_file_that_has_changed_is_not_sent_as_if_it_were_whole() {
        assert_eq!(end_after(|_| ()), None);
        let changes: [fn(&Path); 3] = [
            |path| fs::write(path, "0123456789a").unwrap(),
            |path| fs::write(path, "012345678").unwrap(),
            |path| {
                let file = File::options().write(true).open(path).unwrap();
                file.set_modified(SystemTime::now() - Duration::from_secs(9)).unwrap();
            },
        ];
        for change in changes {
            assert!(end_after(change).is_some_and(|reason| reason.contains(CHANGED)));
        }
        assert!(
            end_after(|path| fs::remove_file(path).unwrap()).is_some_and(|reason| reason.contains("cannot be read"))
        );
        let becomes_folder: fn(&Path) = |path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        };
        assert!(end_after(becomes_folder).is_some_and(|reason| reason.contains("no file any more")));
    }
}
