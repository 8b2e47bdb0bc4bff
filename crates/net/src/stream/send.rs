//! Sending streams.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use anabranch_proto::endpoint::ConnectionId;
use anabranch_proto::{Priority, Sid};
use anabranch_units::Time;
use bytes::Bytes;
use tokio::io::AsyncWrite;

use crate::call::{Call, Outcome, Stage};
use crate::error::{Lost, WriteError};
use crate::handle::Handle;
use crate::state::State;
use crate::waiting::only;

/// A stream to the peer.
///
/// If it is dropped before [`SendStream::finish`], it is reset with code 0, so that the peer does not take it for complete.
#[derive(Debug)]
pub struct SendStream {
    handle: Handle,
    sid: Sid,
    serial: u64,
    /// Whether nothing more can be written.
    is_done: bool,
}

impl SendStream {
    pub(crate) fn new(handle: Handle, sid: Sid, serial: u64) -> Self {
        Self { handle, sid, serial, is_done: false }
    }

    /// Takes as much of `payload` as there is room for, at least one byte unless it is empty; waits until there is room. Returns
    /// the number of bytes taken. Nothing is copied.
    ///
    /// # Errors
    /// If the stream is closed or stopped, or the connection is lost.
    pub async fn write_bytes(&mut self, payload: &mut Bytes) -> Result<usize, WriteError> {
        poll_fn(|cx| self.poll_write_bytes(cx, payload)).await
    }

    /// Writes all of `payload`. Nothing is copied.
    ///
    /// # Errors
    /// If the stream is closed or stopped, or the connection is lost. Then the number of bytes taken is unknown.
    pub async fn write_all_bytes(&mut self, mut payload: Bytes) -> Result<(), WriteError> {
        while !payload.is_empty() {
            self.write_bytes(&mut payload).await?;
        }
        Ok(())
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// If the stream is closed or stopped, or the connection is lost. Then the number of bytes taken is unknown.
    pub async fn write_all(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        for piece in bytes.chunks(COPIED_MAX) {
            self.write_all_bytes(Bytes::copy_from_slice(piece)).await?;
        }
        Ok(())
    }

    /// Polls for room, and takes as much of `payload` as fits.
    ///
    /// # Errors
    /// If the stream is closed or stopped, or the connection is lost.
    pub fn poll_write_bytes(&mut self, cx: &Context<'_>, payload: &mut Bytes) -> Poll<Result<usize, WriteError>> {
        let (id, sid, serial, is_done) = (self.handle.id(), self.sid, self.serial, self.is_done);
        let now = self.handle.shared().clock.now();
        self.handle.shared().with(|state| {
            let (call, engine, _) = state.parts(id);
            if let Some(error) = refusal(call, serial, is_done) {
                return Poll::Ready(Err(error));
            }
            if payload.is_empty() {
                return Poll::Ready(Ok(0));
            }
            let Some(connection) = engine.connection(id) else { return Poll::Ready(Err(WriteError::Closed)) };
            match connection.streams().write(sid, payload) {
                Ok(0) => {
                    call.outbound(serial).into_iter().for_each(|outbound| only(&mut outbound.waiting, cx));
                    Poll::Pending
                }
                Ok(taken) => {
                    state.rouse();
                    Poll::Ready(Ok(taken as usize))
                }
                Err(_) => Poll::Ready(Err(late_refusal(state, now, id, serial))),
            }
        })
    }

    /// Finishes the stream after the written data, which is delivered even if the handle is dropped.
    ///
    /// # Errors
    /// If the stream is closed or stopped, or the connection is lost.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        let (id, sid, serial, is_done) = (self.handle.id(), self.sid, self.serial, self.is_done);
        let now = self.handle.shared().clock.now();
        self.handle.shared().with(|state| {
            let (call, engine, _) = state.parts(id);
            if let Some(error) = refusal(call, serial, is_done) {
                return Err(error);
            }
            let finished = engine.connection(id).map(|connection| connection.streams().finish(sid));
            state.rouse();
            if matches!(finished, Some(Ok(()))) { Ok(()) } else { Err(late_refusal(state, now, id, serial)) }
        })?;
        self.is_done = true;
        Ok(())
    }

