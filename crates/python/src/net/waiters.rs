//! Who waits for a stream or an endpoint.
//!
//! The library lets one task wait for a stream, and wakes it for what the stream does. In Python several tasks may have a handle: one may write
//! while another waits for the delivery, and one may close what another waits for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use pyo3::PyErr;
use pyo3::exceptions::PyRuntimeError;

/// Tasks that wait for the same thing, `ROLES` at most: each has a role of its own.
#[derive(Default)]
pub(crate) struct Waiters {
    fan: Arc<Fan>,
    busy: [AtomicBool; ROLES],
}

/// A role, as long as a task has it.
pub(crate) struct Role<T: AsRef<Waiters>> {
    of: Arc<T>,
    role: usize,
}

#[derive(Default)]
struct Fan([Mutex<Option<Waker>>; ROLES]);

impl Wake for Fan {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        for waker in &self.0 {
            let waker = waker.lock().unwrap_or_else(PoisonError::into_inner).take();
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

impl Waiters {
    /// Wakes all of them, because one has changed something.
    pub(crate) fn wake(&self) {
        self.fan.wake_by_ref();
    }
}

impl<T: AsRef<Waiters>> Role<T> {
    /// Takes a role.
    ///
    /// # Errors
    /// If another task has it.
    pub(crate) fn take(of: &Arc<T>, role: usize, doing: &str) -> Result<Self, PyErr> {
        if of.as_ref().as_ref().busy[role].swap(true, Ordering::AcqRel) {
            return Err(PyRuntimeError::new_err(format!("another task already {doing}")));
        }
        Ok(Self { of: Arc::clone(of), role })
    }

    /// Polls with a waker that wakes all roles.
    pub(crate) fn poll<R>(&self, cx: &Context<'_>, poll: impl FnOnce(&T, &mut Context<'_>) -> Poll<R>) -> Poll<R> {
        let waiters = self.of.as_ref().as_ref();
        let mine = &waiters.fan.0[self.role];
        // Before the poll, as it may be woken at once.
        *mine.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
        poll(&self.of, &mut Context::from_waker(&Waker::from(Arc::clone(&waiters.fan))))
    }
}

impl<T: AsRef<Waiters>> Drop for Role<T> {
    fn drop(&mut self) {
        let waiters = self.of.as_ref().as_ref();
        let waker = waiters.fan.0[self.role].lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(waker);
        waiters.busy[self.role].store(false, Ordering::Release);
    }
}

/// A stream is written, and its delivery waited for.
const ROLES: usize = 2;
