//! An instance of a module: its memory and its hooks. Each call has limits.

use std::fmt;

use wasmi::errors::ErrorKind;
use wasmi::{
    CompilationMode, Config, EnforcedLimits, Engine, Linker, Memory, Store, StoreLimits, StoreLimitsBuilder, TrapCode,
    TypedFunc,
};

use crate::layout::{Table, at};
use crate::limits::TABLE_ENTRIES_MAX;

/// The hooks that a module may export, each without parameters and results.
pub const HOOKS: [&str; 9] =
    ["init", "on_sent", "on_ack", "on_round", "on_loss", "on_recovered", "on_undo", "on_restart", "on_group"];

/// The exported function that returns the address of the table.
pub(crate) const TABLE: &str = "anabranch";

/// The name of the exported memory.
pub(crate) const MEMORY: &str = "memory";

/// The limit of a call in fuel, about one unit an instruction: some milliseconds. A law's hook takes some dozen.
pub const FUEL_CALL: u64 = 1_000_000;

/// The limit of an instance's memory in bytes. A module in Rust has 1.1 MB with the default stack.
pub const MEMORY_MAX: usize = 4 << 20;

/// The limit of the call depth.
const DEPTH_MAX: usize = 500;

/// The engine, with the same settings for all modules, so that all compute the same.
pub(crate) fn engine() -> Engine {
    let mut config = Config::default();
    config
        .consume_fuel(true)
        .compilation_mode(CompilationMode::Eager)
        .enforced_limits(limits())
        .ignore_custom_sections(true)
        .allow_start_fn(false)
        .set_max_recursion_depth(DEPTH_MAX)
        .wasm_multi_memory(false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false);
    Engine::new(&config)
}

/// Limits against modules that take long to compile.
fn limits() -> EnforcedLimits {
    EnforcedLimits::strict()
}

/// A hook that a module exports.
type Hook = TypedFunc<(), ()>;

/// A module's memory and its hooks.
pub(crate) struct Instance {
    store: Store<StoreLimits>,
    memory: Memory,
    hooks: [Option<Hook>; HOOKS.len()],
    /// The address of the table.
    base: usize,
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Instance {
    /// Creates an instance. `init` is not called yet.
    pub(crate) fn new(module: &wasmi::Module) -> Result<Self, String> {
        let limits = StoreLimitsBuilder::new()
            .memory_size(MEMORY_MAX)
            .table_elements(TABLE_ENTRIES_MAX as usize)
            .instances(1)
            .memories(1)
            .build();
        let mut store = Store::new(module.engine(), limits);
        store.limiter(|limits| limits);
        refuel(&mut store);
        let begun = Linker::new(module.engine()).instantiate_and_start(&mut store, module);
        let instance = begun.map_err(|error| format!("cannot begin: {error}"))?;
        let memory = instance.get_memory(&store, MEMORY).ok_or_else(|| format!("exports no memory `{MEMORY}`"))?;
        let table = instance.get_typed_func::<(), i32>(&store, TABLE).map_err(|_| no_table())?;
        let hooks = HOOKS.map(|hook| instance.get_typed_func::<(), ()>(&store, hook).ok());
        let base = table.call(&mut store, ()).map_err(|error| failed(TABLE, &error))? as u32 as usize;
        if base.saturating_add(at::END) > memory.data_size(&store) {
            return Err(format!("has its table at {base}, and its memory ends before the table does"));
        }
        Ok(Self { store, memory, hooks, base })
    }

    /// Whether the module exports a hook.
    #[inline]
    pub(crate) fn has(&self, hook: HookIndex) -> bool {
        self.hooks[hook as usize].is_some()
    }

    /// Calls a hook, if the module exports it.
    #[inline]
    pub(crate) fn call(&mut self, hook: HookIndex) -> Result<(), String> {
        let Some(function) = &self.hooks[hook as usize] else { return Ok(()) };
        refuel(&mut self.store);
        function.call(&mut self.store, ()).map_err(|error| failed(HOOKS[hook as usize], &error))
    }

    /// Writes bytes into the memory at an address that was checked.
    #[inline]
    pub(crate) fn write_at(&mut self, place: usize, bytes: &[u8]) {
        self.memory.data_mut(&mut self.store)[place..place + bytes.len()].copy_from_slice(bytes);
    }

    /// The table.
    #[inline]
    pub(crate) fn table(&self) -> &Table {
        self.memory()[self.base..].first_chunk().expect(WITHIN)
    }

    /// The table, for the facts of an event.
    #[inline]
    pub(crate) fn table_mut(&mut self) -> &mut Table {
        self.memory.data_mut(&mut self.store)[self.base..].first_chunk_mut().expect(WITHIN)
    }

    /// The whole memory. It never shrinks.
    #[inline]
    pub(crate) fn memory(&self) -> &[u8] {
        self.memory.data(&self.store)
    }

    pub(crate) fn base(&self) -> usize {
        self.base
    }
}

const WITHIN: &str = "a memory never shrinks, and the table was within it";

/// The position of a hook in [`HOOKS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookIndex {
    Init,
    Sent,
    Ack,
    Round,
    Loss,
    Recovered,
    Undo,
    Restart,
    Group,
}

#[inline]
fn refuel(store: &mut Store<StoreLimits>) {
    store.set_fuel(FUEL_CALL).expect("the engine counts fuel");
}

pub(crate) fn no_table() -> String {
    format!(
        "exports no function `{TABLE}` that returns the address of its table; include anabranch_cc.h or anabranch_cc.rs"
    )
}

/// The reason why a call failed, as a message.
fn failed(hook: &str, error: &wasmi::Error) -> String {
    match error.kind() {
        ErrorKind::TrapCode(TrapCode::OutOfFuel) => format!(
            "`{hook}` did not end within {FUEL_CALL} instructions; look for a loop without an end, or let it compute less at once"
        ),
        ErrorKind::TrapCode(TrapCode::StackOverflow) => {
            format!("`{hook}` calls itself more than {DEPTH_MAX} deep; look for a recursion without an end")
        }
        _ => format!(
            "`{hook}` trapped: {error}; a panic, a division by zero and an access outside of the memory do that"
        ),
    }
}
