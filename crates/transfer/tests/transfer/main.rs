//! Transfers over the loopback interface.

#![expect(clippy::unwrap_used, reason = "a test may")]

mod archive;
mod content;
mod disk;
mod farewell;
mod folders;
mod foreign;
mod hostile;
mod names;
mod path;
mod rate;
mod resume;
mod streams;
mod support;
mod verify;
