//! Tasks that wait for something, and are woken after the lock is released.

use std::task::{Context, Waker};

/// Tasks that wait for the same thing.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Vec<Waker>);

/// Tasks to wake.
#[derive(Debug, Default)]
pub(crate) struct Woken(Vec<Waker>);

impl Waiting {
    /// Adds the task of this context.
    pub(crate) fn add(&mut self, cx: &Context<'_>) {
        if !self.0.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.0.push(cx.waker().clone());
        }
    }
}

impl Woken {
    pub(crate) fn all(&mut self, waiting: &mut Waiting) {
        self.0.append(&mut waiting.0);
    }

    pub(crate) fn one(&mut self, waiting: &mut Option<Waker>) {
        self.0.extend(waiting.take());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Wakes the tasks. The lock must not be held.
    pub(crate) fn wake(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
    }
}

/// Sets the task of this context as the only one that waits.
pub(crate) fn only(waiting: &mut Option<Waker>, cx: &Context<'_>) {
    match waiting {
        Some(waker) => waker.clone_from(cx.waker()),
        None => *waiting = Some(cx.waker().clone()),
    }
}
