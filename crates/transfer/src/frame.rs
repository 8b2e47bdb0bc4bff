//! The encoding of a transfer on its streams; numbers are little endian.
//!
//! ```text
//! data     file …
//! file     index 4 | from 8 | frame …                from: a multiple of a chunk
//! frame    1 | length 4 | bytes                      the next chunk; only the last one is shorter than a chunk
//!          2 | BLAKE3 of the file 32                 the file was sent completely
//!          3 | length 2 | text                       the file cannot be sent; the reason
//! reply    step, one per entry | result …
//! step     0  send the whole file      1  send nothing: the file is present
//!          2 | count 4 | chaining value 32, each     so many chunks of the file are present
//!          3 | length 2 | text                       the file is refused; the reason
//!          9 | length 2 | text                       the transfer is refused; the reason; nothing follows
//! result   1 | index 4                               the file was received
//!          2 | index 4 | length 2 | text             the file was not received; the reason
//!          3                                         the transfer is complete
//!          9 | length 2 | text                       the transfer has failed; the reason; nothing follows
//! ```

use anabranch::{ReadError, RecvStream, SendStream, WriteError};
use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use crate::hash::{CHUNK, Chunks};

/// A stream that is parsed incrementally.
#[derive(Debug)]
pub(crate) struct Incoming {
    stream: RecvStream,
    piece: Bytes,
}

/// A frame of a file.
#[derive(Debug)]
pub(crate) enum Frame {
    Chunk(Vec<u8>),
    End([u8; 32]),
    Failed(String),
}

/// The receiver's decision on an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    All,
    Nothing,
    From(Chunks),
    Refused(String),
    Fatal(String),
}

/// The result of an entry, or of the transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done(u32),
    Failed(u32, String),
    Fatal(String),
    Over,
}

impl Incoming {
    pub(crate) fn new(stream: RecvStream) -> Self {
        Self { stream, piece: Bytes::new() }
    }

    /// Fills `bytes`. Returns false at the end of the stream.
    async fn fill(&mut self, bytes: &mut [u8]) -> Result<bool, ReadError> {
        let mut filled = 0;
        while filled < bytes.len() {
            if self.piece.is_empty() {
                match self.stream.read_chunk(CHUNK as usize).await? {
                    Some(piece) => self.piece = piece,
                    None if filled == 0 => return Ok(false),
                    None => return Err(ReadError::Ended),
                }
            }
            let len = self.piece.len().min(bytes.len() - filled);
            self.piece.copy_to_slice(&mut bytes[filled..filled + len]);
            filled += len;
        }
        Ok(true)
    }

    async fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        if self.fill(&mut bytes).await? { Ok(bytes) } else { Err(ReadError::Ended) }
    }

    async fn text(&mut self) -> Result<String, ReadError> {
        let mut bytes = vec![0; usize::from(u16::from_le_bytes(self.array().await?))];
        let is_there = bytes.is_empty() || self.fill(&mut bytes).await?;
        // A peer's text is shown to users without control characters.
        let plain =
            |text: String| text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect();
        if is_there { Ok(plain(String::from_utf8_lossy(&bytes).into_owned())) } else { Err(ReadError::Ended) }
    }

    /// The next file: its index and its start offset; `None` at the end.
    pub(crate) async fn file(&mut self) -> Result<Option<(u32, u64)>, ReadError> {
        let mut index = [0; 4];
        if !self.fill(&mut index).await? {
            return Ok(None);
        }
        Ok(Some((u32::from_le_bytes(index), u64::from_le_bytes(self.array().await?))))
    }

    /// The next frame of a file; `None` if it is invalid.
    pub(crate) async fn frame(&mut self) -> Result<Option<Frame>, ReadError> {
        let [kind] = self.array().await?;
        Ok(match kind {
            1 => {
                let len = u32::from_le_bytes(self.array().await?);
                if len == 0 || u64::from(len) > CHUNK {
                    return Ok(None);
                }
                let mut bytes = vec![0; len as usize];
                if !self.fill(&mut bytes).await? {
                    return Err(ReadError::Ended);
                }
                Some(Frame::Chunk(bytes))
            }
            2 => Some(Frame::End(self.array().await?)),
            3 => Some(Frame::Failed(self.text().await?)),
            _ => None,
        })
    }

    /// The decision on an entry of this size; `None` if it is invalid.
    pub(crate) async fn step(&mut self, size: Option<u64>) -> Result<Option<Step>, ReadError> {
        let [kind] = self.array().await?;
        Ok(match kind {
            0 => Some(Step::All),
            1 => Some(Step::Nothing),
            2 => {
                let count = u32::from_le_bytes(self.array().await?);
                if u64::from(count) > size.unwrap_or(0) / CHUNK {
                    return Ok(None);
                }
                let mut chunks = Chunks::default();
                for _ in 0..count {
                    chunks.0.push(self.array().await?);
                }
                Some(Step::From(chunks))
            }
            3 => Some(Step::Refused(self.text().await?)),
            9 => Some(Step::Fatal(self.text().await?)),
            _ => None,
        })
    }

    pub(crate) async fn outcome(&mut self) -> Result<Option<Outcome>, ReadError> {
        let [kind] = self.array().await?;
        Ok(match kind {
            1 => Some(Outcome::Done(u32::from_le_bytes(self.array().await?))),
            2 => Some(Outcome::Failed(u32::from_le_bytes(self.array().await?), self.text().await?)),
            3 => Some(Outcome::Over),
            9 => Some(Outcome::Fatal(self.text().await?)),
            _ => None,
        })
    }
}

