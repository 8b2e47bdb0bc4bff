//! Folders of the receiver, by descriptors: each step goes from an open folder to a [`Leaf`] in it, and no step follows a symbolic
//! link. A folder that somebody moves or replaces by a link meanwhile cannot lead elsewhere.
//!
//! Only the folder that the user names is opened by its path. Systems other than Unix have paths here, too (`folder/other.rs`):
//! there each step checks the folder first, but somebody who replaces it between check and step is not noticed.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(crate) use unix::{Folder, mode_allowed};

#[cfg(not(unix))]
mod other;
#[cfg(not(unix))]
pub(crate) use other::Folder;

use std::fs::File;
use std::io;

use crate::manifest::Stamp;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    File,
    Folder,
    Link,
    Other,
}

/// What is there under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct About {
    pub(crate) what: What,
    pub(crate) size: u64,
    pub(crate) modified: Stamp,
    /// Names of the same file.
    pub(crate) links: u64,
    /// Device and number: equal for names of the same file; zeros on systems that do not tell.
    pub(crate) id: (u64, u64),
}

/// What happens to a file that has the new name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occupied {
    /// It stays, and the call fails with [`io::ErrorKind::AlreadyExists`].
    Keep,
    Replace,
}

/// Sets the time of an open file or folder.
pub(crate) fn set_time(file: &File, modified: Stamp) -> io::Result<()> {
    let time = modified.time().ok_or_else(|| io::Error::other("this system cannot represent the time"))?;
    file.set_modified(time)
}

/// Sets the permissions of an open file or folder.
#[cfg(unix)]
pub(crate) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

/// Makes a file writable or not, which is all that this system has of a mode.
#[cfg(not(unix))]
pub(crate) fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    let mut permissions = file.metadata()?.permissions();
    permissions.set_readonly(mode & 0o200 == 0);
    file.set_permissions(permissions)
}

/// The permissions of an open file or folder.
#[cfg(unix)]
pub(crate) fn mode(file: &File) -> io::Result<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(file.metadata()?.permissions().mode() & 0o777)
}

/// Without modes, all permissions.
#[cfg(not(unix))]
pub(crate) fn mode(_: &File) -> io::Result<u32> {
    Ok(0o777)
}

/// The permissions that new files may have: there is no mask.
#[cfg(not(unix))]
pub(crate) fn mode_allowed() -> u32 {
    0o777
}
