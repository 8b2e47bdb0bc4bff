//! Laws that outlive the command that loaded them: pinned in a BPF file system of our own.
//!
//! ```text
//! /run/anabranch-kernel           a folder of root, with a file system of the type `bpf` mounted on it
//!   LAW-link                      keeps the law registered
//!   LAW-settings, LAW-sockets     its maps
//! ```
//!
//! All names are made of the names of [`Law`]. Nothing is mounted or removed anywhere else; with the last law the mount and the folder go.
//! Commands at one time take turns ([`Turn`]).

use std::ffi::CString;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, fstat, fstatfs, mkdir, open, stat, unlink, unlinkat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::{LoadError, Loaded, ZERO, check, run};
use crate::law::Law;
use crate::segments;
use crate::settings::Settings;
use crate::sys::{self, Map};

/// Where laws are pinned.
const FOLDER: &str = "/run/anabranch-kernel";
/// What commands lock. Only root can open it, so nobody else can hold them up.
const LOCK: &str = "/run/anabranch-kernel.lock";
/// `BPF_FS_MAGIC`.
const BPF_FS: u64 = 0xcafe_4a11;
const LINK: &str = "link";
const SETTINGS: &str = "settings";
const SOCKETS: &str = "sockets";

/// Why a loaded law cannot be reached, or a law cannot be installed.
#[derive(Debug)]
pub enum InstallError {
    /// The law cannot be loaded.
    Load(LoadError),
    /// The law is not loaded.
    NotLoaded(Law),
    /// The folder for pins is not ours.
    Folder(&'static str),
    /// A map holds what is no settings, or no reports of sockets.
    Foreign(Law),
    /// Another command has its turn for too long.
    Busy,
    /// A call failed: which one, and how.
    Call(&'static str, io::Error),
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => error.fmt(f),
            Self::NotLoaded(law) => write!(f, "{law} is not loaded: anabranch kernel load {law}"),
            Self::Folder(problem) => write!(f, "{FOLDER}: {problem}"),
            Self::Foreign(law) => {
                write!(f, "{law} was loaded by another version: anabranch kernel unload {law}")
            }
            Self::Busy => {
                write!(
                    f,
                    "another command has held {LOCK} for {PATIENCE:?}: end it (`lslocks` has its PID), then try again"
                )
            }
            Self::Call(call, error) => write!(f, "{FOLDER}: {call}: {error}"),
        }
    }
}

impl std::error::Error for InstallError {}

impl From<LoadError> for InstallError {
    fn from(error: LoadError) -> Self {
        Self::Load(error)
    }
}

/// Loads a law, which then stays until [`remove`], whatever becomes of this process.
///
/// # Errors
/// If the law cannot be loaded, or the folder for pins is not ours. Nothing stays then.
pub fn install(law: Law, settings: &Settings) -> Result<(), InstallError> {
    check(law)?;
    let _turn = Turn::take()?;
    let folder = Folder::make()?;
    let pinned = Loaded::load(law, settings).map_err(InstallError::from).and_then(|loaded| {
        let pin = |fd, part| sys::pin(fd, &path(law, part)).map_err(|error| InstallError::Call("pin", error));
        // Whoever else has registered the law is gone: what is there of it was left by a loader that was killed.
        folder.remove(law)?;
        pin(loaded.settings.raw(), SETTINGS)?;
        pin(loaded.sockets.raw(), SOCKETS)?;
        // The link last: what is there of a law is there in full.
        pin(loaded.link_raw(), LINK)
    });
    if pinned.is_err() {
        // A law of this name that was there before has its link, and its files stay.
        if !folder.has(law) {
            folder.remove(law)?;
        }
        folder.leave()?;
    }
    pinned
}

/// The loaded laws.
///
/// # Errors
/// If this process is not root, or the folder for pins is not ours.
pub fn installed() -> Result<Vec<Law>, InstallError> {
    check_root()?;
    let _turn = Turn::take()?;
    let folder = Folder::find()?;
    Ok(folder.map_or_else(Vec::new, |folder| Law::ALL.into_iter().filter(|&law| folder.has(law)).collect()))
}

/// Removes a law. Connections that have it keep it; new ones cannot choose it. Returns whether it was there.
///
/// # Errors
/// If this process is not root, or a file cannot be removed.
pub fn remove(law: Law) -> Result<bool, InstallError> {
    check_root()?;
    let _turn = Turn::take()?;
    let Some(folder) = Folder::find()? else { return Ok(false) };
    let was_there = folder.remove(law)?;
    folder.leave()?;
    Ok(was_there)
}

/// Removes what commands that were killed have left: parts of laws, a folder without a law, and control groups without a program.
///
/// # Errors
/// If this process is not root, the folder is not ours, or a file cannot be removed.
pub fn sweep() -> Result<(), InstallError> {
    check_root()?;
    let _turn = Turn::take()?;
    run::sweep();
    let Some(folder) = Folder::find()? else { return remove_folder() };
    for law in Law::ALL {
        if !folder.has(law) {
            folder.remove(law)?;
        }
    }
    folder.leave()
}

