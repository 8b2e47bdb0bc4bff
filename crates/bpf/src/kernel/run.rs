//! A program whose TCP connections have a law: it runs in a control group of its own, with a BPF program for the group's sockets.

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

/// Moves this process into a group.
fn enter(group: &Path) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(group.join("cgroup.procs"))?.write_all(b"0")
}

/// The folder of this process's control group of version 2.
fn own_group() -> io::Result<PathBuf> {
    let missing = || io::Error::new(io::ErrorKind::Unsupported, "there are no control groups of version 2");
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let mount = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|it| it.get(2) == Some(&"cgroup2"));
    let groups = fs::read_to_string("/proc/self/cgroup")?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/")).ok_or_else(missing)?;
    Ok(Path::new(mount.ok_or_else(missing)?[1]).join(own))
}
