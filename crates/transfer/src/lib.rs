//! Transfers files and folders over a connection, with resumption.
//!
//! ```text
//! sender                                                                receiver
//!   manifest   version | entries ────────────────────────────────────────>   checks names, and what is present
//!   <────────────────────── rate | plan   the highest rate; per entry: send all, compare with this hash, or send nothing
//!   data 1..N  index | chunk | kept | zeros | … | hash | index | … ──────>   writes to a part file, checks it, renames it
//!   <────────────────────────────── results   index | done, or the reason
//! ```
//!
//! Each line is a stream: the manifest, each data stream, and plan together with results. On the data streams files follow each
//! other without waiting, so many small files cost no round trips.
//!
//! * `manifest` is the list of files, `scan` makes it. `name` restricts a name to one file of its folder; `attributes` are what files may
//!   have besides.
//! * `hash` is BLAKE3 of a file in chunks of a megabyte, by which files are compared.
//! * `folder` is a folder by its descriptor, `site` the receiver's folder during a transfer, `plan` what is still needed of each
//!   entry, `part` an incomplete file.
//! * `commit` is the order in which files become durable, get their names, and are confirmed.
//! * `frame` encodes the streams; `send` with `reader`, and `receive` with `incoming`, `write` and `shared`, are the two ends. `pipe` is a
//!   receiver that keeps nothing: what comes is written to where the user wants it. `pool` is the memory of chunks.
//!
//! # What is promised
//!
//! * A file gets its name when the hash of all of its content is the sender's. What an earlier transfer has left is hashed again, and
//!   the sender compares it with what it has now.
//! * A file is confirmed when its data and its name are durable. A file that has its name is whole, also after a power failure.
//! * An error of one file is its own. Only a full disk or a lost peer ends a transfer.
//! * Nothing is written outside of the receiver's folder, also if somebody replaces a folder by a link meanwhile.
//!
//! # Limits
//!
//! A manifest has at most a million entries and 80 MiB; the manifests of all transfers of a [`Receiver`] share 200 MB. In memory are
//! at most two chunks for each of [`STREAMS`] data streams (one of them being written), and 8 MB of small files. A transfer has one text
//! of at most 64 KiB. A summary lists at most a thousand failures.

#![forbid(unsafe_code)]

mod attributes;
mod commit;
mod error;
mod folder;
mod frame;
mod hash;
mod incoming;
mod manifest;
mod name;
mod part;
mod pipe;
mod plan;
mod pool;
mod progress;
mod reader;
mod receive;
mod scan;
mod send;
mod shared;
mod site;
mod write;

use std::time::Duration;

pub use error::{Breach, Failed, ReceiveError, SendError};
pub use manifest::ManifestError;
pub use name::NameError;
pub use pipe::receive_into;
pub use progress::Progress;
pub use receive::Receiver;
pub use scan::{Compare, Item, Links, Options, Parcel};
pub use send::{STREAMS, send};
pub use site::Existing;

/// How long an end waits for the other's close after everything is done. A closed end answers retransmissions for the same time.
const FAREWELL: Duration = Duration::from_secs(2);

/// An end whose peer has said nothing after this time talks to something else, as to a receiver that waits, too.
const BEGUN_WITHIN: Duration = Duration::from_secs(10);

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
    /// Symbolic links and further names of files that were made.
    pub links: u64,
    /// Texts that have come, as the peer wrote them: with control characters, if it wrote some.
    pub texts: Vec<String>,
    /// Texts that have arrived at the receiver.
    pub texts_sent: u64,
    /// Files that were not transferred, with the reasons; at most a thousand.
    pub failed: Vec<Failed>,
    /// Further files that were not transferred.
    pub failed_more: u64,
    /// Whether files were only compared: those that are there, and equal, count as that.
    pub verified: bool,
    /// What is not sent, and what the receiver's file system does not keep, each once.
    pub remarks: Vec<String>,
}

impl Summary {
    /// Whether everything has arrived.
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty() && self.failed_more == 0
    }

    pub(crate) fn fail(&mut self, name: String, reason: impl Into<String>) {
        if self.failed.len() < FAILED_MAX {
            self.failed.push(Failed { name, reason: reason.into() });
        } else {
            self.failed_more += 1;
        }
    }
}

/// The failures that a summary lists: more than anybody reads. Each takes at most 20 kB.
const FAILED_MAX: usize = 1000;
