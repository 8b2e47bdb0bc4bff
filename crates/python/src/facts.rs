//! A value within a frozen Python object that Rust replaces.

use std::cell::UnsafeCell;

use pyo3::Python;

/// A value that is read and replaced as a whole, by whoever holds the interpreter's lock.
///
/// A class that is not frozen counts its borrowers instead, by two atomic operations at each access from either language: as much time as all else
/// that a hook's arguments cost.
pub(crate) struct Facts<T>(UnsafeCell<T>);

#[expect(unsafe_code, reason = "there is no safe cell whose lock is the interpreter's")]
// SAFETY: only `read` and `replace` reach the value. Both have the token of a thread that is attached to the interpreter, and one thread is at a time:
// the module is built for the stable ABI of interpreters with that lock. Neither runs other code, nor hands out a reference, while it copies.
unsafe impl<T: Copy + Send> Sync for Facts<T> {}

impl<T: Copy> Facts<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    #[expect(unsafe_code, reason = "there is no safe cell whose lock is the interpreter's")]
    pub(crate) fn read(&self, _py: Python<'_>) -> T {
        // SAFETY: the token says that no other thread is within `read` or `replace`.
        unsafe { *self.0.get() }
    }

    #[expect(unsafe_code, reason = "there is no safe cell whose lock is the interpreter's")]
    pub(crate) fn replace(&self, _py: Python<'_>, value: T) {
        // SAFETY: as in `read`. What is replaced needs no drop, because it is `Copy`.
        unsafe { *self.0.get() = value }
    }
}