/// A loaded law.
#[derive(Debug)]
pub struct Installed {
    law: Law,
    settings: Map,
    sockets: Map,
}

impl Installed {
    /// Opens a loaded law.
    ///
    /// # Errors
    /// If it is not loaded, or this process is not root.
    pub fn open(law: Law) -> Result<Self, InstallError> {
        check_root()?;
        let _turn = Turn::take()?;
        if !Folder::find()?.is_some_and(|folder| folder.has(law)) {
            return Err(InstallError::NotLoaded(law));
        }
        let map = |part| Map::open(&path(law, part)).map_err(|error| InstallError::Call("open", error));
        Ok(Self { law, settings: map(SETTINGS)?, sockets: map(SOCKETS)? })
    }

    /// The settings that its connections use now.
    ///
    /// # Errors
    /// If they are of another version of this program, or cannot be read.
    pub fn settings(&self) -> Result<Settings, InstallError> {
        let value = self.settings.value(&ZERO).map_err(|error| InstallError::Call("read", error))?;
        value.and_then(|bytes| Settings::from_bytes(self.law, &bytes)).ok_or(InstallError::Foreign(self.law))
    }

    /// Sets its settings, for all connections at once, also for those that exist.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn set(&self, settings: &Settings) -> Result<(), InstallError> {
        self.settings.set(&ZERO, &settings.to_bytes()).map_err(|error| InstallError::Call("write", error))
    }

    /// The sockets that have the law.
    ///
    /// # Errors
    /// If the law was loaded by another version of this program, or the kernel refuses to tell.
    pub fn sockets(&self) -> Result<Vec<Socket>, InstallError> {
        let failed = |error| InstallError::Call("read", error);
        let mut sockets = vec![];
        let mut key = self.sockets.next_key(None).map_err(failed)?;
        while let Some(found) = key {
            let value = self.sockets.value(&found).map_err(failed)?;
            if let Some(value) = value {
                sockets.push(Socket::parse(&value).ok_or(InstallError::Foreign(self.law))?);
            }
            key = self.sockets.next_key(Some(&found)).map_err(failed)?;
            // A table that changes while it is read may begin again.
            if sockets.len() >= SOCKETS_MOST {
                break;
            }
        }
        sockets.sort_by_key(|socket| (socket.local, socket.remote));
        Ok(sockets)
    }
}

/// The most sockets that are read: the size of the map.
const SOCKETS_MOST: usize = 4096;

/// What a law may do (`enum ab_report_mode` of `c/driver.h`): five of FAST and its kind, and four of the default law.
pub const MODES: [&str; 9] =
    ["increase", "hold", "first series", "filling", "recovery", "grow", "cruise", "drain", "compete"];

/// A TCP socket with a law, as it was at one of its last 16 ACKs.
#[derive(Clone, Debug, PartialEq)]
pub struct Socket {
    /// The own address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
    /// The window in segments.
    pub window: f64,
    /// baseRTT in nanoseconds; `None` before the first sample, and for a law that keeps none.
    pub base_rtt_ns: Option<u64>,
    /// avgRTT in nanoseconds; `None` as for baseRTT.
    pub average_rtt_ns: Option<u64>,
    /// The segments that the law counts as queued.
    pub queued: Option<f64>,
    /// What the law does: one of [`MODES`].
    pub mode: &'static str,
    /// Longer routes that were recognised, modulo 256.
    pub reroutes: u32,
    /// The token of its MPTCP connection, if it is a subflow of one.
    pub token: Option<u32>,
}

impl Socket {
    /// Reads `struct ab_report`; `None` if it is of another size.
    fn parse(report: &[u8]) -> Option<Self> {
        let report: &[u8; REPORT] = report.try_into().ok()?;
        let u64_at = |at: usize| u64::from_ne_bytes(report[at..at + 8].try_into().expect("8 bytes"));
        let u32_at = |at: usize| u32::from_ne_bytes(report[at..at + 4].try_into().expect("4 bytes"));
        let is_v6 = u32_at(64) == rustix::net::AddressFamily::INET6.as_raw().into();
        let address = |at: usize| -> IpAddr {
            let bytes: [u8; 16] = report[at..at + 16].try_into().expect("16 bytes");
            let first = bytes.first_chunk::<4>().expect("4 of them");
            // A socket of IPv6 that speaks to an IPv4 host has that host's address within one of IPv6.
            if is_v6 { Ipv6Addr::from(bytes).to_canonical() } else { Ipv4Addr::from(*first).into() }
        };
        let known = |ns: u64| (ns > 0).then_some(ns);
        let (base_rtt_ns, average_rtt_ns) = (known(u64_at(0)), known(u64_at(8)));
        let window = segments(u64_at(16));
        let queued = base_rtt_ns.zip(average_rtt_ns);
        let queued = queued.map(|(base, average)| window * average.saturating_sub(base) as f64 / average as f64);
        // The own port is a number, the peer's is as on the wire.
        let (own_port, peer_port) = (u32_at(56) as u16, u16::from_be(u32_at(60) as u16));
        Some(Self {
            local: SocketAddr::new(address(24), own_port),
            remote: SocketAddr::new(address(40), peer_port),
            window,
            base_rtt_ns,
            average_rtt_ns,
            queued,
            mode: MODES.get(u32_at(72) as usize).copied().unwrap_or("?"),
            reroutes: u32_at(76),
            token: Some(u32_at(80)).filter(|&token| token != 0),
        })
    }
}

