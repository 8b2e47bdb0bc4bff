//! The place of a command's socket, and the check of its owner.
//!
//! Everyone may write to the folder, as in `/tmp`, so another user can put a fake socket there. Files of other users are never
//! connected to, overwritten or removed.

use std::path::{Path, PathBuf};

/// The folder of the sockets.
pub(super) fn folder() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_dir());
    runtime.unwrap_or_else(std::env::temp_dir)
}

/// The place of a process's socket.
pub(super) fn place(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("anabranch-{pid}.sock"))
}

#[cfg(unix)]
pub(super) use self::unix::{SOCKET, clear, connect, private, put, running, vacate};

#[cfg(unix)]
mod unix {
    use std::fs::{self, DirBuilder};
    use std::io::{self, ErrorKind};
    use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _};
    use std::os::unix::net::UnixStream;
    use std::path::{Path, PathBuf};
    use std::time::{Duration, Instant};

    use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, open, statat, unlinkat};
    use rustix::io::{Errno, ioctl_fionbio};
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, socket};

    /// The pause before another attempt to connect.
    const AGAIN: Duration = Duration::from_millis(50);

    /// The name of a socket in its private folder.
    pub(in super::super) const SOCKET: &str = "s";

    /// Connects to the socket of a command of this user.
    ///
    /// # Errors
    /// If there is none, or the file or the process behind it belongs to another user; or [`ErrorKind::TimedOut`] if the command
    /// takes no connections and the queue of them stays full for as long as `patience`.
    pub(in super::super) fn connect(place: &Path, patience: Duration) -> io::Result<UnixStream> {
        check(place)?;
        let stream = connect_within(place, patience)?;
        // Between the check and the connection another user may have taken the place, if the folder permits it.
        #[cfg(target_os = "linux")]
        if let served_by = rustix::net::sockopt::socket_peercred(&stream)?.uid.as_raw()
            && served_by != own()
        {
            return Err(foreign("the process behind it is", served_by));
        }
        Ok(stream)
    }

    /// A blocking connect would wait for room in the queue of connections for ever.
    fn connect_within(place: &Path, patience: Duration) -> io::Result<UnixStream> {
        let address = SocketAddrUnix::new(place)?;
        let since = Instant::now();
        loop {
            let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
            ioctl_fionbio(&socket, true)?;
            match rustix::net::connect(&socket, &address) {
                Ok(()) => {
                    ioctl_fionbio(&socket, false)?;
                    return Ok(socket.into());
                }
                Err(Errno::AGAIN) if since.elapsed() < patience => std::thread::sleep(AGAIN),
                Err(Errno::AGAIN) => {
                    let why = "it takes no connections: it is stopped, or too many others watch it";
                    return Err(io::Error::new(ErrorKind::TimedOut, why));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Clears a place: removes a socket of this user.
    ///
    /// # Errors
    /// If something else is there, or a file of another user.
    pub(in super::super) fn vacate(place: &Path) -> io::Result<()> {
        match check(place) {
            Ok(()) => fs::remove_file(place),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A folder of this user alone, in which a socket is bound before it is moved to its place.
    pub(in super::super) fn private(folder: &Path, pid: u32) -> io::Result<PathBuf> {
        let private = folder.join(format!("anabranch-{pid}.new"));
        // Left by a killed process with this number.
        clear(&private)?;
        DirBuilder::new().mode(0o700).create(&private)?;
        Ok(private)
    }

    /// Removes such a folder, with the socket in it. It does nothing if there is none.
    ///
    /// # Errors
    /// If it is a link, another user's, or has other content; then all of it stays.
    pub(in super::super) fn clear(private: &Path) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = match open(private, flags, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let found = fstat(&folder)?;
        if found.st_uid != own() {
            return Err(foreign("the folder for its socket is", found.st_uid));
        }
        match statat(&folder, SOCKET, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if FileType::from_raw_mode(found.st_mode).is_socket() => {
                unlinkat(&folder, SOCKET, AtFlags::empty())?;
            }
            Ok(_) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        // This removes no link, and no folder with content.
        fs::remove_dir(private)
    }

    /// Moves the socket in a private folder to its place, which a socket of a killed process is removed from.
    pub(in super::super) fn put(private: &Path, place: &Path) -> io::Result<()> {
        vacate(place)?;
        let inside = private.join(SOCKET);
        // What is put there in this moment is not replaced.
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            Ok(renameat_with(CWD, &inside, CWD, place, RenameFlags::NOREPLACE)?)
        }
        #[cfg(not(target_os = "linux"))]
        fs::rename(&inside, place)
    }

    /// Process ids of this user's commands with a live socket here, sorted. Dead sockets of this user are removed.
    pub(in super::super) fn running(folder: &Path) -> Vec<u32> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut pids: Vec<u32> = entries
            .filter_map(|entry| {
                let name = entry.file_name();
                let pid = name.to_str()?.strip_prefix("anabranch-")?.strip_suffix(".sock")?.parse().ok()?;
                let place = entry.path();
                match connect(&place, Duration::ZERO) {
                    Ok(_) => return Some(pid),
                    Err(error) if error.kind() == ErrorKind::TimedOut => return Some(pid),
                    // Left by a killed process; its owner was checked.
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => _ = vacate(&place),
                    Err(_) => {}
                }
                None
            })
            .collect();
        pids.sort_unstable();
        pids
    }

    /// Checks that this is a socket of this user. A symbolic link is none.
    fn check(place: &Path) -> io::Result<()> {
        let found = fs::symlink_metadata(place)?;
        if found.uid() != own() {
            return Err(foreign("its socket is", found.uid()));
        }
        if !found.file_type().is_socket() {
            return Err(io::Error::new(ErrorKind::InvalidInput, format!("{} is not a socket", place.display())));
        }
        Ok(())
    }

    /// The effective user of this process.
    fn own() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn foreign(what: &str, user: u32) -> io::Error {
        let text = format!("{what} another user's (number {user}; this one is {})", own());
        io::Error::new(ErrorKind::PermissionDenied, text)
    }

    #[cfg(test)]
    mod tests {
        use std::os::unix::fs::{chown, symlink};
        use std::os::unix::net::UnixListener;

        use super::super::place;
        use super::*;

        fn folder(test: &str) -> PathBuf {
            let folder = std::env::temp_dir().join(format!("ab-place-{test}-{}", std::process::id()));
            _ = fs::remove_dir_all(&folder);
            fs::create_dir(&folder).unwrap();
            folder
        }

        /// One process listens, one was killed; there are also a file, a link to a socket, and other names.
        #[test]
        fn sockets_of_dead_processes_go_and_nothing_else_does() {
            let folder = folder("dead");
            let alive = UnixListener::bind(place(&folder, 2)).unwrap();
            drop(UnixListener::bind(place(&folder, 3)).unwrap());
            fs::write(place(&folder, 4), "a file").unwrap();
            symlink(place(&folder, 2), place(&folder, 5)).unwrap();
            drop(UnixListener::bind(folder.join("other-6.sock")).unwrap());
            assert_eq!(running(&folder), [2]);
            let mut left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            left.sort();
            assert_eq!(left, ["anabranch-2.sock", "anabranch-4.sock", "anabranch-5.sock", "other-6.sock"]);
            for (pid, why) in [(4, "is not a socket"), (5, "is not a socket")] {
                let place = place(&folder, pid);
                assert!(connect(&place, Duration::ZERO).unwrap_err().to_string().ends_with(why));
                assert!(vacate(&place).unwrap_err().to_string().ends_with(why));
            }
            vacate(&place(&folder, 7)).unwrap();
            vacate(&place(&folder, 2)).unwrap();
            assert!(!place(&folder, 2).exists());
            drop(alive);
            fs::remove_dir_all(&folder).unwrap();
        }

        /// Only the socket in a private folder goes with it; a link there leads nowhere.
        #[test]
        fn private_folder_of_other_content_kept() {
            let folder = folder("private");
            let victim = folder.join("victim");
            fs::create_dir(&victim).unwrap();
            drop(UnixListener::bind(victim.join(SOCKET)).unwrap());
            symlink(&victim, folder.join("anabranch-7.new")).unwrap();
            assert!(private(&folder, 7).is_err());
            assert!(clear(&folder.join("anabranch-7.new")).is_err());
            assert!(victim.join(SOCKET).exists());
            let full = private(&folder, 8).unwrap();
            fs::write(full.join("other"), "precious").unwrap();
            assert!(clear(&full).is_err() && private(&folder, 8).is_err());
            assert_eq!(fs::read(full.join("other")).unwrap(), b"precious");
            let left = private(&folder, 9).unwrap();
            drop(UnixListener::bind(left.join(SOCKET)).unwrap());
            assert_eq!(private(&folder, 9).unwrap(), left);
            clear(&left).unwrap();
            assert!(!left.exists());
            clear(&left).unwrap();
            fs::remove_dir_all(&folder).unwrap();
        }

        /// A socket of another user is not used, as anything may be behind it.
        #[test]
        fn socket_of_another_user_is_not_used() {
            let folder = folder("foreign");
            let _listening = UnixListener::bind(place(&folder, 2)).unwrap();
            drop(UnixListener::bind(place(&folder, 3)).unwrap());
            if [2, 3].iter().any(|pid| chown(place(&folder, *pid), Some(4711), None).is_err()) {
                fs::remove_dir_all(&folder).unwrap();
                return println!("not run: only root may give files away");
            }
            assert_eq!(running(&folder), [0; 0]);
            for pid in [2, 3] {
                let place = place(&folder, pid);
                for refused in [connect(&place, Duration::ZERO).map(drop), vacate(&place)] {
                    let expected = format!("its socket is another user's (number 4711; this one is {})", own());
                    assert_eq!(refused.unwrap_err().to_string(), expected);
                }
                assert!(place.exists());
            }
            fs::remove_dir_all(&folder).unwrap();
        }
    }
}