    /// Resets the stream: waiting data is dropped, and the peer reads this code instead of unread data.
    pub fn reset(&mut self, code: u16) {
        let (id, sid, serial) = (self.handle.id(), self.sid, self.serial);
        self.is_done = true;
        self.handle.shared().with(|state| {
            let (call, engine, _) = state.parts(id);
            let is_ours = call.outbound(serial).is_some_and(|outbound| outbound.outcome.is_none());
            if is_ours
                && call.closed.is_none()
                && let Some(connection) = engine.connection(id)
            {
                // A stream that was already reset stays reset.
                _ = connection.streams().reset(sid, code);
                state.rouse();
            }
        });
    }

    /// Waits until the peer has received all of a finished stream, or has refused the rest. In the second case it returns the
    /// error code of the peer's application.
    ///
    /// # Errors
    /// If the connection is lost before that.
    pub async fn stopped(&mut self) -> Result<Option<u16>, Lost> {
        poll_fn(|cx| {
            let mut state = self.handle.shared().lock();
            let call = state.call(self.handle.id());
            let lost = call.lost();
            let is_closed = call.closed.is_some();
            let Some(outbound) = call.outbound(self.serial) else { return Poll::Ready(Ok(None)) };
            match (outbound.outcome, lost) {
                (Some(Outcome::Delivered), _) => Poll::Ready(Ok(None)),
                (Some(Outcome::Stopped(code)), _) => Poll::Ready(Ok(Some(code))),
                (None, Some(lost)) => Poll::Ready(Err(lost)),
                (None, None) if is_closed => Poll::Ready(Ok(None)),
                (None, None) => {
                    only(&mut outbound.waiting, cx);
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Sets the priority of the stream, relative to the other streams that this end sends.
    pub fn set_priority(&mut self, priority: Priority) {
        let (id, sid, is_done) = (self.handle.id(), self.sid, self.is_done);
        self.handle.shared().with(|state| {
            let (_, engine, _) = state.parts(id);
            if !is_done && let Some(connection) = engine.connection(id) {
                // A stream that was completely sent needs no priority.
                _ = connection.streams().set_priority(sid, priority);
            }
        });
    }
}

/// Why the engine takes no data: it knows what the driver has not delivered yet, such as that the peer has stopped the stream.
fn late_refusal(state: &mut State, now: Time, id: ConnectionId, serial: u64) -> WriteError {
    state.take_events(now);
    // Events may cause new output.
    state.rouse();
    refusal(state.call(id), serial, false).unwrap_or(WriteError::Closed)
}

/// Why a stream takes no data.
fn refusal(call: &mut Call, serial: u64, is_done: bool) -> Option<WriteError> {
    if let Some(lost) = call.lost() {
        return Some(WriteError::Lost(lost));
    }
    match call.outbound(serial).and_then(|outbound| outbound.outcome) {
        Some(Outcome::Stopped(code)) => Some(WriteError::Stopped(code)),
        Some(Outcome::Delivered) => Some(WriteError::Closed),
        None => (is_done || call.stage >= Stage::Closing || call.closed.is_some()).then_some(WriteError::Closed),
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut piece = Bytes::copy_from_slice(&bytes[..bytes.len().min(COPIED_MAX)]);
        self.get_mut().poll_write_bytes(cx, &mut piece).map_err(Into::into)
    }

    /// Does nothing, because written data is sent without a flush.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Finishes the stream.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        Poll::Ready(if stream.is_done { Ok(()) } else { stream.finish().map_err(Into::into) })
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if !self.is_done {
            self.reset(0);
        }
        let serial = self.serial;
        self.handle.shared().lock().call(self.handle.id()).forget(serial);
    }
}

/// Bytes copied at once. What the stream does not take must be copied again.
const COPIED_MAX: usize = 1 << 16;
