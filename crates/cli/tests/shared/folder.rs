//! The folder of a test.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// An empty folder for a test, of the test's name. What was in it is deleted, so a name that leads elsewhere is refused.
#[track_caller]
pub(crate) fn folder(test: &str) -> PathBuf {
    assert_eq!(Path::new(test).file_name(), Some(OsStr::new(test)), "a test's folder has one name");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    folder
}
