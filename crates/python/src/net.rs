//! The transport on the network, for asyncio: the classes under `anabranch.net`, whose coroutines are in `anabranch/net.py`.
//!
//! # How Rust futures work with asyncio
//!
//! One tokio thread runs the sockets, the timers and the engine (`runtime`). It never takes the interpreter's lock. A coroutine polls its
//! [`operation::Operation`] on the thread of its event loop. If the operation is ready, its result is returned without a turn of the loop. Otherwise
//! the coroutine waits for an asyncio future. The operation's waker rings a [`bell::Bell`]: it records the operation and writes a byte to a socket
//! that the loop watches. The loop then completes the futures of the recorded operations, and their coroutines poll again.
//!
//! So bytes leave the engine only while the coroutine that receives them runs: a coroutine that is cancelled while it waits has taken none. The tokio
//! thread never waits for Python, which would delay acknowledgements, and never calls an interpreter that is shutting down.
//!
//! * `endpoint`, `connection`, `sending`, `receiving` and `relay` are the handles; `identity` has keys and tickets, `config` reads settings.
//! * `waiters` refuses a second task where the library has room for one, and removes cancelled operations.
//! * `error` converts the library's errors to exceptions.

mod bell;
mod config;
mod connection;
mod endpoint;
mod error;
mod identity;
mod operation;
mod receiving;
mod relay;
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
    use super::relay::Relay;
    #[pymodule_export]
    use super::sending::SendStream;
}
