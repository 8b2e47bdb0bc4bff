//! TCP connections through a connection of ours: ports and SOCKS5, as `ssh -L`, `-R` and `-D` have them.
//!
//! Each TCP connection has a pair of streams of its own, so that a lost segment stops no other one. Who opens it sends a [`Header`] and goes on
//! with its data at once; the other end connects to the target and answers on a stream of its own, with a header that says which one it answers.
//!
//! ```text
//! client ──TCP──> listener ──[open 7, example.org:80]──data──> exit ──TCP──> example.org:80
//!                          <──[answer 7, connected]────data──
//! ```
//!
//! What an end lets the other one do is its [`Permissions`]: to which targets it connects, whether it listens for it.
//!
//! * [`Tunnel`] is an end: opens and answers. `pipe` moves the bytes. [`forward`] accepts TCP connections and opens streams for them, [`socks`] asks
//!   each where it wants to go.
//! * [`Header`] is what streams begin with, [`Target`] a host and a port, [`PortForward`] what people type.
//!
//! # Limits
//!
//! 900 TCP connections are open at a time, others wait to be accepted. A header must come
//! within ten seconds, a target must answer within 20. 64 listeners for the other end. A pipe holds 64 kB either way besides what streams and TCP hold.

#![forbid(unsafe_code)]

pub mod forward;
mod header;
mod pipe;
pub mod socks;
mod specification;
mod target;
mod tunnel;

pub use header::{Answer, Header, HeaderError};
pub use specification::{ListenAt, ParseForwardError, PortForward};
pub use target::{ParseTargetError, Target};
pub use tunnel::{OpenError, Opened, Permissions, Targets, Tunnel, bind};
