//! The law that new TCP connections of a network namespace have unless their program chooses one.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::fstat;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::law::Law;

/// The setting of the network namespace of the thread that opens it.
const SETTING: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
/// Where `ip netns` has its namespaces.
const NAMED: &str = "/run/netns";

/// A network namespace.
#[derive(Debug)]
pub struct Namespace {
    /// `None`: that of this process.
    file: Option<File>,
}

impl Namespace {
    /// The namespace of this process.
    pub const fn own() -> Self {
        Self { file: None }
    }

    /// Each namespace of this host that a process is in or that `ip netns` has named, once. A namespace that is made later begins with the default of
    /// the first one, that of process 1.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn all() -> io::Result<Vec<Self>> {
        let own = fstat(File::open("/proc/self/ns/net")?)?;
        let mut found = BTreeMap::new();
        for path in places()? {
            // A process may have ended meanwhile, and a file in the folder may be no namespace.
            let Ok(file) = File::open(path) else { continue };
            let stat = fstat(&file)?;
            if stat.st_dev == own.st_dev {
                found.entry(stat.st_ino).or_insert(Self { file: Some(file) });
            }
        }
        Ok(found.into_values().collect())
    }

    /// The name of its default law.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn default(&self) -> io::Result<String> {
        self.within(|| fs::read_to_string(SETTING)).map(|name| name.trim().to_owned())
    }

    /// Makes a loaded law its default.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn set(&self, law: Law) -> io::Result<()> {
        self.within(|| fs::write(SETTING, law.name()))
    }

    /// Makes a law of the kernel itself its default, and returns its name. CUBIC may be restricted in a namespace; Reno never is.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn reset(&self) -> io::Result<&'static str> {
        let set = |name| fs::write(SETTING, name).map(|()| name);
        self.within(|| set("cubic").or_else(|_| set("reno")))
    }

    /// Does something in the namespace, on a thread of its own.
    fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        let Some(file) = &self.file else { return work() };
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
                work()
            });
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// Files that may be namespaces.
fn places() -> io::Result<Vec<PathBuf>> {
    let mut places = vec![];
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit)) {
            places.push(path.join("ns/net"));
        }
    }
    let named = fs::read_dir(Path::new(NAMED)).into_iter().flatten().flatten();
    places.extend(named.map(|entry| entry.path()));
    Ok(places)
}
