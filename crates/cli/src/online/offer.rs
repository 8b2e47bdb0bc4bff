//! The Unix socket of a running command, on which it writes its state to `anabranch watch`: a line of JSON ten times a second.
//!
//! The socket is `anabranch-PID.sock` in `XDG_RUNTIME_DIR`, else in the folder for temporary files, and only its owner may connect.
//! It is created in a private folder, and moved when its mode is set. If another user has a file at that place, it stays, and the command
//! cannot be watched; the same on systems without Unix sockets. Sockets of killed commands of this user are removed.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anabranch::{Connection, Lost};
use serde::{Deserialize, Serialize};
use tokio::task::AbortHandle;

use super::observe::Seen;
use super::place;

/// The state of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Frame {
    pub(super) pid: u32,
    /// The name of the command: `send`, `bench serve`.
    pub(super) command: String,
    /// Seconds since its start.
    pub(super) seconds: f64,
    pub(super) connections: Vec<Shown>,
}

/// A connection of the command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Shown {
    /// The number of the connection in the command.
    pub(super) number: u64,
    #[serde(flatten)]
    pub(super) seen: Seen,
}

/// The socket of a command, while it exists.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    all: Arc<Mutex<Connections>>,
    /// Removed with the last clone.
    _place: Option<Arc<SocketFile>>,
}

#[derive(Debug, Default)]
struct Connections {
    made: u64,
    open: Vec<(u64, Connection)>,
}

/// A file that is removed when this is dropped.
#[derive(Debug)]
struct SocketFile(PathBuf);

/// Shows a connection while it exists. It is a handle of the connection.
#[derive(Debug)]
pub(super) struct Showing {
    number: u64,
    all: Arc<Mutex<Connections>>,
    /// Says so if full packets do not arrive.
    warner: AbortHandle,
}

impl Offer {
    /// Opens the socket of this command. Without a socket the command runs, and cannot be watched.
    pub(super) fn new(command: &'static str) -> Self {
        let all = Arc::<Mutex<Connections>>::default();
        let place = serve(command, &all, &place::folder()).ok().map(|place| Arc::new(SocketFile(place)));
        Self { all, _place: place }
    }

    /// Shows this connection, and warns of a path that does not carry full packets.
    pub(super) fn show(&self, connection: &Connection) -> Showing {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let number = all.made;
        all.made += 1;
        all.open.push((number, connection.clone()));
        let connection = connection.clone();
        let warn = async move {
            if connection.stalled().await {
                _ = writeln!(anstream::stderr(), "note: {}; trying on", Lost::Stalled);
            }
        };
        Showing { number, all: Arc::clone(&self.all), warner: tokio::spawn(warn).abort_handle() }
    }
}

impl Drop for Showing {
    fn drop(&mut self) {
        self.warner.abort();
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let place = all.open.iter().position(|(number, _)| *number == self.number);
        let connection = place.map(|place| all.open.swap_remove(place));
        drop(all);
        drop(connection);
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // A process that connects now gets no answer.
        #[cfg(unix)]
        {
            _ = place::vacate(&self.0);
        }
    }
}

#[cfg(not(unix))]
fn serve(_: &'static str, _: &Arc<Mutex<Connections>>, _: &Path) -> io::Result<PathBuf> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(unix)]
fn serve(command: &'static str, all: &Arc<Mutex<Connections>>, folder: &Path) -> io::Result<PathBuf> {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use tokio::sync::Semaphore;

    let (pid, begin) = (std::process::id(), Instant::now());
    place::running(folder);
    let place = place::place(folder, pid);
    let private = place::private(folder, pid)?;
    let bind = || {
        let inside = private.join(place::SOCKET);
        let listener = tokio::net::UnixListener::bind(&inside)?;
        fs::set_permissions(&inside, Permissions::from_mode(0o600))?;
        place::put(&private, &place)?;
        Ok::<_, io::Error>(listener)
    };
    let listener = bind();
    place::clear(&private)?;
    let listener = listener?;
    let (all, room) = (Arc::downgrade(all), Arc::new(Semaphore::new(WATCHERS_MAX)));
    tokio::spawn(async move {
        loop {
            // Further watchers wait.
            let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
            let Ok((watcher, _)) = listener.accept().await else {
                tokio::time::sleep(TICK).await;
                continue;
            };
            let all = all.clone();
            tokio::spawn(async move {
                while let Some(all) = all.upgrade() {
                    let connections: Vec<_> = {
                        let all = all.lock().unwrap_or_else(PoisonError::into_inner);
                        all.open.iter().take(SHOWN_MAX).cloned().collect()
                    };
                    let shown = connections.iter();
                    let shown = shown.map(|(number, connection)| Shown { number: *number, seen: Seen::of(connection) });
                    let seconds = begin.elapsed().as_secs_f64();
                    let frame = Frame { pid, command: command.to_owned(), seconds, connections: shown.collect() };
                    drop(connections);
                    let Ok(mut line) = serde_json::to_vec(&frame) else { break };
                    line.push(b'\n');
                    let sent = tokio::time::timeout(PATIENCE, write_all(&watcher, &line)).await;
                    if !matches!(sent, Ok(Ok(()))) {
                        break;
                    }
                    tokio::time::sleep(TICK).await;
                }
                drop(permit);
            });
        }
    });
    Ok(place)
}

#[cfg(unix)]
async fn write_all(watcher: &tokio::net::UnixStream, mut line: &[u8]) -> io::Result<()> {
    while !line.is_empty() {
        watcher.writable().await?;
        match watcher.try_write(line) {
            Ok(count) => line = &line[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The interval between lines.
const TICK: Duration = Duration::from_millis(100);

/// The timeout of a watcher.
const PATIENCE: Duration = Duration::from_secs(5);

/// The limit of watchers.
const WATCHERS_MAX: usize = 8;

/// The limit of connections shown.
pub(super) const SHOWN_MAX: usize = 16;

#[cfg(test)]
#[cfg(unix)]
mod tests;
