//! Modules under an interpreter: how one is compiled, and an instance with its memory and its hooks. Each call has limits.

use std::borrow::Cow;
use std::fmt;

use sha2::{Digest as _, Sha256};
use wasmi::errors::ErrorKind;
use wasmi::{
    CompilationMode, Config, EnforcedLimits, Engine, ExternType, Linker, Memory, Store, StoreLimits,
    StoreLimitsBuilder, TrapCode, TypedFunc,
};
use wasmparser::{Validator, WasmFeatures};

use crate::exports::{Export, Kind, table_outside};
use crate::hook::{DEPTH_MAX, FUEL_CALL, Failure, HOOKS, HookIndex, MEMORY, MEMORY_MAX, TABLE, no_table};
use crate::layout::{Table, at, read_f64};
use crate::limits::{self, TABLE_ENTRIES_MAX};

pub(crate) type Compiled = wasmi::Module;

/// Checks the parts of a module, and compiles it.
pub(crate) fn compile_checked(bytes: &[u8]) -> Result<Compiled, String> {
    limits::check(bytes)?;
    // The compiler validates as it goes, and may have panicked before it finds a mistake.
    Validator::new_with_features(FEATURES).validate_all(bytes).map_err(|refusal| not_run(&refusal))?;
    compile(bytes)
}

/// Compiles a module for its own engine. Engines lend stacks to calls, so threads would wait for the stacks of a shared engine.
pub(crate) fn compile(bytes: &[u8]) -> Result<Compiled, String> {
    wasmi::Module::new(&engine(), bytes).map_err(|error| not_run(&error))
}

/// The SHA-256 of a module's file in hexadecimal digits.
pub(crate) fn digest(_: &Compiled, bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn exports(module: &Compiled) -> Vec<Export> {
    let of_type = |kind: &ExternType| match kind {
        ExternType::Memory(memory) => Kind::Memory { least: memory.minimum().saturating_mul(PAGE) },
        ExternType::Func(function) => match (function.params(), function.results()) {
            ([], []) => Kind::Plain,
            ([], [wasmi::ValType::I32]) => Kind::Address,
            _ => Kind::Other,
        },
        _ => Kind::Other,
    };
    module.exports().map(|export| Export { name: export.name().to_owned(), kind: of_type(export.ty()) }).collect()
}

fn not_run(error: &dyn fmt::Display) -> String {
    format!(
        "is not a module that can be run: {error}; allowed is WASM 2.0 without vector instructions, threads, 64-bit memories and a start \
         function"
    )
}

/// Bytes of a page of memory.
const PAGE: u64 = 1 << 16;

/// The part of WASM that the compiler knows; it refuses what it has not.
const FEATURES: WasmFeatures = WasmFeatures::WASM2
    .difference(WasmFeatures::SIMD)
    .union(WasmFeatures::EXTENDED_CONST)
    .union(WasmFeatures::TAIL_CALL);

/// The engine, with the same settings for all modules, so that all compute the same.
fn engine() -> Engine {
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
    pub(crate) fn new(module: &Compiled) -> Result<Self, String> {
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
        let base = table.call(&mut store, ()).map_err(|error| failure(&error).told(TABLE))? as u32 as usize;
        if base.saturating_add(at::END) > memory.data_size(&store) {
            return Err(table_outside(base));
        }
        Ok(Self { store, memory, hooks, base })
    }

    /// Whether the module exports a hook.
    pub(crate) fn has(&self, hook: HookIndex) -> bool {
        self.hooks[hook as usize].is_some()
    }

    /// Calls a hook, if the module exports it.
    pub(crate) fn call(&mut self, hook: HookIndex) -> Result<(), String> {
        let Some(function) = &self.hooks[hook as usize] else { return Ok(()) };
        refuel(&mut self.store);
        function.call(&mut self.store, ()).map_err(|error| failure(&error).told(HOOKS[hook as usize]))
    }

    /// Writes bytes into the memory at an address that was checked.
    pub(crate) fn write_at(&mut self, place: usize, bytes: &[u8]) {
        self.memory.data_mut(&mut self.store)[place..place + bytes.len()].copy_from_slice(bytes);
    }

    pub(crate) fn table(&self) -> &Table {
        self.data()[self.base..].first_chunk().expect(WITHIN)
    }

    /// The table, for the facts of an event.
    pub(crate) fn table_mut(&mut self) -> &mut Table {
        self.memory.data_mut(&mut self.store)[self.base..].first_chunk_mut().expect(WITHIN)
    }

    /// The number at an address; `None` beyond the end of the memory.
    pub(crate) fn number(&self, place: usize) -> Option<f64> {
        read_f64(self.data(), place)
    }

    /// The whole memory.
    pub(crate) fn memory(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(self.data())
    }

    /// The whole memory. It never shrinks.
    fn data(&self) -> &[u8] {
        self.memory.data(&self.store)
    }

    pub(crate) fn base(&self) -> usize {
        self.base
    }
}

const WITHIN: &str = "a memory never shrinks, and the table was within it";

fn refuel(store: &mut Store<StoreLimits>) {
    store.set_fuel(FUEL_CALL).expect("the engine counts fuel");
}

/// The reason why a call failed.
fn failure(error: &wasmi::Error) -> Failure {
    match error.kind() {
        ErrorKind::TrapCode(TrapCode::OutOfFuel) => Failure::OutOfFuel,
        ErrorKind::TrapCode(TrapCode::StackOverflow) => Failure::TooDeep,
        _ => Failure::Trapped(error.to_string()),
    }
}
