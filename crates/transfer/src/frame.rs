//! The encoding of a transfer on its streams; numbers are little endian.
//!
//! ```text
//! data     file …
//! file     index 4 | frame …                         until a frame that ends the file
//! frame    1 | length 4 | bytes                      the next chunk; only the last one is shorter than a chunk, except in a stream
//!          2 | BLAKE3 of the file 32                 the end: the file was sent completely
//!          3 | length 2 | text                       the end: the file cannot be sent; the reason
//!          4 | count 4                               so many next chunks are those that the receiver has
//!          5 | count 4                               so many next chunks are zeros
//!          6                                         the end: the file that is there has the same content
//!          7                                         the end: the file that is there has other content, and shall stay
//! reply    rate 8 | step, one per entry | result …
//! rate     bits per second, above which the sender shall not send; 0: no limit of the receiver's
//! step     0  send the whole file      1  send nothing: it is present, or no file
//!          2 | count 4 | value 32, each              the hashes of the first chunks, as far as they are there
//!          3 | length 2 | text                       the entry is refused; the reason
//!          4 | BLAKE3 32 | count 4 | value 32, each  a file of this size is there: send what differs, if it does
//!          5 | BLAKE3 32                             the same, but say only whether it differs
//!          6 | size 8 | BLAKE3 32                    a shorter file is there: send the file if it begins like this one
//!          9 | length 2 | text                       the transfer is refused; the reason; nothing follows
//! result   1 | index 4                               the file was received and is durable, or the link
//!          2 | index 4 | length 2 | text             it was not received; the reason
//!          3                                         the transfer is complete
//!          4 | length 2 | text                       a remark about the file system
//!          9 | length 2 | text                       the transfer has failed; the reason; nothing follows
//! ```

use anabranch::units::{Rate, shown_bytes};
use anabranch::{ReadError, RecvStream, SendStream, WriteError};
use bytes::{BufMut as _, Bytes, BytesMut};

use crate::hash::{CHUNK, Value, chunks};
use crate::pool::Pool;

/// A stream that is parsed incrementally.
#[derive(Debug)]
pub(crate) struct Incoming {
    stream: RecvStream,
    piece: Bytes,
    pool: Pool,
}

/// A frame of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Chunk(Bytes),
    Kept(u32),
    Zeros(u32),
    End(Value),
    Failed(String),
    Same,
    Differs,
}

/// The receiver's decision on an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    All,
    Nothing,
    /// Compare these chunks with the first ones of the file.
    From(Vec<Value>),
    Refused(String),
    /// Compare the hash; if it differs, these chunks, too.
    SendIfDiffers(Value, Vec<Value>),
    SayIfDiffers(Value),
    SendIfBegins(u64, Value),
    Fatal(String),
}

/// The result of an entry, or of the transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done(u32),
    Failed(u32, String),
    Fatal(String),
    Remark(String),
    Over,
}

impl Incoming {
    pub(crate) fn new(stream: RecvStream) -> Self {
        Self { stream, piece: Bytes::new(), pool: Pool::default() }
    }

    /// Fills `bytes`. Returns false at the end of the stream.
    async fn fill(&mut self, bytes: &mut [u8]) -> Result<bool, ReadError> {
        let mut filled = 0;
        while filled < bytes.len() {
            let Some(part) = self.part(bytes.len() - filled).await? else {
                return if filled == 0 { Ok(false) } else { Err(ReadError::Ended) };
            };
            bytes[filled..filled + part.len()].copy_from_slice(&part);
            filled += part.len();
        }
        Ok(true)
    }

    /// The next bytes, at most so many; `None` at the end of the stream.
    async fn part(&mut self, most: usize) -> Result<Option<Bytes>, ReadError> {
        if self.piece.is_empty() {
            match self.stream.read_chunk(CHUNK as usize).await? {
                Some(piece) => self.piece = piece,
                None => return Ok(None),
            }
        }
        Ok(Some(self.piece.split_to(self.piece.len().min(most))))
    }

    /// The next so many bytes.
    async fn chunk(&mut self, len: usize) -> Result<Bytes, ReadError> {
        // Small files wait for a writer in great numbers.
        let is_small = len as u64 <= SMALL;
        let mut bytes = if is_small { Vec::with_capacity(len) } else { self.pool.take() };
        while bytes.len() < len {
            bytes.extend_from_slice(&self.part(len - bytes.len()).await?.ok_or(ReadError::Ended)?);
        }
        Ok(if is_small { bytes.into() } else { self.pool.share(bytes) })
    }

