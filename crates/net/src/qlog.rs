//! Logs of connections for [qvis](https://qvis.quictools.info) and other tools: qlog 0.3, one file per connection, as JSON text
//! sequences (`.sqlog`, rfc-7464).
//!
//! ```text
//! engine ── events, under the lock ──> driver ── batches, a bounded channel ──> a thread ── lines ──> files
//! ```
//!
//! The driver never waits for a disk: if the channel is full, it drops a batch and counts it. The first write error ends all logs
//! of the endpoint; the connections continue. [`Endpoint::finish_qlog`](crate::Endpoint::finish_qlog) reports drops and the
//! error.
//!
//! Differs from QUIC's qlog in:
//! * Every event has a group: `path-0` and so on. Packets are counted by path and direction, from 0, as this end sees them. Events
//!   of the whole connection are in `path-0`.
//! * Frames are QUIC's closest: `stream` for data, `datagram` for a datagram, `unknown` for records and voids, `ack` for acknowledgements. A received `ack` lists the packets that it was the
//!   first to acknowledge. A sent `ack` lists none, because it acknowledges offsets, not packets. If it acknowledges packets of
//!   other paths, these are logged there as `packets_acked`.
//! * `anabranch:path_validated`, `path_failed`, `path_restored` and `path_gone` are additional events.

mod text;

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use anabranch_proto::endpoint::{ConnectionId, Traces};
use anabranch_proto::{Event, FourTuple};
use anabranch_units::Time;

use self::text::Text;

/// A report on the logs of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QlogReport {
    /// Events that were written.
    pub written: u64,
    /// Events dropped because the disk was too slow or failed.
    pub dropped: u64,
    /// The first error, with the name of the file.
    pub error: Option<String>,
}

/// The driver's side of the channel.
#[derive(Debug)]
pub(crate) struct Qlog {
    sender: SyncSender<Message>,
    thread: Option<JoinHandle<()>>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    written: AtomicU64,
    dropped: AtomicU64,
    /// Events in the channel.
    waiting: AtomicU64,
    error: Mutex<Option<String>>,
}

#[derive(Debug)]
enum Message {
    Open { connection: ConnectionId, vantage: Vantage, tuple: FourTuple, at: Time },
    Traces(Traces),
    Event { connection: ConnectionId, at: Time, event: Event },
}

impl Counts {
    /// Records the first error.
    fn fail(&self, file: &Path, error: &io::Error) {
        let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(format!("{}: {error}", file.display()));
    }
}

/// Which end of the connection logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vantage {
    Client,
    Server,
}

