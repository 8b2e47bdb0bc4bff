//! The sources below a folder.

use std::fs;
use std::path::Path;

/// Calls `look` with the path and the text of each Rust source, in the order of their names.
///
/// # Errors
///
/// If a folder or a file cannot be read: which, and why.
pub(super) fn each(folder: &Path, look: &mut dyn FnMut(&Path, &str)) -> Result<(), String> {
    each_in(&["rs"], folder, look)
}

/// The same for the sources with these extensions.
///
/// # Errors
///
/// If a folder or a file cannot be read: which, and why.
pub(super) fn each_in(extensions: &[&str], folder: &Path, look: &mut dyn FnMut(&Path, &str)) -> Result<(), String> {
    let fail = |error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(fail)?.collect::<Result<Vec<_>, _>>().map_err(fail)?;
    let mut paths: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            each_in(extensions, &path, look)?;
        } else if path.extension().is_some_and(|extension| extensions.iter().any(|other| extension == *other)) {
            look(&path, &fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?);
        }
    }
    Ok(())
}
