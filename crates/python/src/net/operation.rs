//! A Rust future that a coroutine polls.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use pyo3::BoundObject as _;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::net::bell::Bell;
use crate::net::runtime::Runtime;

/// The result of an operation. It is converted to a Python object under the interpreter's lock.
pub(crate) type Done = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// A network operation. A coroutine calls `poll` until it returns false, and then `result`. Between polls it waits for an asyncio future that it
/// passed to `wait`. `close` cancels the operation.
#[pyclass(module = "anabranch.net")]
pub(crate) struct Operation {
    work: Mutex<Option<Pin<Box<dyn Future<Output = Done> + Send>>>>,
    done: Mutex<Option<Done>>,
    runtime: Runtime,
    bell: Py<Bell>,
    number: u64,
    waker: Waker,
    is_waiting: bool,
}

impl Operation {
    /// An operation that has not begun.
    pub(crate) fn new(
        bell: Bound<'_, Bell>,
        runtime: &Runtime,
        work: impl Future<Output = Done> + Send + 'static,
    ) -> Self {
        let (number, waker) = bell.get().add();
        let (work, done) = (Mutex::new(Some(Box::pin(work) as _)), Mutex::default());
        Self { work, done, runtime: runtime.clone(), bell: bell.unbind(), number, waker, is_waiting: false }
    }
}

/// A result that is converted to a Python object.
pub(crate) fn done<T>(make: impl FnOnce(Python<'_>) -> PyResult<T> + Send + 'static) -> Done
where
    T: for<'py> IntoPyObject<'py, Error: Into<PyErr>>,
{
    Box::new(|py| {
        let value = make(py)?;
        Ok(value.into_pyobject(py).map_err(Into::into)?.into_any().unbind())
    })
}

#[pymethods]
impl Operation {
    /// Polls the operation, and returns whether it still waits. Other Python threads run meanwhile.
    fn poll(&mut self, py: Python<'_>) -> PyResult<bool> {
        let slot = self.work.get_mut().unwrap_or_else(PoisonError::into_inner);
        let work = slot.as_mut().ok_or_else(|| PyRuntimeError::new_err("the operation is over"))?;
        let (runtime, waker) = (self.runtime.handle()?, &self.waker);
        let polled = py.detach(|| {
            let _entered = runtime.enter();
            work.as_mut().poll(&mut Context::from_waker(waker))
        });
        let Poll::Ready(done) = polled else { return Ok(true) };
        *slot = None;
        *self.done.get_mut().unwrap_or_else(PoisonError::into_inner) = Some(done);
        Ok(false)
    }

    /// Registers a future, which completes when `poll` must be called again.
    fn wait(&mut self, future: Py<PyAny>) {
        self.is_waiting = true;
        self.bell.get().wait(self.number, future);
    }

    /// The result of the operation. It can be taken once.
    fn result(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let done = self.done.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        done.ok_or_else(|| PyRuntimeError::new_err("the operation has no result"))?(py)
    }

    /// Cancels the operation. The work that is left is not done.
    fn close(&mut self) {
        *self.work.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        if std::mem::take(&mut self.is_waiting) {
            self.bell.get().forget(self.number);
        }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        self.close();
    }
}
