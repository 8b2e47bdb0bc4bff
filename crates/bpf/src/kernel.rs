//! The laws in the running kernel: loading, and what a loaded law consists of.

mod installed;
mod run;

use std::ffi::{CStr, CString};
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

pub use self::installed::{InstallError, Installed, Socket, install, installed, remove};
pub use self::run::Group;
use crate::btf::Btf;
use crate::event::Event;
use crate::law::Law;
use crate::object::{Kind, MapShape, Object, Program, SETTINGS, Unfit};
use crate::settings::Settings;
use crate::sys::{self, Map, NewMap, ProgramType};

/// The compiled laws.
const OBJECT: &[u8] = include_bytes!("../object/tcp.bpf.o");
/// Where the kernel tells its types.
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// The struct of functions that a law is for the kernel, and the one that a map of it holds.
const OPS: &str = "tcp_congestion_ops";
const OPS_VALUE: &str = "bpf_struct_ops_tcp_congestion_ops";
/// `TCP_CONG_NON_RESTRICTED`: any user may choose the law, and it may be the default.
const NON_RESTRICTED: u32 = 1;
/// The map of reports about sockets.
const SOCKETS: &str = "sockets";

/// Why a law cannot be loaded.
#[derive(Debug)]
pub enum LoadError {
    /// This process is not root.
    NotRoot,
    /// The kernel does not tell its types.
    NoBtf,
    /// The kernel has no congestion control by BPF.
    NoStructOps,
    /// The laws use what this kernel does not have.
    Unfit(Unfit),
    /// The kernel has a law of this name.
    Taken(Law),
    /// A call failed: which one, and how.
    Call(&'static str, io::Error),
}

impl LoadError {
    /// Whether it is the machine, and not a failure, that prevents loading: no root, or a kernel without what is needed.
    pub fn is_lack(&self) -> bool {
        matches!(self, Self::NotRoot | Self::NoBtf | Self::NoStructOps | Self::Unfit(Unfit::NoField(_)))
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRoot => f.write_str("laws are loaded into the kernel by root: sudo anabranch kernel …"),
            Self::NoBtf => write!(f, "this kernel has no {BTF}, its types: it needs CONFIG_DEBUG_INFO_BTF"),
            Self::NoStructOps => f.write_str(
                "this kernel has no congestion control by BPF: it needs CONFIG_BPF_SYSCALL and CONFIG_BPF_JIT",
            ),
            Self::Unfit(unfit) => unfit.fmt(f),
            Self::Taken(law) => {
                write!(f, "the kernel has a law called {law}: `anabranch kernel unload {law}` removes ours")
            }
            Self::Call("link", error) if error.kind() == io::ErrorKind::InvalidInput => {
                f.write_str("this kernel cannot register a law by a link: it needs Linux 6.4")
            }
            Self::Call(call, error) => write!(f, "the kernel refuses a law ({call}): {error}"),
        }
    }
}

impl std::error::Error for LoadError {}

impl From<Unfit> for LoadError {
    fn from(unfit: Unfit) -> Self {
        Self::Unfit(unfit)
    }
}

/// Whether this machine can load laws.
///
/// # Errors
/// What is missing.
pub fn check() -> Result<(), LoadError> {
    if !rustix::process::geteuid().is_root() {
        return Err(LoadError::NotRoot);
    }
    Types::read()?.with(|btf| Object::parse(OBJECT)?.programs(btf).map(|_| ()).map_err(LoadError::from))
}

/// The kernel's types.
struct Types(Vec<u8>);

impl Types {
    fn read() -> Result<Self, LoadError> {
        fs::read(BTF).map(Self).map_err(|_| LoadError::NoBtf)
    }

