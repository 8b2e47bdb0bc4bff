//! Congestion controllers that are WASM modules: `cc = { plugin = "mine.wasm" }`.
//!
//! A module is a stranger's program. It sees the facts of its path and nothing else: it imports nothing, so that it has no clock, no file and
//! no randomness. Its memory, the instructions of a call, the depth of its calls and the size of its file have limits. What it computes is the same
//! to the bit on every machine: it is interpreted, every NaN has the same bits, and there are no threads and no vector instructions.
//!
//! A [`Module`] is a file that was checked; a [`Law`] is a module with values for its settings; a controller of it, one for each path, has an
//! instance of the module with a memory of its own. The interface is a table in that memory ([`VERSION`], `layout.rs`, and for authors
//! `template/anabranch_cc.h` and `template/anabranch_cc.rs`).
//!
//! A hook that traps, does not end or leaves an impossible window cannot be told through [`Controller`](anabranch_cc::Controller), which has no
//! errors. It is kept in the [`Faults`] of the run, and the module is not called again. Whoever runs a law looks there and ends the run.
//!
//! [`template`] has the small projects that `anabranch cc new` writes.

mod controller;
mod fault;
mod instance;
mod law;
mod layout;
mod module;
mod tables;
pub mod template;

pub use fault::Faults;
pub use instance::{FUEL_CALL, HOOKS, MEMORY_MAX};
pub use law::{Law, SettingFault};
pub use layout::VERSION;
pub use module::{FILE_MAX, Module, ModuleError};
pub use tables::Setting;

#[cfg(test)]
mod tests;
