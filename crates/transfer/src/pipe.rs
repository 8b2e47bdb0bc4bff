//! A receiver that keeps nothing: one file, stream or text is written to a writer, such as the standard output.

use std::io::Write;
use std::sync::Arc;

use anabranch::units::Rate;
use anabranch::{Connection, SendStream};
use bytes::{Bytes, BytesMut};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::error::{Breach, ReceiveError};
use crate::frame::{Frame, Incoming, Outcome, Step, put_fatal, put_rate};
use crate::hash::{CHUNK, Digest, chunk_len, value};
use crate::manifest::{MANIFEST_MAX, Manifest, ManifestError};
use crate::part::ZEROS_MAX;
use crate::progress::Progress;
use crate::shared::joined;
use crate::{BEGUN_WITHIN, FAREWELL, Summary};

/// Receives one file, stream or text into a writer, as it comes. What was written before an error is not taken back: only a result without failures
/// says that all of it is what the sender has. The sender is asked to keep `rate`, if it is given.
///
/// # Errors
/// If the sender sends anything else, which it is told, or nothing more can be received or written.
pub async fn receive_into<W: Write + Send + 'static>(
    connection: &Connection,
    writer: W,
    rate: Option<Rate>,
    progress: Arc<Progress>,
) -> Result<Summary, ReceiveError> {
    let mut reply = connection.open_stream().await?;
    let mut out = BytesMut::new();
    put_rate(rate, &mut out);
    reply.write_all_bytes(out.split().freeze()).await?;
    let received = match list(connection).await {
        Ok((manifest, index)) => {
            Step::All.put(&mut out);
            reply.write_all_bytes(out.split().freeze()).await?;
            progress.set_total(manifest.totals());
            content(connection, writer, &manifest, index, &progress).await
        }
        Err(error) => Err(error),
    };
    match received {
        Ok((summary, outcome)) => {
            outcome.put(&mut out);
            Outcome::Over.put(&mut out);
            finish(connection, reply, out).await?;
            Ok(summary)
        }
        Err(error) => {
            if !matches!(error, ReceiveError::Lost(_)) {
                put_fatal(&error.to_string(), &mut out);
                _ = finish(connection, reply, out).await;
            }
            Err(error)
        }
    }
}

/// Says the last word, and waits for the sender's close.
async fn finish(connection: &Connection, mut reply: SendStream, out: BytesMut) -> Result<(), ReceiveError> {
    reply.write_all_bytes(out.freeze()).await?;
    // The sender closes first. If it is gone, or has stopped reading after the last word, nothing changes.
    _ = reply.finish();
    _ = reply.stopped().await;
    let farewell = async {
        while connection.accept_stream().await.is_ok() {}
        _ = connection.close().await;
    };
    _ = timeout(FAREWELL, farewell).await;
    Ok(())
}

/// Reads the list, which must have one entry with content.
async fn list(connection: &Connection) -> Result<(Manifest, u32), ReceiveError> {
    let mut stream = timeout(BEGUN_WITHIN, connection.accept_stream()).await.map_err(|_| ReceiveError::Silent)??;
    let mut bytes = vec![];
    while let Some(piece) = stream.read_chunk(PIECE).await? {
        if bytes.len() + piece.len() > LIST_MAX.min(MANIFEST_MAX) {
            return Err(ReceiveError::Several);
        }
        bytes.extend_from_slice(&piece);
    }
    let manifest = Manifest::read(Bytes::from(bytes)).map_err(|error| match error {
        ManifestError::TooMany => ReceiveError::Several,
        error => ReceiveError::Manifest(error),
    })?;
    let mut entries = manifest.entries();
    match (entries.next(), entries.next()) {
        (Some((index, entry)), None) if entry.has_content() && !manifest.asks.verifies => {
            drop(entries);
            Ok((manifest, index))
        }
        _ => Err(ReceiveError::Several),
    }
}

/// The hash of what has come.
enum Sum {
    File(u64, Digest),
    Stream(Box<blake3::Hasher>),
}

