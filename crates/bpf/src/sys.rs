//! The system call bpf(2): the only unsafe code of the crate. No other crate wraps it for `struct_ops`.
//!
//! The kernel reads and writes through addresses in the call's attributes. [`Attributes`] therefore borrows every buffer whose address it holds,
//! and [`Map`] knows the sizes that the kernel will use.

#![expect(unsafe_code, reason = "bpf(2) is a raw system call, and its descriptors arrive as numbers")]

use std::ffi::CStr;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

const MAP_CREATE: libc::c_int = 0;
const MAP_LOOKUP: libc::c_int = 1;
const MAP_UPDATE: libc::c_int = 2;
const MAP_NEXT_KEY: libc::c_int = 4;
const PROG_LOAD: libc::c_int = 5;
const OBJ_PIN: libc::c_int = 6;
const OBJ_GET: libc::c_int = 7;
const PROG_ATTACH: libc::c_int = 8;
const PROG_TEST_RUN: libc::c_int = 10;
const OBJ_INFO: libc::c_int = 15;
const BTF_LOAD: libc::c_int = 18;
const LINK_CREATE: libc::c_int = 28;

/// `BPF_F_MMAPABLE`: what libbpf gives maps of variables.
pub(crate) const MMAPABLE: u32 = 1 << 10;
/// `BPF_F_LINK`: a link, and not the map, keeps the law registered (Linux 6.4).
pub(crate) const BY_LINK: u32 = 1 << 13;
/// `BPF_F_NO_PREALLOC`, which storage of sockets has to have.
pub(crate) const NO_PREALLOC: u32 = 1;
const SLEEPABLE: u32 = 1 << 4;
const ATTACH_STRUCT_OPS: u32 = 44;
const ATTACH_SOCK_OPS: u32 = 3;

/// `enum bpf_map_type`.
pub(crate) const MAP_ARRAY: u32 = 2;
pub(crate) const MAP_SK_STORAGE: u32 = 24;
pub(crate) const MAP_STRUCT_OPS: u32 = 26;

/// The size of a name in the kernel, its final zero included.
const NAME: usize = 16;

/// `union bpf_attr`, with the buffers that it points to.
struct Attributes<'a> {
    bytes: [u8; 128],
    buffers: PhantomData<&'a mut [u8]>,
}

impl<'a> Attributes<'a> {
    fn new() -> Self {
        Self { bytes: [0; 128], buffers: PhantomData }
    }

