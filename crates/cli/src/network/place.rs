//! Where a command has its socket, and whose that is.
//!
//! The folder may be everybody's, as `/tmp` is: another user can put there what looks like the socket of a command. Nothing of another user is connected
//! to, written over or removed.

use std::path::{Path, PathBuf};

/// The folder of the sockets.
pub(super) fn folder() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_dir());
    runtime.unwrap_or_else(std::env::temp_dir)
}

/// Where a process has its socket.
pub(super) fn place(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("anabranch-{pid}.sock"))
}

#[cfg(unix)]
pub(super) use self::unix::{connect, running, vacate};

#[cfg(unix)]
mod unix {
    use std::fs;
    use std::io::{self, ErrorKind};
    use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
    use std::os::unix::net::UnixStream;
    use std::path::Path;

    /// Connects to the socket of a command of this user.
    ///
    /// # Errors
    /// If there is none, or the file or the process behind it is another user's.
    pub(in super::super) fn connect(place: &Path) -> io::Result<UnixStream> {
        check(place)?;
        let stream = UnixStream::connect(place)?;
        // Between the check and the connection somebody else may have got the place, where the folder lets him.
        #[cfg(target_os = "linux")]
        if let served_by = rustix::net::sockopt::socket_peercred(&stream)?.uid.as_raw()
            && served_by != own()
        {
            return Err(foreign("the process behind it is", served_by));
        }
        Ok(stream)
    }

    /// Makes sure that nothing is at a place that this user may not write over: only a socket of his own.
    ///
    /// # Errors
    /// If something else is there, or another user's.
    pub(in super::super) fn vacate(place: &Path) -> io::Result<()> {
        match check(place) {
            Ok(()) => fs::remove_file(place),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Process ids of this user's commands that have a socket here and answer, in order. His sockets at which nobody listens any more are removed.
    pub(in super::super) fn running(folder: &Path) -> Vec<u32> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut pids: Vec<u32> = entries
            .filter_map(|entry| {
                let name = entry.file_name();
                let pid = name.to_str()?.strip_prefix("anabranch-")?.strip_suffix(".sock")?.parse().ok()?;
                let place = entry.path();
                match connect(&place) {
                    Ok(_) => return Some(pid),
                    // Of a process that was killed; whose it is, has been looked at.
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => _ = vacate(&place),
                    Err(_) => {}
                }
                None
            })
            .collect();
        pids.sort_unstable();
        pids
    }

    /// Whether this is a socket of this user. A link is none, wherever it leads.
    fn check(place: &Path) -> io::Result<()> {
        let found = fs::symlink_metadata(place)?;
        if found.uid() != own() {
            return Err(foreign("its socket is", found.uid()));
        }
        if !found.file_type().is_socket() {
            return Err(io::Error::new(ErrorKind::InvalidInput, format!("{} is no socket", place.display())));
        }
        Ok(())
    }

    /// As whom this process acts.
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

        fn folder(test: &str) -> std::path::PathBuf {
            let folder = std::env::temp_dir().join(format!("ab-place-{test}-{}", std::process::id()));
            _ = fs::remove_dir_all(&folder);
            fs::create_dir(&folder).unwrap();
            folder
        }

        /// One listens, one was killed, and besides there are a file, a link to a socket, and names of others.
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
            for (pid, why) in [(4, "is no socket"), (5, "is no socket")] {
                let place = place(&folder, pid);
                assert!(connect(&place).unwrap_err().to_string().ends_with(why));
                assert!(vacate(&place).unwrap_err().to_string().ends_with(why));
            }
            vacate(&place(&folder, 7)).unwrap();
            vacate(&place(&folder, 2)).unwrap();
            assert!(!place(&folder, 2).exists());
            drop(alive);
            fs::remove_dir_all(&folder).unwrap();
        }

        /// Another user's socket may lead to anybody.
        #[test]
        fn what_another_user_has_put_there_is_left_alone() {
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
                for refused in [connect(&place).map(drop), vacate(&place)] {
                    let expected = format!("its socket is another user's (number 4711; this one is {})", own());
                    assert_eq!(refused.unwrap_err().to_string(), expected);
                }
                assert!(place.exists());
            }
            fs::remove_dir_all(&folder).unwrap();
        }
    }
}
