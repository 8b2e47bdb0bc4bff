//! Files that arrive on the data streams.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anabranch::RecvStream;
use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::error::{Breach, ReceiveError};
use crate::frame::{Frame, Incoming, Outcome, SMALL};
use crate::hash::{CHUNK, Value};
use crate::manifest::Kind;
use crate::part::{Part, Ready, WriteFailed, ZEROS_MAX};
use crate::plan::Want;
use crate::scan::TEXT_MAX;
use crate::shared::{FileResult, Kept, Shared, fatal, joined};
use crate::site::{ANOTHER, DIFFERS, Trouble};
use crate::write::Small;

/// What a data stream delivered.
enum Arrived {
    /// The end of the stream.
    Nothing,
    Small(Small),
    /// A large file was written.
    Ready(Ready),
    /// A file was not received, or not needed.
    FileResult(FileResult),
    /// The rest of a file whose failure was reported.
    Rest,
}

/// Receives the files of a data stream, one after the other.
pub(crate) async fn receive_files(
    shared: Arc<Shared>,
    stream: RecvStream,
    small: mpsc::Sender<Small>,
    ready: mpsc::Sender<Ready>,
) {
    let mut stream = Incoming::new(stream);
    loop {
        let is_wanted = match receive_file(&shared, &mut stream).await {
            Ok(Arrived::Nothing) => return,
            Ok(Arrived::Small(file)) => small.send(file).await.is_ok(),
            Ok(Arrived::Ready(file)) => ready.send(file).await.is_ok(),
            Ok(Arrived::Rest) => true,
            Ok(Arrived::FileResult(told)) => shared.report(Ok(told)).await.is_ok(),
            Err(error) => shared.report(Err(error)).await.is_ok(),
        };
        if !is_wanted {
            return;
        }
    }
}

async fn receive_file(shared: &Arc<Shared>, stream: &mut Incoming) -> Result<Arrived, ReceiveError> {
    let Some(index) = stream.file().await? else { return Ok(Arrived::Nothing) };
    let (want, kept) = shared.take(index).ok_or(ReceiveError::Protocol(Breach::Unexpected))?;
    let entry = shared.site.manifest.entry(index);
    match (entry.kind, entry.size()) {
        (Kind::Text, _) => return receive_text(stream, index).await,
        (_, Some(size)) if size <= SMALL => return receive_small(shared, stream, index, want, size).await,
        _ => {}
    }
    let mut large = Large { shared, index, want, kept: Some(kept), writing: None, is_failed: false };
    large.receive(stream).await
}

/// Receives a text, which needs no place.
async fn receive_text(stream: &mut Incoming, index: u32) -> Result<Arrived, ReceiveError> {
    let mut bytes = vec![];
    let mut has_room = true;
    loop {
        match stream.frame().await?.ok_or(ReceiveError::Protocol(Breach::Ended))? {
            Frame::Chunk(piece) => {
                has_room &= bytes.len() + piece.len() <= TEXT_MAX;
                if has_room {
                    bytes.extend(piece);
                }
            }
            Frame::End(hash) if has_room && *blake3::hash(&bytes).as_bytes() == hash => {
                return Ok(Arrived::FileResult(FileResult::Text(index, String::from_utf8_lossy(&bytes).into_owned())));
            }
            Frame::End(_) => {
                let why = if has_room { "its checksum is wrong" } else { "it is too long; send it as a file" };
                return Ok(Arrived::FileResult(FileResult::Outcome(Outcome::Failed(index, why.into()))));
            }
            Frame::Failed(reason) => {
                return Ok(Arrived::FileResult(FileResult::Outcome(Outcome::Failed(index, reason))));
            }
            Frame::Kept(_) | Frame::Zeros(_) | Frame::Same | Frame::Differs => {
                return Err(ReceiveError::Protocol(Breach::Unexpected));
            }
        }
    }
}

/// Receives a small file, and queues it for a writer.
async fn receive_small(
    shared: &Shared,
    stream: &mut Incoming,
    index: u32,
    want: Want,
    size: u64,
) -> Result<Arrived, ReceiveError> {
    let mut bytes = Bytes::new();
    loop {
        match stream.frame().await?.ok_or(ReceiveError::Protocol(Breach::Ended))? {
            Frame::Chunk(chunk) if bytes.is_empty() && chunk.len() as u64 == size => {
                shared.progress.add_bytes(size);
                bytes = chunk;
            }
            Frame::End(hash) if want != Want::Compare => {
                return Ok(Arrived::Small(Small { index, want, bytes, hash }));
            }
            Frame::Failed(reason) => {
                return Ok(Arrived::FileResult(FileResult::Outcome(Outcome::Failed(index, reason))));
            }
            frame => return answer(shared, &frame, index, want).map(Arrived::FileResult),
        }
    }
}

/// The sender's answer to the hash of a file that is there.
fn answer(shared: &Shared, frame: &Frame, index: u32, want: Want) -> Result<FileResult, ReceiveError> {
    let why = if shared.site.manifest.asks.verifies { DIFFERS } else { ANOTHER };
    match (frame, want) {
        (Frame::Same, Want::Compare | Want::ReplaceIfDiffers) => Ok(FileResult::There(index)),
        (Frame::Differs, Want::Compare | Want::Repair) => Ok(FileResult::Outcome(Outcome::Failed(index, why.into()))),
        _ => Err(ReceiveError::Protocol(Breach::Unexpected)),
    }
}