    fn u32(mut self, at: usize, value: u32) -> Self {
        self.bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn u64(mut self, at: usize, value: u64) -> Self {
        self.bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        self
    }

    fn fd(self, at: usize, fd: RawFd) -> Self {
        self.u32(at, fd.cast_unsigned())
    }

    /// A buffer that the kernel reads.
    fn reads(self, at: usize, buffer: &'a [u8]) -> Self {
        self.u64(at, buffer.as_ptr().addr() as u64)
    }

    /// A text that the kernel reads.
    fn reads_text(self, at: usize, text: &'a CStr) -> Self {
        self.reads(at, text.to_bytes_with_nul())
    }

    /// A buffer that the kernel writes.
    fn writes(self, at: usize, buffer: &'a mut [u8]) -> Self {
        self.u64(at, buffer.as_mut_ptr().expose_provenance() as u64)
    }

    /// A name, cut to what the kernel keeps.
    fn name(mut self, at: usize, name: &str) -> Self {
        let plain = name.bytes().map(|byte| if byte.is_ascii_alphanumeric() { byte } else { b'_' });
        self.bytes[at..at + NAME - 1].iter_mut().zip(plain).for_each(|(to, byte)| *to = byte);
        self
    }

    /// Makes the call. Returns what the kernel returns, and the attributes as it leaves them.
    fn call(mut self, command: libc::c_int) -> io::Result<(RawFd, [u8; 128])> {
        let (start, size) = (self.bytes.as_mut_ptr(), self.bytes.len());
        // SAFETY: the kernel reads and writes the attributes, `size` bytes at `start`, and the buffers whose addresses are in them. Those are
        // borrowed until `self` ends. Each caller gives buffers as long as the attributes say, or as the map is (see `Map`).
        let result = unsafe { libc::syscall(libc::SYS_bpf, command, start, size) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((RawFd::try_from(result).unwrap_or_default(), self.bytes))
    }

    fn open(self, command: libc::c_int) -> io::Result<OwnedFd> {
        let (fd, _) = self.call(command)?;
        // SAFETY: the command returns a new descriptor, which nobody else owns.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

/// A map, with the sizes of its keys and values.
#[derive(Debug)]
pub(crate) struct Map {
    fd: OwnedFd,
    key_size: usize,
    value_size: usize,
}

/// What a new map is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewMap<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: u32,
    pub(crate) key_size: u32,
    pub(crate) value_size: u32,
    pub(crate) entries: u32,
    pub(crate) flags: u32,
    /// The kernel's type of the value, for [`MAP_STRUCT_OPS`].
    pub(crate) kernel_type: u32,
}

impl Map {
    /// Creates a map.
    pub(crate) fn create(new: &NewMap<'_>) -> io::Result<Self> {
        let attributes = Attributes::new().u32(0, new.kind).u32(4, new.key_size).u32(8, new.value_size);
        let attributes = attributes.u32(12, new.entries).u32(16, new.flags).name(28, new.name).u32(60, new.kernel_type);
        // With a type of the kernel, the creator has to show types of its own, whichever; for storage of sockets, those of key and value.
        let is_storage = new.kind == MAP_SK_STORAGE;
        let types = if new.kernel_type > 0 || is_storage { Some(load_types(new.value_size)?) } else { None };
        let attributes = types.iter().fold(attributes, |attributes, types| attributes.fd(48, types.as_raw_fd()));
        let attributes = if is_storage { attributes.u32(52, NUMBER).u32(56, NUMBERS) } else { attributes };
        let fd = attributes.open(MAP_CREATE)?;
        Ok(Self { fd, key_size: new.key_size as usize, value_size: new.value_size as usize })
    }

    /// Opens a pinned map, and asks the kernel for its sizes.
    pub(crate) fn open(path: &CStr) -> io::Result<Self> {
        let fd = open(path)?;
        // `struct bpf_map_info`: type, id, key_size, value_size.
        let mut info = [0; 16];
        let attributes = Attributes::new().fd(0, fd.as_raw_fd()).u32(4, info.len() as u32).writes(8, &mut info);
        attributes.call(OBJ_INFO)?;
        let size = |at: usize| u32::from_ne_bytes(info[at..at + 4].try_into().expect("4 bytes")) as usize;
        Ok(Self { fd, key_size: size(8), value_size: size(12) })
    }

    pub(crate) fn raw(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// The value of a key; `None` if there is none.
    pub(crate) fn value(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        self.check(key.len() == self.key_size)?;
        let mut value = vec![0; self.value_size];
        let attributes = Attributes::new().fd(0, self.raw()).reads(8, key).writes(16, &mut value);
        let found = absent(attributes.call(MAP_LOOKUP).map(|_| ()))?;
        Ok(found.map(|()| value))
    }

    /// Sets the value of a key.
    pub(crate) fn set(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.check(key.len() == self.key_size && value.len() == self.value_size)?;
        Attributes::new().fd(0, self.raw()).reads(8, key).reads(16, value).call(MAP_UPDATE).map(|_| ())
    }

    /// The key after `key`, or the first one.
    pub(crate) fn next_key(&self, key: Option<&[u8]>) -> io::Result<Option<Vec<u8>>> {
        self.check(key.is_none_or(|key| key.len() == self.key_size))?;
        let mut next = vec![0; self.key_size];
        let attributes = Attributes::new().fd(0, self.raw()).writes(16, &mut next);
        let attributes = if let Some(key) = key { attributes.reads(8, key) } else { attributes };
        let found = absent(attributes.call(MAP_NEXT_KEY).map(|_| ()))?;
        Ok(found.map(|()| next))
    }

    fn check(&self, is_right: bool) -> io::Result<()> {
        if is_right { Ok(()) } else { Err(io::Error::new(io::ErrorKind::InvalidInput, "a map of another size")) }
    }
}

/// The types of [`load_types`].
const NUMBER: u32 = 1;
const NUMBERS: u32 = 2;

/// Loads BTF with two types: a number called `int`, and an array of such numbers that has `size` bytes.
fn load_types(size: u32) -> io::Result<OwnedFd> {
    let number = [1, 1 << 24, 4, 1 << 24 | 32];
    let array = [0, 3 << 24, 0, NUMBER, NUMBER, size / 4];
    let header = [0x0001_eb9f, 24, 0, 40, 40, 5];
    let words = header.into_iter().chain(number).chain(array);
    let mut types: Vec<u8> = words.flat_map(u32::to_ne_bytes).collect();
    types.extend(b"\0int\0");
    Attributes::new().reads(0, &types).u32(16, types.len() as u32).open(BTF_LOAD)
}

fn absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a program is loaded as.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProgramType {
    /// A function of a struct of the kernel: the struct's type, and the number of its member.
    StructOps { kernel_type: u32, member: u32 },
    /// A program for [`run`].
    Syscall,
    /// A program for the sockets of a control group.
    SockOps,
}

/// Loads a program. If the verifier refuses it, the error has the end of its explanation.
pub(crate) fn load(name: &str, kind: ProgramType, instructions: &[u8], license: &CStr) -> io::Result<OwnedFd> {
    let attributes = |log: Option<&mut [u8]>| {
        let attributes = Attributes::new().u32(4, (instructions.len() / 8) as u32).reads(8, instructions);
        let attributes = attributes.reads_text(16, license).name(48, name);
        let attributes = match kind {
            ProgramType::StructOps { kernel_type, member } => {
                attributes.u32(0, 27).u32(68, member).u32(108, kernel_type)
            }
            ProgramType::Syscall => attributes.u32(0, 31).u32(44, SLEEPABLE),
            ProgramType::SockOps => attributes.u32(0, 13).u32(68, ATTACH_SOCK_OPS),
        };
        match log {
            None => attributes.open(PROG_LOAD),
            Some(log) => attributes.u32(24, 1).u32(28, log.len() as u32).writes(32, log).open(PROG_LOAD),
        }
    };
    attributes(None).map_err(|first| {
        let mut log = vec![0; LOG];
        let Err(error) = attributes(Some(&mut log)) else { return first };
        let text = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = text.trim_end_matches('\0').lines().collect();
        let end = lines[lines.len().saturating_sub(LOG_LINES)..].join("; ");
        io::Error::new(error.kind(), format!("{name}: {error}: {end}"))
    })
}

/// The room for the verifier's explanation, and how many of its lines an error has.
const LOG: usize = 1 << 22;
const LOG_LINES: usize = 8;

/// Runs a program of [`ProgramType::Syscall`] on `context`, which it changes.
pub(crate) fn run(program: BorrowedFd<'_>, context: &mut [u8]) -> io::Result<()> {
    let (fd, size) = (program.as_raw_fd(), context.len() as u32);
    Attributes::new().fd(0, fd).u32(40, size).writes(48, context).call(PROG_TEST_RUN).map(|_| ())
}

/// Registers a filled map of [`MAP_STRUCT_OPS`] for as long as the link exists.
pub(crate) fn link(map: &Map) -> io::Result<OwnedFd> {
    Attributes::new().fd(0, map.raw()).u32(8, ATTACH_STRUCT_OPS).open(LINK_CREATE)
}

/// Attaches a program of [`ProgramType::SockOps`] to a control group, for as long as the group exists.
pub(crate) fn attach(program: BorrowedFd<'_>, group: BorrowedFd<'_>) -> io::Result<()> {
    let attributes = Attributes::new().fd(0, group.as_raw_fd()).fd(4, program.as_raw_fd()).u32(8, ATTACH_SOCK_OPS);
    attributes.call(PROG_ATTACH).map(|_| ())
}

/// Keeps a map or link as a file of a BPF file system.
pub(crate) fn pin(fd: RawFd, path: &CStr) -> io::Result<()> {
    Attributes::new().reads_text(0, path).fd(8, fd).call(OBJ_PIN).map(|_| ())
}

fn open(path: &CStr) -> io::Result<OwnedFd> {
    Attributes::new().reads_text(0, path).open(OBJ_GET)
}
