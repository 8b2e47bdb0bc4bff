//! Transfers files and folders over a connection, with resumption.
//!
//! ```text
//! sender                                                                receiver
//!   manifest   magic | entries ──────────────────────────────────────────>   checks names, and what is present
//!   <────────────────────────────── plan   per entry: send all, send from here on, or send nothing
//!   data 1..N  index | from | chunk | chunk | … | hash | index | … ──────>   writes to a part file, checks it, renames it
//!   <────────────────────────────── results   index | done, or the reason
//! ```
//!
//! Each line is a stream: the manifest, each data stream, and plan together with results. On the data streams files follow each
//! other without waiting, so many small files cost no round trips.
//!
//! * `name` restricts file names to the receiver's folder, `manifest` is the list of files, `scan` makes it.
//! * `hash` is BLAKE3 of a file in chunks of a megabyte. The chaining values of chunks identify complete chunks.
//! * `part` is an incomplete file with its list of chunks. A transfer resumes from it even after either side was killed.
//! * `frame` encodes the streams; `send` and `receive` are the two ends.
//!
//! # Limits
//!
//! A manifest has at most `ENTRIES_MAX` entries and `MANIFEST_MAX` bytes. In memory are at most two chunks for each of
//! [`STREAMS`] data streams (one of them being written), and 8 MB of small files.

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

/// How long an end waits for the other's close after everything is done. A closed end answers retransmissions for the same time.
const FAREWELL: Duration = Duration::from_secs(2);

/// The result of a transfer.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Files that were transferred.
    pub files: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Files that were already present.
    pub files_there: u64,
    /// Bytes that were already present, and not sent.
    pub bytes_there: u64,
    /// Files that were not transferred, with the reasons.
    pub failed: Vec<Failed>,
}
