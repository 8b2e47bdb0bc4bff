//! What the system gives a command that runs for long.

use std::path::{Path, PathBuf};

/// Allows as many open files as the system lets this user have. A tunnel needs one for each TCP connection, a transfer one for each
/// folder on the way and each file at work, and common systems begin with 1,024. If the system refuses, the limit stays as it was.
pub(super) fn raise_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// The number of connections that the memory allows.
pub(super) fn connections() -> usize {
    memory().map_or(UNKNOWN, |bytes| (bytes / EACH) as usize).clamp(LEAST, MOST)
}

/// The number of TCP connections that memory and open files allow.
pub(super) fn tcp_connections() -> usize {
    let by_memory = memory().map_or(usize::MAX, |bytes| (bytes / EACH_TCP) as usize);
    by_memory.max(LEAST).min(files().saturating_sub(FILES_LEFT)).max(2)
}

/// The limit on open files.
fn files() -> usize {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit};

        getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| files as usize)
    }
    #[cfg(not(unix))]
    usize::MAX
}

/// Bytes of memory that this process may use: those of the computer, or fewer in a container.
fn memory() -> Option<u64> {
    let total = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = limit_files(&groups).into_iter().filter_map(|file| std::fs::read_to_string(file).ok());
    // Without a limit the file has the word "max", or in version 1 a number beyond all memory.
    limits.filter_map(|text| text.trim().parse().ok()).chain(total).min()
}

/// The total memory in bytes, from the text of `/proc/meminfo`.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// The files with the limits on memory of a process's control groups (cgroups(7)), from the text of `/proc/self/cgroup`. The limit of
/// a group holds for the groups below it, too.
fn limit_files(text: &str) -> Vec<PathBuf> {
    let groups = text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, group) = (parts.next()?, parts.next()?);
        let is_of_memory = controllers.split(',').any(|name| name == "memory");
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if is_of_memory => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return None,
        };
        let above = Path::new(group.trim_start_matches('/')).ancestors();
        Some(above.map(|group| Path::new(root).join(group).join(file)).collect::<Vec<_>>())
    });
    groups.flatten().collect()
}

/// Bytes of memory for each connection: the data in flight of a busy one.
const EACH: u64 = 4 << 20;
/// Bytes of memory for each TCP connection of a tunnel: 64 kB on the way in each direction, as much in its streams.
const EACH_TCP: u64 = 256 << 10;
/// Open files that are not TCP connections: sockets for UDP, logs, metrics, names being resolved.
const FILES_LEFT: usize = 64;
const LEAST: usize = 256;
const MOST: usize = 16_384;
const UNKNOWN: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_of_meminfo_is_read_in_kibibytes() {
        assert_eq!(total("MemTotal:       16384 kB\nMemFree:  5 kB\n"), Some(16 << 20));
        assert_eq!(total("MemFree:  5 kB\n"), None);
    }

    /// The two versions of cgroups(7), as a container and a service see them.
    #[test]
    fn limits_of_control_groups_are_those_of_all_above() {
        let files = |text| limit_files(text).iter().map(|file| file.display().to_string()).collect::<Vec<_>>();
        let second =
            ["/system.slice/a.service", "/system.slice", ""].map(|group| format!("/sys/fs/cgroup{group}/memory.max"));
        assert_eq!(files("0::/system.slice/a.service\n"), second);
        assert_eq!(files("0::/\n"), ["/sys/fs/cgroup/memory.max"]);
        let first =
            ["/docker/7", "/docker", ""].map(|group| format!("/sys/fs/cgroup/memory{group}/memory.limit_in_bytes"));
        assert_eq!(files("5:cpu,cpuacct:/docker/7\n4:memory:/docker/7\n"), first);
        assert_eq!(files("nothing\n"), <[String; 0]>::default());
    }
}
