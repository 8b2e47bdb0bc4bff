//! What the system gives a command that runs for long.

/// Allows as many open files as the system lets this user have. A tunnel needs one for each TCP connection, and common systems begin
/// with 1,024. If the system refuses, the limit stays as it was.
pub(super) fn raise_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// The number of connections that the memory of this computer allows.
pub(super) fn connections() -> usize {
    let memory = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    memory.map_or(UNKNOWN, |bytes| (bytes / EACH) as usize).clamp(LEAST, MOST)
}

/// The total memory in bytes, from the text of `/proc/meminfo`.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// Bytes of memory for each connection: the data in flight of a busy one.
const EACH: u64 = 4 << 20;
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
}
