//! Files and folders over a connection.
//!
//! ```text
//! sender                                                                receiver
//!   manifest   magic | entries ──────────────────────────────────────────>   checks names, looks what is there
//!   <────────────────────────────── plan   of each entry: all of it, from here on, nothing
//!   data 1..N  index | from | chunk | chunk | … | hash | index | … ──────>   writes to a part, checks, gives it its name
//!   <────────────────────────────── results   index | done or why not
//! ```
//!
//! The manifest, each of some data streams, and plan with results are a stream each. Files follow each other on the data streams without waiting
//! for anything, so that many small ones cost no round trips.
//!
//! * `name` is what a file may be called in somebody else's folder, `manifest` the list of what is sent, `scan` how it is made.
//! * `hash` is BLAKE3 of a file in chunks of a megabyte, whose chaining values say what of it has arrived whole.
//! * `part` is a file that is not whole yet, and its list of chunks: what is needed to go on after either side was killed.
//! * `frame` says how all of it looks on streams; `send` and `receive` are the two ends.
//!
//! # Limits
//!
//! `ENTRIES_MAX` entries with `MANIFEST_MAX` bytes; a chunk in memory for each of [`STREAMS`] data streams, and one that is being written;
//! 8 MB of small files that wait to be written.

#![forbid(unsafe_code)]

mod error;
mod frame;
mod hash;
mod manifest;
mod name;
mod part;
mod progress;
mod receive;
mod scan;
mod send;

use std::time::Duration;

pub use error::{Failed, ReceiveError, SendError};
pub use manifest::ManifestError;
pub use name::{Name, NameError};
pub use part::Existing;
pub use progress::Progress;
pub use receive::Receiver;
pub use send::{STREAMS, send};

/// How long an end waits for the other one to close when all has been said: as long as an end that has closed answers who has not heard that.
const FAREWELL: Duration = Duration::from_secs(2);

/// How a transfer ended.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Files that arrived, and bytes of them.
    pub files: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Files that had been there before.
    pub files_there: u64,
    /// Bytes that did not have to be sent, as they had been there before.
    pub bytes_there: u64,
    /// Files that did not arrive, and why.
    pub failed: Vec<Failed>,
}
