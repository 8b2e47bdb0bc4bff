//! Files that are being written, and what becomes of them when somebody presses Ctrl-C.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
static HANDLER: Once = Once::new();

/// The exit code of a program that was interrupted, as shells have it: 128 and the number of SIGINT.
const INTERRUPTED: i32 = 130;

/// A file begins. If the program is interrupted before it is whole, it is removed.
pub(super) fn add(part: &Path) {
    HANDLER.call_once(|| {
        let clear = || {
            // Whoever is at work now is stopped with the program; nothing is added any more.
            let parts = parts();
            parts.iter().for_each(|part| _ = fs::remove_file(part));
            process::exit(INTERRUPTED);
        };
        // Without a handler the file stays, as it does when the program is killed.
        _ = ctrlc::set_handler(clear);
    });
    parts().insert(part.to_owned());
}

/// A file has its name, or never gets one: then what is left is no result. That it cannot be removed changes nothing.
pub(super) fn remove(part: &Path) {
    _ = fs::remove_file(part);
    parts().remove(part);
}

fn parts() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}
