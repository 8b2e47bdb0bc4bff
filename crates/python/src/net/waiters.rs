//! The operations that wait for a stream, a connection or an endpoint.
//!
//! The library keeps one waker of a task until it can make progress. In Python each operation has its own waker, and a cancelled operation must leave
//! none behind. So the library gets one waker for all operations on a handle, which wakes those that still wait.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use pyo3::PyErr;
use pyo3::exceptions::PyRuntimeError;

/// Operations that wait for the same handle.
#[derive(Default)]
pub(crate) struct Waiters {
    fan: Arc<Fan>,
    numbered: AtomicU64,
    /// Whether each role is taken.
    busy: [AtomicBool; ROLES],
}

/// An operation on a handle, until it is over.
pub(crate) struct Waiter<T: AsRef<Waiters>> {
    of: Arc<T>,
    number: u64,
    /// The role, if only one operation may have it.
    role: Option<usize>,
}

/// Wakers by the number of their operation.
#[derive(Default)]
struct Fan(Mutex<BTreeMap<u64, Waker>>);

impl Wake for Fan {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let wakers = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        wakers.into_values().for_each(Waker::wake);
    }
}

impl Waiters {
    /// Wakes all operations, because one has changed the state.
    pub(crate) fn wake(&self) {
        self.fan.wake_by_ref();
    }
}

impl AsRef<Self> for Waiters {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl<T: AsRef<Waiters>> Waiter<T> {
    /// An operation without a role; any number of them may wait.
    pub(crate) fn new(of: &Arc<T>) -> Self {
        let number = of.as_ref().as_ref().numbered.fetch_add(1, Ordering::Relaxed);
        Self { of: Arc::clone(of), number, role: None }
    }

    /// The only operation in its role.
    ///
    /// # Errors
    /// If another task has the role.
    pub(crate) fn alone(of: &Arc<T>, role: usize, doing: &str) -> Result<Self, PyErr> {
        if of.as_ref().as_ref().busy[role].swap(true, Ordering::AcqRel) {
            return Err(PyRuntimeError::new_err(format!("another task already {doing}")));
        }
        let mut waiter = Self::new(of);
        waiter.role = Some(role);
        Ok(waiter)
    }

    /// Polls with the waker of all operations.
    pub(crate) fn poll<R>(&self, cx: &Context<'_>, poll: impl FnOnce(&T, &mut Context<'_>) -> Poll<R>) -> Poll<R> {
        let fan = &self.of.as_ref().as_ref().fan;
        // The waker is added before the poll, because the poll may wake it at once.
        fan.0.lock().unwrap_or_else(PoisonError::into_inner).insert(self.number, cx.waker().clone());
        poll(&self.of, &mut Context::from_waker(&Waker::from(Arc::clone(fan))))
    }

    /// Runs a future with the waker of all operations.
    pub(crate) async fn run<F: Future>(self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| self.poll(cx, |_, cx| future.as_mut().poll(cx))).await
    }
}

impl<T: AsRef<Waiters>> Drop for Waiter<T> {
    fn drop(&mut self) {
        let waiters = self.of.as_ref().as_ref();
        let waker = waiters.fan.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
        drop(waker);
        if let Some(role) = self.role {
            waiters.busy[role].store(false, Ordering::Release);
        }
    }
}

/// The number of roles: a stream has a writer and a task that waits for its delivery.
const ROLES: usize = 2;
