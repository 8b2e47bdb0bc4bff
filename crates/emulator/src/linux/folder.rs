//! Folders that this program makes as root, below folders of the system.
//!
//! Each step is opened by a descriptor and follows no link. A folder of another user, or one that others may write to, is not entered.
//! Files are removed one by one, by names that this program gives; a folder goes only when it is empty. So nothing else can be removed.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, mkdirat, open, openat, unlinkat};

/// An open folder.
#[derive(Debug)]
pub(super) struct Folder {
    descriptor: OwnedFd,
    /// Its path, for messages and for sockets.
    path: PathBuf,
}

impl Folder {
    /// Opens a folder of the system.
    pub(super) fn of_system(path: &str) -> io::Result<Self> {
        let descriptor = open(path, FOLDER, Mode::empty())?;
        Ok(Self { descriptor, path: path.into() })
    }

    /// Opens a folder in this one; `None` if there is none of this name.
    ///
    /// # Errors
    /// If it is a link or a file, if it belongs to another user, or if others may write to it.
    pub(super) fn child(&self, name: &str) -> io::Result<Option<Self>> {
        let path = self.path.join(plain(name)?);
        let descriptor = match openat(&self.descriptor, name, FOLDER, Mode::empty()) {
            Ok(descriptor) => descriptor,
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
                return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is not a folder"));
            }
            Err(error) => return Err(error.into()),
        };
        let found = fstat(&descriptor)?;
        let own = rustix::process::geteuid().as_raw();
        if found.st_uid != own {
            let text = format!("it belongs to another user (number {}; this one is {own})", found.st_uid);
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        if Mode::from_raw_mode(found.st_mode).intersects(Mode::WGRP | Mode::WOTH) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "others may write to it"));
        }
        Ok(Some(Self { descriptor, path }))
    }

    /// Makes a folder in this one.
    ///
    /// # Errors
    /// If there is something of this name.
    pub(super) fn make(&self, name: &str) -> io::Result<Self> {
        mkdirat(&self.descriptor, plain(name)?, PUBLIC)?;
        self.child(name)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Opens a folder in this one, and makes it if there is none.
    pub(super) fn child_or_make(&self, name: &str) -> io::Result<Self> {
        match self.make(name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.child(name)?.ok_or_else(|| io::ErrorKind::NotFound.into())
            }
            made => made,
        }
    }

    /// Creates a file.
    ///
    /// # Errors
    /// If there is something of this name.
    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.descriptor, plain(name)?, flags, READABLE)?.into())
    }

    /// Creates a file with this text.
    pub(super) fn write(&self, name: &str, text: &str) -> io::Result<()> {
        self.create(name)?.write_all(text.as_bytes())
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it is not a plain file, or longer than [`FILE_MAX`].
    pub(super) fn read(&self, name: &str) -> io::Result<String> {
        // A pipe would be waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let descriptor = openat(&self.descriptor, plain(name)?, flags, Mode::empty())?;
        let found = fstat(&descriptor)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile || found.st_size > FILE_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut text = String::new();
        File::from(descriptor).take(FILE_MAX as u64).read_to_string(&mut text)?;
        Ok(text)
    }

    /// The names in this folder, sorted. Those that are no UTF-8 are shown with U+FFFD.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = vec![];
        for entry in Dir::read_from(&self.descriptor)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Removes a file or socket. Returns false if there is none.
    pub(super) fn remove_file(&self, name: &str) -> io::Result<bool> {
        found(unlinkat(&self.descriptor, plain(name)?, AtFlags::empty()))
    }

    /// Removes an empty folder. Returns false if there is none.
    pub(super) fn remove_empty(&self, name: &str) -> io::Result<bool> {
        found(unlinkat(&self.descriptor, plain(name)?, AtFlags::REMOVEDIR))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

fn found(removed: rustix::io::Result<()>) -> io::Result<bool> {
    match removed {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Refuses what is a path. Every caller has a type or a constant that cannot be one; this is the second wall.
fn plain(name: &str) -> io::Result<&str> {
    match name {
        "" | "." | ".." => Err(io::ErrorKind::InvalidInput.into()),
        _ if name.contains(['/', '\0']) => Err(io::ErrorKind::InvalidInput.into()),
        _ => Ok(name),
    }
}

/// How folders are opened.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Programs of all users read `hosts` in their namespaces.
const PUBLIC: Mode = Mode::RWXU.union(Mode::RGRP).union(Mode::XGRP).union(Mode::ROTH).union(Mode::XOTH);
const READABLE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP).union(Mode::ROTH);

/// The longest file that is read. The state of 64 hosts with 254 interfaces each has some megabytes.
const FILE_MAX: i64 = 1 << 26;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// A folder of a test, which is removed at its end.
    struct TestFolder(PathBuf);

    impl TestFolder {
        fn new(test: &str) -> (Self, Folder) {
            let path = std::env::temp_dir().join(format!("ab-folder-{test}-{}", std::process::id()));
            _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            let folder = Folder::of_system(path.to_str().unwrap()).unwrap();
            (Self(path), folder)
        }
    }

    impl Drop for TestFolder {
        fn drop(&mut self) {
            _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn path_as_name_refused() {
        let (place, folder) = TestFolder::new("path");
        fs::create_dir_all(place.0.join("a/b")).unwrap();
        let inside = folder.child("a").unwrap().unwrap();
        for path in ["", ".", "..", "a/b", "/etc", "../a"] {
            let refused = io::ErrorKind::InvalidInput;
            assert_eq!(folder.child(path).unwrap_err().kind(), refused);
            assert_eq!(folder.make(path).unwrap_err().kind(), refused);
            assert_eq!(inside.read(path).unwrap_err().kind(), refused);
            assert_eq!(inside.create(path).unwrap_err().kind(), refused);
            assert_eq!(inside.remove_file(path).unwrap_err().kind(), refused);
            assert_eq!(inside.remove_empty(path).unwrap_err().kind(), refused);
        }
        assert!(place.0.join("a/b").is_dir());
    }

    /// A link in the place of a folder or file leads nowhere, and only the link itself is removed.
    #[test]
    fn link_not_followed() {
        let (place, folder) = TestFolder::new("link");
        fs::create_dir(place.0.join("target")).unwrap();
        fs::write(place.0.join("target/file"), "precious").unwrap();
        symlink(place.0.join("target"), place.0.join("to-folder")).unwrap();
        symlink(place.0.join("target/file"), place.0.join("to-file")).unwrap();
        assert_eq!(folder.child("to-folder").unwrap_err().to_string(), "it is not a folder");
        assert!(folder.read("to-file").is_err());
        assert_eq!(folder.create("to-file").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(folder.remove_empty("to-folder").is_err());
        assert!(folder.remove_empty("target").is_err());
        assert!(folder.remove_file("to-file").unwrap() && !folder.remove_file("to-file").unwrap());
        assert_eq!(folder.names().unwrap(), ["target", "to-folder"]);
        assert_eq!(fs::read(place.0.join("target/file")).unwrap(), b"precious");
    }

    #[test]
    fn folder_of_others_not_entered() {
        let (place, folder) = TestFolder::new("others");
        for (name, mode) in [("group", 0o775), ("all", 0o757)] {
            fs::create_dir(place.0.join(name)).unwrap();
            fs::set_permissions(place.0.join(name), fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(folder.child(name).unwrap_err().to_string(), "others may write to it");
        }
        fs::create_dir(place.0.join("given")).unwrap();
        if std::os::unix::fs::chown(place.0.join("given"), Some(4711), None).is_ok() {
            let refused = folder.child("given").unwrap_err().to_string();
            assert!(refused.starts_with("it belongs to another user (number 4711;"), "{refused}");
        }
        assert!(folder.child("none").unwrap().is_none());
    }
}
