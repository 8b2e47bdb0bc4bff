//! Files on a disk: those that are read are not waited for, and those that are written replace nothing before they are complete.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Opens a file to read it.
///
/// A named pipe, a device or a folder is refused, because it may have no end or no beginning. A descriptor that this process has already is
/// read in any case: `/dev/stdin`, and `/dev/fd/63`, which shells give for `<(command)`.
///
/// # Errors
/// If it cannot be opened, or is no plain file.
pub fn open(path: &Path) -> io::Result<File> {
    let found = fs::metadata(path)?;
    match found.is_file() || is_open_already(path) {
        true => File::open(path),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file")),
    }
}

/// Reads a file of text that [`open`] opens.
///
/// # Errors
/// If it cannot be opened or read, is no plain file, or is not UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text).map(|_| text)
}

/// Creates a file with a name of its own in the folder of `path`, for content that takes the place of `path` when it is complete. Returns its
/// path, too. It is a new file in any case, and no link is followed.
///
/// # Errors
/// If the folder cannot be written.
pub fn create_part(path: &Path) -> io::Result<(File, PathBuf)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().take(NAME_PART_MAX).collect();
    let process = std::process::id();
    // A process that was killed may have had this number.
    for attempt in 0..ATTEMPTS_MAX {
        let part = path.with_file_name(format!(".{name}.{process}-{attempt}.part"));
        match File::create_new(&part) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (file, part)),
        }
    }
    let text = format!("{ATTEMPTS_MAX} files .{name}.{process}-N.part are there already; remove them");
    Err(io::Error::new(io::ErrorKind::AlreadyExists, text))
}

/// Whether a path stands for a descriptor of this process.
fn is_open_already(path: &Path) -> bool {
    path == Path::new("/dev/stdin")
        || ["/dev/fd", "/proc/self/fd"].iter().any(|folder| path.parent() == Some(Path::new(folder)))
}

/// So many letters of at most four bytes, the number of the process and the ending fit into a file name of 255 bytes.
const NAME_PART_MAX: usize = 50;

/// A process writes one file of a name at a time, so the others were left by killed processes.
const ATTEMPTS_MAX: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(test: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("ab-files-{test}-{}", std::process::id()));
        _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        folder
    }

    #[test]
    fn part_never_an_existing_file() {
        let folder = folder("part");
        let (whole, process) = (folder.join("rows.csv"), std::process::id());
        let first = folder.join(format!(".rows.csv.{process}-0.part"));
        fs::write(&first, "precious").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(&first, folder.join(format!(".rows.csv.{process}-1.part"))).unwrap();
        let (_, part) = create_part(&whole).unwrap();
        assert_eq!(part, folder.join(format!(".rows.csv.{process}-{}.part", if cfg!(unix) { 2 } else { 1 })));
        assert_eq!(fs::read(&first).unwrap(), b"precious");
        let longest = folder.join("é".repeat(127));
        assert!(create_part(&longest).is_ok());
        fs::remove_dir_all(folder).unwrap();
    }

    /// Opening a pipe without a writer would wait for one.
    #[cfg(unix)]
    #[test]
    fn pipe_and_device_not_opened() {
        let folder = folder("pipe");
        let pipe = folder.join("pipe.toml");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [&*pipe, Path::new("/dev/zero"), &folder] {
            assert_eq!(open(path).unwrap_err().to_string(), "it is no plain file");
        }
        assert!(is_open_already(Path::new("/dev/fd/63")) && !is_open_already(Path::new("/dev/fd")));
        assert!(!is_open_already(Path::new("/dev/fd/../zero")));
        fs::remove_dir_all(folder).unwrap();
    }
}
