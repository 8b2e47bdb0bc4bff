//! Transfers over the loopback interface.

#![expect(clippy::unwrap_used, reason = "a test may")]

mod disk;
mod farewell;
mod folders;
mod hostile;
mod path;
mod resume;
mod support;
