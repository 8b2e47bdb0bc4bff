//! The congestion laws in the Linux kernel: `anabranch`, `fast`, `emfast`, `rrfast` and `composite` as BPF `struct_ops` programs.
//!
//! The laws are C (`c/anabranch/law.h`, `c/law.h` and what they include), with fixed point and without types of the kernel, so that they compile
//! for BPF and for the host. `c/anabranch.bpf.c` and `c/tcp.bpf.c` connect them to the kernel's TCP. `object/` has the compiled form, which the
//! crate contains; nothing is compiled at run time. The default law is an object of its own. The other object has the laws of the papers: they
//! differ in their [`Settings`], whose names, ranges and defaults are those of [`anabranch_cc`].

#[cfg(target_os = "linux")]
mod btf;
#[cfg(target_os = "linux")]
mod elf;
mod event;
#[cfg(target_os = "linux")]
pub mod kernel;
mod law;
#[cfg(target_os = "linux")]
mod object;
mod settings;
#[cfg(target_os = "linux")]
mod sys;

pub use self::event::{Event, Kind, segments};
pub use self::law::{Law, UnknownLaw};
#[cfg(target_os = "linux")]
pub use self::object::Unfit;
pub use self::settings::{Problem, Settings};
