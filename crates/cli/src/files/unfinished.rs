//! Incomplete output files, which Ctrl-C removes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
static HANDLER: Once = Once::new();

/// The exit code after an interrupt, as in shells: 128 and the number of SIGINT.
const INTERRUPTED: i32 = 130;

/// Registers a file to be removed on an interrupt.
pub(super) fn add(part: &Path) {
    HANDLER.call_once(|| {
        let clear = || {
            // An interrupted process never gets past this lock.
            let parts = parts();
            parts.iter().for_each(|part| _ = fs::remove_file(part));
            process::exit(INTERRUPTED);
        };
        // Without a handler the file stays, as when the process is killed.
        _ = ctrlc::set_handler(clear);
    });
    parts().insert(part.to_owned());
}

/// Unregisters and removes a file. A failed removal changes nothing.
pub(super) fn remove(part: &Path) {
    _ = fs::remove_file(part);
    parts().remove(part);
}

fn parts() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}
