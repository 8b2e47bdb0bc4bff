//! The thread that moves the bytes of all endpoints.

use std::future;
use std::sync::{Mutex, PoisonError};
use std::thread;

use pyo3::PyResult;
use tokio::runtime::{Builder, Handle};

use crate::net::error;

/// The runtime, started when it is needed first. It lasts as long as the process: at its end nobody waits for it. A forked process has none of
/// its parent's threads, so it starts its own.
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
    // Of a parent's runtime nothing may be dropped here: its other half is in the parent.
    if let Some(parent) = running.replace((process, handle.clone())) {
        std::mem::forget(parent);
    }
    Ok(handle)
}

/// The runtime and the process that started it.
static RUNNING: Mutex<Option<(u32, Handle)>> = Mutex::new(None);
