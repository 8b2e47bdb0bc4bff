//! The transport on the network, for asyncio: the classes under `anabranch.net`, whose coroutines are in `python/anabranch/net.py`.
//!
//! # How Rust's futures and asyncio's meet
//!
//! Sockets, timers and the engine run on one thread of tokio (`runtime`), which never takes the interpreter's lock. A coroutine polls its
//! [`operation::Operation`] on its own thread, that of its event loop. What is ready is taken at once, without a turn of the loop. Otherwise the
//! coroutine waits for a future of asyncio, and the operation's waker rings a [`bell::Bell`]: it notes who is to be woken and writes a byte to a
//! socket that the loop watches. The loop then completes these futures, and their coroutines poll again.
//!
//! So bytes leave the engine only while the coroutine that gets them runs: one that is cancelled while it waits has taken none. And the thread of
//! tokio neither waits for Python, which would delay acknowledgements, nor meets an interpreter that is shutting down.
//!
//! * `endpoint`, `connection`, `sending` and `receiving` are the handles; `identity` has keys and tickets, `config` reads settings.
//! * `waiters` keeps two tasks from waiting where the library has room for one, and what was cancelled from being kept there.
//! * `error` makes exceptions of the library's errors.

mod bell;
mod config;
mod connection;
mod endpoint;
mod error;
mod identity;
mod operation;
mod receiving;
mod runtime;
mod sending;
mod waiters;

/// The part of `anabranch.net` that is written in Rust.
#[pyo3::pymodule]
pub(crate) mod net {
    #[pymodule_export]
    use super::bell::Bell;
    #[pymodule_export]
    use super::connection::Connection;
    #[pymodule_export]
    use super::endpoint::Endpoint;
    #[pymodule_export]
    use super::identity::{Key, PublicKey, Ticket};
    #[pymodule_export]
    use super::operation::Operation;
    #[pymodule_export]
    use super::receiving::ReceiveStream;
    #[pymodule_export]
    use super::sending::SendStream;
}
