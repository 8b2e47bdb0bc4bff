//! The thread that runs the sockets of all endpoints.

use std::future;
use std::sync::{Mutex, PoisonError};
use std::thread;

use pyo3::PyResult;
use tokio::runtime::{Builder, Handle};

use crate::net::error;

/// The runtime, which is started at its first use. It runs until the process ends, and the process does not wait for it. A forked process has none of
/// its parent's threads, so it starts its own runtime.
pub(crate) fn running() -> PyResult<Runtime> {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some(runtime) = running.as_ref().filter(|runtime| runtime.process == process) {
        return Ok(runtime.clone());
    }
    let failed = |error| error::bind(&anabranch::BindError::Thread(error));
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let started = Runtime { handle: runtime.handle().clone(), process };
    let name = thread::Builder::new().name("anabranch-net".to_owned());
    name.spawn(move || runtime.block_on(future::pending::<()>())).map_err(failed)?;
    // The parent's runtime must not be dropped here: its threads are in the parent.
    if let Some(parent) = running.replace(started.clone()) {
        std::mem::forget(parent);
    }
    Ok(started)
}

/// The runtime and the process that started it.
#[derive(Clone, Debug)]
pub(crate) struct Runtime {
    handle: Handle,
    process: u32,
}

impl Runtime {
    /// The runtime, in the process that started it. In a forked process nothing would be sent, and locks of the parent's thread may never be
    /// released.
    ///
    /// # Errors
    /// In another process.
    pub(crate) fn handle(&self) -> PyResult<&Handle> {
        let (own, process) = (std::process::id(), self.process);
        match own == process {
            true => Ok(&self.handle),
            false => Err(error::plain(
                "ClosedError",
                &format!(
                    "this belongs to the process {process}, and {own} is a fork of it without the thread that sends; create endpoints after \
                     the fork"
                ),
            )),
        }
    }
}

static RUNNING: Mutex<Option<Runtime>> = Mutex::new(None);
