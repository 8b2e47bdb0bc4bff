//! The laws in the running kernel: loading, and what a loaded law consists of.

mod defaults;
mod installed;
mod run;

use std::ffi::{CStr, CString};
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

pub use self::defaults::Namespace;
pub use self::installed::{InstallError, Installed, MODES, Socket, install, installed, remove, sweep};
pub use self::run::Group;
use crate::btf::Btf;
use crate::event::Event;
use crate::law::Law;
use crate::object::{Kind, MapShape, Object, Program, SETTINGS, Unfit};
use crate::settings::Settings;
use crate::sys::{self, Map, NewMap, ProgramType};

/// The compiled laws: the default law, and the others.
const ANABRANCH: &[u8] = include_bytes!("../object/anabranch.bpf.o");
const OTHERS: &[u8] = include_bytes!("../object/tcp.bpf.o");
/// Where the kernel tells its types.
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// The struct of functions that a law is for the kernel, and the one that a map of it holds.
const OPS: &str = "tcp_congestion_ops";
const OPS_VALUE: &str = "bpf_struct_ops_tcp_congestion_ops";
/// `TCP_CONG_NON_RESTRICTED`: any user may choose the law, and it may be the default.
const NON_RESTRICTED: u32 = 1;
/// The function of the default law that has other arguments before Linux 6.10.
const CONG_CONTROL: &str = "cong_control";
const CONG_CONTROL_ARGUMENTS: u32 = 4;
/// The function that kernels before Linux 7.1 do not have: there `cwnd_event` tells the same.
const TX_START: &str = "cwnd_event_tx_start";
/// The struct that the laws read by a function which a kernel under lockdown refuses.
const READ_BY_FUNCTION: &str = "mptcp_subflow_context";
/// How far the kernel is locked down: its mode stands in brackets.
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";
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
    /// The kernel cannot register a law by a link.
    NoLink,
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
        matches!(self, Self::NotRoot | Self::NoBtf | Self::NoStructOps | Self::NoLink | Self::Unfit(Unfit::NoField(_)))
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
            Self::NoLink => f.write_str("this kernel cannot register a law by a link: it needs Linux 6.4"),
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

/// Whether this machine can load `law`.
///
/// # Errors
/// What is missing.
pub fn check(law: Law) -> Result<(), LoadError> {
    if !rustix::process::geteuid().is_root() {
        return Err(LoadError::NotRoot);
    }
    Types::read()?.with(|btf| {
        programs(btf, law, &object(law)?)?;
        ops(btf, law).map(|_| ())
    })
}

/// The programs of a law, if this kernel has all that they use.
fn programs(btf: &Btf<'_>, law: Law, object: &Object<'static>) -> Result<Vec<Program>, LoadError> {
    let programs = object.programs(btf)?;
    if law == Law::Anabranch {
        let members = btf.members(id(btf, OPS)?).ok_or(LoadError::NoStructOps)?;
        let function = members.iter().find(|known| known.name == CONG_CONTROL).ok_or(LoadError::NoStructOps)?;
        if btf.arguments(function.type_id) != Some(CONG_CONTROL_ARGUMENTS) {
            return Err(Unfit::NoField(format!("{CONG_CONTROL} of Linux 6.10")).into());
        }
    }
    Ok(programs)
}

/// The map that is to hold the functions of a law, and the size of its value.
fn ops(btf: &Btf<'_>, law: Law) -> Result<(Map, u32), LoadError> {
    let value_type = id(btf, OPS_VALUE)?;
    let size = btf.size(value_type).ok_or(LoadError::NoStructOps)?;
    let new = NewMap {
        name: law.name(),
        kind: sys::MAP_STRUCT_OPS,
        key_size: 4,
        value_size: size,
        entries: 1,
        flags: sys::BY_LINK,
        kernel_type: value_type,
    };
    let map = Map::create(&new).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => LoadError::NoLink,
        _ => LoadError::Call("link", error),
    })?;
    Ok((map, size))
}

