//! Files of the repository and of the site: reads, lists, writes and copies them, with errors that name them.

use std::fs;
use std::path::Path;

/// The text of a file of the repository.
pub(super) fn read(root: &Path, path: &str) -> Result<String, String> {
    fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))
}

/// The files below a folder of the repository, sorted.
pub(super) fn list(root: &Path, folder: &str, found: &mut Vec<String>) -> Result<(), String> {
    let failed = |error| format!("{folder}: {error}");
    let mut entries: Vec<_> =
        fs::read_dir(root.join(folder)).map_err(failed)?.collect::<Result<_, _>>().map_err(failed)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            list(root, &path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

/// Writes a file, and the folders above it.
pub(super) fn save(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().expect("a file stands in a folder");
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, text))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Copies a file or a folder.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", from.display());
    if from.is_dir() {
        for entry in fs::read_dir(from).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    fs::create_dir_all(to.parent().expect("a file stands in a folder")).map_err(failed)?;
    fs::copy(from, to).map(|_| ()).map_err(failed)
}