    async fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        if self.fill(&mut bytes).await? { Ok(bytes) } else { Err(ReadError::Ended) }
    }

    async fn text(&mut self) -> Result<String, ReadError> {
        let mut bytes = vec![0; usize::from(u16::from_le_bytes(self.array().await?))];
        let is_there = bytes.is_empty() || self.fill(&mut bytes).await?;
        bytes.truncate(TEXT_MAX);
        // A peer's text is shown to users.
        if is_there { Ok(shown_bytes(&bytes)) } else { Err(ReadError::Ended) }
    }

    /// The index of the next file; `None` at the end.
    pub(crate) async fn file(&mut self) -> Result<Option<u32>, ReadError> {
        let mut index = [0; 4];
        Ok(self.fill(&mut index).await?.then_some(u32::from_le_bytes(index)))
    }

    async fn number(&mut self) -> Result<u32, ReadError> {
        Ok(u32::from_le_bytes(self.array().await?))
    }

    /// The next frame of a file; `None` if it is invalid.
    pub(crate) async fn frame(&mut self) -> Result<Option<Frame>, ReadError> {
        let [kind] = self.array().await?;
        Ok(match kind {
            1 => {
                let len = self.number().await?;
                if len == 0 || u64::from(len) > CHUNK {
                    return Ok(None);
                }
                Some(Frame::Chunk(self.chunk(len as usize).await?))
            }
            2 => Some(Frame::End(self.array().await?)),
            3 => Some(Frame::Failed(self.text().await?)),
            4 => Some(Frame::Kept(self.number().await?)),
            5 => Some(Frame::Zeros(self.number().await?)),
            6 => Some(Frame::Same),
            7 => Some(Frame::Differs),
            _ => None,
        })
    }

    /// The limit of the rate that the receiver asks for.
    pub(crate) async fn rate(&mut self) -> Result<Option<Rate>, ReadError> {
        let bits = u64::from_le_bytes(self.array().await?);
        Ok((bits > 0).then(|| Rate::from_bits_per_second(bits)))
    }

    /// The decision on an entry of this size; `None` if it is invalid.
    pub(crate) async fn step(&mut self, size: Option<u64>) -> Result<Option<Step>, ReadError> {
        let [kind] = self.array().await?;
        Ok(match kind {
            0 => Some(Step::All),
            1 => Some(Step::Nothing),
            2 => self.values(size).await?.map(Step::From),
            3 => Some(Step::Refused(self.text().await?)),
            4 => {
                let hash = self.array().await?;
                self.values(size).await?.map(|values| Step::SendIfDiffers(hash, values))
            }
            5 => Some(Step::SayIfDiffers(self.array().await?)),
            6 => {
                let begin = u64::from_le_bytes(self.array().await?);
                let hash = self.array().await?;
                (begin <= size.unwrap_or(0)).then_some(Step::SendIfBegins(begin, hash))
            }
            9 => Some(Step::Fatal(self.text().await?)),
            _ => None,
        })
    }

    /// The values of the first chunks of a file of this size; `None` if there are too many.
    async fn values(&mut self, size: Option<u64>) -> Result<Option<Vec<Value>>, ReadError> {
        let count = self.number().await?;
        if u64::from(count) > chunks(size.unwrap_or(0)) {
            return Ok(None);
        }
        let mut values = vec![];
        for _ in 0..count {
            values.push(self.array().await?);
        }
        Ok(Some(values))
    }

    pub(crate) async fn outcome(&mut self) -> Result<Option<Outcome>, ReadError> {
        let [kind] = self.array().await?;
        Ok(match kind {
            1 => Some(Outcome::Done(self.number().await?)),
            2 => Some(Outcome::Failed(self.number().await?, self.text().await?)),
            3 => Some(Outcome::Over),
            4 => Some(Outcome::Remark(self.text().await?)),
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
            Self::From(values) => {
                out.put_u8(2);
                put_values(values, out);
            }
            Self::SendIfDiffers(hash, values) => {
                out.put_u8(4);
                out.put_slice(hash);
                put_values(values, out);
            }
            Self::SayIfDiffers(hash) => {
                out.put_u8(5);
                out.put_slice(hash);
            }
            Self::SendIfBegins(size, hash) => {
                out.put_u8(6);
                out.put_u64_le(*size);
                out.put_slice(hash);
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
            Self::Remark(text) => {
                out.put_u8(4);
                put_text(text, out);
            }
            Self::Fatal(reason) => put_fatal(reason, out),
        }
    }
}

fn put_values(values: &[Value], out: &mut BytesMut) {
    out.put_u32_le(values.len() as u32);
    values.iter().for_each(|value| out.put_slice(value));
}

/// Begins the reply.
pub(crate) fn put_rate(rate: Option<Rate>, out: &mut BytesMut) {
    out.put_u64_le(rate.map_or(0, Rate::bits_per_second));
}

/// Ends the reply with a fatal error, instead of a plan or a result.
pub(crate) fn put_fatal(reason: &str, out: &mut BytesMut) {
    out.put_u8(9);
    put_text(reason, out);
}

/// Begins a file.
pub(crate) fn put_file(index: u32, out: &mut BytesMut) {
    out.put_u32_le(index);
}

/// Appends a frame.
pub(crate) fn put_frame(frame: &Frame, out: &mut BytesMut) {
    match frame {
        Frame::Chunk(bytes) => put_chunk(bytes, out),
        Frame::End(hash) => {
            out.put_u8(2);
            out.put_slice(hash);
        }
        Frame::Failed(reason) => {
            out.put_u8(3);
            put_text(reason, out);
        }
        Frame::Kept(count) => {
            out.put_u8(4);
            out.put_u32_le(*count);
        }
        Frame::Zeros(count) => {
            out.put_u8(5);
            out.put_u32_le(*count);
        }
        Frame::Same => out.put_u8(6),
        Frame::Differs => out.put_u8(7),
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
    write_piece(stream, out, chunk).await
}

/// Writes the pending frames and a piece of a stream, which does not wait for more.
pub(crate) async fn write_piece(stream: &mut SendStream, out: &mut BytesMut, piece: Bytes) -> Result<(), WriteError> {
    put_chunk_head(&piece, out);
    stream.write_all_bytes(out.split().freeze()).await?;
    stream.write_all_bytes(piece).await
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
