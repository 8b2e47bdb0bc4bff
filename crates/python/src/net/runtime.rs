//! The thread that runs the sockets of all endpoints.

use std::future;
use std::sync::{Mutex, PoisonError};
use std::thread;

use pyo3::PyResult;
use tokio::runtime::{Builder, Handle};

use crate::net::error;

/// The runtime, which is started at its first use. It runs until the process ends, and the process does not wait for it. A forked process has none of
/// its parent's threads, so it starts its own runtime.
pub(crate) fn handle() -> PyResult<Handle> {
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((_, handle)) = running.as_ref().filter(|(of, _)| *of == process) {
        return Ok(handle.clone());
    }
    let failed = |error| error::bind(&anabranch::BindError::Thread(error));
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let handle = runtime.handle().clone();
    let name = thread::Builder::new().name("anabranch-net".to_owned());
    name.spawn(move || runtime.block_on(future::pending::<()>())).map_err(failed)?;
    // The parent's runtime must not be dropped here: its threads are in the parent.
    if let Some(parent) = running.replace((process, handle.clone())) {
        std::mem::forget(parent);
    }
    Ok(handle)
}

/// The runtime and the process that started it.
static RUNNING: Mutex<Option<(u32, Handle)>> = Mutex::new(None);