impl Qlog {
    /// Starts logs in this folder, which is created if necessary. `epoch` is the start of the engine's clock.
    pub(crate) fn start(folder: &Path, epoch: SystemTime) -> io::Result<Self> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).create(folder)?;
        let (sender, receiver) = sync_channel(MESSAGES_MAX);
        let counts = Arc::new(Counts::default());
        let mut writer =
            Writer { folder: folder.to_owned(), epoch, files: BTreeMap::new(), made: 0, counts: Arc::clone(&counts) };
        let thread = std::thread::Builder::new().name("qlog".to_owned()).spawn(move || writer.run(&receiver))?;
        Ok(Self { sender, thread: Some(thread), counts })
    }

    /// A connection has begun.
    pub(crate) fn open(&self, connection: ConnectionId, vantage: Vantage, tuple: FourTuple, at: Time) {
        self.send(Message::Open { connection, vantage, tuple, at }, 1);
    }

    /// Logs the trace of a connection.
    pub(crate) fn traces(&self, traces: Traces) {
        let count = traces.events.len() as u64;
        self.send(Message::Traces(traces), count);
    }

    /// Logs an event that was reported to the application.
    pub(crate) fn event(&self, connection: ConnectionId, at: Time, event: Event) {
        self.send(Message::Event { connection, at, event }, 1);
    }

    fn send(&self, message: Message, count: u64) {
        let waiting = self.counts.waiting.fetch_add(count, Ordering::Relaxed);
        if waiting >= EVENTS_MAX || self.sender.try_send(message).is_err() {
            self.counts.waiting.fetch_sub(count, Ordering::Relaxed);
            self.counts.dropped.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Writes the rest and returns a report. It waits for the disk.
    pub(crate) fn finish(self) -> QlogReport {
        let Self { sender, thread, counts } = self;
        drop(sender);
        if let Some(thread) = thread {
            // A panic was already reported.
            _ = thread.join();
        }
        QlogReport {
            written: counts.written.load(Ordering::Relaxed),
            dropped: counts.dropped.load(Ordering::Relaxed),
            error: counts.error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// The state of the writing thread.
struct Writer {
    folder: PathBuf,
    epoch: SystemTime,
    files: BTreeMap<ConnectionId, (PathBuf, Text<BufWriter<File>>)>,
    made: u64,
    counts: Arc<Counts>,
}

impl Writer {
    fn run(&mut self, receiver: &Receiver<Message>) {
        loop {
            match receiver.recv_timeout(FLUSH_AFTER) {
                Ok(message) => self.handle(message),
                // The channel is idle: writes the buffers, so that the logs can be read meanwhile.
                Err(RecvTimeoutError::Timeout) => self.flush(),
                Err(RecvTimeoutError::Disconnected) => return self.flush(),
            }
        }
    }

    fn handle(&mut self, message: Message) {
        let count = if let Message::Traces(traces) = &message { traces.events.len() as u64 } else { 1 };
        let counter = match self.write(message) {
            Ok(true) => &self.counts.written,
            Ok(false) => &self.counts.dropped,
            Err((file, error)) => {
                self.counts.fail(&file, &error);
                self.files.clear();
                &self.counts.dropped
            }
        };
        counter.fetch_add(count, Ordering::Relaxed);
        self.counts.waiting.fetch_sub(count, Ordering::Relaxed);
    }

    fn flush(&mut self) {
        let failed = self.files.values_mut().find_map(|(file, text)| Some((file.clone(), text.flush().err()?)));
        if let Some((file, error)) = failed {
            self.counts.fail(&file, &error);
            self.files.clear();
        }
    }

    fn has_failed(&self) -> bool {
        self.counts.error.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Writes a message. Returns whether it was written.
    fn write(&mut self, message: Message) -> Result<bool, (PathBuf, io::Error)> {
        if self.has_failed() {
            return Ok(false);
        }
        match message {
            Message::Open { connection, vantage, tuple, at } => {
                if self.files.len() >= FILES_MAX {
                    return Ok(false);
                }
                let file = self.file_name(vantage);
                let text = create(&file).and_then(|out| {
                    let mut text = Text::new(BufWriter::with_capacity(BUFFER, out));
                    text.header(vantage, self.epoch)?;
                    text.started(at, tuple)?;
                    Ok(text)
                });
                let text = text.map_err(|error| (file.clone(), error))?;
                self.files.insert(connection, (file, text));
            }
            Message::Traces(Traces { connection, events, dropped }) => {
                let Some((file, text)) = self.files.get_mut(&connection) else { return Ok(false) };
                let written = events.iter().try_for_each(|event| text.trace(event));
                let written = written.and_then(|()| if dropped > 0 { text.dropped(dropped) } else { Ok(()) });
                written.map_err(|error| (file.clone(), error))?;
                self.counts.dropped.fetch_add(dropped, Ordering::Relaxed);
            }
            Message::Event { connection, at, event } => {
                let Some((file, text)) = self.files.get_mut(&connection) else { return Ok(false) };
                text.event(at, event).map_err(|error| (file.clone(), error))?;
                if matches!(event, Event::Closed(_))
                    && let Some((file, mut text)) = self.files.remove(&connection)
                {
                    text.flush().map_err(|error| (file, error))?;
                }
            }
        }
        Ok(true)
    }

    /// A name that sorts by time.
    fn file_name(&mut self, vantage: Vantage) -> PathBuf {
        self.made += 1;
        let ms = self.epoch.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_millis();
        let process = std::process::id();
        self.folder.join(format!("{ms}-{process}-{}-{}.sqlog", self.made, vantage.name()))
    }
}

impl Vantage {
    fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// Creates a new file; an existing one is not overwritten.
fn create(file: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(file)
}

/// Batches that may wait for the disk, one per turn of the driver: about ten megabytes of events.
const MESSAGES_MAX: usize = 1 << 14;
const EVENTS_MAX: u64 = 1 << 16;

/// The limit on logged connections. Further connections have no log.
const FILES_MAX: usize = 64;

/// The idle time after which buffers are written.
const FLUSH_AFTER: Duration = Duration::from_secs(1);

/// The size of a write.
const BUFFER: usize = 256 << 10;

#[cfg(test)]
mod tests;
