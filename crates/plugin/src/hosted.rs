//! Modules on a machine of the calling program: the playground is a WASM module, and the browser runs others beside it.
//!
//! The table is copied before and after each call. So the machine gets what the path tells, and the path what the module left, wherever in the table.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::exports::{self, Export};
use crate::hook::{Failure, HOOKS, HookIndex, TABLE};
use crate::layout::{Table, at};

/// Runs modules. It keeps each within the limits that an interpreter would keep it within, and makes every NaN the same.
pub trait Machine: fmt::Debug + Send + Sync {
    /// Compiles a module. Returns a number for it, and what it exports.
    ///
    /// # Errors
    /// Why it is refused.
    fn compile(&self, bytes: &[u8]) -> Result<(u32, Vec<Export>), String>;

    /// The SHA-256 of a module's file in hexadecimal digits.
    fn digest(&self, bytes: &[u8]) -> String;

    fn forget(&self, module: u32);

    /// Makes an instance of a module whose exports are a controller's, and calls the function that returns the address of its table.
    ///
    /// # Errors
    /// How that failed.
    fn start(&self, module: u32) -> Result<Started, Failure>;

    fn end(&self, instance: u32);

    /// Copies the table into an instance, calls the hook of this number in [`HOOKS`], and copies the table back.
    ///
    /// # Errors
    /// How that failed.
    fn call(&self, instance: u32, hook: usize, table: &mut [u8; TABLE_SIZE]) -> Result<(), Failure>;

    /// Copies a part of an instance's memory. Returns whether it is within it.
    fn read(&self, instance: u32, place: usize, bytes: &mut [u8]) -> bool;

    /// Writes a part of an instance's memory. Returns whether it is within it.
    fn write(&self, instance: u32, place: usize, bytes: &[u8]) -> bool;
}

/// Bytes of the table.
pub const TABLE_SIZE: usize = at::END;

/// An instance that was made.
#[derive(Clone, Copy, Debug)]
pub struct Started {
    /// The number of the instance, by which the machine knows it.
    pub instance: u32,
    /// The address of its table.
    pub base: usize,
    /// The size of its memory in bytes.
    pub size: usize,
}

/// A module that was compiled. The machine forgets it with the last of these.
#[derive(Clone, Debug)]
pub(crate) struct Compiled(Arc<Held>);

#[derive(Debug)]
struct Held {
    machine: &'static dyn Machine,
    module: u32,
    exports: Vec<Export>,
}

impl Compiled {
    pub(crate) fn new(machine: &'static dyn Machine, bytes: &[u8]) -> Result<Self, String> {
        let (module, exports) = machine.compile(bytes)?;
        Ok(Self(Arc::new(Held { machine, module, exports })))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.machine.forget(self.module);
    }
}

/// The SHA-256 of a module's file in hexadecimal digits.
pub(crate) fn digest(compiled: &Compiled, bytes: &[u8]) -> String {
    compiled.0.machine.digest(bytes)
}

/// What a module exports.
pub(crate) fn exports(compiled: &Compiled) -> Vec<Export> {
    compiled.0.exports.clone()
}

/// An instance of a module, with a copy of its table.
#[derive(Debug)]
pub(crate) struct Instance {
    compiled: Compiled,
    instance: u32,
    hooks: [bool; HOOKS.len()],
    base: usize,
    size: usize,
    table: Box<Table>,
}

impl Instance {
    /// Creates an instance. `init` is not called yet.
    pub(crate) fn new(compiled: &Compiled) -> Result<Self, String> {
        let Held { machine, module, exports } = &*compiled.0;
        let Started { instance, base, size } = machine.start(*module).map_err(|failure| failure.told(TABLE))?;
        let hooks = HOOKS.map(|hook| exports.iter().any(|export| export.name == hook));
        let mut made =
            Self { compiled: compiled.clone(), instance, hooks, base, size, table: Box::new([0; TABLE_SIZE]) };
        if !made.copy_table() {
            return Err(exports::table_outside(base));
        }
        Ok(made)
    }

    fn machine(&self) -> &'static dyn Machine {
        self.compiled.0.machine
    }

    /// Copies the table from the instance. Returns whether it is within the memory.
    fn copy_table(&mut self) -> bool {
        self.machine().read(self.instance, self.base, &mut *self.table)
    }

    /// Whether the module exports a hook.
    pub(crate) fn has(&self, hook: HookIndex) -> bool {
        self.hooks[hook as usize]
    }

    /// Calls a hook, if the module exports it.
    pub(crate) fn call(&mut self, hook: HookIndex) -> Result<(), String> {
        if !self.has(hook) {
            return Ok(());
        }
        let called = self.machine().call(self.instance, hook as usize, &mut self.table);
        called.map_err(|failure| failure.told(HOOKS[hook as usize]))
    }

    /// Writes bytes into the memory at an address that was checked. Before anything was called they may be within the table.
    pub(crate) fn write_at(&mut self, place: usize, bytes: &[u8]) {
        self.machine().write(self.instance, place, bytes);
        self.copy_table();
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// The table, for the facts of an event.
    pub(crate) fn table_mut(&mut self) -> &mut Table {
        &mut self.table
    }

    /// The number at an address; `None` beyond the end of the memory.
    pub(crate) fn number(&self, place: usize) -> Option<f64> {
        let mut bytes = [0; 8];
        // What was written into the table since the last call is not in the instance yet.
        if place < self.base + TABLE_SIZE && self.base < place.saturating_add(bytes.len()) {
            self.machine().write(self.instance, self.base, &*self.table);
        }
        self.machine().read(self.instance, place, &mut bytes).then(|| f64::from_le_bytes(bytes))
    }

    /// The whole memory at the beginning.
    pub(crate) fn memory(&self) -> Cow<'_, [u8]> {
        let mut memory = vec![0; self.size];
        self.machine().read(self.instance, 0, &mut memory);
        Cow::Owned(memory)
    }

    pub(crate) fn base(&self) -> usize {
        self.base
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.machine().end(self.instance);
    }
}