    fn with<T>(&self, ask: impl FnOnce(&Btf<'_>) -> Result<T, LoadError>) -> Result<T, LoadError> {
        let btf = Btf::parse(&self.0).ok_or(LoadError::NoBtf)?;
        btf.find(OPS_VALUE).ok_or(LoadError::NoStructOps)?;
        ask(&btf)
    }
}

/// A law that is registered with the kernel for as long as its link, or a pin of it, exists. Sockets that have it keep it.
#[derive(Debug)]
pub struct Loaded {
    pub(crate) link: OwnedFd,
    pub(crate) settings: Map,
    pub(crate) sockets: Map,
}

impl Loaded {
    /// Loads a law and registers it under its name.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load(law: Law, settings: &Settings) -> Result<Self, LoadError> {
        check()?;
        Types::read()?.with(|btf| {
            let object = Object::parse(OBJECT)?;
            let maps = Maps::create(&object)?;
            maps.settings.set(&ZERO, &settings.to_bytes()).map_err(|error| LoadError::Call("settings", error))?;
            let license = license(&object)?;
            let programs = object.programs(btf)?;
            let (kernel_type, value_type) = (id(btf, OPS)?, id(btf, OPS_VALUE)?);
            let members = btf.members(kernel_type).ok_or(LoadError::NoStructOps)?;
            let size = btf.size(value_type).ok_or(LoadError::NoStructOps)?;
            let data = btf.members(value_type).and_then(|all| all.into_iter().find(|it| it.name == "data"));
            let start = data.ok_or(LoadError::NoStructOps)?.bit_offset / 8;
            let mut value = vec![0; size as usize];
            let mut put = |member: &str, bytes: &[u8]| {
                let member = members.iter().find(|known| known.name == member).ok_or(LoadError::NoStructOps)?;
                let at = (start + member.bit_offset / 8) as usize;
                value.get_mut(at..at + bytes.len()).ok_or(LoadError::NoStructOps)?.copy_from_slice(bytes);
                Ok::<_, LoadError>(())
            };
            put("name", law.name().as_bytes())?;
            put("flags", &NON_RESTRICTED.to_ne_bytes())?;
            let mut loaded = vec![];
            for program in programs.iter().filter(|it| it.kind == Kind::StructOps) {
                let number = members.iter().position(|known| known.name == program.name);
                let member = number.ok_or(LoadError::NoStructOps)? as u32;
                let fd = maps.load(program, ProgramType::StructOps { kernel_type, member }, &license)?;
                // The kernel takes the descriptor of a program where the struct has the address of a function.
                put(&program.name, &u64::try_from(fd.as_raw_fd()).expect("not negative").to_ne_bytes())?;
                loaded.push(fd);
            }
            let new = NewMap {
                name: law.name(),
                kind: sys::MAP_STRUCT_OPS,
                key_size: 4,
                value_size: size,
                entries: 1,
                flags: sys::BY_LINK,
                kernel_type: value_type,
            };
            let ops = Map::create(&new).map_err(|error| LoadError::Call("link", error))?;
            ops.set(&ZERO, &value).map_err(|error| LoadError::Call("functions", error))?;
            let link = sys::link(&ops).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => LoadError::Taken(law),
                _ => LoadError::Call("registration", error),
            })?;
            Ok(Self { link, settings: maps.settings, sockets: maps.sockets })
        })
    }
}

impl Loaded {
    fn link_raw(&self) -> i32 {
        self.link.as_raw_fd()
    }
}

impl Installed {
    /// Gives every new TCP connection of a control group the law, for as long as the group exists.
    fn steer(law: Law, group: BorrowedFd<'_>) -> Result<(), LoadError> {
        let object = Object::parse(OBJECT)?;
        let maps = Maps::create(&object)?;
        maps.settings.set(&ZERO, &Settings::of(law).to_bytes()).map_err(|error| LoadError::Call("settings", error))?;
        Types::read()?.with(|btf| {
            let programs = object.programs(btf)?;
            let program = programs.iter().find(|it| it.kind == Kind::SockOps).ok_or(Unfit::Damaged("sockops"))?;
            let program = maps.load(program, ProgramType::SockOps, &license(&object)?)?;
            sys::attach(program.as_fd(), group).map_err(|error| LoadError::Call("control group", error))
        })
    }
}

/// The key of a map of one element.
pub(crate) const ZERO: [u8; 4] = [0; 4];

