//! Incomplete output files, which Ctrl-C removes.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use anabranch_lab::files;

static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
static HANDLER: Once = Once::new();

/// The exit code after an interrupt, as in shells: 128 and the number of SIGINT.
const INTERRUPTED: i32 = 130;

/// Creates a new file beside `path`, which an interrupt removes.
pub(super) fn create(path: &Path) -> io::Result<(fs::File, PathBuf)> {
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
    // An interrupt waits for this lock, so it finds the file registered if there is one.
    let mut parts = parts();
    let (file, part) = files::create_part(path)?;
    parts.insert(part.clone());
    Ok((file, part))
}

/// Unregisters a file that has got its name.
pub(super) fn forget(part: &Path) {
    parts().remove(part);
}

/// Unregisters and removes a file that [`create`] has made. A failed removal changes nothing.
pub(super) fn remove(part: &Path) {
    _ = fs::remove_file(part);
    parts().remove(part);
}

fn parts() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}
