//! Congestion controllers that are WASM modules: `cc = { plugin = "mine.wasm" }`.
//!
//! A module is untrusted code. It sees the facts of its path and nothing else: it has no imports, so no clock, no files and no randomness. Its file
//! size, its parts, its memory, the instructions of a call and the call depth have limits. Its results are the same to the bit on every machine: it is
//! interpreted, every NaN has the same bits, and there are no threads and no vector instructions.
//!
//! A [`Module`] is a checked file. A [`Law`] is a module with values for its settings. Each path has its own controller, with its own instance of the
//! module and its own memory. The interface is a table in that memory ([`VERSION`], `layout.rs`, and for authors
//! `template/c/anabranch_cc.h` and `template/rust/anabranch_cc.rs`).
//!
//! A hook may trap, not end, or leave an invalid window. [`Controller`](anabranch_cc::Controller) cannot report errors, so the first error is kept in
//! the [`Faults`] of the run, and the module is not called again. The caller that runs a law must look there and end the run.
//!
//! [`template`] has the small projects that `anabranch cc new` writes.
//!
//! Without the feature `interpreter` a module runs on a `Machine` of the calling program: the playground, which is a WASM module itself, lets the
//! browser run it. All the rest is the same.

mod controller;
mod exports;
mod fault;
mod hook;
#[cfg(not(feature = "interpreter"))]
mod hosted;
#[cfg(feature = "interpreter")]
mod interpreted;
mod law;
mod layout;
#[cfg(feature = "interpreter")]
mod limits;
mod module;
mod refusal;
mod tables;
pub mod template;

#[cfg(not(feature = "interpreter"))]
use hosted as engine;
#[cfg(feature = "interpreter")]
use interpreted as engine;

pub use exports::{Export, Kind};
pub use fault::Faults;
pub use hook::{FUEL_CALL, Failure, HOOKS, MEMORY_MAX};
#[cfg(not(feature = "interpreter"))]
pub use hosted::{Machine, Started, TABLE_SIZE};
pub use law::Law;
pub use layout::VERSION;
pub use module::Module;
pub use refusal::{ModuleError, SettingFault};
pub use tables::Setting;

/// The limit of a file in bytes. The templates have some thousand bytes, a law in Rust without optimisation two million.
pub const FILE_MAX: u64 = 4 << 20;

#[cfg(test)]
#[cfg(feature = "interpreter")]
mod tests;