/// Writes what comes, and compares its hash.
async fn content<W: Write + Send + 'static>(
    connection: &Connection,
    mut writer: W,
    manifest: &Manifest,
    index: u32,
    progress: &Progress,
) -> Result<(Summary, Outcome), ReceiveError> {
    let mut stream = data(connection, index).await?;
    let mut sum = match manifest.entry(index).size() {
        Some(size) => Sum::File(size, Digest::new(size)),
        None => Sum::Stream(Box::default()),
    };
    let mut summary = Summary::default();
    let mut bytes = 0;
    let failed = loop {
        let (mut chunk, count) = match stream.frame().await?.ok_or(ReceiveError::Protocol(Breach::Ended))? {
            Frame::Chunk(piece) => (Some(piece), 1),
            Frame::Zeros(count) if count <= ZEROS_MAX => (None, count),
            Frame::End(hash) if sum.finish() == Some(hash) => break None,
            Frame::End(_) => break Some("the checksum is wrong; send it again".into()),
            Frame::Failed(reason) => break Some(reason),
            Frame::Zeros(_) | Frame::Kept(_) | Frame::Same | Frame::Differs => {
                return Err(ReceiveError::Protocol(Breach::Unexpected));
            }
        };
        for _ in 0..count {
            // A few bytes may stand for a gigabyte of zeros, which nobody waits for if the sender is gone.
            tokio::select! {
                biased;
                Err(lost) = connection.closed() => return Err(ReceiveError::Lost(lost)),
                () = std::future::ready(()) => {}
            }
            let piece = chunk.take().unwrap_or_else(|| sum.zeros());
            if !sum.add(&piece) {
                return Err(ReceiveError::Protocol(Breach::Unexpected));
            }
            let len = piece.len() as u64;
            let write = move || {
                let written = writer.write_all(&piece).and_then(|()| writer.flush());
                (writer, written)
            };
            let written;
            (writer, written) = joined(spawn_blocking(write).await)?;
            written.map_err(ReceiveError::Output)?;
            progress.add_bytes(len);
            bytes += len;
        }
    };
    let outcome = match failed {
        None => {
            summary.files = 1;
            summary.bytes = bytes;
            progress.add_file();
            Outcome::Done(index)
        }
        Some(reason) => {
            summary.fail(manifest.path(index), reason.clone());
            Outcome::Failed(index, reason)
        }
    };
    Ok((summary, outcome))
}

/// The data stream with this file. The sender may open more of them, which are empty.
async fn data(connection: &Connection, index: u32) -> Result<Incoming, ReceiveError> {
    loop {
        let mut stream = Incoming::new(connection.accept_stream().await?);
        match stream.file().await? {
            Some(file) if file == index => return Ok(stream),
            Some(_) => return Err(ReceiveError::Protocol(Breach::Unexpected)),
            None => {}
        }
    }
}

impl Sum {
    /// Adds a piece. False if it is not what the size allows.
    fn add(&mut self, piece: &[u8]) -> bool {
        match self {
            Self::File(size, digest) => {
                let number = digest.added();
                let is_next = !piece.is_empty() && piece.len() as u64 == chunk_len(*size, number);
                if is_next {
                    digest.add(value(*size, number, piece));
                }
                is_next
            }
            Self::Stream(hasher) => {
                hasher.update(piece);
                !piece.is_empty() && piece.len() as u64 <= CHUNK
            }
        }
    }

    /// The next chunk, of zeros; a stream has none.
    fn zeros(&self) -> Bytes {
        match self {
            Self::File(size, digest) => vec![0; chunk_len(*size, digest.added()) as usize].into(),
            Self::Stream(_) => Bytes::new(),
        }
    }

    fn finish(&self) -> Option<[u8; 32]> {
        match self {
            Self::File(_, digest) => digest.clone().finish(),
            Self::Stream(hasher) => Some(*hasher.finalize().as_bytes()),
        }
    }
}

/// A list of one entry is short, also with attributes.
const LIST_MAX: usize = 128 << 10;

const PIECE: usize = 64 << 10;
