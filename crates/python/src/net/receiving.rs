//! Streams from the peer.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use anabranch::pairs::Answer;
use anabranch::{ReadError, RecvStream, StreamError};
use bytes::{BufMut as _, Bytes, BytesMut};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tokio::io::AsyncReadExt as _;

use crate::net::bell::Bell;
use crate::net::error;
use crate::net::operation::{Done, Operation, done};
use crate::net::runtime::Runtime;
use crate::net::waiters::{Waiter, Waiters};

/// A stream from the peer. If it is dropped before its end was read, it is stopped with code 0.
#[pyclass(frozen, module = "anabranch.net")]
pub(crate) struct ReceiveStream {
    receiving: Arc<Receiving>,
    runtime: Runtime,
}

struct Receiving {
    state: Mutex<State>,
    waiters: Waiters,
}

struct State {
    source: Source,
    /// Received bytes that no read has returned: a read that needs more was cancelled or waits.
    held: BytesMut,
}

enum Source {
    Stream(RecvStream),
    /// The answer has not begun.
    Answer(Answer),
    /// The stream was stopped by this end.
    Stopped,
}

/// Why a read failed.
enum Failed {
    Read(ReadError),
    Stream(StreamError),
    Stopped,
}

impl AsRef<Waiters> for Receiving {
    fn as_ref(&self) -> &Waiters {
        &self.waiters
    }
}

impl State {
    /// Adds at most `most` received bytes to the held ones. Returns false if the stream has ended.
    fn poll_fill(&mut self, cx: &mut Context<'_>, most: usize) -> Poll<Result<bool, Failed>> {
        if let Source::Answer(answer) = &mut self.source {
            self.source = Source::Stream(ready!(answer.poll_arrive(cx)).map_err(Failed::Stream)?);
        }
        let Source::Stream(stream) = &mut self.source else { return Poll::Ready(Err(Failed::Stopped)) };
        let most = most.min(FILL);
        self.held.reserve(most);
        let mut room = (&mut self.held).limit(most);
        // The future keeps no state between two polls.
        pin!(stream.read_buf(&mut room)).poll(cx).map_ok(|count| count > 0).map_err(|error| {
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<ReadError>());
            Failed::Read(*inner.expect("the library makes it of one"))
        })
    }

    /// Reads at least one byte and at most `most`; none at the end.
    fn poll_some(&mut self, cx: &mut Context<'_>, most: usize) -> Poll<Result<Bytes, Failed>> {
        if self.held.is_empty() && most > 0 {
            ready!(self.poll_fill(cx, most))?;
        }
        let count = self.held.len().min(most);
        Poll::Ready(Ok(self.held.split_to(count).freeze()))
    }

    /// Reads exactly `count` bytes.
    fn poll_exactly(&mut self, cx: &mut Context<'_>, count: usize) -> Poll<Result<Bytes, Failed>> {
        while self.held.len() < count {
            if !ready!(self.poll_fill(cx, count - self.held.len()))? {
                return Poll::Ready(Err(Failed::Read(ReadError::Ended)));
            }
        }
        Poll::Ready(Ok(self.held.split_to(count).freeze()))
    }

    /// Reads all that is left, if it is at most `limit` bytes.
    fn poll_all(&mut self, cx: &mut Context<'_>, limit: usize) -> Poll<Result<Bytes, Failed>> {
        loop {
            if self.held.len() > limit {
                return Poll::Ready(Err(Failed::Read(ReadError::TooLong)));
            }
            if !ready!(self.poll_fill(cx, limit.saturating_add(1) - self.held.len()))? {
                return Poll::Ready(Ok(std::mem::take(&mut self.held).freeze()));
            }
        }
    }
}

impl ReceiveStream {
    pub(crate) fn new(stream: RecvStream, runtime: Runtime) -> Self {
        Self::of(Source::Stream(stream), runtime)
    }

    /// The answer of a pair, which may not have begun.
    pub(crate) fn answer(answer: Answer, runtime: Runtime) -> Self {
        Self::of(Source::Answer(answer), runtime)
    }

    fn of(source: Source, runtime: Runtime) -> Self {
        let state = Mutex::new(State { source, held: BytesMut::new() });
        Self { receiving: Arc::new(Receiving { state, waiters: Waiters::default() }), runtime }
    }

    fn operation(
        &self,
        bell: Bound<'_, Bell>,
        mut poll: impl FnMut(&mut State, &mut Context<'_>) -> Poll<Result<Bytes, Failed>> + Send + 'static,
    ) -> PyResult<Operation> {
        let waiter = Waiter::alone(&self.receiving, 0, "reads this stream")?;
        Ok(Operation::new(bell, &self.runtime, async move {
            let read = poll_fn(|cx| {
                waiter.poll(cx, |receiving, cx| {
                    poll(&mut receiving.state.lock().unwrap_or_else(PoisonError::into_inner), cx)
                })
            });
            finished(read.await)
        }))
    }
}

fn finished(read: Result<Bytes, Failed>) -> Done {
    done(move |py| match read {
        Ok(bytes) => Ok(PyBytes::new(py, &bytes).unbind()),
        Err(Failed::Read(error)) => Err(error::read(error)),
        Err(Failed::Stream(error)) => Err(error::stream(error)),
        Err(Failed::Stopped) => Err(error::closed("stream")),
    })
}

#[pymethods]
impl ReceiveStream {
    /// Reads at least one byte and at most `most`; none at the end.
    fn read(&self, bell: Bound<'_, Bell>, most: usize) -> PyResult<Operation> {
        self.operation(bell, move |state, cx| state.poll_some(cx, most))
    }

    /// Reads exactly `count` bytes.
    fn read_exactly(&self, bell: Bound<'_, Bell>, count: usize) -> PyResult<Operation> {
        self.operation(bell, move |state, cx| state.poll_exactly(cx, count))
    }

    /// Reads to the end of the stream, if that is at most `limit` bytes.
    fn read_all(&self, bell: Bound<'_, Bell>, limit: usize) -> PyResult<Operation> {
        self.operation(bell, move |state, cx| state.poll_all(cx, limit))
    }

    /// Refuses the rest with a code.
    fn stop(&self, py: Python<'_>, code: u16) {
        py.detach(|| {
            let source = {
                let mut state = self.receiving.state.lock().unwrap_or_else(PoisonError::into_inner);
                state.held = BytesMut::new();
                std::mem::replace(&mut state.source, Source::Stopped)
            };
            if let Source::Stream(stream) = source {
                stream.stop(code);
            }
            self.receiving.waiters.wake();
        });
    }
}

/// The limit of bytes in one poll, so that other tasks of the loop do not wait long.
const FILL: usize = 256 << 10;
