//! A program whose TCP connections have a law: it runs in a control group of its own, with a BPF program for the group's sockets.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use super::{Installed, LoadError};
use crate::law::Law;

/// A control group for a program.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
    /// The group that this process is in.
    own: PathBuf,
}

impl Group {
    /// Makes a control group whose new TCP connections, made or accepted, get a loaded law.
    ///
    /// # Errors
    /// If there are no control groups of version 2, or the kernel refuses the program.
    pub fn make(law: Law) -> Result<Self, LoadError> {
        let failed = |error| LoadError::Call("control group", error);
        let own = own_group().map_err(failed)?;
        let path = own.join(format!("anabranch-{law}-{}", std::process::id()));
        // A killed command that had the same number may have left one.
        _ = fs::remove_dir(&path);
        fs::create_dir(&path).map_err(failed)?;
        let group = Self { path, own };
        let folder = fs::File::open(&group.path).map_err(failed)?;
        Installed::steer(law, folder.as_fd())?;
        Ok(group)
    }

    /// Starts a program in the group.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        // A child begins in the group of its parent.
        enter(&self.path)?;
        let child = command.spawn();
        enter(&self.own)?;
        child
    }

    /// Removes the group.
    ///
    /// # Errors
    /// If programs still run in it.
    pub fn remove(self) -> io::Result<()> {
        fs::remove_dir(&self.path)
    }

    /// The folder of the group in the file system of control groups.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Removes groups in which no program runs, of commands that were killed before they could do so. Those of others stay.
pub(super) fn sweep() {
    let Ok(mount) = mount() else { return };
    let mut folders = vec![mount];
    while let Some(folder) = folders.pop() {
        if is_left(&folder) && fs::remove_dir(&folder).is_ok() {
            continue;
        }
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        folders
            .extend(entries.flatten().filter(|it| it.file_type().is_ok_and(|kind| kind.is_dir())).map(|it| it.path()));
    }
}

/// Whether this is the folder of a group whose command is gone.
fn is_left(folder: &Path) -> bool {
    let name = folder.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let of_law = |law: Law| name.strip_prefix("anabranch-")?.strip_prefix(law.name())?.strip_prefix('-');
    let id = Law::ALL.into_iter().find_map(of_law).and_then(|id| id.parse::<u32>().ok());
    id.is_some_and(|id| !Path::new("/proc").join(id.to_string()).exists())
}

/// Moves this process into a group.
fn enter(group: &Path) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(group.join("cgroup.procs"))?.write_all(b"0")
}

/// The folder of this process's control group of version 2.
fn own_group() -> io::Result<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).ok_or_else(missing)?;
    Ok(mount()?.join(own))
}

/// Where the file system of control groups of version 2 is.
fn mount() -> io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mount = mounts.find(|it| it.get(2) == Some(&"cgroup2")).ok_or_else(missing)?;
    Ok(mount[1].into())
}

fn missing() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "there are no control groups of version 2")
}
