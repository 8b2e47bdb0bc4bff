//! Receiving streams.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use anabranch_proto::{Read, Sid};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};

use crate::error::ReadError;
use crate::handle::Handle;
use crate::waiting::only;

/// A stream of the peer.
///
/// If it is dropped before its end was read, it is stopped with code 0: the peer is informed that the rest is refused.
#[derive(Debug)]
pub struct RecvStream {
    handle: Handle,
    sid: Sid,
    /// The final result of reading, once known.
    end: Option<Result<(), ReadError>>,
}

impl RecvStream {
    pub(crate) fn new(handle: Handle, sid: Sid) -> Self {
        Self { handle, sid, end: None }
    }

    /// Waits for the next bytes: at least one and at most `most`; `None` at the end. Nothing is copied.
    ///
    /// # Errors
    /// If the stream was reset, or the connection is lost.
    pub async fn read_chunk(&mut self, most: usize) -> Result<Option<Bytes>, ReadError> {
        poll_fn(|cx| self.poll_read_chunk(cx, most)).await
    }

    /// Polls for the next bytes.
    ///
    /// # Errors
    /// If the stream was reset, or the connection is lost.
    pub fn poll_read_chunk(&mut self, cx: &Context<'_>, most: usize) -> Poll<Result<Option<Bytes>, ReadError>> {
        let mut chunk = None;
        self.poll_read_pieces(cx, most.max(1), 1, |piece| chunk = Some(piece)).map_ok(|()| chunk)
    }

    /// Takes at most `most` available bytes in several pieces, under one lock.
    fn poll_read_pieces(
        &mut self,
        cx: &Context<'_>,
        mut most: usize,
        pieces: usize,
        mut take: impl FnMut(Bytes),
    ) -> Poll<Result<(), ReadError>> {
        if let Some(end) = self.end {
            return Poll::Ready(end);
        }
        let (id, sid, end) = (self.handle.id(), self.sid, &mut self.end);
        self.handle.shared().with(|state| {
            let (call, engine, woken) = state.parts(id);
            let mut connection = engine.connection(id);
            let mut count = 0;
            while count < pieces && most > 0 {
                let ended = match call.read(connection.as_deref_mut(), sid, u32::try_from(most).unwrap_or(u32::MAX)) {
                    Read::Data(piece) => {
                        most -= piece.len();
                        count += 1;
                        take(piece);
                        continue;
                    }
                    Read::Nothing => break,
                    Read::End => Ok(()),
                    Read::Reset(code) => Err(ReadError::Reset(code)),
                };
                *end = Some(ended);
                call.release(connection, sid, woken);
                break;
            }
            if count == 0 && end.is_none() {
                // After both ends have closed, every stream has an end.
                if let Some(lost) = call.lost() {
                    return Poll::Ready(Err(ReadError::Lost(lost)));
                }
                only(call.reader(sid), cx);
                return Poll::Pending;
            }
            state.rouse();
            Poll::Ready(if count > 0 { Ok(()) } else { end.unwrap_or(Ok(())) })
        })
    }

    /// Reads the whole stream.
    ///
    /// # Errors
    /// If it has more than `most` bytes, was reset, or the connection is lost.
    pub async fn read_to_end(&mut self, most: usize) -> Result<Bytes, ReadError> {
        let mut whole = BytesMut::new();
        while let Some(chunk) = self.read_chunk(CHUNK).await? {
            if whole.len() + chunk.len() > most {
                return Err(ReadError::TooLong);
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }

    /// Fills `bytes` from the stream.
    ///
    /// # Errors
    /// If the stream ends earlier, was reset, or the connection is lost.
    pub async fn read_exact(&mut self, bytes: &mut [u8]) -> Result<(), ReadError> {
        let mut filled = 0;
        while filled < bytes.len() {
            let chunk = self.read_chunk(bytes.len() - filled).await?.ok_or(ReadError::Ended)?;
            bytes[filled..filled + chunk.len()].copy_from_slice(&chunk);
            filled += chunk.len();
        }
        Ok(())
    }

    /// Refuses the rest of the stream with an error code. Received data is dropped.
    pub fn stop(mut self, code: u16) {
        self.stop_here(code);
    }

    fn stop_here(&mut self, code: u16) {
        if self.end.is_some() {
            return;
        }
        self.end = Some(Ok(()));
        let (id, sid) = (self.handle.id(), self.sid);
        self.handle.shared().with(|state| {
            let (call, engine, woken) = state.parts(id);
            if call.closed.is_some() {
                call.drop_left(sid);
                call.release(None, sid, woken);
            } else if let Some(connection) = engine.connection(id) {
                // This fails if only the end of the stream was left.
                _ = connection.streams().stop(sid, code);
                call.release(Some(connection), sid, woken);
            }
            state.rouse();
        });
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let most = buffer.remaining();
        if most == 0 {
            return Poll::Ready(Ok(()));
        }
        let take = |piece: Bytes| buffer.put_slice(&piece);
        self.get_mut().poll_read_pieces(cx, most, usize::MAX, take).map_err(Into::into)
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        self.stop_here(0);
    }
}

/// The size of a read, more than that of a piece.
const CHUNK: usize = 1 << 20;