/// The maps that the programs share.
struct Maps {
    settings: Map,
    sockets: Map,
}

impl Maps {
    fn create(object: &Object<'_>) -> Result<Self, LoadError> {
        let size = object.settings_size().filter(|&size| size == Settings::BYTES);
        let size = size.ok_or(Unfit::Damaged(SETTINGS))?;
        let (_, shape) =
            object.maps()?.into_iter().find(|&(name, _)| name == SOCKETS).ok_or(Unfit::Damaged(SOCKETS))?;
        let one = MapShape { kind: sys::MAP_ARRAY, key_size: 4, value_size: size as u32, entries: 1 };
        let create = |name, MapShape { kind, key_size, value_size, entries }, flags| {
            let new = NewMap { name, kind, key_size, value_size, entries, flags, kernel_type: 0 };
            Map::create(&new).map_err(|error| LoadError::Call("maps", error))
        };
        Ok(Self { settings: create("settings", one, sys::MMAPABLE)?, sockets: create(SOCKETS, shape, 0)? })
    }

    fn load(&self, program: &Program, kind: ProgramType, license: &CStr) -> Result<OwnedFd, LoadError> {
        let mut instructions = program.instructions.clone();
        for place in &program.maps {
            let map = if place.map == SETTINGS { &self.settings } else { &self.sockets };
            // `BPF_PSEUDO_MAP_FD` or `BPF_PSEUDO_MAP_VALUE` in the upper half of the registers' byte.
            let pseudo = if place.is_value { 2 } else { 1 };
            let instruction = &mut instructions[place.offset..place.offset + 8];
            instruction[1] = instruction[1] & 0x0f | pseudo << 4;
            instruction[4..].copy_from_slice(&map.raw().to_ne_bytes());
        }
        sys::load(&program.name, kind, &instructions, license).map_err(|error| LoadError::Call("verifier", error))
    }
}

fn license(object: &Object<'_>) -> Result<CString, LoadError> {
    let text = object.license().and_then(|bytes| CStr::from_bytes_with_nul(bytes).ok());
    Ok(text.ok_or(Unfit::Damaged("license"))?.to_owned())
}

fn id(btf: &Btf<'_>, name: &str) -> Result<u32, LoadError> {
    btf.find(name).ok_or(LoadError::NoStructOps)
}

/// A law as the kernel's processor runs it, one event at a time: for tests (`BPF_PROG_TEST_RUN`). No socket is involved.
#[derive(Debug)]
pub struct Steps {
    program: OwnedFd,
    /// `struct ab_step`.
    context: Vec<u8>,
}

impl Steps {
    /// The size of `struct ab_state`.
    const STATE: usize = 104;

    /// Loads the program.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load(settings: &Settings) -> Result<Self, LoadError> {
        check()?;
        Types::read()?.with(|btf| {
            let object = Object::parse(OBJECT)?;
            let maps = Maps::create(&object)?;
            let programs = object.programs(btf)?;
            let program = programs.iter().find(|it| it.kind == Kind::Syscall).ok_or(Unfit::Damaged("syscall"))?;
            let program = maps.load(program, ProgramType::Syscall, &license(&object)?)?;
            let mut context = settings.to_bytes().to_vec();
            context.resize(Settings::BYTES + Self::STATE + Event::BYTES, 0);
            Ok(Self { program, context })
        })
    }

    /// The window after an event, with 24 bits after the point. The first event has to be [`crate::Kind::PathChanged`].
    ///
    /// # Errors
    /// If the kernel refuses to run the program.
    pub fn window(&mut self, event: &Event) -> io::Result<u64> {
        let (state, rest) = self.context.split_at_mut(Settings::BYTES + Self::STATE);
        rest.copy_from_slice(&event.to_bytes());
        let state = state.len() - Self::STATE;
        sys::run(self.program.as_fd(), &mut self.context)?;
        Ok(u64::from_ne_bytes(self.context[state..state + 8].try_into().expect("8 bytes")))
    }
}