/// Whether the laws do not know which sockets are subflows of MPTCP, because the kernel is locked down in its mode `confidentiality`.
pub fn hides_subflows() -> bool {
    fs::read_to_string(LOCKDOWN).is_ok_and(|modes| modes.contains("[confidentiality]"))
}

fn object(law: Law) -> Result<Object<'static>, Unfit> {
    let object = Object::parse(match law {
        Law::Anabranch => ANABRANCH,
        Law::Fast | Law::Emfast | Law::Rrfast | Law::Composite => OTHERS,
    })?;
    Ok(if hides_subflows() { object.without(READ_BY_FUNCTION) } else { object })
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
        check(law)?;
        Types::read()?.with(|btf| {
            let object = object(law)?;
            let maps = Maps::create(&object, settings)?;
            let license = license(&object)?;
            let programs = programs(btf, law, &object)?;
            let members = btf.members(id(btf, OPS)?).ok_or(LoadError::NoStructOps)?;
            let (ops, size) = ops(btf, law)?;
            let data = btf.members(id(btf, OPS_VALUE)?).and_then(|all| all.into_iter().find(|it| it.name == "data"));
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
            let functions = functions(btf, &programs, &maps, &license)?;
            for (name, fd) in &functions {
                // The kernel takes the descriptor of a program where the struct has the address of a function.
                put(name, &u64::try_from(fd.as_raw_fd()).expect("not negative").to_ne_bytes())?;
            }
            ops.set(&ZERO, &value).map_err(|error| LoadError::Call("functions", error))?;
            let link = sys::link(&ops).map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => LoadError::Taken(law),
                _ => LoadError::Call("registration", error),
            })?;
            let (settings, sockets) = maps.split()?;
            Ok(Self { link, settings, sockets })
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
        let object = object(law)?;
        let maps = Maps::create(&object, &Settings::of(law))?;
        Types::read()?.with(|btf| {
            let programs = object.programs(btf)?;
            let program = programs.iter().find(|it| it.kind == Kind::SockOps).ok_or(Unfit::Damaged("sockops"))?;
            let program = maps.load(program, ProgramType::SockOps, &license(&object)?)?;
            sys::attach(program.as_fd(), group).map_err(|error| LoadError::Call("control group", error))
        })
    }
}

/// Loads the functions of a law, and returns them with their names in the kernel's struct.
fn functions<'a>(
    btf: &Btf<'_>,
    programs: &'a [Program],
    maps: &Maps,
    license: &CStr,
) -> Result<Vec<(&'a str, OwnedFd)>, LoadError> {
    let kernel_type = id(btf, OPS)?;
    let members = btf.members(kernel_type).ok_or(LoadError::NoStructOps)?;
    let mut loaded = vec![];
    for program in programs.iter().filter(|it| it.kind == Kind::StructOps) {
        let Some(number) = members.iter().position(|known| known.name == program.name) else {
            if program.name == TX_START {
                continue;
            }
            return Err(LoadError::NoStructOps);
        };
        let member = number as u32;
        let fd = maps.load(program, ProgramType::StructOps { kernel_type, member }, license)?;
        loaded.push((program.name.as_str(), fd));
    }
    Ok(loaded)
}

/// The key of a map of one element.
pub(crate) const ZERO: [u8; 4] = [0; 4];

