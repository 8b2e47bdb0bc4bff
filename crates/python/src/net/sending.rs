//! Streams to the peer.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, ready};

use anabranch::{Priority, WriteError};
use bytes::Bytes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::net::bell::Bell;
use crate::net::error;
use crate::net::operation::{Operation, done};
use crate::net::runtime::Runtime;
use crate::net::waiters::{Waiter, Waiters};

/// A stream to the peer. If it is dropped before `finish`, it is reset with code 0.
#[pyclass(frozen, module = "anabranch.net")]
pub(crate) struct SendStream {
    sending: Arc<Sending>,
    runtime: Runtime,
}

struct Sending {
    stream: Mutex<anabranch::SendStream>,
    waiters: Waiters,
    /// Bytes that the stream has accepted.
    written: AtomicU64,
}

impl AsRef<Waiters> for Sending {
    fn as_ref(&self) -> &Waiters {
        &self.waiters
    }
}

impl Sending {
    /// Acts on the stream, and wakes the operations that wait for it.
    fn act<T>(&self, act: impl FnOnce(&mut anabranch::SendStream) -> T) -> T {
        let result = act(&mut self.stream.lock().unwrap_or_else(PoisonError::into_inner));
        self.waiters.wake();
        result
    }
}

impl SendStream {
    pub(crate) fn new(stream: anabranch::SendStream, runtime: Runtime) -> Self {
        let (stream, waiters, written) = (Mutex::new(stream), Waiters::default(), AtomicU64::new(0));
        Self { sending: Arc::new(Sending { stream, waiters, written }), runtime }
    }
}

#[pymethods]
impl SendStream {
    /// Writes all of `data` without a copy: the Python object is kept until the peer has acknowledged it.
    fn write(&self, bell: Bound<'_, Bell>, data: PyBackedBytes) -> PyResult<Operation> {
        self.runtime.handle()?;
        let waiter = Waiter::alone(&self.sending, WRITES, "writes to this stream")?;
        let mut payload = Bytes::from_owner(data);
        Ok(Operation::new(bell, &self.runtime, async move {
            let all = poll_fn(|cx| {
                waiter.poll(cx, |sending, cx| {
                    let mut stream = sending.stream.lock().unwrap_or_else(PoisonError::into_inner);
                    loop {
                        let count = ready!(stream.poll_write_bytes(cx, &mut payload))?;
                        sending.written.fetch_add(count as u64, Ordering::Relaxed);
                        if payload.is_empty() {
                            return Poll::Ready(Ok(()));
                        }
                    }
                })
            });
            let all = all.await;
            done(move |_| all.map_err(error::write))
        }))
    }

    /// Waits until the peer has received the whole stream, or has refused the rest.
    fn stopped(&self, bell: Bound<'_, Bell>) -> PyResult<Operation> {
        let waiter = Waiter::alone(&self.sending, WATCHES, "waits for the delivery of this stream")?;
        Ok(Operation::new(bell, &self.runtime, async move {
            let stopped = poll_fn(|cx| {
                waiter.poll(cx, |sending, cx| {
                    let mut stream = sending.stream.lock().unwrap_or_else(PoisonError::into_inner);
                    // The future keeps no state between two polls.
                    pin!(stream.stopped()).poll(cx)
                })
            });
            let stopped = stopped.await;
            done(move |_| stopped.map_err(error::lost))
        }))
    }

    /// Ends the stream after what has been written.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.runtime.handle()?;
        let finished: Result<(), WriteError> = py.detach(|| self.sending.act(|stream| stream.finish()));
        finished.map_err(error::write)
    }

    /// Resets the stream with a code.
    fn reset(&self, py: Python<'_>, code: u16) {
        py.detach(|| self.sending.act(|stream| stream.reset(code)));
    }

    /// Sets the priority: a level and a weight within it.
    fn set_priority(&self, py: Python<'_>, level: u8, weight: u8) -> PyResult<()> {
        if level > Priority::LEVEL_MAX || weight == 0 {
            let most = Priority::LEVEL_MAX;
            return Err(PyValueError::new_err(format!("a level is 0 to {most}, 0 first, and a weight at least 1")));
        }
        py.detach(|| self.sending.act(|stream| stream.set_priority(Priority { level, weight })));
        Ok(())
    }

    /// Bytes that the stream has accepted.
    #[getter]
    fn written(&self) -> u64 {
        self.sending.written.load(Ordering::Relaxed)
    }
}

/// The roles of tasks: one task writes, one waits for the delivery.
const WRITES: usize = 0;
const WATCHES: usize = 1;