/// Bytes of `struct ab_report`.
const REPORT: usize = 88;

/// The turn of a command: while one loads or removes laws no other one looks at the folder, which may be half made, or is to be unmounted. It ends with its
/// process, also with one that is killed, whose file the next turn removes.
struct Turn(#[expect(dead_code, reason = "the lock is held as long as this is open")] OwnedFd);

impl Turn {
    fn take() -> Result<Self, InstallError> {
        let failed = |error: Errno| InstallError::Call("lock", error.into());
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let begin = Instant::now();
        loop {
            let file = open(LOCK, flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_lock(&file) => return Ok(Self(file)),
                // The turn before has removed the file in the meantime.
                Ok(()) | Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) if begin.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(20)),
                Err(Errno::WOULDBLOCK) => return Err(InstallError::Busy),
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // A file that stays is empty, and the next turn takes it.
        let _ = unlink(LOCK);
    }
}

/// Whether the file is the one that commands lock now.
fn is_lock(file: &OwnedFd) -> bool {
    let of = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    matches!((fstat(file), stat(LOCK)), (Ok(ours), Ok(there)) if of(ours) == of(there))
}

/// How long a command waits for its turn: a load takes a second or two on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// The folder for pins, with its file system mounted.
struct Folder(OwnedFd);

impl Folder {
    /// Opens the folder; `None` if there is none, or nothing is mounted on it.
    fn find() -> Result<Option<Self>, InstallError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = match open(FOLDER, flags, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(InstallError::Folder("it is not a folder")),
            Err(error) => return Err(InstallError::Call("open", error.into())),
        };
        let found = fstat(&folder).map_err(|error| InstallError::Call("open", error.into()))?;
        let may_write = Mode::from_raw_mode(found.st_mode).intersects(Mode::WGRP | Mode::WOTH);
        let system = fstatfs(&folder).map_err(|error| InstallError::Call("open", error.into()))?;
        if found.st_uid != 0 || may_write {
            return Err(InstallError::Folder("it is not root's alone"));
        }
        Ok((system.f_type.cast_unsigned() as u64 & 0xffff_ffff == BPF_FS).then_some(Self(folder)))
    }

    /// Opens the folder, and makes it and mounts the file system if need be.
    fn make() -> Result<Self, InstallError> {
        match mkdir(FOLDER, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(InstallError::Call("mkdir", error.into())),
        }
        if let Some(folder) = Self::find()? {
            return Ok(folder);
        }
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount("bpf", FOLDER, "bpf", flags, Some(c"mode=0700"))
            .map_err(|error| InstallError::Call("mount", error.into()))?;
        Self::find()?.ok_or(InstallError::Folder("the BPF file system is not there after mounting"))
    }

    fn has(&self, law: Law) -> bool {
        rustix::fs::statat(&self.0, name(law, LINK), AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    fn remove(&self, law: Law) -> Result<bool, InstallError> {
        let mut was_there = false;
        for part in [LINK, SOCKETS, SETTINGS] {
            match unlinkat(&self.0, name(law, part), AtFlags::empty()) {
                Ok(()) => was_there = true,
                Err(Errno::NOENT) => {}
                Err(error) => return Err(InstallError::Call("remove", error.into())),
            }
        }
        Ok(was_there)
    }

    /// Unmounts the file system and removes the folder, if no law is left.
    fn leave(self) -> Result<(), InstallError> {
        // The kernel's own files (`maps.debug`) have a point in their names; no pin may have one.
        let is_empty = rustix::fs::Dir::read_from(self.0.as_fd())
            .is_ok_and(|entries| entries.flatten().all(|entry| entry.file_name().to_bytes().contains(&b'.')));
        drop(self);
        if !is_empty {
            return Ok(());
        }
        unmount(FOLDER, UnmountFlags::NOFOLLOW).map_err(|error| InstallError::Call("unmount", error.into()))?;
        remove_folder()
    }
}

/// Removes the folder, if nothing is in it.
fn remove_folder() -> Result<(), InstallError> {
    match rustix::fs::rmdir(FOLDER) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
        Err(error) => Err(InstallError::Call("rmdir", error.into())),
    }
}

fn check_root() -> Result<(), InstallError> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(LoadError::NotRoot.into()) }
}

fn name(law: Law, part: &str) -> String {
    format!("{law}-{part}")
}

fn path(law: Law, part: &str) -> CString {
    CString::new(format!("{FOLDER}/{}", name(law, part))).expect("no name has a zero")
}