/// The maps that the programs share, by their names in C.
struct Maps(Vec<(&'static str, Map)>);

impl Maps {
    fn create(object: &Object<'static>, settings: &Settings) -> Result<Self, LoadError> {
        let failed = |error| LoadError::Call("maps", error);
        let bytes = settings.to_bytes();
        object.settings_size().filter(|&size| size == bytes.len()).ok_or(Unfit::Damaged(SETTINGS))?;
        let one = MapShape { kind: sys::MAP_ARRAY, key_size: 4, value_size: bytes.len() as u32, entries: 1 };
        let create = |name, MapShape { kind, key_size, value_size, entries }, flags| {
            let new = NewMap { name, kind, key_size, value_size, entries, flags, kernel_type: 0 };
            Map::create(&new).map_err(failed)
        };
        let map = create("settings", one, sys::MMAPABLE)?;
        map.set(&ZERO, &bytes).map_err(failed)?;
        let mut maps = vec![(SETTINGS, map)];
        for (name, shape) in object.maps()? {
            let flags = if shape.kind == sys::MAP_SK_STORAGE { sys::NO_PREALLOC } else { 0 };
            maps.push((name, create(name, shape, flags)?));
        }
        Ok(Self(maps))
    }

    fn named(&self, name: &str) -> Result<&Map, Unfit> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, map)| map).ok_or(Unfit::Damaged("maps"))
    }

    /// The settings and the reports; the programs keep the other maps.
    fn split(self) -> Result<(Map, Map), Unfit> {
        let (mut settings, mut sockets) = (None, None);
        for (name, map) in self.0 {
            match name {
                SETTINGS => settings = Some(map),
                SOCKETS => sockets = Some(map),
                _ => {}
            }
        }
        settings.zip(sockets).ok_or(Unfit::Damaged("maps"))
    }

    fn load(&self, program: &Program, kind: ProgramType, license: &CStr) -> Result<OwnedFd, LoadError> {
        let mut instructions = program.instructions.clone();
        for place in &program.maps {
            let map = self.named(&place.map)?;
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
    /// `struct ab_step`: the event, and the window after it.
    context: [u8; Event::BYTES + 8],
}

impl Steps {
    /// Loads the program.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load(law: Law, settings: &Settings) -> Result<Self, LoadError> {
        check(law)?;
        Types::read()?.with(|btf| {
            let object = object(law)?;
            let maps = Maps::create(&object, settings)?;
            let programs = object.programs(btf)?;
            let program = programs.iter().find(|it| it.kind == Kind::Syscall).ok_or(Unfit::Damaged("syscall"))?;
            let program = maps.load(program, ProgramType::Syscall, &license(&object)?)?;
            Ok(Self { program, context: [0; Event::BYTES + 8] })
        })
    }

    /// The window after an event, with 24 bits after the point. The first event has to be [`crate::Kind::PathChanged`].
    ///
    /// # Errors
    /// If the kernel refuses to run the program.
    pub fn window(&mut self, event: &Event) -> io::Result<u64> {
        self.context[..Event::BYTES].copy_from_slice(&event.to_bytes());
        sys::run(self.program.as_fd(), &mut self.context)?;
        Ok(u64::from_ne_bytes(self.context[Event::BYTES..].try_into().expect("8 bytes")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call of `bpf_probe_read_kernel`.
    const READ: [u8; 8] = [0x85, 0, 0, 0, 113, 0, 0, 0];
    /// A call of a function that no kernel has.
    const NEVER: [u8; 8] = [0x85, 0, 0, 0, 0xff, 0xff, 0xff, 0x0f];

    /// The verifier accepts a call that no kernel has only where nothing leads to it.
    #[test]
    fn law_under_lockdown_calls_nothing_that_is_refused() {
        if let Err(lack) = check(Law::Fast) {
            println!("skipped: {lack}");
            return;
        }
        let load = |law, is_locked: bool| {
            Types::read()?.with(|btf| {
                let object = object(law)?;
                let object = if is_locked { object.without(READ_BY_FUNCTION) } else { object };
                let maps = Maps::create(&object, &Settings::of(law))?;
                let mut programs = object.programs(btf)?;
                let instructions = programs.iter_mut().flat_map(|it| it.instructions.chunks_exact_mut(8));
                instructions.filter(|it| **it == READ).for_each(|it| it.copy_from_slice(&NEVER));
                functions(btf, &programs, &maps, &license(&object)?).map(|loaded| loaded.len())
            })
        };
        for law in [Law::Anabranch, Law::Fast] {
            let count = load(law, true).expect("the verifier accepts it");
            assert!(count >= 7, "{law}: {count} functions");
            // A kernel without MPTCP never calls it.
            let reads = Types::read().and_then(|types| types.with(|btf| id(btf, READ_BY_FUNCTION))).is_ok();
            assert_eq!(load(law, false).is_err(), reads, "{law}");
        }
    }
}