/// A large file that arrives.
struct Large<'a> {
    shared: &'a Arc<Shared>,
    index: u32,
    want: Want,
    /// The chunks that are there, until the file is opened.
    kept: Option<Kept>,
    /// The last chunk is written while the next one is read.
    writing: Option<JoinHandle<Result<(Part, u64), Failing>>>,
    /// Whether it was reported as failed. What still comes of it is dropped.
    is_failed: bool,
}

/// Why a part is not written on.
enum Failing {
    Trouble(Trouble),
    Protocol,
}

/// A step of writing. It returns the bytes that were there already.
type Step = Box<dyn FnOnce(&mut Part) -> Result<u64, WriteFailed> + Send>;

impl Large<'_> {
    async fn receive(&mut self, stream: &mut Incoming) -> Result<Arrived, ReceiveError> {
        let mut has_data = false;
        loop {
            let frame = stream.frame().await?.ok_or(ReceiveError::Protocol(Breach::Ended))?;
            if matches!(frame, Frame::Chunk(_) | Frame::Kept(_) | Frame::Zeros(_) | Frame::End(_)) {
                if self.want == Want::Compare {
                    return Err(ReceiveError::Protocol(Breach::Unexpected));
                }
                has_data = true;
            }
            match frame {
                Frame::Chunk(bytes) => {
                    self.shared.progress.add_bytes(bytes.len() as u64);
                    self.step(Box::new(move |part| part.write(&bytes).map(|()| 0))).await?;
                }
                Frame::Kept(count) => self.step(Box::new(move |part| part.keep(count))).await?,
                Frame::Zeros(count) if count <= ZEROS_MAX => {
                    self.step(Box::new(move |part| {
                        // They count as sent.
                        part.zeros(count).map(|_| 0)
                    }))
                    .await?;
                    self.shared.progress.add_bytes(u64::from(count) * CHUNK);
                }
                Frame::End(hash) => return self.end(hash).await,
                Frame::Failed(reason) => {
                    // A step in progress ends first.
                    _ = self.settle().await?;
                    if self.is_failed {
                        return Ok(Arrived::Rest);
                    }
                    let (site, index) = (Arc::clone(&self.shared.site), self.index);
                    joined(spawn_blocking(move || site.discard(index)).await)?;
                    return Ok(Arrived::FileResult(FileResult::Outcome(Outcome::Failed(index, reason))));
                }
                frame if !has_data => {
                    return answer(self.shared, &frame, self.index, self.want).map(Arrived::FileResult);
                }
                _ => return Err(ReceiveError::Protocol(Breach::Unexpected)),
            }
        }
    }

    /// Waits for the last step. Returns the part, unless there is none yet or the file has failed, which is reported at once.
    async fn settle(&mut self) -> Result<Option<Part>, ReceiveError> {
        let Some(writing) = self.writing.take() else { return Ok(None) };
        match joined(writing.await)? {
            Ok((part, kept)) => {
                if kept > 0 {
                    // Without a receiver of reports, the next report ends this task.
                    _ = self.shared.report(Ok(FileResult::Kept(kept))).await;
                }
                Ok(Some(part))
            }
            Err(failing) => {
                self.fail(failing).await?;
                Ok(None)
            }
        }
    }

    async fn fail(&mut self, failing: Failing) -> Result<(), ReceiveError> {
        match failing {
            Failing::Protocol => Err(ReceiveError::Protocol(Breach::Unexpected)),
            Failing::Trouble(Trouble::Entry(reason)) => {
                self.is_failed = true;
                _ = self.shared.report(Ok(FileResult::Outcome(Outcome::Failed(self.index, reason)))).await;
                Ok(())
            }
            Failing::Trouble(trouble) => Err(fatal(trouble)),
        }
    }

    /// Begins a step after the last one. The first one opens the file.
    async fn step(&mut self, step: Step) -> Result<(), ReceiveError> {
        let part = self.settle().await?;
        if self.is_failed {
            return Ok(());
        }
        let (site, index, kept) = (Arc::clone(&self.shared.site), self.index, self.kept.take());
        self.writing = Some(spawn_blocking(move || {
            let mut part = match part {
                Some(part) => part,
                None => site.begin(index, kept.unwrap_or_default()).map_err(Failing::Trouble)?,
            };
            let kept = step(&mut part).map_err(|failed| match failed {
                WriteFailed::Protocol => Failing::Protocol,
                WriteFailed::Io(error) => Failing::Trouble(site.trouble("it cannot be written", error)),
            })?;
            Ok((part, kept))
        }));
        Ok(())
    }

    /// The file was sent completely.
    async fn end(&mut self, hash: Value) -> Result<Arrived, ReceiveError> {
        let part = self.settle().await?;
        let (site, index, want) = (Arc::clone(&self.shared.site), self.index, self.want);
        if self.is_failed {
            return Ok(Arrived::Rest);
        }
        // A file of this size has chunks; a stream may have none.
        let is_stream = site.manifest.entry(index).size().is_none();
        if part.is_none() && !is_stream {
            return Err(ReceiveError::Protocol(Breach::Unexpected));
        }
        let finish = move || {
            let part = part.map_or_else(|| site.begin(index, Kept::default()), Ok)?;
            let bytes = part.streamed();
            Ok((site.finish(index, want, part, &hash)?, bytes))
        };
        match joined(spawn_blocking(finish).await)? {
            Ok((ready, bytes)) => {
                self.shared.streamed.fetch_add(bytes, Ordering::Relaxed);
                Ok(Arrived::Ready(ready))
            }
            Err(Trouble::Entry(reason)) => Ok(Arrived::FileResult(FileResult::Outcome(Outcome::Failed(index, reason)))),
            Err(trouble) => Err(fatal(trouble)),
        }
    }
}