impl Step {
    pub(crate) fn put(&self, out: &mut BytesMut) {
        match self {
            Self::All => out.put_u8(0),
            Self::Nothing => out.put_u8(1),
            Self::From(chunks) => {
                out.put_u8(2);
                out.put_u32_le(chunks.0.len() as u32);
                chunks.0.iter().for_each(|chunk| out.put_slice(chunk));
            }
            Self::Refused(reason) => {
                out.put_u8(3);
                put_text(reason, out);
            }
            Self::Fatal(reason) => put_fatal(reason, out),
        }
    }
}

impl Outcome {
    pub(crate) fn put(&self, out: &mut BytesMut) {
        match self {
            Self::Done(index) => {
                out.put_u8(1);
                out.put_u32_le(*index);
            }
            Self::Failed(index, reason) => {
                out.put_u8(2);
                out.put_u32_le(*index);
                put_text(reason, out);
            }
            Self::Over => out.put_u8(3),
            Self::Fatal(reason) => put_fatal(reason, out),
        }
    }
}

/// Ends the reply with a fatal error, instead of a plan or a result.
pub(crate) fn put_fatal(reason: &str, out: &mut BytesMut) {
    out.put_u8(9);
    put_text(reason, out);
}

/// Begins a file.
pub(crate) fn put_file(index: u32, from: u64, out: &mut BytesMut) {
    out.put_u32_le(index);
    out.put_u64_le(from);
}

/// Ends a file with its hash, or with an error.
pub(crate) fn put_end(end: &Result<[u8; 32], String>, out: &mut BytesMut) {
    match end {
        Ok(hash) => {
            out.put_u8(2);
            out.put_slice(hash);
        }
        Err(reason) => {
            out.put_u8(3);
            put_text(reason, out);
        }
    }
}

/// Appends the next chunk of a small file.
pub(crate) fn put_chunk(chunk: &[u8], out: &mut BytesMut) {
    put_chunk_head(chunk, out);
    out.put_slice(chunk);
}

fn put_chunk_head(chunk: &[u8], out: &mut BytesMut) {
    out.put_u8(1);
    out.put_u32_le(chunk.len() as u32);
}

/// Writes the pending frames and a chunk.
pub(crate) async fn write_chunk(stream: &mut SendStream, out: &mut BytesMut, chunk: Bytes) -> Result<(), WriteError> {
    if chunk.len() as u64 <= SMALL {
        put_chunk(&chunk, out);
        return Ok(());
    }
    put_chunk_head(&chunk, out);
    stream.write_all_bytes(out.split().freeze()).await?;
    stream.write_all_bytes(chunk).await
}

fn put_text(text: &str, out: &mut BytesMut) {
    let text = &text[..text.floor_char_boundary(TEXT_MAX)];
    out.put_u16_le(text.len() as u16);
    out.put_slice(text.as_bytes());
}

/// The longest reason in bytes: a sentence or two.
const TEXT_MAX: usize = 2_000;

/// Files up to this size in bytes are small. They are read and written in groups, and copied, so that many of them fill segments.
pub(crate) const SMALL: u64 = 16 << 10;
